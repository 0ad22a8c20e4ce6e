#!/bin/sh
# `junctor lab`: a very short run of two workloads in three setups, the format of its file, its error
# messages, and Ctrl-C. The figures of such a short run are meaningless and not checked, but the laboratory
# itself checks every answer.
#
#   sh tests/lab.sh target/debug/junctor
set -eu
junctor=$(realpath "$1")
folder=$(mktemp -d)
lab_process=
stop() {
    [ -z "$lab_process" ] || kill "$lab_process" 2>/dev/null || true
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' INT TERM

fail() {
    echo "$1" >&2
    [ $# -lt 2 ] || cat "$2" >&2
    exit 1
}

# Nodes keep their files in the directory for temporary files.
mkdir "$folder/temporary"
export TMPDIR="$folder/temporary"

echo "== two workloads, three setups, two repetitions"
timeout 120 "$junctor" lab --workloads oltp_rw,hot_partition --setups ldm,all-separate,adaptive --seconds 0.2 --repetitions 2 \
    --rows 1000 --clients 4 --json "$folder/lab.json" --plots "$folder/plots" >"$folder/output" 2>"$folder/progress" || fail "the run failed" "$folder/progress"
python3 - "$folder/lab.json" <<'PYTHON' || fail "the file does not have the documented format" "$folder/lab.json"
import json, sys
records = json.load(open(sys.argv[1]))
expected = {(w, s, r) for w in ("oltp_rw", "hot_partition") for s in ("ldm", "all-separate", "adaptive") for r in (0, 1)}
assert {(r["workload"], r["setup"], r["repetition"]) for r in records} == expected and len(records) == len(expected)
for record in records:
    assert record["operations"] > 0 and record["operations_per_second"] > 0, record
    latency = record["latency_us"]
    assert 0 < latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["p99.9"] <= latency["max"], latency
    threads = {thread["name"]: thread for thread in record["threads"]}
    assert "recv0" in threads and threads["recv0"]["spin_percent"] is not None, threads.keys()
    assert ("tc0" in threads) == (record["setup"] == "all-separate"), threads.keys()
    for name in ("cpu_percent", "voluntary_switches_per_second", "hand_overs_per_second", "instructions_per_cycle"):
        assert all(name in thread for thread in threads.values()), name
    if record["setup"] == "all-separate":
        assert record["hand_overs_per_operation"] > 0, record
PYTHON
grep -q '^== hot_partition' "$folder/output" || fail "no table" "$folder/output"
grep -qE '^\| oltp_rw +\| +(ldm|all-separate) \|' "$folder/output" || fail "no verdict" "$folder/output"
grep -q "all-separate" "$folder/plots/ratio.svg" || fail "no chart"
[ -z "$(ls "$TMPDIR")" ] || fail "files of nodes are left"

echo "== unknown names are reported"
! "$junctor" lab --workloads point,nothing >"$folder/output" 2>&1 || fail "an unknown workload was accepted"
grep -q 'unknown name nothing; the known names are in_list, point' "$folder/output" || fail "no explanation" "$folder/output"
! "$junctor" lab --seconds 0 >"$folder/output" 2>&1 || fail "a run of 0 seconds was accepted"
"$junctor" lab --list | grep -q '^  changing ' || fail "no list"

echo "== Ctrl-C ends the nodes"
"$junctor" lab --workloads point --setups receive,adaptive --seconds 600 --rows 1000 >"$folder/output" 2>&1 &
lab_process=$!
tries=0
until [ "$(ls "$TMPDIR" | wc -l)" -ge 2 ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || fail "no nodes" "$folder/output"
    sleep 0.05
done
nodes=$(cat "/proc/$lab_process/task/$lab_process/children")
kill -INT "$lab_process"
! wait "$lab_process" || fail "an interrupted run succeeded" "$folder/output"
lab_process=
grep -q 'interrupted' "$folder/output" || fail "no explanation" "$folder/output"
for node in $nodes; do
    [ ! -e "/proc/$node" ] || fail "a node is still running"
done
[ -z "$(ls "$TMPDIR")" ] || fail "files of nodes are left"
echo "the laboratory works"
