"""Random tables joined by foreign keys, and statements on them, from a seed.

InnoDB checks foreign keys row by row (docs/compatibility.md). The generator therefore omits cases in which
that order matters: statements on several rows of a self-referencing table, and two paths from a table to the
same descendant."""

ACTIONS = ["", "ON DELETE CASCADE", "ON DELETE SET NULL", "ON DELETE RESTRICT", "ON DELETE NO ACTION"]
UPDATES = ["", "ON UPDATE CASCADE", "ON UPDATE SET NULL", "ON UPDATE RESTRICT", "ON UPDATE NO ACTION"]
COLUMNS = ["id", "u", "a", "b", "n", "fp", "fx", "fb", "sp"]
TABLE = (
    "id INT NOT NULL, u INT, a INT NOT NULL, b VARCHAR(3) NOT NULL, n INT, fp INT, fx INT, fb VARCHAR(3), sp INT, "
    "PRIMARY KEY (id), UNIQUE KEY u (u), UNIQUE KEY ab (a, b), KEY n (n)"
)
TEXTS = ["a", "b", "A", "ab", "c"]
KEYS = 7


class Table:
    def __init__(self, name):
        self.name = name
        # Names of the constraints by kind: "parent", "second" and "self".
        self.keys = {}
        self.parent = self.second = None
        # The parentless ancestors, or the table itself if it has no parent.
        self.roots = {name}


