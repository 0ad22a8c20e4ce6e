#!/bin/sh
# A schema with everything goes by mariadb-dump from Junctor to MariaDB, and from there into a second database of
# Junctor. Every table and view has the same rows on all three, and the definitions come back the same but for
# what MariaDB does not keep. The script starts both servers on free ports and in a temporary directory.
#
#   sh tests/mysqldump/mariadb.sh target/debug/junctor
set -eu
junctor=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
process=
mariadb=
stop() {
    for server in $process $mariadb; do
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' INT TERM

. "$here/../server.sh"

client() { # port, then options
    at=$1
    shift
    mysql --no-defaults --host=127.0.0.1 --port="$at" --user=root --default-character-set=utf8mb4 --batch "$@"
}
dump() { # port, database
    mariadb-dump --no-defaults --host=127.0.0.1 --port="$1" --user=root --single-transaction --no-tablespaces \
        --skip-comments --order-by-primary --hex-blob --complete-insert "$2" 2>"$folder/dump.log" ||
        fail "mariadb-dump fails"
    [ ! -s "$folder/dump.log" ] || fail "mariadb-dump complains"
}
load() { # port, database, file
    client "$1" "$2" <"$3" 2>"$folder/load.log" || fail "$3 does not load"
}

start_mariadb
start junctor

client "$port" --execute="CREATE DATABASE original; CREATE DATABASE back"
client "$mariadb_port" --execute="CREATE DATABASE visit COLLATE utf8mb4_uca1400_nopad_ai_ci"
load "$port" original "$here/everything.sql"

dump "$port" original >"$folder/original.sql"
python3 "$here/convert.py" to-mariadb <"$folder/original.sql" >"$folder/for-mariadb.sql"
load "$mariadb_port" visit "$folder/for-mariadb.sql"
dump "$mariadb_port" visit >"$folder/visit.sql"
python3 "$here/convert.py" to-mysql <"$folder/visit.sql" >"$folder/for-junctor.sql"
load "$port" back "$folder/for-junctor.sql"
dump "$port" back >"$folder/back.sql"

# One query for each table and view: the MD5 of every row, over the bytes of every value. HEX of a number would
# be rounded, so numbers and times are texts first. A FLOAT has more digits as a DOUBLE.
client "$port" --skip-column-names --raw --execute="
    SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'original'
    ORDER BY TABLE_NAME, ORDINAL_POSITION" >"$folder/columns"
awk -F '\t' '
    function quoted(name) { gsub(/`/, "``", name); return "`" name "`" }
    function finish() { if (table != "") print query ")) FROM " quoted(table) " ORDER BY 1" }
    $1 != table {
        finish()
        table = $1
        query = "SELECT MD5(CONCAT_WS(\",\""
    }
    {
        value = quoted($2)
        if ($3 ~ /^(float|double)$/) value = "CAST(" value " AS DOUBLE)"
        if ($3 ~ /^(tinyint|smallint|mediumint|int|bigint|decimal|float|double|date|time|datetime|timestamp|year)$/)
            value = "CAST(" value " AS CHAR)"
        query = query ", IFNULL(HEX(" value "), \"NULL\")"
    }
    END { finish() }' "$folder/columns" >"$folder/queries"
[ "$(wc -l <"$folder/queries")" -ge 20 ] || fail "there are too few tables"
checksums() { # port, database: a line for each table, with its name, the number of its rows, and their checksum
    while read -r query; do
        client "$1" "$2" --skip-column-names --execute="SET time_zone = '+00:00'; $query" </dev/null >"$folder/rows" ||
            fail "fails: $query"
        echo "$query $(wc -l <"$folder/rows") $(md5sum <"$folder/rows")" | sed 's/.* FROM //'
    done <"$folder/queries"
}
checksums "$port" original >"$folder/original.sums"
for copy in "$mariadb_port visit" "$port back"; do
    # shellcheck disable=SC2086
    checksums $copy >"$folder/copy.sums"
    diff "$folder/original.sums" "$folder/copy.sums" || fail "other rows in: ${copy#* }"
done
# A checksum that sees nothing would always be equal.
client "$port" --execute="UPDATE back.numbers SET c_decimal_long = c_decimal_long + 1e-30 WHERE id = 3"
checksums "$port" back >"$folder/copy.sums"
[ "$(diff "$folder/original.sums" "$folder/copy.sums" | grep -c '^<')" = 1 ] || fail "the checksums miss a change"

# The dumps without what cannot come back. MariaDB sorts constraints, shows no RESTRICT, calls LENGTH
# OCTET_LENGTH, and names tables in the columns of views. convert.py names the rest. The hidden keys of rows with
# explicit numbers use up numbers of the counter.
contents() {
    grep -v -e '^/\*!50001 VIEW' -e '^  KEY `functional`' "$1" |
        sed -e 's/ ON DELETE RESTRICT ON UPDATE RESTRICT//' -e 's/STORED NOT NULL/STORED/' -e 's/octet_length(/length(/' \
            -e "s/ AUTO_INCREMENT=[0-9]*\( .*'no primary key'\)/\1/" -e 's/[,;]$//' | LC_ALL=C sort
}
contents "$folder/original.sql" >"$folder/expected"
contents "$folder/back.sql" | diff "$folder/expected" - || fail "the definitions came back changed"
echo "$(wc -l <"$folder/queries") tables and views, to MariaDB and back: as expected"
