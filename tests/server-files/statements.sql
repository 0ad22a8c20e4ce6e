CREATE DATABASE f;
USE f;
SET sql_mode = 'STRICT_TRANS_TABLES';
CREATE TABLE types (id INT PRIMARY KEY, i TINYINT, u BIGINT UNSIGNED, d DECIMAL(20,4), f FLOAT, g DOUBLE, b BIT(9),
    y YEAR, da DATE, ti TIME(3), ts TIMESTAMP(6) NULL, dt DATETIME(2), c CHAR(10), v VARCHAR(100), bi BINARY(4),
    vb VARBINARY(50), t TEXT, bl BLOB, e ENUM('a','b,c'), s SET('x','y'), j JSON) CHARACTER SET utf8mb4;
INSERT INTO types VALUES (1, -128, 18446744073709551615, -1234567890123456.7891, 1.5, -2.25e100, b'101010101',
    2155, '9999-12-31', '-838:59:58.999', '2020-02-29 12:34:56.123456', '0001-01-01 00:00:00.99', 'char', 'é€😀',
    'ab', 'a,b', 'a\tb\nc\\d"e''f', 'x\0y\Zz', 'b,c', 'x,y', '{"a": [1, "b"]}');
INSERT INTO types (id) VALUES (2);
INSERT INTO types VALUES (3, 0, 0, 0, 0, 0, b'1', 1901, '2000-01-01', '0', '1970-01-02 00:00:00', '2000-01-01', '', '',
    '', '', '', '', 'a', '', '[]');
INSERT INTO types VALUES (4, 1, 1, 1, 1, 1, b'1', 2000, '2000-01-01', '1:00', '1990-01-01 00:00:00', '2000-01-01',
    'NULL', '\\N', '"', '""', ',"', '\\"\n,', 'a', 'x', '"\\\\\\""');
CREATE TABLE copy LIKE types;
SELECT * FROM types ORDER BY id INTO OUTFILE 'DIR/tabs' CHARACTER SET utf8mb4;
SELECT ROW_COUNT();
LOAD DATA INFILE 'DIR/tabs' INTO TABLE copy CHARACTER SET utf8mb4;
SELECT ROW_COUNT();
SELECT * FROM copy ORDER BY id INTO OUTFILE 'DIR/tabs.copy' CHARACTER SET utf8mb4;
DELETE FROM copy;
SELECT * FROM types ORDER BY id INTO OUTFILE 'DIR/csv' CHARACTER SET utf8mb4
    FIELDS TERMINATED BY ',' ENCLOSED BY '"' LINES TERMINATED BY '\r\n';
LOAD DATA INFILE 'DIR/csv' INTO TABLE copy CHARACTER SET utf8mb4
    FIELDS TERMINATED BY ',' ENCLOSED BY '"' LINES TERMINATED BY '\r\n';
SELECT * FROM copy ORDER BY id INTO OUTFILE 'DIR/csv.copy' CHARACTER SET utf8mb4
    FIELDS TERMINATED BY ',' ENCLOSED BY '"' LINES TERMINATED BY '\r\n';
DELETE FROM copy;
SELECT * FROM types ORDER BY id INTO OUTFILE 'DIR/optional' CHARACTER SET utf8mb4
    FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY '!' LINES STARTING BY '>';
LOAD DATA INFILE 'DIR/optional' INTO TABLE copy CHARACTER SET utf8mb4
    FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY '!' LINES STARTING BY '>';
SELECT * FROM copy ORDER BY id INTO OUTFILE 'DIR/optional.copy' CHARACTER SET utf8mb4
    FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY '!' LINES STARTING BY '>';
SELECT * FROM types ORDER BY id INTO OUTFILE 'DIR/doubled' CHARACTER SET utf8mb4
    FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY '"';
