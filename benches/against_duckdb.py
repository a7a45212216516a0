#!/usr/bin/env python3
"""goodput against the same accounting in DuckDB (duckdb/), on the same telemetry, days and threads, in turn.

    python3 benches/against_duckdb.py

First the tables of both are compared, cell by cell: unless they are equal, nothing is measured.
"""

import sys
from pathlib import Path

import measuring
from measuring import Bench, SETTLE_DAYS, mib, millions, ratio, seconds


def main():
    parser = measuring.parser("Measures goodput against DuckDB.", days=30, jobs_per_day=2400, rows=130)
    parser.add_argument("--telemetry", type=Path, help="other telemetry than simulated one; with --from and --to")
    parser.add_argument("--from", dest="first", metavar="YYYY-MM-DD")
    parser.add_argument("--to", dest="last", metavar="YYYY-MM-DD")
    parser.add_argument("--chunk-days", type=int, help="days that goodput computes together [default: the pipeline's]")
    parser.add_argument("--duckdb-chunk-days", type=int, default=0, help="days that DuckDB computes together [default: all]")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    # The last days settle, too.
    telemetry = arguments.telemetry or bench.telemetry(arguments.days + SETTLE_DAYS)
    first, last = arguments.first or measuring.day(0), arguments.last or measuring.day(arguments.days - 1)
    more = ["--set", f"chunk_days={arguments.chunk_days}"] if arguments.chunk_days else []

    def goodput():
        return bench.run(telemetry.resolve(), "goodput", "--from", first, "--to", last, *more)

    def duckdb():
        return measuring.measure([
            sys.executable, measuring.HERE / "duckdb" / "run.py", telemetry.resolve(), "--from", first, "--to", last,
            "--out", bench.scratch("duckdb"), "--settle-days", SETTLE_DAYS, "--threads", arguments.threads,
            "--chunk-days", arguments.duckdb_chunk_days])

    one = goodput()
    duckdb()
    cells = measuring.check_equal(bench.data / "goodput", bench.data / "duckdb", ["pool_day", "job_day", "goodput_daily"])
    ours, theirs = bench.in_turn(goodput, duckdb)

    rows = one.said["rows"]
    measuring.tell(f"Against DuckDB: {first} to {last}, {millions(rows)} rows; {cells:,} cells are equal",
                   ["", "goodput", "DuckDB", "goodput / DuckDB"], [
        ["CPU, s", seconds(ours.cpu), seconds(theirs.cpu), ratio(ours.cpu, theirs.cpu)],
        ["wall, s", seconds(ours.wall), seconds(theirs.wall), ratio(ours.wall, theirs.wall)],
        ["rows a CPU second", millions(rows / ours.cpu), millions(rows / theirs.cpu), ratio(theirs.cpu, ours.cpu)],
        ["peak memory", mib(ours.peak), mib(theirs.peak), ratio(ours.peak, theirs.peak)],
    ])


if __name__ == "__main__":
    main()
