//! `wasi:keyvalue` for a guest: its functions, its handles and its fuel.
use toolcell_wall::doors::blob::Blob;
use toolcell_wall::doors::state::{StateOperation, StateOutcome, UnfitOperation, check_count};
use wasmtime::component::{HasData, Linker, Resource, ResourceTable, ResourceTableError};

use super::bindings::wasi::keyvalue::store::{self, Error, KeyResponse};
use super::bindings::wasi::keyvalue::{atomics, batch};
use super::outside::OutsideState;
use crate::engine::fuel::HostFuel;

/// A bucket that a guest opened.
#[derive(Clone, Debug)]
pub struct Bucket {
    name: String,
}

/// Why an operation was not done.
#[derive(Debug)]
pub enum Trouble {
    /// The guest gets an error.
    Guest(Error),
    /// The call cannot go on.
    Trap(wasmtime::Error),
}

impl From<UnfitOperation> for Trouble {
    fn from(unfit: UnfitOperation) -> Self {
        Self::Guest(Error::Other(unfit.to_string()))
    }
}

impl From<ResourceTableError> for Trouble {
    fn from(error: ResourceTableError) -> Self {
        Self::Trap(error.into())
    }
}

/// The kept state of a call with the other parts of its store that the interface needs.
pub(crate) struct KeyvalueView<'a> {
    /// The state that the host keeps; `None` for a guest without a call.
    pub(crate) state: Option<&'a mut OutsideState>,
    pub(crate) table: &'a mut ResourceTable,
    pub(crate) fuel: &'a mut HostFuel,
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
    /// Does an operation on the bucket of this name.
    async fn perform(&mut self, bucket: &str, operation: StateOperation) -> Result<StateOutcome, Trouble> {
        match &mut self.state {
            Some(state) => state.perform(bucket, operation).await,
            None => Err(Trouble::Guest(Error::AccessDenied)),
        }
    }

    /// As [`KeyvalueView::perform`], on a bucket that the guest opened.
    async fn on(&mut self, bucket: &Resource<Bucket>, operation: StateOperation) -> Result<StateOutcome, Trouble> {
        let name = self.table.get(bucket)?.name.clone();
        self.perform(&name, operation).await
    }

    /// As [`KeyvalueView::on`], with fuel for a write.
    async fn write(
        &mut self,
        bucket: &Resource<Bucket>,
        cost: WriteCost,
        operation: StateOperation,
    ) -> Result<StateOutcome, Trouble> {
        self.fuel.spend(cost.fuel()).map_err(Trouble::Trap)?;
        self.on(bucket, operation).await
    }

    /// Takes fuel for a read. Past the budget, the next tick ends the call.
    fn spend_read(&mut self, bytes: usize) {
        let _ = self.fuel.spend((bytes as u64).saturating_mul(BYTE_FUEL));
    }
}

/// An outcome that does not belong to its operation.
fn mismatched() -> Trouble {
    Trouble::Trap(wasmtime::Error::msg("the state answered another operation"))
}

impl store::Host for KeyvalueView<'_> {
    async fn open(&mut self, identifier: String) -> Result<Resource<Bucket>, Trouble> {
        self.perform(&identifier, StateOperation::Open).await?;
        Ok(self.table.push(Bucket { name: identifier })?)
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
        let StateOutcome::Value(found) = self.on(&bucket, StateOperation::Get(key)).await? else {
            return Err(mismatched());
        };
        self.spend_read(found.as_ref().map_or(0, |value| value.0.len()));
        Ok(found.map(|value| value.0))
    }

    async fn set(&mut self, bucket: Resource<Bucket>, key: String, value: Vec<u8>) -> Result<(), Trouble> {
        batch::Host::set_many(self, bucket, vec![(key, value)]).await
    }

    async fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> Result<(), Trouble> {
        batch::Host::delete_many(self, bucket, vec![key]).await
    }

    async fn exists(&mut self, bucket: Resource<Bucket>, key: String) -> Result<bool, Trouble> {
        self.fuel.spend(READ_FUEL).map_err(Trouble::Trap)?;
        match self.on(&bucket, StateOperation::Exists(key)).await? {
            StateOutcome::Exists(found) => Ok(found),
            _ => Err(mismatched()),
        }
    }

    async fn list_keys(&mut self, bucket: Resource<Bucket>, cursor: Option<u64>) -> Result<KeyResponse, Trouble> {
        self.fuel.spend(READ_FUEL).map_err(Trouble::Trap)?;
        let page = self.on(&bucket, StateOperation::List(cursor)).await?;
        let StateOutcome::Page(keys, cursor) = page else { return Err(mismatched()) };
        // Past the budget, the next tick ends the call.
        let _ = self.fuel.spend((keys.len() as u64).saturating_mul(LIST_FUEL));
        Ok(KeyResponse { keys, cursor })
    }

    async fn drop(&mut self, bucket: Resource<Bucket>) -> wasmtime::Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl atomics::Host for KeyvalueView<'_> {
    async fn increment(&mut self, bucket: Resource<Bucket>, key: String, delta: u64) -> Result<u64, Trouble> {
        let cost = WriteCost { keys: 1, bytes: key.len() };
        match self.write(&bucket, cost, StateOperation::Add(key, delta)).await? {
            StateOutcome::Number(number) => Ok(number),
            _ => Err(mismatched()),
        }
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
        let found = self.on(&bucket, StateOperation::GetMany(keys)).await?;
        let StateOutcome::Values(found) = found else { return Err(mismatched()) };
        self.spend_read(found.iter().flatten().map(|(_, value)| value.0.len()).sum());
        Ok(found.into_iter().map(|pair| pair.map(|(key, Blob(value))| (key, value))).collect())
    }

    async fn set_many(&mut self, bucket: Resource<Bucket>, pairs: Vec<(String, Vec<u8>)>) -> Result<(), Trouble> {
        check_count(pairs.len())?;
        let bytes = pairs.iter().map(|(key, value)| key.len() + value.len()).sum();
        let cost = WriteCost { keys: pairs.len(), bytes };
        let pairs = pairs.into_iter().map(|(key, value)| (key, Blob(value))).collect();
        self.write(&bucket, cost, StateOperation::SetMany(pairs)).await.map(drop)
    }

    async fn delete_many(&mut self, bucket: Resource<Bucket>, keys: Vec<String>) -> Result<(), Trouble> {
        check_count(keys.len())?;
        let cost = WriteCost { keys: keys.len(), bytes: keys.iter().map(String::len).sum() };
        self.write(&bucket, cost, StateOperation::DeleteMany(keys)).await.map(drop)
    }
}
