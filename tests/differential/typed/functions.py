"""Expressions from the functions of docs/generated/functions.md and the operators. A signature has the kinds
of the operands: families of `columns.POOLS`, `any`, `count` (a small integer), `path`, or `=TEXT` for words."""

from columns import POOLS, literal_of
from tree import Form, number, string, words

UNITS = "MICROSECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR".split()
PAIRS = (
    "SECOND_MICROSECOND MINUTE_MICROSECOND MINUTE_SECOND HOUR_MICROSECOND HOUR_SECOND HOUR_MINUTE DAY_MICROSECOND DAY_SECOND DAY_MINUTE DAY_HOUR YEAR_MONTH"
).split()
FORMATS = ["%Y-%m-%d", "%d.%m.%y", "%H:%i:%s", "%W %M %e %Y", "%j", "%U %u %V %v %X %x", "%a %b %c", "%D", "%f", "%h %I %l %p %r %T", "%k", "%%x%Z", "%Y-%m-%d %H:%i:%s.%f", "", "%", "%w", "%S"]
INTERVALS = ["1", "-1", "10", "1.5", "'1:2'", "'1 2:3:4'", "'1-2'", "'-1 10'", "'1 2:3:4.5'", "'x'", "999999", "0", "'1.25'", "NULL"]

