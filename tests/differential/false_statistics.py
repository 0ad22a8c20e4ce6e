"""Answers random queries with the statistics of other rows, and again with those of their own. Both answers must be
those of MariaDB, and the plans must differ often enough: otherwise the statistics were not wrong."""

import argparse
import random
import sys

from queries import TABLES, Maker, connect, rows_of

BATCH = 50
# The ids of the rows that are sampled and then deleted: above those of the rows that stay.
FIRST_ID = 1000
# Of a sample of more rows than the tables ever have, with few values in some columns and many in others.
ROWS_MAX = 3000


def misleading(table, chance, counts=(ROWS_MAX, 500, 60)):
    """Statements that leave a table with the statistics of rows that it does not have."""
    rows = chance.choice(counts)
    ints = ["n MOD %d - 3" % chance.choice((1, 2, 12, rows)) for _ in range(2)]
    text = "ELT(n MOD %d + 1, 'a', 'b', 'ab', 'zz')" % chance.choice((1, 2, 4))
    date = "DATE_ADD('2024-01-01', INTERVAL n MOD %d DAY)" % chance.choice((1, 100))
    yield "SET cte_max_recursion_depth = %d" % (ROWS_MAX + 1)
    yield (
        f"INSERT INTO {table} (id, a, b, s, d, t) WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r "
        f"WHERE n < {rows}) SELECT n + {FIRST_ID}, {ints[0]}, {ints[1]}, {text}, n MOD 5, {date} FROM r"
    )
    yield f"ANALYZE TABLE {table}"
    yield f"DELETE FROM {table} WHERE id > {FIRST_ID}"


def plan_of(cursor, statement):
    """The operators of a query without figures; "" if it cannot be explained."""
    kind, _, rows = rows_of(cursor, "EXPLAIN FORMAT=TREE " + statement, False)
    if kind == "error":
        return ""
    lines = rows[0][0].split("\n")
    return "\n".join(line.split("(cost")[0] for line in lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--junctor", type=int, required=True)
    parser.add_argument("--mariadb", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--statements", type=int, default=1000)
    options = parser.parse_args()
    junctor, mariadb = connect(options.junctor), connect(options.mariadb)
    # The statistics stay wrong until ANALYZE.
    junctor.execute("SET GLOBAL innodb_stats_auto_recalc = OFF")
    maker, chance = Maker(options.seed), random.Random(options.seed)
    different = other_plans = asked = 0
    while asked < options.statements:
        for statement in maker.tables():
            junctor.execute(statement)
            mariadb.execute(statement)
        for table in TABLES:
            for statement in misleading(table, chance):
                junctor.execute(statement)
        statements = [maker.query() for _ in range(BATCH)]
        pairs = [statement if isinstance(statement, tuple) else (statement, statement) for statement in statements]
        wrong = [(rows_of(junctor, ours, False), plan_of(junctor, ours)) for ours, _ in pairs]
        for table in TABLES:
            junctor.execute(f"ANALYZE TABLE {table}")
        for (ours, theirs), (misled, plan) in zip(pairs, wrong):
            asked += 1
            right, expected = rows_of(junctor, ours, False), rows_of(mariadb, theirs, False)
            other_plans += plan != plan_of(junctor, ours)
            # MariaDB's answer of several windows can be wrong; queries.py looks into them.
            is_judged = "OVER" not in ours
            if misled[:2] != right[:2] or is_judged and right[:2] != expected[:2]:
                different += 1
                print(f"seed {options.seed}, statement {asked}: {ours};\n  with wrong statistics: {misled[0]} {misled[-1]}\n"
                      f"  with right ones: {right[0]} {right[-1]}\n  MariaDB: {expected[0]} {expected[-1]}")
    junctor.execute("SET GLOBAL innodb_stats_auto_recalc = DEFAULT")
    print(f"{asked} queries, {other_plans} with another plan, {different} differences")
    if other_plans < asked // 20 and not different:
        sys.exit("the statistics have changed too few plans")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
