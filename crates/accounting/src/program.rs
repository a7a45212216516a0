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
    unit: Unit,
}

/// What times are counted in: the quotient of two sums does not depend on it, as long as nothing is less than one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Unit {
    /// 2^-[`FINE`] µs: exact for every float of at least 2^-76, far less than any step takes.
    #[default]
    Fine,
    /// 2^-[`FINEST`] µs, the least that a float can tell apart: exact for every float, but long.
    Finest,
}

const FINE: u64 = 128;
const FINEST: u64 = 1074;
const MANTISSA_BITS: u64 = 52;

impl ProgramTimes {
    /// Adds the steps of a profile row with a usable prediction. Times are positive and finite.
    pub fn add(&mut self, steps: i64, ideal_us: f64, measured_us: f64) {
        let is_tiny = |us: f64| exponent(us) <= FINEST - FINE;
        if self.unit == Unit::Fine && (is_tiny(ideal_us) || is_tiny(measured_us)) {
            self.unit = Unit::Finest;
            self.ideal <<= FINEST - FINE;
            self.measured <<= FINEST - FINE;
        }
        let steps = BigUint::from(steps.unsigned_abs());
        self.ideal += exact(ideal_us, self.unit) * &steps;
        self.measured += exact(measured_us, self.unit) * &steps;
    }

    /// The floor of `productive` x ideal / measured; `None` if it exceeds 64 bits.
    pub fn ideal_of(&self, productive: i64) -> Option<i64> {
        let scaled = BigUint::from(productive.unsigned_abs()) * &self.ideal;
        i64::try_from(scaled / &self.measured).ok()
    }
}

/// The exponent of a positive, finite float as its bits have it: 1 for the least power of two with all digits, 2^-1022.
fn exponent(value: f64) -> u64 {
    (value.to_bits() >> MANTISSA_BITS) & 0x7ff
}

/// A positive, finite float as an integer number of units.
fn exact(value: f64, unit: Unit) -> BigUint {
    let fraction = value.to_bits() & ((1 << MANTISSA_BITS) - 1);
    let exponent = exponent(value);
    if exponent == 0 {
        return BigUint::from(fraction);
    }
    let mantissa = BigUint::from(fraction | 1 << MANTISSA_BITS);
    match unit {
        Unit::Finest => mantissa << (exponent - 1),
        Unit::Fine => mantissa << (exponent - 1 - (FINEST - FINE)),
    }
}

/// The ideal time of a step (µs): as recorded, or what the model supplies; `None` if neither knows.
///
/// `chip` is what the attempt's chips can do on the day, `None` if that is not known or not one kind.
pub fn ideal_step_time(row: &ProfileRow<'_>, model: IdealModel, chips: i64, chip: Option<&Accelerator>) -> Option<f64> {
    if row.predicted_step_time_us.is_some() {
        return row.predicted_step_time_us;
    }
    if model == IdealModel::Predicted || chips <= 0 {
        return None;
    }
    let chip = chip?;
    let peak = *chip.peak_flops.get(row.precision?)?;
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
pub fn day_of(row: &ProfileRow<'_>) -> Day {
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
            (&[(1, 1.0, 2.0), (1, 1e-30, 1e-30), (1, 5e-324, 5e-324)], 1_000_000, Some(500_000)),
            (&[(7, 1.5e-23, 3e-23)], 10, Some(5)), // about the least that the coarser unit can count
            (&[(7, 1.3e-23, 2.6e-23), (3, 1.0, 2.0)], 10, Some(5)),
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
