-- grain: one row a job, day and pool whose books do not close
-- reads: job_day
-- why: allocated chips are in exactly one bucket, and productive ones are profiled altogether or not at all
SELECT date, job_id, cell, accelerator, allocated_chip_ms, productive_chip_ms, profiled_chip_ms
FROM job_day
WHERE allocated_chip_ms <> checked_add(
        init_chip_ms, compile_chip_ms, restore_chip_ms, checkpoint_chip_ms, data_wait_chip_ms, idle_runtime_chip_ms,
        eval_chip_ms, stall_chip_ms, unobserved_chip_ms, lost_chip_ms, productive_chip_ms)
    OR profiled_chip_ms NOT IN (0, productive_chip_ms)
    OR (profiled_chip_ms = 0 AND ideal_chip_ms <> 0)
