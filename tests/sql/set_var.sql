-- with comments
-- SET_VAR: variables that a hint sets for its statement.
-- not recorded: MariaDB does not have them.
SELECT /*+ SET_VAR(time_zone = '+05:00') */ @@time_zone, FROM_UNIXTIME(0);
SELECT @@time_zone, FROM_UNIXTIME(0);
SELECT /*+ SET_VAR(timestamp = 100) */ UNIX_TIMESTAMP();
SELECT /*+ SET_VAR(sql_mode = '') SET_VAR(sql_mode = 'ANSI') */ CAST(0 AS UNSIGNED), @@sql_mode;
SHOW WARNINGS;
SELECT CAST(1 AS UNSIGNED) - 2;
SELECT /*+ SET_VAR(sql_mode = 'NO_UNSIGNED_SUBTRACTION') */ CAST(1 AS UNSIGNED) - 2 AS d;
SELECT /*+ SET_VAR(sql_select_limit = 1) */ 1 UNION SELECT 2;
SELECT 1 UNION SELECT /*+ SET_VAR(time_zone = '+05:00') */ FROM_UNIXTIME(0);
SELECT /*+ SET_VAR(time_zone = 'nowhere') */ 1;
SHOW WARNINGS;
SELECT /*+ SET_VAR(max_error_count = 0) */ 1 / 0;
SHOW WARNINGS;
SELECT @@max_error_count, @@sql_mode LIKE '%STRICT%';
PREPARE p FROM 'SELECT /*+ SET_VAR(time_zone = ''-03:00'') */ FROM_UNIXTIME(?) AS t';
SET @z = 0;
EXECUTE p USING @z;
SELECT FROM_UNIXTIME(0);
SELECT /*+ SET_VAR(time_zone = '+01:00') */ @v := FROM_UNIXTIME(0);
SELECT @v, @@time_zone;
SELECT /*+ SET_VAR(version = 'x') */ 1;
SHOW WARNINGS;
