"""What an answer of MariaDB is worth, and the shortest script of a difference."""

import re

from connection import is_equal, is_late
from mixed import for_mariadb
from queries import TABLES

# Settings of MariaDB's optimizer, of which none may change an answer.
SWITCHES = (
    "optimizer_switch = 'index_merge=off,semijoin=off,materialization=off,derived_merge=off,subquery_cache=off,"
    "outer_join_with_cache=off,join_cache_incremental=off,join_cache_hashed=off,join_cache_bka=off,"
    "condition_pushdown_for_derived=off,split_materialized=off,condition_pushdown_for_subquery=off,exists_to_in=off,"
    "partial_match_rowid_merge=off,partial_match_table_scan=off,mrr=off,rowid_filter=off,"
    "condition_pushdown_from_having=off,table_elimination=off,derived_with_keys=off,firstmatch=off,loosescan=off,"
    "orderby_uses_equalities=off,extended_keys=off,index_condition_pushdown=off'",
    "optimizer_switch = 'in_to_exists=off'",
    "optimizer_switch = 'materialization=off,semijoin=off'",
    "optimizer_switch = 'derived_merge=off'",
    "optimizer_switch = 'subquery_cache=off'",
    "optimizer_switch = 'split_materialized=off,condition_pushdown_for_derived=off,condition_pushdown_from_having=off'",
    "optimizer_switch = 'exists_to_in=off,table_elimination=off'",
    "join_cache_level = 0",
    "join_cache_level = 8",
    "optimizer_use_condition_selectivity = 1",
    "optimizer_search_depth = 1",
)
TOKEN = re.compile(r"/\* \w+ \*/|'(?:[^']|'')*'|[\w.]+|<=>|<=|>=|<>|\s+|.")
ATTEMPTS_MAX = 500


def contradicts(mariadb, query, ours, views):
    """The setting with which MariaDB gives Junctor's rows; None if there is none. `views` has their definitions."""
    for setting in SWITCHES:
        name = setting.split(" ")[0]
        mariadb.send((f"SET {setting}", query.theirs, f"SET {name} = DEFAULT"))
        answer = [mariadb.read() for _ in range(3)][1]
        if answer.kind == "rows" and is_equal(ours, answer, query.is_ordered):
            return f"SET {setting}"
    text = query.theirs
    for name, definition in views.items():
        text = re.sub(rf"\b{name}\b", lambda _, inner=definition: f"({inner})", text)
    for engine in ("InnoDB", "MEMORY"):
        answer = of_bare_tables(mariadb, text, engine)
        if answer.kind == "rows" and is_equal(ours, answer, query.is_ordered):
            return f"tables of {engine} without keys"
    return None


def of_bare_tables(mariadb, text, engine):
    """The answer over tables of an engine without keys, and without views."""
    for table in TABLES:
        mariadb.run(f"DROP TEMPORARY TABLE IF EXISTS bare{table}")
        mariadb.run(f"CREATE TEMPORARY TABLE bare{table} ENGINE = {engine} AS SELECT * FROM {table}")
    answer = mariadb.run(re.sub(r"\b(?=q[0-3]\b)", "bare", text))
    for table in TABLES:
        mariadb.run(f"DROP TEMPORARY TABLE bare{table}")
    return answer


def singles_agree(junctor, mariadb, query, ours):
    """MariaDB's answer of several windows can be wrong where those of each window are right. Junctor's must have the
    values of each."""
    if not query.singles:
        return False
    columns = list(zip(*ours.shown()))[-len(query.singles) :]
    for number, single in enumerate(query.singles):
        own, theirs = junctor.run(single), mariadb.run(single)
        if own.kind != "rows" or not is_equal(own, theirs):
            return False
        if "SELECT DISTINCT" not in query.ours and ours.raw and sorted(columns[number]) != sorted(row[0] for row in own.shown()):
            return False
    return True


class Shrinker:
    """Deletes parts of a query and rows of its tables while two answers differ. `ask` maps the texts of a query to the
    pair of answers."""

    def __init__(self, junctor, mariadb, episode, rows):
        self.junctor, self.mariadb = junctor, mariadb
        definitions = episode.tables
        mariadb.run(f"SET default_storage_engine = {episode.engine}")
        self.definitions, self.rows = definitions, rows
        self.attempts = 0

    def load(self):
        for server in (self.junctor, self.mariadb):
            statements = []
            for table in TABLES:
                statements.append(f"DELETE FROM {table}")
                if self.rows[table]:
                    statements.append(f"INSERT INTO {table} VALUES " + ", ".join(self.rows[table]))
            server.run_all(statements)

    def create(self):
        definitions = ["ROLLBACK"] + [text for text in self.definitions if not text.startswith(("INSERT", "DELETE"))]
        self.junctor.run_all(definitions)
        self.mariadb.run_all(list(map(for_mariadb, definitions)))
        self.load()

    def differs(self, text, other, errors):
        self.attempts += 1
        ours, theirs = self.junctor.run(text), self.mariadb.run(other)
        if is_late(ours, theirs) or (ours.number, theirs.number) != errors:
            return False
        return not is_equal(ours, theirs)

    def text(self, text, other, errors):
        """The shortest text found. Texts that differ for both servers are left alone."""
        if for_mariadb(text) != other:
            return text, other
        tokens = TOKEN.findall(text)
        size = len(tokens) // 2
        while size and self.attempts < ATTEMPTS_MAX:
            at = 0
            while at < len(tokens) and self.attempts < ATTEMPTS_MAX:
                tried = tokens[:at] + tokens[at + size :]
                if self.differs("".join(tried), for_mariadb("".join(tried)), errors):
                    tokens = tried
                else:
                    at += max(1, size // 2)
            size = size // 2 if size > 1 else 0
        return "".join(tokens), for_mariadb("".join(tokens))

    def fewer_rows(self, text, other, errors):
        for table in TABLES:
            size = len(self.rows[table])
            while size:
                at = 0
                while at < len(self.rows[table]) and self.attempts < ATTEMPTS_MAX:
                    kept = self.rows[table]
                    self.rows[table] = kept[:at] + kept[at + size :]
                    self.load()
                    if not self.differs(text, other, errors):
                        self.rows[table] = kept
                        at += size
                size //= 2
        self.load()

    def script(self, text, other, errors):
        """The shortest script as text; None if the difference needs the transaction or the session."""
        self.create()
        if not self.differs(text, other, errors):
            return None
        text, other = self.text(text, other, errors)
        self.attempts = min(self.attempts, ATTEMPTS_MAX // 2)
        self.fewer_rows(text, other, errors)
        self.attempts = min(self.attempts, ATTEMPTS_MAX * 3 // 4)
        text, other = self.text(text, other, errors)
        used = [table for table in TABLES if re.search(rf"\b{table}\b", text) or "v0" in text or "v1" in text]
        lines = [line for line in self.definitions if line.startswith("CREATE") and any(
            re.search(rf"\b{name}\b", line.split("(")[0]) for name in used + re.findall(r"\bv[01]\b", text))]
        lines += [f"INSERT INTO {table} VALUES " + ", ".join(self.rows[table]) for table in used if self.rows[table]]
        lines.append(text)
        answers = [f"  Junctor: {self.junctor.run(text)}", f"  MariaDB: {self.mariadb.run(other)}"]
        if text != other:
            lines.append(f"-- MariaDB: {other}")
        return ";\n".join(lines) + ";\n" + "\n".join(answers)
