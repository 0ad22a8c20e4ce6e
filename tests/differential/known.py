"""Differences that are meant or accepted; each is explained in known-differences.md, by the same words."""

import re

# Errors of values on their way into a column; which one comes first is not the same when a row has several.
VALUE_ERRORS = {1048, 1264, 1265, 1364, 1365, 1366, 1367, 1406}
# A range whose one end is text in hexadecimal digits and whose other end is a number.
MIXED_RANGE = re.compile(r"BETWEEN (x'[0-9a-f]*' AND -?\d|-?[\d.e]+ AND x')")
# A number with an exponent.
DOUBLE_LITERAL = re.compile(r"\d(\.\d+)?e-?\d")


def is_known(statement, ours, theirs, found):
    """Whether a difference is one of the known ones."""
    kinds = (ours.kind, theirs.kind)
    if statement.startswith("UPDATE") and 1062 in (ours.number, theirs.number) and "ok" in kinds:
        return True  # order of changed keys
    if kinds == ("rows", "rows"):
        return rows_known(statement, found)
    if kinds == ("ok", "ok"):
        return ok_known(statement, ours, theirs, found)
    if kinds == ("error", "error"):
        if ours.number == 3572 and theirs.number == 1205:
            return True  # NOWAIT
        if ours.number == 1406 and DOUBLE_LITERAL.search(statement):
            return True  # doubles in narrow texts
        return ours.number in VALUE_ERRORS and theirs.number in VALUE_ERRORS
    if ours.kind == "error":
        return (
            ours.number == 1235  # refused by name
            or ours.number == 1292 and statement.startswith(("UPDATE", "DELETE"))  # a text is no number
            or ours.number == 1690 and (" AND " in statement or "COUNT(" in statement)  # order of conditions; COUNT
            or ours.number == 1406 and DOUBLE_LITERAL.search(statement) is not None  # doubles in narrow texts
        )
    if theirs.number == 1292:
        return statement.startswith(("UPDATE", "DELETE"))  # order of conditions
    if theirs.number == 1690:
        return " AND " in statement  # order of conditions
    return theirs.number in (1235, 1300)  # bytes that are no text


def rows_known(statement, found):
    if "rows" in found and MIXED_RANGE.search(statement):
        return True  # x'41' among numbers
    if found.startswith("row ") and ("LOCATE(" in statement or "INSTR(" in statement):
        return True  # parts of characters
    if found.endswith(("type integer, theirs decimal", "type unsigned integer, theirs decimal")):
        return True  # mixed signs
    return "warnings" in found or found.startswith("column name") and "?" in found  # warnings; names with emoji


def ok_known(statement, ours, theirs, found):
    if statement.startswith("DROP INDEX"):
        return True  # a table that is copied
    if "warnings" in found:
        return ours.warnings < theirs.warnings
    if found.startswith("message"):
        ours_numbers, theirs_numbers = (re.findall(r"\d+", outcome.message) for outcome in (ours, theirs))
        return not theirs_numbers or ours_numbers[:-1] == theirs_numbers[:-1]
    return False
