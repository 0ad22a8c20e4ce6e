"""Episodes of random queries over one set of tables, and what Junctor is asked beside each query."""

import random
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import composite_keys
import correlated
import derived
import mixed
import queries
from false_statistics import misleading
from queries import TABLES

KINDS = {"plain": queries, "composite": composite_keys, "derived": derived, "correlated": correlated, "mixed": mixed}
# Queries an episode, of tables with the same definitions, and of the same rows apart from changes.
QUERIES = 960
LOADED = 120
# Queries that are under way at once. Changes come between such groups.
GROUP = 12
# The estimated rows of a join beyond which another one is drawn.
JOINED_ROWS_MAX = 2000
# The least tmp_table_size, so that most operators write files, and one that few need.
MEMORIES = (1024, 65536)
PARTITIONS = (1, 2, 7)
# Values that are drawn more often than the others of their kind.
FREQUENT = {
    "int": ("-1", "0", "1", "2", "3", "4"), "text": ("'a'", "'b'", "'A'", "'b '"),
    "decimal": ("0.00", "1.00", "1.50", "2.00"), "date": ("'2024-01-01'", "'2024-01-02'", "'2024-02-01'"),
}
# The shares of NULL among stored values and among literals.
NULLS_STORED, NULLS_ASKED = 0.15, 0.05
# The shares of queries that Junctor answers also: with little memory, prepared, over copies of the tables, and in
# parts that a predicate divides.
SHARES = (("memory", 0.25), ("prepared", 0.15), ("copy", 0.25), ("predicate", 0.1))
CREATE = re.compile(r"CREATE TABLE (\w+) \((.*)\)(?: /\*!80000.*)?$")
KEY = re.compile(r", (?:UNIQUE )?KEY \([^)]*\)")
PRIMARY = re.compile(r"(?<!\w)(\w+) \w+[^,]* PRIMARY KEY|PRIMARY KEY \(([^)]*)\)")
INSERT = re.compile(r"INSERT INTO (\w+) VALUES (.*)$")
STORED = re.compile(r"\b(?:q|v)(?=[0-3]\b)")
ORDERED = re.compile(r" ORDER BY (1(?: DESC)?(?:, \d(?: DESC)?)*)(?: LIMIT \d+)?$")
COMPARED = {
    **dict.fromkeys((1, 2, 3, 8, 9, 246, 5), "{}"), **dict.fromkeys((15, 253, 254), "'{}'"), 10: "DATE'{}'",
}


class Random(random.Random):
    """Draws faster than its base, and less evenly by a share that does not matter here."""

    def choice(self, items):
        return items[int(self.random() * len(items))]

    def randint(self, least, most):
        return least + int(self.random() * (most - least + 1))


def maker_of(kind, seed):
    """A maker of the kind, with joins of up to six tables whose products are small."""
    base = KINDS[kind].Maker

    class Maker(base):
        JOINS = {"plain": (1, 2, 2, 3, 3, 4, 5, 6), "composite": (2, 2, 3, 3, 4, 5, 6)}.get(kind, base.JOINS)
        ROWS = {"plain": (3, 8, 12) if seed % 5 else base.ROWS, "composite": (1, 8, 12) if seed % 5 else (1, 8, 25), "derived": (3, 8, 12, 25), "mixed": (3, 8, 12)}.get(
            kind, base.ROWS)
        # More conditions would leave no row.
        TESTS, TESTED = (1, 1, 2), 0.4
        NEAR = kind != "correlated"

        def __init__(self):
            super().__init__(seed)
            self.random = Random(seed)
            self.nulls = NULLS_ASKED

        def pick(self, items):
            return self.random.choice(items if isinstance(items, (tuple, list, str)) else list(items))

        def rows(self, table):
            self.nulls = NULLS_STORED
            yield from super().rows(table)
            self.nulls = NULLS_ASKED

        def value(self, kind):
            """Few different values, so that more conditions are true than with those of the base."""
            if not self.NEAR:
                return super().value(kind)
            if self.chance(self.nulls):
                return "NULL"
            if self.chance(0.75):
                return self.pick(FREQUENT[kind])
            while True:
                made = super().value(kind)
                if made != "NULL":
                    return made

        def joins(self):
            while True:
                made = super().joins()
                if self.joined_rows <= JOINED_ROWS_MAX:
                    return made

    return Maker()


