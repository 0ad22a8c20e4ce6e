#!/bin/sh
# A rolling upgrade under bank transfers, and back: see docs/testing.md, "Kills of real nodes".
#
#   sh tests/rolling-upgrade.sh JUNCTOR JUNCTOR_BENCH
#
# The build of the next release shares the compiled libraries with the ordinary one, which replaces it in any
# case.
set -eu

junctor=$(realpath "$1")
bench=$(realpath "$2")
folder=$(mktemp -d)
built=${CARGO_TARGET_DIR:-target}/debug/junctor
trap 'exit 1' INT TERM
trap 'rm -rf "$folder"; cargo build --quiet --package junctor' EXIT
cp "$junctor" "$folder/junctor"
cargo build --quiet --package junctor --features next_version
cp "$built" "$folder/junctor-next"
cargo build --quiet --package junctor
trap 'rm -rf "$folder"' EXIT
timeout 300 "$bench" cluster-kill --junctor "$folder/junctor" --upgrade-to "$folder/junctor-next"
