#!/bin/sh
# Runs clients in other languages against a running server, and skips those whose tools are missing. Not part
# of `make test`, because it downloads their libraries from the package registries.
#
#   sh tests/clients/run.sh PORT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
port=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
cp -r "$here/." "$folder"

if command -v python3 >/dev/null; then
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$folder/python/requirements.txt"
    timeout 60 "$folder/venv/bin/python" "$folder/python/client.py" "$port"
fi
if command -v go >/dev/null; then
    (cd "$folder/go" && go build -o client . && timeout 60 ./client "$port")
fi
if command -v npm >/dev/null; then
    (cd "$folder/node" && npm install --silent --no-audit --no-fund && timeout 60 node client.js "$port")
fi
if command -v mvn >/dev/null && command -v javac >/dev/null; then
    (
        cd "$folder/java"
        mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=lib
        javac -cp 'lib/*' Client.java
        timeout 60 java -cp 'lib/*:.' Client "$port"
    )
fi
