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
-- 0 is a value with NO_AUTO_VALUE_ON_ZERO.
CREATE TABLE z (a INT AUTO_INCREMENT PRIMARY KEY, b INT, c INT);
INSERT INTO z VALUES (0, 1, 0);
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
INSERT INTO z VALUES (0, 2, 0), (NULL, 3, 0);
SELECT a = LAST_INSERT_ID() FROM z WHERE b = 3;
INSERT INTO z VALUES (0, 4, 0);
INSERT INTO z (b, c) VALUES (5, b + 1);
INSERT INTO z (a, b, c) VALUES (NULL, 6, b + 1), ('70', 7, b + 1);
INSERT INTO z SELECT a - a, b, c FROM z WHERE b = 1;
REPLACE INTO z (a, b, c) VALUES (0, 8, b + 1);
SELECT a = 0, b, c FROM z ORDER BY b;
SET sql_mode = DEFAULT;
INSERT INTO z VALUES (0, 9, 0);
SELECT COUNT(*) FROM z WHERE b = 9 AND a = LAST_INSERT_ID();
-- Numbers at a distance.
CREATE TABLE y (a INT AUTO_INCREMENT PRIMARY KEY, b INT);
INSERT INTO y (b) VALUES (1), (2);
SET auto_increment_increment = 10;
INSERT INTO y (b) VALUES (3), (4), (5), (6), (7), (8), (9), (10);
SELECT LAST_INSERT_ID();
SELECT * FROM y ORDER BY b;
SET auto_increment_offset = 5;
INSERT INTO y (b) VALUES (11), (12);
SELECT a FROM y WHERE b > 10 ORDER BY b;
INSERT INTO y VALUES (203, 13), (NULL, 14), (NULL, 15);
SELECT a FROM y WHERE b > 12 ORDER BY b;
SET auto_increment_increment = 1, auto_increment_offset = 1;
INSERT INTO y (b) VALUES (16), (17);
SELECT a - LAST_INSERT_ID() FROM y WHERE b > 15 ORDER BY b;
CREATE TABLE x (a TINYINT AUTO_INCREMENT PRIMARY KEY, b INT);
SET auto_increment_increment = 100;
INSERT INTO x (b) VALUES (1), (2);
SELECT * FROM x;
SET auto_increment_increment = DEFAULT;
DROP DATABASE auto_keys;
