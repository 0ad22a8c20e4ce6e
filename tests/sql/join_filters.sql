-- Scans of thousands of rows: filters of the keys of joins, conditions on columns, sums, equalities that follow.
CREATE DATABASE cli_join_filters;
USE cli_join_filters;
CREATE TABLE digit (n INT NOT NULL PRIMARY KEY);
INSERT INTO digit VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
CREATE TABLE big (id INT NOT NULL PRIMARY KEY, i INT, u INT UNSIGNED NOT NULL, d DECIMAL(10,2), l DECIMAL(18,4) NOT NULL, day DATE, at DATETIME, s VARCHAR(20) COLLATE utf8mb4_general_ci, b VARCHAR(20) COLLATE utf8mb4_bin);
INSERT INTO big SELECT x, IF(x % 7 = 0, NULL, x % 100), x % 50, IF(x % 11 = 0, NULL, (x % 40) / 4), (x % 1000) / 8, IF(x % 13 = 0, NULL, DATE_ADD('2020-01-01', INTERVAL x % 400 DAY)), DATE_ADD('2020-01-01 00:00:00', INTERVAL x % 900 HOUR), IF(x % 17 = 0, NULL, CONCAT('Text', x % 30)), CONCAT(IF(x % 2 = 0, 'a', 'A'), x % 20, IF(x % 3 = 0, ' ', '')) FROM (SELECT 1 + e.n + 10 * t.n + 100 * h.n + 1000 * k.n x FROM digit e, digit t, digit h, digit k WHERE k.n < 5) n;
CREATE TABLE small (id INT NOT NULL PRIMARY KEY, i INT, d DECIMAL(6,1), day DATE, s VARCHAR(20) COLLATE utf8mb4_general_ci, n BIGINT);
INSERT INTO small VALUES (1,5,5.0,'2020-02-03','TEXT4',5),(2,NULL,NULL,NULL,NULL,NULL),(3,17,2.5,'2020-05-05','text9 ',17),(4,99,9.5,'2021-01-09','nothing',99),(5,17,0.5,'2030-01-01','Text29',-1);
-- Inner joins and semijoins; NULL has no partner.
SELECT COUNT(*), SUM(big.id) FROM big JOIN small ON big.i = small.i;
SELECT COUNT(*), SUM(big.id) FROM big JOIN small ON big.i = small.i AND small.id < 3;
SELECT COUNT(*), SUM(big.id) FROM big WHERE i IN (SELECT i FROM small);
SELECT COUNT(*), SUM(big.id) FROM big WHERE i IN (SELECT MAX(i) FROM small GROUP BY id % 2);
SELECT COUNT(*), SUM(big.id) FROM big WHERE EXISTS (SELECT * FROM small WHERE small.i = big.i AND small.id > 3);
SELECT COUNT(*), SUM(big.id) FROM big JOIN (SELECT i, COUNT(*) c FROM small GROUP BY i) g ON g.i = big.i;
SELECT COUNT(*), SUM(big.id) FROM big JOIN small ON big.i = small.i WHERE small.id > 100;
-- Keys of other types and collations.
SELECT COUNT(*), SUM(big.id) FROM big JOIN small ON big.d = small.d;
SELECT COUNT(*), SUM(big.id) FROM big JOIN small ON big.d = small.i;
SELECT COUNT(*), SUM(big.id) FROM big JOIN small ON big.u = small.d;
SELECT COUNT(*), SUM(big.id) FROM big JOIN small ON big.u = small.n;
SELECT COUNT(*), SUM(big.id) FROM big JOIN small ON big.i = small.n AND big.u = small.i;
SELECT COUNT(*), SUM(big.id) FROM big JOIN small ON big.day = small.day;
SELECT COUNT(*), SUM(big.id) FROM big JOIN small ON big.s = small.s;
SELECT COUNT(*), SUM(big.id) FROM big JOIN small ON big.i <=> small.i;
-- Rows without a partner stay in these.
SELECT COUNT(*), SUM(big.id), COUNT(small.id) FROM big LEFT JOIN small ON big.i = small.i;
SELECT COUNT(*), SUM(big.id) FROM big WHERE i NOT IN (SELECT i FROM small WHERE i IS NOT NULL);
SELECT COUNT(*), SUM(big.id) FROM big WHERE i NOT IN (SELECT i FROM small);
SELECT COUNT(*), SUM(big.id) FROM big WHERE NOT EXISTS (SELECT * FROM small WHERE small.i = big.i);
SELECT COUNT(*), SUM(big.id) FROM big LEFT JOIN small ON big.i = small.i WHERE small.id IS NULL;
SELECT COUNT(*), COUNT(t.id), SUM(big.id) FROM big JOIN small ON big.i = small.i LEFT JOIN small t ON t.n = big.u;
-- Equalities that follow from others.
SELECT COUNT(*), SUM(big.id) FROM big, small, small t WHERE big.i = small.i AND small.i = t.i;
SELECT COUNT(*), SUM(big.id) FROM big, small, small t, big o WHERE big.i = small.i AND small.i = t.n AND o.id = t.i AND t.id = small.id;
SELECT COUNT(*), SUM(big.id) FROM big, small, small t WHERE big.s = small.s AND small.s = t.s AND t.s COLLATE utf8mb4_bin = 'Text29';
SELECT COUNT(*), SUM(big.id) FROM big JOIN small ON big.i = small.i LEFT JOIN small t ON t.i = small.i AND t.id > 3;
-- Semijoins with a unique key lead to the rows of the table.
SELECT COUNT(*), SUM(id) FROM big WHERE id IN (SELECT id FROM small WHERE i > 6);
SELECT COUNT(*), SUM(id) FROM big WHERE id IN (SELECT id FROM small WHERE i > 6) AND i IN (SELECT i FROM small);
SELECT COUNT(*), SUM(id) FROM big WHERE u IN (SELECT id FROM small) AND u > (SELECT MIN(id) FROM small);
SELECT COUNT(*), SUM(id) FROM big WHERE d > (SELECT AVG(d) FROM small) AND NOT EXISTS (SELECT * FROM small WHERE small.i = big.i);
UPDATE big SET u = u + 1000 WHERE id IN (SELECT id FROM small WHERE i > 6);
SELECT id, u FROM big WHERE u > 999 ORDER BY id;
-- A semijoin of rows that an outer join may leave empty, with rows that are computed.
SELECT t.id, o.id FROM small t LEFT JOIN (small o JOIN digit ON digit.n = o.id) ON o.i = t.i WHERE o.id IN (SELECT MAX(id) FROM small GROUP BY n) ORDER BY t.id, o.id;
SELECT COUNT(*), COUNT(o.id) FROM small o JOIN digit ON digit.n = o.id RIGHT JOIN small t ON o.i = t.n WHERE o.i IN (SELECT i FROM small s WHERE s.id NOT IN (SELECT id FROM small u WHERE u.n = s.id));
SELECT t.id, o.id FROM small t LEFT JOIN (small o JOIN digit ON digit.n = o.id) ON o.i = t.i WHERE t.id IN (SELECT MAX(id) FROM small GROUP BY n) ORDER BY t.id, o.id;
-- Conditions on columns.
SELECT COUNT(*), SUM(id) FROM big WHERE i > 50 AND d <= 7.25 AND u <> 3;
SELECT COUNT(*), SUM(id) FROM big WHERE i BETWEEN 10 AND 20 AND d BETWEEN 1 AND 5.5;
SELECT COUNT(*), SUM(id) FROM big WHERE i = 5.5 OR d = 2.505;
SELECT COUNT(*), SUM(id) FROM big WHERE d > 2.505 AND i > 5.5 AND l < 0.12505;
SELECT COUNT(*), SUM(id) FROM big WHERE day >= '2020-03-01' AND day < '2020-03-01' + INTERVAL 1 MONTH;
SELECT COUNT(*), SUM(id) FROM big WHERE day < at AND at <= '2020-01-20 12:30:00';
SELECT COUNT(*), SUM(id) FROM big WHERE day > '2020-12-31 12:00:00' AND i < u;
SELECT COUNT(*), SUM(id) FROM big WHERE i <=> 5 AND NOT (d <=> NULL);
SELECT COUNT(*), SUM(id) FROM big WHERE i IN (1, 2, 50, NULL) AND d IN (0.25, 5, 7.75);
SELECT COUNT(*), SUM(id) FROM big WHERE i NOT IN (1, 2, 50) AND u NOT BETWEEN 10 AND 40;
SELECT COUNT(*), SUM(id) FROM big WHERE s = 'tEXT7' OR s IS NULL;
SELECT COUNT(*), SUM(id) FROM big WHERE s IN ('TEXT1', 'text2 ') AND b <> 'A1';
SELECT COUNT(*), SUM(id) FROM big WHERE b IN ('a2', 'A3', 'a4 ') AND b > 'A1';
SELECT COUNT(*), SUM(id) FROM big WHERE s LIKE 'TEXT2_' AND b LIKE 'a%';
SELECT COUNT(*), SUM(id) FROM big WHERE b LIKE '%1%' AND b NOT LIKE 'A%' AND b LIKE '%8 ';
SELECT COUNT(*), SUM(id) FROM big WHERE b LIKE 'a2' OR b LIKE '%' AND b LIKE '%a%2%';
SELECT COUNT(*), SUM(id) FROM big WHERE s LIKE 'T%9' AND i + 1 > 50 AND u IN (9, 19, 29);
-- Sums of columns and of arithmetic, with and without groups.
SELECT SUM(i), SUM(u), SUM(d), SUM(l), AVG(d), AVG(i), COUNT(i) FROM big;
SELECT SUM(d * (1 - l)), SUM(d * (1 + i) * (2 - l)), AVG(l * l), SUM(d - i), SUM(u * 1.5) FROM big WHERE i > 3;
SELECT u % 3 g, SUM(d * (1 - l)), SUM(i), AVG(d), MIN(d), MAX(s), COUNT(*) FROM big GROUP BY g ORDER BY g;
SELECT s, SUM(d), SUM(l * d * 100) FROM big WHERE day < '2020-02-01' GROUP BY s ORDER BY s;
SELECT SUM(l * l * l * l * l * l * l) FROM big;
SELECT COUNT(*) FROM (SELECT id, SUM(d) t FROM big GROUP BY id HAVING t > 5) q;
DROP DATABASE cli_join_filters;
