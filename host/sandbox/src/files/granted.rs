//! The files of a component on their way to a sandbox process. The process cannot open any, so the
//! host opens them and passes descriptors.
//!
//! | mount | handed over |
//! |---|---|
//! | a folder | its descriptor; where it is written to, its counts too |
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
use toolcell_walls::folder::{Amount, Facts, Identity, folder};
use toolcell_walls::link::Numbers;

use super::opened::{Opened, OpenedMount, OpenedScratch};
use super::room::Room;
use super::scratch::{ProcessScratch, ScratchHome};
use crate::wasi::capabilities::GrantedCapabilities;

/// The files of one component's tools, open in the host. Cheap to clone.
#[derive(Clone, Default)]
pub struct GrantedFiles {
    mounts: Arc<[GrantedMount]>,
    scratch: Option<OpenedScratch>,
}

/// A mount, with the most access that any tool of the component has to it.
struct GrantedMount {
    guest: String,
    writes: bool,
    opened: Opened,
    identity: Identity,
    /// Places in it that no guest sees.
    hidden: Vec<Vec<String>>,
    /// The room with the largest quota, if it is written to.
    room: Option<Room>,
}

impl PartialEq for GrantedFiles {
    /// True if they are the same files.
    fn eq(&self, other: &Self) -> bool {
        let same = |(one, other): (&GrantedMount, &GrantedMount)| {
            let quotas = [one, other].map(|mount| mount.room.as_ref().map(Room::quota));
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
    pub fn of<'c>(tools: impl IntoIterator<Item = &'c GrantedCapabilities>) -> Self {
        let mut mounts: Vec<GrantedMount> = Vec::new();
        let mut scratch: Option<OpenedScratch> = None;
        for tool in tools {
            let files = tool.files();
            for mount in files.mounts() {
                add(&mut mounts, mount);
            }
            if let Some(own) = files.scratch() {
                let before = scratch.as_ref().map_or(own.quota, |scratch| scratch.quota);
                let quota =
                    Quota { bytes: own.quota.bytes.max(before.bytes), files: own.quota.files.max(before.files) };
                scratch = Some(OpenedScratch { home: Arc::clone(&own.home), quota });
            }
        }
        Self { mounts: mounts.into(), scratch }
    }

    /// True if its tools write to folders or files of the host. Their room is counted in one
    /// process only.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.mounts.iter().any(|mount| mount.writes)
    }

    /// Descriptors of all mounts, for a process that starts.
    ///
    /// # Errors
    /// An error of the system.
    pub fn hand_over(&self) -> io::Result<Vec<(MountFacts, Vec<OwnedFd>)>> {
        self.mounts.iter().map(GrantedMount::hand_over).collect()
    }

    /// True if there are any: they are checked before each call.
    pub(crate) fn has_single_files(&self) -> bool {
        self.mounts.iter().any(|mount| matches!(mount.opened, Opened::File(..)))
    }

    /// The single files as they are now; `None` for one that was removed.
    pub fn single_files(&self) -> impl Iterator<Item = Option<Identity>> {
        let files = self.mounts.iter().filter(|mount| matches!(mount.opened, Opened::File(..)));
        files.map(|mount| mount.opened.identity())
    }

    /// The scratch space of all processes, if its tools have some.
    #[must_use]
    pub fn scratch_home(&self) -> Option<&Arc<ScratchHome>> {
        self.scratch.as_ref().map(|scratch| &scratch.home)
    }

    /// The most scratch space of one call.
    pub(crate) fn scratch_quota(&self) -> Option<Quota> {
        self.scratch.as_ref().map(|scratch| scratch.quota)
    }

    /// Folders that are written to.
    pub(crate) fn written(&self) -> impl Iterator<Item = WrittenFolder> {
        self.mounts.iter().filter_map(|mount| match &mount.opened {
            Opened::Folder(dir) => Some(WrittenFolder::Mount {
                guest: mount.guest.clone(),
                dir: Arc::clone(dir),
                quota: mount.room.as_ref()?.quota(),
            }),
            Opened::File(..) => None,
        })
    }

