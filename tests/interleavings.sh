#!/bin/sh
# Runs the code that shares memory under loom (every interleaving and every allowed reordering of small cases)
# and under shuttle (random interleavings of larger cases). Each tool replaces the atomics and therefore has
# its own build directory.
#
#   sh tests/interleavings.sh [loom|shuttle]
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}

run() { # tool crate arguments of cargo test...
    tool=$1 crate=$2
    shift 2
    echo "== $tool: $crate $*"
    RUSTFLAGS="--cfg $tool" CARGO_TARGET_DIR="$target/$tool" \
        timeout 900 cargo test --quiet --release --package "junctor-$crate" "$@"
}

for tool in ${1:-loom shuttle}; do
    for crate in kernel storage; do
        if [ -n "$(find "crates/$crate/src" -name "${tool}_tests.rs")" ]; then
            run "$tool" "$crate" --lib "${tool}_tests"
        fi
        for file in "crates/$crate/tests/${tool}"_*.rs; do
            [ ! -e "$file" ] || run "$tool" "$crate" --test "$(basename "$file" .rs)"
        done
    done
done
