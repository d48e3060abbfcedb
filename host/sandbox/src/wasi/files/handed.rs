//! The files of a component on their way to a sandbox process, which may open none: the host opens
//! them, and hands over descriptors. Must not hold: how a mount is opened, or what a guest does
//! with it.
//!
//! | mount | handed over |
//! |---|---|
//! | a folder | its descriptor; where it is written to, the counts of its ledger too |
//! | a single file | its descriptor, as it is when the process starts |
//! | scratch space | one folder of the process's own, for all of its calls |
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use cap_std::fs::{Dir, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use rustix::fs::OFlags;
use toolcell_policy::{Access, Quota};
use toolcell_wall::mounts::{HandedKind, MountFacts};
use toolcell_walls::link::Numbers;

use super::bindings::types::ErrorCode;
use super::facts::{Facts, Identity};
use super::ledger::{Account, Ledger};
use super::measure::{self, Amount, Counted};
use super::mount::{InnerKind, Mount, Source};
use super::refused::code;
use super::scratch::{ProcessScratch, ScratchHome};
use crate::wasi::capabilities::Capabilities;

/// The files of one component's tools, open in the host. Cheap to clone.
#[derive(Clone, Default)]
pub struct GrantedFiles {
    mounts: Arc<[GrantedMount]>,
    scratch: Option<GrantedScratch>,
}

/// A mount with the most that any tool of the component has of it.
struct GrantedMount {
    guest: String,
    writes: bool,
    source: GrantedSource,
    identity: Identity,
    /// Places in it that no guest sees.
    hidden: Vec<Vec<String>>,
    /// The account with the largest quota, where it is written to.
    account: Option<Account>,
}

enum GrantedSource {
    Folder(Arc<Dir>),
    File(Arc<Dir>, OsString),
}

/// Scratch space of the calls of a component.
#[derive(Clone)]
struct GrantedScratch {
    home: Arc<ScratchHome>,
    /// The most that one call has, in all of its mounts.
    quota: Quota,
}

impl PartialEq for GrantedFiles {
    /// The files that are the same now.
    fn eq(&self, other: &Self) -> bool {
        let same = |(one, other): (&GrantedMount, &GrantedMount)| {
            let quotas = [one, other].map(|mount| mount.account.as_ref().map(Account::quota));
            (&one.guest, one.writes, one.identity, &one.hidden)
                == (&other.guest, other.writes, other.identity, &other.hidden)
                && quotas[0] == quotas[1]
        };
        let scratch = |files: &Self| files.scratch.as_ref().map(|scratch| scratch.quota);
        self.mounts.len() == other.mounts.len()
            && self.mounts.iter().zip(&*other.mounts).all(same)
            && scratch(self) == scratch(other)
    }
}

impl GrantedFiles {
    /// The files of these tools, which are all of one component.
    pub fn of<'c>(tools: impl IntoIterator<Item = &'c Capabilities>) -> Self {
        let (mut mounts, mut scratch): (Vec<GrantedMount>, Option<GrantedScratch>) = (Vec::new(), None);
        for tool in tools {
            let files = tool.files();
            for mount in files.mounts() {
                add(&mut mounts, mount);
            }
            let quotas = files.mounts().iter().filter_map(|mount| match mount.source {
                Source::Scratch(quota) => Some(quota),
                _ => None,
            });
            let sum = |sum: Quota, quota: Quota| Quota {
                bytes: sum.bytes.saturating_add(quota.bytes),
                files: sum.files.saturating_add(quota.files),
            };
            if let Some((home, quota)) = files.home().zip(quotas.reduce(sum)) {
                let before = scratch.as_ref().map_or(quota, |scratch| scratch.quota);
                let quota = Quota { bytes: quota.bytes.max(before.bytes), files: quota.files.max(before.files) };
                scratch = Some(GrantedScratch { home: Arc::clone(home), quota });
            }
        }
        Self { mounts: mounts.into(), scratch }
    }

    /// True if its tools write to folders or files of the host. Their room is counted in one
    /// process.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.mounts.iter().any(|mount| mount.writes)
    }

    /// Descriptors of all mounts, for a process that starts.
    pub(crate) fn hand_over(&self) -> io::Result<Vec<(MountFacts, Vec<OwnedFd>)>> {
        self.mounts.iter().map(GrantedMount::hand_over).collect()
    }

    /// True if there are any: each of them is looked at before a call.
    pub(crate) fn has_single_files(&self) -> bool {
        self.mounts.iter().any(|mount| matches!(mount.source, GrantedSource::File(..)))
    }

    /// The single files as they are now; one that is gone is none.
    pub(crate) fn single_files(&self) -> impl Iterator<Item = Option<Identity>> {
        self.mounts.iter().filter_map(|mount| match &mount.source {
            GrantedSource::File(folder, name) => {
                Some(folder.symlink_metadata(name).ok().map(|data| Facts::from(&data).identity))
            }
            GrantedSource::Folder(_) => None,
        })
    }

    /// The scratch space of all processes, where its tools have some.
    pub(crate) fn scratch_home(&self) -> Option<&Arc<ScratchHome>> {
        self.scratch.as_ref().map(|scratch| &scratch.home)
    }

    /// The most scratch space of one call.
    pub(crate) fn scratch_quota(&self) -> Option<Quota> {
        self.scratch.as_ref().map(|scratch| scratch.quota)
    }

    /// Folders that are written to, with their quotas.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&Arc<Dir>, Quota)> {
        self.mounts.iter().filter_map(|mount| match &mount.source {
            GrantedSource::Folder(dir) => Some((dir, mount.account.as_ref()?.quota())),
            GrantedSource::File(..) => None,
        })
    }

    /// The length that no file of these grows past; `None` where that is not known.
    pub(crate) fn file_bytes_max(&self) -> Option<u64> {
        let longest = |account: &Account| Some(account.used()?.bytes.max(account.quota().bytes));
        let written = self.mounts.iter().filter_map(|mount| mount.account.as_ref());
        let scratch = self.scratch.as_ref().map_or(0, |scratch| scratch.quota.bytes);
        written.map(longest).try_fold(scratch, |max, bytes| Some(max.max(bytes?)))
    }
}

