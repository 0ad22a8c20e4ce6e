-- Functions of MySQL 8.0 that MariaDB 10.11 lacks or means otherwise, mostly with the examples of MySQL's manual.
-- not recorded: MariaDB does not have them.
DROP DATABASE IF EXISTS sql_mysql_functions;
CREATE DATABASE sql_mysql_functions DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
USE sql_mysql_functions;
-- UUIDs.
SET @uuid = '6ccd780c-baba-1026-9564-5b8c656024db';
SELECT HEX(UUID_TO_BIN(@uuid)), HEX(UUID_TO_BIN(@uuid, 0)), HEX(UUID_TO_BIN(@uuid, 1));
SELECT BIN_TO_UUID(UUID_TO_BIN(@uuid)), BIN_TO_UUID(UUID_TO_BIN(@uuid, 0), 0), BIN_TO_UUID(UUID_TO_BIN(@uuid, 1), 1);
SELECT BIN_TO_UUID(UUID_TO_BIN(@uuid, 0), 1), BIN_TO_UUID(UUID_TO_BIN(@uuid, 1), 0);
SELECT IS_UUID(@uuid), IS_UUID(UPPER(@uuid)), IS_UUID('6ccd780cbaba102695645b8c656024db'), IS_UUID('{6ccd780c-baba-1026-9564-5b8c656024db}'), IS_UUID('6ccd780c-baba-1026-9564-5b8c6560'), IS_UUID(0.5), IS_UUID(NULL);
SELECT UUID_TO_BIN('6ccd780c-baba-1026-9564-5b8c6560');
SELECT BIN_TO_UUID(0x6ccd);
SELECT UUID_TO_BIN(NULL), BIN_TO_UUID(NULL), UUID_SHORT() > 0, UUID() = UUID();
-- Units.
SELECT FORMAT_BYTES(512), FORMAT_BYTES(18446644073709551615), FORMAT_BYTES(1024), FORMAT_BYTES(NULL);
SELECT FORMAT_PICO_TIME(3501), FORMAT_PICO_TIME(188732396662000), FORMAT_PICO_TIME(0), FORMAT_PICO_TIME(NULL);
-- Weights: equal and ordered as the texts are, but not MySQL's bytes.
SELECT HEX(WEIGHT_STRING(CAST('AB' AS BINARY))), HEX(WEIGHT_STRING('ab' AS BINARY(4))), WEIGHT_STRING(NULL), WEIGHT_STRING(1);
SELECT WEIGHT_STRING('ab' COLLATE utf8mb4_0900_ai_ci) = WEIGHT_STRING('ÁB' COLLATE utf8mb4_0900_ai_ci) AS ai, WEIGHT_STRING('ab' COLLATE utf8mb4_0900_as_cs) = WEIGHT_STRING('áb' COLLATE utf8mb4_0900_as_cs) AS cs;
SELECT WEIGHT_STRING('a' COLLATE utf8mb4_unicode_ci) < WEIGHT_STRING('B' COLLATE utf8mb4_unicode_ci) AS less, WEIGHT_STRING('abc' AS CHAR(2)) = WEIGHT_STRING('ab') AS cut, WEIGHT_STRING('ab' COLLATE utf8mb4_bin) = WEIGHT_STRING('AB' COLLATE utf8mb4_bin) AS bin;
-- Documents. JSON_STORAGE_SIZE is the size of this server's form.
SELECT JSON_STORAGE_SIZE('[100, "sakila", [1, 3, 5], 425.05]') AS a, JSON_STORAGE_SIZE('{"a": 1000, "b": "a", "c": "[1, 3, 5, 7]"}') AS b, JSON_STORAGE_SIZE('{"a": 1000, "b": "wxyz", "c": "[1, 3, 5, 7]"}') AS c, JSON_STORAGE_SIZE('[100, "json", [[10, 20, 30], 3, 5], 425.05]') AS d;
SELECT JSON_PRETTY('123'), JSON_PRETTY('[1,3,5]'), JSON_PRETTY('{"a":"10","b":"15","x":"25"}');
SELECT JSON_VALUE('{"fname": "Joe", "lname": "Palmer"}', '$.fname'), JSON_VALUE('{"item": "shoes", "price": "49.95"}', '$.price'), JSON_VALUE('[1, [2]]', '$[1]'), JSON_VALUE('[1]', '$[7]');
-- The server and the session.
SELECT LENGTH(ICU_VERSION()) > 0, PS_CURRENT_THREAD_ID() > 0;
SELECT ROLES_GRAPHML();
SELECT SESSION_USER() = USER(), SYSTEM_USER() = USER(), SCHEMA(), UTC_DATE() = UTC_DATE, CURRENT_DATE() = CURDATE(), LOCALTIMESTAMP() = NOW(), CURRENT_TIME() = CURTIME();
SELECT OCTET_LENGTH('日本'), CHARACTER_LENGTH('日本'), POWER(2, 10), ANY_VALUE(7);
-- CAST to FLOAT with a number of bits.
SELECT CAST(0.1 AS FLOAT(24)), CAST(1.1 AS FLOAT(24)) = 1.1, CAST(1.1 AS FLOAT(25)) = 1.1, CAST(1e39 AS FLOAT(53));
SELECT CAST(1e39 AS FLOAT);
SELECT CAST(0.1 AS FLOAT(54));
-- BIT and a signed integer in one column are a decimal.
CREATE TABLE signs (c BIT(64), i INT);
INSERT INTO signs VALUES (9223372036854775808, -1);
SELECT c FROM signs UNION ALL SELECT i FROM signs;
-- Minimum bounding rectangles.
SET @g1 = ST_GeomFromText('POLYGON((0 0,0 3,3 3,3 0,0 0))');
SET @g2 = ST_GeomFromText('POINT(1 1)');
SET @g3 = ST_GeomFromText('POLYGON((2 2,2 5,5 5,5 2,2 2))');
SET @g4 = ST_GeomFromText('POLYGON((3 0,3 3,6 3,6 0,3 0))');
SELECT MBRCOVERS(@g1, @g2), MBRCOVEREDBY(@g1, @g2), MBRCOVERS(@g2, @g1), MBRCOVEREDBY(@g2, @g1), MBRCOVEREDBY(@g1, @g1);
SELECT MBROVERLAPS(@g1, @g3), MBROVERLAPS(@g1, @g4), MBROVERLAPS(@g1, @g2), MBRTOUCHES(@g1, @g4), MBRTOUCHES(@g1, @g3), MBRTOUCHES(@g1, ST_GeomFromText('POINT(3 1)'));
-- Geometries of each kind from their texts and bytes.
SELECT ST_ASWKT(ST_GeometryFromText('POINT(1 2)')), ST_ASWKT(ST_LineFromText('LINESTRING(0 0,1 1)')), ST_ASWKT(ST_LineStringFromText('LINESTRING(0 0,1 1)'));
SELECT ST_ASWKT(ST_PolyFromText('POLYGON((0 0,4 0,4 4,0 0))')), ST_ASWKT(ST_PolygonFromText('POLYGON((0 0,4 0,4 4,0 0))'));
SELECT ST_ASWKT(ST_MPointFromText('MULTIPOINT(1 1,2 2)')), ST_ASWKT(ST_MultiPointFromText('MULTIPOINT((1 1),(2 2))'));
SELECT ST_ASWKT(ST_MLineFromText('MULTILINESTRING((0 0,1 1),(2 2,3 3))')), ST_ASWKT(ST_MultiLineStringFromText('MULTILINESTRING((0 0,1 1))'));
SELECT ST_ASWKT(ST_MPolyFromText('MULTIPOLYGON(((0 0,4 0,4 4,0 0)))')), ST_ASWKT(ST_MultiPolygonFromText('MULTIPOLYGON(((0 0,4 0,4 4,0 0)))'));
SELECT ST_ASWKT(ST_GeomCollFromText('GEOMETRYCOLLECTION(POINT(0 0))')), ST_ASWKT(ST_GeomCollFromTxt('GEOMETRYCOLLECTION(POINT(0 0))')), ST_ASWKT(ST_GeometryCollectionFromText('GEOMETRYCOLLECTION(POINT(0 0))'));
SET @point = ST_AsWKB(ST_GeomFromText('POINT(1 2)'));
SET @line = ST_AsWKB(ST_GeomFromText('LINESTRING(0 0,1 1)'));
SET @polygon = ST_AsWKB(ST_GeomFromText('POLYGON((0 0,4 0,4 4,0 0),(1 0.5,2 0.5,2 1,1 0.5))'));
SET @points = ST_AsWKB(ST_GeomFromText('MULTIPOINT(1 1,2 2)'));
SET @lines = ST_AsWKB(ST_GeomFromText('MULTILINESTRING((0 0,1 1),(2 2,3 3))'));
SET @polygons = ST_AsWKB(ST_GeomFromText('MULTIPOLYGON(((0 0,4 0,4 4,0 0)))'));
SET @all = ST_AsWKB(ST_GeomFromText('GEOMETRYCOLLECTION(POINT(0 0),LINESTRING(0 0,1 1))'));
SELECT ST_ASWKT(ST_GeometryFromWKB(@point)), ST_ASWKT(ST_PointFromWKB(@point)), ST_ASWKT(ST_LineFromWKB(@line)), ST_ASWKT(ST_LineStringFromWKB(@line));
SELECT ST_ASWKT(ST_PolyFromWKB(@polygon)), ST_ASWKT(ST_PolygonFromWKB(@polygon)), ST_NumInteriorRing(ST_PolyFromWKB(@polygon));
SELECT ST_ASWKT(ST_MPointFromWKB(@points)), ST_ASWKT(ST_MultiPointFromWKB(@points)), ST_ASWKT(ST_MLineFromWKB(@lines)), ST_ASWKT(ST_MultiLineStringFromWKB(@lines));
SELECT ST_ASWKT(ST_MPolyFromWKB(@polygons)), ST_ASWKT(ST_MultiPolygonFromWKB(@polygons)), ST_ASWKT(ST_GeomCollFromWKB(@all)), ST_ASWKT(ST_GeometryCollectionFromWKB(@all));
-- A geometry of another kind is an error.
SELECT ST_LineFromText('POINT(1 2)');
SELECT ST_PointFromWKB(@line);
DROP DATABASE sql_mysql_functions;
-- Normalised statements, and the thread of the session.
SELECT STATEMENT_DIGEST_TEXT('SELECT a FROM t WHERE b = 5') AS t;
SELECT CONCAT(LENGTH(STATEMENT_DIGEST('SELECT 1')), '/', PS_THREAD_ID(CONNECTION_ID()) = PS_CURRENT_THREAD_ID()) AS v;
