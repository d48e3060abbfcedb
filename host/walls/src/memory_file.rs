//! Files in memory that one process writes and others read. Once a file is sealed, no process can
//! change it.
use std::fs::File;
use std::io::{self, Write as _};

/// A sealed file with these bytes.
///
/// # Errors
/// The system has no memory left for it.
pub fn sealed(bytes: &[u8]) -> io::Result<File> {
    let file = empty()?;
    (&file).write_all(bytes)?;
    seal(&file)?;
    Ok(file)
}

/// An empty file, which can be written to until it is sealed.
///
/// # Errors
/// The system has no memory left for it.
#[cfg(target_os = "linux")]
pub fn empty() -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    Ok(File::from(memfd_create("toolcell-file", flags)?))
}

/// Other systems cannot seal one.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn empty() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A file of this many zero bytes, which can be written to and keeps its length.
///
/// # Errors
/// The system has no memory left for it.
#[cfg(target_os = "linux")]
pub fn of_length(bytes: u64) -> io::Result<File> {
    use rustix::fs::{SealFlags, fcntl_add_seals};
    let file = empty()?;
    file.set_len(bytes)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
    Ok(file)
}

/// Other systems cannot seal one.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn of_length(_: u64) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes all bytes of this file zero, and frees its memory.
///
/// # Errors
/// It is sealed.
#[cfg(target_os = "linux")]
pub fn clear(file: &File) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    let bytes = file.metadata()?.len();
    Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, bytes)?)
}

/// Other systems make none.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn clear(_: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// From now on nobody writes to this file.
///
/// # Errors
/// It is mapped writable somewhere.
#[cfg(target_os = "linux")]
pub fn seal(file: &File) -> io::Result<()> {
    use rustix::fs::{SealFlags, fcntl_add_seals};
    let all = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    Ok(fcntl_add_seals(file, all)?)
}

/// Other systems cannot seal one.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn seal(_: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
