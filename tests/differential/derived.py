"""Random queries with conditions on derived tables, views and tables of WITH: over groups, DISTINCT, windows and set
operations, several levels of them, alone and in joins."""

import queries
from queries import COLUMNS, TABLES

VIEWS = ("v0", "v1")
KINDS = ("int", "int", "int", "text", "decimal", "date")


class Maker(queries.Maker):
    """Makes statements from a seed."""

    # Numbers of conditions on a derived table, and the share of derived tables that have some in WHERE.
    TESTS = (1, 2, 3)
    TESTED = 0.8

    def tables(self):
        for view in VIEWS:
            yield f"DROP VIEW IF EXISTS {view}"
        yield from super().tables()
        self.views = {}
        for view in VIEWS:
            text, self.views[view] = self.rows_query(1)
            yield f"CREATE VIEW {view} AS {text}"

    def source(self, depth):
        """A member of FROM inside a derived table, and its columns."""
        if depth < 2 and self.chance(0.3):
            text, columns = self.rows_query(depth + 1)
            return f"({text}) x", columns
        return f"{self.pick(TABLES)} x", COLUMNS

    def rows_query(self, depth):
        """A query whose rows are decided by its input, and its columns."""
        source, columns = self.source(depth)
        names = [("x", columns)]
        where = f" WHERE {self.condition(names, 1)}" if self.chance(0.4) else ""
        chosen = self.random.sample(sorted(columns), min(len(columns), self.random.randint(1, 3)))
        own = {name: columns[name] for name in chosen}
        shown = ", ".join(f"x.{name}" for name in chosen)
        roll = self.random.random()
        if roll < 0.35:
            value = self.column(names, "int")[0]
            having = f" HAVING COUNT(*) {self.pick(('>', '<='))} {self.random.randint(0, 2)}" if self.chance(0.2) else ""
            functions = ("COUNT(*)", f"SUM({value})", f"MAX({value})", f"COUNT(DISTINCT {value})")
            text = f"SELECT {shown}, {self.pick(functions)} f{depth} FROM {source}{where} GROUP BY {shown}{having}"
            return text, {**own, f"f{depth}": "int"}
        if roll < 0.5:
            return f"SELECT DISTINCT {shown} FROM {source}{where}", own
        if roll < 0.65:
            keys = self.random.sample(chosen, self.random.randint(1, len(chosen)))
            partition = ", ".join(f"x.{name}" for name in keys)
            value = self.column(names, "int")[0]
            function = self.pick(("COUNT(*)", f"SUM({value})", f"MIN({value})"))
            text = f"SELECT {shown}, {function} OVER (PARTITION BY {partition}) f{depth} FROM {source}{where}"
            return text, {**own, f"f{depth}": "int"}
        if roll < 0.9:
            operator = self.pick(("UNION", "UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT"))
            other, second = self.source(2)
            found = [self.column([("x", second)], kind)[0] for kind in own.values()]
            where = where + f" {operator} SELECT {', '.join(found)} FROM {other}"
            if self.chance(0.4):
                where += f" WHERE {self.condition([('x', second)], 1)}"
            return f"SELECT {shown} FROM {source}{where}", own
        return f"SELECT {shown} FROM {source}{where}", own

    def tests(self, alias, columns):
        """Conditions on columns of a derived table."""
        tests = []
        for _ in range(self.pick(self.TESTS)):
            name = self.pick(sorted(columns))
            column, kind = f"{alias}.{name}", columns[name]
            values = [self.value(kind) for _ in range(3)]
            tests.append(self.pick((
                f"{column} = {values[0]}", f"{column} = {values[0]}",
                f"{column} {self.pick(('<', '>', '<=', '>=', '<>', '<=>'))} {values[0]}",
                f"{column} {self.pick(('', 'NOT '))}IN ({', '.join(values)})",
                f"{column} {self.pick(('', 'NOT '))}BETWEEN {values[0]} AND {values[1]}",
                f"({column} = {values[0]} OR {column} > {values[1]})",
                f"{column} IS {self.pick(('', 'NOT '))}NULL",
                f"NOT ({column} = {values[0]})",
            )))
        return " AND ".join(tests)

    def member(self, number):
        alias = f"t{number}"
        roll = self.random.random()
        if roll < 0.3:
            view = self.pick(VIEWS)
            return f"{view} {alias}", (alias, self.views[view])
        if roll < 0.85:
            text, columns = self.rows_query(0)
            return f"({text}) {alias}", (alias, columns)
        return f"{self.pick(TABLES)} {alias}", (alias, COLUMNS)

    def query(self):
        self.singles = []
        count = self.pick((1, 1, 2, 2, 3))
        text, first = self.member(0)
        names = [first]
        for number in range(1, count):
            member, own = self.member(number)
            key = self.pick(sorted(set(own[1].values())))
            on = f"{self.column(names, key)[0]} = {self.column([own], key)[0]}"
            if self.chance(0.4):
                on += f" AND {self.tests(*own)}".replace("<=>", "=")
            text += f" {self.pick(('JOIN', 'LEFT JOIN', 'RIGHT JOIN'))} {member} ON {on}"
            names = names + [own]
        where = " AND ".join(self.tests(*own) for own in names if self.chance(self.TESTED))
        where = f" WHERE {where}" if where else ""
        if self.chance(0.2):
            text, where = f"WITH w AS (SELECT {self.column(names)[0]} k FROM {text}{where}) SELECT k FROM w GROUP BY k", ""
            return f"SELECT k FROM ({text}) g WHERE k {self.pick(('=', '>', '<>'))} {self.value('int')}"
        if self.chance(0.3):
            key = self.column(names)[0]
            return f"SELECT {key} k, COUNT(*) FROM {text}{where} GROUP BY {key}"
        items = ", ".join(f"{self.column(names)[0]} c{number}" for number in range(self.random.randint(1, 4)))
        return f"SELECT {items} FROM {text}{where}"
