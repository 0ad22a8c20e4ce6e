"""How two outputs of mysqltest are compared. Both are first brought into one form, by the documented differences
between MariaDB 10.11 and MySQL 8.0 that concern only how something is written. The list is in FORMS, and the
report prints it."""

import difflib
import re

# What MySQL 8.0 warns of, and MariaDB does not: widths of integers, ZEROFILL and FLOAT(m,d) are deprecated (1681);
# WITH CONSISTENT SNAPSHOT is ignored outside of REPEATABLE READ (138); USING HASH is ignored (3502); the names
# utf8 and utf8mb3 (3719, 3720, 3778, 1287), and DELAYED (3005).
WARNINGS_OF_MYSQL = {"138", "1287", "1681", "3005", "3502", "3719", "3720", "3778"}
OPTIONS_OF_TABLE = re.compile(r"^\) ENGINE=.* COLLATE=(\w+)")
PLAN_ROW = re.compile(r"^(?:\d+|#|NULL)\t")
OF_QUERY = re.compile(r"(?:INSERT|REPLACE)\b.*\bSELECT\b.*;$")
COLUMNS_OF_MARIADB = re.compile(r"(?:Max_index_length|Temporary)\t(?:###|[NY])$")
WARNING_TITLE = "Warnings:"
LEVELS = ("Warning\t", "Error\t", "Note\t", "Level\t")

# Each form: what it concerns, a pattern, and what takes its place, in the lines of both servers.
FORMS = (
    ("MySQL 8.0 shows no width of integers, except with ZEROFILL and for signed TINYINT(1)",
     r"(?i)\b(tinyint(?!\(1\)(?! unsigned))|smallint|mediumint|int|bigint)\(\d+\)(?! unsigned zerofill| zerofill)",
     r"\1"),
    ("MySQL 8.0 has no YEAR(4)", r"(?i)\byear\(4\)", "year"),
    ("MariaDB writes the function CURRENT_TIMESTAMP in small letters and with parentheses",
     r"(?i)\bcurrent_timestamp\(\)", "CURRENT_TIMESTAMP"),
    ("MySQL 8.0 shows default numbers in quotes",
     r"^(  `.*) DEFAULT (-?[0-9.]+(?:e[-+]?\d+)?)(?=[, ]|$)", r"\1 DEFAULT '\2'"),
    ("MySQL 8.0 says 0x30 for a default of a binary column", r"^(\w+\t(?:var)?binary\(\d+\)\t\w+\t\w*)\t0x30\t", r"\1\t0\t"),
    ("MySQL 8.0 names the table in error 1062", r"(Duplicate entry '.*' for key ')[^'.]+\.", r"\1"),
    ("MariaDB names database and table in warning 1366", r"for column `[^`]*`\.`[^`]*`\.`([^`]*)`", r"for column '\1'"),
    ("MySQL 8.0 calls it GEOMCOLLECTION", r"(?i)\bgeometrycollection\t", "geomcollection\t"),
    ("MySQL 8.0 names the table, not the engine, in note 1031",
     r"(\t1031\t)(?:Table storage engine for|Storage engine <STORAGE_ENGINE> of the table) .* doesn't", r"\1It doesn't"),
    ("texts that name the server", r"corresponds to your MariaDB server", "corresponds to your MySQL server"),
    ("texts that name the server", r"This version of (MariaDB|Junctor|<STORAGE_ENGINE>) ", "This version of MySQL "),
    ("MySQL 8.0 repeats the number in error 1426",
     r"Too[- ]big precision (?:\d+ )?specified for ('.*'\. Maximum is \d+)\.?", r"Too-big precision specified for \1."),
    ("MySQL 8.0 repeats the number in error 1425, and has a maximum of 30 where MariaDB has 38",
     r"Too big scale (?:\d+ )?specified for (?:column )?('.*'\. Maximum is )(?:30|38)\.?", r"Too big scale specified for \g<1>30."),
    ("MySQL 8.0 ends error 1439 differently, and its text has a full stop less",
     r"Display width out of range for (?:column )?('.*') \(max = (\d+)\)", r"Display width out of range for \1 (max = \2)"),
    ("MariaDB's SHOW INDEX has a column Ignored, MySQL's has Visible and Expression",
     r"\tIndex_comment\t(Ignored|Visible\tExpression)$", "\tIndex_comment\tVisible\tExpression"),
    ("MariaDB's SHOW INDEX has a column Ignored, MySQL's has Visible and Expression",
     r"^((?:[^\t]*\t){12}[^\t]*)\tNO$", "\\1\tYES\tNULL"),
    ("MariaDB's SHOW TABLE STATUS has two columns more",
     r"\tCreate_options\tComment(\tMax_index_length\tTemporary)?$", "\tCreate_options\tComment"),
    ("MariaDB's SHOW TABLE STATUS has two columns more", r"^((?:[^\t]*\t){17}[^\t]*)\t[^\t]*\t[NY]$", r"\1"),
)  # fmt: skip
DIFFERENCES_OF_MYSQL = tuple(dict.fromkeys(text for text, _, _ in FORMS))
COMPILED = [(re.compile(pattern), form) for _, pattern, form in FORMS]


def difference(recorded, seen):
    """The lines of a comparison, with some lines around each difference: `-` of MariaDB, `+` of Junctor."""
    compared = difflib.unified_diff(normal(recorded), normal(seen), lineterm="", n=4)
    return [line for line in compared if not line.startswith(("---", "+++"))]


def without_order(lines):
    """The rows of the query of an INSERT have no order, so neither have its warnings: their rows are left out."""
    result, statement, warnings = [], "", None
    for line in [*lines, ""]:
        if warnings is not None:
            if line.startswith(LEVELS):
                warnings.add(re.sub(r" at row \d+$", "", line))
                continue
            result += sorted(warnings)
            warnings = None
        if line == WARNING_TITLE and OF_QUERY.match(statement):
            warnings = set()
        begins = line.startswith(("INSERT", "REPLACE")) or statement.endswith(";")
        statement = line if begins else f"{statement} {line}"
        result.append(line)
    return result[:-1]


def normal(lines):
    result = []
    checksums = {}
    table_of_checksums = False
    is_plan = False
    for line in without_order(lines):
        if COLUMNS_OF_MARIADB.match(line):
            continue
        # Plans are the engine's own.
        is_plan = is_plan and PLAN_ROW.match(line) is not None or line.startswith("id\tselect_type\t")
        if is_plan:
            continue
        words = line.split("\t", 2)
        if len(words) == 3 and words[0] in ("Warning", "Note") and words[1] in WARNINGS_OF_MYSQL:
            continue
        # A title without warnings is left where the only one was removed.
        if result[-1:] == [WARNING_TITLE] and not line.startswith(LEVELS):
            result.pop()
        for pattern, form in COMPILED:
            line = pattern.sub(form, line)
        # Checksums mean nothing but equality.
        if table_of_checksums and "\t" in line:
            name, number = line.split("\t")[:2]
            if number not in ("NULL", "0"):
                line = f"{name}\t<checksum {checksums.setdefault(number, len(checksums) + 1)}>"
        else:
            table_of_checksums = line == "Table\tChecksum"
        result.append(line)
        if OPTIONS_OF_TABLE.match(line):
            strip_collations(result)
    return result


def strip_collations(lines):
    """MySQL repeats a collation that is not the default of its character set for each column, MariaDB does not."""
    collation = OPTIONS_OF_TABLE.match(lines[-1])[1]
    for position in range(len(lines) - 2, -1, -1):
        if not lines[position].startswith("  "):
            return
        lines[position] = lines[position].replace(f" COLLATE {collation}", "")