def merged(statements):
    """The statements, with successive INSERTs into a table as one."""
    made = []
    for statement in statements:
        found = INSERT.match(statement)
        if found and made and made[-1].startswith(f"INSERT INTO {found[1]} VALUES "):
            made[-1] += ", " + found[2]
        else:
            made.append(statement)
    return made


def copied(text):
    """A query of the copies of the tables and views."""
    return STORED.sub(lambda found: "copy" if found[0] == "q" else "view", text)


class Copies:
    """Copies of the tables in Junctor, with other partitions, with or without keys, and with false statistics."""

    def __init__(self, kind, chance):
        self.partitions = chance.choice(PARTITIONS)
        self.has_keys = chance.random() < 0.4
        self.is_misled = chance.random() < 0.4
        self.kind, self.chance = kind, chance

    def create(self, statements):
        for statement in statements:
            found = CREATE.match(statement)
            if found:
                columns = found[2] if self.has_keys else KEY.sub("", found[2])
                primary = next(one or several for one, several in PRIMARY.findall(found[2]))
                name = found[1].replace("q", "copy")
                yield f"DROP TABLE IF EXISTS {name}"
                yield f"CREATE TABLE {name} ({columns}) PARTITION BY KEY ({primary}) PARTITIONS {self.partitions}"
            elif " VIEW " in statement:
                yield copied(statement)

    def fill(self):
        for number in range(len(TABLES)):
            if self.is_misled and self.kind == "plain":
                yield from misleading(f"copy{number}", self.chance, (300, 60))
            elif self.is_misled:
                yield f"INSERT IGNORE INTO copy{number} SELECT * FROM q{(number + 1) % len(TABLES)}"
                yield f"ANALYZE TABLE copy{number}"
            yield from self.refresh(f"q{number}")
            if not self.is_misled and self.chance.random() < 0.5:
                yield f"ANALYZE TABLE copy{number}"

    def refresh(self, table):
        yield f"DELETE FROM {table.replace('q', 'copy')}"
        yield f"INSERT INTO {table.replace('q', 'copy')} SELECT * FROM {table}"

    def __str__(self):
        return (f"{self.partitions} partitions, {'same' if self.has_keys else 'no'} keys, "
                f"{'false' if self.is_misled else 'own'} statistics")


