//! The server: its identity, the limits of its connections, and its listeners for a new catalog.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::asking::StateKey;
use crate::caller::Caller;
use crate::connection::{Connection, Listener};
use crate::content::Icon;
use crate::frame::{Object, push_json, push_number};
use crate::host::{Catalog as _, Executor, Host, Outbox};
use crate::meta::LogLevel;
use crate::resources::KeptResources;
use crate::revision::{Revision, push_implementation};
use crate::tool::ToolList;

/// The server's identity (2026-07-28, `Implementation`).
#[derive(Clone, Debug, Default)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// Its version.
    pub version: String,
    /// A description.
    pub description: Option<String>,
    /// Its page.
    pub website_url: Option<String>,
    /// Pictures for user interfaces.
    pub icons: Vec<Icon>,
    /// Advice for the model on using the tools together.
    pub instructions: Option<String>,
}

/// The options of the server. Every limit is per connection.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Most tools on one page of `tools/list`. 500: one page for nearly every server, as some
    /// clients read only one.
    pub page_size: usize,
    /// Most calls running at once. 64: keeps every core busy; more only wait in memory.
    pub in_flight_max: usize,
    /// Most calls read but not yet begun. 1,024: `cancelled` and `ping` behind them still get
    /// through.
    pub pending_calls_max: usize,
    /// Most bytes of calls read but not yet begun. 16 MiB: one frame of the greatest length.
    pub pending_bytes_max: usize,
    /// Most `subscriptions/listen` open at once. 32: clients need one.
    pub listens_max: usize,
    /// Time that clients may cache a list of tools. Zero: a component can be replaced at any
    /// moment.
    pub list_ttl: Duration,
    /// Time that clients may cache `server/discover`. An hour: it changes only with the program.
    pub discover_ttl: Duration,
    /// The least level of log messages for a legacy client that has not called `logging/setLevel`;
    /// the protocol leaves it to the server. Info. `None`: none before it asks.
    pub legacy_log_level: Option<LogLevel>,
    /// The key that seals `requestState`. A new one for each process, unless several answer the
    /// same clients.
    pub state_key: StateKey,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            page_size: 500,
            in_flight_max: 64,
            pending_calls_max: 1_024,
            pending_bytes_max: 16 * 1024 * 1024,
            listens_max: 32,
            list_ttl: Duration::ZERO,
            discover_ttl: Duration::from_secs(3_600),
            legacy_log_level: Some(LogLevel::Info),
            state_key: StateKey::random(),
        }
    }
}

/// One MCP server, shared by all its connections.
pub struct Server<H: Host> {
    pub(crate) host: Arc<H>,
    pub(crate) info: ServerInfo,
    pub(crate) options: ServerOptions,
    /// The server's identity as modern results carry it.
    pub(crate) identity: String,
    /// The resources that tools embedded in their results.
    pub(crate) resources: KeptResources,
    /// Connections so far that outlast a request.
    connections: AtomicU64,
    listeners: Mutex<Listeners>,
}

/// The listeners for a new catalog.
#[derive(Default)]
struct Listeners {
    held: Vec<Weak<dyn Listener>>,
    /// The number at which listeners that are gone are looked for.
    swept_at: usize,
}

/// The comparison of two callers' views. It keeps the views, so that no other list can get their
/// addresses.
type Compared = ((Option<Arc<ToolList>>, Option<Arc<ToolList>>), Vec<Revision>);

/// The least number of listeners at which those that are gone are looked for.
const SWEPT_AT_LEAST: usize = 16;

impl<H: Host> Server<H> {
    /// Makes a server for this host.
    #[must_use]
    pub fn new(host: Arc<H>, info: ServerInfo, options: ServerOptions) -> Self {
        let mut identity = Vec::new();
        push_implementation(&mut identity, &info, Revision::V2026_07_28.features());
        let identity = String::from_utf8_lossy(&identity).into_owned();
        let (resources, connections, listeners) = Default::default();
        Self { host, info, options, identity, resources, connections, listeners }
    }

    /// The number of a new lasting connection.
    pub(crate) fn number(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }

    /// Opens a connection of [`Caller::local`], such as one stdio process. Frames for the client go
    /// to `outbox`, calls run on `executor`.
    pub fn connect(self: &Arc<Self>, outbox: Arc<dyn Outbox>, executor: Arc<dyn Executor>) -> Connection<H> {
        Connection::open(Arc::clone(self), Caller::local(), outbox, executor).listening()
    }

