#!/usr/bin/env python3
"""The main job from end to end: rows a second, CPU seconds and peak memory over simulated telemetry.

    python3 benches/end_to_end.py                                                # more than 10 million runtime rows
    python3 benches/end_to_end.py --runtime-rows-per-job-day 240 --memory 512MiB # more than 20 million, and what a limit costs

With `--memory` the job runs with and without the limit in turn, and both must publish the same tables.
"""

import measuring
from measuring import Bench, mib, millions, ratio, seconds


def main():
    parser = measuring.parser("Measures the main job from end to end.", days=30, jobs_per_day=2400, rows=130)
    parser.add_argument("--memory", help="also run with this limit, such as 512MiB")
    parser.add_argument("--chunk-days", type=int, help="days that are computed together [default: the pipeline's]")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    telemetry = bench.telemetry(arguments.days)
    more = ["--set", f"chunk_days={arguments.chunk_days}"] if arguments.chunk_days else []

    def free():
        return bench.run(telemetry, "free", *more)

    def limited():
        return bench.run(telemetry, "limited", "--memory", arguments.memory, *more)

    contenders = [free, limited] if arguments.memory else [free]
    for contender in contenders:
        contender()
    if arguments.memory:
        measuring.check_equal(bench.data / "limited", bench.data / "free", ["pool_day", "job_day", "goodput_daily"])
    figures = bench.in_turn(*contenders)

    run = figures[0]
    rows = bench.runtime_rows(telemetry)
    measuring.tell("End to end", ["", "median"], [
        ["days", arguments.days],
        ["runtime rows", millions(rows)],
        ["rows of all tables", millions(run.said["rows"])],
        ["rows decoded, windows included / rows", ratio(run.said["rows_decoded"], run.said["rows"])],
        ["Parquet", mib(run.said["bytes"])],
        ["wall, s", seconds(run.wall)],
        ["CPU, s", seconds(run.cpu)],
        ["runtime rows a second", millions(rows / run.wall)],
        ["runtime rows a CPU second", millions(rows / run.cpu)],
        ["rows of all tables a second", millions(run.said["rows"] / run.wall)],
        ["peak memory", mib(run.peak)],
    ])
    if arguments.memory:
        limit = figures[1]
        measuring.tell(f"The same tables with `--memory {arguments.memory}`", ["", "no limit", "limit", "limit / none"], [
            ["CPU, s", seconds(run.cpu), seconds(limit.cpu), ratio(limit.cpu, run.cpu)],
            ["wall, s", seconds(run.wall), seconds(limit.wall), ratio(limit.wall, run.wall)],
            ["peak memory", mib(run.peak), mib(limit.peak), ratio(limit.peak, run.peak)],
        ])


if __name__ == "__main__":
    main()
