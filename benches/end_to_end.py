#!/usr/bin/env python3
"""Measures the main job from end to end: rows a second, CPU seconds and peak memory, over telemetry that is made for it.

    cargo build --release --workspace
    python3 benches/end_to_end.py [--data DIR] [--days 30] [--jobs-per-day 400] [--runtime-rows 150] [--runs 3]
                                  [--threads 2] [--memory SIZE]

The telemetry is made once by `sample-fleet` (same arguments, same bytes) and kept in DIR. Each run publishes into a fresh
folder; the first, which warms the page cache, is not counted. Prints the median of each figure, and the ratio of the peak
memory to that of a run over the last third of the days: it tells whether memory grows with the range.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def target_folder():
    """Where cargo puts what it builds."""
    metadata = subprocess.run(["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"], cwd=ROOT,
                              check=True, capture_output=True, text=True)
    return Path(json.loads(metadata.stdout)["target_directory"])


def measure(command):
    """Runs a command; its JSON, wall seconds, CPU seconds and peak memory (bytes) of the process."""
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - began
    assert os.waitstatus_to_exitcode(status) == 0, f"{command} failed"
    return json.loads(text), wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description="Measures the main job from end to end.")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "goodput-bench")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--jobs-per-day", type=int, default=400)
    parser.add_argument("--runtime-rows", type=int, default=150, help="runtime rows a job and day")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", help="the engine's limit, such as 512MiB")
    arguments = parser.parse_args()

    release = target_folder() / "release"
    shape = f"{arguments.days}-{arguments.jobs_per_day}-{arguments.runtime_rows}"
    telemetry = arguments.data / f"telemetry-{shape}"
    if not telemetry.exists():
        subprocess.run([release / "sample-fleet", telemetry, "--first-day", "2026-01-01", "--days", str(arguments.days),
                        "--jobs-per-day", str(arguments.jobs_per_day),
                        "--runtime-rows-per-job-day", str(arguments.runtime_rows)], check=True)
    warehouse = arguments.data / "warehouse"

    def run(*more):
        shutil.rmtree(warehouse, ignore_errors=True)
        command = [release / "goodput", "run", "--json", "--no-progress", "--threads", str(arguments.threads),
                   "--set", f"telemetry={telemetry}", "--set", f"warehouse={warehouse}", *more]
        if arguments.memory:
            command += ["--memory", arguments.memory]
        return measure(command)

    def query(text):
        command = [release / "goodput", "sql", "--format", "json", "--set", f"telemetry={telemetry}", text]
        return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)

    rows = query("SELECT count(*) AS rows FROM telemetry.runtime")[0]["rows"]
    size = sum(file.stat().st_size for file in telemetry.rglob("*.parquet"))
    print(f"telemetry: {rows:,} runtime rows over {arguments.days} days, {size / 2**20:.0f} MiB of Parquet")
    first, *_ = run()
    runs = [run() for _ in range(arguments.runs)]
    wall = statistics.median(run[1] for run in runs)
    cpu = statistics.median(run[2] for run in runs)
    peak = statistics.median(run[3] for run in runs)
    print(f"whole range: {wall:.2f} s, {cpu:.2f} CPU s, peak {peak / 2**20:.0f} MiB")
    print(f"  {rows / wall:,.0f} runtime rows a second, {rows / cpu:,.0f} a CPU second; "
          f"rows decoded, windows included: {first['rows_decoded']:,} ({first['rows_decoded'] / wall:,.0f} a second)")
    last = f"2026-01-{max(1, arguments.days - arguments.days // 3):02d}" if arguments.days <= 31 else first["to"]
    _, part_wall, _, part_peak = run("--from", last)
    print(f"from {last}: {part_wall:.2f} s, peak {part_peak / 2**20:.0f} MiB; "
          f"peak of the whole range / of this part: {peak / part_peak:.2f}")


if __name__ == "__main__":
    main()