# name: (result, operands); an operand list that ends in "..." takes more of the last kind.
SIGNATURES = {
    # control
    "COALESCE": ("same", "any any ..."), "IF": ("same", "any any any"), "IFNULL": ("same", "any any"), "NULLIF": ("same", "any any"),
    "INTERVAL": ("integer", "integer integer integer ..."), "ISNULL": ("integer", "any"), "MOD": ("decimal", "numeric numeric"),
    # text
    "BIT_LENGTH": ("integer", "text"), "CHARACTER_LENGTH": ("integer", "text"), "CHAR_LENGTH": ("integer", "text"), "CONCAT": ("text", "text any ..."),
    "CONCAT_WS": ("text", "text text any ..."), "LCASE": ("text", "text"), "LEFT": ("text", "text count"), "LENGTH": ("integer", "any"), "LOWER": ("text", "text"),
    "LPAD": ("text", "text count text"), "MID": ("text", "text count count"), "OCTET_LENGTH": ("integer", "text"), "REPEAT": ("text", "text count"), "REVERSE": ("text", "text"),
    "RIGHT": ("text", "text count"), "RPAD": ("text", "text count text"), "SPACE": ("text", "count"), "SUBSTR": ("text", "text count|text count count"),
    "SUBSTRING": ("text", "text count|text count count"), "UCASE": ("text", "text"), "UPPER": ("text", "text"),
    "CHAR": ("bytes", "count|integer integer"), "ELT": ("text", "count text text ..."), "EXPORT_SET": ("text", "count text text|count text text text count"), "FROM_BASE64": ("bytes", "text"),
    "INSERT": ("text", "text count count text"), "MAKE_SET": ("text", "count text text ..."), "QUOTE": ("text", "text"), "SOUNDEX": ("text", "text"),
    "SUBSTRING_INDEX": ("text", "text text count"), "TO_BASE64": ("text", "bytes"), "FORMAT": ("text", "numeric count"),
    "LTRIM": ("text", "text"), "REPLACE": ("text", "text text text"), "RTRIM": ("text", "text"), "TRIM": ("text", "text"),
    "ASCII": ("integer", "text"), "FIELD": ("integer", "any any any ..."), "FIND_IN_SET": ("integer", "text text"), "INSTR": ("integer", "text text"), "LOCATE": ("integer", "text text|text text count"),
    "ORD": ("integer", "text"), "POSITION": ("integer", None), "STRCMP": ("integer", "text text"),
    "REGEXP_INSTR": ("integer", "text pattern"), "REGEXP_REPLACE": ("text", "text pattern text"), "REGEXP_SUBSTR": ("text", "text pattern"),
    # numbers and bytes
    "CRC32": ("integer", "text"), "HEX": ("text", "any"), "UNHEX": ("bytes", "hexdigits"), "BIN": ("text", "integer"), "BIT_COUNT": ("integer", "numeric"), "CONV": ("text", "any count count"), "OCT": ("text", "integer"),
    "MD5": ("text", "text"), "SHA": ("text", "text"), "SHA1": ("text", "text"), "SHA2": ("text", "text bits"), "AES_DECRYPT": ("bytes", "bytes text"), "AES_ENCRYPT": ("bytes", "text text"),
    "UNCOMPRESS": ("bytes", None), "UNCOMPRESSED_LENGTH": ("integer", None), "COMPRESS": ("bytes", None),
    "INET6_ATON": ("bytes", "address"), "INET6_NTOA": ("text", "bytes"), "INET_ATON": ("integer", "address"), "INET_NTOA": ("text", "integer"), "IS_IPV4": ("integer", "address"),
    "IS_IPV4_COMPAT": ("integer", "bytes"), "IS_IPV4_MAPPED": ("integer", "bytes"), "IS_IPV6": ("integer", "address"),
    "CHARSET": ("text", "any"), "COERCIBILITY": ("integer", "any"), "COLLATION": ("text", "any"),
    "ABS": ("decimal", "numeric"), "EXP": ("double", "small"), "LN": ("double", "numeric"), "LOG": ("double", "numeric|numeric numeric"), "LOG10": ("double", "numeric"), "LOG2": ("double", "numeric"),
    "PI": ("double", ""), "POW": ("double", "small small"), "POWER": ("double", "small small"), "SIGN": ("integer", "numeric"), "SQRT": ("double", "numeric"),
    "ACOS": ("double", "small"), "ASIN": ("double", "small"), "ATAN": ("double", "numeric|numeric numeric"), "ATAN2": ("double", "numeric numeric"), "COS": ("double", "small"), "COT": ("double", "small"),
    "DEGREES": ("double", "numeric"), "RADIANS": ("double", "numeric"), "SIN": ("double", "small"), "TAN": ("double", "small"),
    "CEIL": ("integer", "numeric"), "CEILING": ("integer", "numeric"), "FLOOR": ("integer", "numeric"), "ROUND": ("decimal", "numeric|numeric count"), "TRUNCATE": ("decimal", "numeric count"),
    "GREATEST": ("same", "any any ..."), "LEAST": ("same", "any any ..."),
    # days and times
    "DATE": ("date", "moment"), "DAY": ("integer", "date"), "DAYNAME": ("text", "date"), "DAYOFMONTH": ("integer", "date"), "DAYOFWEEK": ("integer", "date"), "DAYOFYEAR": ("integer", "date"),
    "EXTRACT": ("integer", None), "FROM_DAYS": ("date", "integer"), "HOUR": ("integer", "time"), "LAST_DAY": ("date", "date"), "MICROSECOND": ("integer", "time"), "MINUTE": ("integer", "time"),
    "MONTH": ("integer", "date"), "MONTHNAME": ("text", "date"), "QUARTER": ("integer", "date"), "SECOND": ("integer", "time"), "SEC_TO_TIME": ("time", "numeric"), "TIME": ("time", "time"),
    "TIME_TO_SEC": ("decimal", "time"), "TO_DAYS": ("integer", "date"), "TO_SECONDS": ("integer", "moment"), "WEEKDAY": ("integer", "date"), "YEAR": ("integer", "date"),
    "WEEK": ("integer", "date|date mode"), "WEEKOFYEAR": ("integer", "date"), "YEARWEEK": ("integer", "date|date mode"), "ADDTIME": ("moment", "moment time"), "DATE_ADD": ("moment", None), "DATE_SUB": ("moment", None),
    "SUBTIME": ("moment", "moment time"), "DATEDIFF": ("integer", "date date"), "TIMEDIFF": ("time", "time time|moment moment"), "TIMESTAMPDIFF": ("integer", None), "GET_FORMAT": ("text", None),
    "MAKEDATE": ("date", "count count"), "MAKETIME": ("time", "count count small"), "PERIOD_ADD": ("integer", "period count"), "PERIOD_DIFF": ("integer", "period period"), "TIMESTAMP": ("moment", "moment|moment time"),
    "DATE_FORMAT": ("text", "moment format"), "TIME_FORMAT": ("text", "time format"), "STR_TO_DATE": ("moment", "moment format"), "CONVERT_TZ": ("moment", "moment zone zone"), "FROM_UNIXTIME": ("moment", "numeric|numeric format"),
    "UNIX_TIMESTAMP": ("decimal", "moment"),
    "CURDATE": ("date", ""), "CURRENT_DATE": ("date", ""), "UTC_DATE": ("date", ""), "CURTIME": ("time", "|fraction"), "CURRENT_TIME": ("time", "|fraction"), "UTC_TIME": ("time", "|fraction"),
    "NOW": ("moment", "|fraction"), "CURRENT_TIMESTAMP": ("moment", "|fraction"), "LOCALTIME": ("moment", "|fraction"), "LOCALTIMESTAMP": ("moment", "|fraction"), "UTC_TIMESTAMP": ("moment", "|fraction"),
    "DATABASE": ("text", ""), "SCHEMA": ("text", ""),
    # JSON
    "JSON_ARRAY_INSERT": ("json", "json path any"), "JSON_SEARCH": ("json", "json one text"),
    "JSON_ARRAY": ("json", "any any ..."), "JSON_ARRAY_APPEND": ("json", "json path any"), "JSON_CONTAINS": ("integer", "json json|json json path"), "JSON_CONTAINS_PATH": ("integer", "json one path"), "JSON_DEPTH": ("integer", "json"),
    "JSON_EXTRACT": ("json", "json path|json path path"), "JSON_INSERT": ("json", "json path any"), "JSON_KEYS": ("json", "json|json path"), "JSON_LENGTH": ("integer", "json|json path"), "JSON_MERGE_PATCH": ("json", "json json"),
    "JSON_MERGE_PRESERVE": ("json", "json json"), "JSON_OBJECT": ("json", "text any"), "JSON_OVERLAPS": ("integer", "json json"), "JSON_QUOTE": ("text", "text"), "JSON_REMOVE": ("json", "json path"), "JSON_REPLACE": ("json", "json path any"),
    "JSON_SET": ("json", "json path any"), "JSON_TYPE": ("text", "json"), "JSON_UNQUOTE": ("text", "json"), "JSON_VALID": ("integer", "json"),
}

