//! The section `[state]`: the server that keeps what several replicas share.

use std::time::Duration;

use super::server::Server;
use crate::diagnostic::Diagnostic;
use crate::grants::SecretSource;
use crate::grants::{Host, HostPort};
use crate::quantity::SECOND;
use crate::read::{Entry, Problems, Section, paths, texts};
use crate::rights::source_of_host;
use crate::settings::{accessors, settings};
use crate::words::{Word as _, words};

/// The longest list of addresses, in bytes: names of hosts have at most 255, and are seldom so
/// long.
const ADDRESS_BYTES_MAX: usize = 2_048;

/// Most servers that are named. Three sentinels are usual, and any node knows its whole cluster.
const SERVERS_MAX: usize = 16;

/// The longest name of a main server, in bytes: a word, as sentinels have it.
const MAIN_BYTES_MAX: usize = 64;

/// The longest prefix, in bytes: each key has it.
const PREFIX_BYTES_MAX: usize = 64;

/// The port of Valkey and Redis.
const PORT: u16 = 6_379;

/// The port of their sentinels.
const SENTINEL_PORT: u16 = 26_379;

/// A tenth of a tenth of a second.
const HUNDREDTH: u64 = SECOND / 100;

settings! {
    /// The server that keeps what replicas share: rates, approvals, state of tools. Without this
    /// table each process keeps its own.
    StatePolicy STATE "State" {
        /// The address of a Valkey server, or of Redis 7 or later: `rediss://HOST:PORT/DATABASE`
        /// with TLS, `redis://` without; by default port 6379 and database 0. Several sentinels or
        /// nodes of a cluster are `HOST:PORT,HOST:PORT`.
        shared: Option<SharedServer> => Option<&SharedServer> = "shared" (Text, shared, else None),
            {"minLength": 1, "maxLength": ADDRESS_BYTES_MAX, "examples": [
                "rediss://state.example.com", "rediss://a.example.com,b.example.com,c.example.com"
            ]};
        /// The sentinels' name for the main server. `shared` then names the sentinels, by default
        /// with port 26379.
        sentinel: Option<String> => Option<&str> = "sentinel" (Text, sentinel, else None),
            {"pattern": "^[A-Za-z0-9_.-]{1,64}$", "examples": ["tools"]};
        /// True where `shared` names nodes of a cluster: one, or several in case one is away.
        cluster: bool => bool = "cluster" (Flag, Entry::boolean, else false), {"default": false, "examples": [true]};
        /// The user of the server's access list; its default user where none is named.
        user: Option<String> => Option<&str> = "user" (Text, user, else None),
            {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "examples": ["toolcell"]};
        /// The source of the user's password: `env:NAME`, `file:PATH` or
        /// `keyring:SERVICE/ACCOUNT`.
        password: Option<SecretSource> => Option<&SecretSource> = "password" (Text, source_of_host, else None),
            {"minLength": 1, "examples": ["env:TOOLCELL_STATE_PASSWORD", "file:state.password"]};
        /// The user of the sentinels' own access list; their default user where none is named.
        sentinel_user: Option<String> => Option<&str> = "sentinel_user" (Text, user, else None),
            {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "examples": ["toolcell"]};
        /// The source of the password for the sentinels, where they want one.
        sentinel_password: Option<SecretSource> => Option<&SecretSource> =
            "sentinel_password" (Text, source_of_host, else None),
            {"minLength": 1, "examples": ["env:TOOLCELL_SENTINEL_PASSWORD"]};
        /// Certificate authorities of the server, in PEM, relative to this file; by default the
        /// machine's.
        authorities: Option<String> => Option<&str> = "authorities" (Text, paths::host_path, else None),
            {"minLength": 1, "examples": ["tls/ca.pem"]};
        /// The beginning of each key. Replicas with the same prefix share; others on the same
        /// server do not.
        prefix: String => &str = "prefix" (Text, prefix, else "toolcell".to_owned()),
            {"pattern": "^[A-Za-z0-9_.-]{1,64}$", "default": "toolcell", "examples": ["acme-tools"]};
        /// Time for one operation, with connecting again.
        within: Duration => Duration = "within" (
            Millis { min: HUNDREDTH, default: SECOND, max: 30 * SECOND },
            "An operation takes less than a millisecond in a data centre. After a second a person would ask why; less \
             than the least would refuse calls for a pause of the machine."
        ), {"examples": ["250ms"]};
        /// Copies of the server that must have a write before it counts as done: used approvals,
        /// state of tools, ends of sessions, revoked tokens.
        copies: usize => usize = "copies" (
            Count { min: 0, default: 0, max: 16 },
            "A failover loses what no copy has. Each such write waits for the copies, and where too few have it in \
             a third of `within` it fails."
        ), {"examples": [1]};
        /// Rates and concurrency while the server does not answer: `"closed"` refuses calls,
        /// `"local"` has each process count its own. Approvals are always refused then.
        rates_while_away: RatesWhileAway => RatesWhileAway = "rates_while_away" (
            Words(RatesWhileAway::WORDS), Entry::word::<RatesWhileAway>, else RatesWhileAway::default()
        ), {"default": "closed", "examples": ["local"]};
    }
    other names {
        "url" => "shared", "server" => "shared", "address" => "shared", "username" => "user", "timeout" => "within",
        "main" => "sentinel", "master" => "sentinel", "master_name" => "sentinel", "sentinels" => "shared",
        "ca" => "authorities", "certificate" => "authorities", "when_away" => "rates_while_away",
        "wait" => "copies", "replicas" => "copies",
    }
}

