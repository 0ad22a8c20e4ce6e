-- not recorded: the warnings of MariaDB name the clauses otherwise.
-- A name in GROUP BY or HAVING that is both a column and an alias of another value means the column, with a
-- warning.
CREATE DATABASE cli_group_warnings;
USE cli_group_warnings;
CREATE TABLE t (a INT NOT NULL, b INT NOT NULL);
INSERT INTO t VALUES (1, 10), (1, 20), (2, 10), (3, 30);
SET sql_mode = '';
SELECT a + 1 AS a, COUNT(*) AS n FROM t GROUP BY a ORDER BY n, 1;
SHOW WARNINGS;
SELECT b AS a, COUNT(*) AS n FROM t WHERE b <> 20 GROUP BY a ORDER BY n, 1;
SHOW WARNINGS;
SELECT a AS a, COUNT(*) AS n FROM t GROUP BY a ORDER BY a;
SHOW WARNINGS;
SELECT a, COUNT(*) AS n FROM t GROUP BY t.a ORDER BY a;
SHOW WARNINGS;
SELECT a AS x, COUNT(*) AS n FROM t GROUP BY a ORDER BY x;
SHOW WARNINGS;
SELECT a + b AS x, COUNT(*) AS n FROM t GROUP BY x ORDER BY x;
SHOW WARNINGS;
SELECT a AS b, b AS c FROM t GROUP BY t.b HAVING b > 10 ORDER BY c;
SHOW WARNINGS;
SELECT a AS b, COUNT(*) AS a FROM t GROUP BY t.a HAVING a > 1 ORDER BY 1;
SHOW WARNINGS;
SELECT b, COUNT(*) AS n FROM t GROUP BY b HAVING b > 10 AND n > 0 ORDER BY b;
SHOW WARNINGS;
SELECT COUNT(*) AS b FROM t GROUP BY a HAVING b > 1;
SHOW WARNINGS;
-- Within an aggregate, the name is the column; an alias only if there is no column.
SELECT a AS b, COUNT(*) FROM t GROUP BY a HAVING SUM(b) > 15;
SELECT a AS b, SUM(b) FROM t GROUP BY t.b HAVING SUM(b) > 25;
SHOW WARNINGS;
SELECT a + 1 AS d, COUNT(*) FROM t GROUP BY a HAVING SUM(d) > 3;
SELECT a AS c, b AS c FROM t GROUP BY c;
SELECT a AS b, b AS b FROM t GROUP BY b;
CREATE TABLE copy AS SELECT b AS a, COUNT(*) AS n FROM t GROUP BY a;
INSERT INTO copy SELECT a + 1 AS a, COUNT(*) FROM t GROUP BY a;
SHOW WARNINGS;
SELECT * FROM (SELECT b AS a FROM t WHERE b <> 20 GROUP BY a) d ORDER BY a;
SHOW WARNINGS;
DROP DATABASE cli_group_warnings;
