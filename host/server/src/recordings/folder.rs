//! The folder of recordings: a folder for each component, and a file for each call. Counts them,
//! and removes the oldest. Must not hold: which calls are recorded.
//!
//! Names are opened one by one beneath the folder, and none may be a link: whoever puts one there
//! does not choose where recordings go, or which files are removed.
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use toolcell_policy::{Manifest, RecordingsPolicy, names};

use super::naming::RecordingName;

/// Time between two looks at the folder: other replicas write there too, and files grow old.
const WALKS_EVERY: Duration = Duration::from_secs(600);

/// Entries of the folder that one look reads: ten times the most that the manifest allows. A folder
/// with more holds something else.
const ENTRIES_MAX: usize = 1_000_000;

/// What every draft ends with. Its name begins with a point.
const DRAFT: &str = ".draft";

/// The folder that a manifest names, and its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordingsPlace {
    pub(super) folder: PathBuf,
    bytes_max: u64,
    files_max: usize,
    keep: Duration,
}

impl RecordingsPlace {
    /// That of a manifest in this folder, if any of its calls may be recorded.
    pub(crate) fn of(manifest: &Manifest, folder: &Path) -> Option<Arc<Self>> {
        let of_policy = |policy: &RecordingsPolicy| Self {
            folder: folder.join(policy.folder()),
            bytes_max: policy.max_bytes(),
            files_max: policy.max_files(),
            keep: policy.keep(),
        };
        manifest.recordings().map(of_policy).map(Arc::new)
    }
}

/// A recording that is not kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotKept {
    #[error("it has {bytes} bytes, more than max_bytes of [recordings]")]
    TooLarge { bytes: usize },
    #[error("the folder has more than {ENTRIES_MAX} entries")]
    TooManyEntries,
    #[error("{what}: {error}")]
    System { what: &'static str, error: io::Error },
}

impl NotKept {
    fn system(what: &'static str) -> impl FnOnce(Errno) -> Self {
        move |error| Self::System { what, error: error.into() }
    }

    /// True if the folder is no longer there.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::System { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

/// A file in the folder.
struct KeptFile {
    component: String,
    bytes: u64,
}

/// An open folder, and what is in it.
pub(super) struct RecordingsFolder {
    place: Arc<RecordingsPlace>,
    root: OwnedFd,
    /// In the order in which they are removed.
    files: BTreeMap<RecordingName, KeptFile>,
    bytes: u64,
    walked: Instant,
}

impl RecordingsFolder {
    /// Opens a folder, makes it where it is missing, removes drafts of processes that have ended,
    /// and what is more than its bounds allow.
    pub(super) fn open(place: &Arc<RecordingsPlace>) -> Result<Self, NotKept> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&place.folder);
        made.map_err(|error| NotKept::System { what: "the folder cannot be made", error })?;
        // The operator may have put a link here: it is named in the manifest.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&place.folder, flags, Mode::empty());
        let root = root.map_err(NotKept::system("the folder cannot be opened"))?;
        let place = Arc::clone(place);
        let mut folder = Self { place, root, files: BTreeMap::new(), bytes: 0, walked: Instant::now() };
        folder.walk()?;
        folder.make_room(0, 0)?;
        Ok(folder)
    }

    pub(super) fn is_at(&self, place: &RecordingsPlace) -> bool {
        *self.place == *place
    }

    /// Looks at the folder anew if that is due.
    pub(super) fn refreshed(self) -> Result<Self, NotKept> {
        if self.walked.elapsed() < WALKS_EVERY { Ok(self) } else { Self::open(&self.place) }
    }

    /// Writes a recording. The oldest ones make room for it.
    pub(super) fn keep(&mut self, component: &str, name: RecordingName, bytes: &[u8]) -> Result<(), NotKept> {
        let length = bytes.len() as u64;
        if length > self.place.bytes_max {
            return Err(NotKept::TooLarge { bytes: bytes.len() });
        }
        self.make_room(length, 1)?;
        match rustix::fs::mkdirat(&self.root, component, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(NotKept::system("the component's folder cannot be made")(error)),
        }
        let folder = self.component(component).map_err(NotKept::system("the component's folder cannot be opened"))?;
        let draft = format!(".{name}{DRAFT}");
        let written = write(&folder, &draft, bytes).and_then(|file| {
            rustix::fs::renameat(&folder, draft.as_str(), &folder, name.to_string())?;
            // The lock on the draft ends here.
            drop(file);
            Ok(())
        });
        if let Err(error) = written {
            let _ = rustix::fs::unlinkat(&folder, draft.as_str(), AtFlags::empty());
            return Err(NotKept::System { what: "it cannot be written", error });
        }
        self.add(name, KeptFile { component: component.to_owned(), bytes: length });
        Ok(())
    }

    fn add(&mut self, name: RecordingName, file: KeptFile) {
        self.bytes = self.bytes.saturating_add(file.bytes);
        self.files.insert(name, file);
    }

    /// Removes the oldest until there is room for so much more, and those that are too old.
    fn make_room(&mut self, bytes: u64, files: usize) -> Result<(), NotKept> {
        let too_old = SystemTime::now().checked_sub(self.place.keep);
        while let Some((name, file)) = self.files.first_key_value() {
            let fits = self.bytes.saturating_add(bytes) <= self.place.bytes_max
                && self.files.len().saturating_add(files) <= self.place.files_max;
            if fits && too_old.is_none_or(|time| !name.is_before(time)) {
                break;
            }
            let removed = self
                .component(&file.component)
                .and_then(|folder| rustix::fs::unlinkat(folder, name.to_string(), AtFlags::empty()));
            match removed {
                // Another replica, or a person, was faster.
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(NotKept::system("an old recording cannot be removed")(error)),
            }
            if let Some((_, removed)) = self.files.pop_first() {
                self.bytes = self.bytes.saturating_sub(removed.bytes);
            }
        }
        Ok(())
    }

    /// The folder of a component, which must not be a link.
    fn component(&self, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.root, name, flags, Mode::empty())
    }

    /// Counts what is in the folder.
    fn walk(&mut self) -> Result<(), NotKept> {
        let unreadable = || NotKept::system("the folder cannot be listed");
        let mut left = ENTRIES_MAX;
        for entry in Dir::read_from(&self.root).map_err(unreadable())? {
            let entry = entry.map_err(unreadable())?;
            left = left.checked_sub(1).ok_or(NotKept::TooManyEntries)?;
            let Some(component) = component_name(entry.file_name()) else { continue };
            let Ok(folder) = self.component(component) else { continue };
            for entry in Dir::read_from(&folder).map_err(unreadable())? {
                let entry = entry.map_err(unreadable())?;
                left = left.checked_sub(1).ok_or(NotKept::TooManyEntries)?;
                self.look(&folder, component, entry.file_name());
            }
            // What is too much goes at once, so that the list stays bounded.
            self.make_room(0, 0)?;
        }
        Ok(())
    }

    /// Counts a file, if it is a recording. A draft that nobody writes is removed.
    fn look(&mut self, folder: &OwnedFd, component: &str, name: &CStr) {
        let bytes = name.to_bytes();
        if is_draft(bytes) {
            remove_abandoned(folder, name);
            return;
        }
        let Some(parsed) = RecordingName::parse(bytes) else { return };
        let Ok(stat) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            let bytes = u64::try_from(stat.st_size).unwrap_or_default();
            self.add(parsed, KeptFile { component: component.to_owned(), bytes });
        }
    }
}

