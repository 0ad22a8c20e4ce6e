-- not recorded: MariaDB has other catalog tables.
-- What tools ask the catalog: Django, Rails, Hibernate, TypeORM, Prisma, DBeaver, Metabase (Connector/J),
-- phpMyAdmin, mysqlsh, mysqld_exporter.
DROP DATABASE IF EXISTS cli_catalog;
CREATE DATABASE cli_catalog;
USE cli_catalog;
CREATE TABLE author (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL, email VARCHAR(80), UNIQUE KEY by_email (email), KEY by_name (name)) COMMENT 'people';
CREATE TABLE book (id BIGINT NOT NULL PRIMARY KEY, author_id INT UNSIGNED, title TEXT, price DECIMAL(8,2) DEFAULT '1.50', CHECK (price > 0), KEY by_author (author_id), CONSTRAINT book_author FOREIGN KEY (author_id) REFERENCES author (id) ON DELETE CASCADE);
CREATE VIEW titles AS SELECT b.title, a.name FROM book AS b JOIN author AS a ON a.id = b.author_id;
INSERT INTO author VALUES (1, 'a', 'a@x'), (2, 'b', NULL);

-- Django.
SELECT table_name AS n, CASE WHEN table_type = 'VIEW' THEN 'v' ELSE 't' END AS k, table_comment AS c FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1;
SELECT column_name AS n, data_type AS t, character_maximum_length AS l, numeric_precision AS p, numeric_scale AS s, extra AS e, CASE WHEN column_type LIKE '% unsigned' THEN 1 ELSE 0 END AS u FROM information_schema.columns WHERE table_name = 'author' AND table_schema = DATABASE() ORDER BY ordinal_position;
SELECT kc.`constraint_name` AS n, kc.`column_name` AS c, kc.`referenced_table_name` AS rt, kc.`referenced_column_name` AS rc, c.`constraint_type` AS k FROM information_schema.key_column_usage AS kc, information_schema.table_constraints AS c WHERE kc.table_schema = DATABASE() AND (kc.referenced_table_schema = DATABASE() OR kc.referenced_table_schema IS NULL) AND c.table_schema = kc.table_schema AND c.constraint_name = kc.constraint_name AND c.constraint_type != 'CHECK' AND kc.table_name = 'book' GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 5;
SELECT cc.constraint_name AS n, cc.check_clause AS c FROM information_schema.check_constraints AS cc, information_schema.table_constraints AS tc WHERE cc.constraint_schema = DATABASE() AND tc.table_schema = cc.constraint_schema AND cc.constraint_name = tc.constraint_name AND tc.constraint_type = 'CHECK' AND tc.table_name = 'book';
SELECT 1 FROM mysql.time_zone LIMIT 1;

-- Rails.
SELECT fk.referenced_table_name AS 'to_table', fk.referenced_column_name AS 'primary_key', fk.column_name AS 'column', fk.constraint_name AS 'name', fk.ordinal_position AS 'position', rc.update_rule AS 'on_update', rc.delete_rule AS 'on_delete' FROM information_schema.referential_constraints rc JOIN information_schema.key_column_usage fk USING (constraint_schema, constraint_name) WHERE fk.referenced_column_name IS NOT NULL AND fk.table_schema = DATABASE() AND fk.table_name = 'book' AND rc.constraint_schema = DATABASE() AND rc.table_name = 'book';
SELECT cc.constraint_name AS 'name', cc.check_clause AS 'expression' FROM information_schema.check_constraints cc JOIN information_schema.table_constraints tc USING (constraint_schema, constraint_name) WHERE tc.table_schema = DATABASE() AND tc.table_name = 'book' AND cc.constraint_schema = DATABASE();

