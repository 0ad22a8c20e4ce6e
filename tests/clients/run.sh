#!/bin/sh
# Sessions and logins of clients in other languages. Starts a server with TLS and one without. The libraries of
# the clients come from the package registries. A language whose tools are missing is named and left out.
#
#   sh tests/clients/run.sh target/debug/junctor
set -eu
junctor=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
servers=
stop() {
    # $servers is a list of numbers.
    # shellcheck disable=SC2086
    [ -z "$servers" ] || kill $servers 2>/dev/null || true
    wait
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' INT TERM
. "$here/../server.sh"

start plain --no-tls
servers=$process
port_without_tls=$port
start data
servers="$servers $process"
data=$folder/data
# The logins that must fail are many, and none of them waits.
mysql --no-defaults --socket="$data/mysql.sock" --user=root \
    -e "SET GLOBAL connection_control_failed_connections_threshold = 0"
# An authority and a key that the server does not know.
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=stranger -keyout "$data/foreign-key.pem" \
    -out "$data/foreign.pem" 2>/dev/null
openssl pkey -in "$data/foreign-key.pem" -pubout -out "$data/foreign-public.pem"
cp -r "$here/." "$folder"

has() { # programs of a language
    for program in "$@"; do
        if ! command -v "$program" >/dev/null; then
            echo "left out: $program is missing"
            return 1
        fi
    done
}

# tests/install-tools.sh makes sure that Python is there, so one language at least is never left out.
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$folder/python/requirements.txt"
timeout 60 "$folder/venv/bin/python" "$folder/python/client.py" "$port"
timeout 60 "$folder/venv/bin/python" "$folder/python/logins.py" "$port" "$data" "$port_without_tls"
if has go; then
    (
        cd "$folder/go"
        timeout 240 go build -o client .
        timeout 60 ./client "$port"
        SSL_CERT_FILE="$data/tls/ca.pem" timeout 60 ./client "$port" "$data" "$port_without_tls"
    )
fi
if has node npm; then
    (
        cd "$folder/node"
        timeout 120 npm install --silent --no-audit --no-fund
        timeout 60 node client.js "$port"
        timeout 60 node logins.js "$port" "$data" "$port_without_tls"
    )
fi
if has java javac mvn; then
    (
        cd "$folder/java"
        timeout 240 mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=lib
        javac -cp 'lib/*' Client.java Logins.java
        timeout 60 java -cp 'lib/*:.' Client "$port"
        timeout 60 java -cp 'lib/*:.' Logins "$port" "$data" "$port_without_tls"
    )
fi
