"""A connection whose answers are compared as bytes: text and binary protocol, column definitions, warnings."""

import struct
from time import sleep

import pymysql
from pymysql.constants import COMMAND, FIELD_TYPE
from pymysql.protocol import FieldDescriptorPacket

LOST = (0, 2003, 2006, 2013, 2014)
NULL, LONGLONG, DOUBLE, STRING = FIELD_TYPE.NULL, FIELD_TYPE.LONGLONG, FIELD_TYPE.DOUBLE, FIELD_TYPE.VAR_STRING
INTEGERS = {FIELD_TYPE.TINY: 1, FIELD_TYPE.SHORT: 2, FIELD_TYPE.YEAR: 2, FIELD_TYPE.INT24: 4, FIELD_TYPE.LONG: 4, FIELD_TYPE.LONGLONG: 8}
UNSIGNED, ZEROFILL = 32, 64
# The time in which a server that has crashed must be there again.
STARTS_SECONDS = 30


class Outcome:
    """The answer to a statement: `rows`, `ok`, `error`, or `lost` if the connection ended. Warnings are pairs
    of level and number."""

    def __init__(self, kind, number=None, message="", fields=(), rows=(), affected=None, warnings=0):
        self.kind, self.number, self.message = kind, number, message
        self.fields, self.rows, self.affected = list(fields), list(rows), affected
        self.warning_count, self.warnings, self.texts = warnings, [], []

    def only(self, column):
        """The outcome with one of the columns."""
        part = Outcome(self.kind, self.number, self.message, self.fields[column : column + 1], [row[column : column + 1] for row in self.rows])
        part.warning_count, part.warnings, part.texts = self.warning_count, self.warnings, self.texts
        return part

    def __str__(self):
        told = f", warnings {self.texts[:4]}" if self.texts else ""
        if self.kind in ("error", "lost"):
            return f"{self.kind} {self.number}: {self.message}"
        if self.kind == "ok":
            return f"ok, {self.affected} affected{told}"
        shown = ", ".join(f"{f.name[:30]} {kind_of(f)}" for f in self.fields)
        rows = " ".join(str(tuple(None if v is None else short(v) for v in row)) for row in self.rows[:12])
        return f"[{shown}] {rows}{told}"


def short(value):
    text = value.decode("utf-8", "backslashreplace")
    return text if len(text) <= 60 else text[:50] + "..."


def kind_of(field):
    return f"{field.type_code}({field.length},{field.scale}) flags {field.flags} charset {field.charsetnr}"


class Server:
    """One connection. `run` sends a statement as text, or prepared if `parameters` is a list."""

    def __init__(self, name, port, database):
        self.name, self.port, self.database = name, port, database
        self.connection = None
        self.connect()

    def connect(self):
        """Connects; waits for a server that is started again after a crash."""
        for _ in range(STARTS_SECONDS):
            try:
                self.connection = pymysql.connect(
                    host="127.0.0.1", port=self.port, user="root", charset="utf8mb4", autocommit=True, read_timeout=60, write_timeout=60, ssl_disabled=True,
                )
                break
            except pymysql.err.OperationalError:
                sleep(1)
        else:
            raise ConnectionError(f"{self.name} does not answer")
        self.run("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci")

    def use(self):
        self.run(f"DROP DATABASE IF EXISTS {self.database}")
        self.run(f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        self.run(f"USE {self.database}")

    def run(self, statement, parameters=None):
        try:
            outcome = self.text(statement) if parameters is None else self.prepared(statement, parameters)
            if outcome.warning_count:
                listed = self.text("SHOW WARNINGS").rows
                outcome.warnings = sorted((row[0].decode(), int(row[1])) for row in listed)
                outcome.texts = [f"{row[1].decode()} {row[2].decode('utf-8', 'replace')}" for row in listed]
            return outcome
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError) as error:
            number = error.args[0] if error.args else 0
            return Outcome("lost" if number in LOST else "error", number, str(error.args[-1]))
        except pymysql.err.Error as error:
            return Outcome("error", error.args[0], str(error.args[-1]))

    def text(self, statement):
        self.connection._execute_command(COMMAND.COM_QUERY, statement.encode("utf-8"))
        return self.answer(read_text)

    def prepared(self, statement, parameters):
        connection = self.connection
        connection._execute_command(COMMAND.COM_STMT_PREPARE, statement.encode("utf-8"))
        first = connection._read_packet()
        first.read_uint8()
        number, columns, marks = first.read_uint32(), first.read_uint16(), first.read_uint16()
        for count in (marks, columns):
            for _ in range(count + 1 if count else 0):
                connection._read_packet()
        try:
            connection._execute_command(COMMAND.COM_STMT_EXECUTE, execution(number, parameters))
            return self.answer(read_binary)
        finally:
            connection._execute_command(COMMAND.COM_STMT_CLOSE, struct.pack("<I", number))

    def answer(self, read_row):
        """Reads an OK packet or rows."""
        connection = self.connection
        packet = connection._read_packet()
        if packet.is_ok_packet():
            packet.advance(1)
            affected, _ = packet.read_length_encoded_integer(), packet.read_length_encoded_integer()
            packet.advance(2)
            return Outcome("ok", affected=affected, warnings=packet.read_uint16())
        columns = packet.read_length_encoded_integer()
        fields = [connection._read_packet(FieldDescriptorPacket) for _ in range(columns)]
        connection._read_packet()
        for field in fields:
            # MariaDB writes 39 for an unknown number of decimals, MySQL 31.
            field.scale = 31 if field.scale == 39 else field.scale
        rows = []
        while True:
            packet = connection._read_packet()
            if packet.is_eof_packet():
                packet.advance(1)
                return Outcome("rows", fields=fields, rows=rows, warnings=packet.read_uint16())
            rows.append(read_row(packet, fields))


