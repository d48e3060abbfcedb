//! Mounts and paths: where on the host a guest's path leads, if anywhere. Nothing here opens more
//! than it needs for the facts of an entry.
//!
//! A mount without others inside it leaves the whole path to cap-std, which resolves it beneath the
//! mount's folder. If another mount, or a hidden folder, is inside, the path is first resolved as
//! text, so that the longest guest path wins. Links are not followed there, as a text cannot tell
//! their targets.
use std::sync::Arc;

use cap_std::fs::Dir;
use toolcell_policy::{FileAccess, FilePermit, Quota};

use toolcell_walls::folder::Facts;

use super::bindings::types::ErrorCode;
use super::devices::Device;
use super::handed::Lent;
use super::ledger::Account;
use super::refused::{Refused, code};

/// Bytes of one path: the most that Linux accepts.
pub(crate) const PATH_BYTES_MAX: usize = 4096;

/// Something at a path of the guest's tree.
#[derive(Debug)]
pub(crate) struct Mount {
    /// The manifest's grant; `None` for a folder that only exists to hold a mounted file.
    pub(crate) grant: Option<toolcell_policy::Mount>,
    pub(crate) source: Source,
    /// The account of writes to a folder or file of the host.
    pub(crate) account: Option<Account>,
    /// Other mounts and hidden folders inside, the longest paths first.
    pub(crate) inner: Vec<Inner>,
}

/// The mounted file or folder.
#[derive(Debug)]
pub(crate) enum Source {
    Folder(Arc<Dir>),
    /// A single file, which is open already.
    Lent(Lent),
    Scratch(Quota),
    /// A virtual folder.
    Virtual,
}

impl Source {
    /// True for a single file.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::Lent(_))
    }
}

/// Something inside a mount that does not come from the mount's folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Inner {
    /// Path from the mount to it.
    pub(crate) at: Vec<String>,
    pub(crate) what: InnerKind,
}

/// The kind of an entry inside a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum InnerKind {
    /// The mount with this index.
    Mount(usize),
    /// A folder of the host's own, which guests cannot see.
    Hidden,
    /// A device, made by the host.
    Device(Device),
}

impl Mount {
    /// The manifest's permit for this access; `path` is for the denial.
    pub(crate) fn permit(&self, want: FileAccess, path: &[String]) -> Result<FilePermit, Refused> {
        let grant = self.grant.as_ref().ok_or(ErrorCode::ReadOnly)?;
        grant.open(want, &path.join("/")).map_err(|denial| Refused::Denied(ErrorCode::ReadOnly, Box::new(denial)))
    }

    /// True if nothing inside makes paths resolve as text.
    pub(crate) fn is_plain(&self) -> bool {
        !self.inner.is_empty() || matches!(self.source, Source::Virtual)
    }

    /// The entry at this path, and the rest of the path from there.
    pub(crate) fn inner_at<'n>(&self, names: &'n [String]) -> Option<(InnerKind, &'n [String])> {
        self.inner.iter().find_map(|inner| Some((inner.what, names.strip_prefix(inner.at.as_slice())?)))
    }

    /// True if there is an entry below this path.
    pub(crate) fn holds_inner(&self, names: &[String]) -> bool {
        self.inner.iter().any(|inner| inner.at.starts_with(names))
    }
}

/// A path that a guest named, resolved as far as text goes.
#[derive(Debug)]
pub(crate) enum MountTarget {
    MountedPath(MountedPath),
    /// A virtual folder, by mount and path.
    Virtual(usize, Vec<String>),
    Device(Device),
}

impl MountTarget {
    /// The place on the disk. A virtual folder or device cannot be changed.
    pub(crate) fn spot(self) -> Result<MountedPath, Refused> {
        match self {
            Self::MountedPath(spot) => Ok(spot),
            Self::Virtual(..) | Self::Device(_) => Err(ErrorCode::ReadOnly.into()),
        }
    }
}

