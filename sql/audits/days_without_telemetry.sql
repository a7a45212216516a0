-- grain: one row a day without any partition between days that have some
-- reads: input.days
-- why: a day on which nobody recorded anything is a gap in the figures, not an idle fleet
SELECT date
FROM input.days
WHERE files = 0
