# Functions for scripts that start servers. They set `junctor`, the program, and `folder`, a temporary folder.

fail() {
    echo "$1" >&2
    cat "$folder"/*.log >&2
    exit 1
}

# Starts a server with the data directory "$folder/NAME", and sets `process` and `port`.
start() { # NAME options
    started=$1
    shift
    : >"$folder/$started.ready"
    "$junctor" serve --port 0 --num-cpus 2 --no-cpu-binding --total-memory 256M --data-dir "$folder/$started" "$@" \
        >"$folder/$started.ready" 2>"$folder/$started.log" &
    process=$!
    until grep -q '^ready' "$folder/$started.ready"; do
        kill -0 "$process" 2>/dev/null || fail "the server did not start"
        sleep 0.1
    done
    port=$(sed -n 's/^ready: mysql [^ ]*:\([0-9]*\) .*/\1/p' "$folder/$started.ready")
}
