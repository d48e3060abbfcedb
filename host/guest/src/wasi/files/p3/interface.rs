//! The functions of `wasi:filesystem`, as tasks of the guest. Each waits like its form in 0.2, and
//! then does the same bounded piece of work.
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use wasmtime::AsContextMut as _;
use wasmtime::component::{Access, Accessor, StreamReader};

use super::super::WasiFiles;
use super::super::bindings::types::{self as p2, Host as _, HostDescriptor as _};
use super::super::handle::Position;
use super::super::host::{Fd, FilesView, NewTimes, aside};
use super::super::interface::{recounted, uncounted};
use super::super::ledger::Account;
use super::super::mount::PATH_BYTES_MAX;
use super::super::open::OpenRequest;
use super::super::refused::Refused;
use super::bindings::types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode, Filesize, HostDescriptor,
    HostDescriptorWithStore, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use super::bindings::{preopens, types};
use super::convert;
use super::streams::{FolderEntries, FromGuest, ReadFrom, ToGuest};
use crate::wasi::p3::outcome::{Ended, from_guest, to_guest};
use crate::wasi::state::CallState;

type Result<T> = std::result::Result<T, Refused>;
type Tasks = Accessor<CallState, WasiFiles>;
type Store<'a> = Access<'a, CallState, WasiFiles>;

