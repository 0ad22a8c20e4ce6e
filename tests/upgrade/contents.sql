-- What a data directory of tests/upgrade has when its checkpoint is written. Never change this file: the
-- directories of old releases were made with it.
CREATE DATABASE shop;
CREATE DATABASE other;
CREATE TABLE other.gone (id INT PRIMARY KEY);
INSERT INTO other.gone VALUES (1), (2);
CREATE TABLE shop.item (
  id INT AUTO_INCREMENT PRIMARY KEY,
  code BIGINT UNSIGNED UNIQUE,
  tiny TINYINT,
  weight DOUBLE,
  letter CHAR(3),
  name VARCHAR(60),
  exact VARCHAR(60) COLLATE utf8mb4_bin,
  note MEDIUMTEXT,
  KEY by_name (name, tiny),
  KEY by_weight (weight)
);
CREATE TABLE shop.sale (
  id BIGINT PRIMARY KEY,
  item INT,
  amount INT NOT NULL DEFAULT 7,
  KEY (item),
  FOREIGN KEY (item) REFERENCES shop.item (id) ON DELETE CASCADE
);
CREATE TABLE shop.pair (a INT, b VARCHAR(20), n INT, PRIMARY KEY (a, b)) PARTITION BY KEY (a) PARTITIONS 3;
CREATE TABLE shop.counter (id INT AUTO_INCREMENT PRIMARY KEY, n INT);
CREATE TABLE shop.emptied (id INT PRIMARY KEY, n INT, KEY (n));
INSERT INTO shop.item (code, tiny, weight, letter, name, exact, note) VALUES
  (18446744073709551615, -128, -1.5e300, 'abc', 'cup', 'Cup', 'first'),
  (0, 127, 0.1, 'x', 'Äpfel', 'äpfel', ''),
  (3, NULL, NULL, NULL, NULL, NULL, NULL),
  (NULL, 0, 2.5, '', '', '', 'short');
INSERT INTO shop.item (code, tiny, weight, letter, name, exact, note)
  SELECT 1000 + id, tiny, weight, 'ins', CONCAT('copy ', id), exact, NULL FROM shop.item;
INSERT INTO shop.pair VALUES (1, 'a', 0), (1, 'b', 1), (1, 'c', 2), (2, 'a', 3), (2, 'b', 4), (2, 'c', 5), (3, 'a', 6), (3, 'b', 7);
INSERT INTO shop.pair SELECT a + 10, b, n + 10 FROM shop.pair;
INSERT INTO shop.pair SELECT a + 20, b, n + 20 FROM shop.pair;
INSERT INTO shop.pair SELECT a + 100, b, n + 100 FROM shop.pair;
INSERT INTO shop.pair SELECT a + 200, b, n + 200 FROM shop.pair;
INSERT INTO shop.pair SELECT a + 400, b, n + 400 FROM shop.pair;
INSERT INTO shop.sale SELECT a * 10 + n, 1 + n % 8, n FROM shop.pair WHERE b = 'a';
INSERT INTO shop.counter (n) VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10);
DELETE FROM shop.counter WHERE id > 5;
INSERT INTO shop.emptied SELECT a * 100 + n, n FROM shop.pair WHERE b = 'b';
-- At the end, because this long row makes a checkpoint begin.
UPDATE shop.item SET note = REPEAT('long ', 60000) WHERE id = 4;