    /// Registers a listener for new catalogs.
    pub(crate) fn enter(&self, listener: Weak<dyn Listener>) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if listeners.held.len() >= listeners.swept_at.max(SWEPT_AT_LEAST) {
            listeners.held.retain(|listener| listener.strong_count() > 0);
            listeners.swept_at = listeners.held.len() * 2;
        }
        listeners.held.push(listener);
    }

    /// Announces a changed list of tools to every connection that listens, if clients of its
    /// revision see a difference. Call it once, after the host's snapshot was swapped. Returns true
    /// if clients of any revision see one.
    pub fn list_replaced(&self, old: &ToolList, new: &ToolList) -> bool {
        let revisions = differing(old, new);
        if revisions.is_empty() {
            return false;
        }
        self.tell(&|_| revisions.clone());
        true
    }

    /// Announces a changed catalog whose callers may see different parts of the list: each listener
    /// is told of differences in its own part. Returns true if clients of any revision see one in
    /// the whole list, or anybody was told.
    pub fn catalog_replaced(&self, old: &H::Catalog, new: &H::Catalog) -> bool {
        if !old.tells_callers_apart() && !new.tells_callers_apart() {
            return self.list_replaced(old.tools(), new.tools());
        }
        // Many callers see the same parts: each pair is compared once.
        let compared: Mutex<HashMap<[usize; 2], Compared>> = Mutex::default();
        let differs = AtomicBool::new(!old.tools().same_listing(new.tools()));
        self.tell(&|caller| {
            let views = (old.view(caller), new.view(caller));
            let (was, is) = (views.0.as_deref().unwrap_or(old.tools()), views.1.as_deref().unwrap_or(new.tools()));
            let key = [was, is].map(|list| std::ptr::from_ref(list).addr());
            let mut compared = compared.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, revisions)) = compared.get(&key) {
                return revisions.clone();
            }
            let revisions = differing(was, is);
            differs.fetch_or(!revisions.is_empty(), Ordering::Relaxed);
            compared.insert(key, (views, revisions.clone()));
            revisions
        });
        differs.into_inner()
    }

    /// Announces a changed catalog to everybody, for an unknown difference.
    pub fn catalog_changed(&self) {
        self.tell(&|_| Revision::ALL.to_vec());
    }

    fn tell(&self, seen_by: &dyn Fn(&Caller) -> Vec<Revision>) {
        let listeners: Vec<_> = {
            let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.held.iter().filter_map(Weak::upgrade).collect()
        };
        for listener in listeners {
            listener.tools_changed(seen_by);
        }
    }

    /// Appends the result of `initialize`.
    pub(crate) fn push_initialized(&self, out: &mut Vec<u8>, revision: Revision, resources: bool) {
        let mut result = Object::open(out);
        result.text("protocolVersion", revision.name());
        push_capabilities(result.key("capabilities"), resources);
        push_implementation(result.key("serverInfo"), &self.info, revision.features());
        result.text_if("instructions", self.info.instructions.as_deref());
        result.close();
    }

    /// Appends the result of `server/discover`.
    pub(crate) fn push_discovered(&self, out: &mut Vec<u8>, resources: bool) {
        let mut result = Object::open(out);
        result.text("resultType", "complete");
        push_json(result.key("supportedVersions"), &Revision::ALL.map(Revision::name));
        push_capabilities(result.key("capabilities"), resources);
        result.text_if("instructions", self.info.instructions.as_deref());
        push_number(result.key("ttlMs"), self.options.discover_ttl.as_millis());
        result.text("cacheScope", "public");
        result.raw("_meta", &format!("{{\"{}\":{}}}", crate::meta::SERVER_INFO, self.identity));
        result.close();
    }

    /// Appends the caching hints of `tools/list`.
    pub(crate) fn push_list_caching(&self, result: &mut Object<'_>, private: bool) {
        push_number(result.key("ttlMs"), self.options.list_ttl.as_millis());
        // Only the caller may cache a list that depends on its rights (2026-07-28, "Cache Scope
        // Field").
        result.text("cacheScope", if private { "private" } else { "public" });
    }
}

/// The revisions whose clients see a difference.
fn differing(old: &ToolList, new: &ToolList) -> Vec<Revision> {
    // Other revisions see at most what the newest sees.
    if old.same_listing(new) {
        return Vec::new();
    }
    Revision::ALL.into_iter().filter(|revision| !old.same_listing_in(new, *revision)).collect()
}

fn push_capabilities(out: &mut Vec<u8>, resources: bool) {
    let resources = if resources { "\"resources\":{}," } else { "" };
    out.extend_from_slice(format!("{{\"logging\":{{}},{resources}\"tools\":{{\"listChanged\":true}}}}").as_bytes());
}