/// Runs a bounded piece of work, once no folder that it may access is being counted.
async fn away<T>(tasks: &Tasks, work: impl FnOnce(&mut FilesView<'_>) -> Result<T>) -> Result<T> {
    let prepared = tasks.with(|mut store| Arc::clone(store.get().files.prepared()));
    if prepared.accounts().any(Account::is_counted) {
        let _turn = disk_turn(tasks).await?;
        uncounted(&prepared).await;
    }
    tasks.with(|mut store| work(&mut store.as_context_mut().data_mut().files_again()))
}

/// Waits until no other task of the call waits for the disk.
async fn disk_turn(tasks: &Tasks) -> Result<OwnedSemaphorePermit> {
    let turn = tasks.with(|mut store| store.get().files.disk_turn());
    // Nobody closes it.
    turn.acquire_owned().await.map_err(|_| p2::ErrorCode::Io.into())
}

/// Refuses a path that is too long before anything waits: each task of a guest could hold one.
fn short(path: &str) -> Result<()> {
    if path.len() > PATH_BYTES_MAX { Err(p2::ErrorCode::NameTooLong.into()) } else { Ok(()) }
}

/// Runs something that may need room. If there is none, it recounts the folder and tries once more.
async fn with_room<T>(tasks: &Tasks, mut attempt: impl FnMut(&mut FilesView<'_>) -> Result<T>) -> Result<T> {
    let done = away(tasks, &mut attempt).await;
    if !matches!(done, Err(Refused::Code(p2::ErrorCode::InsufficientSpace))) {
        return done;
    }
    let prepared = tasks.with(|mut store| Arc::clone(store.get().files.prepared()));
    let is_recounted = {
        let _turn = disk_turn(tasks).await?;
        recounted(prepared).await
    };
    if is_recounted { away(tasks, attempt).await } else { done }
}

async fn synced(tasks: &Tasks, fd: Fd, data_only: bool) -> Result<()> {
    let work = away(tasks, |view| view.sync_work(&fd, data_only)).await?;
    match work {
        Some(work) => {
            let _turn = disk_turn(tasks).await?;
            aside(work).await
        }
        None => Ok(()),
    }
}

/// What a guest may use, or the code that it gets. A denial is noted.
fn told<T>(store: &mut Store<'_>, done: Result<T>) -> wasmtime::Result<std::result::Result<T, ErrorCode>> {
    match done {
        Ok(done) => Ok(Ok(done)),
        Err(refused) => store.get().convert_error_code(refused).map(|code| Err(convert::error(code))),
    }
}

fn written(mut store: Store<'_>, fd: &Fd, data: StreamReader<u8>, at: Position) -> wasmtime::Result<Ended<ErrorCode>> {
    let to = FromGuest::writer(&store.get(), fd, at);
    let to = told(&mut store, to)?.map(|to| move |outcome| FromGuest { to, held_bytes: 0, outcome });
    from_guest(store, data, to)
}

impl HostDescriptorWithStore<CallState> for WasiFiles {
    fn read_via_stream(
        mut store: Store<'_>,
        fd: Fd,
        offset: Filesize,
    ) -> wasmtime::Result<(StreamReader<u8>, Ended<ErrorCode>)> {
        let from = ReadFrom::of(&store.get(), &fd);
        let from = told(&mut store, from)?.map(|from| move |outcome| ToGuest { from, offset, outcome });
        to_guest(store, from)
    }

    fn write_via_stream(
        store: Store<'_>,
        fd: Fd,
        data: StreamReader<u8>,
        offset: Filesize,
    ) -> wasmtime::Result<Ended<ErrorCode>> {
        written(store, &fd, data, Position::At(offset))
    }

    fn append_via_stream(store: Store<'_>, fd: Fd, data: StreamReader<u8>) -> wasmtime::Result<Ended<ErrorCode>> {
        written(store, &fd, data, Position::End)
    }

    fn read_directory(
        mut store: Store<'_>,
        fd: Fd,
    ) -> wasmtime::Result<(StreamReader<DirectoryEntry>, Ended<ErrorCode>)> {
        let listing = store.get().listing(&fd);
        let entries = told(&mut store, listing)?.map(|listing| move |outcome| FolderEntries { listing, outcome });
        to_guest(store, entries)
    }

    /// As in 0.2, advice is accepted and ignored.
    async fn advise(tasks: &Tasks, fd: Fd, _: Filesize, _: Filesize, _: Advice) -> Result<()> {
        tasks.with(|mut store| store.get().advise(fd, 0, 0, p2::Advice::Normal))
    }

    async fn get_flags(tasks: &Tasks, fd: Fd) -> Result<DescriptorFlags> {
        tasks.with(|mut store| store.get().get_flags(fd)).map(convert::flags_of_open)
    }

    async fn get_type(tasks: &Tasks, fd: Fd) -> Result<DescriptorType> {
        tasks.with(|mut store| store.get().get_type(fd)).map(convert::kind)
    }

    async fn sync_data(tasks: &Tasks, fd: Fd) -> Result<()> {
        synced(tasks, fd, true).await
    }

    async fn sync(tasks: &Tasks, fd: Fd) -> Result<()> {
        synced(tasks, fd, false).await
    }

    async fn set_size(tasks: &Tasks, fd: Fd, size: Filesize) -> Result<()> {
        with_room(tasks, |view| view.set_size(&fd, size)).await
    }

    async fn set_times(tasks: &Tasks, fd: Fd, accessed: NewTimestamp, modified: NewTimestamp) -> Result<()> {
        let accessed = convert::time(accessed)?;
        let modified = convert::time(modified)?;
        away(tasks, |view| view.set_times(fd, accessed, modified)).await
    }

    async fn create_directory_at(tasks: &Tasks, fd: Fd, path: String) -> Result<()> {
        short(&path)?;
        with_room(tasks, |view| view.create_directory_at(&fd, &path)).await
    }

    async fn stat(tasks: &Tasks, fd: Fd) -> Result<DescriptorStat> {
        away(tasks, |view| view.stat(fd)).await.map(convert::stat)
    }

    async fn stat_at(tasks: &Tasks, fd: Fd, flags: PathFlags, path: String) -> Result<DescriptorStat> {
        short(&path)?;
        away(tasks, |view| view.stat_at(fd, convert::path_flags(flags), path)).await.map(convert::stat)
    }

    async fn set_times_at(
        tasks: &Tasks,
        fd: Fd,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> Result<()> {
        short(&path)?;
        let times = NewTimes { accessed: convert::time(accessed)?, modified: convert::time(modified)? };
        away(tasks, |view| view.set_times_at(fd, convert::path_flags(flags), path, times)).await
    }

    async fn link_at(tasks: &Tasks, fd: Fd, flags: PathFlags, old: String, to: Fd, new: String) -> Result<()> {
        short(&old)?;
        short(&new)?;
        if flags.contains(PathFlags::SYMLINK_FOLLOW) {
            return Err(p2::ErrorCode::Invalid.into());
        }
        with_room(tasks, |view| view.link_at(&fd, &old, &to, &new)).await
    }

    async fn open_at(
        tasks: &Tasks,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> Result<Fd> {
        short(&path)?;
        let request = OpenRequest::new(
            convert::path_flags(path_flags),
            convert::open_flags(open_flags),
            convert::flags_to_open(flags),
        )?;
        with_room(tasks, |view| view.open_at(&fd, &path, request)).await
    }

    async fn readlink_at(tasks: &Tasks, fd: Fd, path: String) -> Result<String> {
        short(&path)?;
        away(tasks, |view| view.readlink_at(fd, path)).await
    }

    async fn remove_directory_at(tasks: &Tasks, fd: Fd, path: String) -> Result<()> {
        short(&path)?;
        away(tasks, |view| view.remove_directory_at(fd, path)).await
    }

    async fn rename_at(tasks: &Tasks, fd: Fd, old: String, to: Fd, new: String) -> Result<()> {
        short(&old)?;
        short(&new)?;
        away(tasks, |view| view.rename_at(fd, old, to, new)).await
    }

    async fn symlink_at(tasks: &Tasks, fd: Fd, target: String, path: String) -> Result<()> {
        short(&target)?;
        short(&path)?;
        with_room(tasks, |view| view.symlink_at(&fd, &target, &path)).await
    }

    async fn unlink_file_at(tasks: &Tasks, fd: Fd, path: String) -> Result<()> {
        short(&path)?;
        away(tasks, |view| view.unlink_file_at(fd, path)).await
    }

    async fn is_same_object(tasks: &Tasks, one: Fd, other: Fd) -> wasmtime::Result<bool> {
        // An object that cannot be looked at is not the same.
        match away(tasks, |view| view.is_same_object(one, other).map_err(Refused::Trap)).await {
            Ok(same) => Ok(same),
            Err(Refused::Trap(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    async fn metadata_hash(tasks: &Tasks, fd: Fd) -> Result<MetadataHashValue> {
        away(tasks, |view| view.metadata_hash(fd)).await.map(convert::hash)
    }

    async fn metadata_hash_at(tasks: &Tasks, fd: Fd, flags: PathFlags, path: String) -> Result<MetadataHashValue> {
        short(&path)?;
        away(tasks, |view| view.metadata_hash_at(fd, convert::path_flags(flags), path)).await.map(convert::hash)
    }
}

impl HostDescriptor for FilesView<'_> {
    async fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        p2::HostDescriptor::drop(self, fd).await
    }
}

impl types::Host for FilesView<'_> {
    fn convert_error_code(&mut self, refused: Refused) -> wasmtime::Result<ErrorCode> {
        p2::Host::convert_error_code(self, refused).map(convert::error)
    }
}

impl preopens::Host for FilesView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Fd, String)>> {
        super::super::bindings::preopens::Host::get_directories(self)
    }
}
