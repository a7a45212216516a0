//! The rows of a job, or of a block, as bytes: the partial results of the collecting aggregates.
//!
//! The bytes are a sequence of *blocks*. A block holds rows of one table and one partition and stands for itself, so that
//! partial results merge by concatenation, in any order and over any number of partitions and nodes, and so that the rows
//! of days that nobody asks for are passed over unread ([`crate::decoding`]). Within a block a row is written relative to
//! the one before it: where rows come in the order of time a runtime row takes about 8 bytes. Each row is judged as it is
//! appended: a valid row is kept, of any other what was found.
//!
//! | bytes of a block | |
//! |---|---|
//! | 1 | the table, as its position in [`Table::ALL`] |
//! | 4 | the date of the partition, days since the epoch |
//! | 4 | the length of what follows |
//! | rest | records: a tag, then what the table needs |

use std::ops::Range;

use goodput_model::{Day, Reason, Table};

use crate::raw::{RawAllocation, RawCapacity, RawJob, RawProfile, RawRuntime};
use crate::rows::PhaseName;
use crate::validity::Interval;

/// The tag of a quarantined row; its reason follows. All other tags are sums of the flags below.
pub(crate) const QUARANTINED: u8 = 0;
/// A valid row.
pub(crate) const ROW: u8 = 1;
/// Its end came a little before its start.
pub(crate) const SKEWED: u8 = 2;
/// Its end lay in the future.
pub(crate) const END_IN_FUTURE: u8 = 4;
/// It has an end.
pub(crate) const CLOSED: u8 = 8;
/// Its attempt is that of the row before it.
pub(crate) const SAME_ATTEMPT: u8 = 16;
/// `runtime`: it has a first step. `allocations`: its cell and accelerator are those of the row before it.
pub(crate) const FIRST_STEP: u8 = 32;
/// See [`FIRST_STEP`].
pub(crate) const SAME_POOL: u8 = 32;
/// `runtime`: it has a last step.
pub(crate) const LAST_STEP: u8 = 64;

/// The code of a phase that the contract does not have; its name follows.
pub(crate) const UNKNOWN_PHASE: u8 = u8::MAX;

/// Bytes of a block before its records.
pub(crate) const HEAD: usize = 9;

/// Where a block ends and the next begins, though table and date be the same: lengths stay small.
const LARGEST_BLOCK: usize = 1 << 20;

/// Bytes that are set aside with the first row, so that most groups do not have to grow often: a few rows, and of those of
/// `runtime` as many as a job has on a day.
const FIRST_BYTES: usize = 192;
const FIRST_BYTES_OF_RUNTIME: usize = 512;

/// Collects the rows of one group.
#[derive(Debug, Default)]
pub struct Collector {
    bytes: Vec<u8>,
    open: Option<OpenBlock>,
}

/// The block to which rows are being appended, and the row that came last.
#[derive(Debug, Clone)]
struct OpenBlock {
    table: Table,
    recorded: Day,
    /// Where its records begin.
    records: usize,
    last: LastRow,
}

/// What the next row is written relative to.
#[derive(Debug, Clone)]
struct LastRow {
    instant: i64,
    step: i64,
    attempt: i64,
    cell: Range<usize>,
    accelerator: Range<usize>,
}

impl LastRow {
    /// What the first row of a block is written relative to.
    fn none(recorded: Day) -> LastRow {
        LastRow { instant: recorded.midnight(), step: 0, attempt: 0, cell: 0..0, accelerator: 0..0 }
    }
}

impl Collector {
    /// Appends a row of `capacity`.
    pub fn capacity(&mut self, recorded: Day, raw: &RawCapacity<'_>, skew_tolerance_ms: i64) {
        let mut block = self.block(Table::Capacity, recorded);
        match raw.judge(recorded, skew_tolerance_ms) {
            Err(reason) => block.quarantined(reason),
            Ok((interval, chips, down)) => {
                block.begin(interval, 0);
                block.int(chips);
                block.byte(u8::from(down));
            }
        }
    }

    /// Appends a row of `jobs`.
    pub fn job(&mut self, recorded: Day, raw: &RawJob<'_>, skew_tolerance_ms: i64) {
        let mut block = self.block(Table::Jobs, recorded);
        match raw.judge(recorded, skew_tolerance_ms) {
            Err(reason) => block.quarantined(reason),
            Ok((interval, chips_required)) => {
                block.begin(interval, 0);
                block.text_or_null(raw.end_state);
                block.int(chips_required);
                block.text_or_null(raw.accelerator);
                block.unsigned(raw.axes.len() as u64);
                for axis in &raw.axes {
                    block.text_or_null(*axis);
                }
            }
        }
    }

