//! Resources that are kept where every replica of the server reads them. Must not hold: where that
//! is.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// Bytes of labels in one answer of a store, past which no more need follow. 256 KiB: those of a
/// page.
pub const LABELS_BYTES: usize = 256 * 1024;

/// Keeps resources for all replicas. Labels and bodies are this crate's own words.
pub trait ResourceStore: Send + Sync + 'static {
    /// Keeps these for a time. Each replaces the one of its origin and address.
    fn keep<'r>(&'r self, holder: &'r StoreHolder, resources: Vec<StoredResource>, time: Duration) -> Storing<'r, ()>;

    /// Numbers and labels of the holder's resources behind this number, the oldest first, at most
    /// so many, and at least those of the first [`LABELS_BYTES`]. Addresses that two origins have
    /// are left out.
    fn list<'r>(&'r self, holder: &'r StoreHolder, after: u64, most: usize) -> Storing<'r, Vec<(u64, Vec<u8>)>>;

    /// The body of the holder's resource of this address. `None` if there is none, or if two
    /// origins have one.
    fn find<'r>(&'r self, holder: &'r StoreHolder, uri: &'r str) -> Storing<'r, Option<Vec<u8>>>;

    /// The holder is gone.
    fn forget<'r>(&'r self, holder: &'r StoreHolder) -> Storing<'r, ()>;
}

/// The answer of a store, while it is waited for.
pub type Storing<'r, T> = Pin<Box<dyn Future<Output = Result<T, StoreAway>> + Send + 'r>>;

/// The store cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreAway;

/// The client that has resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreHolder {
    /// The caller, whose resources are counted together.
    pub caller: String,
    /// The caller itself, or one of its sessions: nobody else reads them.
    pub holder: String,
}

impl StoreHolder {
    /// A session of this caller.
    pub(crate) fn session(caller: &str, session: &str) -> Self {
        Self { caller: caller.to_owned(), holder: format!("session\n{session}") }
    }

    /// A recognised caller, over any connection.
    pub(crate) fn caller(caller: &str) -> Self {
        Self { caller: caller.to_owned(), holder: format!("caller\n{caller}") }
    }
}

/// A resource that is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResource {
    /// The component that made it.
    pub origin: String,
    /// Its address.
    pub uri: String,
    /// The part that lists need.
    pub label: Vec<u8>,
    /// The part that is read.
    pub body: Vec<u8>,
}
