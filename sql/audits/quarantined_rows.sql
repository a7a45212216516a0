-- grain: one row a date and source table with more quarantined rows than are put up with
-- reads: data_quality
-- why: rows that are left out are missing from the figures
SELECT date, source_table, sum(rows) AS rows
FROM data_quality
WHERE reason IN ('null_required', 'bad_value', 'negative_interval', 'implausible_start', 'from_the_future')
GROUP BY date, source_table
HAVING sum(rows) > $most_quarantined_rows
