-- grain: one row a day and segment; and one a day and pool, with null job axes, for the capacity that no job can own
-- reads: job_day, pool_day
-- why: the table for dashboards: every ratio is a quotient of sums over its rows
WITH
of_jobs AS (
    SELECT
        date,
        axes(),
        sum(partial_chip_ms) AS partial_chip_ms,
        sum(allocated_chip_ms) AS allocated_chip_ms,
        sum(init_chip_ms) AS init_chip_ms,
        sum(compile_chip_ms) AS compile_chip_ms,
        sum(restore_chip_ms) AS restore_chip_ms,
        sum(checkpoint_chip_ms) AS checkpoint_chip_ms,
        sum(data_wait_chip_ms) AS data_wait_chip_ms,
        sum(idle_runtime_chip_ms) AS idle_runtime_chip_ms,
        sum(eval_chip_ms) AS eval_chip_ms,
        sum(stall_chip_ms) AS stall_chip_ms,
        sum(unobserved_chip_ms) AS unobserved_chip_ms,
        sum(lost_chip_ms) AS lost_chip_ms,
        sum(productive_chip_ms) AS productive_chip_ms,
        sum(profiled_chip_ms) AS profiled_chip_ms,
        sum(ideal_chip_ms) AS ideal_chip_ms,
        sum(queued_chip_ms) AS queued_chip_ms
    FROM job_day
    GROUP BY date, axes()
),
of_pools AS (
    SELECT
        date,
        pool_axes(),
        nulls_of(segment_axes()),
        sum(capacity_chip_ms) AS capacity_chip_ms,
        sum(down_chip_ms) AS down_chip_ms,
        sum(idle_chip_ms) AS idle_chip_ms
    FROM pool_day
    GROUP BY date, pool_axes()
)
SELECT
    date,
    axes(),
    0 AS capacity_chip_ms,
    0 AS down_chip_ms,
    0 AS idle_chip_ms,
    checked_add(partial_chip_ms, allocated_chip_ms) AS held_chip_ms,
    partial_chip_ms,
    allocated_chip_ms,
    init_chip_ms,
    compile_chip_ms,
    restore_chip_ms,
    checkpoint_chip_ms,
    data_wait_chip_ms,
    idle_runtime_chip_ms,
    eval_chip_ms,
    stall_chip_ms,
    unobserved_chip_ms,
    lost_chip_ms,
    productive_chip_ms,
    profiled_chip_ms,
    ideal_chip_ms,
    queued_chip_ms,
    $metric_version AS metric_version,
    $run_id AS run_id,
    date > $settled_through AS is_provisional
FROM of_jobs
UNION ALL
SELECT
    date,
    axes(),
    capacity_chip_ms,
    down_chip_ms,
    idle_chip_ms,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    $metric_version,
    $run_id,
    date > $settled_through
FROM of_pools