-- TypeORM.
SELECT `s`.`INDEX_NAME` AS i FROM `INFORMATION_SCHEMA`.`STATISTICS` `s` LEFT JOIN (SELECT * FROM `INFORMATION_SCHEMA`.`REFERENTIAL_CONSTRAINTS` WHERE `CONSTRAINT_SCHEMA` = 'cli_catalog' AND `TABLE_NAME` = 'book') `rc` ON `s`.`INDEX_NAME` = `rc`.`CONSTRAINT_NAME` AND `s`.`TABLE_SCHEMA` = `rc`.`CONSTRAINT_SCHEMA` WHERE `s`.`TABLE_SCHEMA` = 'cli_catalog' AND `s`.`TABLE_NAME` = 'book' AND `s`.`INDEX_NAME` != 'PRIMARY' AND `rc`.`CONSTRAINT_NAME` IS NULL ORDER BY 1;
SELECT `kcu`.`TABLE_NAME` AS t, `kcu`.`COLUMN_NAME` AS c, `rc`.`DELETE_RULE` AS d FROM `INFORMATION_SCHEMA`.`KEY_COLUMN_USAGE` `kcu` INNER JOIN (SELECT * FROM `INFORMATION_SCHEMA`.`REFERENTIAL_CONSTRAINTS` WHERE `CONSTRAINT_SCHEMA` = 'cli_catalog' AND `TABLE_NAME` = 'book') `rc` ON `rc`.`CONSTRAINT_SCHEMA` = `kcu`.`CONSTRAINT_SCHEMA` AND `rc`.`TABLE_NAME` = `kcu`.`TABLE_NAME` AND `rc`.`CONSTRAINT_NAME` = `kcu`.`CONSTRAINT_NAME`;
SELECT `TABLE_SCHEMA` AS s, `TABLE_NAME` AS t, `TABLE_COMMENT` AS c FROM `INFORMATION_SCHEMA`.`TABLES` WHERE `TABLE_SCHEMA` = 'cli_catalog' AND `TABLE_NAME` = 'author' UNION SELECT `TABLE_SCHEMA`, `TABLE_NAME`, `TABLE_COMMENT` FROM `INFORMATION_SCHEMA`.`TABLES` WHERE `TABLE_SCHEMA` = 'cli_catalog' AND `TABLE_NAME` = 'book' ORDER BY 2;

-- Prisma, with parameters.
SET @d = 'cli_catalog';
PREPARE s FROM 'SELECT DISTINCT BINARY table_info.table_name AS table_name, table_info.create_options AS o, table_info.table_comment AS c FROM information_schema.tables AS table_info JOIN information_schema.columns AS column_info ON BINARY column_info.table_name = BINARY table_info.table_name WHERE table_info.table_schema = ? AND column_info.table_schema = ? AND table_info.table_type = ''BASE TABLE'' ORDER BY BINARY table_info.table_name';
EXECUTE s USING @d, @d;
PREPARE s FROM 'SELECT BINARY kcu.constraint_name AS n, BINARY kcu.column_name AS c, BINARY kcu.referenced_table_name AS t, rc.delete_rule AS d FROM information_schema.key_column_usage AS kcu INNER JOIN information_schema.referential_constraints AS rc ON BINARY kcu.constraint_name = BINARY rc.constraint_name WHERE BINARY kcu.table_schema = ? AND BINARY rc.constraint_schema = ? AND kcu.referenced_column_name IS NOT NULL ORDER BY 1';
EXECUTE s USING @d, @d;
PREPARE s FROM 'SELECT DISTINCT BINARY index_name AS i, non_unique AS u, BINARY column_name AS c, seq_in_index AS s FROM INFORMATION_SCHEMA.STATISTICS WHERE table_schema = ? AND table_name IN (?, ?) ORDER BY 1, 4';
SET @a = 'author', @b = 'nothing';
EXECUTE s USING @d, @a, @b;

-- DBeaver, Metabase.
SELECT cc.CONSTRAINT_NAME AS n, cc.CHECK_CLAUSE AS c, tc.TABLE_NAME AS t FROM (SELECT CONSTRAINT_NAME, CHECK_CLAUSE FROM INFORMATION_SCHEMA.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'cli_catalog' ORDER BY CONSTRAINT_NAME) cc, (SELECT TABLE_NAME, CONSTRAINT_NAME FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = 'cli_catalog' AND TABLE_NAME = 'book') tc WHERE cc.CONSTRAINT_NAME = tc.CONSTRAINT_NAME ORDER BY cc.CONSTRAINT_NAME;
SELECT TABLE_SCHEMA AS s, NULL, TABLE_NAME AS t, COLUMN_NAME AS c, ORDINAL_POSITION AS p FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA = 'cli_catalog' AND TABLE_NAME LIKE 'author' ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION;
SELECT * FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'cli_catalog';
SELECT * FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'cli_catalog';
SELECT VIEW_NAME AS v, TABLE_NAME AS t FROM information_schema.VIEW_TABLE_USAGE WHERE VIEW_SCHEMA = 'cli_catalog' ORDER BY 2;

