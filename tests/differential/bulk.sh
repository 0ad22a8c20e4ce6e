#!/bin/sh
# Sends many random queries to Junctor and MariaDB and compares the answers (bulk/main.py). This script starts both
# servers on free ports and in a temporary directory, and stops them at the end.
#
#   sh tests/differential/bulk.sh target/release/junctor [SEED [QUERIES]] [OPTIONS OF bulk/main.py]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
junctor=$1
seed=${2:-1}
queries=${3:-100000}
shift $(($# < 3 ? $# : 3))
folder=$(mktemp -d)
process=
mariadb=
stop() {
    for pid in $process $mariadb; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' INT TERM

. "$here/../server.sh"

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
# A quarter of the server's work on such queries is malloc's. Larger caches of it make more queries a second.
GLIBC_TUNABLES=glibc.malloc.tcache_count=2000:glibc.malloc.tcache_max=65536:glibc.malloc.mxfast=0
GLIBC_TUNABLES=$GLIBC_TUNABLES:glibc.malloc.trim_threshold=268435456:glibc.malloc.top_pad=67108864
export GLIBC_TUNABLES
start data --in-memory
unset GLIBC_TUNABLES
start_mariadb --character-set-server=utf8mb4 --collation-server=utf8mb4_general_ci
"$folder/venv/bin/python" "$here/bulk/main.py" --junctor "$port" --mariadb "$mariadb_port" --seed "$seed" \
    --queries "$queries" "$@"
