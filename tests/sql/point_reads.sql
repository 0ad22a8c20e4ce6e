-- Rows by key, by lists of keys, and what is missing.
CREATE DATABASE cli_points;
USE cli_points;
CREATE TABLE fruit (id INT NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL, weight_g INT, note TEXT);
INSERT INTO fruit VALUES (1, 'apple', 180, NULL), (2, 'pear', 170, 'ripe'), (3, 'plum', NULL, '');
INSERT INTO fruit (id, name) VALUES (10, 'quince');
SELECT * FROM fruit WHERE id = 2;
SELECT name FROM fruit WHERE id = 99;
SELECT id, name, weight_g, note FROM fruit WHERE id IN (3, 1, 77, 10) ORDER BY id;
SELECT COUNT(*) FROM fruit;
SELECT COUNT(weight_g), COUNT(*) FROM fruit;
SELECT name, weight_g FROM fruit WHERE weight_g IS NULL ORDER BY name;
SELECT name FROM fruit WHERE note = '';
SELECT 1 + 2 AS three, 'text' AS t, NULL AS nothing;
DROP TABLE fruit;
DROP DATABASE cli_points;
