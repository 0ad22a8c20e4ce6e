#!/usr/bin/env python3
"""Two or three sessions in fixed interleavings, on Junctor and MariaDB: snapshots, lock waits, deadlocks,
lost updates. Each step is `session: statement`. A step that ends with `...` must wait, and `session: ->`
takes its answer later. `$b` is the connection id of session b.

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
    "the first read takes the snapshot": """
        a: BEGIN
        a: SELECT * FROM t ORDER BY id
        b: UPDATE t SET n = 11 WHERE id = 1
        b: INSERT INTO t VALUES (4, 40, 400)
        a: SELECT * FROM t ORDER BY id
        a: SELECT n FROM t WHERE id = 1
        a: SELECT n FROM t WHERE id = 1 FOR UPDATE
        a: COMMIT
        a: SELECT * FROM t ORDER BY id""",
    "read committed sees new commits": """
        a: SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: UPDATE t SET n = 11 WHERE id = 1
        a: SELECT n FROM t WHERE id = 1
        a: COMMIT""",
    "own changes are visible, those of others are not": """
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
    "a lock wait timeout rolls back only the statement": """
        b: SET SESSION innodb_lock_wait_timeout = 1
        a: BEGIN
        a: UPDATE t SET n = 99 WHERE id = 2
        b: BEGIN
        b: UPDATE t SET n = 77 WHERE id = 1
        b: UPDATE t SET n = 77 WHERE id = 2
        b: COMMIT
        a: ROLLBACK
        a: SELECT * FROM t ORDER BY id""",
    "rolling back to a savepoint keeps the locks": """
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
    "rolling back to a savepoint keeps the snapshot": """
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
    "a victim loses its savepoints": """
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
    "a killed query is rolled back and the transaction continues": """
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
    "the transaction of a killed connection is rolled back": """
        a: BEGIN
        a: UPDATE t SET n = 11 WHERE id = 1
        b: KILL $a
        b: UPDATE t SET n = n + 1 WHERE id = 1
        b: SELECT * FROM t ORDER BY id""",
    "a killed INSERT ... SELECT is rolled back and the transaction continues": """
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
    "a killed upsert is rolled back": """
        a: BEGIN
        a: UPDATE t SET n = 31 WHERE id = 3
        b: INSERT INTO t VALUES (1, 0, 0), (4, 40, 400), (3, 0, 0) ON DUPLICATE KEY UPDATE n = n + 1 ...
        a: KILL QUERY $b
        b: ->
        b: SELECT * FROM t ORDER BY id
        a: COMMIT
        b: INSERT INTO t VALUES (1, 0, 0), (4, 40, 400), (3, 0, 0) ON DUPLICATE KEY UPDATE n = n + 1
        a: SELECT * FROM t ORDER BY id""",
    "a killed REPLACE keeps the earlier changes of its transaction": """
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
    "a killed UPDATE with ORDER BY is rolled back": """
        a: BEGIN
        a: UPDATE t SET n = 31 WHERE id = 3
        b: UPDATE t SET u = u + 1 ORDER BY id LIMIT 3 ...
        a: KILL QUERY $b
        b: ->
        a: ROLLBACK
        b: UPDATE t SET u = u + 100 ORDER BY u DESC
        a: SELECT * FROM t ORDER BY id""",
    "a killed DELETE with ORDER BY is rolled back": """
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
    "a connection killed during an upsert leaves nothing behind": """
        a: BEGIN
        a: UPDATE t SET n = 31 WHERE id = 3
        b: BEGIN
        b: UPDATE t SET n = 0 WHERE id = 2
        b: INSERT INTO t VALUES (1, 0, 0), (3, 0, 0) ON DUPLICATE KEY UPDATE n = n + 1 ...
        a: KILL $b
        a: UPDATE t SET n = n + 1
        a: COMMIT
        a: SELECT * FROM t ORDER BY id""",
    "a copy between tables protects both until its transaction ends": """
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
    "a copy waits behind a schema change of its source table": """
        a: CREATE TABLE c (id INT PRIMARY KEY, n INT, u INT)
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: ALTER TABLE t ADD INDEX un (u, n) ...
        c: REPLACE INTO c SELECT * FROM t ...
        a: COMMIT
        b: ->
        c: ->
        a: SELECT * FROM c ORDER BY id""",
    "a table is renamed after a waiting upsert is done": """
        a: BEGIN
        a: UPDATE t SET n = 1 WHERE id = 2
        b: INSERT INTO t VALUES (2, 0, 0), (4, 40, 400) ON DUPLICATE KEY UPDATE n = n + 100 ...
        c: RENAME TABLE t TO x ...
        a: ROLLBACK
        b: ->
        c: ->
        a: SELECT * FROM x ORDER BY id
        b: INSERT INTO t VALUES (2, 0, 0) ON DUPLICATE KEY UPDATE n = 0""",
    "an index is created after the transaction of an upsert has ended": """
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
    "INSERT IGNORE skips a child whose parent was deleted meanwhile": """
        a: CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id))
        a: BEGIN
        a: DELETE FROM t WHERE id = 2
        b: INSERT IGNORE INTO c VALUES (1, 2), (2, 1), (3, 2) ...
        a: COMMIT
        b: ->
        b: DELETE IGNORE FROM t ORDER BY id
        b: SELECT * FROM t ORDER BY id
        a: SELECT * FROM c ORDER BY id""",
    "a cycle of waits has a victim": """
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
    "a duplicate waits for the transaction that wrote it": """
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
    "an insert behind an update is a duplicate as soon as the update ends": """
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
    "shared locks coexist, a writer waits for them": """
        a: BEGIN
        b: BEGIN
        a: SELECT n FROM t WHERE id = 1 LOCK IN SHARE MODE
        b: SELECT n FROM t WHERE id = 1 LOCK IN SHARE MODE
        c: UPDATE t SET n = 5 WHERE id = 1 ...
        a: COMMIT
        b: COMMIT
        c: ->
        a: SELECT n FROM t WHERE id = 1""",
    "a read for update waits and returns the newest version": """
        a: BEGIN
        a: UPDATE t SET n = 12 WHERE id = 1
        b: BEGIN
        b: SELECT n FROM t WHERE id = 1
        b: SELECT n FROM t WHERE id = 1 FOR UPDATE ...
        a: COMMIT
        b: ->
        b: SELECT n FROM t WHERE id = 1
        b: COMMIT""",
    "a deleted row can be inserted again": """
        a: BEGIN
        a: DELETE FROM t WHERE id = 1
        b: SELECT * FROM t ORDER BY id
        b: INSERT INTO t VALUES (1, 1, 1) ...
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "an upsert waits for the row and changes its new version": """
        a: BEGIN
        a: INSERT INTO t VALUES (1, 0, 0) ON DUPLICATE KEY UPDATE n = n + 1
        b: INSERT INTO t VALUES (1, 0, 0) ON DUPLICATE KEY UPDATE n = n + 1 ...
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "an upsert waits for an uncommitted row, and inserts after its rollback": """
        a: BEGIN
        a: INSERT INTO t VALUES (5, 50, 500)
        b: INSERT INTO t VALUES (6, 1, 500) ON DUPLICATE KEY UPDATE n = n + 1 ...
        a: ROLLBACK
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "an upsert waits for an uncommitted row, and updates it after its commit": """
        a: BEGIN
        a: INSERT INTO t VALUES (5, 50, 500)
        b: INSERT INTO t VALUES (6, 1, 500) ON DUPLICATE KEY UPDATE n = n + 1 ...
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "REPLACE waits for a row that another REPLACE replaces": """
        a: BEGIN
        a: REPLACE INTO t VALUES (1, 11, 200)
        b: REPLACE INTO t VALUES (2, 22, 300) ...
        a: ROLLBACK
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "upserts in transactions do not block each other forever": """
        a: BEGIN
        b: BEGIN
        a: INSERT INTO t VALUES (9, 1, 100) ON DUPLICATE KEY UPDATE n = n + 1
        b: INSERT INTO t VALUES (8, 1, 100) ON DUPLICATE KEY UPDATE n = n + 1 ...
        a: INSERT INTO t VALUES (9, 1, 100) ON DUPLICATE KEY UPDATE n = n + 1
        a: COMMIT
        b: ->
        b: COMMIT
        a: SELECT * FROM t ORDER BY id""",
    "a failed upsert keeps the earlier changes of its transaction": """
        a: BEGIN
        a: UPDATE t SET n = 0 WHERE id = 3
        a: INSERT INTO t VALUES (1, 0, 0), (7, 70, 700), (2, 0, 0) ON DUPLICATE KEY UPDATE u = IF(id = 2, 300, u + 1)
        a: SELECT * FROM t ORDER BY id
        a: COMMIT
        b: SELECT * FROM t ORDER BY id""",
    "INSERT IGNORE waits for a transaction that deletes the key": """
        a: BEGIN
        a: DELETE FROM t WHERE id = 1
        b: INSERT IGNORE INTO t VALUES (1, 1, 1), (2, 2, 2) ...
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "a DELETE with LIMIT waits for rows that may come first": """
        a: BEGIN
        a: UPDATE t SET n = 100 WHERE id = 1
        b: DELETE FROM t ORDER BY n LIMIT 1 ...
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "a rollback restores keys": """
        a: BEGIN
        a: UPDATE t SET u = 101, id = 9 WHERE id = 1
        a: SELECT * FROM t ORDER BY id
        a: ROLLBACK
        b: INSERT INTO t VALUES (9, 9, 101)
        b: UPDATE t SET u = 102 WHERE id = 1
        b: SELECT * FROM t WHERE u IN (100, 101, 102) ORDER BY u""",
    "no row is inserted into a locked range": """
        a: BEGIN
        a: SELECT * FROM t WHERE n BETWEEN 15 AND 25 ORDER BY id FOR UPDATE
        b: INSERT INTO t VALUES (5, 22, 500) ...
        a: SELECT * FROM t WHERE n BETWEEN 15 AND 25 ORDER BY id FOR UPDATE
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "no row is moved into a locked range": """
        a: BEGIN
        a: SELECT * FROM t WHERE n BETWEEN 21 AND 25 LOCK IN SHARE MODE
        b: UPDATE t SET n = 22 WHERE id = 1 ...
        a: SELECT * FROM t WHERE n BETWEEN 21 AND 25 LOCK IN SHARE MODE
        a: ROLLBACK
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "a missing key that was read stays missing": """
        a: BEGIN
        a: SELECT * FROM t WHERE id = 5 FOR UPDATE
        b: INSERT INTO t VALUES (5, 50, 500) ...
        a: INSERT INTO t VALUES (5, 51, 501)
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "a missing unique key that was read stays missing": """
        a: BEGIN
        a: DELETE FROM t WHERE u = 250
        b: INSERT INTO t VALUES (5, 50, 250) ...
        a: COMMIT
        b: ->
        a: SELECT * FROM t ORDER BY id""",
    "an autocommit statement keeps new rows out of the range it has passed": """
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
    "rows that a serializable transaction has read do not change": """
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
    "a serializable autocommit query does not wait": """
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
    "an isolation level without a scope applies to one transaction": """
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
    "snapshot isolation rejects writes of changed rows": """
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
    "reads with NOWAIT and SKIP LOCKED": """
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
    "two readers of a range that both insert are a cycle with a victim": """
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
    "a schema change waits for transactions that read the table": """
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: DROP TABLE t ...
        a: SELECT n FROM t WHERE id = 2
        c: SELECT n FROM t WHERE id = 1 ...
        a: COMMIT
        b: ->
        c: ->
        a: SELECT * FROM t""",
    "a schema change waits for transactions that wrote the table": """
        a: BEGIN
        a: UPDATE t SET n = 12 WHERE id = 1
        b: CREATE INDEX two ON t (n, u) ...
        c: UPDATE t SET n = 22 WHERE id = 2 ...
        a: ROLLBACK
        b: ->
        c: ->
        a: SELECT id, n FROM t ORDER BY id""",
    "a schema change that times out changes nothing": """
        b: SET SESSION lock_wait_timeout = 1
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: TRUNCATE TABLE t
        c: SELECT n FROM t WHERE id = 1
        a: COMMIT
        b: TRUNCATE TABLE t
        a: SELECT COUNT(*) FROM t""",
    "a statement waits for a schema change up to lock_wait_timeout": """
        c: SET SESSION lock_wait_timeout = 1
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: DROP INDEX n ON t ...
        c: SELECT n FROM t WHERE id = 1
        a: COMMIT
        b: ->""",
    "a table created after the snapshot is not visible": """
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: CREATE TABLE v (id INT PRIMARY KEY)
        a: SELECT * FROM v
        a: COMMIT
        a: SELECT * FROM v""",
    "names are exchanged atomically": """
        a: CREATE TABLE v (id INT PRIMARY KEY, n INT)
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: RENAME TABLE t TO w, v TO t, w TO v ...
        c: SELECT COUNT(*) FROM t ...
        a: COMMIT
        b: ->
        c: ->
        a: SELECT COUNT(*) FROM v""",
    "schema changes of one table keep their order": """
        a: BEGIN
        a: SELECT n FROM t WHERE id = 1
        b: TRUNCATE TABLE t ...
        c: DROP TABLE t ...
        a: COMMIT
        b: ->
        c: ->
        a: SELECT * FROM t""",
    "rolling back to an initial savepoint keeps the table locks": """
        a: BEGIN
        a: SAVEPOINT s
        a: SELECT n FROM t WHERE id = 1
        a: ROLLBACK TO s
        b: ALTER TABLE t ADD INDEX three (u, n) ...
        a: ROLLBACK
        b: ->""",
    "a child waits for the transaction that deletes its parent": """
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
    "deleting a parent waits for the transaction that inserts a child": """
        a: CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (u) ON DELETE CASCADE)
        a: BEGIN
        a: INSERT INTO c VALUES (1, 100)
        b: DELETE FROM t WHERE id = 1 ...
        a: COMMIT
        b: ->
        a: SELECT * FROM c
        a: SELECT id FROM t ORDER BY id""",
    "a parent key update waits for the transaction that inserts a child": """
        a: CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id) ON UPDATE CASCADE)
        a: BEGIN
        a: INSERT INTO c VALUES (1, 1), (2, 2)
        b: UPDATE t SET n = 99 WHERE id = 3
        b: UPDATE t SET id = 7 WHERE id = 2 ...
        a: COMMIT
        b: ->
        a: SELECT * FROM c ORDER BY id""",
    "a child waits for the transaction that inserts its parent": """
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
    "a cascade waits for the transaction that inserts a grandchild": """
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
    "adding a foreign key waits for writers of the child": """
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
    "adding a foreign key waits for deletions of parents": """
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
    "dropping a child waits for transactions that wrote to it": """
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
    """A connection whose statement may wait."""

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
    """Runs a script and returns the answers of all steps."""
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
        # MariaDB has no separate error number for NOWAIT.
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
        # The choice of the victim in a cycle is not determined.
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
