"""The outcome of a statement on one server, in a form that can be compared between servers."""

import re
import unicodedata

import pymysql
from pymysql.constants import CLIENT, FIELD_TYPE

STRING_TYPES = {
    FIELD_TYPE.VAR_STRING, FIELD_TYPE.STRING, FIELD_TYPE.VARCHAR, FIELD_TYPE.BLOB, FIELD_TYPE.TINY_BLOB,
    FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.LONG_BLOB,
}
INTEGER_TYPES = {FIELD_TYPE.TINY, FIELD_TYPE.SHORT, FIELD_TYPE.INT24, FIELD_TYPE.LONG, FIELD_TYPE.LONGLONG}
# NOT_NULL, BLOB, UNSIGNED, BINARY, AUTO_INCREMENT: the flags that affect how clients decode values.
FLAGS_COMPARED = 1 | 16 | 32 | 128 | 512

SQL_MODE = (
    "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION"
)

# Warnings of MySQL 8.0 about deprecated syntax, which MariaDB 10.11 does not have.
DEPRECATED = {1287, 1681, 3005, 3719, 3720, 3778}
MAY_BE_DEPRECATED = re.compile(
    r"VALUES\s*\(\s*[`\w.]+\s*\)|:=|&&|\|\||!|INT\w*\s*\(|ZEROFILL|UNSIGNED|(?:FLOAT|DOUBLE|REAL|YEAR)\w*\s*\(|\bBINARY\b"
    r"|FOUND_ROWS|DELAYED|utf8\b|utf8_|utf8mb3|\bN'|NCHAR|NATIONAL|ASCII|JSON_MERGE|MASTER_POS_WAIT", re.IGNORECASE,
)


class Server:
    """One connection. Every value is returned as the text that the server sent."""

    def __init__(self, name, port, found_rows=False):
        self.name = name
        self.port = port
        self.flags = CLIENT.FOUND_ROWS if found_rows else 0
        self.connection = None
        self.connect()

    def connect(self):
        self.connection = pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", charset="utf8mb4", conv={}, autocommit=True,
            read_timeout=60, write_timeout=60, client_flag=self.flags,
        )
        self.run("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci")
        self.run(f"SET SESSION sql_mode = '{SQL_MODE}'")
        self.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")

    def run(self, statement):
        """Sends a statement and returns its outcome."""
        try:
            self.connection.query(statement, unbuffered=False)
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError) as error:
            number = error.args[0] if error.args else 0
            if number in (0, 2003, 2006, 2013, 2014):
                return Outcome(kind="lost", number=number, message=str(error))
            return self.of_error(error)
        except pymysql.err.Error as error:
            return self.of_error(error)
        result = self.connection._result
        in_transaction = bool(result.server_status & 1) if result.server_status is not None else None
        deprecated = self.deprecated(statement, result)
        warnings = (result.warning_count or 0) - deprecated
        if result.description is None:
            return Outcome(
                kind="ok", affected=result.affected_rows, insert_id=result.insert_id, warnings=warnings,
                message=re.sub(r"Warnings: \d+", f"Warnings: {warnings}", text_of(result.message)) if deprecated
                else text_of(result.message), in_transaction=in_transaction,
            )
        return Outcome(
            kind="rows", rows=[tuple(row) for row in result.rows], fields=result.fields,
            warnings=warnings, in_transaction=in_transaction,
        )

    def deprecated(self, statement, result):
        """The number of warnings about deprecated syntax."""
        if self.name != "junctor" or not result.warning_count or not MAY_BE_DEPRECATED.search(statement):
            return 0
        self.connection.query("SHOW WARNINGS", unbuffered=False)
        return sum(int(row[1]) in DEPRECATED for row in self.connection._result.rows)

    def of_error(self, error):
        return Outcome(kind="error", number=error.args[0], message=str(error.args[1] if len(error.args) > 1 else ""))


class Outcome:
    """The outcome of one statement: `rows`, `ok`, `error`, or `lost` if the connection ended."""

    def __init__(self, kind, **facts):
        self.kind = kind
        self.rows = facts.get("rows", [])
        self.fields = facts.get("fields", [])
        self.affected = facts.get("affected")
        self.insert_id = facts.get("insert_id")
        self.warnings = facts.get("warnings", 0)
        self.number = facts.get("number")
        self.message = facts.get("message", "")
        self.in_transaction = facts.get("in_transaction")

    def __str__(self):
        if self.kind == "error":
            return f"error {self.number}: {self.message}"
        if self.kind == "ok":
            return f"ok, {self.affected} affected, id {self.insert_id}, {self.warnings} warnings, {self.message!r}"
        if self.kind == "lost":
            return f"connection lost: {self.message}"
        shown = ", ".join(str(tuple(shorten(value) for value in row)) for row in self.rows[:12])
        more = f" and {len(self.rows) - 12} more" if len(self.rows) > 12 else ""
        return f"{len(self.rows)} rows, {self.warnings} warnings: {shown}{more}"


