"""Differences that are meant or accepted; each is explained in known-differences.md, by the same words."""

import re

# Errors of values on their way into a column; which one comes first is not the same when a row has several.
VALUE_ERRORS = {1048, 1264, 1265, 1364, 1365, 1366, 1367, 1406}
# A range whose one end is text in hexadecimal digits and whose other end is a number.
MIXED_RANGE = re.compile(r"BETWEEN (x'[0-9a-f]*' AND (-?\d|TRUE)|-?[\d.e]+ AND x'|(x'|')\S*' AND TRUE|TRUE AND)")
# A column that is compared with a number that has digits after the point, or that is least or greatest of those equal to a number.
FRACTION = re.compile(r"c\d+ = -?\d+\.\d|(MIN|MAX)\(c\d+\).* c\d+ (=|IN)")
# A number with an exponent.
DOUBLE_LITERAL = re.compile(r"\d(\.\d+)?e-?\d")


def is_known(statement, ours, theirs, found):
    """Whether a difference is one of the known ones."""
    kinds = (ours.kind, theirs.kind)
    if statement.startswith("UPDATE") and kinds == ("ok", "error") and theirs.number == 1062:
        return True  # keys that are moved over each other
    if theirs.number == 1364 and statement.startswith("UPDATE") and "DEFAULT" in statement:
        return True  # a column without default
    if kinds == ("rows", "ok") and statement.startswith("DELETE") and " RETURNING " in statement:
        return not ours.rows and theirs.affected == 0  # a condition that is never true
    if kinds == ("rows", "rows"):
        return rows_known(statement, found)
    if kinds == ("ok", "ok"):
        return ok_known(statement, ours, theirs, found)
    if kinds == ("error", "error"):
        if ours.number == 3572 and theirs.number == 1205:
            return True  # NOWAIT
        if ours.number == 1406 and DOUBLE_LITERAL.search(statement):
            return True  # doubles in narrow texts
        if {ours.number, theirs.number} in ({1292, 1690}, {1292, 1300}) and statement.startswith(("UPDATE", "DELETE")):
            return True  # order of rows and conditions
        return ours.number in VALUE_ERRORS and theirs.number in VALUE_ERRORS
    if ours.kind == "error":
        return (
            ours.number == 1235  # refused by name
            or ours.number == 1292 and statement.startswith(("UPDATE", "DELETE"))  # a text is no number
            # Order of conditions; which rows are looked at; COUNT.
            or ours.number == 1690 and any(part in statement for part in (" AND ", " OR ", " LIMIT ", "COUNT("))
            or ours.number == 1690 and "ROUND(" in statement  # beyond 64 bits
            or ours.number == 1264 and "CAST(" in statement and statement.startswith(("UPDATE", "DELETE"))  # strict
            or ours.number == 1406 and DOUBLE_LITERAL.search(statement) is not None  # doubles in narrow texts
        )
    if theirs.number == 1292:
        return statement.startswith(("UPDATE", "DELETE")) or " SELECT " in statement  # order of conditions
    if theirs.number == 1690:
        return " AND " in statement  # order of conditions
    return theirs.number in (1235, 1300, 1916)  # bytes that are no text; text as DECIMAL


def rows_known(statement, found):
    if "rows" in found and MIXED_RANGE.search(statement):
        return True  # x'41' among numbers
    if FRACTION.search(statement):
        return True  # integers that a fraction is rounded to; texts equal to a number
    if found.startswith("row ") and ("LOCATE(" in statement or "INSTR(" in statement):
        return True  # parts of characters
    if found.endswith(("type integer, theirs decimal", "type unsigned integer, theirs decimal")):
        return True  # mixed signs
    return "warnings" in found or found.startswith("column name") and "?" in found  # warnings; names with emoji


def ok_known(statement, ours, theirs, found):
    if statement.startswith("DROP INDEX"):
        return True  # a table that is copied
    if "affected" in found and "AS CHAR) " in statement:
        return True  # a number as text compared with a number
    if "ON DUPLICATE KEY UPDATE" in statement and "rows affected" in found:
        # NULL set to NULL
        return theirs.affected > ours.affected and ours.message == theirs.message and ours.insert_id == theirs.insert_id
    if "warnings" in found:
        return ours.warnings < theirs.warnings
    if found.startswith("message"):
        ours_numbers, theirs_numbers = (re.findall(r"\d+", outcome.message) for outcome in (ours, theirs))
        return not theirs_numbers or ours_numbers[:-1] == theirs_numbers[:-1]
    return False
