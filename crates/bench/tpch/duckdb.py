"""Runs the queries in DuckDB, from the package of the same name on PyPI. Prints each time in milliseconds."""

import re
import sys
import time

import duckdb

folder, threads, repetitions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
connection = duckdb.connect()
connection.execute(f"SET threads = {threads}")
for statement in open(f"{folder}/schema.sql").read().split(";\n"):
    if not statement.strip():
        continue
    # Only the primary keys: DuckDB has no KEY clause and reads whole columns.
    connection.execute(re.sub(r",\s+KEY \w+ \([^)]*\)", "", statement))
    table = statement.split()[2]
    connection.execute(f"COPY {table} FROM '{folder}/{table}.tbl' (DELIMITER '|', HEADER false)")
for number, text in enumerate(open(f"{folder}/queries.sql").read().split(";\n"), 1):
    if not text.strip():
        continue
    times = []
    for _ in range(repetitions + 1):
        start = time.perf_counter()
        rows = connection.execute(text).fetchall()
        times.append((time.perf_counter() - start) * 1000)
    print(number, sorted(times[1:])[len(times[1:]) // 2], len(rows), flush=True)
