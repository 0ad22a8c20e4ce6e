-- Conditions on derived tables that are tested inside them. Recorded from MariaDB.
DROP DATABASE IF EXISTS cli_pushed_conditions;
CREATE DATABASE cli_pushed_conditions CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
USE cli_pushed_conditions;
SET NAMES utf8mb4 COLLATE utf8mb4_general_ci;
CREATE TABLE digit (n INT PRIMARY KEY);
INSERT INTO digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
CREATE TABLE sale (id INT PRIMARY KEY, k INT, s VARCHAR(10), day DATE, amount DECIMAL(8,2), KEY (k), KEY (s, day));
INSERT INTO sale SELECT a.n * 10 + b.n, IF(b.n = 9, NULL, b.n), CONCAT(IF(a.n % 2, 'a', 'A'), b.n % 3, IF(a.n = 4, ' ', '')), DATE_ADD('2024-01-01', INTERVAL a.n DAY), a.n + b.n / 4 FROM digit a, digit b;
CREATE TABLE plan (k INT, s VARCHAR(10), amount DECIMAL(8,2), small SMALLINT, KEY (k));
INSERT INTO plan SELECT n, CONCAT('a', n % 3), n * 10, n FROM digit;
-- Groups.
SELECT * FROM (SELECT k, COUNT(*) n, SUM(amount) total FROM sale GROUP BY k) d WHERE k = 3;
SELECT * FROM (SELECT k, COUNT(*) n, SUM(amount) total FROM sale GROUP BY k) d WHERE k IS NULL;
SELECT * FROM (SELECT k, COUNT(*) n, SUM(amount) total FROM sale GROUP BY k) d WHERE k > 5 AND total > 52 ORDER BY k;
SELECT * FROM (SELECT k, COUNT(*) n FROM sale GROUP BY k HAVING n > 3) d WHERE k IN (1, 2, 77) OR k > 7 ORDER BY k;
SELECT * FROM (SELECT k, COUNT(*) n FROM sale GROUP BY k WITH ROLLUP) d WHERE k IS NULL ORDER BY n;
SELECT * FROM (SELECT MAX(k) k, COUNT(*) n FROM sale) d WHERE k = 3;
SELECT * FROM (SELECT MAX(k) k, COUNT(*) n FROM sale) d WHERE k = 8;
-- Values of a group that compare as equal.
SELECT LOWER(s), n FROM (SELECT s, COUNT(*) n FROM sale GROUP BY s) d WHERE s = 'a1';
SELECT LOWER(TRIM(s)), n FROM (SELECT s, COUNT(*) n FROM sale GROUP BY s) d WHERE s >= 'A1' ORDER BY 1;
SELECT COUNT(*), SUM(n) FROM (SELECT LOWER(s) COLLATE utf8mb4_bin s, COUNT(*) n FROM sale GROUP BY LOWER(s) COLLATE utf8mb4_bin) d WHERE s = 'a1';
SELECT COUNT(*), SUM(n) FROM (SELECT day, s, COUNT(*) n FROM sale GROUP BY day, s) d WHERE day = '2024-01-05' AND s < 'a2';
SELECT COUNT(*), SUM(n) FROM (SELECT day, s, COUNT(*) n FROM sale GROUP BY day, s) d WHERE day BETWEEN DATE '2024-01-03' AND DATE '2024-01-05';
-- DISTINCT and windows.
SELECT * FROM (SELECT DISTINCT k, day FROM sale) d WHERE k = 4 AND day > DATE '2024-01-07' ORDER BY day;
SELECT id + 1000, k, r FROM (SELECT id, k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) r FROM sale) d WHERE k = 4 AND r < 4 ORDER BY id;
SELECT id + 1000, k, r FROM (SELECT id, k, ROW_NUMBER() OVER (ORDER BY id) r FROM sale) d WHERE k = 4 AND r < 40 ORDER BY id;
SELECT id + 1000, k, n, t FROM (SELECT id, k, COUNT(*) OVER (PARTITION BY k) n, SUM(amount) OVER (PARTITION BY k, day) t FROM sale) d WHERE k = 4 AND id < 20 ORDER BY id;
SELECT id + 1000, k, n, m FROM (SELECT id, k, COUNT(*) OVER (PARTITION BY k) n, COUNT(*) OVER (PARTITION BY day) m FROM sale) d WHERE k = 4 AND id < 20 ORDER BY id;
-- Set operations.
SELECT * FROM (SELECT k, amount FROM sale WHERE id < 20 UNION ALL SELECT k, amount FROM plan) d WHERE k = 3 ORDER BY amount;
SELECT k, LOWER(TRIM(s)) FROM (SELECT k, s FROM sale UNION SELECT k, s FROM plan) d WHERE k = 3 AND s = 'a0';
SELECT * FROM (SELECT k FROM sale UNION SELECT small FROM plan) d WHERE k > 6 ORDER BY k;
SELECT * FROM (SELECT k FROM sale UNION SELECT amount FROM plan) d WHERE k > 6 ORDER BY k;
SELECT * FROM (SELECT k FROM sale INTERSECT SELECT k FROM plan WHERE k < 5) d WHERE k > 2 ORDER BY k;
SELECT * FROM (SELECT k FROM plan EXCEPT SELECT k FROM sale WHERE day > '2024-01-02') d WHERE k > 2 ORDER BY k;
SELECT * FROM (SELECT k FROM sale UNION SELECT 3) d WHERE k = 3;
-- LIMIT, and several levels.
SELECT COUNT(*) FROM (SELECT k FROM sale ORDER BY id LIMIT 15) d WHERE k = 3;
SELECT * FROM (SELECT k, SUM(n) n FROM (SELECT k, day, COUNT(*) n FROM sale GROUP BY k, day) e WHERE day > '2024-01-03' GROUP BY k) d WHERE k = 3;
SELECT * FROM (SELECT k, MAX(amount) m FROM (SELECT k, amount FROM sale UNION ALL SELECT k, amount FROM plan) e GROUP BY k) d WHERE k BETWEEN 3 AND 4 ORDER BY k;
WITH d AS (SELECT k, COUNT(*) n FROM sale GROUP BY k), e AS (SELECT * FROM d WHERE n > 1) SELECT d.*, e.* FROM d JOIN e ON e.k = d.k + 1 WHERE d.k < 3 AND e.k > 1 ORDER BY d.k;
WITH RECURSIVE r AS (SELECT 1 n, 2 m UNION ALL SELECT n + 1, m FROM r WHERE n < 5) SELECT * FROM r WHERE n > 3 AND m = 2 ORDER BY n;
-- Joins.
SELECT plan.k, d.n FROM plan LEFT JOIN (SELECT k, COUNT(*) n FROM sale GROUP BY k) d ON d.k = plan.k AND d.k > 5 ORDER BY plan.k;
SELECT plan.k, d.n FROM plan LEFT JOIN (SELECT k, COUNT(*) n FROM sale GROUP BY k) d ON d.k = plan.k + 5 WHERE d.k IS NULL ORDER BY plan.k;
SELECT plan.k, d.n + 1000 FROM plan LEFT JOIN (SELECT k, COUNT(*) n FROM sale GROUP BY k) d ON d.k = plan.k + 5 WHERE d.k > 6 ORDER BY plan.k;
SELECT plan.k, d.k, d.n FROM plan RIGHT JOIN (SELECT k, COUNT(*) n FROM sale GROUP BY k) d ON d.k = plan.k + 5 WHERE d.k < 7 ORDER BY plan.k, d.k;
SELECT x.k, x.n, y.n FROM (SELECT k, COUNT(*) n FROM sale GROUP BY k) x JOIN (SELECT k, COUNT(*) n FROM plan GROUP BY k) y ON x.k = y.k WHERE x.k > 3 AND y.k < 6 ORDER BY x.k;
SELECT k, (SELECT SUM(n) FROM (SELECT k, COUNT(*) n FROM sale GROUP BY k) d WHERE d.k = plan.k AND d.k > 4) total FROM plan ORDER BY k;
-- Views that are not merged.
CREATE VIEW per_key AS SELECT k, COUNT(*) n, MIN(day) first FROM sale GROUP BY k;
CREATE VIEW every AS SELECT k, s, amount FROM sale UNION ALL SELECT k, s, amount FROM plan;
SELECT * FROM per_key WHERE k = 3;
SELECT * FROM per_key WHERE first = '2024-01-01' AND k > 6 ORDER BY k;
SELECT COUNT(*), SUM(amount) FROM every WHERE k = 3;
SELECT LOWER(s), COUNT(*), SUM(amount) FROM every WHERE k = 3 AND s LIKE 'a_' GROUP BY s ORDER BY s;
SELECT a.k, b.n FROM every a JOIN per_key b ON a.k = b.k WHERE a.k = 5 AND a.amount > 8 AND b.k < 9 ORDER BY a.amount;
-- Parameters.
PREPARE p FROM 'SELECT * FROM (SELECT k, COUNT(*) n FROM sale GROUP BY k) d WHERE k = ? OR k = ? ORDER BY k';
SET @a = 1, @b = 7;
EXECUTE p USING @a, @b;
SET @a = NULL, @b = '8';
EXECUTE p USING @a, @b;
SET @a = 2.5, @b = 9;
EXECUTE p USING @a, @b;
-- Errors and warnings of rows that a condition leaves out.
SELECT * FROM (SELECT k, SUM(1 / k) FROM sale WHERE id < 20 GROUP BY k) d WHERE k = 2;
SELECT * FROM (SELECT DISTINCT k FROM sale) d WHERE 10 / k > 4 ORDER BY k;
-- Queries that group by other collations than the set operation has.
CREATE TABLE general (s VARCHAR(10) COLLATE utf8mb4_general_ci);
INSERT INTO general VALUES ('a'), ('A');
CREATE TABLE upper (s VARCHAR(10) COLLATE utf8mb4_general_ci);
INSERT INTO upper VALUES ('A');
CREATE TABLE lower (s VARCHAR(10) COLLATE utf8mb4_general_ci);
INSERT INTO lower VALUES ('a');
CREATE TABLE exact (s VARCHAR(10) COLLATE utf8mb4_bin);
INSERT INTO exact VALUES ('z');
SELECT * FROM (SELECT s, COUNT(*) OVER (PARTITION BY s) c FROM general UNION ALL SELECT s, 0 FROM exact) d WHERE d.s = 'A';
SELECT * FROM (SELECT s FROM (SELECT s FROM lower INTERSECT SELECT s FROM upper) i UNION ALL SELECT s FROM exact) d WHERE d.s = 'a';
SELECT c FROM (SELECT s, COUNT(*) c FROM general GROUP BY s UNION ALL SELECT s, 0 FROM exact) d WHERE d.s IN ('a', 'A');
DROP DATABASE cli_pushed_conditions;
