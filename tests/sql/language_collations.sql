-- Collations of languages with letters of several characters, other scripts, and three levels.
-- not recorded: MariaDB does not have them.
DROP DATABASE IF EXISTS language_collations;
CREATE DATABASE language_collations;
USE language_collations;
CREATE TABLE cs (w VARCHAR(20) COLLATE utf8mb4_cs_0900_ai_ci, KEY (w));
INSERT INTO cs VALUES ('chata'), ('cibule'), ('hrad'), ('Chalupa'), ('ikona'), ('čaj'), ('dub'), ('hz'), ('CHyba');
SELECT w FROM cs ORDER BY w;
SELECT w FROM cs WHERE w LIKE 'ch%' ORDER BY w;
SELECT w FROM cs WHERE w LIKE 'c%' ORDER BY w;
SELECT w FROM cs WHERE w > 'hz' ORDER BY w;
SELECT w FROM cs WHERE w BETWEEN 'ch' AND 'chb' ORDER BY w;
SELECT MIN(w), MAX(w) FROM cs;
CREATE TABLE hu (w VARCHAR(20) COLLATE utf8mb4_hu_0900_as_cs UNIQUE);
INSERT INTO hu VALUES ('cukor'), ('csak'), ('csuk'), ('Csak'), ('dzsem'), ('dzadza'), ('duna'), ('öt'), ('ot'), ('őt');
SELECT w FROM hu ORDER BY w;
CREATE TABLE ru (w VARCHAR(20) COLLATE utf8mb4_ru_0900_ai_ci PRIMARY KEY);
INSERT INTO ru VALUES ('apple'), ('яблоко'), ('арбуз'), ('9'), ('Ёж'), ('еда');
SELECT w FROM ru ORDER BY w;
INSERT INTO ru VALUES ('АРБУЗ');
SELECT w FROM (SELECT 'aa' COLLATE utf8mb4_da_0900_as_cs AS w UNION SELECT 'Å' UNION SELECT 'z' UNION SELECT 'å' UNION SELECT 'AA') AS d ORDER BY w;
SELECT 'dž' COLLATE utf8mb4_hr_0900_ai_ci = 'ǆ' AS a, 'dž' COLLATE utf8mb4_hr_0900_as_cs = 'ǆ' AS b, 'ccs' COLLATE utf8mb4_hu_0900_ai_ci = 'cscs' AS c;
SHOW COLLATION LIKE 'utf8mb4_cs%';
SELECT 'a' COLLATE utf8mb4_ja_0900_as_cs;
DROP DATABASE language_collations;
