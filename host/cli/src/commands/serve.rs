//! `toolcell serve`: the manifest's tools on stdin and stdout, or over HTTP.
use std::sync::Arc;
use std::time::SystemTime;

use toolcell_server::dev::ProjectBuild;
use toolcell_server::{OpenOptions, Records, Running, Server, ServerOptions, StartError, TransportOptions};

use crate::args::ServeArgs;
use crate::exit::Exit;
use crate::logging::{self, Log};
use crate::manifest::open_with_or_say;
use crate::terminal;

/// Serves until the input ends or a signal arrives.
pub fn run(args: &ServeArgs) -> anyhow::Result<Exit> {
    let log = logging::start(&args.log);
    serve(args, &log, None)
}

/// Serves, and builds a project meanwhile.
pub fn serve(args: &ServeArgs, log: &Log, build: Option<ProjectBuild>) -> anyhow::Result<Exit> {
    let began = SystemTime::now();
    let open = OpenOptions {
        code: args.code.options(),
        records: Records::In(args.audit.as_deref()),
        locked: args.locked,
        observing: args.observe.is_some(),
        progress: None,
    };
    let Some((_, ready)) = open_with_or_say(&args.manifest.manifest, open)? else { return Ok(Exit::AtFault) };
    let options = ServerOptions {
        transport: args.http.clone().map_or(TransportOptions::Stdio, TransportOptions::Http),
        insecure_public: args.insecure_public,
        observe: args.observe.clone(),
        watch: args.watch.into(),
        control: args.control.clone(),
        metrics: args.metrics,
        log: Some(Arc::new(log.control())),
        build,
        signals: true,
        began: Some(began),
    };
    let ended = Server::start(ready, options).and_then(Running::serve);
    match ended {
        Ok(_) => Ok(Exit::Done),
        Err(StartError::Refused { message, hint }) => {
            terminal::error(&message, hint.as_deref());
            Ok(Exit::AtFault)
        }
        Err(error) => Err(error.into()),
    }
}
