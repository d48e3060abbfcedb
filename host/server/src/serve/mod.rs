//! A server, from an opened manifest to its end. Must not hold: command lines, terminals.
mod audit;
mod background;
mod identity;
mod memory;
mod operators;
mod transport;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use toolcell_audit::Sink;
use toolcell_mcp::Host as _;
use toolcell_mcp::stdio::{StdioEnd, StdioError};
use toolcell_policy::{ConsolePolicy, Manifest};
use toolcell_sandbox::SLOT_RESETS;
use toolcell_shared::{EmbeddedBus, Tasks as _};

use crate::catalog::{Catalog, folder_of};
use crate::dev::ProjectBuild;
use crate::error::{StartError, StepExt as _};
use crate::files::Watch;
use crate::files::file::plain;
use crate::http::HttpAddress;
use crate::identity::{Authenticator, TokenFile};
use crate::lock::{self, Lock};
use crate::machine::Machine;
use crate::machine::service_manager::ServiceManager;
use crate::machine::shell;
use crate::observing::activity::Activity;
use crate::observing::alerts::Alerts;
use crate::observing::log::{NoLog, OperatorLog};
use crate::observing::observation::Observation;
use crate::observing::refusals::{RefusalRecords, Refusals};
use crate::observing::requests::RequestCounters;
use crate::observing::traces::Traces;
use crate::open::{OpenedAs, Ready};
use crate::operators::console::{BoundConsole, Console, ConsoleAddress, Doorman, ServedConsole, Sources};
use crate::operators::control::ControlSocket;
use crate::operators::health::Health;
use crate::operators::metrics::{BoundPage, MetricSources, NamedTools, Page, ServedPage};
use crate::reload::{Current, Journal, Orders};
use crate::replicas::announcements::Announcements;
use crate::replicas::boards::Boards;
use crate::replicas::readiness::StateReach;
use crate::replicas::updates::Updates;
use crate::state::shared::{self, Shared};
use crate::state::tasks::KeptTasks;
use background::{Background, InitialState};
use memory::MemoryReturn;
use transport::Transport;

/// Time left for a guest's blocking operations once all calls are answered. Then the process ends
/// anyway.
const IO_ENDS_WITHIN: Duration = Duration::from_secs(1);

/// Options for serving a manifest.
#[derive(Default)]
pub struct ServerOptions {
    /// Transport of clients; stdin and stdout by default.
    pub transport: TransportOptions,
    /// True allows an address that other machines reach without asking callers for a token. False
    /// by default.
    pub insecure_public: bool,
    /// File for denied attempts; none by default.
    pub observe: Option<PathBuf>,
    /// Way to see changes of files.
    pub watch: Watch,
    /// Socket for `toolcell status` and other commands.
    pub control: ControlSocket,
    /// Address of the metrics page; the manifest's by default.
    pub metrics: Option<SocketAddr>,
    /// Address of the console; by default the manifest's, and none where it names none.
    pub console: Option<ConsoleAddress>,
    /// The program's log; none by default.
    pub log: Option<Arc<dyn OperatorLog>>,
    /// The project that is built beside the server; none by default.
    pub build: Option<ProjectBuild>,
    /// True if SIGTERM and SIGINT end the server, and SIGHUP reloads. False by default.
    pub signals: bool,
    /// Time at which reading the manifest began. Changes since then are applied once it serves.
    /// Now, by default.
    pub began: Option<SystemTime>,
}

/// Transport of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TransportOptions {
    /// Over stdin and stdout of the process.
    #[default]
    Stdio,
    /// Over HTTP.
    Http(HttpAddress),
}

/// The server of a manifest.
#[derive(Debug)]
pub struct Server;

/// A started server. It already reloads, and serves from [`Running::serve`] on.
pub struct Running {
    serving: Serving,
    transport: Transport,
    stop: Arc<dyn Fn() + Send + Sync>,
    orders: Orders,
    background: Background,
    metrics: Option<ServedPage>,
    console: Option<ServedConsole>,
}

