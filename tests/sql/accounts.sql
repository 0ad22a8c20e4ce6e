-- Accounts, privileges and roles. Stored passwords are shown for mysql_native_password only, which has no salt.
CREATE DATABASE cli_accounts;
USE cli_accounts;
CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT);
CREATE TABLE s (a INT);
CREATE VIEW v AS SELECT a FROM t;

-- CREATE USER
CREATE USER cli_a IDENTIFIED WITH mysql_native_password BY 'secret';
CREATE USER cli_a;
CREATE USER IF NOT EXISTS cli_a, cli_b@localhost;
SHOW WARNINGS;
CREATE USER cli_c@'10.0.0.0/255.255.255.0', cli_d@'%.example.com';
CREATE USER cli_e IDENTIFIED WITH no_such_method BY 'x';
CREATE USER cli_e IDENTIFIED WITH mysql_native_password AS 'no hash';
CREATE USER cli_e IDENTIFIED WITH mysql_native_password AS '*14E65567ABDB5135D0CFD9A70B3032C179A49EE7'
    REQUIRE SUBJECT '/CN=cli' AND ISSUER '/CN=ca' AND CIPHER 'TLS_AES_256_GCM_SHA384'
    WITH MAX_QUERIES_PER_HOUR 10 MAX_UPDATES_PER_HOUR 11 MAX_CONNECTIONS_PER_HOUR 12 MAX_USER_CONNECTIONS 13
    PASSWORD EXPIRE INTERVAL 90 DAY PASSWORD HISTORY 5 PASSWORD REUSE INTERVAL 30 DAY PASSWORD REQUIRE CURRENT
    FAILED_LOGIN_ATTEMPTS 3 PASSWORD_LOCK_TIME UNBOUNDED ACCOUNT LOCK ATTRIBUTE '{"team": "x"}';
CREATE USER u123456789012345678901234567890123;
CREATE USER cli_f ATTRIBUTE '[1]';
CREATE USER cli_f COMMENT 'a comment';

-- SHOW CREATE USER
SHOW CREATE USER cli_a;
SHOW CREATE USER cli_e;
SHOW CREATE USER cli_f;
SET print_identified_with_as_hex = ON;
SHOW CREATE USER cli_a;
SET print_identified_with_as_hex = OFF;
SHOW CREATE USER cli_missing;

-- ALTER USER
ALTER USER cli_e REQUIRE NONE WITH MAX_QUERIES_PER_HOUR 0 PASSWORD EXPIRE NEVER ACCOUNT UNLOCK;
ALTER USER cli_e PASSWORD EXPIRE;
ALTER USER cli_e PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT PASSWORD REQUIRE CURRENT OPTIONAL;
ALTER USER cli_e FAILED_LOGIN_ATTEMPTS 0 PASSWORD_LOCK_TIME 0 ATTRIBUTE '{"team": null, "unit": "y"}';
SHOW CREATE USER cli_e;
ALTER USER cli_missing ACCOUNT LOCK;
ALTER USER IF EXISTS cli_missing ACCOUNT LOCK;
SHOW WARNINGS;
ALTER USER cli_a IDENTIFIED BY '' RETAIN CURRENT PASSWORD;
ALTER USER cli_a IDENTIFIED WITH caching_sha2_password BY 'x' RETAIN CURRENT PASSWORD;
ALTER USER cli_b@localhost IDENTIFIED BY 'x' RETAIN CURRENT PASSWORD;
ALTER USER cli_a IDENTIFIED BY 'x' REPLACE 'secret';
SET PASSWORD FOR cli_missing = 'x';

-- RENAME USER and DROP USER
RENAME USER cli_f TO cli_g;
RENAME USER cli_f TO cli_h;
RENAME USER cli_g TO cli_a;
DROP USER cli_missing;
DROP USER IF EXISTS cli_missing, cli_g;
SHOW WARNINGS;
SELECT user, host FROM mysql.user WHERE user LIKE 'cli%' ORDER BY user, host;

-- GRANT on every level
GRANT SELECT, INSERT ON *.* TO cli_a;
GRANT ALL ON cli_accounts.* TO cli_a WITH GRANT OPTION;
GRANT UPDATE ON cli_accounts.t TO cli_a;
GRANT SELECT (b, a), INSERT (b), REFERENCES (c) ON cli_accounts.t TO cli_a;
GRANT ALL ON cli_accounts.s TO cli_a;
GRANT SELECT ON `cli\_acc%`.* TO cli_b@localhost;
GRANT CONNECTION_ADMIN, SYSTEM_USER ON *.* TO cli_b@localhost;
GRANT ROLE_ADMIN ON *.* TO cli_b@localhost WITH GRANT OPTION;
GRANT USAGE ON *.* TO cli_b@localhost WITH GRANT OPTION;
SHOW GRANTS FOR cli_a;
SHOW GRANTS FOR cli_b@localhost;
GRANT SELECT ON cli_accounts.* TO cli_missing;
GRANT SELECT ON cli_accounts.missing TO cli_a;
GRANT CREATE ON cli_accounts.missing TO cli_c@'10.0.0.0/255.255.255.0';
GRANT SELECT (missing) ON cli_accounts.t TO cli_a;
GRANT SELECT (a) ON cli_accounts.* TO cli_a;
GRANT DELETE (a) ON cli_accounts.t TO cli_a;
GRANT RELOAD ON cli_accounts.* TO cli_a;
GRANT RELOAD ON cli_accounts.t TO cli_a;
GRANT CONNECTION_ADMIN ON cli_accounts.* TO cli_a;
GRANT NO_SUCH_PRIVILEGE ON *.* TO cli_a;
GRANT SELECT ON information_schema.* TO cli_a;

