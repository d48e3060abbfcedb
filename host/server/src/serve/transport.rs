//! Transports of the server: stdin and stdout, or HTTP.
use std::path::Path;
use std::sync::Arc;

use toolcell_mcp::http as web;
use toolcell_mcp::stdio::{self, StdioEnd, StdioOptions, StdioShutdown};
use toolcell_policy::Manifest;
use toolcell_shared::{Bus, SharedState};

use super::{ServerOptions, Serving, TransportOptions};
use crate::catalog::folder_of;
use crate::error::{StartError, StepExt as _};
use crate::http::{self, BoundTransport};
use crate::identity::Authenticator;
use crate::machine::Machine;
use crate::machine::descriptors;
use crate::observing::refusals::Refusals;
use crate::replicas::bus::SharedReplicas;
use crate::replicas::replicated_sets::ReplicatedSets;

/// Transport of clients.
pub(super) enum Transport {
    Stdio { options: StdioOptions, shutdown: StdioShutdown },
    Http { bound: Box<BoundTransport>, shutdown: web::HttpShutdown },
}

impl Transport {
    /// Opens the transport of these options. Relative paths start from the manifest's folder.
    pub(super) fn open(
        path: &Path,
        options: &ServerOptions,
        manifest: &Manifest,
        machine: &Machine,
    ) -> Result<Self, StartError> {
        let TransportOptions::Http(address) = &options.transport else {
            descriptors::raise(0);
            let mut options = StdioOptions::of_process().step("stdin or stdout is closed")?;
            options.line_bytes_max = manifest.server().line_bytes_max();
            options.drain = manifest.server().drain();
            let shutdown = StdioShutdown::new().step("no pipe to end the serving by")?;
            return Ok(Self::Stdio { options, shutdown });
        };
        let folder = folder_of(path);
        let insecure_public = options.insecure_public;
        let settings = http::HttpSettings { address, insecure_public, manifest, folder: &folder };
        let bound = http::open(&settings, machine.runtime.handle())?;
        Ok(Self::Http { bound: Box::new(bound), shutdown: web::HttpShutdown::default() })
    }

    /// Lets any replica answer a legacy session. Over stdio there is only one client.
    pub(super) fn reach_replicas(
        &mut self,
        state: &Arc<dyn SharedState>,
        bus: Arc<dyn Bus>,
        machine: &Machine,
    ) -> Result<(), StartError> {
        if let Self::Http { bound, .. } = self {
            let replicas = SharedReplicas::open(Arc::clone(state), bus, machine.runtime.handle());
            let replicas =
                replicas.ok_or_else(|| StartError::refused("[state]: the machine gives no random numbers"))?;
            bound.options.replicas = Some(Arc::new(replicas));
        }
        Ok(())
    }

    /// Shares revoked tokens with other replicas. What they know is kept in the folder `state`.
    pub(super) fn share_revoked(&self, sets: &Arc<ReplicatedSets>, state: &Path) {
        if let Self::Http { bound, .. } = self {
            bound.authenticator.iter().for_each(|authenticator| authenticator.share(sets, state));
        }
    }

    /// Checks tokens of callers; `None` over stdio, and if callers have none.
    pub(super) fn authenticator(&self) -> Option<&Arc<Authenticator>> {
        match self {
            Self::Stdio { .. } => None,
            Self::Http { bound, .. } => bound.authenticator.as_ref(),
        }
    }

    /// URL of each socket, for people.
    pub(super) fn endpoints(&self) -> &[String] {
        match self {
            Self::Stdio { .. } => &[],
            Self::Http { bound, .. } => &bound.endpoints,
        }
    }

    /// Its name in OpenTelemetry.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "pipe",
            Self::Http { .. } => "tcp",
        }
    }

    /// Reports readiness only while this does.
    pub(super) fn ready_with(&mut self, readiness: Arc<dyn web::Readiness>) {
        if let Self::Http { bound, .. } = self {
            bound.options.readiness = Some(readiness);
        }
    }

    /// Counts refused requests there.
    pub(super) fn report_refused(&mut self, refusals: &Arc<Refusals>) {
        if let Self::Http { bound, .. } = self {
            bound.options.refusals = Some(Arc::<Refusals>::clone(refusals));
        }
    }

    /// Its counters, over HTTP.
    pub(super) fn traffic(&self) -> Option<Arc<web::Traffic>> {
        match self {
            Self::Stdio { .. } => None,
            Self::Http { bound, .. } => Some(Arc::clone(&bound.options.traffic)),
        }
    }

    /// Stops the server when called.
    pub(super) fn stop(&self) -> Arc<dyn Fn() + Send + Sync> {
        match self {
            Self::Stdio { shutdown, .. } => {
                let shutdown = shutdown.clone();
                Arc::new(move || shutdown.begin())
            }
            Self::Http { shutdown, .. } => {
                let shutdown = shutdown.clone();
                Arc::new(move || shutdown.begin())
            }
        }
    }

    /// Serves until the input ends or a signal comes.
    pub(super) fn serve(self, serving: &Serving) -> Result<StdioEnd, stdio::StdioError> {
        let Serving { server, machine, services, .. } = serving;
        match self {
            Self::Stdio { options, shutdown } => stdio::serve(server, options, machine.workers.executor(), &shutdown),
            Self::Http { bound, shutdown } => {
                let BoundTransport { options, endpoints, asks_for_tokens, guard, .. } = *bound;
                for endpoint in endpoints {
                    let whom = if asks_for_tokens { "callers with a token" } else { "anyone who reaches it" };
                    services.log.announce(&format!("serving {whom} at {endpoint}"));
                }
                let executor = machine.workers.executor();
                machine.runtime.block_on(web::serve(server, options, executor, &shutdown));
                drop(guard);
                Ok(StdioEnd::Shutdown)
            }
        }
    }
}
