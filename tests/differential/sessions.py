#!/usr/bin/env python3
"""Two or three sessions in fixed interleavings, on Junctor and on MariaDB: snapshots, lock waits, deadlocks, lost updates.
Each step is `session: statement`; a step that ends with `...` must wait, and `session: ->` takes its answer later. `$b` is the
connection of session b.

    python3 sessions.py --junctor PORT --mariadb PORT"""

import argparse
import sys
import threading

from outcome import Server

WAIT_SECONDS = 0.3
DATABASE = "differential_sessions"
TABLE = [
    "CREATE TABLE t (id INT PRIMARY KEY, n INT, u INT, KEY n (n), UNIQUE KEY u (u))",
    "INSERT INTO t VALUES (1, 10, 100), (2, 20, 200), (3, 30, 300)",
]
SCRIPTS = {
    "a snapshot is of the first read": """
        a: BEGIN
        a: SELECT * FROM t ORDER BY id
        b: UPDATE t SET n = 11 WHERE id = 1
        b: INSERT INTO t VALUES (4, 40, 400)
        a: SELECT * FROM t ORDER BY id
        a: SELECT n FROM t WHERE id = 1
        a: SELECT n FROM t WHERE id = 1 FOR UPDATE
        a: COMMIT
        a: SELECT * FROM t ORDER BY id""",
    "read committed sees what was committed": """
        a: SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: UPDATE t SET n = 11 WHERE id = 1
        a: SELECT n FROM t WHERE id = 1
        a: COMMIT""",
    "own changes are seen, those of others are not": """
        a: BEGIN
        b: BEGIN
        a: UPDATE t SET n = n + 1 WHERE id = 1
        b: UPDATE t SET n = n + 1 WHERE id = 2
        a: SELECT * FROM t ORDER BY id
        b: SELECT * FROM t ORDER BY n
        a: ROLLBACK
        b: COMMIT
        a: SELECT * FROM t ORDER BY id""",
    "a writer waits for a writer": """
        a: BEGIN
        a: UPDATE t SET n = n + 1 WHERE id = 1
        b: UPDATE t SET n = n + 1 WHERE id = 1 ...
        a: COMMIT
        b: ->
        a: SELECT n FROM t WHERE id = 1""",
    "a wait that is given up undoes the statement alone": """
        b: SET SESSION innodb_lock_wait_timeout = 1
        a: BEGIN
        a: UPDATE t SET n = 99 WHERE id = 2
        b: BEGIN
        b: UPDATE t SET n = 77 WHERE id = 1
        b: UPDATE t SET n = 77 WHERE id = 2
        b: COMMIT
        a: ROLLBACK
        a: SELECT * FROM t ORDER BY id""",
    "going back to a savepoint keeps the locks": """
        a: BEGIN
        a: UPDATE t SET n = 12 WHERE id = 1
        a: SAVEPOINT s
        a: UPDATE t SET n = 22 WHERE id = 2
        a: INSERT INTO t VALUES (4, 40, 400)
        a: ROLLBACK TO s
        a: SELECT * FROM t ORDER BY id
        b: UPDATE t SET n = n + 1 WHERE id = 2 ...
        c: INSERT INTO t VALUES (4, 41, 401)
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "going back to a savepoint keeps the snapshot": """
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        a: SAVEPOINT s
        b: UPDATE t SET n = 11 WHERE id = 1
        a: UPDATE t SET n = n + 100 WHERE id = 1
        a: SELECT n FROM t WHERE id = 1
        a: ROLLBACK TO s
        a: SELECT n FROM t WHERE id = 1
        a: COMMIT
        a: SELECT n FROM t WHERE id = 1""",
    "a victim forgets its savepoints": """
        a: BEGIN
        b: BEGIN
        a: SAVEPOINT s
        b: SAVEPOINT s
        a: UPDATE t SET n = 1 WHERE id = 1
        b: UPDATE t SET n = 2 WHERE id = 2
        a: UPDATE t SET n = 1 WHERE id = 2 ...
        b: UPDATE t SET n = 2 WHERE id = 1
        a: ->
        a: ROLLBACK TO s
        b: ROLLBACK TO s
        a: ROLLBACK
        b: ROLLBACK
        a: SELECT * FROM t ORDER BY id""",
    "a killed query is undone and the transaction goes on": """
        a: BEGIN
        a: UPDATE t SET n = 11 WHERE id = 1
        b: BEGIN
        b: UPDATE t SET n = 21 WHERE id = 2
        b: UPDATE t SET n = n + 5 ...
        a: KILL QUERY $b
        b: ->
        a: KILL QUERY $b
        b: SELECT * FROM t ORDER BY id
        b: COMMIT
        a: COMMIT
        a: SELECT * FROM t ORDER BY id""",
    "a killed connection is undone": """
        a: BEGIN
        a: UPDATE t SET n = 11 WHERE id = 1
        b: KILL $a
        b: UPDATE t SET n = n + 1 WHERE id = 1
        b: SELECT * FROM t ORDER BY id""",
    "a killed INSERT ... SELECT is undone and the transaction goes on": """
        a: BEGIN
        a: INSERT INTO t VALUES (7, 70, 700)
        b: BEGIN
        b: UPDATE t SET n = 21 WHERE id = 2
        b: INSERT INTO t SELECT id + 5, n, u + 500 FROM t WHERE id <= 3 ORDER BY id ...
        a: KILL QUERY $b
        b: ->
        b: SELECT * FROM t ORDER BY id
        b: COMMIT
        a: COMMIT
        b: UPDATE t SET n = n + 1
        a: SELECT * FROM t ORDER BY id""",
    "a killed upsert is undone": """
        a: BEGIN
        a: UPDATE t SET n = 31 WHERE id = 3
        b: INSERT INTO t VALUES (1, 0, 0), (4, 40, 400), (3, 0, 0) ON DUPLICATE KEY UPDATE n = n + 1 ...
        a: KILL QUERY $b
        b: ->
        b: SELECT * FROM t ORDER BY id
        a: COMMIT
        b: INSERT INTO t VALUES (1, 0, 0), (4, 40, 400), (3, 0, 0) ON DUPLICATE KEY UPDATE n = n + 1
        a: SELECT * FROM t ORDER BY id""",
    "a killed REPLACE keeps what was done before it": """
        a: BEGIN
        a: SELECT n FROM t WHERE id = 3 FOR UPDATE
        b: BEGIN
        b: REPLACE INTO t VALUES (2, 22, 100)
        b: REPLACE INTO t VALUES (5, 50, 500), (6, 60, 200), (7, 70, 300) ...
        a: KILL QUERY $b
        b: ->
        b: SELECT * FROM t ORDER BY id
        b: COMMIT
        a: UPDATE t SET n = n + 1
        a: COMMIT
        b: SELECT * FROM t ORDER BY id""",
    "a killed UPDATE in an order is undone": """
        a: BEGIN
        a: UPDATE t SET n = 31 WHERE id = 3
        b: UPDATE t SET u = u + 1 ORDER BY id LIMIT 3 ...
        a: KILL QUERY $b
        b: ->
        a: ROLLBACK
        b: UPDATE t SET u = u + 100 ORDER BY u DESC
        a: SELECT * FROM t ORDER BY id""",
    "a killed DELETE in an order is undone": """
        a: BEGIN
        a: SELECT n FROM t WHERE id = 3 LOCK IN SHARE MODE
        b: BEGIN
        b: DELETE FROM t ORDER BY id LIMIT 1
        b: DELETE FROM t ORDER BY id LIMIT 2 ...
        a: KILL QUERY $b
        b: ->
        b: SELECT * FROM t ORDER BY id
        b: COMMIT
        a: COMMIT
        a: SELECT * FROM t ORDER BY id""",
    "a connection that is killed within an upsert leaves nothing": """
        a: BEGIN
        a: UPDATE t SET n = 31 WHERE id = 3
        b: BEGIN
        b: UPDATE t SET n = 0 WHERE id = 2
        b: INSERT INTO t VALUES (1, 0, 0), (3, 0, 0) ON DUPLICATE KEY UPDATE n = n + 1 ...
        a: KILL $b
        a: UPDATE t SET n = n + 1
        a: COMMIT
        a: SELECT * FROM t ORDER BY id""",
    "a copy between tables keeps both until its transaction ends": """
        a: CREATE TABLE c (id INT PRIMARY KEY, n INT, u INT)
        a: BEGIN
        a: INSERT INTO c SELECT * FROM t
        b: TRUNCATE TABLE c ...
        c: DROP TABLE t ...
        a: SELECT COUNT(*) FROM c
        a: COMMIT
        b: ->
        c: ->
        a: SELECT COUNT(*) FROM c
        a: INSERT INTO c SELECT * FROM t""",
    "a copy waits behind a change of the table that it reads": """
        a: CREATE TABLE c (id INT PRIMARY KEY, n INT, u INT)
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: ALTER TABLE t ADD INDEX un (u, n) ...
        c: REPLACE INTO c SELECT * FROM t ...
        a: COMMIT
        b: ->
        c: ->
        a: SELECT * FROM c ORDER BY id""",
    "a table is renamed when the upsert that waits for a row is done": """
        a: BEGIN
        a: UPDATE t SET n = 1 WHERE id = 2
        b: INSERT INTO t VALUES (2, 0, 0), (4, 40, 400) ON DUPLICATE KEY UPDATE n = n + 100 ...
        c: RENAME TABLE t TO x ...
        a: ROLLBACK
        b: ->
        c: ->
        a: SELECT * FROM x ORDER BY id
        b: INSERT INTO t VALUES (2, 0, 0) ON DUPLICATE KEY UPDATE n = 0""",
    "an index is made when the transaction of an upsert has ended": """
        a: BEGIN
        a: INSERT INTO t VALUES (1, 0, 0), (4, 99, 400) ON DUPLICATE KEY UPDATE n = 99
        b: CREATE INDEX nu ON t (n, u) ...
        a: COMMIT
        b: ->
        a: REPLACE INTO t VALUES (2, 99, 201)
        a: SELECT id, u FROM t FORCE INDEX (nu) WHERE n = 99 ORDER BY u""",
    "an upsert of a child waits for the parent that is being deleted": """
        a: CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id) ON DELETE CASCADE)
        a: INSERT INTO c VALUES (1, 1)
        a: BEGIN
        a: DELETE FROM t WHERE id = 2
        b: INSERT INTO c VALUES (1, 3) ON DUPLICATE KEY UPDATE p = 2 ...
        a: ROLLBACK
        b: ->
        b: REPLACE INTO t VALUES (2, 20, 201)
        a: SELECT * FROM c ORDER BY id""",
    "INSERT IGNORE leaves a child out whose parent has gone meanwhile": """
        a: CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id))
        a: BEGIN
        a: DELETE FROM t WHERE id = 2
        b: INSERT IGNORE INTO c VALUES (1, 2), (2, 1), (3, 2) ...
        a: COMMIT
        b: ->
        b: DELETE IGNORE FROM t ORDER BY id
        b: SELECT * FROM t ORDER BY id
        a: SELECT * FROM c ORDER BY id""",
    "a circle of waits has a victim": """
        a: BEGIN
        b: BEGIN
        a: UPDATE t SET n = 1 WHERE id = 1
        b: UPDATE t SET n = 2 WHERE id = 2
        a: UPDATE t SET n = 1 WHERE id = 2 ...
        b: UPDATE t SET n = 2 WHERE id = 1
        a: ->
        a: COMMIT
        b: COMMIT
        a: SELECT COUNT(*), MAX(n) FROM t WHERE n IN (1, 2, 30)""",
    "a duplicate waits for who wrote it": """
        a: BEGIN
        a: INSERT INTO t VALUES (5, 50, 500)
        b: INSERT INTO t VALUES (5, 51, 501) ...
        a: ROLLBACK
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "a duplicate in a unique index waits too": """
        a: BEGIN
        a: INSERT INTO t VALUES (5, 50, 500)
        b: INSERT INTO t VALUES (6, 60, 500) ...
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "an insert behind an update is a duplicate as soon as its writer ends": """
        a: BEGIN
        a: UPDATE t SET n = n + 1 WHERE id = 2
        b: BEGIN
        b: SELECT n FROM t WHERE id = 2 LOCK IN SHARE MODE ...
        c: INSERT INTO t VALUES (2, 50, 500) ...
        a: ROLLBACK
        b: ->
        c: ->
        b: COMMIT
        a: SELECT * FROM t ORDER BY id""",
    "shared locks live together, a writer waits for them": """
        a: BEGIN
        b: BEGIN
        a: SELECT n FROM t WHERE id = 1 LOCK IN SHARE MODE
        b: SELECT n FROM t WHERE id = 1 LOCK IN SHARE MODE
        c: UPDATE t SET n = 5 WHERE id = 1 ...
        a: COMMIT
        b: COMMIT
        c: ->
        a: SELECT n FROM t WHERE id = 1""",
    "a read for update waits and reads the newest": """
        a: BEGIN
        a: UPDATE t SET n = 12 WHERE id = 1
        b: BEGIN
        b: SELECT n FROM t WHERE id = 1
        b: SELECT n FROM t WHERE id = 1 FOR UPDATE ...
        a: COMMIT
        b: ->
        b: SELECT n FROM t WHERE id = 1
        b: COMMIT""",
    "a deleted row may be written again": """
        a: BEGIN
        a: DELETE FROM t WHERE id = 1
        b: SELECT * FROM t ORDER BY id
        b: INSERT INTO t VALUES (1, 1, 1) ...
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "an upsert waits for the row and changes what has become of it": """
        a: BEGIN
        a: INSERT INTO t VALUES (1, 0, 0) ON DUPLICATE KEY UPDATE n = n + 1
        b: INSERT INTO t VALUES (1, 0, 0) ON DUPLICATE KEY UPDATE n = n + 1 ...
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "an upsert of a row that is not committed waits, and inserts when it goes": """
        a: BEGIN
        a: INSERT INTO t VALUES (5, 50, 500)
        b: INSERT INTO t VALUES (6, 1, 500) ON DUPLICATE KEY UPDATE n = n + 1 ...
        a: ROLLBACK
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "an upsert of a row that is not committed waits, and changes it when it stays": """
        a: BEGIN
        a: INSERT INTO t VALUES (5, 50, 500)
        b: INSERT INTO t VALUES (6, 1, 500) ON DUPLICATE KEY UPDATE n = n + 1 ...
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "a replaced row is waited for": """
        a: BEGIN
        a: REPLACE INTO t VALUES (1, 11, 200)
        b: REPLACE INTO t VALUES (2, 22, 300) ...
        a: ROLLBACK
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "upserts in transactions do not keep each other from their row": """
        a: BEGIN
        b: BEGIN
        a: INSERT INTO t VALUES (9, 1, 100) ON DUPLICATE KEY UPDATE n = n + 1
        b: INSERT INTO t VALUES (8, 1, 100) ON DUPLICATE KEY UPDATE n = n + 1 ...
        a: INSERT INTO t VALUES (9, 1, 100) ON DUPLICATE KEY UPDATE n = n + 1
        a: COMMIT
        b: ->
        b: COMMIT
        a: SELECT * FROM t ORDER BY id""",
    "an upsert that fails keeps what was done before it": """
        a: BEGIN
        a: UPDATE t SET n = 0 WHERE id = 3
        a: INSERT INTO t VALUES (1, 0, 0), (7, 70, 700), (2, 0, 0) ON DUPLICATE KEY UPDATE u = IF(id = 2, 300, u + 1)
        a: SELECT * FROM t ORDER BY id
        a: COMMIT
        b: SELECT * FROM t ORDER BY id""",
    "ignored rows wait for who may take the key away": """
        a: BEGIN
        a: DELETE FROM t WHERE id = 1
        b: INSERT IGNORE INTO t VALUES (1, 1, 1), (2, 2, 2) ...
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "a limited delete takes the first rows that are free of doubt": """
        a: BEGIN
        a: UPDATE t SET n = 100 WHERE id = 1
        b: DELETE FROM t ORDER BY n LIMIT 1 ...
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "a rollback gives keys back": """
        a: BEGIN
        a: UPDATE t SET u = 101, id = 9 WHERE id = 1
        a: SELECT * FROM t ORDER BY id
        a: ROLLBACK
        b: INSERT INTO t VALUES (9, 9, 101)
        b: UPDATE t SET u = 102 WHERE id = 1
        b: SELECT * FROM t WHERE u IN (100, 101, 102) ORDER BY u""",
    "a range that was locked gets no rows": """
        a: BEGIN
        a: SELECT * FROM t WHERE n BETWEEN 15 AND 25 ORDER BY id FOR UPDATE
        b: INSERT INTO t VALUES (5, 22, 500) ...
        a: SELECT * FROM t WHERE n BETWEEN 15 AND 25 ORDER BY id FOR UPDATE
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "a row does not move into a range that was locked": """
        a: BEGIN
        a: SELECT * FROM t WHERE n BETWEEN 21 AND 25 LOCK IN SHARE MODE
        b: UPDATE t SET n = 22 WHERE id = 1 ...
        a: SELECT * FROM t WHERE n BETWEEN 21 AND 25 LOCK IN SHARE MODE
        a: ROLLBACK
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "a key that was looked for in vain stays absent": """
        a: BEGIN
        a: SELECT * FROM t WHERE id = 5 FOR UPDATE
        b: INSERT INTO t VALUES (5, 50, 500) ...
        a: INSERT INTO t VALUES (5, 51, 501)
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "a unique key that was looked for in vain stays absent": """
        a: BEGIN
        a: DELETE FROM t WHERE u = 250
        b: INSERT INTO t VALUES (5, 50, 250) ...
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "a statement alone keeps rows out of what it has passed": """
        a: BEGIN
        a: UPDATE t SET u = 201 WHERE id = 2
        b: UPDATE t FORCE INDEX (n) SET u = u + 1000 WHERE n BETWEEN 5 AND 25 ...
        c: INSERT INTO t VALUES (5, 12, 500) ...
        a: COMMIT
        b: ->
        c: ->
        a: SELECT * FROM t ORDER BY id""",
    "read committed locks no ranges": """
        a: SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
        a: BEGIN
        a: SELECT * FROM t WHERE n BETWEEN 15 AND 25 ORDER BY id FOR UPDATE
        a: SELECT * FROM t WHERE id = 5 FOR UPDATE
        b: INSERT INTO t VALUES (5, 22, 500)
        a: SELECT * FROM t WHERE n BETWEEN 15 AND 25 ORDER BY id FOR UPDATE
        a: COMMIT""",
    "what a serializable transaction has read stays": """
        a: SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE
        c: SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE
        a: BEGIN
        a: SELECT * FROM t WHERE id = 1
        c: BEGIN
        c: SELECT * FROM t WHERE id = 1
        b: UPDATE t SET n = 5 WHERE id = 1 ...
        a: COMMIT
        c: COMMIT
        b: ->
        a: BEGIN
        a: SELECT COUNT(*) FROM t
        b: INSERT INTO t VALUES (5, 50, 500) ...
        a: SELECT COUNT(*) FROM t
        a: COMMIT
        b: ->""",
    "a serializable query alone does not wait": """
        a: BEGIN
        a: UPDATE t SET n = 5 WHERE id = 1
        b: SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE
        b: SELECT n FROM t WHERE id = 1
        b: SELECT COUNT(*), SUM(n) FROM t
        b: SET autocommit = 0
        b: SELECT n FROM t WHERE id = 1 ...
        a: COMMIT
        b: ->
        b: COMMIT""",
    "a level without a scope is of one transaction": """
        b: BEGIN
        b: UPDATE t SET n = 5 WHERE id = 1
        a: SET TRANSACTION ISOLATION LEVEL SERIALIZABLE
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1 ...
        b: COMMIT
        a: ->
        a: COMMIT
        a: BEGIN
        a: SELECT n FROM t WHERE id = 2
        b: UPDATE t SET n = 6 WHERE id = 2
        a: SELECT n FROM t WHERE id = 2
        a: COMMIT""",
    "a snapshot that is kept to refuses what has changed": """
        a: SET SESSION innodb_snapshot_isolation = ON
        a: BEGIN
        a: UPDATE t SET n = 33 WHERE id = 3
        a: SELECT n FROM t WHERE id = 1
        b: UPDATE t SET n = 11 WHERE id = 1
        a: SELECT n FROM t WHERE id = 1
        a: SELECT n FROM t WHERE id = 2 FOR UPDATE
        a: SELECT n FROM t WHERE id = 1 FOR UPDATE
        a: SELECT * FROM t ORDER BY id
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: INSERT INTO t VALUES (5, 50, 500)
        a: INSERT INTO t VALUES (5, 51, 501)
        a: COMMIT
        a: SELECT * FROM t ORDER BY id""",
    "a read that does not wait, and one that skips": """
        a: BEGIN
        a: UPDATE t SET n = 21 WHERE id = 2
        a: INSERT INTO t VALUES (5, 50, 500)
        b: BEGIN
        b: SELECT id FROM t WHERE id = 2 FOR UPDATE NOWAIT
        b: SELECT id FROM t WHERE id IN (1, 2, 3, 5) ORDER BY id FOR UPDATE SKIP LOCKED
        b: SELECT id FROM t WHERE u = 200 FOR UPDATE SKIP LOCKED
        b: SELECT id FROM t WHERE u = 200 FOR UPDATE NOWAIT
        b: UPDATE t SET n = 31 WHERE id = 3
        a: COMMIT
        b: SELECT id, n FROM t WHERE id IN (1, 2, 3, 5) ORDER BY id FOR UPDATE SKIP LOCKED
        b: COMMIT""",
    "readers that both insert are a circle with a victim": """
        a: BEGIN
        b: BEGIN
        a: SELECT * FROM t WHERE id = 8 FOR UPDATE
        b: SELECT * FROM t WHERE id = 8 FOR UPDATE
        a: INSERT INTO t VALUES (8, 80, 800) ...
        b: INSERT INTO t VALUES (8, 81, 801)
        a: ->
        a: COMMIT
        b: COMMIT
        a: SELECT COUNT(*) FROM t WHERE id = 8""",
    "a change waits for who has read the table": """
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: DROP TABLE t ...
        a: SELECT n FROM t WHERE id = 2
        c: SELECT n FROM t WHERE id = 1 ...
        a: COMMIT
        b: ->
        c: ->
        a: SELECT * FROM t""",
    "a change waits for who has written the table": """
        a: BEGIN
        a: UPDATE t SET n = 12 WHERE id = 1
        b: CREATE INDEX two ON t (n, u) ...
        c: UPDATE t SET n = 22 WHERE id = 2 ...
        a: ROLLBACK
        b: ->
        c: ->
        a: SELECT id, n FROM t ORDER BY id""",
    "a change that waits in vain changes nothing": """
        b: SET SESSION lock_wait_timeout = 1
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: TRUNCATE TABLE t
        c: SELECT n FROM t WHERE id = 1
        a: COMMIT
        b: TRUNCATE TABLE t
        a: SELECT COUNT(*) FROM t""",
    "a statement waits for a change as long as it is told": """
        c: SET SESSION lock_wait_timeout = 1
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: DROP INDEX n ON t ...
        c: SELECT n FROM t WHERE id = 1
        a: COMMIT
        b: ->""",
    "a table that was made after the snapshot is not seen": """
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: CREATE TABLE v (id INT PRIMARY KEY)
        a: SELECT * FROM v
        a: COMMIT
        a: SELECT * FROM v""",
    "names are exchanged at once": """
        a: CREATE TABLE v (id INT PRIMARY KEY, n INT)
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: RENAME TABLE t TO w, v TO t, w TO v ...
        c: SELECT COUNT(*) FROM t ...
        a: COMMIT
        b: ->
        c: ->
        a: SELECT COUNT(*) FROM v""",
    "changes of one table keep their order": """
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: TRUNCATE TABLE t ...
        c: DROP TABLE t ...
        a: COMMIT
        b: ->
        c: ->
        a: SELECT * FROM t""",
    "a transaction that ends by going back to nothing keeps its tables": """
        a: BEGIN
        a: SAVEPOINT s
        a: SELECT n FROM t WHERE id = 1
        a: ROLLBACK TO s
        b: ALTER TABLE t ADD INDEX three (u, n) ...
        a: ROLLBACK
        b: ->""",
    "a child waits for who takes its parent away": """
        a: CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id))
        a: BEGIN
        a: DELETE FROM t WHERE id = 1
        b: INSERT INTO c VALUES (1, 1) ...
        a: COMMIT
        b: ->
        a: BEGIN
        a: DELETE FROM t WHERE id = 2
        b: INSERT INTO c VALUES (1, 2) ...
        a: ROLLBACK
        b: ->
        a: SELECT * FROM c""",
    "a parent waits for who makes a child": """
        a: CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (u) ON DELETE CASCADE)
        a: BEGIN
        a: INSERT INTO c VALUES (1, 100)
        b: DELETE FROM t WHERE id = 1 ...
        a: COMMIT
        b: ->
        a: SELECT * FROM c
        a: SELECT id FROM t ORDER BY id""",
    "a key that children hold stays with its parent": """
        a: CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id) ON UPDATE CASCADE)
        a: BEGIN
        a: INSERT INTO c VALUES (1, 1), (2, 2)
        b: UPDATE t SET n = 99 WHERE id = 3
        b: UPDATE t SET id = 7 WHERE id = 2 ...
        a: COMMIT
        b: ->
        a: SELECT * FROM c ORDER BY id""",
    "a child waits for who makes its parent": """
        a: CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (u))
        a: BEGIN
        a: INSERT INTO t VALUES (4, 40, 400)
        b: INSERT INTO c VALUES (1, 400) ...
        a: ROLLBACK
        b: ->
        a: BEGIN
        a: INSERT INTO t VALUES (4, 40, 400)
        b: INSERT INTO c VALUES (1, 400) ...
        a: COMMIT
        b: ->
        a: SELECT * FROM c
        a: DROP TABLE c""",
    "a cascade waits for who makes a child at its end": """
        a: CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id) ON DELETE CASCADE)
        a: CREATE TABLE d (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES c (id) ON DELETE CASCADE)
        a: INSERT INTO c VALUES (1, 1), (2, 2)
        b: BEGIN
        b: INSERT INTO d VALUES (5, 1)
        a: DELETE FROM t WHERE id = 1 ...
        b: INSERT INTO d VALUES (6, 2)
        b: COMMIT
        a: ->
        b: SELECT * FROM c
        b: SELECT * FROM d
        b: INSERT INTO d VALUES (7, 1)
        a: DROP TABLE d
        a: DROP TABLE c""",
    "a foreign key comes after who has written to the child": """
        a: CREATE TABLE c (id INT PRIMARY KEY, p INT, KEY p (p))
        a: INSERT INTO c VALUES (1, 1)
        a: BEGIN
        a: INSERT INTO c VALUES (2, 9)
        b: ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES t (id) ...
        c: INSERT INTO c VALUES (3, 3) ...
        a: ROLLBACK
        b: ->
        c: ->
        c: INSERT INTO c VALUES (4, 9)
        c: DELETE FROM t WHERE id = 1
        c: ALTER TABLE c DROP FOREIGN KEY c_ibfk_1
        c: DELETE FROM t WHERE id = 1
        b: ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES t (id)
        a: DROP TABLE c""",
    "a foreign key comes after who takes a parent away": """
        a: CREATE TABLE c (id INT PRIMARY KEY, p INT, KEY p (p))
        a: INSERT INTO c VALUES (1, 1), (2, 2)
        a: BEGIN
        a: DELETE FROM t WHERE id = 1
        b: ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES t (id) ...
        a: COMMIT
        b: ->
        a: DELETE FROM c WHERE id = 1
        b: ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES t (id)
        a: DELETE FROM t WHERE id = 2
        a: DROP TABLE c""",
    "a parent that a transaction writes to is no other's to drop": """
        a: CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id))
        a: BEGIN
        a: INSERT INTO c VALUES (1, 1)
        b: DROP TABLE c ...
        a: COMMIT
        b: ->
        b: DELETE FROM t WHERE id = 1
        b: DROP TABLE t""",
}


