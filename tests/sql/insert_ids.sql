-- SET insert_id names the first AUTO_INCREMENT value of the next statement that generates one.
-- with comments
-- not recorded: a table without a primary key uses up numbers for its rows.
CREATE DATABASE cli_insert_ids;
USE cli_insert_ids;
CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT);
INSERT INTO t (v) VALUES (1);
SET insert_id = 100;
SELECT @@insert_id;
INSERT INTO t VALUES (50, 2);
INSERT INTO t (v) VALUES (3), (4);
SELECT LAST_INSERT_ID(), @@insert_id;
INSERT INTO t (v) VALUES (5);
SELECT * FROM t ORDER BY id;
-- A lower value than the counter's.
SET insert_id = 7;
INSERT INTO t VALUES (NULL, 6), (0, 7);
INSERT INTO t (v) VALUES (8);
SELECT * FROM t WHERE id < 100 ORDER BY id;
SELECT id > 102 FROM t WHERE v = 8;
-- A value that exists is refused, and used up.
SET insert_id = 100;
INSERT INTO t (v) VALUES (9);
SELECT @@insert_id;
SET insert_id = 200;
INSERT INTO t (v) SELECT v + 100 FROM t WHERE id < 9 ORDER BY id;
SELECT LAST_INSERT_ID();
SELECT * FROM t WHERE id >= 200 ORDER BY id;
SET insert_id = 300;
INSERT INTO t (id, v) VALUES (NULL, 12) ON DUPLICATE KEY UPDATE v = 0;
SELECT @@insert_id;
SET insert_id = 300;
REPLACE INTO t (v) VALUES (13);
SELECT * FROM t WHERE id >= 300 ORDER BY id;
-- A table without a primary key has an AUTO_INCREMENT value twice.
CREATE TABLE k (n INT AUTO_INCREMENT, v INT, KEY (n));
INSERT INTO k (v) VALUES (1), (2), (3);
SET insert_id = 2;
INSERT INTO k (v) VALUES (4), (5);
SELECT * FROM k ORDER BY v;
SET insert_id = 40;
SET insert_id = DEFAULT;
INSERT INTO k (v) VALUES (7);
SELECT n < 40 FROM k WHERE v = 7;
SET auto_increment_increment = 10;
SET insert_id = 45;
INSERT INTO k (v) VALUES (8), (9);
SELECT * FROM k WHERE v > 7 ORDER BY v;
SET auto_increment_increment = DEFAULT;
-- Values above insert_id in the same statement: those behind them follow.
SET insert_id = 1000;
INSERT INTO t VALUES (NULL, 20), (1001, 21), (NULL, 22);
SET insert_id = 1010;
INSERT INTO t VALUES (999, 23), (NULL, 24), (1011, 25), (1012, 26), (5, 27), (NULL, 28);
-- Behind as many values as the statement has rows, those of the table follow.
SET insert_id = 1020;
INSERT INTO t VALUES (NULL, 29), (2000, 30), (NULL, 31);
SELECT v, IF(v = 31, id > 2000, id) AS id FROM t WHERE v >= 20 ORDER BY v;
SELECT LAST_INSERT_ID(), @@insert_id;
SET insert_id = 3000;
INSERT INTO t SELECT NULLIF(x, 0), 40 + y FROM (SELECT 0 AS x, 1 AS y UNION ALL SELECT 3500, 2 UNION ALL SELECT 0, 3 UNION ALL SELECT 2, 4 UNION ALL SELECT 0, 5) d;
SELECT * FROM t WHERE v > 40 ORDER BY v;
INSERT INTO t (v) VALUES (50);
SELECT id > 3501 FROM t WHERE v = 50;
-- The first value is insert_id; the others have the distance and the offset.
SET auto_increment_increment = 10, auto_increment_offset = 5;
SET insert_id = 4001;
INSERT INTO t (v) VALUES (60), (61), (62);
SET insert_id = 4035;
INSERT INTO t VALUES (NULL, 63), (4036, 64), (NULL, 65);
SELECT * FROM t WHERE v >= 60 ORDER BY v;
SET auto_increment_increment = DEFAULT, auto_increment_offset = DEFAULT;
-- Values of SET are computed before the first assignment.
SET insert_id = 0;
SET insert_id = 5, @x = @@insert_id;
SELECT @x, @@insert_id;
SET @a = 1;
SET @a = 2, @b = @a;
SELECT @a, @b;
-- A statement that fails before it generates a value leaves insert_id; one that has generated some uses it up.
SET insert_id = 5000;
INSERT INTO t VALUES (NULL, 'a');
SELECT @@insert_id;
INSERT INTO t VALUES (NULL, 70), (NULL, 'a');
SELECT @@insert_id;
CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, v INT CHECK (v > 0));
SET insert_id = 100;
INSERT IGNORE INTO c (v) VALUES (-1);
SELECT @@insert_id;
INSERT IGNORE INTO c (v) VALUES (-1), (1), (-2), (2);
SELECT *, @@insert_id FROM c ORDER BY id;
-- The end of the numbers.
CREATE TABLE n (id TINYINT AUTO_INCREMENT PRIMARY KEY, v INT);
SET insert_id = 127;
INSERT INTO n (v) VALUES (1);
SET insert_id = 126;
INSERT INTO n VALUES (NULL, 2), (127, 3), (NULL, 4);
SET insert_id = 125;
INSERT INTO n VALUES (NULL, 2), (NULL, 3);
SELECT * FROM n ORDER BY id;
-- Two of a number in a table without a primary key.
SET insert_id = 500;
INSERT INTO k VALUES (NULL, 20), (600, 21), (NULL, 22), (NULL, 23);
SELECT v, IF(v > 21, n > 600, n) AS n FROM k WHERE v >= 20 ORDER BY v;
-- SET_VAR.
SET insert_id = 6000;
INSERT /*+ SET_VAR(insert_id = 7000) */ INTO t (v) VALUES (80), (81);
SELECT @@insert_id;
INSERT INTO t (v) VALUES (82);
SELECT @@insert_id;
INSERT /*+ SET_VAR(insert_id = 7000) */ INTO t (v) VALUES (83);
SELECT @@insert_id;
INSERT /*+ SET_VAR(sql_mode = '') SET_VAR(insert_id = 7100) */ INTO t (v) VALUES (84);
SET insert_id = 7200;
INSERT /*+ SET_VAR(sql_mode = '') */ INTO t (v) VALUES (85);
SELECT @@insert_id;
SELECT /*+ SET_VAR(insert_id = 8) */ @@insert_id;
SELECT * FROM t WHERE v >= 80 ORDER BY v;
DROP DATABASE cli_insert_ids;
