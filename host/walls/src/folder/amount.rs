//! What a folder holds towards its quota: a walk over names and sizes that follows no link. Guests
//! choose how deep folders are nested, so depth costs neither stack nor open files.
use std::ffi::{OsStr, OsString};
use std::io;
use std::rc::Rc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::{Mode, OFlags, openat};

use super::{Facts, Identity};

/// Folders in one another that stay open during a count: the deepest trees of package managers stay
/// below. Beyond it, the outermost one is closed, and later found again as the parent of its inner
/// folders.
const OPEN_MAX: usize = 64;

/// The amounts that quotas count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Lengths of regular files and of the texts of links. A file with several names counts for
    /// each.
    pub bytes: u64,
    /// Names: of files, folders and links.
    pub files: u64,
}

/// An open folder.
#[derive(Clone)]
struct OpenFolder {
    dir: Rc<Dir>,
    /// Folders around it, up to the counted one.
    depth: usize,
}

/// A folder whose inner folders are not all counted.
struct UnfinishedFolder {
    depth: usize,
    identity: Identity,
    /// `None` once too many others are open.
    open: Option<OpenFolder>,
    /// The names of its inner folders that are not counted.
    inner: Vec<OsString>,
}

/// Counts the content of `root`; `None` if there are more than `files_max` names.
///
/// # Errors
/// An error of the system; `ResourceBusy` if more than 64 folders are nested, and some of them were
/// moved during the count.
pub fn folder(root: &Dir, files_max: u64) -> io::Result<Option<Amount>> {
    let mut amount = Amount::default();
    let mut unfinished: Vec<UnfinishedFolder> = Vec::new();
    let mut folder = OpenFolder { dir: Rc::new(root.try_clone()?), depth: 0 };
    loop {
        let Some(inner) = amount.add(&folder.dir, files_max)? else { return Ok(None) };
        if !inner.is_empty() {
            let outer = unfinished.len().checked_sub(OPEN_MAX);
            if let Some(outer) = outer.and_then(|outer| unfinished.get_mut(outer)) {
                outer.open = None;
            }
            let identity = folder.identity()?;
            unfinished.push(UnfinishedFolder { depth: folder.depth, identity, open: Some(folder.clone()), inner });
        }
        match next_folder(&mut unfinished, folder)? {
            Some(next) => folder = next,
            None => return Ok(Some(amount)),
        }
    }
}

/// Opens the next folder to count. `last` was counted last: it is in the innermost unfinished
/// folder, or is that folder.
fn next_folder(unfinished: &mut Vec<UnfinishedFolder>, last: OpenFolder) -> io::Result<Option<OpenFolder>> {
    let mut last = last;
    while let Some(outer) = unfinished.last_mut() {
        let Some(name) = outer.inner.pop() else {
            unfinished.pop();
            continue;
        };
        last = match outer.open.take() {
            Some(open) => open,
            None => last.around(outer)?,
        };
        outer.open = Some(last.clone());
        if let Some(inner) = last.inner(&name)? {
            return Ok(Some(inner));
        }
    }
    Ok(None)
}

impl OpenFolder {
    fn identity(&self) -> io::Result<Identity> {
        Ok(Facts::from(&self.dir.dir_metadata()?).identity)
    }

    /// Opens a folder in it; `None` if it is not there any more, or guests cannot write to it as
    /// the host may not read it.
    fn inner(&self, name: &OsStr) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = match openat(&*self.dir, name, flags, Mode::empty()).map_err(io::Error::from) {
            Ok(dir) => Dir::from_std_file(dir.into()),
            Err(error) => {
                return match error.kind() {
                    // A link or a file may have taken its place.
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied => {
                        Ok(None)
                    }
                    _ => Err(error),
                };
            }
        };
        Ok(Some(Self { dir: Rc::new(dir), depth: self.depth + 1 }))
    }

    /// Opens a closed folder around it. A folder that was moved has another one around it, perhaps
    /// outside of the counted one, so nothing in it is read before it is known to be the same.
    fn around(&self, outer: &UnfinishedFolder) -> io::Result<Self> {
        let mut folder = self.clone();
        while folder.depth > outer.depth {
            let dir = folder.dir.open_parent_dir(ambient_authority())?;
            folder = Self { dir: Rc::new(dir), depth: folder.depth - 1 };
        }
        if folder.identity()? != outer.identity {
            return Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "the folders in it were moved while they were counted",
            ));
        }
        Ok(folder)
    }
}

