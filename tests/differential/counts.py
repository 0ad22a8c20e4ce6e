#!/usr/bin/env python3
"""Sends the statements of tests/sql/row_counts.sql to Junctor and MariaDB, with clients that count changed
rows and with clients that count found rows, and compares the numbers of rows, the generated ids and the
warnings.

    python3 counts.py --junctor PORT --mariadb PORT

It has the requirements of compare.py. The exit status is 1 if something differs."""

import argparse
import pathlib
import sys

from known import is_known
from outcome import MAY_BE_DEPRECATED, Server, difference

FILE = pathlib.Path(__file__).resolve().parent.parent / "sql" / "row_counts.sql"


class Counted(Server):
    """A connection on which nothing stands between a statement and the question for its count."""

    def deprecated(self, statement, result):
        return 0


def statements():
    """The statements of the file, one per line."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return [line.rstrip(";") for line in lines if line and not line.startswith("--")]


def play(junctor, mariadb, found_rows):
    """Prints each difference and returns their number."""
    servers = [Counted("junctor", junctor, found_rows), Counted("mariadb", mariadb, found_rows)]
    for server in servers:
        server.run("DROP DATABASE IF EXISTS cli_row_counts")
    differing = 0
    for statement in statements():
        ours, theirs = (server.run(statement) for server in servers)
        # MariaDB does not warn of deprecated syntax.
        unlike = {"nowarnings", "nomessage"} if MAY_BE_DEPRECATED.search(statement) else set()
        found = difference(ours, theirs, {"computed", "untyped"} | unlike)
        if found is not None and not is_known(statement, ours, theirs, found):
            differing += 1
            print(f"-- found rows: {found_rows}\n{statement}\n--   {found}\n--   junctor: {ours}\n--   mariadb: {theirs}")
    return differing


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--junctor", type=int, required=True, metavar="PORT")
    parser.add_argument("--mariadb", type=int, required=True, metavar="PORT")
    options = parser.parse_args()
    differing = sum(play(options.junctor, options.mariadb, found_rows) for found_rows in (False, True))
    print(f"{len(statements())} statements with both kinds of clients, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
