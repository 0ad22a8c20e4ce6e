#!/usr/bin/env python3
"""Sends many random queries to Junctor and MariaDB and compares the rows. Groups of queries are under way at both
servers at once. Junctor answers a share of them again: with little memory, prepared, over copies of the tables with
other partitions, without keys and with false statistics, and in three parts that a predicate divides.

    python3 main.py --junctor PORT --mariadb PORT [--seed N] [--queries N] [--seconds N] [--kinds plain,derived]

Each episode has a kind and a seed. `--episode KIND:SEED` repeats one. The exit status is 1 if answers differ."""

import argparse
import collections
import multiprocessing
import queue
import sys
import time

from connection import Connection, Lost, is_equal, is_late
from episodes import KINDS, Episode
from judge import Shrinker, contradicts, singles_agree
from mixed import for_mariadb
from queries import TABLES

# The kinds of successive episodes. Correlated queries read the most rows.
TURNS = (
    "plain", "derived", "composite", "mixed", "plain", "derived", "composite", "plain", "derived", "mixed", "composite",
    "plain", "derived", "composite", "correlated",
)
PROGRESS_SECONDS = 60
SHRUNK_MAX = 200


class Runner:
    """Runs episodes on a pair of connections."""

    def __init__(self, options, number):
        self.options = options
        self.number = number
        self.servers, self.others = [], None
        self.connect()
        self.counts = collections.Counter()
        self.shrunk = 0

    def connect(self):
        names, seconds = f"bulk_{self.number}", self.options.limit
        # A session that stays would hold locks on the tables.
        for server in self.servers + (self.others or []):
            server.close()
        self.junctor = Connection("junctor", self.options.junctor, names, seconds)
        self.mariadb = Connection("mariadb", self.options.mariadb, names, seconds)
        self.servers, self.others = [self.junctor, self.mariadb], None

    def run(self, kind, seed):
        """Runs an episode, and returns the texts of its differences."""
        self.found = []
        self.kind, self.place = kind, f"{kind}:{seed}"
        episode = Episode(kind, seed)
        try:
            failed = self.junctor.run_all(list(episode.for_junctor())) or self.mariadb.run_all(list(episode.for_mariadb()))
            if failed:
                self.differ("the setup failed", str(failed))
                return self.found
            self.episode = episode
            waiting = None
            for ours, theirs, group in episode.groups():
                # The next group is drawn while the servers answer.
                if waiting:
                    self.receive(*waiting)
                waiting = self.send(ours, theirs, group)
            self.receive(*waiting)
        except Lost as error:
            self.differ("a connection was lost", str(error))
            self.connect()
        return self.found

    def send(self, ours, theirs, group):
        failed = self.junctor.run_all(ours), self.mariadb.run_all(theirs)
        if failed[0] or failed[1]:
            self.differ("a change failed", f"{ours}: {failed[0]}, {failed[1]}")
        statements, places = [], []
        for query in group:
            sent, variant = query.sent()
            places.append((len(statements), variant and len(statements) + variant))
            statements += sent
        self.mariadb.send([query.theirs for query in group])
        self.junctor.send(statements)
        return group, len(statements), places

    def receive(self, group, sent, places):
        answers = [self.junctor.read() for _ in range(sent)]
        expected = [self.mariadb.read() for _ in group]
        parts = []
        for query, theirs, (place, variant) in zip(group, expected, places):
            ours = answers[place]
            self.counts[self.kind] += 1
            self.judge(query, ours, theirs)
            if variant is not None:
                refused = query.variant == "prepared" and answers[variant - 1].kind == "error"
                self.judge_variant(query, ours, answers[variant - refused], query.variant)
            part = query.parts(ours)
            if part:
                parts.append((query, ours, part))
        self.junctor.send([part for _, _, part in parts])
        for (query, ours, part), answer in zip(parts, [self.junctor.read() for _ in parts]):
            self.judge_variant(query, ours, answer, "predicate", part)

    def judge(self, query, ours, theirs):
        if is_late(ours, theirs):
            late = " and ".join(name for name, answer in (("Junctor", ours), ("MariaDB", theirs)) if is_late(answer))
            self.counts[f"late in {late}"] += 1
            if late == "Junctor":
                self.again(query.ours, theirs, "Junctor alone")
            return
        if theirs.kind == "error":
            self.counts["errors in MariaDB"] += 1
        if is_equal(ours, theirs, query.is_ordered):
            return
        if self.kind == "derived" and theirs.number == 1235:
            # MariaDB cannot test the conditions of some queries inside derived tables, and refuses them.
            self.counts["refused by MariaDB"] += 1
            return
        if "error" not in (ours.kind, theirs.kind) and singles_agree(self.junctor, self.mariadb, query, ours):
            self.counts["windows that MariaDB answers alone"] += 1
            return
        setting = contradicts(self.mariadb, query, ours, self.views()) if ours.kind == "rows" else None
        if setting:
            self.counts["MariaDB contradicts itself"] += 1
            self.found.append(("contradiction", f"{self.place}: with {setting[:70]}, MariaDB agrees: {query.theirs};"))
            return
        other = f"  for MariaDB: {query.theirs};\n" if query.ours != query.theirs else ""
        text = f"{query.ours};\n{other}  Junctor: {ours}\n  MariaDB: {theirs}"
        self.differ("MariaDB", text, query, (ours.number, theirs.number))

    def views(self):
        found = (text.split(" ", 4) for text in self.episode.tables if text.startswith("CREATE VIEW"))
        return {name: for_mariadb(definition) for _, _, name, _, definition in found}

    def again(self, text, expected, name):
        """Asks Junctor once more for what it answered too late, as on a machine with other work."""
        start = time.monotonic()
        answer = self.junctor.run(text)
        took = time.monotonic() - start
        if not is_late(answer) and not is_equal(answer, expected):
            self.differ(f"late, {name}, then", f"{text};\n  {answer}")
        elif is_late(answer):
            self.counts["late twice"] += 1
            self.found.append(("late", f"{self.place}: late, {name}, and again after {took:.2f} s: {text};"))
        elif self.options.show:
            self.found.append(("late", f"{self.place}: late, {name}, then {took:.3f} s: {text};"))

    def judge_variant(self, query, ours, answer, name, part=None):
        self.counts[f"also {name}"] += 1
        if is_late(ours, answer):
            self.counts["late variants"] += 1
            if not is_late(ours):
                self.again(part or query.ours, ours, f"variant {name}")
        elif not is_equal(ours, answer, query.is_ordered and name != "predicate"):
            asked = part or query.ours
            told = f" ({self.episode.copies})" if name == "copy" else ""
            self.differ(name, f"{asked};\n  Junctor: {ours}\n  {name}{told}: {answer}")

    def differ(self, title, text, query=None, errors=None):
        self.counts["differences"] += 1
        script = None
        if query and self.shrunk < SHRUNK_MAX and self.options.shrink:
            self.shrunk += 1
            try:
                script = self.script(query, errors)
            except Lost as error:
                script = f"a part of it ends a server: {error}"
                self.others = None
        shortest = f"\n  shortest script:\n{script}" if script else ""
        self.found.append(("difference", f"{self.place}, {title}: {text}{shortest}"))

    def script(self, query, errors):
        rows = {}
        for table in TABLES:
            answer = self.junctor.run(f"SELECT * FROM {table}")
            rows[table] = ["(" + ", ".join("NULL" if value is None else f"'{value.decode()}'" for value in row) + ")" for row in answer.values()]
        if not self.others:
            names = f"bulk_shrunk_{self.number}"
            self.others = [Connection(server.name, server.port, names, 1) for server in (self.junctor, self.mariadb)]
        return Shrinker(*self.others, self.episode, rows).script(query.ours, query.theirs, errors)


