#!/usr/bin/env python3
"""A record of differences, one JSON object a line, from which excuses.py judges them again without servers.

    python3 record.py FILE [--examples N] [--reason TEXT]

It prints the counts of the reasons, and the differences that have none any more, or the first N with a reason that
contains TEXT. A line has the seed of the episode, the difference with its column and row, the reason, the statement
as a tree, and both outcomes; or the message of a refusal with its statement."""

import argparse
import collections
import json
import sys

from compare import Difference
from tree import Form, Literal, Many, Statement, Words
from wire import Outcome

FIELD = ("name", "org_name", "table_name", "type_code", "charsetnr", "length", "scale", "flags")


class Field:
    """The description of a column."""

    def __init__(self, values):
        for name, value in zip(FIELD, values):
            setattr(self, name, value)


def packed_parameter(parameter):
    if parameter is None:
        return None
    kind, value = parameter
    return [kind, value.decode("latin-1"), True] if isinstance(value, bytes) else [kind, value, False]


def packed(node):
    """A tree as lists."""
    if isinstance(node, Literal):
        return ["L", node.text, packed_parameter(node.parameter), node.family, node.sent]
    if isinstance(node, Words):
        return ["W", node.text, node.fixed, node.family]
    children = [packed(child) for child in node.children()]
    if isinstance(node, Many):
        return ["M", children, node.separator, node.least]
    return ["F", node.pattern, children, node.name, node.whole, getattr(node, "family", None)]


def unpacked(lists):
    kind, *rest = lists
    if kind == "L":
        text, parameter, family, sent = rest
        if parameter is not None:
            parameter = (parameter[0], parameter[1].encode("latin-1") if parameter[2] else parameter[1])
        node = Literal(text, parameter, family)
        node.sent = sent
        return node
    if kind == "W":
        return Words(*rest)
    if kind == "M":
        return Many([unpacked(child) for child in rest[0]], *rest[1:])
    node = Form(rest[0], [unpacked(child) for child in rest[1]], rest[2], rest[3])
    node.family = rest[4]
    return node


def packed_statement(statement):
    sources = {name: packed(source) for name, source in statement.sources.items()}
    return [packed(statement.root), statement.prepared, sorted(statement.check), sorted(statement.features), statement.theirs, statement.kinds, sources]


def unpacked_statement(lists):
    root, prepared, check, features, theirs, kinds, sources = lists
    return Statement(unpacked(root), prepared, check, features, theirs, kinds, {name: unpacked(source) for name, source in sources.items()})


def packed_outcome(outcome):
    fields = [[getattr(field, name) for name in FIELD] for field in outcome.fields]
    rows = [[None if value is None else value.decode("latin-1") for value in row] for row in outcome.rows]
    return [outcome.kind, outcome.number, outcome.message, fields, rows, outcome.affected, outcome.warning_count, outcome.warnings, outcome.texts]


def unpacked_outcome(lists):
    kind, number, message, fields, rows, affected, count, warnings, texts = lists
    rows = [tuple(None if value is None else value.encode("latin-1") for value in row) for row in rows]
    outcome = Outcome(kind, number, message, [Field(values) for values in fields], rows, affected, count)
    outcome.warnings, outcome.texts = [tuple(pair) for pair in warnings], texts
    return outcome


def line(seed, reason, found, statement, ours, theirs):
    """The line of a difference with a reason."""
    return json.dumps({
        "seed": seed, "reason": reason, "text": found.text, "column": found.column, "row": found.row,
        "statement": packed_statement(statement), "ours": packed_outcome(ours), "theirs": packed_outcome(theirs),
    })


def refusal(seed, message, statement):
    """The line of a statement that Junctor refuses."""
    return json.dumps({"seed": seed, "refused": message, "statement": statement.text()})


def read(path):
    """The differences of a record: the whole entry, the difference, the statement and both outcomes."""
    with open(path, encoding="utf-8") as file:
        for text in file:
            try:
                entry = json.loads(text)
            except ValueError:
                continue  # a line that is being written
            if "refused" not in entry:
                found = Difference(entry["text"], entry["column"], entry["row"])
                yield entry, found, unpacked_statement(entry["statement"]), unpacked_outcome(entry["ours"]), unpacked_outcome(entry["theirs"])


def shown(entry, found, statement, ours, theirs):
    text, parameters = statement.sent()
    part = found.concerns(statement, ours, theirs)[0]
    kinds = {name: kind for name, kind in statement.kinds.items()}
    lines = [f"-- seed {entry['seed']}, {entry['reason']}: {found.text[:300]}", f"{text};" + (f"  -- {parameters}" if parameters is not None else "")]
    lines += [f"--   of: {part.text()[:300]}", f"--   columns: {kinds}", f"--   junctor: {ours}", f"--   mariadb: {theirs}"]
    return "\n".join(lines) + "\n"


def main():
    from excuses import excuse

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--examples", type=int, default=0)
    parser.add_argument("--reason")
    parser.add_argument("--all", action="store_true", help="print each difference without a reason, not the first ten of an old reason")
    options = parser.parse_args()
    counts, lost, printed = collections.Counter(), collections.Counter(), 0
    for entry, found, statement, ours, theirs in read(options.file):
        if options.reason is not None:
            if options.reason in entry["reason"] and printed < options.examples:
                printed += 1
                print(shown(entry, found, statement, ours, theirs))
            continue
        reason = excuse(found.text, *found.concerns(statement, ours, theirs))
        counts[reason] += 1
        if reason is None:
            lost[entry["reason"]] += 1
            if options.all or lost[entry["reason"]] <= 10:
                print(shown(entry, found, statement, ours, theirs))
    for reason, count in counts.most_common():
        print(f"{count:7} {reason}")
    for reason, count in lost.most_common():
        print(f"{count:7} without a reason now, before: {reason}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
