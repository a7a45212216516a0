-- grain: one row a job; null for rows without a job id
-- reads: job_rows
-- why: joins what the scheduler, the runtime and the profiler say of a job by its id, and sweeps its time line once for all
--   days of the chunk, each day judged from the partitions of its own window
WITH
-- what all tables and partitions say of a job
job AS (
    SELECT job_id, merge_collected(collected) AS collected
    FROM job_rows
    GROUP BY job_id
)
SELECT job_id, book_job(job_id, collected, $rules) AS books
FROM job
