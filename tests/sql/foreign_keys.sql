-- Foreign keys: checks of children and parents, and the actions ON DELETE and ON UPDATE.
CREATE DATABASE cli_foreign;
USE cli_foreign;
CREATE TABLE parent (id INT NOT NULL PRIMARY KEY, code VARCHAR(10), a INT, b INT, UNIQUE KEY code (code), KEY ab (a, b));
CREATE TABLE gone (id INT NOT NULL PRIMARY KEY, pid INT, CONSTRAINT gone_parent FOREIGN KEY (pid) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE nulled (id INT NOT NULL PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES parent (id) ON DELETE SET NULL ON UPDATE SET NULL);
CREATE TABLE kept (id INT NOT NULL PRIMARY KEY, code VARCHAR(20), KEY by_code (code), FOREIGN KEY (code) REFERENCES parent (code) ON UPDATE CASCADE);
CREATE TABLE pairs (id INT NOT NULL PRIMARY KEY, x INT, y INT, FOREIGN KEY (x, y) REFERENCES parent (a, b) ON DELETE CASCADE);
INSERT INTO parent VALUES (1, 'one', 10, 100), (2, 'two', 20, 200), (3, 'three', 30, 300), (4, NULL, NULL, NULL);
INSERT INTO gone VALUES (1, 1), (2, 1), (3, 2), (4, NULL);
INSERT INTO nulled VALUES (1, 1), (2, 2), (3, NULL);
INSERT INTO kept VALUES (1, 'ONE'), (2, NULL);
INSERT INTO pairs VALUES (1, 10, 100), (2, 20, NULL), (3, NULL, 5), (4, 30, 300);
-- children without a parent are refused
INSERT INTO gone VALUES (5, 9);
INSERT INTO gone VALUES (5, 2), (6, 9);
INSERT INTO kept VALUES (3, 'four');
INSERT INTO pairs VALUES (5, 10, 200);
UPDATE gone SET pid = 9 WHERE id = 1;
UPDATE gone SET pid = 3 WHERE id = 1;
UPDATE gone SET pid = pid WHERE id = 1;
SELECT * FROM gone ORDER BY id;
-- parents with children cannot be deleted or changed
DELETE FROM parent WHERE id = 1;
UPDATE parent SET code = 'uno' WHERE id = 1;
SELECT * FROM kept ORDER BY id;
UPDATE parent SET a = 11 WHERE id = 1;
UPDATE parent SET a = 10 WHERE id = 1;
DELETE FROM kept WHERE id = 1;
-- cascades
UPDATE parent SET id = 7 WHERE id = 1;
SELECT * FROM gone ORDER BY id;
SELECT * FROM nulled ORDER BY id;
DELETE FROM parent WHERE id = 7;
SELECT * FROM gone ORDER BY id;
SELECT * FROM pairs ORDER BY id;
DELETE FROM parent WHERE id IN (2, 3);
SELECT * FROM gone ORDER BY id;
SELECT * FROM nulled ORDER BY id;
SELECT * FROM pairs ORDER BY id;
SELECT * FROM parent ORDER BY id;
-- a statement that fails is undone with its cascades
INSERT INTO parent VALUES (1, 'one', 10, 100), (2, 'two', 20, 200);
INSERT INTO gone VALUES (1, 1), (2, 2);
INSERT INTO kept VALUES (1, 'two');
BEGIN;
INSERT INTO gone VALUES (10, 1);
DELETE FROM parent WHERE id IN (1, 2);
SELECT * FROM gone ORDER BY id;
COMMIT;
SELECT * FROM gone ORDER BY id;
SELECT COUNT(*) FROM parent;
-- within a transaction
BEGIN;
INSERT INTO parent VALUES (5, 'five', NULL, NULL);
INSERT INTO gone VALUES (11, 5);
DELETE FROM parent WHERE id = 5;
SELECT * FROM gone WHERE id = 11;
ROLLBACK;
SELECT COUNT(*) FROM parent;
-- foreign_key_checks = 0
SET foreign_key_checks = 0;
INSERT INTO gone VALUES (20, 99);
DELETE FROM parent WHERE id = 2;
SET foreign_key_checks = 1;
SELECT * FROM gone ORDER BY id;
UPDATE gone SET pid = 98 WHERE id = 20;
-- a table that references itself
CREATE TABLE tree (id INT NOT NULL PRIMARY KEY, up INT, CONSTRAINT branch FOREIGN KEY (up) REFERENCES tree (id) ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 1), (4, 2), (5, 4);
INSERT INTO tree VALUES (6, 6);
INSERT INTO tree VALUES (7, 8);
UPDATE tree SET id = 9 WHERE id = 1;
DELETE FROM tree WHERE id = 2;
SELECT * FROM tree ORDER BY id;
DELETE FROM tree WHERE id = 6;
DELETE FROM tree WHERE id = 1;
SELECT COUNT(*) FROM tree;
-- cascades through several tables
CREATE TABLE one (id INT NOT NULL PRIMARY KEY);
CREATE TABLE two (id INT NOT NULL PRIMARY KEY, o INT NOT NULL, UNIQUE KEY (o), FOREIGN KEY (o) REFERENCES one (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE three (id INT NOT NULL PRIMARY KEY, t INT, o INT, FOREIGN KEY (t) REFERENCES two (id) ON DELETE SET NULL, FOREIGN KEY (o) REFERENCES two (o) ON DELETE SET NULL ON UPDATE CASCADE);
INSERT INTO one VALUES (1), (2), (3);
INSERT INTO two VALUES (10, 1), (20, 2), (30, 3);
INSERT INTO three VALUES (100, 10, 1), (200, 20, 1), (300, 30, 3);
UPDATE one SET id = 5 WHERE id = 1;
SELECT * FROM three ORDER BY id;
DELETE FROM one WHERE id = 5;
SELECT * FROM three ORDER BY id;
SELECT * FROM two ORDER BY id;
-- information_schema
SELECT constraint_name AS c, table_name AS t, column_name AS k, referenced_table_name AS p, referenced_column_name AS r FROM information_schema.key_column_usage WHERE table_schema = 'cli_foreign' AND table_name = 'pairs' ORDER BY constraint_name, ordinal_position;
SELECT constraint_name AS c, unique_constraint_name AS u, update_rule AS o, delete_rule AS d, table_name AS t, referenced_table_name AS p FROM information_schema.referential_constraints WHERE constraint_schema = 'cli_foreign' AND table_name = 'gone' ORDER BY constraint_name;
SELECT constraint_name AS c, constraint_type AS t FROM information_schema.table_constraints WHERE table_schema = 'cli_foreign' AND table_name = 'gone' ORDER BY constraint_name;
DROP TABLE three, two, one;
DROP TABLE gone, nulled, kept, pairs, parent, tree;
DROP DATABASE cli_foreign;
