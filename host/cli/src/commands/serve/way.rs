//! How clients reach the server: stdin and stdout, or HTTP. Must not hold: what else goes on while it serves.
use std::sync::Arc;

use anyhow::Context as _;
use toolcell_mcp::http as transport;
use toolcell_mcp::stdio::{self, End, Shutdown, StdioOptions};
use toolcell_policy::Manifest;

use super::Serving;
use crate::args::ServeArgs;
use crate::catalog::folder_of;
use crate::exit::AtFault;
use crate::http::{self, Opened};
use crate::machine::Machine;

/// How clients reach the server.
pub enum Way {
    Stdio { options: StdioOptions, shutdown: Shutdown },
    Http { opened: Box<Opened>, shutdown: transport::Shutdown },
}

impl Way {
    /// Opens what the command line asks for.
    pub fn open(args: &ServeArgs, manifest: &Manifest, machine: &Machine) -> anyhow::Result<Self> {
        let Some(arg) = &args.http else {
            let mut options = StdioOptions::of_process().context("stdin or stdout is closed")?;
            options.line_bytes_max = manifest.server().line_bytes_max();
            return Ok(Self::Stdio { options, shutdown: Shutdown::new()? });
        };
        let folder = folder_of(&args.manifest.manifest);
        let at = (folder.as_path(), machine.runtime.handle());
        let opened = http::open(arg, manifest, args.insecure_public, at)
            .map_err(|problem| AtFault::new(problem.message).hint_if(problem.hint))?;
        Ok(Self::Http { opened: Box::new(opened), shutdown: transport::Shutdown::default() })
    }

    /// How clients are connected, as OpenTelemetry names it.
    pub const fn transport(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "pipe",
            Self::Http { .. } => "tcp",
        }
    }

    /// What is counted of it, where it is HTTP.
    pub fn traffic(&self) -> Option<Arc<transport::Traffic>> {
        match self {
            Self::Stdio { .. } => None,
            Self::Http { opened, .. } => Some(Arc::clone(&opened.options.traffic)),
        }
    }

    /// What ends the serving.
    pub fn stop(&self) -> Box<dyn FnOnce() + Send> {
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
    pub(super) fn serve(self, serving: &Serving) -> Result<End, stdio::StdioError> {
        let Serving { server, machine, log, .. } = serving;
        match self {
            Self::Stdio { options, shutdown } => stdio::serve(server, options, machine.workers.executor(), &shutdown),
            Self::Http { opened, shutdown } => {
                let Opened { options, endpoints, asks_for_tokens, guard } = *opened;
                for endpoint in endpoints {
                    let whom = if asks_for_tokens { "callers with a token" } else { "anyone who reaches it" };
                    log.announce(&format!("serving {whom} at {endpoint}"));
                }
                let executor = machine.workers.executor();
                machine.runtime.block_on(transport::serve(server, options, executor, &shutdown));
                drop(guard);
                Ok(End::Shutdown)
            }
        }
    }
}
