//! Attempts at files.

use std::ffi::CStr;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};

use crate::site::{FILE_BYTES_MAX, FILES_MAX, Site, number};
use crate::syscalls::call;

const READ: OFlags = OFlags::RDONLY;
const NEW: OFlags = OFlags::WRONLY.union(OFlags::CREATE);

fn open2(from: BorrowedFd<'_>, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let mode = if flags.contains(OFlags::CREATE) { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
    Ok(rustix::fs::openat2(from, path, flags, mode, ResolveFlags::empty())?)
}

/// By its absolute path, in the way that no filter can look into.
pub(crate) fn passwd(site: &Site) -> io::Result<()> {
    open2(site.readable.as_fd(), "/etc/passwd", READ).map(drop)
}

pub(crate) fn passwd_from_working_folder(_: &Site) -> io::Result<()> {
    open2(CWD, "/etc/passwd", READ).map(drop)
}

pub(crate) fn passwd_by_old_open(_: &Site) -> io::Result<()> {
    rustix::fs::openat(CWD, "/etc/passwd", READ, Mode::empty())?;
    Ok(())
}

pub(crate) fn root(site: &Site) -> io::Result<()> {
    open2(site.readable.as_fd(), "/", READ | OFlags::DIRECTORY).map(drop)
}

pub(crate) fn write_to_root(site: &Site) -> io::Result<()> {
    open2(site.readable.as_fd(), "/planted", NEW).map(drop)
}

/// Without Landlock this shows what the root holds: nothing of the machine.
pub(crate) fn root_is_empty(site: &Site) -> io::Result<()> {
    let root = open2(site.readable.as_fd(), "/", READ | OFlags::DIRECTORY)?;
    let names: Vec<_> = rustix::fs::Dir::new(root)?
        .map(|entry| entry.map(|entry| entry.file_name().to_owned()))
        .collect::<Result<_, _>>()?;
    let odd = names.iter().find(|name| ![c".", c"..", c"proc"].contains(&name.as_c_str()));
    odd.map_or(Ok(()), |name| Err(io::Error::other(format!("{name:?} in the root"))))
}

pub(crate) fn read_ungranted(site: &Site) -> io::Result<()> {
    open2(site.ungranted.as_fd(), "secret", READ).map(drop)
}

pub(crate) fn list_ungranted(site: &Site) -> io::Result<()> {
    open2(site.ungranted.as_fd(), ".", READ | OFlags::DIRECTORY).map(drop)
}

pub(crate) fn climb(site: &Site) -> io::Result<()> {
    open2(site.writable.as_fd(), "../ungranted/secret", READ).map(drop)
}

pub(crate) fn climb_by_link(site: &Site) -> io::Result<()> {
    let name = "link-up";
    rustix::fs::symlinkat("../ungranted/secret", site.writable.as_fd(), name)?;
    let opened = open2(site.writable.as_fd(), name, READ);
    rustix::fs::unlinkat(site.writable.as_fd(), name, AtFlags::empty())?;
    opened.map(drop)
}

pub(crate) fn read(site: &Site) -> io::Result<()> {
    let mut text = String::new();
    let opened = open2(site.readable.as_fd(), "file", READ)?;
    std::fs::File::from(opened).read_to_string(&mut text)?;
    if text == "for all" { Ok(()) } else { Err(io::Error::other(text)) }
}

pub(crate) fn read_beneath(site: &Site) -> io::Result<()> {
    let beneath = ResolveFlags::BENEATH;
    rustix::fs::openat2(site.readable.as_fd(), "file", READ, Mode::empty(), beneath)?;
    Ok(())
}

pub(crate) fn list(site: &Site) -> io::Result<()> {
    let folder = open2(site.readable.as_fd(), ".", READ | OFlags::DIRECTORY)?;
    let count = rustix::fs::Dir::new(folder)?.count();
    if count == 3 { Ok(()) } else { Err(io::Error::other(format!("{count} entries"))) }
}

pub(crate) fn write_readable(site: &Site) -> io::Result<()> {
    open2(site.readable.as_fd(), "file", OFlags::WRONLY).map(drop)
}

pub(crate) fn create_readable(site: &Site) -> io::Result<()> {
    open2(site.readable.as_fd(), "planted", NEW).map(drop)
}

pub(crate) fn truncate_readable(site: &Site) -> io::Result<()> {
    open2(site.readable.as_fd(), "file", READ | OFlags::TRUNC).map(drop)
}

pub(crate) fn remove_readable(site: &Site) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(site.readable.as_fd(), "file", AtFlags::empty())?)
}

/// The file was opened for reading; its path by descriptor would open it anew.
pub(crate) fn reopen_for_writing(site: &Site) -> io::Result<()> {
    let path = format!("/proc/self/fd/{}", site.file.as_raw_fd());
    open2(site.readable.as_fd(), &path, OFlags::WRONLY).map(drop)
}

/// Compiled code is mapped like this. Another process may have written its file anew meanwhile.
pub(crate) fn reopen_replaced(site: &Site) -> io::Result<()> {
    let path = format!("/proc/self/fd/{}", site.replaced.as_raw_fd());
    open2(site.readable.as_fd(), &path, READ).map(drop)
}

pub(crate) fn write_replaced(site: &Site) -> io::Result<()> {
    let path = format!("/proc/self/fd/{}", site.replaced.as_raw_fd());
    open2(site.readable.as_fd(), &path, OFlags::WRONLY).map(drop)
}

