#!/usr/bin/env python3
"""Runs the accounting in DuckDB: the statements of goodput.sql over telemetry, for a range of days.

    python3 benches/duckdb/run.py TELEMETRY --from YYYY-MM-DD --to YYYY-MM-DD --out OUT [--timing]

Reads the partitions from the first day to `settle_days` after the last one, and prints what it took as JSON.
"""

import argparse
import datetime
import json
import re
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

import duckdb

import telemetry

EPOCH = datetime.date(1970, 1, 1)
DAY_MS = 86_400_000


def main():
    parser = argparse.ArgumentParser(description="Runs the accounting in DuckDB.")
    parser.add_argument("telemetry", type=Path)
    parser.add_argument("--from", dest="first", type=datetime.date.fromisoformat, required=True)
    parser.add_argument("--to", dest="last", type=datetime.date.fromisoformat, required=True)
    parser.add_argument("--out", type=Path, required=True, help="replaced")
    parser.add_argument("--settle-days", type=int, default=7)
    parser.add_argument("--skew-ms", type=int, default=1000)
    parser.add_argument("--chunk-days", type=int, default=0, help="days that are computed together [default: all]")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", default="8GB")
    parser.add_argument("--timing", action="store_true", help="say on stderr what each statement took")
    arguments = parser.parse_args()

    began = time.monotonic()
    shutil.rmtree(arguments.out, ignore_errors=True)
    arguments.out.mkdir(parents=True)
    connection = duckdb.connect(config={
        "threads": arguments.threads, "memory_limit": arguments.memory, "preserve_insertion_order": False,
        "temp_directory": str(Path(tempfile.gettempdir()) / "goodput-duckdb-spill")})
    connection.execute("SET TimeZone = 'UTC'")
    spent = {}
    for first, last in chunks(arguments):
        run(connection, arguments, first, last, spent)
    if arguments.timing:
        for name, (wall, used) in spent.items():
            print(f"{wall:8.2f} s {used:8.2f} CPU s  {name}", file=sys.stderr)
    print(json.dumps({"wall": round(time.monotonic() - began, 3), "cpu": round(cpu(), 3)}))


def chunks(arguments):
    """The days that are computed together, as ranges."""
    length = arguments.chunk_days or (arguments.last - arguments.first).days + 1
    first = arguments.first
    while first <= arguments.last:
        last = min(arguments.last, first + datetime.timedelta(days=length - 1))
        yield first, last
        first = last + datetime.timedelta(days=1)


def run(connection, arguments, first, last, spent):
    """Computes and publishes the days of a chunk; adds up what each statement took."""
    with spending(spent, "views"):
        for table in telemetry.TABLES:
            until = last + datetime.timedelta(days=arguments.settle_days)
            telemetry.view(connection, table, telemetry.files(arguments.telemetry, table, first, until))
    from_ms, until_ms = (first - EPOCH).days * DAY_MS, ((last - EPOCH).days + 1) * DAY_MS
    for name, value in {"from_ms": from_ms, "until_ms": until_ms, "skew_ms": arguments.skew_ms}.items():
        connection.execute(f"SET VARIABLE {name} = {value}")
    for statement in statements():
        statement = statement.replace("$OUT", str(arguments.out))
        with spending(spent, name_of(statement)):
            connection.execute(statement)


def statements():
    text = re.sub(r"--[^\n]*", "", (Path(__file__).parent / "goodput.sql").read_text())
    return [statement.strip() for statement in text.split(";") if statement.strip()]


def name_of(statement):
    made = re.match(r"CREATE OR REPLACE TEMP (?:TABLE|MACRO) (\w+)|DROP TABLE (\w+)|SET VARIABLE (\w+)", statement)
    if made:
        return next(name for name in made.groups() if name)
    return "publish " + re.search(r"TO '.*/(\w+)'", statement)[1]


class spending:
    """Adds what happens within it to what was spent under a name."""

    def __init__(self, spent, name):
        self.spent, self.name = spent, name

    def __enter__(self):
        self.wall, self.used = time.monotonic(), cpu()

    def __exit__(self, *_):
        wall, used = self.spent.get(self.name, (0, 0))
        self.spent[self.name] = wall + time.monotonic() - self.wall, used + cpu() - self.used


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
