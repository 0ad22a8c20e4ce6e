#!/usr/bin/env python3
"""Sends the same random statements to Junctor and to MariaDB and compares the answers. The statements depend on the seed
alone. A difference is printed as the shortest script found that still shows it.

    python3 compare.py --junctor PORT --mariadb PORT [--seed N] [--statements N] [--keep-going]

Needs PyMySQL. Both servers must let root in without a password over the loopback. Ends with 1 when something differs."""

import argparse
import random
import sys

from known import is_known
from outcome import Server, difference
from statements import Generator

EPISODE_STATEMENTS = 60
DATABASE = "differential"


class Episode:
    """A schema and the statements sent to it; each is (ours, theirs, words)."""

    def __init__(self, seed):
        self.generator = Generator(random.Random(seed))
        ours, theirs = self.generator.create()
        self.steps = [(ours, theirs, frozenset())]

    def next(self):
        statement, words = self.generator.statement()
        self.steps.append((statement, statement, frozenset(words)))


def start(servers):
    for server in servers:
        server.run("ROLLBACK")
        server.run(f"DROP DATABASE IF EXISTS {DATABASE}")
        server.run(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        server.run(f"USE {DATABASE}")


def send(servers, step):
    ours, theirs = servers[0].run(step[0]), servers[1].run(step[1])
    return ours, theirs, difference(ours, theirs, step[2])


def replay(servers, steps):
    """Whether the last of the steps, sent after the others, still differs, and how."""
    start(servers)
    for step in steps[:-1]:
        servers[0].run(step[0])
        servers[1].run(step[1])
    return send(servers, steps[-1])


def shrink(servers, steps):
    """Leaves out steps as long as the last one still differs."""
    kept = list(steps)
    size = max(1, len(kept) // 2)
    while size >= 1:
        position = 1
        while position < len(kept) - 1:
            tried = kept[:position] + kept[min(position + size, len(kept) - 1):]
            if replay(servers, tried)[2] is not None:
                kept = tried
            else:
                position += size
        size //= 2
    return kept


def report(servers, seed, steps):
    for server in servers:
        if server.run("SELECT 1").kind == "lost":
            server.connect()
    steps = shrink(servers, steps) if replay(servers, steps)[2] is not None else steps
    ours, theirs, found = replay(servers, steps)
    print(f"-- seed {seed}: {found or 'seen once, not again'}")
    for ours_text, _, _ in steps:
        print(f"{ours_text};")
    print(f"--   {servers[0].name}: {ours}\n--   {servers[1].name}: {theirs}\n", flush=True)


def run_episode(servers, seed, count):
    """Runs one episode; gives the number of statements and whether they agreed."""
    episode = Episode(seed)
    start(servers)
    sent = 0
    while sent < count:
        if sent > 0:
            episode.next()
        step = episode.steps[-1]
        ours, theirs, found = send(servers, step)
        sent += 1
        if found is None and ours.kind == "error" and sent == 1:
            return sent, True
        if found is None:
            continue
        if is_known(step[0], ours, theirs, found):
            if ours.kind != theirs.kind:
                return sent, True
            continue
        report(servers, seed, episode.steps)
        return sent, False
    whole = ("SELECT * FROM t", "SELECT * FROM t", frozenset())
    if send(servers, whole)[2] is not None:
        report(servers, seed, episode.steps + [whole])
        return sent, False
    return sent, True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--statements", type=int, default=2000)
    parser.add_argument("--junctor", type=int, required=True, metavar="PORT")
    parser.add_argument("--mariadb", type=int, required=True, metavar="PORT")
    parser.add_argument("--keep-going", action="store_true", help="go on after a difference")
    options = parser.parse_args()
    servers = [Server("junctor", options.junctor), Server("mariadb", options.mariadb)]
    seed, sent, differing = options.seed, 0, 0
    while sent < options.statements:
        count, agreed = run_episode(servers, seed, EPISODE_STATEMENTS)
        sent += count
        differing += not agreed
        if not agreed and not options.keep_going:
            break
        seed += 1
    start(servers)
    print(f"{sent} statements, seeds {options.seed} to {seed}: {differing} episodes differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