SELECT id, v, bi, t, e, s FROM types WHERE id <> 4 ORDER BY id INTO OUTFILE 'DIR/plain' FIELDS ESCAPED BY '';
SELECT id, d, t, i FROM types ORDER BY id INTO OUTFILE 'DIR/letter' FIELDS TERMINATED BY 'n';
SELECT id, u, v FROM types ORDER BY id INTO OUTFILE 'DIR/digit' FIELDS TERMINATED BY '1';
SELECT id, u, v FROM types ORDER BY id INTO OUTFILE 'DIR/digits' FIELDS TERMINATED BY ',' ENCLOSED BY '1';
SELECT id, u, v FROM types ORDER BY id INTO OUTFILE 'DIR/long' FIELDS TERMINATED BY '||' LINES TERMINATED BY '\n--\n';
SELECT id, v FROM types ORDER BY id INTO OUTFILE 'DIR/unended' LINES TERMINATED BY '';
SELECT id, v FROM types ORDER BY id INTO OUTFILE 'DIR/latin1' CHARACTER SET latin1;
CREATE TABLE texts (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET latin1, w VARCHAR(20) CHARACTER SET utf8mb4);
INSERT INTO texts VALUES (1, 'Zoë ÿ', 'Zoë ÿ');
SELECT * FROM texts INTO OUTFILE 'DIR/own';
SELECT * FROM types WHERE 1 = 0 INTO OUTFILE 'DIR/empty';
SELECT * INTO OUTFILE 'DIR/front' FROM types WHERE id < 3 ORDER BY id DESC;
SELECT id FROM types UNION ALL SELECT 7 INTO OUTFILE 'DIR/union';
SELECT COUNT(*), SUM(d), MAX(u) FROM types INTO OUTFILE 'DIR/sum';
SELECT 1 + 1, NULL, 'x', 1.50, 2e0, DATE'2000-01-01' INTO OUTFILE 'DIR/computed' FIELDS OPTIONALLY ENCLOSED BY '"';
PREPARE s FROM 'SELECT id, ? FROM types ORDER BY id LIMIT 2 INTO OUTFILE ''DIR/prepared''';
SET @v = 'tab	';
EXECUTE s USING @v;
SELECT v, NULL, bl, i FROM types WHERE id = 1 INTO DUMPFILE 'DIR/dump';
SELECT ROW_COUNT();
SELECT bl FROM types WHERE 1 = 0 INTO DUMPFILE 'DIR/nothing';
SELECT id FROM types INTO OUTFILE 'DIR/tabs';
SELECT id FROM types INTO OUTFILE 'DIR/../x';
SELECT id FROM types INTO OUTFILE '/tmp/junctor-outside';
SELECT id FROM types INTO OUTFILE 'DIR/wrong' FIELDS ENCLOSED BY 'ab';
SELECT id FROM types INTO OUTFILE 'DIR/wrong' CHARACTER SET klingon;
SELECT (SELECT id FROM types) INTO OUTFILE 'DIR/failed';
SELECT id FROM missing INTO OUTFILE 'DIR/failed';
DELETE FROM copy;
LOAD DATA INFILE 'DIR/missing' INTO TABLE copy;
LOAD DATA INFILE '/etc/passwd' INTO TABLE copy;
LOAD DATA INFILE 'DIR/../x' INTO TABLE copy;
CREATE TABLE pairs (a INT PRIMARY KEY, b VARCHAR(10) NOT NULL);
SELECT '1\ta\n2\tb\n2\tc\n3' INTO DUMPFILE 'DIR/pairs';
LOAD DATA INFILE 'DIR/pairs' INTO TABLE pairs;
SELECT COUNT(*) FROM pairs;
LOAD DATA INFILE 'DIR/pairs' IGNORE INTO TABLE pairs;
SELECT * FROM pairs ORDER BY a;
LOAD DATA INFILE 'DIR/pairs' REPLACE INTO TABLE pairs (a, @b) SET b = CONCAT(UPPER(@b), a);
LOAD DATA INFILE 'DIR/pairs' REPLACE INTO TABLE pairs IGNORE 1 LINES (a, @b) SET b = CONCAT(UPPER(IFNULL(@b, '-')), a);
SELECT ROW_COUNT();
SELECT * FROM pairs ORDER BY a;
SELECT 'x\ty\n' INTO DUMPFILE 'DIR/bad';
LOAD DATA INFILE 'DIR/bad' INTO TABLE pairs;
SELECT HEX(LOAD_FILE('DIR/dump')) a, LENGTH(LOAD_FILE('DIR/csv')) b, LOAD_FILE('DIR/nothing') c;
SELECT LOAD_FILE('DIR/missing') a, LOAD_FILE('/etc/passwd') b, LOAD_FILE('DIR/../x') c, LOAD_FILE(NULL) d, LOAD_FILE('DIR') e;
CREATE TABLE blobs (id INT PRIMARY KEY, content LONGBLOB);
INSERT INTO blobs VALUES (1, LOAD_FILE('DIR/dump')), (2, LOAD_FILE(CONCAT('DIR/', 'pairs')));
UPDATE blobs SET content = CONCAT(LOAD_FILE('DIR/pairs'), '!') WHERE id = 2;
SELECT id, HEX(content) FROM blobs ORDER BY id;
SELECT id FROM blobs WHERE content = LOAD_FILE('DIR/dump');
PREPARE l FROM 'SELECT HEX(LOAD_FILE(?))';
SET @f = 'DIR/pairs';
EXECUTE l USING @f;
SET @c = LOAD_FILE(@f);
SELECT HEX(@c);
CREATE VIEW loaded AS SELECT LENGTH(LOAD_FILE('DIR/pairs')) AS n;
SELECT n FROM loaded;
-- Rows of a fixed size.
SELECT id, i, u, d, f, g, b, y, da, ti, ts, dt, c, v, bi, vb, t, e, s FROM types ORDER BY id
    INTO OUTFILE 'DIR/fixed' FIELDS TERMINATED BY '' ENCLOSED BY '';
