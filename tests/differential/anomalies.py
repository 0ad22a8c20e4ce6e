#!/usr/bin/env python3
"""The classic anomalies as fixed interleavings of two and three sessions, at each isolation level, on Junctor
and MariaDB. The results must agree with docs/decisions/0004-isolation.md. Each difference in MariaDB must
have a reason here.

    python3 anomalies.py --junctor PORT [--mariadb PORT]

A step is `session: statement`, or `session: name = statement` to keep its rows under a name. A session with a
waiting statement continues after the answer. A session whose transaction was ended by an error skips its
remaining steps."""

import argparse
import sys
import threading
import time

from outcome import Server

WAIT_SECONDS = 0.15
PATIENCE_SECONDS = 20
DATABASE = "anomalies"
TABLE = ["CREATE TABLE test (id INT PRIMARY KEY, value INT)", "INSERT INTO test VALUES (1, 10), (2, 20)"]
LEVELS = {
    "READ UNCOMMITTED": ["SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"],
    "READ COMMITTED": ["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"],
    "REPEATABLE READ": ["SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"],
    "REPEATABLE READ with innodb_snapshot_isolation": [
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SET SESSION innodb_snapshot_isolation = ON",
    ],
    "SERIALIZABLE": ["SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"],
}
RU, RC, RR, SI, SER = LEVELS
# Errors that roll back the whole transaction.
ENDING = {1213, 1020}


class Case:
    """An interleaving and a predicate that detects the anomaly."""

    def __init__(self, title, script, is_anomaly, allowed, mariadb=()):
        self.title = title
        self.steps = [line.strip() for line in script.strip().splitlines()]
        self.is_anomaly = is_anomaly
        self.allowed = set(allowed)
        # Levels at which MariaDB's outcome differs, each with the reason.
        self.mariadb = dict(mariadb)


class Run:
    """The outcome of an interleaving."""

    def __init__(self):
        self.rows, self.affected, self.ended, self.final = {}, {}, set(), {}

    def values(self, name):
        """The values that a named read returned, by id."""
        return {int(row[0]): int(row[1]) for row in self.rows.get(name, [])}

    def committed(self, *sessions):
        return not self.ended.intersection(sessions)


DIRTY = "READ UNCOMMITTED in InnoDB reads uncommitted data; here it behaves as READ COMMITTED"

