"""What the benchmarks share: the binary, the telemetry, what a process took, and how it is told.

This module imports nothing heavy, and tables are compared in a process of their own: Linux counts the memory of whoever
starts a process as memory that the process had.
"""

import argparse
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

# The pipeline's setting, which the simulator has too.
SETTLE_DAYS = 7


def parser(description, days, jobs_per_day, rows):
    """The arguments that all benchmarks have, with their defaults."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--binary", type=Path, help="the program [default: target/release/goodput]")
    made.add_argument("--data", type=Path, help="where telemetry is kept and tables are published [default: target/benches]")
    made.add_argument("--threads", type=int, default=2)
    made.add_argument("--runs", type=int, default=3, help="measured runs, after one that is not")
    made.add_argument("--days", type=int, default=days, help=f"days that are computed [default: {days}]")
    made.add_argument("--jobs-per-day", type=int, default=jobs_per_day, help=f"[default: {jobs_per_day}]")
    made.add_argument("--runtime-rows-per-job-day", type=int, default=rows, help=f"[default: {rows}]")
    return made


class Bench:
    """The program and the folders of a benchmark."""

    def __init__(self, arguments):
        self.arguments = arguments
        target = None if arguments.binary and arguments.data else target_folder()
        self.binary = (arguments.binary or target / "release" / "goodput").resolve()
        self.data = (arguments.data or target / "benches").resolve()
        if not self.binary.exists():
            sys.exit(f"error: `{self.binary}` does not exist\nhint: cargo build --release")
        self.data.mkdir(parents=True, exist_ok=True)

    def telemetry(self, days, seed=7):
        """Telemetry of so many days, made once: the same arguments give the same bytes."""
        arguments = self.arguments
        shape = f"{days}-{arguments.jobs_per_day}-{arguments.runtime_rows_per_job_day}-{seed}"
        folder = self.data / f"telemetry-{shape}"
        if not folder.exists():
            unfinished = self.scratch(f"unfinished-{shape}")
            subprocess.run([
                self.binary, "simulate", "--quiet", "--no-progress", unfinished, "--seed", str(seed),
                "--from", FIRST_DAY.isoformat(), "--days", str(days), "--jobs-per-day", str(arguments.jobs_per_day),
                "--runtime-rows-per-job-day", str(arguments.runtime_rows_per_job_day),
                "--settle-days", str(SETTLE_DAYS)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            unfinished.rename(folder)
        return folder

    def scratch(self, name):
        """The path of a folder that does not exist (any more)."""
        folder = self.data / name
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def run(self, telemetry, warehouse, *more):
        """Measures `goodput run`, which publishes into a fresh folder of that name."""
        return measure([
            self.binary, "run", "--json", "--no-progress", "--threads", str(self.arguments.threads),
            "--set", f"telemetry={telemetry}", "--set", f"warehouse={self.scratch(warehouse)}", *more])

    def runtime_rows(self, telemetry, first=None, last=None):
        """Rows of runtime in the partitions from `first` to `last`."""
        query = "SELECT count(*) AS rows FROM telemetry.runtime"
        if first:
            query += f" WHERE date BETWEEN DATE '{first}' AND DATE '{last}'"
        command = [self.binary, "sql", "--format", "json", "--set", f"telemetry={telemetry}", query]
        return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)[0]["rows"]

    def in_turn(self, *contenders):
        """Measures contenders in turn, so that all of them meet the same weather; for each what its runs took."""
        rounds = [[contender() for contender in contenders] for _ in range(self.arguments.runs)]
        return [Runs(runs) for runs in zip(*rounds)]


# The first simulated day.
FIRST_DAY = datetime.date(2026, 1, 1)


def day(number):
    """The simulated day of that number, from 0 on."""
    return (FIRST_DAY + datetime.timedelta(days=number)).isoformat()


def target_folder():
    """Where cargo puts what it builds."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    return Path(json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)["target_directory"])


class Took:
    """What a process took: wall and CPU seconds, peak memory in bytes; and the JSON that it said."""

    def __init__(self, said, wall, cpu, peak):
        self.said, self.wall, self.cpu, self.peak = said, wall, cpu, peak


class Runs:
    """Medians of what several runs took."""

    def __init__(self, runs):
        self.said = runs[0].said
        self.wall, self.cpu, self.peak = (
            statistics.median(getattr(run, figure) for run in runs) for figure in ("wall", "cpu", "peak"))


def measure(command):
    """Runs a command that prints JSON, or nothing."""
    command = [str(word) for word in command]
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"error: `{' '.join(command)}` failed")
    return Took(json.loads(text or "null"), wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def check_equal(found, expected, tables):
    """Stops with the first differences unless tables of two folders are equal; the number of cells that were compared."""
    done = subprocess.run([sys.executable, HERE / "comparing.py", found, expected, *tables], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return int(done.stdout)


def tell(title, header, rows):
    """Prints a table as Markdown; numbers on the right."""
    cells = [header] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[at]) for row in cells) for at in range(len(header))]
    lines = [[cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths))]
             for row in cells]
    rule = ["-" * width if at == 0 else "-" * (width - 1) + ":" for at, width in enumerate(widths)]
    print(f"\n{title}\n")
    for row in [lines[0], rule, *lines[1:]]:
        print("| " + " | ".join(row) + " |")


def mib(size):
    return f"{size / 2**20:,.0f} MiB"


def millions(number):
    return f"{number / 1e6:.2f} million"


def seconds(number):
    return f"{number:.2f}"


def ratio(one, other):
    return f"{one / other:.2f}"