SELECT id, c, v FROM types ORDER BY id INTO OUTFILE 'DIR/fixed.endless' FIELDS TERMINATED BY '' ESCAPED BY ''
    LINES TERMINATED BY '' STARTING BY '>';
SELECT * FROM texts INTO OUTFILE 'DIR/fixed.own' FIELDS TERMINATED BY '';
SELECT * FROM texts INTO OUTFILE 'DIR/fixed.latin1' CHARACTER SET latin1 FIELDS TERMINATED BY '';
SELECT 1 + 1, NULL, 'x', 1.50, DATE'2000-01-01', CONCAT('a', 'é') INTO OUTFILE 'DIR/fixed.computed'
    FIELDS TERMINATED BY '';
SELECT id, content, 'x' FROM blobs ORDER BY id INTO OUTFILE 'DIR/fixed.long' FIELDS TERMINATED BY '';
CREATE TABLE fixed (id INT PRIMARY KEY, u BIGINT UNSIGNED, d DECIMAL(20,4), y YEAR, da DATE, ti TIME(3),
    dt DATETIME(2), c CHAR(10), v VARCHAR(30), vb VARBINARY(5), e ENUM('a','b,c'), s SET('x','y'))
    CHARACTER SET utf8mb4;
INSERT INTO fixed SELECT id, u, d, y, da, ti, dt, c, v, 'ab', e, s FROM types WHERE id <> 2;
SELECT * FROM fixed ORDER BY id INTO OUTFILE 'DIR/fixed.table' FIELDS TERMINATED BY '';
CREATE TABLE fixed_copy LIKE fixed;
LOAD DATA INFILE 'DIR/fixed.table' INTO TABLE fixed_copy CHARACTER SET utf8mb4 FIELDS TERMINATED BY '';
SELECT id, u, d, y, da, ti, dt, c, TRIM(v), LENGTH(v), HEX(vb), e, s FROM fixed_copy ORDER BY id;
DELETE FROM fixed_copy;
LOAD DATA INFILE 'DIR/fixed.table' INTO TABLE fixed_copy CHARACTER SET utf8mb4 FIELDS TERMINATED BY '' IGNORE 2 LINES;
SELECT id FROM fixed_copy;
CREATE TABLE narrow (a CHAR(3), b INT NOT NULL, c VARCHAR(2)) CHARACTER SET latin1;
SELECT 'abc         12xyabd         13\nabe\nabf         14xyz\n\n' INTO DUMPFILE 'DIR/narrow';
LOAD DATA INFILE 'DIR/narrow' IGNORE INTO TABLE narrow FIELDS TERMINATED BY '';
SELECT * FROM narrow ORDER BY a;
LOAD DATA INFILE 'DIR/narrow' INTO TABLE narrow FIELDS TERMINATED BY '';
DELETE FROM narrow;
SELECT 'abc         12xyabd         13zzabe         14' INTO DUMPFILE 'DIR/endless';
LOAD DATA INFILE 'DIR/endless' IGNORE INTO TABLE narrow FIELDS TERMINATED BY '' LINES TERMINATED BY '' IGNORE 1 LINES
    SET a = UPPER(a);
