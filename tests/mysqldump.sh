#!/bin/sh
# A dump of a database with all types, keys and odd names, taken by a real mysqldump while clients write, is
# loaded into an empty server: the dump is consistent, and the copy has the same contents.
#
#   sh tests/mysqldump.sh target/debug/junctor
set -eu
junctor=$(realpath "$1")
folder=$(mktemp -d)
source=
copy=
writer=
stop() {
    for process in $writer $source $copy; do
        kill "$process" 2>/dev/null || true
    done
    wait
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' INT TERM

. "$(dirname "$0")/server.sh"

client() { # port, then options
    at=$1
    shift
    mysql --no-defaults --host=127.0.0.1 --port="$at" --user=root --default-character-set=utf8mb4 --batch "$@"
}

database='odd`name "it'\''s" ä表'
quoted='`odd``name "it'\''s" ä表`'

start source
source=$process
source_port=$port
{
    echo "CREATE DATABASE $quoted; USE $quoted;"
    cat <<'SQL'
CREATE TABLE types (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  t TINYINT, tu TINYINT UNSIGNED, bo BOOL, s SMALLINT, su SMALLINT UNSIGNED, m MEDIUMINT, mu MEDIUMINT UNSIGNED,
  i INT, iu INT UNSIGNED, l BIGINT, lu BIGINT UNSIGNED, d DOUBLE,
  c CHAR(10), v VARCHAR(200) COLLATE utf8mb4_bin, vg VARCHAR(50) COLLATE utf8mb4_general_ci, b BINARY(8),
  vb VARBINARY(300), tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, lt LONGTEXT, tb TINYBLOB, bl BLOB, mb MEDIUMBLOB,
  lb LONGBLOB,
  KEY k1 (s, v), UNIQUE KEY u1 (lu), KEY (vb), KEY `we``ird 'key' ä` (d), UNIQUE KEY u2 (c, i) USING HASH
) COMMENT='it''s "odd" \\ ;' AUTO_INCREMENT=7;
INSERT INTO types (t, tu, bo, s, su, m, mu, i, iu, l, lu, d, c, v, vg, b, vb, tt, tx, mt, lt, tb, bl, mb, lb) VALUES
 (-128, 255, 1, -32768, 65535, -8388608, 16777215, -2147483648, 4294967295, -9223372036854775808,
  18446744073709551615, -1.7976931348623157e308, 'a', 'it''s', 'x', X'0001020304050607', X'00FF1A0A0D225C27',
  'tt', '\0\n\r\Z\t\\\'"%_', '中文😀', REPEAT('long\\ ', 20000), X'00', X'DEADBEEF00', X'27',
  REPEAT(X'00FF2227', 3000)),
 (127, 0, 0, 32767, 0, 8388607, 0, 2147483647, 0, 9223372036854775807, 0, 2.2250738585072014e-308, '', '', '', X'00',
  X'', '', '', '', '', '', '', '', ''),
 (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE `select` (`from` INT NOT NULL, `äöü 表` VARCHAR(20) DEFAULT 'dö''f\\', `a.b` INT DEFAULT -5,
  ` lead``` DOUBLE NOT NULL DEFAULT 0.1, PRIMARY KEY (`from`, `a.b`) USING HASH) PARTITION BY KEY (`from`) PARTITIONS 4;
INSERT INTO `select` VALUES (1, 'x', 2, 1e10), (1, DEFAULT, 3, -0.0), (2, NULL, DEFAULT, DEFAULT);
CREATE TABLE keyless (a INT, b TEXT);
INSERT INTO keyless VALUES (1, 'same'), (1, 'same'), (NULL, NULL);
CREATE TABLE z_parent (id INT PRIMARY KEY, code VARCHAR(10) UNIQUE);
CREATE TABLE a_child (id INT AUTO_INCREMENT PRIMARY KEY, parent INT, code VARCHAR(10), self INT, KEY (parent),
  CONSTRAINT `f ``1` FOREIGN KEY (parent) REFERENCES z_parent (id) ON DELETE CASCADE ON UPDATE SET NULL,
  FOREIGN KEY (code) REFERENCES z_parent (code), FOREIGN KEY (self) REFERENCES a_child (id));
CREATE TABLE bytes (id INT PRIMARY KEY, b BLOB);
CREATE TABLE account (id INT PRIMARY KEY, balance BIGINT NOT NULL, KEY (balance));
CREATE TABLE transfer (id INT PRIMARY KEY AUTO_INCREMENT, amount INT NOT NULL);
SQL
    awk 'BEGIN {
        for (id = 1; id <= 200; id++) printf "INSERT INTO account VALUES (%d, 1000);\n", id
        for (byte = 0; byte < 256; byte++) {
            all = all sprintf("%02x", byte)
            printf "INSERT INTO bytes VALUES (%d, X\047%02x275c%02x\047);\n", byte, byte, byte
        }
        printf "INSERT INTO bytes VALUES (256, REPEAT(X\047%s\047, 100));\n", all
    }'
} | client "$source_port" || fail "the database could not be made"

# A transfer moves money between two accounts and is noted; a parent comes with two children, or leaves with
# them.
awk -v use="USE $quoted;" 'BEGIN {
    print use
    for (round = 1; ; round++) {
        from = round * 7 % 200 + 1; to = round * 13 % 200 + 1; amount = round % 50
        printf "BEGIN; UPDATE account SET balance = balance - %d WHERE id = %d;", amount, from
        printf "UPDATE account SET balance = balance + %d WHERE id = %d;", amount, to
        printf "INSERT INTO transfer (amount) VALUES (%d); COMMIT;\n", amount
        printf "BEGIN; INSERT INTO z_parent VALUES (%d, \047c%d\047);", round, round
        printf "INSERT INTO a_child (parent, code) VALUES (%d, \047c%d\047), (%d, NULL); COMMIT;\n", round, round, round
        if (round > 20) printf "BEGIN; UPDATE a_child SET code = NULL WHERE parent = %d; DELETE FROM z_parent WHERE id = %d; COMMIT;\n", round - 20, round - 20
    }
}' | client "$source_port" >"$folder/writer.log" 2>&1 &
writer=$!
noted() {
    client "$source_port" --skip-column-names --execute="SELECT COUNT(*) FROM $quoted.transfer"
}
until [ "$(noted)" -gt 50 ]; do
    kill -0 "$writer" 2>/dev/null || fail "the writer ended"
    sleep 0.1
