-- grain: one row a day whose partition says that there were chips, and that has no row for them
-- reads: capacity_books, job_books, input.days, pool_day
-- why: a fault on the way from books to tables must not publish an empty day
WITH
-- days of which rows that were recorded on them speak, as no rule of the accounting can take away
told AS (
    SELECT unnest(books['told']) AS date
    FROM capacity_books
    UNION ALL
    SELECT unnest(books['told']) AS date
    FROM job_books
)
SELECT DISTINCT told.date
FROM told JOIN input.days ON told.date = input.days.date
WHERE NOT EXISTS (SELECT 1 FROM pool_day WHERE pool_day.date = told.date)
