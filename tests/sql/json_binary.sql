-- not recorded: MariaDB has no type JSON.
-- A binary string is no document: error 3144. Error 3140 names the table.
CREATE DATABASE cli_json_binary;
USE cli_json_binary;
SET sql_mode = DEFAULT;
CREATE TABLE t (id INT PRIMARY KEY, j JSON, b BLOB, c BINARY(2), s TEXT);
INSERT INTO t VALUES (1, '[1]', '{}', '[]', '{}');
INSERT INTO t (id, j) VALUES (2, x'7b7d');
INSERT INTO t (id, j) VALUES (2, CAST('{}' AS BINARY));
INSERT INTO t (id, j) VALUES (2, _binary'{}');
INSERT INTO t (id, j) VALUES (2, NULL), (3, CAST(NULL AS BINARY)), (4, CONVERT(x'7b7d' USING utf8mb4));
UPDATE t SET j = b;
UPDATE t SET j = c WHERE id = 1;
UPDATE t SET j = b WHERE id = 2;
UPDATE t SET j = s;
INSERT INTO t (id, j) SELECT id + 10, b FROM t;
INSERT INTO t (id, j) SELECT id + 10, b FROM t WHERE b IS NULL;
INSERT INTO t (id) VALUES (1) ON DUPLICATE KEY UPDATE j = b;
CREATE TABLE u (j JSON) SELECT b AS j FROM t;
ALTER TABLE t MODIFY b JSON;
ALTER TABLE t MODIFY s JSON;
SELECT id, j, s FROM t ORDER BY id;
-- A cast makes a string of the bytes; functions refuse them.
SELECT CAST(x'7b7d' AS JSON), CAST(CAST('{}' AS BINARY) AS JSON), CAST(b'1' AS JSON), JSON_VALID(x'7b7d');
SELECT JSON_LENGTH(x'5b5d');
INSERT INTO t (id, j) VALUES (20, '{a');
INSERT INTO t (id, j) VALUES (20, 1);
UPDATE t SET j = '[' WHERE id = 1;
UPDATE t SET j = CONCAT('[', id);
CREATE TABLE `for column 'j'` (`j'.` JSON);
INSERT INTO `for column 'j'` VALUES ('');
DROP DATABASE cli_json_binary;