impl Amount {
    /// Adds the names in a folder, and returns those of its inner folders; `None` if there are more
    /// than `files_max` in total.
    fn add(&mut self, dir: &Dir, files_max: u64) -> io::Result<Option<Vec<OsString>>> {
        let mut inner = Vec::new();
        for entry in dir.entries()? {
            let entry = entry?;
            let facts = match entry.metadata() {
                Ok(data) => Facts::from(&data),
                // Removed since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            self.files += 1;
            self.bytes = self.bytes.saturating_add(facts.charged_bytes());
            if self.files > files_max {
                return Ok(None);
            }
            if facts.is_folder() {
                inner.push(entry.file_name());
            }
        }
        Ok(Some(inner))
    }
}

/// Counts one file, which may be missing.
///
/// # Errors
/// An error of the system.
pub fn file(folder: &Dir, name: &OsStr) -> io::Result<Option<Amount>> {
    match folder.symlink_metadata(name) {
        Ok(data) => Ok(Some(Amount { bytes: Facts::from(&data).charged_bytes(), files: 1 })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(Amount::default())),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn opened(path: &std::path::Path) -> Dir {
        Dir::open_ambient_dir(path, ambient_authority()).unwrap()
    }

    /// Makes a chain of folders in a folder, each with a file of one byte next to the inner one.
    /// With `side`, also a folder with such a file, on each side of the inner one in any order.
    fn nest(root: &Dir, depth: usize, side: bool) {
        let mut dir = root.try_clone().unwrap();
        for _ in 0..depth {
            dir.write("file", b"1").unwrap();
            for name in ["a", "z"].into_iter().filter(|_| side) {
                dir.create_dir(name).unwrap();
                dir.write(format!("{name}/file"), b"1").unwrap();
            }
            dir.create_dir("inner").unwrap();
            dir = dir.open_dir("inner").unwrap();
        }
    }

    #[test]
    fn depth_hides_nothing_and_costs_neither_stack_nor_open_files() {
        let rows = [(0, false), (1, true), (OPEN_MAX, true), (OPEN_MAX + 2, true), (1_000, true), (2_000, false)];
        for (depth, side) in rows {
            let folder = tempfile::tempdir().unwrap();
            let root = opened(folder.path());
            nest(&root, depth, side);
            let levels = depth as u64;
            let each = if side { Amount { bytes: 3, files: 6 } } else { Amount { bytes: 1, files: 2 } };
            let all = Amount { bytes: levels * each.bytes, files: levels * each.files };
            let counted = |files_max: u64| super::folder(&root, files_max).unwrap();
            assert_eq!(counted(all.files), Some(all), "{depth} folders in one another");
            if depth > 0 {
                assert_eq!(counted(all.files - 1), None, "one name less than {depth} folders have");
                crate::folder::remove(&root, "inner").unwrap();
            }
        }
    }

    #[test]
    fn a_link_is_a_name_and_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let root = opened(folder.path());
        root.symlink(".", "again").unwrap();
        root.create_dir("inner").unwrap();
        root.symlink("../inner", "inner/again").unwrap();
        assert_eq!(super::folder(&root, 100).unwrap(), Some(Amount { bytes: 1 + 8, files: 3 }));
    }

    #[test]
    fn folders_that_are_moved_during_a_count_lead_it_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let root = opened(folder.path());
        for name in ["one", "two"] {
            root.create_dir(name).unwrap();
        }
        let one = root.open_dir("one").unwrap();
        nest(&one, OPEN_MAX + 20, true);
        let total = super::folder(&root, u64::MAX).unwrap().unwrap();
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let two = root.open_dir("two").unwrap();
                while !ends.load(Ordering::Acquire) {
                    one.rename("inner", &two, "inner").unwrap();
                    two.rename("inner", &one, "inner").unwrap();
                }
            });
            for _ in 0..50 {
                match super::folder(&root, u64::MAX) {
                    // It may be found at both places, or at none.
                    Ok(amount) => assert!(amount.unwrap().files <= 2 * total.files),
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::ResourceBusy),
                }
            }
            ends.store(true, Ordering::Release);
        });
    }
}
