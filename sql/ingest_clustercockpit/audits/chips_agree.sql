-- grain: one row an attempt whose hosts do not list as many accelerators as it has
-- reads: attempts, allocations
-- why: the export says the number of accelerators twice
SELECT min(date) AS date, attempts.job_id, attempts.attempt, attempts.chips AS chips, sum(allocations.chips) AS listed
FROM attempts
JOIN allocations ON attempts.job_id = allocations.job_id AND attempts.attempt = allocations.attempt
WHERE allocations.end_ts IS NOT NULL
GROUP BY attempts.job_id, attempts.attempt, attempts.chips
HAVING sum(allocations.chips) <> attempts.chips
