#!/bin/sh
# Feeds each tests/sql/*.sql to the mysql command-line client and compares the output with the *.expected file
# next to it. For errors, only line, number and SQLSTATE are compared.
#
#   sh tests/mysql-cli.sh target/debug/junctor     starts a server and compares
#   sh tests/mysql-cli.sh --port 3307              compares with a running server
#   sh tests/mysql-cli.sh --record --port 3307     writes the .expected files from a running server
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
server=
stop() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' INT TERM

record=
if [ "${1:-}" = --record ]; then
    record=yes
    shift
fi
if [ "${1:-}" = --port ]; then
    port=$2
else
    : >"$folder/output"
    "$1" serve --port 0 --in-memory >"$folder/output" 2>"$folder/log" &
    server=$!
    port=
    tries=0
    while [ -z "$port" ]; do
        port=$(sed -n 's/^ready: mysql [^ ]*:\([0-9]*\) .*/\1/p' "$folder/output" | head -n 1)
        tries=$((tries + 1))
        if [ "$tries" -gt 300 ] || ! kill -0 "$server" 2>/dev/null; then
            echo "the server did not become ready" >&2
            cat "$folder/log" >&2
            exit 1
        fi
        sleep 0.1
    done
    # Statistics that come by themselves would change estimates at moments that no file can know.
    mysql --no-defaults -h127.0.0.1 -P"$port" -uroot -e "SET GLOBAL innodb_stats_auto_recalc = OFF"
fi

failed=0
for file in "$here"/sql/*.sql; do
    name=$(basename "$file" .sql)
    if [ -n "$record" ] && grep -q '^-- not recorded' "$file"; then
        continue
    fi
    # --force continues after an error, like an interactive user. --unbuffered keeps errors in their place in
    # the output.
    # The client removes comments, unless it is told to keep them.
    comments=$(sed -n 's/^-- with comments$/--comments/p' "$file")
    # shellcheck disable=SC2086
    timeout 60 mysql --no-defaults $comments -h127.0.0.1 -P"$port" -uroot --default-character-set=utf8mb4 \
        --table --verbose --verbose --force --unbuffered <"$file" >"$folder/seen" 2>&1 || true
    sed -e 's/^\(ERROR [0-9]* ([0-9A-Z]*) at line [0-9]*\):.*/\1/' "$folder/seen" >"$folder/$name.seen"
    if [ -n "$record" ]; then
        cp "$folder/$name.seen" "${file%.sql}.expected"
    elif diff -u "${file%.sql}.expected" "$folder/$name.seen"; then
        echo "$name: as expected"
    else
        failed=$((failed + 1))
        echo "$name: DIFFERS"
    fi
done
[ "$failed" = 0 ] || exit 1
