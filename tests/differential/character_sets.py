"""Compares character sets and collations of two servers: every shared collation with random texts in tables,
keys, LIKE, grouping and DISTINCT, the operations between columns of different sets, and clients of each set.

    python3 character_sets.py --junctor PORT --mariadb PORT [--seed N] [--rows N] [--sample N] [--only STEP]

The steps are collations, languages, stores and mixtures; the last one runs only if it is named. Requires PyMySQL."""

import argparse
import random
import sys

import pymysql

from outcome import DEPRECATED

COLLATIONS = [
    "utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci",
    "utf8mb3_general_ci", "utf8mb3_bin", "utf8mb3_unicode_ci", "utf8mb3_unicode_520_ci",
    "latin1_swedish_ci", "latin1_german1_ci", "latin1_german2_ci", "latin1_danish_ci", "latin1_spanish_ci",
    "latin1_general_ci", "latin1_general_cs", "latin1_bin", "ascii_general_ci", "ascii_bin", "binary",
    # Those of languages, as far as MariaDB 10.11 has them: none over Unicode 9.0.
    *(f"utf8mb4_{language}_ci" for language in [
        "esperanto", "estonian", "german2", "icelandic", "latvian", "polish", "roman", "romanian", "sinhala",
        "slovenian", "spanish", "swedish", "turkish", "vietnamese",
    ]),
]
SETS = ["utf8mb4", "utf8mb3", "latin1", "ascii", "binary"]
LETTERS = {
    "ascii": " aAbBsSzZ_%\\\t\x1f~0",
    "latin1": " aAbBsSzZ_%\täÄöÖüÜßéÉèåÅæÆøØñÑçÿþÞ×÷€Š\x81",
    "utf8mb3": " aAbBsSzZ_%\täÄöÜßéåæøñ€ŠŁłİıΩωЯя가一あア\u0301\u200b\ufb00",
    "utf8mb4": " aAbBsSzZ_%\täÄöÜßéåæøñ€ŠŁłİıΩωЯя가一あア\u0301\u200b\ufb00😀😁𝄞",
    "binary": " aAbBsSzZ_%\täé€😀",
}

# The collations of languages over Unicode 9.0: MariaDB's over Unicode 14.0, and the letters that their rules concern.
# Without Hungarian, whose letters of several characters MariaDB orders otherwise, and without H, as cH is no letter of
# Czech there.
LANGUAGES = {
    "de_pb": ("german2", "ä Ä ö Ö ü Ü ß"), "is": ("icelandic", "á Á đ Đ ð é í ó ú ý æ Æ ä Ä ö Ö ø å"),
    "lv": ("latvian", "č ģ ķ ļ ņ ŗ š ž Č Ģ"), "ro": ("romanian", "ă â î ş ț Ş Ț"), "sl": ("slovenian", "č Č š Š ž Ž"),
    "pl": ("polish", "ą ć ę ł ń ó ś ź ż Ą Ł"), "et": ("estonian", "š ž õ ä ö ü Š Õ Ä"), "es": ("spanish", "ñ Ñ"),
    "es_trad": ("spanish2", "ñ Ñ ch Ch CH ll Ll"), "sv": ("swedish", "å ä ö Å Ä Ö"),
    "tr": ("turkish", "ç ğ ı ö ş ü Ç Ğ İ"), "cs": ("czech", "č ř š ž Č Ř ch Ch CH"), "da": ("danish", "æ ø å Æ Ø Å aa Aa"),
    "lt": ("lithuanian", "č š ž Č Š"), "sk": ("slovak", "ä č ô š ž Ä ch Ch"), "eo": ("esperanto", "ĉ ĝ ĥ ĵ ŝ ŭ Ĉ"),
    "hr": ("croatian", "č ć đ š ž Č Ć Đ dž lj nj"),
    "vi": ("vietnamese", "ă â đ ê ô ơ ư Ă Â"),
}


