-- A schema with everything that a table definition can say: every type with its boundary values, every column
-- option, kind of key, foreign key and view. tests/mysqldump-mariadb.sh carries it to MariaDB and back.
-- Left out, because MariaDB 10.11 has nothing equal: VECTOR, CHECK ... NOT ENFORCED, invisible indexes and the
-- SRID of a column. Triggers, routines and events are refused by Junctor.
SET NAMES utf8mb4;
SET time_zone = '+00:00';

CREATE TABLE numbers (
  id INT NOT NULL PRIMARY KEY,
  c_tinyint TINYINT, c_tinyint_unsigned TINYINT UNSIGNED, c_bool BOOL, c_tinyint_zerofill TINYINT(3) UNSIGNED ZEROFILL,
  c_smallint SMALLINT, c_smallint_unsigned SMALLINT UNSIGNED, c_mediumint MEDIUMINT, c_mediumint_unsigned MEDIUMINT UNSIGNED,
  c_int INT, c_int_unsigned INT UNSIGNED, c_int_zerofill INT(6) ZEROFILL,
  c_bigint BIGINT, c_bigint_unsigned BIGINT UNSIGNED,
  c_decimal DECIMAL(10,2), c_decimal_plain DECIMAL, c_decimal_long DECIMAL(65,30), c_decimal_unsigned DECIMAL(5,0) UNSIGNED,
  c_decimal_zerofill DECIMAL(8,3) ZEROFILL,
  c_float FLOAT, c_float_unsigned FLOAT UNSIGNED, c_float_digits FLOAT(7,2), c_double DOUBLE, c_double_unsigned DOUBLE UNSIGNED,
  c_double_digits DOUBLE(10,3), c_real REAL,
  c_bit1 BIT(1), c_bit8 BIT(8), c_bit64 BIT(64)
);
INSERT INTO numbers VALUES
 (1, -128, 0, FALSE, 0, -32768, 0, -8388608, 0, -2147483648, 0, 0, -9223372036854775808, 0,
  -99999999.99, -9999999999, -99999999999999999999999999999999999.999999999999999999999999999999, 0, 0,
  -3.40282e38, 0, -99999.99, -1.7976931348623157e308, 0, -9999999.999, 0, b'0', b'0', b'0'),
 (2, 127, 255, TRUE, 255, 32767, 65535, 8388607, 16777215, 2147483647, 4294967295, 999999, 9223372036854775807,
  18446744073709551615, 99999999.99, 9999999999, 99999999999999999999999999999999999.999999999999999999999999999999,
  99999, 99999.999, 3.40282e38, 3.40282e38, 99999.99, 1.7976931348623157e308, 1.7976931348623157e308, 9999999.999,
  2.2250738585072014e-308, b'1', b'11111111', 0xFFFFFFFFFFFFFFFF),
 (3, 1, 2, TRUE, 7, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12.30, 5, 0.000000000000000000000000000001, 14, 0.001, 1.5, 0.1,
  0.01, 0.1, 1e-300, 16.125, 1.1754943e-38, b'1', b'01000001', b'1010'),
 (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

CREATE TABLE times (
  id INT NOT NULL PRIMARY KEY,
  c_year YEAR, c_date DATE, c_time TIME, c_time3 TIME(3), c_time6 TIME(6), c_datetime DATETIME, c_datetime1 DATETIME(1),
  c_datetime6 DATETIME(6), c_timestamp TIMESTAMP NULL, c_timestamp6 TIMESTAMP(6) NULL,
  KEY by_day (c_date DESC, c_time), KEY by_moment (c_datetime6)
);
INSERT INTO times VALUES
 (1, 1901, '1000-01-01', '-838:59:59', '-838:59:59.000', '-838:59:58.999999', '1000-01-01 00:00:00', '1000-01-01 00:00:00.1',
  '1000-01-01 00:00:00.000001', '1970-01-01 00:00:01', '1970-01-01 00:00:01.000001'),
 (2, 2155, '9999-12-31', '838:59:59', '838:59:59.000', '838:59:58.999999', '9999-12-31 23:59:59', '9999-12-31 23:59:59.9',
  '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07', '2038-01-19 03:14:06.999999'),
 (3, 2024, '2024-02-29', '00:00:00', '-00:00:00.001', '12:34:56.789012', '2024-02-29 12:34:56', '2024-02-29 12:34:56.7',
  '2024-02-29 12:34:56.789012', '2024-10-27 02:30:00', '2024-03-31 02:30:00.5'),
 (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SET sql_mode = '';
INSERT INTO times VALUES
 (5, 0, '0000-00-00', '0:0:0', 0, 0, '0000-00-00 00:00:00', 0, 0, '0000-00-00 00:00:00', 0),
 (6, 2000, '2024-00-00', '23:59:60', 1, 1, '2024-01-00 00:00:00', '2024-00-00', '2024-00-00 01:02:03.000004', NULL, NULL);
SET sql_mode = DEFAULT;

CREATE TABLE texts (
  id SMALLINT UNSIGNED NOT NULL,
  c_char CHAR(10), c_char_none CHAR(0), c_varchar VARCHAR(40),
  c_latin1 VARCHAR(20) CHARACTER SET latin1, c_latin1_bin CHAR(5) CHARACTER SET latin1 COLLATE latin1_bin,
  c_ascii VARCHAR(20) CHARACTER SET ascii, c_utf8mb3 VARCHAR(20) CHARACTER SET utf8mb3,
  c_bin VARCHAR(20) COLLATE utf8mb4_bin, c_general VARCHAR(20) COLLATE utf8mb4_general_ci,
  c_unicode VARCHAR(20) COLLATE utf8mb4_unicode_ci, c_unicode_520 VARCHAR(20) COLLATE utf8mb4_unicode_520_ci,
  c_as_cs VARCHAR(20) COLLATE utf8mb4_0900_as_cs, c_0900_bin VARCHAR(20) COLLATE utf8mb4_0900_bin,
  c_spanish VARCHAR(20) COLLATE utf8mb4_spanish_ci,
  c_binary BINARY(8), c_varbinary VARBINARY(40),
  c_tinytext TINYTEXT, c_text TEXT, c_latin1_text TEXT CHARACTER SET latin1, c_mediumtext MEDIUMTEXT, c_longtext LONGTEXT,
  c_tinyblob TINYBLOB, c_blob BLOB, c_mediumblob MEDIUMBLOB, c_longblob LONGBLOB,
  c_enum ENUM('small', 'größer', 'x,y', 'it''s', ''), c_set SET('a', 'b', 'c d', 'ü') DEFAULT 'a,b',
  c_latin1_enum ENUM('é', 'f') CHARACTER SET latin1, c_json JSON,
  PRIMARY KEY (id), KEY by_prefix (c_text(20), c_blob(5) DESC), UNIQUE KEY by_name (c_varchar, c_bin)
) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
INSERT INTO texts VALUES
 (0, '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', 'f', '{}'),
 (65535, 'Zoë 😀', '', 'it''s "quoted" \\ and\nnew', 'Zoë €', 'ÿ\\''"', '~!@', 'Ωμέγα €', 'A', 'ß', 'ﬁ', '中', 'Á', '😀',
  'ñ', X'0001FF275C220A1A', X'00FF275C',
  REPEAT('é', 127), REPEAT('long ', 3000), REPEAT('ÿ', 300), REPEAT('中', 30000), REPEAT('y', 100000),
  REPEAT(X'00', 255), REPEAT(X'FF00', 30000), REPEAT(X'27', 70000), REPEAT(X'5C00', 50000),
  'x,y', 'a,c d,ü', 'é', '{"a": [1, 2.5, "x", null, true], "ü": {"b": "\\u0001"}}'),
 (3, 'ten chars!', '', '  spaces  ', 'ñ', 'a', '\t\r\n', 'ñ', 'a', 'ss', 'fi', 'm', 'a', 'z', 'll', 'A', 'B', 't', 'text',
  'l', 'm', 'l', 'b', 'blob', 'm', 'l', 'größer', 'b', 'f',
  '[9223372036854775807, 18446744073709551615, -1e-5, 1e300, "", "\\"\\\\/\\b\\f\\n\\r\\t", {"": {}}]'),
 (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

CREATE TABLE shapes (
  id INT NOT NULL PRIMARY KEY, c_geometry GEOMETRY, c_point POINT NOT NULL, c_line LINESTRING, c_polygon POLYGON,
  c_points MULTIPOINT, c_lines MULTILINESTRING, c_polygons MULTIPOLYGON, c_collection GEOMETRYCOLLECTION
);
INSERT INTO shapes VALUES
 (1, ST_GeomFromText('POINT(0.1 -0.1)'), ST_GeomFromText('POINT(1e300 -1e-300)'), ST_GeomFromText('LINESTRING(0 0,1 1,2 0)'),
  ST_GeomFromText('POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,1 2,2 2,1 1))'), ST_GeomFromText('MULTIPOINT(1 2,3 4)'),
  ST_GeomFromText('MULTILINESTRING((0 0,1 1),(2 2,3 3))'), ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)))'),
  ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(3 4,5 6))')),
 (2, NULL, ST_GeomFromText('POINT(0 0)', 3857), NULL, NULL, NULL, NULL, NULL, NULL);

