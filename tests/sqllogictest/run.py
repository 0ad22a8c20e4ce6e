"""Runs a sample of the public sqllogictest corpus against a server of the MySQL protocol.

The corpus is the folder `test` of SQLite's sqllogictest (public domain). Each file has records: statements,
which make tables and rows, and queries with the expected values, or with the MD5 of these. Records marked
`skipif mysql`, or `onlyif` another database, are left out, as its own runner for MySQL does.

Every statement of a file runs, in order, and one query in `--one-in`, chosen by `--seed`. Prints the first
differences, and ends with status 1 if a smaller share of the queries than `--share` is as expected.
"""

import argparse
import hashlib
import random
import sys
from pathlib import Path

import pymysql

DATABASE = "sqllogictest"
MARKS = ("skipif ", "onlyif ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--one-in", type=int, default=35, help="the sample: 35 makes 200,000 queries of the corpus")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.999, help="share of the queries that must be as expected")
    parser.add_argument("--shown", type=int, default=20, help="number of differences that are printed")
    parser.add_argument("files", nargs="+", type=Path, help="files of the corpus, or folders with files")
    options = parser.parse_args()
    paths = sorted(file for path in options.files for file in (path.rglob("*.test") if path.is_dir() else [path]))
    run = Run(options)
    for path in paths:
        run.file(path)
    run.report()
    return 0 if run.queries and run.equal >= options.share * run.queries else 1


class Statement:
    def __init__(self, line, text, fails):
        self.line, self.text, self.fails = line, text, fails


class Query:
    def __init__(self, line, text, types, sort, expected):
        self.line, self.text, self.types, self.sort, self.expected = line, text, types, sort, expected


def records_of(path):
    """The records of a file that concern MySQL."""
    block, start = [], 0
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\r\n")
            if line.startswith("#"):
                continue
            if line:
                start = start if block else number
                block.append(line)
                continue
            if block[-1:] == ["halt"] and concerns_mysql(block):
                return
            yield from record_of(block, start)
            block = []
    yield from record_of(block, start)


def concerns_mysql(block):
    marks = [line.split()[:2] for line in block if line.startswith(MARKS)]
    return all((word == "onlyif") == (database == "mysql") for word, database in marks)


def record_of(block, line):
    if not concerns_mysql(block):
        return
    block = [text for text in block if not text.startswith(MARKS)]
    if not block:
        return
    words = block[0].split()
    if words[0] == "statement":
        yield Statement(line, "\n".join(block[1:]), words[1] == "error")
    elif words[0] == "query":
        end = block.index("----") if "----" in block else len(block)
        sort = words[2] if len(words) > 2 else "nosort"
        yield Query(line, "\n".join(block[1:end]), words[1], sort, block[end + 1:])


def shown(value, kind):
    """A value as the corpus writes it."""
    if value is None:
        return "NULL"
    if kind == "I":
        try:
            return str(int(value))
        except ValueError:
            return "0"
    if kind == "R":
        return "%.3f" % float(value)
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return "".join(letter if " " <= letter <= "~" else "@" for letter in text) or "(empty)"


def answer_of(rows, query):
    rows = [[shown(value, kind) for value, kind in zip(row, query.types)] for row in rows]
    if query.sort == "rowsort":
        rows.sort()
    values = [value for row in rows for value in row]
    if query.sort == "valuesort":
        values.sort()
    return values


def is_expected(values, expected):
    if len(expected) == 1 and " values hashing to " in expected[0]:
        count, digest = expected[0].split(" values hashing to ")
        text = "".join(f"{value}\n" for value in values)
        return len(values) == int(count) and hashlib.md5(text.encode()).hexdigest() == digest
    return values == expected


class Run:
    def __init__(self, options):
        self.options = options
        self.queries = self.equal = self.statements = self.failed_statements = 0
        self.differences = 0
        self.chosen = random.Random(options.seed)

    def file(self, path):
        connection = pymysql.connect(host="127.0.0.1", port=self.options.port, user="root", autocommit=True)
        cursor = connection.cursor()
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cursor.execute(f"CREATE DATABASE {DATABASE}")
        cursor.execute(f"USE {DATABASE}")
        cursor.execute("SET sql_mode = 'NO_ENGINE_SUBSTITUTION'")
        for record in records_of(path):
            if isinstance(record, Statement):
                self.statement(path, cursor, record)
            elif self.chosen.randrange(self.options.one_in) == 0:
                self.query(path, cursor, record)
        connection.close()

    def statement(self, path, cursor, record):
        self.statements += 1
        error = None
        try:
            cursor.execute(record.text)
        except pymysql.MySQLError as caught:
            error = caught
        if (error is not None) != record.fails:
            self.failed_statements += 1
            self.difference(path, record, f"statement: {error or 'no error'}")

    def query(self, path, cursor, record):
        self.queries += 1
        try:
            cursor.execute(record.text)
            values = answer_of(cursor.fetchall(), record)
        except pymysql.MySQLError as error:
            return self.difference(path, record, str(error))
        if is_expected(values, record.expected):
            self.equal += 1
        else:
            self.difference(path, record, f"expected {record.expected[:8]}, got {values[:8]} of {len(values)}")

    def difference(self, path, record, what):
        self.differences += 1
        if self.differences <= self.options.shown:
            print(f"{path}:{record.line}: {what}\n    {record.text}", flush=True)

    def report(self):
        share = 100 * self.equal / max(1, self.queries)
        print(f"{self.queries} queries, {self.equal} as expected ({share:.4f} per cent); "
              f"{self.statements} statements, {self.failed_statements} not as expected")


if __name__ == "__main__":
    sys.exit(main())