/// Adds a mount of one tool to those of the others.
fn add(mounts: &mut Vec<GrantedMount>, mount: &Mount) {
    let Some(grant) = &mount.grant else { return };
    let (source, data) = match &mount.source {
        Source::Folder(dir) => (GrantedSource::Folder(Arc::clone(dir)), dir.dir_metadata()),
        Source::File { folder, name } => {
            (GrantedSource::File(Arc::clone(folder), name.clone()), folder.symlink_metadata(name))
        }
        Source::Lent(_) | Source::Scratch(_) | Source::Virtual => return,
    };
    let writes = grant.access() == Access::Write;
    if let Some(known) = mounts.iter_mut().find(|known| known.guest == grant.guest()) {
        known.writes |= writes;
        let bytes = |account: &Account| account.quota().bytes;
        if mount.account.as_ref().map(bytes) > known.account.as_ref().map(bytes) {
            known.account.clone_from(&mount.account);
        }
        return;
    }
    let hidden = mount.inner.iter().filter(|inner| inner.what == InnerKind::Hidden);
    mounts.push(GrantedMount {
        guest: grant.guest().to_owned(),
        writes,
        source,
        // A file that is gone is that of no other.
        identity: data.map(|data| Facts::from(&data).identity).unwrap_or_default(),
        hidden: hidden.map(|inner| inner.at.clone()).collect(),
        account: mount.account.clone(),
    });
}

impl GrantedMount {
    fn hand_over(&self) -> io::Result<(MountFacts, Vec<OwnedFd>)> {
        let (kind, descriptor) = match &self.source {
            GrantedSource::Folder(dir) => (HandedKind::Folder, dir.as_fd().try_clone_to_owned()?),
            GrantedSource::File(folder, name) => match open(folder, name, self.writes) {
                Some(file) => (HandedKind::File, file.into()),
                None => (HandedKind::NoFile, Numbers::new(1)?.as_fd().try_clone_to_owned()?),
            },
        };
        let mut descriptors = vec![descriptor];
        if let Some(account) = &self.account {
            descriptors.push(account.hand_over()?);
        }
        let (guest, writes, hidden) = (self.guest.clone(), self.writes, self.hidden.clone());
        Ok((MountFacts { guest, writes, kind, hidden }, descriptors))
    }
}

/// The regular file of this name, as it is now.
fn open(folder: &Dir, name: &OsString, writes: bool) -> Option<std::fs::File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    // Looked at before it is opened: nothing must happen to a pipe or a device.
    let is_file = |facts: Facts| facts.is_file().then_some(facts.identity);
    let seen = is_file(Facts::from(&folder.symlink_metadata(name).ok()?))?;
    let mut options = OpenOptions::new();
    options.read(true).write(writes).custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
    let file = folder.open_with(name, &options).ok()?.into_std();
    (is_file(Facts::of(&file).ok()?) == Some(seen)).then_some(file)
}

/// The files of one component, in the sandbox process that they were handed to.
#[derive(Debug, Default)]
pub struct HandedFiles {
    mounts: Vec<HandedMount>,
    pub(super) scratch: Option<Arc<ScratchHome>>,
}

