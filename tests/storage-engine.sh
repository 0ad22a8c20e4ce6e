#!/bin/sh
# Runs MariaDB's storage_engine suite on MariaDB with InnoDB and on Junctor, and compares what the tests print.
# The suite is that of the Debian packages, which `sh tests/install-tools.sh suite` unpacks.
#
#   sh tests/storage-engine.sh target/release/junctor [TEST...]
#
# Without TEST it runs every test and writes docs/storage-engine-suite.md. The exit status is 1 if a
# test of tests/storage-engine/passing.txt does not pass. The outputs stay in target/storage-engine.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
junctor=$1
shift
target=${CARGO_TARGET_DIR:-$here/../target}
report="--report $here/../docs/storage-engine-suite.md"
[ $# = 0 ] || report=
# shellcheck disable=SC2086 # split the option into words
exec python3 "$here/storage-engine/run.py" --junctor "$junctor" --package "$target/mariadb-test" \
    --output "$target/storage-engine" $report "$@"
