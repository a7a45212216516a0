#!/usr/bin/env python3
"""Growth: time and peak memory for 30, 90 and 360 days of the same daily volume.

    python3 benches/growth.py

The days are the first ones after `settle_days` of one telemetry that goes on for `settle_days` after the last: every day
of each range has its whole window.
"""

import measuring
from measuring import Bench, SETTLE_DAYS, mib, millions, ratio, seconds


def main():
    parser = measuring.parser("Measures how time and memory grow with the range.", days=360, jobs_per_day=400, rows=80)
    parser.add_argument("--ranges", type=int, nargs="+", default=[30, 90, 360], help="days of each range [default: 30 90 360]")
    parser.add_argument("--chunk-days", type=int, help="days that are computed together [default: the pipeline's]")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    telemetry = bench.telemetry(max(arguments.ranges) + 2 * SETTLE_DAYS)
    more = ["--set", f"chunk_days={arguments.chunk_days}"] if arguments.chunk_days else []
    first = measuring.day(SETTLE_DAYS)

    def last(days):
        return measuring.day(SETTLE_DAYS + days - 1)

    def contender(days):
        return lambda: bench.run(telemetry, "growth", "--from", first, "--to", last(days), *more)

    contender(max(arguments.ranges))()
    figures = bench.in_turn(*map(contender, arguments.ranges))

    base, per = figures[0], arguments.ranges[0]
    rows = []
    for days, figure in zip(arguments.ranges, figures):
        rows.append([
            days, millions(bench.runtime_rows(telemetry, first, last(days))),
            seconds(figure.wall), seconds(figure.cpu), mib(figure.peak),
            ratio(figure.wall / days, base.wall / per), ratio(figure.cpu / days, base.cpu / per), ratio(figure.peak, base.peak)])
    measuring.tell("Growth", [
        "days", "runtime rows", "wall, s", "CPU, s", "peak memory",
        f"wall a day / that of {per}", f"CPU a day / that of {per}", f"peak / that of {per}"], rows)


if __name__ == "__main__":
    main()