def text_of(message):
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message or "")


def shorten(value):
    if value is not None and len(value) > 60:
        return value[:40] + (b"..." if isinstance(value, bytes) else "...") + value[-8:]
    return value


def difference(ours, theirs, check):
    """Describes in one line how two outcomes differ; None if they do not. `check` is the set of the
    generator's keywords for a statement: `ordered`, `count` (only the number of rows is determined), `fold`
    (strings that are equal in their collation count as equal), `computed` (columns are expressions),
    `untyped` (column types are not compared), `nowarnings`, `nomessage`, `noerrors` (the first of several
    errors is not determined)."""
    if "lost" in (ours.kind, theirs.kind):
        return f"connection lost: ours {ours.kind}, theirs {theirs.kind}"
    if ours.kind != theirs.kind:
        return f"ours {ours.kind}, theirs {theirs.kind}"
    if ours.kind == "error":
        if ours.number != theirs.number and "noerrors" not in check:
            return f"error {ours.number}, theirs {theirs.number}"
        return None
    if ours.in_transaction != theirs.in_transaction:
        return f"in transaction: {ours.in_transaction}, theirs {theirs.in_transaction}"
    warnings = None
    if "nowarnings" not in check and ours.warnings != theirs.warnings:
        warnings = f"{ours.warnings} warnings, theirs {theirs.warnings}"
    if ours.kind == "ok":
        if ours.affected != theirs.affected:
            return f"{ours.affected} rows affected, theirs {theirs.affected}"
        if ours.insert_id != theirs.insert_id:
            return f"insert id {ours.insert_id}, theirs {theirs.insert_id}"
        if "nomessage" not in check and message_numbers(ours) != message_numbers(theirs):
            return f"message {ours.message!r}, theirs {theirs.message!r}"
        return warnings
    return fields_difference(ours, theirs, check) or rows_difference(ours, theirs, check) or warnings


def message_numbers(outcome):
    return re.findall(r"\d+", outcome.message)


def fields_difference(ours, theirs, check):
    if len(ours.fields) != len(theirs.fields):
        return f"{len(ours.fields)} columns, theirs {len(theirs.fields)}"
    for our_field, their_field in zip(ours.fields, theirs.fields):
        if our_field.name != their_field.name:
            return f"column name {our_field.name!r}, theirs {their_field.name!r}"
        if "untyped" not in check and type_class(our_field) != type_class(their_field):
            return f"column {our_field.name}: type {type_class(our_field)}, theirs {type_class(their_field)}"
        if "computed" in check:
            continue
        for name in ("org_name", "table_name", "type_code", "charsetnr", "length"):
            if getattr(our_field, name) != getattr(their_field, name):
                return (
                    f"column {our_field.name}: {name} {getattr(our_field, name)}, theirs {getattr(their_field, name)}"
                )
        if (our_field.flags ^ their_field.flags) & FLAGS_COMPARED:
            return f"column {our_field.name}: flags {our_field.flags}, theirs {their_field.flags}"
    return None


def type_class(field):
    if field.type_code in INTEGER_TYPES:
        return "unsigned integer" if field.flags & 32 else "integer"
    if field.type_code in STRING_TYPES:
        return "binary string" if field.charsetnr == 63 else "string"
    return {5: "double", 246: "decimal", 6: "null"}.get(field.type_code, str(field.type_code))


def rows_difference(ours, theirs, check):
    if len(ours.rows) != len(theirs.rows):
        return f"{len(ours.rows)} rows, theirs {len(theirs.rows)}"
    if "count" in check:
        return None
    our_rows, their_rows = normal(ours, check), normal(theirs, check)
    if "ordered" not in check:
        our_rows, their_rows = sorted(our_rows, key=sort_key), sorted(their_rows, key=sort_key)
    for number, (our_row, their_row) in enumerate(zip(our_rows, their_rows)):
        if not all(same_value(*pair) for pair in zip(our_row, their_row)):
            return f"row {number}: {our_row}, theirs {their_row}"
    return None


def normal(outcome, check):
    rows = []
    for row in outcome.rows:
        values = []
        for field, value in zip(outcome.fields, row):
            if value is not None and field.type_code == FIELD_TYPE.DOUBLE:
                value = float(value)
            elif isinstance(value, str) and "fold" in check:
                value = folded(value)
            values.append(value)
        rows.append(tuple(values))
    return rows


def sort_key(row):
    return tuple((value is not None, type(value).__name__, value if value is not None else 0) for value in row)


def same_value(ours, theirs):
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or abs(ours - theirs) <= 1e-9 * max(abs(ours), abs(theirs))
    return ours == theirs


def folded(text):
    """Maps strings that are equal in utf8mb4_general_ci to equal strings, for the characters that the
    generator uses."""
    plain = (c for c in unicodedata.normalize("NFD", text.rstrip(" ")) if not unicodedata.combining(c))
    return "".join("\ufffd" if ord(c) > 0xFFFF else {"ß": "S"}.get(c, c.upper()) for c in plain)
