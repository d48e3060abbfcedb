//! Opening. A guest may hold a regular file or a folder. Anything else is open only until its kind
//! is known.
use std::sync::Arc;

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;
use toolcell_policy::{FileAccess, FilePermit};

use toolcell_walls::folder::Facts;

use super::bindings::types::{DescriptorFlags, ErrorCode, OpenFlags, PathFlags};
use super::call::{Descriptor, Files, Folder, Opened};
use super::devices::{Device, OpenDevice};
use super::handle::{Handle, single};
use super::ledger::{Account, NamesLock};
use super::mount::{MountTarget, MountedPath};
use super::permits::{Permit, Permits};
use super::refused::{Refused, code};

/// A guest's request to open a file or folder.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are the flags of the interface")]
pub(super) struct OpenRequest {
    follow: bool,
    create: bool,
    directory: bool,
    exclusive: bool,
    truncate: bool,
    read: bool,
    write: bool,
    mutate: bool,
}

impl OpenRequest {
    pub(super) fn new(path: PathFlags, open: OpenFlags, flags: DescriptorFlags) -> Result<Self, ErrorCode> {
        let synced = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if flags.intersects(synced) {
            return Err(ErrorCode::Unsupported);
        }
        let made = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
        if open.contains(OpenFlags::DIRECTORY) && open.intersects(made) {
            return Err(ErrorCode::Invalid);
        }
        Ok(Self {
            follow: path.contains(PathFlags::SYMLINK_FOLLOW),
            create: open.contains(OpenFlags::CREATE),
            directory: open.contains(OpenFlags::DIRECTORY),
            exclusive: open.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE),
            truncate: open.contains(OpenFlags::TRUNCATE),
            read: flags.contains(DescriptorFlags::READ) || !flags.contains(DescriptorFlags::WRITE),
            write: flags.contains(DescriptorFlags::WRITE),
            mutate: flags.contains(DescriptorFlags::MUTATE_DIRECTORY),
        })
    }

    /// For setting the facts of an existing entry.
    pub(super) fn to_stat(follow: bool) -> Self {
        Self { follow, read: true, ..Self::default() }
    }

    /// For making a new file.
    pub(super) fn to_make() -> Self {
        Self { create: true, exclusive: true, write: true, ..Self::default() }
    }

    fn access(self) -> FileAccess {
        if self.create {
            FileAccess::Create
        } else if self.write || self.truncate || self.mutate {
            FileAccess::Write
        } else {
            FileAccess::Read
        }
    }

    /// Checks that this entry may be opened this way.
    fn fits(self, facts: &Facts) -> Result<(), ErrorCode> {
        if facts.is_link() {
            return Err(ErrorCode::Loop);
        }
        if facts.is_folder() {
            return if self.write || self.truncate { Err(ErrorCode::IsDirectory) } else { Ok(()) };
        }
        if self.directory {
            return Err(ErrorCode::NotDirectory);
        }
        // A pipe or a device can block forever, and opening it can have effects.
        if !facts.is_file() {
            return Err(ErrorCode::NotPermitted);
        }
        if self.write || self.truncate { single(facts) } else { Ok(()) }
    }

    /// Opens a device, which can be neither made nor truncated.
    fn device(self, device: Device) -> Result<OpenDevice, ErrorCode> {
        if self.directory {
            return Err(ErrorCode::NotDirectory);
        }
        if self.exclusive {
            return Err(ErrorCode::Exist);
        }
        Ok(OpenDevice { device, reads: self.read, writes: self.write })
    }

    fn options(self, existing: Option<&Facts>, plain: bool) -> OpenOptions {
        let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        if !self.follow || plain {
            flags |= OFlags::NOFOLLOW;
        }
        let mut options = OpenOptions::new();
        options.read(self.read).custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
        match existing {
            Some(facts) if facts.is_folder() => options.read(true),
            Some(_) => options.write(self.write || self.truncate),
            None if self.exclusive => options.write(true).create_new(true),
            None => options.write(true).create(true),
        };
        options
    }
}

/// An opened entry: a folder, or a file, which its ledger already tracks if it has one.
enum OpenedEntry {
    Folder(std::fs::File, Permit),
    File(Arc<Handle>),
}

