"""Random queries with correlated subqueries over tables of some hundred rows, so that a subquery is executed for
single rows, for lists of rows, and for all rows."""

import queries
from queries import COLUMNS, TABLES

KEYS = ("KEY (a)", "KEY (b, a)", "KEY (s, a)", "UNIQUE KEY (a, id)", "KEY (t, b)", "KEY (a, s, d)", "KEY (b DESC)")


class Maker(queries.Maker):
    """Makes statements from a seed."""

    ROWS = (3, 60, 250, 500)

    def value(self, kind):
        if kind == "int" and self.chance(0.8):
            return str(self.random.randint(-3, 60))
        if kind == "text" and self.chance(0.5):
            return f"'{self.pick('abAB')}{self.random.randint(0, 20)}'"
        return super().value(kind)

    def tables(self):
        for table in TABLES:
            yield f"DROP TABLE IF EXISTS {table}"
            definitions = ["id INT NOT NULL PRIMARY KEY", "a INT", "b BIGINT", "s VARCHAR(10)", "d DECIMAL(8,2)", "t DATE"]
            keys = self.random.sample(KEYS, self.random.randint(1, 3))
            yield f"CREATE TABLE {table} ({', '.join(definitions + keys)})"
            yield from self.rows(table)

    def rows(self, table):
        yield f"DELETE FROM {table}"
        rows = []
        for number in range(self.pick(self.ROWS)):
            values = [str(number)] + [self.value(kind) for name, kind in COLUMNS.items() if name != "id"]
            rows.append(f"({', '.join(values)})")
        yield f"INSERT INTO {table} VALUES {', '.join(rows)}"

    def equalities(self, names, inner):
        """Equalities of columns of a subquery with columns of the outer row."""
        kinds = [self.pick(("int", "int", "int", "text", "date", "decimal")) for _ in range(self.pick((1, 1, 2)))]
        sides = []
        for kind in kinds:
            pair = [self.column(inner, kind)[0], self.column(names, kind)[0]]
            self.random.shuffle(pair)
            sides.append(f"{pair[0]} = {pair[1]}")
        return " AND ".join(sides)

    def correlated(self, names, number):
        """A subquery, and whether it is a truth value."""
        table, alias = self.pick(TABLES), f"s{number}"
        inner = [(alias, COLUMNS)]
        where = self.equalities(names, inner)
        if self.chance(0.4):
            where += f" AND {self.plain_condition(inner)}"
        if self.chance(0.3):
            return f"{self.pick(('', 'NOT '))}EXISTS (SELECT 1 FROM {table} {alias} WHERE {where})", True
        value = self.column(inner, self.pick(("int", "decimal")))[0]
        item = self.pick((f"COUNT({value})", "COUNT(*)", f"SUM({value})", f"AVG({value})", f"MAX({value})",
                          f"MIN({alias}.s)", f"COUNT(DISTINCT {value})", f"0.5 * SUM({value})", f"SUM({value}) + 1",
                          f"COALESCE(MAX({value}), -1)", f"10 / COUNT({value})"))
        return f"(SELECT {item} FROM {table} {alias} WHERE {where})", False

    def query(self):
        self.singles = []
        text, names = f"{self.pick(TABLES)} t0", [("t0", COLUMNS)]
        if self.chance(0.3):
            kind = self.pick(("JOIN", "LEFT JOIN"))
            text += f" {kind} {self.pick(TABLES)} t1 ON t1.id = t0.{self.pick('ab')}"
            names = names + [("t1", COLUMNS)]
        items, conditions = ["t0.id"], []
        for number in range(self.random.randint(1, 2)):
            made, is_truth = self.correlated(names, number)
            if self.chance(0.5):
                items.append(f"{made} c{number}")
            elif is_truth:
                conditions.append(f"({made} OR t0.a = 3)")
            else:
                conditions.append(f"{self.column(names, 'int')[0]} {self.pick(('<', '>', '<>'))} {made}")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        limit = f" ORDER BY t0.id LIMIT {self.random.randint(1, 40)}" if self.chance(0.2) and len(names) == 1 else ""
        return f"SELECT {', '.join(items)} FROM {text}{where}{limit}"