    /// Appends a row of `allocations`.
    pub fn allocation(&mut self, recorded: Day, raw: &RawAllocation<'_>, skew_tolerance_ms: i64) {
        let mut block = self.block(Table::Allocations, recorded);
        match raw.judge(recorded, skew_tolerance_ms) {
            Err(reason) => block.quarantined(reason),
            Ok(row) => {
                let same_pool = block.is_last_pool(row.cell, row.accelerator);
                block.begin_of_attempt(row.interval, row.attempt, if same_pool { SAME_POOL } else { 0 });
                if !same_pool {
                    block.last.cell = block.text(row.cell);
                    block.last.accelerator = block.text(row.accelerator);
                }
                block.text(row.task);
                block.int(row.chips);
            }
        }
    }

    /// Appends a row of `runtime`.
    #[inline]
    pub fn runtime(&mut self, recorded: Day, raw: &RawRuntime<'_>, skew_tolerance_ms: i64) {
        let mut block = self.block(Table::Runtime, recorded);
        match raw.judge(recorded, skew_tolerance_ms) {
            Err(reason) => block.quarantined(reason),
            Ok((interval, attempt, phase)) => {
                let flag = |set: bool, flag: u8| if set { flag } else { 0 };
                let steps = flag(raw.first_step.is_some(), FIRST_STEP) | flag(raw.last_step.is_some(), LAST_STEP);
                let mut record = Record::default();
                block.last.begin_of_attempt(&mut record, interval, attempt, steps);
                match phase {
                    PhaseName::Known(code) => record.byte(code),
                    PhaseName::Unknown(name) => {
                        record.byte(UNKNOWN_PHASE);
                        block.append(&record);
                        record = Record::default();
                        block.text(name);
                    }
                }
                if let Some(first) = raw.first_step {
                    block.last.step(&mut record, first);
                }
                if let Some(last) = raw.last_step {
                    block.last.step(&mut record, last);
                    // The next row begins where this one leaves off.
                    block.last.step = last.wrapping_add(1);
                }
                block.append(&record);
            }
        }
    }

    /// Appends a row of `profiles`.
    pub fn profile(&mut self, recorded: Day, raw: &RawProfile<'_>, skew_tolerance_ms: i64) {
        let mut block = self.block(Table::Profiles, recorded);
        match raw.judge(recorded, skew_tolerance_ms) {
            Err(reason) => block.quarantined(reason),
            Ok(row) => {
                block.begin_of_attempt(row.interval, row.attempt, 0);
                block.text(row.program);
                block.int(row.steps);
                block.float(row.step_time_us);
                for value in [raw.predicted_step_time_us, raw.flops_per_step, raw.bytes_per_step] {
                    block.byte(u8::from(value.is_some()));
                    if let Some(value) = value {
                        block.float(value);
                    }
                }
                block.text_or_null(raw.precision);
            }
        }
    }

    /// Appends what another collector took.
    pub fn append(&mut self, bytes: &[u8]) {
        self.close();
        self.bytes.extend_from_slice(bytes);
    }

    /// Gives what was collected, and begins anew.
    pub fn take(&mut self) -> Vec<u8> {
        self.close();
        std::mem::take(&mut self.bytes)
    }

    /// Bytes of what was collected.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was collected.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes that are set aside for rows.
    pub fn capacity_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The block for rows of a table and a partition.
    #[inline]
    fn block(&mut self, table: Table, recorded: Day) -> BlockWriter<'_> {
        let goes_on = self.open.as_ref().is_some_and(|open| {
            open.table == table && open.recorded == recorded && self.bytes.len() - open.records < LARGEST_BLOCK
        });
        if !goes_on {
            self.begin_block(table, recorded);
        }
        let open = self.open.get_or_insert_with(|| OpenBlock::new(table, recorded, 0));
        BlockWriter { bytes: &mut self.bytes, last: &mut open.last }
    }

    #[cold]
    fn begin_block(&mut self, table: Table, recorded: Day) {
        self.close();
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(if table == Table::Runtime { FIRST_BYTES_OF_RUNTIME } else { FIRST_BYTES });
        }
        self.bytes.push(table.code());
        self.bytes.extend_from_slice(&recorded.0.to_le_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        self.open = Some(OpenBlock::new(table, recorded, self.bytes.len()));
    }

    /// Writes the length of the open block into its head.
    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            // A block is closed soon after it has become large; a row is far smaller than what is left of 32 bits.
            let length = u32::try_from(self.bytes.len() - open.records).unwrap_or(u32::MAX);
            if let Some(head) = self.bytes.get_mut(open.records - 4..open.records) {
                head.copy_from_slice(&length.to_le_bytes());
            }
        }
    }
}

