//! A server, from an opened manifest to its end. Must not hold: command lines, terminals.
mod audit;
mod background;
mod identity;
mod memory;
mod operators;
mod transport;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Handle;
use toolcell_mcp::Host as _;
use toolcell_mcp::stdio::{StdioEnd, StdioError};
use toolcell_policy::{ConsolePolicy, Manifest, StartRule};
use toolcell_sandbox::SLOT_RESETS;
use toolcell_shared::{EmbeddedBus, Tasks as _};

use crate::catalog::{Catalog, Services, folder_of};
use crate::dev::ProjectBuild;
use crate::error::{StartError, StepExt as _};
use crate::files::Watch;
use crate::http::HttpAddress;
use crate::identity::TokenFile;
use crate::identity::login::{LoginService, PageParts};
use crate::lock::{self, Lock};
use crate::machine::Machine;
use crate::machine::service_manager::ServiceManager;
use crate::machine::shell;
use crate::observing::activity::Activity;
use crate::observing::alerts::Alerts;
use crate::observing::log::OperatorLog;
use crate::observing::observation::Observation;
use crate::observing::refusals::Refusals;
use crate::observing::traces::Traces;
use crate::open::{OpenedAs, Ready};
use crate::operators::console::{
    BoundConsole, Console, ConsoleAddress, ConsoleState, HeldOutcomes, HoldAgainst, ServedConsole, SessionGate, Sources,
};
use crate::operators::control::ControlSocket;
use crate::operators::health::Health;
use crate::operators::metrics::{BoundPage, MetricSources, NamedTools, Page};
use crate::owned_task::OwnedTask;
use crate::recordings::RecordingKeeper;
use crate::reload::{Current, Orders};
use crate::replicas::announcements::Announcements;
use crate::replicas::readiness::StateReach;
use crate::replicas::replicated_sets::ReplicatedSets;
use crate::replicas::updates::Updates;
use crate::state::paused_runs::PausedRuns;
use crate::state::shared::{self, Shared};
use crate::state::tasks::KeptTasks;
use background::{Background, InitialState};
use memory::return_memory;
use transport::Transport;

/// Time for a guest's blocking operations after all calls are answered. Then the process ends
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
    /// How changes of files are noticed.
    pub watch: Watch,
    /// Socket for `toolcell status` and other commands.
    pub control: ControlSocket,
    /// Address of the metrics page; the manifest's by default.
    pub metrics: Option<SocketAddr>,
    /// Address of the console; by default the manifest's, and none where it names none.
    pub console: Option<ConsoleAddress>,
    /// Runs recorded calls with versions that wait for approval, for the console; none by default.
    pub hold: Option<Arc<HoldAgainst>>,
    /// The program's log; none by default.
    pub log: Option<Arc<dyn OperatorLog>>,
    /// The project that is built while the server runs; none by default.
    pub build: Option<ProjectBuild>,
    /// True if SIGTERM and SIGINT end the server, and SIGHUP reloads. False by default.
    pub signals: bool,
    /// When reading the manifest began: changes since then are applied once it serves. Now, by
    /// default.
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
    metrics: Option<OwnedTask>,
    console: Option<ServedConsole>,
}

/// The current catalog, and everything that observes the server.
struct Serving {
    opened: OpenedAs,
    machine: Machine,
    services: Arc<Services>,
    current: Arc<Current>,
    server: Arc<toolcell_mcp::McpServer<Current>>,
    /// Notifies clients of changed lists, if replicas share state.
    announcements: Option<Arc<Announcements>>,
    tasks: Arc<KeptTasks>,
    refusal_records: OwnedTask,
    /// Views of calls, for the console and `toolcell top`, if there is either.
    views: Option<Arc<Sources>>,
    /// The logins of callers, and their pages.
    logins: Arc<LoginService>,
    /// Issues links into the console.
    session_gate: Option<Arc<SessionGate>>,
    health: Arc<Health>,
    ending: Arc<Ending>,
    _memory: OwnedTask,
}

