//! Mounts made ready at load: host paths resolved and opened, quotas counted, and mounts inside
//! others found.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::Access as Rights;
use toolcell_policy::{Access, Denial, FileAccess, Grants, Mount as Grant, MountKind, Quota};

use super::devices;
use super::facts::{Facts, Identity};
use super::handed::{HandedFiles, HandedSource};
use super::ledger::{Account, Counted};
use super::mount::{Inner, InnerKind, Mount, Source};
use super::scratch::{self, ScratchHome};
use crate::owned::make_folders;
use crate::wasi::grant_problem::{GrantNote, GrantProblem};

/// The host's folders that bear on mounts.
pub(crate) struct Surroundings<'a> {
    /// The manifest's folder: paths are relative to it, and a tool must not write there.
    pub(crate) folder: &'a Path,
    /// Folders of the host's own that no mount shows.
    pub(crate) hidden: &'a [&'a Path],
}

/// The mounts of one tool.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    mounts: Vec<Mount>,
    /// Folders that the guest starts with, by mount and path.
    preopens: Vec<(usize, String)>,
    /// The mount of the devices, for tools that are programs. None where a mount of the manifest
    /// lies there.
    devices: Option<usize>,
    home: Option<Arc<ScratchHome>>,
    notes: Vec<GrantNote>,
    /// Who denies the paths that lead nowhere, where attempts are observed.
    observed: Option<Arc<Grants>>,
}

