-- Found by tests/differential/typed: text of days and times, numbers of bits, members and years.
CREATE DATABASE cli_texts_of_types;
USE cli_texts_of_types;
SELECT HEX(DATE'2024-02-29'), HEX(TIME'10:00:00'), PI(), CONCAT(PI()), ROUND(1.5e0, 3);
SELECT '9999-12-31 23:59:59' BETWEEN '1969-12-31 23:59:59' AND DATE'0001-01-01' AS outside, '2024-02-29' BETWEEN '2023-1-1' AND DATE'2025-01-01' AS inside;
SELECT NOT 0x7f, 0x61 IS TRUE, 0x7f AND 1, 0xff IN (255, 3);
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, y YEAR DEFAULT 2000, b BIT(5), s SET('x','y','z'), d DOUBLE(10,3), n DECIMAL(5,0), i TIME);
INSERT INTO t VALUES (1, 2024, 17, '0', 0.1, 1, '10:11:12');
SELECT id, HEX(y), OCT(b), s, s + 0, TO_BASE64(d), n FROM t;
SELECT id FROM t WHERE 0x7f;
UPDATE IGNORE t SET y = 'abc', s = i WHERE id = 1;
SELECT id, y + 0, s FROM t;
SET sql_mode = '';
INSERT INTO t (id, b) VALUES (2, 99);
SHOW COUNT(*) WARNINGS;
INSERT INTO t (id, n) VALUES (3, 1.5e0);
SHOW COUNT(*) WARNINGS;
SELECT id, HEX(b), n FROM t WHERE id > 1 ORDER BY id;
DROP DATABASE cli_texts_of_types;
