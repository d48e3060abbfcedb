//! `wasi:filesystem` itself, and the choice of thread for each function. Functions that access the
//! disk first leave the protocol's threads. Those that wait for the disk, or count a folder, run on
//! a thread for blocking work.
use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

use super::bindings::types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode, Filesize, HostDescriptor,
    HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use super::call::Descriptor;
use super::devices::DeviceStream;
use super::handle::Position;
use super::host::{Fd, FilesView, NewTimes, SyncWork, aside};
use super::ledger::Account;
use super::listing::{Listing, ListingStep};
use super::mount::Source;
use super::open::OpenRequest;
use super::prepared::Prepared;
use super::refused::Refused;
use super::streams::{Reader, Writer};

type Result<T> = std::result::Result<T, Refused>;

impl FilesView<'_> {
    /// Runs a bounded piece of work, once no folder that it may access is being counted.
    async fn away<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let prepared = Arc::clone(self.files.prepared());
        uncounted(&prepared).await;
        work(self)
    }

    fn write_from(&mut self, fd: &Fd, position: Position) -> Result<Resource<DynOutputStream>> {
        let writer: DynOutputStream = match self.device(fd)? {
            Some(device) => Box::new(DeviceStream(device.to_write()?)),
            None => Box::new(Writer::new(Arc::clone(&self.file_to_write(fd)?.handle), position)),
        };
        Ok(self.table.push(writer)?)
    }

    /// Runs something that may need room. If there is none, it recounts the folder and tries once
    /// more.
    async fn with_room<T>(&mut self, mut attempt: impl FnMut(&mut Self) -> Result<T>) -> Result<T> {
        let done = self.away(&mut attempt).await;
        let full = matches!(done, Err(Refused::Code(ErrorCode::InsufficientSpace)));
        if full && recounted(Arc::clone(self.files.prepared())).await { self.away(attempt).await } else { done }
    }
}

/// Waits until none of these folders is being counted.
pub(super) async fn uncounted(prepared: &Prepared) {
    for account in prepared.accounts().filter(|account| account.is_counted()) {
        let account = account.clone();
        let waits = aside(move || {
            account.wait();
            Ok(())
        });
        // The task only waits, so it cannot fail.
        let _ = waits.await;
    }
}

/// Recounts the folders that refused room. False if that changed nothing.
pub(super) async fn recounted(prepared: Arc<Prepared>) -> bool {
    let refused: Vec<Account> = prepared.accounts().filter(|account| account.was_refused()).cloned().collect();
    if refused.is_empty() {
        return false;
    }
    // All of them, since any may be the one without room.
    let counted = aside(move || Ok(refused.iter().filter(|account| account.recount()).count())).await;
    counted.is_ok_and(|counted| counted > 0)
}

async fn synced(work: Option<SyncWork>) -> Result<()> {
    match work {
        Some(work) => aside(work).await,
        None => Ok(()),
    }
}