def execution(number, parameters):
    """The command that executes a prepared statement. A parameter is a pair of a type and a value."""
    nulls = bytearray((len(parameters) + 7) // 8)
    types, values = b"", b""
    for position, (kind, value) in enumerate(parameters):
        unsigned = 0x80 if kind == LONGLONG and value is not None and value > 2**63 - 1 else 0
        types += bytes((kind, unsigned))
        if value is None:
            nulls[position // 8] |= 1 << position % 8
        elif kind == LONGLONG:
            values += struct.pack("<Q" if unsigned else "<q", value)
        elif kind == DOUBLE:
            values += struct.pack("<d", value)
        else:
            values += length_encoded(value)
    command = struct.pack("<IBI", number, 0, 1)
    return command + bytes(nulls) + b"\x01" + types + values if parameters else command


def length_encoded(value):
    count = len(value)
    if count < 251:
        return bytes((count,)) + value
    return b"\xfc" + struct.pack("<H", count) + value if count < 65536 else b"\xfd" + struct.pack("<I", count)[:3] + value


def read_text(packet, fields):
    return tuple(packet.read_length_coded_string() for _ in fields)


def read_binary(packet, fields):
    """A binary row, with each value as the text protocol shows it, except floating point numbers."""
    packet.advance(1)
    nulls = packet.read((len(fields) + 9) // 8)
    row = []
    for position, field in enumerate(fields):
        bit = position + 2
        row.append(None if nulls[bit // 8] >> bit % 8 & 1 else value(packet, field))
    return tuple(row)


def value(packet, field):
    kind = field.type_code
    if kind in INTEGERS:
        number = int.from_bytes(packet.read(INTEGERS[kind]), "little", signed=not field.flags & UNSIGNED)
        text = str(number)
        if field.flags & ZEROFILL:
            text = text.rjust(field.length, "0")
        if kind == FIELD_TYPE.YEAR:
            text = text.rjust(4, "0")
        return text.encode()
    if kind == FIELD_TYPE.DOUBLE:
        return shown(struct.unpack("<d", packet.read(8))[0], field)
    if kind == FIELD_TYPE.FLOAT:
        return shown(struct.unpack("<f", packet.read(4))[0], field)
    if kind in (FIELD_TYPE.DATE, FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP):
        return date(packet.read(packet.read_uint8()), field)
    if kind == FIELD_TYPE.TIME:
        return time(packet.read(packet.read_uint8()), field)
    return packet.read_length_coded_string()


def shown(number, field):
    return (repr(number) if field.scale >= 31 else f"{number:.{field.scale}f}").encode()


def fraction(microseconds, field):
    return f".{microseconds:06}"[: field.scale + 1] if 0 < field.scale <= 6 else ""


def date(data, field):
    data = data.ljust(11, b"\0")
    year, month, day, hour, minute, second, microseconds = struct.unpack("<HBBBBBI", data)
    text = f"{year:04}-{month:02}-{day:02}"
    if field.type_code != FIELD_TYPE.DATE:
        text += f" {hour:02}:{minute:02}:{second:02}" + fraction(microseconds, field)
    return text.encode()


def time(data, field):
    negative, days, hour, minute, second, microseconds = struct.unpack("<BIBBBI", data.ljust(12, b"\0"))
    sign = "-" if negative else ""
    return f"{sign}{days * 24 + hour:02}:{minute:02}:{second:02}{fraction(microseconds, field)}".encode()
