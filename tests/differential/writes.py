"""Sends random UPDATE, DELETE, INSERT and REPLACE statements with joins, subqueries and views to Junctor and
MariaDB. After each, compares the counts or the error, and the rows of all tables."""

import argparse
import sys

import pymysql

from queries import COLUMNS, MODE, TABLES, Maker, shown

VIEWS = ("v0", "v1", "v2", "v3")


class WriteMaker(Maker):
    """Makes statements that write."""

    def __init__(self, seed, views):
        super().__init__(seed)
        self.uses_views = views
        self.views = {}
        self.checked = set()

    def define_views(self):
        """Views of one table, and views of them, with and without CHECK OPTION."""
        self.views = {}
        self.checked = set()
        for number, view in enumerate(VIEWS):
            yield f"DROP VIEW IF EXISTS {view}"
            known = [name for name in VIEWS[:number] if name in self.views]
            source = self.pick(known) if known and self.chance(0.3) else self.pick(TABLES)
            columns = dict(self.views[source]) if source in self.views else dict(COLUMNS)
            names = [name for name in columns if name == "id" or self.chance(0.8)]
            # The option of a view below holds in MySQL, but not in MariaDB, unless the view above has CASCADED.
            is_checked = source in self.checked or self.chance(0.3)
            where = ""
            if is_checked or self.chance(0.5):
                where = f" WHERE {self.simple([(source, columns)])}"
            check = ""
            if is_checked:
                self.checked.add(view)
                check = " WITH LOCAL CHECK OPTION" if source in TABLES and self.chance(0.3) else " WITH CHECK OPTION"
            renames = {name: (f"{name}{number}" if self.chance(0.2) and name != "id" else name) for name in names}
            items = ", ".join(f"{name} AS {renames[name]}" for name in names)
            algorithm = self.pick(("", "ALGORITHM=MERGE "))
            yield f"CREATE OR REPLACE {algorithm}VIEW {view} AS SELECT {items} FROM {source}{where}{check}"
            self.views[view] = {renames[name]: columns[name] for name in names}

    def simple(self, names):
        """A condition without subqueries over columns without qualifiers."""
        while True:
            made = self.condition(names, 1)
            if "SELECT" not in made:
                return made.replace(f"{names[0][0]}.", "")

    def target(self):
        """A table or view, and its columns."""
        if self.uses_views and self.chance(0.4):
            name = self.pick(VIEWS)
            return name, self.views[name]
        return self.pick(TABLES), COLUMNS

    def assignments(self, alias, columns, names, with_key=False):
        """Assignments of SET. Values read no assigned column, because the order of assignments differs."""
        writable = [name for name in columns if name != "id" or with_key]
        if not writable:
            return None
        chosen = self.random.sample(writable, self.random.randint(1, min(2, len(writable))))
        made = []
        for name in chosen:
            readable = [(of, {column: kind for column, kind in known.items() if not (of == alias and column in chosen)})
                        for of, known in names]
            kind = columns[name]
            if name == "id":
                value = f"{alias}.id + {self.pick((100, 200))}"
            elif kind in ("date", "decimal") or self.chance(0.3):
                value = self.value(kind)
            elif self.chance(0.25) and kind == "int":
                table = self.pick(TABLES)
                value = f"(SELECT {self.pick(('MAX', 'MIN', 'COUNT'))}(z.a) FROM {table} z WHERE z.b < {self.value('int')})"
            else:
                value = self.column(readable, kind)[0]
            made.append(f"{alias}.{name} = {value}")
        return ", ".join(made), chosen

    def where(self, names, share=0.7):
        return f" WHERE {self.condition(names)}" if self.chance(share) else ""

    def update(self):
        table, columns = self.target()
        names = [("t0", columns)]
        made = self.assignments("t0", columns, names)
        if made is None:
            return self.delete()
        ignore = "IGNORE " if self.chance(0.1) else ""
        tail = f" ORDER BY t0.id LIMIT {self.random.randint(0, 4)}" if self.chance(0.2) else ""
        return f"UPDATE {ignore}{table} t0 SET {made[0]}{self.where(names)}{tail}"

    def sources(self):
        """Joined members. The first is a table or view."""
        table, columns = self.target()
        text, names = f"{table} t0", [("t0", columns)]
        stored = ["t0"]
        for number in range(1, self.pick((2, 2, 3))):
            if self.chance(0.3):
                other, known = self.target()
                member, own, is_stored = f"{other} t{number}", (f"t{number}", known), True
            else:
                member, own = self.member(number)
                is_stored = "SELECT" not in member
            key = self.pick(("int", "int", "text"))
            on = f"{self.column(names, key)[0]} = {self.column([own], key)[0]}"
            kind = self.pick(("JOIN", "JOIN", "LEFT JOIN", "INNER JOIN"))
            text += f" {kind} {member} ON {on}"
            names = names + [own]
            if is_stored:
                stored.append(own[0])
        return text, names, stored

    def update_join(self):
        text, names, stored = self.sources()
        alias = self.pick(stored)
        columns = dict(names)[alias]
        made = self.assignments(alias, columns, names)
        if made is None:
            return self.delete()
        # A row that joins several others gets the values of one of them.
        values = made[0]
        for other in names:
            if other[0] != alias and f"{other[0]}." in values:
                values = f"{alias}.{made[1][0]} = {self.value(columns[made[1][0]])}"
                break
        return f"UPDATE {text} SET {values}{self.where(names)}"

    def delete(self):
        table, columns = self.target()
        names = [(table, columns)]
        tail = f" ORDER BY id LIMIT {self.random.randint(0, 3)}" if self.chance(0.2) else ""
        return f"DELETE FROM {table}{self.where(names, 0.9)}{tail}"

    def delete_join(self):
        text, names, stored = self.sources()
        targets = self.random.sample(stored, self.random.randint(1, len(stored)))
        where = self.where(names, 0.9)
        if self.chance(0.5):
            return f"DELETE {', '.join(targets)} FROM {text}{where}"
        return f"DELETE FROM {', '.join(targets)} USING {text}{where}"

    def insert(self):
        table, columns = self.target()
        rows = []
        for _ in range(self.pick((1, 1, 2, 3))):
            values = []
            for name, kind in columns.items():
                if name == "id":
                    values.append(str(self.random.randint(0, 40)))
                elif kind == "int" and self.chance(0.3):
                    other = self.pick(TABLES)
                    values.append(f"(SELECT {self.pick(('MAX', 'COUNT'))}(z.b) FROM {other} z WHERE z.a > {self.value('int')})")
                else:
                    values.append(self.value(kind))
            rows.append(f"({', '.join(values)})")
        verb = self.pick(("INSERT", "INSERT", "REPLACE", "INSERT IGNORE"))
        # CHECK OPTION and IGNORE: MySQL warns for each row, MariaDB fails if there is only one row.
        if verb == "INSERT IGNORE" and self.uses_views and table in self.checked:
            verb = "INSERT"
        made = f"{verb} INTO {table} ({', '.join(columns)}) VALUES {', '.join(rows)}"
        ints = [name for name, kind in columns.items() if kind == "int" and name != "id"]
        # Junctor refuses ON DUPLICATE KEY UPDATE through a view with CHECK OPTION.
        may_update = not self.uses_views or table not in self.checked
        if verb == "INSERT" and ints and may_update and self.chance(0.4):
            name, other = self.pick(ints), self.pick(TABLES)
            value = self.pick((f"VALUES({name})", f"(SELECT COUNT(*) FROM {other} z)", self.value("int")))
            made += f" ON DUPLICATE KEY UPDATE {name} = {value}"
        return made

    def insert_select(self):
        table, columns = self.target()
        text, names = self.joins()
        items = ["t0.id + %d" % self.random.choice((0, 50, 100))]
        items += [self.column(names, kind)[0] for name, kind in columns.items() if name != "id"]
        verb = self.pick(("INSERT IGNORE", "REPLACE", "INSERT"))
        order = ", ".join(str(place + 1) for place in range(len(items)))
        limit = f" LIMIT {self.random.randint(0, 6)}" if self.chance(0.5) else ""
        return f"{verb} INTO {table} ({', '.join(columns)}) SELECT {', '.join(items)} FROM {text}{self.where(names)} ORDER BY {order}{limit}"

    def statement(self):
        kinds = (self.update, self.update_join, self.update_join, self.delete, self.delete_join, self.insert,
                 self.insert, self.insert_select)
        if self.uses_views and self.chance(0.15):
            return self.select_view()
        return self.pick(kinds)()

    def select_view(self):
        view = self.pick(VIEWS)
        names = [("t0", self.views[view])]
        items = ", ".join(self.column(names)[0] for _ in range(2))
        if self.chance(0.4):
            other = self.pick(VIEWS + TABLES)
            own = ("t1", self.views.get(other, COLUMNS))
            kind = self.pick(("JOIN", "LEFT JOIN"))
            return (f"SELECT {items}, {self.column([own])[0]} FROM {view} t0 {kind} {other} t1 "
                    f"ON t0.id = t1.id{self.where(names + [own])}")
        return f"SELECT {items} FROM {view} t0{self.where(names)}"


