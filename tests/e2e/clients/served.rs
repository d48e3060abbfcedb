//! How a client reaches the toolcell that it talks with: it starts one itself, or is told the
//! addresses of some that serve over HTTP. Holds no expectation.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::process::Command;
use toolcell_tests::web::WebHost;

use super::cases::Server;
use super::rmcp::Target;

/// Calls that run have ten seconds from there: a server that ends sooner had none.
const END_TIME_MAX: Duration = Duration::from_secs(8);

/// What serves, by the name that clients know it by.
pub(super) struct Served(Vec<(&'static str, WebHost)>);

impl Served {
    /// Nothing: each client starts its own.
    pub(super) fn by_the_client() -> Self {
        Self(Vec::new())
    }

    /// The servers of the cases, over HTTP.
    pub(super) fn over_http() -> Self {
        let serving = |name| (name, WebHost::of_manifest(&Server::named(name).manifest()));
        Self(vec![serving("examples"), serving("endless")])
    }

    /// This manifest, over HTTP, by this name.
    pub(super) fn manifest(name: &'static str, manifest: &Path) -> Self {
        Self(vec![(name, WebHost::of_manifest(manifest))])
    }

    /// Tells a client program where they are.
    pub(super) fn tell(&self, client: &mut Command) {
        for (name, host) in &self.0 {
            client.arg("--at").arg(format!("{name}={}", host.url()));
        }
    }

    /// Where the server of this name in the cases is reached.
    pub(super) fn target(&self, name: &str) -> Target {
        self.url(name).unwrap_or_else(|| Target::Arguments(Server::named(name).arguments()))
    }

    /// Where the server of this name is reached over HTTP.
    pub(super) fn url(&self, name: &str) -> Option<Target> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, host)| Target::Url(host.url()))
    }

    /// They end well when they are told to, and soon: no call that a client gave up runs on.
    pub(super) fn end(self) {
        for (name, host) in self.0 {
            let began = Instant::now();
            host.process().terminate();
            let ended = host.into_process().ends();
            assert!(ended.status.success(), "{name} ended with {}\n{}", ended.status, ended.stderr);
            assert!(!ended.stderr.contains("panicked"), "{name}\n{}", ended.stderr);
            assert!(began.elapsed() < END_TIME_MAX, "{name} took {:?} to end", began.elapsed());
        }
    }
}
