#!/bin/sh
# Real clients against the real binary: sysbench with every script, the mysql command line, readers and
# writers that would detect a torn row, autobench, idle connections, histories, deadlocks, and random
# statements compared with MariaDB. The servers listen on free ports, use temporary directories, and end with
# this script.
#
#   sh tests/clients.sh            builds and tests the debug binary
#   PROFILE=release sh tests/clients.sh
set -eu
cd "$(dirname "$0")/.."
profile=${PROFILE:-debug}
target=${CARGO_TARGET_DIR:-target}

if [ "$profile" = release ]; then
    cargo build --quiet --release --package junctor --package junctor-bench
else
    cargo build --quiet --package junctor --package junctor-bench
fi
bench="$target/$profile/junctor-bench"

echo "== sysbench: all scripts, 10,000 rows, 8 threads, automatic placement"
timeout 600 "$bench" sysbench-matrix --placements automatic --rows 10000 --threads 8 --seconds 2 --seconds-max 480

echo "== the mysql command line"
timeout 300 sh tests/mysql-cli.sh "$target/$profile/junctor"

echo "== TLS: versions, certificates of both ends, new certificates"
timeout 120 sh tests/tls.sh "$target/$profile/junctor"

echo "== clients in other languages: sessions, and logins by every method, over TCP, TLS and the Unix socket"
timeout 900 sh tests/clients/run.sh "$target/$profile/junctor"

echo "== some of Django's own tests"
timeout 300 sh tests/clients/django.sh "$target/$profile/junctor" aggregation bulk_create constraints lookup \
    select_for_update

echo "== compressed connections"
timeout 120 sh tests/compression.sh "$target/$profile/junctor"

echo "== a dump by mysqldump, loaded into an empty server"
timeout 300 sh tests/mysqldump.sh "$target/$profile/junctor"

echo "== a schema with everything, by mariadb-dump to MariaDB and back"
timeout 300 sh tests/mysqldump/mariadb.sh "$target/$profile/junctor"

echo "== files of the server, compared with MariaDB"
timeout 300 sh tests/server-files.sh "$target/$profile/junctor"

echo "== torn reads"
timeout 120 "$bench" torn-reads --seconds 10

echo "== autobench and its scripts, also on MariaDB"
timeout 180 sh tests/autobench.sh "$target/$profile/junctor"

echo "== the laboratory, very short"
timeout 180 sh tests/lab.sh "$target/$profile/junctor"

echo "== idle connections"
timeout 120 "$bench" connections --count 500 --mebibytes-max 16

echo "== histories of concurrent transactions, checked against their isolation levels"
timeout 240 "$bench" history --transactions 3000

echo "== a storm of deadlocks"
timeout 60 "$bench" deadlocks --alone --seconds 3 --rounds 1 --clients 16

echo "== a cluster whose nodes are killed, cut off and stopped"
timeout 180 "$bench" cluster-kill --kills 8

echo "== a rolling upgrade, and back"
timeout 900 sh tests/rolling-upgrade.sh "$target/$profile/junctor" "$bench"

echo "== random statements, compared with MariaDB"
timeout 900 sh tests/differential/run.sh "$target/$profile/junctor"

echo "== backup to an S3-compatible store"
timeout 300 sh tests/backup-s3.sh "$target/$profile/junctor"
