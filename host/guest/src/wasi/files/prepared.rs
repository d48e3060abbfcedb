//! The mounts of one tool as they appear in its guests' tree: mounts inside others, and the folders
//! that guests start with.
use std::sync::Arc;

use toolcell_policy::{Denial, FileAccess, Grants, Mount as Grant, MountKind};

use super::devices;
use super::handed::{HandedFiles, HandedSource};
use super::ledger::{Account, Counted};
use super::mount::{Inner, InnerKind, Mount, Source};
use super::scratch::ScratchFolder;

/// The mounts of one tool.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    mounts: Vec<Mount>,
    /// Folders that the guest starts with, by mount and path.
    preopens: Vec<(usize, String)>,
    /// The mount of the devices, for tools that are programs. `None` if a mount of the manifest is
    /// there.
    devices: Option<usize>,
    scratch: Option<Arc<ScratchFolder>>,
    /// Denies the paths that lead nowhere, if attempts are observed.
    observed: Option<Arc<Grants>>,
}

impl Prepared {
    /// The accounts for writes to the mounts, without scratch space.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.mounts.iter().filter_map(|mount| mount.account.as_ref())
    }

    /// The mounts that the grants name, which the host has opened. With `observed`, an otherwise
    /// empty root denies every other path.
    ///
    /// # Errors
    /// One sentence: a mount was not handed over.
    pub(crate) fn handed(
        grants: &[Grant],
        files: &HandedFiles,
        observed: Option<Arc<Grants>>,
    ) -> Result<Arc<Self>, String> {
        let mut prepared = Self::default();
        let mut hidden = Vec::new();
        for grant in grants {
            let missing = || format!("{:?} was not handed over", grant.guest());
            let made = prepared.handed_mount(grant, files).ok_or_else(missing)?;
            hidden.push(made.hidden);
            let mount =
                Mount { grant: Some(grant.clone()), source: made.source, account: made.account, inner: Vec::new() };
            prepared.mounts.push(mount);
        }
        prepared.arrange(grants, hidden, observed);
        prepared.add_devices(grants);
        Ok(Arc::new(prepared))
    }

    pub(crate) fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    pub(crate) fn preopens(&self) -> &[(usize, String)] {
        &self.preopens
    }

    pub(super) fn devices(&self) -> Option<usize> {
        self.devices
    }

    /// The denial of a path in a virtual folder, if attempts are observed.
    pub(crate) fn observed(&self, mount: usize, want: FileAccess, at: &[String]) -> Option<Denial> {
        let grants = self.observed.as_ref()?;
        let (_, folder) = self.preopens.iter().find(|(number, _)| *number == mount)?;
        grants.file(want, &format!("{}/{}", folder.trim_end_matches('/'), at.join("/"))).err()
    }

    pub(crate) fn scratch(&self) -> Option<&Arc<ScratchFolder>> {
        self.scratch.as_ref()
    }

    fn add_devices(&mut self, grants: &[Grant]) {
        let folder = names(devices::FOLDER);
        if grants.iter().any(|grant| names(grant.guest()).starts_with(&folder)) {
            return;
        }
        self.devices = Some(self.mounts.len());
        let source = Source::Virtual;
        self.mounts.push(Mount { grant: None, source, account: None, inner: devices::entries() });
    }

    fn handed_mount(&mut self, grant: &Grant, files: &HandedFiles) -> Option<MadeMount> {
        if let MountKind::Scratch { quota } = grant.kind() {
            self.scratch = Some(Arc::clone(files.scratch.as_ref()?));
            return Some(MadeMount { source: Source::Scratch(*quota), account: None, hidden: Vec::new() });
        }
        let mount = files.mount(grant.guest(), grant.access())?;
        let (source, counted) = match &mount.source {
            HandedSource::Folder(dir) => (Source::Folder(Arc::clone(dir)), Counted::Folder(Arc::clone(dir))),
            HandedSource::File(lent) => (Source::Lent(lent.clone()), Counted::Lent(lent.clone())),
        };
        let account = match grant.quota() {
            Some(quota) => Some(Account::handed(mount.ledger.as_ref()?, quota, counted)),
            None => None,
        };
        Some(MadeMount { source, account, hidden: mount.hidden().to_vec() })
    }

    /// Finds the mounts inside others, and the guest's preopens.
    fn arrange(&mut self, grants: &[Grant], hidden: Vec<Vec<Vec<String>>>, observed: Option<Arc<Grants>>) {
        let mut paths: Vec<Vec<String>> = grants.iter().map(|grant| names(grant.guest())).collect();
        let files: Vec<Vec<String>> = self
            .mounts
            .iter()
            .zip(&paths)
            .filter(|(mount, _)| mount.source.is_file())
            .map(|(_, path)| path.clone())
            .collect();
        for file in files {
            let covers =
                |mount: &Mount, path: &[String]| !mount.source.is_file() && file.starts_with(path) && file != path;
            if !self.mounts.iter().zip(&paths).any(|(mount, path)| covers(mount, path)) {
                let parent = file.split_last().map(|(_, parent)| parent.to_vec()).unwrap_or_default();
                self.mounts.push(Mount { grant: None, source: Source::Virtual, account: None, inner: Vec::new() });
                paths.push(parent);
            }
        }
        if observed.is_some() && !paths.iter().any(Vec::is_empty) {
            self.mounts.push(Mount { grant: None, source: Source::Virtual, account: None, inner: Vec::new() });
            paths.push(Vec::new());
        }
        self.observed = observed;
        for (number, (mount, path)) in self.mounts.iter_mut().zip(&paths).enumerate() {
            mount.inner = paths
                .iter()
                .take(grants.len())
                .enumerate()
                .filter(|(other, _)| *other != number)
                .filter_map(|(other, inner)| {
                    let at = inner.strip_prefix(path.as_slice()).filter(|rest| !rest.is_empty())?;
                    Some(Inner { at: at.to_vec(), what: InnerKind::Mount(other) })
                })
                .collect();
            let hidden = hidden.get(number).into_iter().flatten();
            mount.inner.extend(hidden.map(|at| Inner { at: at.clone(), what: InnerKind::Hidden }));
            mount.inner.sort_by(|one, other| other.at.len().cmp(&one.at.len()).then_with(|| one.cmp(other)));
            if !mount.source.is_file() {
                self.preopens.push((number, format!("/{}", path.join("/"))));
            }
        }
    }
}

/// A mount that was handed over.
struct MadeMount {
    source: Source,
    account: Option<Account>,
    /// Hidden places below it.
    hidden: Vec<Vec<String>>,
}

fn names(guest: &str) -> Vec<String> {
    guest.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
