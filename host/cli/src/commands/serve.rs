//! `toolcell serve`: the manifest's tools on stdin and stdout, or over HTTP.
use std::io::PipeReader;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::Context as _;
use tokio::runtime::Handle;
use toolcell_audit::{
    Arguments, Clipped, ComponentLoaded, Event, FILES_MAX, Fsync, HostStarted, HostStopped, Rotation, Settings, Sink,
    SinkError,
};
use toolcell_mcp::http as transport;
use toolcell_mcp::stdio::{self, End, Shutdown, StdioOptions};
use toolcell_mcp::{Catalog as _, Host, STATE_KEY_BYTES_MIN, Server, ServerInfo, ServerOptions, StateKey};
use toolcell_policy::{AuditArguments, AuditPolicy, Manifest, SecretSource};
use toolcell_sandbox::Digest;

use crate::args::ServeArgs;
use crate::catalog::{Catalog, folder_of, plain};
use crate::commands::lock::{holds_or_say, say_removed};
use crate::control::{Control, ControlArg, Subject};
use crate::dev::{self, Job, Look};
use crate::exit::Exit;
use crate::http::{self, Opened};
use crate::lock::{self, Lock, drift};
use crate::logging;
use crate::machine::Machine;
use crate::observe::Observation;
use crate::project::{ManifestFile, Ready, open_recording_or_say};
use crate::reload::{Current, Driver, Files, Journal, Orders, Reloader, Setup, Watch, Watcher};
use crate::secrets;
use crate::terminal;

/// How long a blocking operation for a guest may go on once everything is answered; then the process ends without it.
const IO_ENDS_WITHIN: std::time::Duration = std::time::Duration::from_secs(1);

/// Serves until the input ends or a signal comes.
pub fn run(args: &ServeArgs) -> anyhow::Result<Exit> {
    let _log = logging::start(args.log);
    serve(args, None)
}

/// The same, and builds a project meanwhile, which looked so when it was built last.
pub fn serve(args: &ServeArgs, dev: Option<(Job, Option<Look>)>) -> anyhow::Result<Exit> {
    let began = SystemTime::now();
    let audit = |manifest: &Manifest, folder: &Path| open_audit(args, manifest.audit(), folder);
    let Some((file, ready)) = open_recording_or_say(&args.manifest.manifest, &args.code, &audit)? else {
        return Ok(Exit::AtFault);
    };
    let Ready { manifest, catalog, machine, sink, builder } = ready;
    if args.locked && !holds_or_say(&args.manifest.manifest, &catalog) {
        return Ok(Exit::AtFault);
    }
    record_start(&sink, &file, &catalog)?;
    let lock = lock::path_beside(&args.manifest.manifest);
    say_removed(lock::remove_drafts(&lock));
    if !args.locked {
        say_unpinned(&lock, &catalog);
    }
    let observation = match args.observe.as_deref().map(Observation::open).transpose() {
        Ok(observation) => observation.map(Arc::new),
        Err(error) => {
            terminal::error(&format!("the observation cannot be written: {}", plain(&error)), None);
            return Ok(Exit::AtFault);
        }
    };
    let catalog = catalog.observed(observation.clone());
    let host = Arc::new(Current::new(catalog));
    let (info, mut options) = described(&manifest);
    if let Some(source) = manifest.server().state_key() {
        match state_key(source, &folder_of(&args.manifest.manifest)) {
            Ok(key) => options.state_key = key,
            Err((problem, hint)) => {
                terminal::error(&format!("state_key: {problem}"), Some(&hint));
                return Ok(Exit::AtFault);
            }
        }
    }
    let server = Arc::new(Server::new(Arc::clone(&host), info, options));
    let way = match Way::open(args, &manifest, &machine)? {
        Ok(way) => way,
        Err(problem) => {
            terminal::error(&problem.message, problem.hint);
            return Ok(Exit::AtFault);
        }
    };
    let (files, others) = Files::new().context("no pipe for the files that are watched")?;
    let journal = Arc::new(Journal::default());
    let setup = Setup {
        manifest_path: args.manifest.manifest.clone(),
        manifest,
        builder,
        current: Arc::clone(&host),
        server: Arc::clone(&server),
        sink: Arc::clone(&sink),
        journal: Arc::clone(&journal),
        files: files.clone(),
        lock: args.locked.then_some(lock),
    };
    let reloading = Reloading::start(setup, (args.watch, others))?;
    // What changed while it was read would go unseen: it is looked at once more.
    if files.changed_since(began) {
        reloading.orders.files();
    }
    let subject = Subject {
        manifest: args.manifest.manifest.clone(),
        current: Arc::clone(&host),
        journal,
        started: (Instant::now(), began),
        locked: args.locked,
        dev: dev.as_ref().map(|(job, _)| job.board.clone()),
    };
    let dev = dev.map(|(job, built)| dev::Driver::start(job, built, reloading.orders.clone())).transpose();
    let dev = dev.context("no thread to build on")?;
    let place = (&args.control, args.manifest.manifest.as_path());
    let control = match Control::start(machine.runtime.handle(), place, subject, reloading.orders.clone()) {
        Err(problem) if matches!(args.control, ControlArg::At(_)) => {
            terminal::error(&format!("the control socket: {problem}"), None);
            return Ok(Exit::AtFault);
        }
        Err(problem) => {
            tracing::warn!("no control socket, so no `toolcell status` and `toolcell reload`: {problem}");
            None
        }
        Ok(control) => control,
    };
    heed_signals(machine.runtime.handle(), way.stop(), reloading.orders.clone())?;
    let end = way.serve(&server, &machine);
    let reason = match &end {
        Ok(End::Eof) => "end of input".to_owned(),
        Ok(End::Shutdown) => "signal".to_owned(),
        Ok(End::OutputClosed) => "output closed".to_owned(),
        Err(error) => error.to_string(),
    };
    drop(control);
    drop(dev);
    drop(reloading);
    let calls = host.snapshot().calls_started();
    if let Err(error) = sink.record(|| Event::HostStopped(HostStopped { reason: Clipped(&reason), calls })) {
        tracing::error!("the end is missing in the audit: {error}");
    }
    if let (Some(observation), Some(path)) = (observation, &args.observe) {
        let (count, path) = (observation.count(), path.display());
        terminal::say(&format!("observed {count} denied attempts; see: toolcell policy suggest {path}\n"));
    }
    drop(machine.workers);
    machine.runtime.shutdown_timeout(IO_ENDS_WITHIN);
    end?;
    Ok(Exit::Done)
}

