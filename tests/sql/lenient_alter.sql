-- Without a strict sql_mode, ALTER TABLE stores the nearest value, with a warning.
CREATE DATABASE lenient_alter; USE lenient_alter;
CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(10), n INT, d VARCHAR(20), c INT CHECK (c < 10));
INSERT INTO a VALUES (1, '300x', NULL, '2024-02-30', 3);
ALTER TABLE a MODIFY v TINYINT;
ALTER TABLE a MODIFY n INT NOT NULL;
ALTER TABLE a MODIFY d DATE;
SELECT * FROM a;
SET sql_mode = '';
ALTER TABLE a MODIFY v TINYINT;
SHOW WARNINGS;
ALTER TABLE a MODIFY n INT NOT NULL, MODIFY d DATE;
SHOW WARNINGS;
SELECT * FROM a;
-- NULL becomes no member of an ENUM, and has no value in a spatial type.
CREATE TABLE e (id INT PRIMARY KEY, c VARCHAR(9), g POINT, t TIME(6), s VARCHAR(9));
INSERT INTO e VALUES (1, NULL, NULL, '-34:00:00', '2156');
ALTER TABLE e MODIFY c ENUM('a', 'b') NOT NULL;
SHOW WARNINGS;
ALTER TABLE e MODIFY g POINT NOT NULL;
ALTER TABLE e MODIFY t BIT(5), MODIFY s SET('a', 'b', 'c');
SHOW WARNINGS;
SELECT id, c, c + 0, HEX(t), s FROM e;
CREATE TABLE bits (b BIT(5));
INSERT INTO bits VALUES (-34), (-340000), (33);
SHOW WARNINGS;
SELECT HEX(b) FROM bits;
-- Keys and conditions hold in every mode.
INSERT INTO a VALUES (2, 1, 0, NULL, 4);
ALTER TABLE a MODIFY n BIGINT NOT NULL, ADD UNIQUE (n);
ALTER TABLE a MODIFY n BIGINT NOT NULL, ADD CHECK (n > 0);
ALTER TABLE a MODIFY d DATE NOT NULL, ADD COLUMN later VARCHAR(2) AS (CONCAT('long', id)) STORED;
SHOW COUNT(*) WARNINGS;
SELECT * FROM a ORDER BY id;
-- Warnings beyond max_error_count are counted.
SET max_error_count = 3;
CREATE TABLE many (id INT PRIMARY KEY, v VARCHAR(10));
INSERT INTO many VALUES (1, 'x'), (2, 'x'), (3, 'x'), (4, 'x'), (5, 'x');
ALTER TABLE many MODIFY v INT;
SELECT @@warning_count;
SELECT * FROM many ORDER BY id;
DROP DATABASE lenient_alter;
