#!/usr/bin/env python3
"""Two to four sessions in random interleavings, on Junctor and MariaDB. The same statements must wait, and
every answer is compared. Locking statements select rows by primary key, so that both servers lock the same
rows. An episode ends with a deadlock, because its victim is not determined.

    python3 concurrent.py --junctor PORT --mariadb PORT [--seed N] [--episodes N] [--workers N] [--keep-going]

A difference is printed as the shortest script found that reproduces it, and the exit status is then 1."""

import argparse
import queue
import random
import sys
import threading
import time

from compare import FAMILIES_EVERY, run_workers
from known import is_known
from outcome import Outcome, Server, difference
from statements import Column, Generator

STEPS = 40
NAMES = "abcd"
# A statement without an answer after this time is waiting. The second, longer times verify a difference that
# the first ones show.
WAITS_SECONDS = (0.15, 1.5)
# Time within which waiting statements are answered after a statement that may have released locks.
UNBLOCK_SECONDS = (0.01, 0.2)
ANSWER_SECONDS = 60
# Sessions that still wait after all others have rolled back, and after this time, wait for each other.
FREE_SECONDS = 8
DEADLOCK = 1213
NO_SAVEPOINT = 1305


class Schema(Generator):
    """A table with a primary key `id`, and statements of sessions on it."""

    def __init__(self, drawn):
        super().__init__(drawn)
        self.isolation = drawn.choice(["READ COMMITTED", "REPEATABLE READ"])
        self.columns = self.columns[:4]
        key = Column("id", drawn.choice(["INT", "BIGINT", "SMALLINT"]), False, None, False, None)
        self.columns.insert(0, key)
        self.primary = ["id"]
        self.unique = None
        # In REPEATABLE READ, a duplicate in a second unique key locks a gap.
        if self.isolation == "READ COMMITTED" and drawn.random() < 0.5:
            self.unique = Column("u", "INT", False, None, True, None)
            self.columns.append(self.unique)

    def create(self):
        parts = [column.definition() for column in self.columns] + ["PRIMARY KEY (id)"]
        if self.unique:
            parts.append("UNIQUE KEY u (u)")
        text = f"CREATE TABLE t ({', '.join(parts)}) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"
        partitions = self.random.choice(["", "", " PARTITION BY KEY (id) PARTITIONS 3"])
        return text + partitions, text

    def setup(self):
        """The statements that prepare an episode, ours and theirs."""
        ours, theirs = self.create()
        rows = self.rows()
        return (ours, rows), (theirs, rows)

    def rows(self):
        """Rows 1 to 6."""
        rows = ", ".join(f"({', '.join(self.fitting(column, number) for column in self.columns)})" for number in range(1, 7))
        return f"INSERT INTO t VALUES {rows}"

    def fitting(self, column, number):
        if column.name == "id":
            return str(number)
        if column is self.unique:
            return str(number * 10)
        return "NULL" if column.nullable and self.random.random() < 0.2 else self.small_value(column)

    def new_row(self):
        number = self.key()
        values = []
        for column in self.columns:
            if column is self.unique:
                values.append(str(self.random.choice([10, 20, 30, 40, 70, 80])))
            else:
                values.append(self.fitting(column, number))
        return ", ".join(values)

    def key(self):
        # In REPEATABLE READ, a missing key locks the gap.
        return self.random.randint(1, 6 if self.isolation == "REPEATABLE READ" else 8)

    def assignment(self):
        column = self.random.choice(self.columns[1:])
        if column is self.unique:
            return f"u = {self.random.choice(['u + 10', 'u - 10', 'NULL', '10', '20', '70'])}"
        if column.is_number and self.random.random() < 0.5:
            return f"{column.name} = {column.name} {self.random.choice(['+ 1', '- 1', '* 2'])}"
        return f"{column.name} = {self.fitting(column, 0) if self.random.random() < 0.8 else self.value(column)}"

    def step(self, is_open):
        """The next statement of a session, its keywords, and whether a transaction is open afterwards.
        `is_open` is whether one is open before it."""
        drawn, pick = self.random, self.random.random()
        if not is_open and pick < 0.5:
            kinds = ["BEGIN", "BEGIN", "START TRANSACTION"]
            if self.isolation == "REPEATABLE READ":
                kinds.append("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            return drawn.choice(kinds), set(), True
        if is_open and pick < 0.18:
            return drawn.choice(["COMMIT", "COMMIT", "ROLLBACK"]), set(), False
        if is_open and pick < 0.26:
            return drawn.choice(["SAVEPOINT s", "SAVEPOINT r", "ROLLBACK TO s", "ROLLBACK TO r", "RELEASE SAVEPOINT s"]), set(), True
        kind = drawn.random()
        where = f"WHERE id = {self.key()}"
        if kind < 0.15 and self.isolation == "READ COMMITTED":
            return f"DELETE FROM t {where}", set(), is_open
        if kind < 0.3:
            return f"INSERT INTO t VALUES ({self.new_row()})", set(), is_open
        if kind < 0.55:
            return f"UPDATE t SET {self.assignment()} {where}", {"nowarnings"}, is_open
        if kind < 0.7:
            lock = drawn.choice(["FOR UPDATE", "FOR UPDATE", "LOCK IN SHARE MODE", "FOR UPDATE NOWAIT", "FOR UPDATE SKIP LOCKED"])
            return f"SELECT * FROM t {where} {lock}", set(), is_open
        if kind < 0.8:
            return "SELECT * FROM t ORDER BY id", {"ordered"}, is_open
        if kind < 0.9:
            return f"SELECT * FROM t WHERE id IN ({self.key()}, {self.key()}, {self.key()})", set(), is_open
        text, words = self.plain("")
        return text, words, is_open


class Family:
    """A parent, a child, and statements of sessions on them. In InnoDB, deleting a parent or changing its key
    locks gaps of the child's index that can block others, even for existing parents. `sessions.py` covers
    these cases."""

    def __init__(self, drawn):
        self.random = drawn
        self.isolation = "READ COMMITTED"
        self.number = 10

    def create(self):
        actions = self.random.choice(["", "ON DELETE CASCADE ON UPDATE CASCADE", "ON DELETE SET NULL"])
        key = self.random.choice(["id", "u"])
        parent = "CREATE TABLE p (id INT PRIMARY KEY, u INT, n INT, UNIQUE KEY u (u))"
        child = f"CREATE TABLE c (id INT PRIMARY KEY, pid INT, n INT, KEY pid (pid), FOREIGN KEY (pid) REFERENCES p ({key}) {actions})"
        return [parent, child]

    def rows(self):
        keys = range(1, 6)
        parents, children = ", ".join(f"({key}, {key}, 0)" for key in keys), ", ".join(f"({key}, {key}, 0)" for key in keys)
        return [f"INSERT INTO p VALUES {parents}", f"INSERT INTO c VALUES {children}"]

    def setup(self):
        texts = self.create() + self.rows()
        return texts, texts

    def step(self, is_open):
        drawn, pick = self.random, self.random.random()
        if not is_open and pick < 0.5:
            return "BEGIN", set(), True
        if is_open and pick < 0.2:
            return drawn.choice(["COMMIT", "COMMIT", "ROLLBACK"]), set(), False
        key, named = drawn.randint(1, 6), drawn.randint(1, 7)
        self.number += 1
        statements = [
            f"INSERT INTO c VALUES ({self.number}, {named}, 1)",
            f"INSERT INTO c VALUES ({self.number}, {named}, 1)",
            f"INSERT INTO c VALUES ({key}, {named}, 1)",
            f"UPDATE c SET pid = {named} WHERE id = {key}",
            f"UPDATE c SET n = n + 1 WHERE id = {key}",
            f"DELETE FROM c WHERE id = {key}",
            f"UPDATE p SET n = n + 1 WHERE id = {key}",
            f"SELECT * FROM p WHERE id = {key} {drawn.choice(['FOR UPDATE', 'LOCK IN SHARE MODE'])}",
            "SELECT * FROM c ORDER BY id",
            "SELECT * FROM p ORDER BY id",
        ]
        return drawn.choice(statements), {"ordered"}, is_open


class Session:
    """A connection and a thread that sends its statements."""

    def __init__(self, name, port, database):
        self.server = Server(name, port)
        self.database = database
        self.statements, self.outcomes = queue.SimpleQueue(), queue.SimpleQueue()
        self.is_waiting = False
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            statement = self.statements.get()
            if statement is None:
                self.server.connection.close()
                return
            self.outcomes.put(self.server.run(statement))

    def send(self, statement):
        self.is_waiting = True
        self.statements.put(statement)

    def answer(self, seconds):
        """The outcome of the running statement, or None."""
        try:
            outcome = self.outcomes.get(timeout=seconds) if seconds > 0 else self.outcomes.get_nowait()
        except queue.Empty:
            return None
        self.is_waiting = False
        return outcome

    def ask(self, statement):
        self.send(statement)
        return self.answer(ANSWER_SECONDS) or Outcome(kind="lost", message="no answer")


class Side:
    """All sessions of one server."""

    def __init__(self, name, port, database):
        self.name = name
        self.sessions = [Session(name, port, database) for _ in NAMES]
        self.database = database

    def start(self, statements, isolation):
        for session in self.sessions:
            if session.is_waiting and session.answer(ANSWER_SECONDS) is None:
                raise SystemExit(f"{self.name}: a statement does not end")
            session.ask("ROLLBACK")
        first = self.sessions[0]
        first.ask(f"DROP DATABASE IF EXISTS {self.database}")
        first.ask(f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        for session in self.sessions:
            session.ask(f"USE {self.database}")
            session.ask(f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation}")
        return [first.ask(statement) for statement in statements]

    def free(self):
        """Ends all transactions: rolling back the active sessions unblocks the waiting ones. Returns False on
        a timeout."""
        left = set(self.sessions)
        end = time.monotonic() + FREE_SECONDS
        while left and time.monotonic() < end:
            for session in list(left):
                if session.is_waiting:
                    session.answer(0.01)
                if not session.is_waiting:
                    session.ask("ROLLBACK")
                    left.discard(session)
        return not left


class Episode:
    """A schema and the steps of its sessions, all generated before the first one is sent."""

    def __init__(self, seed):
        drawn = random.Random(seed)
        self.schema = Family(drawn) if seed % FAMILIES_EVERY == 0 else Schema(drawn)
        self.setup = self.schema.setup()
        count = drawn.randint(2, 4)
        is_open = [False] * count
        self.steps = []
        for _ in range(STEPS):
            who = drawn.randrange(count)
            statement, words, is_open[who] = self.schema.step(is_open[who])
            self.steps.append((who, statement, frozenset(words)))


class Play:
    """One run of an episode: its log, the number of statements sent, and the first difference."""

    def __init__(self, sides, episode, steps, patience):
        self.sides, self.episode, self.patience = sides, episode, patience
        self.lines, self.sent, self.found, self.is_over = [], 0, None, False
        self.pending = {}
        self.run(steps)
        self.lines += [(who, statement, None, None) for who, statement, _ in self.pending.values()]
        ours, _ = [side.free() for side in sides]
        if not ours:
            self.found = "deadlock without a victim on our side"

    def run(self, steps):
        isolation = self.episode.schema.isolation
        outcomes = [side.start(setup, isolation) for side, setup in zip(self.sides, self.episode.setup)]
        if any(outcome.kind != "ok" for side in outcomes for outcome in side):
            return
        for step in steps:
            who, statement, _ = step
            if who in self.pending:
                continue
            self.sent += 1
            for side in self.sides:
                side.sessions[who].send(statement)
            self.pending[who] = step
            self.collect(who)
            if self.is_over:
                return

    def collect(self, who):
        """Takes the answer to the last statement, and the answers to statements that it unblocked."""
        self.take(who, WAITS_SECONDS[self.patience])
        others = [other for other in self.pending if other != who]
        quiet = time.monotonic() + UNBLOCK_SECONDS[self.patience]
        while others and not self.is_over and time.monotonic() < quiet:
            for other in others:
                if self.take(other, UNBLOCK_SECONDS[self.patience] / 4):
                    quiet = time.monotonic() + UNBLOCK_SECONDS[self.patience]
            others = [other for other in others if other in self.pending]

    def take(self, who, seconds):
        """Whether a server has answered. If only one of the two has, that is a difference."""
        if self.is_over or who not in self.pending:
            return False
        ours, theirs = (side.sessions[who] for side in self.sides)
        first = ours.answer(seconds)
        outcomes = [first, theirs.answer(0.001 if first is None else seconds)]
        if outcomes == [None, None]:
            return False
        for position, session in enumerate((ours, theirs)):
            if outcomes[position] is None:
                outcomes[position] = session.answer(WAITS_SECONDS[self.patience])
        self.check(who, *outcomes)
        return True

    def check(self, who, ours, theirs):
        _, statement, words = self.pending.pop(who)
        self.lines.append((who, statement, ours, theirs))
        deadlocks = [outcome is not None and outcome.number == DEADLOCK for outcome in (ours, theirs)]
        if any(deadlocks):
            self.is_over = True
            # Here a lock upgrade goes to the front of the queue. In InnoDB it queues behind others and
            # becomes a victim.
            if deadlocks == [True, False] and not self.has_victim(1):
                self.found = "a deadlock only on our side"
            return
        if ours is None or theirs is None:
            self.is_over = True
            self.found = f"{'ours' if ours is None else 'theirs'} waits"
            return
        if ours.kind == theirs.kind == "error" and ours.number != NO_SAVEPOINT:
            # The servers differ in which locks a failed statement keeps.
            for side in self.sides:
                side.sessions[who].ask("ROLLBACK")
        found = difference(ours, theirs, words)
        if found is None:
            return
        self.is_over = ours.kind != theirs.kind
        if not is_known(statement, ours, theirs, found):
            self.is_over, self.found = True, found

    def has_victim(self, position):
        """Whether another session on this side becomes the victim."""
        end = time.monotonic() + WAITS_SECONDS[1]
        while time.monotonic() < end:
            for session in self.sides[position].sessions:
                outcome = session.answer(0.02) if session.is_waiting else None
                if outcome is not None and outcome.number == DEADLOCK:
                    return True
        return False


def shrink(sides, episode, steps):
    """Removes steps while a difference remains, with the longer times."""
    size = max(1, len(steps) // 2)
    plays = 0
    while size >= 1:
        position = 0
        while position < len(steps) and plays < 120:
            tried = steps[:position] + steps[position + size:]
            plays += 1
            if Play(sides, episode, tried, 1).found:
                steps = tried
            else:
                position += size
        size //= 2
    return steps


def run_episode(sides, seed):
    """Runs one episode. Returns the number of statements and the report of a difference or None."""
    episode = Episode(seed)
    play = Play(sides, episode, episode.steps, 0)
    if play.found is None:
        return play.sent, None
    again = Play(sides, episode, episode.steps, 1)
    if again.found is None:
        return play.sent, None
    last = Play(sides, episode, shrink(sides, episode, episode.steps), 1)
    lines = [f"-- seed {seed}, {episode.schema.isolation}: {last.found or again.found}"]
    lines += [f"{text};" for text in episode.setup[0]]
    for who, statement, ours, theirs in (last if last.found else again).lines:
        lines.append(f"{NAMES[who]}: {statement}")
        lines.append(f"--   junctor: {ours or 'waits'}\n--   mariadb: {theirs or 'waits'}")
    return play.sent, "\n".join(lines) + "\n"


def work(options, number, reports):
    database = f"differential_concurrent_{number}"
    sides = [Side("junctor", options.junctor, database), Side("mariadb", options.mariadb, database)]
    for seed in range(options.seed + number, options.seed + options.episodes, options.workers):
        reports.put(run_episode(sides, seed))
    reports.put(None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--junctor", type=int, required=True, metavar="PORT")
    parser.add_argument("--mariadb", type=int, required=True, metavar="PORT")
    parser.add_argument("--keep-going", action="store_true", help="continue after a difference")
    return run_workers(work, parser.parse_args(), "statements of concurrent sessions")


if __name__ == "__main__":
    sys.exit(main())
