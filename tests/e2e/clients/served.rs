//! The way a client reaches its toolcell: it starts one itself, or is given URLs of some that serve
//! over HTTP. Holds no expectation.

use std::time::{Duration, Instant};

use tokio::process::Command;
use toolcell_tests::Folder;
use toolcell_tests::web::WebHost;

use super::cases::Server;
use super::rmcp::Target;

/// Running calls have ten seconds after SIGTERM. A server that ends sooner had no running call.
const END_TIME_MAX: Duration = Duration::from_secs(8);

/// The servers, each with the name that clients use for it.
pub(super) struct Served(Vec<(&'static str, WebHost)>);

impl Served {
    /// No server: each client starts its own.
    pub(super) fn by_the_client() -> Self {
        Self(Vec::new())
    }

    /// The servers of the cases, over HTTP.
    pub(super) fn over_http() -> Self {
        let serving = |name| (name, WebHost::of_manifest(&Server::named(name).manifest()));
        Self(vec![serving("examples"), serving("endless")])
    }

    /// A server of this folder's manifest over HTTP, with this name.
    pub(super) fn folder(name: &'static str, folder: &Folder) -> Self {
        Self(vec![(name, WebHost::in_folder(folder.clone(), &["--http", "127.0.0.1:0"]))])
    }

    /// Gives a client program the URLs of the servers.
    pub(super) fn tell(&self, client: &mut Command) {
        for (name, host) in &self.0 {
            client.arg("--at").arg(format!("{name}={}", host.url()));
        }
    }

    /// The way to reach the server with this name in the cases.
    pub(super) fn target(&self, name: &str) -> Target {
        self.url(name).unwrap_or_else(|| Target::Arguments(Server::named(name).arguments()))
    }

    /// The URL of the server with this name, if it serves over HTTP.
    pub(super) fn url(&self, name: &str) -> Option<Target> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, host)| Target::Url(host.url()))
    }

    /// Ends the servers. Each must end well and soon: no call that a client gave up may still run.
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
