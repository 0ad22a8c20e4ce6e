#!/bin/sh
# A real client with a compressed connection: long answers and commands, a file, TLS.
#
#   sh tests/compression.sh target/debug/junctor
set -eu
junctor=$(realpath "$1")
folder=$(mktemp -d)
process=
stop() {
    [ -z "$process" ] || kill "$process" 2>/dev/null || true
    wait
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' INT TERM

. "$(dirname "$0")/server.sh"

client() { # options
    mysql --no-defaults --host=127.0.0.1 --port="$port" --user=root --batch --skip-column-names \
        --max-allowed-packet=64M --local-infile=1 "$@" 2>&1
}

expect() { # what, expected, then a command
    what=$1
    expected=$2
    shift 2
    seen=$("$@") || true
    [ "$seen" = "$expected" ] || fail "$what: expected $expected, but the answer is: $(echo "$seen" | head -c 300)"
}

start data
status="SHOW STATUS LIKE 'Compression%'"
expect "without compression" "Compression	OFF
Compression_algorithm	" client -e "$status"
expect "with compression" "Compression	ON
Compression_algorithm	zlib" client --compress -e "$status"

client -e "CREATE DATABASE d; SET GLOBAL local_infile = ON"
seq 1 20000 | awk '{ print $1 "\t" "text of row " $1 "\t" ($1 * 7919) % 104729 }' >"$folder/rows.txt"
load="CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(40), c INT);
    LOAD DATA LOCAL INFILE '$folder/rows.txt' INTO TABLE t; SELECT COUNT(*), SUM(a), SUM(c) FROM t"
expect "a file" "20000	200010000	$(awk '{ s += $NF } END { print s }' "$folder/rows.txt")" client --compress d -e "$load"
client d -e "SELECT * FROM t ORDER BY a" >"$folder/plain"
for options in "--compress" "--compress --ssl --ssl-ca=$folder/data/tls/ca.pem"; do
    # shellcheck disable=SC2086
    client $options d -e "SELECT * FROM t ORDER BY a" >"$folder/compressed"
    cmp "$folder/plain" "$folder/compressed" || fail "$options changes the rows"
    cmp "$folder/plain" "$folder/rows.txt" || fail "the rows are not those of the file"
done

# Commands and rows beyond 16 MiB, of bytes that compress and of bytes that do not.
client d -e "CREATE TABLE long_texts (a INT PRIMARY KEY, b LONGTEXT)"
{
    printf "INSERT INTO long_texts VALUES (1, '"
    head -c 13000000 /dev/urandom | od -An -v -tx1 | tr -d ' \n'
    printf "'), (2, REPEAT('y', 20000000))"
} >"$folder/insert.sql"
client --compress d <"$folder/insert.sql"
expect "a long command" "1	26000000
2	20000000" client d -e "SELECT a, LENGTH(b) FROM long_texts"
rows="SELECT b FROM long_texts ORDER BY a"
client d -e "$rows" | md5sum >"$folder/plain"
client --compress d -e "$rows" | md5sum >"$folder/compressed"
cmp "$folder/plain" "$folder/compressed" || fail "long rows differ with compression"
expect "the next statement" "1" client --compress -e "SELECT 1"
echo "compression: as expected"