def work(options, number, results, until):
    runner = Runner(options, number)
    turns = [kind for kind in TURNS if kind in options.kinds]
    seed = options.seed + number
    step = number
    while time.monotonic() < until.value:
        kind = turns[step % len(turns)]
        runner.counts.clear()
        found = runner.run(kind, seed)
        results.put((number, dict(runner.counts), found))
        seed += options.workers
        step += 1


def report(counts, seconds, is_last=False):
    asked = sum(counts[kind] for kind in KINDS)
    kinds = ", ".join(f"{kind} {counts[kind]:,}" for kind in KINDS if counts[kind])
    others = ", ".join(f"{name}: {count:,}" for name, count in sorted(counts.items()) if name not in KINDS and name != "differences")
    print(f"{asked:,} queries ({kinds}) in {seconds:.0f} s, {asked / max(seconds, 1):.0f} a second; {others}; "
          f"{counts['differences']:,} differences", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--junctor", type=int, required=True)
    parser.add_argument("--mariadb", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float, default=4, help="seconds after which a server ends a query")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--episode", help="KIND:SEED of an episode to repeat")
    parser.add_argument("--shrink", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--show", action="store_true", help="also print the queries in which MariaDB contradicts itself")
    options = parser.parse_args()
    options.kinds = options.kinds.split(",")
    counts = collections.Counter()
    start = time.monotonic()
    setter = Connection("junctor", options.junctor, "bulk_settings", 10)
    # Statistics stay those of ANALYZE, right or wrong, so that an episode does the same again.
    setter.run("SET GLOBAL innodb_stats_auto_recalc = OFF")
    version = setter.run("SELECT VERSION()").values()[0][0].decode()
    print(f"Junctor {version}, from seed {options.seed}", flush=True)

    def take(found):
        for name, text in found:
            if name != "contradiction" or options.show:
                print(text, flush=True)

    if options.episode:
        kind, seed = options.episode.split(":")
        runner = Runner(options, 0)
        take(runner.run(kind, int(seed)))
        report(runner.counts, time.monotonic() - start)
        sys.exit(1 if runner.counts["differences"] else 0)
    results = multiprocessing.Queue()
    until = multiprocessing.Value("d", start + options.seconds)
    workers = [multiprocessing.Process(target=work, args=(options, number, results, until)) for number in range(options.workers)]
    for worker in workers:
        worker.start()
    told = start
    while any(worker.is_alive() for worker in workers) or not results.empty():
        try:
            _, more, found = results.get(timeout=1)
        except queue.Empty:
            continue
        counts.update(more)
        take(found)
        if sum(counts[kind] for kind in KINDS) >= options.queries or counts["differences"] and not options.keep_going:
            until.value = 0
        if time.monotonic() - told > PROGRESS_SECONDS:
            told = time.monotonic()
            report(counts, told - start)
    report(counts, time.monotonic() - start)
    setter.run("SET GLOBAL innodb_stats_auto_recalc = DEFAULT")
    has_failed = any(worker.exitcode for worker in workers)
    sys.exit(1 if counts["differences"] or has_failed else 0)


if __name__ == "__main__":
    main()
