-- User variables that a statement of a table assigns: row numbers, running sums, ranks in groups, and changes.
-- not recorded: a derived table of an assigning statement keeps its ORDER BY, as in MySQL but not in MariaDB.
CREATE DATABASE cli_variables CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
USE cli_variables;
CREATE TABLE t (id INT PRIMARY KEY, g VARCHAR(10), v INT, n INT);
INSERT INTO t VALUES (1, 'a', 30, 0), (2, 'b', 20, 0), (3, 'a', 10, 0), (4, 'c', 40, 0), (5, 'b', 20, 0), (6, 'a', 5, 0);

-- Row numbers and running sums in the order of the result.
SET @r = 0;
SELECT @r := @r + 1 AS r, id, v FROM t ORDER BY v DESC, id;
SELECT @r AS r;
SELECT id, v, @s := @s + v AS total FROM t, (SELECT @s := 0) AS start ORDER BY id;
SELECT id, @r := @r + 1 AS r FROM t CROSS JOIN (SELECT @r := 10) AS start ORDER BY id LIMIT 2 OFFSET 1;
SELECT @r AS r;
SET @s = 0;
SELECT id, @s := @s + v AS total, @s AS again FROM t ORDER BY id;
-- Ordered by the assigned value: assigned before the rows are sorted.
SET @r = 0;
SELECT id, @r := @r - 1 AS r FROM (SELECT id FROM t ORDER BY id LIMIT 10) AS d ORDER BY r;

-- Rank in each group from a sorted derived table, alone and filtered.
SET @g = NULL, @k = 0;
SELECT id, g, v, @k := IF(@g = g, @k + 1, 1) AS k, @g := g AS seen FROM (SELECT * FROM t ORDER BY g, v DESC, id) AS d;
SET @g = NULL, @k = 0;
SELECT id, g, v FROM (
  SELECT d.*, @k := IF(@g = g, @k + 1, 1) AS k, @g := g AS seen FROM (SELECT * FROM t ORDER BY g, v DESC, id) AS d
) AS ranked WHERE k <= 1;
SELECT id, g, v, k FROM (
  SELECT d.*, @k := IF(@g = g, @k + 1, 1) AS k, @g := g AS seen
  FROM (SELECT * FROM t ORDER BY g, v DESC, id) AS d, (SELECT @k := 0, @g := '') AS start
) AS ranked WHERE k = 2 ORDER BY id;
-- Values that nothing reads are assigned too.
SELECT COUNT(*) FROM (SELECT @n := IFNULL(@n, 0) + 1 FROM t) AS d;
SELECT @n AS n;
-- HAVING reads the assigned value of the select list, which is assigned once.
SET @k = 0;
SELECT id, @k := @k + 1 AS k FROM (SELECT * FROM t ORDER BY v, id) AS d HAVING k % 2 = 0;
SELECT @k AS k;
-- Equal values have one rank.
SELECT id, v, @rank := IF(@last = v, @rank, @rank + 1) AS rnk, @last := v AS last
FROM (SELECT id, v FROM t ORDER BY v DESC, id) AS d, (SELECT @rank := 0, @last := NULL) AS start;

-- Conditions: others first, then row by row.
SET @c = 0;
SELECT COUNT(*) FROM t WHERE (@c := @c + 1) > 2;
SELECT @c AS c;
SET @c = 0;
SELECT COUNT(*) FROM t WHERE v > 10 AND (@c := @c + 1) > 2;
SELECT @c AS c;
SELECT id, @x AS x FROM (SELECT * FROM t ORDER BY id) AS d WHERE (@x := v) > 15;
-- Aggregates and groups.
SELECT @m := MAX(v) AS m, @m + 1 AS more FROM t;
SELECT @m AS m;
SELECT g, @q := SUM(v) AS q, @q * 2 AS twice FROM t GROUP BY g ORDER BY g;
SET @p = NULL, @i = 0;
SELECT IF(@p = g, @i, @i := @i + 1) AS island, COUNT(*) AS c, MAX(@p := g) AS m
FROM (SELECT * FROM t ORDER BY id) AS d GROUP BY island ORDER BY island;
SELECT DISTINCT @d := g AS g FROM t ORDER BY g;
SELECT @all := COUNT(*), @all FROM t;
-- Sets, WITH and subqueries.
SET @u = 0;
SELECT @u := @u + 1 AS u FROM t WHERE id < 3 UNION ALL SELECT @u := @u + 10 FROM t WHERE id < 3;
SET @u = 0;
WITH numbered AS (SELECT id, @u := @u + 1 AS u FROM (SELECT id FROM t ORDER BY id DESC) AS d) SELECT * FROM numbered WHERE u > 4;
SELECT id, (SELECT @sub := v) AS sub, @sub + 1 AS next FROM t WHERE id <= 2 ORDER BY id;
SET @e = 0;
SELECT id, (SELECT @e := @e + COUNT(*) FROM t AS o WHERE o.g = d.g) AS e FROM (SELECT * FROM t ORDER BY id LIMIT 3) AS d;

