-- UPDATE of rows whose new keys equal old keys of other rows. Where the order matters, rows are updated in primary key order.
-- not recorded: UPDATE IGNORE warns of each row that it skips, as in MySQL. All else was compared with MariaDB 10.11.
CREATE DATABASE cli_keys_in_order;
USE cli_keys_in_order;
CREATE TABLE t (id INT PRIMARY KEY, u INT, v INT, UNIQUE KEY (u));
INSERT INTO t VALUES (1, 10, 0), (2, 11, 0), (3, 12, 0), (4, 13, 0);
INSERT INTO t VALUES (9, 19, 0), (8, 18, 0), (7, 17, 0), (6, 16, 0);
UPDATE t SET id = id - 1;
UPDATE t SET u = u - 1;
SELECT * FROM t ORDER BY id;
UPDATE t SET u = u - 1 WHERE id BETWEEN 2 AND 6;
UPDATE t SET u = u + 1 WHERE id > 6 ORDER BY id DESC;
UPDATE t SET u = 9 - id;
UPDATE t SET u = 50 WHERE v = 0;
UPDATE t SET id = 9;
SELECT * FROM t ORDER BY id;

-- If all rows are to get the same key, the first row in that order gets it.
UPDATE IGNORE t SET u = 5;
SELECT * FROM t ORDER BY id;
UPDATE IGNORE t SET id = id + 1, v = v + 1;
SHOW WARNINGS;
SELECT * FROM t ORDER BY id;

-- In a transaction, only the failed statement is undone.
BEGIN;
INSERT INTO t VALUES (100, 1000, 1);
UPDATE t SET u = 7, v = 9 WHERE id > 5;
UPDATE t SET id = id - 10 WHERE id > 0 ORDER BY id;
UPDATE t SET id = id + 10 WHERE v > 0 ORDER BY id DESC;
SELECT * FROM t ORDER BY id;
ROLLBACK;
SELECT * FROM t ORDER BY id;

-- Without a primary key, the order is that of the first unique key without NULL, or the order of insertion.
CREATE TABLE h (a INT, b INT UNIQUE);
INSERT INTO h VALUES (1, 5), (2, 4), (3, 3), (4, 2), (5, 1);
UPDATE h SET b = b + 1;
UPDATE IGNORE h SET b = 7;
SELECT * FROM h ORDER BY a;
CREATE TABLE n (a INT, b INT NOT NULL UNIQUE);
INSERT INTO n VALUES (1, 5), (2, 4), (3, 3), (4, 2), (5, 1);
UPDATE n SET b = b - 1;
UPDATE IGNORE n SET b = 7;
SELECT * FROM n ORDER BY b;

-- The same with several partitions.
CREATE TABLE p (id INT PRIMARY KEY, u INT UNIQUE) PARTITION BY KEY (id) PARTITIONS 4;
INSERT INTO p VALUES (8, 18), (3, 13), (1, 11), (7, 17), (2, 12), (5, 15), (4, 14), (6, 16);
UPDATE p SET u = u - 1;
UPDATE p SET id = id - 1;
UPDATE p SET u = IF(id < 7, u - 1, 10) WHERE id >= 1;
SELECT * FROM p ORDER BY id;
DROP DATABASE cli_keys_in_order;