/// The current catalog, and everything that observes the server.
struct Serving {
    opened: OpenedAs,
    machine: Machine,
    sink: Arc<Sink>,
    current: Arc<Current>,
    server: Arc<toolcell_mcp::McpServer<Current>>,
    /// Tells of changed lists where replicas share state.
    announcements: Option<Arc<Announcements>>,
    /// The boards of all replicas, where they share state.
    boards: Option<Arc<Boards>>,
    journal: Arc<Journal>,
    observed: ObservationFile,
    log: Arc<dyn OperatorLog>,
    traces: Option<Arc<Traces>>,
    tasks: Arc<KeptTasks>,
    refusals: (Arc<Refusals>, RefusalRecords),
    alerts: Option<Arc<Alerts>>,
    /// Views of calls, for the console and `toolcell top`; none if nobody could look.
    views: Option<Arc<Sources>>,
    /// Gives links into the console.
    doorman: Option<Arc<Doorman>>,
    health: Arc<Health>,
    ending: Arc<Ending>,
    _memory: MemoryReturn,
}

/// The end of the server, for the log and the service manager.
struct Ending {
    manager: ServiceManager,
    /// The signal that came first, and when.
    signal: OnceLock<(&'static str, Instant)>,
}

/// Records of denied attempts with their file, if the operator asked for one.
struct ObservationFile(Option<(Arc<Observation>, PathBuf)>);

impl Server {
    /// Binds the sockets, records the start, and watches the files of the opened manifest.
    ///
    /// # Errors
    /// The manifest, an option or the machine is at fault: see [`StartError`].
    pub fn start(ready: Ready, options: ServerOptions) -> Result<Running, StartError> {
        let began = options.began.unwrap_or_else(SystemTime::now);
        let log = options.log.clone().unwrap_or_else(|| Arc::new(NoLog));
        let Ready { opened, manifest, catalog, machine, sink, builder } = ready;
        audit::record_start(&sink, &opened, &catalog)?;
        for component in catalog.left_out() {
            tracing::error!("left out: {}", component.problem);
        }
        look_at_lock(&opened, &catalog, log.as_ref());
        raise_walls(&catalog, &machine, log.as_ref())?;
        let observed = ObservationFile::open(options.observe.clone())?;
        let mut transport = Transport::open(&opened.path, &options, &manifest, &machine)?;
        let traces = manifest.traces().map(|policy| Traces::start(policy, transport.name())).transpose()?;
        let shared = manifest.state().map(|policy| shared::open(policy, &folder_of(&opened.path))).transpose()?;
        let state_key = identity::state_key(&opened.path, &manifest)?;
        let mut state_reach = None;
        let (catalog, builder, replicas) = match shared.flatten().zip(state_key.clone()) {
            Some((Shared { state, bus, resources }, key)) => {
                state_reach = manifest.state().and_then(|policy| StateReach::of(policy, &state));
                transport.reach_replicas(&state, Arc::clone(&bus), &machine)?;
                let boards = Boards::start(key, Arc::clone(&state), Arc::clone(&bus), machine.runtime.handle());
                let boards =
                    boards.ok_or_else(|| StartError::refused("[state]: the machine gives no random numbers"))?;
                transport.share_revoked(&boards);
                catalog.knowing(&boards);
                machine.sandboxes.iter().for_each(|sandboxes| sandboxes.share_ends(&boards));
                (catalog.sharing(&state), builder.sharing(state), Some((bus, (boards, resources))))
            }
            None => (catalog, builder, None),
        };
        let health = Arc::new(Health::new(&sink, machine.sandboxes.as_ref(), state_reach));
        transport.ready_with(Arc::<Health>::clone(&health));
        let alerts = manifest
            .alerts()
            .map(|policy| Alerts::start(policy, &folder_of(&opened.path), &sink, machine.runtime.handle()))
            .transpose()?;
        let refusals = Arc::new(Refusals::new(&sink, alerts.clone()));
        transport.tell_refused(&refusals);
        let runtime = machine.runtime.handle();
        let folder = folder_of(&opened.path);
        let mut console = BoundConsole::open(options.console.as_ref(), manifest.console(), (&folder, runtime))?;
        let is_watched = console.is_some() || options.control != ControlSocket::Off;
        let activity = Some(activity(&manifest, console.as_ref(), began)?).filter(|_| is_watched);
        let boards = replicas.as_ref().map(|(_, (boards, _))| boards);
        let checks = operators::Checks { folder: &folder, transport: &transport, refusals: &refusals, boards };
        let catalog = catalog.observed(observed.observation()).traced(traces.clone());
        let catalog = catalog.alerting(alerts.clone()).watched(activity.clone());
        log.follow(manifest.server().log().into());
        // Over HTTP nobody has the manifest written. Where only a lock is served it would change
        // nothing.
        if matches!(options.transport, TransportOptions::Stdio) && !opened.locked {
            catalog.may_write_manifest(&opened.path);
        }
        let current = Arc::new(Current::new(catalog, RequestCounters::traced(traces.clone()).refusing(&refusals)));
        let operators =
            console.as_mut().map(|bound| operators::open(&manifest, bound, &current, &checks)).transpose()?.flatten();
        let authenticator = checks.authenticator(operators.as_ref());
        let doorman = console.as_ref().map(|bound| Doorman::new(bound.url(), bound.port(), bound.has_tls()));
        let doorman = doorman.map(|doorman| Arc::new(doorman.admitting(operators)));
        let server = identity::server(&manifest, state_key, &current);
        let runtime = machine.runtime.handle();
        let (bus, others) = replicas.unzip();
        let (boards, resources) = others.unzip();
        resources.into_iter().for_each(|resources| server.keep_resources_in(resources));
        let heard = bus.clone().unwrap_or_else(|| Arc::<EmbeddedBus>::default());
        let updates = Updates::start(&server, Arc::clone(&heard), runtime);
        health.watch(&current);
        current.snapshot().tell_by(&updates);
        server.carry_news_by(updates);
        let tasks = KeptTasks::start(&server, &manifest, &folder_of(&opened.path), (heard, runtime))?;
        let announcements = bus.and_then(|bus| Announcements::start(&server, &current, bus, runtime)).map(Arc::new);
        let bound = BoundPage::open(options.metrics, manifest.metrics(), options.insecure_public)?;
        let journal = Arc::new(Journal::default());
        let written = refusals.start(machine.runtime.handle());
        let shown = ShownManifest::of(&manifest);
        let seen = Seen {
            current: &current,
            journal: &journal,
            sink: &sink,
            refusals: &refusals,
            health: &health,
            authenticator,
        };
        let views = activity.map(|activity| Arc::new(shown.views(&opened, activity, seen)));
        let memory = MemoryReturn::start(machine.runtime.handle());
        let serving = Serving {
            opened,
            machine,
            sink,
            current,
            server,
            announcements,
            boards,
            journal,
            observed,
            log,
            traces,
            tasks,
            refusals: (refusals, written),
            alerts,
            views,
            doorman,
            health,
            ending: Arc::new(Ending { manager: ServiceManager::of_environment(), signal: OnceLock::new() }),
            _memory: memory,
        };
        serving.ending.manager.keep_watched(serving.machine.runtime.handle());
        let metrics = bound.map(|bound| serving.show_metrics(bound, &transport, began)).transpose()?;
        let stop = transport.stop();
        let beginning = InitialState { manifest, builder, began };
        let (background, orders) = Background::start(options, &serving, beginning, Arc::clone(&stop))?;
        tracing::debug!("slots of instances are reset: {SLOT_RESETS}");
        let console = console.map(|bound| serving.show_console(bound, shown.name, orders.clone())).transpose()?;
        Ok(Running { serving, transport, stop, orders, background, metrics, console })
    }
}

impl Running {
    /// Orders reloads.
    pub fn orders(&self) -> &Orders {
        &self.orders
    }

