"""Writes the page about the suite: how many tests pass, and the reason of each that does not."""

import textwrap

from normal import DIFFERENCES_OF_MYSQL, WARNINGS_OF_MYSQL
from reasons import REASONS

HEAD = """# MariaDB's storage_engine suite

The suite of the Debian package mariadb-test runs on MariaDB with InnoDB ({version}),
which gives the expected output of each test, and on Junctor. `make storage-engine` runs it and writes this
page.

**{passed} of {total} tests pass.** {skipped}

Both outputs are first brought into one form, because MariaDB and MySQL 8.0 write these things differently:
"""
FORMS_END = """
Rows of a SELECT without ORDER BY are compared in sorted order, and warnings of an INSERT ... SELECT without
the numbers of their rows. Checksums are compared with each other only. Left out are plans of EXPLAIN, and
warnings that only MySQL 8.0 has ({warnings}).
The engine's name is Junctor, the tests run in a database with the character set latin1, `sql_mode` is
NO_ENGINE_SUBSTITUTION, and files are in the folder of `secure_file_priv`.
"""


def listed(names):
    return ", ".join(f"`{name}`" for name in sorted(names))


def write_report(file, states, version):
    """The page, from the state of each test."""
    passed = [name for name, (state, _) in states.items() if state == "pass"]
    skipped = [name for name, (state, _) in states.items() if state in ("skipped", "not recorded")]
    head = f"MariaDB itself skips or ends {listed(skipped)}." if skipped else "MariaDB skips none of them."
    lines = [HEAD.format(version=version, passed=len(passed), total=len(states), skipped=head)]
    lines += [f"- {text}" for text in DIFFERENCES_OF_MYSQL]
    lines += [FORMS_END.format(warnings=", ".join(sorted(WARNINGS_OF_MYSQL, key=int)))]
    others = {name for name, (state, _) in states.items() if state == "differs"}
    lines += ["## Why the others do not pass", "", "| reason | tests |", "|---|---|"]
    for reason, names in REASONS:
        found = others & set(names)
        others -= found
        if found:
            lines.append(f"| {reason} | {listed(found)} |")
    if others:
        lines.append(f"| not yet explained | {listed(others)} |")
    lines += ["", "## The tests that pass", "", *textwrap.wrap(listed(passed) + ".", 108)]
    file.write_text("\n".join(lines) + "\n")
