//! Work in the background: reloads, the control socket, signals.
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use toolcell_mcp::Host as _;
use toolcell_policy::Manifest;

use super::{ServerOptions, Serving};
use crate::catalog::{CatalogBuilder, folder_of};
use crate::dev;
use crate::error::{StartError, StepExt as _};
use crate::files::WatchingThread;
use crate::lock;
use crate::operators::control::{Control, ControlSocket, StatusSources, load};
use crate::reload::{self, Driver, Orders, Reloader, Setup, WatchInput, WatchedFiles};
use crate::replicas::replicated_sets::ReplicatedSetName;
use crate::resources::folders::{FolderChanges, FolderWatch};

pub(super) struct InitialState {
    /// The manifest.
    pub(super) manifest: Manifest,
    /// Builds further generations.
    pub(super) builder: CatalogBuilder,
    /// When reading the manifest began.
    pub(super) began: SystemTime,
}

/// The background work. On drop the fields end in order: each sends orders to the next.
pub(super) struct Background {
    _control: Option<Control>,
    _build: Option<WatchingThread>,
    _watcher: Option<WatchingThread>,
    _folders: FolderWatch,
    _driver: Driver,
}

impl Background {
    /// Starts the background work, and returns a way to order reloads. `stop` stops the server.
    pub(super) fn start(
        options: ServerOptions,
        serving: &Serving,
        initial: InitialState,
        stop: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<(Self, Orders), StartError> {
        let (files, set_changed) = WatchedFiles::new().step("no pipe for the files that are watched")?;
        let InitialState { manifest, builder, began } = initial;
        let setup = setup(serving, manifest, builder, &files);
        let base = folder_of(&serving.opened.path).canonicalize().step("the manifest's folder is gone")?;
        let (orders, inbox) = Driver::channel();
        if let Some(sets) = &serving.services.replicated_sets {
            let orders = orders.clone();
            // Catalogs hold the replicated sets, so this reference must be weak.
            let current = Arc::downgrade(&serving.current);
            sets.on_read(ReplicatedSetName::Approvals, move || {
                let Some(current) = current.upgrade() else { return };
                if !current.journal.quarantined().is_empty() {
                    orders.approved_elsewhere();
                }
            });
        }
        let driver = Driver::start(Reloader::new(setup), orders.clone(), inbox).step("no thread to reload on")?;
        let watched = WatchInput { files: files.clone(), set_changed };
        let watcher = reload::watch(options.watch, watched, base, orders.clone()).step("no thread to watch on")?;
        let folders = FolderWatch::start(options.watch, changes(serving)).step("no thread to watch folders on")?;
        serving.current.wake(folders.waker());
        folders.waker().wake();
        // A change during the read would be missed, so this reload examines the files again. It
        // also quarantines what differs from the lock.
        if files.changed_since(began) || serving.opened.differs {
            orders.files();
        }
        let control = control(&options, serving, began, &orders)?;
        let build = options.build.map(|build| dev::keep_built(build.job, build.built, orders.clone()));
        let build = build.transpose().step("no thread to build on")?;
        if options.signals {
            heed_signals(serving, stop, orders.clone())?;
        }
        Ok((Self { _control: control, _build: build, _watcher: watcher, _folders: folders, _driver: driver }, orders))
    }
}

/// The folders whose files are resources, and how their changes reach clients.
fn changes(serving: &Serving) -> FolderChanges {
    let current = Arc::clone(&serving.current);
    let server = Arc::clone(&serving.server);
    FolderChanges {
        folders: Box::new(move || current.snapshot().folders()),
        tell: Box::new(move |news| server.publish(news)),
    }
}

fn setup(serving: &Serving, manifest: Manifest, builder: CatalogBuilder, files: &WatchedFiles) -> Setup {
    let path = &serving.opened.path;
    Setup {
        manifest_path: path.clone(),
        given: serving.opened.given.clone(),
        manifest,
        builder,
        current: Arc::clone(&serving.current),
        server: Arc::clone(&serving.server),
        announcements: serving.announcements.clone(),
        logins: Arc::clone(&serving.logins),
        services: Arc::clone(&serving.services),
        files: files.clone(),
        lock: serving.opened.given.is_none().then(|| lock::path_beside(path)),
        locked: serving.opened.locked,
        warned: serving.opened.warned.iter().cloned().collect(),
    }
}

/// The control socket. A path from the options must be available. Without the default one the
/// server still runs.
fn control(
    options: &ServerOptions,
    serving: &Serving,
    began: SystemTime,
    orders: &Orders,
) -> Result<Option<Control>, StartError> {
    let subject = StatusSources {
        manifest: serving.opened.path.clone(),
        current: Arc::clone(&serving.current),
        started: (Instant::now(), began),
        locked: serving.opened.locked,
        build: options.build.as_ref().map(|build| build.job.last_build.clone()),
        session_gate: serving.session_gate.clone(),
        health: Arc::clone(&serving.health),
        views: serving.views.clone(),
    };
    let runtime = serving.machine.runtime.handle();
    match Control::start(runtime, &options.control, subject, orders.clone()) {
        Err(problem) if matches!(options.control, ControlSocket::At(_)) => {
            Err(StartError::refused(format!("the control socket: {problem}")))
        }
        Err(problem) => {
            tracing::warn!("no control socket, so no `toolcell status` and `toolcell reload`: {problem}");
            Ok(None)
        }
        Ok(control) => Ok(control),
    }
}

/// SIGTERM and SIGINT stop the server after running calls are finished; a second one skips the
/// notice period. SIGHUP reloads.
fn heed_signals(serving: &Serving, stop: Arc<dyn Fn() + Send + Sync>, orders: Orders) -> Result<(), StartError> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = serving.machine.runtime.handle();
    let _inside = runtime.enter();
    let ending = Arc::clone(&serving.ending);
    let current = Arc::clone(&serving.current);
    let end = move |signal| {
        let catalogs = [current.held(), vec![current.snapshot()]].concat();
        let (running, _) = load(catalogs.iter());
        ending.begin(signal, running);
        stop();
    };
    let mut terminated = signal(SignalKind::terminate()).step("SIGTERM cannot be handled")?;
    let mut interrupted = signal(SignalKind::interrupt()).step("SIGINT cannot be handled")?;
    let mut hung_up = signal(SignalKind::hangup()).step("SIGHUP cannot be handled")?;
    drop(runtime.spawn(async move {
        loop {
            tokio::select! {
                _ = terminated.recv() => end("SIGTERM"),
                _ = interrupted.recv() => end("SIGINT"),
                _ = hung_up.recv() => orders.hangup(),
            }
        }
    }));
    Ok(())
}
