-- grain: one row a pool and day whose books do not close
-- reads: pool_day
-- why: capacity is down, idle or held, and held chips are partial or allocated, to the unit
SELECT date, cell, accelerator, capacity_chip_ms, down_chip_ms, idle_chip_ms, held_chip_ms, partial_chip_ms, allocated_chip_ms
FROM pool_day
WHERE capacity_chip_ms <> checked_add(down_chip_ms, idle_chip_ms, held_chip_ms)
    OR held_chip_ms <> checked_add(partial_chip_ms, allocated_chip_ms)
