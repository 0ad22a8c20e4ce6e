-- Answers that differed from MySQL's until the random typed statements found them.
CREATE DATABASE cli_typed_answers;
USE cli_typed_answers;
SET sql_mode = '';

-- An empty SET is the member '' of an ENUM; an ENUM without a member stays without one.
CREATE TABLE choices (id INT PRIMARY KEY, s SET('0', '1'), e ENUM('', 'n'), f ENUM('n', '', '0'), g ENUM('n', 'm'));
INSERT INTO choices VALUES (1, '', 'n', 'n', 'n');
UPDATE choices SET e = s, f = s, g = s;
SHOW WARNINGS;
SELECT s + 0, e + 0, f + 0, g + 0 FROM choices;
UPDATE choices SET e = g, f = g;
SELECT e + 0, f + 0, g + 0 FROM choices;
UPDATE choices SET s = '0,1', e = s, f = COALESCE(s, 'n');
SELECT s + 0, e + 0, f + 0 FROM choices;
UPDATE choices SET s = '';
ALTER TABLE choices MODIFY s ENUM('x', '');
SELECT s + 0 FROM choices;

-- A number beyond 64 bits has no member of a SET.
UPDATE choices SET f = 3.4e38;
CREATE TABLE sets (id INT PRIMARY KEY, s SET('x', 'Y', 'long one'));
INSERT INTO sets VALUES (1, 3.4e38), (2, 1e19), (3, -1e30), (4, 10000000000000000000.5), (5, 5.9), (6, 18446744073709551615);
SELECT id, s FROM sets ORDER BY id;

-- Sums and averages keep the guard digits of a quotient. An average has those of a division.
CREATE TABLE quotients (id INT PRIMARY KEY, a DECIMAL(20, 5), b DECIMAL(20, 7), c INT);
INSERT INTO quotients VALUES (1, 1, 3, 7), (2, 2, 7, 11), (3, 10, 3, 13), (4, 1234567.12345, 0.0000007, 6), (5, -1, 9.9, 3);
SELECT SUM(a / b), AVG(a / b), SUM(a / c), AVG(a / c), MIN(a / b), MAX(a / c) FROM quotients;
SELECT SUM(a / b) * 3, AVG(a / b) * 3, AVG(c) * 3, AVG(c) / 3 FROM quotients;
SELECT AVG(c), AVG(c) * 3 FROM quotients GROUP BY c % 2 ORDER BY AVG(c);
SELECT id, AVG(c) OVER (ORDER BY id) * 3 FROM quotients ORDER BY id;
CREATE TABLE small (id INT PRIMARY KEY, a DECIMAL(20, 5));
INSERT INTO small VALUES (1, 0.00001), (2, 0.00001), (3, 0);
SELECT AVG(a), AVG(a) * 3, SUM(a / 3), ROUND(AVG(id), 6), CAST(AVG(a) AS CHAR) FROM small;
CREATE TABLE kept AS SELECT AVG(a / 7) AS average FROM quotients;
SELECT average FROM kept;

-- A text beside NULL is read as a number, for its warning.
CREATE TABLE texts (id INT PRIMARY KEY, t VARCHAR(20), n INT);
INSERT INTO texts VALUES (1, 'x', NULL);
SELECT n % t, t % n FROM texts;
SHOW WARNINGS;
SELECT n + t FROM texts;
SELECT t DIV n FROM texts;

-- A text above the largest signed integer is a negative one, except in a column.
SELECT SUBSTR('abcdef', 2, '18446744073709551615'), LEFT('abc', '9223372036854775808'), REPEAT('a', '18446744073709551615');
SELECT SUBSTR('abcdef', '18446744073709551615'), LEFT('abc', 18446744073709551615), SUBSTRING_INDEX('a,b,c', ',', '18446744073709551615');
UPDATE texts SET t = '18446744073709551615';
SELECT LEFT('abc', t), LEFT('abc', CONCAT(t)) FROM texts;

-- A number that is no integer is at most the largest signed one in CHAR().
SELECT HEX(CHAR(1e19)), HEX(CHAR(10000000000000000000.0)), HEX(CHAR(9223372036854775813)), HEX(CHAR('9223372036854775813')), HEX(CHAR(-1e19));

-- A vertical tab is white space in base 64.
SELECT HEX(FROM_BASE64(0x0B)), FROM_BASE64('YW\tJj\n'), FROM_BASE64(CONCAT('YW', 0x0B, 'Jj'));

-- Numbers keep their leading zeros and digits as members of a text.
CREATE TABLE numbers (a SMALLINT(5) ZEROFILL, b DECIMAL(5, 1) ZEROFILL, c YEAR, d DOUBLE(10, 3));
INSERT INTO numbers VALUES (7, 7, 0, 0);
SELECT MAKE_SET(15, a, b, c, d) FROM numbers;

-- The exponent of a number is no time.
CREATE TABLE times (id INT PRIMARY KEY, t TIME);
INSERT INTO times VALUES (1, '1e2'), (2, '1e'), (3, '12.5e-3'), (4, '1x2'), (5, '2023-02-30 10:00:00'), (6, '2023-01-01 25:00:00'), (7, '2023-00-10 10:00:00'), (8, '2023-02-30');
SHOW WARNINGS;
SELECT id, t FROM times ORDER BY id;

-- Products are exact if the digits before the point need no more groups.
SELECT 99999999999999999999999999999999999.999999999999999999999999999999 * 6.75;
SELECT 9999999999999999999999999999999999.999999999999999999999999999999 * 6.755;

-- The names that CHARSET and COLLATION return are utf8mb3.
SELECT COLLATION(CHARSET('a')), CHARSET(COLLATION(1)), CONCAT(CHARSET('a'), 'ä€');

-- The smallest number from a parameter is a decimal, as from a literal.
PREPARE negated FROM 'SELECT - ?';
SET @largest = 18446744073709551615;
EXECUTE negated USING @largest;
DEALLOCATE PREPARE negated;

-- Warning 1831 for a duplicate index.
CREATE TABLE duplicates (a INT, b INT UNIQUE, c CHAR(5), KEY (a), KEY (b), KEY (a), UNIQUE (b), KEY (a, b), KEY x (a, b), KEY y (b, a));
SHOW WARNINGS;
ALTER TABLE duplicates ADD KEY (c), ADD KEY (c(3)), ADD KEY (c DESC), ADD KEY (c(3));
SHOW WARNINGS;
CREATE INDEX z ON duplicates (c);
SHOW WARNINGS;
ALTER TABLE duplicates DROP KEY z, ADD KEY w (a, c), MODIFY a BIGINT;
SHOW WARNINGS;

DROP DATABASE cli_typed_answers;
