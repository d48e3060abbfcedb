//! The section `[server]`: the server's own texts, and the limits that belong to no component,
//! those of a connection and of the process.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::diagnostic::Diagnostic;
use crate::grants::SecretSource;
use crate::limits::{Spec, spec};
use crate::manifest::approval::{self, ApproveIn};
use crate::manifest::discovery::Discovery;
use crate::manifest::icons::{self, ICON, ICONS_MAX, IconRule};
use crate::manifest::wall;
use crate::quantity::{DAY, GIB, HOUR, KIB, MIB, MINUTE, SECOND};
use crate::read::{Entry, Problems, limits, paths, texts};
use crate::rights::source_of_host;
use crate::settings::settings;
use crate::table::Shape;
use crate::words::{Word as _, words};

/// The most name servers: each that does not answer makes a tool wait for the next.
const DNS_MAX: usize = 8;

/// The port of name servers.
const DNS_PORT: u16 = 53;

/// The longest description, in characters: clients show it next to the name.
const DESCRIPTION_CHARS_MAX: usize = 1_024;

/// The longest address of the server's page, in bytes. Browsers and proxies accept this much.
const WEBSITE_BYTES_MAX: usize = 2_048;

/// The memory of all sandbox processes. Without the key it depends on the machine.
const WALL_MEMORY: Spec = spec! {
    "wall_memory" Bytes { min: 256 * MIB, default: 0, max: 1_024 * 1_024 * GIB },
    "The least is what one process has apart from its calls. The host and other programs need the quarter that is \
     left, or the kernel ends some of them."
};

