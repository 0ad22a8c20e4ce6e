#!/bin/sh
# Sends random statements and fixed interleavings to Junctor and MariaDB and compares the answers. This script
# starts both servers on free ports and in a temporary directory, and stops them at the end.
#
#   sh tests/differential/run.sh target/debug/junctor [SEED [STATEMENTS [EPISODES]]]
#
# EPISODES is the number of episodes with concurrent sessions, of about 40 statements each.
# TYPED is the number of statements over every type and function, TYPED_SECONDS their bound; TYPED_ONLY=1 sends
# only them. TYPED_CHECK=--summary lists what was refused and the kinds of differences; TYPED_RECORD=FILE keeps the
# differences that have a reason, for typed/record.py.
# BULK is the number of queries of all kinds that bulk/main.py sends.
# QUERIES is the number of queries of several tables, of those by keys of several columns, of those with conditions
# on derived tables, and four times those with correlated subqueries, WRITES of statements that write several tables, PREPARED of statements sent as text and prepared,
# COLLATIONS of collations whose texts are compared.
# KEEP_GOING=--keep-going reports every difference instead of the first one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
junctor=$1
seed=${2:-1}
statements=${3:-2000}
episodes=${4:-24}
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

start data --in-memory
start_mariadb --character-set-server=utf8mb4 --collation-server=utf8mb4_general_ci
# The zones that the statements name.
for zone in UTC Europe/Berlin; do
    mariadb-tzinfo-to-sql "/usr/share/zoneinfo/$zone" "$zone" |
        mysql --no-defaults --host=127.0.0.1 --port="$mariadb_port" --user=root mysql
done

ports="--junctor $port --mariadb $mariadb_port"
failed=0
if [ -z "${TYPED_ONLY:-}" ]; then
    # shellcheck disable=SC2086 # split the ports and KEEP_GOING into words
    "$folder/venv/bin/python" "$here/compare.py" $ports --seed "$seed" --statements "$statements" ${KEEP_GOING:-} ||
        failed=1
fi
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/typed/main.py" $ports --seed "$seed" --statements "${TYPED:-20000}" \
    --seconds "${TYPED_SECONDS:-100}" ${TYPED_CHECK:-} ${TYPED_RECORD:+--record "$TYPED_RECORD"} ${KEEP_GOING:-} || failed=1
if [ -n "${TYPED_ONLY:-}" ]; then
    exit $failed
fi
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/concurrent.py" $ports --seed "$seed" --episodes "$episodes" ${KEEP_GOING:-} || failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/queries.py" $ports --seed "$seed" --statements "${QUERIES:-2000}" --spill \
    ${KEEP_GOING:-} || failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/queries.py" $ports --seed "$seed" --statements "${QUERIES:-2000}" --spill \
    --composite ${KEEP_GOING:-} || failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/queries.py" $ports --seed "$seed" --statements "${QUERIES:-2000}" --spill \
    --derived ${KEEP_GOING:-} || failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/queries.py" $ports --seed "$seed" --statements "$((${QUERIES:-2000} / 4))" \
    --correlated ${KEEP_GOING:-} || failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/bulk/main.py" $ports --seed "$seed" --queries "${BULK:-5000}" ${KEEP_GOING:-} || failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/false_statistics.py" $ports --seed "$seed" --statements "$((${QUERIES:-2000} / 4))" ||
    failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/writes.py" $ports --seed "$seed" --statements "${WRITES:-1000}" ${KEEP_GOING:-} ||
    failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/counts.py" $ports || failed=1
"$folder/venv/bin/python" "$here/prepared.py" --junctor "$port" --seed "$seed" --statements "${PREPARED:-1000}" \
    ${KEEP_GOING:-} || failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/character_sets.py" $ports --seed "$seed" --sample "${COLLATIONS:-2}" --rows 4 ||
    failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/sessions.py" $ports || failed=1
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/anomalies.py" $ports || failed=1
# Its statements change settings of the servers, so it comes last.
# shellcheck disable=SC2086
"$folder/venv/bin/python" "$here/corpus.py" $ports || failed=1
exit $failed
