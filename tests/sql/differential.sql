-- Answers that once differed from MySQL's.
DROP DATABASE IF EXISTS sql_differential;
CREATE DATABASE sql_differential DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
USE sql_differential;
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, n BIGINT UNSIGNED, c VARCHAR(20), b VARBINARY(8), KEY n (n));

-- A hexadecimal literal is a number among numbers and bytes among texts.
INSERT INTO t VALUES (0x41, 0x42, 0x43, 0x44), (1, 18446744073709551615, '10', x'0061');
SELECT id, n, c FROM t WHERE id = 0x41 AND n IN (0x42, 1) AND c = 0x43;
SELECT 0x41 + 1, -0x41, CAST(0x41 AS UNSIGNED), CAST(0x41 AS CHAR), HEX(0x41);

-- A text between a text and a number is compared as a number with both.
SELECT id FROM t WHERE c BETWEEN '9' AND 20;

-- What follows a condition that is not true is not evaluated.
SELECT id FROM t WHERE c > NULL AND n * 2 = 1;

-- Division by zero is an error in rows of different forms too.
INSERT INTO t VALUES (2, 1, 'a', 'b'), (3, 1 / 0, 'a', 'b');
-- A number beyond the doubles is an error.
SELECT id FROM t WHERE n = 1e400;
SELECT id FROM t WHERE id IN (1, 1e400);

-- Warnings of a read are not told of the next write.
SELECT COUNT(*) FROM t WHERE c = 5 OR b = 5;
UPDATE t SET b = 'z' WHERE id = 1;

-- Spaces that a column has no room for are dropped with a note; each form of row says so.
INSERT INTO t VALUES (8, 8, 'eight                           ', '8');
SHOW WARNINGS;
INSERT INTO t VALUES (9, 9, 'nine                           ', '9'), (10, 5 + 5, 'ten', '10');
SHOW WARNINGS;

-- A definition that is refused has committed the open transaction.
BEGIN;
INSERT INTO t VALUES (7, 7, 'seven', '7');
DROP INDEX nosuch ON t;
ROLLBACK;
SELECT id FROM t ORDER BY id;

-- What is told of indexes.
CREATE INDEX c ON t (c);
CREATE UNIQUE INDEX b ON t (b);
DROP INDEX c ON t;
DROP DATABASE sql_differential;
-- not recorded: hexadecimal literals, notes and BETWEEN of mixed kinds are MySQL's, not MariaDB's.