# Functions of geometries: tests/sql/geometry.sql compares them with MariaDB, as far as they mean the same;
# tests/sql/mysql_functions.sql has the other names.
GEOMETRY = """
GEOMCOLLECTION GEOMETRYCOLLECTION LINESTRING MBRCONTAINS MBRCOVEREDBY MBRCOVERS MBRDISJOINT MBREQUALS MBRINTERSECTS MBROVERLAPS MBRTOUCHES MBRWITHIN
MULTILINESTRING MULTIPOINT MULTIPOLYGON POINT POLYGON ST_AREA ST_ASBINARY ST_ASGEOJSON ST_ASTEXT ST_ASWKB ST_ASWKT ST_CENTROID ST_CONTAINS ST_CROSSES
ST_DIMENSION ST_DISJOINT ST_DISTANCE ST_DISTANCE_SPHERE ST_ENDPOINT ST_ENVELOPE ST_EQUALS ST_EXTERIORRING ST_GEOHASH ST_GEOMCOLLFROMTEXT
ST_GEOMCOLLFROMTXT ST_GEOMCOLLFROMWKB ST_GEOMETRYCOLLECTIONFROMTEXT ST_GEOMETRYCOLLECTIONFROMWKB ST_GEOMETRYFROMTEXT ST_GEOMETRYFROMWKB ST_GEOMETRYN
ST_GEOMETRYTYPE ST_GEOMFROMGEOJSON ST_GEOMFROMTEXT ST_GEOMFROMWKB ST_INTERIORRINGN ST_INTERSECTS ST_ISCLOSED ST_ISEMPTY ST_ISVALID ST_LATFROMGEOHASH
ST_LATITUDE ST_LENGTH ST_LINEFROMTEXT ST_LINEFROMWKB ST_LINESTRINGFROMTEXT ST_LINESTRINGFROMWKB ST_LONGFROMGEOHASH ST_LONGITUDE ST_MLINEFROMTEXT
ST_MLINEFROMWKB ST_MPOINTFROMTEXT ST_MPOINTFROMWKB ST_MPOLYFROMTEXT ST_MPOLYFROMWKB ST_MULTILINESTRINGFROMTEXT ST_MULTILINESTRINGFROMWKB
ST_MULTIPOINTFROMTEXT ST_MULTIPOINTFROMWKB ST_MULTIPOLYGONFROMTEXT ST_MULTIPOLYGONFROMWKB ST_NUMGEOMETRIES ST_NUMINTERIORRING ST_NUMINTERIORRINGS
ST_NUMPOINTS ST_OVERLAPS ST_POINTFROMGEOHASH ST_POINTFROMTEXT ST_POINTFROMWKB ST_POINTN ST_POLYFROMTEXT ST_POLYFROMWKB ST_POLYGONFROMTEXT
ST_POLYGONFROMWKB ST_SRID ST_STARTPOINT ST_SWAPXY ST_TOUCHES ST_VALIDATE ST_WITHIN ST_X ST_Y
""".split()

