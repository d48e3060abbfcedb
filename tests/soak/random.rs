//! Pseudorandom numbers that repeat for the same seed.

/// SplitMix64: one addition and three shifts, which is good enough to mix calls.
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`, or zero if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).checked_rem(bound).unwrap_or_default()
    }

    /// One of these.
    pub fn of<'c, T>(&mut self, choices: &'c [T]) -> Option<&'c T> {
        let place = self.below(u64::try_from(choices.len()).unwrap_or_default());
        choices.get(usize::try_from(place).unwrap_or_default())
    }
}
