//! The amount that a folder holds, in memory shared by all processes that write there.
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::Amount;
use crate::link::Numbers;

/// Marks a folder that holds more than was counted. Nothing is added until it has been counted.
const UNCOUNTED: u64 = u64::MAX;

/// Numbers in shared memory: bytes, then files.
const SHARED: usize = 2;

/// The counts of a folder: bytes, and names. Every process that has them may change them at any
/// time.
#[derive(Debug, Default)]
pub struct Counts {
    own_bytes: AtomicU64,
    own_files: AtomicU64,
    shared: Option<Numbers>,
}

impl Counts {
    /// Counts that can be handed to other processes. Without shared memory they stay in this
    /// process.
    #[must_use]
    pub fn shared() -> Self {
        Self { shared: Numbers::new(SHARED).ok(), ..Self::default() }
    }

    /// The counts of another process, by the descriptor that it handed over.
    ///
    /// # Errors
    /// It belongs to something else.
    pub fn handed(counts: OwnedFd) -> io::Result<Self> {
        Ok(Self { shared: Some(Numbers::of(counts, SHARED)?), ..Self::default() })
    }

    /// A descriptor of them, for another process.
    ///
    /// # Errors
    /// They stay in this process, or no descriptor is left.
    pub fn hand_over(&self) -> io::Result<OwnedFd> {
        let shared = self.shared.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        shared.as_fd().try_clone_to_owned()
    }

    fn bytes(&self) -> &AtomicU64 {
        self.shared.as_ref().and_then(|shared| shared.get(0)).unwrap_or(&self.own_bytes)
    }

    fn files(&self) -> &AtomicU64 {
        self.shared.as_ref().and_then(|shared| shared.get(1)).unwrap_or(&self.own_files)
    }

    /// The amount, if it could be counted.
    #[must_use]
    pub fn amount(&self) -> Option<Amount> {
        let bytes = self.bytes().load(Ordering::Acquire);
        let files = self.files().load(Ordering::Acquire);
        (files != UNCOUNTED).then_some(Amount { bytes, files })
    }

    /// Sets the counted amount, plus `beside` bytes that a count does not find; `None` if there was
    /// too much to count.
    pub fn set(&self, amount: Option<Amount>, beside: u64) {
        let Amount { bytes, files } = amount.unwrap_or(Amount { bytes: UNCOUNTED, files: UNCOUNTED });
        self.bytes().store(bytes.saturating_add(beside), Ordering::Release);
        self.files().store(files, Ordering::Release);
    }

    /// Takes this many bytes, up to `max` in total; false if they do not fit.
    #[must_use]
    pub fn take_bytes(&self, amount: u64, max: u64) -> bool {
        take(self.bytes(), amount, max)
    }

    /// Takes this many names, up to `max` in total; false if they do not fit.
    #[must_use]
    pub fn take_files(&self, amount: u64, max: u64) -> bool {
        take(self.files(), amount, max)
    }

    /// Returns bytes.
    pub fn give_back_bytes(&self, amount: u64) {
        give_back(self.bytes(), amount);
    }

    /// Returns names.
    pub fn give_back_files(&self, amount: u64) {
        give_back(self.files(), amount);
    }
}

/// Taking nothing always succeeds.
fn take(counter: &AtomicU64, amount: u64, max: u64) -> bool {
    let more = |used: u64| used.checked_add(amount).filter(|sum| *sum <= max);
    amount == 0 || counter.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
}

/// Never goes below zero: another program may have made a file larger than was counted.
fn give_back(counter: &AtomicU64, amount: u64) {
    let less = |used: u64| Some(if used == UNCOUNTED { used } else { used.saturating_sub(amount) });
    // The closure always returns a value, so this cannot fail.
    let _ = counter.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn two_holders_share_one_amount_to_the_last_byte() {
        let ours = Counts::shared();
        let theirs = Counts::handed(ours.hand_over().unwrap()).unwrap();
        ours.set(Some(Amount { bytes: 10, files: 1 }), 5);
        assert!(theirs.take_bytes(5, 20) && theirs.take_files(1, 2));
        assert_eq!(ours.amount(), Some(Amount { bytes: 20, files: 2 }));
        assert!(!ours.take_bytes(1, 20) && !ours.take_files(1, 2));
        assert!(ours.take_bytes(0, 0), "nothing fits anywhere");
        theirs.give_back_bytes(30);
        assert_eq!(ours.amount(), Some(Amount { bytes: 0, files: 2 }));
    }

    #[test]
    fn what_holds_too_much_to_count_takes_and_gives_nothing() {
        let counts = Counts::default();
        counts.set(None, 7);
        counts.give_back_bytes(1);
        counts.give_back_files(1);
        assert_eq!(counts.amount(), None);
        assert!(!counts.take_bytes(1, u64::MAX) && !counts.take_files(1, u64::MAX));
        assert!(counts.hand_over().is_err(), "they are this process's alone");
    }
}
