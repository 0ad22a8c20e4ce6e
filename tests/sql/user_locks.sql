-- not recorded: user-level locks behave as in MySQL 8.0 (manual, "Locking Functions"). MariaDB differs for invalid names.
SELECT GET_LOCK('cli', 10), GET_LOCK('CLI', 10), GET_LOCK('other', 0);
SELECT IS_FREE_LOCK('cli'), IS_USED_LOCK('cli') = CONNECTION_ID(), IS_FREE_LOCK('free'), IS_USED_LOCK('free');
SELECT RELEASE_LOCK('cli'), RELEASE_LOCK('cli'), RELEASE_LOCK('cli');
SELECT RELEASE_ALL_LOCKS();
SELECT RELEASE_ALL_LOCKS();
DO GET_LOCK('third', 1), 1 + 1;
SET @got = GET_LOCK('fourth', 1);
SELECT @got, RELEASE_LOCK('third') + RELEASE_LOCK('fourth');
SELECT GET_LOCK('', 1);
SELECT GET_LOCK(NULL, 1);
SELECT GET_LOCK(REPEAT('x', 65), 1);
SELECT GET_LOCK('one argument');
DO 1, 2;
DO no_such_column;
