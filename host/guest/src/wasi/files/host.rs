//! The functions of `wasi:filesystem`, built on the other files of this folder. Each does a bounded
//! piece of work. `interface.rs` chooses the thread.
use std::sync::Arc;

use toolcell_policy::FileAccess;
use wasmtime::component::{HasData, Resource, ResourceTable};

use toolcell_walls::folder::Facts;

use super::bindings::preopens;
use super::bindings::types::{
    self, DescriptorStat, DescriptorType, ErrorCode, Filesize, MetadataHashValue, NewTimestamp, PathFlags,
};
use super::call::{Descriptor, Files, Folder, Opened};
use super::devices::{Device, OpenDevice};
use super::handle::{PIECE_BYTES_MAX, Position};
use super::listing::{self, Listing, ListingStep};
use super::mount::{MountTarget, MountedPath};
use super::open::OpenRequest;
use super::refused::{Refused, code};
use super::{entries, facts};
use toolcell_wall::denials::CallDenials;

/// The files of a call with the other parts of its store that the interface needs.
pub(crate) struct FilesView<'a> {
    pub(crate) files: &'a mut Files,
    pub(crate) table: &'a mut ResourceTable,
    pub(crate) denials: &'a CallDenials,
}

/// The times that a guest sets.
pub(super) struct NewTimes {
    pub(super) accessed: NewTimestamp,
    pub(super) modified: NewTimestamp,
}

/// Work that waits for the disk.
pub(super) type SyncWork = Box<dyn FnOnce() -> std::io::Result<()> + Send>;

/// Marks [`FilesView`] for the linker.
pub(crate) struct WasiFiles;

impl HasData for WasiFiles {
    type Data<'a> = FilesView<'a>;
}

type Result<T> = std::result::Result<T, Refused>;

/// A guest's handle.
pub(super) type Fd = Resource<Descriptor>;

