//! The entries of a folder, one at a time. Memory holds only those that the operating system
//! returns at once.
use std::collections::BTreeMap;

use cap_std::fs::{FileType, FileTypeExt, ReadDir};

use super::bindings::types::{DescriptorType, DirectoryEntry, ErrorCode};
use super::mount::{InnerKind, Mount, Source};
use super::permits::Permit;
use super::refused::code;

/// Entries that one step examines. The operating system returns a few times as many at once.
const STATS_MAX: usize = 64;

/// One step of a listing.
pub(super) enum ListingStep {
    /// An entry.
    Entry(DirectoryEntry),
    /// No entry of this step is shown; there may be others.
    More,
    /// The end of the folder.
    End,
}

/// A folder that is being listed.
pub struct Listing {
    entries: Option<ReadDir>,
    /// Entries that are not on the disk. They replace entries of the same name.
    inner: BTreeMap<String, Option<DescriptorType>>,
    /// Those that are still to be shown.
    rest: std::vec::IntoIter<DirectoryEntry>,
    _permit: Option<Permit>,
}

impl Listing {
    pub(super) fn new(entries: Option<(ReadDir, Permit)>, inner: BTreeMap<String, Option<DescriptorType>>) -> Self {
        let shown: Vec<DirectoryEntry> = inner
            .iter()
            .filter_map(|(name, kind)| kind.map(|type_| DirectoryEntry { type_, name: name.clone() }))
            .collect();
        let (entries, permit) = entries.unzip();
        Self { entries, inner, rest: shown.into_iter(), _permit: permit }
    }

    /// Goes to the next visible entry, skipping a bounded number of others.
    pub(super) fn step(&mut self) -> Result<ListingStep, ErrorCode> {
        for _ in 0..STATS_MAX {
            let Some(entry) = self.entries.as_mut().and_then(Iterator::next) else {
                return Ok(self.rest.next().map_or(ListingStep::End, ListingStep::Entry));
            };
            let entry = entry.map_err(|error| code(&error))?;
            // WASI can neither express nor open a name that is not Unicode.
            let Ok(name) = entry.file_name().into_string() else { continue };
            if self.inner.contains_key(&name) {
                continue;
            }
            let type_ = match entry.file_type() {
                Ok(kind) => kind_of(kind),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(code(&error)),
            };
            return Ok(ListingStep::Entry(DirectoryEntry { type_, name }));
        }
        Ok(ListingStep::More)
    }
}

/// Entries directly in a folder of a mount that are not on the disk: kinds by name, `None` for
/// hidden ones.
pub(super) fn inner(mounts: &[Mount], mount: &Mount, at: &[String]) -> BTreeMap<String, Option<DescriptorType>> {
    let mut inner = BTreeMap::new();
    for one in &mount.inner {
        let Some(rest) = one.at.strip_prefix(at) else { continue };
        match (rest, one.what) {
            ([name], InnerKind::Hidden) => inner.insert(name.clone(), None),
            ([name], InnerKind::Device(_)) => inner.insert(name.clone(), Some(DescriptorType::CharacterDevice)),
            ([name], InnerKind::Mount(number)) => {
                let is_file = mounts.get(number).is_some_and(|mount| mount.source.is_file());
                let kind = if is_file { DescriptorType::RegularFile } else { DescriptorType::Directory };
                inner.insert(name.clone(), Some(kind))
            }
            // A folder on the way to a deeper mount. On a disk, it may or may not exist.
            ([name, ..], InnerKind::Mount(_))
                if matches!(mount.source, Source::Virtual) && !inner.contains_key(name) =>
            {
                inner.insert(name.clone(), Some(DescriptorType::Directory))
            }
            _ => None,
        };
    }
    inner
}

fn kind_of(kind: FileType) -> DescriptorType {
    if kind.is_file() {
        DescriptorType::RegularFile
    } else if kind.is_dir() {
        DescriptorType::Directory
    } else if kind.is_symlink() {
        DescriptorType::SymbolicLink
    } else if kind.is_fifo() {
        DescriptorType::Fifo
    } else if kind.is_socket() {
        DescriptorType::Socket
    } else if kind.is_char_device() {
        DescriptorType::CharacterDevice
    } else if kind.is_block_device() {
        DescriptorType::BlockDevice
    } else {
        DescriptorType::Unknown
    }
}
