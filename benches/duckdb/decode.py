#!/usr/bin/env python3
"""Only decodes the contract's columns of all files of telemetry, and adds them up (of texts their hashes).

    python3 benches/duckdb/decode.py TELEMETRY [--threads 2]

Prints rows, wall and CPU seconds as JSON; the start of Python is not counted.
"""

import argparse
import datetime
import json
import resource
import time
from pathlib import Path

import duckdb

import telemetry


def main():
    parser = argparse.ArgumentParser(description="Decodes telemetry, and nothing else.")
    parser.add_argument("telemetry", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()

    began, used = time.monotonic(), cpu()
    connection = duckdb.connect(config={"threads": arguments.threads, "preserve_insertion_order": False})
    connection.execute("SET TimeZone = 'UTC'")
    rows = 0
    for table, columns in telemetry.TABLES.items():
        paths = telemetry.files(arguments.telemetry, table, datetime.date.min, datetime.date.max)
        sums = ", ".join(summed(name, kind) for name, (kind, _) in columns.items())
        query = f"SELECT count(*), {sums} FROM read_parquet({telemetry.listing(paths)})"
        rows += connection.execute(query).fetchone()[0]
    print(json.dumps({"rows": rows, "wall": time.monotonic() - began, "cpu": cpu() - used}))


def summed(name, kind):
    if kind == telemetry.TEXT:
        return f'sum(hash("{name}"))'
    return f"sum(epoch_us({name}))" if kind == telemetry.INSTANT else f'sum("{name}")'


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
