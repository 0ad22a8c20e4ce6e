-- Several statements in one text: each has its own result. An error ends the text, and the statements before it stay in effect.
CREATE DATABASE several;
USE several;
CREATE TABLE t (a INT NOT NULL PRIMARY KEY, b VARCHAR(20));
DELIMITER //
INSERT INTO t VALUES (1, 'one'), (2, 'two'); SELECT ROW_COUNT(); SELECT * FROM t ORDER BY a//
INSERT INTO t VALUES (3, 'a;b'); INSERT INTO t VALUES (3, 'again'); INSERT INTO t VALUES (4, 'never')//
SELECT * FROM t ORDER BY a//
INSERT INTO t VALUES (5, "x;'y;"); SELEC 1; INSERT INTO t VALUES (6, 'never')//
SELECT a, b AS `c;d` FROM t ORDER BY a; SELECT COUNT(*) FROM t//
SELECT 1; SELECT 2;//
SELECT 1;;//
SELECT 1;;SELECT 2//
SELECT 1 /* ; */; SELECT /* ;; */ 2 -- ; here
; SELECT 3 # and ; here
//
SELECT 1; /*! SELECT 2 */; SELECT 3//
BEGIN; UPDATE t SET b = 'undone' WHERE a = 1; ROLLBACK; SELECT b FROM t WHERE a = 1//
BEGIN; UPDATE t SET b = 'done' WHERE a = 1; COMMIT; SELECT b FROM t WHERE a = 1//
BEGIN; UPDATE t SET b = 'open' WHERE a = 2; SELECT nothing FROM t; COMMIT//
SELECT b FROM t WHERE a = 2; ROLLBACK; SELECT b FROM t WHERE a = 2//
SET @n = 1; SELECT b FROM t WHERE a = @n; SET @n = @n + 2; SELECT b FROM t WHERE a = @n//
CREATE TABLE u (a INT); INSERT INTO u VALUES (7); SELECT * FROM u; DROP TABLE u; SELECT * FROM u; SELECT 1//
INSERT IGNORE INTO t VALUES (1, 'one'), (9, 'nine'); SHOW COUNT(*) WARNINGS; SELECT COUNT(*) FROM t//
REPLACE INTO t SELECT a, 'copied' FROM t ORDER BY a; UPDATE t SET b = 'last' ORDER BY a DESC LIMIT 1; SELECT * FROM t ORDER BY a//
USE information_schema; SELECT DATABASE(); USE several; SELECT DATABASE()//
DELIMITER ;
DROP DATABASE several;
