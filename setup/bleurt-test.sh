#!/bin/sh
# Run the BLEURT tests with torch and transformers, in an environment of its own: .venv-bleurt, about 1 GB.
# The tests make tiny random checkpoints; no weights are downloaded.
set -eu
cd "$(dirname "$0")/.."
venv=.venv-bleurt
stamp=$venv/.made-from
versions="torch==2.13.0 transformers==4.57.6 sentencepiece==0.2.1"

pip() { "$venv/bin/python" -m pip --quiet --disable-pip-version-check --no-input "$@"; }
if ! { echo "$versions" && cat requirements.lock; } | cmp -s - "$stamp"; then
    base=$(.venv/bin/python -c 'import sys; print(sys._base_executable)') # the same Python as .venv's
    "$base" -m venv --clear "$venv"
    pip install --require-hashes -r requirements.lock
    # Word splitting is meant. A CPU build will do: PIP_EXTRA_INDEX_URL may name an index that has one.
    # shellcheck disable=SC2086
    pip install $versions || {
        echo "pip could not install $versions. Is the package index within reach, and is 1 GB free? Then run this again." >&2
        exit 1
    }
    { echo "$versions" && cat requirements.lock; } >"$stamp"
fi
"$venv/bin/python" -m pytest "$@" tests/scorers/test_bleurt_model.py tests/scoring/test_bleurt_scores.py
