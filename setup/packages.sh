#!/bin/sh
# Install Debian packages. What apt says is shown only when it fails; without root or apt, say what to do instead.
set -eu
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "not installed: $*. On Debian or Ubuntu: sudo apt-get install $*; then run this again." >&2
    exit 1
fi
echo "installing $*" >&2
said=$(mktemp)
trap 'rm -f "$said"' EXIT
export DEBIAN_FRONTEND=noninteractive
# A first boot installs updates by itself: wait for its lock. Without a network, lists that are there may do.
apt-get update -qq -o DPkg::Lock::Timeout=300 >"$said" 2>&1 || true
if ! apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" >>"$said" 2>&1; then
    tail -n 5 "$said" >&2
    echo "apt-get could not install $*. Is its mirror within reach? Then run this again, or first install what it names." >&2
    exit 1
fi
