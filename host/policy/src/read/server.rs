//! Reads `[server]`. Must not hold: what the protocol makes of it.

use std::net::{IpAddr, SocketAddr};

use super::{Entry, Problems, Section, keys, limits, paths, secrets, texts};
use crate::diagnostic::Diagnostic;
use crate::manifest::Server;
use crate::manifest::server::{CALLS, IN_FLIGHT_MAX, LINE_MAX, PAGE_SIZE, PENDING_MAX, PREWARM_MEMORY, STACK};

/// The code of what is wrong with a text.
const TEXT: &str = "server::text";

/// The most name servers: each that does not answer makes a tool wait for the next.
const DNS_MAX: usize = 8;

/// The port of name servers.
const DNS_PORT: u16 = 53;

/// The server's settings; the defaults for what is missing or wrong.
pub(crate) fn read(root: &Section<'_>, problems: &mut Problems) -> Server {
    let mut server = Server::default();
    let Some(section) = root.get("server").and_then(|entry| entry.section(problems)) else { return server };
    section.check_keys(&keys::SERVER, problems);
    if let Some(name) = section.get("name").and_then(|entry| texts::line(&entry, TEXT, problems)) {
        server.name = name;
    }
    server.title = section.get("title").and_then(|entry| texts::line(&entry, TEXT, problems));
    server.instructions = section.get("instructions").and_then(|entry| texts::lines(&entry, TEXT, problems));
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
    server.state_key = section.get("state_key").and_then(|entry| {
        secrets::named(&entry, "write \"env:NAME\", \"file:PATH\" or \"keyring:SERVICE/ACCOUNT\"", problems)
    });
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
