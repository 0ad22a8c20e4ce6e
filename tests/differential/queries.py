"""Sends random queries of several tables to Junctor and MariaDB and compares the rows. With --spill, Junctor also
answers them with so little memory that operators write rows to temporary files, and both answers must be equal."""

import argparse
import random
import re
import sys

import pymysql

TABLES = ("q0", "q1", "q2", "q3")
COLUMNS = {"id": "int", "a": "int", "b": "int", "s": "text", "d": "decimal", "t": "date"}
MODE = "STRICT_TRANS_TABLES"
# The least tmp_table_size. The tables have few rows.
LITTLE_MEMORY = 1024


class Maker:
    """Makes statements from a seed."""

    # Numbers of tables in a join, and of rows of a table.
    JOINS = (1, 2, 2, 3, 3, 4)
    ROWS = (1, 3, 8, 25)
    # The columns that no two rows of a table share.
    KEY = ("id",)

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.nesting = 1
        # An estimate of the rows of the last join.
        self.joined_rows = 0
        # The window functions of the last query, each in a query of its own.
        self.singles = []

    def pick(self, items):
        return self.random.choice(list(items))

    def chance(self, share):
        return self.random.random() < share

    def value(self, kind):
        if self.chance(0.15):
            return "NULL"
        if kind == "int":
            return str(self.random.randint(-3, 8))
        if kind == "text":
            return "'%s'" % self.pick(("", "a", "b", "A", "ab", "b ", "c", "zz"))
        if kind == "decimal":
            return "%d.%02d" % (self.random.randint(-2, 5), self.random.choice((0, 25, 50)))
        return "'2024-0%d-0%d'" % (self.random.randint(1, 3), self.random.randint(1, 4))

    def tables(self):
        for number, table in enumerate(TABLES):
            yield f"DROP TABLE IF EXISTS {table}"
            keys = self.random.sample(
                ["KEY (a)", "KEY (b, a)", "KEY (s)", "UNIQUE KEY (a, id)", "KEY (t)"], self.random.randint(0, 3)
            )
            definitions = ["id INT NOT NULL PRIMARY KEY", "a INT", "b INT", "s VARCHAR(10)", "d DECIMAL(8,2)", "t DATE"]
            yield f"CREATE TABLE {table} ({', '.join(definitions + keys)})"
            yield from self.rows(table)

    def rows(self, table):
        yield f"DELETE FROM {table}"
        count = 0 if self.chance(0.1) else self.random.choice(self.ROWS)
        for row in range(count):
            values = [str(row)] + [self.value(kind) for name, kind in COLUMNS.items() if name != "id"]
            yield f"INSERT INTO {table} VALUES ({', '.join(values)})"

    def change(self):
        table = self.pick(TABLES)
        kind = self.random.randint(0, 2)
        if kind == 0:
            values = [self.value(kind) for name, kind in COLUMNS.items() if name != "id"]
            return f"REPLACE INTO {table} VALUES ({self.random.randint(0, 30)}, {', '.join(values)})"
        if kind == 1:
            return f"UPDATE {table} SET a = {self.value('int')} WHERE id = {self.random.randint(0, 9)}"
        return f"DELETE FROM {table} WHERE id = {self.random.randint(0, 9)}"

    def column(self, names, kind=None):
        """A column of one of the named tables: a list of (alias, columns)."""
        fitting = [(alias, name) for alias, columns in names for name, of in columns.items() if kind in (None, of)]
        if not fitting:
            return self.value(kind or "int"), kind or "int"
        alias, name = self.pick(fitting)
        kinds = dict(names)[alias]
        return f"{alias}.{name}", kinds[name]

    def scalar(self, names, kind, depth=0):
        roll = self.random.random()
        if roll < 0.55:
            return self.column(names, kind)[0]
        if roll < 0.75:
            return self.value(kind)
        if kind == "int":
            left, right = self.scalar(names, kind, depth + 1), self.scalar(names, kind, depth + 1)
            return self.pick((f"({left} + {right})", f"({left} - {right})", f"({left} * {right})",
                              f"COALESCE({left}, {right})", f"ABS({left})", f"CASE WHEN {left} > 1 THEN {right} ELSE 0 END"))
        if kind == "text":
            inner = self.column(names, kind)[0]
            return self.pick((f"CONCAT({inner}, 'x')", f"UPPER({inner})", f"COALESCE({inner}, 'n')"))
        return self.column(names, kind)[0]

    def condition(self, names, depth=0):
        roll = self.random.random()
        if roll < 0.2 and depth < 2:
            word = self.pick((" AND ", " OR "))
            return "(" + word.join(self.condition(names, depth + 1) for _ in range(2)) + ")"
        if roll < 0.27 and depth < 2:
            return f"NOT ({self.condition(names, depth + 1)})"
        kind = self.pick(("int", "int", "int", "text", "decimal", "date"))
        left = self.scalar(names, kind)
        if roll < 0.37:
            return f"{left} IS {self.pick(('', 'NOT '))}NULL"
        if roll < 0.47:
            values = ", ".join(self.value(kind) for _ in range(self.random.randint(1, 3)))
            return f"{left} {self.pick(('', 'NOT '))}IN ({values})"
        if roll < 0.55:
            return f"{left} BETWEEN {self.value(kind)} AND {self.value(kind)}"
        if roll < 0.70 and depth < 2:
            return self.subquery(names)
        operator = self.pick(("=", "=", "=", "<", ">", "<=", ">=", "<>", "<=>"))
        return f"{left} {operator} {self.scalar(names, kind)}"

    def subquery(self, names):
        table = self.pick(TABLES)
        alias = f"s{self.random.randint(0, 999)}"
        inner = [(alias, COLUMNS)]
        # Subqueries in subqueries, to depth 3.
        where = self.condition(inner, 2) if self.chance(0.5) else "1"
        if self.nesting < 3 and self.chance(0.3):
            self.nesting += 1
            where += f" AND {self.subquery(inner if self.chance(0.5) else inner + names)}"
            self.nesting -= 1
        if self.chance(0.5):
            kind = self.pick(("int", "int", "text"))
            where += f" AND {self.column(inner, kind)[0]} = {self.column(names, kind)[0]}"
        roll = self.random.randint(0, 4)
        kind = self.pick(("int", "text"))
        if roll == 0:
            return f"{self.pick(('', 'NOT '))}EXISTS (SELECT 1 FROM {table} {alias} WHERE {where})"
        if roll == 1:
            value = self.column(inner, kind)[0]
            return f"{self.scalar(names, kind)} {self.pick(('', 'NOT '))}IN (SELECT {value} FROM {table} {alias} WHERE {where})"
        if roll == 2:
            function = self.pick(("MAX", "MIN", "COUNT", "SUM"))
            value = self.column(inner, "int")[0]
            return f"{self.scalar(names, 'int')} {self.pick(('<', '>', '='))} (SELECT {function}({value}) FROM {table} {alias} WHERE {where})"
        if roll == 3:
            operator = self.pick(("=", "<", ">=", "<>"))
            value = self.column(inner, kind)[0]
            return f"{self.scalar(names, kind)} {operator} {self.pick(('ANY', 'ALL'))} (SELECT {value} FROM {table} {alias} WHERE {where})"
        return f"(SELECT COUNT(*) FROM {table} {alias} WHERE {where}) {self.pick(('=', '>'))} {self.random.randint(0, 3)}"

    def member(self, number):
        """A member of FROM and its names."""
        alias = f"t{number}"
        if self.chance(0.15):
            table = self.pick(TABLES)
            inner = [("x", COLUMNS)]
            where = f" WHERE {self.condition(inner, 2)}" if self.chance(0.4) else ""
            if self.chance(0.5):
                return (f"(SELECT a, s, COUNT(*) id, SUM(b) b FROM {table} x{where} GROUP BY a, s) {alias}",
                        (alias, {"a": "int", "s": "text", "id": "int", "b": "int"}))
            return (f"(SELECT id, a, b, s FROM {table} x{where}) {alias}",
                    (alias, {"id": "int", "a": "int", "b": "int", "s": "text"}))
        return f"{self.pick(TABLES)} {alias}", (alias, COLUMNS)

    def joins(self):
        count = self.pick(self.JOINS)
        text, first = self.member(0)
        names = [first]
        self.joined_rows = max(self.ROWS)
        for number in range(1, count):
            member, own = self.member(number)
            is_by_key = True
            kind = self.pick(("JOIN", "LEFT JOIN", "RIGHT JOIN", "INNER JOIN", "CROSS JOIN", "LEFT JOIN"))
            if kind == "CROSS JOIN" and self.chance(0.6):
                kind = "JOIN"
            both = names + [own]
            if kind == "CROSS JOIN":
                text += f" CROSS JOIN {member}"
                is_by_key = False
            else:
                key = self.pick(("int", "int", "int", "text"))
                on = f"{self.column(names, key)[0]} = {self.column([own], key)[0]}"
                if self.chance(0.15):
                    on = self.plain_condition(both)
                    is_by_key = False
                elif self.chance(0.3):
                    on += f" AND {self.plain_condition(both)}"
                elif self.chance(0.1):
                    # A subquery in ON that reads one side.
                    on += f" AND {self.subquery(self.pick((names, [own])))}"
                text += f" {kind} {member} ON {on}"
            # A key has at least six values that are frequent.
            self.joined_rows *= max(self.ROWS) / 6 if is_by_key else max(self.ROWS)
            names = both
        return text, names

    def plain_condition(self, names):
        """A condition of ON. With `=` and `<=>` of the same columns, MariaDB joins rows whose columns are NULL."""
        while True:
            made = self.condition(names, 1)
            if "SELECT" not in made and "<=>" not in made:
                return made

    def query(self):
        self.singles = []
        text, names = self.joins()
        where = f" WHERE {self.condition(names)}" if self.chance(0.6) else ""
        if self.chance(0.35):
            return self.grouped(text, names, where)
        if self.chance(0.3):
            return self.windowed(text, names, where)
        if self.chance(0.15):
            return self.common(text, names, where)
        if self.chance(0.15):
            return self.pick((self.lateral, self.document))(text, names, where)
        items = []
        for number in range(self.random.randint(1, 4)):
            kind = self.pick(("int", "int", "text", "decimal", "date"))
            items.append(f"{self.scalar(names, kind)} c{number}")
        if self.chance(0.1):
            table = self.pick(TABLES)
            items.append(f"(SELECT COUNT(*) FROM {table} z WHERE z.a = {self.column(names, 'int')[0]}) n")
        distinct = "DISTINCT " if self.chance(0.2) else ""
        made = f"SELECT {distinct}{', '.join(items)} FROM {text}{where}"
        if self.chance(0.15):
            other = ", ".join(self.value("int") for _ in items)
            made += f" {self.pick(('UNION', 'UNION ALL'))} SELECT {other}"
            return made
        if self.chance(0.3):
            order = ", ".join(f"{place + 1}{self.pick(('', ' DESC'))}" for place in range(len(items)))
            made += f" ORDER BY {order}"
            if self.chance(0.5) and "d " not in made:
                made += f" LIMIT {self.random.randint(0, 5)}"
        return made

    def common(self, text, names, where):
        """A query with WITH, which may be recursive."""
        column = self.column(names, "int")[0]
        kind = self.random.randint(0, 3)
        if kind == 0:
            table, key = self.pick(TABLES), self.pick(("a", "b"))
            inner = [("c", COLUMNS)]
            where = f" WHERE {self.condition(inner, 2)}" if self.chance(0.5) else ""
            keys = "c.a" if key == "a" else "c.b, c.a"
            return (f"WITH c AS (SELECT * FROM {table} c{where}), d AS (SELECT {keys}, COUNT(*) n FROM c GROUP BY {keys}) "
                    f"SELECT c.id, d.n FROM c LEFT JOIN d ON c.{key} = d.{key}")
        if kind == 1:
            last, step = self.random.randint(1, 12), self.random.randint(1, 3)
            return (f"WITH RECURSIVE r AS (SELECT {self.random.randint(-2, 3)} n UNION ALL SELECT n + {step} FROM r WHERE n < {last}) "
                    f"SELECT r.n, COUNT({column}), SUM({column}) FROM r LEFT JOIN ({self.keys_of(text, names, where)}) x ON x.k = r.n"
                    .replace(f"({column})", "(x.k)") + " GROUP BY r.n")
        table = self.pick(TABLES)
        back = self.pick(("a", "b"))
        if kind == 2:
            # UNION DISTINCT ends even where rows refer to each other.
            return (f"WITH RECURSIVE r AS (SELECT id, {back} FROM {table} WHERE id < {self.random.randint(0, 9)} "
                    f"UNION SELECT t.id, t.{back} FROM r JOIN {table} t ON t.id = r.{back}) SELECT * FROM r")
        return (f"WITH RECURSIVE r AS (SELECT id, {back} k, 0 n FROM {table} WHERE id < {self.random.randint(0, 9)} "
                f"UNION ALL SELECT t.id, t.{back}, n + 1 FROM {table} t, r WHERE t.{back} = r.k AND n < {self.random.randint(1, 3)} "
                f"AND t.id > r.id) SELECT n, COUNT(*), SUM(id) FROM r GROUP BY n")

    def lateral(self, text, names, where):
        """A query with LATERAL, and one without that has the same rows, because MariaDB has no LATERAL."""
        table = self.pick(TABLES)
        inner = [("l", COLUMNS)]
        condition = f"{self.column(inner, 'int')[0]} {self.pick(('=', '=', '<'))} {self.column(names, 'int')[0]}"
        if self.chance(0.4):
            condition += f" AND {self.plain_condition(inner)}"
        item = self.column(names)[0]
        if self.chance(0.5):
            function = self.pick(("COUNT(*)", "MAX(l.a)", "SUM(l.b)", "MIN(l.s)"))
            return (f"SELECT {item} c0, d.v FROM ({text}), LATERAL (SELECT {function} v FROM {table} l WHERE {condition}) d{where}",
                    f"SELECT {item} c0, (SELECT {function} v FROM {table} l WHERE {condition}) v FROM {text}{where}")
        column = self.column(inner)[0]
        kind = self.pick(("JOIN", "LEFT JOIN"))
        return (f"SELECT {item} c0, d.v FROM ({text}) {kind} LATERAL (SELECT {column} v FROM {table} l WHERE {condition}) d ON TRUE{where}",
                f"SELECT {item} c0, {column} v FROM ({text}) {kind} {table} l ON {condition}{where}")

    def document(self, text, names, where):
        """A query with JSON_TABLE over a constant document or one made of columns."""
        column = self.column(names, "int")[0]
        kind = self.pick(("JOIN", "LEFT JOIN"))
        document = self.pick((
            "'[{\"a\": 1, \"b\": [1, 2]}, {\"a\": \"6\"}, {\"b\": [3]}, {\"a\": [4]}]'",
            f"CONCAT('[{{\"a\": ', COALESCE({column}, 'null'), ', \"b\": [', COALESCE({column}, 0), ', 2]}}, {{\"a\": 5}}]')",
            f"JSON_ARRAY(JSON_OBJECT('a', {column}), JSON_OBJECT('b', JSON_ARRAY({column}, 1)))",
        ))
        value = self.pick(("a INT PATH '$.a' DEFAULT '7' ON EMPTY", "a INT PATH '$.a'", "a VARCHAR(20) PATH '$.a'",
                           "a INT EXISTS PATH '$.a'", "a INT PATH '$.a' DEFAULT '8' ON EMPTY DEFAULT '9' ON ERROR"))
        nested = self.pick(("", ", NESTED PATH '$.b[*]' COLUMNS (o FOR ORDINALITY, b INT PATH '$')"))
        items = "j.n, j.a" + (", j.o, j.b" if nested else "")
        # In MariaDB, WHERE of a column of JSON_TABLE in an outer join removes other rows.
        table = f"JSON_TABLE({document}, '$[*]' COLUMNS (n FOR ORDINALITY, {value}{nested})) j"
        return f"SELECT {self.column(names)[0]} c0, {items} FROM {text} {kind} {table} ON 1 = 1{where}"

    def keys_of(self, text, names, where):
        return f"SELECT {self.column(names, 'int')[0]} k FROM {text}{where}"

    def windowed(self, text, names, where):
        items = [f"{self.column(names)[0]} c{number}" for number in range(self.random.randint(0, 2))]
        windows = []
        singles = []
        for number in range(self.random.randint(1, 3)):
            function, window = self.window_function(names)
            singles.append(f"SELECT {function} OVER ({window}) f FROM {text}{where}")
            if self.chance(0.3):
                windows.append(f"w{number} AS ({window})")
                items.append(f"{function} OVER w{number} f{number}")
            else:
                items.append(f"{function} OVER ({window}) f{number}")
        distinct = "DISTINCT " if self.chance(0.1) else ""
        made = f"SELECT {distinct}{', '.join(items)} FROM {text}{where}"
        self.singles = singles if len(singles) > 1 else []
        if windows:
            made += f" WINDOW {', '.join(windows)}"
        return made

    def window_function(self, names):
        """A window function and its window. The order of rows decides about some functions; it has no ties."""
        partition = [self.column(names)[0] for _ in range(self.pick((0, 0, 1, 1, 2)))]
        keys = [f"{self.scalar(names, self.pick(('int', 'text', 'decimal', 'date')))}{self.pick(('', ' DESC'))}"
                for _ in range(self.pick((0, 1, 1, 2)))]
        # A constant key of a window is an error in MySQL if it is an integer.
        keys = [key for key in keys if "t" in key.replace("DATE", "") and not key.startswith("'")]
        total = [f"{alias}.{name}" for alias, columns in names for name in (self.KEY if columns is COLUMNS else columns)]
        value = self.scalar(names, self.pick(("int", "text", "decimal", "date")))
        number = self.scalar(names, self.pick(("int", "decimal")))
        by = f"PARTITION BY {', '.join(partition)} " if partition else ""
        roll = self.random.randint(0, 4)
        if roll == 0:
            function = self.pick(("RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()"))
            return function, f"{by}ORDER BY {', '.join(keys or total)}"
        order = f"ORDER BY {', '.join(keys + total)}"
        if roll == 1:
            near = self.random.randint(0, 3)
            function = self.pick(("ROW_NUMBER()", f"NTILE({near + 1})", f"LAG({value}, {near})",
                                  f"LEAD({value}, {near})", f"LEAD({value})"))
            return function, by + order
        functions = ["COUNT(*)", f"COUNT({value})", f"SUM({number})", f"AVG({number})", f"MIN({value})", f"MAX({value})"]
        values = [f"FIRST_VALUE({value})", f"LAST_VALUE({value})", f"NTH_VALUE({value}, {self.random.randint(1, 3)})"]
        if roll == 2:
            # MariaDB keeps bits of rows that have left a frame.
            functions.append(f"BIT_OR({self.scalar(names, 'int')})")
            return self.pick(functions), by + (f"ORDER BY {', '.join(keys)}" if keys else "")
        if roll == 3:
            frame = self.frame(("UNBOUNDED", "CURRENT ROW", "1", "2", "5"))
            return self.pick(functions + values), f"{by}{order} ROWS {frame}"
        key = f"{self.column(names, self.pick(('int', 'decimal')))[0]}{self.pick(('', ' DESC'))}"
        frame = self.frame(("UNBOUNDED", "CURRENT ROW", "1", "2", "3"))
        if not key.startswith("t"):
            return "COUNT(*)", by
        return self.pick(functions), f"{by}ORDER BY {key} RANGE {frame}"

    def frame(self, distances):
        ranks = {"UNBOUNDED PRECEDING": 0, "PRECEDING": 1, "CURRENT ROW": 2, "FOLLOWING": 3, "UNBOUNDED FOLLOWING": 4}
        while True:
            bounds = []
            for _ in range(2):
                distance = self.pick(distances)
                side = self.pick(("PRECEDING", "FOLLOWING"))
                bounds.append(distance if distance == "CURRENT ROW" else f"{distance} {side}")
            rank = [ranks.get(bound, ranks.get(bound.split(" ")[-1])) for bound in bounds]
            # MariaDB has rows in frames that end before they begin.
            near = [int(bound[0]) if bound[0].isdigit() else 0 for bound in bounds]
            is_reversed = rank[0] == rank[1] and (near[0] < near[1] if rank[0] == 1 else near[0] > near[1])
            if rank[0] <= rank[1] and rank[0] < 4 and rank[1] > 0 and not is_reversed:
                return f"BETWEEN {bounds[0]} AND {bounds[1]}"

    def aggregate(self, names):
        kind = self.pick(("int", "int", "decimal", "text"))
        value = self.scalar(names, kind)
        numeric = self.scalar(names, self.pick(("int", "decimal")))
        return self.pick((
            "COUNT(*)", f"COUNT({value})", f"SUM({numeric})", f"AVG({numeric})", f"MIN({value})", f"MAX({value})",
            f"COUNT(DISTINCT {value})", f"SUM(DISTINCT {numeric})", f"COUNT(DISTINCT {value}, {numeric})",
            f"BIT_OR({self.scalar(names, 'int')})", f"BIT_AND({self.scalar(names, 'int')})",
            f"GROUP_CONCAT(DISTINCT {numeric} ORDER BY 1)",
        ))

    def grouped(self, text, names, where):
        keys = []
        for _ in range(self.random.randint(0, 2)):
            key = self.column(names)[0]
            if key not in keys:
                keys.append(key)
        items = [f"{key} k{place}" for place, key in enumerate(keys)]
        items += [f"{self.aggregate(names)} g{place}" for place in range(self.random.randint(1, 3))]
        made = f"SELECT {', '.join(items)} FROM {text}{where}"
        if keys:
            made += f" GROUP BY {', '.join(keys)}"
            # MariaDB adds up the distinct values of groups for the rows of ROLLUP.
            if self.chance(0.1) and "DISTINCT" not in made:
                made += " WITH ROLLUP"
                return made
        if self.chance(0.3):
            made += f" HAVING {self.pick(('COUNT(*)', 'SUM(t0.id)', 'MAX(t0.a)'))} {self.pick(('>', '<', '='))} {self.random.randint(0, 5)}"
        return made


