-- grain: one row a node with accelerators and day of the export
-- reads: input.cluster, input.job
-- why: which chips the cluster has, by its description. That has no dates: the nodes count as available from the first day
--   on which a job of the export ran to the last.
WITH
subcluster AS (
    SELECT
        json_get_str(content, 'name') AS cell,
        unnest(json_get_array(content, 'subClusters')) AS subcluster
    FROM input.cluster
),
node AS (
    SELECT
        cell,
        json_get_str(subcluster, 'name') AS accelerator,
        json_length(subcluster, 'topology', 'accelerators') AS chips,
        unnest(hostlist(json_get_str(subcluster, 'nodes'))) AS host
    FROM subcluster
    WHERE json_length(subcluster, 'topology', 'accelerators') > 0
),
-- as counts of days since the epoch
export AS (
    SELECT cluster AS cell, min(start_time) / 86400 AS first_day, max(start_time + duration) / 86400 AS last_day
    FROM input.job
    WHERE num_acc > 0
    GROUP BY cluster
),
node_day AS (
    SELECT node.*, first_day, unnest(range(first_day, last_day + 1)) AS day
    FROM node JOIN export ON node.cell = export.cell
)
SELECT
    arrow_cast(arrow_cast(day, 'Int32'), 'Date32') AS date,
    cell,
    accelerator,
    host AS block,
    chips,
    'available' AS state,
    to_timestamp_seconds(first_day * 86400) AS start_ts,
    CAST(NULL AS TIMESTAMP) AS end_ts
FROM node_day
