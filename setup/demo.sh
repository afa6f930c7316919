#!/bin/sh
# The whole of piste on one machine: sample edition, baseline image, certified run, card, board, verification.
set -eu
cd "$(dirname "$0")/.."
piste=.venv/bin/piste
demo=demo
rm -rf "$demo"
mkdir -p "$demo"
step() { printf '\n\033[1m$ piste %s\033[0m\n' "$*"; "$piste" "$@"; }

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
