-- grain: one row a day, cell and accelerator
-- reads: capacity_books, job_day
-- why: the books of pools: what capacity there was, and how much of it jobs held
WITH
-- one row a block and day
block_day AS (
    SELECT cell, accelerator, unnest(books['days']) AS day
    FROM capacity_books
),
available AS (
    SELECT
        day['date'] AS date,
        cell,
        accelerator,
        sum(day['capacity_chip_ms']) AS capacity_chip_ms,
        sum(day['down_chip_ms']) AS down_chip_ms
    FROM block_day
    GROUP BY day['date'], cell, accelerator
),
held AS (
    SELECT
        date,
        cell,
        accelerator,
        sum(partial_chip_ms) AS partial_chip_ms,
        sum(allocated_chip_ms) AS allocated_chip_ms
    FROM job_day
    WHERE cell IS NOT NULL
    GROUP BY date, cell, accelerator
),
-- a pool with held chips and no capacity has a row, too
pool AS (
    SELECT
        coalesce(available.date, held.date) AS date,
        coalesce(available.cell, held.cell) AS cell,
        coalesce(available.accelerator, held.accelerator) AS accelerator,
        coalesce(capacity_chip_ms, 0) AS capacity_chip_ms,
        coalesce(down_chip_ms, 0) AS down_chip_ms,
        coalesce(partial_chip_ms, 0) AS partial_chip_ms,
        coalesce(allocated_chip_ms, 0) AS allocated_chip_ms
    FROM available
    FULL JOIN held
        ON available.date = held.date AND available.cell = held.cell AND available.accelerator = held.accelerator
)
SELECT
    date,
    cell,
    accelerator,
    capacity_chip_ms,
    down_chip_ms,
    checked_add(partial_chip_ms, allocated_chip_ms) AS held_chip_ms,
    partial_chip_ms,
    allocated_chip_ms,
    -- below zero where more is held than there is: kept, and reported by an audit
    checked_sub(capacity_chip_ms, down_chip_ms, partial_chip_ms, allocated_chip_ms) AS idle_chip_ms,
    $metric_version AS metric_version,
    $run_id AS run_id,
    date > $settled_through AS is_provisional
FROM pool
