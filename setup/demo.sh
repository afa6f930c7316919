#!/bin/sh
# The whole of piste on one machine: sample edition, baseline image, certified run, card, board, verification.
set -eu
cd "$(dirname "$0")/.."
piste=.venv/bin/piste
demo=demo
export XDG_CACHE_HOME="$PWD/.cache"
# What an interrupted demo left in the engine is found through its ledger: give it back before the ledger goes.
if [ -f "$demo/workspace/ledger.sqlite" ]; then "$piste" runs reap -w "$demo/workspace" >/dev/null || true; fi
rm -rf "$demo"
mkdir -p "$demo"
bold="" plain=""
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); fi
step() { printf '\n%s$ piste %s%s\n' "$bold" "$*" "$plain"; "$piste" "$@"; }

step sample "$demo/sample" --edition epee-sample
step build-image --baseline recognition -o "$demo/baseline.tar"
step init "$demo/workspace" --origin piste.local/demo
export PISTE_WORKSPACE="$demo/workspace"
step seal "$demo/sample/edition.yaml"
step team add baseline
step certify --edition epee-sample --team baseline "$demo/baseline.tar"
step board --edition epee-sample
step export epee-sample -o "$demo/epee-sample.tar"
step verify "$demo/epee-sample.tar"

printf '\nThe evidence lies in %s/workspace/runs; the bundle that an auditor gets is %s/epee-sample.tar\n' "$demo" "$demo"
