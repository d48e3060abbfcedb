//! The operations on the state that a tool was granted: the right to it, the call's session, and
//! the threads that wait for the disk. Must not hold: guests' handles and fuel, or the files.
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolcell_policy::Grants;

use super::bindings::wasi::keyvalue::store::Error;
use super::database::Mark;
use super::error::Refusal;
use super::granted::GrantedState;
use super::host::Trouble;
use super::session::Session;
use super::store::{
    BATCH_BYTES_MAX, BATCH_KEYS_MAX, Bounds, BucketPath, Change, PAGE_KEYS_MAX, Stop, Store, check_key, check_keys,
};
use crate::caller::denials::Denials;
use crate::wasi::doors::bounded::{Blob, List};

/// Bytes of a bucket's name: as long as a component's or a tool's.
const BUCKET_BYTES_MAX: usize = 64;

/// Bytes of keys and values in one answer to a guest that asks for many: as much as the largest
/// value there can be.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// The bucket of guests that name none.
const DEFAULT_BUCKET: &str = "default";

/// Keys of one operation that are read without going aside: within a hundred microseconds.
const KEYS_HERE_MAX: usize = 16;

/// Bytes of a value up to which it is read without going aside.
const VALUE_HERE_BYTES_MAX: u64 = 1 << 20;

/// Keys of one operation.
pub(super) type Keys = List<String, BATCH_KEYS_MAX>;

/// One operation on a bucket.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Operation {
    /// The guest opens the bucket.
    Open,
    /// The value of a key.
    Get(String),
    /// True if there is an entry of the key.
    Exists(String),
    /// A page of keys, from the cursor on.
    List(Option<u64>),
    /// Adds to the number that a key holds.
    Add(String, u64),
    /// The entries of keys.
    GetMany(Keys),
    /// Sets every key, or none.
    SetMany(List<(String, Blob), BATCH_KEYS_MAX>),
    /// Deletes every key, or none.
    DeleteMany(Keys),
}

/// The outcome of an operation.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    Done,
    Value(Option<Blob>),
    Exists(bool),
    Page(List<String, PAGE_KEYS_MAX>, Option<u64>),
    Number(u64),
    Values(List<Option<(String, Blob)>, BATCH_KEYS_MAX>),
}

impl Operation {
    /// Refuses what no state takes, before anything is done for it: the longest that passes is
    /// bounded.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        match self {
            Self::Open | Self::List(_) => Ok(()),
            Self::Get(key) | Self::Exists(key) | Self::Add(key, _) => check_key(key),
            Self::GetMany(keys) | Self::DeleteMany(keys) => check_keys(keys.0.iter()),
            Self::SetMany(pairs) => {
                check_keys(pairs.0.iter().map(|(key, _)| key))?;
                let bytes = pairs.0.iter().map(|(key, value)| key.len() as u64 + value.0.len() as u64).sum();
                if bytes > BATCH_BYTES_MAX {
                    return Err(Refusal::BatchBytes { bytes, max: BATCH_BYTES_MAX });
                }
                Ok(())
            }
        }
    }
}

/// A call's share of the state that its tool was granted.
pub(crate) struct KeptState<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) grants: &'a Grants,
    pub(crate) granted: Option<&'a GrantedState>,
    pub(crate) denials: &'a Denials,
    /// The caller's name.
    pub(crate) caller: &'a str,
}

/// A bucket of the granted state.
struct Place {
    store: Arc<Store>,
    bounds: Bounds,
    path: BucketPath,
}

