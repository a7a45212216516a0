-- grain: one row a block of chips
-- reads: telemetry.capacity
-- why: sweeps the time line of each block once for all days of the run, each judged from its own window
WITH
block AS (
    SELECT
        cell,
        accelerator,
        block,
        collect_capacity(
            date, $skew_tolerance_ms, cell, accelerator, block, chips, state, start_ts, end_ts
        ) AS collected
    FROM telemetry.capacity
    GROUP BY cell, accelerator, block
)
SELECT cell, accelerator, book_capacity(block, collected, $rules) AS books
FROM block
