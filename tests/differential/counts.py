#!/usr/bin/env python3
"""Sends the statements of tests/sql/row_counts.sql to Junctor and to MariaDB, by clients that count changed rows and by clients
that count found ones, and compares what each says of rows, generated numbers and warnings.

    python3 counts.py --junctor PORT --mariadb PORT

Needs what compare.py needs. Ends with 1 when something differs."""

import argparse
import pathlib
import sys

from known import is_known
from outcome import Server, difference

FILE = pathlib.Path(__file__).resolve().parent.parent / "sql" / "row_counts.sql"


def statements():
    """The statements of the file, one a line."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return [line.rstrip(";") for line in lines if line and not line.startswith("--")]


def play(junctor, mariadb, found_rows):
    """Tells of each difference; gives how many there are."""
    servers = [Server("junctor", junctor, found_rows), Server("mariadb", mariadb, found_rows)]
    for server in servers:
        server.run("DROP DATABASE IF EXISTS cli_row_counts")
    differing = 0
    for statement in statements():
        ours, theirs = (server.run(statement) for server in servers)
        found = difference(ours, theirs, {"computed", "untyped"})
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
    print(f"{len(statements())} statements by both kinds of clients, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