impl OpenBlock {
    fn new(table: Table, recorded: Day, records: usize) -> OpenBlock {
        OpenBlock { table, recorded, records, last: LastRow::none(recorded) }
    }
}

impl LastRow {
    /// Begins a valid row.
    #[inline]
    fn begin(&mut self, record: &mut Record, interval: Interval, flags: u8) {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        record.byte(
            ROW | flag(interval.skewed, SKEWED)
                | flag(interval.end_in_future, END_IN_FUTURE)
                | flag(interval.end.is_some(), CLOSED)
                | flags,
        );
        record.int(interval.start - self.instant);
        self.instant = interval.start;
        if let Some(end) = interval.end {
            record.unsigned((end - interval.start).cast_unsigned());
            self.instant = end;
        }
    }

    /// Begins a valid row of an attempt.
    #[inline]
    fn begin_of_attempt(&mut self, record: &mut Record, interval: Interval, attempt: i64, flags: u8) {
        let same = attempt == self.attempt;
        self.begin(record, interval, flags | if same { SAME_ATTEMPT } else { 0 });
        if !same {
            record.int(attempt);
            self.attempt = attempt;
        }
    }

    /// A step, relative to the one before; step numbers may be any integers.
    #[inline]
    fn step(&mut self, record: &mut Record, step: i64) {
        record.int(step.wrapping_sub(self.step));
        self.step = step;
    }
}

/// The integers of a record, of which there are at most six of ten bytes: put together here and appended at once.
struct Record {
    bytes: [u8; Record::MOST],
    length: usize,
}

impl Default for Record {
    #[inline]
    fn default() -> Record {
        Record { bytes: [0; Record::MOST], length: 0 }
    }
}

impl Record {
    /// A power of two.
    const MOST: usize = 64;

    #[inline]
    fn byte(&mut self, byte: u8) {
        self.bytes[self.length % Record::MOST] = byte;
        self.length += 1;
    }

    /// An unsigned integer, seven bits a byte, the lowest first.
    #[inline]
    fn unsigned(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.byte(value.to_le_bytes()[0]);
    }

    /// A signed integer: small ones of either sign take few bytes.
    #[inline]
    fn int(&mut self, value: i64) {
        self.unsigned(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length.min(Record::MOST)]
    }
}

/// Writes records into a block.
struct BlockWriter<'a> {
    bytes: &'a mut Vec<u8>,
    last: &'a mut LastRow,
}

impl BlockWriter<'_> {
    #[cold]
    fn quarantined(&mut self, reason: Reason) {
        self.byte(QUARANTINED);
        self.byte(reason.code());
    }

    /// Begins a valid row.
    fn begin(&mut self, interval: Interval, flags: u8) {
        let mut record = Record::default();
        self.last.begin(&mut record, interval, flags);
        self.append(&record);
    }

    /// Begins a valid row of an attempt.
    fn begin_of_attempt(&mut self, interval: Interval, attempt: i64, flags: u8) {
        let mut record = Record::default();
        self.last.begin_of_attempt(&mut record, interval, attempt, flags);
        self.append(&record);
    }

    #[inline]
    fn append(&mut self, record: &Record) {
        self.bytes.extend_from_slice(record.bytes());
    }

    fn is_last_pool(&self, cell: &str, accelerator: &str) -> bool {
        let text = |range: &Range<usize>| &self.bytes[range.clone()];
        !self.last.accelerator.is_empty()
            && text(&self.last.accelerator) == accelerator.as_bytes()
            && text(&self.last.cell) == cell.as_bytes()
    }

    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    fn unsigned(&mut self, value: u64) {
        let mut record = Record::default();
        record.unsigned(value);
        self.append(&record);
    }

    fn int(&mut self, value: i64) {
        let mut record = Record::default();
        record.int(value);
        self.append(&record);
    }

    /// A text; gives where it stands.
    fn text(&mut self, text: &str) -> Range<usize> {
        self.unsigned(text.len() as u64);
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(text.as_bytes());
        begin..self.bytes.len()
    }

    fn text_or_null(&mut self, text: Option<&str>) {
        self.byte(u8::from(text.is_some()));
        if let Some(text) = text {
            self.text(text);
        }
    }

    fn float(&mut self, value: f64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }
}
