-- grain: one row a block of chips, of the partitions that are read together
-- reads: telemetry.capacity
-- why: each file decoded once: its rows judged, in few bytes, kept for all days whose windows ask for them
SELECT
    cell,
    accelerator,
    block,
    collect_capacity(
        date, $skew_tolerance_ms, cell, accelerator, block, chips, state, start_ts, end_ts
    ) AS collected
FROM telemetry.capacity
GROUP BY cell, accelerator, block
