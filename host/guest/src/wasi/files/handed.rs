//! The files of a component, as the host handed them to this sandbox process.
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use cap_std::fs::Dir;
use toolcell_policy::Access;
use toolcell_wall::mounts::{HandedKind, MountFacts};
use toolcell_walls::folder::{Amount, Facts};

use super::bindings::types::ErrorCode;
use super::ledger::Ledger;
use super::refused::code;
use super::scratch::ScratchFolder;

#[derive(Debug, Default)]
pub(crate) struct HandedFiles {
    mounts: Vec<HandedMount>,
    pub(super) scratch: Option<Arc<ScratchFolder>>,
}

/// One mount of them.
#[derive(Debug)]
pub(super) struct HandedMount {
    facts: MountFacts,
    pub(super) source: HandedSource,
    pub(super) ledger: Option<Arc<Ledger>>,
}

#[derive(Debug)]
pub(super) enum HandedSource {
    Folder(Arc<Dir>),
    File(Lent),
}

/// A single file, open.
#[derive(Clone, Debug)]
pub(crate) struct Lent {
    pub(super) file: Arc<std::fs::File>,
    /// Its descriptor, typed as a folder; opening anything beneath it fails.
    pub(super) dir: Arc<Dir>,
    pub(super) is_there: bool,
}

impl HandedFiles {
    /// The mounts that came with these descriptors.
    ///
    /// # Errors
    /// One sentence: a descriptor is missing, or has another kind.
    pub(crate) fn new(
        mounts: Vec<(MountFacts, Vec<OwnedFd>)>,
        scratch: Option<Arc<ScratchFolder>>,
    ) -> Result<Self, String> {
        let handed = |(facts, descriptors): (MountFacts, Vec<OwnedFd>)| {
            let wrong = |error: io::Error| format!("the mount {:?} cannot be used: {error}", facts.guest);
            let mut descriptors = descriptors.into_iter();
            let descriptor = descriptors.next().ok_or(io::ErrorKind::NotFound.into()).map_err(wrong)?;
            let source = match facts.kind {
                HandedKind::Folder => HandedSource::Folder(Arc::new(Dir::from_std_file(descriptor.into()))),
                kind => HandedSource::File(Lent::new(descriptor, kind == HandedKind::File).map_err(wrong)?),
            };
            let ledger = descriptors.next().map(Ledger::handed).transpose().map_err(wrong)?;
            Ok::<_, String>(HandedMount { facts, source, ledger })
        };
        Ok(Self { mounts: mounts.into_iter().map(handed).collect::<Result<_, _>>()?, scratch })
    }

    /// The mount at this path, if it was handed over for that access.
    pub(super) fn mount(&self, guest: &str, access: Access) -> Option<&HandedMount> {
        let mount = self.mounts.iter().find(|mount| mount.facts.guest == guest)?;
        (access == Access::Read || mount.facts.writes).then_some(mount)
    }
}

impl HandedMount {
    pub(super) fn hidden(&self) -> &[Vec<String>] {
        &self.facts.hidden
    }
}

impl Lent {
    fn new(descriptor: OwnedFd, is_there: bool) -> io::Result<Self> {
        let dir = Dir::from_std_file(descriptor.try_clone()?.into());
        Ok(Self { file: Arc::new(descriptor.into()), dir: Arc::new(dir), is_there })
    }

    /// The facts of the file. They are missing if it was removed.
    pub(super) fn facts(&self) -> Result<Facts, ErrorCode> {
        if !self.is_there {
            return Err(ErrorCode::NoEntry);
        }
        Facts::of(&self.file).map_err(|error| code(&error))
    }

    /// Opens the file again.
    pub(super) fn open(&self) -> Result<std::fs::File, ErrorCode> {
        if !self.is_there {
            return Err(ErrorCode::NoEntry);
        }
        self.file.try_clone().map_err(|error| code(&error))
    }

    /// The amount that a quota counts.
    pub(super) fn amount(&self) -> io::Result<Amount> {
        if !self.is_there {
            return Ok(Amount::default());
        }
        Ok(Amount { bytes: Facts::of(&self.file)?.charged_bytes(), files: 1 })
    }
}
