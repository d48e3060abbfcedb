//! The host's side of `wasi:keyvalue`: the guest's functions, on the state that its tool was
//! granted. No files, no quotas.
use std::sync::Arc;

use toolcell_policy::Grants;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable, ResourceTableError};

use super::bindings::wasi::keyvalue::store::{self, Error, KeyResponse};
use super::bindings::wasi::keyvalue::{atomics, batch};
use super::database::Mark;
use super::error::Refusal;
use super::granted::GrantedState;
use super::session::Session;
use super::store::{Bounds, BucketPath, Change, Stop, Store, check_count};
use crate::caller::Caller;
use crate::caller::denials::Denials;
use crate::engine::duties;
use crate::engine::fuel::HostFuel;

/// Bytes of a bucket's name: as long as a component's or a tool's.
const BUCKET_BYTES_MAX: usize = 64;

/// Bytes of keys and values in one answer to a guest that asks for many: as much as the largest
/// value there can be.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// The bucket of guests that name none.
const DEFAULT_BUCKET: &str = "default";

/// A bucket that a guest opened.
#[derive(Clone)]
pub struct Bucket {
    store: Arc<Store>,
    bounds: Bounds,
    place: Arc<BucketPath>,
}

/// The end of an operation that was not done.
#[derive(Debug)]
pub enum Trouble {
    /// The guest is told.
    Guest(Error),
    /// The call cannot go on.
    Trap(wasmtime::Error),
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Fault(fault) => Self::Trap(fault.into()),
            other => Self::Guest(Error::Other(other.to_string())),
        }
    }
}

impl From<ResourceTableError> for Trouble {
    fn from(error: ResourceTableError) -> Self {
        Self::Trap(error.into())
    }
}

/// The kept state of a call with the other parts of its store that the interface needs.
pub(crate) struct KeyvalueView<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) table: &'a mut ResourceTable,
    pub(crate) fuel: &'a mut HostFuel,
    pub(crate) grants: &'a Grants,
    pub(crate) granted: Option<&'a GrantedState>,
    pub(crate) denials: &'a Denials,
    pub(crate) caller: &'a dyn Caller,
}

/// Marks [`KeyvalueView`] for the linker.
struct WasiKeyvalue;

impl HasData for WasiKeyvalue {
    type Data<'a> = KeyvalueView<'a>;
}

/// `wasi:keyvalue/store`, `atomics` and `batch`.
pub(crate) fn add_to_linker<T: Send + 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> KeyvalueView<'_>,
) -> wasmtime::Result<()> {
    store::add_to_linker::<T, WasiKeyvalue>(linker, view)?;
    atomics::add_to_linker::<T, WasiKeyvalue>(linker, view)?;
    batch::add_to_linker::<T, WasiKeyvalue>(linker, view)
}

/// Fuel of each key that is read, and of each that is written: about a guest's computing in the
/// same time (1.4 and 10 µs).
const READ_FUEL: u64 = 10_000;
const WRITE_FUEL: u64 = 80_000;

/// Fuel of each byte of a value that is read or written.
const BYTE_FUEL: u64 = 4;

/// Fuel of each key in a listing, which has no values.
const LIST_FUEL: u64 = 1_000;

/// Keys of one operation that are read without going aside: within a hundred microseconds.
const KEYS_HERE_MAX: usize = 16;

/// Bytes of a value up to which it is read without going aside.
const VALUE_HERE_BYTES_MAX: u64 = 1 << 20;

/// The size of a write: its keys, and the bytes of keys and values.
struct WriteCost {
    keys: usize,
    bytes: usize,
}

impl WriteCost {
    fn fuel(&self) -> u64 {
        let keys = (self.keys as u64).saturating_mul(WRITE_FUEL);
        keys.saturating_add((self.bytes as u64).saturating_mul(BYTE_FUEL))
    }
}