CASES = [
    Case(
        "dirty write (G0)",
        """
        a: UPDATE test SET value = 11 WHERE id = 1
        b: UPDATE test SET value = 12 WHERE id = 1
        a: UPDATE test SET value = 21 WHERE id = 2
        a: COMMIT
        b: UPDATE test SET value = 22 WHERE id = 2
        b: COMMIT""",
        lambda run: run.final not in ({1: 11, 2: 21}, {1: 12, 2: 22}),
        [],
    ),
    Case(
        "aborted read (G1a)",
        """
        a: UPDATE test SET value = 101 WHERE id = 1
        b: one = SELECT * FROM test
        a: ROLLBACK
        b: two = SELECT * FROM test
        b: COMMIT""",
        lambda run: 101 in (run.values("one").get(1), run.values("two").get(1)),
        [],
        {RU: DIRTY},
    ),
    Case(
        "intermediate read (G1b)",
        """
        a: UPDATE test SET value = 101 WHERE id = 1
        b: one = SELECT * FROM test
        a: UPDATE test SET value = 11 WHERE id = 1
        a: COMMIT
        b: two = SELECT * FROM test
        b: COMMIT""",
        lambda run: 101 in (run.values("one").get(1), run.values("two").get(1)),
        [],
        {RU: DIRTY},
    ),
    Case(
        "circular information flow (G1c)",
        """
        a: UPDATE test SET value = 11 WHERE id = 1
        b: UPDATE test SET value = 22 WHERE id = 2
        a: one = SELECT * FROM test WHERE id = 2
        b: two = SELECT * FROM test WHERE id = 1
        a: COMMIT
        b: COMMIT""",
        lambda run: run.committed("a", "b") and run.values("one") == {2: 22} and run.values("two") == {1: 11},
        [],
        {RU: DIRTY},
    ),
    Case(
        "observed transaction vanishes (OTV)",
        """
        a: UPDATE test SET value = 11 WHERE id = 1
        a: UPDATE test SET value = 19 WHERE id = 2
        b: UPDATE test SET value = 12 WHERE id = 1
        a: COMMIT
        c: one = SELECT * FROM test WHERE id = 1
        b: UPDATE test SET value = 18 WHERE id = 2
        c: two = SELECT * FROM test WHERE id = 2
        b: COMMIT
        c: three = SELECT * FROM test WHERE id = 2
        c: four = SELECT * FROM test WHERE id = 1
        c: COMMIT""",
        lambda run: run.values("one") == {1: 12} and run.values("two") == {2: 19}
        or run.values("two") == {2: 18} and run.values("one") == {1: 11}
        or run.values("three") == {2: 18} and run.values("four") == {1: 11},
        [],
    ),
    Case(
        "predicate-many-preceders, read (PMP)",
        """
        a: one = SELECT * FROM test WHERE value = 30
        b: INSERT INTO test VALUES (3, 30)
        b: COMMIT
        a: two = SELECT * FROM test WHERE value % 3 = 0
        a: COMMIT""",
        lambda run: 3 in run.values("two"),
        [RU, RC],
    ),
    Case(
        "predicate-many-preceders, write (PMP)",
        """
        a: UPDATE test SET value = value + 10
        b: one = SELECT * FROM test WHERE value = 20
        b: DELETE FROM test WHERE value = 20
        a: COMMIT
        b: COMMIT""",
        # The DELETE removed another row than the SELECT returned.
        lambda run: run.committed("a", "b") and run.values("one") == {2: 20} and 1 not in run.final,
        [RU, RC, RR],
        {RU: DIRTY + ": the transaction had read the row that it deleted"},
    ),
    Case(
        "lost update (P4)",
        """
        a: one = SELECT * FROM test WHERE id = 1
        b: two = SELECT * FROM test WHERE id = 1
        a: UPDATE test SET value = 11 WHERE id = 1
        b: UPDATE test SET value = 12 WHERE id = 1
        a: COMMIT
        b: COMMIT""",
        lambda run: run.committed("a", "b") and run.values("one") == run.values("two") == {1: 10},
        [RU, RC, RR],
    ),
    Case(
        "lost update after reading FOR UPDATE",
        """
        a: one = SELECT * FROM test WHERE id = 1 FOR UPDATE
        b: two = SELECT * FROM test WHERE id = 1 FOR UPDATE
        a: UPDATE test SET value = 11 WHERE id = 1
        a: COMMIT
        b: UPDATE test SET value = 12 WHERE id = 1
        b: COMMIT""",
        lambda run: run.committed("a", "b") and run.values("one") == run.values("two") == {1: 10},
        [],
    ),
    Case(
        "read skew (G-single)",
        """
        a: one = SELECT * FROM test WHERE id = 1
        b: UPDATE test SET value = 12 WHERE id = 1
        b: UPDATE test SET value = 18 WHERE id = 2
        b: COMMIT
        a: two = SELECT * FROM test WHERE id = 2
        a: COMMIT""",
        lambda run: run.values("one") == {1: 10} and run.values("two") == {2: 18},
        [RU, RC],
    ),
    Case(
        "read skew by predicates (G-single)",
        """
        a: one = SELECT * FROM test WHERE value % 5 = 0
        b: UPDATE test SET value = 12 WHERE value = 10
        b: COMMIT
        a: two = SELECT * FROM test WHERE value % 3 = 0
        a: COMMIT""",
        lambda run: run.values("one") == {1: 10, 2: 20} and run.values("two") == {1: 12},
        [RU, RC],
    ),
    Case(
        "read skew, write by a predicate (G-single)",
        """
        a: one = SELECT * FROM test WHERE id = 1
        b: UPDATE test SET value = 12 WHERE id = 1
        b: UPDATE test SET value = 18 WHERE id = 2
        b: COMMIT
        a: DELETE FROM test WHERE value = 20
        a: COMMIT""",
        lambda run: run.committed("a", "b") and run.values("one") == {1: 10} and run.final == {1: 12, 2: 18},
        [RU, RC, RR],
    ),
    Case(
        "write skew (G2-item)",
        """
        a: one = SELECT * FROM test WHERE id IN (1, 2)
        b: two = SELECT * FROM test WHERE id IN (1, 2)
        a: UPDATE test SET value = 11 WHERE id = 1
        b: UPDATE test SET value = 21 WHERE id = 2
        a: COMMIT
        b: COMMIT""",
        lambda run: run.committed("a", "b"),
        [RU, RC, RR, SI],
    ),
    Case(
        "write skew by a predicate (G2)",
        """
        a: one = SELECT * FROM test WHERE value % 3 = 0
        b: two = SELECT * FROM test WHERE value % 3 = 0
        a: INSERT INTO test VALUES (3, 30)
        b: INSERT INTO test VALUES (4, 42)
        a: COMMIT
        b: COMMIT""",
        lambda run: run.committed("a", "b"),
        [RU, RC, RR, SI],
    ),
    Case(
        "write skew by missing keys after reading FOR UPDATE",
        """
        a: one = SELECT * FROM test WHERE id = 3 FOR UPDATE
        b: two = SELECT * FROM test WHERE id = 4 FOR UPDATE
        a: INSERT INTO test VALUES (4, 40)
        b: INSERT INTO test VALUES (3, 30)
        a: COMMIT
        b: COMMIT""",
        lambda run: run.committed("a", "b") and len(run.final) == 4,
        [RU, RC],
    ),
    Case(
        "a reader between two writers (two anti-dependencies)",
        """
        a: one = SELECT * FROM test
        b: UPDATE test SET value = value + 5 WHERE id = 2
        b: COMMIT
        c: two = SELECT * FROM test
        c: COMMIT
        a: UPDATE test SET value = 0 WHERE id = 1
        a: COMMIT""",
        lambda run: run.committed("a", "b", "c") and run.values("one") == {1: 10, 2: 20}
        and run.values("two") == {1: 10, 2: 25},
        [RU, RC, RR, SI],
    ),
]


