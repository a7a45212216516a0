-- grain: one row an attempt of a job, as the export has it
-- reads: input.job
-- why: a job number is used again after years, so the time of submission is part of a job's id; rows of one number and
--   submission are attempts of one job, numbered by their start. Jobs without accelerators are no business of this
--   accounting.
WITH
-- the export has 0 where the time of submission is not known: it was submitted when it started, at the latest
submitted AS (
    SELECT *, coalesce(nullif(submit_time, 0), start_time) AS submit_s
    FROM input.job
    WHERE num_acc > 0
)
SELECT
    concat(cluster, '/', job_id, '/', submit_s) AS job_id,
    CAST(row_number() OVER (PARTITION BY cluster, job_id, submit_s ORDER BY start_time, duration) AS BIGINT) - 1 AS attempt,
    "cluster" AS cell,
    subcluster AS accelerator,
    submit_s,
    start_time AS start_s,
    start_time + duration AS end_s,
    -- of a job that still ran when the export was made, the end is that of the export
    CASE WHEN job_state = 'running' THEN NULL ELSE job_state END AS end_state,
    num_acc AS chips,
    resources,
    project,
    hpc_user,
    cluster_partition
FROM submitted
