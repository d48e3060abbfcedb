//! The files of one call: its mounts, its scratch space, and its open handles. Made with the call's
//! store and dropped with it.
use std::io::Read as _;
use std::sync::Arc;

use cap_std::fs::Dir;
use tokio::sync::Semaphore;
use toolcell_policy::{FileAccess, FilePermit};

use super::bindings::types::ErrorCode;
use super::devices::{self, OpenDevice};
use super::handle::{Handle, Position, single};
use super::ledger::Account;
use super::mount::{InnerKind, Mount, MountTarget, MountedPath, Source, names, shown_names, well_formed};
use super::open::{OpenRequest, open_seen};
use super::permits::{Permit, Permits};
use super::prepared::Prepared;
use super::refused::{Refused, code};
use super::scratch::Scratch;

/// The files of one call.
pub(crate) struct Files {
    prepared: Arc<Prepared>,
    /// Scratch space by the number of its mount, made when first used.
    scratch: Vec<(usize, Scratch)>,
    permits: Permits,
    shows_devices: bool,
    /// The turn of a task that waits for the disk. Work on another thread is not taken back when
    /// its call ends, so a call has one piece of it at most.
    disk_turn: Arc<Semaphore>,
}

/// A guest's handle of a file or folder.
pub enum Descriptor {
    /// A folder.
    Folder(Folder),
    /// A regular file.
    File(Opened),
    /// A device that the host makes.
    Device(OpenDevice),
}

/// A folder that a guest holds.
#[derive(Clone)]
pub struct Folder {
    pub(super) mount: usize,
    /// Path from the mount to here.
    pub(super) at: Vec<String>,
    /// Open, unless it is a mount itself or in a mount that has others inside it.
    pub(super) open: Option<(Arc<Dir>, Arc<Permit>)>,
}

