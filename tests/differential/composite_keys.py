"""Random queries that join tables by keys of several columns: whole primary and unique keys and prefixes of
indexes, of several types, nullable and not, with values of other tables, constants, lists and expressions."""

import queries
from queries import COLUMNS, TABLES

INTEGERS = ("INT", "INT", "BIGINT", "SMALLINT", "TINYINT", "MEDIUMINT")
TYPES = {
    "id": INTEGERS,
    "a": INTEGERS,
    "b": INTEGERS + ("DECIMAL(6,0)",),
    "s": ("VARCHAR(10)", "VARCHAR(10)", "CHAR(8)", "VARCHAR(20)", "VARCHAR(10) COLLATE utf8mb4_bin"),
    "d": ("DECIMAL(8,2)", "DECIMAL(8,2)", "DECIMAL(12,4)", "DECIMAL(30,3)"),
    "t": ("DATE",),
}
PRIMARY = (("id",), ("a", "b", "id"), ("b", "s", "id"), ("s", "a", "id"), ("t", "a", "b", "id"), ("a", "d", "id"),
           ("d", "id"), ("id", "a"), ("b", "a", "s", "t", "id"))
SECONDARY = (("KEY", ("a", "b")), ("KEY", ("b", "s", "a")), ("KEY", ("t", "d")), ("KEY", ("s", "t", "b")),
             ("KEY", ("d", "a", "b")), ("UNIQUE KEY", ("a", "b", "id")), ("UNIQUE KEY", ("s", "id")),
             ("UNIQUE KEY", ("id", "t", "a")), ("KEY", ("a",)), ("KEY", ("b", "a", "d")))
NUMBERS = ("int", "decimal")