    /// The length that no file of these grows past; `None` if it is not known.
    pub(crate) fn file_bytes_max(&self) -> Option<u64> {
        let longest = |room: &Room| Some(room.used()?.bytes.max(room.quota().bytes));
        let written = self.mounts.iter().filter_map(|mount| mount.room.as_ref());
        let scratch = self.scratch.as_ref().map_or(0, |scratch| scratch.quota.bytes);
        written.map(longest).try_fold(scratch, |max, bytes| Some(max.max(bytes?)))
    }
}

/// Adds a mount of one tool to those of the others.
fn add(mounts: &mut Vec<GrantedMount>, mount: &OpenedMount) {
    let writes = mount.grant.access() == Access::Write;
    if let Some(known) = mounts.iter_mut().find(|known| known.guest == mount.grant.guest()) {
        known.writes |= writes;
        let bytes = |room: &Room| room.quota().bytes;
        if mount.room.as_ref().map(bytes) > known.room.as_ref().map(bytes) {
            known.room.clone_from(&mount.room);
        }
        return;
    }
    mounts.push(GrantedMount {
        guest: mount.grant.guest().to_owned(),
        writes,
        opened: mount.opened.clone(),
        // A removed file equals no other.
        identity: mount.opened.identity().unwrap_or_default(),
        hidden: mount.hidden.clone(),
        room: mount.room.clone(),
    });
}

impl GrantedMount {
    fn hand_over(&self) -> io::Result<(MountFacts, Vec<OwnedFd>)> {
        let (kind, descriptor) = match &self.opened {
            Opened::Folder(dir) => (HandedKind::Folder, dir.as_fd().try_clone_to_owned()?),
            Opened::File(folder, name) => match open(folder, name, self.writes) {
                Some(file) => (HandedKind::File, file.into()),
                None => (HandedKind::NoFile, Numbers::new(1)?.as_fd().try_clone_to_owned()?),
            },
        };
        let mut descriptors = vec![descriptor];
        if let Some(room) = &self.room {
            descriptors.push(room.hand_over()?);
        }
        let facts = MountFacts { guest: self.guest.clone(), writes: self.writes, kind, hidden: self.hidden.clone() };
        Ok((facts, descriptors))
    }
}

/// The regular file of this name, as it is now.
fn open(folder: &Dir, name: &OsString, writes: bool) -> Option<std::fs::File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    // Checked before it is opened: opening a pipe or a device could have effects.
    let is_file = |facts: Facts| facts.is_file().then_some(facts.identity);
    let seen = is_file(Facts::from(&folder.symlink_metadata(name).ok()?))?;
    let mut options = OpenOptions::new();
    options.read(true).write(writes).custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
    let file = folder.open_with(name, &options).ok()?.into_std();
    (is_file(Facts::of(&file).ok()?) == Some(seen)).then_some(file)
}

/// A folder that a sandbox process writes to, with the most that it may hold.
pub(crate) enum WrittenFolder {
    /// A folder of the host, at this path of the guest's.
    Mount { guest: String, dir: Arc<Dir>, quota: Quota },
    /// The process's own, with what each call may have there.
    Scratch(Arc<ProcessScratch>, Quota),
}

impl WrittenFolder {
    /// The most that this number of calls at once can add to it.
    pub(crate) fn quota(&self, calls: u64) -> Quota {
        match self {
            // All calls share it.
            Self::Mount { quota, .. } => *quota,
            Self::Scratch(_, quota) => {
                Quota { bytes: quota.bytes.saturating_mul(calls), files: quota.files.saturating_mul(calls) }
            }
        }
    }

    /// Counts what is there now; `None` if there are more than `files_max` names.
    pub(crate) fn count(&self, files_max: u64) -> io::Result<Option<Amount>> {
        folder(self.dir(), files_max)
    }

    /// Its name in a sentence.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Mount { guest, .. } => format!("the folder {guest}"),
            Self::Scratch(..) => "its scratch space".to_owned(),
        }
    }

    /// Its device and inode: two mounts may be the same folder.
    pub(crate) fn identity(&self) -> io::Result<(u64, u64)> {
        let data = self.dir().dir_metadata()?;
        Ok((data.dev(), data.ino()))
    }

    fn dir(&self) -> &Dir {
        match self {
            Self::Mount { dir, .. } => dir,
            Self::Scratch(scratch, _) => scratch.dir(),
        }
    }
}
