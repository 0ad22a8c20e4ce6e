#!/usr/bin/env python3
"""Sends the same random statements to Junctor and MariaDB and compares the answers. The statements depend
only on the seed. A difference is printed as the shortest script found that reproduces it.

    python3 compare.py --junctor PORT --mariadb PORT [--seed N] [--statements N] [--workers N] [--keep-going]

Requires PyMySQL. Both servers must accept root without a password on the loopback interface. The exit status
is 1 if something differs."""

import argparse
import multiprocessing
import queue
import random
import sys
import time

from families import Families
from known import is_known
from outcome import Server, difference
from statements import Generator

EPISODE_STATEMENTS = 60
# Every n-th episode uses tables joined by foreign keys.
FAMILIES_EVERY = 4
DATABASE = "differential_{}"
REFUSED = 1235


class Episode:
    """A schema and the statements sent to it. Each is (ours, theirs, keywords)."""

    def __init__(self, seed):
        kind = Families if seed % FAMILIES_EVERY == 0 else Generator
        self.generator = kind(random.Random(seed))
        self.creates = [(ours, theirs, frozenset()) for ours, theirs in self.generator.creates()]
        self.steps = []

    def next(self):
        if self.creates:
            self.steps.append(self.creates.pop(0))
            return
        statement, words = self.generator.statement()
        self.steps.append((statement, statement, frozenset(words)))


def start(servers):
    for server in servers:
        server.run("ROLLBACK")
        server.run("DO LAST_INSERT_ID(0)")
        server.run(f"DROP DATABASE IF EXISTS {server.database}")
        server.run(f"CREATE DATABASE {server.database} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        server.run(f"USE {server.database}")


def send(servers, step):
    ours = servers[0].run(step[0])
    if ours.number == REFUSED:
        # An unsupported statement changes nothing here, so it must not change anything on the other server
        # either.
        return ours, ours, None
    theirs = servers[1].run(step[1])
    return ours, theirs, difference(ours, theirs, step[2])


def replay(servers, steps):
    """Replays the steps and returns the outcomes and the difference of the last one."""
    start(servers)
    for step in steps[:-1]:
        send(servers, step)
    return send(servers, steps[-1])


def differs(servers, steps):
    """Whether the last step has an unknown difference."""
    ours, theirs, found = replay(servers, steps)
    return found is not None and not is_known(steps[-1][0], ours, theirs, found)


def shrink(servers, steps):
    """Removes steps while the last one still differs."""
    kept = list(steps)
    size = max(1, len(kept) // 2)
    while size >= 1:
        position = 1
        while position < len(kept) - 1:
            tried = kept[:position] + kept[min(position + size, len(kept) - 1):]
            if differs(servers, tried):
                kept = tried
            else:
                position += size
        size //= 2
    return kept


def report(servers, seed, steps):
    """The report of a difference."""
    for server in servers:
        if server.run("SELECT 1").kind == "lost":
            server.connect()
    steps = shrink(servers, steps) if differs(servers, steps) else steps
    ours, theirs, found = replay(servers, steps)
    lines = [f"-- seed {seed}: {found or 'not reproducible'}"]
    lines += [f"{ours_text};" for ours_text, _, _ in steps]
    return "\n".join(lines) + f"\n--   {servers[0].name}: {ours}\n--   {servers[1].name}: {theirs}\n"


def run_episode(servers, seed, count):
    """Runs one episode. Returns the number of statements and the report of a difference or None."""
    episode = Episode(seed)
    start(servers)
    sent = 0
    while sent < count:
        episode.next()
        step = episode.steps[-1]
        ours, theirs, found = send(servers, step)
        sent += 1
        if found is None and ours.kind == "error" and sent == 1:
            return sent, None
        if found is None:
            continue
        if is_known(step[0], ours, theirs, found):
            if ours.kind != theirs.kind or " RETURNING " in step[0]:
                return sent, None
            continue
        return sent, report(servers, seed, episode.steps)
    for text in episode.generator.wholes():
        whole = (text, text, frozenset())
        if send(servers, whole)[2] is not None:
            return sent, report(servers, seed, episode.steps + [whole])
    return sent, None


def work(options, number, reports):
    """Runs the episodes of one worker, on every n-th seed for n workers, until it has sent its share of
    statements."""
    pairs = [
        [Server("junctor", options.junctor, found), Server("mariadb", options.mariadb, found)] for found in (False, True)
    ]
    for server in pairs[0] + pairs[1]:
        server.database = DATABASE.format(number)
    seed, sent = options.seed + number, 0
    while sent < options.statements / options.workers:
        # For every third seed, the clients count found rows instead of changed rows.
        servers = pairs[seed % 3 == 0]
        count, found = run_episode(servers, seed, EPISODE_STATEMENTS)
        for server in servers:
            # Otherwise the other pair of connections would wait for the locks of this transaction.
            server.run("ROLLBACK")
        sent += count
        reports.put((count, found))
        seed += options.workers
    for server in pairs[0] + pairs[1]:
        server.run("ROLLBACK")
        server.run(f"DROP DATABASE IF EXISTS {server.database}")
    reports.put(None)


def run_workers(work, options, what):
    """Runs `work` in separate processes and prints their reports. Returns the exit status."""
    reports = multiprocessing.Queue()
    start = time.monotonic()
    workers = [
        multiprocessing.Process(target=work, args=(options, number, reports), daemon=True)
        for number in range(options.workers)
    ]
    for worker in workers:
        worker.start()
    running, sent, differing = len(workers), 0, 0
    while running > 0:
        try:
            report = reports.get(timeout=10)
        except queue.Empty:
            if any(worker.is_alive() for worker in workers):
                continue
            print("the workers ended early", file=sys.stderr)
            return 1
        if report is None:
            running -= 1
            continue
        count, found = report
        sent += count
        if found:
            differing += 1
            print(found, flush=True)
            if not options.keep_going:
                break
    per_hour = sent / max(time.monotonic() - start, 0.001) * 3600
    print(f"{sent} {what} from seed {options.seed}, {per_hour:,.0f} per hour: {differing} episodes differ")
    return 1 if differing else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--statements", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--junctor", type=int, required=True, metavar="PORT")
    parser.add_argument("--mariadb", type=int, required=True, metavar="PORT")
    parser.add_argument("--keep-going", action="store_true", help="continue after a difference")
    return run_workers(work, parser.parse_args(), "statements")


if __name__ == "__main__":
    sys.exit(main())
