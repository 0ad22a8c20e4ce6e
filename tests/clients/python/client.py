"""A session with each Python client: connect, create tables, prepared inserts, reads, transactions,
errors."""

import sys

import mysql.connector
import pymysql
import pymysql.constants.CLIENT


def session(connection, errors, prepared):
    cursor = connection.cursor()
    cursor.execute("DROP DATABASE IF EXISTS client_python")
    cursor.execute("CREATE DATABASE client_python")
    cursor.execute("USE client_python")
    cursor.execute(
        "CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40), score DOUBLE, data BLOB, "
        "n BIGINT UNSIGNED, UNIQUE KEY name (name))"
    )
    writer = prepared()
    insert = "INSERT INTO t (name, score, data, n) VALUES (%s, %s, %s, %s)"
    writer.execute(insert, ("Zoë 😀", 1.25, b"\x00\xff\x01", 18446744073709551615))
    first = writer.lastrowid
    writer.executemany(insert, [(f"name {i}", i / 2, None, i) for i in range(100)])
    connection.commit()
    cursor.execute("SELECT name, score, data, n, NULL FROM t WHERE id = %s", (first,))
    assert list(cursor.fetchall()) == [("Zoë 😀", 1.25, b"\x00\xff\x01", 18446744073709551615, None)]
    reader = prepared()
    reader.execute("SELECT name FROM t WHERE n < %s ORDER BY n DESC LIMIT 3", (50,))
    assert [row[0] for row in reader.fetchall()] == ["name 49", "name 48", "name 47"]
    try:
        writer.execute(insert, ("name 7", 0, None, 0))
        raise AssertionError("a duplicate was accepted")
    except errors as error:
        assert error.args[0] == 1062, error
    for finish in (connection.commit, connection.rollback):
        writer.execute("UPDATE t SET score = score + 1 WHERE name = %s", ("name 1",))
        finish()
        cursor.execute("SELECT score FROM t WHERE name = 'name 1'")
        assert [row[0] for row in cursor.fetchall()] == [1.5]
        connection.commit()
    cursor.execute("DROP DATABASE client_python")
    connection.close()


def several_statements(connection, holder):
    cursor = connection.cursor()
    results = []
    cursor.execute(
        "DROP DATABASE IF EXISTS client_python; CREATE DATABASE client_python; USE client_python; "
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9)); INSERT INTO t VALUES (1, 'a;b'), (2, ';'); "
        "SELECT * FROM t ORDER BY id; SELECT COUNT(*) FROM t; DELETE FROM t WHERE id = 2; "
    )
    more = True
    while more:
        results.append(cursor.fetchall() if cursor.description else cursor.rowcount)
        more = cursor.nextset()
    assert results[4:] == [2, ((1, "a;b"), (2, ";")), ((2,),), 1], results
    try:
        cursor.execute("INSERT INTO t VALUES (3, ''); INSERT INTO t VALUES (1, ''); INSERT INTO t VALUES (4, '')")
        while cursor.nextset():
            pass
        raise AssertionError("a duplicate was accepted")
    except pymysql.err.IntegrityError as error:
        assert error.args[0] == 1062, error
    # A result is sent even if a later statement of the same text has to wait.
    holder.begin()
    holder.cursor().execute("INSERT INTO client_python.t VALUES (5, '')")
    cursor.execute("SELECT 1; INSERT INTO t VALUES (5, ''); SELECT 2; DELETE FROM t WHERE id = 5")
    holder.rollback()
    results = [cursor.fetchall()]
    while cursor.nextset():
        results.append(cursor.fetchall() if cursor.description else cursor.rowcount)
    assert results == [((1,),), 1, ((2,),), 1], results
    cursor.execute("SELECT id FROM t ORDER BY id; DROP DATABASE client_python")
    assert cursor.fetchall() == ((1,), (3,))
    cursor.nextset()
    connection.close()
    holder.close()


def main():
    options = {"host": "127.0.0.1", "port": int(sys.argv[1]), "user": "root"}
    connection = pymysql.connect(**options, charset="utf8mb4")
    session(connection, pymysql.err.IntegrityError, connection.cursor)
    several_statements(
        pymysql.connect(**options, charset="utf8mb4", autocommit=True, client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS),
        pymysql.connect(**options),
    )
    for prepared in (True, False):
        connection = mysql.connector.connect(**options)
        session(connection, mysql.connector.IntegrityError, lambda: connection.cursor(prepared=prepared))
    print("python: everything as expected")


main()
