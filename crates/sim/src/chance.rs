//! Chance from a seed. Streams for different purposes are independent of each other, so that
//! what one app draws does not depend on how often others drew before it.

use std::time::Duration;

/// SplitMix64: small, fast, and good enough to make tests varied.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Chance(seed)
    }

    /// A stream of its own for a numbered purpose.
    #[must_use]
    pub fn stream(seed: u64, purpose: u64) -> Self {
        let mut mixer = Chance(seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Chance(mixer.draw())
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` up to, and including, `most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.draw() % (most - least + 1)
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.draw().is_multiple_of(times)
    }

    pub fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.between(least, most))
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let last = from.len().checked_sub(1)?;
        let at = self.between(0, last as u64);
        from.get(usize::try_from(at).ok()?)
    }
}
