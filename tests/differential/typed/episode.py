"""An episode: a session's modes, a table with columns of any types, and statements on it."""

from columns import Column, assignment, draw_column, draw_type, literal_of
from functions import AGGREGATES, Expressions, named
from tree import Form, Many, Statement, number, words

STRICT = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
MODES = [
    STRICT, STRICT, STRICT, "NO_ENGINE_SUBSTITUTION", "NO_ENGINE_SUBSTITUTION", "STRICT_ALL_TABLES", "STRICT_TRANS_TABLES,ALLOW_INVALID_DATES", "NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO",
    STRICT + ",NO_UNSIGNED_SUBTRACTION", STRICT + ",PAD_CHAR_TO_FULL_LENGTH", STRICT + ",PIPES_AS_CONCAT", STRICT + ",HIGH_NOT_PRECEDENCE", STRICT + ",NO_BACKSLASH_ESCAPES", STRICT + ",ANSI_QUOTES", STRICT + ",REAL_AS_FLOAT",
]
ZONES = ["+00:00", "+00:00", "+00:00", "+02:00", "-05:30"]


def plain(text, **more):
    return Statement(words(text), **more)


class Episode:
    """Draws the statements of one episode: `setup` first, then any number from `next`."""

    def __init__(self, random):
        self.random = random
        self.mode = random.choice(MODES)
        self.columns = [draw_column(random, f"c{n}") for n in range(1, random.randint(2, 8))]
        self.expressions = Expressions(random, self.columns)
        self.constants = Expressions(random, [])
        self.sources = {}
        self.compute()
        self.rows = 0
        self.writes = random.randint(4, 14)
        self.due = []

    def compute(self):
        """Some columns get expressions as defaults, some are generated, some tables have a CHECK."""
        random = self.random
        for column in self.columns:
            if "DEFAULT" not in column.options and column.family != "geometry" and random.random() < 0.06:
                column.source = self.constants.draw(column.family, 1)
        if random.random() < 0.2:
            readable = [column for column in self.columns if column.family != "geometry"]
            source = named(random.choice(readable)) if readable and random.random() < 0.3 else self.expressions.top(1)
            kind, family = draw_type(random, computed=True)
            self.columns.append(Column(f"c{len(self.columns) + 1}", kind, family, source=source, generated=random.choice(["VIRTUAL", "STORED"])))
        self.sources = {column.name: column.source for column in self.columns if column.source is not None}
        if random.random() < 0.1:
            self.sources["CHECK"] = self.constraint()

    def constraint(self):
        """The condition of a CHECK: its column and a literal are of one family, because the servers compare others
        differently."""
        random = self.random
        column = random.choice(self.columns)
        if column.family not in ("integer", "decimal", "text", "bytes"):
            return Form("({} IS NOT NULL)", [named(column)], "IS")
        return Form(f"({{}} {random.choice(['<', '<=', '>', '>=', '<>'])} {{}})", [named(column), literal_of(random, column.family, odd=0)], "compare")

    def key(self, column):
        """An index of a column."""
        random = self.random
        if column.family in ("json", "geometry"):
            return None
        part = column.name
        if "TEXT" in column.kind or "BLOB" in column.kind or "LONG" in column.kind:
            if random.random() < 0.5:
                return None
            part += f"({random.choice([1, 3, 10])})"
        return words(f"{random.choice(['KEY', 'KEY', 'KEY', 'UNIQUE KEY'])} ({part}{random.choice(['', '', ' DESC'])})")

    def setup(self):
        parts = [words("id INT NOT NULL PRIMARY KEY", fixed=True)] + [column.definition() for column in self.columns]
        for column in self.columns:
            key = self.key(column) if self.random.random() < 0.25 else None
            parts += [key] if key is not None else []
        if "CHECK" in self.sources:
            parts.append(Form("CHECK ({})", [self.sources["CHECK"]]))
        # MariaDB cuts fractions of seconds, unless it is told to round them as MySQL does.
        yield Statement(words(f"SET SESSION sql_mode = '{self.mode}'"), theirs=f"SET SESSION sql_mode = '{self.mode},TIME_ROUND_FRACTIONAL'")
        yield plain(f"SET SESSION time_zone = '{self.random.choice(ZONES)}'")
        yield plain("SET SESSION timestamp = 1700000000.25")
        yield plain("SET SESSION group_concat_max_len = 1024")
        yield Statement(Form("CREATE TABLE t ({*})", [Many(parts, least=2)], whole=True), features=["create"])

    def next(self):
        kinds = {column.name: column.kind for column in self.columns}
        statement = self.due.pop() if self.due else self.draw()
        statement.kinds = statement.kinds or kinds
        statement.sources = dict(self.sources)
        if "PAD_CHAR" in self.mode:
            statement.features |= {"padded"}
        return statement

    def draw(self):
        random = self.random
        if self.writes > 0 or random.random() < 0.12:
            self.writes -= 1
            return self.prepared(self.write())
        pick = random.random()
        if pick < 0.05:
            return plain("SELECT * FROM t ORDER BY id", prepared=random.random() < 0.5, check=["columns"])
        if pick < 0.50:
            items = Many([self.expressions.top(random.choice([1, 1, 1, 2])) for _ in range(random.choice([1, 1, 2]))])
            return self.prepared(Statement(Form("SELECT {} FROM t ORDER BY id", [items], whole=True), features=["rows"]))
        if pick < 0.72:
            return self.prepared(Statement(Form("SELECT {}", [Many([self.constants.top(random.choice([1, 1, 2]))])], whole=True)))
        if pick < 0.86:
            return self.prepared(Statement(Form("SELECT id FROM t WHERE {} ORDER BY id", [self.expressions.comparison(1)], whole=True), features=["where"]))
        if pick < 0.92:
            return self.aggregate()
        if pick < 0.95:
            return self.ordered()
        return self.change()

    def prepared(self, statement):
        """Sends some statements prepared, with some of their literals as parameters."""
        if self.random.random() < 0.4:
            statement.prepared = True
            open_nodes = [statement.root]
            while open_nodes:
                node = open_nodes.pop()
                if hasattr(node, "sent"):
                    node.sent = self.random.random() < 0.6
                open_nodes += node.children()
        return statement

    def value(self, column):
        if self.random.random() < 0.1:
            return self.constants.top(1)
        return literal_of(self.random, column.family)

    def changed(self, column):
        """The value that an UPDATE gives to a column."""
        return literal_of(self.random, column.family) if column.family == "geometry" else self.expressions.draw(column.family, 1)

    def write(self):
        random = self.random
        pick = random.random()
        stored = [column for column in self.columns if column.generated is None]
        if self.rows > 0 and pick < 0.15:
            column = random.choice(stored)
            key = number(str(random.randint(1, self.rows)))
            return Statement(Form(f"UPDATE t SET {column.name} = {{}} WHERE id = {{}}", [self.changed(column), key], whole=True), features=["write"])
        if self.rows > 0 and pick < 0.22 and len(stored) > 1:
            target, source = random.sample(stored, 2)
            ignore = random.choice(["", "IGNORE "])
            return Statement(words(f"UPDATE {ignore}t SET {target.name} = {source.name} WHERE id = {random.randint(1, self.rows)}"), features=["write"])
        if self.rows > 0 and pick < 0.25:
            return Statement(Form("DELETE FROM t WHERE id = {}", [number(str(random.randint(1, self.rows)))], whole=True), features=["write"])
        if self.rows > 0 and pick < 0.29:
            column, changed = random.choice(stored), random.choice(stored)
            sets = [words(f"id = {random.randint(1, self.rows)}", fixed=True), assignment(column, self.value(column))]
            pattern = f"INSERT INTO t SET {{}} ON DUPLICATE KEY UPDATE {changed.name} = {{}}"
            return Statement(Form(pattern, [Many(sets, least=2), self.changed(changed)], whole=True), features=["write", "several", "twice"])
        if self.rows > 0 and pick < 0.33:
            column = random.choice(stored)
            sets = [words(f"id = {random.randint(1, self.rows)}", fixed=True), assignment(column, self.value(column))]
            return Statement(Form("REPLACE INTO t SET {}", [Many(sets, least=2)], whole=True), features=["write"])
        self.rows += 1
        ignore = "IGNORE " if random.random() < 0.15 else ""
        chosen = [column for column in stored if random.random() < 0.85]
        if random.random() < 0.6:
            chosen = [random.choice(stored)]
        if random.random() < 0.15:
            rows = []
            for _ in range(random.randint(2, 3)):
                values = [number(str(self.rows))] + [self.value(column) for column in chosen]
                rows.append(Form("({*})", values, whole=True))
                self.rows += 1
            names = ", ".join(["id"] + [column.name for column in chosen])
            return Statement(Form(f"INSERT {ignore}INTO t ({names}) VALUES {{}}", [Many(rows)], whole=True), features=["write", "several"])
        sets = [words(f"id = {self.rows}", fixed=True)] + [assignment(column, self.value(column)) for column in chosen]
        return Statement(Form(f"INSERT {ignore}INTO t SET {{}}", [Many(sets)], whole=True), features=["write"])

    def aggregate(self):
        items = []
        for _ in range(self.random.randint(1, 3)):
            name = self.random.choice(AGGREGATES)
            readable = [column for column in self.columns if column.family != "geometry" or name == "COUNT"]
            operand = named(self.random.choice(readable)) if readable and self.random.random() < 0.7 else self.expressions.top(1)
            if name == "GROUP_CONCAT":
                items.append(Form("GROUP_CONCAT({} ORDER BY id)", [operand], name, whole=True))
                continue
            distinct = "DISTINCT " if self.random.random() < 0.15 and name in ("COUNT", "SUM", "AVG") else ""
            items.append(Form(f"{name}({distinct}{{}})", [operand], name, whole=True))
        if self.random.random() < 0.2:
            key = self.random.choice([column for column in self.columns if column.family not in ("json", "geometry", "text", "choice")] or [None])
            if key is not None:
                return Statement(Form(f"SELECT {{}} FROM t GROUP BY {key.name} ORDER BY {key.name}", [Many(items)], whole=True), features=["aggregate"])
        return Statement(Form("SELECT {} FROM t", [Many(items)], whole=True), features=["aggregate"])

    def ordered(self):
        # JSON is text in MariaDB, with the order of text.
        others = [column for column in self.columns if column.family not in ("json", "geometry")]
        if not others:
            return plain("SELECT COUNT(*) FROM t")
        column = self.random.choice(others)
        if self.random.random() < 0.5:
            return plain(f"SELECT DISTINCT {column.name} FROM t ORDER BY {column.name}", check=["fold"])
        return plain(f"SELECT id FROM t ORDER BY {column.name}{self.random.choice(['', ' DESC'])}, id")

    def change(self):
        """A column gets another type."""
        # MySQL and MariaDB copy a CHAR column with its padding in this mode.
        # A document becomes its text, which MariaDB stores as it was written.
        columns = [column for column in self.columns if not (column.kind.startswith(("CHAR", "NCHAR")) and "PAD_CHAR" in self.mode) and column.family not in ("json", "geometry") and column.generated is None]
        if not columns:
            return plain("SELECT COUNT(*) FROM t")
        column = self.random.choice(columns)
        kind, family = draw_type(self.random, computed=True)
        if self.random.random() < 0.3:
            changed = draw_column(self.random, column.name, computed=True)
        else:
            changed = Column(column.name, kind, family, " NULL")
        self.before = list(self.columns), dict(self.sources)
        self.sources.pop(column.name, None)
        self.columns[self.columns.index(column)] = changed
        kinds = {column.name: column.kind}
        if changed.family == "choice" and column.family != "choice":
            # MariaDB chooses other members, so the rows differ from now on.
            self.due = [plain("DELETE FROM t", features=["write"])]
            self.writes += 3
        return Statement(words(f"ALTER TABLE t MODIFY {changed.definition().text}", family=column.family), features=["alter", "write"], kinds=kinds)

    def refuse_change(self):
        """The last ALTER TABLE has failed."""
        self.columns[:], self.sources = self.before
        self.due = []