impl KeyvalueView<'_> {
    /// The bucket, with its file kept open from here to the end of the call. Work on it may take
    /// long, so the call leaves the protocol's threads.
    async fn bucket(&mut self, bucket: &Resource<Bucket>) -> Result<Bucket, Trouble> {
        duties::leave().await;
        let bucket = self.table.get(bucket)?.clone();
        self.enter(&bucket.store).await?;
        Ok(bucket)
    }

    /// Keeps the file open. Waits aside where it is closed, or another process has it.
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
        bucket: &Resource<Bucket>,
        short: bool,
        read: impl FnOnce(&Bucket, &Stop) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Trouble> {
        let bucket = self.bucket(bucket).await?;
        let stop = Stop::default();
        if short && bucket.bounds.value_bytes <= VALUE_HERE_BYTES_MAX && bucket.store.is_open() {
            return Ok(read(&bucket, &stop)?);
        }
        let (_waiter, visit) = (stop.waiter(), self.session.visit());
        aside(move || {
            let _visit = visit;
            read(&bucket, &stop)
        })
        .await
    }

    /// Writes aside, when it is the call's turn, and remembers up to where.
    async fn write<T: Send + 'static>(
        &mut self,
        bucket: &Resource<Bucket>,
        cost: WriteCost,
        write: impl FnOnce(&Bucket, Change<'_>) -> Result<(T, Mark), Refusal> + Send + 'static,
    ) -> Result<T, Trouble> {
        self.fuel.spend(cost.fuel()).map_err(Trouble::Trap)?;
        let bucket = self.bucket(bucket).await?;
        let turn = bucket.store.turn().await;
        let stop = Stop::default();
        let (_waiter, visit) = (stop.waiter(), self.session.visit());
        let (value, mark) = aside(move || {
            let _until_it_ends = (turn, visit);
            write(&bucket, Change { place: &bucket.place, bounds: &bucket.bounds, stop: &stop })
        })
        .await?;
        self.session.wrote(mark);
        Ok(value)
    }

    /// Takes fuel for a read. Past the budget, the next tick ends the call.
    fn spend_read(&mut self, bytes: usize) {
        let _ = self.fuel.spend((bytes as u64).saturating_mul(BYTE_FUEL));
    }
}

/// Does this on a thread that guests do not run on.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Trouble> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(Trouble::Trap(wasmtime::Error::new(error))),
    }
}

impl store::Host for KeyvalueView<'_> {
    /// Every name of the right form is a bucket; the empty one is that of [`DEFAULT_BUCKET`].
    async fn open(&mut self, identifier: String) -> Result<Resource<Bucket>, Trouble> {
        let granted = match (self.grants.open_keyvalue(), self.granted) {
            (Ok(_), Some(granted)) => granted,
            (Err(denial), _) => {
                self.denials.add(denial);
                return Err(Trouble::Guest(Error::AccessDenied));
            }
            (Ok(_), None) => return Err(Trouble::Guest(Error::AccessDenied)),
        };
        let name = if identifier.is_empty() { DEFAULT_BUCKET } else { identifier.as_str() };
        if !is_bucket(name) {
            return Err(Trouble::Guest(Error::NoSuchStore));
        }
        duties::leave().await;
        self.enter(granted.store()).await?;
        let place = BucketPath { namespace: granted.namespace(self.caller.name()), bucket: name.to_owned() };
        let bucket = Bucket { store: Arc::clone(granted.store()), bounds: granted.bounds(), place: Arc::new(place) };
        Ok(self.table.push(bucket)?)
    }

    fn convert_error(&mut self, trouble: Trouble) -> wasmtime::Result<Error> {
        match trouble {
            Trouble::Guest(error) => Ok(error),
            Trouble::Trap(error) => Err(error),
        }
    }
}