SELECT * FROM narrow ORDER BY a;
LOAD DATA INFILE 'DIR/endless' INTO TABLE narrow FIELDS TERMINATED BY '' (a, @b);
LOAD DATA INFILE 'DIR/endless' INTO TABLE blobs FIELDS TERMINATED BY '' LINES TERMINATED BY '';
-- SET of an AUTO_INCREMENT column, and INSERT of such a value that is computed from others.
CREATE TABLE numbered (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(10), w INT);
SELECT '20\ta\n\\N\tb\n0\tc\n5\td\n' INTO DUMPFILE 'DIR/numbers';
LOAD DATA INFILE 'DIR/numbers' INTO TABLE numbered (@n, v) SET id = @n * 10, w = id + 1;
SELECT LAST_INSERT_ID();
SELECT * FROM numbered ORDER BY id;
LOAD DATA INFILE 'DIR/numbers' INTO TABLE numbered (w, v) SET id = NULLIF(w, 5) + 1000;
SELECT * FROM numbered ORDER BY id;
LOAD DATA INFILE 'DIR/numbers' REPLACE INTO TABLE numbered (id, v) SET id = NULL;
SELECT COUNT(*), COUNT(DISTINCT id), MIN(id) FROM numbered;
INSERT INTO numbered (v) VALUES ('last');
SELECT id > 1020 FROM numbered WHERE v = 'last';
LOAD DATA INFILE 'DIR/numbers' INTO TABLE numbered (@n, v) SET id = 3;
SELECT COUNT(*) FROM numbered;
INSERT INTO numbered (v, w, id) VALUES ('5', 2000, w + v), ('x', 2001, NULLIF(w, 2001)), ('7', 3000, w + v);
SELECT v, w, id > 2005 FROM numbered WHERE w >= 2000 ORDER BY v;
INSERT INTO numbered SET w = 4000, id = w, v = id;
SELECT * FROM numbered WHERE w = 4000;
-- LOAD XML: the three forms of a row, entities, NULL, another name of rows, skipped rows, variables.
CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(20), note VARCHAR(40) NOT NULL DEFAULT 'none', created INT DEFAULT 7);
SELECT '<?xml version="1.0"?>\n<list>\n<row id="1" name="Ann" note="a&amp;b"/>\n<row id=''2'' name="O''Neil" note="&lt;&quot;&gt;&apos;"></row>\n</list>'
    INTO DUMPFILE 'DIR/attributes.xml';
SELECT '<list><row>\n<id>3</id><name>Bob\nBee</name><note>x</note><created>9</created></row>\n<row><id>4</id><note>é€😀</note></row></list>'
    INTO DUMPFILE 'DIR/elements.xml';