impl FilesView<'_> {
    fn folder(&self, descriptor: &Fd) -> Result<Folder> {
        match self.table.get(descriptor)? {
            Descriptor::Folder(folder) => Ok(folder.clone()),
            Descriptor::File(_) | Descriptor::Device(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    /// The device, if it is one.
    pub(super) fn device(&self, descriptor: &Fd) -> Result<Option<OpenDevice>> {
        match self.table.get(descriptor)? {
            Descriptor::Device(device) => Ok(Some(*device)),
            Descriptor::File(_) | Descriptor::Folder(_) => Ok(None),
        }
    }

    pub(super) fn file(&self, descriptor: &Fd) -> Result<&Opened> {
        match self.table.get(descriptor)? {
            Descriptor::File(file) => Ok(file),
            Descriptor::Folder(_) | Descriptor::Device(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// A file that may be written, according to the manifest and to how it was opened.
    pub(super) fn file_to_write(&self, descriptor: &Fd) -> Result<&Opened> {
        let file = self.file(descriptor)?;
        self.files.permit(file.mount, FileAccess::Write, &file.at)?;
        if file.writes { Ok(file) } else { Err(ErrorCode::BadDescriptor.into()) }
    }

    pub(super) fn file_to_read(&self, descriptor: &Fd) -> Result<&Opened> {
        let file = match self.table.get(descriptor)? {
            Descriptor::File(file) => file,
            Descriptor::Folder(_) => return Err(ErrorCode::IsDirectory.into()),
            Descriptor::Device(_) => return Err(ErrorCode::BadDescriptor.into()),
        };
        self.files.permit(file.mount, FileAccess::Read, &file.at)?;
        if file.reads { Ok(file) } else { Err(ErrorCode::BadDescriptor.into()) }
    }

    fn place(&mut self, descriptor: &Fd, path: &str, want: FileAccess) -> Result<MountTarget> {
        let folder = self.folder(descriptor)?;
        self.files.place(&folder, path, want)
    }

    fn spot(&mut self, descriptor: &Fd, path: &str, want: FileAccess) -> Result<MountedPath> {
        self.place(descriptor, path, want)?.spot()
    }

    /// The entry that a path leads to. A virtual folder has no facts.
    fn facts_at(&mut self, descriptor: &Fd, flags: PathFlags, path: &str) -> Result<FoundEntry> {
        match self.place(descriptor, path, FileAccess::Read)? {
            MountTarget::Virtual(mount, at) => Ok(FoundEntry::Virtual(mount, at)),
            MountTarget::Device(device) => Ok(FoundEntry::Device(device)),
            MountTarget::MountedPath(spot) => {
                self.files.permit(spot.mount, FileAccess::Read, &spot.at)?;
                Ok(FoundEntry::Real(spot.facts(flags.contains(PathFlags::SYMLINK_FOLLOW))?))
            }
        }
    }

    fn facts(&mut self, descriptor: &Fd) -> Result<FoundEntry> {
        match self.table.get(descriptor)? {
            Descriptor::File(file) => return Ok(FoundEntry::Real(file.handle.facts()?)),
            Descriptor::Device(open) => return Ok(FoundEntry::Device(open.device)),
            Descriptor::Folder(_) => {}
        }
        self.facts_at(descriptor, PathFlags::empty(), ".")
    }

    /// The work that puts a file or folder on the disk, if it needs any.
    pub(super) fn sync_work(&mut self, descriptor: &Fd, data_only: bool) -> Result<Option<SyncWork>> {
        let folder = match self.table.get(descriptor)? {
            // A file that is not written does not need a sync.
            Descriptor::File(file) if !file.writes => return Ok(None),
            Descriptor::File(file) => {
                let handle = Arc::clone(&file.handle);
                return Ok(Some(Box::new(move || {
                    if data_only { handle.file().sync_data() } else { handle.file().sync_all() }
                })));
            }
            Descriptor::Device(_) => return Ok(None),
            Descriptor::Folder(folder) => folder.clone(),
        };
        let MountTarget::MountedPath(spot) = self.files.place(&folder, ".", FileAccess::Read)? else {
            return Ok(None);
        };
        if spot.account.is_none() {
            return Ok(None);
        }
        let permit = self.files.permits().take(1)?;
        Ok(Some(Box::new(move || {
            let _permit = permit;
            spot.dir.open(&spot.path)?.sync_all()
        })))
    }
}

/// An entry with its facts.
enum FoundEntry {
    Real(Facts),
    Virtual(usize, Vec<String>),
    Device(Device),
}

impl FoundEntry {
    fn stat(&self) -> DescriptorStat {
        match self {
            Self::Real(facts) => facts::stat(facts),
            // It contains only mounts.
            Self::Virtual(..) => facts::stat_of_own(DescriptorType::Directory),
            Self::Device(_) => facts::stat_of_own(DescriptorType::CharacterDevice),
        }
    }

    fn hash(&self) -> MetadataHashValue {
        match self {
            Self::Real(facts) => facts::hash(&facts.identity),
            Self::Virtual(mount, at) => facts::hash(&(mount, at)),
            Self::Device(device) => facts::hash(device),
        }
    }
}

/// Waits for the disk on another thread, so that it neither blocks other guests nor outlasts the
/// call's deadline.
pub(super) async fn aside<T: Send + 'static>(wait: impl FnOnce() -> std::io::Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(wait).await {
        Ok(result) => Ok(result?),
        Err(_) => Err(ErrorCode::Io.into()),
    }
}

impl preopens::Host for FilesView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Fd, String)>> {
        let folders = self.files.preopens().map(|(mount, path)| {
            let folder = Descriptor::Folder(Folder { mount, at: Vec::new(), open: None });
            Ok((self.table.push(folder)?, path.to_owned()))
        });
        folders.collect()
    }
}

impl types::Host for FilesView<'_> {
    fn convert_error_code(&mut self, refused: Refused) -> wasmtime::Result<ErrorCode> {
        match refused {
            Refused::Code(code) => Ok(code),
            Refused::Denied(code, denial) => {
                self.denials.add(*denial);
                Ok(code)
            }
            Refused::Trap(error) => Err(error),
        }
    }

    fn filesystem_error_code(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        let error = self.table.get(&error)?;
        let own = error.downcast_ref::<ErrorCode>().copied();
        Ok(own.or_else(|| error.downcast_ref::<std::io::Error>().map(code)))
    }
}

