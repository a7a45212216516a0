-- grain: one row a job and day on which it was pending or running; the row of the day on which it ended is closed
-- reads: input.job
-- why: what was asked for. A job number is used again after years, so the time of submission is part of the id; rows of one
--   number and submission are attempts of one job. Jobs without accelerators are no business of this accounting.
WITH
attempt AS (
    SELECT
        cluster AS cell,
        job_id AS number,
        -- the export has 0 where the time of submission is not known: it started then at the latest
        coalesce(nullif(submit_time, 0), start_time) AS submit_s,
        start_time AS start_s,
        start_time + duration AS end_s,
        CASE WHEN job_state = 'running' THEN NULL ELSE job_state END AS end_state,
        num_acc,
        subcluster,
        hpc_user,
        project,
        cluster_partition
    FROM input.job
    WHERE num_acc > 0
),
last_attempt AS (
    SELECT *
    FROM attempt
    QUALIFY row_number() OVER (PARTITION BY cell, number, submit_s ORDER BY start_s DESC, end_s DESC) = 1
),
-- one row a job and day, both as counts of days since the epoch
job_day AS (
    SELECT *, end_s / 86400 AS end_day, unnest(range(submit_s / 86400, end_s / 86400 + 1)) AS day
    FROM last_attempt
)
SELECT
    arrow_cast(arrow_cast(day, 'Int32'), 'Date32') AS date,
    concat(cell, '/', number, '/', submit_s) AS job_id,
    to_timestamp_seconds(submit_s) AS submit_ts,
    CASE WHEN day = end_day AND end_state IS NOT NULL THEN to_timestamp_seconds(end_s) END AS end_ts,
    CASE WHEN day = end_day THEN end_state END AS end_state,
    num_acc AS chips_required,
    subcluster AS accelerator,
    project AS team,
    hpc_user AS user,
    cluster_partition AS priority
FROM job_day