/// How clients reach the server.
enum Way {
    Stdio { options: StdioOptions, shutdown: Shutdown },
    Http { opened: Box<Opened>, shutdown: transport::Shutdown },
}

impl Way {
    /// Opens what the command line asks for. The inner error is what is wrong with it.
    fn open(args: &ServeArgs, manifest: &Manifest, machine: &Machine) -> anyhow::Result<Result<Self, http::Problem>> {
        let Some(arg) = &args.http else {
            let mut options = StdioOptions::of_process().context("stdin or stdout is closed")?;
            options.line_bytes_max = manifest.server().line_bytes_max();
            return Ok(Ok(Self::Stdio { options, shutdown: Shutdown::new()? }));
        };
        let folder = folder_of(&args.manifest.manifest);
        let at = (folder.as_path(), machine.runtime.handle());
        let opened = http::open(arg, manifest.http(), args.insecure_public, at);
        Ok(opened.map(|opened| Self::Http { opened: Box::new(opened), shutdown: transport::Shutdown::default() }))
    }

    /// What ends the serving.
    fn stop(&self) -> Box<dyn FnOnce() + Send> {
        match self {
            Self::Stdio { shutdown, .. } => {
                let shutdown = shutdown.clone();
                Box::new(move || shutdown.begin())
            }
            Self::Http { shutdown, .. } => {
                let shutdown = shutdown.clone();
                Box::new(move || shutdown.begin())
            }
        }
    }

    /// Serves until the input ends or a signal comes.
    fn serve(self, server: &Arc<Server<Current>>, machine: &Machine) -> Result<End, stdio::StdioError> {
        match self {
            Self::Stdio { options, shutdown } => stdio::serve(server, options, machine.workers.executor(), &shutdown),
            Self::Http { opened, shutdown } => {
                let Opened { options, endpoints, asks_for_tokens, guard } = *opened;
                for endpoint in endpoints {
                    let whom = if asks_for_tokens { "callers with a token" } else { "anyone who reaches it" };
                    terminal::say(&format!("serving {whom} at {endpoint}\n"));
                }
                let executor = machine.workers.executor();
                machine.runtime.block_on(transport::serve(server, options, executor, &shutdown));
                drop(guard);
                Ok(End::Shutdown)
            }
        }
    }
}

/// Opens the file that the command line names, or else the manifest in this folder, as the manifest wants it kept.
fn open_audit(args: &ServeArgs, policy: &AuditPolicy, folder: &Path) -> Result<Sink, String> {
    let named = policy.file().map(|file| folder.join(file));
    let Some(path) = args.audit.clone().or(named) else { return Ok(Sink::disabled()) };
    let opened = Sink::open_with(&path, kept_as(policy));
    let (sink, opened) = opened.map_err(|error| format!("the audit {}: {error}", path.display()))?;
    if opened.torn_bytes > 0 {
        tracing::warn!("the audit ended in half a record; {} bytes were cut off", opened.torn_bytes);
    }
    Ok(sink.telling(|error| tracing::error!("calls go on without a record: {error}")))
}

