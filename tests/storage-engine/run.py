#!/usr/bin/env python3
"""Runs each test of MariaDB's storage_engine suite on MariaDB with InnoDB, and on Junctor, and compares what
mysqltest prints.

    python3 run.py --junctor BINARY --package DIR --output DIR [--report FILE] [TEST...]

DIR of --package is where the Debian packages mariadb-test and mariadb-test-data are unpacked. The outputs of
both servers stay in the folder of --output. The exit status is 1 if a test of passing.txt does not pass."""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from normal import difference
from report import write_report
from servers import Junctor, MariaDb

HERE = Path(__file__).parent
PASSING = HERE / "passing.txt"
SUITE = "suite/storage_engine"
TEST_SECONDS = 240
# What the engine names in place of the suite's own template.
DEFINITION = """let $ENGINE = {engine};
let $default_col_opts = /*!*/;
let $default_col_indexed_opts = /*!*/;
let $default_tbl_opts = /*!*/;
let $default_index = /*!INDEX*/;
let $default_int_type = INT;
let $default_char_type = CHAR(8);
"""
SKIPPED = 62
LINES_SHOWN = 12
QUERY = re.compile(r"^ *SELECT\b[^;]*;", re.M | re.I)


def lay_out(package, folder, engine):
    """A folder in which mysqltest finds the files of the package, and the definition of the engine."""
    source = package / "usr/share/mysql/mysql-test"
    shutil.copytree(source / SUITE, folder / SUITE)
    shutil.copytree(source / "include", folder / "include")
    (folder / "std_data").symlink_to(source / "std_data")
    # MySQL 8.0 has partitions without a plugin.
    (folder / "include/have_partition.inc").write_text("")
    for file in (folder / SUITE).rglob("*.[it]*"):
        if file.suffix in (".test", ".inc"):
            text = sort_results(file.read_text(errors="surrogateescape"))
            # Statements may use only the files of one folder, which is not that of the data.
            text = text.replace("SELECT @@datadir", "SELECT @@secure_file_priv")
            file.write_text(text, errors="surrogateescape")
    (folder / SUITE / "define_engine.inc").write_text(DEFINITION.format(engine=engine))


def sort_results(text):
    """Requests the rows of each query without ORDER BY in the order of their texts, because SQL gives them none."""

    def sort(found):
        words = found[0].upper()
        if " ORDER BY " in words or " INTO " in words:
            return found[0]
        return f"--sorted_result\n{found[0]}"

    return QUERY.sub(sort, text)


def test_names(folder):
    """The tests of the suite, as `name` or `folder/name`."""
    root = folder / SUITE
    return sorted(str(file.relative_to(root).with_suffix("")) for file in root.rglob("*.test"))


def run_test(mysqltest, server, name):
    """The exit status of mysqltest and the lines that it printed."""
    server.prepare()
    layout = server.layout
    command = [
        str(mysqltest), "--no-defaults", "--silent", "--host=localhost", f"--port={server.port}",
        f"--socket={server.socket}", "--user=root", "--database=test", f"--basedir={layout}",
        f"--tmpdir={server.files}/tmp", f"--logdir={server.files}/log", f"--test-file={layout}/{SUITE}/{name}.test",
    ]  # fmt: skip
    environment = {
        "PATH": "/usr/bin:/bin",
        "MYSQLTEST_VARDIR": str(server.files),
        "MYSQL_TMP_DIR": f"{server.files}/tmp",
        "MYSQL_TEST_DIR": str(layout),
        "MASTER_MYPORT": str(server.port),
        "MASTER_MYSOCK": str(server.socket),
    }
    try:
        result = subprocess.run(
            command, cwd=layout, env=environment, capture_output=True, timeout=TEST_SECONDS, check=False
        )
        status, output = result.returncode, result.stdout + result.stderr
    except subprocess.TimeoutExpired as late:
        status, output = -1, (late.stdout or b"") + b"\n# the test did not end\n"
    return status, output.decode("utf-8", "backslashreplace").splitlines()


def run_both(mysqltest, servers, name):
    """The results of one test on both servers, which run at the same time."""
    results = [None, None]

    def work(position):
        results[position] = run_test(mysqltest, servers[position], name)

    threads = [threading.Thread(target=work, args=(position,)) for position in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def judge(name, results, output):
    """The state of a test and, unless it passes, the first difference. Keeps both outputs."""
    (recorded_status, recorded), (status, seen) = results
    file = name.replace("/", ".")
    (output / f"{file}.mariadb").write_text("\n".join(recorded) + "\n")
    (output / f"{file}.junctor").write_text("\n".join(seen) + "\n")
    if recorded_status == SKIPPED:
        return "skipped", recorded[-1:] or ["no reason"]
    if recorded_status != 0:
        return "not recorded", recorded[-3:]
    found = difference(recorded, seen)
    (output / f"{file}.diff").write_text("\n".join(found) + "\n")
    if not found and status == 0:
        return "pass", []
    return "differs", found or seen[-2:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--junctor", type=Path, required=True)
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--report", type=Path)
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_args()
    output = arguments.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    package = arguments.package.resolve()
    states = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        servers = MariaDb(folder / "mariadb"), Junctor(folder / "junctor", arguments.junctor.resolve())
        for server in servers:
            lay_out(package, server.layout, server.engine)
        with servers[0], servers[1]:
            servers[0].prepare()
            version = servers[0].client("SELECT VERSION()").stdout.decode().strip()
            for name in arguments.tests or test_names(servers[0].layout):
                results = run_both(package / "usr/bin/mariadb-test", servers, name)
                states[name] = judge(name, results, output)
                print(f"{name}: {states[name][0]}", flush=True)
                for line in states[name][1][:LINES_SHOWN]:
                    print(f"    {line}", flush=True)
    passed = {name for name, (state, _) in states.items() if state == "pass"}
    if arguments.report:
        write_report(arguments.report, states, version)
    expected = set(PASSING.read_text().split()) if PASSING.exists() else set()
    lost = sorted(name for name in expected - passed if name in states)
    print(f"{len(passed)} of {len(states)} tests pass")
    print(f"passed before: {', '.join(lost)}" if lost else "every test of passing.txt passes")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
