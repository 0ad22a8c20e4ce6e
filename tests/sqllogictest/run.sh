#!/bin/sh
# Runs a sample of the public sqllogictest corpus (the folder `test` of SQLite's sqllogictest) against Junctor.
# Starts the server on a free port, without files, and stops it at the end.
#
#   sh tests/sqllogictest/run.sh target/release/junctor FOLDER [ONE_IN [SEED]]
#
# One query in ONE_IN runs: 35 makes 200,000 queries of the corpus, which has seven million for MySQL.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
junctor=$1
corpus=$2
folder=$(mktemp -d)
process=
stop() {
    for pid in $process; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' INT TERM

. "$here/../server.sh"

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/../differential/requirements.txt"

start data --in-memory
"$folder/venv/bin/python" "$here/run.py" --port "$port" --one-in "${3:-35}" --seed "${4:-1}" "$corpus"
