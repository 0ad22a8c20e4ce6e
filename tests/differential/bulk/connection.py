"""A connection on which many statements are under way at once. Answers are kept as bytes, and compared as bytes first."""

import re
import struct
from time import sleep

import pymysql

MODE = "STRICT_TRANS_TABLES"
QUERY = 3
ANSWER_BYTES = 1 << 18
# The time in which a server that has crashed must be there again.
STARTS_SECONDS = 30
TRAILING = re.compile(" +(?=x*$)")
INTEGERS = {1, 2, 3, 8, 9}
LIMITS = {"junctor": "max_execution_time = {milliseconds:.0f}", "mariadb": "max_statement_time = {seconds}"}
# Errors of statements that took longer than that, and of those that were ended for it.
LATE = {3024, 1969}


class Lost(Exception):
    """The connection ended."""


class Answer:
    """`rows`, `ok` or `error`. The rows are the bytes of their packets, the columns those of their descriptions."""

    __slots__ = ("kind", "number", "message", "columns", "raw", "packets", "_shown")

    def __init__(self, kind, number=None, message="", columns=(), raw=b""):
        self.kind, self.number, self.message, self.columns, self.raw = kind, number, message, columns, raw
        self.packets = self._shown = None

    def cut(self):
        """The contents of the packets, sorted."""
        if self.packets is None:
            raw, at, found = self.raw, 0, []
            while at < len(raw):
                end = at + 4 + int.from_bytes(raw[at : at + 3], "little")
                found.append(raw[at + 4 : end])
                at = end
            self.packets = found
        return self.packets

    def values(self):
        """The rows as tuples of bytes and None."""
        return [tuple(values_of(packet)) for packet in self.cut()]

    def shown(self):
        """The rows as compared, in their order."""
        if self._shown is None:
            exact = [kind_of(column) in INTEGERS for column in self.columns]
            self._shown = [tuple(map(shown, row, exact)) for row in self.values()]
        return self._shown

    def names(self):
        return [name_of(column) for column in self.columns]

    def __str__(self):
        if self.kind != "rows":
            return f"{self.kind} {self.number or ''} {self.message}".rstrip()
        rows = self.shown()
        more = f" and {len(rows) - 30} more" if len(rows) > 30 else ""
        return f"{len(rows)} rows " + " ".join("(" + ", ".join(row) + ")" for row in sorted(rows)[:30]) + more


def values_of(packet):
    at, end = 0, len(packet)
    while at < end:
        first = packet[at]
        at += 1
        if first == 0xFB:
            yield None
            continue
        size = first
        if first > 0xFB:
            width = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
            size = int.from_bytes(packet[at : at + width], "little")
            at += width
        yield packet[at : at + size]
        at += size


def kind_of(column):
    """The type code in the description of a column: before flags, decimals and two bytes."""
    return column[-6]


def name_of(column):
    return list(values_of(column[:-13]))[4].decode()


def shown(value, is_exact):
    """A value as compared. Text is compared without letter case and the spaces at its end or before the x of CONCAT,
    of which a group keeps those of any of its rows."""
    if value is None:
        return "NULL"
    text = value.decode("utf-8", "replace")
    if is_exact:
        return text
    try:
        # -0 and 0 are equal: which of them a group shows depends on the order of its rows.
        return "%.7g" % (round(float(text), 7) + 0.0)
    except (ValueError, OverflowError):
        return TRAILING.sub("", text.lower())


def is_equal(ours, theirs, is_ordered=False):
    """Whether two answers have the same rows, or the same error. Bytes are compared first."""
    if ours.kind != "rows" or theirs.kind != "rows":
        return ours.kind == theirs.kind and ours.number == theirs.number
    if ours.raw == theirs.raw:
        return True
    if len(ours.columns) != len(theirs.columns) or len(ours.cut()) != len(theirs.cut()):
        return False
    if is_ordered:
        return ours.shown() == theirs.shown()
    return sorted(ours.cut()) == sorted(theirs.cut()) or sorted(ours.shown()) == sorted(theirs.shown())


def is_late(*answers):
    return any(answer.number in LATE for answer in answers)


class Connection:
    """`send` sends statements, `read` reads their answers, as many and in the same order."""

    def __init__(self, name, port, database, seconds):
        self.name, self.port, self.database, self.seconds = name, port, database, seconds
        self.connect()
        self.run(f"DROP DATABASE IF EXISTS {database}")
        self.run(f"CREATE DATABASE {database} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        self.run(f"USE {database}")

    def connect(self):
        for _ in range(STARTS_SECONDS):
            try:
                self.session = pymysql.connect(
                    host="127.0.0.1", port=self.port, user="root", autocommit=True, charset="utf8mb4", ssl_disabled=True
                )
                break
            except pymysql.err.OperationalError:
                sleep(1)
        else:
            raise Lost(f"{self.name} does not answer")
        self.socket = self.session._sock
        self.socket.settimeout(120)
        self.buffer, self.at = b"", 0
        self.run(f"SET sql_mode = '{MODE}'")
        self.run("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci")
        self.run("SET " + LIMITS[self.name].format(seconds=self.seconds, milliseconds=self.seconds * 1000))

    def close(self):
        self.socket.close()

    def send(self, statements):
        parts = []
        for statement in statements:
            data = statement.encode()
            parts.append(struct.pack("<IB", len(data) + 1, QUERY) + data)
        try:
            self.socket.sendall(b"".join(parts))
        except OSError as error:
            raise Lost(f"{self.name}: {error}") from error

    def read(self):
        first = self.packet()
        head = first[0]
        if head == 0:
            return Answer("ok")
        if head == 0xFF:
            return error_of(first)
        columns = [self.packet() for _ in range(head)]
        self.packet()
        begin = self.at
        while True:
            # The loop over rows repeats `packet`, because a call for each row costs more than all else.
            at = self.at
            if len(self.buffer) - at < 5:
                begin -= self.fill(begin)
                continue
            size = int.from_bytes(self.buffer[at : at + 3], "little")
            end = at + 4 + size
            if end > len(self.buffer):
                begin -= self.fill(begin)
                continue
            self.at = end
            mark = self.buffer[at + 4]
            if mark == 0xFE and size < 9:
                return Answer("rows", columns=columns, raw=self.buffer[begin:at])
            if mark == 0xFF:
                return error_of(self.buffer[at + 4 : end])

    def packet(self):
        while True:
            at = self.at
            if len(self.buffer) - at >= 4:
                end = at + 4 + int.from_bytes(self.buffer[at : at + 3], "little")
                if end <= len(self.buffer):
                    self.at = end
                    return self.buffer[at + 4 : end]
            self.fill(at)

    def fill(self, keep):
        """Receives more bytes, keeps those from `keep` on, and returns by how much places have moved."""
        try:
            data = self.socket.recv(ANSWER_BYTES)
        except OSError as error:
            raise Lost(f"{self.name}: {error}") from error
        if not data:
            raise Lost(f"{self.name} closed the connection")
        self.buffer = self.buffer[keep:] + data
        self.at -= keep
        return keep

    def run(self, statement):
        self.send((statement,))
        return self.read()

    def run_all(self, statements):
        """Sends statements in groups that fit the buffers of sockets, and returns the last error, or None."""
        failed = None
        for first in range(0, len(statements), 16):
            group = statements[first : first + 16]
            self.send(group)
            for answer in [self.read() for _ in group]:
                failed = answer if answer.kind == "error" else failed
        return failed


def error_of(packet):
    return Answer("error", int.from_bytes(packet[1:3], "little"), packet[9:].decode("utf-8", "replace"))
