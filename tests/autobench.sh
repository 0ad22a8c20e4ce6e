#!/bin/sh
# Short runs of `junctor bench` and its Lua scripts on small tables, with checks of their results. The scripts
# also run against MariaDB, with prepared statements and with text, so that benchmark figures compare the same
# work on both servers.
#
#   sh tests/autobench.sh target/debug/junctor
set -eu
here=$(cd "$(dirname "$0")" && pwd)
lua="$here/../crates/bench/lua"
junctor=$(realpath "$1")
folder=$(mktemp -d)
servers=
stop() {
    for server in $servers; do
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' INT TERM

fail() {
    echo "$1" >&2
    [ $# -lt 2 ] || cat "$2" >&2
    exit 1
}

# bench NAME KEY="value"...: appends the keys to NAME/autobench.conf and runs it.
bench() {
    name=$1
    shift
    mkdir -p "$folder/$name"
    printf '%s\n' "$@" >>"$folder/$name/autobench.conf"
    timeout 120 "$junctor" bench --default-directory "$folder/$name" >"$folder/$name/output" 2>&1
}

# expect FILE LINE...: the file must have exactly these lines, where N stands for any positive integer.
expect() {
    file=$1
    shift
    printf '%s\n' "$@" >"$folder/expected"
    sed -E 's/Results: [0-9 ]+/Results: N/; s/(Mean|StdDev): [0-9]+/\1: N/g' "$file" >"$folder/seen"
    diff -u "$folder/expected" "$folder/seen" >&2 || fail "$file does not have the documented format"
    ! grep -qE 'Mean: 0( |$)' "$file" || fail "$file has a run without a result" "$file"
}

# wait_for COMMAND...: repeats the command until it succeeds, for at most 30 s.
wait_for() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || fail "timeout: $*"
        sleep 0.05
    done
}

small='SERVER_PORT="0" SYSBENCH_ROWS="1000" MAX_TIME="1" BETWEEN_RUNS="0"'

echo "== the published autobench.conf with a small table"
mkdir "$folder/published"
cp "$here/autobench/autobench.conf" "$folder/published/"
# shellcheck disable=SC2086
bench published $small || fail "the published file failed" "$folder/published/output"
expect "$folder/published/final_result.txt" 'Final results for this test run' 'Results for oltp_rw' 'Threads: 48 Results: N' \
    'Mean value and standard deviation of results' 'Threads: 48 Mean: N StdDev: N'
grep -q 'Running oltp_rw using Threads: 48' "$folder/published/sysbench_results/oltp_rw_0_0.res" || fail "no .res file"
grep -q 'NDB_MGMD_NODES means nothing here' "$folder/published/output" || fail "no notice" "$folder/published/output"
[ -z "$(ls "$folder/published/data")" ] || fail "files of the node are left"

echo "== two instances with IN lists, filters, text statements and two rounds"
# shellcheck disable=SC2086
bench lists $small 'DATA_DIR_BASE="data"' 'SYSBENCH_TEST="oltp_ro"' 'SYSBENCH_INSTANCES="2"' 'NUM_TEST_RUNS="2"' \
    'SB_USE_IN_STATEMENT="10"' 'SB_USE_FILTER="yes"' 'SB_USE_PREPARED="no"' 'THREAD_COUNTS_TO_RUN="1;2"' \
    'TASKSET="taskset"' 'BENCHMARK_CPUS="0"' || fail "the run failed" "$folder/lists/output"
expect "$folder/lists/final_result.txt" 'Final results for this test run' 'Threads: 1 Mean: N' 'Threads: 2 Mean: N'
expect "$folder/lists/final_result_1.txt" 'Final results for this test run' 'Results for oltp_ro' 'Threads: 1 Results: N' \
    'Threads: 2 Results: N' 'Mean value and standard deviation of results' 'Threads: 1 Mean: N StdDev: N' \
    'Threads: 2 Mean: N StdDev: N'

echo "== DBT2 with two servers, checked by TPC-C's consistency conditions"
mkdir "$folder/dbt2"
echo '2 2 1' >"$folder/dbt2/dbt2_run_1.conf"
bench dbt2 'BENCHMARK_TO_RUN="dbt2"' 'SERVER_PORT="0"' 'DATA_DIR_BASE="data"' 'DBT2_WAREHOUSES="2"' 'DBT2_TIME="2"' \
    'DBT2_ITEMS="200"' 'DBT2_CUSTOMERS="50"' 'DBT2_RUN_WAREHOUSES="1"' 'BETWEEN_RUNS="0"' || fail "the run failed" "$folder/dbt2/output"
expect "$folder/dbt2/final_result.txt" 'Final results for this test run' 'Servers: 2 Warehouses: 2 Terminals: 1 Mean: N'
grep -q 'all conditions hold' "$folder/dbt2/dbt2_results/dbt2_check_0.log" || fail "the tables were not checked"

echo "== the modes of the thread pool, with few connections"
bench pool 'BENCHMARK_TO_RUN="thread_pool"' 'THREAD_COUNTS_TO_RUN="1;8"' 'SYSBENCH_ROWS="1000"' 'MAX_TIME="1"' \
    'THREAD_POOL_WARM_UP="0"' 'THREAD_POOL_WORKS="update-transaction"' || fail "the run failed" "$folder/pool/output"
for file in throughput latency inside; do
    grep -q '</svg>' "$folder/pool/thread_pool_results/$file-update-transaction.svg" || fail "no plot of $file"
done
grep -q '| 8 ' "$folder/pool/thread_pool_results/thread_pool.md" || fail "no table" "$folder/pool/output"

echo "== errors end the run"
! bench unknown 'MAXTIME="1"' || fail "an unknown key was accepted"
grep -q 'line 1: unknown key MAXTIME; MAX_TIME is similar' "$folder/unknown/output" || fail "no explanation" "$folder/unknown/output"
! bench nobody 'SERVER_PORT="1"' 'NUM_CREATE_DB_ATTEMPTS="1"' || fail "a run without a server succeeded"
grep -q 'unable to connect' "$folder/nobody/output" || fail "no explanation" "$folder/nobody/output"

echo "== Ctrl-C ends sysbench and the node"
mkdir "$folder/long"
printf '%s\n' 'DATA_DIR_BASE="data"' 'SERVER_PORT="0"' 'SYSBENCH_ROWS="1000"' 'MAX_TIME="600"' 'BETWEEN_RUNS="0"' \
    >"$folder/long/autobench.conf"
"$junctor" bench --default-directory "$folder/long" >"$folder/long/output" 2>&1 &
bench_process=$!
servers="$servers $bench_process"
wait_for grep -q 'running oltp_rw' "$folder/long/output"
node=$(sed -n 's/^started .* process //p' "$folder/long/output")
kill -INT "$bench_process"
! wait "$bench_process" || fail "an interrupted run succeeded" "$folder/long/output"
grep -q 'interrupted' "$folder/long/output" || fail "no explanation" "$folder/long/output"
[ ! -e "/proc/$node" ] || fail "the node is still running"
[ -z "$(ls "$folder/long/data")" ] || fail "files of the node are left"
[ ! -e "$folder/long/final_result.txt" ] || fail "an interrupted run has results"

echo "== the scripts on their own, on Junctor and MariaDB"
"$junctor" serve --port 0 --in-memory >"$folder/ready" 2>"$folder/junctor.log" &
servers="$servers $!"
mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$folder/mariadb" --auth-root-authentication-method=normal \
    --skip-test-db >"$folder/install.log" 2>&1 || fail "mariadb-install-db failed" "$folder/install.log"
mariadb_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
daemon=$(command -v mariadbd || echo /usr/sbin/mariadbd)
"$daemon" --no-defaults --user="$(id -un)" --datadir="$folder/mariadb" --port="$mariadb_port" --bind-address=127.0.0.1 \
    --socket="$folder/socket" --pid-file="$folder/pid" --skip-log-bin --innodb-flush-log-at-trx-commit=0 \
    >"$folder/mariadb.log" 2>&1 &
servers="$servers $!"
wait_for grep -q '^ready: mysql' "$folder/ready"
junctor_port=$(sed -n 's/^ready: mysql [^ ]*:\([0-9]*\) .*/\1/p' "$folder/ready" | head -n 1)
wait_for mysql --no-defaults -h127.0.0.1 -P"$mariadb_port" -uroot -e 'SELECT 1'

# script NAME OPTION...: runs a script in database auto of the server at $port.
script() {
    name=$1
    shift
    timeout 60 sysbench "$lua/$name.lua" --mysql-host=127.0.0.1 --mysql-port="$port" --mysql-user=root --mysql-db=auto "$@" \
        >"$folder/printed" 2>&1
    ! grep -qE 'FATAL|error:' "$folder/printed"
}
# must NAME OPTION...: runs a script that must succeed.
must() {
    script "$@" || fail "port $port: $*" "$folder/printed"
}
sql() {
    mysql --no-defaults -h127.0.0.1 -P"$port" -uroot auto -e "$1"
}

for port in "$junctor_port" "$mariadb_port"; do
    must database --mysql-db=information_schema --name=auto create
    must oltp --tables=2 --table_size=300 --filter=on --auto_inc=on --partitions=3 --threads=2 prepare
    for mode in auto disable; do
        must oltp --tables=2 --table_size=300 --filter=on --in_keys=5 --threads=4 --time=0 --events=60 --db-ps-mode=$mode run
        must oltp --tables=2 --table_size=300 --threads=4 --time=0 --events=60 --db-ps-mode=$mode \
            --isolation='READ COMMITTED' run
        for kind in select update_key update_nokey; do
            must oltp --table_size=300 --single_statement=$kind --threads=2 --time=0 --events=60 --db-ps-mode=$mode run
        done
    done
    must oltp --tables=2 --table_size=300 check
    for kind in insert delete; do
        must oltp --table_size=300 --auto_inc=on --single_statement=$kind --threads=2 --time=0 --events=60 run
    done
    must oltp --tables=2 cleanup

    small='--warehouses=2 --customers=40 --items=100'
    # shellcheck disable=SC2086
    {
        must dbt2 $small --pk_using_hash=on --threads=3 prepare
        must dbt2 $small check
        for mode in auto disable; do
            must dbt2 $small --threads=4 --time=0 --events=200 --db-ps-mode=$mode run
            grep -qE 'new orders per minute: +[1-9]' "$folder/printed" || fail "no new orders" "$folder/printed"
            grep -qE 'new order p99 ms: +[0-9.]*[1-9]' "$folder/printed" || fail "no durations" "$folder/printed"
        done
        must dbt2 $small check
        # Each statement violates a condition. A check that does not detect it is useless.
        for broken in 'UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2' \
            'UPDATE customer SET c_balance = c_balance + 1 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 3' \
            'DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 7 AND ol_number = 1' \
            'UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 4'; do
            sql "$broken"
            ! script dbt2 $small check || fail "port $port: the check did not detect $broken"
            must dbt2 cleanup
            must dbt2 $small prepare
        done
        must dbt2 cleanup
    }

    must ycsb --records=300 --threads=3 prepare
    for workload in A B C D E F; do
        for mode in auto disable; do
            must ycsb --workload=$workload --threads=4 --time=0 --events=100 --db-ps-mode=$mode run
        done
    done
    for distribution in uniform latest; do
        must ycsb --workload=A --distribution=$distribution --threads=4 --time=0 --events=100 run
    done
    must ycsb check
    sql 'DELETE FROM usertable LIMIT 1'
    ! script ycsb check || fail "port $port: the check did not detect a missing record"
    must ycsb cleanup
    must database --mysql-db=information_schema --name=auto drop
done
echo "autobench and its scripts work"
