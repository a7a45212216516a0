-- grain: one row a job and day on which it was pending or running; the row of the day on which it ended is closed
-- reads: attempts
-- why: what was asked for
WITH
last_attempt AS (
    SELECT *
    FROM attempts
    QUALIFY row_number() OVER (PARTITION BY job_id ORDER BY attempt DESC) = 1
),
-- one row a job and day, both as counts of days since the epoch
job_day AS (
    SELECT *, end_s / 86400 AS end_day, unnest(range(submit_s / 86400, end_s / 86400 + 1)) AS day
    FROM last_attempt
)
SELECT
    arrow_cast(arrow_cast(day, 'Int32'), 'Date32') AS date,
    job_id,
    to_timestamp_seconds(submit_s) AS submit_ts,
    CASE WHEN day = end_day AND end_state IS NOT NULL THEN to_timestamp_seconds(end_s) END AS end_ts,
    CASE WHEN day = end_day THEN end_state END AS end_state,
    chips AS chips_required,
    accelerator,
    project AS team,
    hpc_user AS user,
    cluster_partition AS priority
FROM job_day
