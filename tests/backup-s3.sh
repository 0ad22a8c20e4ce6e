#!/bin/sh
# Backup to an S3-compatible store, and restore. The store is moto, a simulation of AWS in Python that listens
# on loopback.
#
#   sh tests/backup-s3.sh target/debug/junctor
set -eu
junctor=$(realpath "$1")
folder=$(mktemp -d)
server=
store=
stop() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$store" ] || kill "$store" 2>/dev/null || true
    wait
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' INT TERM

. "$(dirname "$0")/server.sh"

query() {
    mysql --host=127.0.0.1 --port="$port" --user=root --batch --skip-column-names --execute="$1"
}

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check 'moto[server]>=5,<6'
"$folder/venv/bin/python" -u - >"$folder/moto" 2>"$folder/moto.log" <<'PYTHON' &
from moto.server import ThreadedMotoServer
import threading
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
server.start()
print("port", server.get_host_and_port()[1], flush=True)
threading.Event().wait()
PYTHON
store=$!
for _ in $(seq 300); do
    grep -q "^port" "$folder/moto" && break
    sleep 0.1
done
grep -q "^port" "$folder/moto" || fail "the store did not start"
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1 AWS_ALLOW_HTTP=true
AWS_ENDPOINT_URL="http://127.0.0.1:$(sed -n "s/^port //p" "$folder/moto")"
export AWS_ENDPOINT_URL
"$folder/venv/bin/python" -c "
import boto3, os
boto3.client('s3', endpoint_url=os.environ['AWS_ENDPOINT_URL']).create_bucket(Bucket='backups')"

start data
server=$process
query "CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY, t TEXT); INSERT INTO shop.a VALUES (1, REPEAT('x', 60000))"
"$junctor" backup s3://backups/nightly --port "$port" --name one || fail "the backup failed"
query "INSERT INTO shop.a VALUES (2, 'later')"
"$junctor" backup s3://backups/nightly --port "$port" --name two --incremental || fail "the increment failed"
"$junctor" backups s3://backups/nightly
kill "$server"
wait "$server" || fail "the server does not stop"
"$junctor" restore s3://backups/nightly "$folder/restored" || fail "the restore failed"
start restored
server=$process
found=$(query "SELECT COUNT(*), SUM(CHAR_LENGTH(t)) FROM shop.a" | tr '\t' ' ')
[ "$found" = "2 60005" ] || fail "the restored table has: $found"
"$junctor" backup s3://backups/absent/ --port "$port" --incremental 2>/dev/null && fail "an increment without a base was taken"
echo "the backup in the store was restored"
