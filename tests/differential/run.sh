#!/bin/sh
# Sends random statements and fixed interleavings to Junctor and MariaDB and compares the answers. This script
# starts both servers on free ports and in a temporary directory, and stops them at the end.
#
#   sh tests/differential/run.sh target/debug/junctor [SEED [STATEMENTS [EPISODES]]]
#
# EPISODES is the number of episodes with concurrent sessions, of about 40 statements each.
# TYPED is the number of statements over every type and function, TYPED_SECONDS their bound; TYPED_ONLY=1 sends
# only them. TYPED_CHECK=--summary lists what was refused and the kinds of differences.
# QUERIES is the number of queries of several tables, WRITES of statements that write several tables.
# KEEP_GOING=--keep-going reports every difference instead of the first one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
junctor=$1
seed=${2:-1}
statements=${3:-2000}
episodes=${4:-24}
folder=$(mktemp -d)
junctor_pid=
mariadb_pid=
stop() {
    for pid in $junctor_pid $mariadb_pid; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' INT TERM

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"

"$junctor" serve --port 0 --in-memory --total-memory 512M >"$folder/output" 2>"$folder/log" &
junctor_pid=$!

mariadb_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$folder/mariadb" --auth-root-authentication-method=normal \
    >"$folder/install" 2>&1
mariadbd --no-defaults --user="$(id -un)" --datadir="$folder/mariadb" --port="$mariadb_port" --bind-address=127.0.0.1 \
    --socket="$folder/socket" --skip-log-bin --innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=0 \
    --character-set-server=utf8mb4 --collation-server=utf8mb4_general_ci >"$folder/mariadb-log" 2>&1 &
mariadb_pid=$!

junctor_port=
tries=0
until [ -n "$junctor_port" ] && mysql --no-defaults --host=127.0.0.1 --port="$mariadb_port" --user=root --execute="DO 0" \
    >/dev/null 2>&1; do
    junctor_port=$(sed -n 's/^ready: mysql [^ ]*:\([0-9]*\) .*/\1/p' "$folder/output" | head -n 1)
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ]; then
        echo "the servers did not become ready" >&2
        cat "$folder/log" "$folder/mariadb-log" >&2
        exit 1
    fi
    sleep 0.1
done

ports="--junctor $junctor_port --mariadb $mariadb_port"
failed=0
if [ -z "${TYPED_ONLY:-}" ]; then
    # shellcheck disable=SC2086 # split the ports and KEEP_GOING into words
    "$folder/venv/bin/python" "$here/compare.py" $ports --seed "$seed" --statements "$statements" ${KEEP_GOING:-} ||
        failed=1
fi
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/typed/main.py" $ports --seed "$seed" --statements "${TYPED:-20000}" \
    --seconds "${TYPED_SECONDS:-100}" ${TYPED_CHECK:-} ${KEEP_GOING:-} || failed=1
if [ -n "${TYPED_ONLY:-}" ]; then
    exit $failed
fi
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/concurrent.py" $ports --seed "$seed" --episodes "$episodes" ${KEEP_GOING:-} || failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/queries.py" $ports --seed "$seed" --statements "${QUERIES:-2000}" ${KEEP_GOING:-} ||
    failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/writes.py" $ports --seed "$seed" --statements "${WRITES:-1000}" ${KEEP_GOING:-} ||
    failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/counts.py" $ports || failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/sessions.py" $ports || failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/anomalies.py" $ports || failed=1
exit $failed