SELECT '<resultset><row><field name="id">5</field>\n\t<field name=''name''>Cy</field><field name="note">y</field></row><row><field name="id">6</field><field name="name" xsi:nil="true" /><field name="note">z</field></row></resultset>'
    INTO DUMPFILE 'DIR/fields.xml';
SELECT '<list><!-- <person id="90"/> --><row id="91"/><person id="7" note="n"><name>Di</name></person><person><id>8</id><field name="note">m</field></person><person id="9" note="l"/></list>'
    INTO DUMPFILE 'DIR/people.xml';
LOAD XML INFILE 'DIR/attributes.xml' INTO TABLE people CHARACTER SET utf8mb4;
SHOW WARNINGS;
LOAD XML INFILE 'DIR/elements.xml' INTO TABLE people CHARACTER SET utf8mb4 ROWS IDENTIFIED BY '<row>';
SHOW WARNINGS;
LOAD XML INFILE 'DIR/fields.xml' INTO TABLE people CHARACTER SET utf8mb4;
SHOW WARNINGS;
LOAD XML INFILE 'DIR/people.xml' INTO TABLE people CHARACTER SET utf8mb4 ROWS IDENTIFIED BY '<person>' IGNORE 1 ROWS (id, @name, note)
    SET name = CONCAT(@name, '!'), created = id + 1;
