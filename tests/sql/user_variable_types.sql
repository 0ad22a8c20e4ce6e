-- User variables keep the collation of their text, and count as much as columns do.
-- not recorded: MariaDB has no utf8mb4_0900_ai_ci. The results are those of MySQL 8.0.
CREATE DATABASE cli_variable_types CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci;
USE cli_variable_types;
SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci;
SET @b = BINARY 'a', @c = 'a' COLLATE utf8mb4_bin, @d = _latin1'a', @e = 'a', @n = 5, @z = NULL;
SELECT @b = 'A', @c = 'A', @d = 'A', @e = 'A';
SELECT CHARSET(@b) AS b, COLLATION(@c) AS c, COLLATION(@e) AS e, CHARSET(@n) AS n;
SELECT COERCIBILITY(@b) AS b, COERCIBILITY(@c) AS c, COERCIBILITY(@e) AS e, COERCIBILITY(@n) AS n;
CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9), g VARCHAR(9) COLLATE utf8mb4_general_ci, x VARBINARY(9), KEY (s), KEY (g));
INSERT INTO t VALUES (1, 'a', 'a', 'a'), (2, 'A', 'A', 'A'), (3, 'b', 'b', 'b');
SELECT id FROM t WHERE s = @e ORDER BY id;
SELECT id FROM t WHERE s = @c ORDER BY id;
SELECT id FROM t WHERE g = @e ORDER BY id;
SELECT id FROM t WHERE g = 'a' ORDER BY id;
SELECT s, x INTO @s, @x FROM t WHERE id = 1;
SELECT @s = 'A', @x = 'A', COLLATION(@s), CHARSET(@x);
SET @y = (SELECT x FROM t WHERE id = 2), @t = (SELECT g FROM t WHERE id = 2);
SELECT @y = 'a', @t = 'a', CHARSET(@y), COLLATION(@t);
SELECT @v := x AS v FROM t WHERE id = 1;
SELECT @v = 'A', CHARSET(@v);
SELECT HEX(UPPER(@b)) AS b, HEX(UPPER(@e)) AS e, LENGTH(@b) AS n;
-- Each execution has the type of its values.
SET @b = 'a';
SELECT @b = 'A';
PREPARE p FROM 'SELECT @b = ''A'' AS same';
EXECUTE p;
SET @b = BINARY 'a';
EXECUTE p;
DEALLOCATE PREPARE p;
SELECT id, @b = 'A' AS same FROM t WHERE id = 1;
SET @b = 'a';
SELECT id, @b = 'A' AS same FROM t WHERE id = 1;
DROP DATABASE cli_variable_types;
