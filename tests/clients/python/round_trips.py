"""Round trips of every type by each Python client: what a client reads of the table `original`, it writes into
`copy`, and both tables hold the same bytes. round_trips.py PORT METADATA; prints the Python type of each column.
The clients describe the columns as the file METADATA does."""

import array
import sys

import MySQLdb
import MySQLdb.cursors
import mysql.connector
import pymysql

OPTIONS = {"host": "127.0.0.1", "port": int(sys.argv[1]), "user": "root", "database": "round_trips", "charset": "utf8mb4"}
CONNECTOR = {**OPTIONS, "use_pure": True}
# Each client: how it connects, the options of its cursors, and the columns that it cannot read from any server.
CLIENTS = {
    "pymysql": (lambda: pymysql.connect(**OPTIONS), {}, ()),
    "mysqlclient": (lambda: MySQLdb.connect(**OPTIONS), {}, ()),
    "mysqlclient row by row": (lambda: MySQLdb.connect(**OPTIONS, cursorclass=MySQLdb.cursors.SSCursor), {}, ()),
    "connector-python": (lambda: mysql.connector.connect(**CONNECTOR), {}, ()),
    # It takes the two bytes of a year for a string.
    "connector-python prepared": (lambda: mysql.connector.connect(**CONNECTOR), {"prepared": True}, ("c_year",)),
}


# Columns of geometries and vectors that a client cannot read from any server.
SHAPES_LEFT_OUT = {
    # It takes the bytes of a type that it does not know for ASCII.
    "pymysql": ("c_vector", "c_vector_long"),
}

# The description of a column by each client, as numbers of the protocol: type, length, decimals, flags and
# collation. A client leaves out what it does not keep.
DESCRIPTIONS = {
    "pymysql": lambda cursor: [
        (field.name, field.type_code, field.length, field.scale, field.flags, field.charsetnr)
        for field in cursor._result.fields
    ],
    # The library of MariaDB marks numbers with a flag of its own. The length is a signed number of 32 bits.
    "mysqlclient": lambda cursor: [
        (name, type_code, length & 0xFFFFFFFF, decimals, flags & ~32768, None)
        for (name, type_code, _, length, _, decimals, _), flags in zip(cursor.description, cursor.description_flags)
    ],
    "connector-python": lambda cursor: [
        (column[0], column[1], None, None, column[7], column[8]) for column in cursor.description
    ],
}


def check_descriptions(name, describe, path):
    lines = [line.rstrip("\n").split("\t") for line in open(path, encoding="utf-8") if not line.startswith("#")]
    connection = CLIENTS[name][0]()
    cursor = connection.cursor()
    cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci")
    for table in ("original", "described"):
        expected = [(line[1], *map(int, line[2:])) for line in lines if line[0] == table]
        cursor.execute(f"SELECT * FROM {table} WHERE FALSE")
        seen = describe(cursor)
        cursor.fetchall()
        assert len(seen) == len(expected), (name, seen)
        for one, wanted in zip(seen, expected):
            wanted = tuple(number if told is not None else None for told, number in zip(one, wanted))
            assert one == wanted, (name, table, one, wanted)
    connection.close()


def round_trip(name, connect, options, left_out, table="original", copy="copy"):
    connection = connect()
    cursor = connection.cursor()
    cursor.execute("SET time_zone = '+00:00'")
    cursor.execute(f"TRUNCATE TABLE {copy}")
    cursor.execute(f"SELECT * FROM {table} WHERE FALSE")
    columns = [column[0] for column in cursor.description if column[0] not in left_out]
    cursor.fetchall()
    cursor.close()
    cursor = connection.cursor(**options)
    names = ", ".join(columns)
    cursor.execute(f"SELECT {names} FROM {table} ORDER BY id")
    rows = cursor.fetchall()
    cursor.close()
    cursor = connection.cursor(**options)
    for row in rows:
        # No cursor takes a Python set, or the array that mysql-connector-python makes of a vector.
        values = [",".join(sorted(value)) if isinstance(value, set) else value for value in row]
        values = [value.tobytes() if isinstance(value, array.array) else value for value in values]
        cursor.execute(f"INSERT INTO {copy} ({names}) VALUES ({', '.join(['%s'] * len(columns))})", values)
    connection.commit()
    cursor.close()
    assert len(rows) == 4, rows
    for index, column in enumerate(columns):
        print(f"{name}: {column}", *sorted({type(row[index]).__name__ for row in rows[:3]}))
    cursor = connection.cursor()
    for column in columns:
        cursor.execute(
            f"SELECT o.id, LEFT(o.{column}, 80), LEFT(c.{column}, 80) FROM {table} o LEFT JOIN {copy} c USING (id) "
            f"WHERE c.id IS NULL OR NOT HEX(o.{column}) <=> HEX(c.{column})"
        )
        different = cursor.fetchall()
        assert not different, (name, column, different)
    connection.close()


for client, describe in DESCRIPTIONS.items():
    check_descriptions(client, describe, sys.argv[2])
for client, (connect, options, left_out) in CLIENTS.items():
    round_trip(client, connect, options, left_out)
    round_trip(client, connect, options, SHAPES_LEFT_OUT.get(client, ()), "shapes", "shapes_copy")
