-- grain: one row a job, day and pool that ran faster than its ideal
-- reads: job_day
-- why: the ideal model is wrong about the program; the figures stand as they are
SELECT date, job_id, cell, accelerator, profiled_chip_ms, ideal_chip_ms
FROM job_day
WHERE ideal_chip_ms > profiled_chip_ms