    /// URL of each socket, for people; none over stdio.
    pub fn endpoints(&self) -> &[String] {
        self.transport.endpoints()
    }

    /// Ends the server when called, from any thread, after running calls are finished.
    pub fn stopper(&self) -> impl Fn() + Send + Sync + 'static {
        let stop = Arc::clone(&self.stop);
        move || stop()
    }

    /// Serves until the input ends, a signal arrives or it is [stopped](Self::stopper).
    ///
    /// # Errors
    /// Stdin or stdout failed.
    pub fn serve(self) -> Result<StdioEnd, StartError> {
        let Self { serving, transport, background, metrics, console, .. } = self;
        serving.ending.manager.ready();
        let end = transport.serve(&serving);
        serving.ending.manager.stopping();
        drop(background);
        drop((metrics, console));
        serving.end(end)
    }
}

/// Parts of the server that views show.
struct Seen<'a> {
    current: &'a Arc<Current>,
    journal: &'a Arc<Journal>,
    sink: &'a Arc<Sink>,
    refusals: &'a Arc<Refusals>,
    health: &'a Arc<Health>,
    /// Checks tokens; `None` where nobody shows one.
    authenticator: Option<Arc<Authenticator>>,
}

/// Settings of the manifest at the start that the console keeps.
struct ShownManifest {
    /// The server's name for people.
    name: String,
    /// The file of tokens.
    tokens: Option<String>,
}

