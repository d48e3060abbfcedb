//! What goes on beside the serving: reloading, the control socket, the building of a project, signals. Must not hold: how
//! clients are served.
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::Context as _;
use tokio::runtime::Handle;
use toolcell_policy::Manifest;

use super::Serving;
use crate::args::ServeArgs;
use crate::catalog::{Builder, folder_of};
use crate::control::{Control, ControlArg, Subject};
use crate::dev::{self, Board, Job, Look};
use crate::exit::AtFault;
use crate::lock;
use crate::reload::{Driver, Files, Orders, Reloader, Setup, Watcher};

/// What serving began with.
pub struct Beginning {
    /// What was read.
    pub manifest: Manifest,
    /// Builds further generations.
    pub builder: Builder,
    /// When it began to be read.
    pub began: SystemTime,
    /// The project that is built meanwhile, and how it looked when it was built last.
    pub dev: Option<(Job, Option<Look>)>,
}

/// All of it. What is named first ends first, when this is dropped: each gives orders to what is named after it.
pub struct Attendance {
    _control: Option<Control>,
    _dev: Option<dev::Driver>,
    _watcher: Watcher,
    _driver: Driver,
}

impl Attendance {
    /// Starts all of it. `stop` ends the serving.
    pub fn start(
        args: &ServeArgs,
        serving: &Serving,
        beginning: Beginning,
        stop: Box<dyn FnOnce() + Send>,
    ) -> anyhow::Result<Self> {
        let (files, others) = Files::new().context("no pipe for the files that are watched")?;
        let Beginning { manifest, builder, began, dev } = beginning;
        let setup = setup(args, serving, (manifest, builder), &files);
        let base = folder_of(&args.manifest.manifest);
        let base = if base.as_os_str().is_empty() { Path::new(".") } else { &base };
        let base = base.canonicalize().context("the manifest's folder is gone")?;
        let (orders, inbox) = Driver::channel();
        let driver = Driver::start(Reloader::new(setup), orders.clone(), inbox).context("no thread to reload on")?;
        let watched = (files.clone(), others);
        let watcher = Watcher::start(args.watch, watched, base, orders.clone()).context("no thread to watch on")?;
        // What changed while it was read would go unseen: it is looked at once more.
        if files.changed_since(began) {
            orders.files();
        }
        let board = dev.as_ref().map(|(job, _)| job.board.clone());
        let dev = dev.map(|(job, built)| dev::Driver::start(job, built, orders.clone())).transpose();
        let dev = dev.context("no thread to build on")?;
        let control = control(args, serving, (began, board), &orders)?;
        heed_signals(serving.machine.runtime.handle(), stop, orders)?;
        Ok(Self { _control: control, _dev: dev, _watcher: watcher, _driver: driver })
    }
}

fn setup(args: &ServeArgs, serving: &Serving, (manifest, builder): (Manifest, Builder), files: &Files) -> Setup {
    let path = &args.manifest.manifest;
    Setup {
        manifest_path: path.clone(),
        manifest,
        builder,
        current: Arc::clone(&serving.current),
        server: Arc::clone(&serving.server),
        sink: Arc::clone(&serving.sink),
        journal: Arc::clone(&serving.journal),
        files: files.clone(),
        lock: args.locked.then(|| lock::path_beside(path)),
    }
}

/// The control socket. A place that the command line names must be had; without the usual one it is served all the same.
fn control(
    args: &ServeArgs,
    serving: &Serving,
    (began, dev): (SystemTime, Option<Board>),
    orders: &Orders,
) -> anyhow::Result<Option<Control>> {
    let path = &args.manifest.manifest;
    let subject = Subject {
        manifest: path.clone(),
        current: Arc::clone(&serving.current),
        journal: Arc::clone(&serving.journal),
        started: (Instant::now(), began),
        locked: args.locked,
        log: serving.log.clone(),
        dev,
    };
    let runtime = serving.machine.runtime.handle();
    match Control::start(runtime, (&args.control, path), subject, orders.clone()) {
        Err(problem) if matches!(args.control, ControlArg::At(_)) => {
            Err(AtFault::new(format!("the control socket: {problem}")).into())
        }
        Err(problem) => {
            tracing::warn!("no control socket, so no `toolcell status` and `toolcell reload`: {problem}");
            Ok(None)
        }
        Ok(control) => Ok(control),
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