-- phpMyAdmin.
SELECT s.SCHEMA_NAME AS n, COUNT(t.TABLE_SCHEMA) AS tables FROM information_schema.SCHEMATA s LEFT JOIN information_schema.TABLES t ON BINARY t.TABLE_SCHEMA = BINARY s.SCHEMA_NAME WHERE s.SCHEMA_NAME = 'cli_catalog' GROUP BY BINARY s.SCHEMA_NAME, s.DEFAULT_COLLATION_NAME ORDER BY BINARY s.SCHEMA_NAME ASC;
SELECT COUNT(*) > 0 AS readable FROM mysql.user;
SELECT COUNT(*) AS functions FROM mysql.func;

-- mysqlsh.
SELECT COUNT(*) AS own FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID();
SELECT COUNT(*) AS members FROM performance_schema.replication_group_members;
SELECT TABLE_NAME AS t, PARTITION_NAME AS p FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = 'cli_catalog' ORDER BY 1;
SELECT sys_version, mysql_version = @@version AS own FROM sys.version;
SELECT conn_id = CONNECTION_ID() AS own, command AS c FROM sys.session WHERE conn_id = CONNECTION_ID();

-- mysqld_exporter.
SELECT page_size, compress_ops, compress_ops_ok, compress_time, uncompress_ops, uncompress_time FROM information_schema.innodb_cmp;
SELECT page_size, buffer_pool_instance, pages_used, pages_free, relocation_ops, relocation_time FROM information_schema.innodb_cmpmem;
SELECT name, subsystem, type, comment, count FROM information_schema.innodb_metrics WHERE status = 'enabled';
SELECT c.table_schema AS s, c.table_name AS t, column_name AS c, auto_increment AS n, POW(2, CASE data_type WHEN 'tinyint' THEN 7 WHEN 'int' THEN 31 WHEN 'bigint' THEN 63 END + (column_type LIKE '% unsigned')) - 1 AS max_int FROM information_schema.tables t JOIN information_schema.columns c ON BINARY t.table_schema = c.table_schema AND BINARY t.table_name = c.table_name WHERE c.extra = 'auto_increment' AND t.auto_increment IS NOT NULL AND t.table_schema = 'cli_catalog';
SELECT OBJECT_SCHEMA, OBJECT_NAME, COUNT_FETCH, COUNT_INSERT, COUNT_UPDATE, COUNT_DELETE, SUM_TIMER_FETCH, SUM_TIMER_INSERT, SUM_TIMER_UPDATE, SUM_TIMER_DELETE FROM performance_schema.table_io_waits_summary_by_table WHERE OBJECT_SCHEMA NOT IN ('mysql', 'performance_schema');
SELECT EVENT_NAME, COUNT_READ, SUM_TIMER_READ, SUM_NUMBER_OF_BYTES_READ FROM performance_schema.file_summary_by_event_name;
SELECT NAME, ENABLED FROM performance_schema.setup_consumers WHERE ENABLED = 'YES' ORDER BY 1;
SELECT * FROM performance_schema.setup_instruments;

