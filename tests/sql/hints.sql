-- not recorded: MariaDB 10.11 takes optimizer hints for comments.
-- with comments
CREATE DATABASE cli_hints;
USE cli_hints;
CREATE TABLE small (a INT NOT NULL PRIMARY KEY, b INT NOT NULL, KEY kb (b));
CREATE TABLE large (a INT NOT NULL PRIMARY KEY, b INT NOT NULL, c INT NOT NULL, KEY kb (b), KEY kc (c));
CREATE TABLE middle (a INT NOT NULL PRIMARY KEY, b INT NOT NULL);
INSERT INTO small VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO middle WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) SELECT i, i % 7 FROM n;
INSERT INTO large WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, i % 50, i % 3 FROM n;
-- The order of joins: by cost, as written, and by hints.
SELECT COUNT(*) FROM large, middle, small WHERE large.b = middle.a AND middle.b = small.a;
SELECT STRAIGHT_JOIN COUNT(*) FROM large, middle, small WHERE large.b = middle.a AND middle.b = small.a;
SELECT /*+ JOIN_FIXED_ORDER() */ COUNT(*) FROM large, middle, small WHERE large.b = middle.a AND middle.b = small.a;
SELECT /*+ JOIN_PREFIX(middle, large) */ COUNT(*) FROM large, middle, small WHERE large.b = middle.a AND middle.b = small.a;
SELECT /*+ JOIN_SUFFIX(small) */ COUNT(*) FROM large, middle, small WHERE large.b = middle.a AND middle.b = small.a;
SELECT /*+ JOIN_ORDER(large, small) */ COUNT(*) FROM large, middle, small WHERE large.b = middle.a AND middle.b = small.a;
-- Hints that contradict each other: the first ones hold.
SELECT /*+ JOIN_ORDER(large, small) JOIN_ORDER(small, large) */ COUNT(*) FROM large, middle, small WHERE large.b = middle.a AND middle.b = small.a;
-- Indexes.
EXPLAIN SELECT a FROM large WHERE b = 3 AND c = 1;
EXPLAIN SELECT /*+ INDEX(large kc) */ a FROM large WHERE b = 3 AND c = 1;
EXPLAIN SELECT /*+ NO_INDEX(large kb) */ a FROM large WHERE b = 3 AND c = 1;
EXPLAIN SELECT /*+ NO_INDEX(large) */ a FROM large WHERE b = 3 AND c = 1;
EXPLAIN SELECT /*+ INDEX(x kc) */ a FROM large x USE INDEX (kb) WHERE b = 3 AND c = 1;
SELECT /*+ NO_INDEX(large) */ COUNT(*) FROM large WHERE b = 3 AND c = 1;
SELECT /*+ NO_INDEX(@sub large) */ a FROM small WHERE b IN (SELECT /*+ QB_NAME(sub) */ c FROM large WHERE b = 3 AND c = 1);
SELECT /*+ INDEX(large@`select#2` kc) */ a FROM small WHERE b IN (SELECT c FROM large WHERE b = 3 AND c = 1);
-- Hints without effect, names that do not exist, and syntax errors are no errors.
SELECT /*+ BKA(small) NO_MERGE(d) SEMIJOIN(FIRSTMATCH) SET_VAR(optimizer_switch = 'mrr=off') */ COUNT(*) FROM small, (SELECT 1) d;
SELECT /*+ INDEX(nowhere kc) INDEX(large nothing) BKA(@other small) JOIN_ORDER(small, gone) */ COUNT(*) FROM small, large;
SELECT /*+ SET_VAR(sql_mode = '') SET_VAR(no_such = 1) */ 1;
SELECT /*+ JOIN_FIXED_ORDER() FULL(t) BKA() */ 1;
SELECT /*+ MAX_EXECUTION_TIME(1000) MAX_EXECUTION_TIME(2000) */ 1;
SELECT 1 FROM small WHERE a IN (SELECT /*+ MAX_EXECUTION_TIME(1000) */ a FROM large) LIMIT 1;
(SELECT /*+ MAX_EXECUTION_TIME(1000) */ 1) UNION SELECT 2 ORDER BY 1;
PREPARE p FROM 'SELECT /*+ NO_INDEX(large kb) MAX_EXECUTION_TIME(9999) NOTHING() */ COUNT(*) FROM large WHERE b = ?';
SET @b = 3;
EXECUTE p USING @b;
EXECUTE p USING @b;
-- The time of queries: of one table, of several, of none, of INTO; hints take the place of the variable.
SELECT /*+ MAX_EXECUTION_TIME(20) */ SLEEP(30);
SELECT /*+ MAX_EXECUTION_TIME(1) */ COUNT(DISTINCT SHA2(REPEAT(a, 60000), 512)) FROM large WHERE b >= 0;
SELECT /*+ SET_VAR(max_execution_time = 20) */ COUNT(*) FROM large a, large b, large c, large d WHERE a.c + b.c + c.c + d.c = 1;
SET max_execution_time = 20;
SELECT SLEEP(30);
SELECT COUNT(*) FROM large a, large b, large c;
SELECT SLEEP(30) INTO @x;
SELECT /*+ MAX_EXECUTION_TIME(0) */ SLEEP(0.1);
INSERT INTO middle SELECT 1000, COUNT(*) FROM large a, middle b, small c;
SET max_execution_time = 0;
SELECT b FROM middle WHERE a = 1000;
SELECT SLEEP(0.1);
DROP DATABASE cli_hints;