def outcome(cursor, statement):
    try:
        count = cursor.execute(statement)
        rows = sorted(tuple(map(shown, row)) for row in cursor.fetchall() or ())
        return ("done", count, rows)
    except pymysql.err.Error as error:
        return ("error", error.args[0], str(error))


def contents(cursor):
    found = []
    for table in TABLES:
        cursor.execute(f"SELECT * FROM {table} ORDER BY id")
        found.append([tuple(map(shown, row)) for row in cursor.fetchall()])
    return found


def connect(port):
    connection = pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True, charset="utf8mb4")
    cursor = connection.cursor()
    cursor.execute("DROP DATABASE IF EXISTS writes_test")
    cursor.execute("CREATE DATABASE writes_test CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    cursor.execute("USE writes_test")
    cursor.execute(f"SET sql_mode = '{MODE}'")
    cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci")
    return cursor


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--junctor", type=int, required=True)
    parser.add_argument("--mariadb", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--statements", type=int, default=2000)
    parser.add_argument("--no-views", action="store_true")
    parser.add_argument("--keep-going", action="store_true")
    options = parser.parse_args()
    junctor, mariadb = connect(options.junctor), connect(options.mariadb)
    maker = WriteMaker(options.seed, not options.no_views)
    different = failed = refused = sent = 0
    renew = True
    while sent < options.statements:
        if renew or sent % 40 == 0:
            setup = list(maker.tables())
            if maker.uses_views:
                setup += maker.define_views()
            for statement in setup:
                junctor.execute(statement)
                mariadb.execute(statement)
            renew = False
        statement = maker.statement()
        ours = outcome(junctor, statement)
        sent += 1
        if ours[:2] == ("error", 1093):
            # MariaDB accepts subqueries of the target.
            refused += 1
            continue
        theirs = outcome(mariadb, statement)
        failed += theirs[0] == "error"
        same = ours[:2] == theirs[:2] if "error" in (ours[0], theirs[0]) else ours == theirs
        rows = (contents(junctor), contents(mariadb)) if same else (0, 1)
        if rows[0] != rows[1]:
            different += 1
            renew = True
            print(f"seed {options.seed}, statement {sent}: {statement};\n  Junctor: {ours}\n  MariaDB: {theirs}")
            if same:
                for table, left, right in zip(TABLES, *rows):
                    if left != right:
                        print(f"  {table}: {[row for row in left if row not in right]} {[row for row in right if row not in left]}")
            if not options.keep_going:
                break
    print(f"{sent} statements that write, {failed} errors in MariaDB, {refused} refused with 1093, {different} differences")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