class Servers:
    """A connection to each server, and the differences so far."""

    def __init__(self, ports, client):
        self.client = client
        self.connections = [
            pymysql.connect(host="127.0.0.1", port=port, user="root", charset=client, use_unicode=False, autocommit=True)
            for port in ports
        ]
        self.count = 0
        self.differences = []
        for statement in ["DROP DATABASE IF EXISTS charset_test", "CREATE DATABASE charset_test CHARACTER SET utf8mb4",
                          "USE charset_test", "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,ONLY_FULL_GROUP_BY'"]:
            for connection in self.connections:
                self.ask(connection, statement)

    def ask(self, connection, statement):
        """Rows and whether columns are bytes, or the number of the error; and the warnings' numbers, without those of
        deprecated syntax, which only MySQL has."""
        if isinstance(statement, str):
            statement = statement.encode(connection.encoding, "replace")
        cursor = connection.cursor()
        try:
            cursor.execute(statement)
        except pymysql.err.MySQLError as error:
            return ("error", error.args[0])
        rows = cursor.fetchall()
        columns = [] if cursor.description is None else [
            field.charsetnr == 63 for field in cursor._result.fields
        ]
        cursor.execute("SHOW WARNINGS")
        return (rows, columns, sorted(row[1] for row in cursor.fetchall() if int(row[1]) not in DEPRECATED))

    def check(self, statement, is_sorted=False):
        answers = [self.ask(connection, statement) for connection in self.connections]
        self.count += 1
        if not is_sorted and all(answer[0] != "error" for answer in answers):
            answers = [(sorted(answer[0], key=repr),) + answer[1:] for answer in answers]
        if answers[0] != answers[1]:
            self.differences.append((self.client, statement, *answers))

    def both(self, statement):
        for connection in self.connections:
            self.ask(connection, statement)


def quoted(text, is_pattern=False):
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return "'" + escaped + "'"


def text_of(chance, letters, longest=6):
    return "".join(chance.choice(letters) for _ in range(chance.randint(0, longest)))


def check_collation(servers, chance, name, rows):
    character_set = name.split("_")[0]
    letters = LETTERS[character_set]
    type_name = "VARBINARY(60)" if name == "binary" else f"VARCHAR(20) CHARACTER SET {character_set} COLLATE {name}"
    fixed = "BINARY(12)" if name == "binary" else f"CHAR(12) CHARACTER SET {character_set} COLLATE {name}"
    servers.both("DROP TABLE IF EXISTS t")
    servers.check(f"CREATE TABLE t (id INT PRIMARY KEY, v {type_name}, f {fixed}, u {type_name}, KEY (v), KEY (f, v))")
    texts = [text_of(chance, letters) for _ in range(rows)]
    for number, text in enumerate(texts):
        other = chance.choice(texts)
        servers.both(f"INSERT INTO t VALUES ({number}, {quoted(text)}, {quoted(other)}, {quoted(text)})")
    servers.check("SELECT id, v, HEX(v), HEX(f), LENGTH(v), CHAR_LENGTH(v), BIT_LENGTH(f) FROM t")
    servers.check("SELECT id FROM t ORDER BY v, id", True)
    servers.check("SELECT id FROM t ORDER BY f DESC, id", True)
    servers.check("SELECT COUNT(DISTINCT v), COUNT(DISTINCT f), COUNT(DISTINCT u) FROM t")
    servers.check("SELECT COUNT(*), MIN(id) FROM t GROUP BY v")
    servers.check("SELECT MIN(id) FROM t GROUP BY u, f")
    servers.check("SELECT a.id, b.id FROM t a JOIN t b ON a.v = b.f")
    servers.check("SELECT a.id, b.id FROM t a JOIN t b ON a.u < b.v")
    for _ in range(rows):
        text, other = chance.choice(texts), chance.choice(texts)
        pattern = text_of(chance, letters, 4)
        # In an index of a Unicode collation, MariaDB misses rows of LIKE 'aö%' that it finds without one, and in any
        # padded one those with a character before the space.
        is_missed = character_set.startswith("utf8") or any(letter < " " for other in texts for letter in other)
        columns = ["u"] if is_missed else ["v", "u", "f"]
        for column in columns:
            servers.check(f"SELECT id FROM t WHERE {column} LIKE {quoted(pattern)}")
            servers.check(f"SELECT id FROM t WHERE {column} LIKE {quoted(text[:2] + '%')}")
        for column in ["v", "u", "f"]:
            servers.check(f"SELECT id FROM t WHERE {column} = {quoted(text)}")
        servers.check(f"SELECT id FROM t WHERE v BETWEEN {quoted(text)} AND {quoted(other)}")
        servers.check(f"SELECT id FROM t WHERE u > {quoted(text)}")
        servers.check(f"SELECT id FROM t WHERE v IN ({quoted(text)}, {quoted(other)}, {quoted(pattern)})")
        # LOCATE of MariaDB compares as many bytes as the pattern has, not as many characters.
        if not character_set.startswith("utf8"):
            servers.check(f"SELECT id, LOCATE({quoted(pattern[:1])}, v) FROM t")
        servers.check(f"SELECT id, REPLACE(v, {quoted(pattern[:1])}, '-') FROM t")
        servers.check("SELECT id, UPPER(v), LOWER(v), REVERSE(v), LEFT(v, 2), RIGHT(f, 2), LPAD(v, 8, 'ab') FROM t")
        servers.check("SELECT id, MD5(v), CRC32(v), TO_BASE64(v), ORD(v), ASCII(v), HEX(CONCAT(v, f)) FROM t")
    servers.both("DROP TABLE IF EXISTS k")
    servers.check(f"CREATE TABLE k (v {type_name}, UNIQUE (v))")
    for text in texts:
        servers.check(f"INSERT INTO k VALUES ({quoted(text)})")
    # The value of equal keys that is kept is that of the first row on both servers.
    servers.check("SELECT HEX(v) FROM k ORDER BY v", True)


