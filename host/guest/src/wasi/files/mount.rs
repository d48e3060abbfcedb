//! Mounts and paths: the place on the host that a guest's path leads to, if any. Nothing is opened
//! here beyond the look itself.
//!
//! A mount without others inside it leaves the whole path to cap-std, which resolves it beneath the
//! mount's folder. Where another mount, or a folder that no guest may see, lies inside, the path is
//! resolved as text first, so that the longest guest path wins. Links are not followed there, as a
//! text cannot tell their targets.
use std::sync::Arc;

use cap_std::fs::Dir;
use toolcell_policy::{FileAccess, FilePermit, Quota};

use toolcell_walls::folder::Facts;

use super::bindings::types::ErrorCode;
use super::devices::Device;
use super::handed::Lent;
use super::ledger::Account;
use super::refused::{Refused, code};

/// Bytes of one path: the most that Linux takes at once.
pub(crate) const PATH_BYTES_MAX: usize = 4096;

/// Something at a path of the guest's tree.
#[derive(Debug)]
pub(crate) struct Mount {
    /// The manifest's grant; none for a folder that is only there to hold a mounted file.
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
    /// A folder on no disk.
    Virtual,
}

impl Source {
    /// True of a single file.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::Lent(_))
    }
}

/// Something inside a mount that is not the mount's own.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Inner {
    /// Names that lead to it from the mount.
    pub(crate) at: Vec<String>,
    pub(crate) what: InnerKind,
}

/// The kind of an entry inside a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum InnerKind {
    /// The mount of that number.
    Mount(usize),
    /// The host's own: no guest sees it.
    Hidden,
    /// A device, made by the host.
    Device(Device),
}

impl Mount {
    /// Asks the manifest for this access; `path` is for the denial.
    pub(crate) fn permit(&self, want: FileAccess, path: &[String]) -> Result<FilePermit, Refused> {
        let grant = self.grant.as_ref().ok_or(ErrorCode::ReadOnly)?;
        grant.open(want, &path.join("/")).map_err(|denial| Refused::Denied(ErrorCode::ReadOnly, Box::new(denial)))
    }

    /// True if something inside makes paths a matter of text.
    pub(crate) fn is_plain(&self) -> bool {
        !self.inner.is_empty() || matches!(self.source, Source::Virtual)
    }

    /// The entry at these names, and the names that lead on from there.
    pub(crate) fn inner_at<'n>(&self, names: &'n [String]) -> Option<(InnerKind, &'n [String])> {
        self.inner.iter().find_map(|inner| Some((inner.what, names.strip_prefix(inner.at.as_slice())?)))
    }

    /// True if something lies below these names.
    pub(crate) fn holds_inner(&self, names: &[String]) -> bool {
        self.inner.iter().any(|inner| inner.at.starts_with(names))
    }
}

/// A path that a guest named, resolved as far as text goes.
#[derive(Debug)]
pub(crate) enum MountTarget {
    MountedPath(MountedPath),
    /// A folder on no disk, by mount and names.
    Virtual(usize, Vec<String>),
    Device(Device),
}

impl MountTarget {
    /// The place on the disk; a folder or device on no disk cannot be changed.
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
    /// Names that lead here from the mount; where links are followed, as the guest wrote them.
    pub(crate) at: Vec<String>,
    /// Links on the way are refused, not followed.
    pub(crate) plain: bool,
    /// A mount is here or below, so it is neither removed nor renamed.
    pub(crate) pinned: bool,
    /// The file itself, where it is open already. Nothing is looked for beneath `dir` then.
    pub(crate) lent: Option<Lent>,
}

impl MountedPath {
    /// The account of the mount's quota; nothing may be written where there is none.
    pub(crate) fn account(&self) -> Result<&Account, ErrorCode> {
        self.account.as_ref().ok_or(ErrorCode::ReadOnly)
    }

    /// Refuses links on the way, where they are not followed. A change holds the account's lock, so
    /// that no guest puts a link there after this look.
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

    /// True if a link here is followed: where it is asked for, or a slash stands behind its name
    /// (POSIX, 4.16 Pathname Resolution).
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

    /// The entry that goes when this name goes: of a link with a slash behind it, the link.
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

/// Refuses everything but a relative path, before anything looks at it.
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
