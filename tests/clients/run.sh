#!/bin/sh
# Sessions, round trips of every type, and logins of clients in other languages, and migrations of schemas. Starts
# a server with TLS and one without. The libraries of the clients come from the package registries. A language
# whose tools are missing is named and left out.
#
#   sh tests/clients/run.sh target/debug/junctor
#   RECORD=1 sh tests/clients/run.sh target/debug/junctor     writes round_trips.expected
set -eu
sh "$(dirname "$0")/../install-tools.sh" clients
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
mysql --no-defaults --socket="$data/mysql.sock" --user=root <"$here/round_trips.sql"

# The descriptions of the columns by MySQL. Each client compares its part.
metadata=$folder/round_trips/metadata.tsv

# The types that a client shows must be those of the recorded file.
round_trips() { # name, command
    name=$1
    shift
    "$@" >"$folder/round_trips.seen"
    if [ -n "${RECORD:-}" ]; then
        cp "$folder/round_trips.seen" "$here/round_trips/$name.expected"
    else
        diff -u "$here/round_trips/$name.expected" "$folder/round_trips.seen"
    fi
    echo "$name: types as expected"
}

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
round_trips python timeout 60 "$folder/venv/bin/python" "$folder/python/round_trips.py" "$port" "$metadata"
timeout 120 "$folder/venv/bin/python" "$folder/python/migrations.py" "$port"
timeout 90 "$folder/venv/bin/python" "$folder/python/logins.py" "$port" "$data" "$port_without_tls"
# Cargo is there, because it has built the server.
timeout 600 cargo build --quiet --locked --manifest-path "$here/rust/Cargo.toml" \
    --target-dir "$(dirname "$junctor")/../clients"
rust="$(dirname "$junctor")/../clients/debug/client"
round_trips rust timeout 60 "$rust" "$port" "$metadata"
timeout 60 "$rust" "$port" "$data"
# Go before 1.21 cannot fetch the version that the driver needs.
if has go && (cd "$folder/go" && go list -m >/dev/null); then
    (
        cd "$folder/go"
        timeout 240 go build -o client .
        timeout 60 ./client "$port"
        round_trips go timeout 60 ./client "$port" round_trips "$metadata"
        SSL_CERT_FILE="$data/tls/ca.pem" timeout 60 ./client "$port" "$data" "$port_without_tls"
    )
fi
if has node npm; then
    (
        cd "$folder/node"
        timeout 180 npm install --silent --no-audit --no-fund
        timeout 60 node client.js "$port"
        round_trips node timeout 60 node round_trips.js "$port" "$metadata"
        timeout 60 node typeorm.js "$port"
        timeout 60 node logins.js "$port" "$data" "$port_without_tls"
    )
fi
if has java javac mvn; then
    (
        cd "$folder/java"
        timeout 240 mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=lib
        javac -cp 'lib/*' ./*.java
        timeout 60 java -cp 'lib/*:.' Client "$port"
        timeout 120 java -cp 'lib/*:.' Hibernate "$port"
        round_trips java timeout 60 java -cp 'lib/*:.' RoundTrips "$port" "$metadata"
        timeout 60 java -cp 'lib/*:.' LoginsOfMariaDb "$port" "$data"
        timeout 60 java -cp 'lib/*:.' Logins "$port" "$data" "$port_without_tls"
    )
fi