class Player:
    """A session of an interleaving and its remaining steps."""

    def __init__(self, server):
        self.server = server
        self.pending = []
        self.thread = None
        self.outcome = None
        self.step = None

    def start(self, step):
        self.step = step
        statement = step.partition(" = ")[2] if is_named(step) else step

        def run():
            self.outcome = self.server.run(statement)

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def collect(self, who, run, seconds):
        """Takes the answer if it arrives in time. Returns whether the session is idle."""
        if self.thread is None:
            return True
        self.thread.join(seconds)
        if self.thread.is_alive():
            return False
        self.thread = None
        if self.outcome.kind == "error":
            if self.outcome.number not in ENDING:
                raise RuntimeError(f"{who}: {self.step}: error {self.outcome.number}: {self.outcome.message}")
            run.ended.add(who)
            self.pending.clear()
        elif self.outcome.kind == "rows" and is_named(self.step):
            run.rows[self.step.partition(" = ")[0]] = self.outcome.rows
        elif self.outcome.kind == "lost":
            raise RuntimeError(f"{who}: {self.step}: the connection was lost")
        return True


def is_named(step):
    name, separator, _ = step.partition(" = ")
    return bool(separator) and name.isidentifier()


def advance(players, run, seconds):
    """Advances every session as far as possible. Returns whether all are done."""
    all_done = True
    for who, player in players.items():
        while player.collect(who, run, seconds) and player.pending and who not in run.ended:
            player.start(player.pending.pop(0))
            seconds = WAIT_SECONDS
        all_done &= player.thread is None and (not player.pending or who in run.ended)
    return all_done


def play(name, port, case, level):
    """Runs an interleaving at a level and returns its outcome."""
    watcher = Server(name, port)
    for statement in (f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", *TABLE):
        watcher.run(statement)
    players, run = {}, Run()
    for who in sorted({step.partition(":")[0] for step in case.steps}):
        server = Server(name, port)
        for statement in (f"USE {DATABASE}", *LEVELS[level], "BEGIN"):
            outcome = server.run(statement)
            if outcome.kind == "error":
                raise RuntimeError(f"{statement}: {outcome.message}")
        players[who] = Player(server)
    for line in case.steps:
        who, _, step = line.partition(": ")
        if who in run.ended:
            continue
        players[who].pending.append(step)
        advance(players, run, WAIT_SECONDS)
    end = time.monotonic() + PATIENCE_SECONDS
    while not advance(players, run, 0.01):
        if time.monotonic() > end:
            raise RuntimeError(f"{case.title} at {level} does not end")
    for who in run.ended:
        players[who].server.run("ROLLBACK")
    run.final = {int(row[0]): int(row[1]) for row in watcher.run("SELECT * FROM test").rows}
    for player in players.values():
        player.server.connection.close()
    watcher.run(f"DROP DATABASE {DATABASE}")
    watcher.connection.close()
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--junctor", type=int, required=True, metavar="PORT")
    parser.add_argument("--mariadb", type=int, metavar="PORT")
    parser.add_argument("--table", action="store_true", help="print the results as a table")
    options = parser.parse_args()
    failed = 0
    for case in CASES:
        lines = []
        for level in LEVELS:
            expected = level in case.allowed
            run = play("junctor", options.junctor, case, level)
            ours = bool(case.is_anomaly(run))
            if ours != expected:
                failed += 1
                print(f"{case.title} at {level}: {'happened' if ours else 'did not happen'}: {vars(run)}")
            theirs = None
            if options.mariadb:
                run = play("mariadb", options.mariadb, case, level)
                theirs = bool(case.is_anomaly(run))
                if (theirs != expected) != (level in case.mariadb):
                    failed += 1
                    reason = case.mariadb.get(level, "no known difference")
                    print(f"{case.title} at {level}: MariaDB {theirs}, Junctor {expected}, but {reason}: {vars(run)}")
            lines.append((ours, theirs))
        if options.table:
            said = {True: "yes", False: "no", None: "-"}
            print(f"{case.title}: " + " | ".join(f"{said[ours]} {said[theirs]}" for ours, theirs in lines))
    print(f"{len(CASES)} anomalies at {len(LEVELS)} levels, {failed} unexpected results")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
