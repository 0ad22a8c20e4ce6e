-- not recorded: what differs from MariaDB on purpose. Statements that are not supported yet are refused as such.
CREATE DATABASE cli_junctor;
USE cli_junctor;
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT NOT NULL) PARTITION BY KEY (id) PARTITIONS 4;
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
SELECT one.id FROM t one JOIN t other ON one.id = other.v;
SELECT id FROM t WHERE v IN (SELECT id FROM t);
SELECT id FROM t UNION SELECT v FROM t;
SELECT COUNT(*), SUM(v) FROM t;
SELECT VERSION();
DROP DATABASE cli_junctor;
