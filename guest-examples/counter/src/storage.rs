//! Where counters are kept: the host's key-value store in a component, a map in tests. Holds nothing about counters.

use toolkit::Failure;

/// What the counters need of a store.
pub trait Storage {
    /// Adds to the number of a key, 0 without one, in one step: two calls at once both count.
    fn increment(&mut self, key: &str, by: u64) -> Result<u64, Failure>;
    /// The number of a key.
    fn get(&mut self, key: &str) -> Result<Option<u64>, Failure>;
    /// All keys with their numbers, in no particular order.
    fn all(&mut self) -> Result<Vec<(String, u64)>, Failure>;
    /// Forgets a key.
    fn delete(&mut self, key: &str) -> Result<(), Failure>;
}

/// The host's store.
#[cfg(target_arch = "wasm32")]
pub use host::HostStorage;

#[cfg(target_arch = "wasm32")]
mod host {
    use super::{Failure, Storage, number};
    use crate::bindings::wasi::keyvalue::store::{self, Bucket, Error};
    use crate::bindings::wasi::keyvalue::{atomics, batch};

    /// The bucket of the counters; a component may have several.
    const BUCKET: &str = "counters";

    /// The host's store, as the manifest grants it.
    pub struct HostStorage(Bucket);

    impl HostStorage {
        /// Opens it.
        ///
        /// # Errors
        /// [`Failure::Failed`] where the manifest does not grant it.
        pub fn open() -> Result<Self, Failure> {
            store::open(BUCKET).map(Self).map_err(failure)
        }
    }

    impl Storage for HostStorage {
        fn increment(&mut self, key: &str, by: u64) -> Result<u64, Failure> {
            atomics::increment(&self.0, key, by).map_err(failure)
        }

        fn get(&mut self, key: &str) -> Result<Option<u64>, Failure> {
            self.0.get(key).map_err(failure)?.map(|value| number(key, &value)).transpose()
        }

        fn all(&mut self) -> Result<Vec<(String, u64)>, Failure> {
            let mut all = Vec::new();
            let mut cursor = None;
            loop {
                let page = self.0.list_keys(cursor).map_err(failure)?;
                // All of a page in one question. What was deleted meanwhile is left out.
                for (key, value) in batch::get_many(&self.0, &page.keys).map_err(failure)?.into_iter().flatten() {
                    let value = number(&key, &value)?;
                    all.push((key, value));
                }
                cursor = page.cursor;
                if cursor.is_none() {
                    return Ok(all);
                }
            }
        }

        fn delete(&mut self, key: &str) -> Result<(), Failure> {
            self.0.delete(key).map_err(failure)
        }
    }

    fn failure(error: Error) -> Failure {
        Failure::Failed(match error {
            Error::AccessDenied => "this tool is not allowed to keep anything between calls".to_owned(),
            Error::NoSuchStore => format!("the host has no store for {BUCKET}"),
            // A quota that is used up, most likely: the host says so.
            Error::Other(text) => text,
        })
    }
}

/// The number that `increment` wrote, as text.
#[cfg_attr(
    not(any(test, target_arch = "wasm32")),
    expect(dead_code, reason = "there is no host's store outside a component")
)]
fn number(key: &str, value: &[u8]) -> Result<u64, Failure> {
    let text = std::str::from_utf8(value).ok();
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or_else(|| Failure::Failed(format!("what is kept as {key:?} is not a counter")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::number;

    #[test]
    fn a_number_is_decimal_text() {
        assert_eq!(number("k", b"18446744073709551615").unwrap(), u64::MAX);
        for value in [&b""[..], b"-1", b"x", b"18446744073709551616", &[0xff]] {
            assert_eq!(number("k", value).unwrap_err().message(), "what is kept as \"k\" is not a counter");
        }
    }
}
