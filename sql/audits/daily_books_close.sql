-- grain: one row a day on which the segments do not add up to the pools and the jobs
-- reads: goodput_daily, pool_day, job_day
-- why: the table for dashboards holds every chip-ms of the books once
WITH
of_segments AS (
    SELECT
        date,
        sum(capacity_chip_ms) AS capacity_chip_ms,
        sum(down_chip_ms) AS down_chip_ms,
        sum(idle_chip_ms) AS idle_chip_ms,
        sum(held_chip_ms) AS held_chip_ms,
        sum(productive_chip_ms) AS productive_chip_ms,
        sum(ideal_chip_ms) AS ideal_chip_ms,
        sum(queued_chip_ms) AS queued_chip_ms
    FROM goodput_daily
    GROUP BY date
),
of_pools AS (
    SELECT
        date,
        sum(capacity_chip_ms) AS capacity_chip_ms,
        sum(down_chip_ms) AS down_chip_ms,
        sum(idle_chip_ms) AS idle_chip_ms,
        sum(held_chip_ms) AS held_chip_ms
    FROM pool_day
    GROUP BY date
),
of_jobs AS (
    SELECT
        date,
        sum(productive_chip_ms) AS productive_chip_ms,
        sum(ideal_chip_ms) AS ideal_chip_ms,
        sum(queued_chip_ms) AS queued_chip_ms
    FROM job_day
    GROUP BY date
),
of_sources AS (
    SELECT
        coalesce(of_pools.date, of_jobs.date) AS date,
        coalesce(capacity_chip_ms, 0) AS capacity_chip_ms,
        coalesce(down_chip_ms, 0) AS down_chip_ms,
        coalesce(idle_chip_ms, 0) AS idle_chip_ms,
        coalesce(held_chip_ms, 0) AS held_chip_ms,
        coalesce(productive_chip_ms, 0) AS productive_chip_ms,
        coalesce(ideal_chip_ms, 0) AS ideal_chip_ms,
        coalesce(queued_chip_ms, 0) AS queued_chip_ms
    FROM of_pools FULL JOIN of_jobs ON of_pools.date = of_jobs.date
)
SELECT coalesce(of_sources.date, of_segments.date) AS date
FROM of_sources FULL JOIN of_segments ON of_sources.date = of_segments.date
WHERE (of_sources.capacity_chip_ms IS DISTINCT FROM of_segments.capacity_chip_ms)
    OR (of_sources.down_chip_ms IS DISTINCT FROM of_segments.down_chip_ms)
    OR (of_sources.idle_chip_ms IS DISTINCT FROM of_segments.idle_chip_ms)
    OR (of_sources.held_chip_ms IS DISTINCT FROM of_segments.held_chip_ms)
    OR (of_sources.productive_chip_ms IS DISTINCT FROM of_segments.productive_chip_ms)
    OR (of_sources.ideal_chip_ms IS DISTINCT FROM of_segments.ideal_chip_ms)
    OR (of_sources.queued_chip_ms IS DISTINCT FROM of_segments.queued_chip_ms)
