#!/bin/sh
# Prints the weight of every code point of the basic multilingual plane under utf8mb4_general_ci, one line
# "code point in hexadecimal, tab, weight in hexadecimal" each. Debian's mariadb-server is asked; it runs in a
# temporary directory, reachable through a socket there only, and is stopped by its process id.
#
#   sh xtask/general_ci_weights.sh > /tmp/general_ci_weights.tsv
set -eu
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

# Surrogates are no characters.
ask "SELECT HEX(seq), HEX(WEIGHT_STRING(CONVERT(CHAR(seq USING utf32) USING utf8mb4) COLLATE utf8mb4_general_ci))
     FROM seq_0_to_65535 WHERE seq NOT BETWEEN 0xD800 AND 0xDFFF"
