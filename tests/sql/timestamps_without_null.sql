-- A column that becomes TIMESTAMP NOT NULL has the time of the statement where it had NULL, as in MySQL.
CREATE DATABASE cli_timestamps_without_null;
USE cli_timestamps_without_null;
SET timestamp = 1700000000.25, time_zone = '+01:00';
CREATE TABLE t (id INT PRIMARY KEY, a DATETIME, b TIMESTAMP NULL, c TIMESTAMP(3) NULL);
INSERT INTO t VALUES (1, '2020-01-01', '2020-01-02', '2020-01-03'), (2, NULL, NULL, NULL);
ALTER TABLE t MODIFY a TIMESTAMP(2) NOT NULL;
SHOW WARNINGS;
ALTER TABLE t MODIFY b TIMESTAMP NOT NULL;
SET sql_mode = '';
ALTER TABLE t MODIFY b TIMESTAMP NOT NULL, MODIFY c TIMESTAMP NOT NULL;
SHOW WARNINGS;
SELECT * FROM t ORDER BY id;
DROP DATABASE cli_timestamps_without_null;
