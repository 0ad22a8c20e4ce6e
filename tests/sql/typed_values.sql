-- Values, types and warnings that the typed differential tester once found wrong. MariaDB differs in some.
DROP DATABASE IF EXISTS sql_typed_values;
CREATE DATABASE sql_typed_values DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
USE sql_typed_values;
SET timestamp = 1700000000;
SET time_zone = '+00:00';

-- A TIME is a moment of the day of the statement where a day is wanted.
CREATE TABLE moments (id INT PRIMARY KEY, c TIME(1), d DATETIME(1), e DATE, f TIMESTAMP NULL);
INSERT INTO moments VALUES (1, '12:34:56.5', TIME'12:34:56.5', TIME'-00:00:01', TIME'36:00:00');
INSERT INTO moments (id, c) VALUES (2, '-00:00:00.5');
UPDATE moments SET d = c, f = c WHERE id = 2;
SELECT * FROM moments ORDER BY id;
SELECT id, CAST(c AS DATETIME(1)), DATE(c), YEAR(c), c = TIMESTAMP'2023-11-14 12:34:56.5', c < d FROM moments ORDER BY id;
SELECT id FROM moments WHERE c = TIMESTAMP'2023-11-14 12:34:56.5';
SET timestamp = 1700100000;
SELECT id FROM moments WHERE c = TIMESTAMP'2023-11-14 12:34:56.5';
SELECT id FROM moments WHERE c = TIMESTAMP'2023-11-16 12:34:56.5';
ALTER TABLE moments MODIFY c DATETIME(1);
SELECT id, c FROM moments ORDER BY id;

-- Numbers as text: leading zeros and fixed digits belong to the type. ALTER TABLE copies them.
CREATE TABLE numbers (id INT PRIMARY KEY, z INT(5) ZEROFILL, d DOUBLE(10,3), f FLOAT(7,2), b BIT(5));
INSERT INTO numbers VALUES (1, 42, 1.5, 2.5, 31), (2, 123456, 0, 0, 0);
SELECT CONCAT(z, '|', d, '|', f), LENGTH(z), CAST(z AS CHAR(3)), REVERSE(z), z LIKE '000%', COALESCE(NULL, z, 'x') FROM numbers ORDER BY id;
SELECT d + 1, d / 2, d * d, -d, ABS(z), HEX(UPPER(b)), COLLATION(UPPER(b)) FROM numbers ORDER BY id;
SELECT CEIL(b), FLOOR(b), ROUND(b), TRUNCATE(b, 0), ABS(b), COERCIBILITY(b) FROM numbers ORDER BY id;
ALTER TABLE numbers MODIFY z VARCHAR(10), MODIFY d TEXT, MODIFY f VARCHAR(20), MODIFY b VARCHAR(5);
SELECT * FROM numbers ORDER BY id;

-- Bytes that are no text.
SELECT CAST(x'ff' AS CHAR), CAST(x'41ff42' AS CHAR), CAST(x'c3a4' AS CHAR);
SHOW WARNINGS;

-- A hexadecimal literal is a number as a condition, and bytes for a TIME.
SELECT IF(0xc3a4, 1, 2), CASE WHEN 0x41 THEN 1 END, FORMAT(0x00ff10, 0), FIELD(0x41, 'a_b', 6.37, 65), INET_NTOA(0xff);
SELECT SUBSTR('abc', 2, 0x01), LEFT('abc', 0x02), MAKE_SET(0x61, 'a', 'b'), SPACE(0x02), REPEAT('a', 0x03);
SELECT 0x61 IN (97, 'x'), 0x61 IN (1, 'a'), 0x61 NOT IN (1, 'b');
INSERT INTO moments (id, c) VALUES (3, 0x7f);
CREATE TABLE clocks (c TIME, y YEAR);
INSERT INTO clocks (c) VALUES (0x7f);
INSERT INTO clocks (y) VALUES (0x45);
SELECT * FROM clocks;

-- Digits and spaces that a column cannot keep are a note in every mode.
CREATE TABLE notes (d DECIMAL(5,1), v VARCHAR(2), t DATE);
SET sql_mode = '';
INSERT INTO notes VALUES (1.25, 'a     ', '2024-01-01 10:00:00');
SHOW WARNINGS;
INSERT INTO notes (v) VALUES ('abc');
SHOW WARNINGS;
SET sql_mode = DEFAULT;

-- Negative numbers are no days; TIMESTAMP has only days that exist.
INSERT INTO moments (id, d) VALUES (4, -0.001);
SET sql_mode = 'STRICT_TRANS_TABLES,ALLOW_INVALID_DATES';
INSERT INTO moments (id, f) VALUES (4, '2023-02-30 10:00:00');
INSERT INTO moments (id, d) VALUES (4, '2023-02-30 10:00:00');
SET sql_mode = DEFAULT;

