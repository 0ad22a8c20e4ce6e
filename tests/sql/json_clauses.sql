-- RETURNING, ON EMPTY and ON ERROR of JSON_VALUE, JSON schemas, XML, digests. The answers are MySQL 8.0's.
-- not recorded: MariaDB does not have them.
DROP DATABASE IF EXISTS json_clauses;
CREATE DATABASE json_clauses;
USE json_clauses;
SELECT JSON_VALUE('{"data": 123.45}', '$.data' RETURNING DECIMAL) AS a, JSON_VALUE('{"data": 123.45}', '$.data' RETURNING DECIMAL(6,4)) AS b, JSON_VALUE('{"data": -1}', '$.data' RETURNING UNSIGNED) AS c, JSON_VALUE('{"data": 1999}', '$.data' RETURNING YEAR) AS d;
SELECT JSON_VALUE('"2019-01-01"', '$' RETURNING DATE) AS a, JSON_VALUE('"11:11:11"', '$' RETURNING TIME) AS b, JSON_VALUE('"2019-01-01 11:11:11.5"', '$' RETURNING DATETIME(1)) AS c, JSON_VALUE('[{}]', '$[*]' RETURNING JSON) AS d, JSON_VALUE('1.5', '$' RETURNING DOUBLE) + 1 AS e;
SELECT JSON_VALUE('"æøåa"', '$' RETURNING CHAR(3) DEFAULT 'ÆØÅ' ON ERROR) AS a, JSON_VALUE('"æ"', '$' RETURNING CHAR(10) CHARSET ascii DEFAULT 'no' ON ERROR) AS b, JSON_VALUE('"abc"', '$' RETURNING BINARY(3)) AS c;
SELECT COLLATION(JSON_VALUE('"y"', '$')) AS a, COLLATION(JSON_VALUE('"y"', '$' RETURNING CHAR(10))) AS b, COLLATION(JSON_VALUE('"y"', '$' RETURNING CHAR(10) CHARSET utf8mb4)) AS c, JSON_VALUE('"y"', '$') = 'Y' AS d;
SELECT JSON_VALUE('{"a": 1}', '$.b' RETURNING SIGNED DEFAULT 111 ON EMPTY DEFAULT 222 ON ERROR) AS a, JSON_VALUE('{"a": "x"}', '$.a' RETURNING SIGNED DEFAULT 111 ON EMPTY DEFAULT -222 ON ERROR) AS b, JSON_VALUE('{}', '$.x' RETURNING DATE DEFAULT DATE'2020-04-05' ON EMPTY) AS c;
SELECT JSON_VALUE('{}', '$.x' ERROR ON EMPTY);
SELECT JSON_VALUE('[1, 2]', '$[*]' ERROR ON ERROR);
SELECT JSON_VALUE('"abc"', '$' RETURNING SIGNED ERROR ON ERROR);
SELECT JSON_VALUE('"abc"', '$' RETURNING CHAR(1) ERROR ON ERROR);
SELECT JSON_VALUE('{x', '$' ERROR ON ERROR);
SELECT JSON_VALUE('{x', '$') AS v;
SHOW WARNINGS;
SELECT JSON_VALUE('{}', '$.x' RETURNING SIGNED DEFAULT 'asdf' ON EMPTY);
SELECT JSON_VALUE('{}', '$.x' RETURNING CHAR(2) DEFAULT 'asdf' ON EMPTY);
SELECT JSON_VALUE('{}', '$.x' RETURNING TIME(1000));
SELECT JSON_VALUE('{}', NULL);
SELECT JSON_VALUE('{}', '$.x' DEFAULT NULL ON EMPTY);
SELECT JSON_VALUE('{}', '$.x' NULL ON ERROR NULL ON EMPTY);
SELECT JSON_VALUE('{}');
CREATE TABLE t (id INT PRIMARY KEY, j JSON, n INT AS (JSON_VALUE(j, '$.n' RETURNING SIGNED)), KEY ((JSON_VALUE(j, '$.s' RETURNING CHAR(10)))));
INSERT INTO t (id, j) VALUES (1, '{"n": 5, "s": "five"}'), (2, '{"n": "six", "s": "six"}'), (3, '{}');
SELECT id, n FROM t ORDER BY id;
SELECT id FROM t WHERE JSON_VALUE(j, '$.s' RETURNING CHAR(10)) = 'six';
SHOW CREATE TABLE t;
SELECT id, JSON_VALUE(j, '$.n' RETURNING SIGNED DEFAULT 0 ON EMPTY DEFAULT -1 ON ERROR) AS v FROM t ORDER BY v;
PREPARE p FROM 'SELECT JSON_VALUE(?, "$.a" RETURNING UNSIGNED DEFAULT 7 ON EMPTY) AS v';
SET @j = '{"a": 3}';
EXECUTE p USING @j;
SET @j = '{"b": 3}';
EXECUTE p USING @j;
-- Schemas.
SELECT JSON_SCHEMA_VALID('{"type": "object", "required": ["latitude"], "properties": {"latitude": {"minimum": -90}}}', '{"latitude": 63}') AS a, JSON_SCHEMA_VALID('{"type": "object", "required": ["latitude"]}', '{}') AS b;
SELECT JSON_SCHEMA_VALIDATION_REPORT('{"properties": {"geometry": {"properties": {"latitude": {"minimum": -90}}}}}', '{"geometry": {"latitude": -180}}') AS r;
SELECT JSON_SCHEMA_VALID('[]', '{}');
SELECT JSON_SCHEMA_VALID('{"a": {"$ref": "http://example.com"}}', '{}');
CREATE TABLE geo (coordinate JSON, CHECK (JSON_SCHEMA_VALID('{"type": "object", "properties": {"latitude": {"type": "number", "minimum": -90, "maximum": 90}}, "required": ["latitude"]}', coordinate)));
INSERT INTO geo VALUES ('{"latitude": 59}');
INSERT INTO geo VALUES ('{"latitude": 91}');
INSERT INTO geo VALUES ('{}');
-- XML.
SELECT EXTRACTVALUE('<a>ccc<b>ddd</b></a>', '/a') AS val1, EXTRACTVALUE('<a>ccc<b>ddd</b></a>', '/a/b') AS val2, EXTRACTVALUE('<a>ccc<b>ddd</b></a>', '//b') AS val3, EXTRACTVALUE('<a>ccc<b>ddd</b></a>', '/b') AS val4, EXTRACTVALUE('<a>ccc<b>ddd</b><b>eee</b></a>', '//b') AS val5;
SELECT UPDATEXML('<a><b>ccc</b><d></d></a>', '/a', '<e>fff</e>') AS val1, UPDATEXML('<a><b>ccc</b><d></d></a>', '//b', '<e>fff</e>') AS val3, UPDATEXML('<a><d></d><b>ccc</b><d></d></a>', '/a/d', '<e>fff</e>') AS val5;
SELECT EXTRACTVALUE('<a>c</a><b', '//a') AS v;
SELECT EXTRACTVALUE('<a/>', '/a[');
-- Digests.
SET @stmt = 'SELECT * FROM mytable WHERE cola = 10 AND colb = 20';
SELECT STATEMENT_DIGEST_TEXT(@stmt) AS t, LENGTH(STATEMENT_DIGEST(@stmt)) AS l, STATEMENT_DIGEST(@stmt) = STATEMENT_DIGEST('select * from mytable where cola=30 and colb = 5') AS same, STATEMENT_DIGEST_TEXT(NULL) AS n;
SELECT STATEMENT_DIGEST_TEXT('SELEC 1');
SELECT PS_THREAD_ID(CONNECTION_ID()) = PS_CURRENT_THREAD_ID() AS own, PS_THREAD_ID(NULL) AS n;
DROP DATABASE json_clauses;
