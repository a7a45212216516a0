-- The accounting of metric version 1 as somebody who knows DuckDB would write it for speed: what goodput is measured against.
-- grain: `job_day`, `pool_day` and `goodput_daily`, as goodput publishes them, for the days of [from_ms, until_ms)
-- reads: raw_capacity, raw_jobs, raw_allocations, raw_runtime, raw_profiles: the contract's columns, instants as epoch ms in
--        BIGINT, `d` the day number of the partition (run.py makes these views, and sets from_ms, until_ms and skew_ms)
--
-- It reads the partitions that it is given as one window, and takes the step rows of one attempt as they follow each other:
-- it agrees with goodput where no fact reaches further than `settle_days` and no two step rows of an attempt overlap.
--
-- Surrogate keys are integers: jid (job), aid (job and attempt), pid (cell and accelerator), sid (segment of an attempt).

CREATE OR REPLACE TEMP MACRO day_of(ms) AS ms // 86400000;
CREATE OR REPLACE TEMP MACRO midnight_after(d) AS (d + 1) * 86400000::BIGINT;

-- A row that can be believed: it starts in this millennium and at most a day after its partition, and does not end before.
CREATE OR REPLACE TEMP MACRO believed(s, e, d) AS
    s >= 946684800000 AND s <= midnight_after(d + 1) AND (e IS NULL OR e >= s - getvariable('skew_ms'));

-- An end far after its partition is a plan: the row is open.
CREATE OR REPLACE TEMP MACRO told_end(e, d) AS CASE WHEN e <= midnight_after(d + 1) THEN e END;

-- The unit of the highest and of the middle one of three counters of 20 bits in a word.
CREATE OR REPLACE TEMP MACRO high() AS 1099511627776;
CREATE OR REPLACE TEMP MACRO middle() AS 1048576;

-- The midnights inside of [s, e): the days that begin within it.
CREATE OR REPLACE TEMP MACRO midnights(s, e) AS unnest(range(day_of(s) + 1, day_of(e - 1) + 1)) * 86400000;

-- ---------------------------------------------------------------------------------------------------------------------
-- What was asked for.

-- one row a job of `jobs`: the copy that counts
CREATE OR REPLACE TEMP TABLE listed AS
WITH
valid AS (
    SELECT *, told_end(end_ms, d) AS e
    FROM raw_jobs
    WHERE job_id IS NOT NULL AND chips_required >= 0 AND believed(submit_ms, end_ms, d)
)
SELECT
    job_id,
    submit_ms,
    CASE WHEN e IS NOT NULL THEN greatest(submit_ms, e) END AS closed_ms,
    greatest(submit_ms, coalesce(e, midnight_after(d))) AS end_ms,
    e IS NOT NULL AND end_state IN ('failed', 'preempted', 'node_fail', 'timeout', 'out_of_memory') AS unclean,
    chips_required, accelerator, framework, phase, model_family, team, "user", priority, topology
FROM valid
QUALIFY row_number() OVER (
    PARTITION BY job_id
    ORDER BY
        d DESC, e NULLS LAST, submit_ms, end_state NULLS LAST, chips_required, accelerator NULLS LAST,
        framework NULLS LAST, phase NULLS LAST, model_family NULLS LAST, team NULLS LAST, "user" NULLS LAST,
        priority NULLS LAST, topology NULLS LAST
) = 1;

-- one row a job that `jobs` or `allocations` name
CREATE OR REPLACE TEMP TABLE job AS
SELECT
    row_number() OVER ()::INTEGER AS jid,
    job_id,
    chips_required IS NOT NULL AS is_listed,
    coalesce(chips_required, 0) AS req,
    listed.* EXCLUDE (job_id, chips_required)
FROM listed
FULL JOIN (SELECT DISTINCT job_id FROM raw_allocations WHERE job_id IS NOT NULL) USING (job_id);

-- ---------------------------------------------------------------------------------------------------------------------
-- Who held which chips.

-- one row a pool
CREATE OR REPLACE TEMP TABLE pool AS
SELECT row_number() OVER ()::INTEGER AS pid, cell, accelerator
FROM (
    SELECT cell, accelerator FROM raw_allocations WHERE cell IS NOT NULL AND accelerator IS NOT NULL
    UNION
    SELECT cell, accelerator FROM raw_capacity WHERE cell IS NOT NULL AND accelerator IS NOT NULL
);