impl ShownManifest {
    fn of(manifest: &Manifest) -> Self {
        let server = manifest.server();
        Self {
            name: server.title().unwrap_or(server.name()).to_owned(),
            tokens: manifest.http().and_then(|http| http.tokens()).map(str::to_owned),
        }
    }

    /// Views of this activity.
    fn views(&self, opened: &OpenedAs, activity: Arc<Activity>, seen: Seen<'_>) -> Sources {
        Sources {
            current: Arc::clone(seen.current),
            journal: Arc::clone(seen.journal),
            sink: Arc::clone(seen.sink),
            refusals: Arc::clone(seen.refusals),
            health: Arc::clone(seen.health),
            authenticator: seen.authenticator,
            activity,
            tokens: self.tokens.as_ref().map(|file| TokenFile::at(folder_of(&opened.path).join(file))),
            manifest: opened.path.clone(),
            is_written: opened.given.is_none(),
            locked: opened.locked,
        }
    }
}

/// Calls as operators see them.
fn activity(
    manifest: &Manifest,
    console: Option<&BoundConsole>,
    began: SystemTime,
) -> Result<Arc<Activity>, StartError> {
    let places = manifest.server().approve_in();
    if places.console() && console.is_none() {
        let message = "calls are to be approved in the console, and none is served";
        let hint = "serve it with --console, or take \"console\" out of approve_in";
        return Err(StartError::refused(message).hint_if(Some(hint)));
    }
    let decides = manifest.console().is_some_and(ConsolePolicy::decide);
    if places.console() && !decides {
        let message = "calls are to be approved in the console, and it only shows";
        return Err(StartError::refused(message).hint_if(Some("write decide = true into [console]")));
    }
    let activity = Activity::new(began);
    if places.console() {
        activity.approvals.open(places.client());
    }
    Ok(Arc::new(activity))
}

/// Starts the sandbox processes, where the manifest wants them, and says which walls stand.
fn raise_walls(catalog: &Catalog, machine: &Machine, log: &dyn OperatorLog) -> Result<(), StartError> {
    let Some(sandboxes) = &machine.sandboxes else { return Ok(()) };
    // Where every wall is required, a process without one does not start.
    if let Err(refused) = machine.runtime.block_on(catalog.walled().start()) {
        machine.check_sandboxes()?;
        return Err(StartError::refused(refused));
    }
    log.announce(&sandboxes.log());
    Ok(())
}

/// Removes drafts of the lock that a stopped process left. Logs once if nothing pins the
/// components.
fn look_at_lock(opened: &OpenedAs, catalog: &Catalog, log: &dyn OperatorLog) {
    if opened.given.is_some() {
        return;
    }
    let path = lock::path_beside(&opened.path);
    if lock::remove_drafts(&path) > 0 {
        log.announce("note: a draft of the lock file, left by a process that was stopped, was removed");
    }
    if opened.locked {
        return;
    }
    match lock::read(&path) {
        Ok(None) => tracing::info!("nothing is pinned: there is no {}; `toolcell lock` writes it", path.display()),
        Ok(Some(locked)) => {
            let drifts = lock::drift(&locked, &Lock::of(catalog));
            let names: Vec<&str> = drifts.iter().map(|drift| drift.component.as_str()).collect();
            if !names.is_empty() {
                let names = names.join(", ");
                tracing::warn!(
                    "not as {} pins it: {names}; `toolcell diff` says how, --locked would refuse",
                    path.display()
                );
            }
        }
        Err(error) => tracing::warn!("{error}; {}", error.hint()),
    }
}

