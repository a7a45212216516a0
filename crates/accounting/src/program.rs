//! Program: how much of the productive time an ideal program would have needed.
//!
//! The ratio of ideal to measured time is taken exactly: every float is an integer times a power of two, so the sums and
//! the quotient are those of integers, whatever the order of the rows. Nothing is rounded before the one floor to whole
//! chip-ms that the accounting asks for.

use num_bigint::BigUint;

use goodput_model::Day;

use crate::rows::ProfileRow;
use crate::rules::{Accelerator, IdealModel};
use crate::validity::is_usable_time;

/// Ideal and measured time of a job's steps on a day, both in the same tiny unit.
#[derive(Debug, Clone, Default)]
pub struct ProgramTimes {
    ideal: BigUint,
    measured: BigUint,
}

impl ProgramTimes {
    /// Adds the steps of a profile row with a usable prediction. Times are positive and finite.
    pub fn add(&mut self, steps: i64, ideal_us: f64, measured_us: f64) {
        let steps = BigUint::from(steps.unsigned_abs());
        self.ideal += exact(ideal_us) * &steps;
        self.measured += exact(measured_us) * &steps;
    }

    /// The floor of `productive` x ideal / measured; `None` if it exceeds 64 bits.
    pub fn ideal_of(&self, productive: i64) -> Option<i64> {
        let scaled = BigUint::from(productive.unsigned_abs()) * &self.ideal;
        i64::try_from(scaled / &self.measured).ok()
    }
}

/// A positive, finite float as an integer in units of 2^-1074, the least that a float can tell apart.
fn exact(value: f64) -> BigUint {
    const MANTISSA_BITS: u64 = 52;
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> MANTISSA_BITS) & 0x7ff, bits & ((1 << MANTISSA_BITS) - 1));
    if exponent == 0 {
        return BigUint::from(fraction);
    }
    BigUint::from(fraction | 1 << MANTISSA_BITS) << (exponent - 1)
}

/// The ideal time of a step (µs): as recorded, or what the model supplies; `None` if neither knows.
///
/// `chip` is what the attempt's chips can do on the day, `None` if that is not known or not one kind.
pub fn ideal_step_time(row: &ProfileRow, model: IdealModel, chips: i64, chip: Option<&Accelerator>) -> Option<f64> {
    if row.predicted_step_time_us.is_some() {
        return row.predicted_step_time_us;
    }
    if model == IdealModel::Predicted || chips <= 0 {
        return None;
    }
    let chip = chip?;
    let peak = *chip.peak_flops.get(row.precision.as_deref()?)?;
    let chips = chips as f64;
    let compute_us = row.flops_per_step? / (chips * peak) * 1e6;
    let ideal_us = match model {
        IdealModel::Roofline => {
            let memory_us = row.bytes_per_step? / (chips * chip.memory_bytes_per_second?) * 1e6;
            if !is_usable_time(memory_us) {
                return None;
            }
            compute_us.max(memory_us)
        }
        _ => compute_us,
    };
    (is_usable_time(compute_us) && is_usable_time(ideal_us)).then_some(ideal_us)
}

/// The day to which a profile row belongs.
pub fn day_of(row: &ProfileRow) -> Day {
    Day::of_instant(row.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quotient_is_exact() {
        let cases = [
            (&[(100, 1e6, 2e6)][..], 240_000_000, Some(120_000_000)),
            (&[(1, 1.0, 3.0)], 30, Some(10)),
            (&[(1, 1.0, 3.0)], 29, Some(9)),
            (&[(3, 0.1, 0.3)], 30, Some(10)), // as floats: 0.3 is a little less than three times 0.1
            (&[(1, 5e-324, 1e12)], i64::MAX, Some(0)),
            (&[(1, 1e12, 1e-3)], 10, Some(9_999_999_999_999_999)), // as floats: 1e-3 is a little more than a thousandth
            (&[(1, 1e12, 5e-324)], 1, None),
            (&[(i64::MAX, 1.5, 3.0), (1, 1e9, 1e9)], 1000, Some(500)),
        ];
        for (rows, productive, expected) in cases {
            let mut times = ProgramTimes::default();
            for (steps, ideal, measured) in rows {
                times.add(*steps, *ideal, *measured);
            }
            assert_eq!(times.ideal_of(productive), expected, "{rows:?}");
        }
    }
}
