"""Executes every statement of tests/corpus on Junctor and MariaDB, and compares the outcomes with the record in
tests/corpus/run-outcomes.txt.

A listed statement runs in a new database for each of several sets of tables, because the statements come from
different schemas. The sessions of the log run in their order, on one connection each. `--record` writes the record
again. Each of its lines has a judgement and a statement. `refused` names what Junctor does not support; an error that
only MariaDB has is mostly syntax of MySQL 8.0 that it does not know.
"""

import argparse
import itertools
import os
import re
import sys

from outcome import Server

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, "..", "corpus")
RECORD = os.path.join(CORPUS, "run-outcomes.txt")

# The columns and rows of a table of the listed statements. INSERT statements without a list of columns find tables of
# one, two and many columns.
FIXTURES = {
    "wide": (
        "(id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT, b INT, c INT, d DATETIME, j INT, n INT, x INT, y INT, "
        "v VARCHAR(20), name VARCHAR(50), k INT, ts TIMESTAMP NULL, KEY k1 (a), KEY k2 (b))",
        "(id, a, b, c, d, v, name, k) VALUES (1, 1, 2, 3, '2020-01-31 10:00:00', 'x', 'a', 1), "
        "(2, 2, 1, NULL, '2021-02-28', 'y', 'b', 2), (5, 2, 5, 4, NULL, 'ab', NULL, 3)",
    ),
    "two": ("(a INT PRIMARY KEY, b INT)", "VALUES (1, 1), (3, NULL)"),
    "one": ("(a INT)", "VALUES (1), (2)"),
    "text": (
        "(a VARCHAR(30) PRIMARY KEY, b VARCHAR(30), d DATE)",
        "VALUES ('{\"x\": 5}', 'x', '2020-01-31'), ('[1]', 'ab', NULL)",
    ),
}
TABLES = ["t", "t1", "t2", "t3", "t4", "u", "a", "c", "p", "sbtest1"]
READS = re.compile(r"^\W*(select|with|values|table|show|explain|desc|describe)\b(?!.* into )", re.I | re.S)
CREATED = re.compile(r"create (?:temporary )?table (?:if not exists )?`?(\w+)", re.I)
INSERTS = re.compile(r"insert|replace", re.I)
NAMES = re.compile(r"(?<![\w@'.`])(t|t1|t2|t3|t4|u|a|c|p|sbtest1)(?![\w'(`])")

# Statements whose outcome depends on the server, or on what else runs: their kind is compared, not their rows.
LOOSE = re.compile(
    r"^\W*(show|explain|desc\b|describe|analyze|check|optimize|repair|checksum)|information_schema|performance_schema|"
    r"mysql\.|@@|version\s*\(|connection_id|\buser\s*\(|uuid|\bnow\b|timestamp|curdate|sysdate|rand\s*\(|sys\.|"
    # The place of a value that occurs with several sort keys.
    r"group_concat\(distinct", re.I)
ORDERED = re.compile(r"order by", re.I)
# They stop or stall a server, wait for another one, or write a file.
SKIPPED = re.compile(r"^(.* into outfile|shutdown|flush tables with read lock|restart|change |start (replica|slave))", re.I)


def listed():
    with open(os.path.join(CORPUS, "mysql-statements.txt"), encoding="utf-8") as file:
        return [text.strip() for text in file.read().split("\n--\n")]


def logged():
    """The log as (session, statement). A session is the part of the log and the connection."""
    head = re.compile(r"^(?:\d{6}\s+[\d:]+\t|\t\t)\s*(\d+) ([A-Z][A-Za-z ]*)\t?(.*)$")
    part, result, is_open = 0, [], False
    with open(os.path.join(CORPUS, "client-traffic.log"), encoding="utf-8") as file:
        for line in file.read().split("\n"):
            if line.startswith("mariadbd, Version"):
                part += 1
            found = head.match(line)
            if found:
                command, text = found.group(2), found.group(3)
                is_open = command in ("Query", "Execute")
                session = (part, int(found.group(1)))
                if command == "Connect":
                    database = re.search(r" on (\w*) using", text)
                    if database and database.group(1):
                        result.append((session, f"USE {database.group(1)}"))
                elif command == "Init DB":
                    result.append((session, f"USE `{text}`"))
                elif is_open:
                    result.append((session, text))
            elif is_open and result:
                result[-1] = (result[-1][0], result[-1][1] + "\n" + line)
    return result


def judge(statement, ours, theirs):
    """`equal`, or in which way the outcomes differ."""
    if "lost" in (ours.kind, theirs.kind):
        return "connection lost" if ours.kind == "lost" else "theirs lost the connection"
    refused = re.search(r"doesn't yet support '(.*)'", ours.message) if ours.number == 1235 else None
    if refused:
        return f"refused: {refused.group(1)}"
    if ours.kind == "error" and theirs.kind == "error":
        return "equal" if ours.number == theirs.number else f"error {ours.number}, theirs {theirs.number}"
    if ours.kind == "error":
        return f"error {ours.number}, theirs {theirs.kind}"
    if theirs.kind == "error":
        return f"{ours.kind}, theirs error {theirs.number}"
    if LOOSE.search(statement):
        return "equal" if ours.kind == theirs.kind else f"{ours.kind}, theirs {theirs.kind}"
    if ours.kind != theirs.kind:
        return f"{ours.kind}, theirs {theirs.kind}"
    if ours.kind == "ok":
        return "equal" if ours.affected == theirs.affected else f"{ours.affected} affected, theirs {theirs.affected}"
    names = [[field.name for field in outcome.fields] for outcome in (ours, theirs)]
    if names[0] != names[1]:
        return "columns differ"
    rows = [outcome.rows if ORDERED.search(statement) else sorted(outcome.rows, key=repr) for outcome in (ours, theirs)]
    return "equal" if rows[0] == rows[1] else "rows differ"


