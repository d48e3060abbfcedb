//! Scratch space: a folder of the call's own. It is made at first use and removed with the call,
//! even if the call fails.
//!
//! It is on the disk rather than in memory, so that it shares one implementation of files, quotas
//! and refusals with the mounts. The host hands its folder to this process, and removes it after
//! the process has ended.
use std::io::Result;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, DirBuilder, DirBuilderExt as _};
use toolcell_policy::Quota;
use toolcell_walls::folder::remove;

use super::ledger::Account;

/// The folder for the scratch space of all calls of this process.
#[derive(Debug)]
pub(crate) struct ScratchFolder {
    dir: Dir,
    next: AtomicU64,
}

impl ScratchFolder {
    pub(crate) fn handed(dir: OwnedFd) -> Arc<Self> {
        Arc::new(Self { dir: Dir::from_std_file(dir.into()), next: AtomicU64::new(0) })
    }
}

/// One call's space in one mount.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) dir: Arc<Dir>,
    pub(crate) account: Account,
    folder: Arc<ScratchFolder>,
    name: String,
}

impl Scratch {
    /// Empty space with this quota.
    pub(crate) fn make(folder: &Arc<ScratchFolder>, quota: Quota) -> Result<Self> {
        let name = folder.next.fetch_add(1, Ordering::Relaxed).to_string();
        let mut private = DirBuilder::new();
        private.mode(0o700);
        folder.dir.create_dir_with(&name, &private)?;
        let dir = Arc::new(folder.dir.open_dir(&name)?);
        Ok(Self { dir, account: Account::private(quota), folder: Arc::clone(folder), name })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let folder = Arc::clone(&self.folder);
        let name = std::mem::take(&mut self.name);
        // The host removes leftovers with the folder.
        let remove = move || drop(remove(&folder.dir, &name));
        match tokio::runtime::Handle::try_current() {
            // It may hold thousands of files, and one thread serves all calls.
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_a_call_leaves_is_gone_with_it_however_deep() {
        let base = tempfile::tempdir().unwrap();
        let folder = ScratchFolder::handed(std::fs::File::open(base.path()).unwrap().into());
        let scratch = Scratch::make(&folder, Quota { bytes: 1 << 20, files: 10_000 }).unwrap();
        let mut dir = scratch.dir.try_clone().unwrap();
        for depth in 0..2_000 {
            dir.write("file", b"x").unwrap();
            dir.symlink("file", "link").unwrap();
            dir.create_dir("sub").unwrap();
            dir.create_dir(format!("other-{depth}")).unwrap();
            dir = dir.open_dir("sub").unwrap();
        }
        drop(scratch);
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 0);
    }
}
