-- CREATE TABLE ... SELECT.
DROP DATABASE IF EXISTS create_select;
CREATE DATABASE create_select;
USE create_select;
SET time_zone = '+00:00', timestamp = 1700000000;
CREATE TABLE s (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(30) NOT NULL DEFAULT 'x' COMMENT 'the name',
  price DECIMAL(8,2), made DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
  body TEXT, kind ENUM('a','b') NOT NULL, flags SET('p','q'), doc JSON, twice INT AS (LENGTH(name) * 2), bits BIT(5), day DATE NOT NULL);
INSERT INTO s (id, name, price, body, kind, flags, doc, bits, day) VALUES
  (1, 'one', 1.5, 'text', 'a', 'p', '{"a": 1}', b'101', '2020-02-29'),
  (2, 'two', NULL, NULL, 'b', 'p,q', NULL, NULL, '2021-01-01'),
  (3, 'three', 3.25, 'more', 'a', '', '[]', b'1', '2022-12-31');
CREATE TABLE c1 AS SELECT * FROM s;
SHOW CREATE TABLE c1;
SELECT id, name, price, made, body, kind, flags, doc, twice, bits + 0, day FROM c1 ORDER BY id;
-- Expressions.
CREATE TABLE c2 SELECT 1 AS one, 12345678901 AS big, 1.25 AS d, 1e0 AS f, 'text' AS t, NULL AS n, NOW() AS now, CURDATE() AS day,
  id + 1 AS next, COUNT(*) AS many, SUM(price) AS total, AVG(id) AS mean, MAX(name) AS last, CAST(id AS CHAR) AS c, CAST('1' AS JSON) AS j FROM s;
CREATE TABLE c2 SELECT 1 AS one, 12345678901 AS big, 1.25 AS d, 1e0 AS f, 'text' AS t, NULL AS n, NOW() AS now, CURDATE() AS day,
  COUNT(*) AS many, SUM(price) AS total, AVG(id) AS mean, MAX(name) AS last, CAST('1' AS JSON) AS j FROM s;
SHOW CREATE TABLE c2;
SELECT * FROM c2;
CREATE TABLE c3 SELECT REPEAT('x', 600) AS long_text, CONCAT(name, 'y') AS joined, -id AS negative, id / 3 AS third FROM s WHERE id < 3;
SHOW CREATE TABLE c3;
SELECT LENGTH(long_text), joined, negative, third FROM c3 ORDER BY negative;
-- Merged definitions.
CREATE TABLE c4 (pk INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(5), extra INT DEFAULT 9, KEY (id)) ENGINE=InnoDB COMMENT='merged' SELECT id, name FROM s ORDER BY id;
SHOW CREATE TABLE c4;
SELECT * FROM c4 ORDER BY pk;
CREATE TABLE c5 (id BIGINT UNSIGNED PRIMARY KEY) (SELECT id FROM s);
SHOW CREATE TABLE c5;
-- Duplicate keys.
CREATE TABLE c6 (kind CHAR(1) PRIMARY KEY) SELECT kind, id FROM s ORDER BY id;
SHOW TABLES LIKE 'c6';
CREATE TABLE c6 (kind CHAR(1) PRIMARY KEY) IGNORE SELECT kind, id FROM s ORDER BY id;
SELECT * FROM c6 ORDER BY kind;
CREATE TABLE c7 (kind CHAR(1) PRIMARY KEY) REPLACE SELECT kind, id FROM s ORDER BY id;
SELECT * FROM c7 ORDER BY kind;
-- Failures leave nothing.
CREATE TABLE c8 (name VARCHAR(2)) SELECT name FROM s;
CREATE TABLE c8 SELECT missing FROM s;
CREATE TABLE c8 SELECT id, id FROM s;
CREATE TABLE c8 SELECT * FROM c8;
CREATE TABLE c8 (a INT, FOREIGN KEY (a) REFERENCES s (id)) SELECT 1 AS a;
CREATE TABLE c8 (a INT) AS;
SHOW TABLES LIKE 'c8';
CREATE TABLE c1 AS SELECT 1;
CREATE TABLE IF NOT EXISTS c1 AS SELECT 1;
SHOW WARNINGS;
SELECT COUNT(*) FROM c1;
-- It commits, also with autocommit off.
SET autocommit = 0;
INSERT INTO s (name, kind, day) VALUES ('four', 'a', '2020-01-01');
CREATE TABLE c9 AS SELECT name FROM s WHERE id > 2;
ROLLBACK;
SELECT * FROM c9 ORDER BY name;
SET autocommit = 1;
-- Parameters and variables.
SET @x = 2;
PREPARE s FROM 'CREATE TABLE c10 AS SELECT id, @x AS x FROM s WHERE id > ?';
EXECUTE s USING @x;
SELECT * FROM c10 ORDER BY id;
-- Temporary tables, also of a table of the same name, and within a transaction.
START TRANSACTION;
INSERT INTO s (name, kind, day) VALUES ('five', 'b', '2020-01-01');
CREATE TEMPORARY TABLE s AS SELECT id, name FROM s;
SELECT * FROM s ORDER BY id;
SHOW CREATE TABLE s;
ROLLBACK;
SELECT COUNT(*) FROM s;
DROP TEMPORARY TABLE s;
SELECT COUNT(*) FROM s;
CREATE TEMPORARY TABLE v (name VARCHAR(2)) SELECT name FROM s;
SELECT * FROM v;
CREATE TABLE c11 AS SELECT table_name FROM information_schema.tables WHERE table_schema = 'create_select' AND table_name = 'c1';
SELECT * FROM c11;
CREATE TABLE c12 AS TABLE s;
CREATE TABLE c13 (id INT UNIQUE, name VARCHAR(10), UNIQUE (name)) AS SELECT id, name FROM s;
INSERT INTO c13 VALUES (1, 'other');
INSERT INTO c13 VALUES (99, 'one');
SELECT * FROM c13 WHERE name = 'one';
DROP DATABASE create_select;
