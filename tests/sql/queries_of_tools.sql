-- Forms of queries that object-relational mappers write.
CREATE DATABASE cli_tools;
USE cli_tools;
CREATE TABLE a (id INT PRIMARY KEY, n INT, at DATETIME);
CREATE TABLE b (id INT PRIMARY KEY, a_id INT, v INT);
INSERT INTO a VALUES (1, 10, '2020-01-01 00:00:00'), (2, 20, NULL), (3, 20, NULL);
INSERT INTO b VALUES (1, 1, 7), (2, 1, 8), (3, 2, 9), (4, 3, 9);

-- GROUP BY the alias or the number of a subquery.
SELECT (SELECT MAX(v) FROM b WHERE b.a_id = a.id) AS m, COUNT(*) FROM a GROUP BY m ORDER BY m;
SELECT COUNT(*) AS c, EXISTS(SELECT 1 FROM b WHERE b.a_id = a.id AND b.v > 8) AS e FROM a GROUP BY 2 ORDER BY e;
SELECT 1 + (SELECT MIN(v) FROM b WHERE b.a_id = a.id) AS m, SUM(n), (SELECT COUNT(*) FROM b) FROM a GROUP BY m ORDER BY 1;
SELECT a.n, (SELECT MAX(v) FROM b WHERE b.a_id = a.id) AS m, COUNT(*) FROM a GROUP BY a.n, m ORDER BY 1, 2;
SELECT COUNT(*) AS c FROM a GROUP BY c;
SELECT COUNT(*) + (SELECT 1) AS c FROM a GROUP BY 1;

-- Set operations in brackets as a subquery.
SELECT id FROM a WHERE id IN ((SELECT 1) UNION (SELECT a_id FROM b WHERE v = 9)) ORDER BY id;
SELECT id FROM a WHERE id NOT IN ((SELECT 1) UNION (SELECT 2 ORDER BY 1)) ORDER BY id;
SELECT id FROM a WHERE id IN ((SELECT 1), (SELECT 3)) ORDER BY id;
SELECT ((SELECT 1) UNION (SELECT 1)) + 1 AS two, ((SELECT 3)) AS three, ((SELECT 3) + 1) AS four;
SELECT EXISTS((SELECT 1 FROM a WHERE id = 9) UNION (SELECT 1 FROM b WHERE id = 9)) AS e;

-- An aggregate of no rows beside other values.
SET @five = 5;
SELECT COALESCE(MAX(n), @five) FROM a WHERE 0 = 1;
SELECT COALESCE(MAX(n), @five) FROM a WHERE id = NULL;
SELECT COALESCE(MAX(at), CURRENT_TIMESTAMP) IS NULL FROM a WHERE 0 = 1;
PREPARE s FROM 'SELECT COALESCE(MAX(n), ?) AS m_or_five FROM a WHERE 1 = 2';
EXECUTE s USING @five;

-- A value of INSERT may read the table under another name.
INSERT INTO a VALUES (4, (SELECT u.n FROM a AS u ORDER BY u.n DESC LIMIT 1) + 1, NULL);
SELECT id, n FROM a ORDER BY id;
-- Values of several rows, and of an update, would be evaluated too early.
INSERT INTO a VALUES ((SELECT MAX(id) + 1 FROM a AS u), 1, NULL), ((SELECT MAX(id) + 1 FROM a AS u), 2, NULL);
INSERT INTO a VALUES (4, 1, NULL) ON DUPLICATE KEY UPDATE n = (SELECT COUNT(*) FROM a AS u);
-- ROLLUP would not find the value among its keys.
SELECT (SELECT MAX(v) FROM b WHERE b.a_id = a.id) AS m, COUNT(*) FROM a GROUP BY m WITH ROLLUP;
DROP DATABASE cli_tools;
