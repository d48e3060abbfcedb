//! Drives `wasi:filesystem` as a guest does, over temporary folders: granted access works, and
//! refused access leaves no trace.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod escapes;
mod handed;
mod interface;
mod mounts;
mod quotas;

use std::path::Path;
use std::sync::Arc;

use toolcell_policy::{Denial, Manifest, Mount, Source};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

use super::bindings::preopens::Host as _;
use super::bindings::types::{DescriptorFlags, ErrorCode, Host as _, HostDescriptor as _, OpenFlags, PathFlags};
use super::host::NewTimes;
use super::listing::ListingStep;
use super::open::OpenRequest;
use super::{Descriptor, Files, FilesView, HandedFiles, Prepared, Refused, ScratchFolder};
use toolcell_sandbox::{GrantProblem, GrantSources, GrantedCapabilities, GrantedFiles, ProcessScratch};
use toolcell_wall::caller::NoCaller;
use toolcell_wall::denials::CallDenials;

const READ: DescriptorFlags = DescriptorFlags::READ;
const WRITE: DescriptorFlags = DescriptorFlags::WRITE;
const FOLLOW: PathFlags = PathFlags::SYMLINK_FOLLOW;
const CREATE: OpenFlags = OpenFlags::CREATE;

/// The manifest of a component with this `filesystem` table.
fn manifest(table: &str) -> Manifest {
    let text = format!("version = 1\n[components.t]\nsource = \"t.wasm\"\n[components.t.filesystem]\n{table}\n");
    let parsed = toolcell_policy::parse(&Source { name: "toolcell.toml", text: &text });
    parsed.unwrap_or_else(|problems| panic!("{problems:?}")).manifest
}

/// The mounts that a table grants.
fn grants(table: &str) -> Vec<Mount> {
    manifest(table).components()[0].grants().files().to_vec()
}

/// The host's side of a table, for a manifest in `folder`.
fn opened(folder: &Path, table: &str) -> Result<Arc<GrantedCapabilities>, Vec<GrantProblem>> {
    let state = folder.join(".toolcell");
    let sources = GrantSources {
        folder,
        variable: &|_| None,
        secret: &|_| Err(toolcell_policy::AdvisedFault::unadvised("")),
        state_folder: &state,
        shared_state: None,
        name_servers: &[],
        observing: false,
    };
    GrantedCapabilities::prepare(manifest(table).components()[0].grants(), &sources)
}

/// The guest's side, made from what was handed over.
fn handed(files: &GrantedFiles, table: &str, scratch: Option<Arc<ScratchFolder>>) -> Arc<Prepared> {
    let handed = HandedFiles::new(files.hand_over().unwrap(), scratch).unwrap();
    Prepared::handed(&grants(table), &handed, None).unwrap_or_else(|problem| panic!("{problem}"))
}

/// A table's mounts at both ends.
struct Mounted {
    opened: Arc<GrantedCapabilities>,
    prepared: Arc<Prepared>,
    /// The scratch space of its process, while there is one.
    _scratch: Option<Arc<ProcessScratch>>,
}

/// Makes a table's mounts ready for a manifest in `folder`, at both ends.
fn prepare(folder: &Path, table: &str) -> Result<Mounted, Vec<GrantProblem>> {
    let opened = opened(folder, table)?;
    let files = GrantedFiles::of([&*opened]);
    let scratch = files.scratch_home().map(|home| home.of_process().unwrap());
    let space = scratch.as_ref().map(|scratch| ScratchFolder::handed(scratch.dir().try_clone().unwrap().into()));
    Ok(Mounted { opened, prepared: handed(&files, table, space), _scratch: scratch })
}

/// A guest in the middle of a call.
struct Guest {
    files: Files,
    table: ResourceTable,
    denials: CallDenials,
    /// The host's end, dropped after the files of the call.
    _mounted: Option<Mounted>,
}

impl Guest {
    /// With the mounts of a table, in a manifest in `folder`.
    fn with(folder: &Path, table: &str) -> Self {
        let mounted = prepare(folder, table).unwrap_or_else(|problems| panic!("{problems:?}"));
        let guest = Self::of(&mounted.prepared);
        Self { _mounted: Some(mounted), ..guest }
    }

    fn of(prepared: &Arc<Prepared>) -> Self {
        let denials = CallDenials::new(Arc::new(NoCaller));
        Self { files: Files::new(Arc::clone(prepared)), table: ResourceTable::new(), denials, _mounted: None }
    }