-- A YEAR reads numbers and texts as a column of YEAR does, and comes before its first month among days.
CREATE TABLE years (id INT PRIMARY KEY, y YEAR, d DATE);
INSERT INTO years VALUES (1, 2001, '2001-01-01'), (2, 0, '2000-06-01');
SELECT id, y = '1', y < 1.5e0, y BETWEEN '0' AND 1.4, y < d, y > d, y <=> d FROM years ORDER BY id;
INSERT INTO years (id, y) VALUES (3, -0.001);
INSERT INTO years (id, y) VALUES (3, -0.25e0), (4, 1e0);
INSERT INTO years (id, y) VALUES (4, 1.9e0);
SELECT y FROM years WHERE id > 2;

-- A column keeps the leading zeros and digits of another column's type in TEXT, not in VARCHAR, and bits otherwise.
CREATE TABLE copies (z INT(5) ZEROFILL, f FLOAT(7,3), b BIT(8), v VARCHAR(20), t TEXT);
INSERT INTO copies (z, f, b) VALUES (42, 1.5, 49);
UPDATE copies SET v = z, t = z;
SELECT v, t FROM copies;
UPDATE copies SET v = f, t = f;
SELECT v, t FROM copies;
UPDATE copies SET v = b, t = b;
SELECT v, t FROM copies;
INSERT INTO copies (b) VALUES (-0.25);

-- ALTER TABLE: digits of a text for BIT, the text of a member for JSON.
CREATE TABLE altered (t BLOB, e ENUM('0', '1'), f FLOAT, g FLOAT, d DATE NOT NULL);
INSERT INTO altered VALUES ('12', '1', 1.6, 123456.789, '2024-01-01');
ALTER TABLE altered MODIFY t BIT(8), MODIFY e JSON, MODIFY f BIT(8), MODIFY g TIME(3);
SELECT HEX(t), e, JSON_TYPE(e), HEX(f), g FROM altered;
ALTER TABLE altered DROP COLUMN f, DROP COLUMN g;

-- WHERE takes the zero date of a column that cannot be NULL for NULL.
SET sql_mode = '';
INSERT INTO altered VALUES (1, '2', '0000-00-00');
SELECT e FROM altered WHERE d IS NULL;
SELECT e, d IS NULL FROM altered WHERE d IS NOT NULL ORDER BY d;
DELETE FROM altered WHERE d IS NULL;
SELECT COUNT(*) FROM altered;
SET sql_mode = DEFAULT;
CREATE TABLE unsigned_doubles (f FLOAT(7,3) UNSIGNED);
INSERT INTO unsigned_doubles VALUES (-0.0001);

-- Padded columns of a DISTINCT list may sort it.
CREATE TABLE padded (c CHAR(4));
INSERT INTO padded VALUES ('b'), ('a'), ('b');
SET sql_mode = 'STRICT_TRANS_TABLES,PAD_CHAR_TO_FULL_LENGTH';
SELECT DISTINCT c FROM padded ORDER BY c;
SET sql_mode = DEFAULT;

-- A division is stored with its guard digits.
CREATE TABLE quotients (id INT PRIMARY KEY, d DECIMAL(38,30), v VARCHAR(40));
INSERT INTO quotients VALUES (1, 2000 / 2.24, 2000 / 2.24), (2, 1, 1);
UPDATE quotients SET d = d / 3 WHERE id = 2;
SELECT id, d, v, TIMESTAMP'2020-01-02 03:04:05.000000' DIV d, 5 % d FROM quotients ORDER BY id;

-- Documents: their text is stored in other columns; numbers beyond 2^53 are distinct.
CREATE TABLE documents (id INT PRIMARY KEY, j JSON, i INT, v VARCHAR(20), e TIME);
INSERT INTO documents (id, j) VALUES (1, '9007199254740993'), (2, '9007199254740992'), (3, '9007199254740992.0'), (4, '18446744073709551615'), (5, '18446744073709551614'), (6, 'true'), (7, '"12"');
SELECT DISTINCT j FROM documents ORDER BY j;
SELECT COUNT(DISTINCT j) FROM documents;
UPDATE documents SET v = j WHERE id = 7;
UPDATE documents SET i = j WHERE id = 7;
UPDATE documents SET i = j WHERE id = 6;
SELECT id, i, v FROM documents WHERE id >= 6 ORDER BY id;
SELECT JSON_QUOTE(1);

-- Text that a function makes of numbers has the collation of the connection; NULL alone is bytes.
SELECT COLLATION(CASE WHEN 1 THEN 1 ELSE DATE'2024-01-01' END), COLLATION(UPPER(NULL)), COLLATION(CONCAT(1, NULL));
SELECT CAST(-1e0 AS UNSIGNED), NULL / 2, 5 - NULL;

-- A number in a text of a SET may follow spaces.
CREATE TABLE choices (s SET('a', 'b', 'c'), e ENUM('x', 'y'));
INSERT INTO choices VALUES (' 7', ' 2 ');
SELECT * FROM choices;
DROP DATABASE sql_typed_values;