# Functions of the registry that no random statement calls, each with the reason.
LEFT_OUT = {
    **dict.fromkeys(["RAND", "RANDOM_BYTES", "UUID", "UUID_SHORT"], "random values"),
    **dict.fromkeys(["ANY_VALUE", "BIN_TO_UUID", "IS_UUID", "UUID_TO_BIN", "FORMAT_BYTES", "FORMAT_PICO_TIME", "JSON_STORAGE_SIZE", "ICU_VERSION", "PS_CURRENT_THREAD_ID", "PS_THREAD_ID", "ROLES_GRAPHML", "STATEMENT_DIGEST", "STATEMENT_DIGEST_TEXT"], "MariaDB does not have them; mysql_functions.sql tests them"),
    **dict.fromkeys(["EXTRACTVALUE", "UPDATEXML"], "entities and malformed texts differ from MariaDB; cases.txt of the crate expression tests them"),
    **dict.fromkeys(["JSON_SCHEMA_VALID", "JSON_SCHEMA_VALIDATION_REPORT", "REGEXP_LIKE", "JSON_STORAGE_FREE", "VALIDATE_PASSWORD_STRENGTH"], "MariaDB does not have them; cases.txt of the crate expression tests them"),
    "JSON_PRETTY": "MariaDB indents otherwise; mysql_functions.sql tests it", "JSON_VALUE": "an error of MariaDB is NULL in MySQL; mysql_functions.sql tests it", "WEIGHT_STRING": "the bytes are those of this server; mysql_functions.sql tests it",
    **dict.fromkeys(["NAME_CONST", "LOAD_FILE", "LAST_INSERT_ID"], "golden cases and statements.py test them"),
    **dict.fromkeys(["CONNECTION_ID", "CURRENT_ROLE", "CURRENT_USER", "SESSION_USER", "SYSTEM_USER", "USER", "VERSION", "FOUND_ROWS", "ROW_COUNT"], "they tell about the session"),
    **dict.fromkeys(["GET_LOCK", "IS_FREE_LOCK", "IS_USED_LOCK", "RELEASE_ALL_LOCKS", "RELEASE_LOCK", "SLEEP"], "user_locks.sql tests them"),
    "BENCHMARK": "benchmark.sql tests it",
    **dict.fromkeys(GEOMETRY, "geometry.sql and mysql_functions.sql test them"),
    **dict.fromkeys(["DISTANCE", "FROM_VECTOR", "STRING_TO_VECTOR", "TO_VECTOR", "VECTOR_DIM", "VECTOR_DISTANCE", "VECTOR_TO_STRING"], "MariaDB 10.11 does not have them; vector.sql tests them"),
    "SYSDATE": "it reads the clock",
    **dict.fromkeys(["GTID_SUBSET", "GTID_SUBTRACT", "ST_FRECHETDISTANCE", "ST_HAUSDORFFDISTANCE", "ST_LINEINTERPOLATEPOINT", "ST_LINEINTERPOLATEPOINTS", "ST_MAKEENVELOPE", "ST_POINTATDISTANCE"], "golden cases test them; MariaDB 10.11 does not have them"),
    **dict.fromkeys(["ST_CONVEXHULL", "ST_ISSIMPLE", "ST_SIMPLIFY", "ST_TRANSFORM"], "spatial_shapes.sql tests them; MariaDB 10.11 has other rules or lacks them"),
    **dict.fromkeys(["MASTER_POS_WAIT", "SOURCE_POS_WAIT", "WAIT_FOR_EXECUTED_GTID_SET", "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS"], "golden cases test them; they wait for a replica"),
    "MYSQL_QUERY_ATTRIBUTE_STRING": "the clients test it",
    "JSON_MERGE": "another name of JSON_MERGE_PRESERVE",
}

