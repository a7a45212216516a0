#!/usr/bin/env python3
"""What is published is what happened: simulated fleets, and their true tables beside the published ones, cell by cell.

    python3 benches/truth.py

Takes fleets of several seeds, at a size at which a brute-force oracle would take hours. Exits 1 at the first difference.
"""

import measuring
from measuring import Bench, mib, millions, seconds


def main():
    parser = measuring.parser("Compares published tables with the truth.", days=30, jobs_per_day=2400, rows=130)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    arguments = parser.parse_args()
    bench = Bench(arguments)
    rows = []
    for seed in arguments.seeds:
        telemetry = bench.telemetry(arguments.days, seed)
        run = bench.run(telemetry, "truth")
        cells = measuring.check_equal(bench.data / "truth", telemetry / "_truth", ["pool_day", "job_day"])
        rows.append([
            seed, millions(bench.runtime_rows(telemetry)), f"{run.said['tables']['job_day']['rows']:,}", f"{cells:,}",
            seconds(run.wall), mib(run.peak)])
    measuring.tell(f"Truth: {arguments.days} days, all cells are equal",
                   ["seed", "runtime rows", "rows of `job_day`", "cells", "wall, s", "peak memory"], rows)


if __name__ == "__main__":
    main()
