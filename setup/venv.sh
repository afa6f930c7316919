#!/bin/sh
# Create .venv from the lock file. Where Debian's python3-venv is missing and we are root, install it first.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    echo "piste needs Python 3.11 or newer as $PYTHON; install it or set PYTHON=/path/to/python3.11" >&2
    exit 1
}
stamp=.venv/.locked
if [ -f "$stamp" ] && cmp -s requirements.lock "$stamp" && [ ! pyproject.toml -nt "$stamp" ]; then exit 0; fi
if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv
    else
        echo "Python's venv module is missing: install the package python3-venv, then run this again" >&2
        exit 1
    fi
fi
[ -x .venv/bin/python ] || "$PYTHON" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
cp requirements.lock "$stamp"
