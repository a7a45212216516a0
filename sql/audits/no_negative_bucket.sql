-- grain: one row a day and table with a bucket below zero
-- reads: pool_day, job_day
-- why: chip-time cannot be negative; idle may be, where more is held than there is, and so may the loss of a program
--   that runs faster than its ideal
SELECT DISTINCT date, 'pool_day' AS in_table
FROM pool_day
WHERE least(capacity_chip_ms, down_chip_ms, held_chip_ms, partial_chip_ms, allocated_chip_ms) < 0
UNION ALL
SELECT DISTINCT date, 'job_day' AS in_table
FROM job_day
WHERE least(
        partial_chip_ms, allocated_chip_ms, init_chip_ms, compile_chip_ms, restore_chip_ms, checkpoint_chip_ms,
        data_wait_chip_ms, idle_runtime_chip_ms, eval_chip_ms, stall_chip_ms, unobserved_chip_ms, lost_chip_ms,
        productive_chip_ms, profiled_chip_ms, ideal_chip_ms, queued_chip_ms) < 0