done

dump() { # port, options
    at=$1
    shift
    "$program" --no-defaults --host=127.0.0.1 --port="$at" --user=root --single-transaction --no-tablespaces \
        --skip-comments --order-by-primary "$@" --databases "$database"
}
shown() { # port, table: its rows in order
    client "$1" --execute="SELECT * FROM $quoted.$2"
}
number() { # port, query
    client "$1" --skip-column-names --execute="USE $quoted; $2" | tr '\t' ' '
}

# The lines of a dump in order, without the next AUTO_INCREMENT numbers, which belong to no snapshot.
contents() {
    LC_ALL=C sed -e 's/ AUTO_INCREMENT=[0-9]*//' -e 's/[,;]$//' "$1" | LC_ALL=C sort
}

# Dumps the source with the options in $2, loads the dump, and compares.
check() { # name, options
    before=$(noted)
    # A dump during which nothing was written proves little.
    until [ -s "$folder/$1.sql" ] && [ "$(noted)" -gt "$before" ]; do
        kill -0 "$writer" 2>/dev/null || fail "the writer ended"
        before=$(noted)
        # shellcheck disable=SC2086
        dump "$source_port" $2 >"$folder/$1.sql" 2>"$folder/dump.log" || fail "$program fails"
        [ ! -s "$folder/dump.log" ] || fail "$program complains"
    done
    start "$1"
    copy=$process
    copy_port=$port
    client "$copy_port" <"$folder/$1.sql" 2>"$folder/load.log" || fail "the dump of $program does not load"
    # shellcheck disable=SC2086
    dump "$copy_port" $2 >"$folder/$1.again" 2>"$folder/dump.log" || fail "$program fails on the copy"
    contents "$folder/$1.sql" >"$folder/expected"
    contents "$folder/$1.again" | cmp -s - "$folder/expected" || fail "the copy has another dump than its source"
    for table in 'types ORDER BY id' '`select` ORDER BY `from`, `a.b`' 'keyless ORDER BY a' 'bytes ORDER BY id'; do
        shown "$source_port" "$table" >"$folder/rows"
        shown "$copy_port" "$table" | cmp -s - "$folder/rows" || fail "the copy has other rows: $table"
    done
    for query in 'SELECT COUNT(*), SUM(balance) FROM account' 'SELECT SUM(balance) FROM account FORCE INDEX (balance)'; do
        [ "$(number "$copy_port" "$query")" = "$(number "$source_port" "$query")" ] || fail "differs: $query"
    done
    # Transactions are whole: the parents in the dump have two children each, and transfers have no gap.
    parents=$(number "$copy_port" 'SELECT COUNT(*), SUM(id) FROM z_parent')
    children=$(number "$copy_port" 'SELECT COUNT(*), SUM(parent) FROM a_child WHERE code IS NOT NULL')
    others=$(number "$copy_port" 'SELECT COUNT(*), SUM(parent) FROM a_child WHERE code IS NULL')
    [ "$parents" = "$children" ] && [ "$parents" = "$others" ] || fail "parents $parents, children $children and $others"
    transfers=$(number "$copy_port" 'SELECT COUNT(*) - MAX(id) FROM transfer')
    [ "$transfers" = 0 ] || fail "$transfers transfers are missing"
    if client "$copy_port" --execute="INSERT INTO $quoted.a_child (parent) VALUES (-1)" 2>/dev/null; then
        fail "the copy has no foreign key"
    fi
    next=$(number "$copy_port" 'INSERT INTO types (t) VALUES (1); SELECT LAST_INSERT_ID()')
    [ "$next" = 10 ] || fail "AUTO_INCREMENT of the copy continues at $next"
    kill "$copy"
    wait "$copy" || fail "the copy does not stop"
    copy=
    echo "$program${2:+ $2}: as expected"
}

programs=mariadb-dump
# MySQL's own program, where it is installed.
if command -v mysqldump >/dev/null && ! mysqldump --version | grep -q MariaDB; then
    programs="$programs mysqldump"
fi
for program in $programs; do
    check "$program" ""
    check "$program-hex" "--hex-blob --complete-insert --skip-extended-insert --routines --triggers --events"
done