impl store::HostBucket for KeyvalueView<'_> {
    async fn get(&mut self, bucket: Resource<Bucket>, key: String) -> Result<Option<Vec<u8>>, Trouble> {
        self.fuel.spend(READ_FUEL).map_err(Trouble::Trap)?;
        let found = self.read(&bucket, true, move |bucket, _| bucket.store.get(&bucket.place, &key)).await?;
        self.spend_read(found.as_ref().map_or(0, Vec::len));
        Ok(found)
    }

    async fn set(&mut self, bucket: Resource<Bucket>, key: String, value: Vec<u8>) -> Result<(), Trouble> {
        batch::Host::set_many(self, bucket, vec![(key, value)]).await
    }

    async fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> Result<(), Trouble> {
        batch::Host::delete_many(self, bucket, vec![key]).await
    }

    async fn exists(&mut self, bucket: Resource<Bucket>, key: String) -> Result<bool, Trouble> {
        self.fuel.spend(READ_FUEL).map_err(Trouble::Trap)?;
        self.read(&bucket, true, move |bucket, _| bucket.store.exists(&bucket.place, &key)).await
    }

    async fn list_keys(&mut self, bucket: Resource<Bucket>, cursor: Option<u64>) -> Result<KeyResponse, Trouble> {
        self.fuel.spend(READ_FUEL).map_err(Trouble::Trap)?;
        let page = self.read(&bucket, true, move |bucket, _| bucket.store.keys(&bucket.place, cursor)).await?;
        // Past the budget, the next tick ends the call.
        let _ = self.fuel.spend((page.keys.len() as u64).saturating_mul(LIST_FUEL));
        Ok(KeyResponse { keys: page.keys, cursor: page.cursor })
    }

    async fn drop(&mut self, bucket: Resource<Bucket>) -> wasmtime::Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl atomics::Host for KeyvalueView<'_> {
    async fn increment(&mut self, bucket: Resource<Bucket>, key: String, delta: u64) -> Result<u64, Trouble> {
        self.write(&bucket, WriteCost { keys: 1, bytes: key.len() }, move |bucket, change| {
            bucket.store.add(change, &key, delta)
        })
        .await
    }
}

impl batch::Host for KeyvalueView<'_> {
    async fn get_many(
        &mut self,
        bucket: Resource<Bucket>,
        keys: Vec<String>,
    ) -> Result<Vec<Option<(String, Vec<u8>)>>, Trouble> {
        check_count(keys.len())?;
        self.fuel.spend((keys.len() as u64).saturating_mul(READ_FUEL)).map_err(Trouble::Trap)?;
        let short = keys.len() <= KEYS_HERE_MAX;
        let found = self.read(&bucket, short, move |bucket, stop| {
            // One large value, asked for many times, would fill the host's memory.
            let bytes_max = bucket.bounds.bytes.min(ANSWER_BYTES_MAX);
            bucket.store.get_all(&bucket.place, keys, bytes_max, stop)
        });
        let found = found.await?;
        self.spend_read(found.iter().flatten().map(|(_, value)| value.len()).sum());
        Ok(found)
    }

    async fn set_many(&mut self, bucket: Resource<Bucket>, pairs: Vec<(String, Vec<u8>)>) -> Result<(), Trouble> {
        check_count(pairs.len())?;
        let bytes = pairs.iter().map(|(key, value)| key.len() + value.len()).sum();
        let cost = WriteCost { keys: pairs.len(), bytes };
        let set = move |bucket: &Bucket, change: Change<'_>| Ok(((), bucket.store.set_all(change, &pairs)?));
        self.write(&bucket, cost, set).await
    }

    async fn delete_many(&mut self, bucket: Resource<Bucket>, keys: Vec<String>) -> Result<(), Trouble> {
        check_count(keys.len())?;
        let cost = WriteCost { keys: keys.len(), bytes: keys.iter().map(String::len).sum() };
        self.write(&bucket, cost, move |bucket, change| Ok(((), bucket.store.delete_all(change, &keys)?))).await
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
