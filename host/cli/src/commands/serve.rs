//! `toolcell serve`: the manifest's tools on stdin and stdout, or over HTTP.
mod attendance;
mod audited;
mod identity;
mod way;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use toolcell_audit::Sink;
use toolcell_mcp::stdio::{End, StdioError};
use toolcell_mcp::{Host as _, Server};
use toolcell_policy::Manifest;
use toolcell_sandbox::SLOT_RESETS;

use crate::args::ServeArgs;
use crate::catalog::{Catalog, plain};
use crate::commands::lock::{holds_or_say, locked_or_say, say_removed};
use crate::dev::{Job, Look};
use crate::exit::{AtFault, Exit};
use crate::lock::{self, Lock, drift};
use crate::logging::{self, Log, LogControl};
use crate::machine::Machine;
use crate::metrics::{Bound, Listening, Page, Requests, Sources};
use crate::observe::Observation;
use crate::project::{ManifestFile, Ready, open_recording_or_say};
use crate::reload::{Current, Journal};
use crate::traces::Traces;
use attendance::{Attendance, Beginning};
pub use audited::record_components;
use way::Way;

/// How long a blocking operation for a guest may go on once everything is answered; then the process ends without it.
const IO_ENDS_WITHIN: Duration = Duration::from_secs(1);

/// A process that serves: what it serves, on what, and to whom it tells what happens.
struct Serving {
    machine: Machine,
    sink: Arc<Sink>,
    current: Arc<Current>,
    server: Arc<Server<Current>>,
    journal: Arc<Journal>,
    observed: Observed,
    log: LogControl,
    traces: Option<Arc<Traces>>,
}

/// What tools try and are denied, where somebody wants to know.
struct Observed(Option<Arc<Observation>>);

/// Serves until the input ends or a signal comes.
pub fn run(args: &ServeArgs) -> anyhow::Result<Exit> {
    let log = logging::start(&args.log);
    serve(args, &log, None)
}

/// The same, and builds a project meanwhile, which looked so when it was built last.
pub fn serve(args: &ServeArgs, log: &Log, dev: Option<(Job, Option<Look>)>) -> anyhow::Result<Exit> {
    AtFault::said(serve_to_the_end(args, log, dev))
}

fn serve_to_the_end(args: &ServeArgs, log: &Log, dev: Option<(Job, Option<Look>)>) -> anyhow::Result<Exit> {
    let began = SystemTime::now();
    let Some((file, ready)) = opened(args)? else { return Ok(Exit::AtFault) };
    audited::record_start(&ready.sink, &file, &ready.catalog)?;
    look_at_lock(args, &ready.catalog);
    let Ready { manifest, catalog, machine, sink, builder, .. } = ready;
    let observed = Observed::open(args.observe.as_deref())?;
    let way = Way::open(args, &manifest, &machine)?;
    let traces = manifest.traces().map(|policy| Traces::start(policy, way.transport())).transpose()?;
    let catalog = catalog.observed(observed.0.clone()).traced(traces.clone());
    let current = Arc::new(Current::new(catalog, Requests::traced(traces.clone())));
    let server = identity::server(&args.manifest.manifest, &manifest, &current)?;
    let bound = Bound::open(args.metrics, manifest.metrics(), args.insecure_public)?;
    let (journal, log) = (Arc::new(Journal::default()), log.control());
    let serving = Serving { machine, sink, current, server, journal, observed, log, traces };
    let metrics = bound.map(|bound| serving.show_metrics(bound, &way, began)).transpose()?;
    let beginning = Beginning { manifest, builder, began, dev };
    let attendance = Attendance::start(args, &serving, beginning, way.stop())?;
    tracing::debug!("slots of instances are reset: {SLOT_RESETS}");
    let end = way.serve(&serving);
    drop(attendance);
    drop(metrics);
    serving.end(args, end)
}

/// What the manifest came to, where nothing is wrong with it; what is wrong is said.
fn opened(args: &ServeArgs) -> anyhow::Result<Option<(ManifestFile, Ready)>> {
    let path = &args.manifest.manifest;
    let audit = |manifest: &Manifest, folder: &Path| audited::open_audit(args, manifest.audit(), folder);
    // Before any component is read. Where there is no manifest, that is what is said.
    let locked = if args.locked && path.exists() { locked_or_say(path) } else { None };
    if args.locked && path.exists() && locked.is_none() {
        return Ok(None);
    }
    let opened = open_recording_or_say(path, &args.code, &audit, locked.as_ref())?;
    Ok(opened.filter(|(_, ready)| locked.as_ref().is_none_or(|locked| holds_or_say(path, locked, ready))))
}

fn look_at_lock(args: &ServeArgs, catalog: &Catalog) {
    let lock = lock::path_beside(&args.manifest.manifest);
    say_removed(lock::remove_drafts(&lock));
    if !args.locked {
        say_unpinned(&lock, catalog);
    }
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

impl Serving {
    /// Serves the figures of all this.
    fn show_metrics(&self, bound: Bound, way: &Way, started: SystemTime) -> anyhow::Result<Listening> {
        let url = bound.url();
        let page = Page::new(Sources {
            current: Arc::clone(&self.current),
            journal: Arc::clone(&self.journal),
            sink: Arc::clone(&self.sink),
            traffic: way.traffic(),
            log: self.log.clone(),
            traces: self.traces.as_ref().map(|traces| Arc::clone(traces.sent())),
            started,
        });
        let listening = bound.serve(page, self.machine.runtime.handle()).context("the metrics cannot be served")?;
        self.log.announce(&format!("metrics at {url}"));
        Ok(listening)
    }

    /// Records the end, and ends what runs guests.
    fn end(self, args: &ServeArgs, end: Result<End, StdioError>) -> anyhow::Result<Exit> {
        let reason = match &end {
            Ok(End::Eof) => "end of input".to_owned(),
            Ok(End::Shutdown) => "signal".to_owned(),
            Ok(End::OutputClosed) => "output closed".to_owned(),
            Err(error) => error.to_string(),
        };
        audited::record_end(&self.sink, &reason, self.current.snapshot().calls_started());
        self.observed.say(args.observe.as_deref(), &self.log);
        drop(self.machine.workers);
        if let Some(traces) = &self.traces {
            traces.end();
        }
        self.machine.runtime.shutdown_timeout(IO_ENDS_WITHIN);
        end?;
        Ok(Exit::Done)
    }
}

impl Observed {
    fn open(path: Option<&Path>) -> Result<Self, AtFault> {
        let unwritable =
            |error: std::io::Error| AtFault::new(format!("the observation cannot be written: {}", plain(&error)));
        Ok(Self(path.map(Observation::open).transpose().map_err(unwritable)?.map(Arc::new)))
    }

    fn say(&self, path: Option<&Path>, log: &LogControl) {
        if let (Some(observation), Some(path)) = (&self.0, path) {
            let (count, path) = (observation.count(), path.display());
            log.announce(&format!("observed {count} denied attempts; see: toolcell policy suggest {path}"));
        }
    }
}