/// The end of the server, for the log and the service manager.
struct Ending {
    manager: ServiceManager,
    /// The first signal, and when it came.
    signal: OnceLock<(&'static str, Instant)>,
}

impl Server {
    /// Binds the sockets, records the start, and watches the files of the opened manifest.
    ///
    /// # Errors
    /// The manifest, an option or the machine is at fault: see [`StartError`].
    pub fn start(ready: Ready, options: ServerOptions) -> Result<Running, StartError> {
        let began = options.began.unwrap_or_else(SystemTime::now);
        let Ready { opened, manifest, mut catalog, machine, builder } = ready;
        let folder = folder_of(&opened.path);
        let runtime = machine.runtime.handle();
        let services = Services::new(Arc::clone(&catalog.services.sink), runtime, manifest.server().calls());
        let mut services = services.with_logins(&manifest, &folder);
        services.executor = Arc::new(machine.workers.executor());
        if let Some(log) = &options.log {
            services.log = Arc::clone(log);
        }
        audit::record_start(&services.sink, &opened, &catalog)?;
        for component in catalog.left_out() {
            tracing::error!("left out: {}", component.problem);
        }
        check_lock(&opened, &catalog, services.log.as_ref());
        raise_walls(&catalog, manifest.server().start(), &machine, services.log.as_ref())?;
        services.observation = options.observe.clone().map(Observation::open).transpose()?.map(Arc::new);
        let mut transport = Transport::open(&opened.path, &options, &manifest, &machine)?;
        services.traces = manifest.traces().map(|policy| Traces::start(policy, transport.name())).transpose()?;
        let shared = manifest.state().map(|policy| shared::open(policy, &folder)).transpose()?.flatten();
        let state_key = identity::state_key(&opened.path, &manifest)?;
        let shared = shared.zip(state_key.clone());
        let mut state_reach = None;
        if let Some((Shared { state, bus, .. }, key)) = &shared {
            state_reach = manifest.state().and_then(|policy| StateReach::of(policy, state));
            transport.reach_replicas(state, Arc::clone(bus), &machine)?;
            let sets = ReplicatedSets::start(key.clone(), Arc::clone(state), Arc::clone(bus), runtime);
            let sets = sets.ok_or_else(|| StartError::refused("[state]: the machine gives no random numbers"))?;
            transport.share_revoked(&sets, &folder.join(manifest.server().state()));
            services.consents.share(&sets);
            machine.sandboxes.iter().for_each(|sandboxes| sandboxes.share_ends(&sets));
            services.state = Arc::clone(state);
            shared::share_logins(&services.logins, &manifest, &folder, state, runtime)?;
            services.replicated_sets = Some(sets);
        }
        let recordings = RecordingKeeper::new();
        catalog.settings.recordings.iter().for_each(|place| recordings.look(place));
        services.recordings = Some(Arc::new(recordings));
        services.paused = PausedRuns::open(&manifest, &folder, runtime)?;
        let health = Arc::new(Health::new(&services.sink, machine.sandboxes.as_ref(), state_reach));
        transport.ready_with(Arc::<Health>::clone(&health));
        let alerts = manifest.alerts().map(|policy| Alerts::start(policy, &folder, &services.sink, runtime));
        services.alerts = alerts.transpose()?;
        services.refusals = Arc::new(Refusals::new(&services.sink, services.alerts.clone()));
        transport.report_refused(&services.refusals);
        let mut console = BoundConsole::open(options.console.as_ref(), manifest.console(), &folder, runtime)?;
        let activity = activity(&manifest, console.as_ref(), began)?;
        let is_watched = console.is_some() || options.control != ControlSocket::Off;
        services.activity = is_watched.then_some(activity);
        services.log.follow(manifest.server().log().into());
        // Over HTTP, nobody may have the manifest written. With `--locked` it would have no effect.
        if matches!(options.transport, TransportOptions::Stdio) && !opened.locked {
            services.consents.may_write(&opened.path);
        }
        let services = Arc::new(services);
        catalog.services = Arc::clone(&services);
        let current = Arc::new(Current::new(catalog));
        let checks = operators::Checks {
            folder: &folder,
            transport: &transport,
            replicated_sets: services.replicated_sets.as_ref(),
        };
        let operators =
            console.as_mut().map(|bound| operators::open(&manifest, bound, &current, &checks)).transpose()?.flatten();
        let authenticator = checks.authenticator(operators.as_ref());
        if let Some(presented) = transport.authenticator().and_then(|authenticator| authenticator.presented()) {
            services.logins.exchange_of(presented);
        }
        let session_gate = console.as_ref().map(|bound| {
            let port = bound.socket.address.port();
            Arc::new(SessionGate::new(bound.url(), port, bound.certificate.is_some(), operators))
        });
        let server = identity::server(&manifest, state_key, &current);
        let (bus, resources) = shared.map(|(shared, _)| (shared.bus, shared.resources)).unzip();
        resources.into_iter().for_each(|resources| server.keep_resources_in(resources));
        let heard = bus.clone().unwrap_or_else(|| Arc::<EmbeddedBus>::default());
        let updates = Updates::start(&server, Arc::clone(&heard), runtime);
        health.watch(&current);
        services.news.open(&updates);
        server.carry_news_by(updates);
        let tasks = KeptTasks::start(&server, &manifest, &folder, heard, runtime)?;
        let announcements = bus.and_then(|bus| Announcements::start(&server, &current, bus, runtime)).map(Arc::new);
        let bound = BoundPage::open(options.metrics, manifest.metrics(), options.insecure_public)?;
        let views = services.activity.as_ref().map(|activity| {
            let tokens = manifest.http().and_then(|http| http.tokens());
            Arc::new(Sources {
                current: Arc::clone(&current),
                services: Arc::clone(&services),
                activity: Arc::clone(activity),
                health: Arc::clone(&health),
                tokens: tokens.map(|file| TokenFile::at(folder.join(file))),
                authenticator,
                manifest: opened.path.clone(),
                is_written: opened.given.is_none(),
                locked: opened.locked,
                held: HeldOutcomes::new(options.hold.clone()),
            })
        });
        let name = manifest.server().title().unwrap_or(manifest.server().name()).to_owned();
        let logins = Arc::new(login_service(&services, &current, &name, runtime));
        let refusal_records = services.refusals.start(runtime);
        let memory = return_memory(runtime);
        let serving = Serving {
            opened,
            machine,
            services,
            current,
            server,
            announcements,
            tasks,
            refusal_records,
            views,
            logins,
            session_gate,
            health,
            ending: Arc::new(Ending { manager: ServiceManager::of_environment(), signal: OnceLock::new() }),
            _memory: memory,
        };
        serving.ending.manager.keep_watched(serving.machine.runtime.handle());
        let metrics = bound.map(|bound| serving.show_metrics(bound, &transport, began)).transpose()?;
        let stop = transport.stop();
        serving.open_logins(&manifest)?;
        let beginning = InitialState { manifest, builder, began };
        let (background, orders) = Background::start(options, &serving, beginning, Arc::clone(&stop))?;
        tracing::debug!("slots of instances are reset: {SLOT_RESETS}");
        let console = console.map(|bound| serving.show_console(bound, name, orders.clone())).transpose()?;
        Ok(Running { serving, transport, stop, orders, background, metrics, console })
    }
}

impl Running {
    /// For ordering reloads.
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
        drop(metrics);
        drop(console);
        serving.logins.close();
        serving.end(end)
    }
}

