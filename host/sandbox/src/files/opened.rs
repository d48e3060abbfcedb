//! Mounts prepared at load: host paths resolved, checked and opened, and quotas counted.
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::Access as Rights;
use toolcell_policy::{Access, Mount as Grant, MountKind, Quota};
use toolcell_walls::folder::{Facts, Identity};

use super::room::Room;
use super::scratch::{self, ScratchHome};
use crate::owned::make_folders;
use crate::wasi::grant_problem::{GrantNote, GrantProblem};

/// The host's folders that matter for mounts.
pub(crate) struct Surroundings<'a> {
    /// The manifest's folder: paths are relative to it, and a tool must not write there.
    pub(crate) folder: &'a Path,
    /// Folders of the host's own that no mount shows.
    pub(crate) hidden: &'a [&'a Path],
}

/// The mounts of one tool, opened.
#[derive(Debug, Default)]
pub(crate) struct OpenedMounts {
    mounts: Vec<OpenedMount>,
    scratch: Option<OpenedScratch>,
    notes: Vec<GrantNote>,
}

/// A mount of a folder or file of the host.
#[derive(Debug)]
pub(super) struct OpenedMount {
    pub(super) grant: Grant,
    pub(super) opened: Opened,
    /// Its room, if it is written to.
    pub(super) room: Option<Room>,
    /// Places in it that are the host's own.
    pub(super) hidden: Vec<Vec<String>>,
}

/// The mounted folder or file. A file is opened again for each process.
#[derive(Clone, Debug)]
pub(super) enum Opened {
    Folder(Arc<Dir>),
    File(Arc<Dir>, OsString),
}

/// Scratch space of one call.
#[derive(Clone, Debug)]
pub(super) struct OpenedScratch {
    pub(super) home: Arc<ScratchHome>,
    /// The most that one call has, in all of its mounts.
    pub(super) quota: Quota,
}

impl Opened {
    /// The file or folder that is there now; `None` if it was removed.
    pub(super) fn identity(&self) -> Option<Identity> {
        let data = match self {
            Self::Folder(dir) => dir.dir_metadata(),
            Self::File(folder, name) => folder.symlink_metadata(name),
        };
        data.ok().map(|data| Facts::from(&data).identity)
    }
}

impl OpenedMounts {
    /// Opens the files and folders that the grants name.
    ///
    /// # Errors
    /// Every mount that cannot be opened.
    pub(crate) fn open(grants: &[Grant], around: &Surroundings<'_>) -> Result<Self, Vec<GrantProblem>> {
        let mut mounts = Self::default();
        let mut problems = Vec::new();
        for grant in grants {
            problems.extend(mounts.add(grant, around).err().map(|problem| *problem));
        }
        if problems.is_empty() { Ok(mounts) } else { Err(problems) }
    }

    pub(super) fn mounts(&self) -> &[OpenedMount] {
        &self.mounts
    }

    pub(super) fn scratch(&self) -> Option<&OpenedScratch> {
        self.scratch.as_ref()
    }

    /// The file or folder of each mount, as it was opened.
    pub(crate) fn mounted(&self) -> impl Iterator<Item = (&Grant, Identity)> {
        self.mounts.iter().filter_map(|mount| Some((&mount.grant, mount.opened.identity()?)))
    }

    /// Notes for the manifest's author.
    pub(crate) fn notes(&self) -> &[GrantNote] {
        &self.notes
    }

    fn add(&mut self, grant: &Grant, around: &Surroundings<'_>) -> Result<(), Box<GrantProblem>> {
        match grant.kind() {
            MountKind::Scratch { quota } => {
                let failed = |error: std::io::Error| {
                    let hint = "set TMPDIR to a folder that the host may write to".to_owned();
                    problem(grant, format!("there is no room for scratch space: {}", plain(&error)), hint)
                };
                let home = ScratchHome::obtain().map_err(failed)?;
                let before = self.scratch.as_ref().map_or(Quota { bytes: 0, files: 0 }, |scratch| scratch.quota);
                let quota = Quota {
                    bytes: before.bytes.saturating_add(quota.bytes),
                    files: before.files.saturating_add(quota.files),
                };
                self.scratch = Some(OpenedScratch { home, quota });
            }
            MountKind::Host { path, access, create, quota } => {
                let site = OpenSite { grant, shown: path, access: *access, create: *create };
                let mount = self.host(&site, &around.folder.join(path), *quota, around)?;
                self.mounts.push(mount);
            }
        }
        Ok(())
    }

    fn host(
        &mut self,
        site: &OpenSite<'_>,
        path: &Path,
        quota: Option<Quota>,
        around: &Surroundings<'_>,
    ) -> Result<OpenedMount, Box<GrantProblem>> {
        let real = site.resolve(path)?;
        if std::fs::symlink_metadata(path).is_ok_and(|data| data.is_symlink()) {
            let message =
                format!("{:?} is a link; what is mounted is {:?}, as long as the host runs", site.shown, real);
            self.notes.push(GrantNote { span: site.grant.span(), message });
        }
        site.rights(&real)?;
        let data = std::fs::metadata(&real).map_err(|error| site.unusable(&error))?;
        let opened = if data.is_dir() {
            site.apart(&real, around)?;
            let dir = Dir::open_ambient_dir(&real, ambient_authority()).map_err(|error| site.unusable(&error))?;
            Opened::Folder(Arc::new(dir))
        } else if data.is_file() {
            site.file(&real, &data)?
        } else {
            let message = format!("{:?} is neither a folder nor a regular file", site.shown);
            return Err(problem(site.grant, message, "pipes, sockets and devices cannot be mounted".to_owned()));
        };
        let room = match quota {
            Some(quota) => Some(self.room(site, &real, quota, &opened)?),
            None => None,
        };
        let hidden = if data.is_dir() { below(&real, around) } else { Vec::new() };
        Ok(OpenedMount { grant: site.grant.clone(), opened, room, hidden })
    }

    fn room(
        &mut self,
        site: &OpenSite<'_>,
        real: &Path,
        quota: Quota,
        opened: &Opened,
    ) -> Result<Room, Box<GrantProblem>> {
        let room = Room::of(real, quota, opened).map_err(|error| site.unusable(&error))?;
        let full = room.used().is_none_or(|used| used.bytes > quota.bytes || used.files > quota.files);
        if full {
            let message = format!("{:?} already holds more than its quota, so nothing can be added to it", site.shown);
            self.notes.push(GrantNote { span: site.grant.span(), message });
        }
        Ok(room)
    }
}

/// A mount of the host that is being checked.
struct OpenSite<'a> {
    grant: &'a Grant,
    /// The path as in the manifest.
    shown: &'a str,
    access: Access,
    /// The host makes the folder if it is missing.
    create: bool,
}

impl OpenSite<'_> {
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
            return Err(problem(self.grant, message, "mount a folder next to or below the manifest".to_owned()));
        }
        if hidden(around).iter().any(|own| real.starts_with(own)) {
            let message = format!("{:?} is the host's own: what tools keep lies there", self.shown);
            return Err(problem(self.grant, message, "mount another folder".to_owned()));
        }
        Ok(())
    }

    fn file(&self, real: &Path, data: &std::fs::Metadata) -> Result<Opened, Box<GrantProblem>> {
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
        Ok(Opened::File(Arc::new(dir), name.to_owned()))
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

/// The operating system's message without its number.
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
