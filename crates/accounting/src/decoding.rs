//! The bytes of a collector as rows again ([`crate::encoding`]).
//!
//! Texts are borrowed from the bytes: a row costs no allocation. Rows come back as if each were the only copy of its kind:
//! [`crate::copies::choose`] is what tells otherwise.

use goodput_model::{Day, Reason, Table};

use crate::copies::{Counted, days_of_partition};
use crate::encoding::{
    CLOSED, END_IN_FUTURE, FIRST_STEP, HEAD, LAST_STEP, QUARANTINED, SAME_ATTEMPT, SAME_POOL, SKEWED, UNKNOWN_PHASE,
};
use crate::findings::Findings;
use crate::rows::{AllocationRow, CapacityRow, JobRow, Phase, ProfileRow, Recorded, RuntimeRow};
use crate::{AccountingError, Rules};

/// Rows of one table and one partition.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// The table.
    pub table: Table,
    /// The date of the partition.
    pub recorded: Day,
    records: &'a [u8],
}

impl Block<'_> {
    /// Bytes of its records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether it holds no record.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

/// The blocks of collected rows, by table and date; among those of one table and date in the order in which they stand.
pub fn blocks(bytes: &[u8]) -> Result<Vec<Block<'_>>, AccountingError> {
    let mut blocks = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (head, behind) = rest.split_first_chunk::<HEAD>().ok_or(ENDS_EARLY)?;
        let [table, date @ .., l0, l1, l2, l3] = *head;
        let table = *Table::ALL.get(usize::from(table)).ok_or(AccountingError::Damaged("table"))?;
        let length = usize::try_from(u32::from_le_bytes([l0, l1, l2, l3])).map_err(|_| ENDS_EARLY)?;
        let (records, behind) = behind.split_at_checked(length).ok_or(ENDS_EARLY)?;
        blocks.push(Block { table, recorded: Day(i32::from_le_bytes(date)), records });
        rest = behind;
    }
    blocks.sort_by_key(|block| (block.table, block.recorded));
    Ok(blocks)
}

const ENDS_EARLY: AccountingError = AccountingError::Damaged("it ends early");

/// Reads the rows of a block of chips.
pub fn read_capacity(
    blocks: &[Block<'_>],
    rules: &Rules,
    findings: &mut Findings,
) -> Result<Vec<Counted<CapacityRow>>, AccountingError> {
    read_rows(blocks, Table::Capacity, rules, findings, |reader, head, _| {
        let (chips, down) = (reader.int()?, reader.byte()? == 1);
        Ok(CapacityRow { recorded: head.recorded, start: head.start, end: head.end, chips, down })
    })
}

/// Reads the copies of a job's row.
pub fn read_jobs<'a>(
    blocks: &[Block<'a>],
    rules: &Rules,
    findings: &mut Findings,
) -> Result<Vec<Counted<JobRow<'a>>>, AccountingError> {
    read_rows(blocks, Table::Jobs, rules, findings, |reader, head, _| {
        let end_state = reader.text_or_null()?;
        let (chips_required, accelerator) = (reader.int()?, reader.text_or_null()?);
        let number = reader.unsigned()?;
        let axes = (0..number).map(|_| reader.text_or_null()).collect::<Result<_, _>>()?;
        let (recorded, submit, end) = (head.recorded, head.start, head.end);
        Ok(JobRow { recorded, submit, end, end_state, chips_required, accelerator, axes })
    })
}

/// Reads the allocations of a job.
pub fn read_allocations<'a>(
    blocks: &[Block<'a>],
    rules: &Rules,
    findings: &mut Findings,
) -> Result<Vec<Counted<AllocationRow<'a>>>, AccountingError> {
    let (mut cell, mut accelerator) = ("", "");
    read_rows(blocks, Table::Allocations, rules, findings, |reader, head, _| {
        if head.tag & SAME_POOL == 0 {
            (cell, accelerator) = (reader.text()?, reader.text()?);
        }
        let (task, chips) = (reader.text()?, reader.int()?);
        let (recorded, attempt, start, end) = (head.recorded, head.attempt, head.start, head.end);
        Ok(AllocationRow { recorded, attempt, task, cell, accelerator, chips, start, end })
    })
}

/// Reads the runtime rows of a job.
pub fn read_runtime(
    blocks: &[Block<'_>],
    rules: &Rules,
    findings: &mut Findings,
) -> Result<Vec<Counted<RuntimeRow>>, AccountingError> {
    let mut names: Vec<&str> = Vec::new();
    read_rows(blocks, Table::Runtime, rules, findings, |reader, head, findings| {
        let phase = match reader.byte()? {
            UNKNOWN_PHASE => {
                if rules.books(head.recorded) {
                    findings.count(head.recorded, Table::Runtime, Reason::UnknownPhase);
                }
                let name = reader.text()?;
                let position = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                });
                Phase::Unknown(u32::try_from(position).map_err(|_| AccountingError::Damaged("phases"))?)
            }
            code => Phase::from_code(code).ok_or(AccountingError::Damaged("phase"))?,
        };
        let first_step = if head.tag & FIRST_STEP != 0 { Some(reader.step()?) } else { None };
        let last_step = if head.tag & LAST_STEP != 0 {
            let last = reader.step()?;
            reader.last_step = last.wrapping_add(1);
            Some(last)
        } else {
            None
        };
        Ok(RuntimeRow::new(head.recorded, head.attempt, phase, (head.start, head.end), (first_step, last_step)))
    })
}

