//! Memory that two processes share, as numbers that both may change at any time.
//!
//! The only `unsafe` code of this crate. It makes `&[AtomicU64]` of shared memory, which is sound
//! since the memory
//! - stays mapped as long as the value that lends it, at the address and length that the kernel
//!   gave, which is a multiple of a page and so aligned;
//! - is only ever read and written through these atomics. What the other process does to it at the
//!   same time is, like any other value of an atomic, something that the reader has to expect;
//! - never becomes shorter: the kernel seals its size before the other process gets it, and who is
//!   given one checks size and seal before it maps it. A shorter file would end the reader with
//!   SIGBUS.
#![allow(unsafe_code)]

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    ptr::{self, NonNull},
    slice,
    sync::atomic::AtomicU64,
};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Shared memory, unmapped when dropped.
#[derive(Debug)]
pub(super) struct Memory {
    begin: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory is not bound to a thread, and all access goes through atomics.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// New memory with this many numbers, all 0, and the descriptor for the other process.
    #[cfg(target_os = "linux")]
    pub(super) fn new(words: usize) -> io::Result<(Self, OwnedFd)> {
        use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("toolcell-link", flags)?;
        ftruncate(&file, u64::try_from(bytes(words)?).map_err(io::Error::other)?)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Self::map(&file, words)?, file))
    }

    /// Other systems cannot seal the size of shared memory.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn new(_: usize) -> io::Result<(Self, OwnedFd)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Memory that the other process made, if its size is right and sealed.
    #[cfg(target_os = "linux")]
    pub(super) fn of(file: &OwnedFd, words: usize) -> io::Result<Self> {
        use rustix::fs::{SealFlags, fcntl_get_seals, fstat};
        let size = fstat(file)?.st_size;
        let sealed = fcntl_get_seals(file)?.contains(SealFlags::SHRINK);
        if !sealed || usize::try_from(size).ok() != Some(bytes(words)?) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Self::map(file, words)
    }

    /// Other systems make none.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn of(_: &OwnedFd, _: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "none is made"))]
    fn map(file: &OwnedFd, words: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses overlaps no other.
        let begin = unsafe { mmap(ptr::null_mut(), bytes(words)?, access, MapFlags::SHARED, file.as_fd(), 0) }?;
        let begin = NonNull::new(begin.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { begin, words })
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: `begin` is page-aligned and has `words` numbers behind it until `self` is
        // dropped; every pattern of bits is an `AtomicU64`. See the head of this file.
        unsafe { slice::from_raw_parts(self.begin.as_ptr(), self.words) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: nothing borrows from a value that is dropped. Unmapping a whole mapping does not
        // fail.
        let _ = unsafe { munmap(self.begin.as_ptr().cast(), self.words * size_of::<AtomicU64>()) };
    }
}

fn bytes(words: usize) -> io::Result<usize> {
    words.checked_mul(size_of::<AtomicU64>()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}