-- Catalog tables are tables like others.
SELECT a.name AS n, t.TABLE_ROWS AS r FROM author AS a JOIN information_schema.TABLES AS t ON t.TABLE_NAME = 'author' AND t.TABLE_SCHEMA = 'cli_catalog' ORDER BY 1;
SELECT name AS n FROM author WHERE EXISTS (SELECT 1 FROM information_schema.COLUMNS AS c WHERE c.TABLE_SCHEMA = 'cli_catalog' AND c.TABLE_NAME = 'author' AND c.ORDINAL_POSITION = author.id) ORDER BY 1;
CREATE TABLE noted AS SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'cli_catalog' AND TABLE_NAME = 'author';
INSERT INTO noted SELECT TABLE_NAME, INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'cli_catalog' AND TABLE_NAME = 'author';
SELECT TABLE_NAME AS t, COUNT(*) AS c FROM noted GROUP BY 1;
UPDATE noted SET COLUMN_NAME = (SELECT MAX(TABLE_ROWS) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'cli_catalog' AND TABLE_NAME = 'author') WHERE COLUMN_NAME = 'id';
SELECT COUNT(*) AS c FROM noted WHERE COLUMN_NAME = '2';
DELETE n FROM noted AS n JOIN information_schema.COLUMNS AS c ON c.COLUMN_NAME = n.COLUMN_NAME AND c.TABLE_SCHEMA = 'cli_catalog' AND c.TABLE_NAME = 'author';
SELECT COLUMN_NAME AS c FROM noted ORDER BY 1;
CREATE VIEW counted AS SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS FROM information_schema.TABLES;
SELECT TABLE_NAME AS t, TABLE_ROWS AS r FROM counted WHERE TABLE_SCHEMA = 'cli_catalog' AND TABLE_NAME = 'author';
WITH t AS (SELECT * FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'cli_catalog') SELECT TABLE_NAME AS n FROM t WHERE TABLE_TYPE = 'VIEW' ORDER BY 1;
SET @n = (SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'cli_catalog' AND TABLE_NAME = 'book');
SELECT @n AS n;
SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'cli_catalog' AND TABLE_NAME = 'author' INTO @t, @e;
SELECT @t AS t, @e AS e;
SELECT TABLE_NAME AS n FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ('cli_catalog', 'sys') AND TABLE_NAME IN ('book', 'version') ORDER BY 1;
SELECT COUNT(*) AS none FROM information_schema.TABLES WHERE TABLE_SCHEMA = NULL;
SELECT COUNT(*) AS none FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'CLI_CATALOG';
SELECT COUNT(*) AS spaces FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'cli_catalog  ' AND TABLE_NAME = 'book';
SHOW TABLES WHERE Tables_in_cli_catalog LIKE 'b%';
SHOW COLUMNS FROM book WHERE Field = 'price';
SHOW INDEX FROM book WHERE Key_name = 'PRIMARY';
SHOW VARIABLES WHERE Variable_name = 'autocommit' OR Variable_name LIKE 'sql_notes';
SHOW TRIGGERS WHERE nosuch = 1;
SHOW TABLES WHERE 0 = 1;
EXPLAIN FORMAT=TREE SELECT t.TABLE_NAME FROM information_schema.TABLES AS t JOIN information_schema.COLUMNS AS c ON c.TABLE_SCHEMA = t.TABLE_SCHEMA AND c.TABLE_NAME = t.TABLE_NAME WHERE t.TABLE_SCHEMA = 'cli_catalog';

-- Indexes that others make superfluous, and counters that fill.
SELECT redundant_index_name AS r, dominant_index_name AS d, sql_drop_index AS s FROM sys.schema_redundant_indexes WHERE table_schema = 'cli_catalog';
SELECT table_name AS t, column_name AS c, max_value AS m, auto_increment AS n FROM sys.schema_auto_increment_columns WHERE table_schema = 'cli_catalog';
SELECT object_type AS t, count AS c FROM sys.schema_object_overview WHERE db = 'cli_catalog' ORDER BY 1;

-- Locks.
BEGIN;
SELECT id FROM author WHERE id = 1 FOR UPDATE;
SELECT ENGINE AS e, OBJECT_SCHEMA AS s, OBJECT_NAME AS t, INDEX_NAME AS i, LOCK_TYPE AS k, LOCK_MODE AS m, LOCK_STATUS AS l FROM performance_schema.data_locks WHERE OBJECT_SCHEMA = 'cli_catalog';
SELECT OBJECT_TYPE AS o, OBJECT_NAME AS t, LOCK_TYPE AS k, LOCK_STATUS AS s, OWNER_THREAD_ID = CONNECTION_ID() AS own FROM performance_schema.metadata_locks WHERE OBJECT_SCHEMA = 'cli_catalog' AND OBJECT_NAME = 'author';
ROLLBACK;

-- Nobody writes them.
INSERT INTO information_schema.TABLES (TABLE_NAME) VALUES ('x');
UPDATE information_schema.TABLES SET TABLE_NAME = 'x';
DELETE FROM information_schema.TABLES;
DROP TABLE information_schema.TABLES;
CREATE TABLE information_schema.x (a INT);
ALTER TABLE information_schema.TABLES ADD x INT;
TRUNCATE information_schema.TABLES;
CREATE DATABASE sys;
DROP DATABASE sys;
INSERT INTO performance_schema.threads (THREAD_ID) VALUES (1);
DELETE FROM performance_schema.data_locks;
UPDATE sys.version SET sys_version = 'x';
DELETE FROM mysql.user;
SELECT * FROM information_schema.nothing;
SELECT * FROM information_schema.INNODB_TRX;
SELECT * FROM mysql.innodb_table_stats;
SELECT * FROM performance_schema.nothing;
SELECT * FROM sys.nothing;
SELECT * FROM mysql.nothing;
DESCRIBE sys.version;
SHOW FULL TABLES FROM sys;
SHOW TABLES FROM sys LIKE 'v%';

DROP DATABASE cli_catalog;