-- UPDATE: in the order of the statement, or else of the primary key.
SET @n = 0;
UPDATE t SET n = (@n := @n + 1) ORDER BY v DESC, id;
SELECT id, v, n FROM t ORDER BY n;
SET @n = 100;
UPDATE t SET n = @n := @n + 1;
SELECT id, n FROM t ORDER BY id;
UPDATE t SET n = (@old := n) + 1000, v = @old WHERE id = 3;
SELECT id, v, n, @old AS old FROM t WHERE id = 3;
UPDATE t SET v = (@tmp := v), v = n, n = @tmp WHERE id = 4;
SELECT id, v, n FROM t WHERE id = 4;
UPDATE t SET n = 7 WHERE id = (SELECT @found := 5);
UPDATE t SET n = 8, id = (SELECT @last_id := id) WHERE v = 20 ORDER BY id DESC LIMIT 1;
SELECT @last_id AS last_id, @found AS found;
UPDATE t JOIN (SELECT id, @j := @j + 1 AS j FROM (SELECT id FROM t ORDER BY id DESC) AS d, (SELECT @j := 0) AS start) AS numbered USING (id) SET t.n = numbered.j;
SELECT id, n FROM t ORDER BY id;
SET @c = 0;
DELETE FROM t WHERE id > 3 AND (@c := @c + 1) <= 3;
SELECT COUNT(*) AS c, @c AS counted FROM t;

-- INSERT.
CREATE TABLE copy (number INT AUTO_INCREMENT PRIMARY KEY, r INT, id INT);
SET @r = 0;
INSERT INTO copy (r, id) SELECT @r := @r + 1, id FROM t ORDER BY id DESC;
SELECT r, id FROM copy ORDER BY number;
CREATE TABLE made AS SELECT @r := @r + 1 AS r, id FROM t ORDER BY id;
SELECT * FROM made ORDER BY id;
SELECT @r := @r * 2 FROM t ORDER BY id LIMIT 1 INTO @into;
SELECT @into AS i, @r AS r;
-- Prepared, twice.
SET @r = 0;
PREPARE numbered FROM 'SELECT @r := @r + ? AS r, id FROM t WHERE id < ? ORDER BY id';
SET @step = 2, @end = 3;
EXECUTE numbered USING @step, @end;
EXECUTE numbered USING @step, @end;
DEALLOCATE PREPARE numbered;
-- VALUES and SET of INSERT: all values before the first row.
SET @r = 4;
INSERT INTO copy (number, r, id) VALUES (@r := @r + 100, @r, 1), (@r := @r + 1, (SELECT MAX(id) FROM t), @r * 2);
SELECT * FROM copy WHERE number > 100 ORDER BY number;
REPLACE INTO copy SET number = (@k := 104), r = @k + 1, id = DEFAULT;
SELECT * FROM copy WHERE number = 104;
INSERT INTO copy (number, r) VALUES (@k := 104, 5) ON DUPLICATE KEY UPDATE r = r + VALUES(r);
SELECT * FROM copy WHERE number = 104;
INSERT INTO copy (number, r) VALUES (200, number + (@k := 1));
PREPARE inserted FROM 'INSERT INTO copy (number, r, id) VALUES (?, @k := ?, @k), (?, 1, 1)';
SET @a = 300, @b = 7, @c = 301, @d = 302;
EXECUTE inserted USING @a, @b, @c;
EXECUTE inserted USING @b, @c, @d;
SELECT * FROM copy WHERE number IN (300, 301, 7, 302) ORDER BY number;
-- A statement that fails keeps what it has assigned.
SET @f = 0;
UPDATE t SET n = (@f := @f + 1) + 9223372036854775807 ORDER BY id;
SELECT @f AS f;
DROP DATABASE cli_variables;
