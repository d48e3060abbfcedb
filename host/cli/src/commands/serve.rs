//! `toolcell serve`: the manifest's tools on stdin and stdout, or over HTTP.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use toolcell_server::catalog::folder_of;
use toolcell_server::dev::ProjectBuild;
use toolcell_server::{
    HoldAgainst, ManifestFile, OpenOptions, Ready, Records, Running, Server, ServerOptions, StartError,
    TransportOptions,
};

use crate::args::{MANIFEST, MANIFEST_VARIABLE, ServeArgs, ServeCommandArgs};
use crate::commands::replay::held_against_recordings;
use crate::edit;
use crate::exit::{Exit, Failure};
use crate::logging::{self, Log};
use crate::manifest::{open_sketch_or_report, open_to_serve_or_report};
use crate::sketch::Sketch;
use crate::terminal;

/// Serves until the input ends or a signal arrives.
pub fn run(args: &ServeCommandArgs) -> anyhow::Result<Exit> {
    let log = logging::start(&args.serve.log);
    if args.files.is_empty() {
        let given = [&args.rights.allow, &args.rights.mounts, &args.rights.variables];
        if given.into_iter().any(|given| !given.is_empty()) {
            let hint = "name the components before these options, or edit the manifest with `toolcell grant`";
            return Err(Failure::usage("--allow, --mount and --env are for components without a manifest", hint).into());
        }
        return serve(&args.serve, &log, opening(&args.serve), None);
    }
    let named = &args.serve.manifest.manifest;
    if named.as_path() != Path::new(MANIFEST) && std::env::var_os(MANIFEST_VARIABLE).is_none() {
        let hint = "leave --manifest out, or `toolcell add` them to it";
        return Err(Failure::usage("components are served without a manifest", hint).into());
    }
    serve_loaded(&args.serve, sketched(args)?, &log, None)
}

/// A manifest whose components are loaded.
struct Loaded {
    ready: Ready,
    /// When reading it began.
    began: SystemTime,
}

/// Loads the components of the command line, and writes their manifest if requested.
fn sketched(args: &ServeCommandArgs) -> anyhow::Result<Loaded> {
    let began = SystemTime::now();
    let saved = args.save.as_deref();
    if let Some(path) = saved.filter(|path| path.symlink_metadata().is_ok()) {
        let hint = "name another file with --save=FILE, or `toolcell add` the components to this one";
        return Err(Failure::usage(format!("{} exists already", path.display()), hint).into());
    }
    let folder = saved.map_or_else(|| PathBuf::from("."), folder_of);
    let sketch = Sketch::of(&args.files, &args.rights, &folder, &args.serve.code)?;
    let (file, ready) = open_sketch_or_report(&sketch, saved, opening(&args.serve))?;
    if let Some(path) = saved {
        edit::write(&ManifestFile::unwritten(path, String::new()), file.text())?;
        terminal::note(&format!("{}: written, and served from now on\n", file.name()));
    }
    Ok(Loaded { ready, began })
}

/// Serves an opened manifest, and builds a project meanwhile.
pub fn serve(
    args: &ServeArgs,
    log: &Log,
    options: OpenOptions<'_>,
    build: Option<ProjectBuild>,
) -> anyhow::Result<Exit> {
    let began = SystemTime::now();
    let (_, ready) = open_to_serve_or_report(&args.manifest.manifest, options, &log.control())?;
    serve_loaded(args, Loaded { ready, began }, log, build)
}

/// The options for opening a manifest to serve it.
pub fn opening(args: &ServeArgs) -> OpenOptions<'_> {
    OpenOptions {
        code: args.code.options(),
        records: Records::In(args.audit.as_deref()),
        locked: args.locked,
        serves: true,
        what_works: true,
        observing: args.observe.is_some(),
        ..OpenOptions::default()
    }
}

/// Runs recorded calls with a version that waits for approval.
fn hold(args: &ServeArgs) -> Arc<HoldAgainst> {
    let code = args.code.clone();
    Arc::new(move |version| held_against_recordings(version, &code).map_err(|error| format!("{error:#}")))
}

fn serve_loaded(args: &ServeArgs, loaded: Loaded, log: &Log, build: Option<ProjectBuild>) -> anyhow::Result<Exit> {
    let Loaded { ready, began } = loaded;
    let options = ServerOptions {
        transport: args.http.clone().map_or(TransportOptions::Stdio, TransportOptions::Http),
        insecure_public: args.insecure_public,
        observe: args.observe.clone(),
        watch: args.watch.into(),
        control: args.control.clone(),
        metrics: args.metrics,
        console: args.console.clone(),
        hold: Some(hold(args)),
        log: Some(Arc::new(log.control())),
        build,
        signals: true,
        began: Some(began),
    };
    match Server::start(ready, options).and_then(Running::serve) {
        Ok(_) => Ok(Exit::Done),
        Err(StartError::Refused { message, hint }) => Err(Failure::at_fault(message, hint.unwrap_or_default()).into()),
        Err(error) => Err(error.into()),
    }
}
