"""Random schemas and statements from a seed. Every statement comes with a set of keywords that describe what
its answer determines, see `outcome.difference`."""

INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "BIGINT": 64}
TEXTS = [
    "", "a", "A", "b", "B", "ä", "ß", "s", "aa", "ab", "aB", "abc", "a ", " a", "b  ", "0", "1", "12", "-3", "1e1", "2.5", "x%y", "x_y",
    "it's", "日本", "😀", "🎉", "é", "e", "zz", "Zz", "back\\slash", "007", "1abc", "abcabcab", "a\tb", "~", "_", "%",
]
BINARIES = ("BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB")
LONG = ("TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB")
SHARED = ["a", "A", "b", "ab", "abc", "0", "1", "12", "zz"]
BYTES = ["", "00", "61", "41", "6120", "ff", "fe00", "616263", "31", "c3a4", "80", "20", "0061"]


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


class Column:
    def __init__(self, name, kind, unsigned, width, nullable, default):
        self.name, self.kind, self.unsigned, self.width = name, kind, unsigned, width
        self.nullable, self.default = nullable, default

    @property
    def is_integer(self):
        return self.kind in INTEGERS

    @property
    def is_number(self):
        return self.is_integer or self.kind == "DOUBLE"

    @property
    def is_binary(self):
        return self.kind in BINARIES

    @property
    def is_text(self):
        return not self.is_number and not self.is_binary

    def definition(self):
        kind = f"{self.kind}({self.width})" if self.width else self.kind
        parts = [self.name, kind]
        if self.unsigned:
            parts.append("UNSIGNED")
        if not self.nullable:
            parts.append("NOT NULL")
        if self.default is not None:
            parts.append(f"DEFAULT {self.default}")
        return " ".join(parts)


