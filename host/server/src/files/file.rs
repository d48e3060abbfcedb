//! Reads and writes whole files that people name, within a time and a size, without blocking on
//! what is not a regular file.
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Mode, OFlags, Uid};
use toolcell_policy::quantity::show_bytes;

use crate::files::blocking_files::{self, Heartbeat};

/// Bytes of one read: a slow network delivers them within the time without progress.
const PIECE_BYTES: u64 = 1024 * 1024;

/// Of a file that git-annex keeps elsewhere.
const NOT_GOT: &str = "is kept by git-annex and not here: run `git annex get .` in its folder";

/// Reason why a file cannot be read. The message follows the file's name.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is larger than allowed.
    #[error("is larger than {}", show_bytes(*.bytes_max))]
    TooLarge {
        /// Bytes allowed.
        bytes_max: u64,
    },
    /// Any other reason.
    #[error("{0}")]
    Otherwise(String),
}

/// Reads a file of at most `bytes_max`. Waits neither for the other end of a FIFO nor for a hanging
/// mount.
///
/// # Errors
/// The reason, to follow the file's name.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Unreadable> {
    let own = path.to_owned();
    let read = blocking_files::run(path, move |heartbeat| read_here(&own, bytes_max, heartbeat));
    read.unwrap_or_else(|error| Err(cannot(&error)))
}

/// [`read`], with the error as a text.
///
/// # Errors
///
/// See [`read`].
pub fn read_bounded(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    read(path, bytes_max).map_err(|error| error.to_string())
}

/// Writes a file whole or not at all, even if the process or the machine stops meanwhile. An
/// existing file keeps its permissions, a new one is readable for everybody. A link stays: its
/// target is written. What root writes belongs to the [`Keeper`] of the file.
///
/// # Errors
/// As the system says.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let kept = fs::metadata(&path).ok().map(|metadata| metadata.permissions());
    // The umask of a root that is alone on its machine would take the file from the group.
    let for_group = || Keeper::of(&path).filter(|keeper| keeper.group_reads).map(|_| Permissions::from_mode(0o640));
    write_with(&path, bytes, 0o644, kept.or_else(for_group))
}

/// [`write_whole`], for a file that its owner alone may read, whatever was there before. What root
/// writes may be read by its keeper.
///
/// # Errors
/// As the system says.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mode = Keeper::of(&path).map_or(0o600, |keeper| keeper.private_mode());
    write_with(&path, bytes, mode, Some(Permissions::from_mode(mode)))
}

/// Who owns a file that root writes: the owner of the file that is there, else of its folder. So a
/// service can read what root wrote for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeper {
    uid: Uid,
    gid: Gid,
    /// True if the group reads files that are not for everybody: a folder of root's that lets only
    /// one group in is for that group.
    group_reads: bool,
}

impl Keeper {
    /// Of this file, which need not be there; `None` for a process that is not root's, whose files
    /// are its own user's.
    pub fn of(path: &Path) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        Self::by(fs::metadata(path).ok().as_ref(), &fs::metadata(folder_of(path)).ok()?)
    }

    fn by(file: Option<&Metadata>, folder: &Metadata) -> Option<Self> {
        let found = file.unwrap_or(folder);
        let uid = Uid::from_raw(found.uid());
        let gid = Gid::from_raw(found.gid());
        let is_for_group = folder.uid() == 0 && folder.gid() != 0 && folder.mode() & 0o057 == 0o050;
        let group_reads = is_for_group || file.is_some_and(|file| file.mode() & 0o044 == 0o040);
        Some(Self { uid, gid, group_reads })
    }

    /// The mode of a file that is not for everybody.
    pub fn private_mode(self) -> u32 {
        if self.group_reads { 0o640 } else { 0o600 }
    }

    /// Gives it a file that root made.
    ///
    /// # Errors
    /// As the system says.
    pub fn take(self, file: impl AsFd) -> io::Result<()> {
        Ok(rustix::fs::fchown(file, Some(self.uid), Some(self.gid))?)
    }
}

fn write_with(path: &Path, bytes: &[u8], mode: u32, kept: Option<Permissions>) -> io::Result<()> {
    let draft = draft_of(path, std::process::id());
    let keeper = Keeper::of(path);
    let new = NewFile { bytes, mode, kept, keeper };
    let written = write_draft(&draft, new).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written?;
    // The rename itself, so that a lost machine has either file.
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// A file that is written.
struct NewFile<'a> {
    bytes: &'a [u8],
    mode: u32,
    kept: Option<Permissions>,
    keeper: Option<Keeper>,
}

