//! The current catalog, and earlier ones that calls still hold.
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use toolcell_mcp::{Host, Observer, ServedCatalog as _};
use toolcell_policy::LoginPolicy;

use super::journal::Journal;
use crate::catalog::{Catalog, Services};
use crate::identity::login::{LoginFinder, LoginTicket};
use crate::observing::requests::RequestCounters;
use crate::replicas::announcements::CatalogLists;
use crate::resources::folders::FolderWaker;

/// The current catalog.
pub struct Current {
    catalog: ArcSwap<Catalog>,
    /// Earlier catalogs. Dropped ones are removed at the next access.
    earlier: Mutex<Vec<Weak<Catalog>>>,
    /// What all generations share.
    pub(crate) services: Arc<Services>,
    /// Remembers reloads.
    pub(crate) journal: Journal,
    /// Counters of requests.
    pub requests: RequestCounters,
    /// Wakes the thread that watches folders.
    folders: OnceLock<FolderWaker>,
}

impl Host for Current {
    type Catalog = Catalog;

    fn snapshot(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    fn observer(&self) -> Option<&dyn Observer> {
        Some(&self.requests)
    }
}

impl LoginFinder for Current {
    fn of_ticket(&self, ticket: &LoginTicket) -> Option<Arc<LoginPolicy>> {
        let catalog = self.snapshot();
        let component = catalog.component(&ticket.component)?;
        let is_same = component.digest() == ticket.digest && component.policy_digest == ticket.policy_digest;
        let may_use = is_same && catalog.login_use().allows(&ticket.login, &ticket.caller);
        let mut logins = component.policy().grants().caller_logins().filter(|_| may_use);
        logins.find(|login| login.name() == ticket.login).cloned()
    }

    fn named(&self, login: &str) -> Option<Arc<LoginPolicy>> {
        self.snapshot().caller_logins().into_iter().find(|policy| policy.name() == login)
    }

    fn allows(&self, login: &str, caller: &str) -> bool {
        self.snapshot().login_use().allows(login, caller)
    }
}

impl Current {
    /// Starts with this catalog.
    pub fn new(catalog: Catalog) -> Self {
        let services = Arc::clone(&catalog.services);
        let catalog = Arc::new(catalog);
        services.serving.set(&catalog);
        Self {
            catalog: ArcSwap::new(catalog),
            earlier: Mutex::default(),
            requests: RequestCounters::new(services.traces.clone(), Arc::clone(&services.refusals)),
            journal: Journal::default(),
            services,
            folders: OnceLock::new(),
        }
    }

    /// From now on, a new catalog wakes this.
    pub fn wake(&self, folders: FolderWaker) {
        let _ = self.folders.set(folders);
    }

    /// Replaces the catalog; returns the old one.
    pub fn replace(&self, catalog: Arc<Catalog>) -> Arc<Catalog> {
        // Added before the swap, so that a concurrent reader of `held` does not miss it.
        let old = self.snapshot();
        let mut earlier = self.earlier.lock();
        earlier.retain(|catalog| catalog.strong_count() > 0);
        earlier.push(Arc::downgrade(&old));
        drop(earlier);
        self.services.serving.set(&catalog);
        self.catalog.store(catalog);
        self.folders.get().into_iter().for_each(FolderWaker::wake);
        old
    }

    /// Earlier catalogs that calls still hold, oldest first.
    pub fn held(&self) -> Vec<Arc<Catalog>> {
        let mut earlier = self.earlier.lock();
        earlier.retain(|catalog| catalog.strong_count() > 0);
        earlier.iter().filter_map(Weak::upgrade).collect()
    }

    /// True if this is the current catalog.
    pub fn serves(&self, catalog: &Arc<Catalog>) -> bool {
        Arc::ptr_eq(&self.catalog.load(), catalog)
    }

    /// Number of the current generation.
    pub fn generation(&self) -> u64 {
        self.catalog.load().tools().generation()
    }
}

impl CatalogLists for Catalog {
    /// A digest of the list with the rules for who sees which part.
    fn lists(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.tools().fingerprint().hash(&mut hasher);
        self.entries.iter().for_each(|entry| entry.called_by().hash(&mut hasher));
        hasher.finish()
    }

    fn is_narrowed(&self) -> bool {
        Self::is_narrowed(self)
    }
}
