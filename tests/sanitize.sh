#!/bin/sh
# Runs the unit tests of the crates that have unsafe code where bad memory accesses are seen: under valgrind, and, where a
# nightly compiler is installed, with the address sanitizer and (with its source code too) the thread sanitizer.
#
#   sh tests/sanitize.sh
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
machine=$(rustc -vV | sed -n 's/^host: //p')

for crate in kernel storage; do
    echo "== valgrind: $crate"
    binary=$(cargo test --package "junctor-$crate" --lib --no-run --message-format=json 2>/dev/null |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
    # Few cases of property tests: valgrind is slow, and sees a bad access in the first.
    PROPTEST_CASES=4 timeout 1800 valgrind --quiet --error-exitcode=9 --leak-check=no --fair-sched=yes "$binary" \
        --test-threads 1
done

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "no nightly compiler: the sanitizers are left out"
    exit 0
fi
for crate in kernel storage; do
    echo "== address sanitizer: $crate"
    RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR="$target/address" \
        timeout 1800 cargo +nightly test --quiet --package "junctor-$crate" --lib --target "$machine"
done
if [ ! -d "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library" ]; then
    echo "no rust-src of nightly: the thread sanitizer is left out"
    exit 0
fi
for crate in kernel storage; do
    echo "== thread sanitizer: $crate"
    RUSTFLAGS="-Zsanitizer=thread" CARGO_TARGET_DIR="$target/thread" \
        timeout 1800 cargo +nightly test --quiet -Zbuild-std --package "junctor-$crate" --lib --target "$machine"
done
