-- SET insert_id names the first AUTO_INCREMENT value of the next statement that generates one.
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
-- Values above insert_id in the same statement are refused, and change nothing.
SET insert_id = 1000;
INSERT INTO t VALUES (NULL, 10), (1001, 11), (NULL, 12);
SELECT COUNT(*) FROM t WHERE v >= 10;
INSERT INTO t VALUES (999, 10), (NULL, 12);
SELECT * FROM t WHERE v >= 10 ORDER BY id;
DROP DATABASE cli_insert_ids;