SHOW WARNINGS;
SELECT * FROM people ORDER BY id;
LOAD XML INFILE 'DIR/attributes.xml' INTO TABLE people CHARACTER SET utf8mb4;
LOAD XML INFILE 'DIR/attributes.xml' IGNORE INTO TABLE people CHARACTER SET utf8mb4 (name, id, note);
LOAD XML INFILE 'DIR/attributes.xml' REPLACE INTO TABLE people CHARACTER SET utf8mb4 (id, note);
SELECT * FROM people ORDER BY id;
LOAD XML INFILE 'DIR/absent.xml' INTO TABLE people;
DELETE FROM people;
SET sql_mode = '';
LOAD XML CONCURRENT INFILE 'DIR/people.xml' INTO TABLE people CHARACTER SET utf8mb4 ROWS IDENTIFIED BY '<row>';
SHOW WARNINGS;
SELECT * FROM people ORDER BY id;
SET sql_mode = 'STRICT_TRANS_TABLES';
-- Values of SET with subqueries and assignments of user variables.
CREATE TABLE lookup (id INT PRIMARY KEY, name VARCHAR(10), UNIQUE KEY (name));
INSERT INTO lookup VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'A2');
CREATE TABLE target (id INT PRIMARY KEY, k INT, v VARCHAR(20), n INT DEFAULT 7);
SELECT '1\ta\n2\tb\n3\tx\n4\tc\n' INTO DUMPFILE 'DIR/names';
LOAD DATA INFILE 'DIR/names' INTO TABLE target (id, @v) SET k = (SELECT id FROM lookup WHERE name = @v), v = @v;
SELECT * FROM target ORDER BY id;
DELETE FROM target;
LOAD DATA INFILE 'DIR/names' INTO TABLE target (id, v) SET k = (SELECT l.id FROM lookup l WHERE l.name = target.v), n = (SELECT COUNT(*) FROM lookup) + k;
SELECT * FROM target ORDER BY id;
DELETE FROM target;
SET @x = 10;
LOAD DATA INFILE 'DIR/names' INTO TABLE target (id, v) SET k = (@x := @x + id), n = @x * 2;
SELECT * FROM target ORDER BY id;
SELECT @x;
DELETE FROM target;
SET @x = NULL;
LOAD DATA INFILE 'DIR/names' INTO TABLE target (id, @v) SET v = CONCAT((@v := UPPER(@v)), '!'), n = LENGTH(@v), k = LENGTH(@v) + id;
SELECT * FROM target ORDER BY id;
SELECT @v;
DELETE FROM target;
-- An assignment that reads what another assigns.
LOAD DATA INFILE 'DIR/names' INTO TABLE target (id, v) SET k = (SELECT l.id FROM lookup l WHERE l.name = v), n = (SELECT COUNT(*) FROM lookup WHERE id <= k), v = (SELECT name FROM lookup WHERE id = n);
SELECT * FROM target ORDER BY id;
-- Existing keys.
LOAD DATA INFILE 'DIR/names' INTO TABLE target (id, v) SET k = (SELECT 1);
LOAD DATA INFILE 'DIR/names' IGNORE INTO TABLE target (id, v) SET k = (SELECT 1);
LOAD DATA INFILE 'DIR/names' REPLACE INTO TABLE target (id, v) SET k = (SELECT 1), n = EXISTS (SELECT 1 FROM lookup WHERE name = v);
SELECT * FROM target ORDER BY id;
-- The table itself, several rows, values that do not fit.
LOAD DATA INFILE 'DIR/names' REPLACE INTO TABLE target (id, v) SET k = (SELECT MAX(id) FROM target);
LOAD DATA INFILE 'DIR/names' REPLACE INTO TABLE target (id, v) SET k = (SELECT id FROM lookup);
LOAD DATA INFILE 'DIR/names' REPLACE INTO TABLE target (id, v) SET k = (SELECT name FROM lookup WHERE id = target.id);
LOAD DATA INFILE 'DIR/names' IGNORE INTO TABLE target (@i, v) SET id = @i + 10, k = (SELECT name FROM lookup WHERE id = @i);
SELECT * FROM target ORDER BY id;
SET sql_mode = '';
LOAD DATA INFILE 'DIR/names' INTO TABLE target (@i, v) SET id = @i + 20, k = (SELECT name FROM lookup WHERE id = @i);
SELECT * FROM target ORDER BY id;
SET sql_mode = 'STRICT_TRANS_TABLES';
LOAD DATA INFILE 'DIR/names' REPLACE INTO TABLE target (id, v) SET k = (SELECT nothing FROM lookup);
LOAD DATA INFILE 'DIR/names' REPLACE INTO TABLE target (id, v) SET id = id + 1000 * (SELECT COUNT(*) FROM lookup WHERE id < 3), k = id IN (SELECT id + 2000 FROM lookup);
SELECT * FROM target WHERE id > 1000 ORDER BY id;
-- AUTO_INCREMENT, generated columns.
CREATE TABLE g (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT AS (a * 2), c VARCHAR(10));
LOAD DATA INFILE 'DIR/names' INTO TABLE g (@i, c) SET a = (SELECT id FROM lookup WHERE name = c);
LOAD DATA INFILE 'DIR/names' INTO TABLE g (@i, c) SET id = @i + (SELECT 100);
SELECT * FROM g ORDER BY id;
CREATE VIEW gv AS SELECT c AS cc, id AS ii, a AS aa FROM g;
SELECT '1\t501\n2\t502\n' INTO DUMPFILE 'DIR/two';
SET @y = 77, @n = 0;
LOAD DATA INFILE 'DIR/two' INTO TABLE gv (cc, ii) SET aa = @y;
SELECT * FROM g WHERE id > 500 ORDER BY id;
SELECT '1\t601\t5\n2\t602\t6\n' INTO DUMPFILE 'DIR/three';
LOAD DATA INFILE 'DIR/three' INTO TABLE gv SET aa = @y + 1;
SELECT * FROM g WHERE id > 600 ORDER BY id;
-- LOAD XML.
SELECT '<l><row id="801" c="a"/><row id="802" c="b"/></l>' INTO DUMPFILE 'DIR/set.xml';
LOAD XML INFILE 'DIR/set.xml' INTO TABLE g (id, c) SET a = (SELECT id FROM lookup WHERE name = c) + (@n := @n + 1);
SELECT * FROM g WHERE id > 800 ORDER BY id;
SELECT @n;
