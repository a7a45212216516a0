-- grain: one row a day, job, cell and accelerator; a row with a null cell holds what was asked for and not held
-- reads: job_books
-- why: the books of jobs, which every figure about jobs is a sum of
WITH
booked AS (
    SELECT job_id, unnest(books['days']) AS day
    FROM job_books
)
SELECT
    day['date'] AS date,
    job_id,
    day['cell'] AS cell,
    day['accelerator'] AS accelerator,
    day['partial_chip_ms'] AS partial_chip_ms,
    day['allocated_chip_ms'] AS allocated_chip_ms,
    day['init_chip_ms'] AS init_chip_ms,
    day['compile_chip_ms'] AS compile_chip_ms,
    day['restore_chip_ms'] AS restore_chip_ms,
    day['checkpoint_chip_ms'] AS checkpoint_chip_ms,
    day['data_wait_chip_ms'] AS data_wait_chip_ms,
    day['idle_runtime_chip_ms'] AS idle_runtime_chip_ms,
    day['eval_chip_ms'] AS eval_chip_ms,
    day['stall_chip_ms'] AS stall_chip_ms,
    day['unobserved_chip_ms'] AS unobserved_chip_ms,
    day['lost_chip_ms'] AS lost_chip_ms,
    day['productive_chip_ms'] AS productive_chip_ms,
    day['profiled_chip_ms'] AS profiled_chip_ms,
    day['ideal_chip_ms'] AS ideal_chip_ms,
    day['queued_chip_ms'] AS queued_chip_ms,
    job_axes(day),
    day['chips_required'] AS chips_required,
    day['size_class'] AS size_class,
    $metric_version AS metric_version,
    $run_id AS run_id,
    day['date'] > $settled_through AS is_provisional
FROM booked
