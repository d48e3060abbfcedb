//! Resources that tools embed in results, kept on the server that replicas share.
use std::time::Duration;

use toolcell_mcp::store::{ResourceStore, StoreAway, StoreHolder, StoredResource, Storing};
use toolcell_shared::{Away, Shelf, Shelved};

/// The shelf as the protocol knows it.
pub struct SharedResources(Shelf);

impl SharedResources {
    pub fn new(shelf: Shelf) -> Self {
        Self(shelf)
    }
}

impl ResourceStore for SharedResources {
    fn keep<'r>(&'r self, holder: &'r StoreHolder, resources: Vec<StoredResource>, time: Duration) -> Storing<'r, ()> {
        Box::pin(async move {
            let shelved: Vec<Shelved<'_>> = resources.iter().map(shelved).collect();
            self.0.keep(&holder.caller, &holder.holder, &shelved, time).await.map_err(|away| {
                tracing::warn!("what a tool embedded in its result cannot be read again: {}", away.internal());
                StoreAway
            })
        })
    }

    fn list<'r>(&'r self, holder: &'r StoreHolder, after: u64, most: usize) -> Storing<'r, Vec<(u64, Vec<u8>)>> {
        Box::pin(async move { self.0.list(&holder.holder, after, most).await.map_err(is_away) })
    }

    fn find<'r>(&'r self, holder: &'r StoreHolder, uri: &'r str) -> Storing<'r, Option<Vec<u8>>> {
        Box::pin(async move { self.0.find(&holder.holder, uri).await.map_err(is_away) })
    }

    fn forget<'r>(&'r self, holder: &'r StoreHolder) -> Storing<'r, ()> {
        Box::pin(async move { self.0.forget(&holder.holder).await.map_err(is_away) })
    }
}

fn shelved(kept: &StoredResource) -> Shelved<'_> {
    Shelved { origin: &kept.origin, uri: &kept.uri, label: &kept.label, body: &kept.body }
}

/// The operator knows from the shared state itself.
fn is_away(_: Away) -> StoreAway {
    StoreAway
}
