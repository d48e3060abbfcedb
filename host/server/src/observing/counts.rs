//! Counts of a fixed list of things.
use std::sync::atomic::{AtomicU64, Ordering};

/// A count for each thing of a list.
#[derive(Debug)]
pub struct Counts<T: 'static, const N: usize> {
    all: &'static [T; N],
    counts: [AtomicU64; N],
}

impl<T: Copy + PartialEq, const N: usize> Counts<T, N> {
    pub const fn new(all: &'static [T; N]) -> Self {
        Self { all, counts: [const { AtomicU64::new(0) }; N] }
    }

    /// Counts one more of this thing, if it is on the list.
    pub fn count(&self, thing: T) {
        let place = self.all.iter().position(|known| *known == thing);
        if let Some(count) = place.and_then(|place| self.counts.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Each thing with its count.
    pub fn read(&self) -> impl Iterator<Item = (T, u64)> {
        self.all.iter().zip(&self.counts).map(|(thing, count)| (*thing, count.load(Ordering::Relaxed)))
    }
}
