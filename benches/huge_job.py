#!/usr/bin/env python3
"""One job that reports nine tenths of all runtime rows, with and without a limit of memory, in turn.

    python3 benches/huge_job.py

The job is added to a simulated fleet (one_job_more.py). Both runs must publish the same tables.
"""

import shutil
import subprocess
import sys

import measuring
from measuring import Bench, mib, millions, ratio, seconds


def main():
    parser = measuring.parser("Measures a job of nine tenths of all rows.", days=30, jobs_per_day=600, rows=100)
    parser.add_argument("--memory", default="512MiB", help="the limit [default: 512MiB]")
    parser.add_argument("--share", type=float, default=0.9, help="the job's share of all runtime rows [default: 0.9]")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    telemetry = with_huge_job(bench, arguments)

    def free():
        return bench.run(telemetry, "free")

    def limited():
        return bench.run(telemetry, "limited", "--memory", arguments.memory)

    free(), limited()
    cells = measuring.check_equal(bench.data / "limited", bench.data / "free", ["pool_day", "job_day", "goodput_daily"])
    run, limit = bench.in_turn(free, limited)
    rows = bench.runtime_rows(telemetry)
    measuring.tell(f"One huge job: {arguments.days} days, {millions(rows)} runtime rows; {cells:,} cells are equal",
                   ["", "no limit", f"`--memory {arguments.memory}`", "limit / none"], [
        ["CPU, s", seconds(run.cpu), seconds(limit.cpu), ratio(limit.cpu, run.cpu)],
        ["wall, s", seconds(run.wall), seconds(limit.wall), ratio(limit.wall, run.wall)],
        ["runtime rows a second", millions(rows / run.wall), millions(rows / limit.wall), ratio(run.wall, limit.wall)],
        ["peak memory", mib(run.peak), mib(limit.peak), ratio(limit.peak, run.peak)],
    ])


def with_huge_job(bench, arguments):
    """The fleet's telemetry, and beside each of its files one of the huge job; made once."""
    fleet = bench.telemetry(arguments.days)
    folder = bench.data / f"{fleet.name}-huge-{arguments.share}"
    if not folder.exists():
        unfinished = bench.scratch("unfinished-huge")
        shutil.copytree(fleet, unfinished, ignore=shutil.ignore_patterns("_truth"))
        rows = bench.runtime_rows(fleet) * arguments.share / (1 - arguments.share)
        command = [sys.executable, measuring.HERE / "one_job_more.py", unfinished]
        subprocess.run([*command, "--days", str(arguments.days), "--rows", str(round(rows))], check=True)
        unfinished.rename(folder)
    return folder


if __name__ == "__main__":
    main()
