//! Reads `[metrics]` and `[traces]`. Must not hold: what is told of the server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::http::{HOSTS, is_host, named};
use super::{Entry, Problems, Section, keys, texts};
use crate::diagnostic::Diagnostic;
use crate::manifest::telemetry::{MetricsPolicy, PARTS, SERVICE_DEFAULT, TracesPolicy};

/// The path of traces, by OTLP ("OTLP/HTTP Request").
const TRACES_PATH: &str = "/v1/traces";

/// The longest endpoint, in bytes.
const ENDPOINT_BYTES_MAX: usize = 2_048;

/// Where figures are read; `None` where there is no such table.
pub(crate) fn metrics(root: &Section<'_>, problems: &mut Problems) -> Option<MetricsPolicy> {
    let section = root.get("metrics")?.section(problems)?;
    section.check_keys(&keys::METRICS, problems);
    let listen = section.get("listen").and_then(|entry| listen(&entry, problems));
    let hosts = section.get("hosts").map(|entry| named(&entry, &HOSTS, problems)).unwrap_or_default();
    Some(MetricsPolicy { listen, hosts })
}

/// Where traces are sent; `None` where there is no such table.
pub(crate) fn traces(root: &Section<'_>, problems: &mut Problems) -> Option<TracesPolicy> {
    let table = root.get("traces")?;
    let section = table.section(problems)?;
    section.check_keys(&keys::TRACES, problems);
    let sample = section.get("sample").and_then(|entry| sample(&entry, problems));
    let service = section.get("service").and_then(|entry| texts::line(&entry, "traces::service", problems));
    let Some(entry) = section.get("endpoint") else {
        let problem = Diagnostic::error("traces::endpoint", "[traces] says nothing of where traces are sent");
        problems.add(problem.at(table.key_span).hint("add endpoint = \"http://127.0.0.1:4318\""));
        return None;
    };
    Some(TracesPolicy {
        endpoint: endpoint(&entry, problems)?,
        sample_parts: sample.unwrap_or(PARTS),
        service: service.unwrap_or_else(|| SERVICE_DEFAULT.to_owned()),
    })
}

fn listen(entry: &Entry<'_>, problems: &mut Problems) -> Option<SocketAddr> {
    let text = entry.string(problems)?;
    let local = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    let local = local.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    let address = local.or_else(|| text.parse().ok());
    if address.is_none() {
        problems.add(
            Diagnostic::error("metrics::listen", format!("{text:?} is no address to listen on"))
                .at(entry.span.clone())
                .hint("write \"127.0.0.1:9464\" or \"[::1]:9464\""),
        );
    }
    address
}

/// A URL without user, query and fragment, with a path.
fn endpoint(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let parts = ["http://", "https://"].into_iter().find_map(|scheme| Some((scheme, text.strip_prefix(scheme)?)));
    let read = parts.filter(|_| text.len() <= ENDPOINT_BYTES_MAX).and_then(|(scheme, rest)| {
        let (host, path) = rest.split_at_checked(rest.find('/').unwrap_or(rest.len()))?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~');
        let path = if matches!(path, "" | "/") { TRACES_PATH } else { path };
        (is_host(host) && path.bytes().all(plain)).then(|| format!("{scheme}{host}{path}"))
    });
    if read.is_none() {
        problems.add(
            Diagnostic::error("traces::endpoint", format!("{text:?} is no place to send traces to"))
                .at(entry.span.clone())
                .hint("write \"http://127.0.0.1:4318\": OTLP over HTTP; a path is needed where it is not /v1/traces"),
        );
    }
    read
}

/// A number from 0 to 1, in parts.
fn sample(entry: &Entry<'_>, problems: &mut Problems) -> Option<u32> {
    let whole = entry.as_integer().and_then(|number| u32::try_from(number).ok()).map(f64::from);
    let number = whole.or_else(|| entry.as_float().and_then(|text| text.replace('_', "").parse().ok()));
    let Some(number) = number.filter(|number| (0.0..=1.0).contains(number)) else {
        problems.add(
            Diagnostic::error("traces::sample", "sample must be a number from 0 to 1")
                .at(entry.span.clone())
                .hint("write 0.1 for every tenth call"),
        );
        return None;
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to a million")]
    let parts = (number * f64::from(PARTS)).round() as u32;
    Some(parts)
}
