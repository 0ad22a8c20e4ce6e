"""Differences between MariaDB 10.11 and MySQL 8.0, each with its reason. MySQL's manual decides, and a golden
case or a recorded file holds Junctor to it."""

import re

# Numbers of warnings and errors that only one of the two servers has.
ONLY_OURS = {
    1681,  # display widths and ZEROFILL are deprecated in MySQL 8.0
    3020,  # invalid argument for logarithm: MariaDB has 1365 or nothing
    1411,  # INET_ATON and the like: MariaDB gives NULL silently
}
ONLY_THEIRS = {
    1958,  # FROM_BASE64 of other text: MySQL gives NULL silently
    *range(4035, 4050),  # MariaDB's errors of JSON are warnings
}
VALUE = {1048, 1264, 1265, 1292, 1300, 1364, 1365, 1366, 1367, 1406, 1411, 1690, 3020}
TRUNCATION = {1264, 1265, 1292, 1366, 1367, 1411}
JSON_ERRORS = set(range(3140, 3160))


def uses(*names):
    return lambda found, statement, ours, theirs: bool(statement.names() & set(names))


def document(found, statement, ours, theirs):
    return any(name.startswith("JSON_") for name in statement.names())


def numbers_of(outcome):
    return {number for _, number in outcome.warnings} | ({outcome.number} if outcome.number else set())


def is_write(statement):
    return "write" in statement.features


def json_error(found, statement, ours, theirs):
    return ours.number in JSON_ERRORS or numbers_of(theirs) & {*range(4035, 4050), 4025, 1235} and (document(found, statement, ours, theirs) or is_write(statement))


def only_one(found, statement, ours, theirs):
    """A warning or an error that one server does not have, and no other difference."""
    kind = found.partition(":")[0]
    if kind == "warnings":
        mine, other = numbers_of(ours) - ONLY_OURS, numbers_of(theirs) - ONLY_THEIRS - ({1365} if 3020 in numbers_of(ours) else set())
        return (mine, other) != (numbers_of(ours), numbers_of(theirs)) and mine == other
    return kind == "kind" and (ours.number in ONLY_OURS or theirs.number in ONLY_THEIRS)


def wrote_little(found, statement, ours, theirs):
    """Both store a value, or both refuse it, with different numbers."""
    known = numbers_of(ours) | numbers_of(theirs)
    return is_write(statement) and found.split(":")[0] in ("warnings", "error") and known <= VALUE | {1138, 3140, 4025}


def converted(found, statement, ours, theirs):
    return "alter" in statement.features and found.startswith("kind") and numbers_of(ours) | numbers_of(theirs) <= VALUE | {1138, 1170, 4025, 3140}


TEMPORAL = {
    "SUBTIME", "ADDTIME", "TIME_FORMAT", "DATE_FORMAT", "CAST DATE", "CAST DATETIME", "CAST TIME", "CONVERT_TZ", "EXTRACT", "TIME", "TIMESTAMP", "TIMEDIFF", "STR_TO_DATE", "INTERVAL", "DATE_ADD", "DATE_SUB", "MAKETIME",
    "DATE", "DAY", "DAYNAME", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR", "MONTH", "MONTHNAME", "QUARTER", "YEAR", "WEEK", "WEEKOFYEAR", "YEARWEEK", "WEEKDAY", "LAST_DAY", "FROM_DAYS", "TO_DAYS", "TO_SECONDS", "HOUR", "MINUTE",
    "SECOND", "MICROSECOND", "SEC_TO_TIME", "FROM_UNIXTIME", "UNIX_TIMESTAMP", "TIMESTAMPDIFF", "DATEDIFF", "MAKEDATE", "TIME_TO_SEC",
}

