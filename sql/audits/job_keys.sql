-- grain: one row a key of job_day that is null or not unique
-- reads: job_day
-- why: a key names one row; only what is queued has no cell
SELECT date, job_id, cell, accelerator, count(*) AS rows
FROM job_day
GROUP BY date, job_id, cell, accelerator
HAVING count(*) > 1
    OR date IS NULL
    OR job_id IS NULL
    OR (cell IS NULL AND max(allocated_chip_ms + partial_chip_ms) > 0)
    OR (cell IS NOT NULL AND (accelerator IS NULL OR max(queued_chip_ms) > 0))
