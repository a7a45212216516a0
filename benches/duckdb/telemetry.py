"""Contract telemetry as DuckDB views: which files are read, and how what they hold becomes the contract's columns."""

import datetime
import re
import sys
from pathlib import Path

TEXT, INTEGER, INSTANT, NUMBER = "VARCHAR", "BIGINT", "INSTANT", "DOUBLE"

# The columns of each table: what they are, and whether a file must have them.
TABLES = {
    "capacity": {
        "cell": (TEXT, True), "accelerator": (TEXT, True), "block": (TEXT, True), "chips": (INTEGER, True),
        "state": (TEXT, True), "start_ts": (INSTANT, True), "end_ts": (INSTANT, False),
    },
    "jobs": {
        "job_id": (TEXT, True), "submit_ts": (INSTANT, True), "end_ts": (INSTANT, False), "end_state": (TEXT, False),
        "chips_required": (INTEGER, True), "accelerator": (TEXT, False), "framework": (TEXT, False),
        "phase": (TEXT, False), "model_family": (TEXT, False), "team": (TEXT, False), "user": (TEXT, False),
        "priority": (TEXT, False), "topology": (TEXT, False),
    },
    "allocations": {
        "job_id": (TEXT, True), "attempt": (INTEGER, True), "task": (TEXT, True), "cell": (TEXT, True),
        "accelerator": (TEXT, True), "chips": (INTEGER, True), "start_ts": (INSTANT, True), "end_ts": (INSTANT, False),
    },
    "runtime": {
        "job_id": (TEXT, True), "attempt": (INTEGER, True), "phase": (TEXT, True), "start_ts": (INSTANT, True),
        "end_ts": (INSTANT, False), "first_step": (INTEGER, False), "last_step": (INTEGER, False),
    },
    "profiles": {
        "job_id": (TEXT, True), "attempt": (INTEGER, True), "program": (TEXT, True), "start_ts": (INSTANT, True),
        "end_ts": (INSTANT, True), "steps": (INTEGER, True), "step_time_us": (NUMBER, True),
        "predicted_step_time_us": (NUMBER, False),
    },
}

# What DuckDB may call a column that can be converted without loss.
WHOLE = r'U?(TINY|SMALL|BIG)INT|U?INTEGER|DECIMAL\(\d+,0\)|"NULL"'
CONVERTIBLE = {
    TEXT: r'VARCHAR|ENUM.*|"NULL"',
    INTEGER: WHOLE,
    NUMBER: rf"DOUBLE|FLOAT|DECIMAL.*|{WHOLE}",
    INSTANT: r'TIMESTAMP.*|DATE|"NULL"',
}


def files(root, table, first, last):
    """The data files of the partitions from `first` to `last`."""
    found = []
    for folder in sorted((Path(root) / table).glob("date=*")):
        date = re.fullmatch(r"date=(\d{4}-\d{2}-\d{2})", folder.name)
        if date and first <= datetime.date.fromisoformat(date[1]) <= last:
            found += [file for file in sorted(folder.glob("*.parquet")) if file.name[0] not in "._" and file.stat().st_size]
    return [str(file) for file in found]


def literal(text):
    return "'" + text.replace("'", "''") + "'"


def listing(paths):
    return "[" + ", ".join(map(literal, paths)) + "]"


def view(connection, table, paths):
    """Makes `raw_<table>`: the contract's columns, instants as epoch ms, `d` the day number of the partition.

    Files are grouped by schema, so that the usual case is one plain scan and every file keeps its own conversions.
    """
    selects = [select(connection, table, group) for group in by_schema(connection, paths)]
    if not selects:
        columns = [f"NULL::{stored(kind)} AS {renamed(name, kind)}" for name, (kind, _) in TABLES[table].items()]
        selects = [f"SELECT {', '.join(columns)}, NULL::INTEGER AS d WHERE false"]
    connection.execute(f"CREATE OR REPLACE TEMP VIEW raw_{table} AS " + " UNION ALL ".join(selects))


def by_schema(connection, paths):
    if not paths:
        return []
    groups = {}
    described = connection.execute(
        "SELECT file_name, string_agg(concat_ws(' ', name, type, logical_type), '|') "
        f"FROM parquet_schema({listing(paths)}) GROUP BY file_name ORDER BY file_name")
    for path, schema in described.fetchall():
        groups.setdefault(schema, []).append(path)
    return groups.values()


def select(connection, table, paths):
    source = f"read_parquet({listing(paths)}, hive_partitioning = true, hive_types = {{'date': DATE}})"
    found = {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
    columns = []
    for name, (kind, is_required) in TABLES[table].items():
        if name not in found:
            if is_required:
                sys.exit(f"error: {paths[0]}: required column `{name}` of `{table}` is missing")
            column = f"NULL::{stored(kind)}"
        elif not re.fullmatch(CONVERTIBLE[kind], found[name]):
            sys.exit(f"error: {paths[0]}: column `{name}` of `{table}` has type {found[name]}")
        else:
            column = converted(name, kind, found[name])
        columns.append(f"{column} AS {renamed(name, kind)}")
    return f"SELECT {', '.join(columns)}, (date - DATE '1970-01-01')::INTEGER AS d FROM {source}"


def stored(kind):
    return "BIGINT" if kind == INSTANT else kind


def renamed(name, kind):
    return name.removesuffix("_ts") + "_ms" if kind == INSTANT else f'"{name}"'


def converted(name, kind, found):
    if kind != INSTANT:
        return f'"{name}"' if found == kind else f'CAST("{name}" AS {kind})'
    if "NULL" in found:
        return "NULL::BIGINT"
    # Floored: epoch_ms() rounds, and so does a cast between the units.
    count, unit = (f"epoch_ns({name})", 1_000_000) if found.endswith("_NS") else (f"epoch_us({name})", 1_000)
    return f"{count} // {unit} - ({count} % {unit} < 0)::INTEGER"
