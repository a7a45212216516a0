-- grain: one row a pool and day in which more is held than there is
-- reads: pool_day
-- why: the scheduler's two tables contradict each other; the figures stand as they are
SELECT date, cell, accelerator, capacity_chip_ms, down_chip_ms, held_chip_ms, idle_chip_ms
FROM pool_day
WHERE idle_chip_ms < 0