class Query:
    """A query: its texts for both servers, and the variant for Junctor, if it has one."""

    def __init__(self, maker, chance):
        made = maker.query()
        self.ours, self.theirs = made if isinstance(made, tuple) else (made, mixed.for_mariadb(made))
        self.singles = maker.singles
        self.variant = self.memory = None
        roll = chance.random()
        for name, share in SHARES:
            roll -= share
            if roll < 0:
                self.variant = name
                break
        if self.variant == "memory":
            self.memory = chance.choice(MEMORIES[:1] * 3 + MEMORIES[1:])
        self.point = chance.random()
        # The items of the list order the rows, up to equal texts.
        found = ORDERED.search(self.ours)
        self.is_ordered = bool(found) and self.ours.startswith("SELECT") and " UNION " not in self.ours

    def sent(self):
        """The statements for Junctor, and the places of the answers: that of the query, and that of its variant."""
        if self.variant == "memory":
            return [self.ours, f"SET tmp_table_size = {self.memory}", self.ours, "SET tmp_table_size = DEFAULT"], 2
        if self.variant == "prepared":
            return [self.ours, "PREPARE p FROM '%s'" % self.ours.replace("\\", "\\\\").replace("'", "''"), "EXECUTE p"], 2
        if self.variant == "copy":
            return [self.ours, copied(self.ours)], 1
        return [self.ours], None

    def parts(self, answer):
        """The query in three parts: the rows for which a predicate is true, false and NULL; None without one."""
        if self.variant != "predicate" or answer.kind != "rows" or self.ours.endswith((" UPDATE", " MODE")):
            return None
        names = answer.names()
        usable = [place for place, column in enumerate(answer.columns) if column[-6] in COMPARED]
        if len(set(map(str.lower, names))) < len(names) or not usable:
            return None
        place = usable[int(self.point * len(usable))]
        values = [row[place] for row in answer.values() if row[place] is not None]
        value = values[int(self.point * 7919) % len(values)].decode() if values else "1"
        literal = COMPARED[answer.columns[place][-6]].format(value.replace("'", "''"))
        if not values:
            literal = "NULL"
        test = f"x.`{names[place]}` {('<', '<=', '=', '>')[int(self.point * 104729) % 4]} {literal}"
        part = f"SELECT * FROM ({self.ours}) x WHERE "
        return f"{part}{test} UNION ALL {part}NOT ({test}) UNION ALL {part}({test}) IS NULL"


class Episode:
    """Tables, and groups of queries with changes between them, all drawn from a seed."""

    def __init__(self, kind, seed, count=QUERIES):
        self.kind, self.seed = kind, seed
        self.maker = maker_of(kind, seed)
        self.chance = Random(f"{kind} {seed}")
        self.count = count
        self.engine = "MEMORY" if seed % 4 else "InnoDB"
        self.tables = merged(self.maker.tables())
        self.copies = Copies(kind, self.chance)
        self.other = []
        # Statistics change no answer, even if they are those of other rows.
        self.is_analyzed = self.maker.chance(0.5)
        if self.is_analyzed:
            self.other = merged(
                statement for table in TABLES if self.maker.chance(0.5) for statement in self.maker.rows(table)
            )
        self.in_transaction = self.maker.chance(0.4)

    def for_junctor(self):
        yield "ROLLBACK"
        yield from self.tables
        if self.is_analyzed:
            yield from (f"ANALYZE TABLE {table}" for table in TABLES)
        yield from self.other
        yield from self.copies.create(self.tables)
        yield from self.copies.fill()
        if self.in_transaction:
            yield "BEGIN"

    def for_mariadb(self):
        yield "ROLLBACK"
        # Tables of MEMORY are created faster. They have no transactions, but nothing is rolled back before they go.
        yield f"SET default_storage_engine = {self.engine}"
        yield from map(mixed.for_mariadb, self.tables)
        yield from self.other
        if self.in_transaction:
            yield "BEGIN"

    def groups(self):
        """The statements for Junctor before a group, those for MariaDB, and the queries of the group."""
        for first in range(0, self.count, GROUP):
            ours, theirs = [], []
            if first and first % LOADED == 0:
                theirs = ["COMMIT"] + self.reloaded()
                ours = theirs + list(self.copies.fill())
                self.in_transaction = self.maker.chance(0.4)
                if self.in_transaction:
                    ours, theirs = ours + ["BEGIN"], theirs + ["BEGIN"]
            if self.in_transaction:
                changes = [self.maker.change() for _ in range(self.chance.randint(0, 4))]
                changed = [table for table in TABLES if any(f" {table} " in change for change in changes)]
                theirs = theirs + changes
                ours = ours + changes + [copy for table in changed for copy in self.copies.refresh(table)]
            yield ours, theirs, [Query(self.maker, self.chance) for _ in range(min(GROUP, self.count - first))]

    def reloaded(self):
        """Other rows for most tables. Their statistics are those of the rows before, or of these."""
        chosen = [table for table in TABLES if self.maker.chance(0.8)]
        return merged(statement for table in chosen for statement in self.maker.rows(table))