class Maker(queries.Maker):
    """Makes statements from a seed."""

    JOINS = (2, 2, 3, 3, 4)
    ROWS = (1, 8, 25, 60)
    KEY = tuple(COLUMNS)

    def __init__(self, seed):
        super().__init__(seed)
        self.required = {}
        self.keys = {}

    def tables(self):
        for table in TABLES:
            yield f"DROP TABLE IF EXISTS {table}"
            primary = self.pick(PRIMARY)
            keys = [("PRIMARY KEY", primary)] + self.random.sample(SECONDARY, self.random.randint(0, 3))
            self.keys[table] = [columns for _, columns in keys]
            self.required[table] = {name for name in COLUMNS if name in primary or name == "id" or self.chance(0.3)}
            definitions = []
            for name, types in TYPES.items():
                null = " NOT NULL" if name in self.required[table] else ""
                definitions.append(f"{name} {self.pick(types)}{null}")
            for kind, columns in keys:
                descending = kind == "KEY" and self.chance(0.15)
                definitions.append(f"{kind} ({', '.join(columns)}{' DESC' if descending else ''})")
            # MariaDB does not read the comment.
            chosen = self.random.sample(primary, self.random.randint(1, len(primary)))
            clause = f" /*!80000 PARTITION BY KEY ({', '.join(chosen)}) PARTITIONS {self.random.randint(2, 5)} */"
            yield f"CREATE TABLE {table} ({', '.join(definitions)}){clause if self.chance(0.6) else ''}"
            yield from self.rows(table)

    def stored(self, table, name, kind):
        while True:
            made = self.value(kind)
            if made != "NULL" or name not in self.required[table]:
                return made

    def row(self, table, number):
        return [str(number)] + [self.stored(table, name, kind) for name, kind in COLUMNS.items() if name != "id"]

    def rows(self, table):
        yield f"DELETE FROM {table}"
        count = 0 if self.chance(0.07) else self.random.choice(self.ROWS)
        for number in range(count):
            yield f"INSERT INTO {table} VALUES ({', '.join(self.row(table, number))})"

    def change(self):
        table = self.pick(TABLES)
        kind = self.random.randint(0, 2)
        if kind == 0:
            return f"REPLACE INTO {table} VALUES ({', '.join(self.row(table, self.random.randint(61, 90)))})"
        if kind == 1:
            name = self.pick(("a", "b", "s", "d", "t"))
            return f"UPDATE {table} SET {name} = {self.stored(table, name, COLUMNS[name])} WHERE id = {self.random.randint(0, 9)}"
        return f"DELETE FROM {table} WHERE id = {self.random.randint(0, 9)}"

    def part(self, names, alias, name):
        """A condition on a column of a key."""
        kind = COLUMNS[name]
        roll = self.random.random()
        column = f"{alias}.{name}"
        if roll < 0.12:
            return f"{column} = {self.value(kind)}"
        if roll < 0.24:
            return f"{column} IN ({', '.join(self.value(kind) for _ in range(self.random.randint(1, 3)))})"
        if roll < 0.29:
            return f"{column} {self.pick(('<', '>=', '<=>'))} {self.value(kind)}"
        if kind in NUMBERS and roll < 0.38:
            left, right = (self.column(names, self.pick(NUMBERS))[0] for _ in range(2))
            # In MariaDB, MOD(-7.0, 7) is -0.0, which does not equal 0.
            made = self.pick((f"{left} + 1", f"{left} - {right}", f"ABS(MOD({left} * {right}, 7))",
                              f"COALESCE({left}, 2)", f"{left} * 0.5"))
            return f"{made} = {column}"
        other = self.pick(NUMBERS) if kind in NUMBERS and self.chance(0.2) else kind
        sides = [column, self.column(names, other)[0]]
        self.random.shuffle(sides)
        return " = ".join(sides)

    def by_key(self, names, alias, table):
        """Conditions on the columns of a key of a table, or on a part of them."""
        columns = list(self.pick(self.keys[table]))
        columns = columns[: self.random.randint(1, len(columns))] if self.chance(0.5) else columns
        if self.chance(0.15):
            columns.append(self.pick(COLUMNS))
        self.random.shuffle(columns)
        return " AND ".join(self.part(names, alias, name) for name in columns)

    def joins(self):
        count = self.pick(self.JOINS)
        table = self.pick(TABLES)
        text, names = f"{table} t0", [("t0", COLUMNS)]
        # Keys of several columns match fewer rows than this estimate has.
        self.joined_rows = max(self.ROWS) * (max(self.ROWS) / 6) ** (count - 1)
        for number in range(1, count):
            alias = f"t{number}"
            if self.chance(0.12):
                member, own = self.member(number)
                on = f"{self.column(names, 'int')[0]} = {self.column([own], 'int')[0]}"
            else:
                table = self.pick(TABLES)
                member, own = f"{table} {alias}", (alias, COLUMNS)
                on = self.by_key(names, alias, table)
                if "<=>" in on:
                    on = on.replace("<=>", "=")
            if self.chance(0.15):
                on += f" AND {self.plain_condition(names + [own])}"
            kind = self.pick(("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "STRAIGHT_JOIN"))
            text += f" {kind} {member} ON {on}"
            names = names + [own]
        return text, names

    def subquery(self, names):
        if self.chance(0.4):
            return super().subquery(names)
        table, alias = self.pick(TABLES), f"s{self.random.randint(0, 999)}"
        on = self.by_key(names, alias, table)
        if self.chance(0.2):
            on += f" AND {self.plain_condition([(alias, COLUMNS)])}"
        roll = self.random.randint(0, 3)
        if roll == 0:
            return f"{self.pick(('', 'NOT '))}EXISTS (SELECT 1 FROM {table} {alias} WHERE {on})"
        if roll == 1:
            columns = list(self.pick(self.keys[table]))[:2]
            left = ", ".join(self.column(names, COLUMNS[name])[0] for name in columns)
            right = ", ".join(f"{alias}.{name}" for name in columns)
            where = f" WHERE {on}" if self.chance(0.3) else ""
            return f"({left}) {self.pick(('', '', 'NOT '))}IN (SELECT {right} FROM {table} {alias}{where})"
        if roll == 2:
            return f"(SELECT COUNT(*) FROM {table} {alias} WHERE {on}) {self.pick(('=', '>'))} {self.random.randint(0, 2)}"
        value = self.pick(("MAX", "MIN", "SUM"))
        return f"{self.scalar(names, 'int')} {self.pick(('<', '='))} (SELECT {value}({alias}.a) FROM {table} {alias} WHERE {on})"

    def query(self):
        made = super().query()
        is_plain = isinstance(made, str) and made.startswith("SELECT") and not any(
            word in made for word in ("UNION", "OVER", "GROUP BY", "DISTINCT", "LIMIT", "(SELECT"))
        if is_plain and self.chance(0.1):
            made += self.pick((" FOR UPDATE", " LOCK IN SHARE MODE"))
        return made