/// Writes a new file that only its owner reads. While it is open, it is locked: so other processes
/// know that somebody writes it.
fn write(folder: &OwnedFd, draft: &str, bytes: &[u8]) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, draft, flags, Mode::RUSR | Mode::WUSR)?);
    file.try_lock()?;
    (&file).write_all(bytes)?;
    Ok(file)
}

fn is_draft(name: &[u8]) -> bool {
    let inner = name.strip_prefix(b".").and_then(|name| name.strip_suffix(DRAFT.as_bytes()));
    inner.is_some_and(|name| RecordingName::parse(name).is_some())
}

/// Removes a draft whose process has ended.
fn remove_abandoned(folder: &OwnedFd, name: &CStr) {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(folder, name, flags, Mode::empty()) else { return };
    if File::from(file).try_lock().is_ok() {
        let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
    }
}

/// The name of a component's folder.
fn component_name(name: &CStr) -> Option<&str> {
    name.to_str().ok().filter(|name| names::check_component(name).is_ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::time::UNIX_EPOCH;

    use super::*;

    const BYTES_MAX: u64 = 1 << 20;
    const FILES_MAX: usize = 100;

    fn place(folder: &Path, bytes_max: u64, files_max: usize) -> Arc<RecordingsPlace> {
        let keep = Duration::from_secs(3_600);
        Arc::new(RecordingsPlace { folder: folder.to_owned(), bytes_max, files_max, keep })
    }

    fn name(call: u64) -> RecordingName {
        RecordingName::new(SystemTime::now(), call, 7)
    }

    /// The files of a folder, by their paths in it.
    fn files(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for component in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            for file in fs::read_dir(component.path()).unwrap().map(Result::unwrap) {
                found.push(file.path().strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
            }
        }
        found.sort();
        found
    }

    #[test]
    fn a_recording_is_whole_and_only_its_owner_reads_it() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("made/by/need");
        let mut folder = RecordingsFolder::open(&place(&root, BYTES_MAX, FILES_MAX)).unwrap();
        let name = name(1);
        folder.keep("a", name, b"bytes").unwrap();
        let path = root.join("a").join(name.to_string());
        assert_eq!(fs::read(&path).unwrap(), b"bytes");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(&path), mode(&root.join("a")), mode(&root)], [0o600, 0o700, 0o700]);
        assert_eq!(files(&root), [format!("a/{name}")]);
    }

    #[test]
    fn the_oldest_go_first_when_there_are_too_many_or_too_many_bytes_or_when_they_are_too_old() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path();
        let mut folder = RecordingsFolder::open(&place(root, 100, 3)).unwrap();
        let names: Vec<RecordingName> = (1..=6).map(name).collect();
        for (name, component) in names.iter().zip(["a", "b", "a", "b"]) {
            folder.keep(component, *name, &[b'x'; 10]).unwrap();
        }
        let of = |component: &str, number: usize| format!("{component}/{}", names[number]);
        assert_eq!(files(root), [of("a", 2), of("b", 1), of("b", 3)]);
        folder.keep("a", names[4], &[b'x'; 85]).unwrap();
        assert_eq!(files(root), [of("a", 4), of("b", 3)]);
        assert!(matches!(folder.keep("a", names[5], &[b'x'; 101]), Err(NotKept::TooLarge { bytes: 101 })));
        assert_eq!(files(root).len(), 2, "what is too large takes no other's place");
        let old = RecordingName::new(SystemTime::now() - Duration::from_secs(3_700), 9, 7);
        fs::write(root.join("a").join(old.to_string()), "old").unwrap();
        drop(folder);
        RecordingsFolder::open(&place(root, 100, 3)).unwrap();
        assert_eq!(files(root), [of("a", 4), of("b", 3)]);
    }

    #[test]
    fn a_folder_of_ten_gigabytes_is_within_its_bounds_once_it_is_opened() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path();
        fs::create_dir(root.join("a")).unwrap();
        let now = SystemTime::now();
        let names: Vec<_> = (0..10).map(|age| RecordingName::new(now - Duration::from_secs(age), 1, 7)).collect();
        for name in &names {
            File::create(root.join("a").join(name.to_string())).unwrap().set_len(1 << 30).unwrap();
        }
        let folder = RecordingsFolder::open(&place(root, 3 << 30, 100)).unwrap();
        let mut newest: Vec<String> = names.iter().take(3).map(|name| format!("a/{name}")).collect();
        newest.sort();
        assert_eq!((files(root), folder.bytes), (newest, 3 << 30));
    }

    #[test]
    fn drafts_that_nobody_writes_are_removed_and_nothing_else_that_is_there() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path();
        fs::create_dir(root.join("a")).unwrap();
        let draft = |call| format!(".{}{DRAFT}", RecordingName::new(UNIX_EPOCH, call, 7));
        let written = File::create(root.join("a").join(draft(1))).unwrap();
        written.try_lock().unwrap();
        for other in [draft(2).as_str(), "notes.txt", ".hidden.draft", "case.jsonl"] {
            fs::write(root.join("a").join(other), "half").unwrap();
        }
        let folder = RecordingsFolder::open(&place(root, BYTES_MAX, FILES_MAX)).unwrap();
        assert_eq!((folder.files.len(), folder.bytes), (0, 0));
        let mut left = [draft(1).as_str(), "notes.txt", ".hidden.draft", "case.jsonl"].map(|name| format!("a/{name}"));
        left.sort();
        assert_eq!(files(root), left);
    }

    #[test]
    fn a_link_in_the_folder_leads_nowhere() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("recordings");
        let elsewhere = base.path().join("elsewhere");
        for folder in [&root, &elsewhere] {
            fs::create_dir(folder).unwrap();
        }
        let old = RecordingName::new(UNIX_EPOCH, 1, 7);
        fs::write(elsewhere.join(old.to_string()), "not ours").unwrap();
        symlink(&elsewhere, root.join("a")).unwrap();
        fs::create_dir(root.join("b")).unwrap();
        symlink(elsewhere.join(old.to_string()), root.join("b").join(old.to_string())).unwrap();
        let mut folder = RecordingsFolder::open(&place(&root, BYTES_MAX, FILES_MAX)).unwrap();
        assert!(folder.files.is_empty());
        assert!(folder.keep("a", name(1), b"x").is_err());
        folder.keep("b", name(2), b"x").unwrap();
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(elsewhere.join(old.to_string())).unwrap(), "not ours");
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing_and_a_folder_that_is_gone_says_so() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("recordings");
        let mut folder = RecordingsFolder::open(&place(&root, BYTES_MAX, FILES_MAX)).unwrap();
        let name = name(1);
        // A folder stands where the file should: the draft cannot take that name.
        fs::create_dir_all(root.join("a").join(name.to_string()).join("x")).unwrap();
        let problem = folder.keep("a", name, b"x").unwrap_err();
        assert!(!problem.is_gone(), "{problem}");
        assert_eq!(files(&root), [format!("a/{name}")]);
        fs::remove_dir_all(&root).unwrap();
        assert!(folder.keep("a", name, b"x").unwrap_err().is_gone());
    }
}
