"""Differences between MariaDB 10.11 and MySQL 8.0, each with its reason. MySQL's manual decides, and a golden
case or a recorded file holds Junctor to it. The file is long because each reason tests the shape that it is for."""

import json
import re
import unicodedata
from datetime import datetime, timedelta
from decimal import Decimal

from columns import ODD_DATES, ODD_MOMENTS, ODD_TIMES
from documents import is_computable, is_expected
from functions import CLOCK, SIGNATURES
from shapes import family, has_fraction, has_operand, inner, is_clean, is_day, leaves, nodes, numbers, pair, unlike
from tree import Form, Literal, Words
from wire import NULL

# Numbers of warnings and errors that only one of the two servers has.
DEPRECATED = {1287, 1681, 3719, 3720, 3778}  # syntax that is deprecated in MySQL 8.0
ONLY_OURS = DEPRECATED | {
    3020,  # invalid argument for logarithm: MariaDB has 1365 or nothing
    1411,  # INET_ATON and the like: MariaDB gives NULL silently
}
ONLY_THEIRS = {
    1958,  # FROM_BASE64 of other text: MySQL gives NULL silently
    *range(4035, 4050),  # MariaDB's errors of JSON are warnings
}
VALUE = {1048, 1264, 1265, 1292, 1300, 1364, 1365, 1366, 1367, 1406, 1411, 1690, 3020}
TRUNCATION = {1264, 1265, 1292, 1366, 1367, 1411}
JSON_ERRORS = set(range(3140, 3160)) | {3165}


def uses(*names):
    return lambda found, statement, ours, theirs: bool(statement.names() & set(names))


def numbers_of(outcome):
    return {number for _, number in outcome.warnings} | ({outcome.number} if outcome.number else set())


def is_write(statement):
    return "write" in statement.features


def json_error(found, statement, ours, theirs):
    """An error of a JSON function of operands that may be wrong, or a warning of MariaDB's in its place, often with NULL."""
    calls = [node for node in nodes(statement.root) if is_document_function(node)]
    if ours.number in JSON_ERRORS:
        return is_write(statement) or not all(is_computable(node) for node in calls)
    if not numbers_of(theirs) & {*range(4035, 4050), 4025, 1235} or not (calls or is_write(statement)):
        return False
    both = pair(found)
    return both is None or both[1] is None or is_write(statement) or bool(calls) and is_expected(statement.root, both[0]) is not False


def one_sided(statement, ours, theirs):
    """The numbers of warnings of both, without those that only one server has for such a statement."""
    names = statement.names()
    of_theirs = ONLY_THEIRS | {1916} | ({1105} if "CAST UNSIGNED" in names else set()) | ({1365} if names & {"LN", "LOG", "LOG2", "LOG10"} else set()) | ({1292} if names & {"IS_IPV4_COMPAT", "IS_IPV4_MAPPED", "FROM_BASE64", "UNCOMPRESSED_LENGTH"} else set())
    return numbers_of(ours) - ONLY_OURS - of_theirs, numbers_of(theirs) - of_theirs


def only_one(found, statement, ours, theirs):
    """A warning or an error that one server does not have, and no other difference."""
    kind = found.partition(":")[0]
    if kind == "warnings":
        mine, other = one_sided(statement, ours, theirs)
        return (mine, other) != (numbers_of(ours), numbers_of(theirs)) and mine == other
    return kind == "kind" and (ours.number in ONLY_OURS or theirs.number in ONLY_THEIRS)


WARNING = re.compile(r"(?P<number>\d+) (?:Truncated incorrect|Incorrect) (?P<kind>\w+)[^:]*: '(?P<value>.*)'", re.DOTALL)
NUMBERS = {"double", "decimal", "integer"}
MOMENTS = {"date", "time", "datetime"}
# What decides by one operand whether it evaluates another.
DECIDING = {"compare", "BETWEEN", "IN", "logic", "IS", "NULLIF", "CASE", "IF", "IFNULL", "COALESCE", "FIELD", "INTERVAL", "ELT", "MAKE_SET", "STRCMP", "LIKE"}


def conversions(outcome, numbers):
    """The kinds and the texts of the values that the warnings of these numbers say were wrong. MariaDB has DECIMAL where
    MySQL has DOUBLE."""
    found = set()
    for text in outcome.texts + ([f"{outcome.number} {outcome.message}"] if outcome.number else []):
        if int(text.split()[0]) not in numbers:
            continue
        match = WARNING.match(text)
        kind = match["kind"].lower() if match else text.split()[0]
        found.add(("number" if kind in NUMBERS else kind, match["value"] if match else ""))
    return found


def only_operands(found, statement, ours, theirs):
    """Whether the warnings differ only in wrong operands. Returns those of both."""
    mine, other = one_sided(statement, ours, theirs)
    if kind_of(found) != "warnings" or is_write(statement) or not mine ^ other <= {1292, 1411, 1441}:
        return None
    return conversions(ours, mine), conversions(theirs, other)


def operand_warnings(found, statement, ours, theirs):
    """Warnings that only one server has, all of which are about days and times."""
    both = only_operands(found, statement, ours, theirs)
    if both is None:
        return False
    kinds = {kind for kind, _ in both[0]} ^ {kind for kind, _ in both[1]}
    return kinds - {str(number) for number in ONLY_OURS | ONLY_THEIRS | {1916, 1365}} <= MOMENTS | {"1411", "1441"}


def spaces_after_number(found, statement, ours, theirs):
    """MariaDB has a note for spaces after a number."""
    both = only_operands(found, statement, ours, theirs)
    rest = both and both[1] - both[0]
    return bool(rest) and all(kind == "number" and re.fullmatch(r"[-+.\de]+ +", value) for kind, value in rest)


def converted_constant(found, statement, ours, theirs):
    """MariaDB converts a constant text once, also if the query reads no row."""
    both = only_operands(found, statement, ours, theirs)
    if both is None or any(kind == "number" for kind, _ in both[0]):
        return False
    text = statement.text().replace("''", "'").replace("\\\\", "\\")
    rest = both[1] - both[0]
    return bool(rest) and all(kind == "number" and f"'{value}" in text for kind, value in rest)


def undecided_operand(found, statement, ours, theirs):
    """A text that is no number, which only one server converts, where another operand or an index may decide."""
    both = only_operands(found, statement, ours, theirs)
    if both is None:
        return False
    kinds = {kind for kind, _ in both[0] ^ both[1]}
    if not kinds <= {"number"} | MOMENTS:
        return False
    if any(has_text(operand) for node in nodes(statement.root, DECIDING) for operand in node.operands):
        return True
    # Beside a NULL, an operand is not read.
    has_null = "NULL" in statement.text() or any(None in row for row in ours.rows)
    return ("where" in statement.features or has_null) and any(has_text(leaf) for leaf in leaves(statement.root))


def has_text(node):
    """Whether an operand may be a text that is converted to a number, day or time."""
    return any(family(each) in TEXTS | {"choice"} or isinstance(each, Literal) and each.text.startswith("'") for each in [node, *leaves(node)])


def wrote_little(found, statement, ours, theirs):
    """Both store a value, or both refuse it, with different numbers."""
    # Wrong compressed bytes are warning 1259 in both.
    known = (numbers_of(ours) | numbers_of(theirs)) - ONLY_OURS - (numbers_of(ours) & numbers_of(theirs) & {1105, 1259})
    return is_write(statement) and found.split(":")[0] in ("warnings", "error") and known <= VALUE | {1062, 1138, 1416, 1916, 1958, 3140, 3819, 4025}


def converted(found, statement, ours, theirs):
    return "alter" in statement.features and found.startswith("kind") and (numbers_of(ours) | numbers_of(theirs)) - ONLY_OURS - ONLY_THEIRS <= VALUE | {1071, 1105, 1138, 1170, 1259, 1916, 4025, 3140}


TEMPORAL = {
    "SUBTIME", "ADDTIME", "TIME_FORMAT", "DATE_FORMAT", "CAST DATE", "CAST DATETIME", "CAST TIME", "CONVERT_TZ", "EXTRACT", "TIME", "TIMESTAMP", "TIMEDIFF", "STR_TO_DATE", "INTERVAL", "DATE_ADD", "DATE_SUB", "MAKETIME",
    "DATE", "DAY", "DAYNAME", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR", "MONTH", "MONTHNAME", "QUARTER", "YEAR", "WEEK", "WEEKOFYEAR", "YEARWEEK", "WEEKDAY", "LAST_DAY", "FROM_DAYS", "TO_DAYS", "TO_SECONDS", "HOUR", "MINUTE",
    "SECOND", "MICROSECOND", "SEC_TO_TIME", "FROM_UNIXTIME", "UNIX_TIMESTAMP", "TIMESTAMPDIFF", "DATEDIFF", "MAKEDATE", "TIME_TO_SEC",
}

GEOMETRIES = {"POINT", "GEOMETRY", "LINESTRING"}
TEMPORAL_FAMILIES = {"date", "time", "moment", "timestamp"}
ROUNDING = {"CEIL", "CEILING", "FLOOR", "ROUND", "TRUNCATE", "ABS", "neg"}
ARITHMETIC = {"+", "-", "*", "/", "DIV", "%", "MOD", "neg"}
CHOICES = {"IF", "CASE", "IFNULL", "COALESCE", "NULLIF"}
COMPARED = {"compare", "BETWEEN", "IN", "CASE", "FIELD", "NULLIF"}
NO_DAY = re.compile(r"(?:datetime|date|time) value: '[-+.e\d]*'")


def kind_of(found):
    return found.partition(":")[0]


def of(names, holds):
    """A reason for the value of one of these functions or operators, or for the rows of which it is the condition. The
    value of an expression around it has the reason only if the function alone differs, which main.py asks."""

    def is_of(found, statement, ours, theirs):
        kind, node = kind_of(found), statement.root
        if kind == "rows" and isinstance(node, Form) and node.whole:
            node = node.operands[0]
        is_around = kind in ("value", "rows") and not is_write(statement) and getattr(node, "name", None) not in names
        return not is_around and holds(found, statement, ours, theirs)

    return is_of


def number_as_day(found, statement, ours, theirs):
    """MariaDB reads a number as a day or time wherever one is compared with it, and gives NULL for others."""
    texts = [text for text in theirs.texts if text.startswith("1292 ")] + ([theirs.message] if theirs.number == 1292 else [])
    is_read = texts and all(NO_DAY.search(text) for text in texts)
    return bool(is_read) and (kind_of(found) in ("value", "rows", "warnings") or kind_of(found) == "kind" and 1292 in (ours.number, theirs.number))


def moved(node):
    """The day or time to which an interval is added, or the operand itself."""
    while isinstance(node, Form) and node.name in ("DATE_ADD", "DATE_SUB", "INTERVAL", None) and node.operands:
        node = node.operands[0]
    return node


def compared_operands(root):
    """The families of operands that are compared with each other, for each comparison."""
    for node in nodes(root, {"compare", "BETWEEN", "IN", "CASE", "FIELD", "NULLIF"}):
        if node.name != "CASE":
            yield {family(moved(operand)) for operand in node.operands}
        elif node.pattern.startswith("CASE {}"):
            yield {family(operand) for operand in node.operands[:2]}


def compared_number(found, statement, ours, theirs):
    """A comparison of a number or bytes with a day, time or year, or of a year with a text."""
    numeric, texts = {"integer", "decimal", "double", "bit", "number", "hex", "bytes"}, {"text", "choice"}
    return kind_of(found) in ("value", "rows", "warnings") and any(
        kinds & TEMPORAL_FAMILIES and kinds & (numeric | {"year"}) or "year" in kinds and kinds & (numeric | texts)
        for kinds in compared_operands(statement.root)
    )


def compared_text(found, statement, ours, theirs):
    """A comparison of a text and a day or time, with a warning."""
    is_compared = statement.names() & {"compare", "BETWEEN", "IN", "CASE", "NULLIF"} or "where" in statement.features
    has_odd = any(f"'{text}'" in statement.text() for text in ODD_DATES + ODD_MOMENTS + ODD_TIMES)
    has_day = "time" in statement.families() and re.search(r"'\d{4}-", statement.text())
    is_odd = has_odd or has_day or 1292 in numbers_of(ours) | numbers_of(theirs)
    return kind_of(found) in ("value", "rows", "warnings") and bool(is_compared and is_odd and statement.families() & TEMPORAL_FAMILIES)


def plain_letters(text):
    decoded = value_bytes(text).decode("utf-8", "replace")
    decomposed = unicodedata.normalize("NFD", decoded.rstrip().lower())
    return "".join(character for character in decomposed if not unicodedata.combining(character))


# What collations of Unicode ignore.
IGNORABLE = re.compile("[\1-\10\16-\37\177-\237]")


def folded(found, ignorable=False):
    """Whether two texts differ only in letter case, accents and trailing spaces, or in what collations of Unicode
    ignore."""
    pair = inner(found)
    texts = {plain_letters(text).replace("\0", "") for text in pair}
    return len(pair) == 2 and len({IGNORABLE.sub("", text) for text in texts} if ignorable else texts) == 1


def has_unicode_collation(statement):
    """Whether a column that the statement names has a collation of Unicode, which ignores some characters."""
    return any(re.search(r"COLLATE utf8mb4_(?!bin|general_ci)", kind) for kind in statement.types())


def same_numbers(found, statement, ours, theirs):
    """Values that differ only in the zeros after the point."""
    pair = re.findall(r"b'(-?\d+(?:\.\d+)?)'", found)
    return kind_of(found) == "value" and len(pair) == 2 and Decimal(pair[0]) == Decimal(pair[1])


def same_to_30_digits(found, statement, ours, theirs):
    """Decimals that agree in the 30 digits after the point that MySQL has."""
    pair = re.findall(r"b'(-?\d+\.\d+)'", found)
    if kind_of(found) != "value" or len(pair) != 2:
        return False
    our_digits, their_digits = (len(text.partition(".")[2]) for text in pair)
    return our_digits == 30 < their_digits and abs(Decimal(pair[0]) - Decimal(pair[1])) <= Decimal("1e-30")


def only_zeros_before(found):
    """Whether two numbers differ only in the zeros before them."""
    pair = re.findall(r"b'(-?)([\d.]+)'", found)
    return len(pair) == 2 and len({(sign, digits.lstrip("0")) for sign, digits in pair}) == 1


def is_duplicate_index(found, statement, ours, theirs):
    """Warning 1831 in MySQL is a note in MariaDB."""
    mine, other = (sorted(number for _, number in outcome.warnings) for outcome in (ours, theirs))
    return kind_of(found) == "warnings" and 1831 in mine and mine == other