settings! {
    /// The server's name and texts for clients, and the bounds of a connection and of the process.
    Server SERVER "Server" {
        /// The server's name, for clients.
        name: String => &str = "name" (Text, line, else "toolcell".to_owned()),
            {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "default": "toolcell", "examples": ["acme-tools"]};
        /// A name for people.
        title: Option<String> => Option<&str> = "title" (Text, line, else None),
            {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "examples": ["Tools of Acme"]};
        /// A sentence or two on the server, for people.
        description: Option<String> => Option<&str> = "description" (Text, about, else None),
            {"minLength": 1, "maxLength": DESCRIPTION_CHARS_MAX, "examples": ["Orders and stock of Acme's shop."]};
        /// The server's page on the web.
        website: Option<String> => Option<&str> = "website" (Text, website, else None),
            {"pattern": "^https?://", "maxLength": WEBSITE_BYTES_MAX, "examples": ["https://acme.example/tools"]};
        /// Pictures for user interfaces.
        icons: Vec<IconRule> => &[IconRule] = "icons" (List(&Table(&ICON)), icons::read, else Vec::new()),
            {"maxItems": ICONS_MAX, "examples": [[{"src": "https://acme.example/icon.png", "sizes": ["48x48"]}]]};
        /// A text that the model reads before it uses the tools.
        instructions: Option<String> => Option<&str> = "instructions" (Text, lines, else None),
            {"examples": ["Ask for the weather before planning a trip."]};
        /// Tools on one page of a listing.
        page_size: usize => usize = "page_size" (
            Count { min: 1, default: 500, max: 1_000 },
            "Nearly every list fits the default; more than 1,000 definitions make frames that clients refuse."
        ), {"examples": [50]};
        /// How clients find tools: `"list"`, `tools/list` has all; `"search"`, it has `find_tools`,
        /// `call_tool` and the `listed` tools.
        discovery: Discovery => Discovery = "discovery" (
            Words(Discovery::WORDS), Entry::word::<Discovery>, else Discovery::default()
        ), {"default": "list", "examples": ["search"]};
        /// What `find_tools` says of its tools, to models. By default the components with the most
        /// tools, their numbers, and examples.
        find_description: Option<String> => Option<&str> = "find_description" (Text, about, else None),
            {"minLength": 1, "maxLength": DESCRIPTION_CHARS_MAX,
             "examples": ["Everything on orders and stock of Acme's shop, its customers and its mail."]};
        /// The longest query of `find_tools`, as a size.
        find_query_bytes: usize => usize = "find_query" (
            Bytes { min: 64, default: KIB, max: 64 * KIB },
            "A query is a sentence; the default holds a paragraph. The first 32 different words count."
        ), {"examples": ["256B"]};
        /// Tools in one answer of `find_tools`. It gives five where a call names no number.
        find_results: usize => usize = "find_results" (
            Count { min: 1, default: 20, max: 1_000 },
            "More than the default is a list again, which a model has to read."
        ), {"examples": [10]};
        /// Definitions in one answer of `find_tools`, as a size. A tool that does not fit is left
        /// out.
        find_output_bytes: usize => usize = "find_output" (
            Bytes { min: KIB, default: 64 * KIB, max: 16 * MIB },
            "The default is about 16,000 tokens, and each definition alone may have as much."
        ), {"examples": ["256KiB"]};
        /// Texts of one tool that `find_tools` searches, as a size. They are its name, title,
        /// description, then its parameters.
        find_text_bytes: usize => usize = "find_text" (
            Bytes { min: 64, default: 8 * KIB, max: MIB },
            "Most definitions have less. The index of all tools takes a few times their texts."
        ), {"examples": ["32KiB"]};
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
        /// Calls of one connection that are read and wait to run. Then reading stops until one is
        /// done. While the client is asked something it goes on, and further calls are refused.
        pending_max: usize => usize = "pending_max" (
            Count { min: 1, default: 1_024, max: 100_000 },
            "Each holds its arguments in memory. Without room for one, nothing could be read."
        ), {"examples": [128]};
        /// Subscriptions (`subscriptions/listen`) that a client over stdio may have open. Over HTTP
        /// see `streams` in `[http]`.
        subscriptions_max: usize => usize = "subscriptions_max" (
            Count { min: 1, default: 32, max: 10_000 },
            "A client needs one; each costs a message for each change."
        ), {"examples": [4]};
        /// Resources that a session (`resources/subscribe`) or one `subscriptions/listen` watches.
        watched_max: usize => usize = "watched_max" (
            Count { min: 1, default: 256, max: 4_096 },
            "More than a person has open; each is compared with each change."
        ), {"examples": [16]};
        /// Resources that all sessions and subscriptions of one caller watch together.
        caller_watched_max: usize => usize = "caller_watched_max" (
            Count { min: 1, default: 4_096, max: 100_000 },
            "Sixteen sessions at the default of `watched_max`. Each keeps its address in memory."
        ), {"examples": [256]};
        /// Time for which calls may run on once the input has ended, over stdio. Then they are
        /// cancelled. `drain` in `[http]` is for HTTP.
        drain: Duration => Duration = "drain" (
            Millis { min: 0, default: 1_500, max: HOUR },
            "Clients wait two seconds for the end of their child process before they kill it."
        ), {"examples": ["30s"]};
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
            "An instance that would exceed it is not prewarmed. The default is what one call may have. Less \
             than the least holds hardly one instance; `prewarm = 0` keeps none."
        ), {"examples": ["256MiB"]};
        /// The name servers for tools, with port 53 where none is named; by default the system's.
        dns: Vec<SocketAddr> => &[SocketAddr] = "dns" (List(&Text), dns, else Vec::new()),
            {"maxItems": DNS_MAX, "examples": [["192.0.2.53", "127.0.0.1:5300"]]};
        /// The folder of what tools keep between calls, relative to this file. Made when it is
        /// first needed.
        state: String => &str = "state" (Text, paths::host_path, else ".toolcell".to_owned()),
            {"minLength": 1, "default": ".toolcell", "examples": ["/var/lib/toolcell"]};
        /// The folder of what was pulled from registries, relative to this file; by default the
        /// user's, which all manifests share.
        store: Option<String> => Option<&str> = "store" (Text, paths::host_path, else None),
            {"minLength": 1, "examples": ["/var/lib/toolcell/store"]};
        /// The processes that calls run in: `"required"`, sandbox processes with every wall of the
        /// kernel but `walls_without`, or no start; `"best"`, with the walls that this machine
        /// gives; `"none"`, threads of the host.
        walls: Walls => Walls = "walls" (Words(Walls::WORDS), Entry::word::<Walls>, else Walls::default()),
            {"default": "best", "examples": ["required"]};
        /// The walls that may be missing, by their names in `toolcell walls`: those that the host's
        /// surroundings take away. Any other missing one keeps the host from starting where all are
        /// required, and counts as a problem of a running host.
        walls_without: Vec<String> => &[String] = "walls_without" (
            List(&Words(&wall::NAMES)), wall::read_without, else Vec::new()
        ), {"maxItems": wall::NAMES.len(), "uniqueItems": true, "examples": [["user-namespace", "threads"]]};
        /// The effect of a broken or unreadable component, or of a missing secret or folder, on a
        /// start: `"what works"`, all others are served; `"all"`, nothing is. Where no component
        /// works, nothing is served.
        start: StartRule => StartRule = "start" (
            Words(StartRule::WORDS), Entry::word::<StartRule>, else StartRule::default()
        ),
            {"default": "what works", "examples": ["all"]};
        /// Time without a call after which a sandbox process ends. The next call starts another.
        wall_idle: Duration => Duration = "wall_idle" (
            Millis { min: SECOND, default: 5 * MINUTE, max: DAY },
            "The default outlasts the pause of a model that thinks. A process that waits for its next call takes some \
             megabytes; another starts within milliseconds."
        ), {"examples": ["30s"]};
        /// Memory that all sandbox processes and loaders have together. Past it the largest is
        /// ended. By default three quarters of the machine's, or of the host's control group's.
        wall_memory_bytes: Option<u64> => Option<u64> = "wall_memory" (Optional(&WALL_MEMORY), wall_memory, else None),
            {"examples": ["4GiB"]};
        /// What goes into the log: `"off"`; `"error"`, what went wrong in the host, and errors that
        /// tools log; `"warn"`, traps as well; `"info"`, what tools print as well; `"debug"`,
        /// everything. `--log LEVEL` and `toolcell log-level` win.
        log: LogWord => LogWord = "log" (Words(LogWord::WORDS), log, else LogWord::Info),
            {"default": "info", "examples": ["warn"]};
        /// True adds fuel, peak memory and time of each call to `_meta` of its result, as
        /// `toolcell/usage`. Many clients pass `_meta` on to the model, which pays for it in
        /// tokens.
        usage: bool => bool = "usage" (Flag, Entry::boolean, else false),
            {"default": false, "examples": [true]};
        /// True ends running calls whose tool may reach less after the manifest changed; false lets
        /// them run on.
        narrow_cancels: bool => bool = "narrow_cancels" (Flag, Entry::boolean, else true),
            {"default": true, "examples": [false]};
        /// Where approvals are decided: `"client"`, by the person at the client; `"console"`, by an
        /// operator. With both, the first answer decides.
        approve_in: ApproveIn => ApproveIn = "approve_in" (
            List(&Words(&[approval::CLIENT, approval::CONSOLE])), approval::read_places, else ApproveIn::default()
        ), {"minItems": 1, "maxItems": 2, "uniqueItems": true, "default": [approval::CLIENT],
            "examples": [[approval::CLIENT, approval::CONSOLE]]};
        /// The source of the key that seals what clients of 2026-07-28 hand back between two rounds
        /// of a call; at least 32 bytes. By default made at each start: processes that answer the
        /// same clients need the same.
        state_key: Option<SecretSource> => Option<&SecretSource> = "state_key" (Text, source_of_host, else None),
            {"minLength": 1, "examples": ["env:TOOLCELL_STATE_KEY", "file:state.key"]};
    }
    other names {
        "website_url" => "website", "websiteUrl" => "website", "url" => "website", "icon" => "icons",
        "listens_max" => "subscriptions_max", "log_level" => "log",
    }
}

