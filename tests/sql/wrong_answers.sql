-- Regressions: statements whose form once led to wrong results: literals, names in ORDER BY, settings.
-- not recorded: MariaDB stores the guard digits of quotients, and has other error messages.
CREATE DATABASE cli_wrong_answers;
USE cli_wrong_answers;
CREATE TABLE t (id INT PRIMARY KEY, a INT, d DOUBLE, s VARCHAR(5), x VARCHAR(40), KEY (a));
INSERT INTO t VALUES (1, 10, 1.5, 'abc', 'y'), (2, 5, 2.5, 'abd', NULL), (3, 7, NULL, 'b', 'z');

-- A literal keeps its own length and scale at any place in a statement.
UPDATE t SET s = IF(a > 5, 1, 2.50);
SELECT id, s FROM t ORDER BY id;
UPDATE t SET s = ROUND(a / 3, 1);
SELECT id, s FROM t ORDER BY id;
INSERT INTO t VALUES (4, 20, 1, ROUND(20 / 3, 1), NULL), (5, 10, 1, ROUND(10 / 3, 1), NULL);
SELECT id, s FROM t WHERE CONCAT(ROUND(a / 3, 1)) = '3.3' ORDER BY id;
UPDATE t SET d = 1.0 / 3 WHERE id = 1;
UPDATE t SET d = 1.00 / 3 WHERE id = 2;
SELECT d FROM t WHERE id IN (1, 2) ORDER BY id;
DELETE FROM t WHERE id > 3;

-- Names and literals in ORDER BY.
SELECT DISTINCT a + 1 FROM t WHERE a > 1 ORDER BY a + 1;
SELECT id, x AS k FROM t ORDER BY k IS NULL, k;
SELECT id, -a AS n FROM t ORDER BY -n;
SELECT id AS a, a AS id FROM t ORDER BY -a;
SELECT a, id AS a FROM t ORDER BY a;
SELECT a, a FROM t ORDER BY a;
SELECT a, id + 1 AS a FROM t ORDER BY a;
SELECT a, id AS a FROM t HAVING a > 1;
SELECT id FROM t ORDER BY nothing + 1;

-- A column next to aggregates, with and without ONLY_FULL_GROUP_BY.
SELECT a, COUNT(*) FROM t WHERE id = 2;
SET sql_mode = '';
SELECT a, COUNT(*) FROM t WHERE id = 2;
SELECT a, COUNT(*) FROM t WHERE id = 9;
SELECT a + 1 AS z, COUNT(*), t.* FROM t WHERE id = 2;
SET sql_mode = 'ONLY_FULL_GROUP_BY';
SELECT a, COUNT(*) FROM t WHERE id = 2;

-- div_precision_increment: the digits that a division adds.
SET div_precision_increment = 8;
SELECT 1 / 3, AVG(a) FROM t;
SELECT a / 3 FROM t WHERE id = 1;
SET div_precision_increment = 0;
SELECT 1 / 3, AVG(a) FROM t;
SELECT a / 3 FROM t WHERE id = 1;
SET div_precision_increment = 4;
SELECT a / 3 FROM t WHERE id = 1;

-- Numbers of more than 38 digits.
SELECT CAST('123456789012345678901234567890123456789012345678901234567890' AS DECIMAL(65, 0));
SELECT CAST(12345678901 AS DECIMAL(65, 30));
SELECT CAST('12345.5' AS DECIMAL(65, 2));
SELECT 12345678901234567890123456789012345678901234567890;
SELECT id FROM t WHERE a < 12345678901234567890123456789012345678901234567890;
SELECT 12345678901234567890123456789012345678;

DROP DATABASE cli_wrong_answers;
CREATE DATABASE wrong_names;
USE wrong_names;
CREATE TABLE big (a INT PRIMARY KEY, b BIGINT UNSIGNED DEFAULT 18446744073709551614.6, c BIGINT DEFAULT '9007199254740993.4');
INSERT INTO big (a) VALUES (1);
SELECT b, c FROM big;
SELECT COUNT(*) FROM big ORDER BY nosuch;
SELECT COUNT(*) FROM big ORDER BY a;
SELECT COUNT(*) FROM information_schema.ENGINES ORDER BY nosuch;
SET sql_mode = 'NO_ENGINE_SUBSTITUTION';
CREATE TABLE turbo (a INT PRIMARY KEY) ENGINE=Turbo;
SET sql_mode = '';
CREATE TABLE turbo (a INT PRIMARY KEY) ENGINE=Turbo;
SHOW WARNINGS;
SELECT * FROM information_schema.nosuch;
DESCRIBE information_schema.nosuch;
SELECT AVG(DISTINCT a) FROM big;
DROP DATABASE wrong_names;
SELECT JSON_ARRAY(x'00ff', _binary'x', 'x', CAST('y' AS BINARY)), CAST(_binary'{}' AS JSON), JSON_SET('{}', '$.a', _binary'x');
SELECT JSON_EXTRACT(_binary'{}', '$');
SELECT JSON_LENGTH(x'7b7d'), JSON_EXTRACT('[1]', '$[0]');
SELECT JSON_VALID(NULL), JSON_EXTRACT(CAST(NULL AS BINARY), '$');
CREATE DATABASE wrong_choices;
USE wrong_choices;
CREATE TABLE c (s SET('x', 'y', 'l', 'z'), e ENUM('a', 'b', 'c'), y YEAR, d DECIMAL(4,2));
INSERT INTO c VALUES (0.91, 2.9, 1970, 1.75);
UPDATE IGNORE c SET s = y, e = d;
SELECT s, e FROM c;
SELECT HEX(-1e19), HEX(1e19), HEX(-9.9e18), HEX(-1), HEX(-1.5);
DROP DATABASE wrong_choices;
-- A BIGINT UNSIGNED above the largest BIGINT equals the DECIMAL of the same number, in joins and sets.
CREATE DATABASE wrong_keys;
USE wrong_keys;
CREATE TABLE large (id INT PRIMARY KEY, u BIGINT UNSIGNED, d DECIMAL(20, 0));
INSERT INTO large VALUES (1, 18446744073709551615, 18446744073709551615), (2, 9223372036854775808, 9223372036854775808), (3, 7, 7);
SELECT a.id, b.id FROM large a JOIN large b ON a.u = b.d ORDER BY a.id;
SELECT id FROM large WHERE u IN (SELECT d FROM large) ORDER BY id;
SELECT COUNT(*) FROM (SELECT u FROM large UNION SELECT d FROM large) both_sets;
SELECT COUNT(*) FROM (SELECT u FROM large EXCEPT SELECT d FROM large) difference;
DROP DATABASE wrong_keys;