/// Reads the profile rows of a job.
pub fn read_profiles<'a>(
    blocks: &[Block<'a>],
    rules: &Rules,
    findings: &mut Findings,
) -> Result<Vec<Counted<ProfileRow<'a>>>, AccountingError> {
    read_rows(blocks, Table::Profiles, rules, findings, |reader, head, _| {
        Ok(ProfileRow {
            recorded: head.recorded,
            attempt: head.attempt,
            program: reader.text()?,
            start: head.start,
            end: head.end,
            steps: reader.int()?,
            step_time_us: reader.float()?,
            predicted_step_time_us: reader.float_or_null()?,
            flops_per_step: reader.float_or_null()?,
            bytes_per_step: reader.float_or_null()?,
            precision: reader.text_or_null()?,
        })
    })
}

/// Bytes that a row of `runtime` takes, about; there are by far the most of them.
const LIKELY_BYTES: usize = 8;

/// What all rows begin with.
struct Head {
    tag: u8,
    recorded: Day,
    attempt: i64,
    start: i64,
    end: Option<i64>,
}

/// Reads the rows of a table; counts what was found about those of the days of the run.
#[inline]
fn read_rows<'a, R: Recorded>(
    blocks: &[Block<'a>],
    table: Table,
    rules: &Rules,
    findings: &mut Findings,
    mut read: impl FnMut(&mut Reader<'a>, &Head, &mut Findings) -> Result<R, AccountingError>,
) -> Result<Vec<Counted<R>>, AccountingError> {
    let has_attempts = matches!(table, Table::Allocations | Table::Runtime | Table::Profiles);
    let bytes: usize = blocks.iter().filter(|block| block.table == table).map(Block::len).sum();
    let mut rows = Vec::with_capacity(bytes / LIKELY_BYTES);
    for block in blocks.iter().filter(|block| block.table == table) {
        let recorded = block.recorded;
        let is_booked = rules.books(recorded);
        let (first, last) = days_of_partition(recorded, rules);
        let mut reader = Reader { bytes: block.records, last_step: 0 };
        let (mut instant, mut attempt) = (recorded.midnight(), 0);
        while !reader.bytes.is_empty() {
            let tag = reader.byte()?;
            if tag == QUARANTINED {
                let code = usize::from(reader.byte()?);
                let reason = *Reason::ALL.get(code).ok_or(AccountingError::Damaged("reason"))?;
                if is_booked {
                    findings.count(recorded, table, reason);
                }
                continue;
            }
            let start = reader.int()?.saturating_add(instant);
            instant = start;
            let end = if tag & CLOSED != 0 {
                instant = start.saturating_add_unsigned(reader.unsigned()?);
                Some(instant)
            } else {
                None
            };
            if has_attempts && tag & SAME_ATTEMPT == 0 {
                attempt = reader.int()?;
            }
            if is_booked && tag & (SKEWED | END_IN_FUTURE) != 0 {
                if tag & SKEWED != 0 {
                    findings.count(recorded, table, Reason::Skewed);
                }
                if tag & END_IN_FUTURE != 0 {
                    findings.count(recorded, table, Reason::EndInFuture);
                }
            }
            let row = read(&mut reader, &Head { tag, recorded, attempt, start, end }, findings)?;
            rows.push(Counted { row, first, last });
        }
    }
    Ok(rows)
}

/// Reads the records of a block.
struct Reader<'a> {
    bytes: &'a [u8],
    last_step: i64,
}

impl<'a> Reader<'a> {
    fn take(&mut self, number: usize) -> Result<&'a [u8], AccountingError> {
        let (taken, rest) = self.bytes.split_at_checked(number).ok_or(ENDS_EARLY)?;
        self.bytes = rest;
        Ok(taken)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, AccountingError> {
        let (byte, rest) = self.bytes.split_first().ok_or(ENDS_EARLY)?;
        self.bytes = rest;
        Ok(*byte)
    }

    #[inline]
    fn unsigned(&mut self) -> Result<u64, AccountingError> {
        let first = self.byte()?;
        if first & 0x80 == 0 { Ok(u64::from(first)) } else { self.unsigned_of_many(u64::from(first & 0x7f)) }
    }

    fn unsigned_of_many(&mut self, mut value: u64) -> Result<u64, AccountingError> {
        let mut shift = 7;
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).ok_or(AccountingError::Damaged("integer"))?;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    #[inline]
    fn int(&mut self) -> Result<i64, AccountingError> {
        let value = self.unsigned()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    #[inline]
    fn step(&mut self) -> Result<i64, AccountingError> {
        self.last_step = self.int()?.wrapping_add(self.last_step);
        Ok(self.last_step)
    }

    fn float(&mut self) -> Result<f64, AccountingError> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(f64::from_le_bytes(bytes))
    }

    fn text(&mut self) -> Result<&'a str, AccountingError> {
        let length = usize::try_from(self.unsigned()?).map_err(|_| AccountingError::Damaged("length"))?;
        std::str::from_utf8(self.take(length)?).map_err(|_| AccountingError::Damaged("text"))
    }

    fn or_null<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, AccountingError>,
    ) -> Result<Option<T>, AccountingError> {
        match self.byte()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(AccountingError::Damaged("null mark")),
        }
    }

    fn float_or_null(&mut self) -> Result<Option<f64>, AccountingError> {
        self.or_null(Self::float)
    }

    fn text_or_null(&mut self) -> Result<Option<&'a str>, AccountingError> {
        self.or_null(Self::text)
    }
}
