"""A session with each Python client: connect, create tables, prepared inserts, reads, transactions,
errors."""

import sys
import tempfile

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


def load_data(connection, folder):
    cursor = connection.cursor()
    cursor.execute("DROP DATABASE IF EXISTS client_python")
    cursor.execute("CREATE DATABASE client_python")
    cursor.execute("USE client_python")
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), n INT NOT NULL DEFAULT 7)")
    cursor.execute("SET GLOBAL local_infile = 1")

    def load(text, clauses, before="INTO TABLE t", encoding="utf-8"):
        path = folder + "/rows"
        with open(path, "w", encoding=encoding, newline="") as file:
            file.write(text)
        count = cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' {before} {clauses}")
        message = connection._result.message.decode()
        cursor.execute("SHOW WARNINGS")
        warnings = [code for _, code, _ in cursor.fetchall()]
        return count, message[message.index("Records") :], warnings

    answer = load("1\tone\t1\n2\t\\N\t\\N\n3\tthree\n1\tx\t1\n4\ty\t1\tmore\n", "")
    assert answer == (4, "Records: 5  Deleted: 0  Skipped: 1  Warnings: 4", [1263, 1261, 1262, 1062]), answer
    answer = load("3\tx\t1\n5\ty\t2\n", "", "REPLACE INTO TABLE t")
    assert answer == (3, "Records: 2  Deleted: 1  Skipped: 0  Warnings: 0", []), answer
    answer = load(
        'id;name;n\r\n10;"a;""b""";1\r\n11;NULL;2\r\n',
        "FIELDS TERMINATED BY ';' OPTIONALLY ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES "
        "(id, @name, @n) SET name = LOWER(@name), n = @n * 10 + id",
    )
    assert answer == (2, "Records: 2  Deleted: 0  Skipped: 0  Warnings: 0", []), answer
    cursor.execute("SELECT *, @n FROM t ORDER BY id")
    rows = ((1, "one", 1), (2, None, 0), (3, "x", 1), (4, "y", 1), (5, "y", 2), (10, 'a;"b"', 20), (11, None, 31))
    assert cursor.fetchall() == tuple(row + ("2",) for row in rows)
    load("6\tZoë €\t1\n", "CHARACTER SET latin1", "REPLACE INTO TABLE t", "cp1252")
    cursor.execute("SELECT name FROM t WHERE id = 6")
    assert cursor.fetchall() == (("Zoë €",),)
    for text, errno in (("6\n", 1261), ("6\ta\t1\t2\n", 1262), ("6\ta\t\\N\n", 1263), ("x\ta\t1\n" + "7\ta\t1\n" * 100000, 1366)):
        try:
            load(text, "", "REPLACE INTO TABLE t")
            raise AssertionError("a wrong line was accepted")
        except pymysql.err.MySQLError as error:
            assert error.args[0] == errno, error
    many = "".join(f"{number}\tname {number}\t{number}\n" for number in range(1000, 51000))
    assert load(many, "")[0] == 50000
    cursor.execute("SELECT COUNT(*), SUM(n), MAX(name) FROM t WHERE id >= 1000")
    assert cursor.fetchall() == ((50000, sum(range(1000, 51000)), "name 9999"),)
    cursor.execute("SET GLOBAL local_infile = DEFAULT")
    cursor.execute("DROP DATABASE client_python")
    connection.close()


def attributes(connection):
    """Query attributes belong to one statement, as text or prepared."""
    text = "SELECT mysql_query_attribute_string('trace'), mysql_query_attribute_string('n'), mysql_query_attribute_string('x')"
    for options in ({}, {"prepared": True}):
        for arguments in ((), (5,)):
            cursor = connection.cursor(**options)
            cursor.add_attribute("trace", "Zoë")
            cursor.add_attribute("n", 7)
            cursor.execute(text + (", %s" if arguments else ""), arguments)
            assert cursor.fetchall() == [("Zoë", "7", None) + arguments], options
            cursor.clear_attributes()
            cursor.execute(text, ())
            assert cursor.fetchall() == [(None, None, None)], options
            cursor.close()
    connection.close()


def main():
    options = {"host": "127.0.0.1", "port": int(sys.argv[1]), "user": "root"}
    connection = pymysql.connect(**options, charset="utf8mb4")
    session(connection, pymysql.err.IntegrityError, connection.cursor)
    several_statements(
        pymysql.connect(**options, charset="utf8mb4", autocommit=True, client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS),
        pymysql.connect(**options),
    )
    with tempfile.TemporaryDirectory() as folder:
        load_data(pymysql.connect(**options, charset="utf8mb4", autocommit=True, local_infile=True), folder)
    for prepared in (True, False):
        connection = mysql.connector.connect(**options)
        session(connection, mysql.connector.IntegrityError, lambda: connection.cursor(prepared=prepared))
    attributes(mysql.connector.connect(**options, use_pure=True))
    print("python: everything as expected")


main()