fn kept_as(policy: &AuditPolicy) -> Settings {
    let keep = u32::try_from(policy.keep()).unwrap_or(FILES_MAX);
    Settings {
        rotation: Some(Rotation { file_bytes_max: policy.rotate_bytes(), keep }),
        fsync: match policy.fsync() {
            toolcell_policy::Fsync::Never => Fsync::Never,
            toolcell_policy::Fsync::Always => Fsync::Always,
        },
        arguments: match policy.arguments() {
            AuditArguments::Digest => Arguments::Digest,
            AuditArguments::Values => Arguments::Values,
        },
        required: policy.required(),
    }
}

fn record_start(sink: &Sink, file: &ManifestFile, catalog: &Catalog) -> anyhow::Result<()> {
    let manifest_digest = Digest::of(file.text().as_bytes()).to_string();
    sink.record(|| {
        Event::HostStarted(HostStarted {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            manifest: Clipped(file.name()),
            manifest_digest: &manifest_digest,
        })
    })
    .context("the audit cannot be written")?;
    record_components(sink, catalog, |_| true).context("the audit cannot be written")
}

/// Records these components of a catalog as loaded.
pub fn record_components(sink: &Sink, catalog: &Catalog, which: impl Fn(&str) -> bool) -> Result<(), SinkError> {
    for component in catalog.components().iter().filter(|component| which(component.name())) {
        let tools = catalog.tools_of(component);
        sink.record(|| {
            Event::ComponentLoaded(ComponentLoaded {
                generation: catalog.tools().generation(),
                name: component.name(),
                digest: component.digest(),
                size_bytes: component.inspection().size_bytes(),
                policy_digest: component.policy_digest(),
                tools: &tools,
            })
        })?;
    }
    Ok(())
}

/// Says once that nothing keeps a component from being another one tomorrow, or that it is one already.
fn say_unpinned(path: &Path, catalog: &Catalog) {
    match lock::read(path) {
        Ok(None) => tracing::info!("nothing is pinned: there is no {}; `toolcell lock` writes it", path.display()),
        Ok(Some(locked)) => {
            let drifts = drift(&locked, &Lock::of(catalog));
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

/// What the server says of itself, and how it bounds its connections, as the manifest has it.
fn described(manifest: &Manifest) -> (ServerInfo, ServerOptions) {
    let server = manifest.server();
    let info = ServerInfo {
        name: server.name().to_owned(),
        title: server.title().map(str::to_owned),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instructions: server.instructions().map(str::to_owned),
        ..ServerInfo::default()
    };
    let options = ServerOptions {
        page_size: server.page_size(),
        in_flight_max: server.in_flight_max(),
        pending_calls_max: server.pending_max(),
        ..ServerOptions::default()
    };
    (info, options)
}

/// The key that several processes share which answer the same clients.
fn state_key(source: &SecretSource, folder: &Path) -> Result<StateKey, (String, String)> {
    let (value, shown) = secrets::text(source, folder)?;
    StateKey::of(value.as_bytes()).map_err(|weak| {
        let hint = format!("make one of at least {STATE_KEY_BYTES_MIN} bytes, such as `openssl rand -hex 32` gives");
        (format!("{shown}: {weak}"), hint)
    })
}

/// What reloads while it serves. The watcher is dropped first: it gives orders to the driver.
struct Reloading {
    _watcher: Watcher,
    _driver: Driver,
    orders: Orders,
}

impl Reloading {
    fn start(setup: Setup, (watch, others): (Watch, PipeReader)) -> anyhow::Result<Self> {
        let (orders, inbox) = Driver::channel();
        let folder = folder_of(&setup.manifest_path);
        let base = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
        let base = base.canonicalize().context("the manifest's folder is gone")?;
        let files = setup.files.clone();
        let driver = Driver::start(Reloader::new(setup), orders.clone(), inbox).context("no thread to reload on")?;
        let watcher = Watcher::start(watch, (files, others), base, orders.clone()).context("no thread to watch on")?;
        Ok(Self { _watcher: watcher, _driver: driver, orders })
    }
}

/// SIGTERM and SIGINT end the serving; calls that run are finished first. SIGHUP reloads.
fn heed_signals(runtime: &Handle, stop: Box<dyn FnOnce() + Send>, orders: Orders) -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let _inside = runtime.enter();
    let mut terminated = signal(SignalKind::terminate()).context("SIGTERM cannot be handled")?;
    let mut interrupted = signal(SignalKind::interrupt()).context("SIGINT cannot be handled")?;
    let mut hung_up = signal(SignalKind::hangup()).context("SIGHUP cannot be handled")?;
    drop(runtime.spawn(async move {
        loop {
            tokio::select! {
                _ = terminated.recv() => break,
                _ = interrupted.recv() => break,
                _ = hung_up.recv() => orders.hangup(),
            }
        }
        stop();
    }));
    Ok(())
}