accessors! {
    /// A server that keeps shared state, or several that are one.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SharedServer {
        /// Names or addresses, without brackets, and ports; at least one.
        places: Vec<(String, Option<u16>)>,
        /// True where they are spoken to over TLS.
        tls: bool => bool,
        /// The number of the database.
        database: u8 => u8,
    }
}

words! {
    /// Rates while the server does not answer. `rates_while_away` in the manifest.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum RatesWhileAway or "state::rates_while_away" {
        /// The default: calls are refused.
        #[default]
        Closed "closed",
        /// Each process counts its own.
        Local "local",
    }
}

impl SharedServer {
    /// Reads `rediss://HOST:PORT/DATABASE`.
    fn parse(text: &str) -> Option<Self> {
        let (tls, rest) = match text.strip_prefix("rediss://") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix("redis://")?),
        };
        let (places, database) = rest.split_once('/').unwrap_or((rest, ""));
        if text.len() > ADDRESS_BYTES_MAX || places.split(',').count() > SERVERS_MAX {
            return None;
        }
        let places: Vec<_> = places.split(',').map(place).collect::<Option<_>>()?;
        let is_twice = |(number, place)| places.iter().skip(number + 1).any(|other| other == place);
        if places.iter().enumerate().any(is_twice) {
            return None;
        }
        let database = if database.is_empty() { 0 } else { database.parse().ok()? };
        Some(Self { places, tls, database })
    }

    /// True if the connection stays on this machine.
    fn is_here(&self) -> bool {
        self.places.iter().all(|(host, _)| {
            let address = host.parse::<std::net::IpAddr>();
            host == "localhost" || address.is_ok_and(|address| address.is_loopback())
        })
    }
}

/// Reads `HOST` or `HOST:PORT`.
fn place(text: &str) -> Option<(String, Option<u16>)> {
    let read = HostPort::parse(text)?;
    let host = match read.host() {
        Host::Name(name) => name.clone(),
        Host::Addr(address) => address.to_string(),
    };
    Some((host, read.port()))
}

impl StatePolicy {
    /// The hosts and ports that `shared` names, in its order.
    #[must_use]
    pub fn places(&self) -> Vec<(&str, u16)> {
        let port = if self.sentinel.is_some() { SENTINEL_PORT } else { PORT };
        let places = self.shared.iter().flat_map(|shared| &shared.places);
        places.map(|(host, named)| (host.as_str(), named.unwrap_or(port))).collect()
    }

    /// The settings of `[state]`; `None` without the table, or if it names no server.
    pub(crate) fn read_from(root: &Section<'_>, server: &Server, problems: &mut Problems) -> Option<Self> {
        let table = root.get("state")?;
        let section = table.section(problems)?;
        let state = Self::read(Some(&section), problems);
        let Some(entry) = section.get("shared") else {
            let problem = table.key_error("state::shared", "[state] does not name a server");
            return problems.refuse(problem.hint("add shared = \"rediss://state.example.com\", or remove the table"));
        };
        for (user, password) in [("user", "password"), ("sentinel_user", "sentinel_password")] {
            if let (Some(entry), None) = (section.get(user), section.get(password)) {
                let problem = entry.key_error("state::user", format!("{user} has no effect without {password}"));
                let sources = "\"env:NAME\", \"file:PATH\" or \"keyring:SERVICE/ACCOUNT\"";
                problems.add(problem.hint(format!("add {password} = {sources}")));
            }
        }
        state.check_arrangement(&section, &entry, problems);
        let shared = state.shared.as_ref()?;
        if let Some(authorities) = section.get("authorities").filter(|_| !shared.tls) {
            let problem = authorities.key_error("state::tls", "authorities can never apply: the address is redis://");
            problems.add(problem.hint("write rediss:// for TLS, or remove authorities"));
        }
        if !shared.tls && !shared.is_here() {
            let message = "what replicas share goes over the network without encryption";
            let problem = Diagnostic::warning("state::tls", message).at(entry.span.clone());
            problems.add(problem.hint("write rediss:// where the server speaks TLS"));
        }
        if server.state_key().is_none() {
            let message = "shared state is of no use where replicas cannot read what the others sealed";
            let problem = Diagnostic::error("state::key", message).at(entry.span);
            problems.add(problem.hint("add state_key = \"env:NAME\" or \"file:PATH\" to [server]: the same for all"));
        }
        Some(state)
    }
}