/// Callers' logins, as the current catalog has them.
fn login_service(services: &Arc<Services>, current: &Arc<Current>, name: &str, runtime: &Handle) -> LoginService {
    let parts = PageParts {
        logins: Arc::clone(&services.logins),
        state: Arc::clone(&services.state),
        sink: Arc::clone(&services.sink),
        finder: Arc::<Current>::clone(current),
        name: name.to_owned(),
    };
    LoginService::new(parts, runtime.clone())
}

/// The activity of calls, for operators.
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

/// Starts the sandbox processes, if the manifest wants them, and reports which walls stand. Unless
/// all have to work, a group whose process does not start keeps no other from being served.
fn raise_walls(catalog: &Catalog, rule: StartRule, machine: &Machine, log: &dyn OperatorLog) -> Result<(), StartError> {
    let Some(sandboxes) = &machine.sandboxes else { return Ok(()) };
    // If every wall is required, a process without one does not start.
    let ahead = machine.runtime.block_on(catalog.walled.start(|_| rule == StartRule::WhatWorks));
    let problems = ahead.and_then(|ahead| match ahead.problems.first() {
        Some(problem) if ahead.started == 0 => Err(problem.clone()),
        _ => Ok(ahead.problems),
    });
    match problems {
        Ok(problems) => problems.iter().for_each(|problem| tracing::error!("{problem}; each call tries again")),
        Err(refused) => {
            machine.check_sandboxes()?;
            return Err(StartError::refused(refused));
        }
    }
    log.announce(&sandboxes.log());
    Ok(())
}

