//! What the generations of a server share.
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use toolcell_audit::{Outcome, Sink};
use toolcell_mcp::Executor;
use toolcell_policy::Manifest;
use toolcell_shared::{Embedded, SharedState};

use super::Catalog;
use super::caller_figures::FiguresByCaller;
use super::caller_queue::CallerQueues;
use super::calling_places::CallingPlaces;
use super::consents::Consents;
use crate::identity::login::CallerLogins;
use crate::observing::activity::Activity;
use crate::observing::alerts::Alerts;
use crate::observing::counts::Counts;
use crate::observing::log::{NoLog, OperatorLog};
use crate::observing::observation::Observation;
use crate::observing::refusals::Refusals;
use crate::observing::traces::Traces;
use crate::recordings::{OrderedRecordings, RecordingKeeper};
use crate::replicas::replicated_sets::ReplicatedSets;
use crate::replicas::updates::NewsDesk;
use crate::resources::folders::FileReads;
use crate::resources::kept_entries::EntryReads;
use crate::state::paused_runs::PausedRuns;

/// Outcomes that are counted: each tells an operator which limit to raise.
const TALLIED: [Outcome; 6] = [
    Outcome::OutOfFuel,
    Outcome::OutOfMemory,
    Outcome::Deadline,
    Outcome::LimitExceeded,
    Outcome::Busy,
    Outcome::RateLimited,
];

/// Made once at the start. Catalogs hold it by `Arc`.
pub struct Services {
    /// Runs the calls that tools make.
    pub executor: Arc<dyn Executor>,
    /// The audit.
    pub sink: Arc<Sink>,
    /// The log, whose level the manifest may set.
    pub log: Arc<dyn OperatorLog>,
    /// Number of calls started.
    pub calls: AtomicU64,
    /// Counts of outcomes.
    pub tally: Counts<Outcome, { TALLIED.len() }>,
    /// Records of denied attempts, if the operator asked for a file of them.
    pub observation: Option<Arc<Observation>>,
    pub traces: Option<Arc<Traces>>,
    /// Present if the manifest has alerts raised.
    pub alerts: Option<Arc<Alerts>>,
    /// Counts requests that were refused before they were calls.
    pub refusals: Arc<Refusals>,
    /// Calls as the console shows them; none if nobody could look.
    pub activity: Option<Arc<Activity>>,
    /// Consents of persons to requests that no rule allows.
    pub consents: Consents,
    /// State that is one for all replicas, or for this process alone.
    pub state: Arc<dyn SharedState>,
    /// The replicated sets, where replicas share state.
    pub replicated_sets: Option<Arc<ReplicatedSets>>,
    pub caller_queues: CallerQueues,
    /// Counters of each caller's calls.
    pub caller_figures: FiguresByCaller,
    /// Places of calls that may make calls.
    pub calling_places: CallingPlaces,
    /// Runs of such calls that wait for a person.
    pub paused: PausedRuns,
    /// Reads resources that are files.
    pub files: FileReads,
    /// Reads resources that are entries of tools' state.
    pub entries: EntryReads,
    /// Writes recordings that the manifest asks for; none where nobody is served.
    pub recordings: Option<Arc<RecordingKeeper>>,
    /// The next calls of tools, which operators have recorded.
    pub ordered_recordings: Arc<OrderedRecordings>,
    /// The logins of callers.
    pub logins: Arc<CallerLogins>,
    /// Takes news of resources that calls change.
    pub news: NewsDesk,
    /// The generation that serves.
    pub serving: ServingCatalog,
}

/// The generation that serves, for calls that tools make: their own may be an earlier one.
#[derive(Default)]
pub struct ServingCatalog(Mutex<Weak<Catalog>>);

impl ServingCatalog {
    /// From now on it is this one.
    pub fn set(&self, catalog: &Arc<Catalog>) {
        *self.0.lock() = Arc::downgrade(catalog);
    }

    /// `None` if nothing serves, as in a command that makes one call.
    pub fn get(&self) -> Option<Arc<Catalog>> {
        self.0.lock().upgrade()
    }
}

impl Services {
    /// With the logins that this manifest's callers have. Relative paths start from `folder`.
    #[must_use]
    pub fn with_logins(self, manifest: &Manifest, folder: &Path) -> Self {
        Self { logins: Arc::new(CallerLogins::of_manifest(manifest, folder)), ..self }
    }

    /// Those of a process whose calls nobody watches, with state of its own. Its sandbox processes
    /// run so many calls at once, each.
    pub fn new(sink: Arc<Sink>, runtime: &Handle, calls: usize) -> Self {
        Self {
            executor: Arc::new(runtime.clone()),
            refusals: Arc::new(Refusals::new(&sink, None)),
            ordered_recordings: OrderedRecordings::new(&sink),
            sink,
            log: Arc::new(NoLog),
            calls: AtomicU64::default(),
            tally: Counts::new(&TALLIED),
            observation: None,
            traces: None,
            alerts: None,
            activity: None,
            consents: Consents::default(),
            state: Arc::new(Embedded::default()),
            replicated_sets: None,
            caller_queues: CallerQueues::default(),
            caller_figures: FiguresByCaller::default(),
            calling_places: CallingPlaces::new(calls),
            paused: PausedRuns::in_memory(),
            files: FileReads::new(runtime.clone()),
            entries: EntryReads::new(runtime.clone()),
            recordings: None,
            logins: Arc::new(CallerLogins::new(Path::new("."), Path::new("."), None)),
            news: NewsDesk::default(),
            serving: ServingCatalog::default(),
        }
    }
}
