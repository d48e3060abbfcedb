//! A server: from an opened manifest to something that serves clients, and its end. Must not hold: command lines, terminals.
mod audit;
mod background;
mod identity;
mod transport;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use toolcell_audit::Sink;
use toolcell_mcp::Host as _;
use toolcell_mcp::stdio::{End, StdioError};
use toolcell_sandbox::SLOT_RESETS;

use crate::catalog::Catalog;
use crate::control::ControlSocket;
use crate::error::{StartError, StepExt as _};
use crate::file::plain;
use crate::http::HttpAddress;
use crate::lock::{self, Lock};
use crate::log::{NoLog, OperatorLog};
use crate::machine::Machine;
use crate::metrics::{Bound, Listening, Page, Requests, Sources};
use crate::observation::Observation;
use crate::open::{OpenedAs, Ready};
use crate::reload::{Current, Journal, Orders, Watch};
use crate::traces::Traces;
pub(crate) use audit::{open_audit, record_components};
use background::{Background, Beginning};
use transport::Transport;

/// How long a blocking operation for a guest may go on once everything is answered. The process ends without it then.
const IO_ENDS_WITHIN: Duration = Duration::from_secs(1);

/// How a manifest is served.
#[derive(Default)]
pub struct ServerOptions {
    /// How clients reach it; stdin and stdout by default.
    pub transport: TransportOptions,
    /// True allows an address that other machines reach though callers do not say who they are. False by default.
    pub insecure_public: bool,
    /// Denied attempts are written to this file; nowhere by default.
    pub observe: Option<PathBuf>,
    /// How changes of files are seen.
    pub watch: Watch,
    /// Where `toolcell status` and its like ask.
    pub control: ControlSocket,
    /// Where figures are served; where the manifest says, by default.
    pub metrics: Option<SocketAddr>,
    /// The program's log; none by default.
    pub log: Option<Arc<dyn OperatorLog>>,
    /// The project that is built beside the server; none by default.
    pub build: Option<Arc<dyn BuildStatus>>,
    /// True if SIGTERM and SIGINT end the server, and SIGHUP reloads. False by default.
    pub signals: bool,
    /// When the manifest began to be read: changes since then are looked at once it serves. Now, by default.
    pub began: Option<SystemTime>,
}

/// How clients reach a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TransportOptions {
    /// Over stdin and stdout of the process.
    #[default]
    Stdio,
    /// Over HTTP.
    Http(HttpAddress),
}

/// A project that is built beside the server.
pub trait BuildStatus: Send + Sync + 'static {
    /// The last build, as a part of the status.
    fn to_json(&self) -> Value;
}

/// The server of a manifest.
#[derive(Debug)]
pub struct Server;

/// A server that was started. It serves from [`Running::serve`] on, and reloads already.
pub struct Running {
    serving: Serving,
    transport: Transport,
    stop: Arc<dyn Fn() + Send + Sync>,
    orders: Orders,
    background: Background,
    metrics: Option<Listening>,
}

/// What serves, and whom it tells what happens.
struct Serving {
    opened: OpenedAs,
    machine: Machine,
    sink: Arc<Sink>,
    current: Arc<Current>,
    server: Arc<toolcell_mcp::Server<Current>>,
    journal: Arc<Journal>,
    observed: Observed,
    log: Arc<dyn OperatorLog>,
    traces: Option<Arc<Traces>>,
}

/// The attempts of tools that were denied, where the operator wants to know.
struct Observed(Option<(Arc<Observation>, PathBuf)>);

