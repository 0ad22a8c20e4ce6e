-- Time zones with names: what TIMESTAMP columns, the clock and functions show in them, and changes of clocks.
-- not recorded: MariaDB has no names of zones unless its zone tables are loaded. With them, all but one row
-- agree: INSERT ... SELECT copies the second 02:30 as the first one.
DROP DATABASE IF EXISTS time_zones;
CREATE DATABASE time_zones;
USE time_zones;
SET timestamp = 1785560400.5;
SET time_zone = '+00:00';
SELECT NOW(), CURDATE(), CURTIME(), UTC_TIMESTAMP();
SET time_zone = 'Europe/Berlin';
SELECT @@time_zone, NOW(), CURDATE(), CURTIME(), UTC_TIMESTAMP();
SET time_zone = 'America/New_York';
SELECT NOW(), FROM_UNIXTIME(0), UNIX_TIMESTAMP('1970-01-01 00:00:00'), UNIX_TIMESTAMP('2024-07-01 00:00:00');
SET time_zone = 'Mars/Port';
SET time_zone = '+15:00';
SET time_zone = '';
SELECT @@time_zone;
CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP NULL, d DATETIME, n TIMESTAMP DEFAULT CURRENT_TIMESTAMP, KEY (ts));
SET time_zone = 'Europe/Berlin';
INSERT INTO t (id, ts, d) VALUES (1, '2024-01-15 12:00:00', '2024-01-15 12:00:00'), (2, '2024-07-15 12:00:00', '2024-07-15 12:00:00');
SELECT * FROM t ORDER BY id;
SET time_zone = 'UTC';
SELECT * FROM t ORDER BY id;
SET time_zone = 'Asia/Kathmandu';
SELECT * FROM t ORDER BY id;
SELECT id FROM t WHERE ts = '2024-07-15 15:45:00';
SELECT id, DATE(ts), HOUR(ts), ts + INTERVAL 1 DAY FROM t WHERE ts >= '2024-07-01' ORDER BY ts;
-- The clocks of Berlin skip the hour from 02:00 on.
SET time_zone = 'Europe/Berlin';
INSERT INTO t (id, ts) VALUES (3, '2024-03-31 02:30:00');
INSERT INTO t (id, ts) VALUES (3, '2024-03-31 01:59:59'), (4, '2024-03-31 03:00:00');
SET sql_mode = '';
INSERT INTO t (id, ts) VALUES (5, '2024-03-31 02:30:00');
SHOW WARNINGS;
SELECT id, ts FROM t WHERE id >= 3 ORDER BY id;
SELECT UNIX_TIMESTAMP('2024-03-31 02:30:00'), UNIX_TIMESTAMP('2024-03-31 03:00:00');
SET sql_mode = DEFAULT;
-- They show the hour from 02:00 on twice; a text means the first one.
INSERT INTO t (id, ts) VALUES (6, '2024-10-27 02:30:00');
SET time_zone = '+00:00';
INSERT INTO t (id, ts) VALUES (7, '2024-10-27 01:30:00');
SELECT id, ts FROM t WHERE id >= 6 ORDER BY ts;
SET time_zone = 'europe/berlin';
SELECT id, ts FROM t WHERE id >= 6 ORDER BY id;
INSERT INTO t (id, ts) SELECT id + 10, ts FROM t WHERE id IN (6, 7);
SET time_zone = '+00:00';
SELECT id, ts FROM t WHERE id >= 16 ORDER BY id;
-- Prepared statements follow the zone of each execution.
PREPARE s FROM 'SELECT ts FROM t WHERE id = ?';
SET @id = 2;
EXECUTE s USING @id;
SET time_zone = 'Australia/Lord_Howe';
EXECUTE s USING @id;
PREPARE i FROM 'INSERT INTO t (id, ts) VALUES (?, ?)';
SET @id = 20, @ts = '2024-01-01 00:00:00';
EXECUTE i USING @id, @ts;
SET time_zone = 'UTC';
SELECT id, ts FROM t WHERE id = 20;
SELECT CONVERT_TZ('2024-07-01 12:00:00', 'UTC', 'europe/vienna'), CONVERT_TZ('2024-07-01 12:00:00', 'SYSTEM', '+5:3'), CONVERT_TZ('2024-07-01 12:00:00', NULL, 'UTC'), CONVERT_TZ('2024-07-01 12:00:00', '', 'UTC');
DROP DATABASE time_zones;