/// A regular file that a guest holds.
pub struct Opened {
    pub(super) mount: usize,
    pub(super) at: Vec<String>,
    pub(super) handle: Arc<Handle>,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

impl Files {
    /// Opens and makes nothing yet.
    pub(crate) fn new(prepared: Arc<Prepared>) -> Self {
        Self {
            prepared,
            scratch: Vec::new(),
            permits: Permits::default(),
            shows_devices: false,
            disk_turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// Ends the call while its store stays: its scratch space is removed now.
    pub(crate) fn end_call(&mut self) {
        self.scratch.clear();
    }

    /// Adds devices to the tree, for a program.
    pub(crate) fn show_devices(&mut self) {
        self.shows_devices = true;
    }

    /// The folders that the guest starts with, by mount and path. The devices come last, as
    /// programs may rely on the first.
    pub(super) fn preopens(&self) -> impl Iterator<Item = (usize, &str)> {
        let mounts = self.prepared.preopens().iter().map(|(mount, path)| (*mount, path.as_str()));
        let devices = self.prepared.devices().filter(|_| self.shows_devices);
        mounts.chain(devices.map(|mount| (mount, devices::FOLDER)))
    }

    /// Prepares for a call of another tool, with the same mounts.
    pub(crate) fn set_prepared(&mut self, prepared: &Arc<Prepared>) {
        self.prepared = Arc::clone(prepared);
    }

    /// The turn of the tasks of WASI 0.3 that wait for the disk.
    pub(super) fn disk_turn(&self) -> Arc<Semaphore> {
        Arc::clone(&self.disk_turn)
    }

    pub(crate) fn prepared(&self) -> &Arc<Prepared> {
        &self.prepared
    }

    pub(super) fn permits(&self) -> &Permits {
        &self.permits
    }

    /// The bytes of a regular file in scratch space, after the guest has ended; or a sentence with
    /// the reason.
    pub(crate) fn read_own(&mut self, path: &str, bytes_max: u64) -> Result<Vec<u8>, String> {
        let bytes = self.open_own(path).and_then(|file| {
            let mut bytes = Vec::new();
            file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| code(&error))?;
            Ok(bytes)
        });
        match bytes {
            Ok(bytes) if bytes.len() as u64 > bytes_max => {
                Err(format!("the file {path} is larger than a result may be"))
            }
            Ok(bytes) => Ok(bytes),
            Err(Refused::Code(ErrorCode::NoEntry)) => Err(format!("the program made no file {path}")),
            Err(_) => Err(format!("the program made no regular file {path}")),
        }
    }

    /// Makes a file in the call's scratch space, before the guest begins; or a sentence with the
    /// reason.
    pub(crate) fn write_own(&mut self, path: &str, bytes: &[u8]) -> Result<(), String> {
        let written =
            self.own(path).and_then(|(folder, name)| match self.open(&folder, &name, OpenRequest::to_make())? {
                Descriptor::File(made) => Ok(made.handle.write(bytes, Position::At(0))?),
                Descriptor::Folder(_) => Err(ErrorCode::IsDirectory.into()),
                Descriptor::Device(_) => Err(ErrorCode::NotPermitted.into()),
            });
        match written {
            Ok(()) => Ok(()),
            Err(Refused::Code(ErrorCode::InsufficientSpace)) => {
                let length = bytes.len();
                Err(format!("the file {path}, of {length} bytes, does not fit the scratch space that it goes to"))
            }
            Err(_) => Err(format!("the file {path} cannot be made")),
        }
    }

    fn open_own(&mut self, path: &str) -> Result<std::fs::File, Refused> {
        let (folder, rest) = self.own(path)?;
        match self.place(&folder, &rest, FileAccess::Read)? {
            MountTarget::MountedPath(spot) => {
                Ok(open_seen(&spot, OpenRequest::to_stat(false), Some(&spot.facts(false)?))?.0)
            }
            MountTarget::Virtual(..) => Err(ErrorCode::IsDirectory.into()),
            MountTarget::Device(_) => Err(ErrorCode::NotPermitted.into()),
        }
    }

    /// The mount that a path of the guest's tree is in, and the path from there.
    fn own(&self, path: &str) -> Result<(Folder, String), Refused> {
        let below = |root: &str| path.strip_prefix(root.trim_end_matches('/'))?.strip_prefix('/');
        let roots = self.prepared.preopens().iter();
        let found = roots.filter_map(|(mount, root)| Some((*mount, root.len(), below(root)?)));
        let Some((mount, _, rest)) = found.max_by_key(|(_, length, _)| *length) else {
            return Err(ErrorCode::NoEntry.into());
        };
        Ok((Folder { mount, at: Vec::new(), open: None }, rest.to_owned()))
    }

    pub(super) fn mount(&self, number: usize) -> Result<&Mount, Refused> {
        self.prepared.mounts().get(number).ok_or_else(|| ErrorCode::BadDescriptor.into())
    }

    /// The manifest's permit for this access at this place.
    pub(super) fn permit(&self, mount: usize, want: FileAccess, at: &[String]) -> Result<FilePermit, Refused> {
        self.mount(mount)?.permit(want, at)
    }

    /// The manifest's permit for listing a folder. A virtual folder may always be listed.
    pub(super) fn permit_to_stat(&self, mount: usize, at: &[String]) -> Result<(), Refused> {
        let mount = self.mount(mount)?;
        if mount.grant.is_some() {
            mount.permit(FileAccess::Read, at)?;
        }
        Ok(())
    }

    /// Sets times of a file or folder. Times of links are not set: that would bypass the checks of
    /// opening.
    pub(super) fn set_times(
        &self,
        spot: &MountedPath,
        follow: bool,
        times: std::fs::FileTimes,
        _permit: FilePermit,
    ) -> Result<(), ErrorCode> {
        let account = spot.account()?;
        let _permit = self.permits.take(1)?;
        let _turn = account.names();
        let follow = spot.follows(follow);
        let facts = spot.facts(follow)?;
        if facts.is_link() {
            return Err(ErrorCode::Unsupported);
        }
        let (file, _) = open_seen(spot, OpenRequest::to_stat(follow), Some(&facts))?;
        single(&facts)?;
        file.set_times(times).map_err(|error| code(&error))
    }

    /// Where a path leads from a folder. `want` is for the denial if it leads nowhere.
    pub(super) fn place(&mut self, folder: &Folder, path: &str, want: FileAccess) -> Result<MountTarget, Refused> {
        well_formed(path)?;
        let mount = self.mount(folder.mount)?;
        if mount.is_plain() {
            let names = names(&folder.at, path)?;
            return self.place_of_names(folder.mount, names, path.ends_with('/'), want);
        }
        // For a denial and for the folders opened from here. No decision depends on it, as links
        // may lead elsewhere.
        let at = shown_names(&folder.at, path);
        let (dir, account) = match &folder.open {
            Some((dir, _)) => {
                let account = match mount.source {
                    Source::Scratch(_) => self.scratch_of(folder.mount)?.1,
                    _ => mount.account.clone(),
                };
                (Arc::clone(dir), account)
            }
            None => self.root(folder.mount)?,
        };
        Ok(MountTarget::MountedPath(MountedPath {
            mount: folder.mount,
            dir,
            path: path.to_owned(),
            account,
            at,
            plain: false,
            pinned: false,
            lent: None,
        }))
    }

    /// The place of a path in a mount that has others inside it.
    fn place_of_names(
        &mut self,
        number: usize,
        names: Vec<String>,
        slash: bool,
        want: FileAccess,
    ) -> Result<MountTarget, Refused> {
        let mount = self.mount(number)?;
        match mount.inner_at(&names) {
            Some((InnerKind::Hidden, _)) => return Err(ErrorCode::NoEntry.into()),
            Some((InnerKind::Mount(inner), rest)) => {
                let rest = rest.to_vec();
                return self.place_in_inner(inner, rest, slash);
            }
            Some((InnerKind::Device(device), [])) if !slash => return Ok(MountTarget::Device(device)),
            Some((InnerKind::Device(_), _)) => return Err(ErrorCode::NotDirectory.into()),
            None => {}
        }
        let pinned = mount.holds_inner(&names);
        if matches!(mount.source, Source::Virtual) {
            // An observed root looks as empty as no root at all.
            if pinned || names.is_empty() {
                return Ok(MountTarget::Virtual(number, names));
            }
            let denial = self.prepared.observed(number, want, &names);
            return Err(match denial {
                Some(denial) => Refused::Denied(ErrorCode::NoEntry, Box::new(denial)),
                None => ErrorCode::NoEntry.into(),
            });
        }
        self.real_place(number, names, slash, pinned)
    }

    /// `rest` leads to no further mount, since the longest path was taken.
    fn place_in_inner(&mut self, number: usize, rest: Vec<String>, slash: bool) -> Result<MountTarget, Refused> {
        let mount = self.mount(number)?;
        let pinned = rest.is_empty() || mount.holds_inner(&rest);
        if let Source::Lent(lent) = &mount.source {
            if !rest.is_empty() || slash {
                return Err(ErrorCode::NotDirectory.into());
            }
            return Ok(MountTarget::MountedPath(MountedPath {
                mount: number,
                dir: Arc::clone(&lent.dir),
                path: ".".to_owned(),
                account: mount.account.clone(),
                at: rest,
                plain: true,
                pinned,
                lent: Some(lent.clone()),
            }));
        }
        self.real_place(number, rest, slash, pinned)
    }

    /// A place in the folder of a mount.
    fn real_place(&mut self, mount: usize, at: Vec<String>, slash: bool, pinned: bool) -> Result<MountTarget, Refused> {
        let plain = self.mount(mount)?.is_plain();
        let (dir, account) = self.root(mount)?;
        let path = joined(&at, slash);
        Ok(MountTarget::MountedPath(MountedPath { mount, dir, path, account, at, plain, pinned, lent: None }))
    }

    /// The folder of a mount, and the account for its writes.
    pub(super) fn root(&mut self, number: usize) -> Result<(Arc<Dir>, Option<Account>), Refused> {
        let mount = self.mount(number)?;
        match &mount.source {
            Source::Folder(dir) => Ok((Arc::clone(dir), mount.account.clone())),
            Source::Scratch(_) => self.scratch_of(number),
            Source::Lent(_) => Err(ErrorCode::NotDirectory.into()),
            Source::Virtual => Err(ErrorCode::NoEntry.into()),
        }
    }

    fn scratch_of(&mut self, number: usize) -> Result<(Arc<Dir>, Option<Account>), Refused> {
        if let Some((_, scratch)) = self.scratch.iter().find(|(mount, _)| *mount == number) {
            return Ok((Arc::clone(&scratch.dir), Some(scratch.account.clone())));
        }
        let Source::Scratch(quota) = self.mount(number)?.source else { return Err(ErrorCode::BadDescriptor.into()) };
        let folder = self.prepared.scratch().ok_or(ErrorCode::Io)?;
        let scratch = Scratch::make(folder, quota)?;
        let made = (Arc::clone(&scratch.dir), Some(scratch.account.clone()));
        self.scratch.push((number, scratch));
        Ok(made)
    }
}

fn joined(names: &[String], slash: bool) -> String {
    match names {
        [] => ".".to_owned(),
        names if slash => format!("{}/", names.join("/")),
        names => names.join("/"),
    }
}