impl Server {
    /// Binds the sockets, records the start, and begins to watch the files of what was opened.
    ///
    /// # Errors
    /// The manifest or an option is at fault, or the machine is: see [`StartError`].
    pub fn start(ready: Ready, options: ServerOptions) -> Result<Running, StartError> {
        let began = options.began.unwrap_or_else(SystemTime::now);
        let log = options.log.clone().unwrap_or_else(|| Arc::new(NoLog));
        let Ready { opened, manifest, catalog, machine, sink, builder } = ready;
        audit::record_start(&sink, &opened, &catalog)?;
        look_at_lock(&opened, &catalog, log.as_ref());
        let observed = Observed::open(options.observe.clone())?;
        let transport = Transport::open(&opened.path, &options, &manifest, &machine)?;
        let traces = manifest.traces().map(|policy| Traces::start(policy, transport.name())).transpose()?;
        let catalog = catalog.observed(observed.observation()).traced(traces.clone());
        let current = Arc::new(Current::new(catalog, Requests::traced(traces.clone())));
        let server = identity::server(&opened.path, &manifest, &current)?;
        let bound = Bound::open(options.metrics, manifest.metrics(), options.insecure_public)?;
        let journal = Arc::new(Journal::default());
        let serving = Serving { opened, machine, sink, current, server, journal, observed, log, traces };
        let metrics = bound.map(|bound| serving.show_metrics(bound, &transport, began)).transpose()?;
        let stop = transport.stop();
        let beginning = Beginning { manifest, builder, began };
        let (background, orders) = Background::start(&options, &serving, beginning, Arc::clone(&stop))?;
        tracing::debug!("slots of instances are reset: {SLOT_RESETS}");
        Ok(Running { serving, transport, stop, orders, background, metrics })
    }
}

impl Running {
    /// Gives orders to reload.
    pub fn orders(&self) -> &Orders {
        &self.orders
    }

    /// The endpoint at each socket, for people; none over stdio.
    pub fn endpoints(&self) -> &[String] {
        self.transport.endpoints()
    }

    /// Ends the server when called, from any thread: calls that run are finished first.
    pub fn stopper(&self) -> impl Fn() + Send + Sync + 'static {
        let stop = Arc::clone(&self.stop);
        move || stop()
    }

    /// Serves until the input ends, a signal comes or it is [stopped](Self::stopper).
    ///
    /// # Errors
    /// Stdin or stdout failed.
    pub fn serve(self) -> Result<End, StartError> {
        let Self { serving, transport, background, metrics, .. } = self;
        let end = transport.serve(&serving);
        drop(background);
        drop(metrics);
        serving.end(end)
    }
}

/// Removes drafts of the lock that a stopped process left. Tells once if components could be other ones tomorrow.
fn look_at_lock(opened: &OpenedAs, catalog: &Catalog, log: &dyn OperatorLog) {
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
    /// Serves the figures of all this.
    fn show_metrics(&self, bound: Bound, transport: &Transport, started: SystemTime) -> Result<Listening, StartError> {
        let url = bound.url();
        let page = Page::new(Sources {
            current: Arc::clone(&self.current),
            journal: Arc::clone(&self.journal),
            sink: Arc::clone(&self.sink),
            traffic: transport.traffic(),
            log: Arc::clone(&self.log),
            traces: self.traces.as_ref().map(|traces| Arc::clone(traces.sent())),
            started,
        });
        let listening = bound.serve(page, self.machine.runtime.handle()).step("the metrics cannot be served")?;
        self.log.announce(&format!("metrics at {url}"));
        Ok(listening)
    }

    /// Records the end, and ends the threads that run guests.
    fn end(self, end: Result<End, StdioError>) -> Result<End, StartError> {
        let reason = match &end {
            Ok(End::Eof) => "end of input".to_owned(),
            Ok(End::Shutdown) => "signal".to_owned(),
            Ok(End::OutputClosed) => "output closed".to_owned(),
            Err(error) => error.to_string(),
        };
        audit::record_end(&self.sink, &reason, self.current.snapshot().calls_started());
        self.observed.say(self.log.as_ref());
        drop(self.machine.workers);
        if let Some(traces) = &self.traces {
            traces.end();
        }
        self.machine.runtime.shutdown_timeout(IO_ENDS_WITHIN);
        Ok(end?)
    }
}

impl Observed {
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
            let (count, path) = (observation.count(), path.display());
            log.announce(&format!("observed {count} denied attempts; see: toolcell policy suggest {path}"));
        }
    }
}
