"""Intended or accepted differences. known-differences.md explains each of them in the same words."""

import re

# Errors of assignments to columns. If a row has several, the servers may report different ones first.
VALUE_ERRORS = {1048, 1264, 1265, 1364, 1365, 1366, 1367, 1406}
# A range between a hexadecimal string and a number.
MIXED_RANGE = re.compile(r"BETWEEN (x'[0-9a-f]*' AND (-?\d|TRUE)|-?[\d.e]+ AND x'|(x'|')\S*' AND TRUE|TRUE AND)")
# A column compared with a number with a fraction, or MIN or MAX over the strings equal to a number.
FRACTION = re.compile(r"c\d+ = -?\d+\.\d|(MIN|MAX)\(c\d+\).* c\d+ (=|IN)")
# A number with an exponent.
DOUBLE_LITERAL = re.compile(r"\d(\.\d+)?e-?\d")


def is_known(statement, ours, theirs, found):
    """Whether a difference is known."""
    kinds = (ours.kind, theirs.kind)
    if statement.startswith("UPDATE") and kinds == ("ok", "error") and theirs.number == 1062:
        return True  # UPDATE that exchanges keys
    if theirs.number == 1364 and statement.startswith("UPDATE") and "DEFAULT" in statement:
        return True  # a column without a default
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
            return True  # doubles in narrow strings
        if {ours.number, theirs.number} in ({1292, 1690}, {1292, 1300}) and statement.startswith(("UPDATE", "DELETE")):
            return True  # order of rows and conditions
        return ours.number in VALUE_ERRORS and theirs.number in VALUE_ERRORS
    if ours.kind == "error":
        return (
            ours.number == 1235  # refused as unsupported
            or ours.number == 1292 and statement.startswith(("UPDATE", "DELETE"))  # a string is not a number
            # Order of conditions, set of rows read, COUNT.
            or ours.number == 1690 and any(part in statement for part in (" AND ", " OR ", " LIMIT ", "COUNT("))
            or ours.number == 1690 and "ROUND(" in statement  # beyond 64 bits
            or ours.number == 1264 and "CAST(" in statement and statement.startswith(("UPDATE", "DELETE"))  # strict
            or ours.number == 1406 and DOUBLE_LITERAL.search(statement) is not None  # doubles in narrow strings
        )
    if theirs.number == 1292:
        return statement.startswith(("UPDATE", "DELETE")) or " SELECT " in statement  # order of conditions
    if theirs.number == 1690:
        return " AND " in statement  # order of conditions
    return theirs.number in (1235, 1300, 1916)  # invalid strings; strings as DECIMAL


def rows_known(statement, found):
    if "rows" in found and MIXED_RANGE.search(statement):
        return True  # x'41' among numbers
    if FRACTION.search(statement):
        return True  # integers compared with a fraction; strings equal to a number
    if found.startswith("row ") and ("LOCATE(" in statement or "INSTR(" in statement):
        return True  # accented characters
    if found.endswith(("type integer, theirs decimal", "type unsigned integer, theirs decimal")):
        return True  # mixed signs
    return "warnings" in found or found.startswith("column name") and "?" in found  # warnings; names with emoji


def ok_known(statement, ours, theirs, found):
    if statement.startswith("DROP INDEX"):
        return True  # a copied table
    if "affected" in found and "AS CHAR) " in statement:
        return True  # a number as a string compared with a number
    if "ON DUPLICATE KEY UPDATE" in statement and "rows affected" in found:
        # NULL set to NULL
        return theirs.affected > ours.affected and ours.message == theirs.message and ours.insert_id == theirs.insert_id
    if "warnings" in found:
        return ours.warnings < theirs.warnings
    if found.startswith("message"):
        ours_numbers, theirs_numbers = (re.findall(r"\d+", outcome.message) for outcome in (ours, theirs))
        return not theirs_numbers or ours_numbers[:-1] == theirs_numbers[:-1]
    return False