class Generator:
    """One table and statements on it."""

    def __init__(self, random):
        self.random = random
        self.in_transaction = False
        # The next statements, with their keywords.
        self.queue = []
        # Number of statements with many rows still to come, which make scans take several batches.
        self.large = 4 if random.random() < 0.15 else 0
        self.index_number = 0
        self.indexes = []
        self.columns = [self.column(f"c{n}") for n in range(random.randint(2, 6))]
        self.primary = self.primary_key()
        for column in self.columns:
            if column.name in self.primary:
                column.nullable = False

    # The schema.

    def column(self, name):
        random = self.random
        kind = random.choice(
            ["INT", "INT", "BIGINT", "TINYINT", "SMALLINT", "MEDIUMINT", "VARCHAR", "VARCHAR", "CHAR", "TEXT", "VARBINARY", "BLOB", "DOUBLE",
             random.choice(["BINARY", "TINYTEXT", "MEDIUMTEXT", "LONGTEXT", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB"])]
        )
        unsigned = kind in INTEGERS and random.random() < 0.35
        width = {"VARCHAR": [3, 8, 20], "CHAR": [1, 4, 10], "VARBINARY": [2, 8], "BINARY": [1, 3]}.get(kind)
        column = Column(name, kind, unsigned, random.choice(width) if width else None, random.random() < 0.7, None)
        if kind not in LONG and random.random() < 0.3:
            column.default = self.small_value(column)
        return column

    def small_value(self, column):
        """A value that fits the column."""
        if column.is_integer:
            return str(self.random.randint(0, 12))
        if column.kind == "DOUBLE":
            return self.random.choice(["0", "1.5", "-2", "3e2"])
        if column.is_binary:
            return "x'61'" if self.random.random() < 0.5 else "'b'"
        return self.random.choice(["''", "'a'", "'b'"])

    def indexable(self):
        return [column for column in self.columns if column.kind not in LONG]

    def primary_key(self):
        choices = self.indexable()
        if not choices or self.random.random() < 0.15:
            return []
        self.random.shuffle(choices)
        count = min(len(choices), self.random.choice([1, 1, 1, 2, 3]))
        return [column.name for column in choices[:count]]

    def creates(self):
        """The definitions of all tables, as pairs (ours, theirs)."""
        return [self.create()]

    def wholes(self):
        """Queries for the content of all tables."""
        return ["SELECT * FROM t"]

    def create(self):
        """The definition of the table: ours and theirs."""
        parts = [column.definition() for column in self.columns]
        if self.primary:
            parts.append(f"PRIMARY KEY ({', '.join(self.primary)})")
        choices = self.indexable()
        for _ in range(self.random.choice([0, 1, 1, 2, 3])):
            if choices:
                parts.append(self.index_definition(choices))
        text = f"CREATE TABLE t ({', '.join(parts)}) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"
        if self.primary and self.random.random() < 0.3:
            key = self.random.sample(self.primary, self.random.randint(1, len(self.primary)))
            return f"{text} PARTITION BY KEY ({', '.join(key)}) PARTITIONS {self.random.randint(1, 5)}", text
        return text, text

    def index_definition(self, choices):
        names = [c.name for c in self.random.sample(choices, min(len(choices), self.random.choice([1, 1, 2, 3])))]
        self.index_number += 1
        name = f"i{self.index_number}"
        self.indexes.append(name)
        unique = "UNIQUE " if self.random.random() < 0.35 else ""
        return f"{unique}KEY {name} ({', '.join(names)})"

    # Values.

    def value(self, column, wrong=0.08):
        """A literal, usually one that fits the column."""
        random = self.random
        if random.random() < 0.12:
            return "NULL"
        if random.random() < wrong:
            return self.wrong_value(column)
        if column.is_integer:
            return str(self.integer(column))
        if column.kind == "DOUBLE":
            return random.choice(["0", "-0.0", "1.5", "2", "-2.25", "1e3", "3", "1e-3", "7", "0.1", "1e100", "123456789.125"])
        if column.is_binary:
            if random.random() < 0.5:
                return quoted(random.choice(SHARED))
            digits = random.choice(BYTES)
            return f"x'{digits}'"
        return quoted(random.choice(TEXTS if random.random() < 0.5 else SHARED))

    def integer(self, column):
        random = self.random
        bits = INTEGERS[column.kind]
        low, high = (0, 2**bits - 1) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if random.random() < 0.06:
            return random.choice([low, high, low + 1, high - 1])
        return random.randint(0 if column.unsigned else -3, 15)

    def wrong_value(self, column):
        random = self.random
        if column.is_number:
            return random.choice(
                ["'12'", "'abc'", "'1abc'", "''", "' 7 '", "300", "-1", "99999999999", "18446744073709551615", "18446744073709551616", "2.5",
                 "-2.5", "3.49", "1e30", "'2.5'", "'1e1'", "TRUE", "-9223372036854775809", "0x41", "1e400", "'-0'"]
            )
        return random.choice(["12", "1.50", "-7", "'aaaaaaaaaaaaaaaaaaaaaaaa'", "'a                        '", "x'ff'", "TRUE", "0x4142", "0.1e0"])

    # Statements.

    def statement(self):
        """A statement and its keywords."""
        if self.queue:
            return self.queue.pop(0)
        pick = self.random.random()
        if self.large > 0:
            self.large -= 1
            return self.many_rows()
        if pick < 0.30:
            return self.insert()
        if pick < 0.40:
            return self.update()
        if pick < 0.47:
            return self.delete()
        if pick < 0.52 + 0.05 * self.in_transaction:
            return self.transaction()
        if pick < 0.555:
            return self.definition()
        if pick < 0.58:
            return self.last_insert_id()
        return self.select()

    def insert(self):
        random = self.random
        columns = list(self.columns)
        if random.random() < 0.3:
            columns = [c for c in columns if random.random() < 0.8 or c.name in self.primary] or columns
        names = f" ({', '.join(c.name for c in columns)})" if len(columns) < len(self.columns) or random.random() < 0.5 else ""
        pick = random.random()
        verb = "INSERT INTO" if pick < 0.8 else "INSERT IGNORE INTO" if pick < 0.92 else "REPLACE INTO"
        words = set()
        if random.random() < 0.08:
            values = "SET " + ", ".join(f"{c.name} = {self.inserted(c)}" for c in columns)
        elif random.random() < 0.06:
            values = names + self.selected(columns)
            words.add("noerrors")
        else:
            count = random.choice([1, 1, 1, 2, 3, 5, 12])
            rows = ", ".join(f"({', '.join(self.inserted(c) for c in columns)})" for _ in range(count))
            values = f"{names} VALUES {rows}"
            if count > 1:
                words.add("noerrors")
        if verb == "INSERT INTO" and " FROM t AS q" in values and self.updatable(columns) and random.random() < 0.3:
            # Unqualified names are ambiguous between the existing and the selected row.
            updatable = self.updatable(columns)
            changed = random.sample(updatable, min(len(updatable), random.choice([1, 1, 2])))
            values += " ON DUPLICATE KEY UPDATE " + ", ".join(
                f"{c.name} = " + random.choice([f"q.{c.name}", f"VALUES({c.name})", f"COALESCE(t.{c.name}, q.{c.name})", self.value(c), c.name, f"q.{random.choice(self.columns).name}"])
                for c in changed
            )
            words |= {"noerrors", "nowarnings"}
        updatable = self.updatable(columns)
        if verb == "INSERT INTO" and " SELECT " not in values and updatable and random.random() < 0.12:
            values += " ON DUPLICATE KEY UPDATE " + ", ".join(
                self.when_duplicate(c) for c in random.sample(updatable, min(len(updatable), random.choice([1, 1, 2])))
            )
            words |= {"noerrors", "nowarnings"}
        if random.random() < 0.15:
            returning, more = self.returning()
            values += returning
            words |= more
            if " SELECT " not in values or self.primary:
                words.add("ordered")
        if random.random() < 0.05:
            self.queue.append(("SELECT ROW_COUNT()", {"computed"}))
        if "IGNORE" in verb:
            # For an invalid byte, MariaDB stores a question mark and MySQL the text before it. Doubles in
            # narrow strings are a known difference.
            values = values.replace("x'ff'", "'ff'").replace("0.1e0", "0.5")
        return f"{verb} t {values.strip()}", words

    def returning(self):
        """A RETURNING clause and its keywords."""
        pick = self.random.random()
        if pick < 0.3:
            return " RETURNING *", set()
        if pick < 0.6:
            items = [self.random.choice(self.columns).name for _ in range(self.random.randint(1, 3))]
            return f" RETURNING {', '.join(items)}", set()
        items = [self.projection() for _ in range(self.random.randint(1, 3))]
        # If RETURNING fails too, the servers may report different errors of a row first.
        return f" RETURNING {', '.join(items)}", {"computed", "noerrors"}

    def last_insert_id(self):
        """LAST_INSERT_ID(expression) in a statement on one row. Both servers have the same previous value."""
        random = self.random
        integers = [c for c in self.columns if c.is_integer]
        if not integers:
            return f"SELECT LAST_INSERT_ID({random.choice(['7', '-1', 'NULL', '2.5', '0'])})", {"computed"}
        column = random.choice(integers)
        told = ("SELECT LAST_INSERT_ID(), ROW_COUNT()", {"computed"})
        argument = random.choice([f"{column.name} + 1", column.name, "5", f"IFNULL({column.name}, 3)"])
        if self.primary and random.random() < 0.5:
            keys = [c for c in self.columns if c.name in self.primary]
            where = " AND ".join(f"{c.name} = {self.small_value(c)}" for c in keys)
            change = f"UPDATE t SET {column.name} = LAST_INSERT_ID({argument}) WHERE {where}"
            self.queue = [(change, {"noerrors"}), told]
        else:
            columns = self.columns
            given = random.random() < 0.5
            values = ", ".join(
                f"LAST_INSERT_ID({random.randint(1, 90)})" if given and c is column else self.scattered(c) for c in columns
            )
            insert = f"INSERT INTO t VALUES ({values})"
            if random.random() < 0.6:
                insert += f" ON DUPLICATE KEY UPDATE {column.name} = LAST_INSERT_ID({argument})"
            self.queue = [(insert, {"noerrors"}), told]
        return f"DO LAST_INSERT_ID({random.randint(0, 9)})", set()

    def selected(self, columns):
        """A few rows of the table itself, the same ones on both servers."""
        items = ", ".join(self.literal(c) if self.random.random() < 0.4 else c.name for c in columns)
        order = ", ".join(self.primary or [c.name for c in self.columns])
        if self.random.random() < 0.1:
            return f" SELECT {', '.join(self.literal(c) for c in columns)}"
        table = self.random.choice(["t", "t AS q"])
        return f" SELECT {items} FROM {table}{self.where(0.5)} ORDER BY {order} LIMIT {self.random.choice([1, 3, 6])}"

    def literal(self, column):
        value = self.inserted(column)
        return "NULL" if value == "DEFAULT" else value

    def updatable(self, columns):
        """Excludes nullable columns whose default is not NULL, because InnoDB counts a change from NULL to
        NULL for them."""
        return [column for column in columns if not (column.nullable and column.default is not None)]

    def when_duplicate(self, column):
        random = self.random
        other = random.choice(self.columns)
        choices = [f"VALUES({column.name})", self.value(column), column.name]
        choices.append("DEFAULT")
        if column.nullable or column.default is not None:
            choices.append(f"DEFAULT({column.name})")
        if column.is_number and other.is_number:
            choices += [f"{column.name} + 1", f"VALUES({column.name}) + {other.name}"]
        return f"{column.name} = {random.choice(choices)}"

    def many_rows(self):
        """Many rows with few duplicate keys."""
        rows = ", ".join(f"({', '.join(self.scattered(c) for c in self.columns)})" for _ in range(150))
        return f"INSERT INTO t VALUES {rows}", {"noerrors"}

    def scattered(self, column):
        random = self.random
        if column.nullable and random.random() < 0.05:
            return "NULL"
        if column.is_integer:
            bits = min(INTEGERS[column.kind], 20)
            return str(random.randint(0 if column.unsigned else -(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
        if column.kind == "DOUBLE":
            return str(random.randint(-4000, 4000) / 4)
        text = "".join(random.choice("abcABC019zZ é") for _ in range(random.randint(0, column.width or 30)))
        if column.is_binary:
            return quoted("".join(c for c in text if ord(c) < 128))
        if column.kind == "TEXT" and random.random() < 0.05:
            return f"REPEAT({quoted(text)}, {random.choice([50, 900, 3000])})"
        return quoted(text)

    def inserted(self, column):
        random = self.random
        if random.random() < 0.03:
            return "DEFAULT"
        if random.random() < 0.03:
            numbers = ["1 + 2", "-(5)", "10 % 4", "1 / 0", "7 DIV 2"]
            return random.choice(numbers + (["7 / 2", "'3' + 1"] if column.is_number else ["CONCAT('a', 'b')", "UPPER('a')"]))
        if not column.nullable and random.random() < 0.9:
            for _ in range(5):
                value = self.value(column, wrong=0.02)
                if value != "NULL":
                    return value
        return self.value(column, wrong=0.03)

    def update(self):
        random = self.random
        chosen = random.sample(self.columns, min(len(self.columns), random.choice([1, 1, 2])))
        parts = []
        for column in chosen:
            other = random.choice(self.columns)
            if column.is_number and other.is_number and random.random() < 0.5:
                parts.append(f"{column.name} = {other.name} {random.choice(['+ 1', '- 1', '* 2', '+ 100', 'DIV 2', '% 7'])}")
            elif column.is_text and other.is_text and random.random() < 0.3:
                parts.append(f"{column.name} = {random.choice(['UPPER', 'LOWER', 'REVERSE'])}({other.name})")
            elif random.random() < 0.06:
                parts.append(f"{column.name} = {random.choice(['DEFAULT', f'DEFAULT({other.name})'])}")
            elif random.random() < 0.12:
                parts.append(f"{column.name} = CASE WHEN {self.predicate(1)} THEN {self.value(column)} ELSE {column.name} END")
            elif random.random() < 0.06:
                parts.append(f"{column.name} = IF({self.predicate(1)}, {self.value(column)}, {self.value(column)})")
            else:
                parts.append(f"{column.name} = {self.value(column)}")
        where = self.where(0.95) + self.first_rows()
        changes = ", ".join(parts)
        ignore = "IGNORE " if random.random() < 0.12 else ""
        if ignore:
            changes = changes.replace("x'ff'", "'ff'").replace("0.1e0", "0.5")
        return f"UPDATE {ignore}t SET {changes}{where}", {"noerrors", "nowarnings", "unstable"}

    def delete(self):
        first, words, returning = self.first_rows(), set(), ""
        if self.random.random() < 0.25:
            returning, words = self.returning()
            if first:
                words.add("ordered")
        return f"DELETE FROM t{self.where(0.97)}{first}{returning}", words

    def first_rows(self):
        """Nothing, or a total order and a limit."""
        if not self.primary or self.random.random() >= 0.12:
            return ""
        columns = list(self.primary)
        if self.random.random() < 0.4:
            first = self.random.choice(self.columns).name
            columns = [first] + [name for name in columns if name != first]
        keys = ", ".join(f"{name}{self.random.choice(['', ' DESC'])}" for name in columns)
        limit = f" LIMIT {self.random.randint(0, 4)}" if self.random.random() < 0.8 else ""
        return f" ORDER BY {keys}{limit}"

    def transaction(self):
        if self.in_transaction and self.random.random() < 0.4:
            kinds = ["SAVEPOINT {}", "SAVEPOINT {}", "ROLLBACK TO {}", "ROLLBACK TO SAVEPOINT {}", "RELEASE SAVEPOINT {}"]
            return self.random.choice(kinds).format(self.random.choice(["a", "b", "A"])), set()
        if self.in_transaction:
            self.in_transaction = False
            return self.random.choice(["COMMIT", "ROLLBACK", "ROLLBACK"]), set()
        self.in_transaction = True
        return self.random.choice(["BEGIN", "START TRANSACTION"]), set()

    def definition(self):
        random = self.random
        self.in_transaction = False
        pick = random.random()
        if pick < 0.1:
            return "TRUNCATE TABLE t", set()
        if pick < 0.45 and self.indexes:
            name = random.choice(self.indexes)
            self.indexes.remove(name)
            return f"DROP INDEX {name} ON t", set()
        choices = self.indexable()
        if not choices:
            return "SELECT COUNT(*) FROM t", set()
        definition = self.index_definition(choices)
        kind, rest = ("UNIQUE INDEX", definition[len("UNIQUE KEY "):]) if definition.startswith("UNIQUE") else ("INDEX", definition[4:])
        name, columns = rest.split(" ", 1)
        return f"CREATE {kind} {name} ON t {columns}", set()

    # Queries.

    def select(self):
        random = self.random
        pick = random.random()
        lock = random.choice([" FOR UPDATE", " LOCK IN SHARE MODE"]) if random.random() < 0.07 else ""
        if pick < 0.2:
            return self.aggregate()
        if pick < 0.3:
            return self.distinct()
        if pick < 0.5:
            items = ", ".join(self.projection() for _ in range(random.randint(1, 3)))
            return f"SELECT {items} FROM t{self.where(0.7)}", {"computed"}
        return self.plain(lock)

    def plain(self, lock):
        random = self.random
        names = "*" if random.random() < 0.5 else ", ".join(
            c.name for c in random.sample(self.columns, random.randint(1, len(self.columns)))
        )
        where = self.where(0.9)
        if random.random() < 0.5:
            return f"SELECT {names} FROM t{where}{lock}", set()
        order = random.sample(self.columns, random.randint(1, len(self.columns)))
        total = bool(self.primary) and random.random() < 0.8
        keys = [f"{c.name}{random.choice(['', '', ' DESC', ' ASC'])}" for c in order]
        if total:
            keys += [f"{name}{random.choice(['', ' DESC'])}" for name in self.primary if name not in [c.name for c in order]]
            limit = self.limit()
            return f"SELECT {names} FROM t{where} ORDER BY {', '.join(keys)}{limit}{lock}", {"ordered"}
        if random.random() < 0.3:
            return f"SELECT {names} FROM t{where} ORDER BY {', '.join(keys)}{self.limit()}{lock}", {"count"}
        selected = ", ".join(c.name for c in order)
        return f"SELECT {selected} FROM t{where} ORDER BY {', '.join(keys)}{lock}", {"ordered", "fold"}

    def limit(self):
        pick = self.random.random()
        if pick < 0.5:
            return ""
        if pick < 0.75:
            return f" LIMIT {self.random.randint(0, 6)}"
        if pick < 0.9:
            return f" LIMIT {self.random.randint(0, 6)} OFFSET {self.random.randint(0, 5)}"
        return f" LIMIT {self.random.randint(0, 5)}, {self.random.choice([1, 3, 18446744073709551615])}"

    def distinct(self):
        names = [c.name for c in self.random.sample(self.columns, min(len(self.columns), self.random.choice([1, 1, 2])))]
        text = f"SELECT DISTINCT {', '.join(names)} FROM t{self.where(0.5)}"
        if self.random.random() < 0.4:
            keys = [f"{name}{self.random.choice(['', ' DESC'])}" for name in names]
            return f"{text} ORDER BY {', '.join(keys)}{self.limit()}", {"ordered", "fold"}
        return text, {"fold"}

    def aggregate(self):
        random = self.random
        items = []
        for _ in range(random.randint(1, 3)):
            column = random.choice(self.columns)
            function = random.choice(["COUNT", "MIN", "MAX"] + (["SUM", "AVG", "SUM"] if column.is_number else []))
            argument = column.name if random.random() < 0.8 else self.numeric(column)
            if argument != column.name and not column.is_number:
                function = random.choice(["COUNT", "MIN", "MAX", "SUM"])
            if function in ("COUNT", "SUM") and argument == column.name and random.random() < 0.2:
                argument = "DISTINCT " + argument
            items.append(random.choice(["COUNT(*)", f"{function}({argument})"] if random.random() < 0.3 else [f"{function}({argument})"]))
        return f"SELECT {', '.join(items)} FROM t{self.where(0.6)}", {"computed", "fold"}

    def numeric(self, column):
        random = self.random
        if column.is_number:
            return random.choice([f"{column.name} + 1", f"{column.name} * 2", f"-{column.name}", f"{column.name} % 3", f"ABS({column.name})", f"{column.name} / 2"])
        return random.choice([f"LENGTH({column.name})", f"CHAR_LENGTH({column.name})"])

    def projection(self):
        random = self.random
        column, other = random.choice(self.columns), random.choice(self.columns)
        number = random.choice(["1", "2", "0", "3.5", "-1", "1e0"])
        if column.is_integer and random.random() < 0.12:
            return random.choice([f"{column.name} & 7", f"{column.name} | 1", f"{column.name} << 2", f"~{column.name}"])
        if column.is_number:
            return random.choice([
                f"{column.name} + {number}", f"{column.name} * {number}", f"{column.name} - {number}", f"{column.name} / {number}",
                f"{column.name} DIV {random.choice(['2', '3', '0'])}", f"{column.name} % {random.choice(['2', '5', '0'])}", f"-{column.name}",
                f"ABS({column.name})", f"ROUND({column.name}, {random.choice([0, 1, -1])})", f"IFNULL({column.name}, {number})",
                f"COALESCE({column.name}, {other.name})", f"CASE WHEN {self.predicate(1)} THEN {column.name} ELSE {number} END",
                f"IF({self.predicate(1)}, {column.name}, {number})", f"NULLIF({column.name}, {number})", f"CAST({column.name} AS CHAR)",
                f"{column.name} IS NULL", f"NOT {column.name}",
                f"GREATEST({column.name}, {number})", f"LEAST({column.name}, {number})", f"SIGN({column.name})", f"{self.predicate(1)}",
                f"CONCAT({column.name}, 'x')", f"HEX({column.name})", f"FLOOR({column.name} / 2)", f"CAST({column.name} AS SIGNED)",
                f"TRUNCATE({column.name}, 1)", f"CEIL({column.name})", f"MOD({column.name}, 3)",
            ])
        return random.choice([
            f"UPPER({column.name})", f"LOWER({column.name})", f"LENGTH({column.name})", f"CHAR_LENGTH({column.name})", f"CONCAT({column.name}, {quoted(random.choice(SHARED))})",
            f"CONCAT({column.name}, {other.name})", f"SUBSTRING({column.name}, {random.randint(-2, 3)}, {random.randint(0, 3)})", f"LEFT({column.name}, 2)",
            f"RIGHT({column.name}, 1)", f"TRIM({column.name})", f"REPLACE({column.name}, 'a', 'xy')", f"REVERSE({column.name})", f"HEX({column.name})",
            f"IFNULL({column.name}, 'none')", f"COALESCE({column.name}, {other.name})", f"NULLIF({column.name}, 'a')", f"{column.name} IS NOT NULL",
            f"{self.predicate(1)}", f"LPAD({column.name}, 4, '*')", f"INSTR({column.name}, 'b')", f"LOCATE('a', {column.name})", f"{column.name} + 0",
            f"IF({self.predicate(1)}, {column.name}, 'no')", f"CASE {column.name} WHEN 'a' THEN 'first' WHEN 'b' THEN 'second' END", f"REPEAT({column.name}, 2)",
            f"CONCAT_WS('-', {column.name}, {other.name})", f"ASCII({column.name})", f"GREATEST({column.name}, 'b')", f"CAST({column.name} AS SIGNED)",
        ])

    def where(self, chance):
        if self.random.random() >= chance:
            return ""
        return f" WHERE {self.condition(self.random.choice([0, 0, 0, 1, 1, 2]))}"

    def condition(self, depth):
        random = self.random
        if depth == 0:
            return self.predicate(0)
        pick = random.random()
        if pick < 0.45:
            return f"{self.condition(depth - 1)} AND {self.condition(depth - 1)}"
        if pick < 0.8:
            return f"({self.condition(depth - 1)} OR {self.condition(depth - 1)})"
        if pick < 0.9:
            return f"NOT ({self.condition(depth - 1)})"
        return f"({self.condition(depth - 1)}) XOR ({self.condition(depth - 1)})"

    def predicate(self, depth):
        random = self.random
        keys = [c for c in self.columns if c.name in self.primary]
        column = random.choice(keys) if keys and random.random() < 0.4 else random.choice(self.columns)
        name = column.name
        pick = random.random()
        if random.random() < 0.25:
            return self.unusual(column, depth)
        if pick < 0.3:
            return f"{name} = {self.compared(column)}"
        if pick < 0.5:
            return f"{name} {random.choice(['<', '<=', '>', '>=', '<>', '!=', '<=>'])} {self.compared(column)}"
        if pick < 0.63:
            values = ", ".join(self.compared(column) for _ in range(random.choice([1, 2, 3, 6])))
            return f"{name} {random.choice(['IN', 'IN', 'NOT IN'])} ({values})"
        if pick < 0.73:
            return f"{name} {random.choice(['', 'NOT '])}BETWEEN {self.compared(column)} AND {self.compared(column)}"
        if pick < 0.8:
            return f"{name} IS {random.choice(['', 'NOT '])}NULL"
        if pick < 0.87:
            if column.is_number:
                return f"{name} {random.choice(['+ 1', '* 2', '% 3', '- 1'])} {random.choice(['=', '<', '>'])} {random.randint(0, 9)}"
            pattern = random.choice(["a%", "%a", "_", "%", "A_%", "a\\_%", "x\\%y", "%b%", "", "ab%", "日%", "%\\\\%", "ß%", "a"])
            return f"{name} {random.choice(['', 'NOT '])}LIKE '{pattern}'"
        if pick < 0.95:
            other = random.choice([c for c in self.columns if c.is_number == column.is_number and c.is_binary == column.is_binary])
            return f"{name} {random.choice(['=', '<', '>=', '<>'])} {other.name}"
        if column.is_number:
            return f"{name} BETWEEN {random.randint(-2, 5)} AND {random.randint(3, 15)}"
        return f"LENGTH({name}) {random.choice(['=', '>', '<'])} {random.randint(0, 4)}"

    def unusual(self, column, depth):
        """Conditions that no index supports, or not obviously."""
        random, name = self.random, column.name
        other = random.choice([c for c in self.columns if c.is_number == column.is_number and c.is_binary == column.is_binary])
        third = random.choice(self.columns)
        operator = random.choice(["=", "<", "<=", ">", ">=", "<>", "<=>"])
        choices = [
            f"({name}, {third.name}) {operator} ({self.value(column, 0)}, {self.value(third, 0)})",
            f"({name}, {third.name}) {random.choice(['IN', 'NOT IN'])} (({self.value(column, 0)}, {self.value(third, 0)}), ({self.value(column, 0)}, {self.value(third, 0)}))",
            f"{self.value(column, 0)} BETWEEN {name} AND {other.name}",
            f"{name} {random.choice(['', 'NOT '])}BETWEEN {other.name} AND {self.value(column, 0)}",
            f"{name} {random.choice(['IN', 'NOT IN'])} ({other.name}, {self.value(column, 0)}, {self.value(column, 0)})",
            f"{self.value(column, 0)} {operator} {name}",
            f"{name} <=> {random.choice(['NULL', other.name])}",
            f"COALESCE({name}, {self.value(column, 0)}) {operator} {self.value(column, 0)}",
            f"NULLIF({name}, {self.value(column, 0)}) {operator} {other.name}",
            f"CASE {name} WHEN {self.value(column, 0)} THEN 1 WHEN {other.name} THEN 0 END",
            f"CASE WHEN {name} {operator} {self.value(column, 0)} THEN {third.name} IS NULL ELSE {self.truth()} END",
            f"IF({name} IS NULL, {self.truth()}, {name} {operator} {self.value(column, 0)})",
            f"({name} {operator} {self.value(column, 0)}) IS {random.choice(['', 'NOT '])}{random.choice(['TRUE', 'FALSE', 'UNKNOWN'])}",
            f"({name} {operator} {self.value(column, 0)}) = ({third.name} IS NULL)",
            f"NOT {name} {operator} {self.value(column, 0)}",
            f"{name} = {self.value(column, 0)} OR {name} = {self.value(column, 0)} OR {name} > {self.value(column, 0)}",
            f"({name} = {self.value(column, 0)} AND {third.name} = {self.value(third, 0)} OR {name} = {self.value(column, 0)} AND {third.name} = {self.value(third, 0)})",
            f"{name} >= {self.value(column, 0)} AND {name} < {self.value(column, 0)}",
            self.truth(),
        ]
        if column.is_number:
            big = random.choice(["9223372036854775807", "-9223372036854775808", "18446744073709551615", "0.5", "-0.5", "1e18", "4294967296", "99999999999999999999.5"])
            choices += [
                f"{name} {operator} {big}", f"{name} / {random.choice(['2', '3', '0.5', '4'])} {operator} {random.choice(['1', '0.5', '-1.5', '2e0'])}",
                f"{name} DIV {random.choice(['2', '-3'])} {operator} {random.randint(-2, 5)}", f"{name} % {random.choice(['2', '-3', '5'])} {operator} {random.choice(['0', '1', '-1', '0.5'])}",
                f"-{name} {operator} {random.randint(-9, 3)}", f"{name} {random.choice(['+', '-', '*'])} {other.name} {operator} {random.randint(-5, 30)}",
                f"ABS({name}) {operator} {random.randint(0, 9)}", f"SIGN({name}) {operator} {random.randint(-1, 1)}", f"{name}", f"NOT {name}",
                f"CAST({name} AS {random.choice(['SIGNED', 'CHAR', 'DECIMAL(10, 2)', 'UNSIGNED' if column.is_integer else 'DOUBLE'])}) {operator} {random.randint(0, 9)}",
                f"GREATEST({name}, {random.randint(0, 5)}) {operator} {other.name}", f"CONCAT({name}, '') {operator} '{random.randint(0, 12)}'",
                f"{name} BETWEEN {random.choice(['-1', '0', '0.5', '2.5e0'])} AND {random.choice(['3', '4.5', '1e1', big])}",
                f"{name} IN ({random.randint(0, 9)}, {random.choice(['2.5', '3e0', big])}, NULL)",
            ]
        else:
            pattern = random.choice(["a!%%", "%!_%", "a|_", "%b", "_!", "!%", "x!%y"])
            choices += [
                f"{name} {random.choice(['', 'NOT '])}LIKE '{pattern}' ESCAPE '{random.choice(['!', '|', 'x'])}'", f"{name} LIKE {other.name}",
                f"UPPER({name}) {operator} {self.value(column, 0)}", f"CONCAT({name}, {other.name}) {operator} {self.value(column, 0)}",
                f"LEFT({name}, 1) {operator} {self.value(column, 0)}", f"HEX({name}) {operator} '{random.choice(BYTES)}'", f"LENGTH({name}) {operator} LENGTH({other.name})",
                f"CHAR_LENGTH({name}) {operator} {random.randint(0, 4)}", f"TRIM({name}) {operator} {self.value(column, 0)}", f"BINARY {name} {operator} {self.value(column, 0)}",
            ]
            if column.is_text:
                choices += [f"{name} COLLATE utf8mb4_bin {operator} {self.value(column, 0)}", f"{name} COLLATE utf8mb4_bin IN ({self.value(column, 0)}, {self.value(column, 0)})"]
        return f"({random.choice(choices)})"

    def truth(self):
        return self.random.choice(["1 = 1", "1 > 2", "NOT NULL"])

    def compared(self, column):
        """A literal to compare a column with. Strings that are not numbers make UPDATE and DELETE fail, so
        they are rare."""
        if not column.is_binary and self.random.random() < 0.06:
            return self.random.choice(["0", "1", "2.5", "-1", "1.0", "'1'", "'12'", "TRUE", "1e0", "18446744073709551615", "-9223372036854775808", "'a'", "0x61"])
        return self.value(column, wrong=0.02)