-- The tables of the database mysql, and information_schema
SELECT host, db, user, Select_priv, Grant_priv, Create_tmp_table_priv, Event_priv FROM mysql.db
    WHERE user LIKE 'cli%' ORDER BY user, db;
SELECT host, db, user, table_name, grantor, table_priv, column_priv FROM mysql.tables_priv
    WHERE user LIKE 'cli%' ORDER BY user, table_name;
SELECT host, db, user, table_name, column_name, column_priv FROM mysql.columns_priv
    WHERE user LIKE 'cli%' ORDER BY user, table_name, column_name;
SELECT user, host, priv, with_grant_option FROM mysql.global_grants WHERE user LIKE 'cli%' ORDER BY user, priv;
SELECT user, host, Select_priv, Insert_priv, Super_priv, ssl_type, x509_subject, max_questions, max_updates, plugin,
    authentication_string, password_expired, password_lifetime, account_locked, Password_reuse_history,
    Password_require_current, User_attributes FROM mysql.user WHERE user IN ('cli_a', 'cli_e') ORDER BY user;
SELECT grantee, privilege_type, is_grantable FROM information_schema.user_privileges
    WHERE grantee LIKE '''cli%' ORDER BY grantee, privilege_type;
SELECT grantee, table_schema, privilege_type, is_grantable FROM information_schema.schema_privileges
    WHERE grantee LIKE '''cli_b%' ORDER BY grantee, privilege_type;
SELECT grantee, table_name, privilege_type FROM information_schema.table_privileges
    WHERE grantee LIKE '''cli%' AND table_name = 't' ORDER BY grantee, privilege_type;
SELECT grantee, table_name, column_name, privilege_type FROM information_schema.column_privileges
    WHERE grantee LIKE '''cli%' ORDER BY grantee, column_name, privilege_type;
SELECT user, host, attribute FROM information_schema.user_attributes WHERE user LIKE 'cli%' ORDER BY user;
INSERT INTO mysql.user (user) VALUES ('x');
UPDATE mysql.user SET host = '%';
DELETE FROM mysql.db;

-- REVOKE
REVOKE INSERT ON *.* FROM cli_a;
REVOKE DELETE ON *.* FROM cli_a;
REVOKE SELECT (b) ON cli_accounts.t FROM cli_a;
REVOKE UPDATE ON cli_accounts.t FROM cli_a;
REVOKE UPDATE ON cli_accounts.t FROM cli_a;
REVOKE GRANT OPTION ON cli_accounts.* FROM cli_a;
REVOKE ALL ON cli_accounts.s FROM cli_a;
REVOKE SELECT ON other.* FROM cli_a;
REVOKE IF EXISTS SELECT ON other.* FROM cli_a;
SHOW WARNINGS;
REVOKE SELECT ON *.* FROM cli_missing;
REVOKE SELECT ON *.* FROM cli_missing IGNORE UNKNOWN USER;
SHOW WARNINGS;
SHOW GRANTS FOR cli_a;
REVOKE ALL PRIVILEGES, GRANT OPTION FROM cli_a;
SHOW GRANTS FOR cli_a;
SHOW GRANTS FOR cli_missing;
REVOKE ALL PRIVILEGES, GRANT OPTION FROM cli_missing;

-- Roles
CREATE ROLE cli_r1, cli_r2;
CREATE ROLE cli_r1;
CREATE ROLE IF NOT EXISTS cli_r1;
GRANT SELECT ON cli_accounts.* TO cli_r1;
GRANT INSERT, DELETE ON cli_accounts.t TO cli_r2;
GRANT cli_r2 TO cli_r1;
GRANT cli_r1 TO cli_r2;
GRANT cli_r1 TO cli_a WITH ADMIN OPTION;
GRANT cli_r2 TO cli_a, cli_b@localhost;
GRANT cli_missing TO cli_a;
SHOW GRANTS FOR cli_a;
SHOW GRANTS FOR cli_a USING cli_r1;
SHOW GRANTS FOR cli_b@localhost USING cli_r1;
SET DEFAULT ROLE cli_r1 TO cli_a;
ALTER USER cli_b@localhost DEFAULT ROLE ALL;
SHOW CREATE USER cli_a;
SELECT * FROM mysql.role_edges WHERE to_user LIKE 'cli%' ORDER BY from_user, to_user;
SELECT * FROM mysql.default_roles WHERE user LIKE 'cli%' ORDER BY user;
SELECT CURRENT_ROLE(), CURRENT_USER(), USER();
SET ROLE cli_r1;
GRANT cli_r1 TO CURRENT_USER();
SET ROLE cli_r1;
SELECT CURRENT_ROLE();
SET ROLE NONE;
SELECT CURRENT_ROLE();
REVOKE cli_r1 FROM CURRENT_USER();
REVOKE cli_r2 FROM cli_a;
SHOW GRANTS FOR cli_a;
SHOW CREATE USER cli_r1;
DROP ROLE cli_missing;
DROP ROLE cli_r1, cli_r2;
SHOW GRANTS FOR cli_a;

DROP USER cli_a, cli_b@localhost, cli_c@'10.0.0.0/255.255.255.0', cli_d@'%.example.com', cli_e;
SELECT COUNT(*) FROM mysql.user WHERE user LIKE 'cli%';
DROP DATABASE cli_accounts;