/// A path beneath an open folder.
#[derive(Debug)]
pub(crate) struct MountedPath {
    pub(crate) mount: usize,
    pub(crate) dir: Arc<Dir>,
    /// Relative to `dir`; never empty.
    pub(crate) path: String,
    pub(crate) account: Option<Account>,
    /// Path from the mount; if links are followed, as the guest wrote it.
    pub(crate) at: Vec<String>,
    /// Links on the way are refused rather than followed.
    pub(crate) plain: bool,
    /// A mount is here or below, so it can be neither removed nor renamed.
    pub(crate) pinned: bool,
    /// The file itself, if it is already open. Nothing is opened beneath `dir` then.
    pub(crate) lent: Option<Lent>,
}

impl MountedPath {
    /// The account of the mount's quota. A mount without one cannot be written.
    pub(crate) fn account(&self) -> Result<&Account, ErrorCode> {
        self.account.as_ref().ok_or(ErrorCode::ReadOnly)
    }

    /// Refuses links on the way, if they are not followed. A change holds the account's lock, so
    /// that no guest can put a link there after this check.
    pub(crate) fn check(&self) -> Result<(), ErrorCode> {
        if !self.plain {
            return Ok(());
        }
        let path = self.path.trim_end_matches('/');
        for (end, _) in path.match_indices('/') {
            let data = self.dir.symlink_metadata(path.get(..end).unwrap_or_default()).map_err(|error| code(&error))?;
            if data.is_symlink() {
                return Err(ErrorCode::Loop);
            }
        }
        Ok(())
    }

    /// True if a link here is followed: on request, or if its name ends with a slash (POSIX, 4.16
    /// Pathname Resolution).
    pub(crate) fn follows(&self, follow: bool) -> bool {
        follow || self.path.ends_with('/')
    }

    /// The facts of the entry; of a link's target if it [follows](Self::follows) it.
    pub(crate) fn facts(&self, follow: bool) -> Result<Facts, ErrorCode> {
        if let Some(lent) = &self.lent {
            return lent.facts();
        }
        self.check()?;
        let follow = self.follows(follow);
        let data =
            if follow && !self.plain { self.dir.metadata(&self.path) } else { self.dir.symlink_metadata(&self.path) };
        let facts = Facts::from(&data.map_err(|error| code(&error))?);
        if follow && self.plain && facts.is_link() { Err(ErrorCode::Loop) } else { Ok(facts) }
    }

    /// The entry that is removed with this name: for a link with a slash after it, the link.
    pub(crate) fn facts_of_name(&self) -> Result<Facts, ErrorCode> {
        if let Some(lent) = &self.lent {
            return lent.facts();
        }
        self.check()?;
        let name = self.path.trim_end_matches('/');
        let data = self.dir.symlink_metadata(name).map_err(|error| code(&error))?;
        Ok(Facts::from(&data))
    }
}

/// The names of a relative path, from `start` on. `..` is resolved as text, and does not lead above
/// `start`.
pub(crate) fn names(start: &[String], path: &str) -> Result<Vec<String>, ErrorCode> {
    let mut names = start.to_vec();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." if names.len() > start.len() => {
                names.pop();
            }
            ".." => return Err(ErrorCode::NotPermitted),
            name => names.push(name.to_owned()),
        }
    }
    Ok(names)
}

/// The same for a text that shows where a folder is, in as much memory as one path may have. Links
/// lead through any number of names, and each folder opened from here begins with these: of longer
/// ones, the outermost are kept.
pub(crate) fn shown_names(start: &[String], path: &str) -> Vec<String> {
    let mut shown = names(start, path).unwrap_or_default();
    let mut bytes: usize = 0;
    let fits = |name: &&String| {
        bytes += size_of::<String>() + name.len();
        bytes <= PATH_BYTES_MAX
    };
    let fitting = shown.iter().take_while(fits).count();
    shown.truncate(fitting);
    shown.shrink_to_fit();
    shown
}

/// Refuses everything but a relative path, before it is used.
pub(crate) fn well_formed(path: &str) -> Result<(), ErrorCode> {
    if path.is_empty() {
        Err(ErrorCode::NoEntry)
    } else if path.starts_with('/') {
        Err(ErrorCode::NotPermitted)
    } else if path.len() > PATH_BYTES_MAX {
        Err(ErrorCode::NameTooLong)
    } else if path.contains('\0') {
        Err(ErrorCode::Invalid)
    } else {
        Ok(())
    }
}
