//! Reads `[server]`. Must not hold: what the protocol makes of it.

use std::net::{IpAddr, SocketAddr};

use super::{Entry, Problems, Section, keys, limits, paths};
use crate::diagnostic::Diagnostic;
use crate::limits::Unit;
use crate::manifest::Server;
use crate::manifest::server::{CALLS, IN_FLIGHT_MAX, LINE_MAX, PAGE_SIZE, PENDING_MAX, PREWARM_MEMORY, STACK};

/// The longest server name and title, in characters: clients show them in one line.
const TITLE_CHARS_MAX: usize = 128;

/// The longest instructions, in bytes: clients put them before every conversation.
const INSTRUCTIONS_BYTES_MAX: usize = 16 << 10;

/// The most name servers: each that does not answer makes a tool wait for the next.
const DNS_MAX: usize = 8;

/// The port of name servers.
const DNS_PORT: u16 = 53;

/// The server's settings; the defaults for what is missing or wrong.
pub(crate) fn read(root: &Section<'_>, problems: &mut Problems) -> Server {
    let mut server = Server::default();
    let Some(section) = root.get("server").and_then(|entry| entry.section(problems)) else { return server };
    section.check_keys(&keys::SERVER, problems);
    if let Some(name) = section.get("name").and_then(|entry| line(&entry, problems)) {
        server.name = name;
    }
    server.title = section.get("title").and_then(|entry| line(&entry, problems));
    server.instructions = section.get("instructions").and_then(|entry| instructions(&entry, problems));
    for (spec, value) in [
        (&PAGE_SIZE, &mut server.page_size),
        (&LINE_MAX, &mut server.line_bytes_max),
        (&IN_FLIGHT_MAX, &mut server.in_flight_max),
        (&PENDING_MAX, &mut server.pending_max),
        (&CALLS, &mut server.calls),
        (&STACK, &mut server.stack_bytes),
    ] {
        let read = section.get(spec.key).and_then(|entry| limits::value(&entry, spec, problems));
        if let Some(read) = read.and_then(|read| usize::try_from(read).ok()) {
            *value = read;
        }
    }
    let prewarm_memory = section.get(PREWARM_MEMORY.key);
    if let Some(bytes) = prewarm_memory.and_then(|entry| limits::value(&entry, &PREWARM_MEMORY, problems)) {
        server.prewarm_memory_bytes = bytes;
    }
    server.dns = section.get("dns").map(|entry| dns(&entry, problems)).unwrap_or_default();
    if let Some(ends) = section.get("narrow_cancels").and_then(|entry| entry.boolean(problems)) {
        server.narrow_cancels = ends;
    }
    if let Some(state) = section.get("state").and_then(|entry| paths::host_path(&entry, problems)) {
        server.state = state;
    }
    server
}

/// Addresses of name servers, port 53 where none is named.
fn dns(entry: &Entry<'_>, problems: &mut Problems) -> Vec<SocketAddr> {
    let mut servers = Vec::new();
    for (text, span) in entry.strings(DNS_MAX, problems).unwrap_or_default() {
        let address = text.parse::<IpAddr>().map(|address| SocketAddr::new(address, DNS_PORT));
        match text.parse::<SocketAddr>().or(address).ok().filter(|address| address.port() != 0) {
            Some(address) => servers.push(address),
            None => problems.add(
                Diagnostic::error("server::dns", format!("{text:?} is no address of a name server"))
                    .at(span)
                    .hint("write \"192.0.2.53\", \"192.0.2.53:5353\" or \"[2001:db8::53]:53\""),
            ),
        }
    }
    servers
}

/// A text of one line for people.
fn line(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let wrong = if text.trim().is_empty() {
        "must not be empty".to_owned()
    } else if text.chars().any(char::is_control) {
        "must not contain control characters".to_owned()
    } else if text.chars().count() > TITLE_CHARS_MAX {
        format!("must have at most {TITLE_CHARS_MAX} characters")
    } else {
        return Some(text.to_owned());
    };
    problems.add(text_problem(entry, &wrong));
    None
}

/// A text of several lines for the model.
fn instructions(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let wrong = if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        "must not contain control characters other than tabs and line ends".to_owned()
    } else if text.len() > INSTRUCTIONS_BYTES_MAX {
        format!("must have at most {} of text", Unit::Bytes.show(INSTRUCTIONS_BYTES_MAX as u64))
    } else {
        return Some(text.to_owned());
    };
    problems.add(text_problem(entry, &wrong));
    None
}

fn text_problem(entry: &Entry<'_>, wrong: &str) -> Diagnostic {
    Diagnostic::error("server::text", format!("{} {wrong}", entry.key)).at(entry.span.clone())
}
