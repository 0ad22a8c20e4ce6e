"""Columns of every type, and values at the limits of the types."""

from tree import Form, Literal, null, number, string, words

INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "BIGINT": 64}
NUMBERS = [
    "0", "1", "-1", "2", "7", "10", "12", "99", "100", "127", "128", "-128", "-129", "255", "256", "32767", "32768", "65535", "8388607", "16777216",
    "2147483647", "2147483648", "-2147483649", "4294967295", "4294967296", "9223372036854775807", "-9223372036854775808", "18446744073709551615",
]
DECIMALS = [
    "0.0", "0.5", "-0.5", "1.5", "2.5", "-1.5", "0.05", "1.005", "-0.001", "12.345", "99.995", "999.9", "123456789.987654321", "0.1234567890123456789",
    "-9999999999.99", "99999999999999999999.5", "1.10", "100.00", "-7.25",
]
WIDE_DECIMALS = [
    "9" * 35 + "." + "9" * 30, "-" + "9" * 35 + "." + "9" * 30, "9" * 65 + ".0", "1" + "0" * 38 + ".0", "9" * 39 + ".5", "0." + "1" * 30, "-0." + "0" * 29 + "1",
    "12345678901234567890123456789012345.678901234567890123456789012345", "-" + "9" * 38 + ".1", "1" + "0" * 34 + "." + "0" * 29 + "1", "5" * 20 + "." + "5" * 25,
    "340282366920938463463374607431768211456.0", "170141183460469231731687303715884105727.0", "-170141183460469231731687303715884105729.0",
]
DOUBLES = ["0e0", "1e0", "-1e0", "1.5e0", "2.5e0", "-2.5e-1", "1e-3", "1e10", "1.7e19", "-1e19", "3.4e38", "1e39", "1.797e308", "1e-320", "0.1e0", "123456.789e0"]
TEXTS = [
    "", " ", "a", "A", "b", "ab", "abc", "abc ", "Abc", "ä", "ß", "é", "日本", "😀", "x%y", "a_b", "it's", "0", "1", "-1", "12", "12abc", " 7", "7 ", "1.5",
    "-2.5", "1e2", "1e400", ".5", "abcdefghij", "aXbXc", "a,b,c", "hello world", "007", "0x41", "true", "null", "\\", "a\tb", "  x  ", "zz",
]
DATES = [
    "2024-02-29", "2023-12-31", "2000-01-01", "1000-01-01", "9999-12-31", "1970-01-01", "2038-01-19", "1999-06-15", "2023-03-26", "0001-01-01",
]
ODD_DATES = ["0000-00-00", "2023-00-10", "2023-05-00", "2023-02-30", "2023-13-01", "2023-02-29", "10000-01-01", "20230704", "230704", "23-7-4", "2023/07/04", "2023-07-04abc", "2023-1-1"]
TIMES = ["00:00:00", "12:34:56", "-12:34:56", "838:59:59", "-838:59:59", "23:59:59.999999", "10:11:12.5", "00:00:00.000001", "01:02:03.4567", "100:00:00"]
ODD_TIMES = ["839:00:00", "24:00:00", "10:60:00", "12:34", "1 02:03:04", "-1 10:00:00", "123456", "5", "12:34:56.1234567", "10:11:12abc", "abc", "34 23:00:00"]
MOMENTS = [
    "2024-02-29 12:34:56", "2023-12-31 23:59:59", "2023-12-31 23:59:59.999999", "2000-01-01 00:00:00", "1970-01-01 00:00:01", "2038-01-19 03:14:07",
    "9999-12-31 23:59:59", "1000-01-01 00:00:00", "2023-03-26 02:30:00", "1999-06-15 10:11:12.5", "2020-07-04 01:02:03.4567",
]
ODD_MOMENTS = [
    "0000-00-00 00:00:00", "2023-02-30 10:00:00", "2023-01-01 24:00:00", "2023-01-01 10:60:00", "20230704112233", "230704112233", "2023-07-04T11:22:33", "2023-07-04 11:22",
    "1969-12-31 23:59:59", "2038-01-19 03:14:08", "2023-07-04 11:22:33.1234567", "2023-07-04 11:22:33abc", "2023-00-00 10:10:10", "9999-12-31 23:59:59.999999",
]
DOCUMENTS = [
    "null", "true", "1", "-1.5", "\"a\"", "[]", "{}", "[1, 2, 3]", "{\"a\": 1}", "{\"b\": [1, \"x\"], \"a\": {\"c\": null}}", "[1, [2, {\"k\": \"v\"}]]", "\"2024-02-29\"",
    "1e10", "[null, true, false]", "{\"a\": \"é\", \"日\": 1}", "18446744073709551615",
]
ODD_DOCUMENTS = ["", "{", "[1,]", "abc", "{\"a\" 1}", "nul", "'a'"]
# As numbers, MariaDB takes x'41' for a text and 0x41 for 65, like MySQL.
HEX = ["0x00", "0x41", "0x61", "0x7f", "0x6162", "0xc3a4", "0x00ff10", "0x6120", "0xffffffffffffffff"]
# Names that MySQL has for other types, with their families.
OTHER_NAMES = [
    ("BOOL", "integer"), ("BOOLEAN", "integer"), ("INTEGER", "integer"), ("INT1", "integer"), ("INT2", "integer"), ("INT3 UNSIGNED", "integer"), ("INT4", "integer"), ("INT8", "integer"), ("MIDDLEINT", "integer"),
    ("NUMERIC(6,3)", "decimal"), ("DEC(4)", "decimal"), ("FIXED(8,2)", "decimal"), ("REAL", "double"), ("DOUBLE PRECISION", "double"), ("FLOAT4", "double"), ("FLOAT8", "double"),
    ("NCHAR(4)", "text"), ("NATIONAL VARCHAR(5)", "text"), ("CHARACTER VARYING(6)", "text"), ("LONG", "text"), ("CHAR BYTE", "bytes"), ("LONG VARBINARY", "bytes"),
]
TEXT_SETS = [""] * 6 + [" COLLATE utf8mb4_bin"] * 3 + [" COLLATE utf8mb4_unicode_ci", " COLLATE utf8mb4_unicode_520_ci", " COLLATE utf8mb4_swedish_ci", " COLLATE utf8mb4_turkish_ci", " CHARACTER SET latin1", " CHARACTER SET latin1 COLLATE latin1_bin", " CHARACTER SET ascii", " CHARACTER SET utf8mb3"]
GEOMETRIES = ["POINT(1 2)", "POINT(-1.5 1e10)", "LINESTRING(0 0,1 1,2 0)", "POLYGON((0 0,4 0,4 4,0 0))", "GEOMETRYCOLLECTION(POINT(0 0))", "MULTIPOINT(1 1,2 2)"]
MEMBERS = ["'a','b','c'", "'x','Y','long one','ä'", "'0','1','2'", "'','n'"]


