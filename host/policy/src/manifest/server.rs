//! The section `[server]`: the server's own texts, and the limits that belong to no component,
//! those of a connection and of the process. Must not hold: how they are enforced.

use std::net::{IpAddr, SocketAddr};

use crate::diagnostic::Diagnostic;
use crate::grants::SecretSource;
use crate::limits::Spec;
use crate::quantity::{GIB, KIB, MIB};
use crate::read::{Entry, Problems, paths, secrets, texts};
use crate::settings::settings;
use crate::table::Shape;

/// The most name servers: each that does not answer makes a tool wait for the next.
const DNS_MAX: usize = 8;

/// The port of name servers.
const DNS_PORT: u16 = 53;

settings! {
    /// The server's name and texts for clients, and the bounds of a connection and of the process.
    Server SERVER "Server" {
        /// The server's name, for clients.
        name: String => &str = "name" (Text, line, else "toolcell".to_owned()),
            {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "default": "toolcell", "examples": ["acme-tools"]};
        /// A name for people.
        title: Option<String> => Option<&str> = "title" (Text, line, else None),
            {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "examples": ["Tools of Acme"]};
        /// A text that the model reads before it uses the tools.
        instructions: Option<String> => Option<&str> = "instructions" (Text, lines, else None),
            {"examples": ["Ask for the weather before planning a trip."]};
        /// Tools on one page of a listing.
        page_size: usize => usize = "page_size" (
            Count { min: 1, default: 500, max: 1_000 },
            "Nearly every list fits the default; more than 1,000 definitions make frames that clients refuse."
        ), {"examples": [50]};
        /// The longest line of input, as a size.
        line_bytes_max: usize => usize = "line_max" (
            Bytes { min: 4 * KIB, default: 16 * MIB, max: 256 * MIB },
            "The process keeps a line in memory whole. The default holds the largest arguments many times over, the \
             least any request without arguments."
        ), {"examples": ["4MiB"]};
        /// Calls of one connection that run at once.
        in_flight_max: usize => usize = "in_flight_max" (
            Count { min: 1, default: 64, max: 10_000 },
            "A client that sends more has them wait."
        ), {"examples": [16]};
        /// Calls of one connection that are read and wait to run; then reading stops until one is
        /// done.
        pending_max: usize => usize = "pending_max" (
            Count { min: 0, default: 1_024, max: 100_000 },
            "Each holds its arguments in memory."
        ), {"examples": [128]};
        /// Calls of all tools that run at once in the process; each takes address space for its
        /// memories.
        calls: usize => usize = "calls" (
            Count { min: 1, default: 256, max: 4_096 },
            "Sixteen of each of sixteen tools. Each holds a stack and a slot in the pool of instances, 4 GiB of address \
             space or more; the most is an eighth of what there is."
        ), {"examples": [32]};
        /// WebAssembly stack of each call. A tool that recurses deeper is ended.
        stack_bytes: usize => usize = "stack" (
            Bytes { min: 64 * KIB, default: 512 * KIB, max: MIB },
            "It belongs to the engine, so all tools have the same. The most is half of the stack that a call's host \
             functions run on as well."
        ), {"examples": ["1MiB"]};
        /// Memory that all instances kept ready (`prewarm`) have together.
        prewarm_memory_bytes: u64 => u64 = "prewarm_memory" (
            Bytes { min: MIB, default: 64 * MIB, max: 64 * GIB },
            "An instance that would exceed it is not made ahead of its call. The default is what one call may have. Less \
             than the least holds hardly one instance; `prewarm = 0` keeps none."
        ), {"examples": ["256MiB"]};
        /// The name servers that look names up for tools, with port 53 where none is named; the
        /// system's by default.
        dns: Vec<SocketAddr> => &[SocketAddr] = "dns" (List(&Text), dns, else Vec::new()),
            {"maxItems": DNS_MAX, "examples": [["192.0.2.53", "127.0.0.1:5300"]]};
        /// The folder of what tools keep between calls, relative to this file. Made when it is
        /// first needed.
        state: String => &str = "state" (Text, paths::host_path, else ".toolcell".to_owned()),
            {"minLength": 1, "default": ".toolcell", "examples": ["/var/lib/toolcell"]};
        /// The processes that calls run in: `"required"`, sandbox processes with every wall of the
        /// kernel, or no start; `"best"`, with the walls that this machine gives; `"none"`, the
        /// host's own process.
        walls: Walls => Walls = "walls" (Words(&[NONE, BEST, REQUIRED]), walls, else Walls::default()),
            {"default": NONE, "examples": [BEST]};
        /// True ends running calls whose tool may reach less after the manifest changed. With false
        /// they run on as they began.
        narrow_cancels: bool => bool = "narrow_cancels" (Flag, Entry::boolean, else true),
            {"default": true, "examples": [false]};
        /// The source of the key that seals what clients of 2026-07-28 hand back between two rounds
        /// of a call; at least 32 bytes. Made at each start by default: several processes that
        /// answer the same clients need the same.
        state_key: Option<SecretSource> => Option<&SecretSource> = "state_key" (Text, state_key, else None),
            {"minLength": 1, "examples": ["env:TOOLCELL_STATE_KEY", "file:state.key"]};
    }
    other names { "description" => "instructions" }
}

/// The processes that calls run in. `walls` in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Walls {
    /// `"none"`, the default: the host's own process.
    #[default]
    None,
    /// `"best"`: sandbox processes, with the walls that the machine gives.
    Best,
    /// `"required"`: sandbox processes with every wall; without one the host does not start.
    Required,
}

/// The words for `walls`.
const NONE: &str = "none";
const BEST: &str = "best";
const REQUIRED: &str = "required";

impl Server {
    /// The limits that hold for a connection or the whole process, in the order of reports.
    pub fn limits() -> impl Iterator<Item = &'static Spec> {
        SERVER.keys().filter_map(|key| if let Shape::Limit(spec) = key.shape { Some(spec) } else { None })
    }
}

fn walls(entry: &Entry<'_>, problems: &mut Problems) -> Option<Walls> {
    match entry.string(problems)? {
        NONE => Some(Walls::None),
        BEST => Some(Walls::Best),
        REQUIRED => Some(Walls::Required),
        other => {
            let message = format!("walls must be \"{NONE}\", \"{BEST}\" or \"{REQUIRED}\", not {other:?}");
            problems.refuse(entry.error("server::walls", message))
        }
    }
}

fn line(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    texts::line(entry, "server::text", problems)
}

fn lines(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    texts::lines(entry, "server::text", problems)
}

fn state_key(entry: &Entry<'_>, problems: &mut Problems) -> Option<SecretSource> {
    secrets::named(entry, "write \"env:NAME\", \"file:PATH\" or \"keyring:SERVICE/ACCOUNT\"", problems)
}

/// Addresses of name servers, port 53 where none is named.
fn dns(entry: &Entry<'_>, problems: &mut Problems) -> Option<Vec<SocketAddr>> {
    let mut servers = Vec::new();
    for (text, span) in entry.strings(DNS_MAX, problems)? {
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
    Some(servers)
}