impl FilesView<'_> {
    pub(super) fn set_size(&mut self, fd: &Fd, size: Filesize) -> Result<()> {
        if self.device(fd)?.is_some() {
            return Err(ErrorCode::Invalid.into());
        }
        Ok(self.file_to_write(fd)?.handle.set_size(size)?)
    }

    pub(super) fn set_times(&mut self, fd: Fd, accessed: NewTimestamp, modified: NewTimestamp) -> Result<()> {
        if let Descriptor::File(file) = self.table.get(&fd)? {
            self.files.permit(file.mount, FileAccess::Write, &file.at)?;
            return Ok(file.handle.set_times(facts::times(accessed, modified)?)?);
        }
        self.set_times_at(fd, PathFlags::empty(), ".".to_owned(), NewTimes { accessed, modified })
    }

    pub(super) fn read(&mut self, fd: Fd, length: Filesize, offset: Filesize) -> Result<(Vec<u8>, bool)> {
        let bytes = match self.device(&fd)? {
            Some(device) => device.to_read()?.read(length)?,
            None => self.file_to_read(&fd)?.handle.read(length, offset)?,
        };
        let ended = bytes.is_empty() && length > 0;
        Ok((bytes, ended))
    }

    pub(super) fn write(&mut self, fd: &Fd, bytes: &[u8], offset: Filesize) -> Result<Filesize> {
        let piece = bytes.get(..PIECE_BYTES_MAX).unwrap_or(bytes);
        if let Some(device) = self.device(fd)? {
            device.to_write()?;
            return Ok(piece.len() as u64);
        }
        self.file_to_write(fd)?.handle.write(piece, Position::At(offset))?;
        Ok(piece.len() as u64)
    }

    pub(super) fn read_directory(&mut self, fd: Fd) -> Result<Resource<Listing>> {
        let listing = self.listing(&fd)?;
        Ok(self.table.push(listing)?)
    }

    /// A folder, to be listed.
    pub(super) fn listing(&mut self, fd: &Fd) -> Result<Listing> {
        let folder = match self.table.get(fd)? {
            Descriptor::Folder(folder) => folder.clone(),
            Descriptor::File(_) | Descriptor::Device(_) => return Err(ErrorCode::NotDirectory.into()),
        };
        self.files.permit_to_stat(folder.mount, &folder.at)?;
        let entries = match self.files.place(&folder, ".", FileAccess::Read)? {
            MountTarget::Virtual(..) | MountTarget::Device(_) => None,
            MountTarget::MountedPath(spot) => {
                spot.check()?;
                let permit = self.files.permits().take(2)?;
                Some((spot.dir.read_dir(&spot.path)?, permit))
            }
        };
        let mounts = self.files.prepared().mounts();
        let inner = listing::inner(mounts, self.files.mount(folder.mount)?, &folder.at);
        Ok(Listing::new(entries, inner))
    }

    pub(super) fn create_directory_at(&mut self, fd: &Fd, path: &str) -> Result<()> {
        let spot = self.spot(fd, path, FileAccess::Create)?;
        let permit = self.files.permit(spot.mount, FileAccess::Create, &spot.at)?;
        Ok(entries::create_folder(&spot, permit)?)
    }

    pub(super) fn stat(&mut self, fd: Fd) -> Result<DescriptorStat> {
        Ok(self.facts(&fd)?.stat())
    }

    pub(super) fn stat_at(&mut self, fd: Fd, flags: PathFlags, path: String) -> Result<DescriptorStat> {
        Ok(self.facts_at(&fd, flags, &path)?.stat())
    }

    pub(super) fn set_times_at(&mut self, fd: Fd, flags: PathFlags, path: String, new: NewTimes) -> Result<()> {
        let spot = self.spot(&fd, &path, FileAccess::Write)?;
        let permit = self.files.permit(spot.mount, FileAccess::Write, &spot.at)?;
        let times = facts::times(new.accessed, new.modified)?;
        Ok(self.files.set_times(&spot, flags.contains(PathFlags::SYMLINK_FOLLOW), times, permit)?)
    }

    pub(super) fn link_at(&mut self, fd: &Fd, old: &str, to: &Fd, new: &str) -> Result<()> {
        let old = self.spot(fd, old, FileAccess::Write)?;
        let new = self.spot(to, new, FileAccess::Create)?;
        let source = self.files.permit(old.mount, FileAccess::Write, &old.at)?;
        let name = self.files.permit(new.mount, FileAccess::Create, &new.at)?;
        if old.mount != new.mount {
            return Err(ErrorCode::CrossDevice.into());
        }
        Ok(entries::link(&old, &new, source, name)?)
    }

    pub(super) fn open_at(&mut self, fd: &Fd, path: &str, request: OpenRequest) -> Result<Fd> {
        let folder = self.folder(fd)?;
        let opened = self.files.open(&folder, path, request)?;
        Ok(self.table.push(opened)?)
    }

    pub(super) fn readlink_at(&mut self, fd: Fd, path: String) -> Result<String> {
        let MountTarget::MountedPath(spot) = self.place(&fd, &path, FileAccess::Read)? else {
            return Err(ErrorCode::Invalid.into());
        };
        self.files.permit(spot.mount, FileAccess::Read, &spot.at)?;
        spot.check()?;
        if spot.lent.is_some() || spot.follows(false) && !spot.facts(true)?.is_link() {
            return Err(ErrorCode::Invalid.into());
        }
        // This refuses a link to an absolute path, which would be text of the host.
        let target = spot.dir.read_link(&spot.path)?;
        target.into_os_string().into_string().map_err(|_| ErrorCode::IllegalByteSequence.into())
    }

    pub(super) fn remove_directory_at(&mut self, fd: Fd, path: String) -> Result<()> {
        let spot = self.spot(&fd, &path, FileAccess::Remove)?;
        let permit = self.files.permit(spot.mount, FileAccess::Remove, &spot.at)?;
        Ok(entries::remove_folder(&spot, permit)?)
    }

    pub(super) fn rename_at(&mut self, fd: Fd, old: String, to: Fd, new: String) -> Result<()> {
        let old = self.spot(&fd, &old, FileAccess::Remove)?;
        let new = self.spot(&to, &new, FileAccess::Create)?;
        let gone = self.files.permit(old.mount, FileAccess::Remove, &old.at)?;
        let made = self.files.permit(new.mount, FileAccess::Create, &new.at)?;
        if old.mount != new.mount {
            return Err(ErrorCode::CrossDevice.into());
        }
        Ok(entries::rename(&old, &new, gone, made)?)
    }

    pub(super) fn symlink_at(&mut self, fd: &Fd, target: &str, path: &str) -> Result<()> {
        let spot = self.spot(fd, path, FileAccess::Create)?;
        let permit = self.files.permit(spot.mount, FileAccess::Create, &spot.at)?;
        Ok(entries::create_link(&spot, target, permit)?)
    }

    pub(super) fn unlink_file_at(&mut self, fd: Fd, path: String) -> Result<()> {
        let spot = self.spot(&fd, &path, FileAccess::Remove)?;
        let permit = self.files.permit(spot.mount, FileAccess::Remove, &spot.at)?;
        Ok(entries::remove_file(&spot, permit)?)
    }

    pub(super) fn is_same_object(&mut self, one: Fd, other: Fd) -> wasmtime::Result<bool> {
        // An entry that can no longer be read is equal to none.
        Ok(match (self.facts(&one), self.facts(&other)) {
            (Ok(FoundEntry::Real(one)), Ok(FoundEntry::Real(other))) => one.identity == other.identity,
            (Ok(FoundEntry::Virtual(one, at)), Ok(FoundEntry::Virtual(other, other_at))) => {
                (one, at) == (other, other_at)
            }
            (Ok(FoundEntry::Device(one)), Ok(FoundEntry::Device(other))) => one == other,
            (Err(Refused::Trap(error)), _) | (_, Err(Refused::Trap(error))) => return Err(error),
            _ => false,
        })
    }

    pub(super) fn metadata_hash(&mut self, fd: Fd) -> Result<MetadataHashValue> {
        Ok(self.facts(&fd)?.hash())
    }

    pub(super) fn metadata_hash_at(&mut self, fd: Fd, flags: PathFlags, path: String) -> Result<MetadataHashValue> {
        Ok(self.facts_at(&fd, flags, &path)?.hash())
    }

    /// The next entry, or [`ListingStep::More`] after a bounded number of skipped ones.
    pub(super) fn step(&mut self, listing: &Resource<Listing>) -> Result<ListingStep> {
        Ok(self.table.get_mut(listing)?.step()?)
    }
}