/// One mount of them.
#[derive(Debug)]
pub(super) struct HandedMount {
    facts: MountFacts,
    pub(super) source: HandedSource,
    pub(super) ledger: Option<Arc<Ledger>>,
}

#[derive(Debug)]
pub(super) enum HandedSource {
    Folder(Arc<Dir>),
    File(Lent),
}

/// A single file, open.
#[derive(Clone, Debug)]
pub(crate) struct Lent {
    pub(super) file: Arc<std::fs::File>,
    /// Its descriptor as a folder, which it is not: whatever takes it for one is refused.
    pub(super) dir: Arc<Dir>,
    pub(super) is_there: bool,
}

impl HandedFiles {
    /// The mounts that came with these descriptors.
    ///
    /// # Errors
    /// One sentence: a descriptor is missing, or is of something else.
    pub(crate) fn new(
        mounts: Vec<(MountFacts, Vec<OwnedFd>)>,
        scratch: Option<Arc<ScratchHome>>,
    ) -> Result<Self, String> {
        let handed = |(facts, descriptors): (MountFacts, Vec<OwnedFd>)| {
            let wrong = |error: io::Error| format!("the mount {:?} cannot be used: {error}", facts.guest);
            let mut descriptors = descriptors.into_iter();
            let descriptor = descriptors.next().ok_or(io::ErrorKind::NotFound.into()).map_err(wrong)?;
            let source = match facts.kind {
                HandedKind::Folder => HandedSource::Folder(Arc::new(Dir::from_std_file(descriptor.into()))),
                kind => HandedSource::File(Lent::new(descriptor, kind == HandedKind::File).map_err(wrong)?),
            };
            let ledger = descriptors.next().map(Ledger::handed).transpose().map_err(wrong)?;
            Ok::<_, String>(HandedMount { facts, source, ledger })
        };
        Ok(Self { mounts: mounts.into_iter().map(handed).collect::<Result<_, _>>()?, scratch })
    }

    /// The mount at this path, if it was handed over for that access.
    pub(super) fn mount(&self, guest: &str, access: Access) -> Option<&HandedMount> {
        let mount = self.mounts.iter().find(|mount| mount.facts.guest == guest)?;
        (access == Access::Read || mount.facts.writes).then_some(mount)
    }
}

impl HandedMount {
    pub(super) fn hidden(&self) -> &[Vec<String>] {
        &self.facts.hidden
    }
}

impl Lent {
    fn new(descriptor: OwnedFd, is_there: bool) -> io::Result<Self> {
        let dir = Dir::from_std_file(descriptor.try_clone()?.into());
        Ok(Self { file: Arc::new(descriptor.into()), dir: Arc::new(dir), is_there })
    }

    /// The facts of the file. One that is gone has none.
    pub(super) fn facts(&self) -> Result<Facts, ErrorCode> {
        if !self.is_there {
            return Err(ErrorCode::NoEntry);
        }
        Facts::of(&self.file).map_err(|error| code(&error))
    }

    /// The file once more.
    pub(super) fn open(&self) -> Result<std::fs::File, ErrorCode> {
        if !self.is_there {
            return Err(ErrorCode::NoEntry);
        }
        self.file.try_clone().map_err(|error| code(&error))
    }

    /// Amount that a quota counts.
    pub(super) fn amount(&self) -> io::Result<Amount> {
        if !self.is_there {
            return Ok(Amount::default());
        }
        Ok(Amount { bytes: Facts::of(&self.file)?.charged_bytes(), files: 1 })
    }
}

/// A folder that a sandbox process writes to, and the most that it may come to hold.
pub(crate) enum WrittenFolder {
    Mount(Arc<Dir>, Quota),
    /// Of the process's own, with what each call may have there.
    Scratch(Arc<ProcessScratch>, Quota),
}

impl WrittenFolder {
    /// The most that so many calls at once add to it.
    pub(crate) fn quota(&self, calls: u64) -> Quota {
        match self {
            // All calls share it.
            Self::Mount(_, quota) => *quota,
            Self::Scratch(_, quota) => {
                Quota { bytes: quota.bytes.saturating_mul(calls), files: quota.files.saturating_mul(calls) }
            }
        }
    }

    /// Counts what is there now, up to `files_max` names.
    pub(crate) fn count(&self, files_max: u64) -> io::Result<Counted> {
        measure::count(self.dir(), files_max)
    }

    /// Its device and its number there: two mounts may be one folder.
    pub(crate) fn identity(&self) -> io::Result<(u64, u64)> {
        let data = self.dir().dir_metadata()?;
        Ok((data.dev(), data.ino()))
    }

    fn dir(&self) -> &Dir {
        match self {
            Self::Mount(dir, _) => dir,
            Self::Scratch(scratch, _) => scratch.dir(),
        }
    }
}
