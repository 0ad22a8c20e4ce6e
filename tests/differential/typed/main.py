#!/usr/bin/env python3
"""Sends random statements over every type and function to Junctor and MariaDB, as text and prepared, and
compares the answers. A difference is printed as the smallest script found.

    python3 main.py --junctor PORT --mariadb PORT [--seed N] [--statements N] [--seconds N] [--keep-going]

With `--examples N`, it also prints N differences for each reason, to judge whether a reason is too wide.
With `--record FILE`, it writes each difference with a reason into a file, which record.py judges again.

Requires PyMySQL. The exit status is 1 if a difference has no reason in excuses.py."""

import argparse
import collections
import multiprocessing
import queue
import random
import re
import sys
import time
from pathlib import Path

from pymysql.constants import FIELD_TYPE

from compare import Difference, differences, signature
from episode import Episode, plain
from excuses import excuse
from functions import LEFT_OUT, SIGNATURES
from record import line, refusal
from shapes import leaves
from tree import Form, Many, Words
from wire import Server

REFUSED = 1235
# What Junctor refuses, and the words of docs/compatibility.md that say so. Another refusal is a difference.
REFUSALS = {"bit aggregates of binary strings": "Binary strings in BIT_AND, BIT_OR and BIT_XOR are error 1235"}
COMPATIBILITY = Path(__file__).parents[3] / "docs/compatibility.md"
# Errors of statements that lack what another one makes.
UNKNOWN = {1054, 1146, 3820}
FORM = "a document has the form of its type as a text, and is as it was written in MariaDB"
EPISODE_STATEMENTS = 120
SHRINKS_MAX = 80
PROGRESS_SECONDS = 60
# Maximum length of a difference that is recorded.
RECORDED_MAX = 20_000
REGISTRY = Path(__file__).parents[3] / "docs/generated/functions.md"


def is_listed(message):
    """Whether a refusal is one that docs/compatibility.md lists."""
    return any(f"'{refused}'" in message for refused in REFUSALS)


def send(servers, statement):
    """Sends a statement to both and returns their answers and the differences. What Junctor refuses by its
    documentation is not sent to MariaDB."""
    text, parameters = statement.sent()
    ours = servers[0].run(text, parameters)
    if ours.kind == "error" and ours.number == REFUSED and is_listed(ours.message):
        return ours, None, []
    # MariaDB computes a VIRTUAL column when it is read, MySQL when it is written, too.
    theirs = servers[1].run(statement.theirs or text.replace(") VIRTUAL", ") STORED"), parameters)
    return ours, theirs, differences(ours, theirs, statement)


def is_grave(found, steps):
    """Whether a difference is a lost connection, or concerns a stored value or the description of a column in an
    episode that has used no function and changed no column so far."""
    is_plain = not any(step.names() or "alter" in step.features for step in steps)
    return found.kind == "lost" or is_plain and found.kind not in ("kind", "error", "warnings", "affected")


def whole(columns, cause=None):
    """Reads all columns of the table, also invisible ones, after a write, which is the cause of a difference."""
    statement = plain("SELECT " + ", ".join(["id"] + [column.name for column in columns]) + " FROM t ORDER BY id")
    statement.cause = cause
    return statement


def judge(found, cause, ours, theirs, recorded=None):
    """The differences without a reason, and the reasons of the others, each once. `recorded` gets all of these."""
    unexplained, reasons = [], {}
    for each in found:
        reason = excuse(each.text, *each.concerns(cause, ours, theirs))
        if reason is None:
            unexplained.append(each)
        else:
            reasons.setdefault(reason, each)
            if recorded is not None:
                recorded.append((reason, each, cause, ours, theirs))
    return unexplained, reasons


def explained(servers, cause, recorded=None):
    """The reasons why the expressions that a write stores have other values, if all such differences have one."""
    query = cause.computed() if "write" in cause.features else None
    if query is None:
        return {}
    ours, theirs, found = send(servers, query)
    unexplained, reasons = judge([each for each in found if each.kind != "name"], query, ours, theirs, recorded)
    inner = explained_by_operands(servers, unexplained, query, ours, theirs, recorded) if unexplained else {}
    return {} if unexplained and not inner else {**reasons, **inner}