CREATE TABLE options (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'the number; it''s "given" \\ by the server',
  a INT NOT NULL DEFAULT '7', b INT NOT NULL DEFAULT '-2' CHECK (b < 100), c VARCHAR(30) DEFAULT 'dö''f\\',
  sum_virtual INT GENERATED ALWAYS AS (a + b) VIRTUAL, sum_stored BIGINT GENERATED ALWAYS AS (a * b) STORED NOT NULL,
  text_virtual VARCHAR(60) GENERATED ALWAYS AS (CONCAT(c, '-', a)) VIRTUAL COMMENT 'c and a',
  part VARCHAR(20) GENERATED ALWAYS AS (JSON_UNQUOTE(JSON_EXTRACT(doc, '$.name'))) STORED,
  d_decimal DECIMAL(5,2) DEFAULT '1.50', d_double DOUBLE DEFAULT '0.1', d_bit BIT(4) DEFAULT b'101', d_year YEAR DEFAULT '1999',
  d_date DATE DEFAULT '2001-02-03', d_time TIME(2) DEFAULT '01:02:03.04', d_enum ENUM('x', 'y') DEFAULT 'y' NOT NULL,
  d_binary VARBINARY(10) DEFAULT 'bin', d_null INT DEFAULT NULL,
  e_number INT DEFAULT (1 + 2 * 3), e_text TEXT DEFAULT (REPEAT('x', 3)), e_blob BLOB DEFAULT ('blob'), e_uuid CHAR(36) DEFAULT (UUID()),
  e_column INT DEFAULT (a + 1), e_json JSON DEFAULT (JSON_ARRAY(1, 'two')), e_date DATE DEFAULT (CURRENT_DATE() + INTERVAL 1 DAY),
  made DATETIME DEFAULT CURRENT_TIMESTAMP, made6 TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  changed DATETIME(3) NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(3),
  changed_stamp TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  doc JSON,
  hidden INT DEFAULT '5' INVISIBLE, hidden_text VARCHAR(10) INVISIBLE,
  PRIMARY KEY (id), KEY by_sum (sum_virtual, sum_stored DESC), UNIQUE KEY by_part (part, id),
  KEY commented (c) COMMENT 'by ''c''', KEY functional ((a * 2), c), UNIQUE KEY hashed (a, b) USING HASH,
  CONSTRAINT positive CHECK (a > 0 AND b <> a OR c IS NULL), CONSTRAINT known CHECK (d_enum IN ('x', 'y')),
  CHECK (c NOT LIKE '%!%' OR LENGTH(c) BETWEEN 1 AND 20)
) AUTO_INCREMENT=1000 COMMENT='it''s "odd" \\ ; table';
INSERT INTO options (made, made6, changed_stamp) VALUES ('2020-01-01', '2020-01-01 00:00:00.123456', '2020-01-02');
INSERT INTO options (id, a, b, c, doc, hidden, hidden_text) VALUES (1, 10, 20, NULL, '{"name": "Zoë"}', NULL, 'deep');
INSERT INTO options (a, b, c, doc, e_number, e_text, e_blob, e_uuid, e_column, e_json, e_date)
  VALUES (3, 4, 'x', '{"name": "it''s"}', NULL, NULL, NULL, NULL, NULL, NULL, NULL), (5, -6, 'äöü', 'null', 1, '', X'00', '', 2, '[]', '2001-01-01');