impl KeptState<'_> {
    /// Does one operation on the bucket of this name.
    pub(super) async fn perform(&mut self, bucket: &str, operation: Operation) -> Result<Outcome, Trouble> {
        let place = self.place(bucket)?;
        match operation {
            Operation::Open => self.enter(&place.store).await.map(|()| Outcome::Done),
            Operation::Get(key) => {
                let value = self.read(place, true, move |place, _| place.store.get(&place.path, &key)).await?;
                Ok(Outcome::Value(value.map(Blob)))
            }
            Operation::Exists(key) => {
                let found = self.read(place, true, move |place, _| place.store.exists(&place.path, &key)).await?;
                Ok(Outcome::Exists(found))
            }
            Operation::List(cursor) => {
                let page = self.read(place, true, move |place, _| place.store.keys(&place.path, cursor)).await?;
                Ok(Outcome::Page(List(page.keys), page.cursor))
            }
            Operation::Add(key, delta) => {
                let number = self.write(place, move |place, change| place.store.add(change, &key, delta)).await?;
                Ok(Outcome::Number(number))
            }
            Operation::GetMany(List(keys)) => {
                let short = keys.len() <= KEYS_HERE_MAX;
                let found = self.read(place, short, move |place, stop| {
                    // One large value, asked for many times, would fill the host's memory.
                    let bytes_max = place.bounds.bytes.min(ANSWER_BYTES_MAX);
                    place.store.get_all(&place.path, keys, bytes_max, stop)
                });
                let found = found.await?.into_iter().map(|pair| pair.map(|(key, value)| (key, Blob(value))));
                Ok(Outcome::Values(List(found.collect())))
            }
            Operation::SetMany(List(pairs)) => {
                let pairs: Vec<_> = pairs.into_iter().map(|(key, Blob(value))| (key, value)).collect();
                let set = move |place: &Place, change: Change<'_>| Ok(((), place.store.set_all(change, &pairs)?));
                self.write(place, set).await.map(|()| Outcome::Done)
            }
            Operation::DeleteMany(List(keys)) => {
                let delete = move |place: &Place, change: Change<'_>| Ok(((), place.store.delete_all(change, &keys)?));
                self.write(place, delete).await.map(|()| Outcome::Done)
            }
        }
    }

    /// Every name of the right form is a bucket; the empty one is that of [`DEFAULT_BUCKET`].
    fn place(&self, bucket: &str) -> Result<Place, Trouble> {
        let granted = match (self.grants.open_keyvalue(), self.granted) {
            (Ok(_), Some(granted)) => granted,
            (Err(denial), _) => {
                self.denials.add(denial);
                return Err(Trouble::Guest(Error::AccessDenied));
            }
            (Ok(_), None) => return Err(Trouble::Guest(Error::AccessDenied)),
        };
        let name = if bucket.is_empty() { DEFAULT_BUCKET } else { bucket };
        if !is_bucket(name) {
            return Err(Trouble::Guest(Error::NoSuchStore));
        }
        let path = BucketPath { namespace: granted.namespace(self.caller), bucket: name.to_owned() };
        Ok(Place { store: Arc::clone(granted.store()), bounds: granted.bounds(), path })
    }

    /// Keeps the file open from here to the end of the call. Waits aside where it is closed, or
    /// another process has it.
    async fn enter(&mut self, store: &Arc<Store>) -> Result<(), Trouble> {
        if !self.session.is_open() {
            let own = Arc::clone(store);
            let visit = aside(move || own.enter()).await?;
            self.session.entered(store, visit);
        }
        Ok(())
    }

    /// Reads on this thread where the read is short and waits for nobody, else aside.
    async fn read<T: Send + 'static>(
        &mut self,
        place: Place,
        short: bool,
        read: impl FnOnce(&Place, &Stop) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Trouble> {
        self.enter(&place.store).await?;
        let stop = Stop::default();
        if short && place.bounds.value_bytes <= VALUE_HERE_BYTES_MAX && place.store.is_open() {
            return Ok(read(&place, &stop)?);
        }
        let (_waiter, visit) = (stop.waiter(), self.session.visit());
        aside(move || {
            let _visit = visit;
            read(&place, &stop)
        })
        .await
    }

    /// Writes aside, when it is the call's turn, and remembers up to where.
    async fn write<T: Send + 'static>(
        &mut self,
        place: Place,
        write: impl FnOnce(&Place, Change<'_>) -> Result<(T, Mark), Refusal> + Send + 'static,
    ) -> Result<T, Trouble> {
        self.enter(&place.store).await?;
        let turn = place.store.turn().await;
        let stop = Stop::default();
        let (_waiter, visit) = (stop.waiter(), self.session.visit());
        let (value, mark) = aside(move || {
            let _until_it_ends = (turn, visit);
            write(&place, Change { place: &place.path, bounds: &place.bounds, stop: &stop })
        })
        .await?;
        self.session.wrote(mark);
        Ok(value)
    }
}

/// Does this on a thread that guests do not run on.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Trouble> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(Trouble::Trap(wasmtime::Error::new(error))),
    }
}

/// Letters, digits, and `.`, `_`, `-`: the usual form of a store's identifier elsewhere.
fn is_bucket(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=BUCKET_BYTES_MAX).contains(&name.len()) && name.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::{BUCKET_BYTES_MAX, is_bucket};

    #[test]
    fn bucket_names_have_a_form() {
        let longest = "b".repeat(BUCKET_BYTES_MAX);
        for name in ["a", "default", "Notes.2026-11_x", &longest] {
            assert!(is_bucket(name), "{name:?}");
        }
        let too_long = "b".repeat(BUCKET_BYTES_MAX + 1);
        for name in ["", " ", "a/b", "ü", "a\0", &too_long] {
            assert!(!is_bucket(name), "{name:?}");
        }
    }
}