pub(crate) fn write(site: &Site) -> io::Result<()> {
    let folder = site.writable.as_fd();
    let mut file = std::fs::File::from(open2(folder, "a", NEW | OFlags::TRUNC)?);
    file.write_all(b"text")?;
    let more = [io::IoSlice::new(b"more")];
    rustix::io::pwritev2(&file, &more, u64::MAX, rustix::io::ReadWriteFlags::APPEND)?;
    file.sync_data()?;
    file.set_len(2)?;
    file.set_modified(std::time::SystemTime::UNIX_EPOCH)?;
    rustix::fs::mkdirat(folder, "d", Mode::RWXU)?;
    rustix::fs::renameat(folder, "a", folder, "d/b")?;
    rustix::fs::linkat(folder, "d/b", folder, "c", AtFlags::empty())?;
    rustix::fs::unlinkat(folder, "d/b", AtFlags::empty())?;
    rustix::fs::unlinkat(folder, "d", AtFlags::REMOVEDIR)?;
    let size = rustix::fs::statat(folder, "c", AtFlags::empty())?.st_size;
    rustix::fs::unlinkat(folder, "c", AtFlags::empty())?;
    if size == 2 { Ok(()) } else { Err(io::Error::other(format!("{size} bytes"))) }
}

pub(crate) fn move_into_readable(site: &Site) -> io::Result<()> {
    drop(open2(site.writable.as_fd(), "mine", NEW)?);
    let moved = rustix::fs::renameat(site.writable.as_fd(), "mine", site.readable.as_fd(), "planted");
    rustix::fs::unlinkat(site.writable.as_fd(), "mine", AtFlags::empty())?;
    Ok(moved?)
}

pub(crate) fn link_ungranted(site: &Site) -> io::Result<()> {
    let from = site.ungranted.as_fd();
    let to = site.writable.as_fd();
    Ok(rustix::fs::linkat(from, "secret", to, "stolen", AtFlags::empty())?)
}

pub(crate) fn move_ungranted(site: &Site) -> io::Result<()> {
    let from = site.ungranted.as_fd();
    let to = site.writable.as_fd();
    Ok(rustix::fs::renameat(from, "secret", to, "stolen")?)
}

/// A link to the machine's files, made by the attempt itself.
pub(crate) fn follow_link_out(site: &Site) -> io::Result<()> {
    let name = "link-out";
    rustix::fs::symlinkat("/etc/passwd", site.writable.as_fd(), name)?;
    let opened = open2(site.writable.as_fd(), name, READ);
    rustix::fs::unlinkat(site.writable.as_fd(), name, AtFlags::empty())?;
    opened.map(drop)
}

fn of_parent(site: &Site, name: &str) -> io::Result<()> {
    let path = format!("/proc/{}/{name}", site.parent);
    open2(site.readable.as_fd(), &path, READ).map(drop)
}

pub(crate) fn memory_of_parent(site: &Site) -> io::Result<()> {
    of_parent(site, "mem")
}

pub(crate) fn environment_of_parent(site: &Site) -> io::Result<()> {
    of_parent(site, "environ")
}

pub(crate) fn descriptor_of_parent(site: &Site) -> io::Result<()> {
    of_parent(site, "fd/0")
}

pub(crate) fn grow_file(site: &Site) -> io::Result<()> {
    let name = "large";
    let mut file = std::fs::File::from(open2(site.writable.as_fd(), name, NEW)?);
    let piece = vec![1_u8; FILE_BYTES_MAX];
    let written = file.write_all(&piece).and_then(|()| file.write_all(b"1"));
    rustix::fs::unlinkat(site.writable.as_fd(), name, AtFlags::empty())?;
    written
}

pub(crate) fn grow_file_at_once(site: &Site) -> io::Result<()> {
    let name = "long";
    let file = std::fs::File::from(open2(site.writable.as_fd(), name, NEW)?);
    let set = file.set_len(FILE_BYTES_MAX as u64 + 1);
    rustix::fs::unlinkat(site.writable.as_fd(), name, AtFlags::empty())?;
    set
}

/// A limit of Landlock's, which the pages tell.
pub(crate) fn look_outside(site: &Site) -> io::Result<()> {
    Ok(rustix::fs::statat(site.writable.as_fd(), "../ungranted/secret", AtFlags::empty()).map(drop)?)
}

/// Room behind the end of a file, which its length does not tell.
pub(crate) fn reserve(site: &Site) -> io::Result<()> {
    let name = "reserved";
    let file = open2(site.writable.as_fd(), name, NEW)?;
    // First, as nothing comes after a call that kills.
    rustix::fs::unlinkat(site.writable.as_fd(), name, AtFlags::empty())?;
    Ok(rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, 1 << 20)?)
}

/// A folder that only its maker can reach into, by a descriptor.
pub(crate) fn closed_folder(site: &Site) -> io::Result<()> {
    rustix::fs::mkdirat(site.writable.as_fd(), "closed", Mode::WUSR | Mode::XUSR)?;
    Ok(rustix::fs::unlinkat(site.writable.as_fd(), "closed", AtFlags::REMOVEDIR)?)
}

pub(crate) fn open_many(site: &Site) -> io::Result<()> {
    let mut opened = Vec::new();
    for _ in 0..=FILES_MAX {
        opened.push(open2(site.readable.as_fd(), "file", READ)?);
    }
    Ok(())
}

/// A call on the name of a file in the writable folder.
pub(crate) fn at_writable(site: &Site, number_: i64, name: &CStr, last: usize) -> io::Result<()> {
    call(number_, [number(&site.writable), name.as_ptr().addr(), last, 0, 0, 0]).map(drop)
}