impl StatePolicy {
    /// Refuses what does not go together: sentinels, a cluster, several servers.
    fn check_arrangement(&self, section: &Section<'_>, shared: &Entry<'_>, problems: &mut Problems) {
        if let (Some(_), Some(entry)) = (&self.sentinel, section.get("cluster").filter(|_| self.cluster)) {
            let problem = entry.key_error("state::cluster", "a cluster has no sentinels: its nodes watch each other");
            problems
                .add(problem.hint("remove sentinel where shared names nodes of a cluster, cluster where it does not"));
        }
        for key in ["sentinel_user", "sentinel_password"] {
            if let Some(entry) = section.get(key).filter(|_| section.get("sentinel").is_none()) {
                let problem = entry.key_error("state::sentinel", format!("{key} can never apply without sentinel"));
                problems.add(problem.hint(format!("add sentinel = \"NAME\", or remove {key}")));
            }
        }
        let Some(server) = &self.shared else { return };
        if server.places.len() > 1 && !self.cluster && section.get("sentinel").is_none() {
            let problem =
                shared.error("state::shared", "several servers are named, but not whether they are sentinels or nodes");
            let hint =
                "add sentinel = \"NAME\" if they are sentinels, or cluster = true if they are nodes of a cluster";
            problems.add(problem.hint(hint));
        }
        if self.cluster && server.database != 0 {
            let problem = shared.error("state::shared", "state in a cluster is in its database 0");
            problems.add(problem.hint(format!("remove /{} from the address", server.database)));
        }
    }
}

fn shared(entry: &Entry<'_>, problems: &mut Problems) -> Option<SharedServer> {
    let text = entry.string(problems)?;
    if let Some(server) = SharedServer::parse(text) {
        return Some(server);
    }
    if text.contains('@') {
        // The text may be a password: it is neither quoted nor drawn.
        let problem = entry.key_error("state::shared", "shared must name neither user nor password").concealing();
        return problems.refuse(problem.hint("write user = \"NAME\" and password = \"env:NAME\" or \"file:PATH\""));
    }
    let problem = entry.error("state::shared", format!("{text:?} is not the address of a server for shared state"));
    problems.refuse(problem.hint("write \"rediss://state.example.com\", or \"redis://127.0.0.1:6379/0\" without TLS"))
}

fn user(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    texts::line(entry, "state::user", problems)
}

fn prefix(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    plain(entry, "state::prefix", "is not a key prefix", PREFIX_BYTES_MAX, problems)
}

fn sentinel(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    plain(entry, "state::sentinel", "is not the name of a main server", MAIN_BYTES_MAX, problems)
}

/// Reads a text of letters, digits, and `-`, `_` and `.`.
fn plain(
    entry: &Entry<'_>,
    code: &'static str,
    problem: &str,
    bytes_max: usize,
    problems: &mut Problems,
) -> Option<String> {
    let text = entry.string(problems)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if (1..=bytes_max).contains(&text.len()) && text.bytes().all(is_plain) {
        return Some(text.to_owned());
    }
    let problem = entry.error(code, format!("{text:?} {problem}"));
    problems.refuse(problem.hint(format!("write 1 to {bytes_max} letters, digits, and - _ .")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_a_host_and_what_else_it_wants() {
        let several = |places: &[(&str, Option<u16>)], tls, database| {
            let places = places.iter().map(|(host, port)| ((*host).to_owned(), *port)).collect();
            Some(SharedServer { places, tls, database })
        };
        let server = |host: &str, port, tls, database| several(&[(host, port)], tls, database);
        for (text, expected) in [
            ("rediss://state.example.com", server("state.example.com", None, true, 0)),
            ("redis://127.0.0.1:7000", server("127.0.0.1", Some(7_000), false, 0)),
            ("redis://localhost:7000/", server("localhost", Some(7_000), false, 0)),
            ("rediss://[2001:db8::1]/3", server("2001:db8::1", None, true, 3)),
            ("rediss://[::1]:7000/15", server("::1", Some(7_000), true, 15)),
            ("redis://a,b:7000,[::1]/2", several(&[("a", None), ("b", Some(7_000)), ("::1", None)], false, 2)),
            ("redis://a,,b", None),
            ("redis://a,b,a", None),
            ("redis://a,", None),
            ("redis://a/1,b", None),
            ("state.example.com", None),
            ("https://state.example.com", None),
            ("redis://", None),
            ("redis://:6379", None),
            ("redis://a:0", None),
            ("redis://a:70000", None),
            ("redis://a/256", None),
            ("redis://a/x", None),
            ("redis://a?protocol=resp3", None),
            ("redis://ann:secret@a", None),
            ("redis://a b", None),
        ] {
            assert_eq!(SharedServer::parse(text), expected, "{text}");
        }
        assert_eq!(SharedServer::parse(&format!("redis://{}", "a".repeat(ADDRESS_BYTES_MAX))), None);
        let names: Vec<String> = (0..=SERVERS_MAX).map(|number| format!("n{number}")).collect();
        assert_eq!(SharedServer::parse(&format!("redis://{}", names.join(","))), None);
    }
}