def shown(value):
    """A value as compared. Text is compared without letter case and the spaces at its end or before the x of CONCAT,
    of which a group keeps those of any of its rows."""
    if isinstance(value, float):
        return "%.7g" % round(value, 7)
    if value is None:
        return "NULL"
    text = str(value)
    try:
        number = float(text)
        # -0 and 0 are equal: which of them a group shows depends on the order of its rows.
        return "%.7g" % (round(number, 7) + 0.0)
    except ValueError:
        return re.sub(" +(?=x*$)", "", text.lower())


def rows_of(cursor, statement, prepared):
    try:
        if prepared:
            cursor.execute("PREPARE p FROM '%s'" % statement.replace("'", "''"))
            cursor.execute("EXECUTE p")
        else:
            cursor.execute(statement)
        found = [tuple(map(shown, row)) for row in cursor.fetchall() or ()]
        return ("rows", sorted(found), found)
    except pymysql.err.Error as error:
        return ("error", error.args[0], str(error))


def rows_with_little_memory(cursor, statement, prepared):
    cursor.execute(f"SET tmp_table_size = {LITTLE_MEMORY}")
    found = rows_of(cursor, statement, prepared)
    cursor.execute("SET tmp_table_size = DEFAULT")
    return found


def connect(port):
    connection = pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True, charset="utf8mb4")
    cursor = connection.cursor()
    cursor.execute("DROP DATABASE IF EXISTS queries_test")
    cursor.execute("CREATE DATABASE queries_test CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    cursor.execute("USE queries_test")
    cursor.execute(f"SET sql_mode = '{MODE}'")
    cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci")
    return cursor


def main():
    # They need this module.
    import composite_keys
    import correlated
    import derived

    parser = argparse.ArgumentParser()
    parser.add_argument("--junctor", type=int, required=True)
    parser.add_argument("--mariadb", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--statements", type=int, default=2000)
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--spill", action="store_true")
    parser.add_argument("--composite", action="store_true", help="joins by keys of several columns")
    parser.add_argument("--correlated", action="store_true", help="correlated subqueries over more rows")
    parser.add_argument("--derived", action="store_true", help="conditions on derived tables and views")
    options = parser.parse_args()
    junctor, mariadb = connect(options.junctor), connect(options.mariadb)
    chosen = ((options.composite, composite_keys), (options.derived, derived), (options.correlated, correlated))
    module = next((module for is_chosen, module in chosen if is_chosen), sys.modules[__name__])
    maker = module.Maker(options.seed)
    different = failed = 0
    for number in range(options.statements):
        if number % 100 == 0:
            for cursor in (junctor, mariadb):
                cursor.execute("ROLLBACK")
            for statement in maker.tables():
                junctor.execute(statement)
                mariadb.execute(statement)
            if maker.chance(0.5):
                # Statistics change no answer, even if they are those of other rows.
                for table in TABLES:
                    junctor.execute(f"ANALYZE TABLE {table}")
                for statement in [statement for table in TABLES if maker.chance(0.5) for statement in maker.rows(table)]:
                    junctor.execute(statement)
                    mariadb.execute(statement)
            in_transaction = maker.chance(0.4)
            if in_transaction:
                for cursor in (junctor, mariadb):
                    cursor.execute("BEGIN")
        if in_transaction and maker.chance(0.2):
            statement = maker.change()
            for cursor in (junctor, mariadb):
                cursor.execute(statement)
        statement, prepared = maker.query(), maker.chance(0.2)
        statement, other = statement if isinstance(statement, tuple) else (statement, statement)
        ours, theirs = rows_of(junctor, statement, prepared), rows_of(mariadb, other, prepared)
        failed += theirs[0] == "error"
        # MariaDB cannot test the conditions of some queries inside derived tables, and refuses them.
        is_refused = options.derived and theirs[:2] == ("error", 1235)
        is_different = ours[:2] != theirs[:2] and not is_refused
        if is_different and maker.singles and "error" not in (ours[0], theirs[0]):
            # MariaDB's answer of several windows can be wrong where those of each window are right.
            answers = [(rows_of(junctor, single, False)[1], rows_of(mariadb, single, False)[1]) for single in maker.singles]
            is_different = any(left != right for left, right in answers)
        if options.spill:
            small = rows_with_little_memory(junctor, statement, prepared)
            if small[:2] != ours[:2]:
                different += 1
                print(f"seed {options.seed}, statement {number}: {statement};\n  Junctor: {ours[0]} {ours[-1]}\n"
                      f"  Junctor with little memory: {small[0]} {small[-1]}")
                if not options.keep_going:
                    break
        if is_different:
            different += 1
            print(f"seed {options.seed}, statement {number}: {statement};\n  Junctor: {ours[0]} {ours[-1]}\n"
                  f"  MariaDB: {theirs[0]} {theirs[-1]}")
            if not options.keep_going:
                break
    if options.spill:
        junctor.execute("SELECT SUM(value) FROM junctor_info.counters WHERE name = 'temporary_files'")
        files = int(junctor.fetchone()[0])
        print(f"{files} queries wrote temporary files")
        # Reads by keys, and rows that conditions have left, are few in memory.
        files_min = options.statements // (8 if options.composite or options.derived else 4)
        if files < files_min and not different:
            sys.exit("too few queries wrote temporary files")
    print(f"{options.statements} queries, {failed} errors in MariaDB, {different} differences")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