def one_line(statement):
    return " ".join(statement.split())


class Pair:
    """A connection to each server."""

    def __init__(self, arguments):
        self.ours, self.theirs = Server("junctor", arguments.junctor), Server("mariadb", arguments.mariadb)

    def run(self, statement):
        return self.ours.run(statement), self.theirs.run(statement)

    def close(self):
        for server in (self.ours, self.theirs):
            try:
                server.connection.close()
            except Exception:  # The server has closed it.
                pass


def reset(arguments):
    pair = Pair(arguments)
    for server in (pair.ours, pair.theirs):
        rows = server.run("SHOW DATABASES").rows
        for (name,) in rows:
            name = name.decode() if isinstance(name, bytes) else name
            if name not in ("information_schema", "mysql", "performance_schema", "sys", "ndbinfo", "junctor_info"):
                server.run(f"DROP DATABASE `{name}`")
        for (user, host) in server.run("SELECT user, host FROM mysql.user WHERE user IN ('a', 'u', 'r1')").rows:
            text = [part.decode() if isinstance(part, bytes) else part for part in (user, host)]
            server.run(f"DROP USER '{text[0]}'@'{text[1]}'")
    pair.close()


def prepared(arguments, tables, fixture):
    """Connections to a new database with these tables."""
    reset(arguments)
    pair = Pair(arguments)
    columns, rows = FIXTURES[fixture]
    setup = [f"CREATE TABLE {table} {columns}" for table in tables] + [f"INSERT INTO {table} {rows}" for table in tables]
    for statement in ["CREATE DATABASE db", "USE db", *setup]:
        for outcome in pair.run(statement):
            if outcome.kind != "ok":
                sys.exit(f"{statement}: {outcome}")
    return pair


def run_listed(arguments):
    """Statements that only read share a database with all tables; each other one has its own."""
    statements = listed()
    judgements, shown = [{} for _ in statements], ["" for _ in statements]
    for fixture in FIXTURES:
        pair = prepared(arguments, TABLES, fixture)
        for reads in (True, False):
            for number, statement in enumerate(statements):
                created = CREATED.match(statement)
                tables = sorted(set(NAMES.findall(statement)) - ({created.group(1)} if created else set()))
                if READS.match(statement) is None if reads else READS.match(statement) is not None:
                    continue
                if SKIPPED.match(statement) or not tables and fixture != "wide":
                    continue
                if fixture == "one" and not INSERTS.match(statement):
                    continue
                if not reads:
                    pair.close()
                    pair = prepared(arguments, tables, fixture)
                ours, theirs = pair.run(statement.replace("?", "1"))
                judged = judge(statement, ours, theirs)
                judgements[number].setdefault(judged, []).append(fixture)
                if judged != "equal":
                    shown[number] = shown[number] or f"ours {ours}\n    theirs {theirs}"
        pair.close()
    for number, statement in enumerate(statements):
        found = judgements[number]
        text = "; ".join(
            judged if len(found) == 1 else f"{judged} ({', '.join(names)})" for judged, names in found.items())
        yield text or "skipped", statement, shown[number]


def run_logged(arguments):
    reset(arguments)
    pairs, seen = {}, set()
    for session, statement in logged():
        if SKIPPED.match(statement):
            continue
        if session not in pairs:
            pairs[session] = Pair(arguments)
        ours, theirs = pairs[session].run(statement.replace("?", "1") if "?" in statement else statement)
        judged = judge(statement, ours, theirs)
        if (judged, statement) not in seen:
            seen.add((judged, statement))
            yield judged, statement, "" if judged == "equal" else f"ours {ours}\n    theirs {theirs}"
    for pair in pairs.values():
        pair.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--junctor", type=int, required=True, help="port")
    parser.add_argument("--mariadb", type=int, required=True, help="port")
    parser.add_argument("--record", action="store_true", help="write the record again")
    parser.add_argument("--show", action="store_true", help="print every outcome that is not equal")
    arguments = parser.parse_args()
    lines, equal = [], 0
    for judged, statement, shown in itertools.chain(run_listed(arguments), run_logged(arguments)):
        lines.append(f"{judged} | {one_line(statement)}")
        equal += judged == "equal"
        if arguments.show and shown:
            print(f"{lines[-1][:300]}\n    {shown[:700]}")
    print(f"corpus: {len(lines)} statements, {equal} equal to MariaDB")
    text = "\n".join(lines) + "\n"
    if arguments.record:
        with open(RECORD, "w", encoding="utf-8") as file:
            file.write(text)
        return
    with open(RECORD, encoding="utf-8") as file:
        recorded = file.read()
    failed = 0
    for was, now in zip(recorded.splitlines(), lines):
        if was != now:
            failed += 1
            print(f"was {was}\nnow {now}")
    if failed or len(recorded.splitlines()) != len(lines):
        sys.exit(f"corpus: {failed} outcomes differ from the record")


if __name__ == "__main__":
    main()