CASTS = {
    "SIGNED": "integer", "UNSIGNED": "integer", "CHAR": "text", "CHAR(3)": "text", "BINARY": "bytes", "BINARY(4)": "bytes", "DATE": "date", "TIME": "time", "TIME(3)": "time", "DATETIME": "moment", "DATETIME(6)": "moment",
    "DECIMAL": "decimal", "DECIMAL(10,2)": "decimal", "DECIMAL(30,10)": "decimal", "DOUBLE": "double", "FLOAT": "double",
}
# Functions without operands that are days or times.
CLOCK = {name for name, (_, operands) in SIGNATURES.items() if operands in ("", "|fraction")} - {"PI", "DATABASE", "SCHEMA"}
COMPARISONS = ["=", "<", "<=", ">", ">=", "<>", "<=>"]
NUMERIC = ("integer", "decimal", "double", "bit", "year")
AGGREGATES = ["COUNT", "COUNT", "MIN", "MAX", "SUM", "AVG", "MIN", "MAX"] * 2 + ["BIT_AND", "BIT_OR", "BIT_XOR", "STD", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP", "GROUP_CONCAT"]
COLLATIONS = ["utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci"]


def named(column):
    return words(column.name, family=column.family)


class Expressions:
    """Draws expressions over the columns of a table."""

    def __init__(self, random, columns):
        self.random, self.columns = random, columns

    def draw(self, family="any", depth=1):
        random = self.random
        if family == "any":
            family = random.choice(list(POOLS))
        if random.random() < 0.04:
            family = random.choice(list(POOLS))
        if depth <= 0 or random.random() < 0.25:
            return self.leaf(family)
        for _ in range(6):
            name = random.choice(NAMES)
            if SIGNATURES[name][0] in (family, "same"):
                return self.call(name, depth, family)
        return self.leaf(family)

    def leaf(self, family):
        fitting = [c for c in self.columns if c.family == family]
        if fitting and self.random.random() < 0.6:
            return named(self.random.choice(fitting))
        readable = [column for column in self.columns if column.family != "geometry"]
        if readable and self.random.random() < 0.25:
            return named(self.random.choice(readable))
        return literal_of(self.random, family)

    def top(self, depth):
        """A function or operator of any result."""
        pick = self.random.random()
        if pick < 0.12:
            return self.operator(depth)
        if pick < 0.2:
            return self.comparison(depth)
        if pick < 0.28:
            target = self.random.choice(list(CASTS))
            return Form(f"CAST({{}} AS {target})", [self.draw("any", depth - 1)], "CAST " + target.split("(")[0])
        if pick < 0.30:
            return self.written(depth)
        if pick < 0.33:
            return Form("CASE WHEN {} THEN {} ELSE {} END", [self.comparison(0), self.draw("any", depth - 1), self.draw("any", depth - 1)], "CASE")
        name = self.random.choice(NAMES)
        return self.call(name, depth, self.random.choice(list(POOLS)))

    def written(self, depth):
        """A function or operator with a syntax of its own."""
        random = self.random
        text = self.draw("text", depth - 1)
        forms = [
            lambda: Form(f"TRIM({random.choice(['BOTH', 'LEADING', 'TRAILING'])} {{}} FROM {{}})", [self.draw("text", 0), text], "TRIM"),
            lambda: Form("SUBSTRING({} FROM {} FOR {})", [text, self.operand("count", 0), self.operand("count", 0)], "SUBSTRING"),
            lambda: Form(f"CONVERT({{}} USING {random.choice(['utf8mb4', 'latin1', 'ascii', 'binary'])})", [text], "CONVERT USING"),
            lambda: Form(f"({{}} COLLATE {random.choice(COLLATIONS)})", [text], "COLLATE"),
            lambda: Form("(BINARY {})", [text], "CAST BINARY"),
            lambda: Form("CASE {} WHEN {} THEN {} ELSE {} END", [self.draw("any", depth - 1), self.draw("any", 0), self.draw("any", 0), self.draw("any", 0)], "CASE"),
            lambda: Form(f"TIMESTAMPADD({random.choice(UNITS)}, {{}}, {{}})", [self.operand("count", 0), self.draw("moment", depth - 1)], "DATE_ADD"),
            lambda: Form(f"{random.choice(['ADDDATE', 'SUBDATE'])}({{}}, {{}})", [self.draw("date", depth - 1), self.operand("count", 0)], "DATE_ADD"),
            lambda: Form("CHAR({}, {} USING utf8mb4)", [self.draw("integer", 0), self.operand("count", 0)], "CHAR"),
            lambda: Form("(NOT {})", [self.draw("any", depth - 1)], "IS"),
        ]
        return random.choice(forms)()

    def operator(self, depth):
        random = self.random
        name = random.choice(["+", "-", "*", "/", "DIV", "%", "&", "|", "^", "<<", ">>", "neg", "~", "+ INTERVAL", "- INTERVAL"])
        family = random.choice(NUMERIC) if random.random() < 0.8 else "any"
        left = self.draw(family, depth - 1)
        if name == "neg":
            return Form("(- {})", [left], "neg")
        if name == "~":
            return Form("(~ {})", [left], "~")
        if name.endswith("INTERVAL"):
            return Form(f"({{}} {name[0]} INTERVAL {random.choice(INTERVALS)} {random.choice(UNITS + PAIRS)})", [self.draw(random.choice(["date", "time", "moment"]), depth - 1)], "INTERVAL")
        if name in ("<<", ">>"):
            return Form(f"({{}} {name} {{}})", [left, number(str(random.randint(0, 66)))], name)
        return Form(f"({{}} {name} {{}})", [left, self.draw(random.choice(NUMERIC) if random.random() < 0.9 else "any", depth - 1)], name)

    def comparison(self, depth):
        random = self.random
        family = random.choice(list(POOLS))
        other = family if random.random() < 0.75 else random.choice(list(POOLS))
        left, right = self.draw(family, depth - 1), self.draw(other, depth - 1)
        pick = random.random()
        if pick < 0.6:
            name = random.choice(COMPARISONS)
            return Form(f"({{}} {name} {{}})", [left, right], "compare")
        if pick < 0.7:
            return Form(f"({{}} {random.choice(['', '', 'NOT '])}BETWEEN {{}} AND {{}})", [left, right, self.draw(other, 0)], "BETWEEN")
        if pick < 0.82:
            if random.random() < 0.1:
                return Form(f"(({{}}, {{}}) {random.choice(COMPARISONS)} ({{}}, {{}}))", [left, self.draw(family, 0), right, self.draw(family, 0)], "compare")
            return Form(f"({{}} {random.choice(['', '', 'NOT '])}IN ({{}}, {{}}, {{}}))", [left, right, self.draw(other, 0), self.draw(other, 0)], "IN")
        if pick < 0.9:
            if random.random() < 0.15:
                return Form(random.choice(["({} RLIKE {})", "({} NOT REGEXP {})"]), [left, self.operand("pattern", 0)], "RLIKE")
            if random.random() < 0.1:
                return Form("({} SOUNDS LIKE {})", [left, right], "SOUNDEX")
            return Form(random.choice(["({} LIKE {})", "({} LIKE {})", "({} NOT LIKE {})", "({} LIKE {} ESCAPE '|')"]), [left, string(random.choice(["a%", "%", "_", "%b%", "1%", "2024%", "", "%0"]))], "LIKE")
        if pick < 0.95:
            return Form(random.choice(["({} IS NULL)", "({} IS TRUE)", "({} IS NOT FALSE)", "({} IS UNKNOWN)", "({} IS NOT NULL)", "(NOT {})"]), [left], "IS")
        return Form(random.choice(["({} AND {})", "({} OR {})", "({} XOR {})"]), [left, right], "logic")

    def call(self, name, depth, family):
        random = self.random
        operands = SIGNATURES[name][1]
        if operands is None:
            return self.special(name, depth)
        kinds = random.choice(operands.split("|")).split()
        if kinds and kinds[-1] == "...":
            kinds = kinds[:-1] + [kinds[-2]] * random.choice([0, 0, 1])
        if SIGNATURES[name][0] == "same" and random.random() < 0.7:
            kinds = [family if kind == "any" else kind for kind in kinds]
        form = Form(f"{name}({{*}})", [self.operand(kind, depth - 1) for kind in kinds], name)
        form.family = SIGNATURES[name][0] if name in CLOCK else None
        return form

    def special(self, name, depth):
        random = self.random
        if name == "POSITION":
            return Form("POSITION({} IN {})", [self.draw("text", depth - 1), self.draw("text", depth - 1)], name)
        if name == "EXTRACT":
            return Form(f"EXTRACT({random.choice(UNITS + PAIRS)} FROM {{}})", [self.draw(random.choice(["moment", "date", "time"]), depth - 1)], name)
        if name in ("DATE_ADD", "DATE_SUB"):
            pattern = f"{name}({{}}, INTERVAL {random.choice(INTERVALS)} {random.choice(UNITS + PAIRS)})"
            return Form(pattern, [self.draw(random.choice(["moment", "date", "time"]), depth - 1)], name)
        if name == "TIMESTAMPDIFF":
            return Form(f"TIMESTAMPDIFF({random.choice(UNITS)}, {{}}, {{}})", [self.draw("moment", depth - 1), self.draw("moment", depth - 1)], name)
        if name == "GET_FORMAT":
            return Form(f"GET_FORMAT({random.choice(['DATE', 'TIME', 'DATETIME'])}, {{}})", [string(random.choice(["EUR", "USA", "ISO", "JIS", "INTERNAL", "x"]))], name)
        operand = Form("COMPRESS({})", [self.draw("text", depth - 1)], "COMPRESS")
        if name == "COMPRESS":
            return Form("UNCOMPRESS({})", [operand], name)
        return Form(f"{name}({{}})", [operand if random.random() < 0.8 else self.draw("bytes", 0)], name)

    def operand(self, kind, depth):
        random = self.random
        if kind == "fraction":
            return words(random.choice("0123456"))
        if kind in POOLS or kind == "any":
            return self.draw(kind, depth)
        if random.random() < 0.05:
            return self.draw("any", depth)
        if kind == "numeric":
            return self.draw(random.choice(NUMERIC), depth)
        if kind == "small":
            return number(random.choice(["0", "1", "-1", "0.5", "2", "1.5e0", "10", "-0.25", "3"])) if random.random() < 0.8 else self.draw("double", depth)
        if kind == "count":
            return number(random.choice(["0", "1", "2", "3", "-1", "-2", "5", "10", "1.5", "100"]))
        texts = {
            "pattern": ["a", "^a", "b$", "[a-c]+", "x|y", "(a)(b)", ".", "\\\\d+", "A", "日", "[", "a{2}"], "hexdigits": ["", "41", "4", "ff00", "xyz", "c3A4"],
            "address": ["127.0.0.1", "1.2.3", "255.255.255.255", "::1", "fe80::1", "1.2.3.4.5", "256.1.1.1", "::ffff:1.2.3.4", "abc", "", "1.2.3.04"],
            "format": FORMATS, "zone": ["+00:00", "+02:00", "-05:30", "UTC", "Europe/Berlin", "SYSTEM", "+14:00", "x"], "one": ["one", "all", "ALL", "none"],
            "path": ["$", "$.a", "$[0]", "$[1]", "$.b[0]", "$.*", "$**.k", "$[last]", "$.a.c", "x", "$[1][1].k"],
        }
        if kind in texts:
            return string(random.choice(texts[kind]))
        numbers = {"mode": [str(n) for n in range(8)] + ["9", "-1"], "period": ["202401", "9912", "0", "199901", "202313", "7001"], "bits": ["224", "256", "384", "512", "0", "1"]}
        return number(random.choice(numbers[kind]))


NAMES = list(SIGNATURES)
