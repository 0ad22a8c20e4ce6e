-- AUTO_INCREMENT in a column that is no primary key, in a table without one.
CREATE DATABASE auto_keys;
USE auto_keys;
CREATE TABLE t (a INT AUTO_INCREMENT, b INT, KEY (a));
INSERT INTO t (b) VALUES (1), (2), (3);
SELECT LAST_INSERT_ID();
SELECT a, b FROM t ORDER BY b;
INSERT INTO t (b) VALUES (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15), (16), (17), (18), (19), (20), (21), (22), (23), (24), (25), (26), (27), (28), (29), (30), (31), (32), (33), (34), (35), (36), (37), (38), (39), (40);
SELECT LAST_INSERT_ID(), COUNT(*), MIN(a), MAX(a), COUNT(DISTINCT a) FROM t;
INSERT INTO t VALUES (NULL, 41), (0, 42);
SELECT LAST_INSERT_ID(), COUNT(DISTINCT a), MAX(a) FROM t;
-- Explicit values, of which several may be equal.
INSERT INTO t VALUES (100, 43), (100, 44), (5, 45);
INSERT INTO t SELECT 7, b + 100 FROM t;
SELECT LAST_INSERT_ID(), COUNT(*), MAX(a) FROM t;
INSERT INTO t VALUES (NULL, 300);
SELECT COUNT(*) FROM t WHERE b = 300 AND a > 100 AND a = LAST_INSERT_ID();
-- Values that are computed from columns before them.
CREATE TABLE w (a INT AUTO_INCREMENT, b INT, c INT, KEY (a));
INSERT INTO w (b, c) VALUES (1, b + 1), (2, b + 1);
INSERT INTO w (a, b, c) VALUES (9, 3, b + 1), (9, 4, b + 1);
SELECT LAST_INSERT_ID();
SELECT * FROM w ORDER BY b;
-- The first row that inserts anything has an explicit value.
CREATE TABLE u (a TINYINT AUTO_INCREMENT, b INT, KEY (a));
INSERT INTO u VALUES (127, 1);
INSERT INTO u VALUES (127, 2), (3, 3);
SELECT * FROM u ORDER BY b;
DELETE FROM u WHERE a = 127 LIMIT 1;
SELECT COUNT(*) FROM u;
-- The column is added and dropped.
CREATE TABLE v (b INT);
INSERT INTO v VALUES (1), (2), (3), (4), (5), (6), (7), (8);
DELETE FROM v WHERE b < 7;
ALTER TABLE v ADD a INT AUTO_INCREMENT, ADD KEY (a), ALGORITHM=COPY;
INSERT INTO v (b) VALUES (11), (12), (13), (14), (15), (16), (17), (18), (19);
SELECT COUNT(*), MIN(a), COUNT(DISTINCT a) FROM v;
ALTER TABLE v DROP COLUMN a, ALGORITHM=COPY;
INSERT INTO v (b) VALUES (21), (22), (23), (24), (25), (26), (27), (28), (29);
SELECT COUNT(*), SUM(b) FROM v;
DROP DATABASE auto_keys;
