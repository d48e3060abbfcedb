//! Numbers that several processes share, such as counts of what each of them uses.
//!
//! Every process that has them may change them at any time, to anything. Anyone who gets some must
//! trust all others that have the same.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::AtomicU64,
};

use super::memory::Memory;

/// Numbers in memory that other processes may share. They exist until the last process drops them.
#[derive(Debug)]
pub struct Numbers {
    memory: Memory,
    file: OwnedFd,
}

impl Numbers {
    /// This many new numbers, all 0.
    ///
    /// # Errors
    /// The system has no memory of this kind.
    pub fn new(count: usize) -> io::Result<Self> {
        let (memory, file) = Memory::new(count)?;
        Ok(Self { memory, file })
    }

    /// The numbers of another process, by the descriptor that it handed over.
    ///
    /// # Errors
    /// It belongs to something else, or has another count of numbers.
    pub fn of(file: OwnedFd, count: usize) -> io::Result<Self> {
        Ok(Self { memory: Memory::of(&file, count)?, file })
    }

    /// The number at this place.
    pub fn get(&self, place: usize) -> Option<&AtomicU64> {
        self.memory.words().get(place)
    }
}

impl AsFd for Numbers {
    /// For another process.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn whoever_has_them_sees_the_same() {
        let ours = Numbers::new(2).expect("numbers");
        let theirs = Numbers::of(ours.as_fd().try_clone_to_owned().expect("a descriptor"), 2).expect("the same");
        ours.get(1).expect("a number").store(7, Ordering::Release);
        assert_eq!(theirs.get(1).map(|number| number.load(Ordering::Acquire)), Some(7));
        assert!(theirs.get(2).is_none());
    }

    #[test]
    fn what_is_something_else_is_refused() {
        let numbers = Numbers::new(2).expect("numbers");
        let copy = || numbers.as_fd().try_clone_to_owned().expect("a descriptor");
        assert!(Numbers::of(copy(), 3).is_err());
        let file = tempfile::tempfile().expect("a file");
        file.set_len(16).expect("sixteen bytes");
        assert!(Numbers::of(file.into(), 2).is_err(), "it could become shorter");
    }
}
