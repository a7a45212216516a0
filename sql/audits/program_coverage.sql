-- grain: one row a day on which too little of the productive chip-time was profiled
-- reads: job_day
-- why: program goodput speaks of the profiled part alone
SELECT date, sum(productive_chip_ms) AS productive_chip_ms, sum(profiled_chip_ms) AS profiled_chip_ms
FROM job_day
GROUP BY date
HAVING ratio(sum(profiled_chip_ms), sum(productive_chip_ms)) < $least_program_coverage
