-- not recorded: the status tables exist only in Junctor.
-- Row locks and range locks of the own session, and the rows and ranges that they cover.
CREATE DATABASE cli_locks;
USE cli_locks;
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT, KEY v (v)) PARTITION BY KEY (id) PARTITIONS 1;
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
BEGIN;
SELECT * FROM t WHERE id IN (1, 7) FOR SHARE;
SELECT row_id IS NULL AS is_range, mode, state, index_id, key_range FROM junctor_info.locks ORDER BY mode, is_range, key_range;
SELECT * FROM t WHERE v BETWEEN 15 AND 25 FOR UPDATE;
SELECT row_id IS NULL AS is_range, mode, state, index_id, key_range FROM junctor_info.locks ORDER BY mode, is_range, key_range;
DELETE FROM t WHERE v + 0 = 77;
SELECT COUNT(*) FROM junctor_info.locks WHERE mode = 'SHARED';
SELECT mode, key_range FROM junctor_info.locks WHERE row_id IS NULL ORDER BY key_range;
SELECT COUNT(*) FROM junctor_info.lock_waits;
ROLLBACK;
SELECT COUNT(*) FROM junctor_info.locks;
-- A locking read with LIMIT locks only the rows and ranges that it has read.
BEGIN;
SELECT * FROM t WHERE v >= 10 ORDER BY v LIMIT 1 FOR UPDATE SKIP LOCKED;
SELECT COUNT(row_id), COUNT(key_range), MAX(key_range) FROM junctor_info.locks;
COMMIT;
-- READ COMMITTED locks rows only. A SERIALIZABLE query locks the rows and ranges that it reads.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
BEGIN;
SELECT * FROM t WHERE v BETWEEN 15 AND 25 FOR UPDATE;
SELECT COUNT(row_id), COUNT(key_range) FROM junctor_info.locks;
COMMIT;
SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE;
SELECT v FROM t WHERE id = 1;
SELECT COUNT(*) FROM junctor_info.locks;
BEGIN;
SELECT v FROM t WHERE id = 1;
SELECT v FROM t WHERE id = 9;
SELECT row_id IS NULL AS is_range, mode, key_range FROM junctor_info.locks ORDER BY is_range;
COMMIT;
DROP DATABASE cli_locks;
