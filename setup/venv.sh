#!/bin/sh
# Create .venv from the lock file. Where Debian's python3-venv is missing and we are root, install it first.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    found=$("$PYTHON" -V 2>/dev/null || echo "not there")
    echo "piste needs Python 3.11 or newer; $PYTHON is $found. Install one, or name it: make demo PYTHON=/path/to/python3.11" >&2
    exit 1
}
base() { "$PYTHON" -VV && pwd -P; }
stamp=.venv/.made-from
if { base && cat requirements.lock pyproject.toml; } | cmp -s - "$stamp"; then exit 0; fi

"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || setup/packages.sh python3-venv
# Scripts in .venv/bin name their interpreter: another one, or a moved folder, needs them anew.
if ! { base | cmp -s - .venv/.base && .venv/bin/python -m pip --version >/dev/null 2>&1; }; then
    "$PYTHON" -m venv --clear .venv
    base >.venv/.base
fi
echo "installing $(grep -c '^[a-z].*==' requirements.lock) locked packages into .venv, about 150 MB to download" >&2
pip() { .venv/bin/python -m pip --quiet --disable-pip-version-check --no-input "$@"; }
pip install --require-hashes -r requirements.lock || {
    echo "pip could not install requirements.lock. Is the package index within reach (pip config list)? Then run this again." >&2
    exit 1
}
pip install --no-deps --no-build-isolation -e .
{ base && cat requirements.lock pyproject.toml; } >"$stamp"
