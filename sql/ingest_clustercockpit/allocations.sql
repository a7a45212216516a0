-- grain: one row an attempt, host and day on which it was held; the row of the day on which it ended is closed
-- reads: attempts
-- why: who held which chips: the JSON column `resources` lists the accelerators of each host
WITH
on_host AS (
    SELECT *, unnest(json_get_array(resources)) AS host
    FROM attempts
),
-- one row an attempt, host and day, as counts of days since the epoch
host_day AS (
    SELECT *, end_s / 86400 AS end_day, unnest(range(start_s / 86400, end_s / 86400 + 1)) AS day
    FROM on_host
)
SELECT
    arrow_cast(arrow_cast(day, 'Int32'), 'Date32') AS date,
    job_id,
    attempt,
    json_get_str(host, 'hostname') AS task,
    cell,
    accelerator,
    json_length(host, 'accelerators') AS chips,
    to_timestamp_seconds(start_s) AS start_ts,
    CASE WHEN day = end_day AND end_state IS NOT NULL THEN to_timestamp_seconds(end_s) END AS end_ts,
    CASE WHEN day = end_day THEN end_state END AS end_reason
FROM host_day
WHERE json_length(host, 'accelerators') > 0