impl HostDescriptor for FilesView<'_> {
    fn read_via_stream(&mut self, fd: Fd, offset: Filesize) -> Result<Resource<DynInputStream>> {
        let reader: DynInputStream = match self.device(&fd)? {
            Some(device) => Box::new(DeviceStream(device.to_read()?)),
            None => Box::new(Reader::new(Arc::clone(&self.file_to_read(&fd)?.handle), offset)),
        };
        Ok(self.table.push(reader)?)
    }

    fn write_via_stream(&mut self, fd: Fd, offset: Filesize) -> Result<Resource<DynOutputStream>> {
        self.write_from(&fd, Position::At(offset))
    }

    fn append_via_stream(&mut self, fd: Fd) -> Result<Resource<DynOutputStream>> {
        self.write_from(&fd, Position::End)
    }

    /// Advice is accepted and ignored: reading ahead and dropping caches affect other programs,
    /// too.
    fn advise(&mut self, fd: Fd, _: Filesize, _: Filesize, _: Advice) -> Result<()> {
        match self.device(&fd)? {
            Some(_) => Ok(()),
            None => self.file(&fd).map(drop),
        }
    }

    /// A folder's mount decides what may be done with it, however it was opened. The C library
    /// opens folders for reading and then changes their entries, as POSIX allows.
    fn get_flags(&mut self, fd: Fd) -> Result<DescriptorFlags> {
        let given = |given, flag| if given { flag } else { DescriptorFlags::empty() };
        Ok(match self.table.get(&fd)? {
            Descriptor::File(file) => {
                given(file.reads, DescriptorFlags::READ) | given(file.writes, DescriptorFlags::WRITE)
            }
            Descriptor::Device(device) => {
                given(device.reads, DescriptorFlags::READ) | given(device.writes, DescriptorFlags::WRITE)
            }
            Descriptor::Folder(folder) => {
                let mount = self.files.mount(folder.mount)?;
                let changes = mount.account.is_some() || matches!(mount.source, Source::Scratch(_));
                DescriptorFlags::READ | given(changes, DescriptorFlags::MUTATE_DIRECTORY)
            }
        })
    }

    fn get_type(&mut self, fd: Fd) -> Result<DescriptorType> {
        Ok(match self.table.get(&fd)? {
            Descriptor::File(_) => DescriptorType::RegularFile,
            Descriptor::Folder(_) => DescriptorType::Directory,
            Descriptor::Device(_) => DescriptorType::CharacterDevice,
        })
    }

    async fn sync_data(&mut self, fd: Fd) -> Result<()> {
        synced(self.sync_work(&fd, true)?).await
    }

    async fn sync(&mut self, fd: Fd) -> Result<()> {
        synced(self.sync_work(&fd, false)?).await
    }

    async fn set_size(&mut self, fd: Fd, size: Filesize) -> Result<()> {
        self.with_room(|view| view.set_size(&fd, size)).await
    }

    async fn set_times(&mut self, fd: Fd, accessed: NewTimestamp, modified: NewTimestamp) -> Result<()> {
        self.away(|view| view.set_times(fd, accessed, modified)).await
    }

    async fn read(&mut self, fd: Fd, length: Filesize, offset: Filesize) -> Result<(Vec<u8>, bool)> {
        self.away(|view| view.read(fd, length, offset)).await
    }

    async fn write(&mut self, fd: Fd, bytes: Vec<u8>, offset: Filesize) -> Result<Filesize> {
        self.with_room(|view| view.write(&fd, &bytes, offset)).await
    }

    async fn read_directory(&mut self, fd: Fd) -> Result<Resource<Listing>> {
        self.away(|view| view.read_directory(fd)).await
    }

    async fn create_directory_at(&mut self, fd: Fd, path: String) -> Result<()> {
        self.with_room(|view| view.create_directory_at(&fd, &path)).await
    }

    async fn stat(&mut self, fd: Fd) -> Result<DescriptorStat> {
        self.away(|view| view.stat(fd)).await
    }

    async fn stat_at(&mut self, fd: Fd, flags: PathFlags, path: String) -> Result<DescriptorStat> {
        self.away(|view| view.stat_at(fd, flags, path)).await
    }

    async fn set_times_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> Result<()> {
        self.away(|view| view.set_times_at(fd, flags, path, NewTimes { accessed, modified })).await
    }

    async fn link_at(&mut self, fd: Fd, flags: PathFlags, old: String, to: Fd, new: String) -> Result<()> {
        if flags.contains(PathFlags::SYMLINK_FOLLOW) {
            return Err(ErrorCode::Invalid.into());
        }
        self.with_room(|view| view.link_at(&fd, &old, &to, &new)).await
    }

    async fn open_at(
        &mut self,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> Result<Fd> {
        let request = OpenRequest::new(path_flags, open_flags, flags)?;
        self.with_room(|view| view.open_at(&fd, &path, request)).await
    }

    async fn readlink_at(&mut self, fd: Fd, path: String) -> Result<String> {
        self.away(|view| view.readlink_at(fd, path)).await
    }

    async fn remove_directory_at(&mut self, fd: Fd, path: String) -> Result<()> {
        self.away(|view| view.remove_directory_at(fd, path)).await
    }

    async fn rename_at(&mut self, fd: Fd, old: String, to: Fd, new: String) -> Result<()> {
        self.away(|view| view.rename_at(fd, old, to, new)).await
    }

    async fn symlink_at(&mut self, fd: Fd, target: String, path: String) -> Result<()> {
        self.with_room(|view| view.symlink_at(&fd, &target, &path)).await
    }

    async fn unlink_file_at(&mut self, fd: Fd, path: String) -> Result<()> {
        self.away(|view| view.unlink_file_at(fd, path)).await
    }

    async fn is_same_object(&mut self, one: Fd, other: Fd) -> wasmtime::Result<bool> {
        self.away(|view| view.is_same_object(one, other)).await
    }

    async fn metadata_hash(&mut self, fd: Fd) -> Result<MetadataHashValue> {
        self.away(|view| view.metadata_hash(fd)).await
    }

    async fn metadata_hash_at(&mut self, fd: Fd, flags: PathFlags, path: String) -> Result<MetadataHashValue> {
        self.away(|view| view.metadata_hash_at(fd, flags, path)).await
    }

    /// Closing the last handle of a file without a name frees its room, on the disk and in the
    /// ledger.
    async fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        self.away(|view| view.table.delete(fd).map(drop)).await?;
        Ok(())
    }
}

impl HostDirectoryEntryStream for FilesView<'_> {
    /// A folder may have any number of entries that guests cannot see, so others get a turn
    /// meanwhile.
    async fn read_directory_entry(&mut self, listing: Resource<Listing>) -> Result<Option<DirectoryEntry>> {
        loop {
            match self.away(|view| view.step(&listing)).await? {
                ListingStep::Entry(entry) => return Ok(Some(entry)),
                ListingStep::End => return Ok(None),
                ListingStep::More => tokio::task::yield_now().await,
            }
        }
    }

    async fn drop(&mut self, listing: Resource<Listing>) -> wasmtime::Result<()> {
        self.table.delete(listing)?;
        Ok(())
    }
}