def explained_by_operands(servers, unexplained, cause, ours, theirs, recorded=None):
    """The reasons why operands have other values, if each unexplained value of a query has such an operand, and no
    operand differs without a reason."""
    if "write" in cause.features or any(each.kind not in ("value", "rows") for each in unexplained):
        return {}
    found_reasons = {}
    for each in unexplained:
        reasons = reasons_of_operands(servers, each.concerns(cause, ours, theirs)[0].root, cause, recorded)
        if not reasons:
            return {}
        found_reasons.update(reasons)
    return found_reasons


def reasons_of_operands(servers, node, cause, recorded):
    """The reasons of the differences of the operands of a form; none if one differs without a reason."""
    reasons = {}
    for operand in forms_of(node):
        has_rows = "FROM t" in cause.text() or any(isinstance(leaf, Words) and leaf.family is not None for leaf in leaves(operand))
        query = cause.with_root(Form(f"SELECT {{}}{' FROM t ORDER BY id' if has_rows else ''}", [Many([operand])], whole=True))
        query.features = frozenset(["rows"])
        ours, theirs, found = send(servers, query)
        rest, known = judge([one for one in found if one.kind != "name"], query, ours, theirs, recorded)
        deeper = reasons_of_operands(servers, operand, cause, recorded) if rest else {}
        if rest and not deeper:
            return {}
        if not found and theirs is not None and has_other_form(ours, theirs):
            reasons[FORM] = Difference(f"value: {FORM}", 0, 0)
        # A warning makes no other value.
        reasons.update({reason: one for reason, one in known.items() if one.kind != "warnings"})
        reasons.update(deeper)
    return reasons


def has_other_form(ours, theirs):
    """Whether equal documents have other texts."""
    return ours.kind == "rows" and ours.rows != theirs.rows and ours.fields[0].type_code == FIELD_TYPE.JSON


def forms_of(node):
    """The outermost functions and operators within an expression."""
    found, open_nodes = [], list(node.children())
    while open_nodes:
        part = open_nodes.pop()
        if isinstance(part, Form):
            found.append(part)
        else:
            open_nodes += part.children()
    return found


def explained_by_documents(servers, unexplained, cause, ours, theirs, recorded=None):
    """The reasons why the JSON functions within expressions have other values, if each unexplained difference has such
    a function, and none of these differs without a reason."""
    found_reasons = {}
    source = " FROM t ORDER BY id" if re.search(r"\bFROM t\b|^UPDATE ", cause.text()) else ""
    for each in unexplained:
        part = each.concerns(cause, ours, theirs)[0]
        reasons = reasons_of_documents(servers, documents_of(part.root), cause, source, recorded)
        if not reasons:
            return {}
        found_reasons.update(reasons)
    return found_reasons


def reasons_of_documents(servers, documents, cause, source, recorded):
    """The reasons of the differences of JSON functions; none if one differs without a reason."""
    reasons = {}
    for node in documents:
        has_column = any(isinstance(leaf, Words) and leaf.family is not None for leaf in leaves(node))
        rows = " FROM t ORDER BY id" if has_column else source
        query = cause.with_root(Form(f"SELECT {{}}{rows}", [Many([node])], whole=True))
        query.features = frozenset(["rows"])
        ours, theirs, found = send(servers, query)
        if ours.kind == "rows" and theirs is not None and not found and ours.rows != theirs.rows:
            reasons[FORM] = Difference(f"value: {FORM}", 0, 0)
        rest, known = judge([one for one in found if one.kind != "name"], query, ours, theirs, recorded)
        deeper = reasons_of_documents(servers, documents_of(node), cause, source, recorded) if rest else {}
        if rest and not deeper:
            return {}
        reasons.update(known)
        reasons.update(deeper)
    return reasons


def documents_of(root):
    """The outermost JSON functions within an expression."""
    found, open_nodes = [], list(root.children())
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, Form) and (node.name or "").startswith("JSON_"):
            found.append(node)
        else:
            open_nodes += node.children()
    return found


def explained_alone(servers, statement, unexplained, recorded=None):
    """The reasons of the warnings or the error of a query, if each of its expressions alone has one or does not differ."""
    root = statement.root
    is_list = isinstance(root, Form) and root.pattern.startswith("SELECT {}") and len(root.operands[0].items) > 1
    if not is_list or any(each.kind not in ("warnings", "error") for each in unexplained):
        return {}
    found_reasons = {}
    for each in unexplained:
        if each.kind == "error":
            found_reasons["which of several errors of a query is first"] = each
    for item in root.operands[0].items:
        query = statement.with_root(Form(root.pattern, [Many([item]), *root.operands[1:]], root.name, root.whole))
        ours, theirs, found = send(servers, query)
        rest, reasons = judge(found, query, ours, theirs, recorded)
        if rest:
            return {}
        found_reasons.update(reasons)
    return found_reasons


