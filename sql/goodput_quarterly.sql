-- grain: one row a quarter and segment: the fleet, each axis alone, the pools, and all axes together (`segment_by` says which)
-- reads: goodput_daily
-- why: the ratios, each a quotient of sums, and each only where it is valid: scheduling goodput needs capacity, which
--   belongs to pools and not to jobs
WITH
dated AS (
    SELECT
        concat(date_part('year', date), '-Q', date_part('quarter', date)) AS quarter,
        goodput_daily.*
    FROM goodput_daily
),
segment AS (
    SELECT
        quarter,
        grouped_by(grouping(axes()), names_of(axes())) AS segment_by,
        axes(),
        count(DISTINCT date) AS days,
        sum(capacity_chip_ms) AS capacity_chip_ms,
        sum(down_chip_ms) AS down_chip_ms,
        sum(idle_chip_ms) AS idle_chip_ms,
        sum(held_chip_ms) AS held_chip_ms,
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
        sum(queued_chip_ms) AS queued_chip_ms,
        bool_or(is_provisional) AS is_provisional
    FROM dated
    GROUP BY GROUPING SETS (
        (quarter),
        (quarter, each_of(axes())),
        (quarter, pool_axes()),
        (quarter, axes())
    )
),
fleet AS (
    SELECT quarter, capacity_chip_ms AS fleet_capacity_chip_ms
    FROM segment
    WHERE segment_by = 'fleet'
),
judged AS (
    SELECT
        segment.*,
        fleet_capacity_chip_ms,
        owns_capacity(segment_by) AS owns_capacity,
        checked_sub(allocated_chip_ms, unobserved_chip_ms) AS observed_chip_ms
    FROM segment JOIN fleet ON segment.quarter = fleet.quarter
    -- the capacity rows of pools are no segment of an axis that belongs to jobs
    WHERE segment_by IN ('fleet', 'all') OR owns_capacity(segment_by) OR coalesce(axes()) IS NOT NULL
),
divided AS (
    SELECT
        *,
        CASE WHEN owns_capacity THEN ratio(allocated_chip_ms, capacity_chip_ms) END AS scheduling_goodput,
        ratio(productive_chip_ms, observed_chip_ms) AS runtime_goodput,
        ratio(ideal_chip_ms, profiled_chip_ms) AS program_goodput
    FROM judged
)
SELECT
    quarter,
    segment_by,
    axes(),
    days,
    capacity_chip_ms,
    down_chip_ms,
    idle_chip_ms,
    held_chip_ms,
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
    scheduling_goodput,
    runtime_goodput,
    program_goodput,
    scheduling_goodput * runtime_goodput * program_goodput AS mpg,
    CASE WHEN owns_capacity THEN ratio(ideal_chip_ms, capacity_chip_ms) END AS mpg_floor,
    ratio(allocated_chip_ms, checked_add(allocated_chip_ms, partial_chip_ms)) AS gang_goodput,
    ratio(allocated_chip_ms, checked_add(allocated_chip_ms, partial_chip_ms, queued_chip_ms)) AS demand_goodput,
    runtime_goodput * program_goodput AS efficiency,
    ratio(allocated_chip_ms, fleet_capacity_chip_ms) AS capacity_share,
    ratio(ideal_chip_ms, fleet_capacity_chip_ms) AS mpg_share,
    ratio(observed_chip_ms, allocated_chip_ms) AS runtime_coverage,
    ratio(profiled_chip_ms, productive_chip_ms) AS program_coverage,
    CASE WHEN owns_capacity THEN ratio(checked_sub(capacity_chip_ms, down_chip_ms), capacity_chip_ms) END AS availability,
    CASE WHEN owns_capacity THEN ratio(held_chip_ms, capacity_chip_ms) END AS occupancy,
    $metric_version AS metric_version,
    $run_id AS run_id,
    is_provisional
FROM divided