DEVIATIONS = {"STD", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP"}


def near_variance(found, statement, ours, theirs):
    """A variance of numbers of many digits, of which a double has sixteen: the order of the rows decides the last ones."""
    pair = re.findall(r"b'(-?\d+(?:\.\d+)?(?:e\d+)?)'", found)
    if kind_of(found) != "value" or len(pair) != 2 or not statement.names() & DEVIATIONS:
        return False
    own, other = float(pair[0]), float(pair[1])
    return abs(own - other) <= 1e-6 * abs(own) or bool(statement.families() & TEMPORAL_FAMILIES) and abs(own - other) <= 0.01


def cut_in_groups(found, statement, ours, theirs):
    """The extreme of texts of doubles, of which MariaDB has the beginning."""
    pair = inner(found)
    is_extreme = {"aggregate"} <= statement.features and statement.names() & {"MIN", "MAX"}
    return kind_of(found) == "value" and len(pair) == 2 and bool(is_extreme) and pair[0].startswith(pair[1]) and ("double" in statement.families() or "e" in statement.text())


def ill_formed(found, statement, ours, theirs):
    """Whether MariaDB's text is no UTF-8, and the other one is."""
    pair = inner(found)
    if kind_of(found) != "value" or len(pair) != 2 or ours.fields[0].charsetnr == 63:
        return False
    own, other = (value_bytes(text).decode("utf-8", "replace") for text in pair)
    return "\ufffd" in other and "\ufffd" not in own


def duplicates(outcome):
    """The number of rows that an outcome reports as duplicates."""
    return sum(number == 1062 for _, number in outcome.warnings) + (outcome.number == 1062)


def only_one_duplicate(found, statement, ours, theirs):
    """Whether one server skips a row as a duplicate, where a value did not fit."""
    is_one = duplicates(ours) != duplicates(theirs)
    return is_write(statement) and kind_of(found) in ("affected", "kind") and is_one and bool((numbers_of(ours) | numbers_of(theirs)) & {1264, 1265, 1292, 1366})


def narrow_set(statement):
    """Whether the table has columns whose character set lacks characters."""
    return any(re.search(r"CHARACTER SET (latin1|ascii|utf8mb3)|^(NCHAR|NATIONAL)", kind) for kind in statement.kinds.values())


def beyond_ascii(found, statement, ours, theirs):
    """Bytes beyond 127 for a column of ascii, or characters that utf8mb3 lacks: stored as they are in MariaDB."""
    wrong = re.search(r"Incorrect string value: '(.*)' for column '(\w+)'", ours.message)
    if not is_write(statement) or (ours.number, theirs.kind) != (1366, "ok") or wrong is None:
        return False
    kind = statement.kinds.get(wrong[2], "")
    return "CHARACTER SET ascii" in kind and wrong[1].startswith("\\x") or "CHARACTER SET utf8mb3" in kind and wrong[1].startswith("\\xF0")


def fewer_digits(found, statement, ours, theirs):
    """Whether a double has fewer digits after the point in MariaDB, by the type of the result."""
    pair = re.findall(r"b'(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)'", found)
    fields = ours.fields + theirs.fields
    if kind_of(found) != "value" or len(pair) != 2 or len(fields) != 2 or any(field.type_code != 5 for field in fields) or not fields[1].scale < fields[0].scale:
        return False
    return abs(Decimal(pair[0]) - Decimal(pair[1])) <= Decimal(10) ** -fields[1].scale


def not_recomputed(found, statement, ours, theirs):
    """An UPDATE of columns that no generated column reads."""
    target = re.search(r"(?:^UPDATE t SET|KEY UPDATE) (\w+) = ", statement.text())
    if target is None or ours.kind != "ok" or theirs.number not in VALUE:
        return False
    if ours.affected == 0 and statement.sources:
        return True
    if re.search(rf"(?:SET|UPDATE) {target[1]} = {target[1]}\b", statement.text()):
        return bool(statement.sources)
    names_column = re.search(r"column .*[`'](\w+)[`'] at row", theirs.message)
    others = {name for name, source in statement.sources.items() if not re.search(rf"\b{target[1]}\b", source.render(None))}
    return bool(others) and (names_column is None or names_column[1] in others)


def double_encoded(found):
    """Whether MariaDB has taken the bytes of an UTF-8 text for characters of latin1."""
    pair = inner(found)
    if len(pair) != 2 or not found.startswith("value"):
        return False
    own, other = (value_bytes(text) for text in pair)
    return own != other and own.decode("cp1252", "replace") == other.decode("utf-8", "replace")


def time_into_bits(found, statement, ours, theirs):
    """A day or time of a column that a write stores in a BIT column: its number in MySQL, its text in MariaDB."""
    kinds = statement.types() if is_write(statement) else set()
    if not any(kind.startswith("BIT") for kind in kinds) or not any(kind.startswith(("DATE", "TIME")) for kind in kinds):
        return False
    if kind_of(found) == "value":
        return bool(re.search(r"theirs b'-?\d+[-:]\d\d[-:]\d\d", found))
    return bool((numbers_of(ours) ^ numbers_of(theirs)) & {1264, 1406})


def bits_of_set(found, statement, ours, theirs):
    """A text that is a number beyond the members of a SET."""
    is_set = any(kind.startswith("SET(") for kind in statement.types()) or " SET(" in statement.text()
    return is_write(statement) and is_set and found.partition(": b'', theirs b'")[2] != ""


def number_of_document(found, statement, ours, theirs):
    """A number of a JSON column that is beyond 64 bits."""
    pair = re.findall(r"b'(-?[\d.]+(?:e[-+]?\d+)?)'", found)
    has_document = any(field.type_code == 245 for field in ours.fields)
    if not has_document or kind_of(found) != "value" or len(pair) != 2:
        return False
    own, other = (float(text) for text in pair)
    # A FLOAT becomes a double, and has the digits of that; MariaDB has the six digits of its text.
    is_float = any(kind.startswith("FLOAT") for kind in statement.types()) or " FLOAT" in statement.text()
    has_float = "double" in statement.families() or is_float
    return own == other or has_float and float(f"{own:.6g}") == other


def cut_to_32_bits(found, statement, ours, theirs):
    """An integer of which MariaDB sends the low 32 bits, because it takes one of ten digits for an INT."""
    pair = re.findall(r"b'(-?\d+)'", found)
    is_cast = statement.prepared and statement.names() & {"CAST UNSIGNED", "CAST SIGNED"}
    return kind_of(found) == "value" and bool(is_cast) and len(pair) == 2 and (int(pair[0]) - int(pair[1])) % 2**32 == 0


def position_beyond(found, statement, ours, theirs):
    """A part of a text from a position that is the text of a number beyond 64 bits."""
    is_beyond = [any(re.match(r"1292 Truncated incorrect INTEGER value: '[1-9]\d{19,}", text) for text in outcome.texts) for outcome in (ours, theirs)]
    return kind_of(found) == "value" and all(is_beyond) and bool(statement.names() & {"SUBSTR", "SUBSTRING", "MID", "LEFT", "RIGHT", "LOCATE", "INSERT"})


def row_with_null(found, statement, ours, theirs):
    """A count of comparisons of rows, of which one operand is NULL."""
    is_row = re.search(r"COUNT\(\({1,2}[^()]+, [^()]+\) (=|<>|!=|<|<=|>|>=) \([^()]+, [^()]+\)", statement.text())
    numbers = re.findall(r"b'(\d+)'", found)
    return kind_of(found) == "value" and bool(is_row) and len(numbers) == 2 and int(numbers[0]) < int(numbers[1])


def number_to_choice(found, statement, ours, theirs):
    """The column of numbers that an ALTER TABLE makes an ENUM or a SET: MariaDB takes the member at the position that is
    the text of the member here, or that no member has as its text."""
    choice = re.search(r" MODIFY \w+ (ENUM|SET)\(('.*')\)", statement.text())
    pair = inner(found)
    if choice is None or kind_of(found) != "value" or len(pair) != 2 or not statement.families() & {"integer", "decimal", "double", "bit", "year"}:
        return False
    members = choice[2][1:-1].split("','")
    if pair[0] == "":
        return True
    if not pair[0].isdigit() or pair[0] not in members:
        return False
    number = int(pair[0])
    if choice[1] == "ENUM":
        return pair[1] == (members[number - 1] if 0 < number <= len(members) else "")
    return pair[1] == ",".join(member for bit, member in enumerate(members) if number >> bit & 1)


def is_next_second(ours, theirs):
    """Whether two integers are a moment or a time, and the second after it."""
    own, other = str(abs(ours)).zfill(6), str(abs(theirs)).zfill(6)
    width, kind = (14, "%Y%m%d%H%M%S") if len(own) > 7 else (7, None)
    if kind is not None:
        try:
            return datetime.strptime(own.zfill(width), kind) - datetime.strptime(other.zfill(width), kind) == timedelta(seconds=1)
        except ValueError:
            return False
    seconds = [int(text[:-4]) * 3600 + int(text[-4:-2]) * 60 + int(text[-2:]) for text in (own, other)]
    return seconds[0] - seconds[1] == 1


def rounded_moment(found, statement, ours, theirs):
    """An integer from a day or time whose fraction of a second is rounded here, and cut in MariaDB."""
    pair = inner(found)
    if kind_of(found) != "value" or len(pair) != 2 or not (statement.families() & TEMPORAL_FAMILIES or statement.names() & TEMPORAL or is_write(statement)):
        return False
    if is_write(statement) and all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.0+)?", text) for text in pair):
        # The integer is stored as a moment.
        pair = [re.sub(r"\D", "", text.partition(".")[0]) for text in pair]
    bases = {10} | ({2} if "BIN" in statement.names() else set()) | ({8} if "OCT" in statement.names() else set())
    if "CONV" in statement.names():
        bases |= {abs(int(base)) for base in re.findall(r", (-?\d+)\)", statement.text())} & set(range(2, 37))
    for base in bases:
        try:
            if is_next_second(int(pair[0], base), int(pair[1], base)):
                return True
        except ValueError:
            continue
    if all(re.fullmatch(r"\d+(\.\d+){3}", text) for text in pair):
        # An address is a number of four bytes.
        pair = ["".join(f"\\x{int(part):02x}" for part in text.split(".")) for text in pair]
    own, other = (value_bytes(text) for text in pair)
    if len(own) == len(other) and len(own) in range(1, 9) and is_next_second(int.from_bytes(own, "big"), int.from_bytes(other, "big")):
        return True
    if "CHAR" in statement.names():
        # Each number is four bytes without those that are 0 before it.
        if is_next_second(int.from_bytes(own, "big"), int.from_bytes(other, "big")):
            return True
        return len(own) == len(other) and all(left - right in (0, 1, 41) for left, right in zip(own, other))
    if statement.names() & {"LPAD", "RPAD", "LEFT", "RIGHT", "REPEAT", "SPACE", "SUBSTR", "SUBSTRING", "MID"}:
        # The number is a count of characters.
        return any(own is not None and other is not None and (1 <= abs(len(own) - len(other)) <= 4 or is_next_second(len(own), len(other))) for own, other in zip(*values_of(ours, theirs)))
    return False


def values_of(ours, theirs):
    return [row[0] for row in ours.rows], [row[0] for row in theirs.rows]


def value_bytes(text):
    """The bytes that Python shows as a text."""
    return text.encode().decode("unicode_escape", "replace").encode("latin-1", "replace")


def near_numbers(found):
    """Whether two texts differ only in the last digits of doubles."""
    pair = inner(found)
    number = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
    if kind_of(found) != "value" or len(pair) != 2 or number.sub("#", pair[0]) != number.sub("#", pair[1]):
        return False
    return all(abs(float(own) - float(other)) <= 1e-14 * abs(float(own)) for own, other in zip(*(number.findall(text) for text in pair)))


def near_product(found, statement, ours, theirs):
    """Products of decimals that differ beyond the digits that nine groups of nine have."""
    pair = re.findall(r"b'(-?\d+(?:\.\d+)?)'", found)
    if found == "kind: rows, theirs error 1690":
        return "*" in statement.names() and has_many_groups(statement)
    if kind_of(found) != "value" or len(pair) != 2 or "*" not in statement.names():
        return False
    own, other = (Decimal(text) for text in pair)
    is_long = all("." in text or len(text) > 20 for text in pair)
    return abs(own - other) <= abs(own) * Decimal("1e-40") or is_long and has_many_groups(statement)


