"""Round trips of every type by each Python client: what a client reads of the table `original`, it writes into
`copy`, and both tables hold the same bytes. round_trips.py PORT; prints the Python type of each column."""

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


def round_trip(name, connect, options, left_out):
    connection = connect()
    cursor = connection.cursor()
    cursor.execute("SET time_zone = '+00:00'")
    cursor.execute("TRUNCATE TABLE copy")
    cursor.execute("SELECT * FROM original WHERE FALSE")
    columns = [column[0] for column in cursor.description if column[0] not in left_out]
    cursor.fetchall()
    cursor.close()
    cursor = connection.cursor(**options)
    names = ", ".join(columns)
    cursor.execute(f"SELECT {names} FROM original ORDER BY id")
    rows = cursor.fetchall()
    cursor.close()
    cursor = connection.cursor(**options)
    for row in rows:
        # No cursor takes a Python set.
        values = [",".join(sorted(value)) if isinstance(value, set) else value for value in row]
        cursor.execute(f"INSERT INTO copy ({names}) VALUES ({', '.join(['%s'] * len(columns))})", values)
    connection.commit()
    cursor.close()
    assert len(rows) == 4, rows
    for index, column in enumerate(columns):
        print(f"{name}: {column}", *sorted({type(row[index]).__name__ for row in rows[:3]}))
    cursor = connection.cursor()
    for column in columns:
        cursor.execute(
            f"SELECT o.id, LEFT(o.{column}, 80), LEFT(c.{column}, 80) FROM original o LEFT JOIN copy c USING (id) "
            f"WHERE c.id IS NULL OR NOT HEX(o.{column}) <=> HEX(c.{column})"
        )
        different = cursor.fetchall()
        assert not different, (name, column, different)
    connection.close()


for client, (connect, options, left_out) in CLIENTS.items():
    round_trip(client, connect, options, left_out)
