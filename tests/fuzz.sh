#!/bin/sh
# Fuzzes the decoders of what nodes take from each other and from clients, and the statements of sessions, each for
# a number of seconds: tests/fuzz.sh 600. Inputs of tests/fuzz come first.
# Inputs that reach new code are kept in target/fuzz, those that fail in target/fuzz-failures.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
machine=$(rustc -vV | sed -n 's/^host: //p')
target=${CARGO_TARGET_DIR:-target}
# The coverage that libFuzzer follows. The decoders are safe code, so no sanitizer of memory is needed, and
# any compiler does.
RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares" \
    cargo build --quiet --release --manifest-path fuzz/Cargo.toml --target "$machine" --target-dir "$target/fuzz-build"
for name in frames hello signals connection native_frames tls_records proxy_header http_request sql_text statements; do
    mkdir -p "$target/fuzz/$name" "$target/fuzz-failures/$name"
    echo "== $name for $seconds seconds"
    corpus="$target/fuzz/$name"
    if [ -d "tests/fuzz/$name" ]; then
        corpus="$corpus tests/fuzz/$name"
    fi
    # The names of folders have no blanks.
    # shellcheck disable=SC2086
    "$target/fuzz-build/$machine/release/$name" $corpus -max_total_time="$seconds" \
        -artifact_prefix="$target/fuzz-failures/$name/" -timeout=10 -print_final_stats=1 -verbosity=0
done
