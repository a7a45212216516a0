-- grain: one row a key of pool_day that is null or not unique
-- reads: pool_day
-- why: a key names one row
SELECT date, cell, accelerator, count(*) AS rows
FROM pool_day
GROUP BY date, cell, accelerator
HAVING count(*) > 1 OR date IS NULL OR cell IS NULL OR accelerator IS NULL
