-- grain: one row a job and table, of the partitions that are read together; null for rows without a job id
-- reads: telemetry.jobs, telemetry.allocations, telemetry.runtime, telemetry.profiles
-- why: what the scheduler, the runtime and the profiler say of a job, each file decoded once: judged, in few bytes, kept for
--   all days whose windows ask for it
SELECT
    job_id,
    collect_jobs(
        date, $skew_tolerance_ms, job_id, submit_ts, end_ts, end_state, chips_required, accelerator, job_axes()
    ) AS collected
FROM telemetry.jobs
GROUP BY job_id
UNION ALL
SELECT
    job_id,
    collect_allocations(
        date, $skew_tolerance_ms, job_id, attempt, task, cell, accelerator, chips, start_ts, end_ts
    ) AS collected
FROM telemetry.allocations
GROUP BY job_id
UNION ALL
SELECT
    job_id,
    collect_runtime(
        date, $skew_tolerance_ms, job_id, attempt, phase, start_ts, end_ts, first_step, last_step
    ) AS collected
FROM telemetry.runtime
GROUP BY job_id
UNION ALL
SELECT
    job_id,
    collect_profiles(
        date, $skew_tolerance_ms, job_id, attempt, program, start_ts, end_ts, steps, step_time_us,
        predicted_step_time_us, flops_per_step, bytes_per_step, precision
    ) AS collected
FROM telemetry.profiles
GROUP BY job_id
