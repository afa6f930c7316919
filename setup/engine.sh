#!/bin/sh
# Make sure that a Docker engine answers. As root on Debian or Ubuntu: install and start one; otherwise say what to do.
# `engine.sh tools` also installs the foreign tools that the tests check our files with.
set -eu

answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }
can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }
install() {
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

missing=""
if ! answers && ! command -v dockerd >/dev/null; then missing="docker.io iptables"; fi
if [ "${1:-}" = tools ]; then
    command -v docker-registry >/dev/null || missing="$missing docker-registry"
    command -v dockerd >/dev/null || missing="$missing docker.io iptables"
    for tool in age openssl jq; do command -v $tool >/dev/null || missing="$missing $tool"; done
fi
if [ -n "$missing" ]; then
    if can_install; then
        echo "installing $missing" >&2
        # shellcheck disable=SC2086
        install $missing
    else
        echo "missing: $missing. Install them, or run this as root on Debian or Ubuntu." >&2
        exit 1
    fi
fi
answers && exit 0
if [ "$(id -u)" != 0 ]; then
    echo "no Docker engine answers. Start one (systemctl start docker), or join the docker group, then run this again." >&2
    exit 1
fi
echo "starting dockerd" >&2
if ! { command -v systemctl >/dev/null && [ -d /run/systemd/system ] && systemctl start docker 2>/dev/null; }; then
    if ! mountpoint -q /sys/fs/cgroup/memory 2>/dev/null && [ ! -f /sys/fs/cgroup/cgroup.controllers ] && [ -x /usr/bin/cgroupfs-mount ]; then
        cgroupfs-mount || true
    fi
    rm -f /var/run/docker.pid
    nohup setsid dockerd >/var/log/piste-dockerd.log 2>&1 </dev/null &
fi
tries=0
until answers; do
    tries=$((tries + 1))
    if [ "$tries" -gt 120 ]; then
        echo "dockerd did not answer within 60 s; its log is /var/log/piste-dockerd.log:" >&2
        tail -n 20 /var/log/piste-dockerd.log >&2 || true
        exit 1
    fi
    sleep 0.5
done
