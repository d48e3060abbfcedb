//! The server: its identity, the limits of its connections, and its listeners for a new catalog.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use toolcell_shared::{Shelf, Tasks};

use crate::caller::Caller;
use crate::connection::{ClientConnection, ServerEvents};
use crate::content::ContentIcon;
use crate::declared::DeclaredResource;
use crate::frame::{Object, json_text, push_number};
use crate::host::{Executor, Host, Outbox, ServedCatalog};
use crate::lock::lock;
use crate::method::Feature;
use crate::news::{NewsCarrier, ResourceNews, WatchCounts};
use crate::resources::KeptResources;
use crate::revision::{Revision, push_implementation};
use crate::sealing::StateKey;
use crate::task::{EXTENSION, TaskHub, TaskOptions};
use crate::tool::{ListedEntries, ToolList};

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
    pub icons: Vec<ContentIcon>,
    /// Advice for the model on using the tools together.
    pub instructions: Option<String>,
}

/// The options of the server. Every limit is per connection.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Tools on one page of `tools/list`. 500: one page for nearly every server, since some clients
    /// read only one.
    pub page_size: usize,
    /// Most calls running at once. 64: keeps every core busy; more only wait in memory.
    pub in_flight_max: usize,
    /// Most calls read but not yet begun. 1,024: `cancelled` and `ping` behind them still get
    /// through.
    pub pending_calls_max: usize,
    /// Most bytes of calls read but not yet begun. 16 MiB: one frame of the greatest length.
    pub pending_bytes_max: usize,
    /// Most `subscriptions/listen` open at once over stdio. 32: clients need one. Over HTTP each is
    /// a stream of its own, and counts as one.
    pub listens_max: usize,
    /// Most resources that a legacy session or a `subscriptions/listen` watches. 256: more than a
    /// person has open.
    pub watched_max: usize,
    /// Most resources that all sessions and subscriptions of one caller watch. 4,096: sixteen times
    /// as many.
    pub caller_watched_max: usize,
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
            watched_max: 256,
            caller_watched_max: 4_096,
            state_key: StateKey::random(),
        }
    }
}

/// One MCP server, shared by all its connections.
pub struct McpServer<H: Host> {
    pub(crate) host: Arc<H>,
    pub(crate) info: ServerInfo,
    pub(crate) options: ServerOptions,
    pub(crate) identity: String,
    /// The resources that tools embedded in their results.
    pub(crate) resources: KeptResources,
    /// Keeps them for all replicas instead, if there are several.
    pub(crate) store: OnceLock<Arc<Shelf>>,
    /// The number of resources that each caller watches.
    pub(crate) watches: Arc<WatchCounts>,
    /// Carries changes of resources to all replicas.
    carrier: OnceLock<Arc<dyn NewsCarrier>>,
    /// A random number that identifies the process.
    pub(crate) process: u64,
    /// Number of lasting connections so far.
    connections: AtomicU64,
    listeners: Mutex<Listeners>,
    /// The tasks that run here, and the table of all.
    pub(crate) tasks: TaskHub,
    /// What the replaced catalogs offered.
    offered: OfferedFeatures,
}

/// A set of features that only grows.
#[derive(Default)]
struct OfferedFeatures(AtomicU8);

impl OfferedFeatures {
    fn add(&self, feature: Feature) {
        self.0.fetch_or(Self::bit(feature), Ordering::Relaxed);
    }

    fn has(&self, feature: Feature) -> bool {
        self.0.load(Ordering::Relaxed) & Self::bit(feature) != 0
    }

    const fn bit(feature: Feature) -> u8 {
        1 << feature as u8
    }
}

/// The listeners for a new catalog.
#[derive(Default)]
struct Listeners {
    held: Vec<Weak<dyn ServerEvents>>,
    /// The number of listeners at which dead ones are removed.
    swept_at: usize,
}

/// The two views that were compared. Keeping them prevents other lists from getting their
/// addresses.
type Compared = ((Option<Arc<ToolList>>, Option<Arc<ToolList>>), ListChanges);

/// The revisions whose clients see a difference, for each list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListChanges {
    pub(crate) tools: Vec<Revision>,
    pub(crate) prompts: Vec<Revision>,
}