    fn view(&mut self) -> FilesView<'_> {
        FilesView { files: &mut self.files, table: &mut self.table, denials: &self.denials }
    }

    /// The preopened folder at a path.
    fn root(&mut self, path: &str) -> u32 {
        let roots = self.view().get_directories().unwrap();
        roots.into_iter().find(|(_, at)| at == path).unwrap_or_else(|| panic!("no {path}")).0.rep()
    }

    fn roots(&mut self) -> Vec<String> {
        let mut roots: Vec<String> = self.view().get_directories().unwrap().into_iter().map(|(_, at)| at).collect();
        roots.sort();
        roots
    }

    /// Calls the interface; errors arrive as a guest sees them.
    fn ask<T>(&mut self, ask: impl FnOnce(&mut FilesView<'_>) -> Result<T, Refused>) -> Result<T, ErrorCode> {
        let mut view = self.view();
        ask(&mut view).map_err(|refused| view.convert_error_code(refused).unwrap())
    }

    fn open_as(
        &mut self,
        folder: u32,
        path: &str,
        follow: PathFlags,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> Result<u32, ErrorCode> {
        self.ask(|view| view.open_at(&at(folder), path, OpenRequest::new(follow, open, flags)?))
            .map(|opened| opened.rep())
    }

    fn open(&mut self, folder: u32, path: &str) -> Result<u32, ErrorCode> {
        self.open_as(folder, path, FOLLOW, as_is(), READ)
    }

    fn create(&mut self, folder: u32, path: &str) -> Result<u32, ErrorCode> {
        self.open_as(folder, path, FOLLOW, CREATE, READ | WRITE)
    }

    fn write(&mut self, file: u32, bytes: usize, offset: u64) -> Result<u64, ErrorCode> {
        self.ask(|view| view.write(&at(file), &vec![b'x'; bytes], offset))
    }

    fn read(&mut self, file: u32) -> Result<Vec<u8>, ErrorCode> {
        self.ask(|view| view.read(at(file), 1 << 20, 0)).map(|(bytes, _)| bytes)
    }

    fn size(&mut self, file: u32) -> u64 {
        self.ask(|view| view.stat(at(file))).unwrap().size
    }

    fn unlink(&mut self, folder: u32, path: &str) -> Result<(), ErrorCode> {
        self.ask(|view| view.unlink_file_at(at(folder), path.to_owned()))
    }

    fn mkdir(&mut self, folder: u32, path: &str) -> Result<(), ErrorCode> {
        self.ask(|view| view.create_directory_at(&at(folder), path))
    }

    fn rename(&mut self, folder: u32, old: &str, new: &str) -> Result<(), ErrorCode> {
        self.ask(|view| view.rename_at(at(folder), old.to_owned(), at(folder), new.to_owned()))
    }

    fn link(&mut self, folder: u32, old: &str, new: &str) -> Result<(), ErrorCode> {
        self.ask(|view| view.link_at(&at(folder), old, &at(folder), new))
    }

    fn symlink(&mut self, folder: u32, target: &str, path: &str) -> Result<(), ErrorCode> {
        self.ask(|view| view.symlink_at(&at(folder), target, path))
    }

    fn list(&mut self, folder: u32) -> Result<Vec<String>, ErrorCode> {
        let listing = self.ask(|view| view.read_directory(at(folder)))?.rep();
        let mut names = Vec::new();
        loop {
            match self.ask(|view| view.step(&Resource::new_borrow(listing)))? {
                ListingStep::Entry(entry) => names.push(entry.name),
                ListingStep::More => {}
                ListingStep::End => break,
            }
        }
        names.sort();
        self.table.delete(Resource::<super::Listing>::new_own(listing)).unwrap();
        Ok(names)
    }

    fn close(&mut self, descriptor: u32) {
        self.table.delete(Resource::<Descriptor>::new_own(descriptor)).unwrap();
    }

    fn reader(&mut self, file: u32, offset: u64) -> Result<DynInputStream, ErrorCode> {
        let stream = self.ask(|view| view.read_via_stream(at(file), offset))?;
        Ok(self.table.delete(stream).unwrap())
    }

    fn writer(&mut self, file: u32, offset: u64) -> Result<DynOutputStream, ErrorCode> {
        let stream = self.ask(|view| view.write_via_stream(at(file), offset))?;
        Ok(self.table.delete(stream).unwrap())
    }

    fn appender(&mut self, file: u32) -> Result<DynOutputStream, ErrorCode> {
        let stream = self.ask(|view| view.append_via_stream(at(file)))?;
        Ok(self.table.delete(stream).unwrap())
    }

    /// The answer of `filesystem-error-code` to a stream's error.
    fn code_of(&mut self, error: wasmtime_wasi::p2::StreamError) -> Option<ErrorCode> {
        let wasmtime_wasi::p2::StreamError::LastOperationFailed(error) = error else { return None };
        let error = self.table.push(error).unwrap();
        self.view().filesystem_error_code(error).unwrap()
    }

    fn denied(&mut self) -> Vec<Denial> {
        self.denials.take().0
    }
}

/// Links at the end of a path are not followed.
fn stay() -> PathFlags {
    PathFlags::empty()
}

/// Flags that open an existing entry as it is.
fn as_is() -> OpenFlags {
    OpenFlags::empty()
}

fn at(descriptor: u32) -> Resource<Descriptor> {
    Resource::new_borrow(descriptor)
}
