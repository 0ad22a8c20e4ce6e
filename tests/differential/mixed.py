"""Random queries of many forms: set operations, tables of WITH that are read several times, nested joins, USING, groups by
expressions and windows over them, rows and lists compared with subqueries, LIMIT inside derived tables, views."""

import derived
import queries
from derived import KINDS
from queries import COLUMNS, TABLES

# MariaDB does not end some queries with INTERSECT ALL and EXCEPT ALL, not even for max_statement_time.
OPERATORS = ("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "UNION DISTINCT")
# With IN, MariaDB compares the value with the rows of each member of INTERSECT and EXCEPT, and takes a NULL in one of
# them for one of the result. It answers right over a derived table.
SET_BEGINS, SET_ENDS = "/* set */", "/* end */"


def for_mariadb(text):
    """The text of a query for MariaDB."""
    return text.replace(SET_BEGINS, "SELECT * FROM (").replace(SET_ENDS, ") z")


class Maker(derived.Maker):
    """Makes statements from a seed."""

    JOINS = (1, 2, 2, 3, 3, 4)

    def scalar(self, names, kind, depth=0):
        if depth > 1 or not self.chance(0.3):
            return super().scalar(names, kind, depth)
        left, right = (self.scalar(names, kind, depth + 1) for _ in range(2))
        if kind == "int":
            other = self.scalar(names, self.pick(KINDS), depth + 1)
            return self.pick((
                f"IF({self.comparison(names)}, {left}, {right})", f"NULLIF({left}, {right})", f"IFNULL({left}, {right})",
                f"GREATEST({left}, {right})", f"LEAST({left}, {right})", f"({left} DIV 2)", f"(-{left})",
                f"MONTH({self.column(names, 'date')[0]})", f"ROUND({self.scalar(names, 'decimal', 2)})",
                f"({left} BETWEEN {right} AND 3)", f"({left} IN ({right}, 1, 2))", f"({other} IS NULL)",
                f"CASE {left} WHEN {right} THEN 1 WHEN 2 THEN {left} END", f"({self.comparison(names)})",
                f"SIGN({left} - {right})", f"({left} XOR {right})", f"(({left} > {right}) IS NOT TRUE)",
                f"CAST({left} AS SIGNED)", f"DATEDIFF({self.column(names, 'date')[0]}, '2024-01-02')",
            ))
        if kind == "text":
            return self.pick((f"IF({self.comparison(names)}, {left}, {right})", f"NULLIF({left}, 'a')", f"LEFT({left}, 1)",
                              f"LOWER({left})", f"COALESCE({left}, {right}, 'q')"))
        if kind == "decimal":
            return self.pick((f"({left} + {right})", f"({left} - {right})", f"({left} * 2)", f"IFNULL({left}, {right})",
                              f"ABS({left})", f"GREATEST({left}, {right})"))
        day = self.column(names, "date")[0]
        return self.pick((day, f"COALESCE({day}, DATE'2024-01-01')", f"IF({self.comparison(names)}, {day}, NULL)"))

    def comparison(self, names):
        kind = self.pick(("int", "int", "text", "decimal", "date"))
        return f"{self.column(names, kind)[0]} {self.pick(('=', '<', '>=', '<>'))} {self.value(kind)}"

    def condition(self, names, depth=0):
        roll = self.random.random()
        if depth < 2 and roll < 0.12:
            return self.subquery_of_rows(names)
        if roll < 0.17:
            return f"({self.comparison(names)} {self.pick(('XOR', 'OR', 'AND'))} {self.comparison(names)})"
        if roll < 0.22:
            column = self.column(names, "text")[0]
            # A group of 'b' and 'b ' shows one of them, so that patterns do not end with a letter.
            return f"{column} {self.pick(('', 'NOT '))}LIKE '{self.pick(('a%', 'b%', '_%', '%', 'z%', '%a%'))}'"
        if roll < 0.25:
            return f"({self.comparison(names)}) IS {self.pick(('', 'NOT '))}{self.pick(('TRUE', 'FALSE', 'UNKNOWN'))}"
        return super().condition(names, depth)

    def subquery_of_rows(self, names):
        """A row or a value compared with a subquery that has several columns, a set operation or a limit."""
        table, alias = self.pick(TABLES), f"u{self.random.randint(0, 999)}"
        inner = [(alias, COLUMNS)]
        where = f" WHERE {self.condition(inner, 2)}" if self.chance(0.5) else ""
        roll = self.random.randint(0, 5)
        if roll == 0:
            kinds = [self.pick(("int", "text")) for _ in range(2)]
            left = ", ".join(self.column(names, kind)[0] for kind in kinds)
            right = ", ".join(self.column(inner, kind)[0] for kind in kinds)
            return f"({left}) {self.pick(('', 'NOT '))}IN (SELECT {right} FROM {table} {alias}{where})"
        if roll == 1:
            left = ", ".join(self.column(names, "int")[0] for _ in range(2))
            # Where rows must differ, MariaDB makes an inner join of an outer one, although a row with NULL can differ.
            row = f"SELECT {alias}.a, {alias}.b FROM {table} {alias}{where} ORDER BY {alias}.id LIMIT 1"
            return f"(({left}) = ({row})) IS TRUE"
        if roll == 2:
            offset = self.pick(("", " OFFSET 1"))
            return f"{self.scalar(names, 'int')} {self.pick(('=', '<', '>'))} (SELECT {alias}.a FROM {table} {alias}{where} ORDER BY {alias}.id LIMIT 1{offset})"
        if roll == 3:
            other = self.pick(TABLES)
            union = f"SELECT {alias}.a FROM {table} {alias}{where} {self.pick(OPERATORS)} SELECT y.b FROM {other} y"
            union = f"{SET_BEGINS}{union}{SET_ENDS}" if "SECT" in union or "EXCEPT" in union else union
            return f"{self.scalar(names, 'int')} {self.pick(('', 'NOT '))}IN ({union})"
        if roll == 4:
            outer = self.column(names, "int")[0]
            having = f" HAVING {self.pick(('COUNT(*)', f'MAX({alias}.b)'))} {self.pick(('>', '<='))} {self.random.randint(0, 3)}"
            return f"{outer} {self.pick(('', 'NOT '))}IN (SELECT {alias}.a FROM {table} {alias}{where} GROUP BY {alias}.a{having if self.chance(0.6) else ''})"
        word = self.pick(("ANY", "ALL"))
        correlated = f"{alias}.b {self.pick(('=', '<'))} {self.column(names, 'int')[0]}"
        return f"{self.column(names, 'int')[0]} {self.pick(('>', '<=', '=', '<>'))} {word} (SELECT {alias}.a FROM {table} {alias} WHERE {correlated})"

    def member(self, number):
        alias = f"t{number}"
        roll = self.random.random()
        if roll < 0.1:
            table = self.pick(TABLES)
            offset = f" OFFSET {self.random.randint(1, 3)}" if self.chance(0.3) else ""
            columns = {"id": "int", "a": "int", "s": "text", "t": "date", "d": "decimal"}
            return (f"(SELECT id, a, s, t, d FROM {table} x ORDER BY id{self.pick(('', ' DESC'))} LIMIT {self.random.randint(0, 6)}{offset}) {alias}",
                    (alias, columns))
        if roll < 0.45:
            return super().member(number)
        return queries.Maker.member(self, number)

    def joins(self):
        """Joins as those of the base, or with USING or joins in parentheses."""
        roll = self.random.random()
        if roll < 0.7:
            return queries.Maker.joins(self)
        self.joined_rows = max(self.ROWS)
        parts = [(f"{self.pick(TABLES)} t{number}", (f"t{number}", COLUMNS)) for number in range(3)]
        names = [own for _, own in parts]
        kinds = [self.pick(("JOIN", "LEFT JOIN", "RIGHT JOIN")) for _ in range(2)]
        if roll < 0.85:
            columns = self.pick(("a", "id", "b", "a, b", "s", "t, a"))
            return f"{parts[0][0]} {kinds[0]} {parts[1][0]} USING ({columns})", names[:2]
        inner = f"({parts[1][0]} {kinds[0]} {parts[2][0]} ON {self.column(names[1:2], 'int')[0]} = {self.column(names[2:], 'int')[0]})"
        on = f"{self.column(names[:1], 'int')[0]} = {self.column(names[1:], 'int')[0]}"
        if self.chance(0.4):
            on += f" AND {self.plain_condition(names)}"
        return f"{parts[0][0]} {kinds[1]} {inner} ON {on}", names

    def source_of(self):
        text, names = self.joins()
        return text, names, f" WHERE {self.condition(names)}" if self.chance(0.6) else ""

    def query(self):
        self.singles = []
        return self.pick((self.sets, self.sets, self.groups, self.groups, self.shared, self.plain, self.plain, self.nested))()

    def sets(self):
        """Set operations, with parentheses, and an order at the end."""
        kinds = [self.pick(("int", "text", "int", "date")) for _ in range(self.random.randint(1, 3))]

        def one(depth):
            if depth < 2 and self.chance(0.25):
                return f"({one(depth + 1)} {self.pick(OPERATORS)} {one(depth + 1)})"
            text, names, where = self.source_of()
            # MariaDB makes derived tables of members in parentheses, and those need names.
            items = ", ".join(f"{self.column(names, kind)[0]} c{place}" for place, kind in enumerate(kinds))
            return f"SELECT {items} FROM {text}{where}"

        made = one(0)
        for _ in range(self.random.randint(1, 2)):
            made += f" {self.pick(OPERATORS)} {one(1)}"
        if self.chance(0.3):
            made += f" ORDER BY {', '.join(str(place + 1) for place in range(len(kinds)))}"
            made += f" LIMIT {self.random.randint(0, 9)}" if self.chance(0.5) else ""
        return made

    def groups(self):
        """Groups by expressions, with HAVING, windows over the groups, an order and a limit."""
        text, names, where = self.source_of()
        keys = []
        for _ in range(self.random.randint(1, 2)):
            kind = self.pick(("int", "int", "text", "date"))
            key = self.scalar(names, kind) if self.chance(0.5) else self.column(names, kind)[0]
            # A constant is the place of a column in GROUP BY.
            if key not in keys and "t" in key.replace("DATE", "") and not key.startswith(("'", "-", "(-")):
                keys.append(key)
        keys = keys or ["t0.a"] if "a" in dict(names)["t0"] else keys
        if not keys:
            return self.plain()
        items = [f"{key} k{place}" for place, key in enumerate(keys)]
        items += [f"{self.aggregate(names)} g{place}" for place in range(self.random.randint(1, 3))]
        order = ", ".join(keys)
        has_window = self.chance(0.25)
        if has_window:
            inner = self.pick(("COUNT(*)", f"SUM({self.column(names, 'int')[0]})", f"MAX({self.column(names, 'int')[0]})"))
            items.append(self.pick((
                f"SUM({inner}) OVER (ORDER BY {order} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) w",
                f"RANK() OVER (ORDER BY {inner}) w", f"ROW_NUMBER() OVER (ORDER BY {order}) w",
                f"SUM({inner}) OVER (PARTITION BY {keys[0]}) w",
            )))
        made = f"SELECT {', '.join(items)} FROM {text}{where} GROUP BY {order}"
        # MariaDB loses the order of groups with windows, and groups of which HAVING reads other aggregates.
        if has_window:
            return made
        if self.chance(0.35):
            least = f"MIN({self.column(names, 'int')[0]})"
            made += f" HAVING {self.pick(('COUNT(*)', least))} "
            # MariaDB's answers to IN with a subquery are mostly wrong here.
            made += self.pick((f"> {self.random.randint(0, 2)}", f"<= (SELECT COUNT(*) FROM {self.pick(TABLES)} h)"))
        elif self.chance(0.3):
            made += f" ORDER BY {', '.join(str(place + 1) for place in range(len(keys)))}"
            made += f" LIMIT {self.random.randint(0, 6)}" if self.chance(0.6) else ""
        return made

    def shared(self):
        """A table of WITH that is read several times."""
        text, columns = self.rows_query(0)
        others = [("c0", columns), ("c1", columns)]
        key = self.pick(sorted(set(columns.values())))
        on = f"{self.column(others[:1], key)[0]} = {self.column(others[1:], key)[0]}"
        made = f"WITH w AS ({text})"
        kind = self.pick(("JOIN", "LEFT JOIN"))
        items = ", ".join(f"{self.column(others)[0]} i{place}" for place in range(3))
        where = f" WHERE {self.condition(others)}" if self.chance(0.4) else ""
        name = self.pick(sorted(columns))
        return made + self.pick((
            f" SELECT {items} FROM w c0 {kind} w c1 ON {on}{where}",
            f" SELECT c0.{name} FROM w c0 WHERE c0.{name} {self.pick(('', 'NOT '))}IN (SELECT c1.{name} FROM w c1 WHERE {self.comparison(others[1:])})",
            f" SELECT COUNT(*), COUNT(DISTINCT c0.{name}) FROM w c0 {kind} {self.pick(TABLES)} t9 ON {self.column(others[:1], key)[0]} = {self.column([('t9', COLUMNS)], key)[0]}",
            f", v AS (SELECT {name} k, COUNT(*) n FROM w GROUP BY {name}) SELECT c0.{name}, v.n FROM w c0 {kind} v ON v.k = c0.{name}",
            f" SELECT {name} FROM w {self.pick(('UNION ALL', 'EXCEPT', 'INTERSECT'))} SELECT {name} FROM w WHERE {self.comparison([('w', columns)])}",
        ))

    def plain(self):
        """Expressions and scalar subqueries in the select list; DISTINCT; an order and a limit."""
        text, names, where = self.source_of()
        items = [self.scalar(names, self.pick(("int", "int", "text", "decimal", "date"))) for _ in range(self.random.randint(1, 3))]
        if self.chance(0.4):
            table = self.pick(TABLES)
            inner = [("z", COLUMNS)]
            test = f"{self.column(inner, 'int')[0]} = {self.column(names, 'int')[0]}"
            test += f" AND {self.condition(inner + names, 2)}" if self.chance(0.4) else ""
            items.append(self.pick((
                f"(SELECT {self.pick(('MAX', 'MIN', 'SUM', 'COUNT'))}(z.b) FROM {table} z WHERE {test})",
                f"(SELECT z.s FROM {table} z WHERE {test} ORDER BY z.id LIMIT 1)",
                f"EXISTS (SELECT 1 FROM {table} z WHERE {test})",
                f"{self.column(names, 'int')[0]} IN (SELECT z.b FROM {table} z WHERE {test})",
            )))
        distinct = "DISTINCT " if self.chance(0.2) else ""
        shown = ", ".join(f"{item} c{place}" for place, item in enumerate(items))
        made = f"SELECT {distinct}{shown} FROM {text}{where}"
        if self.chance(0.3):
            made += " ORDER BY " + ", ".join(f"{place + 1}{self.pick(('', ' DESC'))}" for place in range(len(items)))
            made += f" LIMIT {self.random.randint(0, 7)}" if self.chance(0.5) else ""
        return made

    def nested(self):
        """A derived table of a query with groups or a limit, and conditions on it."""
        text, columns = self.rows_query(0)
        names = [("t0", columns)]
        condition = self.condition(names)
        return f"SELECT {self.scalar(names, 'int')} c0, COUNT(*) n FROM ({text}) t0 WHERE {condition} GROUP BY c0"