UPDATE options SET d_null = 1, changed = '2021-05-06 07:08:09.123' WHERE a = 3;
INSERT INTO options (a, b, c) SELECT a + 10, b - 10, 'copy' FROM options WHERE a < 6;

-- Keys of other kinds: composite, text, bytes, decimal and temporal ones, none at all, and partitions.
CREATE TABLE composite (t VARCHAR(20) NOT NULL, n DECIMAL(6,2) NOT NULL, m DATETIME(2) NOT NULL, b VARBINARY(6) NOT NULL, v INT,
  PRIMARY KEY (t, n, m, b), KEY (v DESC));
INSERT INTO composite VALUES ('a', 1.5, '2020-01-01 00:00:00.25', X'00', 1), ('a', -1.5, '2020-01-01 00:00:00.25', X'00', 2),
 ('b', 0, '0001-01-01', X'FF00', 3), ('ä ', 9999.99, '2020-01-01', '', NULL), ('', 0, '2020-01-01', '', 5);
CREATE TABLE keyless (a INT, b TEXT);
INSERT INTO keyless VALUES (1, 'same'), (1, 'same'), (NULL, NULL), (2, 'ä');
CREATE TABLE partitioned (a INT NOT NULL, b CHAR(4) NOT NULL, v DOUBLE, PRIMARY KEY (a, b), KEY (v)) PARTITION BY KEY (a) PARTITIONS 4;
INSERT INTO partitioned VALUES (1, 'x', 0.1), (2, 'x', 0), (3, 'y', 1e10), (4, 'y', NULL), (5, 'z', 5), (5, 'w', 6);
CREATE TABLE hashed (id INT NOT NULL, v INT, PRIMARY KEY (id) USING HASH, UNIQUE KEY v (v) USING HASH) COMMENT='keys by hash';
INSERT INTO hashed VALUES (1, 2), (2, 1), (3, NULL), (4, NULL);
CREATE TABLE numbered (id INT NOT NULL AUTO_INCREMENT, PRIMARY KEY (id)) AUTO_INCREMENT=77;
CREATE TABLE `select` (`from` INT NOT NULL, `äöü 表` VARCHAR(20) DEFAULT 'dö''f\\', `a.b` INT DEFAULT '-5', ` lead``` DOUBLE DEFAULT '0.1',
  PRIMARY KEY (`from`), KEY `we``ird 'key' ä` (`a.b`));