/// Removes drafts of the lock that an interrupted process left. Logs once if no lock pins the
/// components.
fn check_lock(opened: &OpenedAs, catalog: &Catalog, log: &dyn OperatorLog) {
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
        Ok(None) => {
            let text = format!("nothing is pinned: there is no {}; `toolcell lock` writes it", path.display());
            tracing::info!("{}", shell::named(&text));
        }
        Ok(Some(locked)) => {
            let drifts = lock::drift(&locked, &Lock::of(catalog));
            let names: Vec<&str> = drifts.iter().map(|drift| drift.component.as_str()).collect();
            if !names.is_empty() {
                let names = names.join(", ");
                let text = format!(
                    "not as {} pins it: {names}; `toolcell diff` says how, --locked would not serve it",
                    path.display()
                );
                tracing::warn!("{}", shell::named(&text));
            }
        }
        Err(error) => tracing::warn!("{error}; {}", shell::named(error.hint())),
    }
}

impl Serving {
    fn show_metrics(
        &self,
        bound: BoundPage,
        transport: &Transport,
        started: SystemTime,
    ) -> Result<OwnedTask, StartError> {
        let url = bound.url();
        let page = Page::new(MetricSources {
            current: Arc::clone(&self.current),
            traffic: transport.traffic(),
            tools: Arc::new(NamedTools::new(bound.tools)),
            callers: bound.callers,
            health: Arc::clone(&self.health),
            started,
        });
        let listening = bound.serve(page, self.machine.runtime.handle()).step("the metrics cannot be served")?;
        self.services.log.announce(&format!("metrics at {url}"));
        Ok(listening)
    }

    /// Serves the pages at which callers log in, if there are any, and ends logins whose callers
    /// lost their right to them while no server ran.
    fn open_logins(&self, manifest: &Manifest) -> Result<(), StartError> {
        let line = self.logins.open(manifest)?;
        line.iter().for_each(|line| self.services.log.announce(line));
        self.logins.end_without_right(self.current.snapshot().login_use(), manifest.caller_logins());
        Ok(())
    }

    /// Serves the console, and announces its address.
    fn show_console(&self, bound: BoundConsole, name: String, orders: Orders) -> Result<ServedConsole, StartError> {
        let (Some(views), Some(session_gate)) = (&self.views, &self.session_gate) else {
            return Err(StartError::refused("the console has nothing to show"));
        };
        views.activity.running.recent.open();
        let console = Arc::new(Console {
            sources: Arc::clone(views),
            session_gate: Arc::clone(session_gate),
            doors: bound.socket.doors.clone(),
            orders,
            executor: self.machine.workers.executor(),
            name,
            state: ConsoleState::default(),
        });
        let link = session_gate.link().map_err(StartError::refused)?;
        let served = bound.serve(console, self.machine.runtime.handle()).step("the console cannot be served")?;
        self.services
            .log
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
        drop(self.refusal_records);
        let services = self.services;
        services.refusals.write();
        audit::record_end(&services.sink, &reason, services.calls.load(Ordering::Relaxed));
        if let Some(observation) = &services.observation {
            let file = shell::word(&observation.path.to_string_lossy());
            let count = observation.count();
            services.log.announce(&format!("observed {count} denied attempts; see: toolcell policy suggest {file}"));
        }
        // First the other replicas are notified that the tasks have ended, then the process ends.
        // If that fails, they find out a moment later.
        let _ = self.machine.runtime.block_on(self.tasks.leave());
        self.server.end_tasks();
        if let Some(announcements) = &self.announcements {
            // An operation on the shared state has a time limit.
            self.machine.runtime.block_on(announcements.leave());
        }
        drop(self.machine.workers);
        services.recordings.iter().for_each(|recordings| recordings.end());
        if let Some(traces) = &services.traces {
            traces.end();
        }
        self.machine.runtime.shutdown_timeout(IO_ENDS_WITHIN);
        self.ending.report(&reason);
        Ok(end?)
    }
}

impl Ending {
    /// A signal stops the server, with this many running calls.
    fn begin(&self, signal: &'static str, running: usize) {
        if self.signal.set((signal, Instant::now())).is_ok() {
            self.manager.stopping();
            tracing::info!("{signal}: the server stops; calls that run: {running}");
        }
    }

    /// The server has ended, for this reason.
    fn report(&self, reason: &str) {
        match self.signal.get() {
            Some((signal, began)) => {
                tracing::info!("stopped by {signal}, which took {} ms", began.elapsed().as_millis());
            }
            None => tracing::info!("stopped: {reason}"),
        }
    }
}
