-- DEFAULT and DEFAULT(column) in INSERT, ON DUPLICATE KEY UPDATE, UPDATE and queries.
-- not recorded: for a column without a default, MariaDB refuses UPDATE ... SET c = DEFAULT before it searches for rows. All else was
-- compared with MariaDB 10.11.
CREATE DATABASE cli_default_values;
USE cli_default_values;
CREATE TABLE t (id INT PRIMARY KEY, c INT NOT NULL, d INT DEFAULT 5, e VARCHAR(4) NOT NULL, f VARCHAR(4) DEFAULT 'x');
INSERT INTO t VALUES (1, 1, 1, 'a', 'b');

-- DEFAULT of a column without a default is an error only if a row needs it.
INSERT INTO t VALUES (1, 2, 2, 'b', 'b') ON DUPLICATE KEY UPDATE d = DEFAULT, f = DEFAULT;
INSERT INTO t VALUES (1, 2, 2, 'b', 'b') ON DUPLICATE KEY UPDATE c = DEFAULT;
INSERT INTO t VALUES (2, 2, 2, 'b', 'b') ON DUPLICATE KEY UPDATE c = DEFAULT;
UPDATE t SET c = DEFAULT WHERE id = 77;
UPDATE t SET c = DEFAULT WHERE id = 1;
INSERT IGNORE INTO t VALUES (1, 1, 1, 'a', 'a') ON DUPLICATE KEY UPDATE c = DEFAULT;
UPDATE IGNORE t SET e = DEFAULT WHERE id = 2;
SHOW WARNINGS;
SELECT * FROM t ORDER BY id;

-- DEFAULT(column) of another column, and within expressions.
INSERT INTO t VALUES (1, 2, 2, 'b', 'b') ON DUPLICATE KEY UPDATE c = DEFAULT(d);
INSERT INTO t VALUES (1, 2, 2, 'b', 'b') ON DUPLICATE KEY UPDATE d = DEFAULT(d) + 1;
INSERT INTO t VALUES (1, 2, 2, 'b', 'b') ON DUPLICATE KEY UPDATE d = DEFAULT(c);
UPDATE t SET d = DEFAULT(t.d) + id, f = CONCAT(DEFAULT(f), id) ORDER BY id;
SELECT DEFAULT(d), DEFAULT(f) FROM t WHERE d > DEFAULT(d);
SELECT DEFAULT(e) FROM t;
SELECT DEFAULT(nosuch) FROM t;
INSERT INTO t VALUES (7, DEFAULT(d), DEFAULT(d) + 1, DEFAULT(f), DEFAULT), (8, 1, DEFAULT, 'e', DEFAULT(f));
INSERT INTO t VALUES (9, DEFAULT(c), DEFAULT, 'e', 'f');
INSERT INTO t SET id = 9, c = DEFAULT(nosuch), e = 'e';
INSERT INTO t SET id = 9, c = DEFAULT(d) DIV 2, e = 'e';
SELECT * FROM t ORDER BY id;
DROP DATABASE cli_default_values;
