//! The lock, with the component that is added.
use std::path::Path;

use toolcell_server::catalog::Catalog;
use toolcell_server::lock::{self, Lock, LockPath};

use crate::exit::Failure;

/// The lock before and after.
pub struct WrittenLock {
    pub path: LockPath,
    pub before: Option<Lock>,
    pub after: Option<Lock>,
}

/// Pins the component in addition to those already pinned, or all if there is no lock. Adding a
/// linked component does not create a lock, since its code still changes.
pub fn pin(manifest: &Path, name: &str, catalog: &Catalog, is_linked: bool) -> Result<WrittenLock, Failure> {
    let path = lock::path_beside(manifest);
    let before = lock::read(&path)?;
    let now = Lock::of(catalog);
    let after = match &before {
        None if is_linked => None,
        None => Some(now),
        Some(before) => {
            let mut after = before.clone();
            after
                .components
                .extend(now.components.get_key_value(name).map(|(name, pinned)| (name.clone(), pinned.clone())));
            Some(after)
        }
    };
    if let Some(after) = &after {
        lock::write(&path, after)?;
    }
    Ok(WrittenLock { path, before, after })
}

impl WrittenLock {
    /// Restores the lock, since the manifest could not be written.
    pub fn take_back(&self) {
        // If this fails, the lock pins a component that the manifest does not name.
        let _ = match (&self.before, &self.after) {
            (Some(before), Some(_)) => lock::write(&self.path, before).is_ok(),
            (None, Some(_)) => std::fs::remove_file(&*self.path).is_ok(),
            _ => true,
        };
    }
}