-- one row a task name, so that what follows compares integers
CREATE OR REPLACE TEMP TABLE part AS
SELECT row_number() OVER ()::INTEGER AS task_no, task
FROM (SELECT DISTINCT task FROM raw_allocations WHERE task IS NOT NULL);

-- one row an allocation: the copy that counts
CREATE OR REPLACE TEMP TABLE told_allocation AS
SELECT jid, attempt, task_no, pid, chips, start_ms AS s, told_end(r.end_ms, d) AS e, d
FROM raw_allocations r
JOIN job USING (job_id)
JOIN part USING (task)
JOIN pool ON pool.cell = r.cell AND pool.accelerator = r.accelerator
WHERE attempt >= 0 AND chips > 0 AND believed(start_ms, r.end_ms, d)
QUALIFY row_number() OVER (
    PARTITION BY jid, attempt, task_no, pid, s ORDER BY d DESC, e NULLS LAST, chips
) = 1;

-- one row an attempt with allocations, and when the next one started
CREATE OR REPLACE TEMP TABLE started AS
SELECT
    row_number() OVER ()::INTEGER AS aid,
    jid,
    attempt,
    req,
    closed_ms,
    lead(first_s) OVER (PARTITION BY jid ORDER BY attempt) AS next_s
FROM (SELECT jid, attempt, min(s) AS first_s FROM told_allocation GROUP BY ALL)
JOIN job USING (jid);

-- one row an allocation, with its effective end
CREATE OR REPLACE TEMP TABLE alloc AS
SELECT aid, pid, task_no, chips, s, greatest(s, coalesce(e, least(next_s, closed_ms, midnight_after(d)))) AS e
FROM told_allocation
JOIN started USING (jid, attempt);

DROP TABLE told_allocation;

-- one row an attempt with allocations, and the latest end of these
CREATE OR REPLACE TEMP TABLE att AS
SELECT aid, jid, attempt, req, last_e
FROM started
JOIN (SELECT aid, max(e) AS last_e FROM alloc GROUP BY ALL) USING (aid);

