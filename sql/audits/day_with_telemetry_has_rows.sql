-- grain: one row a day whose partition says that there were chips, and that has no row for them
-- reads: telemetry.capacity, telemetry.allocations, input.days, pool_day
-- why: a fault on the way from telemetry to books must not publish an empty day
WITH
-- instants as integers: a cast to another unit fails on what is not plausible
chips AS (
    SELECT
        date,
        concat_ws('/', cell, accelerator, block) AS holder,
        chips > 0 AND state IN ('available', 'down') AND cell IS NOT NULL AND accelerator IS NOT NULL
            AND block IS NOT NULL AS is_valid,
        arrow_cast(date, 'Int32') * CAST(86400000 AS BIGINT) AS midnight_ms,
        arrow_cast(start_ts, 'Int64') AS start_ms,
        coalesce(arrow_cast(end_ts, 'Int64'), (arrow_cast(date, 'Int32') + 1) * CAST(86400000 AS BIGINT)) AS end_ms
    FROM telemetry.capacity
    UNION ALL
    SELECT
        date,
        concat_ws('/', job_id, attempt, task, cell, accelerator) AS holder,
        chips > 0 AND attempt >= 0 AND job_id IS NOT NULL AND task IS NOT NULL AND cell IS NOT NULL
            AND accelerator IS NOT NULL AS is_valid,
        arrow_cast(date, 'Int32') * CAST(86400000 AS BIGINT) AS midnight_ms,
        arrow_cast(start_ts, 'Int64') AS start_ms,
        -- an open allocation may be ended by other rows: it tells nothing here
        arrow_cast(end_ts, 'Int64') AS end_ms
    FROM telemetry.allocations
),
-- of rows recorded once, those that no rule of the accounting can take from the day on which they were recorded
told AS (
    SELECT min(date) AS date
    FROM chips
    GROUP BY holder, start_ms
    HAVING count(*) = 1
        AND bool_and(
            is_valid AND start_ms >= 946684800000 AND start_ms < midnight_ms + 86400000
            AND end_ms > start_ms AND end_ms > midnight_ms AND end_ms <= midnight_ms + 172800000)
)
SELECT DISTINCT told.date
FROM told JOIN input.days ON told.date = input.days.date
WHERE NOT EXISTS (SELECT 1 FROM pool_day WHERE pool_day.date = told.date)