def has_many_groups(statement):
    """Whether two operands have more than nine groups of nine digits together, so that a product loses digits."""
    text, groups = statement.text(), []
    for whole, fraction in re.findall(r"(?<![\w.'])-?(\d+)\.(\d+)", text):
        groups.append(-(-len(whole) // 9) + -(-len(fraction) // 9))
    for name, kind in statement.kinds.items():
        digits = re.match(r"DECIMAL\((\d+),(\d+)\)", kind)
        if digits:
            precision, scale = int(digits[1]), int(digits[2])
            groups += [-(-(precision - scale) // 9) + -(-scale // 9)] * len(re.findall(rf"\b{name}\b", text))
    return sum(sorted(groups)[-2:]) > 9


def has_wide_bit(statement):
    return "BIT(64)" in statement.types()


def document_operand(found, statement, ours, theirs):
    """A document as the operand of a function of other values, or stored in a column. The value of an expression around
    such a function has the reason only if the function alone differs, which main.py asks."""
    if is_write(statement):
        return "json" in statement.families() and kind_of(found) in ("value", "warnings", "affected", "kind")
    forms = [statement.root] if kind_of(found) == "value" and isinstance(statement.root, Form) else nodes(statement.root)
    takes = any(family(operand) == "json" for node in forms if not is_document_function(node) for operand in node.operands)
    return takes and kind_of(found) in ("value", "warnings")


def is_document_function(node):
    return isinstance(node, Form) and (node.name or "").startswith("JSON_")


def document_value(found, statement, ours, theirs):
    """The value of a JSON function: that of MySQL's rules where they are known, or one that differs in a way of MariaDB's."""
    both, root = pair(found), statement.root
    if kind_of(found) != "value" or both is None or not is_document_function(root) or is_write(statement):
        return False
    known = is_expected(root, both[0])
    if known is not None:
        return known
    own, other = both
    open_operand = any(not isinstance(operand, Literal) for operand in root.operands)
    if root.name == "JSON_TYPE":
        return own in (b"DOUBLE", b"UNSIGNED INTEGER", b"DECIMAL", b"DATE", b"TIME", b"DATETIME", b"BLOB", b"BIT") and other in (b"INTEGER", b"DOUBLE", b"STRING", None) or other is None and own in (b"ARRAY", b"OBJECT", b"INTEGER", b"STRING", b"NULL", b"BOOLEAN")
    if root.name == "JSON_VALID":
        # A value that is no text, or a binary string, is no document.
        return open_operand and (both == (b"0", b"1") or other is None)
    if root.name in ("JSON_QUOTE", "JSON_UNQUOTE") or "integer" == SIGNATURES[root.name][0]:
        return open_operand
    if root.name == "JSON_SEARCH":
        # A string is found by its bytes, and a number is no string. MariaDB does not convert a text of latin1.
        is_narrow = any("CHARACTER SET latin1" in kind for kind in statement.types())
        return own is None and other is not None or is_narrow and own is not None and other is None
    if own is None or other is None:
        # A path that is absent, or the last element of what is no array.
        return open_operand
    return same_form(own, other) or "[last]" in statement.text() or open_operand and any(is_document_function(operand) or family(operand) in ("json", "unknown", "text") for operand in root.operands[:1]) and root.name not in ("JSON_ARRAY", "JSON_OBJECT")


def same_form(own, other):
    """Whether two documents differ only in the types of their scalars: bytes, BIT, numbers and times are texts in MariaDB."""
    try:
        left = json.loads(own)
    except ValueError:
        return False
    try:
        return same_scalars(left, json.loads(other))
    except ValueError:
        # MariaDB writes BIT and ZEROFILL as they are, which is no document.
        return b"base64:type16:" in own or re.search(rb"(?<![\d.\"\w])0\d|\\u", other) is not None


def same_scalars(left, right):
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_scalars, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() == right.keys():
            return all(same_scalars(left[name], right[name]) for name in left)
        # The names may have been bytes, which are compared as they are printed.
        return len(left) == len(right) and all(map(same_scalars, left.values(), right.values()))
    if isinstance(left, (list, dict)) and isinstance(right, str):
        # A document within a document is a text.
        try:
            return same_scalars(left, json.loads(right))
        except ValueError:
            return False
    if isinstance(left, str) and left.startswith("base64:type"):
        return isinstance(right, (str, int, float))
    if isinstance(left, str) and isinstance(right, str):
        # A time has six digits after the point; two of one letter may be of unlike collations or extremes.
        left, right = (re.sub(r"\.(\d*?)0+$", lambda match: "." + match[1] if match[1] else "", text) for text in (left, right))
        return left == right or not (left + right).isascii()
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        # A FLOAT is a double; true is 1.
        return float(left) == float(right) or abs(left - right) <= 1e-5 * abs(left)
    # LEAST and its kin of texts and numbers are texts.
    return {type(left), type(right)} <= {str, int, float, bool, type(None)}


def document_type(found, statement, ours, theirs):
    """The type of an expression with a function that gives a document, which is a text in MariaDB."""
    gives = any(is_document_function(node) and SIGNATURES[node.name][0] == "json" for node in nodes(statement.root))
    return gives and kind_of(found) in ("type", "decimals")


def document_warnings(found, statement, ours, theirs):
    """Warnings of documents where numbers, days or times are wanted: 3155 and 3156, in MariaDB those of texts."""
    has_document = "json" in statement.families() or any(is_document_function(node) for node in nodes(statement.root)) or "alter" in statement.features and "JSON" in statement.text()
    own, other = numbers_of(ours) - numbers_of(theirs), numbers_of(theirs) - numbers_of(ours)
    is_text = own <= {3155, 3156} | ONLY_OURS | ({1365} if own & {3155, 3156} else set()) and other <= {1105, 1265, 1292, 1365, 1366, 1916} | ONLY_THEIRS
    return has_document and kind_of(found) == "warnings" and is_text and bool(own & {3155, 3156} or not own and other)


def overflow_numbers(found, statement, ours, theirs):
    """1916, and 1105 of CAST AS UNSIGNED, for what MySQL has 1292, 1264 or nothing."""
    own = {1916} | ({1105} if "CAST UNSIGNED" in statement.names() else set())
    rest = one_sided(statement, ours, theirs)[1]
    return kind_of(found) in ("warnings", "error") and bool(own & numbers_of(theirs)) and rest - numbers_of(ours) <= {1292} and numbers_of(ours) - ONLY_OURS - rest <= {1264, 1265, 1292, 1690}


BITS = {"&", "|", "^", "<<", ">>", "~"}
# Families that may hold a text.
TEXTS = {"text", "bytes", "hex", "json", "unknown"}
DAYS_WANTED = {
    **dict.fromkeys(["DATE", "DAY", "DAYNAME", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR", "MONTH", "MONTHNAME", "QUARTER", "YEAR", "WEEK", "WEEKOFYEAR", "YEARWEEK", "WEEKDAY", "LAST_DAY", "TO_DAYS", "TO_SECONDS"], ("day",)),
    **dict.fromkeys(["CAST DATE", "CAST DATETIME", "DATE_FORMAT", "CONVERT_TZ", "UNIX_TIMESTAMP"], ("day",)), **dict.fromkeys(["TIMESTAMPDIFF", "DATEDIFF"], ("day", "day")),
    **dict.fromkeys(["HOUR", "MINUTE", "SECOND", "MICROSECOND", "TIME", "TIME_TO_SEC", "TIME_FORMAT", "CAST TIME"], ("time",)), **dict.fromkeys(["ADDTIME", "SUBTIME", "TIMESTAMP"], ("day", "time")),
}
# Maximum length of a text in which digits are looked for.
LONG_TEXT = 1000


def odd_operand(statement):
    """Whether a function of days and times may have an operand that is none, a zero date, or a time beyond the clock."""
    for node in nodes(statement.root, TEMPORAL):
        wanted = DAYS_WANTED.get(node.name)
        if wanted is None:
            return True
        if any(not is_clean(operand, kind) for operand, kind in zip(node.operands, wanted)):
            return True
    return False


def same_but_zeros(found):
    """Whether two texts are equal but for zeros at the end of fractions."""
    both = pair(found)
    if both is None or None in both or len(both[0]) > LONG_TEXT:
        return False
    own, other = (re.sub(rb"\.(\d*?)0+(?!\d)", lambda match: b"." + match[1] if match[1] else b"", value) for value in both)
    return own == other


def temporal_operand(found, statement, ours, theirs):
    """A function of days and times of an operand that is none, or whose value may be zero."""
    if not statement.names() & TEMPORAL or kind_of(found) not in ("value", "type", "decimals", "rows", "warnings"):
        # A function of numbers may fail for the number that only MariaDB has.
        return (ours.kind, theirs.number) == ("rows", 1690) and bool(statement.names() & TEMPORAL) and odd_operand(statement) and any(None in row for row in ours.rows)
    if odd_operand(statement) or same_but_zeros(found):
        return True
    both = pair(found)
    # A column of days may have a zero one, which is NULL for one of the servers.
    has_days = any(isinstance(leaf, Words) and leaf.family in ("date", "moment", "timestamp") for leaf in leaves(statement.root))
    # ADDTIME and SUBTIME have the text of a moment.
    if statement.names() & {"ADDTIME", "SUBTIME"} and not any(statement.root is node for node in nodes(statement.root, TEMPORAL)):
        return True
    if has_days and (kind_of(found) in ("rows", "warnings") or "aggregate" in statement.features or both is not None and None in both):
        return True
    return kind_of(found) in ("decimals", "warnings")


def no_moment(found, statement, ours, theirs):
    """UNIX_TIMESTAMP of an operand that may be no moment, or one outside of the range, which is 0 in MySQL and NULL in
    MariaDB."""
    calls = list(nodes(statement.root, {"UNIX_TIMESTAMP"}))
    odd = any(not (isinstance(node.operands[0], Literal) and is_day(node.operands[0]) and "1970-01-02" <= node.operands[0].text.strip("DATESMP'")[:10] < "2038") for node in calls)
    both = pair(found)
    # In the last second of 32 bits, MariaDB gives NULL.
    odd = odd or "2038-01-19 03:14:07" in statement.text() or "1000-01-01" in statement.text()
    if both is not None and statement.root in calls:
        own, other = both
        return odd and (other is None or own is not None and float(own) == 0) or own is not None and same_but_zeros(found)
    return odd and (theirs.kind != "rows" or any(None in row for row in theirs.rows) or statement.root not in calls or kind_of(found) in ("type", "decimals", "warnings"))


def seconds_of_time(found, statement, ours, theirs):
    """TIME_TO_SEC without the fraction that its operand has."""
    calls = list(nodes(statement.root, {"TIME_TO_SEC"}))
    if not any(has_fraction(node.operands[0], statement.kinds) for node in calls):
        return False
    both = numbers(found)
    if statement.root in calls and both is not None:
        return int(Decimal(both[1])) == Decimal(both[0])
    return not statement.root in calls or kind_of(found) in ("type", "decimals")


def sum_of_choice(found, statement, ours, theirs):
    """SUM and AVG of ENUM and SET as doubles."""
    if not has_operand(statement.root, {"SUM", "AVG"}, {"choice"}):
        return False
    both = numbers(found)
    return found == "type: double, theirs newdecimal" or both is not None and abs(float(both[0]) - float(both[1])) <= 1e-4


def integer_of(node):
    """The integer that MySQL makes of a constant for bits; `None` if it is not known."""
    if not isinstance(node, Literal) or node.family is not None:
        return None
    if node.text.startswith("'"):
        digits = re.match(r"\s*([-+]?\d+)", node.text[1:])
        return int(digits[1]) if digits else 0
    return int(node.text) if re.fullmatch(r"-?\d+", node.text) else None


def bits_of(node):
    """The result of an operator of bits of constants by MySQL's rules; `None` if it is not known."""
    operands = [integer_of(operand) for operand in node.operands]
    if None in operands or any(not -2**63 <= operand < 2**64 for operand in operands):
        return None
    left, right = operands[0] % 2**64, operands[-1] % 2**64
    return {"~": 2**64 - 1 - left, "&": left & right, "|": left | right, "^": left ^ right, "<<": left << min(right, 64), ">>": left >> min(right, 64)}[node.name] % 2**64


def text_as_bits(found, statement, ours, theirs):
    """An operand of bits that may be a text: an integer up to its first other character, or bytes that give bytes."""
    if not has_operand(statement.root, BITS, TEXTS):
        return False
    if ours.number == 3513:
        # Bytes of unlike lengths.
        return theirs.kind in ("rows", "ok") or theirs.number == 1292
    both = pair(found)
    if statement.root in list(nodes(statement.root, BITS)) and both is not None:
        known = bits_of(statement.root)
        if known is not None:
            return both[0] == str(known).encode()
        is_bytes = all(family(operand) in ("bytes", "hex", "unknown", "integer") for operand in statement.root.operands)
        is_number = numbers(found) is not None
        gives_bytes = bool(ours.fields) and ours.fields[0].charsetnr == 63 and ours.fields[0].type_code > 248
        return is_number or is_bytes or gives_bytes or None in both
    return kind_of(found) in ("value", "rows", "type", "warnings", "decimals", "affected", "kind")


def double_as_bits(found, statement, ours, theirs):
    """An operand of bits that is a double: it is rounded to even, and is a signed integer of 64 bits."""
    both = numbers(found)
    operands = [operand for node in nodes(statement.root, BITS) for operand in node.operands]
    is_double = any(family(operand) in ("double", "number", "decimal") or isinstance(operand, Words) and statement.kinds.get(operand.text, "").startswith(("DOUBLE", "FLOAT", "REAL", "DECIMAL", "NUMERIC", "DEC", "FIXED")) for operand in operands)
    return is_double and (both is not None or kind_of(found) in ("value", "rows", "warnings"))


def arithmetic_as_double(found, statement, ours, theirs):
    """ENUM and SET in arithmetic, days and times in arithmetic of one operand: doubles in MySQL."""
    has_choice = has_operand(statement.root, ROUNDING | ARITHMETIC, {"choice", "unknown"})
    has_day = has_operand(statement.root, ROUNDING, TEMPORAL_FAMILIES | {"unknown"}) or has_operand(statement.root, ARITHMETIC, {"unknown"})
    if not (has_choice or has_day):
        return False
    if found.startswith("type: double, theirs") or kind_of(found) == "decimals":
        return True
    both = pair(found)
    if kind_of(found) != "value" or both is None or statement.root not in list(nodes(statement.root, ROUNDING | ARITHMETIC)):
        return kind_of(found) == "value"
    # A zero date is NULL in MariaDB.
    own, other = (None if value is None else number_of_day(value) for value in both)
    if own is None or other is None:
        return both[0] is None or other is None and (both[1] is None or own is not None)
    if statement.root.name in ("%", "MOD"):
        # The remainder of a double by another one has other digits than that of decimals.
        return True
    is_carried = abs(own) % 100 == 60  # the second after a minute, as a number
    places = [operand.text for operand in statement.root.operands[1:] if isinstance(operand, Literal) and operand.text.startswith("-")]
    if statement.root.name in ("ROUND", "TRUNCATE") and places and not is_carried:
        return abs(own - other) <= 10.0 ** min(20.0, abs(float(places[0])))
    return is_carried or abs(own - other) <= max(1.0, 1e-3 * abs(own)) or statement.names() & {"NULLIF"} and "0x" in statement.text()


def number_of_day(value):
    """A number, or the digits of a day or time as one; `None` for another text."""
    text = value.decode("utf-8", "replace")
    try:
        return float(text)
    except ValueError:
        digits = re.sub(r"[-: ]", "", text.lstrip("-"))
        return float(digits) * (-1 if text.startswith("-") else 1) if re.fullmatch(r"\d+(\.\d*)?", digits) else None


def null_timestamp(found, statement, ours, theirs):
    """NULL for a TIMESTAMP NOT NULL: the current time in MariaDB."""
    column = re.search(r"Column '(\w+)' cannot be null", ours.message)
    return (ours.number, theirs.kind) == (1048, "ok") and column is not None and statement.kinds.get(column[1], "").startswith("TIMESTAMP")


def rounded_choice(found, statement, ours, theirs):
    """A number that is stored in an ENUM or SET."""
    column = re.search(r"column '(\w+)'", ours.message)
    return is_write(statement) and (ours.number, theirs.kind) == (1265, "ok") and column is not None and statement.kinds.get(column[1], "").startswith(("ENUM", "SET"))


def divided_double(found, statement, ours, theirs):
    """DIV with a double or a text beyond 64 bits, or one that is 0 as a decimal."""
    for node in nodes(statement.root, {"DIV"}):
        if any(family(operand) in ("double", "text", "json", "unknown", "bytes", "number", "hex") for operand in node.operands):
            both = numbers(found)
            is_document = "json" in {family(operand) for operand in node.operands} and theirs.kind == "rows"
            is_beyond = ours.number == 1690 and (1916 in numbers_of(theirs) or is_document)
            return both is not None or kind_of(found) == "value" and None in (pair(found) or ()) or 1365 in numbers_of(ours) or is_beyond
    return False


def null_beside_time(found, statement, ours, theirs):
    """A parameter that is NULL beside a day or time in CASE and its kin."""
    if not statement.prepared or not any(kind == NULL for kind, _ in statement.sent()[1] or ()):
        return False
    return any(set(found_families) & (TEMPORAL_FAMILIES | {"year"}) and "null" in found_families for found_families in [[family(operand) for operand in node.operands] for node in nodes(statement.root, CHOICES)])


def prepared_remainder(found, statement, ours, theirs):
    """A remainder of doubles with other digits after the point, of a parameter."""
    both = numbers(found)
    return statement.prepared and bool(statement.names() & {"MOD", "%"}) and both is not None and abs(Decimal(both[0]) - Decimal(both[1])) <= Decimal("1e-2")


def astral_ord(found, statement, ours, theirs):
    """ORD of a character of four bytes, modulo 2 to the 32nd."""
    both = numbers(found)
    if "ORD" not in statement.names():
        return False
    if both is not None and statement.root in list(nodes(statement.root, {"ORD"})):
        return int(both[0]) - int(both[1]) == 2**32
    return bool(re.search("[\U00010000-\U0010ffff]", statement.text())) or any(re.search(rb"\xf0[\x80-\xbf]{3}", value or b"") for row in ours.rows for value in row)


def no_match(found, statement, ours, theirs):
    """REGEXP_SUBSTR without a match: NULL, and '' in MariaDB."""
    calls = list(nodes(statement.root, {"REGEXP_SUBSTR"}))
    both = pair(found)
    if both is not None and statement.root in calls:
        return both == (None, b"")
    return bool(calls) and kind_of(found) in ("value", "rows", "warnings", "kind", "error", "affected")


def part_of_day(found, statement, ours, theirs):
    """TIME_FORMAT with parts of a day: 0, and NULL in MariaDB."""
    calls = [node for node in nodes(statement.root, {"TIME_FORMAT"}) if re.search("%[^HhIiSsTrfklp]", node.operands[1].text if isinstance(node.operands[1], Literal) else "%d")]
    both = pair(found)
    return bool(calls) and (both[1] is None if both is not None and statement.root in calls else kind_of(found) in ("value", "rows", "warnings", "affected"))


def late_zone(found, statement, ours, theirs):
    """CONVERT_TZ of a moment at an end of the seconds of 32 bits, which end there in MariaDB."""
    calls = list(nodes(statement.root, {"CONVERT_TZ"}))
    return bool(calls) and all(not isinstance(node.operands[0], Literal) or not "1970-01-03" < node.operands[0].text.strip("TIMESAPD'")[:10] < "2038" for node in calls) and kind_of(found) in ("value", "rows", "warnings")


def fraction_as_bits(found, statement, ours, theirs):
    """A time with a fraction as an operand of bits: rounded, and cut in MariaDB."""
    operands = [operand for node in nodes(statement.root, BITS) for operand in node.operands]
    return kind_of(found) in ("value", "rows") and any(family(operand) in TEMPORAL_FAMILIES and has_fraction(operand, statement.kinds) for operand in operands)


def extreme_of_null(found, statement, ours, theirs):
    """LEAST or GREATEST with the literal NULL: its type is that of the others."""
    return has_operand(statement.root, {"LEAST", "GREATEST"}, {"null"}) and kind_of(found) in ("type", "decimals") and all(value is None for row in ours.rows for value in row)


def extreme_of_texts(found, statement, ours, theirs):
    """LEAST or GREATEST of texts, where a number is wanted."""
    calls = list(nodes(statement.root, {"LEAST", "GREATEST"}))
    return bool(calls) and statement.root not in calls and has_operand(statement.root, {"LEAST", "GREATEST"}, {"text", "bytes", "hex", "choice"}) and kind_of(found) in ("value", "rows", "warnings", "type", "kind")


def average_of_days(found, statement, ours, theirs):
    """AVG of days and times: exact, and a double of 16 digits in MariaDB."""
    both = numbers(found)
    return has_operand(statement.root, {"AVG", "SUM"}, TEMPORAL_FAMILIES) and both is not None and abs(Decimal(both[0]) - Decimal(both[1])) <= max(abs(Decimal(both[0])) * Decimal("1e-13"), Decimal("1e-8"))


def is_null_of(outcome, statement, kinds):
    """Whether an error 1048 is about a column of one of the types."""
    column = re.search(r"Column '(\w+)' cannot be null", outcome.message)
    return outcome.number == 1048 and column is not None and statement.kinds.get(column[1]) in kinds


def far_zone(found, statement, ours, theirs):
    """CONVERT_TZ with +14:00, which is a zone in MySQL only."""
    calls = list(nodes(statement.root, {"CONVERT_TZ"}))
    return any(isinstance(zone, Literal) and zone.text == "'+14:00'" for node in calls for zone in node.operands[1:]) and kind_of(found) in ("value", "rows", "warnings")


def fraction_of_parameter(found, statement, ours, theirs):
    """A time or moment from a parameter: six digits of its fraction, and none in MariaDB."""
    both = pair(found)
    has_parameter = any(leaf.sent and "." in leaf.text for leaf in leaves(statement.root) if isinstance(leaf, Literal) and leaf.parameter is not None)
    is_operand = any(getattr(operand, "sent", False) for node in nodes(statement.root, {"TIME", "TIMESTAMP", "ADDTIME", "SUBTIME"}) for operand in node.operands)
    if statement.prepared and (has_parameter or is_operand) and statement.names() & {"TIME", "TIMESTAMP", "ADDTIME", "SUBTIME"} and statement.root not in list(nodes(statement.root, TEMPORAL)):
        return kind_of(found) in ("value", "rows")
    return statement.prepared and has_parameter and both is not None and None not in both and re.search(rb"\.\d", both[0]) is not None and re.search(rb"\.\d*[1-9]", both[1]) is None


def sum_of_null(found, statement, ours, theirs):
    """ADDTIME or SUBTIME of the literal NULL: NULL of bytes."""
    return has_operand(statement.root, {"ADDTIME", "SUBTIME"}, {"null"}) and kind_of(found) in ("type", "decimals") and all(value is None for row in ours.rows for value in row)


def choice_as_number(found, statement, ours, theirs):
    """ENUM or SET in IF and its kin, where a number is wanted: its position, and its text in MariaDB."""
    return has_operand(statement.root, CHOICES, {"choice"}) and kind_of(found) in ("value", "rows", "warnings") and 1292 in numbers_of(theirs)


def fraction_as_integer(found, statement, ours, theirs):
    """A time with a fraction where a function wants an integer: rounded, and cut in MariaDB."""
    calls = nodes(statement.root, {"CHAR", "LPAD", "RPAD", "LEFT", "RIGHT", "REPEAT", "SPACE", "CONV", "BIN", "OCT", "INET_NTOA", "MAKE_SET", "EXPORT_SET", "ELT"})
    operands = [operand for node in calls for operand in node.operands]
    return kind_of(found) == "value" and any(family(operand) in TEMPORAL_FAMILIES and has_fraction(operand, statement.kinds) for operand in operands)


def fraction_out_of_range(found, statement, ours, theirs):
    """A negative time whose fraction is rounded, stored in an unsigned column."""
    column = re.search(r"for column '(\w+)'", ours.message)
    is_unsigned = column is not None and re.search("UNSIGNED|ZEROFILL", statement.kinds.get(column[1], ""))
    return is_write(statement) and (ours.number, theirs.kind) == (1264, "ok") and bool(is_unsigned) and bool(statement.names() & {"CAST TIME", "TIME", "SUBTIME", "TIMEDIFF"} or "time" in statement.families())


def illegal_extreme(found, statement, ours, theirs):
    """MIN or MAX of a text that has no collation."""
    return theirs.number == 1267 and bool(statement.names() & {"MIN", "MAX"}) and "NONE) for operation 'm" in theirs.message and ours.kind == "rows"


def own_bytes(found, statement, ours, theirs):
    """A text of latin1 among bytes: its bytes, and those of utf8mb4 in MariaDB."""
    both = pair(found)
    is_mixed = has_operand(statement.root, CHOICES | {"CONCAT", "CONCAT_WS", "ELT"}, {"bytes", "hex"}) and narrow_set(statement)
    return is_mixed and both is not None and None not in both and both[0].decode("latin-1").encode() == both[1]


def bytes_in_text(found, statement, ours, theirs):
    """Bytes that become part of a text: unchanged, and ? for what is no text in MariaDB."""
    both = pair(found)
    if both is None or None in both or len(both[0]) != len(both[1]):
        return False
    return all(own == other or other == ord("?") and own > 127 for own, other in zip(*both))


def wide_rounded(found, statement, ours, theirs):
    """MIN or MAX of a rounded double in groups, which MariaDB cuts to 17 digits."""
    both = pair(found)
    is_rounded = has_operand(statement.root, {"MIN", "MAX", "AVG", "SUM"}, {"number", "double", "integer"}) and bool(statement.names() & ROUNDING)
    return "aggregate" in statement.features and is_rounded and both is not None and re.fullmatch(rb"-?10{17}(\.0*)?", both[1] or b"") is not None


def unsigned_bits(found, statement, ours, theirs):
    """Bits of an UNSIGNED FLOAT or DOUBLE: those of a signed number, which ends at 63 bits."""
    both = numbers(found)
    is_unsigned = any(re.match(r"(FLOAT|DOUBLE|REAL).* (UNSIGNED|ZEROFILL)", kind) for kind in statement.types())
    is_bits = has_operand(statement.root, {"BIT_AND", "BIT_OR", "BIT_XOR"}, {"double", "number"})
    return is_bits and is_unsigned and both is not None and (int(both[0]) ^ int(both[1]) == 1 << 63 or int(both[0]) == 2**63 - 1 < int(both[1]))


def double_of_remainder(found, statement, ours, theirs):
    """A remainder of a double by a logarithm, whose last digit decides."""
    return "LOG2" in statement.names() and bool(statement.names() & {"%", "MOD"}) and kind_of(found) == "value"


def refused_expression(found, statement, ours, theirs):
    """A regular expression of bytes: error 3995."""
    return ours.number == 3995 and theirs.kind in ("error", "rows") and bool(statement.names() & {"REGEXP_INSTR", "REGEXP_REPLACE", "REGEXP_SUBSTR", "RLIKE"})


def nested_set(found, statement, ours, theirs):
    """A regular expression with a set within a set, which PCRE reads as one set."""
    patterns = [node.operands[1].text for node in nodes(statement.root, {"RLIKE", "REGEXP_SUBSTR", "REGEXP_INSTR", "REGEXP_REPLACE"}) if isinstance(node.operands[1], Literal)]
    return any(re.search(r"\[[^]]*\[", pattern) for pattern in patterns) and kind_of(found) in ("value", "rows")


def compared_check(found, statement, ours, theirs):
    """A CHECK that compares a column of days, which it got by an ALTER TABLE, with bytes or a number."""
    is_refused = (ours.number, theirs.kind) == (3819, "ok") or kind_of(found) == "affected" and 3819 in numbers_of(ours) - numbers_of(theirs)
    if not is_refused or "CHECK" not in statement.sources:
        return False
    check = statement.sources["CHECK"].render(None)
    return any(name in check and kind.startswith(("DATE", "TIME", "YEAR", "JSON")) for name, kind in statement.kinds.items())


def error_of_default(found, statement, ours, theirs):
    """A default that fails by the rules of strict writes."""
    names = re.search(r"[Cc]olumn '(\w+)'", ours.message)
    is_default = ours.number == 1441 or names is not None and names[1] in statement.sources
    return is_write(statement) and (ours.number in (1264, 1265, 1292, 1406, 1441) and theirs.kind == "ok") and is_default


def generated_of_old_row(found, statement, ours, theirs):
    """MariaDB computes the generated columns of the row that REPLACE deletes."""
    column = re.search(r"(?:\.`|column ')(\w+)[`'] at row", theirs.message)
    # A wrong number in the expression names no column.
    is_generated = column[1] in statement.sources if column is not None else bool(statement.sources) and theirs.message.startswith("Truncated incorrect")
    return statement.text().startswith("REPLACE") and ours.kind == "ok" and theirs.number in VALUE and is_generated


def generated_from_comparison(found, statement, ours, theirs):
    """A column that is generated from a comparison of unlike types."""
    text = statement.text()
    sources = [source for name, source in statement.sources.items() if name != "CHECK" and re.search(rf"\b{name}\b", text)]
    return kind_of(found) in ("value", "rows", "warnings") and any(unlike(source, {"compare", "BETWEEN", "IN"}) for source in sources)


def rounded_format(found, statement, ours, theirs):
    """FORMAT of a double with 30 digits, and 38 in MariaDB."""
    both = pair(found)
    if "FORMAT" not in statement.names() or both is None or None in both:
        return False
    try:
        own, other = (float(text.replace(b",", b"")) for text in both)
    except ValueError:
        return False
    return abs(own - other) <= 1e-15 * abs(own)


def logarithm_in_text(found, statement, ours, theirs):
    """A logarithm whose last digit differs, in a text that is cut, sorted or hashed."""
    is_cut = statement.names() & {"MID", "SUBSTR", "SUBSTRING", "RIGHT", "REVERSE", "CRC32", "MD5", "SHA", "SHA1", "SHA2", "HEX", "TO_BASE64", "AES_ENCRYPT", "LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH", "OCTET_LENGTH", "BIT_LENGTH"}
    return ("LOG2" in statement.names() or "logarithm" in statement.features and "double" in statement.families()) and kind_of(found) == "value" and bool(is_cut)


def greatest_time(found, statement, ours, theirs):
    """A time beyond the greatest one is that without a fraction, and compared so."""
    has_greatest = re.search(r"838:59:59|8385959", statement.text()) and any(f"'{text}'" in statement.text() for text in ("839:00:00", "34 23:00:00"))
    return bool(has_greatest) and bool(statement.names() & {"NULLIF", "compare", "BETWEEN", "IN", "CASE", "FIELD"}) and kind_of(found) in ("value", "rows")


def between_texts(found, statement, ours, theirs):
    """BETWEEN of a TIME and texts compares texts in MySQL."""
    return any("time" in kinds and "text" in kinds for kinds in [[family(operand) for operand in node.operands] for node in nodes(statement.root, {"BETWEEN"})]) and kind_of(found) in ("value", "rows")


def null_of_addresses(found, statement, ours, theirs):
    """IS_IPV4 and its kin of NULL, stored in a NOT NULL column."""
    return is_write(statement) and (ours.number, theirs.kind) == (1048, "ok") and bool(statement.names() & {"IS_IPV4", "IS_IPV6", "IS_IPV4_COMPAT", "IS_IPV4_MAPPED"})


def moved_sets(found, statement, ours, theirs):
    """COLLATE of a function that is utf8mb3 in MariaDB, or bytes."""
    return (ours.kind, theirs.number) == ("rows", 1253) and bool(statement.names() & {"JSON_TYPE", "SHA2"}) and "COLLATE" in statement.names()


def extreme_of_bits(found, statement, ours, theirs):
    """LEAST or GREATEST of BITs: bytes, and digits in MariaDB."""
    both = pair(found)
    is_bit = has_operand(statement.root, {"LEAST", "GREATEST"}, {"bit"})
    if statement.root not in list(nodes(statement.root, {"LEAST", "GREATEST"})):
        return is_bit and (kind_of(found) == "value" or found == "type: bytes, theirs text")
    return is_bit and both is not None and None not in both and both[1].isdigit() and int.from_bytes(both[0], "big") == int(both[1])


def zero_day(found, statement, ours, theirs):
    """LEAST or GREATEST of days with a zero one, which MariaDB takes for NULL."""
    both = pair(found)
    return has_operand(statement.root, {"LEAST", "GREATEST"}, {"date", "moment", "timestamp"}) and both is not None and both[1] is None and (both[0] or b"").startswith(b"0000-00-00")


def number_of_zero(found, statement, ours, theirs):
    """The variance of large integers, as a double and as digits."""
    both = numbers(found)
    # A difference of integers of 64 bits has few digits as a double.
    near = 0.05 if has_operand(statement.root, DEVIATIONS, {"integer"}) and statement.names() & BITS else 1e-5
    return bool(statement.names() & DEVIATIONS) and both is not None and abs(float(both[0]) - float(both[1])) <= near * abs(float(both[0]))


def quotient_of_days(found, statement, ours, theirs):
    """A quotient of days and times: exact, and a double of 16 digits in MariaDB."""
    both = numbers(found)
    return has_operand(statement.root, {"/", "*"}, TEMPORAL_FAMILIES) and both is not None and abs(Decimal(both[0]) - Decimal(both[1])) <= max(abs(Decimal(both[0])) * Decimal("1e-13"), Decimal("1e-8"))


def many_decimals(found, statement, ours, theirs):
    """FORMAT with more than 30 digits after the point, or a number of them that a column has."""
    for node in nodes(statement.root, {"FORMAT"}):
        places = node.operands[1]
        if not isinstance(places, Literal) or not re.fullmatch(r"'?-?\d+'?", places.text) or int(places.text.strip("'")) > 30:
            return kind_of(found) == "value"
    return False


def replaced_nothing(found, statement, ours, theirs):
    """REPLACE of what may be an empty text with NULL: NULL, and the text in MariaDB."""
    calls = list(nodes(statement.root, {"REPLACE"}))
    # A column may be NULL.
    takes_column = any(isinstance(node.operands[2], Words) and isinstance(node.operands[1], Literal) and node.operands[1].text == "''" for node in calls)
    return (takes_column or has_operand(statement.root, {"REPLACE"}, {"null"})) and kind_of(found) in ("value", "rows", "warnings", "type", "kind", "affected")


def null_bits(found, statement, ours, theirs):
    """SHA2 with NULL for the bits: NULL, and a digest in MariaDB."""
    calls = list(nodes(statement.root, {"SHA2"}))
    both = pair(found)
    may_be_null = any(not isinstance(node.operands[1], Literal) or node.operands[1].text == "NULL" for node in calls)
    if both is not None and statement.root in calls:
        return may_be_null and both[0] is None and both[1] is not None
    return may_be_null and kind_of(found) in ("value", "rows")


def rounded_by_parameter(found, statement, ours, theirs):
    """ROUND or TRUNCATE of a text or double to places that a parameter gives: all digits, and in MariaDB those of the places."""
    calls = [node for node in nodes(statement.root, {"ROUND", "TRUNCATE"}) if len(node.operands) > 1 and getattr(node.operands[1], "sent", False)]
    if not statement.prepared or not any(family(node.operands[0]) not in ("integer", "bit", "year") for node in calls):
        return False
    return same_but_zeros(found) or kind_of(found) == "value" and statement.root not in calls


def is_sent_or_clock(operand):
    """Whether the value of an operand is known when the statement is executed, and not before."""
    return any(getattr(leaf, "sent", False) for leaf in leaves(operand)) or any(node.name in CLOCK for node in nodes(operand))


def distinct_of_text(found, statement, ours, theirs):
    """AVG or SUM of distinct texts or doubles, which MariaDB keeps with the digits of their type."""
    both = numbers(found)
    if "DISTINCT" not in statement.text() or both is None or not statement.names() & {"AVG", "SUM"}:
        return False
    is_text = has_operand(statement.root, {"AVG", "SUM"}, {"text", "bytes", "hex"})
    if is_text and any(isinstance(operand, Words) for node in nodes(statement.root, {"AVG", "SUM"}) for operand in node.operands):
        # An index of the column gives MariaDB distinct texts.
        return True
    if has_operand(statement.root, {"AVG", "SUM"}, TEMPORAL_FAMILIES):
        # Fractions of seconds make no distinct days and times in MariaDB.
        return True
    # MySQL and MariaDB cut a quotient to the digits of its type, four more than its operand has.
    if "/" in statement.names() and abs(Decimal(both[0]) - Decimal(both[1])) <= Decimal("5e-6"):
        return True
    return abs(float(both[0]) - float(both[1])) <= (0.5 if is_text else 1e-5 * abs(float(both[0])))


def point_of_sum(found, statement, ours, theirs):
    """A sum of texts in groups, of which MariaDB prints no digit after the point."""
    both = pair(found)
    return bool(statement.names() & {"SUM", "AVG"}) and "aggregate" in statement.features and both is not None and None not in both and both[1].endswith(b".") and both[0].startswith(both[1])


def negative_of_bits(found, statement, ours, theirs):
    """A comparison of a BIT(64) with a negative integer, which MariaDB takes for an unsigned one, or between bytes, where
    MariaDB takes the bits for a signed one."""
    for node in nodes(statement.root, {"compare", "BETWEEN", "IN"}):
        is_wide = any(isinstance(operand, Words) and statement.kinds.get(operand.text) == "BIT(64)" for operand in node.operands)
        other = r"0x[0-9a-f]+" if node.name == "BETWEEN" else r"-\d+"
        if is_wide and any(isinstance(operand, Literal) and re.fullmatch(rf"-\d+|{other}", operand.text) for operand in node.operands):
            return kind_of(found) in ("rows", "value")
    return False


def number_in_texts(found, statement, ours, theirs):
    """A number before an IN list of texts, or in BETWEEN: all are compared as numbers, and no collation is needed; error
    1270 or 1271 in MariaDB."""
    numeric = ("integer", "decimal", "double", "bit", "year", "number")
    is_number = any(family(node.operands[0]) in numeric for node in nodes(statement.root, {"IN"})) or has_operand(statement.root, {"BETWEEN", "FIELD"}, numeric)
    return ours.kind == "rows" and theirs.number in (1270, 1271) and is_number


def lost_text(found, statement, ours, theirs):
    """CONCAT of a function with a fixed text, which MariaDB overwrites."""
    both = pair(found)
    calls = [node for node in nodes(statement.root, {"CONCAT"}) if any(isinstance(operand, Form) and operand.name in ("GET_FORMAT", "JSON_TYPE") for operand in node.operands)]
    if statement.root in calls and both is not None and None not in both:
        return both[1] in both[0] or len(both[1]) <= len(both[0])
    return bool(calls) and kind_of(found) == "value"


def wide_count(found, statement, ours, theirs):
    """SUBSTRING_INDEX with a count beyond 32 bits."""
    counts = [node.operands[2] for node in nodes(statement.root, {"SUBSTRING_INDEX"})]
    # The count of a column is that of a warning.
    is_text = any(re.search(r"INTEGER value: '-?\d{10,}", text) for text in ours.texts) and any(isinstance(count, Words) for count in counts)
    return kind_of(found) in ("value", "rows") and (is_text or any(isinstance(count, Literal) and is_wide_count(count.text) for count in counts))


def is_wide_count(text):
    """Whether a literal is a number beyond 32 bits."""
    if re.fullmatch(r"-?\d+|0x[0-9a-f]+", text):
        return abs(int(text, 0)) >= 2**31
    return re.fullmatch(r"-?\d+(\.\d*)?(e[-+]?\d+)?", text) is not None and abs(float(text)) >= 2**31


def time_as_length(found, statement, ours, theirs):
    """The length of a part of a text that is a time."""
    both = pair(found)
    calls = [node for node in nodes(statement.root, {"SUBSTRING", "SUBSTR", "MID"}) if len(node.operands) > 2 and family(node.operands[2]) == "time"]
    return bool(calls) and both is not None and both[0] == b"" and bool(both[1])


def only_bits_of_greatest_time(found):
    """Whether the bits of the greatest TIME are only in our value, and those of the TIME rounded up only in theirs."""
    values = re.match(r"value: row \d+: b'(\d+)', theirs b'(\d+)'", found)
    ours, theirs = map(int, values.groups()) if values else (0, 0)
    return ours & 8385959 == 8385959 and theirs & 8385960 == 8385960 and ours ^ theirs < 16


def last_element(found, statement, ours, theirs):
    """An expression with a JSON function of constants and the path of a last element, beyond the first row;
    JSON_CONTAINS_PATH also of a column."""
    calls = [node for node in nodes(statement.root) if is_document_function(node) and "[last]" in node.render(None)]
    is_later = "aggregate" in statement.features or not found.startswith("value: row 0:")
    return bool(calls) and all(is_computable(call) or call.name == "JSON_CONTAINS_PATH" for call in calls) and kind_of(found) == "value" and is_later


def collation_of_documents(found, statement, ours, theirs):
    """A comparison of the text of a JSON function."""
    compares = {"STRCMP", "compare", "BETWEEN", "IN", "LIKE", "FIELD", "LEAST", "GREATEST", "LOCATE", "INSTR", "POSITION", "FIND_IN_SET", "NULLIF", "CASE", "REPLACE", "RLIKE", "REGEXP_INSTR", "REGEXP_REPLACE", "REGEXP_SUBSTR", "COLLATION", "COERCIBILITY", "CHARSET"}
    texts = {"JSON_TYPE", "JSON_QUOTE", "JSON_UNQUOTE"}
    return kind_of(found) in ("value", "rows") and any(isinstance(operand, Form) and operand.name in texts for node in nodes(statement.root, compares) for operand in node.operands)


def chosen_text(found, statement, ours, theirs):
    """An ENUM, a SET, a day or a time that ELT chooses, where a number is wanted."""
    is_chosen = has_operand(statement.root, {"ELT"}, {"choice"} | TEMPORAL_FAMILIES) and statement.root not in list(nodes(statement.root, {"ELT"}))
    return is_chosen and kind_of(found) in ("value", "rows", "warnings") and 1292 in numbers_of(ours)


def unread_constant(found, statement, ours, theirs):
    """Warnings of constants of a select list, which MariaDB evaluates also if the table is empty."""
    mine, other = one_sided(statement, ours, theirs)
    is_list = statement.text().startswith("SELECT") and not statement.features & {"where", "write"}
    is_empty = not ours.rows or "aggregate" in statement.features and ours.rows == [(None,) * len(ours.fields)]
    return kind_of(found) == "warnings" and ours.kind == "rows" and is_empty and is_list and not mine and other <= TRUNCATION | {1259, 1300, 1365, 1441}


def invalid_in_text(found, statement, ours, theirs):
    """Bytes that become part of a text, with a warning in MariaDB, which has ? for them."""
    is_mixed = has_operand(statement.root, {"CONCAT", "CONCAT_WS", "ELT", "MAKE_SET", "EXPORT_SET", "REPLACE", "INSERT", "LPAD", "RPAD"} | CHOICES, {"bytes", "hex"})
    return kind_of(found) == "warnings" and is_mixed and numbers_of(theirs) - numbers_of(ours) == {1300} and not numbers_of(ours) - numbers_of(theirs)


def aggregate_of_moment(found, statement, ours, theirs):
    """A sum of integers from times with a fraction, each of which is rounded here, and cut in MariaDB."""
    casts = [operand for node in nodes(statement.root, {"SUM", "AVG"}) for operand in node.operands if isinstance(operand, Form) and operand.name in ("CAST SIGNED", "CAST UNSIGNED")]
    both = numbers(found)
    return both is not None and any(family(cast.operands[0]) in TEMPORAL_FAMILIES and has_fraction(cast.operands[0], statement.kinds) for cast in casts)


def least_integer(found, statement, ours, theirs):
    """0 - -9223372036854775808 is beyond the range of BIGINT."""
    is_least = any(isinstance(node.operands[1], Literal) and node.operands[1].text == "-9223372036854775808" for node in nodes(statement.root, {"-"}))
    return (ours.number, theirs.kind) == (1690, "rows") and is_least


def greatest_sum(found, statement, ours, theirs):
    """A number of 66 digits, of which MariaDB stores 65 in a group."""
    both = numbers(found)
    if statement.names() & {"SUM", "AVG"} and both is not None and 1916 in numbers_of(theirs) and abs(Decimal(both[0])) > 10**30:
        return True
    return bool(statement.names() & {"SUM", "AVG", "MIN", "MAX"}) and "aggregate" in statement.features and both is not None and re.fullmatch(r"-?9{35,65}(\.9+)?", both[1]) is not None and abs(Decimal(both[0])) > abs(Decimal(both[1]))


def padded_number(found, statement, ours, theirs):
    """The length of a number or time that a text of other characters than ASCII pads, which MariaDB encodes twice."""
    calls = [node for node in nodes(statement.root, {"LPAD", "RPAD"}) if family(node.operands[0]) not in ("text", "bytes", "hex", "json", "choice")]
    return kind_of(found) == "value" and statement.root not in calls and any(not node.operands[2].render(None).isascii() for node in calls)


def points_in_year(found, statement, ours, theirs):
    """A text with two points in a YEAR is the number before the second point; a number out of range in MariaDB."""
    is_year = any(kind.startswith("YEAR") for kind in statement.types())
    return is_write(statement) and is_year and kind_of(found) in ("affected", "warnings") and numbers_of(ours) == {1265} and numbers_of(theirs) == {1264}


def day_with_point(found, statement, ours, theirs):
    """The digits of a decimal as a text that is stored as a day: 0.111111 is 2000-11-11, and no day in MariaDB."""
    is_day = any(kind.startswith(("DATE", "TIMESTAMP")) for kind in statement.types())
    if not (is_write(statement) and is_day and has_operand(statement.root, CHOICES, {"decimal"})):
        return False
    both = pair(found)
    if both is None or None in both:
        return kind_of(found) == "affected" and 1265 in numbers_of(ours) & numbers_of(theirs)
    return re.match(rb"(19|20)\d\d-", both[0]) is not None and both[1].startswith(b"0000-00-00")


def bytes_compared(found, statement, ours, theirs):
    """A comparison of a text with bytes, which are no text: a comparison of bytes, with a warning in MariaDB."""
    has_bytes = has_operand(statement.root, {"compare", "BETWEEN", "IN", "NULLIF", "CASE", "FIELD"}, {"bytes", "hex"})
    return kind_of(found) == "warnings" and has_bytes and numbers_of(theirs) - numbers_of(ours) == {1300} and not numbers_of(ours) - numbers_of(theirs)


def cut_to_length(found, statement, ours, theirs):
    """The extreme of texts in groups, cut to the length that MariaDB gives the type."""
    both = pair(found)
    is_extreme = "aggregate" in statement.features and statement.names() & {"MIN", "MAX"}
    if both is None or None in both or not is_extreme or not theirs.fields[0].length < ours.fields[0].length:
        return False
    return both[0].startswith(both[1]) and len(both[1]) == theirs.fields[0].length


def rounded_parameter(found, statement, ours, theirs):
    """ROUND or TRUNCATE of a parameter that is an integer, which has no digits after the point."""
    is_sent = any(getattr(node.operands[0], "sent", False) for node in nodes(statement.root, {"ROUND", "TRUNCATE"}))
    return statement.prepared and is_sent and re.fullmatch(r"decimals: integer\(\d+,0\), theirs \(\d+,\d+\)", found) is not None


def recoded_float(found, statement, ours, theirs):
    """A FLOAT that CONVERT USING makes a text of few digits: a double in MariaDB where a number is wanted."""
    is_float = any(kind.startswith("FLOAT") for kind in statement.types())
    both = numbers(found)
    is_text = has_operand(statement.root, {"CONVERT USING"}, {"double"}) and "CONVERT USING" != getattr(statement.root, "name", None)
    return is_float and is_text and both is not None and abs(float(both[0]) - float(both[1])) <= 1e-5 * abs(float(both[0]))


def wide_whole(found, statement, ours, theirs):
    """CEIL or FLOOR of a double beyond 15 digits: printed with an exponent, and with all digits in MariaDB."""
    calls = list(nodes(statement.root, {"CEIL", "CEILING", "FLOOR"}))
    both = numbers(found)
    if statement.root in calls and both is not None:
        return "e" in both[0] and float(both[0]) == float(both[1])
    doubles = [leaf.text.strip("'") for node in calls for leaf in leaves(node) if isinstance(leaf, Literal)]
    is_wide = any(re.fullmatch(r"-?[\d.]+e\d+", text) and abs(float(text)) >= 1e15 for text in doubles)
    is_cut = kind_of(found) == "warnings" and numbers_of(theirs) - numbers_of(ours) == {1260} and "GROUP_CONCAT" in statement.names()
    return is_wide and (kind_of(found) in ("value", "rows") or is_cut)


def logarithm_in_groups(found, statement, ours, theirs):
    """MIN or MAX in groups of a logarithm that is NULL, with a warning of the range in MariaDB."""
    mine, other = one_sided(statement, ours, theirs)
    is_extreme = "aggregate" in statement.features and has_operand(statement.root, {"MIN", "MAX"}, {"double"})
    return kind_of(found) == "warnings" and is_extreme and bool(statement.names() & {"LN", "LOG", "LOG2", "LOG10"}) and other - mine == {1264} and not mine - other


def rounded_day(found, statement, ours, theirs):
    """A rounded day or time beside another one: a number, and a day or time in MariaDB."""
    is_beside = any(isinstance(operand, Form) and operand.name in ROUNDING and {family(part) for part in operand.operands} & TEMPORAL_FAMILIES for node in nodes(statement.root, CHOICES) for operand in node.operands)
    return is_beside and re.fullmatch(r"type: text, theirs (date|time|datetime|timestamp)", found) is not None


def digits_of_day(found, statement, ours, theirs):
    """A sum of a day or time, stored in a text: the digits of its type, and always six in MariaDB."""
    has_day = has_operand(statement.root, ARITHMETIC | ROUNDING, TEMPORAL_FAMILIES)
    is_longer = (ours.kind, theirs.number) == ("ok", 1406)
    return is_write(statement) and has_day and (is_longer or same_numbers(found, statement, ours, theirs))


def divided_whole(found, statement, ours, theirs):
    """DIV of a rounded day, time, ENUM or SET: of a double, which has a sign, and of an unsigned integer in MariaDB."""
    divided = (node for node in nodes(statement.root, {"DIV"}) if isinstance(node.operands[0], Form) and node.operands[0].name in ROUNDING)
    is_rounded = any(family(operand) in TEMPORAL_FAMILIES | {"choice"} for node in divided for operand in node.operands[0].operands[:1])
    return is_rounded and found == "type: integer, theirs unsigned integer"


def day_as_time(found, statement, ours, theirs):
    """EXTRACT of hours and less from a text of a day alone, which is no time in MySQL: NULL, also for a NOT NULL column."""
    calls = [node.render(None) for node in nodes(statement.root, {"EXTRACT"})] or [statement.text()]
    is_day = any(re.search(r"(HOUR|MINUTE|SECOND)(_\w+)? FROM '\d{4}-\d\d-\d\d'", text) or re.search(r"\(MICROSECOND FROM '\d{4}-\d\d-\d\d'", text) for text in calls)
    return is_write(statement) and (ours.number, theirs.kind) == (1048, "ok") and is_day


def shorter_default(found, statement, ours, theirs):
    """A default with a double in a FLOAT column, of which MariaDB keeps six digits after an ALTER TABLE: no duplicate of
    a row before."""
    is_float = any(statement.kinds.get(name, "").startswith("FLOAT") and any(isinstance(leaf, Literal) and family(leaf) == "double" for leaf in leaves(source)) for name, source in statement.sources.items())
    return is_write(statement) and is_float and (ours.number, theirs.kind) == (1062, "ok")


def zeros_of_year(found, statement, ours, theirs):
    """The year 0 of IF and its kin in a text: 0000, and 0 in MariaDB."""
    both = pair(found)
    is_year = has_operand(statement.root, CHOICES | {"MIN", "MAX"}, {"year"})
    return is_year and both is not None and both[1] == b"0" and re.fullmatch(rb"0+", both[0] or b"") is not None


def part_of_late_day(found, statement, ours, theirs):
    """A part of a DATETIME that is rounded beyond the year 9999, in a column that is generated from it."""
    both = pair(found)
    is_late = is_write(statement) and bool(statement.sources) and "9999-12-31 23:59:59.9" in statement.text()
    if not is_late or not both or not all(both):
        return False
    return b"0000-00-00 00:00:00".startswith(both[0]) and b"9999-12-31 23:59:59".startswith(both[1])


def many_places(found, statement, ours, theirs):
    """A decimal rounded to more than 30 places, in a text: 30 digits after the point, and 38 in MariaDB."""
    calls = [node for node in nodes(statement.root, {"ROUND", "TRUNCATE"}) if len(node.operands) > 1]
    is_many = any(isinstance(node.operands[1], Literal) and re.fullmatch(r"\d+", node.operands[1].text) and int(node.operands[1].text) > 30 for node in calls)
    return is_many and same_but_zeros(found)


def seconds_of_parameter(found, statement, ours, theirs):
    """UNIX_TIMESTAMP of a parameter: six digits after the point, and an integer in MariaDB."""
    is_sent = any(getattr(node.operands[0], "sent", False) for node in nodes(statement.root, {"UNIX_TIMESTAMP"}) if node.operands)
    is_type = found in ("type: newdecimal, theirs unsigned integer", "type: newdecimal, theirs integer")
    return statement.prepared and is_sent and (is_type or kind_of(found) in ("value", "decimals") and (kind_of(found) == "decimals" or same_but_zeros(found)))


def refused_text(found, statement, ours, theirs):
    """Bytes that are no text: the text before them, which a CHECK refuses, and ? in MariaDB."""
    is_refused = (ours.number, theirs.kind) == (3819, "ok") and 1366 in numbers_of(theirs)
    return is_refused and is_write(statement) and "CHECK" in statement.sources


def signed_extreme(found, statement, ours, theirs):
    """LEAST or GREATEST where an integer is wanted: MariaDB compares numbers beyond 63 bits as negative ones."""
    calls = list(nodes(statement.root, {"LEAST", "GREATEST"}))
    # A call without operands is a leaf without a text.
    texts = [getattr(leaf, "text", "") for node in calls for leaf in leaves(node)]
    wide = [text for text in texts if re.fullmatch(r"\d{19,20}", text) or "BIGINT" in statement.kinds.get(text, "")]
    return bool(wide) and statement.root not in calls and kind_of(found) == "value"


def extreme_of_none(found, statement, ours, theirs):
    """MIN or MAX of a function of what is no day or time: NULL, and the zero date or time in MariaDB's groups."""
    both = pair(found)
    calls = [operand for node in nodes(statement.root, {"MIN", "MAX"}) for operand in nodes(node, TEMPORAL)]
    is_zero = both is not None and (both[1] or b"").startswith((b"0000-00-00", b"00:00:00")) and 1292 in numbers_of(theirs)
    is_null = both is not None and both[0] is None
    return bool(calls) and (is_zero or is_null) and bool(numbers_of(ours) & {1292, 3156})


def first_of_several(found, statement, ours, theirs):
    """An INSERT of several values that has a wrong value and an expression without a collation."""
    collations = {1253, 1267, 1270, 1271}
    is_mixed = ours.number in VALUE and theirs.number in collations or ours.number in collations and theirs.number in VALUE
    return kind_of(found) == "error" and is_write(statement) and statement.assignments() > 1 and is_mixed


def mixed_extreme(found, statement, ours, theirs):
    """LEAST or GREATEST of texts that have no collation in common: an error of its own, and of what is around it in MariaDB."""
    collations = {1267, 1270, 1271}
    return kind_of(found) == "error" and {ours.number, theirs.number} <= collations and bool(statement.names() & {"LEAST", "GREATEST"})


def bits_of_time(found, statement, ours, theirs):
    """The bits of a time with a fraction, which is rounded, and cut in MariaDB."""
    operands = [operand for node in nodes(statement.root, {"BIT_AND", "BIT_OR", "BIT_XOR"}) for operand in node.operands]
    both = numbers(found)
    is_text = any(isinstance(operand, Form) and operand.name in ("DATE_ADD", "DATE_SUB", "INTERVAL", "ADDTIME", "SUBTIME") for operand in operands)
    if is_text and both is not None and int(both[0]) ^ int(both[1]) < 2**8:
        # The second after it has other low digits.
        return True
    return kind_of(found) == "value" and any(family(operand) in TEMPORAL_FAMILIES and has_fraction(operand, statement.kinds) for operand in operands)


def quotient_in_groups(found, statement, ours, theirs):
    """The average or sum of quotients in groups, which MySQL and MariaDB cut to the digits of their type where they use a
    temporary table."""
    both = numbers(found)
    is_grouped = "GROUP BY" in statement.text() or "aggregate" in statement.features
    return is_grouped and has_quotient(statement.root) and both is not None and abs(Decimal(both[0]) - Decimal(both[1])) <= Decimal("5e-4")


def has_quotient(root):
    """Whether SUM or AVG adds quotients."""
    return any(isinstance(operand, Form) and operand.name == "/" for node in nodes(root, {"SUM", "AVG"}) for operand in node.operands)


EXCUSES = [
    ("MySQL has other numbers for logarithms, addresses and base64, and warns of display widths", only_one),
    ("JSON is a type with errors of its own in MySQL, text with warnings in MariaDB", json_error),
    ("MariaDB's JSON functions give NULL for a path that is absent, keep the order of members, and know less of types", document_value),
    ("a function of documents has the type JSON, and is a text in MariaDB", document_type),
    ("JSON_UNQUOTE gives UTF-8, and ? in a narrow column in MariaDB", lambda f, s, o, t: "JSON_UNQUOTE" in s.names() and narrow_set(s) and (is_write(s) and (o.kind, t.number) == ("ok", 1366) or kind_of(f) == "value" and not is_document_function(s.root))),
    ("a document is a number, a day or a time by its type, with other warnings than a text", document_warnings),
    ("names of columns beyond 16 bits are ? in MariaDB", lambda found, s, o, t: found.startswith("name") and "?" in found),
    ("REGEXP_SUBSTR without a match is NULL in MySQL, '' in MariaDB", of({"REGEXP_SUBSTR"}, no_match)),
    ("a hexadecimal literal of CASE and its kin is stored as a text", lambda f, s, o, t: has_operand(s.root, CHOICES, {"hex"}) and is_write(s) and o.number in (1265, 1366)),
    ("CHAR ... USING with an invalid character is NULL in strict mode", of({"CHAR"}, lambda f, s, o, t: "CHAR" in s.names() and f.startswith("value") and 1300 in numbers_of(o) & numbers_of(t) and " USING " in s.text())),
    ("CONVERT ... USING gives ? silently, and NULL for bytes that are no text", of({"CONVERT USING"}, lambda f, s, o, t: "CONVERT USING" in s.names() and (f.startswith("warnings") and numbers_of(t) - numbers_of(o) == {1977} or f.startswith(("value", "warnings")) and 1300 in numbers_of(o)))),
    ("MariaDB refuses a character that latin1 lacks, before it stores the text as a geometry", lambda f, s, o, t: (o.number, t.number) == (1416, 1977) and "CONVERT USING" in s.names()),
    ("MySQL takes decoded bytes beside a text unread, MariaDB writes ? for each wrong one", of({"FROM_BASE64", "UNCOMPRESS"}, lambda f, s, o, t: f.startswith(("value", "warnings")) and 1300 in numbers_of(t) - numbers_of(o))),
    ("MariaDB cuts the least and greatest of bytes at the number of the text's characters", of({"MIN", "MAX"}, lambda f, s, o, t: f.startswith("value") and " USING binary)" in s.text())),
    ("bytes that are no text of a narrow character set are error 1366", beyond_ascii),
    ("MariaDB notes that it cuts a key of a column that becomes longer", lambda f, s, o, t: "alter" in s.features and f.startswith("warnings") and numbers_of(t) - numbers_of(o) == {1071}),
    ("a hexadecimal literal gives way to the collation of a column in IN, error 1271 in MariaDB", lambda f, s, o, t: (o.kind, t.number) == ("rows", 1271) and "IN" in s.names() and "0x" in s.text()),
    ("a text of MariaDB has cut characters", ill_formed),
    ("a document that is stored has the form of its type, also as a text", lambda f, s, o, t: f.startswith("value") and is_write(s) and "JSON" in s.types()),
    ("the collation of USING utf8mb4 is utf8mb4_0900_ai_ci in MySQL", lambda f, s, o, t: " USING utf8mb4" in s.text() and f.startswith(("value", "rows"))),
    ("literals of a generated column or a default have the default collation of utf8mb4", lambda f, s, o, t: f.startswith("value") and is_write(s) and bool(s.sources) and bool(s.names() & {"compare", "IN", "BETWEEN", "STRCMP", "FIELD", "LOCATE", "INSTR", "POSITION", "FIND_IN_SET", "COLLATION", "CHARSET", "NULLIF", "CASE"})),
    ("MariaDB has crashed", lambda f, s, o, t: f.startswith("lost") and t.kind == "lost" and o.kind != "lost"),
    ("a parameter that is NULL is a number in BETWEEN here, and has the type of its place in MySQL", of({"BETWEEN"}, lambda f, s, o, t: s.prepared and "BETWEEN" in s.names() and kind_of(f) in ("value", "rows", "warnings") and any(kind == NULL for kind, _ in s.sent()[1] or ()))),
    ("MAKE_SET of a CONV with a wrong base is its operand in MariaDB", of({"MAKE_SET"}, lambda f, s, o, t: {"MAKE_SET", "CONV"} <= s.names() and f.startswith("value"))),
    ("MAKE_SET has the text of a part whose place is NULL in MariaDB", of({"MAKE_SET"}, lambda f, s, o, t: bool(s.names() & {"SUBSTR", "SUBSTRING", "MID"}) and "NULL" in s.text() and f.startswith("value"))),
    ("an average of texts has no number of decimals, and four in MariaDB for digits of HEX", of({"AVG"}, lambda f, s, o, t: bool(re.search(r"^value: row \d+: b'[\d.]+e\d+', theirs b'\d+\.\d{4}'", f)))),
    ("a SET beside a number in GREATEST and LEAST is a text, and the number of its members in MariaDB", lambda f, s, o, t: bool(s.names() & {"GREATEST", "LEAST"}) and "alter" in s.features and f.startswith("value") and any(kind.startswith("SET(") for kind in s.types())),
    ("TIME_FORMAT of parts of a day is 0 in MySQL, NULL in MariaDB, also for a column that is NOT NULL", lambda f, s, o, t: is_write(s) and (o.kind, t.number) == ("ok", 1048) and any(re.search("%[^HhIiSsTrfklp]", node.render(None)) for node in nodes(s.root, {"TIME_FORMAT"}))),
    ("a text beside a day that is NULL is not read", lambda f, s, o, t: bool(s.sources) and (o.kind, t.number) == ("ok", 1292) and t.message.startswith("Truncated incorrect datetime value: ") and bool(s.names() & {"NULLIF", "compare"})),
    ("QUOTE of a number is a text, for COERCIBILITY a number in others (docs/compatibility.md)", lambda f, s, o, t: f.endswith(": b'4', theirs b'5'") and {"COERCIBILITY", "QUOTE"} <= s.names()),
    ("DATE of a text with a wrong time is NULL, and its day in MariaDB's GREATEST and LEAST", of({"GREATEST", "LEAST"}, lambda f, s, o, t: ": None, theirs b'" in f and any(nodes(s.root, {"DATE"})) and 1292 in numbers_of(o) & numbers_of(t))),
    ("a negative time of NULLIF has no sign in MariaDB's arithmetic", lambda f, s, o, t: bool(s.names() & ARITHMETIC) and any(family(node) == "time" for node in nodes(s.root, {"NULLIF"})) and bool(re.search(r": b'-\d", f)) and kind_of(f) == "value"),
    ("a text that is a number is no member of a SET, also with IGNORE", lambda f, s, o, t: f.startswith("affected") and is_write(s) and 1265 in numbers_of(o) & numbers_of(t) and any(kind.startswith("SET(") for kind in s.types())),
    ("bytes become a document of their type, and no text in MariaDB", lambda f, s, o, t: is_write(s) and (o.kind, t.number) == ("ok", 1366) and "JSON" in s.types()),
    ("a number that ALTER TABLE makes a member has its text, and columns that are generated from it", lambda f, s, o, t: "alter" in s.features and f.startswith("value") and bool(s.sources) and bool(re.search(r" MODIFY \w+ (ENUM|SET)\(", s.text()))),
    ("MariaDB converts constant bytes once, also if the query reads no row", lambda f, s, o, t: f.startswith("warnings") and numbers_of(t) - numbers_of(o) == {1259} and not o.rows),
    ("a value that does not fit is stored as another one, so that only one is a duplicate", only_one_duplicate),
    ("texts beside a day in BETWEEN need one collation in MySQL", lambda f, s, o, t: (o.number, t.kind) == (1270, "rows") and "BETWEEN" in s.names() and s.families() & TEMPORAL_FAMILIES),
    ("the last digit of a double in a text", lambda f, s, o, t: s.names() & {"DEGREES", "RADIANS", "EXP", "POW", "POWER", "SIN", "COS", "TAN", "COT", "ASIN", "ACOS", "ATAN", "ATAN2", "SQRT", "LN", "LOG", "LOG10"} and near_numbers(f)),
    ("FORMAT of a decimal without room for its digits has two points in MariaDB", of({"FORMAT"}, lambda f, s, o, t: "FORMAT" in s.names() and f.startswith("value") and ".." in f.partition("theirs")[2])),
    ("MariaDB takes a double beyond 63 bits for a negative bound of BETWEEN", of({"BETWEEN"}, lambda f, s, o, t: "BETWEEN" in s.names() and kind_of(f) in ("rows", "value") and "1.7e19" in s.text())),
    ("a column that is generated from an ENUM or SET follows it", lambda f, s, o, t: f.startswith("value") and is_write(s) and bool(s.sources) and "choice" in s.families()),
    ("a text beyond 64 bits has all of them in the aggregates of bits, 63 in MariaDB", lambda f, s, o, t: s.names() & {"BIT_AND", "BIT_OR", "BIT_XOR"} and f.startswith("value") and "theirs b'9223372036854775807'" in f),
    ("COLLATE of NULL is one of bytes, which is error 1253", lambda f, s, o, t: (o.number, t.kind) == (1253, "rows") and "COLLATE" in s.names() and "NULL" in s.text()),
    ("a column without a default that only ON DUPLICATE KEY UPDATE assigns is error 1364", lambda f, s, o, t: o.number == 1364 and t.kind in ("ok", "error") and " ON DUPLICATE KEY UPDATE " in s.text()),
    ("NULL of ON DUPLICATE KEY UPDATE for a NOT NULL column is the default without a strict mode, error 1048 in MySQL", lambda f, s, o, t: (o.kind, t.number) == ("ok", 1048) and 1048 in numbers_of(o) and " ON DUPLICATE KEY UPDATE " in s.text()),
    ("ON DUPLICATE KEY UPDATE that sets NULL to NULL changes nothing", lambda f, s, o, t: f == "affected: 0, theirs 1" and " ON DUPLICATE KEY UPDATE " in s.text()),
    ("a text that the character set of a column lacks is not equal, error 1267 in MariaDB", lambda f, s, o, t: kind_of(f) in ("kind", "error") and t.number in (1267, 1270, 1271) and narrow_set(s)),
    ("a text among bytes is bytes, also for CHAR_LENGTH and REVERSE", lambda f, s, o, t: s.names() & {"MAKE_SET", *CHOICES} and s.names() & {"CHAR_LENGTH", "CHARACTER_LENGTH", "REVERSE"} and f.startswith("value") and "bytes" in s.families()),
    ("the name of the database is utf8mb4 here, utf8mb3 in MySQL and MariaDB", lambda f, s, o, t: s.names() & {"DATABASE", "SCHEMA"} and (t.number in (1253, 1267, 1270, 1271) or s.names() & {"COLLATION", "CHARSET"} and f.startswith("value") or 1977 in numbers_of(t) - numbers_of(o) and s.names() & {"LPAD", "RPAD", "CONCAT", "CONCAT_WS", "EXPORT_SET", "MAKE_SET"})),
    ("a deviation beyond the range of doubles is NULL here", lambda f, s, o, t: s.names() & DEVIATIONS and f.startswith("value") and ": None, theirs b'" in f),
    ("a variance of days and times has few exact digits", near_variance),
    ("a constant of an aggregate over no rows is evaluated in MariaDB", lambda f, s, o, t: "aggregate" in s.features and t.number == 1690 and o.kind == "rows" and o.rows in ([], [(None,)])),
    ("CHAR columns are padded in the select list only, not in the operands of aggregates", lambda f, s, o, t: {"padded", "aggregate"} <= s.features and f.startswith("value") and any(kind.startswith(("CHAR", "NCHAR")) for kind in s.types())),
    ("bytes that replace a text in REGEXP_REPLACE", of({"REGEXP_REPLACE"}, lambda f, s, o, t: f.startswith("value") and ("bytes" in s.families() or has_operand(s.root, {"REGEXP_REPLACE"}, {"hex"})))),
    ("MariaDB prints all digits of a rounded double before it converts its base", lambda f, s, o, t: s.names() & ROUNDING and s.names() & {"OCT", "BIN", "CONV", "GROUP_CONCAT"} and f.startswith("value") and ("double" in s.families() or "e" in s.text())),
    ("OCT, BIN and CONV of a BIT that is NULL are 0 in MariaDB", lambda f, s, o, t: s.names() & {"OCT", "BIN", "CONV"} and "bit" in s.families() and ": None, theirs b'0'" in f),
    ("a rounded DATETIME beyond the year 9999 is a duplicate of the zero date, a TIME of the greatest one", lambda f, s, o, t: (f == "affected: 0, theirs 1" or (o.number, t.kind) == (1062, "ok") and numbers_of(t) & {1264, 1265}) and any(re.search("Duplicate entry '(0000-00-00|-?838:59:59)", text) for text in [*o.texts, o.message])),
    ("fractions of seconds that become integers are rounded, and cut to duplicates in MariaDB", lambda f, s, o, t: "alter" in s.features and (o.kind, t.number) == ("ok", 1062) and s.families() & TEMPORAL_FAMILIES),
    ("bits of a time with a fraction are those of the rounded time", bits_of_time),
    ("a FLOAT and a small integer are a double here, a FLOAT in MySQL", lambda f, s, o, t: f == "type: double, theirs float" and s.names() & CHOICES),
    ("MIN and MAX of ZEROFILL have no zeros in groups", lambda f, s, o, t: s.names() & {"MIN", "MAX"} and "aggregate" in s.features and f.startswith("value") and only_zeros_before(f)),
    ("MIN and MAX of IFNULL of YEAR are YEAR", lambda f, s, o, t: f == "type: year, theirs unsigned integer" and s.names() & {"MIN", "MAX"}),
    ("regular expressions of ICU and PCRE report errors differently", lambda f, s, o, t: s.names() & {"REGEXP_INSTR", "REGEXP_REPLACE", "RLIKE"} and "kind" in f),
    ("LEAST and GREATEST of unlike types compare as text in MySQL", of({"LEAST", "GREATEST"}, lambda f, s, o, t: unlike(s.root, {"LEAST", "GREATEST"}) and kind_of(f) in ("kind", "value", "type", "decimals", "rows", "warnings", "affected"))),
    ("UNIX_TIMESTAMP outside of its range is 0 in MySQL", of({"UNIX_TIMESTAMP"}, no_moment)),
    ("FORMAT has at most 30 decimals in MySQL, 38 in MariaDB", lambda f, s, o, t: "FORMAT" in s.names() and same_numbers(f.replace(",", ""), s, o, t)),
    ("PERIOD_ADD and PERIOD_DIFF of wrong periods are error 1210 in MySQL", lambda f, s, o, t: s.names() & {"PERIOD_ADD", "PERIOD_DIFF"} and 1210 in (o.number, t.number)),
    ("MIN and MAX of BIT are bytes in MySQL, digits in MariaDB", lambda f, s, o, t: s.names() & {"MIN", "MAX"} and any(field.type_code == 16 for field in o.fields)),
    ("GROUP_CONCAT of BIT has bytes in MySQL, digits in MariaDB", of({"GROUP_CONCAT"}, lambda f, s, o, t: "GROUP_CONCAT" in s.names() and "bit" in s.families() and f.startswith("value"))),
    ("a double has all its digits, in MariaDB at times four more than its operand", fewer_digits),
    ("a number of a document is signed or not, which an UPDATE may change, and is no text", lambda f, s, o, t: f.startswith("affected") and is_write(s) and "JSON" in s.types()),
    ("a NOT NULL column of geometries needs a value, also with IGNORE", lambda f, s, o, t: (o.number == 1364 or is_null_of(o, s, GEOMETRIES)) and (t.kind == "ok" or t.number == 1416) and bool(GEOMETRIES & set(s.kinds.values()))),
    ("MariaDB computes every stored column in each UPDATE, MySQL those of the columns that it sets", not_recomputed),
    ("MariaDB refuses to generate a column from session values, and checks a default when the table is created", lambda f, s, o, t: s.features & {"create", "alter"} and (o.kind == "ok" and t.number in (1067, 1416, 1690, 1901) or o.kind == "error" and t.number == 1067 or t.number == 1901)),
    ("a default of the current time has the digits that it names, in MariaDB those of the column", lambda f, s, o, t: f.startswith("value") and is_write(s) and bool(re.search(r":20(\.0+)?', theirs b'2023-.*:20\.2", f))),
    ("a geometry of another type is error 1416 in MySQL", lambda f, s, o, t: is_write(s) and ((o.number, t.kind) == (1416, "ok") or (o.number, t.number) in ((1416, 1366), (1048, 1416)))),
    ("MariaDB refuses geometries by their type (4078), MySQL by their bytes", lambda f, s, o, t: is_write(s) and 4078 in numbers_of(t) and GEOMETRIES & s.types()),
    ("texts as operands of bits are converted to integers in MySQL, to DECIMAL in MariaDB", of(BITS, text_as_bits)),
    ("doubles in bit operations are rounded to even, and have 64 bits with a sign", of(BITS, double_as_bits)),
    ("SUM and AVG of ENUM and SET are doubles in MySQL", sum_of_choice),
    ("values that do not fit have other numbers, levels and counts of warnings", wrote_little),
    ("a strict ALTER TABLE fails for a value that does not fit; MariaDB warns, or fails for other columns", converted),
    ("TIMESTAMP NOT NULL takes NULL as the current time in MariaDB", null_timestamp),
    ("operands that are no days or times, zero dates, and fractions of 0", of(TEMPORAL, temporal_operand)),
    ("TIME_FORMAT of parts of a day is 0 in MySQL, NULL in MariaDB", of({"TIME_FORMAT"}, part_of_day)),
    ("CONVERT_TZ has no end in 2038 in MySQL", of({"CONVERT_TZ"}, late_zone)),
    ("a time with a fraction is rounded where bits are wanted", of(BITS, fraction_as_bits)),
    ("LEAST and GREATEST with NULL have the type of the others", extreme_of_null),
    ("LEAST and GREATEST of texts compare as texts in MySQL, as numbers in MariaDB where one is wanted", extreme_of_texts),
    ("SUM and AVG of days and times are exact in MySQL", average_of_days),
    ("CONVERT_TZ knows the zone +14:00 in MySQL only", of({"CONVERT_TZ"}, far_zone)),
    ("a time from a parameter has a fraction of six digits, and none in MariaDB", fraction_of_parameter),
    ("ADDTIME and SUBTIME of NULL are bytes", sum_of_null),
    ("ENUM and SET in IF and its kin are numbers where one is wanted", choice_as_number),
    ("a time with a fraction is rounded where an integer is wanted", fraction_as_integer),
    ("a negative time with a fraction is rounded to -1, which an unsigned column refuses", fraction_out_of_range),
    ("MIN and MAX take a text without a collation", illegal_extreme),
    ("a text of a narrow set among bytes is its own bytes", own_bytes),
    ("bytes in a text stay as they are", bytes_in_text),
    ("MIN and MAX of a rounded double have 17 digits in MariaDB's groups", wide_rounded),
    ("bits of an UNSIGNED FLOAT or DOUBLE are those of a signed number in MySQL", unsigned_bits),
    ("LOG2 is log2() in MySQL, also in a remainder", double_of_remainder),
    ("regular expressions refuse bytes in MySQL", refused_expression),
    ("regular expressions of ICU have sets within sets", nested_set),
    ("a CHECK compares bytes or numbers with a day that ALTER TABLE made", compared_check),
    ("a default is computed by the rules of strict writes, also a long or late one", error_of_default),
    ("MariaDB computes the generated columns of the row that REPLACE deletes", generated_of_old_row),
    ("FORMAT has at most 30 decimals in MySQL, also of a double", rounded_format),
    ("the last digit of a logarithm in a text that is cut or hashed", logarithm_in_text),
    ("the greatest TIME has no fraction in MySQL, also in a comparison", of(COMPARED, greatest_time)),
    ("BETWEEN of a TIME and texts compares texts in MySQL", of({"BETWEEN"}, between_texts)),
    ("IS_IPV4 and its kin of NULL are NULL, which a NOT NULL column refuses", null_of_addresses),
    ("MariaDB has another character set for JSON_TYPE and SHA2", moved_sets),
    ("LEAST and GREATEST of BITs are bytes in MySQL, digits in MariaDB", extreme_of_bits),
    ("LEAST and GREATEST take a zero day for a day in MySQL, for NULL in MariaDB", zero_day),
    ("variances of large integers as doubles", number_of_zero),
    ("ADDTIME, DATE_ADD and their kin of a text are a text, which a number takes up to its first sign", lambda f, s, o, t: is_write(s) and (o.number, t.kind) == (1265, "ok") and bool(s.names() & {"DATE_ADD", "DATE_SUB", "INTERVAL", "ADDTIME", "SUBTIME"})),
    ("a format of bytes has them in the result", lambda f, s, o, t: has_operand(s.root, {"TIME_FORMAT", "DATE_FORMAT"}, {"bytes", "hex", "bit"}) and kind_of(f) == "value"),
    ("LEAST and GREATEST with NULL have the type of the others, also in CASE", lambda f, s, o, t: (has_operand(s.root, {"LEAST", "GREATEST"}, {"null"}) or has_operand(s.root, {"NULLIF"}, {"null"}) and s.names() & {"LEAST", "GREATEST"}) and f in ("type: newdecimal, theirs double", "type: integer, theirs double")),
    ("NULLIF of NULL and a decimal is a decimal", lambda f, s, o, t: f == "type: newdecimal, theirs double" and has_operand(s.root, {"NULLIF"}, {"null"})),
    ("quotients and products of days and times are exact in MySQL", quotient_of_days),
    ("FORMAT has at most 30 decimals in MySQL, 38 in MariaDB, also beneath a function", of({"FORMAT"}, many_decimals)),
    ("an illegal collation is found after a missing default here", lambda f, s, o, t: o.number == 1364 and t.number in (1253, 1267, 1270, 1271)),
    ("a quotient that is 0 has no sign in MySQL, also where it is read", lambda f, s, o, t: bool(s.names() & {"/"}) and re.fullmatch(r"value: row \d+: b'0\.0*', theirs b'-0\.0*'", f) is not None),
    ("REPLACE of an empty text with NULL is NULL in MySQL, also beneath a function", of({"REPLACE"}, replaced_nothing)),
    ("a constant beyond the range is evaluated in MariaDB, also if the query reads no row", lambda f, s, o, t: t.number == 1690 and o.kind == "rows" and not o.rows),
    ("MIN and MAX of NULL have no type here, also of a function", lambda f, s, o, t: f == "type: null, theirs bytes" and bool(s.names() & {"MIN", "MAX"}) and has_operand(s.root, {"MIN", "MAX", *CHOICES}, {"null", "unknown"})),
    ("UPDATE that sets NULL to NULL changes nothing", lambda f, s, o, t: f == "affected: 0, theirs 1" and re.match(r"UPDATE (IGNORE )?t SET (\w+) = \2 WHERE", s.text()) is not None),
    ("CAST to FLOAT stays a FLOAT in MIN and MAX", lambda f, s, o, t: f == "type: float, theirs double" and has_operand(s.root, {"MIN", "MAX"}, {"double"}) and "CAST FLOAT" in s.names()),
    ("CAST to FLOAT beyond the range is error 1690 in MySQL, warning 1264 in MariaDB", lambda f, s, o, t: "CAST FLOAT" in s.names() and o.number == 1690 and t.kind in ("rows", "ok")),
    ("ROUND and TRUNCATE to places that a parameter or the clock gives keep the digits of the decimal", lambda f, s, o, t: f.startswith("decimals: newdecimal") and any(len(node.operands) > 1 and is_sent_or_clock(node.operands[1]) for node in nodes(s.root, {"ROUND", "TRUNCATE"}))),
    ("display widths of floating point results", lambda f, s, o, t: f.startswith("decimals: double")),
    ("MAX, MIN and IFNULL of YEAR show 0 as 0000", lambda f, s, o, t: f.startswith("value") and ": b'0000', theirs b'0'" in f and "year" in s.families()),
    ("DISTINCT of BIT gives integers in MariaDB", lambda f, s, o, t: "DISTINCT" in s.text() and any(field.type_code == 16 for field in o.fields)),
    ("JSON is sorted as text in MariaDB", lambda f, s, o, t: "ORDER BY c" in s.text() and any(field.type_code == 245 for field in o.fields)),
    ("a TIMESTAMP that is too late is 0 in MySQL, and has a fraction in MariaDB", lambda f, s, o, t: "b'0000-00-00 00:00:00" in f and "00.9" in f),
    ("TIME_TO_SEC is an integer in MySQL", of({"TIME_TO_SEC"}, seconds_of_time)),
    ("how operands of functions are converted to dates and times, with which warnings", operand_warnings),
    ("spaces after a number in a text are no warning in MySQL", spaces_after_number),
    ("MariaDB converts a constant text once, also if the query reads no row", converted_constant),
    ("an operand is converted or not where another one or an index decides", undecided_operand),
    ("a document has the value of its type in MySQL, and its text in MariaDB", document_operand),
    ("JSON_QUOTE of other types than text is error 3064 in MySQL", lambda f, s, o, t: o.number == 3064 and "JSON_QUOTE" in s.names()),
    ("a key of a column that becomes TEXT or BLOB is error 1170 in MySQL, and gets a prefix in MariaDB", lambda f, s, o, t: o.number == 1170 and "alter" in s.features),
    ("MariaDB refuses operands by their type (4078, 4079)", lambda f, s, o, t: t.number in (4078, 4079) and (o.kind in ("rows", "ok") or o.number in VALUE)),
    ("a wrong regular expression has a number for each reason in MySQL, and 1139 in MariaDB", lambda f, s, o, t: t.number == 1139 and (o.number in (3995, *range(3685, 3700)) or is_write(s))),
    ("MariaDB reports conversions with 1105 and 1916", overflow_numbers),
    ("IS_IPV4, IS_IPV6 and their kin of NULL are NULL in MySQL", of({"IS_IPV4", "IS_IPV6", "IS_IPV4_COMPAT", "IS_IPV4_MAPPED"}, lambda f, s, o, t: s.names() & {"IS_IPV4", "IS_IPV6", "IS_IPV4_COMPAT", "IS_IPV4_MAPPED"} and f.startswith(("value", "warnings")))),
    ("ROUND and TRUNCATE have at most 30 decimals in MySQL, 38 in MariaDB; those of a parameter are not known; a remainder of 0 has no sign", lambda f, s, o, t: s.names() & {"ROUND", "TRUNCATE", "%", "MOD"} and same_numbers(f, s, o, t)),
    ("numbers that are no days or times are compared as numbers in MySQL", of(COMPARED | CHOICES | TEMPORAL, number_as_day)),
    ("numbers and days or times are compared as numbers in MySQL, unless one is a column", of(COMPARED, compared_number)),
    ("MariaDB takes a zero date for NULL where NO_ZERO_DATE excludes it", lambda f, s, o, t: s.names() & CHOICES and f.startswith("value") and ": b'0000-00-00" in f),
    ("MariaDB loses characters beyond 16 bits in texts made of several", lambda f, s, o, t: f.startswith("value") and not s.text().isascii() and ("\\xc3\\xb0" in f or "\\xc3\\xa6" in f or "\\xc3\\x83" in f)),
        ("negative doubles become unsigned integers modulo 2 to the 64th", lambda f, s, o, t: "CAST UNSIGNED" in s.names() and 1916 in numbers_of(t)),
    ("a default that loses digits causes a note in MariaDB", lambda f, s, o, t: "create" in s.features and f.startswith("warnings") and numbers_of(t) - numbers_of(o) <= {1264, 1265, 1292, 1365} and not numbers_of(o) - numbers_of(t) - ONLY_OURS),
    ("a number beyond hhmmss is no TIME", lambda f, s, o, t: is_write(s) and o.number == 1292 and "Incorrect time value" in o.message and t.kind == "ok"),
    ("MariaDB warns of addresses that are none", lambda f, s, o, t: s.names() & {"IS_IPV4_COMPAT", "IS_IPV4_MAPPED"} and (f.startswith("warnings") and numbers_of(t) - numbers_of(o) == {1292} or "inet6" in t.message)),
    ("SET c = c stores no value in MySQL, so that a zero date stays; here it is error 1292", lambda f, s, o, t: o.number == 1292 and re.search(r"(?:SET|UPDATE) (\w+) = \1(?: |$)", s.text())),
    ("a default is computed by the rules of strict writes", lambda f, s, o, t: is_write(s) and (o.number, t.kind) == (1292, "ok") and any(name not in s.root.render(None) for name in s.sources)),
    ("a text with two points is a number up to the second one, and loses the first one in MariaDB", lambda f, s, o, t: f.startswith("value") and is_write(s) and ("INET_NTOA" in s.names() or re.search(r"'\d*\.\d*\.", s.text()))),
    ("bytes that are no text are stored as '' or ?, so that only one is a duplicate", lambda f, s, o, t: (o.number, t.kind) == (1062, "ok") and 1366 in numbers_of(t) and "0x" in s.text()),
    ("a remainder of 0 has no sign, also in a text that is cut", lambda f, s, o, t: s.names() & {"%", "MOD"} and bool(re.match(r"value: row \d+: b'0[.0]*', theirs b'-0[.0]*'$", f))),
    ("a DATETIME that is rounded beyond the year 9999 is the zero date, and a longer TIME the greatest one, which may be in the row already", lambda f, s, o, t: f == "affected: 0, theirs 1" and is_write(s) and ("'9999-12-31 23:59:59.9" in s.text() or 1264 in numbers_of(o) & numbers_of(t) and any(kind.startswith("TIME(") for kind in s.types()))),
    ("a day or time in a YEAR is its year, also with IGNORE", lambda f, s, o, t: f.startswith(("affected", "value")) and is_write(s) and 1265 in numbers_of(t) - numbers_of(o) and any(kind.startswith("YEAR") for kind in s.types()) and any(kind.startswith(("TIME", "DATE")) for kind in s.types())),
    ("the bits of a day or time with a fraction are those of the rounded one", lambda f, s, o, t: s.names() & {"EXPORT_SET", "MAKE_SET"} and f.startswith("value") and s.families() & TEMPORAL_FAMILIES and bool(re.search(r"[A-Z]'[^']*:\d\d\.\d", s.text()) or any(re.search(r"\([1-6]\)", kind) for kind in s.types()))),
    ("MariaDB cuts a text of a double in groups", cut_in_groups),
    ("0 with a sign is not distinct from 0", lambda f, s, o, t: f.startswith("rows") and "DISTINCT" in s.text() and any(re.fullmatch(rb"-0(\.0*)?", row[0] or b"") for row in t.rows)),
    ("a text or number beyond the members of a SET is '', which may be a duplicate", lambda f, s, o, t: (o.number, t.kind) == (1062, "ok") and "Duplicate entry ''" in o.message and 1265 in numbers_of(t)),
    ("ALTER TABLE that only changes the digits of FLOAT or DOUBLE keeps values beyond them in MariaDB and MySQL, and makes them the greatest one here", lambda f, s, o, t: "alter" in s.features and (o.number, t.kind, t.affected) == (1062, "ok", 0) and bool(re.search(r"^ALTER TABLE \w+ MODIFY \w+ (FLOAT|DOUBLE)\(\d+,\d+\)", s.text()))),
    ("ALTER TABLE checks the rows that it copies in MySQL", lambda f, s, o, t: "alter" in s.features and (o.number, t.kind) == (3819, "ok")),
    ("MariaDB changes a constant of RIGHT or INSERT again for each row", lambda f, s, o, t: ("INSERT" in s.names() or "RIGHT" in s.names() and s.names() & {"LPAD", "RPAD"}) and f.startswith("value: row") and not f.startswith("value: row 0")),
    ("a parameter that is NULL has the type of its place in MySQL", lambda f, s, o, t: s.prepared and (f.startswith(("type", "decimals")) or s.names() & {"COERCIBILITY", "COLLATION", "CHARSET"} or f.startswith("value") and folded(f)) and any(kind == NULL for kind, _ in s.sent()[1] or ())),
    ("a parameter has any number of digits", lambda f, s, o, t: s.prepared and f in ("type: newdecimal, theirs integer", "type: integer, theirs newdecimal")),
    ("ROUND of an integer is an integer", lambda f, s, o, t: s.names() & {"ROUND", "TRUNCATE"} and f in ("type: integer, theirs newdecimal", "type: unsigned integer, theirs newdecimal")),
    ("signed and unsigned integers together are integers where all values fit", lambda f, s, o, t: bool(s.names() & (CHOICES | {"LEAST", "GREATEST"})) and f in ("type: integer, theirs newdecimal", "type: unsigned integer, theirs newdecimal")),
    ("days, times, ENUM and SET are doubles in arithmetic of one operand in MySQL, ENUM and SET in any", of(ROUNDING | ARITHMETIC, arithmetic_as_double)),
    ("an exact number and a day are a decimal in MySQL", lambda f, s, o, t: f in ("type: newdecimal, theirs integer", "type: newdecimal, theirs unsigned integer") and s.names() & ARITHMETIC and s.families() & TEMPORAL_FAMILIES),
    ("LOCATE, INSTR, POSITION and FIND_IN_SET compare characters by the collation, not bytes", of({"LOCATE", "INSTR", "POSITION", "FIND_IN_SET"}, lambda f, s, o, t: s.names() & {"LOCATE", "INSTR", "POSITION", "FIND_IN_SET"} and f.startswith("value"))),
    ("SHA2 with wrong bits has another type", lambda f, s, o, t: "SHA2" in s.names() and (f.startswith("type") or 1583 in numbers_of(t) or f.startswith("warnings") and 1583 in numbers_of(o))),
    ("CONCAT with GET_FORMAT or JSON_TYPE loses text in MariaDB", of({"CONCAT"}, lost_text)),
    (
        "REPLACE of an empty text with NULL is NULL in MySQL",
        lambda f, s, o, t: "REPLACE" in s.names() and (": None, theirs b" in f or f.startswith("value") and bool(re.search(r"COUNT\((DISTINCT )?REPLACE\(", s.text()))),
    ),
    ("MariaDB changes some definitions without a copy", lambda f, s, o, t: "alter" in s.features and f.startswith("affected")),
    ("fractions of seconds are rounded where a time becomes an integer", rounded_moment),
    ("a text that is no day is the zero date in a comparison in MySQL, NULL or a text in MariaDB", of(COMPARED, compared_text)),
    ("MIN and MAX of ENUM compare texts; among equal texts they take any", lambda f, s, o, t: s.names() & {"MIN", "MAX"} and f.startswith("value") and ("choice" in s.families() or folded(f, has_unicode_collation(s)))),
    ("the greatest TIME has no fraction in MySQL", lambda f, s, o, t: f.startswith("value") and ("838:59:59.0" in f or "b'8385959', theirs b'8385959.9" in f or "BIT_OR" in s.names() and only_bits_of_greatest_time(f) or re.search(r"b'-?838:59:59', theirs b'-?838:59:59\.9+'", f) or re.search(r"b'(-?838:59:\d\d)\.0+', theirs b'\1\.9+0*'", f))),
    ("DIV by a double beyond 64 bits, or so small that it is 0 as a decimal", of({"DIV"}, divided_double)),
    ("TIMESTAMP is unsigned in MariaDB", lambda f, s, o, t: t.number == 1690 and "timestamp" in s.families()),
    ("periods beyond 32 bits", of({"PERIOD_ADD", "PERIOD_DIFF"}, lambda f, s, o, t: s.names() & {"PERIOD_ADD", "PERIOD_DIFF"} and (f.startswith("value") or o.number == 1690 and 1916 in numbers_of(t)))),
    ("BIT stays BIT in CASE and its kin, and is unsigned in every sum", of(CHOICES | ARITHMETIC | {"LN", "LOG", "LOG2", "LOG10", "EXP", "SQRT", "POW", "POWER"}, lambda f, s, o, t: "bit" in s.families() and s.names() & (CHOICES | ARITHMETIC | {"LN", "LOG", "LOG2", "LOG10", "EXP", "SQRT", "POW", "POWER"}) and f.startswith(("type", "value", "warnings")))),
    ("SHA2 with NULL for the bits is NULL", of({"SHA2"}, null_bits)),
    ("a double that is zero keeps its sign in a text", lambda f, s, o, t: f.startswith("value") and bool(re.search(r"b'-0(\\x00)*', theirs b'0", f) or "GROUP_CONCAT" in s.names() and "-0" in f and len({re.sub(r"(?<![\d.])-0(?![\d.])", "0", text) for text in re.findall(r"b'([^']*)'", f)}) == 1)),
    ("a hexadecimal literal in CASE and its kin is a text", lambda f, s, o, t: has_operand(s.root, CHOICES | {"ELT"}, {"hex"}) and (f.startswith(("value", "type", "warnings")) or (o.kind, t.number) == ("rows", 1690))),
    ("ENUM and SET are doubles in sums", lambda f, s, o, t: t.number == 1690 and "choice" in s.families()),
    ("a day times an unsigned number is unsigned", lambda f, s, o, t: f == "type: unsigned integer, theirs integer" and s.names() & ARITHMETIC and s.families() & TEMPORAL_FAMILIES),
    ("CAST AS BINARY(n) cuts bytes", of({"CAST BINARY"}, lambda f, s, o, t: "CAST BINARY" in s.names() and f.startswith(("value", "warnings")))),
    ("a TIME and an interval with days is a DATETIME in MySQL", lambda f, s, o, t: {1048, 1441} & numbers_of(t) and s.names() & {"INTERVAL", "DATE_ADD", "DATE_SUB"} and f.startswith(("kind", "error", "warnings", "value"))),
    ("wrong compressed bytes are a warning in MySQL", lambda f, s, o, t: t.number in (1256, 1259) and is_write(s)),
    ("COUNT of what is never NULL is not evaluated in MariaDB", lambda f, s, o, t: "COUNT" in s.names() and (f.startswith("warnings") and numbers_of(t) < numbers_of(o) or o.number == 1690 and t.kind == "rows")),
    ("invalid bytes are no text: NULL in MySQL, ? in MariaDB", lambda f, s, o, t: "CAST CHAR" in s.names() and 1300 in numbers_of(o) & numbers_of(t)),
    ("a TIMESTAMP or a time that is too late warns again where MariaDB makes a temporary table", lambda f, s, o, t: "DISTINCT" in s.text() and f.startswith("warnings") and not numbers_of(o) and numbers_of(t) <= {1264, 1265}),
    ("ORD of characters beyond 16 bits is negative in MariaDB", of({"ORD"}, astral_ord)),
    ("spaces after a number in a text are no error in MySQL", lambda f, s, o, t: is_write(s) and t.number == 1265 and o.kind == "ok"),
    ("a text that CAST cuts is error 1292 in a strict write", lambda f, s, o, t: is_write(s) and o.number == 1292 and s.names() & {"CAST CHAR", "CAST BINARY"}),
    ("FORMAT takes days, times and hexadecimal literals for doubles or integers", of({"FORMAT"}, lambda f, s, o, t: "FORMAT" in s.names() and f.startswith("value") and (s.families() & TEMPORAL_FAMILIES or "0x" in s.text()))),
    ("decimals and days are rounded to members of ENUM and SET, and a SET refuses negative ones", rounded_choice),
    ("a day or time in a YEAR is its year or 0", lambda f, s, o, t: is_write(s) and o.kind == "ok" and t.number == 1292 and re.search("Incorrect (date|time)", t.message)),
    ("an unsigned number and a day are unsigned in a sum, which is error 1690 if it is negative", lambda f, s, o, t: o.number == 1690 and "BIGINT UNSIGNED" in o.message and s.names() & {"-", "+", "*"} and s.families() & TEMPORAL_FAMILIES),
    ("AVG and SUM of doubles beyond the range are error 1690", lambda f, s, o, t: o.number == 1690 and s.names() & {"AVG", "SUM"}),
    ("ROUND of an integer beyond 64 bits is error 1690", lambda f, s, o, t: o.number == 1690 and s.names() & {"ROUND", "TRUNCATE"}),
    ("a zero date is stored from a function only if sql_mode allows it", lambda f, s, o, t: is_write(s) and o.number == 1292 and s.names() & CHOICES),
    ("a DATETIME that is rounded beyond the year 9999 is the zero date", lambda f, s, o, t: f.startswith("value") and "b'0000-00-00 00:00:00" in f and "theirs b'9999-12-31" in f),
    ("a text is a number, not bytes, where it is compared with BIT", lambda f, s, o, t: "bit" in s.families() and kind_of(f) in ("value", "rows") and "'" in s.text()),
    ("a day or time of a column is a number where BIT stores it, a text in MariaDB", time_into_bits),
    ("BIT(64) is unsigned as a double", of(DEVIATIONS | {"SIGN", "CAST DOUBLE", "CAST FLOAT", "ABS", "RADIANS", "DEGREES", "ATAN", "ATAN2", "SIN", "COS", "TAN", "COT", "POW", "POWER", "EXP", "ACOS", "ASIN"}, lambda f, s, o, t: has_wide_bit(s) and (f.startswith("value") or t.number == 1690) and s.names() & {*DEVIATIONS, "SIGN", "CAST DOUBLE", "CAST FLOAT", "ABS", "RADIANS", "DEGREES", "ATAN", "ATAN2", "SIN", "COS", "TAN", "COT", "POW", "POWER", "EXP", "ACOS", "ASIN"})),
    ("ROUND and TRUNCATE have at most 30 decimals in MySQL, 38 in MariaDB, also in the type", lambda f, s, o, t: s.names() & {"ROUND", "TRUNCATE"} and bool(re.match(r"decimals: newdecimal\(\d+,30\), theirs \(\d+,3[1-8]\)", f))),
    ("TRUNCATE and ROUND to NULL places keep the type", lambda f, s, o, t: s.names() & {"ROUND", "TRUNCATE"} and f == "type: newdecimal, theirs double"),
        ("LPAD and RPAD with an empty text to a length beyond max_allowed_packet", lambda f, s, o, t: s.names() & {"LPAD", "RPAD"} and f.startswith("warnings") and 1301 in numbers_of(t)),
    ("a text that is a negative number is no member of a SET in MySQL", lambda f, s, o, t: f.startswith("value") and "b'', theirs b'x,Y,long one" in f or f.startswith("value") and re.search("b'', theirs b'(a,b,c|0,1,2)'", f)),
    ("a parameter that is NULL beside a day or time makes a text here", null_beside_time),
    ("hexadecimal literals in functions of numbers are unsigned integers", of(ROUNDING | {"ATAN", "ATAN2"}, lambda f, s, o, t: "0x" in s.text() and s.names() & (ROUNDING | {"ATAN", "ATAN2"}) and f.startswith(("value", "kind")))),
    ("FLOAT stays FLOAT in CASE and its kin", lambda f, s, o, t: f == "type: float, theirs double" and bool(s.names() & (CHOICES | {"LEAST", "GREATEST"}))),
    ("a decimal has at most 30 digits after the point in MySQL, 38 in MariaDB", lambda f, s, o, t: f.startswith("decimals: newdecimal") and s.names() & {"AVG", "/", "*"} and re.search(r",30\), theirs \(\d+,3[1-8]\)", f)),
    ("a day times a decimal is a decimal in MySQL, an integer in MariaDB", lambda f, s, o, t: t.number == 1690 and s.names() & ARITHMETIC and s.families() & TEMPORAL_FAMILIES),
    ("a power beyond the range is error 1690 also where its value is not used", lambda f, s, o, t: o.number == 1690 and "DOUBLE value" in o.message and t.kind == "rows"),
    ("MariaDB does not evaluate what a NULL decides", lambda f, s, o, t: "NULL" in s.text() and s.names() & {"compare"} and f.startswith(("warnings", "kind")) and numbers_of(t) <= numbers_of(o)),
    ("a text of invalid bytes ends before them in MySQL, and has ? in MariaDB", lambda f, s, o, t: f.startswith("value") and (is_write(s) or 1300 in numbers_of(t)) and "?" in f),
    ("max_allowed_packet is 64 MiB here, 16 MiB in MariaDB", lambda f, s, o, t: s.names() & {"SPACE", "REPEAT", "LPAD", "RPAD"} and 1301 in numbers_of(t)),
    ("a DATETIME that is rounded beyond the year 9999 is the zero date, also among others", lambda f, s, o, t: kind_of(f) in ("value", "rows") and t.kind == "rows" and any(b"9999-12-31 23:59:59" in (value or b"") for row in t.rows for value in row) and any(b"0000-00-00" in (value or b"") for row in o.rows for value in row)),
    ("BETWEEN compares a text as a number with both bounds if one is a number", of({"BETWEEN"}, lambda f, s, o, t: s.names() & {"BETWEEN"} and kind_of(f) in ("value", "rows") and 1292 in numbers_of(o))),
    ("SUBTIME and ADDTIME beyond the year 9999 are warning 1441", lambda f, s, o, t: 1441 in numbers_of(o) and s.names() & {"ADDTIME", "SUBTIME"}),
    ("a remainder of doubles prints the digits that its operands fix in MariaDB; parameters fix none here", prepared_remainder),
    ("ALTER TABLE of a number to CHAR, where a FLOAT has more digits", lambda f, s, o, t: "alter" in s.features and s.families() & {"double"} and f.startswith("value")),
    ("BIT_COUNT counts the bits of bytes in MySQL", of({"BIT_COUNT"}, lambda f, s, o, t: "BIT_COUNT" in s.names() and f.startswith(("value", "warnings")))),
    ("TIMESTAMP is unsigned in MariaDB, also in the type of arithmetic", lambda f, s, o, t: f == "type: integer, theirs unsigned integer" and has_operand(s.root, ARITHMETIC, {"timestamp"})),
    ("invalid bytes are compared as bytes in MySQL, error 1300 in MariaDB", lambda f, s, o, t: t.number == 1300 and o.kind in ("rows", "ok")),
    ("texts in SUM and AVG have number 1292 in MySQL, 1366 in MariaDB", lambda f, s, o, t: "aggregate" in s.features and f.startswith("warnings") and numbers_of(o) - numbers_of(t) - ONLY_OURS <= {1264, 1292} and numbers_of(t) - numbers_of(o) <= {1264, 1265, 1292, 1366}),
    ("BIT is unsigned in a difference and a product", lambda f, s, o, t: o.number == 1690 and s.names() & {"-", "*"} and "bit" in s.families()),
    ("TIMESTAMP NOT NULL takes NULL as the current time in MariaDB, also with IGNORE", lambda f, s, o, t: 1048 in numbers_of(o) and is_write(s) and f.startswith(("affected", "warnings"))),
    ("which conversions to days and times are errors in strict writes", lambda f, s, o, t: is_write(s) and f.startswith("kind") and {o.number, t.number} == {1292, None} and (s.names() & (TEMPORAL | {"compare", "IN", "BETWEEN", "CASE", "LIKE"}))),
    ("a decimal has at most 30 digits after the point in MySQL, 38 in MariaDB, also as a value", same_to_30_digits),
    ("NULLIF of a number with ZEROFILL keeps its zeros in a text", lambda f, s, o, t: "NULLIF" in s.names() and f.startswith("value") and (only_zeros_before(f) or any("ZEROFILL" in kind for kind in s.types()))),
    ("NULLIF of ENUM and SET is a number where one is wanted", lambda f, s, o, t: has_operand(s.root, {"NULLIF"}, {"choice"}) and f.startswith("value") and (1292 in numbers_of(t) - numbers_of(o) or bool(s.names() & {"SUM", "AVG", "<<", ">>", "&", "|", "^", "~", "CAST DOUBLE", "CAST FLOAT"}))),
    ("the greatest TIME has no fraction in MySQL, also as hexadecimal digits", lambda f, s, o, t: "HEX" in s.names() and f.startswith("value") and b"838:59:59.0".hex().upper() in f),
    ("a quotient that is 0 has no sign in MySQL", lambda f, s, o, t: is_write(s) and "/" in s.names() and t.number == 1264 and o.kind == "ok"),
    ("BIT(64) is unsigned where it is compared as a double", of({"compare", "BETWEEN", "IN", "FIELD"}, lambda f, s, o, t: has_wide_bit(s) and s.names() & {"compare", "BETWEEN", "IN", "FIELD"} and kind_of(f) in ("value", "rows") and (s.families() & {"double", "decimal"} or re.search(r"\d\.\d|\de[-+]?\d", s.text())))),
    ("FORMAT has at most 30 decimals in MySQL, 38 in MariaDB, also in a function", of({"FORMAT"}, lambda f, s, o, t: "FORMAT" in s.names() and f.startswith("value") and ("year" in s.families() or any(int(digits) > 30 for digits in re.findall(r", '?-?(\d+)", s.text()))))),
    ("a number becomes a member of ENUM or SET by its text in ALTER TABLE, by its position in MariaDB", number_to_choice),
    ("a document is a number of its own, the number of its text in MariaDB", lambda f, s, o, t: "json" in s.families() and t.number == 1690 and o.kind == "rows"),
    ("a duplicate index is a warning in MySQL, a note in MariaDB", is_duplicate_index),
    ("BIT(64) is unsigned in ALTER TABLE, and a signed integer in MariaDB", lambda f, s, o, t: "alter" in s.features and has_wide_bit(s) and f.startswith("value") and re.search(r"theirs b'-\d", f)),
    ("LOG2 is log2() in MySQL, log(x) / log(2) in MariaDB, whose last digit differs in a text", lambda f, s, o, t: ("LOG2" in s.names() or "logarithm" in s.features) and (near_numbers(f) or f.startswith("value") and "double" in s.families() and bool(s.names() & {"MID", "SUBSTR", "SUBSTRING", "RIGHT", "REVERSE"}))),
    ("a text near 0 is compared with 0 as a double in MySQL, as a decimal in MariaDB", of({"logic", "IS", "compare", "IN", "BETWEEN"}, lambda f, s, o, t: s.names() & {"logic", "IS", "compare", "IN", "BETWEEN"} and kind_of(f) in ("rows", "value") and ("e-320" in s.text() or "tiny" in s.features and s.families() & {"text", "bytes", "double"}))),
    ("a prepared CAST to an integer of ten digits loses bits in MariaDB", cut_to_32_bits),
    ("MariaDB encodes the text of a column twice beside a number", lambda f, s, o, t: s.names() & {"LPAD", "RPAD", "INSERT", "MAKE_SET", "EXPORT_SET", "ELT", "CONCAT", "CONCAT_WS", "REPLACE", "SUBSTRING_INDEX"} and double_encoded(f)),
    ("a text that is a number beyond the members of a SET is none in MySQL, its bits in MariaDB", bits_of_set),
    ("a number of JSON beyond 64 bits is a double in MySQL", number_of_document),
    ("digits of a product beyond nine groups of nine", near_product),
    ("IF with two NULLs has the type NULL", lambda f, s, o, t: kind_of(f) == "type" and any(all(isinstance(operand, Literal) and operand.text == "NULL" for operand in node.operands[1:]) for node in nodes(s.root, {"IF"}))),
    ("a hexadecimal literal in an IN list of unlike types is a number or bytes, a text in MariaDB", of({"IN"}, lambda f, s, o, t: "IN" in s.names() and kind_of(f) in ("rows", "value") and bool(re.search(r"0x[0-9a-f]+ (NOT )?IN \(", s.text())))),
    ("a count of SUBSTRING_INDEX has 64 bits in MySQL, 32 in MariaDB", wide_count),
    ("a negated time is a double, which is rounded to 0", lambda f, s, o, t: is_write(s) and (o.kind, t.number) == ("ok", 1264) and has_operand(s.root, {"neg"} | ROUNDING, TEMPORAL_FAMILIES)),
    ("a day and a decimal are a decimal in MySQL, an integer that is cut in MariaDB", lambda f, s, o, t: kind_of(f) == "value" and 1916 in numbers_of(t) and bool(s.names() & ARITHMETIC) and bool(s.families() & TEMPORAL_FAMILIES)),
    ("an illegal mix of collations in a regular expression has the number for two operands", lambda f, s, o, t: (o.number, t.number) == (1267, 1270) and bool(s.names() & {"REGEXP_REPLACE", "REGEXP_INSTR", "REGEXP_SUBSTR"})),
    ("a column that ALTER TABLE makes JSON has the form of its type, and a column that is generated from it", lambda f, s, o, t: is_write(s) and bool(re.search(r" MODIFY \w+ JSON", s.text())) and same_numbers(f, s, o, t)),
    ("a time as a length is its hours, and a large number in MariaDB", time_as_length),
    ("QUOTE of a number has the character set of texts, and latin1 in MariaDB", lambda f, s, o, t: pair(f) in ((b"utf8mb4", b"latin1"), (b"utf8mb4_general_ci", b"latin1_swedish_ci")) and "QUOTE" in s.names()),
    ("MariaDB finds the last element of a constant document in the first row only", last_element),
    ("counts of characters beyond 64 bits are the greatest number, and lose their upper bits in MariaDB", of({"SUBSTRING_INDEX", "EXPORT_SET", "MAKE_SET"}, lambda f, s, o, t: s.names() & {"SUBSTRING_INDEX", "EXPORT_SET", "MAKE_SET"} and f.startswith("value") and 1916 in numbers_of(t))),
    ("MariaDB reports conversions with 1916, an error in a strict write", lambda f, s, o, t: is_write(s) and f == "kind: ok, theirs error 1916"),
    ("CHAR columns are padded in the select list only", lambda f, s, o, t: {"padded", "where"} <= s.features and f.startswith("rows") and any(kind.startswith(("CHAR", "NCHAR")) for kind in s.types())),
    ("the negation of a constant that is negative is an integer here, a decimal in MySQL and MariaDB", lambda f, s, o, t: "neg" in s.names() and (f == "type: integer, theirs newdecimal" or (o.number, t.kind) == (1690, "rows") and "-9223372036854775808" in s.text())),
    ("REPLACE with NULL is NULL in MySQL, the text in MariaDB where nothing is replaced", lambda f, s, o, t: is_write(s) and (o.kind, t.number) == ("ok", 1366) and "REPLACE" in s.names()),
    ("NULLIF of ENUM and SET is stored in a number as a number, in MySQL as a text", lambda f, s, o, t: "NULLIF" in s.names() and "choice" in s.families() and is_write(s) and t.number == 1366 and o.kind == "ok"),
    ("a year of two digits is 2000 also where only the time is not zero", lambda f, s, o, t: bool(re.search(r": b'2000-00-00[ '].*theirs b'0000-00-00[ ']", f))),
    ("REGEXP_REPLACE matches by the collation of the text and the pattern", of({"REGEXP_REPLACE"}, lambda f, s, o, t: "REGEXP_REPLACE" in s.names() and f.startswith("value") and ("json" in s.families() or any("_bin" in kind for kind in s.types())))),
    ("an order of rows that begin with NULL is NULL, 0 for COUNT(DISTINCT ...) in MariaDB", lambda f, s, o, t: f.endswith("b'0', theirs b'1'") and bool(re.search(r"COUNT\(DISTINCT \(.*\) [<>]=? \(NULL,", s.text()))),
    ("a day of bytes that are none is NULL, also where it is compared", of(COMPARED, lambda f, s, o, t: kind_of(f) in ("value", "rows") and 1292 in numbers_of(o) & numbers_of(t) and any(isinstance(operand, Form) and has_operand(operand, TEMPORAL, {"hex", "bytes"}) for node in nodes(s.root, COMPARED) for operand in node.operands))),
    ("RPAD and LPAD with NULL are NULL in MAKE_SET, the text before the padding in MariaDB", of({"MAKE_SET"}, lambda f, s, o, t: kind_of(f) == "value" and "MAKE_SET" in s.names() and bool(s.names() & {"RPAD", "LPAD"}) and "NULL" in s.text())),
    ("a member of ENUM or SET is its number in BETWEEN beside a double that may be NULL", of({"BETWEEN"}, lambda f, s, o, t: kind_of(f) in ("value", "rows") and any({"choice", "double"} <= kinds for kinds in compared_operands(s.root)))),
    ("a number of a document has a point in its text in MySQL", lambda f, s, o, t: is_write(s) and "JSON" in s.types() and f == "kind: error 1406, theirs ok"),
    ("a column that is generated from a comparison of unlike types", generated_from_comparison),
    ("MAX and MIN of NULL have no type here", lambda f, s, o, t: f == "type: null, theirs bytes" and bool(re.search(r"(MIN|MAX)\(NULL\)", s.text()))),
    ("a number beyond hhmmss is the greatest TIME, also with IGNORE", lambda f, s, o, t: f.startswith("affected") and is_write(s) and 1264 in numbers_of(o) and any(kind.startswith("TIME(") for kind in s.types())),
    ("wrong compressed bytes are a warning in MySQL, also for their length", lambda f, s, o, t: f.startswith("warnings") and "UNCOMPRESSED_LENGTH" in s.names() and numbers_of(o) - numbers_of(t) == {1259}),
    ("digits of a ROUND or TRUNCATE to places of a parameter are not known", rounded_by_parameter),
    ("AVG and SUM of distinct texts and doubles are those of numbers with few digits in MariaDB", distinct_of_text),
    ("a sum of texts in groups has a point without digits in MariaDB", point_of_sum),
    ("a negative integer is unsigned beside a BIT(64) in MariaDB", of({"compare", "BETWEEN", "IN"}, negative_of_bits)),
    ("texts that are compared as numbers need no collation", number_in_texts),
    ("texts of JSON functions are compared in utf8mb4_bin in MySQL, in utf8mb3_general_ci in MariaDB", collation_of_documents),
    ("ELT of ENUM, SET, days and times is a text here, a number where one is wanted in MySQL", chosen_text),
    ("a constant of a select list is evaluated in MariaDB, also if the table is empty", unread_constant),
    ("bytes in a text stay as they are, and MariaDB warns of them", invalid_in_text),
    ("a sum of times with a fraction as integers is one of rounded times", aggregate_of_moment),
    ("a difference beyond BIGINT is error 1690, and wraps in MariaDB", least_integer),
    ("a sum or extreme of more than 65 digits in groups is cut in MariaDB", greatest_sum),
    ("MariaDB encodes the padding of a number twice", padded_number),
    ("a text with two points in a YEAR", points_in_year),
    ("a text ends before its first invalid byte, so that it may stay as it is, and has ? in MariaDB", lambda f, s, o, t: f == "affected: 0, theirs 1" and is_write(s) and 1366 in numbers_of(o) & numbers_of(t)),
    ("a decimal as a text is a day without its point in MySQL, none in MariaDB", day_with_point),
    ("bytes and a text are compared as bytes, and MariaDB warns of them", bytes_compared),
    ("MariaDB cuts a text in groups to the length of its type", cut_to_length),
    ("ROUND and TRUNCATE of a parameter that is an integer have no digits after the point", rounded_parameter),
    ("a FLOAT that CONVERT USING makes a text has the digits of that text", recoded_float),
    ("CEIL and FLOOR of a wide double have an exponent in a text, all digits in MariaDB", wide_whole),
    ("a logarithm that is NULL is out of range in MariaDB's groups", logarithm_in_groups),
    ("CEIL and its kin of a day or time are numbers, also beside a day or time", rounded_day),
    ("CEIL and its kin of a day, ENUM or SET are doubles, whose integer quotient has a sign", divided_whole),
    ("a text of a day is no time in MySQL, and its start in MariaDB", day_as_time),
    ("a sum of a day or time has the digits of its type in a text, six in MariaDB", digits_of_day),
    ("MariaDB cuts the double of a default after ALTER TABLE", shorter_default),
    ("a constant default is evaluated for each row, and once in MariaDB", lambda f, s, o, t: f.startswith("warnings") and is_write(s) and numbers_of(o) - numbers_of(t) == {1259} and numbers_of(t) <= numbers_of(o) and any(any(nodes(source, {"UNCOMPRESS", "UNCOMPRESSED_LENGTH"})) for source in s.sources.values())),
    ("IF and its kin of YEAR show 0 as 0000, also in a text that is cut", zeros_of_year),
    ("a DATETIME that is rounded beyond the year 9999 is the zero date, also a part of it", part_of_late_day),
    ("ROUND and TRUNCATE have at most 30 decimals in MySQL, 38 in MariaDB, also in a text", many_places),
    ("UNIX_TIMESTAMP of a parameter has six digits after the point in MySQL, none in MariaDB", seconds_of_parameter),
    ("bytes that are no text end a text, which a CHECK refuses, and are ? in MariaDB", refused_text),
    ("MariaDB compares the operands of LEAST and GREATEST as signed numbers where an integer is wanted", signed_extreme),
    ("MIN and MAX of a function that gives no day or time are NULL, the zero date or time in MariaDB's groups", extreme_of_none),
    ("MariaDB warns of the bits that JSON_UNQUOTE takes for a text", lambda f, s, o, t: f.startswith("warnings") and has_operand(s.root, {"JSON_UNQUOTE"}, {"bit"}) and numbers_of(t) - numbers_of(o) == {1300} and not numbers_of(o) - numbers_of(t)),
    ("a sum or average of quotients has all their digits here, those of the type in groups of MySQL and MariaDB", quotient_in_groups),
    ("which error of an INSERT with a wrong value and a wrong collation is first", first_of_several),
    ("LEAST and GREATEST need one collation, what is around them in MariaDB", mixed_extreme),
    ("a position that is a text beyond 64 bits is -1 in MySQL", position_beyond),
    ("a comparison of rows with NULL is NULL, and MariaDB counts it", row_with_null),
    ("DISTINCT keeps any of several equal texts", lambda f, s, o, t: "DISTINCT" in s.text() and f.startswith("value") and folded(f, has_unicode_collation(s))),
    ("ALTER TABLE reads a day from the text of a number, MariaDB from the number", lambda f, s, o, t: "alter" in s.features and (o.kind, t.number) == ("ok", 1062) and t.message.startswith("Duplicate entry '0000-00-00") and bool(re.search(r" (MODIFY|CHANGE) .*\b(DATE|DATETIME|TIMESTAMP)\b", s.text()))),
    ("REPLACE with NULL is NULL, which MAKE_SET leaves out, and a text in MariaDB's MAKE_SET", lambda f, s, o, t: f.startswith("value") and has_operand(s.root, {"MAKE_SET"}, {"text"}) and any(any(isinstance(operand, Literal) and operand.text == "NULL" for operand in node.operands) for node in nodes(s.root, {"REPLACE"}))),
    ("a number that is a day has no fraction of a second in MySQL", lambda f, s, o, t: bool(re.match(r"value: row \d+: b'(\d{4}-\d\d-\d\d) 00:00:00\.0+', theirs b'\1 00:00:00\.\d+'", f)) and is_write(s)),
    ("the week of a day in month 0 is one of the year before, a large number in MariaDB", of({"DATE_FORMAT", "WEEK", "YEARWEEK"}, lambda f, s, o, t: s.names() & {"DATE_FORMAT", "WEEK", "YEARWEEK"} and f.startswith("value") and "61356675" in f)),
    ("MariaDB's MIN and MAX cut a double with fixed digits to the length of its type", of({"MIN", "MAX"}, lambda f, s, o, t: s.names() & {"MIN", "MAX"} and f.startswith("value") and bool(re.search(r"theirs b'-?10+\.0+'", f)) and "double" in s.families())),
    ("a time in a new document has six digits after the point", lambda f, s, o, t: kind_of(f) == "value" and "TIME" in s.text() and getattr(s.root, "name", None) in ("JSON_ARRAY", "JSON_OBJECT") and None not in (pair(f) or (None,)) and same_form(*pair(f))),
    ("a day or time is compared with a double as a number, in MariaDB as a day or time", of({"compare", "IN", "BETWEEN"}, lambda f, s, o, t: kind_of(f) in ("value", "rows") and bool(s.names() & {"compare", "IN", "BETWEEN"}) and "TIMESTAMP'" in s.text() and bool(s.names() & {"GREATEST", "LEAST"}) and bool(re.search(r"\de\d", s.text())))),
    ("POSITION and its kin compare characters by the collation, so that a quotient is none by 0", lambda f, s, o, t: kind_of(f) in ("value", "warnings") and bool(s.names() & {"LOCATE", "INSTR", "POSITION"}) and 1365 in numbers_of(t) - numbers_of(o) and not s.text().isascii()),
    ("COERCIBILITY of a time with a number as its format is 4 here, 5 in MySQL", lambda f, s, o, t: f.endswith("b'4', theirs b'5'") and "COERCIBILITY" in s.names() and bool(s.names() & {"FROM_UNIXTIME", "DATE_FORMAT", "TIME_FORMAT"})),
    ("MariaDB's MIN and MAX cut the text of a DECIMAL that has all digits behind the point", lambda f, s, o, t: bool(re.search(r"b'(-?0\.\d+)\d', theirs b'\1'$", f)) and bool(s.names() & {"MIN", "MAX"}) and any(re.match(r"DECIMAL\((\d+),\1\)", kind) for kind in s.types())),
    ("NULL of another column changes nothing in an ENUM or SET that is NULL", lambda f, s, o, t: f == "affected: 0, theirs 1" and bool(re.match(r"UPDATE (IGNORE )?\w+ SET \w+ = \w+( |$)", s.text())) and any(kind.startswith(("ENUM", "SET")) for kind in s.types())),
    ("MariaDB's ALTER TABLE mixes the collations of a generated column anew", lambda f, s, o, t: "alter" in s.features and (o.kind, t.number) == ("ok", 1267)),
]


def excuse(found, statement, ours, theirs):
    """The reason of a known difference, or `None`."""
    for reason, holds in EXCUSES:
        if holds(found, statement, ours, theirs):
            return reason
    return None
