-- grain: one row a block of chips
-- reads: capacity_rows
-- why: sweeps the time line of each block once for all days of the chunk, each judged from its own window
WITH
block AS (
    SELECT cell, accelerator, block, merge_collected(collected) AS collected
    FROM capacity_rows
    GROUP BY cell, accelerator, block
)
SELECT cell, accelerator, book_capacity(block, collected, $rules) AS books
FROM block