EXCUSES = [
    ("MySQL has other numbers for logarithms, addresses and base64, and warns of display widths", only_one),
    ("JSON is a type with errors of its own in MySQL, text with warnings in MariaDB", json_error),
    (
        "MariaDB's JSON functions give NULL for a path that is absent, keep the order of members, and know less of types",
        lambda found, statement, ours, theirs: document(found, statement, ours, theirs) and not found.startswith(("kind", "lost", "columns")),
    ),
    ("names of columns beyond 16 bits are ? in MariaDB", lambda found, s, o, t: found.startswith("name") and "?" in found),
    ("REGEXP_SUBSTR without a match is NULL in MySQL, '' in MariaDB", uses("REGEXP_SUBSTR")),
    ("regular expressions of ICU and PCRE report errors differently", lambda f, s, o, t: s.names() & {"REGEXP_INSTR", "REGEXP_REPLACE"} and "kind" in f),
    ("LEAST and GREATEST of unlike types compare as text in MySQL", lambda f, s, o, t: s.names() & {"LEAST", "GREATEST"} and f.split(":")[0] in ("value", "type", "decimals", "rows", "warnings", "affected")),
    ("UNIX_TIMESTAMP outside of its range is 0 in MySQL", lambda f, s, o, t: "UNIX_TIMESTAMP" in s.names() and (t.kind != "rows" or any(None in row for row in t.rows))),
    ("FORMAT has at most 30 decimals in MySQL, 38 in MariaDB", lambda f, s, o, t: "FORMAT" in s.names() and ", 100)" in s.text()),
    ("PERIOD_ADD and PERIOD_DIFF of wrong periods are error 1210 in MySQL", lambda f, s, o, t: s.names() & {"PERIOD_ADD", "PERIOD_DIFF"} and 1210 in (o.number, t.number)),
    ("MIN and MAX of BIT are bytes in MySQL, digits in MariaDB", lambda f, s, o, t: s.names() & {"MIN", "MAX"} and any(field.type_code == 16 for field in o.fields)),
    ("texts as operands of bits are converted to integers in MySQL, to DECIMAL in MariaDB", lambda f, s, o, t: s.names() & {"&", "|", "^", "<<", ">>", "~"}),
    ("SUM and AVG of ENUM and SET are doubles in MySQL", lambda f, s, o, t: s.names() & {"SUM", "AVG"} and f.startswith(("type", "value"))),
    ("values that do not fit have other numbers, levels and counts of warnings", wrote_little),
    ("a strict ALTER TABLE fails for a value that does not fit; MariaDB warns, or fails for other columns", converted),
    ("TIMESTAMP NOT NULL takes NULL as the current time in MariaDB", lambda f, s, o, t: o.number == 1048 and t.kind == "ok"),
    ("operands that are no days or times, zero dates, and fractions of 0", lambda f, s, o, t: s.names() & TEMPORAL and f.split(":")[0] in ("value", "type", "decimals", "rows", "warnings")),
    ("display widths of floating point results", lambda f, s, o, t: f.startswith("decimals: double")),
    ("MAX, MIN and IFNULL of YEAR show 0 as 0000", lambda f, s, o, t: "b'0000'" in f),
    ("DISTINCT of BIT gives integers in MariaDB", lambda f, s, o, t: "DISTINCT" in s.text() and any(field.type_code == 16 for field in o.fields)),
    ("ALTER TABLE copies CHAR with its padding in MariaDB under PAD_CHAR_TO_FULL_LENGTH", lambda f, s, o, t: f.startswith("value") and f.count("'") == 4 and f.split("'")[1] == f.split("'")[3].rstrip(" ")),
    ("JSON is sorted as text in MariaDB", lambda f, s, o, t: "ORDER BY c" in s.text() and any(field.type_code == 245 for field in o.fields)),
    ("a TIMESTAMP that is too late is 0 in MySQL, and has a fraction in MariaDB", lambda f, s, o, t: "b'0000-00-00 00:00:00" in f and "00.9" in f),
    ("TIME_TO_SEC is an integer in MySQL", uses("TIME_TO_SEC")),
    ("how operands of functions are converted to dates and times, with which warnings", lambda f, s, o, t: f.startswith("warnings") and not is_write(s) and numbers_of(o) | numbers_of(t) <= {1292, 1411, 1441}),
]


def excuse(found, statement, ours, theirs):
    """The reason of a known difference, or `None`."""
    for reason, holds in EXCUSES:
        if holds(found, statement, ours, theirs):
            return reason
    return None
