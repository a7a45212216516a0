#!/usr/bin/env python3
"""Compares tables of two folders cell by cell: exactly, but for ideal time, which may differ by 1 or 1e-9.

    python3 benches/comparing.py FOUND EXPECTED TABLE...

Prints the number of cells, or the first differences on stderr, and exits 1.
"""

import sys
from pathlib import Path

from duckdb import connect

KEYS = {
    "pool_day": ["date", "cell", "accelerator"],
    "job_day": ["date", "job_id", "cell", "accelerator"],
    "goodput_daily": ["date", "cell", "accelerator", "size_class", "framework", "phase", "model_family", "team"],
}

# What a run says of itself in every row, and the columns that only folders have.
OF_THE_RUN = ["metric_version", "run_id", "is_provisional", "month"]

# The one quantity that a float is on the way to: within 1, or within this share where it is a sum of such.
ROUNDED, SHARE = "ideal_chip_ms", 1e-9


class Differ(Exception):
    """Tables that should be equal are not."""


def main():
    found, expected, *tables = sys.argv[1:]
    try:
        print(sum(compare(Path(found) / table, Path(expected) / table, KEYS[table], table) for table in tables))
    except Differ as differences:
        sys.exit(f"error: {found} is not {expected}: {differences}")


def compare(found, expected, keys, name):
    """The number of cells of a table, none of which differs."""
    connection = connect(config={"threads": 2, "preserve_insertion_order": False})
    for view, folder in (("found", found), ("expected", expected)):
        connection.execute(f"CREATE VIEW {view} AS SELECT * FROM read_parquet('{folder}/*/*.parquet', hive_partitioning = true)")
    columns = {view: columns_of(connection, view) for view in ("found", "expected")}
    if set(columns["found"]) != set(columns["expected"]):
        raise Differ(f"{name}: columns {sorted(set(columns['found']) ^ set(columns['expected']))} are on one side only")
    for view in ("found", "expected"):
        rows, distinct = connection.execute(f"SELECT count(*), count(DISTINCT {record(keys)}) FROM {view}").fetchone()
        if rows != distinct or rows == 0:
            raise Differ(f"{name}: {view} has {rows} rows with {distinct} keys")
    values = [column for column in columns["expected"] if column not in keys]
    differs = {column: differing(column) for column in values}
    differs["(rows)"] = "f.there IS NULL OR e.there IS NULL"
    joined = ("(SELECT *, true AS there FROM found) f FULL JOIN (SELECT *, true AS there FROM expected) e ON "
              + " AND ".join(f'f."{key}" IS NOT DISTINCT FROM e."{key}"' for key in keys))
    counts = ", ".join(f"count(*) FILTER ({test})" for test in differs.values())
    total, *bad = connection.execute(f"SELECT count(*), {counts} FROM {joined}").fetchone()
    if any(bad):
        raise Differ(report(connection, joined, keys, differs, bad, name))
    return total * len(columns["expected"])


def columns_of(connection, view):
    described = connection.execute(f"DESCRIBE SELECT * FROM {view}").fetchall()
    return {column: kind for column, kind, *_ in described if column not in OF_THE_RUN}


def record(keys):
    return "row(" + ", ".join(f'"{key}"' for key in keys) + ")"


def differing(column):
    pair = f'f."{column}"', f'e."{column}"'
    both = "f.there AND e.there"
    if column == ROUNDED:
        return f"{both} AND abs({pair[0]} - {pair[1]}) > greatest(1, {SHARE} * abs({pair[1]}))"
    return f"{both} AND {pair[0]} IS DISTINCT FROM {pair[1]}"


def report(connection, joined, keys, differs, bad, name):
    lines = [f"{name} differs:"]
    for (column, test), count in zip(differs.items(), bad):
        if count:
            pair = "f.there, e.there" if column == "(rows)" else f'f."{column}", e."{column}"'
            key = ", ".join(f'coalesce(f."{key}", e."{key}")' for key in keys)
            examples = connection.execute(f"SELECT {pair}, {key} FROM {joined} WHERE {test} ORDER BY ALL LIMIT 3").fetchall()
            lines.append(f"  {column}: {count} rows")
            lines += [f"    found {found}, expected {expected} at {', '.join(map(str, key))}" for found, expected, *key in examples]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
