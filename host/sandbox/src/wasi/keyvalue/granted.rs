//! A component's state, prepared at load for those of its tools that are granted it.
//!
//! Promise: state is a component's own.
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use toolcell_policy::{Grants, KeyValue};
use toolcell_shared::Kept;

use super::error::StateOpenError;
use super::file;
use super::in_file::InFile;
use super::keeper::StateKeeper;
use super::on_server::OnServer;
use super::store::{ComponentStore, NamespaceBounds};
use crate::wasi::grant_problem::GrantProblem;

/// Bytes of a caller's name that is kept whole; a longer one is replaced by its digest.
const CALLER_BYTES_MAX: usize = 128;

/// Time to wait for other hosts that have the file open: a dozen that start at once on a busy
/// machine take turns within a few seconds.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The files that this process has open. Only one process can open a file, so its generations of
/// tools share it.
static OPEN: LazyLock<Mutex<HashMap<PathBuf, Weak<ComponentStore>>>> = LazyLock::new(Mutex::default);

/// Where tools keep state.
#[derive(Clone, Copy)]
pub(crate) struct StatePlace<'a> {
    /// The folder of this machine.
    pub(crate) folder: &'a Path,
    /// The server that replicas share, instead of the folder.
    pub(crate) shared: Option<&'a Arc<Kept>>,
}

/// The state that one tool may keep: its keeper and its bounds.
#[derive(Debug)]
pub(crate) struct GrantedState {
    keeper: Box<dyn StateKeeper>,
    bounds: NamespaceBounds,
    per_caller: bool,
}

impl GrantedState {
    pub(super) fn keeper(&self) -> &dyn StateKeeper {
        &*self.keeper
    }

    pub(super) fn bounds(&self) -> NamespaceBounds {
        self.bounds
    }

    /// The namespace that this caller's calls see.
    pub(super) fn namespace(&self, caller: &str) -> String {
        if self.per_caller { namespace_of(caller) } else { String::new() }
    }
}

/// Opens the component's state in the state folder, or shares it if it is already open. A server
/// need not answer yet.
fn grant(policy: &KeyValue, place: StatePlace<'_>, component: &str) -> Result<GrantedState, StateOpenError> {
    let bounds =
        NamespaceBounds { bytes: policy.quota_bytes(), entries: policy.entries(), value_bytes: policy.value_bytes() };
    let keeper: Box<dyn StateKeeper> = match place.shared {
        Some(kept) => Box::new(OnServer::new(kept, component)),
        None => Box::new(InFile(shared(place.folder, component)?)),
    };
    Ok(GrantedState { keeper, bounds, per_caller: policy.per_caller() })
}

/// The state that these grants allow, prepared; a problem if its file cannot be used.
pub(crate) fn prepare(
    grants: &Grants,
    place: StatePlace<'_>,
    problems: &mut Vec<GrantProblem>,
) -> Option<GrantedState> {
    let policy = grants.keyvalue()?;
    match grant(policy, place, grants.subject().component()) {
        Ok(granted) => Some(granted),
        Err(error) => {
            let hint = error.hint().to_owned();
            problems.push(GrantProblem {
                span: grants.keyvalue_span(),
                message: error.to_string(),
                hint,
                is_value: false,
            });
            None
        }
    }
}

fn shared(folder: &Path, component: &str) -> Result<Arc<ComponentStore>, StateOpenError> {
    let path = std::path::absolute(file::path(folder, component)).unwrap_or_else(|_| file::path(folder, component));
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(store) = open.get(&path).and_then(Weak::upgrade) {
        return Ok(store);
    }
    open.retain(|_, store| store.strong_count() > 0);
    let store = Arc::new(ComponentStore::open(folder, component, LOCK_WAIT)?);
    open.insert(path, Arc::downgrade(&store));
    Ok(store)
}

/// The namespace of a caller. No two callers share one, and none has the shared namespace.
fn namespace_of(caller: &str) -> String {
    if caller.len() <= CALLER_BYTES_MAX {
        return format!("caller:{caller}");
    }
    let digest = Sha256::digest(caller.as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{CALLER_BYTES_MAX, namespace_of, shared};
    use std::collections::HashSet;
    use std::sync::Arc;

    #[test]
    fn every_caller_has_a_namespace_of_its_own() {
        let long = "a".repeat(CALLER_BYTES_MAX + 1);
        let longer = "a".repeat(CALLER_BYTES_MAX + 2);
        let callers = ["", "local", "sha256:x", &"a".repeat(CALLER_BYTES_MAX), &long, &longer];
        let namespaces: HashSet<String> = callers.iter().map(|caller| namespace_of(caller)).collect();
        assert_eq!(namespaces.len(), callers.len());
        assert!(namespaces.iter().all(|namespace| !namespace.is_empty() && namespace.len() < 200));
    }

    #[test]
    fn one_process_has_one_store_of_a_component_and_another_once_that_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let first = shared(folder.path(), "notes").unwrap();
        let second = shared(folder.path(), "notes").unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert!(!Arc::ptr_eq(&first, &shared(folder.path(), "other").unwrap()));
        drop((first, second));
        shared(folder.path(), "notes").unwrap();
    }
}
