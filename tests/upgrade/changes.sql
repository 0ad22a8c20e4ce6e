-- What happens between the checkpoint of such a directory and the end of its server. Never change this file.
UPDATE shop.item SET name = 'mug', weight = 3 WHERE code = 0;
UPDATE shop.item SET code = 4 WHERE code = 3;
DELETE FROM shop.item WHERE code = 1000 + 4 OR id = 5;
BEGIN;
UPDATE shop.pair SET n = n + 1;
DELETE FROM shop.pair WHERE a > 600;
COMMIT;
BEGIN;
UPDATE shop.pair SET n = -1;
ROLLBACK;
TRUNCATE TABLE shop.emptied;
INSERT INTO shop.emptied VALUES (1, 1), (2, NULL);
CREATE INDEX by_n ON shop.pair (n);
DROP DATABASE other;
CREATE TABLE shop.late (id INT PRIMARY KEY, text VARCHAR(20));
INSERT INTO shop.late VALUES (1, 'late'), (2, 'later');
RENAME TABLE shop.late TO shop.renamed;
INSERT INTO shop.sale (id, item) VALUES (-1, 2);
