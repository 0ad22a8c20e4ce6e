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

# Starts a MariaDB with the data directory "$folder/mariadb", and sets `mariadb` and `mariadb_port`. It writes no file
# durably: a CREATE TABLE would wait for the disk for longer than all else that the tests do. It is started again
# after a crash, because some random statements corrupt its memory.
start_mariadb() { # options
    mariadb_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$folder/mariadb" \
        --auth-root-authentication-method=normal >"$folder/install.log" 2>&1
    (
        trap 'kill "$server" 2>/dev/null; wait "$server"; exit 0' TERM
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            mariadbd --no-defaults --user="$(id -un)" --datadir="$folder/mariadb" --port="$mariadb_port" \
                --bind-address=127.0.0.1 --socket="$folder/socket" --skip-log-bin --skip-stack-trace \
                --innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=0 --innodb-flush-method=nosync \
                --skip-innodb-doublewrite --skip-sync-frm --innodb-stats-persistent=OFF "$@" &
            server=$!
            wait "$server" && break
        done
    ) >"$folder/mariadb.log" 2>&1 &
    mariadb=$!
    until mysql --no-defaults --host=127.0.0.1 --port="$mariadb_port" --user=root --execute="DO 0" >/dev/null 2>&1; do
        kill -0 "$mariadb" 2>/dev/null || fail "MariaDB did not start"
        sleep 0.1
    done
}
