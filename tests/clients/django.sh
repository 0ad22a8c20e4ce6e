#!/bin/sh
# Django's own tests of databases, from its source package, against the real binary. The libraries come from the
# package registry.
#
#   sh tests/clients/django.sh target/debug/junctor                  all suites, about four minutes
#   sh tests/clients/django.sh target/debug/junctor lookup schema    these suites
#   KEEP=DIR sh tests/clients/django.sh target/debug/junctor         keeps the package and the output in DIR
set -eu
sh "$(dirname "$0")/../install-tools.sh" clients
junctor=$(realpath "$1")
shift
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
process=
stop() {
    [ -z "$process" ] || kill "$process" 2>/dev/null || true
    wait
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' INT TERM
. "$here/../server.sh"

output=${KEEP:-$folder/django}
mkdir -p "$output"
start data
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/python/requirements.txt"
timeout 3600 "$folder/venv/bin/python" "$here/django_backend.py" "$port" "$output" "$@"
