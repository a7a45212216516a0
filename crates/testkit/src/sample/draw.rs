//! Random draws in whole numbers: floating-point functions of the platform could change the bytes between machines.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A stream of draws. Each job has its own, so that what happens to one does not change the others' character.
#[derive(Debug)]
pub(super) struct Draw(ChaCha8Rng);

impl Draw {
    /// The stream of that number under a seed.
    pub(super) fn new(seed: u64, stream: u64) -> Draw {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(stream);
        Draw(generator)
    }

    /// A number from `least` to `most`, both included.
    pub(super) fn between(&mut self, least: i64, most: i64) -> i64 {
        self.0.random_range(least..=most.max(least))
    }

    /// True that many times in a thousand.
    pub(super) fn per_mille(&mut self, times: i64) -> bool {
        self.between(0, 999) < times
    }

    /// True that many times in a million.
    pub(super) fn per_million(&mut self, times: i64) -> bool {
        self.between(0, 999_999) < times
    }

    /// A position below `length`, which must not be 0.
    pub(super) fn position(&mut self, length: usize) -> usize {
        self.0.random_range(0..length)
    }

    /// One of some values by their weights, at least one of which must not be 0.
    pub(super) fn weighted<T: Copy>(&mut self, choices: &[(T, i64)]) -> T {
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

    /// Shuffles a deck.
    pub(super) fn shuffle<T>(&mut self, deck: &mut [T]) {
        for last in (1..deck.len()).rev() {
            let other = self.position(last + 1);
            deck.swap(last, other);
        }
    }
}