fn write_draft(draft: &Path, new: NewFile<'_>) -> io::Result<()> {
    let NewFile { bytes, mode, kept, keeper } = new;
    let _ = fs::remove_file(draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(draft)?;
    if let Some(keeper) = keeper {
        keeper.take(&file)?;
    }
    if let Some(permissions) = kept {
        file.set_permissions(permissions)?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// Path of a draft: hidden, and with the process id, which tells abandoned drafts.
pub(crate) fn draft_of(path: &Path, process: u32) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{process}.new"))
}

/// The folder of a path, such as that from which a manifest's relative paths start. The current one
/// for a bare name, whose empty parent system calls do not take for a folder.
pub fn folder_of(path: &Path) -> PathBuf {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Opens a regular file for reading, without blocking. FIFOs and devices are recognised on the open
/// descriptor, since a check of the name could be outdated.
///
/// # Errors
///
/// The system's error; [`io::ErrorKind::InvalidInput`] if it is not a regular file.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if metadata.is_file() {
        return Ok((file, metadata));
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

fn read_here(path: &Path, bytes_max: u64, heartbeat: &Heartbeat) -> Result<Vec<u8>, Unreadable> {
    let (file, metadata) = open(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => Unreadable::Otherwise("is not a regular file".to_owned()),
        io::ErrorKind::NotFound if is_annexed(path) => Unreadable::Otherwise(NOT_GOT.to_owned()),
        _ => cannot(&error),
    })?;
    // Checked before reading: a sparse file is as large as its length.
    if metadata.len() > bytes_max {
        return Err(Unreadable::TooLarge { bytes_max });
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    loop {
        // One byte more than allowed, which reveals a file that grows meanwhile.
        let left = bytes_max.saturating_add(1).saturating_sub(bytes.len() as u64);
        let read = (&file).take(left.min(PIECE_BYTES)).read_to_end(&mut bytes).map_err(|error| cannot(&error))?;
        if bytes.len() as u64 > bytes_max {
            return Err(Unreadable::TooLarge { bytes_max });
        }
        if read == 0 {
            return Ok(bytes);
        }
        heartbeat.beat();
    }
}

/// True of a link into the files of git-annex, which has a file there once it was got.
fn is_annexed(path: &Path) -> bool {
    fs::read_link(path).is_ok_and(|target| target.to_string_lossy().contains(".git/annex/objects/"))
}

fn cannot(error: &io::Error) -> Unreadable {
    Unreadable::Otherwise(format!("cannot be read: {}", plain(error)))
}

/// Text of an I/O error without its number.
pub fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::WouldBlock => "it has no data yet, so it cannot be read whole".to_owned(),
        _ => error.to_string(),
    }
}

/// Absolute path, without resolving links.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn what_is_no_file_is_told_by_what_it_is_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let link = folder.path().join("link");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        symlink(&fifo, &link).unwrap();
        for path in [fifo.as_path(), link.as_path(), folder.path(), Path::new("/dev/zero"), Path::new("/dev/tty")] {
            let error = read_bounded(path, 1_000).unwrap_err();
            let is_kind = error == "is not a regular file" || path == Path::new("/dev/tty");
            assert!(is_kind, "{}: {error}", path.display());
        }
        assert_eq!(read_bounded(&folder.path().join("none"), 1).unwrap_err(), "cannot be read: there is no such file");
    }

    #[test]
    fn what_root_writes_is_for_those_who_own_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let of = |metadata: &Metadata| (metadata.uid(), metadata.gid(), metadata.mode() & 0o777);
        if !rustix::process::geteuid().is_root() {
            assert_eq!(Keeper::of(&path), None);
            return;
        }
        let own = |path: &Path, uid: u32, gid: u32| {
            rustix::fs::chown(path, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).unwrap();
        };
        let table = [
            // A service's own folder, one of root's that a group reads, one of root's alone.
            (77, 78, 0o700, (77, 78, 0o644), (77, 78, 0o600)),
            (0, 78, 0o750, (0, 78, 0o640), (0, 78, 0o640)),
            (0, 78, 0o755, (0, 78, 0o644), (0, 78, 0o600)),
            (0, 0, 0o750, (0, 0, 0o644), (0, 0, 0o600)),
        ];
        for (uid, gid, mode, whole, private) in table {
            own(folder.path(), uid, gid);
            fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            for (write, expected) in
                [(write_whole as fn(&Path, &[u8]) -> io::Result<()>, whole), (write_private, private)]
            {
                write(&path, b"x").unwrap();
                assert_eq!(of(&fs::metadata(&path).unwrap()), expected, "{uid} {gid} {mode:o}");
                own(&path, 79, 80);
                write(&path, b"y").unwrap();
                let kept = of(&fs::metadata(&path).unwrap());
                assert_eq!(kept, (79, 80, expected.2), "the file's own owner stays");
                fs::remove_file(&path).unwrap();
            }
        }
    }

    #[test]
    fn a_link_of_git_annex_without_its_file_is_called_one() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("tool.wasm");
        symlink("../.git/annex/objects/zk/9Q/SHA256E-s5--ab.wasm/SHA256E-s5--ab.wasm", &link).unwrap();
        assert_eq!(read_bounded(&link, 1_000).unwrap_err(), NOT_GOT);
    }

    #[test]
    fn a_file_of_holes_is_refused_before_it_is_read_and_one_that_fits_is_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let error = read_bounded(&path, 1 << 20).unwrap_err();
        assert_eq!(error, "is larger than 1MiB");
        for bytes in [0, 1, PIECE_BYTES, 2 * PIECE_BYTES + 5] {
            std::fs::write(&path, vec![7; usize::try_from(bytes).unwrap()]).unwrap();
            assert_eq!(read_bounded(&path, bytes).unwrap().len() as u64, bytes);
            assert_eq!(read_bounded(&path, bytes.wrapping_sub(1).min(bytes)).is_ok(), bytes == 0);
        }
    }

    #[test]
    fn a_file_of_the_kernel_s_that_grows_is_read_to_its_end() {
        let text = read_bounded(Path::new("/proc/self/status"), 1 << 20).unwrap();
        assert!(text.starts_with(b"Name:"));
        assert_eq!(read_bounded(Path::new("/proc/self/status"), 10).unwrap_err(), "is larger than 10B");
    }
}
