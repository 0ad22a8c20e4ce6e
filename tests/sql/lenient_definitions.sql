-- Columns that strict mode refuses, and that become others without it.
CREATE DATABASE lenient_definitions CHARACTER SET latin1;
USE lenient_definitions;
CREATE TABLE a (v VARCHAR(65536));
CREATE TABLE a (e ENUM('a', 'b', 'A'));
CREATE TABLE a (b BLOB(4294967296));
CREATE TABLE a (t TEXT(4294967296));
CREATE TABLE a (b BOOL UNSIGNED);
CREATE TABLE a (b BOOLEAN ZEROFILL);
SET sql_mode = '';
CREATE TABLE a (v VARCHAR(65536), b VARBINARY(70000), e ENUM('a', 'b', 'A'), s SET('x', 'X'));
SHOW WARNINGS;
SELECT COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'lenient_definitions' ORDER BY 1;
INSERT INTO a VALUES (REPEAT('v', 65536), REPEAT('b', 70000), 'A', 'X');
SELECT LENGTH(v), LENGTH(b), e, s + 0 FROM a;
-- A default keeps a column from becoming another: error 1074 in MySQL, where MariaDB's TEXT has the default.
CREATE TABLE v (a VARCHAR(70000) DEFAULT 'x');
CREATE TABLE v (a VARBINARY(70000) DEFAULT '');
CREATE TABLE v (a VARCHAR(70000) DEFAULT NULL);
CREATE TABLE c (b BLOB(4294967295));
CREATE TABLE d (b BLOB(4294967296));
DROP DATABASE lenient_definitions;
