#!/usr/bin/env python3
"""The floor: what it takes to only decode the columns that the accounting needs, of the same files with the same threads.

    python3 benches/floor.py

DuckDB decodes and adds them up (of texts their hashes), and nothing else; the start of Python is not counted.
"""

import sys

import measuring
from measuring import Bench, Took, mib, millions, ratio, seconds


def main():
    arguments = measuring.parser("Measures goodput against the floor.", days=30, jobs_per_day=2400, rows=130).parse_args()
    bench = Bench(arguments)
    telemetry = bench.telemetry(arguments.days)

    def goodput():
        return bench.run(telemetry, "goodput")

    def decode():
        command = [sys.executable, measuring.HERE / "duckdb" / "decode.py", telemetry, "--threads", arguments.threads]
        whole = measuring.measure(command)
        return Took(whole.said, whole.said["wall"], whole.said["cpu"], whole.peak)

    goodput(), decode()
    ours, floor = bench.in_turn(goodput, decode)
    assert floor.said["rows"] == ours.said["rows"], "the floor does not decode the rows that goodput reads"
    measuring.tell(f"The floor: {arguments.days} days, {millions(floor.said['rows'])} rows",
                   ["", "goodput", "floor", "goodput / floor"], [
        ["CPU, s", seconds(ours.cpu), seconds(floor.cpu), ratio(ours.cpu, floor.cpu)],
        ["wall, s", seconds(ours.wall), seconds(floor.wall), ratio(ours.wall, floor.wall)],
        ["peak memory", mib(ours.peak), mib(floor.peak), ratio(ours.peak, floor.peak)],
    ])


if __name__ == "__main__":
    main()