words! {
    /// The processes that calls run in. `walls` in the manifest.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Walls or "server::walls" {
        /// Threads of the host.
        None "none",
        /// The default: sandbox processes, with the walls that the machine gives.
        #[default]
        Best "best",
        /// Sandbox processes with every wall but those of `walls_without`. Without another one the
        /// host does not start.
        Required "required",
    }
}

words! {
    /// The effect of a broken component on a start. `start` in the manifest.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum StartRule {
        /// The default: all others are served. A process that runs goes on where a component
        /// breaks, and so does the next one: otherwise a reboot would take every tool away.
        #[default]
        WhatWorks "what works",
        /// Nothing is served.
        All "all",
    }
}

words! {
    /// The part of the log that is written. `log` in the manifest.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum LogWord {
        /// Nothing.
        Off "off",
        /// Failures of the host, and errors that tools log.
        Error "error",
        /// Also traps and warnings.
        Warn "warn",
        /// The default: also lines that tools print.
        #[default]
        Info "info",
        /// Everything.
        Debug "debug",
    }
}

impl Server {
    /// The limits that hold for a connection or the whole process, in the order of reports.
    pub fn limits() -> impl Iterator<Item = &'static Spec> {
        SERVER.keys().filter_map(|key| if let Shape::Limit(spec) = key.shape { Some(spec) } else { None })
    }
}

