"""Django's own tests of databases, from its source package, against the server at PORT.

    django_backend.py PORT FOLDER [SUITE ...]

FOLDER is for the source package and its output. Without suites, all of SUITES run. Fails if a test fails that
django/known_failures.txt does not list, and if a listed test passes.
"""

import os
import pathlib
import subprocess
import sys
import tarfile

SUITES = [
    "aggregation", "aggregation_regress", "annotations", "backends", "bulk_create", "constraints", "expressions",
    "expressions_case", "introspection", "lookup", "queries", "schema", "select_for_update", "transactions",
]

HERE = pathlib.Path(__file__).parent
REQUIREMENTS = HERE / "python" / "requirements.txt"


def source_package(folder):
    """The tests of the version of Django that requirements.txt names."""
    version = next(line for line in REQUIREMENTS.read_text().split() if line.startswith("Django=="))
    tests = next(folder.glob("django-*/tests"), None)
    if tests is None:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--no-binary", "Django", "--dest", folder, version], check=True, timeout=300)
        with tarfile.open(next(folder.glob("[dD]jango-*.tar.gz"))) as package:
            package.extractall(folder, filter="data")
        tests = next(folder.glob("django-*/tests"))
    return tests


def known_failures(suites):
    """The names of the tests that fail, and of those that fail sometimes."""
    always, sometimes = set(), set()
    for line in (HERE / "django" / "known_failures.txt").read_text().splitlines():
        name, _, reason = line.partition(" ")
        if name.split(".")[0] in suites:
            (sometimes if reason.strip().startswith("sometimes:") else always).add(name)
    return always, sometimes


def run(tests, folder, port, suite):
    """The number of tests that ran and that were left out, and the names of those that failed."""
    outcomes = folder / f"{suite}.outcomes"
    outcomes.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "JUNCTOR_PORT": str(port),
        "JUNCTOR_OUTCOMES": str(outcomes),
        "PYTHONPATH": os.pathsep.join([str((HERE / "django").resolve()), str(tests.parent)]),
    }
    command = [sys.executable, "runtests.py", "--settings=junctor_settings", "--parallel=1", "--noinput", suite]
    with open(folder / f"{suite}.log", "w", encoding="utf-8") as log:
        subprocess.run(command, cwd=tests, env=environment, stdout=log, stderr=subprocess.STDOUT, timeout=1800)
    if not outcomes.exists():
        sys.exit(f"{suite} did not end:\n{(folder / f'{suite}.log').read_text()[-4000:]}")
    lines = [line.split(" ", 1) for line in outcomes.read_text().splitlines()]
    count = {word: int(value) for word, value in lines if word != "failed"}
    return count["ran"], count["skipped"], {value for word, value in lines if word == "failed"}


def main():
    port, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    suites = sys.argv[3:] or SUITES
    tests = source_package(folder)
    always, sometimes = known_failures(suites)
    seen = set()
    total_ran = total_skipped = 0
    for suite in suites:
        ran, skipped, failed = run(tests, folder, port, suite)
        seen |= failed
        total_ran, total_skipped = total_ran + ran, total_skipped + skipped
        print(f"Django {suite}: {ran - skipped - len(failed)} pass, {len(failed)} fail, {skipped} left out", flush=True)
    print(f"Django: {total_ran - total_skipped - len(seen)} pass, {len(seen)} fail, {total_skipped} left out")
    new, gone = seen - always - sometimes, always - seen
    for name in sorted(new):
        print(f"fails: {name}")
    for name in sorted(gone):
        print(f"passes, although known_failures.txt has it: {name}")
    sys.exit(1 if new or gone else 0)


main()