/// The features that a catalog offers besides tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offers {
    pub(crate) resources: bool,
    pub(crate) prompts: bool,
    pub(crate) completions: bool,
    pub(crate) tasks: bool,
    /// True if the caller's tasks can be listed.
    pub(crate) lists_tasks: bool,
    pub(crate) skills: bool,
    pub(crate) apps: bool,
}

/// The lowest number of listeners at which dead ones are removed.
const SWEPT_AT_LEAST: usize = 16;

impl<H: Host> McpServer<H> {
    /// Makes a server for this host.
    #[must_use]
    pub fn new(host: Arc<H>, info: ServerInfo, options: ServerOptions) -> Self {
        let identity = json_text(|out| push_implementation(out, &info, Revision::V2026_07_28.features()));
        // The standard library seeds its hashers with random numbers.
        let process = RandomState::new().build_hasher().finish();
        Self {
            host,
            info,
            options,
            identity,
            resources: KeptResources::default(),
            store: OnceLock::new(),
            watches: Arc::default(),
            carrier: OnceLock::new(),
            process,
            connections: AtomicU64::new(0),
            listeners: Mutex::default(),
            tasks: TaskHub::default(),
            offered: OfferedFeatures::default(),
        }
    }

    /// From now on, resources are kept there for clients that other replicas also answer.
    pub fn keep_resources_in(&self, store: Arc<Shelf>) {
        let _ = self.store.set(store);
    }

    /// From now on, calls may become tasks, which are kept there.
    pub fn keep_tasks_in(&self, store: Arc<dyn Tasks>, options: TaskOptions) {
        self.tasks.keep_in(store, options);
    }

    /// True if the catalog offers this feature now, as clients are told.
    pub(crate) fn offers(&self, feature: Feature, catalog: &H::Catalog) -> bool {
        match feature {
            Feature::Resources => catalog.offers_resources(),
            Feature::Prompts => catalog.offers_prompts(),
            Feature::Completions => catalog.offers_completions(),
            Feature::Tasks => self.tasks.kept().is_some() && catalog.tools().has_tasks(),
            Feature::Skills => catalog.offers_skills(),
        }
    }

    /// True if the methods of this feature exist.
    ///
    /// They outlast the last entry: after `list_changed` a client asks for the list, which is empty
    /// then. Tasks outlast their tools, and this process.
    pub(crate) fn has_methods(&self, feature: Feature, catalog: &H::Catalog) -> bool {
        let keeps_tasks = feature == Feature::Tasks && self.tasks.kept().is_some();
        keeps_tasks || self.offered.has(feature) || self.offers(feature, catalog)
    }

    /// Notes what a catalog offered that has been replaced.
    fn note_offers(&self, old: &H::Catalog) {
        let offered = Feature::ALL.into_iter().filter(|feature| self.offers(*feature, old));
        offered.for_each(|feature| self.offered.add(feature));
    }

    /// Makes whoever runs, awaits or watches a task check it again. `None`: any task may have
    /// changed.
    pub async fn task_changed(&self, id: Option<&str>) {
        self.tasks.wake(id);
        let (Some(id), Some((store, options))) = (id, self.tasks.kept()) else { return };
        let watching = self.listening().into_iter();
        let watching: Vec<_> = watching.filter_map(|listener| Some((listener.watcher_of(id)?, listener))).collect();
        for (caller, listener) in watching {
            // A client that cannot be notified now will poll.
            if let Ok(Some(task)) = store.find(caller.name(), id).await {
                listener.task_changed(&task, options);
            }
        }
    }

    /// Cancels all tasks that run in this process. Call it when the process ends.
    pub fn end_tasks(&self) {
        self.tasks.cancel_all();
    }

    /// From now on, changes of resources go there, and come back through
    /// [`resources_changed`](Self::resources_changed).
    pub fn carry_news_by(&self, carrier: Arc<dyn NewsCarrier>) {
        let _ = self.carrier.set(carrier);
    }

    /// Notifies everybody who watches these resources, at every replica.
    pub fn publish(&self, news: ResourceNews) {
        match self.carrier.get() {
            _ if news.is_empty() => {}
            Some(carrier) => carrier.carry(news),
            None => {
                self.resources_changed(&news);
            }
        }
    }

    /// Notifies the clients of this process of changed resources. Returns true if some read too
    /// slowly to be notified of all. An empty change retries those.
    pub fn resources_changed(&self, news: &ResourceNews) -> bool {
        let listeners = self.listening();
        listeners.iter().filter(|listener| listener.resources_changed(news)).count() > 0
    }

