#!/bin/sh
# Runs the unit tests of the crates with unsafe code under tools that detect bad memory accesses: valgrind,
# and if a nightly compiler is installed, the address sanitizer and (if it has the standard library's source)
# the thread sanitizer.
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
    # Few cases of property tests, because valgrind is slow and reports a bad access on its first occurrence.
    PROPTEST_CASES=4 timeout 1800 valgrind --quiet --error-exitcode=9 --leak-check=no --fair-sched=yes "$binary" \
        --test-threads 1
done

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "no nightly compiler: skipping the sanitizers"
    exit 0
fi
for crate in kernel storage; do
    echo "== address sanitizer: $crate"
    RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR="$target/address" \
        timeout 1800 cargo +nightly test --quiet --package "junctor-$crate" --lib --target "$machine"
done
if [ ! -d "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library" ]; then
    echo "no rust-src in the nightly toolchain: skipping the thread sanitizer"
    exit 0
fi
for crate in kernel storage; do
    echo "== thread sanitizer: $crate"
    RUSTFLAGS="-Zsanitizer=thread" CARGO_TARGET_DIR="$target/thread" \
        timeout 1800 cargo +nightly test --quiet -Zbuild-std --package "junctor-$crate" --lib --target "$machine"
done
