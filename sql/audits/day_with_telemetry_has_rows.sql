-- grain: one row a day whose partition says that there were chips, and that has no row for them
-- reads: telemetry.capacity, telemetry.allocations, input.days, pool_day
-- why: a fault on the way from telemetry to books must not publish an empty day
WITH
-- chips that a partition records for its own day, of rows recorded once, that no rule of the accounting can take away
told AS (
    SELECT min(date) AS date
    FROM telemetry.capacity
    GROUP BY cell, accelerator, block, start_ts
    HAVING count(*) = 1
        AND bool_and(
            chips > 0 AND state IN ('available', 'down') AND cell IS NOT NULL AND accelerator IS NOT NULL
            AND block IS NOT NULL AND start_ts >= TIMESTAMP '2000-01-01' AND start_ts < date + INTERVAL '1 day'
            AND (end_ts IS NULL OR (end_ts > start_ts AND end_ts > date)))
    UNION ALL
    SELECT min(date) AS date
    FROM telemetry.allocations
    GROUP BY job_id, attempt, task, cell, accelerator, start_ts
    HAVING count(*) = 1
        AND bool_and(
            chips > 0 AND attempt >= 0 AND job_id IS NOT NULL AND task IS NOT NULL AND cell IS NOT NULL
            AND accelerator IS NOT NULL AND start_ts >= TIMESTAMP '2000-01-01' AND start_ts < date + INTERVAL '1 day'
            AND end_ts > start_ts AND end_ts > date AND end_ts < date + INTERVAL '2 days')
)
SELECT DISTINCT told.date
FROM told JOIN input.days ON told.date = input.days.date
WHERE NOT EXISTS (SELECT 1 FROM pool_day WHERE pool_day.date = told.date)
