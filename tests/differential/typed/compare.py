"""How two outcomes differ."""

import json
import re

from pymysql.constants import FIELD_TYPE

# NOT_NULL, BLOB, UNSIGNED, ZEROFILL, BINARY, ENUM, AUTO_INCREMENT, SET: what clients decide by.
COLUMN_FLAGS = 1 | 16 | 32 | 64 | 128 | 256 | 512 | 2048
UNSIGNED = 32
INTEGERS = {FIELD_TYPE.TINY, FIELD_TYPE.SHORT, FIELD_TYPE.INT24, FIELD_TYPE.LONG, FIELD_TYPE.LONGLONG}
STRINGS = {FIELD_TYPE.VAR_STRING, FIELD_TYPE.STRING, FIELD_TYPE.VARCHAR, FIELD_TYPE.BLOB, FIELD_TYPE.TINY_BLOB, FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.LONG_BLOB}
# The number of decimals of texts in MySQL.
TEXT_SCALE = 31
UTF8MB4 = {45, 46, 224, 255}
FLOATS = {FIELD_TYPE.FLOAT: 1e-5, FIELD_TYPE.DOUBLE: 1e-12}
# The error of a CHECK constraint in MySQL and in MariaDB.
CHECK_VIOLATED, CHECK_VIOLATED_MARIADB = 3819, 4025
# Errors of assignments to columns.
VALUE_ERRORS = {1048, 1062, 1264, 1265, 1292, 1364, 1365, 1366, 1367, 1406, 1411, 1441, 1690, 1416, 3140, 3141, 3819, 4025}
NAMES = {value: name.lower() for name, value in vars(FIELD_TYPE).items() if isinstance(value, int)}


class Difference:
    """One line, which begins with the kind of the difference and a colon. `column` is the position of the column that
    differs, `row` that of the row, if the difference concerns one."""

    def __init__(self, text, column=None, row=None):
        self.text, self.column, self.row = text, column, row
        self.kind = text.partition(":")[0]

    def __str__(self):
        return self.text

    def concerns(self, statement, ours, theirs):
        """What the difference concerns: the expression or the assignment of the column, and the column's values."""
        if self.column is None:
            return statement.with_sources(), ours, theirs
        key = ours.rows[self.row][0] if self.row is not None else None
        return statement.part(self.column, ours.fields[self.column].name, key), ours.only(self.column), theirs.only(self.column)


def differences(ours, theirs, statement):
    """The differences of two answers."""
    if "lost" in (ours.kind, theirs.kind):
        return [Difference(f"lost: ours {ours.kind}, theirs {theirs.kind}")]
    if ours.kind != theirs.kind:
        return [Difference(f"kind: {told(ours)}, theirs {told(theirs)}")]
    if ours.kind == "error":
        # The servers may report different ones first of several wrong values.
        if (ours.number, theirs.number) == (CHECK_VIOLATED, CHECK_VIOLATED_MARIADB):
            return []
        several = statement.assignments() > 1 and {ours.number, theirs.number} <= VALUE_ERRORS
        return [] if ours.number == theirs.number or several else [Difference(f"error: {ours.number}, theirs {theirs.number}")]
    if ours.kind == "ok" and ours.affected != theirs.affected:
        return [Difference(f"affected: {ours.affected}, theirs {theirs.affected}")]
    if len(ours.rows) != len(theirs.rows):
        return [Difference(f"rows: {len(ours.rows)}, theirs {len(theirs.rows)}")]
    if len(ours.fields) != len(theirs.fields):
        return [Difference(f"columns: {len(ours.fields)}, theirs {len(theirs.fields)}")]
    found = list(rows_differences(ours, theirs, statement))
    for column, pair in enumerate(zip(ours.fields, theirs.fields)):
        text = field_difference(*pair, statement)
        if text is not None:
            found.append(Difference(text, column))
    text = warnings_difference(ours, theirs)
    return found + [Difference(text)] if text is not None else found


def told(outcome):
    return f"error {outcome.number}" if outcome.kind == "error" else outcome.kind


def class_of(field):
    kind = field.type_code
    if kind in INTEGERS:
        return "unsigned integer" if field.flags & UNSIGNED else "integer"
    if kind in STRINGS:
        return "bytes" if field.charsetnr == 63 else "text"
    return NAMES.get(kind, str(kind))


