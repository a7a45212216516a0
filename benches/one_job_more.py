#!/usr/bin/env python3
"""Adds a job to telemetry that runs on all its days and reports as many runtime rows as asked for, one step a row.

    python3 benches/one_job_more.py TELEMETRY --days N --rows N

It saves, waits for data inside of steps, fails twice and goes back to what it had saved, and fails for good.
"""

import argparse
import calendar
from pathlib import Path

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.parquet

import measuring

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
JOB, CELL, ACCELERATOR, CHIPS = "huge", "huge-cell", "tpu-v6e", 4096

# Of so many rows of steps one waits for data, and every so many-th saves all before it instead.
WAITS_EVERY, SAVES_EVERY = 10, 50

# The first midnight, from which instants count here.
ZERO = calendar.timegm(measuring.FIRST_DAY.timetuple()) * SECOND


def main():
    parser = argparse.ArgumentParser(description="Adds a job of many rows to telemetry.")
    parser.add_argument("telemetry", type=Path)
    parser.add_argument("--days", type=int, required=True)
    parser.add_argument("--rows", type=int, required=True)
    arguments = parser.parse_args()
    # The chips are held from the first hour to the last, but for what each attempt waits for them.
    thirds = [HOUR, arguments.days * DAY // 3, 2 * arguments.days * DAY // 3, arguments.days * DAY - HOUR]
    attempts = [(begin + 10 * MINUTE, end) for begin, end in zip(thirds, thirds[1:])]
    told = play(attempts, arguments.days, arguments.rows)
    for number in range(arguments.days):
        folder = f"date={measuring.day(number)}"
        tables = {"capacity": capacity(), "jobs": job(attempts, number), "allocations": allocations(attempts, number),
                  "runtime": pyarrow.concat_tables(told[number]).unify_dictionaries()}
        for table, rows in tables.items():
            pyarrow.parquet.write_table(rows, arguments.telemetry / table / folder / "huge.parquet", compression="zstd")


def play(attempts, days, rows):
    """Tables of runtime rows by the number of the day; none is open at a midnight."""
    told = [[] for _ in range(days)]
    held = sum(end - begin for begin, end in attempts)
    # A wait inside of a step is a row, but takes no time of its own.
    pace = max(30, int(held * (1 + 1 / WAITS_EVERY) / rows))
    saved = 0
    for attempt, (work, end) in enumerate(attempts):
        for phase in ["init", "compile", "restore"] if attempt else ["init", "compile"]:
            told[work // DAY].append(runtime(attempt, [phase], [work], [work + 2 * MINUTE], [None], [None]))
            work += 2 * MINUTE
        step = saved
        while work < end:
            until = min(end, (work // DAY + 1) * DAY)
            table, step, saved = stretch(attempt, work, until, pace, step, saved)
            told[work // DAY].append(table)
            work = until
    return told


def stretch(attempt, start, until, pace, step, saved):
    """Rows of `pace` ms each, from `start` on, in a table; the next step, and the first one that is not saved."""
    number = numpy.arange((until - start) // pace)
    saves = number % SAVES_EVERY == SAVES_EVERY - 1
    waits = (number % WAITS_EVERY == 3) & ~saves
    begin = start + number * pace
    done = step + numpy.cumsum(~saves)
    wait = begin[waits] + pace // 3
    start = numpy.concatenate([begin, wait])
    end = numpy.concatenate([begin + pace, wait + pace // 10])
    phase = numpy.concatenate([numpy.where(saves, "checkpoint", "step"), numpy.full(len(wait), "data_wait")])
    last = numpy.concatenate([done - 1, numpy.zeros_like(wait)])
    no_first = numpy.concatenate([saves, numpy.ones(len(wait), bool)])
    no_last = numpy.concatenate([numpy.zeros(len(saves), bool), numpy.ones(len(wait), bool)])
    order = numpy.argsort(start, kind="stable")
    table = runtime(
        attempt, phase[order], start[order], end[order],
        pyarrow.array(last[order], mask=no_first[order]), pyarrow.array(last[order], mask=no_last[order]))
    if saves.any():
        saved = int(done[saves][-1])
    return table, step + int((~saves).sum()), saved


def runtime(attempt, phase, start, end, first_step, last_step):
    rows = len(phase)
    return pyarrow.table({
        "job_id": texts([JOB] * rows).dictionary_encode(), "attempt": pyarrow.repeat(attempt, rows),
        "phase": texts(phase).dictionary_encode(), "start_ts": instants(start), "end_ts": instants(end),
        "first_step": pyarrow.array(first_step, pyarrow.int64()), "last_step": pyarrow.array(last_step, pyarrow.int64())})


def capacity():
    return pyarrow.table({
        "cell": texts([CELL]), "accelerator": texts([ACCELERATOR]), "block": texts(["b0"]), "chips": [CHIPS],
        "state": texts(["available"]), "start_ts": instants([0]), "end_ts": instants([None])})


def job(attempts, number):
    """What is recorded of the job on a day: it is open until the last attempt has ended."""
    end = attempts[-1][1]
    is_over = end <= (number + 1) * DAY
    return pyarrow.table({
        "job_id": texts([JOB]), "submit_ts": instants([HOUR]), "end_ts": instants([end if is_over else None]),
        "end_state": texts(["failed" if is_over else None]), "chips_required": [CHIPS],
        "accelerator": texts([ACCELERATOR]), "framework": texts(["jax"]), "phase": texts(["training"])})


def allocations(attempts, number):
    """What is recorded of the attempts on a day: those that are open at its end, or ended on it."""
    begin_of_day, end_of_day = number * DAY, (number + 1) * DAY
    rows = [(attempt, begin, end if end <= end_of_day else None)
            for attempt, (begin, end) in enumerate(attempts) if begin < end_of_day and end > begin_of_day]
    attempt, begin, end = zip(*rows)
    return pyarrow.table({
        "job_id": texts([JOB] * len(rows)), "attempt": list(attempt), "task": texts([""] * len(rows)),
        "cell": texts([CELL] * len(rows)), "accelerator": texts([ACCELERATOR] * len(rows)),
        "chips": [CHIPS] * len(rows), "start_ts": instants(begin), "end_ts": instants(end)})


def texts(values):
    return pyarrow.array(values, pyarrow.string())


def instants(ms):
    """Instants from ms since the first midnight."""
    ms = pyarrow.compute.add(pyarrow.array(ms, pyarrow.int64()), ZERO)
    return pyarrow.compute.multiply(ms, 1000).cast(pyarrow.timestamp("us", "UTC"))


if __name__ == "__main__":
    main()
