-- INSERT ... SELECT ... ON DUPLICATE KEY UPDATE that refers to columns of the source table.
CREATE DATABASE cli_upserts_of_queries;
USE cli_upserts_of_queries;
CREATE TABLE t (id INT PRIMARY KEY, c INT, d INT DEFAULT 5, e VARCHAR(4));
CREATE TABLE s (id INT PRIMARY KEY, c INT, x INT);
INSERT INTO t VALUES (1, 1, 1, 'a'), (2, 2, 2, 'b');
INSERT INTO s VALUES (1, 100, 1000), (2, 200, 2000), (3, 300, 3000);

-- A column name that both tables have must be qualified.
INSERT INTO t SELECT id, c, x, 's' FROM s ON DUPLICATE KEY UPDATE c = c + 1;
INSERT INTO t SELECT id, c, x, 's' FROM s ON DUPLICATE KEY UPDATE d = id;
INSERT INTO t SELECT id, c, x, 's' FROM s ON DUPLICATE KEY UPDATE s.c = 1;
INSERT INTO t SELECT id, c, x, 's' FROM s ON DUPLICATE KEY UPDATE c = nosuch;
INSERT INTO t SELECT id, c, x, 's' FROM s ON DUPLICATE KEY UPDATE c = t.c + 1, d = d + 1;
SELECT * FROM t ORDER BY id;
INSERT INTO t SELECT id, c, x, 's' FROM s ON DUPLICATE KEY UPDATE c = s.c + 1, d = x;
INSERT INTO t SELECT id, c, x, 's' FROM s ON DUPLICATE KEY UPDATE t.c = x + t.c + VALUES(c) + s.id, e = CONCAT(e, x);
INSERT INTO t SELECT id, 7, 8, 'z' FROM s AS z WHERE x < 2500 ON DUPLICATE KEY UPDATE c = z.c + VALUES(c), d = z.x;
INSERT INTO t (id, c) SELECT id, c FROM s AS z ORDER BY x DESC LIMIT 2 ON DUPLICATE KEY UPDATE d = z.x - 1, e = z.c;
SELECT * FROM t ORDER BY id;

-- The target table is also the source.
INSERT INTO t (id, c) SELECT id + 1, 1 FROM t ON DUPLICATE KEY UPDATE c = t.c + 1;
INSERT INTO t (id, c) SELECT id + 1, 1 FROM t AS q ORDER BY id ON DUPLICATE KEY UPDATE c = t.c + q.id;
INSERT INTO t (id, c) SELECT id + 1, 1 FROM t AS q ORDER BY id ON DUPLICATE KEY UPDATE c = 1 + q.nosuch;
SELECT * FROM t ORDER BY id;

-- A query without a table, with DISTINCT or with aggregates has no columns to refer to.
INSERT INTO t (id, c) SELECT 1, 1 ON DUPLICATE KEY UPDATE c = c + 1;
INSERT INTO t (id, c) SELECT MIN(id), 1 FROM s ON DUPLICATE KEY UPDATE c = c + 1;
INSERT INTO t (id, c) SELECT MIN(id), 1 FROM s ON DUPLICATE KEY UPDATE c = s.c;
INSERT INTO t (id, c) SELECT DISTINCT 1, 1 FROM s ON DUPLICATE KEY UPDATE d = d + 1;
SELECT * FROM t ORDER BY id;
DROP DATABASE cli_upserts_of_queries;
