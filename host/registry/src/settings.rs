//! Settings of registries, and every bound on what they send.
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::auth::Credential;
use crate::auth::files;
use crate::store::COMPONENT_BYTES_MAX;

/// Options of a [`RegistryClient`](crate::RegistryClient).
#[derive(Debug, Clone, Default)]
pub struct RegistryOptions {
    /// Settings by host, with its port where the reference has one: `registry.internal:5000`. Other
    /// hosts have the default settings.
    pub by_host: BTreeMap<String, RegistrySettings>,
    /// Files of credentials in the form of Docker's `config.json`, the first one first. Missing
    /// files are ignored. None by default.
    pub credential_files: Vec<PathBuf>,
    /// Folders in which the programs of `credsStore` and `credHelpers` are. None by default.
    pub helper_folders: Vec<PathBuf>,
    /// Bounds on each exchange.
    pub bounds: Bounds,
}

/// Settings of one registry.
#[derive(Debug, Clone, Default)]
pub struct RegistrySettings {
    /// Allows private addresses: loopback, private networks and those behind a provider's
    /// translation. Metadata, link-local and multicast addresses stay refused.
    pub private: bool,
    /// Uses HTTP without TLS. Loopback addresses without `authorities` do so anyway.
    pub plain_http: bool,
    /// PEM file of trusted certificate authorities. The machine's by default.
    pub authorities: Option<PathBuf>,
    /// Host that is used in place of the registry, `host[:port][/path]`, for everything but
    /// pushing. Its own settings and credentials apply.
    pub mirror: Option<String>,
    /// Credential in place of those in the files.
    pub credential: Option<Credential>,
}

/// Bounds on each exchange with a registry.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Time to connect: name, TCP and TLS. 10 s by default: a slow network's name server answers
    /// within five seconds.
    pub connect: Duration,
    /// Time to the end of a document, or to the head of a layer. 30 s by default, several times the
    /// slowest answer of the large registries.
    pub answer: Duration,
    /// Time limit of one layer, up or down, over all its connections. 30 min by default: the
    /// largest component at 2.5 megabits a second.
    pub whole: Duration,
    /// Time limit of everything attached to a component. 5 min by default: the most bytes that it
    /// may have at 2.5 megabits a second, and half a second for each look-up.
    pub attached: Duration,
    /// Time of a list of tags, with all of its pages. 2 min by default: ten pages, several times as
    /// slow as the large registries.
    pub tags: Duration,
    /// Time of a whole pull. 45 min by default: one layer, everything attached, and ten minutes for
    /// the layers next to it and for another process that pulls the same.
    pub pull: Duration,
    /// Window in which [`Self::rate_bytes`] have to arrive. 30 s by default: mobile networks pause
    /// that long.
    pub rate_window: Duration,
    /// Least bytes of a layer in each window. 30 KiB by default: a kilobyte a second.
    pub rate_bytes: u64,
    /// Largest component, in bytes. [`COMPONENT_BYTES_MAX`] by default.
    pub component_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            whole: Duration::from_secs(30 * 60),
            attached: Duration::from_secs(5 * 60),
            tags: Duration::from_secs(2 * 60),
            pull: Duration::from_secs(45 * 60),
            rate_window: Duration::from_secs(30),
            rate_bytes: 30 << 10,
            component_bytes: COMPONENT_BYTES_MAX,
        }
    }
}

impl RegistryOptions {
    /// The defaults, with the files of credentials that this environment names, and helpers of
    /// `PATH`.
    ///
    /// The files are `$DOCKER_CONFIG/config.json`, `$XDG_RUNTIME_DIR/containers/auth.json`,
    /// `~/.config/containers/auth.json` and `~/.docker/config.json`.
    #[must_use]
    pub fn from_environment() -> Self {
        let folders = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
        Self {
            credential_files: files::of_environment(|name| std::env::var_os(name)),
            helper_folders: folders,
            ..Self::default()
        }
    }
}