class Column:
    """A column: its definition, and the family of its values. `source` is the expression of its default, or of all its
    values if it is `generated` (VIRTUAL or STORED)."""

    def __init__(self, name, kind, family, options="", source=None, generated=None):
        self.name, self.kind, self.family, self.options, self.source, self.generated = name, kind, family, options, source, generated

    def definition(self):
        if self.generated is not None:
            return Form(f"{self.name} {self.kind} AS ({{}}) {self.generated}", [self.source])
        if self.source is not None:
            return Form(f"{self.name} {self.kind} DEFAULT ({{}}){self.options}", [self.source])
        return words(f"{self.name} {self.kind}{self.options}")


def draw_type(random, computed=False):
    """A type and its family. A type of values that are `computed` is no geometry."""
    pick = random.choice
    draws = [
        lambda: (pick(list(INTEGERS)) + pick(["", "", " UNSIGNED", " UNSIGNED", "(5)", "(3) ZEROFILL", " ZEROFILL"]), "integer"),
        lambda: pick(OTHER_NAMES),
        lambda: (pick(["DECIMAL", "DECIMAL(5,2)", "DECIMAL(10,0)", "DECIMAL(20,10)", "DECIMAL(38,30)", "DECIMAL(30,5)", "DECIMAL(3,3)", "DECIMAL(65,30)", "DECIMAL(65,0)", "DECIMAL(39,1)", "DECIMAL(50,20)"]) + pick(["", "", " UNSIGNED", " ZEROFILL"]), "decimal"),
        lambda: (pick(["FLOAT", "FLOAT(7,3)", "DOUBLE", "DOUBLE", "DOUBLE(10,3)", "FLOAT(20)", "FLOAT(30)"]) + pick(["", "", "", " UNSIGNED", " ZEROFILL"]), "double"),
        lambda: (f"BIT({pick([1, 1, 5, 8, 17, 64])})", "bit"),
        lambda: (pick(["YEAR", "YEAR(4)"]), "year"),
        lambda: ("DATE", "date"),
        lambda: (f"TIME({pick([0, 0, 1, 3, 6])})", "time"),
        lambda: (f"DATETIME({pick([0, 0, 2, 4, 6])})", "moment"),
        lambda: (f"TIMESTAMP({pick([0, 0, 3, 6])})", "timestamp"),
        lambda: (pick(["CHAR", "CHAR(4)", "CHAR(10)", "VARCHAR(3)", "VARCHAR(20)", "VARCHAR(200)"]) + pick(TEXT_SETS), "text"),
        lambda: (pick(["TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "TEXT(100)"]) + pick(TEXT_SETS), "text"),
        lambda: (pick(["BINARY", "BINARY(4)", "BINARY(16)", "VARBINARY(3)", "VARBINARY(20)"]), "bytes"),
        lambda: (pick(["TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "BLOB(300)"]), "bytes"),
        lambda: (f"ENUM({pick(MEMBERS)})", "choice"),
        lambda: (f"SET({pick(MEMBERS[:3])})", "choice"),
        lambda: ("JSON", "json"),
        lambda: (pick(["POINT", "GEOMETRY", "LINESTRING"]), "geometry"),
    ]
    return pick(draws[:-1] if computed else draws)()


def draw_column(random, name, computed=False):
    kind, family = draw_type(random, computed)
    options = random.choice(["", "", "", " NULL", " NOT NULL", " NOT NULL"])
    if "ZEROFILL" in kind or family in ("text", "bytes") and ("TEXT" in kind or "BLOB" in kind or "LONG" in kind):
        has_default = False
    else:
        has_default = family not in ("json", "geometry") and random.random() < 0.35
    if options != " NOT NULL" and random.random() < 0.04:
        options += " INVISIBLE"
    if family == "timestamp" and not options:
        options = " NULL"
    if has_default:
        options += f" DEFAULT {default_of(random, kind, family)}"
        if family in ("moment", "timestamp") and random.random() < 0.3:
            options += f" ON UPDATE CURRENT_TIMESTAMP{digits(kind)}"
    return Column(name, kind, family, options)


def digits(kind):
    return kind[kind.find("("):] if "(" in kind and not kind.endswith("(0)") else ""


def default_of(random, kind, family):
    if family in ("moment", "timestamp"):
        return random.choice([f"CURRENT_TIMESTAMP{digits(kind)}", "'2020-01-02 03:04:05'"])
    if family == "choice":
        return kind[kind.find("(") + 1:].split(",")[0].rstrip(")")
    return {
        "integer": random.choice(["0", "5", "'7'"]), "decimal": "0.5" if "(3,3)" in kind else random.choice(["1", "1.5", "'2.25'"]), "double": random.choice(["0", "1.5", "3e1"]),
        "bit": random.choice(["0", "1", "b'1'"]), "year": random.choice(["2000", "'1999'"]), "date": "'2001-02-03'", "time": random.choice(["'10:11:12'", "'-01:00:00'"]),
        "text": random.choice(["''", "'a'"]), "bytes": random.choice(["''", "'b'"]),
    }[family]


def typed(prefix):
    """A temporal literal such as DATE'2024-02-29'."""
    return lambda text: Literal(f"{prefix}'{text}'", family={"DATE": "date", "TIME": "time"}.get(prefix, "moment"))


def literal_of(random, family, odd=0.12):
    """A literal for a family of values, at times one of another family."""
    if random.random() < 0.05:
        return null()
    if random.random() < odd:
        family = random.choice(list(POOLS))
    return random.choice(STORED[family])(random)


def member(random):
    return string(random.choice(["a", "b", "c", "x", "Y", "y", "long one", "ä", "0", "1", "2", "", "n", "a,b", "b,a", "a,a", "x,long one", "nope", "c,nope", "A"]))


POOLS = {
    "integer": [lambda r: number(r.choice(NUMBERS)), lambda r: number(str(r.randint(-20, 20))), lambda r: number(r.choice(NUMBERS[:13]))],
    "decimal": [lambda r: number(r.choice(DECIMALS)), lambda r: number(r.choice(WIDE_DECIMALS)), lambda r: number(f"{r.randint(-999, 999) / 100:.2f}")],
    "double": [lambda r: number(r.choice(DOUBLES))],
    "bit": [lambda r: Literal(r.choice(HEX)), lambda r: number(r.choice(NUMBERS)), lambda r: number(str(r.randint(0, 33)))],
    "year": [lambda r: number(r.choice(["0", "1", "69", "70", "99", "1901", "2000", "2024", "2155", "1900", "2156", "100", "-1"])), lambda r: string(r.choice(["0", "00", "1", "69", "70", "1999", "2024", "0000", "2155", "abc", "20244"]))],
    "date": [lambda r: string(r.choice(DATES)), lambda r: string(r.choice(DATES)), lambda r: typed("DATE")(r.choice(DATES)), lambda r: string(r.choice(ODD_DATES)), lambda r: number(r.choice(["20240229", "240229", "20231301", "101", "0"]))],
    "time": [lambda r: string(r.choice(TIMES)), lambda r: string(r.choice(TIMES)), lambda r: typed("TIME")(r.choice(TIMES)), lambda r: string(r.choice(ODD_TIMES)), lambda r: number(r.choice(["123456", "-10", "101112.5", "8385959", "8390000", "126000", "0"]))],
    "moment": [lambda r: string(r.choice(MOMENTS)), lambda r: string(r.choice(MOMENTS)), lambda r: typed("TIMESTAMP")(r.choice(MOMENTS)), lambda r: string(r.choice(ODD_MOMENTS)), lambda r: number(r.choice(["20240229123456", "240229123456", "20230704", "20230704112233.75", "0"]))],
    "timestamp": [lambda r: string(r.choice(MOMENTS)), lambda r: string(r.choice(MOMENTS[:6])), lambda r: string(r.choice(ODD_MOMENTS)), lambda r: typed("TIMESTAMP")(r.choice(MOMENTS))],
    "text": [lambda r: string(r.choice(TEXTS)), lambda r: string(r.choice(TEXTS[:24]))],
    "bytes": [lambda r: Literal(r.choice(HEX)), lambda r: string(r.choice(TEXTS))],
    "choice": [member, member, lambda r: number(str(r.randint(-1, 9)))],
    "json": [lambda r: string(r.choice(DOCUMENTS)), lambda r: string(r.choice(DOCUMENTS)), lambda r: string(r.choice(ODD_DOCUMENTS)) if r.random() < 0.3 else string(r.choice(DOCUMENTS))],
}
# Functions see geometries as bytes here, and refuse them by their type in MariaDB: they are only stored and read.
STORED = {**POOLS, "geometry": [lambda r: Literal(f"ST_GeomFromText('{r.choice(GEOMETRIES)}')"), lambda r: Literal(f"ST_GeomFromText('{r.choice(GEOMETRIES[:2])}')")]}


def assignment(column, value):
    return Form(f"{column.name} = {{}}", [value])