    /// The number of a new lasting connection.
    pub(crate) fn number(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }

    /// Opens a connection of [`Caller::local`], such as one stdio process. Frames for the client go
    /// to `outbox`, calls run on `executor`.
    pub fn connect(self: &Arc<Self>, outbox: Arc<dyn Outbox>, executor: Arc<dyn Executor>) -> ClientConnection<H> {
        ClientConnection::open(Arc::clone(self), Caller::local(), outbox, executor).listening()
    }

    /// Registers a listener for new catalogs.
    pub(crate) fn enter(&self, listener: Weak<dyn ServerEvents>) {
        let mut listeners = lock(&self.listeners);
        if listeners.held.len() >= listeners.swept_at.max(SWEPT_AT_LEAST) {
            listeners.held.retain(|listener| listener.strong_count() > 0);
            listeners.swept_at = listeners.held.len() * 2;
        }
        listeners.held.push(listener);
    }

    /// Announces a changed catalog whose callers may see different parts of the list: each listener
    /// is notified of differences in its own part. Returns true if clients of any revision see one
    /// in the whole list, or any client was notified.
    pub fn catalog_replaced(&self, old: &H::Catalog, new: &H::Catalog) -> bool {
        self.tell_of_resources(old, new, true);
        self.catalog_replaced_by(old, new, None)
    }

    /// Announces a changed catalog together with other replicas. `lists` identifies the change on
    /// all of them, so that a client is notified only once.
    pub fn catalog_replaced_by(&self, old: &H::Catalog, new: &H::Catalog, lists: Option<u64>) -> bool {
        self.note_offers(old);
        if !old.tells_callers_apart() && !new.tells_callers_apart() {
            let changes = ListChanges::between(old.tools(), new.tools());
            let differs = !changes.is_none();
            if differs {
                self.notify(&|_| changes.clone(), lists);
            }
            return differs;
        }
        // Many callers see the same parts, so each pair is compared only once.
        let compared: Mutex<HashMap<[usize; 2], Compared>> = Mutex::default();
        let differs = AtomicBool::new(old.tools().fingerprint() != new.tools().fingerprint());
        self.notify(
            &|caller| {
                let views = (old.view(caller), new.view(caller));
                let was = views.0.as_deref().unwrap_or(old.tools());
                let is = views.1.as_deref().unwrap_or(new.tools());
                let key = [was, is].map(|list| std::ptr::from_ref(list).addr());
                let mut compared = lock(&compared);
                if let Some((_, changes)) = compared.get(&key) {
                    return changes.clone();
                }
                let changes = ListChanges::between(was, is);
                differs.fetch_or(!changes.is_none(), Ordering::Relaxed);
                compared.insert(key, (views, changes.clone()));
                changes
            },
            lists,
        );
        differs.into_inner()
    }

    /// Announces changed resources, and addresses that are now read from something else, if several
    /// replicas replace their catalogs. Each announces that the list may have changed.
    pub fn resources_replaced_by(&self, old: &H::Catalog, new: &H::Catalog) {
        self.note_offers(old);
        let list = old.resources() != new.resources();
        self.tell_of_resources(old, new, false);
        self.publish(ResourceNews { list, ..ResourceNews::default() });
    }

