//! Random draws in whole numbers: floating-point functions of the platform could change the bytes between machines.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A stream of draws. Each job has its own, so that what happens to one does not change the others' character.
#[derive(Debug)]
pub(crate) struct Draw(ChaCha8Rng);

impl Draw {
    /// The stream of that number under a seed.
    pub(crate) fn new(seed: u64, stream: u64) -> Draw {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(stream);
        Draw(generator)
    }

    /// A number below `end`; 0 if that is 0. The high half of the product is as even as 64 bits can make it.
    fn below(&mut self, end: u64) -> u64 {
        let product = u128::from(self.0.next_u64()) * u128::from(end);
        // What is above the lower 64 bits is below `end`.
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// A number from `least` to `most`, both included; `least` if `most` is less.
    pub(crate) fn between(&mut self, least: i64, most: i64) -> i64 {
        least.saturating_add_unsigned(self.below(most.max(least).abs_diff(least) + 1))
    }

    /// True that many times in a thousand.
    pub(crate) fn per_mille(&mut self, times: i64) -> bool {
        self.between(0, 999) < times
    }

    /// True that many times in a million.
    pub(crate) fn per_million(&mut self, times: i64) -> bool {
        self.between(0, 999_999) < times
    }

    /// A position below `length`, which must not be 0.
    pub(crate) fn position(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// One of some values by their weights, at least one of which must not be 0.
    pub(crate) fn weighted<T: Copy>(&mut self, choices: &[(T, i64)]) -> T {
        let total: i64 = choices.iter().map(|(_, weight)| weight).sum();
        let mut rest = self.between(0, total - 1);
        let mut chosen = choices[0].0;
        for (value, weight) in choices {
            chosen = *value;
            if rest < *weight {
                break;
            }
            rest -= weight;
        }
        chosen
    }
}