def check_mixtures(servers):
    columns = ", ".join(
        f"{name} VARCHAR(20) CHARACTER SET {character_set} COLLATE {collation}"
        for name, character_set, collation in [
            ("g", "utf8mb4", "utf8mb4_general_ci"), ("u", "utf8mb4", "utf8mb4_unicode_ci"),
            ("b", "utf8mb4", "utf8mb4_bin"), ("m", "utf8mb3", "utf8mb3_general_ci"),
            ("l", "latin1", "latin1_swedish_ci"), ("k", "latin1", "latin1_general_cs"), ("a", "ascii", "ascii_general_ci"),
        ]
    )
    names = ["g", "u", "b", "m", "l", "k", "a", "x", "'é'", "'a'", "_latin1'e'", "_latin1 X'E9'", "X'E9'", "1", "NULL",
             "'é' COLLATE utf8mb4_bin", "l COLLATE latin1_bin", "_binary'a'", "'Ω'", "CONVERT(g USING latin1)",
             "CONCAT(g, u)"]
    servers.both("DROP TABLE IF EXISTS m")
    servers.check(f"CREATE TABLE m (id INT PRIMARY KEY, {columns}, x VARBINARY(20))")
    servers.both("INSERT INTO m VALUES (1, 'é', 'É', 'é', 'é', 'é', 'É', 'e', 'é'), (2, 'ß', 'ss', 'x', 'ü', 'y', 'Z', 'z', "
                 "X'E9'), (3, 'a ', 'a', 'A', 'a', 'A', 'a', 'a', 'a')")
    for left in names:
        servers.check(f"SELECT id, HEX({left}), LENGTH({left}), CHARSET({left}), COERCIBILITY({left}) FROM m")
        servers.check(f"SELECT id, HEX(CAST({left} AS BINARY)), HEX(CONVERT({left} USING utf8mb4)) FROM m")
        for target in SETS:
            servers.check(f"SELECT id, HEX(CONVERT({left} USING {target})) FROM m")
        for right in names:
            for operation in ["{} = {}", "{} < {}", "{} LIKE {}"]:
                servers.check("SELECT id, " + operation.format(left, right) + " FROM m")
            for call in ["CONCAT({}, {})", "COALESCE({}, {})", "IF(id = 1, {}, {})", "NULLIF({}, {})"]:
                made = call.format(left, right)
                servers.check(f"SELECT id, HEX({made}), CHARSET({made}) FROM m")
            for call in ["INSTR({}, {})", "STRCMP({}, {})", "REPLACE({0}, {1}, '-')", "FIELD({}, {})", "FIND_IN_SET({}, {})",
                         "LEAST({}, {})", "{0} BETWEEN {1} AND {1}", "{0} IN ({1}, 'q')"]:
                servers.check(f"SELECT id, HEX({call.format(left, right)}) FROM m")
            servers.check(f"SELECT HEX({left}) FROM m UNION SELECT HEX({right}) FROM m")


