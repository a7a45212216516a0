-- grain: one row a day on which too little of the allocated chip-time was observed
-- reads: job_day
-- why: runtime goodput speaks of the observed part alone
SELECT date, sum(allocated_chip_ms) AS allocated_chip_ms, sum(unobserved_chip_ms) AS unobserved_chip_ms
FROM job_day
GROUP BY date
HAVING 1 - ratio(sum(unobserved_chip_ms), sum(allocated_chip_ms)) < $least_runtime_coverage