class Families:
    """Tables t0, t1, ... Each has at most two parents among the previous tables, which have no common
    ancestor. Some tables reference themselves."""

    def __init__(self, random):
        self.random = random
        self.in_transaction = False
        self.checks = True
        self.number = 0
        self.tables = [Table(f"t{number}") for number in range(random.randint(2, 5))]
        self.pending = []
        self.sent = 0

    def creates(self):
        texts = []
        for position, table in enumerate(self.tables):
            parts = [TABLE]
            if position > 0 and self.random.random() < 0.85:
                table.parent = self.random.choice(self.tables[:position])
                table.roots = set(table.parent.roots)
                parts.append(self.parent_key(table))
                others = [other for other in self.tables[:position] if not other.roots & table.roots]
                if others and self.random.random() < 0.6:
                    table.second = self.random.choice(others)
                    table.roots |= table.second.roots
                    parts.append(self.second_key(table))
            if self.random.random() < 0.25:
                parts.append(self.self_key(table))
            texts.append(f"CREATE TABLE {table.name} ({', '.join(parts)}) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci")
        return [(text, text) for text in texts]

    def name(self):
        self.number += 1
        return f"k{self.number}"

    def actions(self):
        return f"{self.random.choice(ACTIONS)} {self.random.choice(UPDATES)}".strip()

    def parent_key(self, table):
        own, other = self.random.choice([("fp", "id"), ("fp", "id"), ("fp", "u"), ("fx, fb", "a, b"), ("fp", "n"), ("fx", "a")])
        table.keys["parent"] = self.name()
        return f"CONSTRAINT {table.keys['parent']} FOREIGN KEY ({own}) REFERENCES {table.parent.name} ({other}) {self.actions()}"

    def second_key(self, table):
        table.keys["second"] = self.name()
        other = self.random.choice(["id", "u"])
        return f"CONSTRAINT {table.keys['second']} FOREIGN KEY (n) REFERENCES {table.second.name} ({other}) {self.actions()}"

    def self_key(self, table):
        table.keys["self"] = self.name()
        actions = self.random.choice(["", "ON DELETE CASCADE", "ON DELETE SET NULL", "ON DELETE RESTRICT ON UPDATE RESTRICT"])
        return f"CONSTRAINT {table.keys['self']} FOREIGN KEY (sp) REFERENCES {table.name} (id) {actions}"

    # Values.

    def small(self, null=0.0):
        return "NULL" if self.random.random() < null else str(self.random.randint(0, KEYS))

    def text(self, null=0.0):
        return "NULL" if self.random.random() < null else f"'{self.random.choice(TEXTS)}'"

    def value(self, column):
        if column in ("b", "fb"):
            return self.text(0.2 if column == "fb" else 0)
        return self.small({"id": 0, "a": 0, "fp": 0.15, "fx": 0.15}.get(column, 0.3))

    def row(self):
        return f"({', '.join(self.value(column) for column in COLUMNS)})"

    # Statements.

    def statement(self):
        """A statement and its keywords, see `outcome.difference`."""
        if self.pending:
            return self.pending.pop(0), {"ordered"}
        random, table = self.random, self.random.choice(self.tables)
        draw = random.random()
        self.sent += 1
        if self.sent <= 3 * len(self.tables):
            # Fill parents before their children.
            table = self.tables[(self.sent - 1) // 3]
            text = f"INSERT IGNORE INTO {table.name} VALUES {', '.join(self.row() for _ in range(4))}"
            if "self" in table.keys:
                text = self.insert(table)
            return text, {"noerrors"}
        if draw < 0.30:
            text = self.insert(table)
        elif draw < 0.62:
            text = self.update(table)
        elif draw < 0.78:
            text = self.delete(table)
        elif draw < 0.86:
            return self.session(), set()
        elif draw < 0.99:
            return self.alter(table), {"nomessage"}
        else:
            text = f"TRUNCATE TABLE {table.name}"
            self.in_transaction = False
        if random.random() < 0.3:
            self.pending = self.wholes()
        # A row may violate both a unique key and a foreign key.
        return text, {"ordered", "noerrors"}

    def insert(self, table):
        random = self.random
        is_self = "self" in table.keys
        rows = ", ".join(self.row() for _ in range(1 if is_self else random.choice([1, 1, 2, 3])))
        kind = random.random()
        if kind < 0.6:
            return f"INSERT INTO {table.name} VALUES {rows}"
        if kind < 0.72:
            return f"INSERT IGNORE INTO {table.name} VALUES {rows}"
        if kind < 0.84:
            return f"REPLACE INTO {table.name} VALUES {self.row()}"
        column = random.choice(["n", "fp", "fx", "sp", "u"])
        return f"INSERT INTO {table.name} VALUES {self.row()} ON DUPLICATE KEY UPDATE {column} = {self.value(column)}"

    def where(self, table):
        random = self.random
        if "self" in table.keys or random.random() < 0.6:
            return f"WHERE id = {self.small()}"
        if random.random() < 0.5:
            return f"WHERE {random.choice(['fp', 'n', 'a'])} = {self.small()}"
        return f"WHERE id BETWEEN {self.small()} AND {self.small()}"

    def update(self, table):
        random = self.random
        columns = random.sample(["id", "u", "a", "b", "n", "fp", "fx", "fb", "sp"], random.choice([1, 1, 2]))
        where = self.where(table)
        if not where.startswith("WHERE id ="):
            columns = [column for column in columns if column not in ("id", "u", "a", "b")] or ["fp"]
        sets = ", ".join(f"{column} = {self.value(column)}" for column in columns)
        return f"UPDATE {self.ignore()}{table.name} SET {sets} {where}"

    def delete(self, table):
        return f"DELETE {self.ignore()}FROM {table.name} {self.where(table)}"

    def ignore(self):
        return "IGNORE " if self.random.random() < 0.15 else ""

    def session(self):
        random = self.random
        if random.random() < 0.35:
            self.checks = not self.checks
            return f"SET foreign_key_checks = {int(self.checks)}"
        if not self.in_transaction:
            self.in_transaction = True
            return "BEGIN"
        self.in_transaction = False
        return random.choice(["COMMIT", "ROLLBACK"])

    def alter(self, table):
        random = self.random
        self.in_transaction = False
        held = [kind for kind in ("parent", "second", "self") if table.keys.get(kind)]
        if held and random.random() < 0.5:
            kind = random.choice(held)
            name, table.keys[kind] = table.keys[kind], None
            index = ", ADD INDEX x (n, id)" if random.random() < 0.3 else ""
            return f"ALTER TABLE {table.name} DROP FOREIGN KEY {name}{index}"
        if table.parent and not table.keys.get("parent"):
            return f"ALTER TABLE {table.name} ADD {self.parent_key(table)}"
        if table.second and not table.keys.get("second"):
            return f"ALTER TABLE {table.name} ADD {self.second_key(table)}"
        if "self" in table.keys and not table.keys["self"]:
            return f"ALTER TABLE {table.name} ADD {self.self_key(table)}"
        return f"ALTER TABLE {table.name} DROP FOREIGN KEY nothing"

    def wholes(self):
        """Queries for the content of all tables."""
        return [f"SELECT * FROM {table.name} ORDER BY id" for table in self.tables]
