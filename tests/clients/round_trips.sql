-- A table with a column of every type, and rows with limits, ordinary values, empty values and NULL. Each client
-- reads the rows and writes what it has read into the table `copy`.
DROP DATABASE IF EXISTS round_trips;
CREATE DATABASE round_trips CHARACTER SET utf8mb4;
USE round_trips;
SET NAMES utf8mb4;
SET time_zone = '+00:00';
CREATE TABLE original (
  id INT NOT NULL PRIMARY KEY,
  c_tinyint TINYINT, c_tinyint_unsigned TINYINT UNSIGNED, c_bool BOOL,
  c_smallint SMALLINT, c_smallint_unsigned SMALLINT UNSIGNED,
  c_mediumint MEDIUMINT, c_mediumint_unsigned MEDIUMINT UNSIGNED,
  c_int INT, c_int_unsigned INT UNSIGNED, c_int_zerofill INT(6) ZEROFILL,
  c_bigint BIGINT, c_bigint_unsigned BIGINT UNSIGNED,
  c_decimal DECIMAL(10,2), c_decimal_long DECIMAL(65,30), c_decimal_unsigned DECIMAL(5,0) UNSIGNED,
  c_float FLOAT, c_double DOUBLE, c_double_digits DOUBLE(10,3),
  c_bit1 BIT(1), c_bit8 BIT(8), c_bit64 BIT(64),
  c_date DATE, c_time TIME, c_time6 TIME(6), c_datetime DATETIME, c_datetime6 DATETIME(6),
  c_timestamp TIMESTAMP NULL, c_timestamp6 TIMESTAMP(6) NULL, c_year YEAR,
  c_char CHAR(10), c_varchar VARCHAR(40), c_latin1 VARCHAR(20) CHARACTER SET latin1, c_binary BINARY(8), c_varbinary VARBINARY(40),
  c_tinytext TINYTEXT, c_text TEXT, c_mediumtext MEDIUMTEXT, c_longtext LONGTEXT,
  c_tinyblob TINYBLOB, c_blob BLOB, c_mediumblob MEDIUMBLOB, c_longblob LONGBLOB,
  c_enum ENUM('small', 'größer', 'x,y'), c_set SET('a', 'b', 'c d'), c_json JSON
);
INSERT INTO original VALUES
 (1, -128, 0, FALSE, -32768, 0, -8388608, 0, -2147483648, 0, 0, -9223372036854775808, 0,
  -99999999.99, -99999999999999999999999999999999999.999999999999999999999999999999, 0,
  -3.40282e38, -1.7976931348623157e308, -9999999.999, b'0', b'0', b'0',
  '1000-01-01', '-838:59:59', '-838:59:58.999999', '1000-01-01 00:00:00', '1000-01-01 00:00:00.000001',
  '1970-01-01 00:00:01', '1970-01-01 00:00:01.000001', 1901,
  '', '', '', '', '', '', '', '', '', '', '', '', '', 'small', '', '{}'),
 (2, 127, 255, TRUE, 32767, 65535, 8388607, 16777215, 2147483647, 4294967295, 999999, 9223372036854775807,
  18446744073709551615, 99999999.99, 99999999999999999999999999999999999.999999999999999999999999999999, 99999,
  3.40282e38, 1.7976931348623157e308, 9999999.999, b'1', b'11111111', 0xFFFFFFFFFFFFFFFF,
  '9999-12-31', '838:59:59', '838:59:58.999999', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999999',
  '2038-01-19 03:14:07', '2038-01-19 03:14:06.999999', 2155,
  'Zoë 😀', 'it''s "quoted" \\ and\nnew', 'Zoë €', X'0001FF275C220A1A', X'00FF275C',
  REPEAT('é', 127), REPEAT('long ', 3000), REPEAT('中', 30000), REPEAT('y', 100000),
  REPEAT(X'00', 255), REPEAT(X'FF00', 30000), REPEAT(X'27', 70000), REPEAT(X'5C00', 50000),
  'x,y', 'a,c d', '{"a": [1, 2.5, "x", null, true], "ü": {"b": "\\u0001"}}'),
 (3, 1, 2, TRUE, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12.30, 0.000000000000000000000000000001, 14, 1.5, 0.1, 16.125,
  b'1', b'01000001', b'1010', '2024-02-29', '00:00:00', '12:34:56.789012', '2024-02-29 12:34:56',
  '2024-02-29 12:34:56.789012', '2024-02-29 12:34:56', '2024-02-29 12:34:56.789012', 2024,
  'ten chars!', '  spaces  ', 'ñ', 'A', 'B', 't', 'text', 'm', 'l', 'b', 'blob', 'm', 'l', 'größer', 'b', '"text"'),
 (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE copy LIKE original;
-- Geometries and vectors, which clients see as bytes or as objects of their own.
CREATE TABLE shapes (
  id INT NOT NULL PRIMARY KEY,
  c_geometry GEOMETRY, c_point POINT SRID 4326, c_line LINESTRING, c_polygon POLYGON, c_points MULTIPOINT,
  c_collection GEOMETRYCOLLECTION, c_vector VECTOR(3), c_vector_long VECTOR(2048)
);
INSERT INTO shapes VALUES
 (1, ST_GeomFromText('POINT(1 2)'), ST_GeomFromText('POINT(-90 180)', 4326), ST_GeomFromText('LINESTRING(0 0,1e300 -1e-300)'),
  ST_GeomFromText('POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,2 1,2 2,1 2,1 1))'), ST_GeomFromText('MULTIPOINT(0 0,1 1)'),
  ST_GeomFromText('GEOMETRYCOLLECTION EMPTY'), STRING_TO_VECTOR('[0,-0,3.40282e38]'),
  STRING_TO_VECTOR(CONCAT('[', REPEAT('0.5,', 2047), '-1e-30]'))),
 (2, ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))'), ST_GeomFromText('POINT(48.5 9.25)', 4326),
  ST_GeomFromText('LINESTRING(1.5 2.5,3.5 4.5,5 6)'), ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))'),
  ST_GeomFromText('MULTIPOINT(7 8)'), ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1))'), STRING_TO_VECTOR('[1,2.5,-3]'),
  STRING_TO_VECTOR('[1]')),
 (3, ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)),((5 5,6 5,6 6,5 5)))', 3857), ST_GeomFromText('POINT(0 0)', 4326),
  ST_GeomFromText('LINESTRING(0 0,0 0)'), ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))'), ST_GeomFromText('MULTIPOINT(7 8)'),
  ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1))'), STRING_TO_VECTOR('[0.1,0.2,0.3]'), STRING_TO_VECTOR('[0.1,-0.2]')),
 (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE shapes_copy LIKE shapes;
-- Columns with the flags of keys and defaults.
CREATE TABLE described (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  c_unique VARCHAR(5) NOT NULL UNIQUE,
  c_key INT,
  c_default SMALLINT NOT NULL DEFAULT 5,
  c_changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  c_created DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  c_case VARCHAR(8) COLLATE utf8mb4_bin,
  c_geometry GEOMETRY,
  KEY (c_key)
);
INSERT INTO described (c_unique) VALUES ('one');
