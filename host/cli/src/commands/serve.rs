//! `toolcell serve`: the manifest's tools on stdin and stdout.
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use toolcell_audit::{
    Arguments, Clipped, ComponentLoaded, Event, FILES_MAX, Fsync, HostStarted, HostStopped, Rotation, Settings, Sink,
};
use toolcell_mcp::stdio::{self, End, Shutdown, StdioOptions};
use toolcell_mcp::{Catalog as _, Host, Server, ServerInfo, ServerOptions};
use toolcell_policy::{AuditArguments, AuditPolicy, Manifest};
use toolcell_sandbox::Digest;

use crate::args::ServeArgs;
use crate::catalog::{Catalog, plain};
use crate::exit::Exit;
use crate::logging;
use crate::observe::Observation;
use crate::project::{ManifestFile, Ready, open_recording_or_say};
use crate::terminal;

/// How long a blocking operation for a guest may go on once everything is answered; then the process ends without it.
const IO_ENDS_WITHIN: std::time::Duration = std::time::Duration::from_secs(1);

/// The catalog that is current.
struct Current(ArcSwap<Catalog>);

impl Host for Current {
    type Catalog = Catalog;

    fn snapshot(&self) -> Arc<Catalog> {
        self.0.load_full()
    }
}

/// Serves until the input ends or a signal comes.
pub fn run(args: &ServeArgs) -> anyhow::Result<Exit> {
    let _log = logging::start(args.log);
    let audit = |manifest: &Manifest, folder: &Path| open_audit(args, manifest.audit(), folder);
    let Some((file, ready)) = open_recording_or_say(&args.manifest.manifest, &args.code, &audit)? else {
        return Ok(Exit::AtFault);
    };
    let Ready { manifest, catalog, machine, sink } = ready;
    record_start(&sink, &file, &catalog)?;
    let observation = match args.observe.as_deref().map(Observation::open).transpose() {
        Ok(observation) => observation.map(Arc::new),
        Err(error) => {
            terminal::error(&format!("the observation cannot be written: {}", plain(&error)), None);
            return Ok(Exit::AtFault);
        }
    };
    let catalog = catalog.observed(observation.clone());
    let host = Arc::new(Current(ArcSwap::from_pointee(catalog)));
    let (info, options) = described(&manifest);
    let server = Arc::new(Server::new(Arc::clone(&host), info, options));
    let shutdown = Shutdown::new()?;
    end_on_signals(machine.runtime.handle(), shutdown.clone())?;
    let mut transport = StdioOptions::of_process().context("stdin or stdout is closed")?;
    transport.line_bytes_max = manifest.server().line_bytes_max();
    let end = stdio::serve(&server, transport, machine.workers.executor(), &shutdown);
    let reason = match &end {
        Ok(End::Eof) => "end of input".to_owned(),
        Ok(End::Shutdown) => "signal".to_owned(),
        Ok(End::OutputClosed) => "output closed".to_owned(),
        Err(error) => error.to_string(),
    };
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
    for component in catalog.components() {
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
        })
        .context("the audit cannot be written")?;
    }
    Ok(())
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

/// SIGTERM and SIGINT end the serving; calls that run are finished first.
fn end_on_signals(runtime: &Handle, shutdown: Shutdown) -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let _inside = runtime.enter();
    let mut terminated = signal(SignalKind::terminate()).context("SIGTERM cannot be handled")?;
    let mut interrupted = signal(SignalKind::interrupt()).context("SIGINT cannot be handled")?;
    drop(runtime.spawn(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
        shutdown.begin();
    }));
    Ok(())
}