impl Files {
    pub(super) fn open(&mut self, folder: &Folder, path: &str, asked: OpenRequest) -> Result<Descriptor, Refused> {
        let spot = match self.place(folder, path, asked.access())? {
            MountTarget::MountedPath(spot) => spot,
            MountTarget::Virtual(mount, at) => {
                if asked.access() != FileAccess::Read {
                    return Err(ErrorCode::ReadOnly.into());
                }
                return Ok(Descriptor::Folder(Folder { mount, at, open: None }));
            }
            MountTarget::Device(device) => return asked.device(device).map(Descriptor::Device).map_err(Refused::Code),
        };
        let permit = self.permit(spot.mount, asked.access(), &spot.at)?;
        let asked = OpenRequest { follow: spot.follows(asked.follow), ..asked };
        let found = open(&spot, asked, self.permits(), permit)?;
        let MountedPath { mount, at, plain, .. } = spot;
        Ok(match found {
            OpenedEntry::File(handle) => {
                Descriptor::File(Opened { mount, at, handle, reads: asked.read, writes: asked.write })
            }
            // Paths are resolved from the mount again each time.
            OpenedEntry::Folder(..) if plain => Descriptor::Folder(Folder { mount, at, open: None }),
            OpenedEntry::Folder(file, permit) => {
                let open = Some((Arc::new(Dir::from_std_file(file)), Arc::new(permit)));
                Descriptor::Folder(Folder { mount, at, open })
            }
        })
    }
}

fn open(
    spot: &MountedPath,
    asked: OpenRequest,
    permits: &Permits,
    _permit: FilePermit,
) -> Result<OpenedEntry, ErrorCode> {
    match &spot.account {
        None => open_to_read(spot, asked, permits),
        Some(account) => account.with_room(|| open_held(spot, asked, account, permits)),
    }
}

fn open_to_read(spot: &MountedPath, asked: OpenRequest, permits: &Permits) -> Result<OpenedEntry, ErrorCode> {
    let permit = permits.take(1)?;
    let seen = spot.facts(asked.follow)?;
    let (file, facts) = open_seen(spot, asked, Some(&seen))?;
    if facts.is_folder() {
        Ok(OpenedEntry::Folder(file, permit))
    } else {
        Ok(OpenedEntry::File(Handle::reading(file, permit)))
    }
}

fn open_held(
    spot: &MountedPath,
    asked: OpenRequest,
    account: &Account,
    permits: &Permits,
) -> Result<OpenedEntry, ErrorCode> {
    let permit = permits.take(1)?;
    let mut turn = account.names();
    let seen = match spot.facts(asked.follow && !asked.exclusive) {
        Ok(_) if asked.exclusive => return Err(ErrorCode::Exist),
        Ok(facts) => Some(facts),
        Err(ErrorCode::NoEntry) if asked.create => None,
        Err(code) => return Err(code),
    };
    let room = if seen.is_none() { Some(account.reserve(0, 1)?) } else { None };
    let (file, facts) = open_seen(spot, asked, seen.as_ref())?;
    if let Some(room) = room {
        room.keep();
    }
    if facts.is_folder() {
        return Ok(OpenedEntry::Folder(file, permit));
    }
    if asked.truncate {
        truncate(&file, &facts, account, &turn)?;
    }
    Ok(OpenedEntry::File(Handle::held(file, &facts, account, permit).enter(&mut turn)))
}

/// Opens the entry that was examined, and checks it again once it is open.
pub(super) fn open_seen(
    spot: &MountedPath,
    asked: OpenRequest,
    seen: Option<&Facts>,
) -> Result<(std::fs::File, Facts), ErrorCode> {
    if let Some(seen) = seen {
        asked.fits(seen)?;
    }
    let file = match &spot.lent {
        Some(lent) => lent.open()?,
        None => {
            let opened = spot.dir.open_with(&spot.path, &asked.options(seen, spot.plain));
            opened.map_err(|error| code(&error))?.into_std()
        }
    };
    let facts = Facts::of(&file).map_err(|error| code(&error))?;
    asked.fits(&facts)?;
    // Another program replaced it in between, perhaps by a link that is not to be followed.
    if seen.is_some_and(|seen| seen.identity != facts.identity) {
        return Err(ErrorCode::Busy);
    }
    Ok((file, facts))
}

fn truncate(file: &std::fs::File, facts: &Facts, account: &Account, turn: &NamesLock<'_>) -> Result<(), ErrorCode> {
    let writing = turn.writing(facts.identity).unwrap_or_default();
    let _alone = writing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let before = Facts::of(file).map_err(|error| code(&error))?;
    file.set_len(0).map_err(|error| code(&error))?;
    account.give_back_bytes(before.size);
    Ok(())
}