    fn tell_of_resources(&self, old: &H::Catalog, new: &H::Catalog, lists: bool) {
        fn seen<'c, C: ServedCatalog>(catalog: &'c C, caller: &Caller) -> Vec<&'c DeclaredResource> {
            let view = catalog.view(caller);
            let tools = view.as_deref().unwrap_or_else(|| catalog.tools());
            catalog.resources().iter().filter(|declared| declared.is_seen_with(tools)).collect()
        }
        let may_differ = old.resources() != new.resources() || old.tells_callers_apart() || new.tells_callers_apart();
        let list_differs = |caller: &Caller| lists && may_differ && seen(old, caller) != seen(new, caller);
        let has_changed = |uri: &str| old.reads_with(uri) != new.reads_with(uri);
        for listener in self.listening() {
            listener.resources_replaced(&list_differs, &has_changed);
        }
    }

    fn listening(&self) -> Vec<Arc<dyn ServerEvents>> {
        let listeners = lock(&self.listeners);
        listeners.held.iter().filter_map(Weak::upgrade).collect()
    }

    /// Announces a changed catalog to everybody, without knowing the difference. `lists` identifies
    /// the change, as in [`catalog_replaced_by`](Self::catalog_replaced_by).
    pub fn catalog_changed(&self, lists: Option<u64>) {
        let has_prompts = self.has_methods(Feature::Prompts, &self.host.snapshot());
        let prompts = if has_prompts { Revision::ALL.to_vec() } else { Vec::new() };
        let changes = ListChanges { tools: Revision::ALL.to_vec(), prompts };
        self.notify(&|_| changes.clone(), lists);
    }

    fn notify(&self, seen_by: &dyn Fn(&Caller) -> ListChanges, lists: Option<u64>) {
        for listener in self.listening() {
            listener.lists_changed(seen_by, lists);
        }
    }

    /// Appends the result of `initialize`.
    pub(crate) fn push_initialized(&self, out: &mut Vec<u8>, revision: Revision, offers: Offers) {
        let mut result = Object::open(out);
        result.text("protocolVersion", revision.name());
        push_capabilities(result.key("capabilities"), offers, revision);
        push_implementation(result.key("serverInfo"), &self.info, revision.features());
        result.text_if("instructions", self.info.instructions.as_deref());
    }

    /// Appends the result of `server/discover`.
    pub(crate) fn push_discovered(&self, out: &mut Vec<u8>, offers: Offers) {
        let mut result = Object::open(out);
        result.text("resultType", "complete");
        result.json("supportedVersions", &Revision::ALL.map(Revision::name));
        push_capabilities(result.key("capabilities"), offers, Revision::V2026_07_28);
        result.text_if("instructions", self.info.instructions.as_deref());
        // A reload may add resources, and a restart may change the title and the instructions.
        push_number(result.key("ttlMs"), 0);
        result.text("cacheScope", "public");
        Object::open(result.key("_meta")).raw(crate::meta::SERVER_INFO, &self.identity);
    }
}

impl ListChanges {
    /// The differences of one list from another.
    fn between(old: &ToolList, new: &ToolList) -> Self {
        let differing = |listed| {
            // Other revisions see at most what the newest sees, except for tools that run as tasks.
            let same = |revision| old.same_in(new, listed, revision);
            if same(Revision::V2026_07_28) && (!(old.has_tasks() || new.has_tasks()) || same(Revision::V2025_11_25)) {
                return Vec::new();
            }
            Revision::ALL.into_iter().filter(|revision| !old.same_in(new, listed, *revision)).collect()
        };
        Self { tools: differing(ListedEntries::Tools), prompts: differing(ListedEntries::Prompts) }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.tools.is_empty() && self.prompts.is_empty()
    }
}

const fn member(offered: bool, text: &str) -> &str {
    if offered { text } else { "" }
}

/// The offered extensions of a revision, as a member followed by a comma.
fn extensions(offers: Offers, revision: Revision) -> String {
    let tasks = offers.tasks && revision.is_modern();
    let offered = [
        (offers.skills, "io.modelcontextprotocol/skills", r#"{"directoryRead":true}"#),
        (tasks, EXTENSION, "{}"),
        (offers.apps, "io.modelcontextprotocol/ui", "{}"),
    ];
    let offered = offered.into_iter().filter(|(offered, ..)| *offered);
    let members: Vec<String> = offered.map(|(_, name, settings)| format!("\"{name}\":{settings}")).collect();
    if members.is_empty() { String::new() } else { format!("\"extensions\":{{{}}},", members.join(",")) }
}

fn push_capabilities(out: &mut Vec<u8>, offers: Offers, revision: Revision) {
    let legacy_tasks = match offers.lists_tasks {
        true => ",\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}",
        false => ",\"tasks\":{\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}",
    };
    let has_legacy_tasks = offers.tasks && revision.features().tasks && !revision.is_modern();
    out.push(b'{');
    for text in [
        member(offers.completions, "\"completions\":{},"),
        &extensions(offers, revision),
        "\"logging\":{},",
        member(offers.prompts, "\"prompts\":{\"listChanged\":true},"),
        member(offers.resources, "\"resources\":{\"listChanged\":true,\"subscribe\":true},"),
        "\"tools\":{\"listChanged\":true}",
        member(has_legacy_tasks, legacy_tasks),
    ] {
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b'}');
}
