-- group_concat_max_len: the length of the text, its unit, warning 1260, and plans of another setting.
-- not recorded: MariaDB has another default and another text of the warning.
-- with comments
CREATE DATABASE cli_group_concat;
USE cli_group_concat;
CREATE TABLE t (a INT PRIMARY KEY, g INT, s VARCHAR(20), l VARCHAR(20) CHARACTER SET latin1, b VARBINARY(20));
INSERT INTO t VALUES (1, 1, 'ab', 'äb', X'C3C3'), (2, 1, 'cd', 'öd', X'C3C3'), (3, 1, 'äöü', 'ef', X'C3C3'),
  (4, 2, NULL, NULL, NULL), (5, 2, 'x', 'ü', X'FF'), (6, 2, 'ab', 'äb', X'C3C3');
SELECT @@group_concat_max_len, @@GLOBAL.group_concat_max_len;
SELECT GROUP_CONCAT(s ORDER BY a) FROM t;
SET group_concat_max_len = 7;
SELECT GROUP_CONCAT(s ORDER BY a) FROM t;
SHOW WARNINGS;
SELECT g, GROUP_CONCAT(s ORDER BY a), GROUP_CONCAT(DISTINCT s ORDER BY s DESC) FROM t GROUP BY g ORDER BY g;
SHOW WARNINGS;
-- A character is not cut, a separator is; bytes of binary strings are bytes, and letters of latin1 one byte.
SET group_concat_max_len = 9;
SELECT GROUP_CONCAT(s ORDER BY a) FROM t;
SELECT GROUP_CONCAT(s ORDER BY a SEPARATOR '-------') FROM t;
SELECT HEX(GROUP_CONCAT(b ORDER BY a)) FROM t;
SELECT GROUP_CONCAT(l ORDER BY a), LENGTH(GROUP_CONCAT(l ORDER BY a)) FROM t;
-- Other aggregates keep all values.
SELECT JSON_LENGTH(JSON_ARRAYAGG(a)), JSON_OBJECTAGG(a, g) FROM t;
SELECT GROUP_CONCAT(s) OVER () FROM t;
-- Prepared statements and views follow the setting.
PREPARE p FROM 'SELECT GROUP_CONCAT(a ORDER BY a) FROM t';
EXECUTE p;
SET group_concat_max_len = 4;
EXECUTE p;
CREATE VIEW v AS SELECT GROUP_CONCAT(a ORDER BY a) c FROM t;
SELECT c FROM v;
SET group_concat_max_len = 1000000;
EXECUTE p;
SELECT c FROM v;
CREATE TABLE made AS SELECT GROUP_CONCAT(s ORDER BY a) c FROM t;
SHOW CREATE TABLE made;
-- Values out of range.
SET group_concat_max_len = 3;
SHOW WARNINGS;
SELECT @@group_concat_max_len;
SET group_concat_max_len = 18446744073709551615;
SELECT @@group_concat_max_len, GROUP_CONCAT(a ORDER BY a DESC) FROM t;
-- A long text.
CREATE TABLE many AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) SELECT i FROM n;
SELECT LENGTH(GROUP_CONCAT(REPEAT('x', 100000))) FROM many;
SET group_concat_max_len = 500000;
SELECT LENGTH(GROUP_CONCAT(REPEAT('x', 100000))) FROM many;
SHOW WARNINGS;
SET group_concat_max_len = DEFAULT;
-- SET_VAR, for one statement.
SELECT /*+ SET_VAR(group_concat_max_len = 6) */ g, GROUP_CONCAT(a ORDER BY a) FROM t GROUP BY g ORDER BY g;
SELECT /*+ SET_VAR(group_concat_max_len = 2) SET_VAR(group_concat_max_len = 9) */ GROUP_CONCAT(a ORDER BY a) FROM t;
SHOW WARNINGS;
SELECT /*+ SET_VAR(div_precision_increment = 10) SET_VAR(unique_checks = 0) */ 1 / 3, AVG(a) FROM t;
SELECT 1 / 3;
SELECT /*+ SET_VAR(group_concat_max_len = 'x') */ GROUP_CONCAT(a ORDER BY a) FROM t;
SHOW WARNINGS;
SELECT @@group_concat_max_len;
DROP DATABASE cli_group_concat;
