//! The sections `[metrics]` and `[traces]`: where the server's figures are read, and where its
//! traces are sent.

use std::net::SocketAddr;

use super::http::{NAMES_MAX, hosts, page_address};
use crate::grants::HostPort;
use crate::read::texts::{self, LINE_CHARS_MAX};
use crate::read::{Entry, Problems, Section};
use crate::settings::accessors;
use crate::settings::settings;
use crate::table::table;

/// The path of traces, by OTLP ("OTLP/HTTP Request").
const TRACES_PATH: &str = "/v1/traces";

/// The longest endpoint, in bytes.
const ENDPOINT_BYTES_MAX: usize = 2_048;

/// The sample ratio is kept in these.
const PARTS: u32 = 1_000_000;

settings! {
    /// The address at which Prometheus reads the server's figures.
    MetricsPolicy METRICS "Metrics" {
        /// The address and port; `serve --metrics ADDRESS` wins. One that other machines reach
        /// needs `public`, or `--insecure-public`.
        listen: Option<SocketAddr> => Option<SocketAddr> = "listen" (Text, listen, else None),
            {"minLength": 1, "examples": ["127.0.0.1:9464"]};
        /// True allows an address that other machines reach: anyone there can read the figures.
        public: bool => bool = "public" (Flag, Entry::boolean, else false), {"default": false, "examples": [true]};
        /// The address's other names; with a port where only that one is meant.
        hosts: Vec<String> => &[String] = "hosts" (List(&Text), hosts, else Vec::new()),
            {"maxItems": NAMES_MAX, "examples": [["toolcell.internal"]]};
        /// Tools with their own series: the first that are called. All others are counted together.
        tools: usize => usize = "tools" (
            Count { min: 0, default: 100, max: 100_000 },
            "A tool has some 70 series. People look at a hundred tools one by one, and at more of them in the console."
        ), {"examples": [500]};
        /// Callers with their own series: the first that call. All others are counted together.
        /// With 0 the figures do not tell callers apart.
        callers: usize => usize = "callers" (
            Count { min: 0, default: 0, max: 1_000 },
            "A caller has four series. Their names are in them, so they are there only where they are asked for."
        ), {"examples": [100]};
    }
    other names { "address" => "listen", "bind" => "listen", "port" => "listen" }
}

table! {
    /// The collector that gets traces, and the part of the calls that is traced.
    pub(crate) TRACES "Traces" {
        /// The collector of OTLP over HTTP: a URL, with a path where that is not `/v1/traces`.
        "endpoint" required: Text,
            {"minLength": 1, "maxLength": ENDPOINT_BYTES_MAX, "examples": ["http://127.0.0.1:4318"]};
        /// The part of the calls that is traced, 0 to 1. A client's decision for its own trace
        /// wins.
        "sample": Fraction, {"minimum": 0, "maximum": 1, "default": 1, "examples": [0.1]};
        /// The name that tells these traces from those of other services.
        "service": Text,
            {"minLength": 1, "maxLength": LINE_CHARS_MAX, "default": "toolcell", "examples": ["acme-tools"]};
    }
    other names { "url" => "endpoint", "address" => "endpoint", "ratio" => "sample", "name" => "service" }
}

accessors! {
    /// The collector that gets traces, and the part of the calls that is traced.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct TracesPolicy {
        /// The URL to which traces are sent by OTLP over HTTP, with the path of traces:
        /// `/v1/traces` where the manifest has none.
        endpoint: String => &str,
        sample_parts: u32,
        /// The name that tells these traces from those of other services; `toolcell` by default.
        service: String => &str,
    }
}

impl TracesPolicy {
    /// The part of the calls that is traced where the client has not decided it: 0 to 1; 1 by
    /// default.
    #[must_use]
    pub fn sample(&self) -> f64 {
        f64::from(self.sample_parts) / f64::from(PARTS)
    }

    /// The settings of `[traces]`; `None` without the table, or if it names no collector.
    pub(crate) fn read_from(root: &Section<'_>, problems: &mut Problems) -> Option<Self> {
        let table = root.get("traces")?;
        let section = table.table(&TRACES, problems)?;
        let sample = section.get("sample").and_then(|entry| sample(&entry, problems));
        let service = section.get("service").and_then(|entry| texts::line(&entry, "traces::service", problems));
        let Some(entry) = section.get("endpoint") else {
            let problem = table.key_error("traces::endpoint", "[traces] has no endpoint");
            return problems.refuse(problem.hint("add endpoint = \"http://127.0.0.1:4318\""));
        };
        Some(Self {
            endpoint: endpoint(&entry, problems)?,
            sample_parts: sample.unwrap_or(PARTS),
            service: service.unwrap_or_else(|| "toolcell".to_owned()),
        })
    }
}

fn listen(entry: &Entry<'_>, problems: &mut Problems) -> Option<SocketAddr> {
    page_address(entry, "metrics::listen", 9464, problems)
}

/// A URL without user, query and fragment, with a path.
fn endpoint(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let parts = ["http://", "https://"].into_iter().find_map(|scheme| Some((scheme, text.strip_prefix(scheme)?)));
    let read = parts.filter(|_| text.len() <= ENDPOINT_BYTES_MAX).and_then(|(scheme, rest)| {
        let (host, path) = rest.split_at_checked(rest.find('/').unwrap_or(rest.len()))?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~');
        let path = if matches!(path, "" | "/") { TRACES_PATH } else { path };
        let host = HostPort::parse(host)?;
        path.bytes().all(plain).then(|| format!("{scheme}{host}{path}"))
    });
    read.or_else(|| {
        let problem = entry.error("traces::endpoint", format!("{text:?} is not an endpoint for traces"));
        problems.refuse(
            problem
                .hint("write \"http://127.0.0.1:4318\": OTLP over HTTP; a path is needed where it is not /v1/traces"),
        )
    })
}

/// A number from 0 to 1, in parts.
fn sample(entry: &Entry<'_>, problems: &mut Problems) -> Option<u32> {
    let whole = entry.as_integer().and_then(|number| u32::try_from(number).ok()).map(f64::from);
    let number = whole.or_else(|| entry.as_float().and_then(|text| text.replace('_', "").parse().ok()));
    let Some(number) = number.filter(|number| (0.0..=1.0).contains(number)) else {
        let problem = entry.error("traces::sample", "sample must be a number from 0 to 1");
        return problems.refuse(problem.hint("write 0.1 for every tenth call"));
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to a million")]
    let parts = (number * f64::from(PARTS)).round() as u32;
    Some(parts)
}
