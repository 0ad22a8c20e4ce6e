#!/usr/bin/env python3
"""Sends the same random statements to Junctor twice: as text, and prepared with their literals as parameters.
The answers must agree. Requires mysql-connector-python and the requirements of statements.py.

    python3 prepared.py --junctor PORT [--seed N] [--statements N]"""

import argparse
import random
import re
import socket
import sys
from decimal import Decimal

import mysql.connector

from known import VALUE_ERRORS
from statements import Generator

EPISODE_STATEMENTS = 60
LITERAL = re.compile(r"""
      (?P<skip>0x[0-9a-f]+|x'[0-9a-f]*'|ESCAPE\ '.'|DECIMAL\(\d+,\ \d+\)|[A-Za-z_][A-Za-z_0-9]*)
    | (?P<string>'(?:[^'\\]|''|\\.)*')
    | (?P<double>\d+(?:\.\d+)?e-?\d+)
    | (?P<decimal>\d+\.\d+)
    | (?P<integer>\d+)
""", re.VERBOSE | re.DOTALL)


class Side:
    """A connection with its own database."""

    def __init__(self, port, database):
        self.database = database
        self.connection = mysql.connector.connect(
            host="127.0.0.1", port=port, user="root", use_pure=True, autocommit=True, charset="utf8mb4",
            collation="utf8mb4_general_ci",
        )
        # COM_STMT_CLOSE has no answer, so with Nagle's algorithm the next command would wait for a delayed
        # acknowledgement.
        self.connection._socket.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.text = self.connection.cursor()
        self.prepared = None

    def start(self):
        self.text.execute("ROLLBACK")
        for statement in ("DROP DATABASE IF EXISTS {}", "CREATE DATABASE {} COLLATE utf8mb4_general_ci", "USE {}"):
            self.text.execute(statement.format(self.database))

    def run(self, statement, values=None):
        """The outcome: the error number, the rows, or the number of affected rows."""
        cursor = self.text if values is None else self.connection.cursor(prepared=True)
        try:
            if values is None:
                cursor.execute(statement)
            else:
                cursor.execute(statement, values)
            if cursor.description is None:
                return "ok", cursor.rowcount, cursor.lastrowid
            names = tuple(column[0] for column in cursor.description)
            types = tuple(column[1] for column in cursor.description)
            return "rows", sorted((row_key(row) for row in cursor.fetchall()), key=repr), (names, types)
        except mysql.connector.Error as error:
            return "error", error.errno, str(error.msg)
        finally:
            if values is not None:
                cursor.close()


def row_key(row):
    return tuple(bytes(value) if isinstance(value, (bytes, bytearray)) else value for value in row)


def lifted(statement, generator_random):
    """The statement with question marks for literals, and the values; `None` if it has no literal to
    replace."""
    start = re.search(r" FROM | VALUES | SET ", statement)
    if start is None or not statement.startswith(("SELECT", "INSERT", "UPDATE", "DELETE")):
        return None
    ends = [statement.find(word) for word in (" ORDER BY ", " RETURNING ")]
    end = min((end for end in ends if end >= 0), default=len(statement))
    values = []

    def value_of(match):
        text = match.group()
        if match.group("skip") or match.start() < start.end() or match.start() >= end or generator_random.random() < 0.25:
            return text
        if match.group("string"):
            values.append(text[1:-1].replace("''", "'").replace("\\\\", "\\") if "\\" not in text.replace("\\\\", "")
                          else None)
            if values[-1] is None:
                values.pop()
                return text
        elif match.group("double"):
            values.append(float(text))
            if values[-1] in (float("inf"), float("-inf")):
                values.pop()
                return text
        elif match.group("decimal"):
            values.append(Decimal(text))
        else:
            number = int(text)
            if number >= 2**63:
                return text
            values.append(number)
        return "?"

    text = LITERAL.sub(value_of, statement)
    return (text, values) if values else None


def run_episode(sides, seed, count):
    """Runs one episode. Returns the statements sent and the first difference or None."""
    generator = Generator(random.Random(seed))
    lifting = random.Random(seed + 1)
    create, _ = generator.create()
    script = [create]
    for side in sides:
        side.start()
    if sides[0].run(create)[0] == "error":
        return script, None
    sides[1].run(create)
    while len(script) < count:
        statement, words = generator.statement()
        script.append(statement)
        if statement.startswith(("CREATE", "DROP", "TRUNCATE")):
            # Schema changes wait for all open transactions, including those of the other connection.
            for side in sides:
                side.run("COMMIT")
        by_text = sides[0].run(statement)
        parameters = lifted(statement, lifting)
        prepared = sides[1].run(statement) if parameters is None else sides[1].run(*parameters)
        undetermined = words & {"count", "fold"} or by_text[0] == "error" and (
            "noerrors" in words or by_text[1] in VALUE_ERRORS
        )
        if by_text[0] != prepared[0] or (not undetermined and by_text[1] != prepared[1]) or (
            by_text[0] == "rows" and by_text[2][0] != prepared[2][0] and parameters is None
        ):
            return script, (parameters, by_text, prepared)
    return script, None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--statements", type=int, default=1000)
    parser.add_argument("--junctor", type=int, required=True, metavar="PORT")
    parser.add_argument("--keep-going", action="store_true", help="continue after a difference")
    options = parser.parse_args()
    sides = [Side(options.junctor, "differential_text"), Side(options.junctor, "differential_prepared")]
    seed, sent, differing = options.seed, 0, 0
    while sent < options.statements:
        script, difference = run_episode(sides, seed, EPISODE_STATEMENTS)
        sent += len(script)
        if difference is not None:
            differing += 1
            parameters, by_text, prepared = difference
            print(f"-- seed {seed}")
            print("\n".join(f"{statement};" for statement in script))
            print(f"-- parameters: {parameters}\n-- text: {str(by_text)[:600]}\n-- prepared: {str(prepared)[:600]}\n", flush=True)
            if not options.keep_going:
                break
        seed += 1
    for side in sides:
        side.run("ROLLBACK")
        side.run(f"DROP DATABASE IF EXISTS {side.database}")
    print(f"{sent} statements, seeds {options.seed} to {seed}: {differing} episodes differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
