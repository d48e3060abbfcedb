//! Where cards are kept: the host's key-value store in a component, a map in tests. Holds nothing about what they say.

use std::collections::BTreeMap;

use crate::bindings::toolcell::mcp::types::Failure;
use crate::card::Card;

/// What is needed of a store.
pub trait Shelf {
    /// All cards by the paths of their documents.
    fn all(&self) -> Result<BTreeMap<String, Card>, Failure>;
    /// One card.
    fn get(&self, path: &str) -> Result<Option<Card>, Failure>;
    /// Keeps a card.
    fn put(&mut self, path: &str, card: &Card) -> Result<(), Failure>;
    /// Forgets a card.
    fn remove(&mut self, path: &str) -> Result<(), Failure>;
}

/// The host's store, as the manifest grants it.
#[cfg(target_arch = "wasm32")]
pub fn open() -> Result<impl Shelf, Failure> {
    host::HostShelf::open()
}

/// Outside a component there is no host to keep anything.
#[cfg(not(target_arch = "wasm32"))]
pub fn open() -> Result<memory::MemoryShelf, Failure> {
    Err(Failure::Failed("there is no host".to_owned()))
}

#[cfg(target_arch = "wasm32")]
mod host {
    use std::collections::BTreeMap;

    use super::{Failure, Shelf};
    use crate::bindings::wasi::keyvalue::batch;
    use crate::bindings::wasi::keyvalue::store::{self, Bucket, Error};
    use crate::card::Card;

    /// The bucket of the cards.
    const BUCKET: &str = "cards";

    pub struct HostShelf(Bucket);

    impl HostShelf {
        pub fn open() -> Result<Self, Failure> {
            store::open(BUCKET).map(Self).map_err(failure)
        }
    }

    impl Shelf for HostShelf {
        fn all(&self) -> Result<BTreeMap<String, Card>, Failure> {
            let mut all = BTreeMap::new();
            let mut cursor = None;
            loop {
                let page = self.0.list_keys(cursor).map_err(failure)?;
                // All of a page in one question. What was removed meanwhile is left out.
                let kept = batch::get_many(&self.0, &page.keys).map_err(failure)?.into_iter().flatten();
                all.extend(kept.filter_map(|(path, card)| Some((path, read(&card)?))));
                cursor = page.cursor;
                if cursor.is_none() {
                    return Ok(all);
                }
            }
        }

        fn get(&self, path: &str) -> Result<Option<Card>, Failure> {
            Ok(self.0.get(path).map_err(failure)?.as_deref().and_then(read))
        }

        fn put(&mut self, path: &str, card: &Card) -> Result<(), Failure> {
            let card = serde_json::to_vec(card).map_err(|error| Failure::Failed(error.to_string()))?;
            self.0.set(path, &card).map_err(failure)
        }

        fn remove(&mut self, path: &str) -> Result<(), Failure> {
            self.0.delete(path).map_err(failure)
        }
    }

    /// A card of an earlier version of this component may have another form: it is written anew.
    fn read(card: &[u8]) -> Option<Card> {
        serde_json::from_slice(card).ok()
    }

    fn failure(error: Error) -> Failure {
        Failure::Failed(match error {
            Error::AccessDenied => "the server's manifest lets this tool keep no cards".to_owned(),
            Error::NoSuchStore => format!("the host has no store for {BUCKET}"),
            Error::Other(why) => why,
        })
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub mod memory {
    use std::collections::BTreeMap;

    use super::{Failure, Shelf};
    use crate::card::Card;

    /// Cards in memory, for tests.
    #[derive(Default)]
    pub struct MemoryShelf(pub BTreeMap<String, Card>);

    impl Shelf for MemoryShelf {
        fn all(&self) -> Result<BTreeMap<String, Card>, Failure> {
            Ok(self.0.clone())
        }

        fn get(&self, path: &str) -> Result<Option<Card>, Failure> {
            Ok(self.0.get(path).cloned())
        }

        fn put(&mut self, path: &str, card: &Card) -> Result<(), Failure> {
            self.0.insert(path.to_owned(), card.clone());
            Ok(())
        }

        fn remove(&mut self, path: &str) -> Result<(), Failure> {
            self.0.remove(path);
            Ok(())
        }
    }
}
