//! What `[metrics]` and `[traces]` come to: where the server's figures are read, and where its traces are sent. Must not
//! hold: which figures and traces there are.

use std::net::SocketAddr;

/// The sample ratio is kept in these.
pub(crate) const PARTS: u32 = 1_000_000;

/// The name under which traces are told apart, where the manifest gives none.
pub(crate) const SERVICE_DEFAULT: &str = "toolcell";

/// Where the server's figures are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricsPolicy {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) hosts: Vec<String>,
}

/// Where traces of calls are sent, and of which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracesPolicy {
    pub(crate) endpoint: String,
    pub(crate) sample_parts: u32,
    pub(crate) service: String,
}

impl MetricsPolicy {
    /// The address and port; `None`: the command line says it, or nowhere.
    #[must_use]
    pub const fn listen(&self) -> Option<SocketAddr> {
        self.listen
    }

    /// Names that the address goes by, beside itself.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }
}

impl TracesPolicy {
    /// Where traces are sent by OTLP over HTTP: a URL with the path of traces, `/v1/traces` where the manifest has none.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Which part of the calls is traced whose client has not decided it: 0 to 1; 1 by default.
    #[must_use]
    pub fn sample(&self) -> f64 {
        f64::from(self.sample_parts) / f64::from(PARTS)
    }

    /// The name under which the traces are told apart; `toolcell` by default.
    #[must_use]
    pub fn service(&self) -> &str {
        &self.service
    }
}