impl Prepared {
    /// The accounts that writes to the mounts are charged to, scratch space apart.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.mounts.iter().filter_map(|mount| mount.account.as_ref())
    }

    /// Opens the files and folders that the grants name. With `observed`, a root that holds nothing
    /// else denies every other path.
    ///
    /// # Errors
    /// Every mount that cannot be given.
    pub(crate) fn new(
        grants: &[Grant],
        around: &Surroundings<'_>,
        observed: Option<Arc<Grants>>,
    ) -> Result<Arc<Self>, Vec<GrantProblem>> {
        Self::made(grants, observed, |prepared, grant| prepared.mount(grant, around))
    }

    /// The mounts that the grants name, in a sandbox process: the host has opened them.
    ///
    /// # Errors
    /// Every mount that was not handed over.
    pub(crate) fn handed(
        grants: &[Grant],
        files: &HandedFiles,
        observed: Option<Arc<Grants>>,
    ) -> Result<Arc<Self>, Vec<GrantProblem>> {
        Self::made(grants, observed, |prepared, grant| prepared.handed_mount(grant, files))
    }

    fn made(
        grants: &[Grant],
        observed: Option<Arc<Grants>>,
        mut make: impl FnMut(&mut Self, &Grant) -> Result<Made, Box<GrantProblem>>,
    ) -> Result<Arc<Self>, Vec<GrantProblem>> {
        let mut prepared = Self::default();
        let mut problems = Vec::new();
        let mut hidden = Vec::new();
        for grant in grants {
            let made = make(&mut prepared, grant);
            let (source, account, below) = made.unwrap_or_else(|problem| {
                problems.push(*problem);
                (Source::Virtual, None, Vec::new())
            });
            hidden.push(below);
            prepared.mounts.push(Mount { grant: Some(grant.clone()), source, account, inner: Vec::new() });
        }
        if !problems.is_empty() {
            return Err(problems);
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

    /// The denial of a path in a folder on no disk, where attempts are observed.
    pub(crate) fn observed(&self, mount: usize, want: FileAccess, at: &[String]) -> Option<Denial> {
        let grants = self.observed.as_ref()?;
        let (_, folder) = self.preopens.iter().find(|(number, _)| *number == mount)?;
        grants.file(want, &format!("{}/{}", folder.trim_end_matches('/'), at.join("/"))).err()
    }

    pub(crate) fn home(&self) -> Option<&Arc<ScratchHome>> {
        self.home.as_ref()
    }

    /// The file or folder of each mount of the host, as it was opened.
    pub(crate) fn mounted(&self) -> impl Iterator<Item = (&Grant, Identity)> {
        self.mounts.iter().filter_map(|mount| {
            let data = match &mount.source {
                Source::Folder(dir) => dir.dir_metadata(),
                Source::File { folder, name } => folder.metadata(name),
                // A sandbox process compares nothing.
                Source::Lent(_) | Source::Scratch(_) | Source::Virtual => return None,
            };
            Some((mount.grant.as_ref()?, Facts::from(&data.ok()?).identity))
        })
    }

    /// Notes for the manifest's author.
    pub(crate) fn notes(&self) -> &[GrantNote] {
        &self.notes
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

    fn mount(&mut self, grant: &Grant, around: &Surroundings<'_>) -> Result<Made, Box<GrantProblem>> {
        match grant.kind() {
            MountKind::Scratch { quota } => {
                let failed = |error: std::io::Error| {
                    let hint = "set TMPDIR to a folder that the host may write to".to_owned();
                    problem(grant, format!("there is no room for scratch space: {}", plain(&error)), hint)
                };
                self.home = Some(ScratchHome::obtain().map_err(failed)?);
                Ok((Source::Scratch(*quota), None, Vec::new()))
            }
            MountKind::Host { path, access, create, quota } => {
                let site = Site { grant, shown: path, access: *access, create: *create };
                self.host(&site, &around.folder.join(path), *quota, around)
            }
        }
    }

    fn handed_mount(&mut self, grant: &Grant, files: &HandedFiles) -> Result<Made, Box<GrantProblem>> {
        let missing = || problem(grant, format!("{:?} was not handed over", grant.guest()), String::new());
        if let MountKind::Scratch { quota } = grant.kind() {
            self.home = Some(Arc::clone(files.scratch.as_ref().ok_or_else(missing)?));
            return Ok((Source::Scratch(*quota), None, Vec::new()));
        }
        let mount = files.mount(grant.guest(), grant.access()).ok_or_else(missing)?;
        let (source, counted) = match &mount.source {
            HandedSource::Folder(dir) => (Source::Folder(Arc::clone(dir)), Counted::Folder(Arc::clone(dir))),
            HandedSource::File(lent) => (Source::Lent(lent.clone()), Counted::Lent(lent.clone())),
        };
        let account = match grant.quota() {
            Some(quota) => Some(Account::handed(mount.ledger.as_ref().ok_or_else(missing)?, quota, counted)),
            None => None,
        };
        Ok((source, account, mount.hidden().to_vec()))
    }

    fn host(
        &mut self,
        site: &Site<'_>,
        path: &Path,
        quota: Option<Quota>,
        around: &Surroundings<'_>,
    ) -> Result<Made, Box<GrantProblem>> {
        let real = site.resolve(path)?;
        if std::fs::symlink_metadata(path).is_ok_and(|data| data.is_symlink()) {
            let message =
                format!("{:?} is a link; what is mounted is {:?}, as long as the host runs", site.shown, real);
            self.notes.push(GrantNote { span: site.grant.span(), message });
        }
        site.rights(&real)?;
        let data = std::fs::metadata(&real).map_err(|error| site.unusable(&error))?;
        let source = if data.is_dir() {
            site.apart(&real, around)?;
            let dir = Dir::open_ambient_dir(&real, ambient_authority()).map_err(|error| site.unusable(&error))?;
            Source::Folder(Arc::new(dir))
        } else if data.is_file() {
            site.file(&real, &data)?
        } else {
            let message = format!("{:?} is neither a folder nor a regular file", site.shown);
            return Err(problem(site.grant, message, "pipes, sockets and devices cannot be mounted".to_owned()));
        };
        let counted = match &source {
            Source::File { folder, name } => Counted::File(Arc::clone(folder), name.clone()),
            Source::Folder(dir) => Counted::Folder(Arc::clone(dir)),
            Source::Lent(_) | Source::Scratch(_) | Source::Virtual => Counted::Never,
        };
        let account = match quota {
            Some(quota) => Some(self.account(site, &real, quota, counted)?),
            None => None,
        };
        let below = if data.is_dir() { below(&real, around) } else { Vec::new() };
        Ok((source, account, below))
    }

    fn account(
        &mut self,
        site: &Site<'_>,
        real: &Path,
        quota: Quota,
        counted: Counted,
    ) -> Result<Account, Box<GrantProblem>> {
        let account = Account::shared(real, quota, counted).map_err(|error| site.unusable(&error))?;
        let full = account.used().is_none_or(|used| used.bytes > quota.bytes || used.files > quota.files);
        if full {
            let message = format!("{:?} already holds more than its quota, so nothing can be added to it", site.shown);
            self.notes.push(GrantNote { span: site.grant.span(), message });
        }
        Ok(account)
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

/// A mount's source, its account, and the places below it that are the host's own.
type Made = (Source, Option<Account>, Vec<Vec<String>>);

/// A mount of the host while it is looked at.
struct Site<'a> {
    grant: &'a Grant,
    /// The path as the manifest has it.
    shown: &'a str,
    access: Access,
    /// The host makes the folder where it is missing.
    create: bool,
}

impl Site<'_> {
    fn resolve(&self, path: &Path) -> Result<PathBuf, Box<GrantProblem>> {
        match path.canonicalize() {
            Ok(real) => return Ok(real),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(self.unusable(&error)),
        }
        if !self.create {
            let hint = "make it, or let the host make it as a folder with `create = true`".to_owned();
            return Err(problem(self.grant, format!("there is no {:?}", self.shown), hint));
        }
        make_folders(path, 0o777).and_then(|()| path.canonicalize()).map_err(|error| {
            let message = format!("{:?} cannot be made: {}", self.shown, plain(&error));
            problem(self.grant, message, "make the folder by hand, or change the path".to_owned())
        })
    }

    fn rights(&self, real: &Path) -> Result<(), Box<GrantProblem>> {
        let mut rights = Rights::READ_OK;
        if self.access == Access::Write {
            rights |= Rights::WRITE_OK;
        }
        rustix::fs::access(real, rights).map_err(|error| self.unusable(&error.into()))
    }

    /// Keeps tools from files that the host itself relies on.
    fn apart(&self, real: &Path, around: &Surroundings<'_>) -> Result<(), Box<GrantProblem>> {
        let manifest = around.folder.canonicalize().unwrap_or_else(|_| around.folder.to_owned());
        if self.access == Access::Write && manifest.starts_with(real) {
            let message =
                format!("{:?} holds the manifest: a tool that writes there grants itself anything", self.shown);
            return Err(problem(self.grant, message, "mount a folder beside or below the manifest".to_owned()));
        }
        if hidden(around).iter().any(|own| real.starts_with(own)) {
            let message = format!("{:?} is the host's own: what tools keep lies there", self.shown);
            return Err(problem(self.grant, message, "mount another folder".to_owned()));
        }
        Ok(())
    }

    fn file(&self, real: &Path, data: &std::fs::Metadata) -> Result<Source, Box<GrantProblem>> {
        use std::os::unix::fs::MetadataExt as _;
        if self.access == Access::Write && data.nlink() > 1 {
            let message = format!("{:?} has several names (hard links), so it would never be written", self.shown);
            return Err(problem(self.grant, message, "mount a copy, or grant it to be read".to_owned()));
        }
        let (Some(folder), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(problem(
                self.grant,
                format!("{:?} has no folder", self.shown),
                "mount another file".to_owned(),
            ));
        };
        let dir = Dir::open_ambient_dir(folder, ambient_authority()).map_err(|error| self.unusable(&error))?;
        Ok(Source::File { folder: Arc::new(dir), name: name.to_owned() })
    }

    fn unusable(&self, error: &std::io::Error) -> Box<GrantProblem> {
        let what = match self.access {
            Access::Read => "read",
            Access::Write => "written",
        };
        let message = format!("{:?} cannot be {what}: {}", self.shown, plain(error));
        problem(self.grant, message, "give the host the right to it, or change the path".to_owned())
    }
}

fn problem(grant: &Grant, message: String, hint: String) -> Box<GrantProblem> {
    Box::new(GrantProblem { span: grant.span(), message, hint, is_value: false })
}

/// The operating system's words without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// The host's own folders, resolved as far as they exist.
fn hidden(around: &Surroundings<'_>) -> Vec<PathBuf> {
    let own = around.hidden.iter().map(|path| path.to_path_buf()).chain([scratch::place()]);
    own.map(|path| {
        let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
        path.canonicalize().ok().or_else(|| Some(parent?.join(path.file_name()?))).unwrap_or(path)
    })
    .collect()
}

/// The places below a folder that are the host's own.
fn below(real: &Path, around: &Surroundings<'_>) -> Vec<Vec<String>> {
    let rest = |own: &PathBuf| {
        let rest = own.strip_prefix(real).ok()?;
        let names: Option<Vec<String>> = rest.iter().map(|name| Some(name.to_str()?.to_owned())).collect();
        names.filter(|names| !names.is_empty())
    };
    hidden(around).iter().filter_map(rest).collect()
}

fn names(guest: &str) -> Vec<String> {
    guest.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
