-- grain: one row a job whose hosts do not list as many accelerators as the job has
-- reads: input.job, allocations
-- why: the export says the number of accelerators twice
SELECT min(date) AS date, allocations.job_id, num_acc, sum(chips) AS chips
FROM allocations
JOIN input.job
    ON allocations.job_id = concat(cluster, '/', job.job_id, '/', coalesce(nullif(submit_time, 0), start_time))
WHERE allocations.end_ts IS NOT NULL
GROUP BY allocations.job_id, num_acc
HAVING sum(chips) <> num_acc