def other_reasons(servers, cause, unexplained, ours, theirs, recorded=None):
    """The reasons of differences that have none of their own, found by more queries."""
    return (
        explained(servers, cause, recorded) or explained_alone(servers, cause, unexplained, recorded)
        or explained_by_documents(servers, unexplained, cause, ours, theirs, recorded)
        or explained_by_operands(servers, unexplained, cause, ours, theirs, recorded)
    )


def replay(servers, steps):
    """The answers to the last step and its first difference without a reason, or `None`."""
    for server in servers:
        server.run("DROP TABLE IF EXISTS t")
    for step in steps[:-1]:
        send(servers, step)
    last = steps[-1]
    ours, theirs, found = send(servers, last)
    if theirs is None:
        return None
    cause = last
    if last.cause is not None:
        cause = next((step for step in reversed(steps) if "write" in step.features), last)
    unexplained, _ = judge(found, cause, ours, theirs)
    if not unexplained or other_reasons(servers, cause, unexplained, ours, theirs):
        return None
    return ours, theirs, unexplained[0]


def shrink(servers, steps, kind):
    """Drops steps and makes statements smaller while a difference of the same kind remains."""
    tries = 0

    def differs(tried):
        nonlocal tries
        tries += 1
        result = replay(servers, tried)
        return result is not None and result[2].kind == kind and result[0].number not in UNKNOWN

    if not differs(steps):
        return steps
    size = max(1, len(steps) // 2)
    while size >= 1 and tries < SHRINKS_MAX:
        position = 0
        while position < len(steps) - 1 and tries < SHRINKS_MAX:
            tried = steps[:position] + steps[min(position + size, len(steps) - 1):]
            if differs(tried):
                steps = tried
            else:
                position += size
        size //= 2
    changed = True
    while changed and tries < SHRINKS_MAX:
        changed = False
        for position in range(len(steps) - 1, -1, -1):
            for variant in steps[position].variants():
                if tries >= SHRINKS_MAX:
                    break
                tried = steps[:position] + [variant] + steps[position + 1:]
                if differs(tried):
                    steps, changed = tried, True
                    break
    return steps


def shown(statement):
    text, parameters = statement.sent()
    return f"{text};" + (f"  -- prepared with {parameters}" if parameters is not None else "")


def report(servers, seed, steps, found):
    """The report of a difference, and its signature."""
    for server in servers:
        if server.run("DO 0").kind == "lost":
            server.connect()
            server.use()
    steps = shrink(servers, steps, found.kind)
    result = replay(servers, steps)
    if result is None:
        return f"-- seed {seed}: not reproducible: {found.text[:300]}\n" + "\n".join(shown(step) for step in steps), "not reproducible"
    ours, theirs, found = result
    lines = [f"-- seed {seed}: {found.text[:300]}"] + [shown(step) for step in steps]
    lines += [f"--   {server.name}: {outcome}" for server, outcome in zip(servers, (ours, theirs))]
    return "\n".join(lines) + "\n", signature(found.text, found.concerns(steps[-1], ours, theirs)[0])


class Tally:
    """What a worker saw."""

    def __init__(self):
        self.sent, self.differing, self.grave = 0, 0, 0
        self.refused, self.excused, self.found = (collections.Counter() for _ in range(3))
        self.examples, self.recorded, self.refusals = [], [], []

    def excuse(self, reason, found, cause, ours, theirs):
        """Counts a difference with a reason."""
        self.excused[reason] += 1
        self.examples.append((reason, found, cause, ours, theirs))

    def add(self, other):
        self.sent += other.sent
        self.differing += other.differing
        self.grave += other.grave
        for name in ("refused", "excused", "found"):
            getattr(self, name).update(getattr(other, name))


def unstable_definition(server):
    """The texts of SHOW CREATE TABLE of a table and of one that the first text defines, if they differ."""
    shown = server.run("SHOW CREATE TABLE t")
    if shown.kind != "rows":
        return None
    text = shown.rows[0][1]
    text = text.decode() if isinstance(text, bytes) else text
    other = f"{server.database}_again"
    server.run(f"CREATE DATABASE IF NOT EXISTS {other} CHARACTER SET latin1")
    server.run(f"DROP TABLE IF EXISTS {other}.t")
    made = server.run(text.replace("CREATE TABLE `t`", f"CREATE TABLE {other}.t", 1))
    again = server.run(f"SHOW CREATE TABLE {other}.t")
    if made.kind != "ok" or again.kind != "rows":
        return f"{text}\n-- {made}"
    second = again.rows[0][1]
    second = second.decode() if isinstance(second, bytes) else second
    return None if second == text else f"{text}\n-- defines\n{second}"


def run_episode(servers, seed, seen):
    """Runs one episode. Returns its tally and its reports."""
    episode, tally, reports, steps = Episode(random.Random(seed)), Tally(), [], []
    for server in servers:
        server.run("DROP TABLE IF EXISTS t")
    setup, has_tiny, has_logarithm = list(episode.setup()), False, False
    while tally.sent < EPISODE_STATEMENTS:
        is_setup = bool(setup)
        statement = setup.pop(0) if setup else episode.next()
        steps.append(statement)
        cause = statement
        # An angle beside the greatest double is near 0, too.
        has_tiny = has_tiny or "e-320" in statement.text() or bool(re.search(r"ATAN2?\([^()]*, *-?1\.797e308\)", statement.text()))
        has_logarithm = has_logarithm or "LOG2(" in statement.text()
        if has_tiny:
            statement.features |= {"tiny"}
        if has_logarithm:
            statement.features |= {"logarithm"}
        ours, theirs, found = send(servers, statement)
        tally.sent += 1
        creates = "create" in statement.features
        if "alter" in statement.features and ours.kind == "error":
            episode.refuse_change()
        if creates and ours.kind == "ok":
            # Both servers get quotes as in the default mode.
            servers[0].run("SET @mode = @@sql_mode, SESSION sql_mode = ''")
            unstable = unstable_definition(servers[0])
            servers[0].run("SET SESSION sql_mode = @mode")
            if unstable is not None:
                tally.differing += 1
                tally.found["SHOW CREATE TABLE"] += 1
                return tally, [f"-- seed {seed}: SHOW CREATE TABLE\n{unstable}\n"]
        if theirs is None:
            tally.refused[re.sub(r"'[^']*'|\d+", "_", ours.message) if "FUNCTION" not in ours.message else ours.message] += 1
            tally.refusals.append(refusal(seed, ours.message, statement))
            steps.pop()
            if creates:
                break
            continue
        if not found:
            if ours.kind == "error":
                if creates:
                    break
                steps.pop()
            elif "write" not in statement.features and not is_setup:
                steps.pop()
            elif "write" in statement.features:
                # The write explains a difference of what is stored: a function, a value that did not fit, or the
                # type before.
                statement = whole(episode.columns, cause)
                ours, theirs, found = send(servers, statement)
                tally.sent += 1
                steps += [statement] if found else []
            if not found:
                continue
        unexplained, reasons = judge(found, cause, ours, theirs, tally.recorded)
        for reason, each in reasons.items():
            tally.excuse(reason, each, cause, ours, theirs)
        if unexplained:
            by_value = other_reasons(servers, cause, unexplained, ours, theirs, tally.recorded)
            for reason, each in by_value.items():
                tally.excuse(reason, each, cause, ours, theirs)
            unexplained = [] if by_value else unexplained
        if unexplained:
            found = unexplained[0]
            tally.differing += 1
            tally.grave += is_grave(found, steps)
            rough = signature(found.text, found.concerns(cause, ours, theirs)[0])
            seen[rough] += 1
            if seen[rough] > 2:
                tally.found[rough] += 1
            else:
                text, exact = report(servers, seed, list(steps), found)
                seen[exact] += 1
                tally.found[exact] += 1
                if seen[exact] <= 1 or exact == rough and seen[exact] <= 3:
                    reports.append(text)
                return tally, reports  # the session's state is that of the replay
        is_kind = ours.kind != theirs.kind
        if statement.cause is not None or is_kind and statement.features & {"create", "alter"} or "lost" in (ours.kind, theirs.kind):
            break
        if "write" in statement.features:
            if send(servers, whole(episode.columns))[2]:
                break
        elif not is_setup:
            steps.pop()
    return tally, reports


def examples(tally, shown_reasons, most):
    """The texts of the first differences of each reason. The tally has none afterwards."""
    texts = []
    for reason, found, statement, ours, theirs in tally.examples:
        shown_reasons[reason] += 1
        if shown_reasons[reason] <= most:
            lines = [f"-- {reason}: {found.text[:300]}", shown(statement), f"--   junctor: {ours}", f"--   mariadb: {theirs}"]
            texts.append("\n".join(lines) + "\n")
    tally.examples = []
    return texts


def write_record(tally, seed, file):
    """Writes the differences with a reason and the refusals of an episode. The tally has none afterwards."""
    if file is not None:
        for text in [line(seed, *each) for each in tally.recorded if len(each[1].text) < RECORDED_MAX] + tally.refusals:
            file.write(text + "\n")
        file.flush()
    tally.recorded, tally.refusals = [], []


def work(options, worker, reports):
    database = f"typed_{options.seed}_{worker}"
    servers = [Server("junctor", options.junctor, database), Server("mariadb", options.mariadb, database)]
    for server in servers:
        server.use()
    shown_reasons = collections.Counter()
    file = open(f"{options.record}.{worker}", "a", encoding="utf-8") if options.record else None
    seed, sent, seen, end = options.seed + worker, 0, collections.Counter(), time.monotonic() + options.seconds
    while sent < options.statements / options.workers and time.monotonic() < end:
        tally, found = run_episode(servers, seed, seen)
        sent += tally.sent
        write_record(tally, seed, file)
        reports.put((tally, found + examples(tally, shown_reasons, options.examples)))
        seed += options.workers
        if any(server.run("DO 0").kind == "lost" for server in servers):
            for server in servers:
                server.connect()
                server.use()
    for server in servers:
        server.run(f"DROP DATABASE IF EXISTS {server.database}")
    reports.put(None)


def check_registry():
    """Every function of the registry is drawn or left out with a reason."""
    names = set(re.findall(r"^\| ([A-Z0-9_]+) \|", REGISTRY.read_text(), re.MULTILINE))
    missing = names - set(SIGNATURES) - set(LEFT_OUT)
    if missing:
        sys.exit(f"functions.py has no signature and no reason for: {', '.join(sorted(missing))}")
    listed = re.sub(r"\s+", " ", COMPATIBILITY.read_text())
    unlisted = [words for words in REFUSALS.values() if words not in listed]
    if unlisted:
        sys.exit(f"docs/compatibility.md does not say: {', '.join(unlisted)}")
    return len(names & set(SIGNATURES))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--statements", type=int, default=20000)
    parser.add_argument("--seconds", type=int, default=10**6, help="end after this time")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--junctor", type=int, required=True, metavar="PORT")
    parser.add_argument("--mariadb", type=int, required=True, metavar="PORT")
    parser.add_argument("--keep-going", action="store_true", help="continue after a difference")
    parser.add_argument("--examples", type=int, default=0, metavar="N", help="print N differences of each reason and worker")
    parser.add_argument("--record", metavar="FILE", help="append the differences with a reason to FILE.0, FILE.1 ..., one for each worker")
    parser.add_argument("--summary", action="store_true", help="print what was refused, excused and found, with counts")
    options = parser.parse_args()
    functions = check_registry()
    reports, start, total = multiprocessing.Queue(), time.monotonic(), Tally()
    workers = [multiprocessing.Process(target=work, args=(options, number, reports), daemon=True) for number in range(options.workers)]
    for worker in workers:
        worker.start()
    running, told = len(workers), start
    while running > 0:
        try:
            result = reports.get(timeout=10)
        except queue.Empty:
            if any(worker.is_alive() for worker in workers):
                continue
            print("the workers ended early", file=sys.stderr)
            return 1
        if result is None:
            running -= 1
            continue
        total.add(result[0])
        for text in result[1]:
            print(text, flush=True)
        if total.differing and not options.keep_going:
            break
        if options.record and time.monotonic() - told > PROGRESS_SECONDS:
            told = time.monotonic()
            print(f"{total.sent} statements after {told - start:.0f} s, {total.differing} differences", flush=True)
    if options.summary:
        for title, counts in (("refused", total.refused), ("excused", total.excused), ("unexplained", total.found)):
            for text, count in counts.most_common(400):
                print(f"{title:12} {count:6} {text}")
    per_hour = total.sent / max(time.monotonic() - start, 0.001) * 3600
    print(
        f"{total.sent} typed statements over {functions} functions from seed {options.seed}, {per_hour:,.0f} per hour: "
        f"{total.differing} unexplained differences, {total.grave} of them grave, {sum(total.excused.values())} with a reason, {sum(total.refused.values())} refused"
    )
    return 1 if total.differing else 0


if __name__ == "__main__":
    sys.exit(main())