def rows_differences(ours, theirs, statement):
    if ours.rows == theirs.rows:
        return
    for number, (our_row, their_row) in enumerate(zip(ours.rows, theirs.rows)):
        for column, pair in enumerate(zip(our_row, their_row)):
            if not same(*pair, ours.fields[column], theirs.fields[column], "fold" in statement.check):
                yield Difference(f"value: row {number}: {pair[0]!r}, theirs {pair[1]!r}", column, number)


def same(ours, theirs, our_field, their_field, fold):
    if ours == theirs or ours is None or theirs is None:
        return ours == theirs
    if our_field.type_code == FIELD_TYPE.JSON:
        return same_document(ours, theirs)
    near = max(FLOATS.get(our_field.type_code, 0), FLOATS.get(their_field.type_code, 0))
    if near:
        try:
            left, right = float(ours), float(theirs)
        except ValueError:
            return False
        return left == right or abs(left - right) <= near * max(abs(left), abs(right))
    return fold and ours.strip().lower() == theirs.strip().lower()


def same_document(ours, theirs):
    """Whether two JSON texts are the same document, whatever the order of members."""
    try:
        return json.loads(ours) == json.loads(theirs)
    except ValueError:
        return False


def field_difference(our_field, their_field, statement):
    if our_field.name != their_field.name and not statement.prepared:
        return f"name: {our_field.name!r}, theirs {their_field.name!r}"
    if our_field.type_code == FIELD_TYPE.JSON and class_of(their_field) in ("text", "bytes"):
        return None  # MariaDB's JSON is text
    if class_of(our_field) != class_of(their_field):
        return f"type: {class_of(our_field)}, theirs {class_of(their_field)}"
    text_scale = class_of(our_field) in ("text", "bytes") and our_field.scale == TEXT_SCALE
    if our_field.scale != their_field.scale and not text_scale:
        return f"decimals: {class_of(our_field)}({our_field.length},{our_field.scale}), theirs ({their_field.length},{their_field.scale})"
    if "columns" not in statement.check:
        return None
    for name in ("org_name", "table_name", "type_code", "charsetnr", "length"):
        both = getattr(our_field, name), getattr(their_field, name)
        if both[0] != both[1] and not (name == "charsetnr" and set(both) <= UTF8MB4):
            return f"{name}: {class_of(our_field)} {getattr(our_field, name)}, theirs {class_of(their_field)} {getattr(their_field, name)}"
    # MariaDB has UNSIGNED for TIMESTAMP.
    compared = COLUMN_FLAGS & ~UNSIGNED if our_field.type_code == FIELD_TYPE.TIMESTAMP else COLUMN_FLAGS
    if (our_field.flags ^ their_field.flags) & compared:
        return f"flags: {class_of(our_field)} {our_field.flags & COLUMN_FLAGS}, theirs {their_field.flags & COLUMN_FLAGS}"
    return None


def warnings_difference(ours, theirs):
    if any(number == CHECK_VIOLATED for _, number in ours.warnings):
        theirs.warnings = sorted((level, CHECK_VIOLATED if number == CHECK_VIOLATED_MARIADB else number) for level, number in theirs.warnings)
    if ours.kind == "rows":
        # How often an operand is evaluated, and whether at all, is left to the server.
        same_warnings = {number for _, number in ours.warnings} == {number for _, number in theirs.warnings}
    else:
        same_warnings = ours.warning_count == theirs.warning_count and ours.warnings == theirs.warnings
    return None if same_warnings else f"warnings: {numbers(ours)}, theirs {numbers(theirs)}"


def numbers(outcome):
    return " ".join(f"{level} {number}" for level, number in outcome.warnings[:6])


def signature(found, statement):
    """Names the kind of a difference, for counting."""
    kind, _, rest = found.partition(":")
    if kind in ("value", "name", "rows", "affected"):
        rest = ""
    return kind + re.sub(r"\(\d+(,\d+)?\)|\d{5,}|'[^']*'", "", rest) + " | " + " ".join(sorted(statement.names())) + " | " + (statement.text().split() or [""])[0]