-- disjoint intervals of one (attempt, pool, task) with the chips that count: where rows overlap the largest
CREATE OR REPLACE TEMP TABLE holding AS
WITH
inside AS (
    SELECT
        aid, pid, task_no, chips,
        greatest(s, getvariable('from_ms')) AS s,
        least(e, getvariable('until_ms')) AS e
    FROM alloc
    WHERE e > s AND e > getvariable('from_ms') AND s < getvariable('until_ms')
),
marked AS (
    SELECT *, coalesce(max(e) OVER before > s, false) AS hit
    FROM inside
    WINDOW before AS (
        PARTITION BY aid, pid, task_no ORDER BY s ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
messy AS (
    SELECT DISTINCT aid, pid, task_no FROM marked WHERE hit
),
tangled AS (
    SELECT * FROM marked SEMI JOIN messy USING (aid, pid, task_no)
),
piece AS (
    SELECT aid, pid, task_no, t AS s, lead(t) OVER (PARTITION BY aid, pid, task_no ORDER BY t) AS e
    FROM (SELECT aid, pid, task_no, s AS t FROM tangled UNION SELECT aid, pid, task_no, e FROM tangled)
)
SELECT aid, pid, chips, s, e FROM marked ANTI JOIN messy USING (aid, pid, task_no)
UNION ALL
SELECT p.aid, p.pid, max(t.chips), p.s, p.e
FROM piece p
JOIN tangled t ON t.aid = p.aid AND t.pid = p.pid AND t.task_no = p.task_no AND t.s < p.e AND t.e > p.s
GROUP BY p.aid, p.pid, p.task_no, p.s, p.e;

-- one row an instant at which the chips of an attempt in a pool change
CREATE OR REPLACE TEMP TABLE change AS
SELECT aid, pid, t, sum(delta)::BIGINT AS delta
FROM (
    SELECT aid, pid, s AS t, chips AS delta FROM holding
    UNION ALL
    SELECT aid, pid, e, -chips FROM holding
)
GROUP BY ALL;

-- segments of an attempt, in which it holds the same chips, cut at midnight: one row a pool with chips in it
CREATE OR REPLACE TEMP TABLE seg AS
WITH
span AS (
    SELECT aid, min(t) AS s, max(t) AS e FROM change GROUP BY ALL
),
instant AS (
    SELECT aid, t FROM change
    UNION
    SELECT aid, midnights(s, e) FROM span WHERE day_of(s) < day_of(e - 1)
),
numbered AS (
    SELECT
        aid, t AS s, lead(t) OVER (PARTITION BY aid ORDER BY t) AS e, row_number() OVER () AS sid
    FROM instant
),
grid AS (
    SELECT n.aid, n.s, n.e, n.sid, p.pid, coalesce(c.delta, 0) AS delta
    FROM numbered n
    JOIN (SELECT DISTINCT aid, pid FROM change) p USING (aid)
    LEFT JOIN change c ON c.aid = n.aid AND c.t = n.s AND c.pid = p.pid
),
level AS (
    SELECT
        aid, pid, sid, s, e,
        (sum(delta) OVER (PARTITION BY aid, pid ORDER BY s ROWS UNBOUNDED PRECEDING))::BIGINT AS chips
    FROM grid
),
total AS (
    SELECT *, (sum(chips) OVER (PARTITION BY sid))::BIGINT AS held
    FROM level
    WHERE e IS NOT NULL AND e > s
)
SELECT jid, aid, pid, sid, s, e, day_of(s)::INTEGER AS day, chips, held >= req AS whole
FROM total
JOIN att USING (aid)
WHERE chips > 0;

-- ---------------------------------------------------------------------------------------------------------------------
-- What the jobs did. The classes of chip-time, in the order in which they decide: 0 restore, 1 compile, 2 init,
-- 3 checkpoint, 4 data_wait, 5 idle, 6 eval, 7 productive, 8 lost. The kinds of rows are the same but for 7 step, 8 serve,
-- 9 checkpoint_async, and from 10 on the unknown phases, which are idle.

SET VARIABLE unknown_phases = (
    SELECT list(DISTINCT phase)
    FROM raw_runtime
    WHERE phase NOT IN (
        'restore', 'compile', 'init', 'checkpoint', 'data_wait', 'idle', 'eval', 'step', 'serve', 'checkpoint_async',
        'data_async'
    )
);

-- Only jobs that hold chips on the days that are booked.
CREATE OR REPLACE TEMP TABLE wanted AS
SELECT job_id, jid FROM job SEMI JOIN (SELECT DISTINCT jid FROM seg) USING (jid);

-- One row a runtime row that counts. An attempt's rows are sorted once, by key, and of the copies of one key the one that
-- counts stands last; everything else is said by neighbours, because frames without an end are dear in large partitions:
--   alone: on one day, and none of the rows before and after it is open with it. For rows further away this holds unless
--     some row is `wide`; then the attempt is swept.
--   breaks: a step row that does not go on after the step row before it, other than as its copy. As long as none does, no
--     row of an attempt cuts another one of it.
-- Copies stand among the neighbours, too: that makes a row seem less alone or a break than it is, which costs time only.
CREATE OR REPLACE TEMP TABLE activity AS
WITH
valid AS (
    SELECT
        jid,
        attempt,
        CASE phase
            WHEN 'step' THEN 7
            WHEN 'serve' THEN 8
            WHEN 'restore' THEN 0
            WHEN 'compile' THEN 1
            WHEN 'init' THEN 2
            WHEN 'checkpoint' THEN 3
            WHEN 'data_wait' THEN 4
            WHEN 'idle' THEN 5
            WHEN 'eval' THEN 6
            WHEN 'checkpoint_async' THEN 9
            ELSE 9 + list_position(getvariable('unknown_phases'), phase)
        END::SMALLINT AS kind,
        start_ms AS s,
        told_end(end_ms, d) AS e,
        d,
        first_step AS a,
        last_step AS b
    FROM raw_runtime
    JOIN wanted USING (job_id)
    WHERE
        phase <> 'data_async'
        AND attempt >= 0
        AND believed(start_ms, end_ms, d)
        AND NOT coalesce(phase = 'step' AND last_step < first_step, false)
),
ended AS (
    SELECT
        valid.jid, aid, attempt, kind, s, e AS told_e, d, a, b,
        greatest(s, coalesce(e, least(last_e, midnight_after(d)))) AS e,
        CASE WHEN kind = 7 AND a IS NOT NULL THEN b END AS reached
    FROM valid
    LEFT JOIN att USING (jid, attempt)
),
sorted AS (
    SELECT
        jid, aid, attempt, kind, s, e, told_e IS NOT NULL AS closed, a, b,
        coalesce(lead(s) OVER w = s AND lead(attempt) OVER w = attempt AND lead(kind) OVER w = kind, false) AS dropped,
        coalesce(lead(s) OVER w >= e, true)
            AND coalesce(greatest(lag(e) OVER w, lag(e, 2) OVER w, lag(e, 3) OVER w) <= s, true)
            AND day_of(s) = day_of(e - 1) AS alone,
        kind <> 9 AND coalesce(lead(s, 4) OVER w < e, false) AS wide,
        coalesce(
            reached IS NOT NULL
            AND lag(reached IGNORE NULLS) OVER w >= a
            AND NOT (lag(s) OVER w = s AND lag(kind) OVER w = 7 AND lag(a) OVER w = a AND lag(reached) OVER w = b),
            false
        ) AS breaks
    FROM ended
    WINDOW w AS (
        PARTITION BY coalesce(aid, -jid)
        ORDER BY
            s, attempt, kind, d, told_e DESC NULLS FIRST, a DESC NULLS FIRST, b DESC NULLS FIRST
    )
)
SELECT
    jid, aid, attempt, CASE WHEN kind > 9 THEN 5 ELSE kind END::TINYINT AS kind, s, e, closed, a, b, alone,
    wide AND NOT dropped AS wide, breaks, dropped
FROM sorted
WHERE NOT dropped OR breaks;

-- one row an attempt and day with telemetry: what nobody explains is a stall, and not unobserved
CREATE OR REPLACE TEMP TABLE seen AS
WITH
counts AS (
    SELECT aid, s, e FROM activity WHERE NOT dropped AND aid IS NOT NULL AND kind <> 9
)
SELECT DISTINCT aid, day_of(s)::INTEGER AS day FROM counts
UNION
SELECT aid, (midnights(s, e) // 86400000)::INTEGER FROM counts WHERE e > s AND day_of(e - 1) > day_of(s);

-- one row a job that ended unclean and had saved steps: the first one that did not survive
CREATE OR REPLACE TEMP TABLE saved AS
SELECT jid, arg_max(b, (e, b)) + 1 AS cut
FROM activity
JOIN job USING (jid)
WHERE NOT dropped AND kind IN (3, 9) AND closed AND b IS NOT NULL AND unclean
GROUP BY ALL;

-- One row an attempt: the first of its steps that did not survive, if its job's attempts come one after the other and their
-- rows go on from each other. The other jobs are `odd`: what comes after each of their rows is looked for.
CREATE OR REPLACE TEMP TABLE fate AS
WITH
walked AS (
    SELECT
        aid,
        min(a) FILTER (kind = 7 AND b IS NOT NULL) AS least,
        min(s) FILTER (kind = 7) AS first_s,
        max(s) FILTER (kind = 7) AS last_s,
        bool_or(wide) AS wide,
        bool_or(breaks) AS breaks
    FROM activity
    WHERE aid IS NOT NULL
    GROUP BY ALL
),
ordered AS (
    SELECT
        aid, jid, wide, breaks,
        min(least) OVER (w ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS later,
        coalesce(max(last_s) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) > first_s, false) AS crosses
    FROM walked
    JOIN att USING (aid)
    WINDOW w AS (PARTITION BY jid ORDER BY attempt)
),
odd AS (
    SELECT jid FROM ordered WHERE breaks OR crosses
    UNION
    SELECT jid FROM activity WHERE aid IS NULL
)
SELECT aid, wide, least(later, cut) AS cut, odd.jid IS NOT NULL AS odd
FROM ordered
LEFT JOIN saved USING (jid)
LEFT JOIN odd USING (jid);

-- one row a segment of a whole gang and class: how long it was of that class
CREATE OR REPLACE TEMP TABLE booked AS
WITH
even AS NOT MATERIALIZED (
    SELECT aid, kind, s, e, a, b, alone AND NOT wide_ AS alone, cut AS c
    FROM activity
    JOIN (SELECT aid, cut, wide AS wide_ FROM fate WHERE NOT odd) USING (aid)
),
odd AS (
    SELECT DISTINCT jid FROM att JOIN fate USING (aid) WHERE odd
),
uneven AS NOT MATERIALIZED (
    SELECT
        aid, kind, s, e, a, b, false AS alone,
        least(cut, min(CASE WHEN kind = 7 AND b IS NOT NULL THEN a END) OVER (
            PARTITION BY jid ORDER BY s, attempt ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        )) AS c
    FROM activity
    SEMI JOIN odd USING (jid)
    LEFT JOIN saved USING (jid)
    WHERE NOT dropped
),
-- of its class until m, lost from there
busy AS NOT MATERIALIZED (
    SELECT
        aid, CASE WHEN kind = 8 THEN 7 ELSE kind END::TINYINT AS class, s, e, alone,
        CASE
            WHEN kind <> 7 OR a IS NULL OR b IS NULL OR c IS NULL OR c > b THEN e
            WHEN c <= a THEN s
            ELSE s + ((c - a)::HUGEINT * (e - s) // (b::HUGEINT - a + 1))::BIGINT
        END AS m
    FROM (SELECT * FROM even UNION ALL SELECT * FROM uneven)
    WHERE aid IS NOT NULL AND kind <> 9 AND e > s AND e > getvariable('from_ms') AND s < getvariable('until_ms')
),
gang AS (
    SELECT DISTINCT aid, day, sid, s, e FROM seg WHERE whole
),
-- Rows that are alone meet the segments of their day.
direct AS (
    SELECT
        sid,
        class,
        sum(greatest(0, least(b.m, g.e) - greatest(b.s, g.s))) AS ms,
        sum(greatest(0, least(b.e, g.e) - greatest(b.m, g.s))) AS lost
    FROM busy b
    JOIN gang g ON b.aid = g.aid AND day_of(b.s) = g.day AND b.s < g.e AND b.e > g.s
    WHERE alone
    GROUP BY ALL
),
-- The others are swept: at each instant the segment, and the number of open rows of each class. These are counters of 20
-- bits, three a word, the class that decides first in the highest bits, so that one comparison finds it.
weight(class, w0, w1, w2) AS (
    SELECT
        c::TINYINT,
        CASE WHEN c // 3 = 0 THEN w ELSE 0 END,
        CASE WHEN c // 3 = 1 THEN w ELSE 0 END,
        CASE WHEN c // 3 = 2 THEN w ELSE 0 END
    FROM (SELECT c, CASE c % 3 WHEN 0 THEN high() WHEN 1 THEN middle() ELSE 1 END::BIGINT AS w FROM range(9) t(c))
),
piece AS (
    SELECT aid, s, e, w0, w1, w2
    FROM (
        SELECT aid, s, m AS e, class FROM busy WHERE NOT alone AND m > s
        UNION ALL
        SELECT aid, m, e, 8::TINYINT FROM busy WHERE NOT alone AND e > m
    )
    JOIN weight USING (class)
),
event AS (
    SELECT aid, s AS t, w0, w1, w2, 0::BIGINT AS sid FROM piece
    UNION ALL
    SELECT aid, e, -w0, -w1, -w2, 0 FROM piece
    UNION ALL
    SELECT aid, s, 0, 0, 0, sid FROM gang
    UNION ALL
    SELECT aid, e, 0, 0, 0, -sid FROM gang
),
swept AS (
    SELECT
        lead(t) OVER w - t AS ms,
        (sum(w0) OVER w)::BIGINT AS w0,
        (sum(w1) OVER w)::BIGINT AS w1,
        (sum(w2) OVER w)::BIGINT AS w2,
        (sum(sid) OVER w)::BIGINT AS sid
    FROM event
    WINDOW w AS (PARTITION BY aid ORDER BY t ROWS UNBOUNDED PRECEDING)
),
decided AS (
    SELECT
        sid,
        ms,
        CASE
            WHEN w0 >= high() THEN 0
            WHEN w0 >= middle() THEN 1
            WHEN w0 > 0 THEN 2
            WHEN w1 >= high() THEN 3
            WHEN w1 >= middle() THEN 4
            WHEN w1 > 0 THEN 5
            WHEN w2 >= high() THEN 6
            WHEN w2 >= middle() THEN 7
            ELSE 8
        END::TINYINT AS class
    FROM swept
    WHERE sid > 0 AND ms > 0 AND (w0 > 0 OR w1 > 0 OR w2 > 0)
)
SELECT sid, class, sum(ms)::BIGINT AS ms
FROM (
    SELECT sid, class, ms FROM decided
    UNION ALL
    SELECT sid, class, ms FROM direct
    UNION ALL
    SELECT sid, 8::TINYINT, lost FROM direct WHERE lost > 0
)
GROUP BY ALL;

DROP TABLE activity;

-- ---------------------------------------------------------------------------------------------------------------------
-- How good the programs were.

-- one row a job and day with a usable prediction
CREATE OR REPLACE TEMP TABLE ratio AS
WITH
profile AS (
    SELECT jid, start_ms AS s, steps, step_time_us AS t, predicted_step_time_us AS ideal
    FROM raw_profiles p
    JOIN job USING (job_id)
    WHERE
        attempt >= 0
        AND program IS NOT NULL
        AND p.end_ms IS NOT NULL
        AND steps > 0
        AND step_time_us > 0 AND step_time_us < 1e12
        AND (predicted_step_time_us IS NULL OR predicted_step_time_us > 0 AND predicted_step_time_us < 1e12)
        AND believed(start_ms, p.end_ms, d)
    QUALIFY row_number() OVER (
        PARTITION BY jid, attempt, program, start_ms
        ORDER BY d DESC, told_end(p.end_ms, d) NULLS LAST, steps, step_time_us, predicted_step_time_us NULLS LAST
    ) = 1
)
SELECT jid, day_of(s)::INTEGER AS day, fsum(steps * ideal) / fsum(steps * t) AS ratio
FROM profile
WHERE ideal IS NOT NULL
GROUP BY ALL;

-- ---------------------------------------------------------------------------------------------------------------------
-- The books.

-- one row an attempt, pool and day
CREATE OR REPLACE TEMP TABLE attempt_day AS
WITH
held AS (
    SELECT
        jid, aid, pid, day,
        coalesce(sum(chips * (e - s)) FILTER (NOT whole), 0) AS partial,
        coalesce(sum(chips * (e - s)) FILTER (whole), 0) AS allocated
    FROM seg
    GROUP BY ALL
),
used AS (
    SELECT
        aid, pid, day,
        sum(chips * ms) FILTER (class = 0) AS restore,
        sum(chips * ms) FILTER (class = 1) AS compile,
        sum(chips * ms) FILTER (class = 2) AS init,
        sum(chips * ms) FILTER (class = 3) AS checkpoint,
        sum(chips * ms) FILTER (class = 4) AS data_wait,
        sum(chips * ms) FILTER (class = 5) AS idle_runtime,
        sum(chips * ms) FILTER (class = 6) AS eval,
        sum(chips * ms) FILTER (class = 7) AS productive,
        sum(chips * ms) FILTER (class = 8) AS lost,
        sum(chips * ms) AS used
    FROM booked
    JOIN seg USING (sid)
    GROUP BY ALL
)
SELECT
    held.*,
    used.* EXCLUDE (aid, pid, day),
    seen.aid IS NOT NULL AS is_seen,
    allocated - coalesce(used, 0) AS unexplained
FROM held
LEFT JOIN used USING (aid, pid, day)
LEFT JOIN seen USING (aid, day);

-- one row a job and day on which it waited for chips
CREATE OR REPLACE TEMP TABLE queued AS
WITH
open AS (
    SELECT jid, greatest(submit_ms, getvariable('from_ms')) AS s, least(end_ms, getvariable('until_ms')) AS e
    FROM job
    WHERE is_listed AND req > 0 AND s < e
),
event AS (
    SELECT jid, t, delta, 0 AS open FROM change JOIN att USING (aid) SEMI JOIN open USING (jid)
    UNION ALL
    SELECT jid, s, 0, 1 FROM open
    UNION ALL
    SELECT jid, e, 0, -1 FROM open
    UNION ALL
    SELECT jid, midnights(s, e), 0, 0 FROM open WHERE day_of(s) < day_of(e - 1)
),
swept AS (
    SELECT jid, t, lead(t) OVER w - t AS ms, sum(delta) OVER w AS held, sum(open) OVER w AS open
    FROM event
    WINDOW w AS (PARTITION BY jid ORDER BY t ROWS UNBOUNDED PRECEDING)
)
SELECT jid, day_of(t)::INTEGER AS day, sum((req - held)::BIGINT * ms)::BIGINT AS queued
FROM swept
JOIN job USING (jid)
WHERE ms > 0 AND open > 0 AND held < req
GROUP BY ALL;

CREATE OR REPLACE TEMP TABLE job_day AS
WITH
summed AS (
    SELECT
        jid, day, pid,
        coalesce(sum(partial), 0)::BIGINT AS partial,
        coalesce(sum(allocated), 0)::BIGINT AS allocated,
        coalesce(sum(init), 0)::BIGINT AS init,
        coalesce(sum(compile), 0)::BIGINT AS compile,
        coalesce(sum(restore), 0)::BIGINT AS restore,
        coalesce(sum(checkpoint), 0)::BIGINT AS checkpoint,
        coalesce(sum(data_wait), 0)::BIGINT AS data_wait,
        coalesce(sum(idle_runtime), 0)::BIGINT AS idle_runtime,
        coalesce(sum(eval), 0)::BIGINT AS eval,
        coalesce(sum(unexplained) FILTER (is_seen), 0)::BIGINT AS stall,
        coalesce(sum(unexplained) FILTER (NOT is_seen), 0)::BIGINT AS unobserved,
        coalesce(sum(lost), 0)::BIGINT AS lost,
        coalesce(sum(productive), 0)::BIGINT AS productive
    FROM attempt_day
    GROUP BY ALL
),
held AS (
    SELECT
        summed.* EXCLUDE (pid),
        CASE WHEN ratio IS NULL THEN 0 ELSE productive END AS profiled,
        CASE WHEN ratio IS NULL THEN 0 ELSE floor(productive * ratio)::BIGINT END AS ideal,
        0::BIGINT AS queued,
        cell,
        accelerator
    FROM summed
    JOIN pool USING (pid)
    LEFT JOIN ratio USING (jid, day)
),
waited AS (
    SELECT
        jid, day, NULL::VARCHAR AS cell, accelerator, queued, 0 AS partial, 0 AS allocated, 0 AS init, 0 AS compile,
        0 AS restore, 0 AS checkpoint, 0 AS data_wait, 0 AS idle_runtime, 0 AS eval, 0 AS stall, 0 AS unobserved,
        0 AS lost, 0 AS productive, 0 AS profiled, 0 AS ideal
    FROM queued
    JOIN job USING (jid)
    WHERE queued > 0
),
booked_day AS (
    SELECT * FROM held
    UNION ALL BY NAME
    SELECT * FROM waited
)
SELECT
    DATE '1970-01-01' + day AS date,
    job_id,
    cell,
    booked_day.accelerator,
    partial AS partial_chip_ms,
    allocated AS allocated_chip_ms,
    init AS init_chip_ms,
    compile AS compile_chip_ms,
    restore AS restore_chip_ms,
    checkpoint AS checkpoint_chip_ms,
    data_wait AS data_wait_chip_ms,
    idle_runtime AS idle_runtime_chip_ms,
    eval AS eval_chip_ms,
    stall AS stall_chip_ms,
    unobserved AS unobserved_chip_ms,
    lost AS lost_chip_ms,
    productive AS productive_chip_ms,
    profiled AS profiled_chip_ms,
    ideal AS ideal_chip_ms,
    queued AS queued_chip_ms,
    coalesce(framework, 'unknown') AS framework,
    coalesce(phase, 'unknown') AS phase,
    coalesce(model_family, 'unknown') AS model_family,
    coalesce(team, 'unknown') AS team,
    coalesce("user", 'unknown') AS "user",
    coalesce(priority, 'unknown') AS priority,
    coalesce(topology, 'unknown') AS topology,
    req AS chips_required,
    CASE
        WHEN NOT is_listed THEN 'unknown'
        WHEN req <= 16 THEN 'small'
        WHEN req <= 128 THEN 'medium'
        WHEN req <= 1024 THEN 'large'
        ELSE 'extra_large'
    END AS size_class
FROM booked_day
JOIN job USING (jid);

-- ---------------------------------------------------------------------------------------------------------------------
-- Which chips the fleet had.

CREATE OR REPLACE TEMP TABLE pool_day AS
WITH
valid AS (
    SELECT cell, accelerator, block, chips, state, start_ms AS s, told_end(end_ms, d) AS e, d
    FROM raw_capacity
    WHERE
        cell IS NOT NULL AND accelerator IS NOT NULL AND block IS NOT NULL
        AND chips > 0 AND state IN ('available', 'down') AND believed(start_ms, end_ms, d)
    QUALIFY row_number() OVER (
        PARTITION BY cell, accelerator, block, start_ms ORDER BY d DESC, e NULLS LAST, chips, state
    ) = 1
),
ended AS (
    SELECT
        cell, accelerator, block, chips, state = 'down' AS down, s,
        greatest(s, coalesce(e, midnight_after(d))) AS e
    FROM valid
),
marked AS (
    SELECT *, coalesce(max(e) OVER before > s, false) AS hit
    FROM ended
    WHERE e > s
    WINDOW before AS (
        PARTITION BY cell, accelerator, block ORDER BY s ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
messy AS (
    SELECT DISTINCT cell, accelerator, block FROM marked WHERE hit
),
tangled AS (
    SELECT * FROM marked SEMI JOIN messy USING (cell, accelerator, block)
),
instant AS (
    SELECT cell, accelerator, block, s AS t FROM tangled
    UNION
    SELECT cell, accelerator, block, e FROM tangled
),
piece AS (
    SELECT cell, accelerator, block, t AS s, lead(t) OVER (PARTITION BY cell, accelerator, block ORDER BY t) AS e
    FROM instant
),
state AS (
    SELECT cell, accelerator, chips, down, s, e FROM marked ANTI JOIN messy USING (cell, accelerator, block)
    UNION ALL
    SELECT p.cell, p.accelerator, arg_max(t.chips, t.s), arg_max(t.down, t.s), p.s, p.e
    FROM piece p
    JOIN tangled t
        ON t.cell = p.cell AND t.accelerator = p.accelerator AND t.block = p.block AND t.s < p.e AND t.e > p.s
    GROUP BY p.cell, p.accelerator, p.block, p.s, p.e
),
clipped AS (
    SELECT
        cell, accelerator, chips, down,
        greatest(s, getvariable('from_ms')) AS s,
        least(e, getvariable('until_ms')) AS e
    FROM state
    WHERE e > getvariable('from_ms') AND s < getvariable('until_ms')
),
daily AS (
    SELECT *, unnest(range(day_of(s), day_of(e - 1) + 1)) AS day FROM clipped
),
timed AS (
    SELECT
        cell, accelerator, day, down,
        chips * (least(e, midnight_after(day)) - greatest(s, day * 86400000)) AS chip_ms
    FROM daily
),
available AS (
    SELECT
        cell, accelerator, day,
        sum(chip_ms) AS capacity,
        coalesce(sum(chip_ms) FILTER (down), 0) AS down
    FROM timed
    GROUP BY ALL
),
held AS (
    SELECT cell, accelerator, day, sum(partial) AS partial, sum(allocated) AS allocated
    FROM attempt_day
    JOIN pool USING (pid)
    GROUP BY ALL
),
books AS (
    SELECT
        day, cell, accelerator,
        coalesce(capacity, 0)::BIGINT AS capacity,
        coalesce(down, 0)::BIGINT AS down,
        coalesce(partial, 0)::BIGINT AS partial,
        coalesce(allocated, 0)::BIGINT AS allocated
    FROM available
    FULL JOIN held USING (cell, accelerator, day)
)
SELECT
    DATE '1970-01-01' + day::INTEGER AS date,
    cell,
    accelerator,
    capacity AS capacity_chip_ms,
    down AS down_chip_ms,
    partial + allocated AS held_chip_ms,
    partial AS partial_chip_ms,
    allocated AS allocated_chip_ms,
    capacity - down - partial - allocated AS idle_chip_ms
FROM books;

-- ---------------------------------------------------------------------------------------------------------------------
-- What is published.

COPY (SELECT * FROM pool_day ORDER BY date, cell, accelerator)
TO '$OUT/pool_day' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (date), OVERWRITE_OR_IGNORE);

COPY (SELECT * FROM job_day ORDER BY date, job_id, cell, accelerator)
TO '$OUT/job_day' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (date), OVERWRITE_OR_IGNORE);

COPY (
    WITH
    of_jobs AS (
        SELECT
            date, cell, accelerator, size_class, framework, phase, model_family, team,
            0::BIGINT AS capacity_chip_ms,
            0::BIGINT AS down_chip_ms,
            0::BIGINT AS idle_chip_ms,
            sum(partial_chip_ms + allocated_chip_ms)::BIGINT AS held_chip_ms,
            sum(COLUMNS('_chip_ms$'))::BIGINT AS "\0"
        FROM job_day
        GROUP BY ALL
    ),
    -- the capacity that no job can own, and nothing else
    of_pools AS (
        SELECT
            date, cell, accelerator, capacity_chip_ms, down_chip_ms, idle_chip_ms, 0::BIGINT AS held_chip_ms,
            0::BIGINT AS partial_chip_ms, 0::BIGINT AS allocated_chip_ms
        FROM pool_day
    )
    SELECT
        date, cell, accelerator, size_class, framework, phase, model_family, team,
        coalesce(COLUMNS('_chip_ms$'), 0) AS "\0"
    FROM (SELECT * FROM of_jobs UNION ALL BY NAME SELECT * FROM of_pools)
    ORDER BY date, cell, accelerator, size_class, framework, phase, model_family, team
)
TO '$OUT/goodput_daily' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (date), OVERWRITE_OR_IGNORE);
