//! The server: what it says it is, how it bounds its connections, and whom it tells of a new catalog.

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

/// What the server says of itself (2026-07-28, `Implementation`).
#[derive(Clone, Debug, Default)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// Its version.
    pub version: String,
    /// What it is.
    pub description: Option<String>,
    /// Its page.
    pub website_url: Option<String>,
    /// Pictures for user interfaces.
    pub icons: Vec<Icon>,
    /// How a model should use it, all tools together.
    pub instructions: Option<String>,
}

/// How the server bounds its connections. Every bound is per connection.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Most tools on one page of `tools/list`. 500: one page for nearly everybody, as some clients read only one.
    pub page_size: usize,
    /// Most calls running at once. 64: keeps every core busy; more only wait in memory.
    pub in_flight_max: usize,
    /// Most calls read but not yet begun. 1,024: `cancelled` and `ping` behind them still get through.
    pub pending_calls_max: usize,
    /// Most bytes of calls read but not yet begun. 16 MiB: one frame of the greatest length.
    pub pending_bytes_max: usize,
    /// Most `subscriptions/listen` open at once. 32: clients need one.
    pub listens_max: usize,
    /// How long clients may take a list of tools for fresh. Zero: a component can be replaced at any moment.
    pub list_ttl: Duration,
    /// How long clients may take `server/discover` for fresh. An hour: it changes only with the program.
    pub discover_ttl: Duration,
    /// The level of log messages sent to a legacy client that has not called `logging/setLevel`; the
    /// protocol leaves it to the server. Info. `None`: none before it asks.
    pub legacy_log_level: Option<LogLevel>,
    /// The key under which `requestState` is sealed. A new one for each process, unless several answer the same clients.
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
    /// What tools embedded in their results.
    pub(crate) resources: KeptResources,
    /// Connections so far that last longer than a request.
    connections: AtomicU64,
    listeners: Mutex<Listeners>,
}

/// Who is told of a new catalog.
#[derive(Default)]
struct Listeners {
    held: Vec<Weak<dyn Listener>>,
    /// How many there may be before those that are gone are looked for.
    swept_at: usize,
}

/// What two callers' views came to. The views are kept, so that no other list comes to lie where they are.
type Compared = ((Option<Arc<ToolList>>, Option<Arc<ToolList>>), Vec<Revision>);

/// How many listeners there are at least before those that are gone are looked for.
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

    /// A number that no other connection has.
    pub(crate) fn number(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }

    /// Opens a connection of [`Caller::local`], such as one stdio process. Frames for the client go to `outbox`, calls
    /// run on `executor`.
    pub fn connect(self: &Arc<Self>, outbox: Arc<dyn Outbox>, executor: Arc<dyn Executor>) -> Connection<H> {
        Connection::open(Arc::clone(self), Caller::local(), outbox, executor).listening()
    }

    /// Has this one be told of new catalogs.
    pub(crate) fn enter(&self, listener: Weak<dyn Listener>) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if listeners.held.len() >= listeners.swept_at.max(SWEPT_AT_LEAST) {
            listeners.held.retain(|listener| listener.strong_count() > 0);
            listeners.swept_at = listeners.held.len() * 2;
        }
        listeners.held.push(listener);
    }

    /// Tells every connection that asked, or whose era needs no asking, that the list of tools changed, where clients of
    /// its revision see a difference between the two. Call it once, after the host's snapshot was swapped. Gives whether
    /// clients of any revision see one.
    pub fn list_replaced(&self, old: &ToolList, new: &ToolList) -> bool {
        let revisions = differing(old, new);
        if revisions.is_empty() {
            return false;
        }
        self.tell(&|_| revisions.clone());
        true
    }

    /// The same where callers may see different parts of the list: each that asked is told of a difference in its own.
    /// Gives whether clients of any revision see one in the whole list, or somebody was told.
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

    /// The same where the difference is not known: everybody is told.
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
        // Only the caller may keep what depends on its rights (2026-07-28, "Cache Scope Field").
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
