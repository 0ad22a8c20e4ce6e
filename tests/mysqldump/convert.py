"""Changes a dump of one server so that the other loads it, as its users have to. Each rule has its reason.

    convert.py to-mariadb < dump-of-junctor.sql > for-mariadb.sql
    convert.py to-mysql < dump-of-mariadb.sql > for-junctor.sql
"""

import re
import sys

# MariaDB 10.11 lacks MySQL's collations over UCA 9.0.0. These are not padded either, and tell the same letters
# apart in the rows of the test.
COLLATIONS = {
    "utf8mb4_0900_ai_ci": "utf8mb4_uca1400_nopad_ai_ci",
    "utf8mb4_0900_as_cs": "utf8mb4_uca1400_nopad_as_cs",
    "utf8mb4_0900_bin": "utf8mb4_nopad_bin",
}
# What MariaDB calls a column of JSON: text with a check.
JSON = "longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
TO_MARIADB = [
    # MariaDB has no engine of that name.
    (r"\bENGINE=Junctor\b", "ENGINE=InnoDB"),
    # MariaDB skips comments of versions from 5.7 to 9.9.
    (r"/\*!80023 INVISIBLE \*/", "INVISIBLE"),
    # MySQL's new name of the type.
    (r"(?<= )geomcollection\b", "geometrycollection"),
    # A generated column of MariaDB is never NOT NULL.
    (r"(\) (?:STORED|VIRTUAL)) NOT NULL", r"\1"),
    # MariaDB has no index of expressions.
    (r",\n  (?:UNIQUE )?KEY `[^`]+` \((?=[^\n]*\(\()[^\n]*?(?=,?\n)", ""),
]
TO_MYSQL = [
    (r"\bENGINE=InnoDB\b", "ENGINE=Junctor"),
    (rf"{JSON}( [^\n]*?)? CHECK \(json_valid\(`[^\n]*?`\)\)", r"json\1"),
    # An expression as a default has parentheses in MySQL, and so has every default of TEXT and BLOB.
    (r"(?<= DEFAULT )((?!current_timestamp)[a-z_]+\([^\n]*?\))(?=,?\n| (?:COMMENT|CHECK|INVISIBLE)\b)", r"(\1)"),
    (r"((?:text|blob) DEFAULT )((?:_utf8mb4)?'(?:[^'\\]|\\.|'')*')", r"\1(\2)"),
]


def split_values(row):
    """The literals of a row of VALUES, without its parentheses."""
    return re.findall(r"((?:[^,']|'(?:[^'\\]|\\.|'')*')+)(?:,|$)", row, re.S)


def without_generated_columns(dump):
    """mariadb-dump writes the values of generated columns, which MySQL refuses (error 3105)."""
    generated = {
        table: set(re.findall(r"^  `([^`]+)` [^\n]* GENERATED ALWAYS AS ", body, re.M))
        for table, body in re.findall(r"^CREATE TABLE `([^\n]+)` \((.*?)^\)", dump, re.M | re.S)
    }

    def shorten(insert):
        table, columns, rows = insert.groups()
        if not generated.get(table):
            return insert.group()
        names = re.findall(r"`([^`]+)`", columns)
        kept = [place for place, name in enumerate(names) if name not in generated[table]]
        lines = []
        for row in re.findall(r"^\((.*?)\)(?:,$|$)", rows, re.M | re.S):
            values = split_values(row)
            assert len(values) == len(names), (table, names, values)
            lines.append("(" + ",".join(values[place] for place in kept) + ")")
        shown = ", ".join(f"`{names[place]}`" for place in kept)
        return f"INSERT INTO `{table}` ({shown}) VALUES\n" + ",\n".join(lines) + ";\n"

    return re.sub(r"^INSERT INTO `([^\n]+?)` \((`[^\n]*`)\) VALUES\s+(.*?);\n", shorten, dump, flags=re.M | re.S)


def main():
    dump = sys.stdin.buffer.read().decode("utf-8")
    direction = sys.argv[1]
    if direction == "to-mariadb":
        rules = TO_MARIADB + list(COLLATIONS.items())
    else:
        rules = TO_MYSQL + [(there, here) for here, there in COLLATIONS.items()]
        dump = without_generated_columns(dump)
    for pattern, text in rules:
        dump = re.sub(pattern, text, dump)
    sys.stdout.buffer.write(dump.encode("utf-8"))


main()
