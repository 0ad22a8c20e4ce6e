-- not recorded: MariaDB shows widths, collations and options otherwise.
-- SHOW CREATE TABLE as in MySQL 8.0, and as a statement that defines a table with the same text.
DROP DATABASE IF EXISTS shown_definitions;
CREATE DATABASE shown_definitions CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci;
USE shown_definitions;
CREATE TABLE a (a VARCHAR(10) COLLATE utf8mb4_0900_ai_ci, b INT, c INT, d TEXT COLLATE utf8mb4_bin, e ENUM('x', 'y') CHARACTER SET latin1,
  PRIMARY KEY (b) USING BTREE, UNIQUE KEY u (c) USING BTREE KEY_BLOCK_SIZE = 4 COMMENT 'x', KEY k (a(3)) KEY_BLOCK_SIZE = 8,
  KEY l USING BTREE (a) KEY_BLOCK_SIZE = 16 INVISIBLE, UNIQUE h (b, c) USING HASH, CONSTRAINT positive CHECK (b > 0), CHECK (c <> 7) NOT ENFORCED)
  KEY_BLOCK_SIZE = 8 COMPRESSION = 'zlib' STATS_PERSISTENT = 1 STATS_AUTO_RECALC = 0 STATS_SAMPLE_PAGES = 10 AVG_ROW_LENGTH = 7
  ROW_FORMAT = COMPRESSED ENCRYPTION = 'N' COMMENT 'all';
SHOW CREATE TABLE a;
SHOW WARNINGS;
SELECT create_options FROM information_schema.tables WHERE table_schema = 'shown_definitions';
SELECT index_name, seq_in_index, index_type, index_comment FROM information_schema.statistics WHERE table_schema = 'shown_definitions' ORDER BY 1, 2;
SELECT column_name, character_set_name, collation_name FROM information_schema.columns WHERE table_schema = 'shown_definitions' ORDER BY 1;
ALTER TABLE a DROP KEY k, ADD KEY k (a(3)) USING BTREE, ADD KEY (c) USING HASH, MODIFY d TEXT COLLATE utf8mb4_0900_ai_ci, COMPRESSION = 'lz4';
SHOW WARNINGS;
ALTER TABLE a RENAME COLUMN d TO dd, ALTER INDEX l VISIBLE;
ALTER TABLE a MODIFY a VARCHAR(10), ALGORITHM = INSTANT;
SHOW CREATE TABLE a;
CREATE TABLE b LIKE a;
SHOW CREATE TABLE b;
ALTER TABLE b CONVERT TO CHARACTER SET latin1, COMPRESSION = '', KEY_BLOCK_SIZE = 0;
SHOW CREATE TABLE b;
CREATE TABLE c (own VARCHAR(5) COLLATE utf8mb4_0900_ai_ci) SELECT dd AS copied FROM a;
SHOW CREATE TABLE c;
CREATE TABLE d (s VARCHAR(5), t VARCHAR(5) COLLATE utf8mb4_bin, u VARCHAR(5) COLLATE utf8mb4_0900_ai_ci) COLLATE utf8mb4_bin;
SHOW CREATE TABLE d;
-- Defaults of TIMESTAMP columns are shown in the time zone of the session.
SET time_zone = '-05:30';
CREATE TABLE zoned (id INT PRIMARY KEY, a TIMESTAMP NOT NULL DEFAULT '2020-01-02 03:04:05', b TIMESTAMP(3) NULL DEFAULT '2020-01-02 03:04:05.678');
SHOW CREATE TABLE zoned;
SET time_zone = '+00:00';
SHOW CREATE TABLE zoned;
DROP DATABASE shown_definitions;