fn wall_memory(entry: &Entry<'_>, problems: &mut Problems) -> Option<u64> {
    limits::value(entry, &WALL_MEMORY, problems)
}

fn log(entry: &Entry<'_>, problems: &mut Problems) -> Option<LogWord> {
    let text = entry.string(problems)?;
    LogWord::of(text).or_else(|| {
        let message = format!("log must be one of \"{}\", not {text:?}", LogWord::WORDS.join("\", \""));
        problems.refuse(entry.error("server::log", message))
    })
}

fn line(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    texts::line(entry, "server::text", problems)
}

fn lines(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    texts::lines(entry, "server::text", problems)
}

fn about(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = texts::lines(entry, "server::text", problems)?;
    if !text.trim().is_empty() && text.chars().count() <= DESCRIPTION_CHARS_MAX {
        return Some(text);
    }
    let message = format!("{} must have 1 to {DESCRIPTION_CHARS_MAX} characters", entry.key);
    problems.refuse(entry.error("server::text", message))
}

fn website(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).unwrap_or_default();
    let is_address = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\');
    if text.len() <= WEBSITE_BYTES_MAX && !rest.is_empty() && rest.bytes().all(is_address) {
        return Some(text.to_owned());
    }
    let message = format!("{} must be an https: or http: address of at most {WEBSITE_BYTES_MAX} bytes", entry.key);
    problems.refuse(entry.error("server::website", message))
}

/// Addresses of name servers, port 53 where none is named.
fn dns(entry: &Entry<'_>, problems: &mut Problems) -> Option<Vec<SocketAddr>> {
    let mut servers = Vec::new();
    for (text, span) in entry.strings(DNS_MAX, problems)? {
        let address = text.parse::<IpAddr>().map(|address| SocketAddr::new(address, DNS_PORT));
        match text.parse::<SocketAddr>().or(address).ok().filter(|address| address.port() != 0) {
            Some(address) => servers.push(address),
            None => problems.add(
                Diagnostic::error("server::dns", format!("{text:?} is not the address of a name server"))
                    .at(span)
                    .hint("write \"192.0.2.53\", \"192.0.2.53:5353\" or \"[2001:db8::53]:53\""),
            ),
        }
    }
    Some(servers)
}
