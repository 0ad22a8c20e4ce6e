-- ALTER TABLE, CREATE INDEX and DROP INDEX of temporary tables, which hide stored tables of the same name.
-- not recorded: some errors and counts of records are MySQL's.
CREATE DATABASE cli_alter_temporary;
USE cli_alter_temporary;
CREATE TABLE parent (id INT PRIMARY KEY, a INT);
CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE);
CREATE TABLE other (id INT PRIMARY KEY);
INSERT INTO parent VALUES (1, 1), (2, 2);
INSERT INTO child VALUES (1, 1), (2, 2);
-- A temporary table is no parent: its rows have no children, its columns and keys may be others.
CREATE TEMPORARY TABLE parent (id INT PRIMARY KEY, a INT, b VARCHAR(10));
INSERT INTO parent VALUES (1, 10, 'x'), (2, 20, 'y'), (3, 30, NULL);
DELETE FROM parent WHERE id = 1;
UPDATE parent SET id = 7 WHERE id = 2;
SELECT * FROM child ORDER BY id;
-- In place, by copies and with new indexes.
ALTER TABLE parent COMMENT 'own', ALTER COLUMN a SET DEFAULT 5, RENAME COLUMN b TO c;
INSERT INTO parent (id) VALUES (1);
SELECT * FROM parent ORDER BY id;
ALTER TABLE parent ADD COLUMN d INT NOT NULL DEFAULT 4 FIRST, MODIFY c CHAR(3), ADD UNIQUE u (a), ADD KEY k (c);
SELECT * FROM parent ORDER BY id;
INSERT INTO parent VALUES (1, 8, 30, 'z');
CREATE INDEX kd ON parent (d);
CREATE UNIQUE INDEX ud ON parent (d);
CREATE UNIQUE INDEX uc ON parent (c, id);
DROP INDEX k ON parent;
ALTER TABLE parent DROP PRIMARY KEY, ADD PRIMARY KEY (a, id), RENAME INDEX kd TO renamed, DROP INDEX u;
SELECT id FROM parent FORCE INDEX (renamed) WHERE d = 4 ORDER BY id;
SELECT id FROM parent WHERE c = 'y';
ALTER TABLE parent ADD COLUMN n INT AUTO_INCREMENT, ADD UNIQUE (n);
SELECT COUNT(DISTINCT n), MAX(n) FROM parent;
INSERT INTO parent (a, id) VALUES (1, 1);
SELECT n FROM parent WHERE a = 1;
-- It may get the name of a stored table, but not that of another temporary one.
CREATE TEMPORARY TABLE second (id INT);
ALTER TABLE parent RENAME TO second;
ALTER TABLE parent RENAME TO other, DROP COLUMN d;
SELECT COUNT(*) FROM other;
SELECT * FROM parent ORDER BY id;
ALTER TABLE other RENAME TO parent;
SELECT COUNT(*) FROM other;
-- What fails changes nothing.
ALTER TABLE parent ADD COLUMN e INT, ADD UNIQUE (id);
ALTER TABLE parent DROP COLUMN nothing;
ALTER TABLE parent ADD FOREIGN KEY (id) REFERENCES other (id);
ALTER TABLE parent PARTITION BY KEY (id) PARTITIONS 2;
SELECT COUNT(*) FROM parent;
-- It commits, unlike DROP TEMPORARY TABLE.
BEGIN;
INSERT INTO other VALUES (100);
ALTER TABLE second ADD COLUMN b INT;
ROLLBACK;
SELECT * FROM other;
-- Prepared statements see the new columns.
PREPARE p FROM 'SELECT * FROM second';
INSERT INTO second VALUES (1, 2);
EXECUTE p;
ALTER TABLE second ADD COLUMN c INT DEFAULT 3;
EXECUTE p;
ALTER TABLE second DROP COLUMN b;
EXECUTE p;
TRUNCATE TABLE second;
ALTER TABLE second MODIFY id VARCHAR(5), ADD PRIMARY KEY (id);
INSERT INTO second VALUES ('a', 1);
EXECUTE p;
DROP TEMPORARY TABLE parent, second;
SELECT * FROM parent ORDER BY id;
SELECT * FROM child ORDER BY id;
DROP DATABASE cli_alter_temporary;