impl Serving {
    /// Serves the metrics page.
    fn show_metrics(
        &self,
        bound: BoundPage,
        transport: &Transport,
        started: SystemTime,
    ) -> Result<ServedPage, StartError> {
        let url = bound.url();
        let page = Page::new(MetricSources {
            current: Arc::clone(&self.current),
            journal: Arc::clone(&self.journal),
            sink: Arc::clone(&self.sink),
            traffic: transport.traffic(),
            refusals: Arc::clone(&self.refusals.0),
            alerts: self.alerts.clone(),
            tools: Arc::new(NamedTools::new(bound.tools())),
            log: Arc::clone(&self.log),
            traces: self.traces.as_ref().map(|traces| Arc::clone(traces.sent())),
            health: Arc::clone(&self.health),
            started,
        });
        let listening = bound.serve(page, self.machine.runtime.handle()).step("the metrics cannot be served")?;
        self.log.announce(&format!("metrics at {url}"));
        Ok(listening)
    }

    /// Serves the console, and says where it is.
    fn show_console(&self, bound: BoundConsole, name: String, orders: Orders) -> Result<ServedConsole, StartError> {
        let (Some(views), Some(doorman)) = (&self.views, &self.doorman) else {
            return Err(StartError::refused("the console has nothing to show"));
        };
        views.activity.running.recent().open();
        let entrance = (Arc::clone(doorman), bound.doors());
        let means = (orders, self.machine.workers.executor());
        let console = Arc::new(Console::new(Arc::clone(views), entrance, means, name));
        let link = doorman.link().map_err(StartError::refused)?;
        let served = bound.serve(console, self.machine.runtime.handle()).step("the console cannot be served")?;
        self.log
            .announce(&format!("console at {link} (works once, for ten minutes; `toolcell console` gives another)"));
        Ok(served)
    }

    /// Records the end, and joins the guest threads.
    fn end(self, end: Result<StdioEnd, StdioError>) -> Result<StdioEnd, StartError> {
        let reason = match &end {
            Ok(StdioEnd::Eof) => "end of input".to_owned(),
            Ok(StdioEnd::Shutdown) => "signal".to_owned(),
            Ok(StdioEnd::OutputClosed) => "output closed".to_owned(),
            Err(error) => error.to_string(),
        };
        let (refusals, written) = self.refusals;
        drop(written);
        refusals.write();
        audit::record_end(&self.sink, &reason, self.current.snapshot().calls_started());
        self.observed.say(self.log.as_ref());
        // First all know that they have ended, then they end.
        // Where that fails, it is known a moment later.
        let _ = self.machine.runtime.block_on(self.tasks.leave());
        self.server.end_tasks();
        if let Some(announcements) = &self.announcements {
            // An operation on the shared state has a time limit.
            self.machine.runtime.block_on(announcements.leave());
        }
        drop(self.machine.workers);
        if let Some(traces) = &self.traces {
            traces.end();
        }
        self.machine.runtime.shutdown_timeout(IO_ENDS_WITHIN);
        self.ending.say(&reason);
        Ok(end?)
    }
}

impl Ending {
    /// A signal ends the server, with this many calls running.
    fn begin(&self, signal: &'static str, running: usize) {
        if self.signal.set((signal, Instant::now())).is_ok() {
            self.manager.stopping();
            tracing::info!("{signal}: the server stops; calls that run: {running}");
        }
    }

    /// The server has ended, for this reason.
    fn say(&self, reason: &str) {
        match self.signal.get() {
            Some((signal, began)) => {
                tracing::info!("stopped by {signal}, which took {} ms", began.elapsed().as_millis());
            }
            None => tracing::info!("stopped: {reason}"),
        }
    }
}

impl ObservationFile {
    fn open(path: Option<PathBuf>) -> Result<Self, StartError> {
        let Some(path) = path else { return Ok(Self(None)) };
        let unwritable = |error: std::io::Error| {
            StartError::refused(format!("the observation cannot be written: {}", plain(&error)))
        };
        let observation = Observation::open(&path).map_err(unwritable)?;
        Ok(Self(Some((Arc::new(observation), path))))
    }

    fn observation(&self) -> Option<Arc<Observation>> {
        self.0.as_ref().map(|(observation, _)| Arc::clone(observation))
    }

    fn say(&self, log: &dyn OperatorLog) {
        if let Some((observation, path)) = &self.0 {
            let file = shell::word(&path.to_string_lossy());
            let count = observation.count();
            log.announce(&format!("observed {count} denied attempts; see: toolcell policy suggest {file}"));
        }
    }
}
