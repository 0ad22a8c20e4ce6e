-- Joins by keys of several columns. Recorded from MariaDB.
DROP DATABASE IF EXISTS cli_composite_keys;
CREATE DATABASE cli_composite_keys CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
USE cli_composite_keys;
SET NAMES utf8mb4 COLLATE utf8mb4_general_ci;
CREATE TABLE digit (n INT PRIMARY KEY);
INSERT INTO digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
CREATE TABLE customer (w INT NOT NULL, d SMALLINT NOT NULL, c BIGINT NOT NULL, name VARCHAR(20), PRIMARY KEY (w, d, c));
INSERT INTO customer SELECT a.n % 2 + 1, b.n % 4, a.n * 10 + b.n, CONCAT('Name', c.n) FROM digit a, digit b, digit c WHERE c.n = (a.n + b.n) % 10;
CREATE TABLE orders (w SMALLINT NOT NULL, d INT NOT NULL, o INT UNSIGNED NOT NULL, c INT, day DATE, amount DECIMAL(8,2), PRIMARY KEY (w, d, o), KEY by_customer (w, d, c, o));
INSERT INTO orders SELECT w, d, c + 100 * n, IF((c + n) % 7 = 0, NULL, c), DATE_ADD('2024-01-01', INTERVAL c DAY), c + n / 4 FROM customer, digit WHERE n < 3;
CREATE TABLE line (w INT NOT NULL, d INT NOT NULL, o DECIMAL(10,1) NOT NULL, n INT NOT NULL, item VARCHAR(10), PRIMARY KEY (w, d, o, n), UNIQUE KEY by_item (item, w, d, o, n));
INSERT INTO line SELECT w, d, o, n, IF(n = 1, NULL, CONCAT(IF(n = 2, 'item', 'ITEM'), c % 5)) FROM orders, digit WHERE n < 4;
CREATE TABLE mark (s VARCHAR(10) NOT NULL, k VARCHAR(10) COLLATE utf8mb4_bin NOT NULL, t DATE NOT NULL, v INT, PRIMARY KEY (s, k, t), KEY (t, v));
INSERT INTO mark SELECT CONCAT(IF(n % 2, 'a', 'A'), n), CONCAT('b', n % 3), DATE_ADD('2024-01-01', INTERVAL n DAY), IF(n = 4, NULL, n) FROM digit;
-- Whole keys and prefixes, in chains.
SELECT COUNT(*), SUM(o.o), SUM(c.c) FROM customer c JOIN orders o ON o.w = c.w AND o.d = c.d AND o.c = c.c WHERE c.name = 'name3';
SELECT COUNT(*), SUM(l.o), SUM(l.n) FROM customer c JOIN orders o ON o.w = c.w AND o.d = c.d AND o.c = c.c JOIN line l ON l.w = o.w AND l.d = o.d AND l.o = o.o WHERE c.name = 'Name7';
SELECT COUNT(*), SUM(l.o), SUM(l.n) FROM customer c, orders o, line l WHERE o.w = c.w AND o.d = c.d AND o.c = c.c AND l.w = c.w AND l.d = c.d AND l.o = o.o AND c.c < 20;
SELECT COUNT(*), SUM(c.c) FROM line l JOIN orders o ON o.w = l.w AND o.d = l.d AND o.o = l.o JOIN customer c ON c.w = o.w AND c.d = o.d AND c.c = o.c WHERE l.item = 'item3' AND l.n = 2;
-- Constants, expressions and values between those of the column.
SELECT COUNT(*), SUM(o.o) FROM customer c JOIN orders o ON o.w = 1 AND o.d = c.d AND o.c = c.c WHERE c.name = 'Name1';
SELECT COUNT(*), SUM(o.o) FROM customer c JOIN orders o ON o.w = c.w AND o.d = 2 AND o.c = c.c;
SELECT COUNT(*), SUM(o.o) FROM customer c JOIN orders o ON o.w = c.w AND o.d = c.d AND o.o = c.c + 100 WHERE c.name = 'Name2';
SELECT COUNT(*), SUM(o.o) FROM customer c JOIN orders o ON o.w = c.w AND o.d = c.d AND o.o = c.c / 2;
SELECT COUNT(*), SUM(o.o) FROM customer c JOIN orders o ON o.w = c.w AND o.d = c.d AND o.o = 20 - c.c;
SELECT COUNT(*), SUM(l.n) FROM customer c JOIN line l ON l.w = c.w AND l.d = c.d AND l.o = c.c * 1.05 WHERE c.name > 'Name5';
SELECT COUNT(*), SUM(o.o) FROM customer c JOIN orders o ON o.w = c.w + 70000 AND o.d = c.d AND o.c = c.c;
SELECT COUNT(*), SUM(o.o) FROM customer c JOIN orders o ON o.w IN (1, 2) AND o.d = c.d AND o.c = c.c WHERE c.name = 'Name4';
SELECT COUNT(*), SUM(o.o) FROM customer c JOIN orders o ON o.w = c.w AND o.d = c.d AND o.c = c.c AND o.o BETWEEN 100 AND 150;
-- NULL on both sides.
SELECT c.c, COUNT(o.o), SUM(o.amount) FROM customer c LEFT JOIN orders o ON o.w = c.w AND o.d = c.d AND o.c = c.c AND o.amount > 40 WHERE c.c % 9 = 0 GROUP BY c.c ORDER BY c.c;
SELECT COUNT(*), COUNT(c.c), SUM(c.c) FROM orders o LEFT JOIN customer c ON c.w = o.w AND c.d = o.d AND c.c = o.c;
SELECT COUNT(*), COUNT(c.c), SUM(c.c) FROM orders o LEFT JOIN customer c ON c.w = o.w AND c.d = o.d AND c.c <=> o.c;
SELECT COUNT(*), COUNT(m.n), SUM(m.n) FROM orders o LEFT JOIN line m ON m.item = CONCAT('Item', o.c % 5) AND m.w = o.w AND m.d = o.d AND m.o = o.o;
-- Semijoins and antijoins.
SELECT COUNT(*), SUM(c) FROM customer c WHERE EXISTS (SELECT * FROM orders o WHERE o.w = c.w AND o.d = c.d AND o.c = c.c AND o.amount > 90);
SELECT COUNT(*), SUM(c) FROM customer c WHERE NOT EXISTS (SELECT * FROM orders o WHERE o.w = c.w AND o.d = c.d AND o.c = c.c AND o.amount > 40);
SELECT COUNT(*), SUM(c) FROM customer c WHERE (w, d, c) IN (SELECT w, d, c FROM orders WHERE amount < 30);
SELECT COUNT(*), SUM(c) FROM customer c WHERE (w, d, c) NOT IN (SELECT w, d, c FROM orders WHERE amount < 30 AND c IS NOT NULL);
SELECT COUNT(*), SUM(c) FROM customer c WHERE (w, c) NOT IN (SELECT w, c FROM orders o WHERE o.d = c.d AND o.amount < 10);
SELECT COUNT(*), SUM(o) FROM orders o WHERE amount > (SELECT AVG(i.amount) FROM orders i WHERE i.w = o.w AND i.d = o.d AND i.c = o.c);
-- Collations and days.
SELECT m.s, m.k, m.v FROM mark m JOIN digit g ON m.s = CONCAT('a', g.n) AND m.k = CONCAT('b', g.n % 3) ORDER BY m.s;
SELECT m.s, m.k, m.v FROM mark m JOIN digit g ON m.s = CONCAT('a', g.n, ' ') AND m.k = CONCAT('B', g.n % 3) ORDER BY m.s;
SELECT m.s, m.k, m.v FROM mark m JOIN digit g ON m.s = CONCAT('a', g.n) COLLATE utf8mb4_bin AND m.k = CONCAT('b', g.n % 3) ORDER BY m.s;
SELECT COUNT(*), SUM(m.v), SUM(o.o) FROM orders o JOIN mark m ON m.t = o.day AND m.v = o.c;
SELECT COUNT(*), SUM(m.v), SUM(n.v) FROM mark m JOIN mark n ON n.s = m.s AND n.k = m.k AND n.t = m.t;
-- More left rows than keys are looked up for.
SELECT COUNT(*), SUM(l.n), SUM(o.o) FROM orders o JOIN line l ON l.w = o.w AND l.d = o.d AND l.o = o.o JOIN customer c ON c.w = l.w AND c.d = l.d AND c.c = o.c;
-- Changes and locks.
UPDATE orders o JOIN customer c ON o.w = c.w AND o.d = c.d AND o.c = c.c SET o.amount = 0 WHERE c.name = 'Name3';
SELECT COUNT(*), SUM(o) FROM orders WHERE amount = 0;
DELETE l FROM line l JOIN orders o ON l.w = o.w AND l.d = o.d AND l.o = o.o WHERE o.amount = 0 AND l.n > 1;
SELECT COUNT(*), SUM(n) FROM line;
SELECT COUNT(*), SUM(o.o) FROM customer c JOIN orders o ON o.w = c.w AND o.d = c.d AND o.c = c.c WHERE c.name = 'name5' FOR UPDATE;
-- Lists of values for several columns of a key, alone and with those of other tables.
SELECT COUNT(*), SUM(o) FROM orders WHERE w IN (1, 2, 9) AND d IN (3, 1) AND o IN (105, 17, 240);
SELECT COUNT(*), SUM(o) FROM orders WHERE w IN (1, 2) AND d = 2 AND o IN (5, 105, 205.0, 7.5, NULL);
SELECT COUNT(*), SUM(n) FROM line WHERE w = 2 AND d IN (0, 1, 2, 3) AND o IN (11, 111) AND n BETWEEN 1 AND 2;
SELECT COUNT(*), SUM(n) FROM line WHERE item IN ('item1', 'ITEM2', 'none') AND w IN (1) AND d IN (1, 2) AND o < 100;
SELECT COUNT(*), SUM(v) FROM mark WHERE s IN ('a1', 'A2', 'a3') AND k IN ('b1', 'B2', 'b2') AND t IN ('2024-01-02', '2024-01-03');
SELECT c, COUNT(*) FROM orders WHERE w IN (1, 2) AND d IN (1, 2) AND c IN (21, 22, 93) GROUP BY c ORDER BY c;
SELECT COUNT(*), SUM(o.o) FROM customer c JOIN orders o ON o.w IN (1, 2) AND o.d = c.d AND o.o IN (5, 105, 250) AND o.c > c.c WHERE c.name = 'Name3';
SELECT COUNT(*), SUM(o.o) FROM customer c JOIN orders o ON o.w = c.w AND o.d IN (0, 1, 7) AND o.c = c.c WHERE c.name = 'Name4';
SELECT COUNT(*), COUNT(l.n), SUM(l.o) FROM orders o LEFT JOIN line l ON l.item IN ('item1', 'item4') AND l.w = o.w AND l.d IN (1, 3) AND l.o = o.o WHERE o.amount < 50;
SELECT COUNT(*), SUM(c) FROM customer c WHERE EXISTS (SELECT * FROM orders o WHERE o.w IN (1, 3) AND o.d = c.d AND o.c IN (c.c, 5) AND o.c = c.c);
DELETE FROM orders WHERE w IN (1, 2) AND d IN (0, 3) AND o IN (5, 6, 105);
SELECT COUNT(*), SUM(o) FROM orders;
DROP DATABASE cli_composite_keys;