INSERT INTO `select` VALUES (1, 'x', 2, 1e10), (2, DEFAULT, 3, 0), (3, NULL, DEFAULT, DEFAULT);
CREATE TABLE latin1_table (id INT NOT NULL PRIMARY KEY, name VARCHAR(10), other VARCHAR(10) CHARACTER SET utf8mb4)
  DEFAULT CHARSET=latin1;
INSERT INTO latin1_table VALUES (1, 'Zoë €', '中'), (2, 'ÿ', 'ÿ');

CREATE TABLE general (id SERIAL, PRIMARY KEY (id), name CHAR(5) NOT NULL DEFAULT 'ä', kind ENUM('it''s', 'b\\c', '"') NOT NULL DEFAULT 'b\\c',
  flags SET('x', 'y z') NOT NULL DEFAULT '', b BINARY(3) NOT NULL DEFAULT 'abc', long_text VARCHAR(15000) NOT NULL,
  UNIQUE KEY by_name (name(2), kind), KEY by_flags (flags, long_text(100)))
  DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci COMMENT='größer 中';
INSERT INTO general (name, kind, flags, long_text) VALUES ('a', 'it''s', 'x,y z', REPEAT('😀', 15000)), ('ä ', '"', 'x', ' ');
INSERT INTO general (long_text) VALUES ('''\\"\n\0\Z%_');
CREATE TABLE alone (id SERIAL, v INT) COMMENT='no primary key';
INSERT INTO alone (v) VALUES (1), (2);
INSERT INTO alone VALUES (10, 3), (7, 4);
CREATE TABLE only_ascii (id INT NOT NULL PRIMARY KEY, v VARCHAR(10) DEFAULT 'v') DEFAULT CHARSET=ascii;
INSERT INTO only_ascii VALUES (-1, '~'), (0, DEFAULT);

-- Foreign keys of every action, to a table that a dump has later, to unique keys, and to the own table.
CREATE TABLE z_parent (id INT NOT NULL PRIMARY KEY, code VARCHAR(10), x INT, y INT, UNIQUE KEY (code), UNIQUE KEY (x, y));
CREATE TABLE a_child (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, parent INT, code VARCHAR(10), self INT, x INT, y INT, strict INT,
  KEY (parent),
  CONSTRAINT `f ``1` FOREIGN KEY (parent) REFERENCES z_parent (id) ON DELETE CASCADE ON UPDATE SET NULL,
  CONSTRAINT by_code FOREIGN KEY (code) REFERENCES z_parent (code) ON DELETE SET NULL ON UPDATE CASCADE,
  CONSTRAINT own FOREIGN KEY (self) REFERENCES a_child (id) ON DELETE NO ACTION,
  CONSTRAINT two FOREIGN KEY (x, y) REFERENCES z_parent (x, y),
  CONSTRAINT strict FOREIGN KEY (strict) REFERENCES z_parent (id) ON DELETE RESTRICT ON UPDATE RESTRICT);
INSERT INTO z_parent VALUES (1, 'one', 1, 1), (2, 'zwei', 1, 2), (3, NULL, NULL, NULL);
INSERT INTO a_child VALUES (1, 1, 'ONE', NULL, 1, 1, 1), (2, 1, 'zwei', 1, 1, 2, 2), (3, NULL, NULL, 3, NULL, 1, NULL), (4, 2, NULL, 2, NULL, NULL, 3);

CREATE VIEW plain AS SELECT id, code FROM z_parent WHERE id < 3;
CREATE VIEW renamed (first, `second ä`) AS SELECT id + 1, CONCAT(code, '-', x) FROM z_parent;
CREATE SQL SECURITY INVOKER VIEW checked AS SELECT id, x, y FROM z_parent WHERE x = 1 WITH CASCADED CHECK OPTION;
CREATE VIEW joined AS SELECT c.id, p.code, COUNT(*) AS n FROM a_child c LEFT JOIN z_parent p ON c.parent = p.id GROUP BY c.id, p.code;
CREATE VIEW a_view_of_views AS SELECT p.id, r.`second ä` FROM plain p JOIN renamed r ON r.first = p.id + 1 ORDER BY p.id;
CREATE VIEW every_kind AS SELECT CASE WHEN a > 5 THEN 'big' ELSE 'small' END AS size, CAST(b AS CHAR(10)) AS b, IFNULL(c, 'none') AS c,
  a IN (1, 2, 3) AS is_small, (SELECT MAX(x) FROM z_parent) AS most FROM options WHERE c IS NULL OR EXISTS (SELECT 1 FROM z_parent WHERE z_parent.id = options.b - 3);
CREATE VIEW united AS SELECT id FROM z_parent UNION SELECT id FROM a_child;
-- A dump makes views in the order of their names, and CHECK OPTION needs the other view before.
CREATE VIEW plain_checked AS SELECT id, code FROM plain WHERE code <> 'it''s \\ "ä"' WITH LOCAL CHECK OPTION;
CREATE VIEW windowed AS SELECT id, a, ROW_NUMBER() OVER (PARTITION BY a > 5 ORDER BY a, id) AS place, SUM(b) OVER w AS total FROM options WINDOW w AS (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW);
CREATE VIEW with_query AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i, i DIV 2 AS half, i MOD 2 AS odd FROM n;
CREATE VIEW moments AS SELECT id, DATE_ADD(c_datetime, INTERVAL '1:30' MINUTE_SECOND) AS later, EXTRACT(YEAR FROM c_date) AS y, DATE_FORMAT(c_date, '%Y/%m/%d') AS shown, c_time6 FROM times WHERE c_date BETWEEN '1000-01-01' AND '2100-01-01';
CREATE ALGORITHM=TEMPTABLE VIEW distinct_rows AS SELECT DISTINCT a, b FROM keyless WHERE a IS NOT NULL OR b LIKE '%!_%' ESCAPE '!' ORDER BY a DESC LIMIT 10;
