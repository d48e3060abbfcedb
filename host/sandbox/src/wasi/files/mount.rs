//! Mounts and paths: which place on the host a guest's path is, or that it is none. Nothing is opened here but what is
//! needed to look.
//!
//! A mount without others inside it leaves the whole path to cap-std, which resolves it beneath the mount's folder. Where
//! another mount, or something that no guest may see, lies inside, the path is resolved as text first, so that the longest
//! guest path wins; links are not followed there, as a text cannot tell where they lead.
use std::ffi::OsString;
use std::sync::Arc;

use cap_std::fs::Dir;
use toolcell_policy::{FileAccess, FilePermit, Quota};

use super::bindings::types::ErrorCode;
use super::facts::Facts;
use super::ledger::Account;
use super::refused::{Refused, code};

/// Bytes of one path: what Linux takes at once.
pub(crate) const PATH_BYTES_MAX: usize = 4096;

/// Something at a path of the guest's tree.
#[derive(Debug)]
pub(crate) struct Mount {
    /// What the manifest says of it; nothing, for a folder that is only there to hold a mounted file.
    pub(crate) grant: Option<toolcell_policy::Mount>,
    pub(crate) source: Source,
    /// Of what is written to a folder or file of the host.
    pub(crate) account: Option<Account>,
    /// What lies inside, the longest paths first.
    pub(crate) inner: Vec<Inner>,
}

/// What is mounted.
#[derive(Debug)]
pub(crate) enum Source {
    Folder(Arc<Dir>),
    File {
        folder: Arc<Dir>,
        name: OsString,
    },
    Scratch(Quota),
    /// A folder on no disk.
    Virtual,
}

/// Something inside a mount that is not the mount's own.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Inner {
    /// Names that lead to it from the mount.
    pub(crate) at: Vec<String>,
    pub(crate) what: What,
}

/// What lies inside a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// The mount of that number.
    Mount(usize),
    /// The host's own: no guest sees it.
    Hidden,
}

impl Mount {
    /// Whether the manifest allows it; `path` is for the denial.
    pub(crate) fn permit(&self, want: FileAccess, path: &[String]) -> Result<FilePermit, Refused> {
        let grant = self.grant.as_ref().ok_or(ErrorCode::ReadOnly)?;
        grant.open(want, &path.join("/")).map_err(|denial| Refused::Denied(ErrorCode::ReadOnly, Box::new(denial)))
    }

    /// Whether something inside makes paths a matter of text.
    pub(crate) fn is_plain(&self) -> bool {
        !self.inner.is_empty() || matches!(self.source, Source::Virtual)
    }

    /// What lies at these names, and the names that lead on from there.
    pub(crate) fn inner_at<'n>(&self, names: &'n [String]) -> Option<(What, &'n [String])> {
        self.inner.iter().find_map(|inner| Some((inner.what, names.strip_prefix(inner.at.as_slice())?)))
    }

    /// Whether something lies below these names.
    pub(crate) fn holds_inner(&self, names: &[String]) -> bool {
        self.inner.iter().any(|inner| inner.at.starts_with(names))
    }
}

/// A path that a guest named, resolved as far as text goes.
#[derive(Debug)]
pub(crate) enum Place {
    Spot(Spot),
    /// A folder on no disk, by mount and names.
    Virtual(usize, Vec<String>),
}

impl Place {
    /// The place on the disk; what is on none cannot be changed.
    pub(crate) fn spot(self) -> Result<Spot, Refused> {
        match self {
            Self::Spot(spot) => Ok(spot),
            Self::Virtual(..) => Err(ErrorCode::ReadOnly.into()),
        }
    }
}

/// A path beneath an open folder.
#[derive(Debug)]
pub(crate) struct Spot {
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
}

impl Spot {
    /// What quotas of the mount say; nothing may be written where there are none.
    pub(crate) fn account(&self) -> Result<&Account, ErrorCode> {
        self.account.as_ref().ok_or(ErrorCode::ReadOnly)
    }

    /// Refuses links on the way, where they are not followed. Whoever changes something has its turn in the account, so
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

    /// What is there; of a link, what it leads to if `follow`.
    pub(crate) fn facts(&self, follow: bool) -> Result<Facts, ErrorCode> {
        self.check()?;
        let data =
            if follow && !self.plain { self.dir.metadata(&self.path) } else { self.dir.symlink_metadata(&self.path) };
        let facts = Facts::from(&data.map_err(|error| code(&error))?);
        if follow && self.plain && facts.is_link() { Err(ErrorCode::Loop) } else { Ok(facts) }
    }

    /// What goes when this name goes: of a link with a slash behind it, the link.
    pub(crate) fn facts_of_name(&self) -> Result<Facts, ErrorCode> {
        self.check()?;
        let name = self.path.trim_end_matches('/');
        let data = self.dir.symlink_metadata(name).map_err(|error| code(&error))?;
        Ok(Facts::from(&data))
    }
}

/// The names of a relative path, from `start` on. `..` is resolved as text, and does not lead above `start`.
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

/// Refuses what is no relative path before anything looks at it.
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
