#!/bin/sh
# Run the ledger's contract suite on PostgreSQL: a cluster of its own on loopback, gone afterwards.
# As root on Debian or Ubuntu: install PostgreSQL's server first where it is missing.
set -eu
cd "$(dirname "$0")/.."
driver=.cache/psycopg # beside .venv, which holds what the lock file lists and nothing else

server_programs() {
    for folder in $(command -v initdb | xargs -r dirname) /usr/lib/postgresql/*/bin; do
        if [ -x "$folder/initdb" ] && [ -x "$folder/pg_ctl" ]; then echo "$folder"; fi
    done | tail -n 1
}
if [ -z "$(server_programs)" ]; then setup/packages.sh postgresql; fi
programs=$(server_programs)
if [ -z "$programs" ]; then
    echo "no PostgreSQL server is here (initdb and pg_ctl in PATH). Install one, then run this again." >&2
    exit 1
fi
if ! PYTHONPATH=$driver .venv/bin/python -c 'import psycopg' 2>/dev/null; then
    .venv/bin/python -m pip --quiet --disable-pip-version-check --no-input install \
        --target "$driver" 'psycopg[binary]==3.2.10'
fi

work=$(mktemp -d)
as_owner() { "$@"; }
if [ "$(id -u)" = 0 ]; then # PostgreSQL refuses to run as root
    chown postgres "$work"
    as_owner() { runuser -u postgres -- "$@"; }
fi
finish() {
    as_owner "$programs/pg_ctl" --pgdata "$work/data" --mode immediate --silent stop || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

port=$(.venv/bin/python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
(cd "$work" && umask 077 && as_owner "$programs/initdb" --pgdata "$work/data" --username piste --auth trust \
    --encoding UTF8 --no-locale --no-sync >"$work/initdb.log" 2>&1) || { cat "$work/initdb.log" >&2; exit 1; }
(cd "$work" && as_owner "$programs/pg_ctl" --pgdata "$work/data" --log "$work/data/log" --silent --wait \
    --options "-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories='' -c fsync=off" start) || {
    cat "$work/data/log" >&2
    exit 1
}
echo "PostgreSQL $("$programs/postgres" --version | cut -d ' ' -f 3) answers at 127.0.0.1:$port" >&2
PYTHONPATH=$driver PISTE_TEST_POSTGRES="postgresql+psycopg://piste@127.0.0.1:$port/postgres" \
    .venv/bin/python -m pytest "$@" tests/ledger/test_ledger_contract.py tests/ledger/test_ledger_sql_faults.py
