#!/bin/sh
# Files of the server, with a real folder: INTO OUTFILE, INTO DUMPFILE, LOAD DATA INFILE and LOAD_FILE.
# MariaDB gets the same statements; answers and files must be equal. Then the privilege, KILL in the middle of
# a file, and starts with folders that are refused.
#
#   sh tests/server-files.sh target/debug/junctor
set -eu
here=$(cd "$(dirname "$0")" && pwd)
junctor=$(realpath "$1")
folder=$(mktemp -d)
process=
mariadb=
stop() {
    for pid in $process $mariadb; do
        kill "$pid" 2>/dev/null || true
    done
    wait
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' INT TERM

. "$here/server.sh"

client() { # port, options
    at=$1
    shift
    mysql --no-defaults --host=127.0.0.1 --port="$at" --user=root --default-character-set=utf8mb4 "$@" 2>&1
}

mkdir "$folder/ours" "$folder/theirs"
start data --secure-file-priv "$folder/ours"
start_mariadb --character-set-server=utf8mb4 --collation-server=utf8mb4_general_ci \
    --secure-file-priv="$folder/theirs"

run() { # port, folder
    sed "s#DIR#$2#g" "$here/server-files/statements.sql" |
        client "$1" --table --verbose --verbose --force --unbuffered |
        # MariaDB warns of INTO at the end, which MySQL recommends, and has other SQLSTATEs.
        sed -e 's/^\(ERROR [0-9]*\) ([0-9A-Z]*)\( at line [0-9]*\):.*/\1\2/' -e "s#$2#DIR#g" -e '/^Records: /d' \
            -e 's/^\(Query OK, .*affected\), [0-9]* warnings*/\1/'
}
run "$port" "$folder/ours" >"$folder/ours.out"
run "$mariadb_port" "$folder/theirs" >"$folder/theirs.out"
diff "$folder/theirs.out" "$folder/ours.out" || fail "the answers differ from MariaDB's"
# MariaDB leaves the files of these two statements, which fail.
rm -f "$folder/theirs/failed" "$folder/theirs/wrong"
diff -r "$folder/theirs" "$folder/ours" || fail "the files differ from MariaDB's"
for file in tabs csv optional; do
    cmp "$folder/ours/$file" "$folder/ours/$file.copy" || fail "a table that is loaded again is another one"
done
[ ! -e /tmp/junctor-outside ] || fail "a file is outside of the folder"

echo "== the privilege FILE"
client "$port" -e "CREATE USER reader IDENTIFIED BY ''; GRANT SELECT, INSERT ON f.* TO reader"
as_reader() {
    mysql --no-defaults --host=127.0.0.1 --port="$port" --user=reader --batch --skip-column-names f -e "$1" 2>&1 || true
}
for statement in "SELECT 1 INTO OUTFILE 'denied'" "SELECT 1 INTO DUMPFILE 'denied'" \
    "LOAD DATA INFILE 'pairs' INTO TABLE pairs"; do
    answer=$(as_reader "$statement")
    case $answer in
        *"ERROR 1045 (28000)"*) ;;
        *) fail "$statement: $answer" ;;
    esac
done
[ "$(as_reader "SELECT LOAD_FILE('pairs')")" = NULL ] || fail "LOAD_FILE without the privilege"

echo "== links"
echo secret >"$folder/secret"
ln -s "$folder/secret" "$folder/ours/link"
ln -s "$folder" "$folder/ours/out"
mkfifo "$folder/ours/pipe"
for statement in "LOAD DATA INFILE 'link' INTO TABLE f.pairs" "LOAD DATA INFILE 'out/secret' INTO TABLE f.pairs" \
    "SELECT 1 INTO OUTFILE 'out/new'"; do
    answer=$(client "$port" -e "$statement" || true)
    case $answer in
        *"ERROR 1290"*) ;;
        *) fail "$statement: $answer" ;;
    esac
done
answer=$(client "$port" -N -B -e "SELECT LOAD_FILE('link') IS NULL, LOAD_FILE('pipe') IS NULL")
[ "$answer" = "1	1" ] || fail "LOAD_FILE follows a link: $answer"
[ ! -e "$folder/new" ] || fail "a file is outside of the folder"

echo "== KILL in the middle of a file"
client "$port" f -e "CREATE TABLE many (id INT PRIMARY KEY, t VARCHAR(200)); SET cte_max_recursion_depth = 100000;
    INSERT INTO many WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i, REPEAT('x', 200) FROM n"
big="SELECT a.id, a.t, b.t FROM many a, many b INTO OUTFILE 'big'"
for what in "KILL QUERY" "KILL"; do
    client "$port" f -e "$big" >"$folder/big.out" &
    exporter=$!
    tries=0
    until [ -s "$folder/ours/big" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || fail "the file does not grow: $(cat "$folder/big.out")"
        sleep 0.05
    done
    number=$(client "$port" -N -B -e "SELECT id FROM information_schema.PROCESSLIST WHERE info LIKE 'SELECT a.id%'")
    client "$port" -e "$what $number"
    wait "$exporter" || true
    tries=0
    while [ -e "$folder/ours/big" ] || ls -l "/proc/$process/fd" | grep -q "$folder/ours"; do
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || fail "$what leaves the file or its descriptor"
        sleep 0.05
    done
done

echo "== folders that are refused"
kill "$process"
wait "$process" || true
process=
for refused in "" "$folder/absent" "$folder/secret" "$folder/data" "$folder"; do
    if timeout 20 "$junctor" serve --port 0 --total-memory 64M --data-dir "$folder/data" --secure-file-priv "$refused" \
        >"$folder/refused.out" 2>&1; then
        fail "a start with the folder '$refused'"
    fi
    grep -q "secure_file_priv: " "$folder/refused.out" || fail "no reason: $(cat "$folder/refused.out")"
done
