//! The host's side of `wasi:keyvalue`: what a guest calls, on the state that its tool was granted. No files, no quotas.
use std::sync::Arc;

use wasmtime::component::{HasSelf, Linker, Resource, ResourceTableError};

use super::bindings::wasi::keyvalue::store::{self, Error, KeyResponse};
use super::bindings::wasi::keyvalue::{atomics, batch};
use super::database::Mark;
use super::error::Refusal;
use super::store::{Bounds, Place, Store};
use crate::state::CallState;

/// Bytes of a bucket's name: as long as a component's or a tool's.
const BUCKET_BYTES_MAX: usize = 64;

/// Bytes of keys and values in one answer to a guest that asks for many: as much as the largest value there can be.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// The bucket of those who name none.
const DEFAULT_BUCKET: &str = "default";

/// A bucket that a guest opened.
pub struct Bucket {
    store: Arc<Store>,
    bounds: Bounds,
    place: Place,
}

/// What an operation ends with when it is not done.
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

/// `wasi:keyvalue/store`, `atomics` and `batch`.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    store::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::called)?;
    atomics::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::called)?;
    batch::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::called)
}

impl CallState {
    /// The bucket, with its file kept open from here to the end of the call.
    fn bucket(&mut self, bucket: &Resource<Bucket>) -> Result<&Bucket, Trouble> {
        if !self.keyvalue.is_open() {
            let store = Arc::clone(&self.table().get(bucket)?.store);
            self.keyvalue.enter(&store)?;
        }
        Ok(self.table().get(bucket)?)
    }

    /// Writes, and remembers up to where.
    fn written<T>(
        &mut self,
        bucket: &Resource<Bucket>,
        write: impl FnOnce(&Bucket) -> Result<(T, Mark), Refusal>,
    ) -> Result<T, Trouble> {
        let (value, mark) = write(self.bucket(bucket)?)?;
        self.keyvalue.wrote(mark);
        Ok(value)
    }
}

impl store::Host for CallState {
    /// Every name of the right form is a bucket; the empty one is that of [`DEFAULT_BUCKET`].
    async fn open(&mut self, identifier: String) -> Result<Resource<Bucket>, Trouble> {
        let reach = Arc::clone(self.reach());
        let granted = match (reach.grants().open_keyvalue(), reach.keyvalue()) {
            (Ok(_), Some(granted)) => granted,
            (Err(denial), _) => {
                self.deny(denial);
                return Err(Trouble::Guest(Error::AccessDenied));
            }
            (Ok(_), None) => return Err(Trouble::Guest(Error::AccessDenied)),
        };
        let name = if identifier.is_empty() { DEFAULT_BUCKET } else { identifier.as_str() };
        if !is_bucket(name) {
            return Err(Trouble::Guest(Error::NoSuchStore));
        }
        if !self.keyvalue.is_open() {
            let store = Arc::clone(granted.store());
            let entering = tokio::task::spawn_blocking(move || store.enter());
            let visit = entering.await.map_err(|error| Trouble::Trap(wasmtime::Error::new(error)))?;
            self.keyvalue.entered(granted.store(), visit?);
        }
        let place = Place { namespace: granted.namespace(self.caller.name()), bucket: name.to_owned() };
        let bucket = Bucket { store: Arc::clone(granted.store()), bounds: granted.bounds(), place };
        Ok(self.table().push(bucket)?)
    }

    fn convert_error(&mut self, trouble: Trouble) -> wasmtime::Result<Error> {
        match trouble {
            Trouble::Guest(error) => Ok(error),
            Trouble::Trap(error) => Err(error),
        }
    }
}

impl store::HostBucket for CallState {
    fn get(&mut self, bucket: Resource<Bucket>, key: String) -> Result<Option<Vec<u8>>, Trouble> {
        let bucket = self.bucket(&bucket)?;
        Ok(bucket.store.get(&bucket.place, &key)?)
    }

    fn set(&mut self, bucket: Resource<Bucket>, key: String, value: Vec<u8>) -> Result<(), Trouble> {
        batch::Host::set_many(self, bucket, vec![(key, value)])
    }

    fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> Result<(), Trouble> {
        batch::Host::delete_many(self, bucket, vec![key])
    }

    fn exists(&mut self, bucket: Resource<Bucket>, key: String) -> Result<bool, Trouble> {
        let bucket = self.bucket(&bucket)?;
        Ok(bucket.store.exists(&bucket.place, &key)?)
    }

    fn list_keys(&mut self, bucket: Resource<Bucket>, cursor: Option<u64>) -> Result<KeyResponse, Trouble> {
        let bucket = self.bucket(&bucket)?;
        let page = bucket.store.keys(&bucket.place, cursor)?;
        Ok(KeyResponse { keys: page.keys, cursor: page.cursor })
    }

    fn drop(&mut self, bucket: Resource<Bucket>) -> wasmtime::Result<()> {
        self.table().delete(bucket)?;
        Ok(())
    }
}

impl atomics::Host for CallState {
    fn increment(&mut self, bucket: Resource<Bucket>, key: String, delta: u64) -> Result<u64, Trouble> {
        self.written(&bucket, |bucket| bucket.store.increment(&bucket.place, &bucket.bounds, &key, delta))
    }
}

impl batch::Host for CallState {
    fn get_many(
        &mut self,
        bucket: Resource<Bucket>,
        keys: Vec<String>,
    ) -> Result<Vec<Option<(String, Vec<u8>)>>, Trouble> {
        let bucket = self.bucket(&bucket)?;
        // The same large value, asked for many times, would fill the host's memory.
        Ok(bucket.store.get_many(&bucket.place, keys, bucket.bounds.bytes.min(ANSWER_BYTES_MAX))?)
    }

    fn set_many(&mut self, bucket: Resource<Bucket>, pairs: Vec<(String, Vec<u8>)>) -> Result<(), Trouble> {
        self.written(&bucket, |bucket| Ok(((), bucket.store.set_many(&bucket.place, &bucket.bounds, &pairs)?)))
    }

    fn delete_many(&mut self, bucket: Resource<Bucket>, keys: Vec<String>) -> Result<(), Trouble> {
        self.written(&bucket, |bucket| Ok(((), bucket.store.delete_many(&bucket.place, &bucket.bounds, &keys)?)))
    }
}

/// Letters, digits, and `.`, `_`, `-`: what an identifier of a store looks like elsewhere.
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