def check_languages(servers, chance, pairs):
    """The order of pairs of texts, unrelated ones and such that differ in a letter."""
    for language, (theirs, letters) in LANGUAGES.items():
        pieces = list("abcdefghijklmnopqrstuvwxyzABCDELNSZ0159") + 4 * letters.split(" ")
        for suffix in ["ai_ci", "as_cs"]:
            # MariaDB does not put the capitals of Danish first.
            if (language, suffix) == ("da", "as_cs"):
                continue
            names = [f"utf8mb4_{language}_0900_{suffix}", f"utf8mb4_uca1400_{theirs}_{suffix}"]
            for _ in range(pairs):
                left = chance.choices(pieces, k=chance.randint(1, 4))
                right = chance.choices(pieces, k=len(left)) if chance.random() < 0.5 else list(left)
                right[chance.randrange(len(right))] = chance.choice(pieces)
                texts = ["".join(left), "".join(right)]
                values = [f"_utf8mb4 X'{text.encode().hex()}'" for text in texts]
                statements = [f"SELECT STRCMP({values[0]} COLLATE {name}, {values[1]} COLLATE {name})" for name in names]
                answers = [servers.ask(*asked) for asked in zip(servers.connections, statements)]
                servers.count += 1
                # MariaDB keeps earlier warnings in a SELECT without tables.
                if answers[0][0] != answers[1][0]:
                    servers.differences.append((servers.client, f"{statements[0]} of {texts}", *answers))


def check_stores(servers, collations):
    values = ["'é'", "'€'", "'Ω'", "'😀'", "X'E9'", "X'C3A9'", "X'61E962'", "_latin1 X'80'", "_binary'é'", "12.5", "''", "'a  '"]
    for collation in collations:
        character_set = collation.split("_")[0]
        for type_name in ["VARCHAR(3)", "CHAR(3)", "TINYTEXT"]:
            servers.both("DROP TABLE IF EXISTS s")
            servers.check(f"CREATE TABLE s (id INT AUTO_INCREMENT PRIMARY KEY, c {type_name} CHARACTER SET {character_set})")
            for mode in ["'STRICT_TRANS_TABLES'", "''"]:
                servers.both(f"SET SESSION sql_mode = {mode}")
                for value in values:
                    # MariaDB takes any byte for ASCII. Lenient, it keeps what follows a wrong byte; MySQL cuts it.
                    is_bytes = value[0] == "X" or value.startswith("_binary")
                    if is_bytes and (character_set == "ascii" or mode == "''" and character_set != "binary"):
                        continue
                    servers.check(f"INSERT INTO s (c) VALUES ({value})")
                    servers.check("SELECT HEX(c) FROM s")
                    servers.both("DELETE FROM s")
            servers.both("SET SESSION sql_mode = 'STRICT_TRANS_TABLES'")
            servers.check(f"INSERT INTO s (c) VALUES ('ab'), ('é'), ('z')")
            for other in SETS[:4]:
                servers.check(f"ALTER TABLE s CONVERT TO CHARACTER SET {other}")
                servers.check("SELECT HEX(c), LENGTH(c) FROM s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--junctor", type=int, required=True)
    parser.add_argument("--mariadb", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--sample", type=int, default=len(COLLATIONS), help="the number of collations, drawn by the seed")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    count, differences = 0, []
    collations = chance.sample(COLLATIONS, arguments.sample) if arguments.sample < len(COLLATIONS) else COLLATIONS
    for client in ["utf8mb4", "latin1"]:
        servers = Servers([arguments.junctor, arguments.mariadb], client)
        if arguments.only in ["", "collations"]:
            for name in collations:
                check_collation(servers, chance, name, arguments.rows)
        if arguments.only in ["", "languages"] and client == "utf8mb4":
            check_languages(servers, chance, 5 * arguments.rows)
        # Of the mixtures, MariaDB decides several otherwise than MySQL, so they are to be read, not to pass.
        if arguments.only == "mixtures":
            check_mixtures(servers)
        if arguments.only in ["", "stores"]:
            check_stores(servers, collations)
        count += servers.count
        differences += servers.differences
    for client, statement, ours, theirs in differences:
        print(f"{client}: {statement}\n  junctor {ours}\n  mariadb {theirs}")
    print(f"{count} statements, {len(differences)} differences")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
