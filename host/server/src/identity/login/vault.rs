//! The place of a login's record: a file, or the server that replicas share. One process at a time
//! changes it.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use toolcell_mcp::StateKey;
use toolcell_shared::{Bucket, Claim, Kept, Quota, SharedState};

use super::error::LoginError;
use super::record::{CallerRecord, Record};
use super::store::{Draft, Locked, RecordPlace, SealedFor, Store};

/// The name of the callers' logins on the shared server. No component's name has a slash.
const SHARED: &str = "toolcell/logins";

/// Bytes of a sealed record, as of its file.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// Logins on the shared server: a hundred of as many callers.
const RECORDS_MAX: u64 = 10_000;

/// All that callers' logins may hold there. A record has a few kilobytes.
const QUOTA: Quota = Quota { bytes: 256 << 20, entries: RECORDS_MAX, value_bytes: RECORD_BYTES_MAX, namespaces: 1_024 };

/// Time after which a replica that was killed no longer holds a login: a refresh takes 15 seconds
/// at most.
const HELD_FOR: Duration = Duration::from_secs(30);

/// Time to wait for another replica's refresh.
const LOCKED_WITHIN: Duration = Duration::from_secs(60);

/// Time between two attempts to take a login that another replica has.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// The place of one login's record.
#[derive(Clone)]
pub(super) enum Vault {
    /// A file in the folder of states.
    File(RecordPlace),
    /// An entry of the server that replicas share.
    Shared(SharedRecord),
}

/// The server that replicas share, for callers' logins.
#[derive(Clone)]
pub(super) struct SharedVault {
    pub(super) kept: Arc<Kept>,
    pub(super) state: Arc<dyn SharedState>,
    /// Drives the connections, which outlive any one operation.
    pub(super) runtime: Handle,
}

/// A caller's record there.
#[derive(Clone)]
pub(super) struct SharedRecord {
    pub(super) vault: SharedVault,
    pub(super) sealed: SealedFor,
}

/// A vault that this process may change.
pub(super) enum OpenVault {
    File(Store),
    Shared(SharedRecord),
}

/// A vault that no other process changes. A shared one must be [released](Self::release).
pub(super) enum LockedVault<'v> {
    File(&'v Store, Locked<'v>),
    Shared(&'v SharedRecord, Claim),
}

fn failed(error: impl std::fmt::Display) -> LoginError {
    LoginError::Store(format!("the server that keeps logins: {error}"))
}

impl Vault {
    /// The record, if there is one.
    pub(super) async fn read(&self) -> Result<Option<Record>, LoginError> {
        match self {
            Self::File(place) => Store::read_record(place),
            Self::Shared(shared) => shared.read().await,
        }
    }

    /// Opens it for a change.
    pub(super) fn open(&self) -> Result<OpenVault, LoginError> {
        Ok(match self {
            Self::File(place) => OpenVault::File(Store::open(place)?),
            Self::Shared(shared) => OpenVault::Shared(shared.clone()),
        })
    }
}

impl SharedVault {
    /// The logins of callers, as far as this key opens them.
    pub(super) async fn all(&self, key: &StateKey, logins: &BTreeSet<&str>) -> Result<Vec<CallerRecord>, LoginError> {
        let mut found = Vec::new();
        for login in logins {
            let bucket = bucket(login);
            let names = self.kept.keys_after(bucket, 0, usize::try_from(RECORDS_MAX).unwrap_or(usize::MAX)).await;
            for (name, _) in names.map_err(failed)? {
                let bytes = self.kept.get(bucket, &name, RECORD_BYTES_MAX).await.map_err(failed)?;
                found.extend(bytes.and_then(|bytes| CallerRecord::open(key, &bytes)));
            }
        }
        Ok(found)
    }
}

const fn bucket(login: &str) -> Bucket<'_> {
    Bucket { component: SHARED, namespace: login, name: "callers" }
}

impl SharedRecord {
    async fn read(&self) -> Result<Option<Record>, LoginError> {
        let name = self.sealed.name();
        let bytes = self.vault.kept.get(bucket(&self.sealed.login), &name, RECORD_BYTES_MAX).await.map_err(failed)?;
        // With another key than before, nobody is logged in.
        Ok(bytes.and_then(|bytes| self.sealed.open(&bytes)))
    }

    async fn write(&self, record: &Record) -> Result<(), LoginError> {
        let bytes = self.sealed.seal(record).ok_or_else(|| failed("the login cannot be sealed"))?;
        let pairs = vec![(self.sealed.name(), bytes.to_vec())];
        self.vault.kept.set_all(bucket(&self.sealed.login), QUOTA, pairs).await.map_err(failed)
    }

    async fn remove(&self) -> Result<(), LoginError> {
        let names = vec![self.sealed.name()];
        self.vault.kept.delete_all(bucket(&self.sealed.login), QUOTA, names).await.map_err(failed)
    }

    async fn claim(&self) -> Result<Claim, LoginError> {
        let name = format!("login {}", self.sealed.name());
        let end = Instant::now() + LOCKED_WITHIN;
        loop {
            if let Some(claim) = self.vault.state.claim("", &name, HELD_FOR).await.map_err(failed)?.now() {
                return Ok(claim);
            }
            if Instant::now() >= end {
                return Err(failed("another replica has kept the login for a minute"));
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    }
}

impl OpenVault {
    /// Keeps other processes from changing it.
    pub(super) async fn lock(&self) -> Result<LockedVault<'_>, LoginError> {
        Ok(match self {
            Self::File(store) => LockedVault::File(store, store.lock()?),
            Self::Shared(shared) => LockedVault::Shared(shared, shared.claim().await?),
        })
    }
}

impl LockedVault<'_> {
    /// The record, if there is one.
    pub(super) async fn read(&self) -> Result<Option<Record>, LoginError> {
        match self {
            Self::File(store, _) => store.read(),
            Self::Shared(shared, _) => shared.read().await,
        }
    }

    /// A place for a new record, where one must be made before tokens are asked for.
    pub(super) fn draft(&self) -> Result<Option<Draft<'_>>, LoginError> {
        match self {
            Self::File(_, lock) => lock.draft().map(Some),
            Self::Shared(..) => Ok(None),
        }
    }

    /// Writes the record whole.
    pub(super) async fn write(&self, draft: Option<Draft<'_>>, record: &Record) -> Result<(), LoginError> {
        match (self, draft) {
            (Self::File(..), Some(draft)) => draft.write(record),
            (Self::File(_, lock), None) => lock.write(record),
            (Self::Shared(shared, _), _) => shared.write(record).await,
        }
    }

    /// Removes the record.
    pub(super) async fn remove(&self) -> Result<(), LoginError> {
        match self {
            Self::File(_, lock) => lock.remove(),
            Self::Shared(shared, _) => shared.remove().await,
        }
    }

    /// Lets other processes change it.
    pub(super) async fn release(self) {
        if let Self::Shared(shared, claim) = self {
            // Otherwise its time ends it.
            let _ = shared.vault.state.give_back(claim).await;
        }
    }
}
