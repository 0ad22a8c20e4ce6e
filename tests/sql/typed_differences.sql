CREATE DATABASE typed_differences CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
USE typed_differences;
SET NAMES utf8mb4 COLLATE utf8mb4_general_ci;
-- Texts in aggregates of numbers and bits are read up to the first other character.
CREATE TABLE texts (id INT PRIMARY KEY, t TEXT, v VARBINARY(10), b BIT(64));
INSERT INTO texts VALUES (1, '12abc', '4x', 0xffffffffffffffff), (2, 'a', '8', 3);
SELECT BIT_OR(t), BIT_AND(t), BIT_XOR(t) FROM texts;
SELECT STD(t), VAR_SAMP(t), STDDEV_POP(v), VARIANCE(v) FROM texts;
SELECT BIT_OR(12.5), BIT_OR('1e2'), BIT_AND(b), BIT_OR(b) FROM texts WHERE id = 1;
SELECT CAST(b AS SIGNED) FROM texts;
-- Strings in an IN list have one collation, also beside numbers.
CREATE TABLE lists (id INT PRIMARY KEY, t TEXT, b BLOB, u VARCHAR(9) COLLATE utf8mb4_unicode_ci);
INSERT INTO lists VALUES (1, 'A', NULL, 'A');
SELECT id FROM lists WHERE t IN (-1, b, 'ä');
SELECT id FROM lists WHERE t IN (-1, 'ä');
SELECT id FROM lists WHERE t IN (u, 6, 3);
UPDATE lists SET t = '1', u = '1';
SELECT id FROM lists WHERE t BETWEEN 1 AND u;
SELECT id FROM lists WHERE t BETWEEN NULL AND u;
SELECT FIELD(1, t, u, 2), FIELD(2, t, u, 2) FROM lists;
SELECT FIELD('1', t, u) FROM lists;
-- The value of an ENUM that was no member is not the member ''.
CREATE TABLE choices (id INT PRIMARY KEY, e ENUM('', 'n'), s SET('a', 'b') DEFAULT 'b');
INSERT IGNORE INTO choices (id, e) VALUES (1, ''), (2, 7), (3, 'n'), (4, '');
SELECT COUNT(DISTINCT e) FROM choices;
SELECT e + 0, COUNT(*) FROM choices GROUP BY e ORDER BY 1;
SELECT (s COLLATE utf8mb4_bin) + 0 FROM choices WHERE id = 1;
-- Names of types.
CREATE TABLE names (a FIXED(8,2), b CHAR BYTE, c CHAR(3) BYTE, d VARCHAR(5) BYTE, e TEXT BYTE);
SELECT COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = 'typed_differences' AND TABLE_NAME = 'names' ORDER BY ORDINAL_POSITION;
-- Generated columns and defaults store what an assignment stores.
CREATE TABLE made (
    id INT PRIMARY KEY, d DECIMAL(6,2) ZEROFILL, l VARCHAR(5) CHARACTER SET latin1,
    t TEXT AS (d) STORED, b VARBINARY(5) AS (l) STORED, n INT DEFAULT (0x41)
);
INSERT INTO made (id, d, l) VALUES (1, 1.5, 'ä');
SELECT t, HEX(b), n FROM made;
UPDATE made SET d = 2, l = 'ö';
SELECT t, HEX(b), n FROM made;
-- Bytes become the text that they are in the character set of the column, and texts the bytes of theirs.
CREATE TABLE recoded (id INT PRIMARY KEY, b VARBINARY(4), l VARCHAR(4) CHARACTER SET latin1);
INSERT INTO recoded VALUES (1, 0xc3a4, 'ä');
ALTER TABLE recoded MODIFY b VARCHAR(4) CHARACTER SET latin1, MODIFY l VARBINARY(4);
SELECT b, HEX(b), HEX(l) FROM recoded;
SELECT CHARSET(TRIM(LEADING 'a' FROM NULL)), CHARSET(TRIM(BOTH 0x61 FROM 'ab')), CHARSET(TRIM(TRAILING _binary'a' FROM id)) FROM made;
-- Doubles in columns without space for a digit after the point.
SET sql_mode = '';
CREATE TABLE narrow (id INT PRIMARY KEY, a CHAR(1), b CHAR(2), c CHAR(3), d CHAR(4));
INSERT INTO narrow VALUES (1, 0.9e0, 0.9e0, -0.9e0, -0.9e0), (2, 0.25e0, 0.25e0, -0.25e0, -0.25e0);
INSERT INTO narrow VALUES (3, -0.25e0, -0.004e0, -0.004e0, -0.004e0), (4, 0.5e0, 0.04e0, 0.04e0, 45e-4);
SELECT * FROM narrow ORDER BY id;
-- A decimal is padded with whole groups of nine digits.
SELECT IFNULL(99999999999999999999999999999999999999999999999999999999999999999.0, 1.000000000000000000000000000001) AS padded;
-- A FLOAT and an integer of up to three bytes are a FLOAT, with another integer a DOUBLE.
CREATE TABLE floats (id INT PRIMARY KEY, f FLOAT, t TINYINT, s SMALLINT UNSIGNED, m MEDIUMINT, i INT, b BIGINT, y YEAR);
INSERT INTO floats VALUES (1, 1.1, 1, 2, 3, 4, 5, 2006), (2, NULL, 1, 2, 3, 4, 5, 2006);
SELECT IFNULL(f, t), COALESCE(f, s, m), IF(id, f, m), CASE WHEN id = 2 THEN t ELSE f END, IFNULL(f, y) FROM floats ORDER BY id;
SELECT IFNULL(f, i), COALESCE(f, t, b), IF(id = 1, f, 1), IFNULL(f, LENGTH('a')), LEAST(f, t), IFNULL(f, IF(id, t, t)) FROM floats ORDER BY id;
SELECT f FROM floats UNION ALL SELECT t FROM floats ORDER BY 1;
SELECT f FROM floats UNION ALL SELECT i FROM floats ORDER BY 1;
-- CAST to FLOAT.
SELECT CAST(1.1 AS FLOAT), CAST(123456789 AS FLOAT), CAST('x' AS FLOAT), CAST(NULL AS FLOAT), CAST(1.1 AS FLOAT) = 1.1, CAST(2.5 AS FLOAT) + 0;
-- BIT and a signed integer are a decimal.
CREATE TABLE signs (id INT PRIMARY KEY, b BIT(1), c BIT(64), i INT, u INT UNSIGNED);
INSERT INTO signs VALUES (1, 1, 9223372036854775808, -1, 1);
SELECT IFNULL(b, 0), IFNULL(c, 0), COALESCE(i, c), IF(i, c, i), IFNULL(c, u), LEAST(c, i) FROM signs;
-- Distinct numbers, not distinct texts, are summed.
CREATE TABLE digits (t VARCHAR(5), b VARBINARY(5));
INSERT INTO digits VALUES ('1', '1'), ('1.0', '01'), ('0', '0'), ('0.0', '00'), ('3', '3');
SELECT SUM(DISTINCT t), AVG(DISTINCT t), SUM(DISTINCT b), COUNT(DISTINCT t), SUM(t) FROM digits;
SELECT AVG(DISTINCT b) FROM digits GROUP BY t = '3' ORDER BY 1;
-- Texts of a column in aggregates of bits have 63 bits, other texts 64.
CREATE TABLE many (c TEXT, l VARCHAR(30) CHARACTER SET latin1);
INSERT INTO many VALUES ('18446744073709551608', '-3x');
SELECT BIT_AND(c), BIT_OR(CONCAT(c)), BIT_AND('18446744073709551608'), BIT_XOR(l) FROM many;
SHOW WARNINGS;
-- MariaDB has no CAST to FLOAT with bits.
SELECT CAST(1 / 3 AS FLOAT) AS f, CAST('1.5' AS FLOAT(24)) AS g, CAST(1e0 / 3 AS FLOAT(53)) AS d, CAST(16777217 AS FLOAT) AS h;
SELECT CAST(0.1 AS FLOAT) = 0.1e0 AS same, CAST(0.1 AS FLOAT) + 0e0 AS wide, MAX(CAST(id AS FLOAT)) AS m FROM narrow;
SELECT CAST(id AS FLOAT) AS f, COUNT(*) AS n FROM narrow GROUP BY f ORDER BY f DESC LIMIT 1;
CREATE TABLE quarters SELECT CAST(id AS FLOAT) / 4 AS q, CAST(id AS FLOAT) AS f FROM narrow WHERE id = 1;
SHOW CREATE TABLE quarters;
SELECT CAST(-1e39 AS FLOAT);
SELECT CAST(1 AS FLOAT(54));
-- A computed FLOAT is stored in a text as a double, one of a column as a FLOAT in TEXT and BLOB.
CREATE TABLE float_texts (id INT PRIMARY KEY, f FLOAT, t TEXT, v VARCHAR(30), b BLOB, g TEXT AS (CAST(f AS FLOAT)), h TEXT AS (f));
INSERT INTO float_texts (id, f, t, v, b) VALUES (1, 1.1, CAST(1.1 AS FLOAT), CAST(1.1 AS FLOAT), CAST(1.1 AS FLOAT));
INSERT INTO float_texts (id, f) VALUES (2, 1.1), (3, 1.1);
UPDATE float_texts SET t = IF(id, f, f), v = IF(id, f, f), b = IF(id, f, f) WHERE id = 2;
UPDATE float_texts SET t = f, v = f, b = f WHERE id = 3;
SELECT * FROM float_texts ORDER BY id;
-- Digits after the point by places that a constant expression gives.
SELECT ROUND(1.23456, '2') AS a, ROUND(1.23456, LENGTH('abc')) AS b, TRUNCATE(1.239e0, LENGTH('ab')) AS c, ROUND(1.5, ABS(-4)) AS d;
CREATE TABLE places SELECT ROUND(1.23456, LENGTH('abc')) AS a, ROUND(12.5, id) AS c FROM float_texts WHERE id = 1;
SHOW CREATE TABLE places;
-- A text of digits with a point is a day of two digits each.
CREATE TABLE points (id INT PRIMARY KEY, m DATETIME, d DATE);
INSERT INTO points VALUES (1, '0.11111111111', '0.11111111111'), (2, COALESCE(0.1112131415, 'x'), '20.1112');
SELECT * FROM points ORDER BY id;
-- A document as a condition is compared with the document 0.
CREATE TABLE documents (id INT PRIMARY KEY, j JSON);
INSERT INTO documents VALUES (1, '0'), (2, '1'), (3, 'null'), (4, '"a"'), (5, 'false'), (6, NULL), (7, '0.0'), (8, '[]');
SELECT id FROM documents WHERE j ORDER BY id;
SELECT id, NOT j, j AND 1, j OR 0, j XOR 1, IF(j, 1, 0) FROM documents ORDER BY id;
SELECT id FROM documents HAVING j ORDER BY id;
SELECT d.id FROM documents d JOIN documents e ON e.j AND d.id = e.id WHERE d.id < 4 ORDER BY d.id;
UPDATE documents SET id = id + 100 WHERE j;
DELETE FROM documents WHERE NOT j;
SELECT id FROM documents ORDER BY id;
-- Any of several equal texts: what a collation of Unicode ignores makes no difference.
CREATE TABLE ignored (id INT PRIMARY KEY, t VARCHAR(5) COLLATE utf8mb4_turkish_ci);
INSERT INTO ignored VALUES (1, 0x01), (2, 0x1f);
SELECT COUNT(DISTINCT t) FROM ignored;
-- A count of 64 bits.
SELECT SUBSTRING_INDEX('a_b', '_', -1e19) AS a, SUBSTRING_INDEX('a_b', '_', 1e19) AS b, SUBSTRING_INDEX('a_b', '_', -4294967297) AS c;
-- Zero has no sign in a column of fixed digits.
CREATE TABLE zeros (id INT PRIMARY KEY, d DOUBLE(10,3), f FLOAT(7,3), e DOUBLE);
INSERT INTO zeros VALUES (1, -'0', -'0', -'0'), (2, -0.0001, -0.0001, -0.0001);
SELECT CONCAT(d), CONCAT(f), CONCAT(e) FROM zeros ORDER BY id;
-- A hexadecimal literal is a number where a function wants one.
SELECT YEARWEEK(DATE'2024-02-29', 0x41) AS a, WEEK(DATE'2024-02-29', 0x03) AS b, FROM_DAYS(0x0b4d6c) AS c, CONV('11', 0x02, 0x0a) AS d;
-- Bytes beyond ASCII equal no text of ascii.
CREATE TABLE ascii_texts (id INT PRIMARY KEY, a VARCHAR(5) CHARACTER SET ascii, KEY (a));
INSERT INTO ascii_texts VALUES (1, 'a'), (2, 'A');
SELECT id, a = 0xc3a4, 0xc3a4 <=> a, a IN (0xc3a4, 0x41), a BETWEEN 0x41 AND 0xc3a4, NULLIF(a, 0xc3a4) FROM ascii_texts ORDER BY id;
SELECT id FROM ascii_texts WHERE a = 0xc3a4 OR a = 0x61 ORDER BY id;
SELECT id, a = UNHEX('c3a4'), a = UNHEX(CONCAT('4', id)) FROM ascii_texts ORDER BY id;
SELECT id FROM ascii_texts WHERE a = UNHEX('c3a4') OR a = UNHEX('41') ORDER BY id;
-- IS TRUE and IS FALSE compare a document with the document 0; IF and CASE take its number.
CREATE TABLE truths (id INT PRIMARY KEY, j JSON);
INSERT INTO truths VALUES (1, '0'), (2, '1'), (3, 'null'), (4, '"1"'), (5, 'false'), (6, NULL), (7, '[]'), (8, 'true');
SELECT id, j IS TRUE, j IS NOT TRUE, j IS FALSE, j IS UNKNOWN, IF(j, 1, 0), CASE WHEN j THEN 1 ELSE 0 END FROM truths ORDER BY id;
-- An exact number that is chosen is stored in a text with its own digits, and shown with those of the type.
CREATE TABLE chosen (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40), b BINARY(4), t TEXT);
INSERT INTO chosen (v) VALUES (COALESCE(101, 0.05)), (CASE WHEN 1 THEN 101 ELSE 0.055 END), (IF(0, 0.5, 101)), (COALESCE(NULL, 7, 0.5));
INSERT INTO chosen (v) VALUES (COALESCE(18446744073709551615, 0.5)), (GREATEST(101, 0.5)), (LEAST(101, 0.5)), (IF(1, 1 / 3, 0)), (IFNULL(IF(1, 1.5, 0.25), 0.125));
INSERT INTO chosen (b, t) VALUES (CASE WHEN 1 THEN 18 ELSE 99999999999999999999.5 END, NULLIF(1.50, 2));
SELECT v, HEX(b), t FROM chosen ORDER BY id;
SELECT COALESCE(101, 0.05), CONCAT(IF(1, 7, 0.5)), MAX(COALESCE(id, 0.05)), MIN(IF(id, 2, 0.25)), GREATEST(101, 0.5), IF(1, 1 / 3, 0) * 3 FROM chosen;
SELECT IF(id < 3, 1, 1.00) AS c, COUNT(*) FROM chosen GROUP BY c;
SELECT COUNT(DISTINCT IF(id < 3, 1, 1.00)), SUM(DISTINCT IF(id < 3, 1, 1.00)) FROM chosen;
SELECT COALESCE(1, 0.05) UNION SELECT 1.00 UNION ALL SELECT 100.00 - 100;
-- 0 has no digits in a text where equal numbers are subtracted, or 0 is divided.
CREATE TABLE nothing (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20));
INSERT INTO nothing (v) VALUES (100.00 - 100), (1.00 + -1), (0.00 - 0.00), (0.00 / 3), (0.00 % 3.5), (0.00 + 0.00), (0.00 * 1.5), (7.50 % 2.50), (1.5 - 1.5 + 1);
SELECT v FROM nothing ORDER BY id;
SELECT 100.00 - 100, CONCAT(0.00 / 3), MAX(0.00 - 0.00), SUM(1.50 - 1.5), HEX(CONCAT(1.0 - 1)) FROM nothing;
-- A computed ENUM that is no member is the member '' of another column, as its text is.
CREATE TABLE members (id INT PRIMARY KEY, e ENUM('', 'n'));
SET sql_mode = '';
INSERT INTO members VALUES (1, 7), (2, 7), (3, 'n');
UPDATE members SET e = NULLIF(e, '2') WHERE id = 1;
UPDATE members SET e = e WHERE id = 2;
SELECT id, e + 0 FROM members ORDER BY id;
-- A number that is a day has no seconds, so that it loses its fraction.
CREATE TABLE days (id INT PRIMARY KEY, a DATETIME, b DATETIME(3), c TIMESTAMP NULL, d DATE, e TIME, f DATETIME DEFAULT (101112.5));
INSERT INTO days (id, a, b, c, d, e) VALUES (1, 101112.5, 20101112.75, 101112.9, 101112.5, 101112.5);
SELECT * FROM days;
SELECT CAST(101112.5 AS DATETIME), CAST(20101112.7 AS DATETIME(2)), 101112.5 = TIMESTAMP'2010-11-12 00:00:00', CAST(20101112101112.75 AS DATETIME(2));
-- Integers from columns of UNSIGNED DECIMAL, FLOAT and DOUBLE are unsigned.
CREATE TABLE positive (id INT PRIMARY KEY, d DECIMAL(30,5) UNSIGNED, f FLOAT UNSIGNED, w DOUBLE UNSIGNED, s DECIMAL(4,1) ZEROFILL);
INSERT INTO positive VALUES (1, 17000000076812124000, 1.7e19, 1.7e19, 1.5), (2, 1e10, 1e10, 1e10, 2.5);
SELECT d DIV 1.68, f DIV 1.68, w DIV 1.68, 5 DIV s, CEIL(s), FLOOR(s) FROM positive ORDER BY id;
SELECT BIT_XOR(d), BIT_OR(s), BIT_AND(d) FROM positive;
CREATE TABLE from_positive SELECT d DIV 2 AS a, CEIL(s) AS b, FLOOR(s) AS c FROM positive LIMIT 0;
SHOW CREATE TABLE from_positive;
-- A hexadecimal literal is a number in aggregates of numbers and bits.
SELECT SUM(0x41), AVG(0x6162), STD(0x41), BIT_OR(0x41), BIT_XOR(b'11'), MAX(0x41), SUM(DISTINCT 0x41) FROM positive;
-- The text of DATE_ADD and its kin is the number of its day or time where a number is wanted.
SELECT '2024-02-28' + INTERVAL 2 DAY + 0 AS a, DATE_ADD('2024-02-29 12:34:56', INTERVAL 1 SECOND) * 1 AS b, ADDTIME('10:11:12', '00:00:01') DIV 1 AS c, -SUBTIME('10:11:12.5', '1:0:0') AS d;
SELECT CAST('2024-02-28' + INTERVAL 1 DAY AS SIGNED) AS a, CAST('2024-02-28' + INTERVAL 1 DAY AS DECIMAL(10)) AS e, ROUND('2024-02-28' + INTERVAL 1 DAY, -2) AS b, '2024-02-28' + INTERVAL 1 DAY = 20240229 AS c, '2024-02-28' + INTERVAL 1 DAY = DATE'2024-02-29' AS d;
SELECT SUM('2024-02-28' + INTERVAL id DAY) AS a, BIT_OR('2024-02-28' + INTERVAL id DAY) AS b, MAX('2024-02-28' + INTERVAL id DAY) AS c FROM positive;
SELECT SUM(DISTINCT '2024-02-28' + INTERVAL id DAY) AS a, AVG(DISTINCT 0x41) AS b FROM positive;
SELECT '2024-02-28' + INTERVAL 1 DAY BETWEEN 20240229 AND 20240301 AS a, '2024-02-28' + INTERVAL 1 DAY IN (7, 20240229) AS b, '2024-02-28' + INTERVAL 1 DAY IN (DATE'2024-02-29', 7) AS c;
CREATE TABLE stored_days (id INT PRIMARY KEY, n BIGINT, v VARCHAR(30));
INSERT IGNORE INTO stored_days VALUES (1, '2024-02-28' + INTERVAL 1 DAY, '2024-02-28' + INTERVAL 1 DAY);
SELECT * FROM stored_days;
-- A year is a number to the text of another column, and a year to a constant text.
CREATE TABLE years (id INT PRIMARY KEY, y YEAR, t VARCHAR(9));
INSERT INTO years VALUES (1, 0, '0'), (2, 2000, '0'), (3, 2000, '00'), (4, 2012, '12'), (5, 2012, '2012');
SELECT id, y = t, y = IF(id, '0', y), y = CONCAT(t), y IN (t, 7), y BETWEEN t AND t, y = '0', y = '12', NULLIF(y, t) FROM years ORDER BY id;
-- CONV computes its number, also for a base that is none.
SELECT CONV(MOD(70, '"x"'), 100, 2) AS a, CONV('11', NULL, 2) AS b, CONV('11', 2, 37) AS c;
SHOW WARNINGS;
-- JSON_ARRAY_INSERT does not compute a value that it inserts nowhere.
SELECT JSON_ARRAY_INSERT('"a"', '$.b[0]', UNCOMPRESS('it')) AS a, JSON_ARRAY_INSERT('[1]', '$[0]', UNCOMPRESS('it')) AS b, JSON_ARRAY_INSERT('{"b": [1]}', '$.b[1]', 2) AS c;
SHOW WARNINGS;
-- A quotient is rounded once, at the digits of its type.
SELECT 55555555555555555555.5555555555555555555555555 / 11 AS a, 1.000000000000000000000000000000 / 3 AS b;
-- The number of DATE_ADD's text keeps its microseconds as a decimal.
SELECT CAST(DATE_ADD(20240229, INTERVAL 1 MICROSECOND) AS DECIMAL(30,10)) AS a, CAST('2024-02-29' - INTERVAL 1 MICROSECOND AS DECIMAL(20,3)) AS b, CAST(SUBTIME('0:0:1', '0:0:2.5') AS DECIMAL(10,2)) AS c;
-- Doubles with digits after the point are equal if they differ by less than half of the last digit.
CREATE TABLE fixed (id INT PRIMARY KEY, f FLOAT(7,3), g FLOAT, d DOUBLE(9,2), e DOUBLE, n DECIMAL(9,5), KEY (f), KEY (d));
INSERT INTO fixed VALUES (1, 8.62, 8.62, 8.62, 8.62, 8.62), (2, -0.1, -0.1, -0.1, -0.1, -0.1), (3, 3, 3, 3, 3, 3), (4, 9999.125, 9999.125, 9999.12, 9999.125, 9999.125);
SELECT id, f = n, f >= n, f < n, f <=> n, g = n, d = n, e = n, f = d, f = e, f = g, NULLIF(f, n), f IN (n), f BETWEEN n AND n FROM fixed ORDER BY id;
SELECT id FROM fixed WHERE f = 8.62;
SELECT id FROM fixed IGNORE INDEX (f) WHERE f = 8.62;
SELECT id FROM fixed WHERE f >= -0.1 AND f <= 8.62 ORDER BY id;
SELECT id FROM fixed WHERE f > 8.62 OR f < -0.1 ORDER BY id;
SELECT id FROM fixed WHERE f > 8.6199 AND f < 8.6201;
SELECT id FROM fixed WHERE f BETWEEN 8.62 AND 9 ORDER BY id;
SELECT id FROM fixed IGNORE INDEX (f) WHERE f BETWEEN 8.62 AND 9 ORDER BY id;
SELECT id FROM fixed WHERE f IN (3, 8.62) ORDER BY id;
SELECT id FROM fixed WHERE d = 8.62 OR d = 3 ORDER BY id;
SELECT id FROM fixed WHERE d > 3.0 AND d < 9999.125 ORDER BY id;
SELECT id FROM fixed WHERE e = 8.62;
SELECT id FROM fixed WHERE g = 8.62;
SELECT one.id, other.id FROM fixed one JOIN fixed other ON one.f = other.n ORDER BY one.id;
SELECT one.id, other.id FROM fixed one JOIN fixed other ON one.f = other.f ORDER BY one.id;
PREPARE by_float FROM 'SELECT id FROM fixed WHERE f = ?';
SET @n = 8.62;
EXECUTE by_float USING @n;
SET @n = 3;
EXECUTE by_float USING @n;
DROP DATABASE typed_differences;
-- The bounds of NULL are not evaluated, so that they do not warn.
SELECT NULLIF(id, id) BETWEEN UNCOMPRESS(0xffffffffffffffff) AND id AS a FROM (SELECT 1 AS id) q;
SHOW WARNINGS;
