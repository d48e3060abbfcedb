//! News of resources that a running call changes: what its guest says, and entries of its state.
//!
//! Only addresses of the call's own component are told. Past the rate, all resources of the
//! component count as changed: nothing is lost.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolcell_mcp::{ResourceNews, normal_uri};
use toolcell_shared::{Allowance, Pace};

use crate::catalog::DeclaredResources;
use crate::catalog::Services;

/// Changes that one call tells of at once, and then a second. No client hears of one address more
/// often than ten times a second; a call that fills a page of a list changes a hundred.
const TOLD_PER_SECOND: u64 = 100;

/// Entries of state that one operation changes. More of them are told as a change of any of the
/// component's: each is held against up to 64 rules.
const ENTRIES_MAX: usize = 256;

/// The news of one call.
pub struct Telling {
    services: Arc<Services>,
    resources: Arc<DeclaredResources>,
    component: String,
    caller: String,
    keeps_entries: bool,
    allowance: Mutex<Allowance>,
}

impl Telling {
    /// News of a call of this component's, by this caller.
    pub fn new(services: &Arc<Services>, resources: &Arc<DeclaredResources>, component: &str, caller: &str) -> Self {
        let keeps_entries = resources.entries_of(component).next().is_some();
        Self {
            services: Arc::clone(services),
            resources: Arc::clone(resources),
            component: component.to_owned(),
            caller: caller.to_owned(),
            keeps_entries,
            allowance: Mutex::new(Allowance::new(Pace::new(TOLD_PER_SECOND, Duration::from_secs(1)))),
        }
    }

    /// The guest says that what is read at this address has changed.
    pub fn updated(&self, uri: &str) {
        // Before it is looked up, which takes time in proportion to all templates.
        if !self.may_tell() {
            self.services.news.tell_of_all(&self.component, None);
            return;
        }
        let reads = self.resources.reader(uri).map(|(_, origin)| origin.component.name());
        if reads == Some(&self.component) {
            self.tell(None, [normal_uri(uri)]);
        }
    }

    /// True if entries of state are resources.
    pub fn notes_state(&self) -> bool {
        self.keeps_entries
    }

    /// Entries of a bucket have changed.
    pub fn state_changed(&self, bucket: &str, keys: &[String]) {
        for entries in self.resources.entries_of(&self.component) {
            let to = entries.is_per_caller().then(|| ResourceNews::to_caller(&self.caller));
            if !entries.is_of(bucket) {
                continue;
            }
            if keys.len() > ENTRIES_MAX || !self.may_tell() {
                self.services.news.tell_of_all(&self.component, to);
            } else {
                self.tell(to, keys.iter().filter_map(|key| entries.uri_of(key)));
            }
        }
    }

    fn may_tell(&self) -> bool {
        self.allowance.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now()).is_ok()
    }

    fn tell(&self, to: Option<String>, uris: impl IntoIterator<Item = String>) {
        // No number tells these states apart.
        let updated = uris.into_iter().map(|uri| (uri, 0)).collect();
        self.services.news.tell(&self.component, ResourceNews { to, updated, ..ResourceNews::default() });
    }
}
