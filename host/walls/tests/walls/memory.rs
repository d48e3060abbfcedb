//! Attempts at memory.

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::processes::flags;
use crate::site::{MEMORY_BYTES_MAX, Site, number};
use crate::syscalls::{call, fill};

const MEBIBYTE: usize = 1 << 20;
const READ_WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;
const ANONYMOUS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

/// Maps memory that is of no file.
pub(crate) fn map(bytes: usize, rights: c_int, how: c_int) -> io::Result<usize> {
    call(libc::SYS_mmap, [0, bytes, flags(rights), flags(how), usize::MAX, 0])
}

fn protect(address: usize, bytes: usize, rights: c_int) -> io::Result<()> {
    call(libc::SYS_mprotect, [address, bytes, flags(rights), 0, 0, 0]).map(drop)
}

fn reserve(bytes: usize) -> io::Result<usize> {
    map(bytes, libc::PROT_NONE, ANONYMOUS | libc::MAP_NORESERVE)
}

/// Writes twice of what is allowed, and makes each part inaccessible before the next. The limit
/// does not see it: it is for the host to watch resident memory.
pub(crate) fn fill_by_turns(_: &Site) -> io::Result<()> {
    let part = MEMORY_BYTES_MAX / 4;
    let reserved = reserve(1 << 40)?;
    for begin in (0..8).map(|turn| reserved + turn * part) {
        protect(begin, part, READ_WRITE)?;
        fill(begin, part);
        protect(begin, part, libc::PROT_NONE)?;
    }
    Ok(())
}

/// Gives memory back as wasmtime's pool does. Old kernels do not know the process's own handle.
pub(crate) fn give_back(_: &Site) -> io::Result<()> {
    const PIDFD_SELF: c_int = -10_000;
    let page = map(4096, READ_WRITE, ANONYMOUS)?;
    let piece = [page, 4096];
    let advice = flags(libc::MADV_DONTNEED);
    let piece = piece.as_ptr().expose_provenance();
    match call(libc::SYS_process_madvise, [flags(PIDFD_SELF), piece, 1, advice, 0, 0]) {
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EBADF | libc::EINVAL | libc::ENOSYS)) => Err(error),
        _ => Ok(()),
    }
}

/// Address space as wasmtime's pool takes it.
pub(crate) fn reserve_much(_: &Site) -> io::Result<()> {
    reserve(1 << 40).map(drop)
}

pub(crate) fn fill_what_is_allowed(_: &Site) -> io::Result<()> {
    let reserved = reserve(1 << 40)?;
    let half = MEMORY_BYTES_MAX / 2;
    protect(reserved, half, READ_WRITE)?;
    fill(reserved, half);
    let more = map(half - 4 * MEBIBYTE, READ_WRITE, ANONYMOUS)?;
    fill(more, half - 4 * MEBIBYTE);
    Ok(())
}

pub(crate) fn map_too_much(_: &Site) -> io::Result<()> {
    map(MEMORY_BYTES_MAX + MEBIBYTE, READ_WRITE, ANONYMOUS).map(drop)
}

pub(crate) fn map_too_many_pieces(_: &Site) -> io::Result<()> {
    for _ in 0..=MEMORY_BYTES_MAX / MEBIBYTE {
        map(MEBIBYTE, READ_WRITE, ANONYMOUS)?;
    }
    Ok(())
}

pub(crate) fn open_too_much_of_a_reservation(_: &Site) -> io::Result<()> {
    let reserved = reserve(1 << 40)?;
    protect(reserved, MEMORY_BYTES_MAX + MEBIBYTE, READ_WRITE)
}

/// `brk` answers an unchanged end where it refuses.
pub(crate) fn grow_the_heap(_: &Site) -> io::Result<()> {
    let end = call(libc::SYS_brk, [0; 6])?;
    let wanted = end + MEMORY_BYTES_MAX + MEBIBYTE;
    let got = call(libc::SYS_brk, [wanted, 0, 0, 0, 0, 0])?;
    if got == end { Err(io::Error::from_raw_os_error(libc::ENOMEM)) } else { Ok(()) }
}

pub(crate) fn allocate_too_much(_: &Site) -> io::Result<()> {
    let mut bytes = Vec::<u8>::new();
    let wanted = MEMORY_BYTES_MAX + MEBIBYTE;
    bytes.try_reserve_exact(wanted).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))
}

/// The allocator moves large pieces by `mremap`, and copies where that fails.
pub(crate) fn reallocate(_: &Site) -> io::Result<()> {
    let mut bytes = vec![7_u8; MEBIBYTE];
    bytes.reserve_exact(8 * MEBIBYTE);
    if std::hint::black_box(&bytes).iter().all(|byte| *byte == 7) {
        return Ok(());
    }
    Err(io::Error::other("bytes were lost"))
}

pub(crate) fn stretch(_: &Site) -> io::Result<()> {
    let piece = map(MEBIBYTE, READ_WRITE, ANONYMOUS)?;
    let moved = flags(libc::MREMAP_MAYMOVE);
    call(libc::SYS_mremap, [piece, MEBIBYTE, 2 * MEBIBYTE, moved, 0, 0]).map(drop)
}

/// Memory that was written to becomes code.
pub(crate) fn make_executable(_: &Site) -> io::Result<()> {
    let page = map(4096, READ_WRITE, ANONYMOUS)?;
    fill(page, 4096);
    protect(page, 4096, libc::PROT_READ | libc::PROT_EXEC)
}

pub(crate) fn map_executable(_: &Site) -> io::Result<()> {
    map(4096, READ_WRITE | libc::PROT_EXEC, ANONYMOUS).map(drop)
}

/// Maps a file by the path of its descriptor, and makes the mapping executable.
pub(crate) fn map_code(file: &File) -> io::Result<()> {
    let file = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let rights = flags(libc::PROT_READ);
    let how = flags(libc::MAP_PRIVATE);
    let mapped = call(libc::SYS_mmap, [0, 4096, rights, how, number(&file), 0])?;
    protect(mapped, 4096, libc::PROT_READ | libc::PROT_EXEC)
}

/// The program itself becomes writable.
pub(crate) fn make_own_code_writable(_: &Site) -> io::Result<()> {
    let code = make_own_code_writable as fn(&Site) -> io::Result<()> as usize;
    protect(code & !4095, 4096, READ_WRITE | libc::PROT_EXEC)
}
