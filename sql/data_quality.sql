-- grain: one row a date of a partition, source table and reason; a null date for what lies beside the partitions
-- reads: job_books, capacity_books, input.files_found
-- why: nothing is dropped silently: every row that was left out or noticed is counted here, and every file
WITH
found AS (
    SELECT unnest(books['findings']) AS finding
    FROM job_books
    UNION ALL
    SELECT unnest(books['findings']) AS finding
    FROM capacity_books
),
counted AS (
    SELECT
        finding['date'] AS date,
        finding['source_table'] AS source_table,
        finding['reason'] AS reason,
        finding['rows'] AS rows
    FROM found
    UNION ALL
    SELECT date, source_table, reason, rows
    FROM input.files_found
)
SELECT
    date,
    source_table,
    reason,
    sum(rows) AS rows,
    $metric_version AS metric_version,
    $run_id AS run_id,
    date > $settled_through AS is_provisional
FROM counted
GROUP BY date, source_table, reason
