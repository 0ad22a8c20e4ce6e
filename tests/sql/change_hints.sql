-- not recorded: MariaDB 10.11 takes optimizer hints for comments.
-- with comments
CREATE DATABASE cli_change_hints;
USE cli_change_hints;
CREATE TABLE t (a INT NOT NULL PRIMARY KEY, b INT NOT NULL, c VARCHAR(3), KEY kb (b), KEY kc (c));
CREATE TABLE s (a INT NOT NULL PRIMARY KEY, b INT NOT NULL);
CREATE TABLE n (i INT NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT);
CREATE TABLE p (a INT NOT NULL PRIMARY KEY);
CREATE TABLE f (a INT NOT NULL PRIMARY KEY, r INT, FOREIGN KEY (r) REFERENCES p (a));
INSERT INTO s VALUES (1, 1), (2, 2), (3, 3);
-- Values of variables for one statement.
INSERT INTO t VALUES (1, 1, 'long');
INSERT /*+ SET_VAR(sql_mode = '') */ INTO t VALUES (1, 1, 'long');
SHOW WARNINGS;
SELECT * FROM t;
REPLACE /*+ SET_VAR(sql_mode = '') */ INTO t VALUES (1, 2, 'wrong');
UPDATE /*+ SET_VAR(sql_mode = '') */ t SET c = 'abcdef' WHERE a = 1;
UPDATE t SET c = 'abcdef' WHERE a = 1;
SELECT * FROM t;
INSERT /*+ SET_VAR(auto_increment_increment = 10) SET_VAR(auto_increment_offset = 5) */ INTO n (v) VALUES (1), (2), (3);
INSERT INTO n (v) VALUES (4);
SELECT * FROM n ORDER BY i;
INSERT INTO f VALUES (1, 9);
INSERT /*+ SET_VAR(foreign_key_checks = 0) */ INTO f VALUES (1, 9);
INSERT INTO f VALUES (2, 9);
SELECT * FROM f;
INSERT /*+ SET_VAR(timestamp = 1000000000) SET_VAR(time_zone = '+00:00') */ INTO t VALUES (2, UNIX_TIMESTAMP(NOW()), NULL);
SELECT a, b FROM t WHERE a = 2;
INSERT INTO t SELECT /*+ SET_VAR(sql_mode = '') */ a + 10, b, 'x' FROM s;
-- Wrong hints are warnings.
INSERT /*+ NOT_A_HINT(t) */ INTO s VALUES (4, 4);
SHOW WARNINGS;
UPDATE /*+ MAX_EXECUTION_TIME(1000) SET_VAR(no_such = 1) SET_VAR(port = 1) INDEX(t nokey) BKA(x) INDEX(t@nowhere kb) */ t SET b = 3 WHERE a = 1;
SHOW WARNINGS;
DELETE /*+ QB_NAME(q) NO_BNL(@q missing) SET_VAR(sql_mode = 'nonsense') */ FROM s WHERE a = 4;
SHOW WARNINGS;
-- Indexes and the order of joins.
EXPLAIN UPDATE t SET a = a WHERE b = 3 AND c = 'x';
EXPLAIN UPDATE /*+ INDEX(t kc) */ t SET a = a WHERE b = 3 AND c = 'x';
EXPLAIN DELETE /*+ NO_INDEX(t) */ FROM t WHERE b = 3 AND c = 'x';
EXPLAIN UPDATE /*+ JOIN_ORDER(t, s) */ s, t SET t.b = s.b WHERE t.a = s.a;
EXPLAIN UPDATE /*+ JOIN_ORDER(s, t) */ s, t SET t.b = s.b WHERE t.a = s.a;
UPDATE /*+ JOIN_FIXED_ORDER() */ t JOIN s ON t.a = s.a SET t.b = s.b + 100;
DELETE /*+ JOIN_PREFIX(s) SET_VAR(unique_checks = 0) */ t FROM t JOIN s ON t.b = s.b + 100 WHERE s.a = 2;
DELETE /*+ INDEX(t kb) */ FROM t WHERE b IN (SELECT /*+ NO_INDEX(s) */ b FROM s WHERE a = 3);
SELECT a, b FROM t ORDER BY a;
-- Prepared statements.
PREPARE i FROM 'INSERT /*+ SET_VAR(sql_mode = "") BAD */ INTO t VALUES (?, 1, ?)';
SET @a = 20, @c = 'cut off';
EXECUTE i USING @a, @c;
SHOW WARNINGS;
SET @a = 21;
EXECUTE i USING @a, @c;
PREPARE u FROM 'UPDATE /*+ INDEX(t kb) */ t SET b = b + 1 WHERE a = ?';
EXECUTE u USING @a;
SELECT * FROM t WHERE a >= 20 ORDER BY a;
SET TRANSACTION READ ONLY;
START TRANSACTION READ ONLY;
UPDATE /*+ INDEX(t kb) */ t SET b = 1;
COMMIT;
LOCK TABLES t READ;
DELETE /*+ INDEX(t kb) */ FROM t;
UNLOCK TABLES;
-- A beginning of an index's name is enough for USE INDEX and its kin, not for hints in comments.
CREATE TABLE k (a INT PRIMARY KEY, b INT, c INT, KEY first_one (b), KEY first_two (c), KEY second (b, c), KEY seco (c, b), KEY gone (c) INVISIBLE);
EXPLAIN SELECT * FROM k FORCE INDEX (first_o) WHERE b = 1 AND c = 1;
EXPLAIN SELECT * FROM k USE INDEX (FIRST_T) WHERE b = 1 AND c = 1;
EXPLAIN SELECT * FROM k USE INDEX (seco) WHERE b = 1 AND c = 1;
EXPLAIN SELECT * FROM k IGNORE INDEX (PRI) WHERE a = 1;
EXPLAIN UPDATE k USE INDEX (secon) SET a = 1 WHERE b = 1 AND c = 1;
SELECT * FROM k USE INDEX (first);
SELECT * FROM k USE INDEX (sec);
SELECT * FROM k USE INDEX (go);
SELECT * FROM k USE INDEX (none);
SELECT /*+ INDEX(k first_o) */ * FROM k;
SHOW WARNINGS;
DROP DATABASE cli_change_hints;
