#!/bin/sh
# Writes the weights of characters as MariaDB gives them into a folder, for `generate-collation`: a file for each
# collation, with one line "code in hexadecimal, tab, weights in hexadecimal" for each character. Debian's
# mariadb-server is asked; it runs in a temporary directory, reachable through a socket there only, and is stopped
# by its process id.
#
#   sh xtask/collation_weights.sh FOLDER
set -eu
output=$1
mkdir -p "$output"
directory=$(mktemp -d)
server=
stop() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$directory"
}
trap stop EXIT

mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$directory/data" \
    --auth-root-authentication-method=normal >"$directory/install.log" 2>&1
mariadbd --no-defaults --user="$(id -un)" --datadir="$directory/data" --socket="$directory/socket" \
    --skip-networking --pid-file="$directory/pid" >"$directory/server.log" 2>&1 &
server=$!

ask() { mariadb --no-defaults -uroot -S "$directory/socket" -N -B mysql -e "$1"; }
tries=0
until ask 'SELECT 1' >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 60 ]; then
        cat "$directory/server.log" >&2
        exit 1
    fi
    sleep 1
done

# The weights of every code point under COLLATION. Surrogates are no characters.
code_points() { # COLLATION LAST
    ask "SELECT HEX(seq), HEX(WEIGHT_STRING(CONVERT(CHAR(seq USING utf32) USING utf8mb4) COLLATE $1))
         FROM seq_0_to_$2 WHERE seq NOT BETWEEN 0xD800 AND 0xDFFF" >"$output/$1.tsv"
}

code_points utf8mb4_general_ci 65535
code_points utf8mb4_unicode_ci 1114111
code_points utf8mb4_unicode_520_ci 1114111
for name in swedish_ci german1_ci danish_ci general_ci general_cs spanish_ci german2_ci; do
    ask "SELECT HEX(seq), HEX(WEIGHT_STRING(CONVERT(UNHEX(LPAD(HEX(seq), 2, '0')) USING latin1) COLLATE latin1_$name))
         FROM seq_0_to_255" >"$output/latin1_$name.tsv"
done