class Session:
    """A connection whose statement may be waited for."""

    def __init__(self, name, port):
        self.server = Server(name, port)
        self.server.run(f"USE {DATABASE}")
        self.thread = None
        self.outcome = None

    def send(self, statement):
        def run():
            self.outcome = self.server.run(statement)

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def answer(self, seconds):
        self.thread.join(seconds)
        return "waits" if self.thread.is_alive() else shown(self.outcome)


def shown(outcome):
    if outcome.kind == "error":
        return f"error {outcome.number}"
    return f"{outcome.affected} affected" if outcome.kind == "ok" else str(outcome.rows)


def last(answered):
    return answered[-1]


def play(name, port, script):
    """The answers of every step of a script."""
    server = Server(name, port)
    server.run(f"DROP DATABASE IF EXISTS {DATABASE}")
    for statement in (f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", *TABLE):
        server.run(statement)
    sessions, answers = {}, []
    for line in script.strip().splitlines():
        who, _, statement = line.strip().partition(": ")
        session = sessions.setdefault(who, None) or Session(name, port)
        sessions[who] = session
        if statement != "->":
            for other, its in sessions.items():
                statement = statement.replace(f"${other}", str(its.server.connection.thread_id()))
            session.send(statement.removesuffix(" ..."))
        answer = session.answer(WAIT_SECONDS if statement.endswith("...") else 20)
        # MariaDB has no number of its own for what NOWAIT does not wait for.
        is_refused = name == "mariadb" and "NOWAIT" in statement and answer == "error 1205"
        answers.append((line.strip(), "error 3572" if is_refused else answer))
    for session in sessions.values():
        session.server.connection.close()
    server.run(f"DROP DATABASE {DATABASE}")
    return answers


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--junctor", type=int, required=True, metavar="PORT")
    parser.add_argument("--mariadb", type=int, required=True, metavar="PORT")
    options = parser.parse_args()
    failed = 0
    for title, script in SCRIPTS.items():
        ours, theirs = play("junctor", options.junctor, script), play("mariadb", options.mariadb, script)
        # Which of those in the circle is the victim is open.
        if ours == theirs or "victim" in title and sorted(map(last, ours)) == sorted(map(last, theirs)):
            continue
        failed += 1
        print(f"-- {title}")
        for (step, our_answer), (_, their_answer) in zip(ours, theirs):
            mark = "" if our_answer == their_answer else f"   !! theirs: {their_answer}"
            print(f"{step}   => {our_answer}{mark}")
    print(f"{len(SCRIPTS)} interleavings, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
