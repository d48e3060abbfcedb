//! The catalog that is current, and those before it that calls still hold.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arc_swap::ArcSwap;
use toolcell_mcp::{Catalog as _, Host, Observer};

use crate::catalog::Catalog;
use crate::metrics::Requests;

/// The catalog that is current.
pub struct Current {
    catalog: ArcSwap<Catalog>,
    /// Those before it. What is gone is forgotten at the next look.
    earlier: Mutex<Vec<Weak<Catalog>>>,
    /// Who is told of requests.
    requests: Arc<Requests>,
}

impl Host for Current {
    type Catalog = Catalog;

    fn snapshot(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    fn observer(&self) -> Option<&dyn Observer> {
        Some(self.requests.as_ref())
    }
}

impl Current {
    /// The first one. Requests are told there.
    pub fn new(catalog: Catalog, requests: Requests) -> Self {
        let requests = Arc::new(requests);
        Self { catalog: ArcSwap::from_pointee(catalog), earlier: Mutex::default(), requests }
    }

    /// What is counted of requests.
    pub fn requests(&self) -> &Arc<Requests> {
        &self.requests
    }

    /// From now on, this one. Gives the one before.
    pub fn replace(&self, catalog: Arc<Catalog>) -> Arc<Catalog> {
        // Noted first: nobody who looks while it is swapped misses it.
        let old = self.snapshot();
        let mut earlier = self.earlier();
        earlier.retain(|catalog| catalog.strong_count() > 0);
        earlier.push(Arc::downgrade(&old));
        drop(earlier);
        self.catalog.store(catalog);
        old
    }

    /// The catalogs before it that calls still hold, the oldest first.
    pub fn held(&self) -> Vec<Arc<Catalog>> {
        let mut earlier = self.earlier();
        earlier.retain(|catalog| catalog.strong_count() > 0);
        earlier.iter().filter_map(Weak::upgrade).collect()
    }

    /// The number of the generation that is current.
    pub fn generation(&self) -> u64 {
        self.catalog.load().tools().generation()
    }

    fn earlier(&self) -> MutexGuard<'_, Vec<Weak<Catalog>>> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
