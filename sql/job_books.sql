-- grain: one row a job; null for rows without a job id
-- reads: telemetry.jobs, telemetry.allocations, telemetry.runtime, telemetry.profiles
-- why: joins what the scheduler, the runtime and the profiler say of a job by its id, and sweeps its time line once for all
--   days of the run, each day judged from the partitions of its own window
WITH
-- what was asked for: one row a job
asked AS (
    SELECT
        job_id,
        collect_jobs(
            date, $skew_tolerance_ms, job_id, submit_ts, end_ts, end_state, chips_required, accelerator, job_axes()
        ) AS collected
    FROM telemetry.jobs
    GROUP BY job_id
),
-- who held which chips: one row a job
held AS (
    SELECT
        job_id,
        collect_allocations(
            date, $skew_tolerance_ms, job_id, attempt, task, cell, accelerator, chips, start_ts, end_ts
        ) AS collected
    FROM telemetry.allocations
    GROUP BY job_id
),
-- what it did while it held them: one row a job
did AS (
    SELECT
        job_id,
        collect_runtime(
            date, $skew_tolerance_ms, job_id, attempt, phase, start_ts, end_ts, first_step, last_step
        ) AS collected
    FROM telemetry.runtime
    GROUP BY job_id
),
-- how good its programs were: one row a job
profiled AS (
    SELECT
        job_id,
        collect_profiles(
            date, $skew_tolerance_ms, job_id, attempt, program, start_ts, end_ts, steps, step_time_us,
            predicted_step_time_us, flops_per_step, bytes_per_step, precision
        ) AS collected
    FROM telemetry.profiles
    GROUP BY job_id
),
-- the scheduler's side: one row a job
scheduled AS (
    SELECT
        coalesce(asked.job_id, held.job_id) AS job_id,
        asked.collected AS jobs,
        held.collected AS allocations
    FROM asked FULL JOIN held ON asked.job_id = held.job_id
),
-- the job's own side: one row a job
observed AS (
    SELECT
        coalesce(did.job_id, profiled.job_id) AS job_id,
        did.collected AS runtime,
        profiled.collected AS profiles
    FROM did FULL JOIN profiled ON did.job_id = profiled.job_id
),
-- both: one row a job
job AS (
    SELECT
        coalesce(scheduled.job_id, observed.job_id) AS job_id,
        jobs,
        allocations,
        runtime,
        profiles
    FROM scheduled FULL JOIN observed ON scheduled.job_id = observed.job_id
)
SELECT job_id, book_job(job_id, jobs, allocations, runtime, profiles, $rules) AS books
FROM job
