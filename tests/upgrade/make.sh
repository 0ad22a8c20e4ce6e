#!/bin/sh
# Makes the data directory of a release that crates/server/tests/durability/upgrade.rs opens: VERSION.tar.gz and
# VERSION.expected in this folder. Run it once for each release, and commit both files.
#
#   sh tests/upgrade/make.sh VERSION [BINARY]
set -eu

here=$(dirname "$0")
version=$1
binary=${2:-target/release/junctor}
work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

cat > "$work/settings.toml" <<SETTINGS
FragmentLogFileSize = "1M"
TimeBetweenLocalCheckpoints = 14
SETTINGS

"$binary" serve --config "$work/settings.toml" --data-dir "$work/data" --port 0 --num-cpus 2 --no-cpu-binding \
    --total-memory 512M --durable > "$work/ready" &
server=$!
until grep -q '^ready: mysql' "$work/ready"; do
    kill -0 "$server"
    sleep 0.1
done
port=$(sed -n 's/^ready: mysql [^ ]*:\([0-9]*\) .*/\1/p' "$work/ready")
sql() {
    mysql --no-defaults --default-character-set=utf8mb4 --host 127.0.0.1 --port "$port" --user root -N -B
}

# The contents are long enough for a checkpoint, and the changes too short for another one.
sql < "$here/contents.sql"
sleep 3
sql < "$here/changes.sql"
sql < "$here/check.sql" > "$here/$version.expected"

# A stop without warning leaves the most for recovery to do.
kill -9 "$server"
wait "$server" 2>/dev/null || true
server=
tar -C "$work" --exclude=lock -czf "$here/$version.tar.gz" data
ls -l "$here/$version.tar.gz"
