//! Requests around a rule: other spellings, hosts, ports, paths, methods and names next to those
//! that it is for. Making them asks nobody and touches nothing.

use std::net::IpAddr;

use crate::explain::Ask;
use crate::grants::{
    CallRule, Capability, FileAccess, Host, HostPattern, HttpAsk, HttpRule, Mount, RuleRef, SocketRule, SocketTarget,
};
use crate::names::check_tool;

/// Uses of a rule whose neighbours are tried.
const BASES_MAX: usize = 4;

/// Segments of a path that are each replaced by another one.
const SEGMENTS_MAX: usize = 8;

/// Methods that are tried: the usual ones, a spelling, and one that no rule can name.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get", "BREW"];

/// Ports that are tried: those of the web, of shells and of databases.
const PORTS: [u16; 6] = [22, 80, 443, 5432, 8080, 8443];

/// Hosts that no rule for another one may reach: a foreign one, this machine, and a machine's
/// metadata.
const FOREIGN: [&str; 4] = ["elsewhere.example", "localhost", "127.0.0.1", "169.254.169.254"];

/// A request next to a rule.
pub(crate) struct Neighbour {
    /// How it differs: `method`, `path`.
    pub(crate) kind: &'static str,
    pub(crate) ask: Ask,
}

/// A rule, and the requests around it.
pub(crate) struct RuleNeighbours {
    pub(crate) rule: RuleRef,
    /// Requests that it is for: known uses, or an example.
    pub(crate) bases: Vec<Ask>,
    pub(crate) around: Vec<Neighbour>,
    /// Requests that are not well formed, and therefore never allowed.
    pub(crate) malformed: u64,
}

/// The parts of an HTTP request, before they are read.
#[derive(Clone, Copy)]
struct RawRequest<'a> {
    method: &'a str,
    scheme: &'a str,
    authority: &'a str,
    target: &'a str,
}

impl RuleNeighbours {
    fn new(rule: &RuleRef, bases: Vec<Ask>) -> Self {
        Self { rule: rule.clone(), bases, around: Vec::new(), malformed: 0 }
    }

    fn request(&mut self, kind: &'static str, raw: &RawRequest<'_>) {
        match HttpAsk::new(raw.method, raw.scheme, raw.authority, raw.target) {
            Ok(ask) => self.around.push(Neighbour { kind, ask: Ask::Http(ask) }),
            Err(_) => self.malformed += 1,
        }
    }

    fn text(&mut self, kind: &'static str, text: &str) {
        match Ask::parse(text) {
            Ok(ask) => self.around.push(Neighbour { kind, ask }),
            Err(_) => self.malformed += 1,
        }
    }

    fn file(&mut self, kind: &'static str, want: FileAccess, path: String) {
        self.around.push(Neighbour { kind, ask: Ask::File { want, path } });
    }
}

/// The requests around a rule of `http`.
pub(crate) fn around_http(rule: &HttpRule, uses: &[&Ask]) -> RuleNeighbours {
    let used = uses.iter().filter_map(|ask| if let Ask::Http(ask) = ask { Some(ask) } else { None });
    let mut bases: Vec<HttpAsk> = used.filter(|ask| rule.matches(ask)).take(BASES_MAX).cloned().collect();
    if bases.is_empty() {
        bases.extend(example(rule));
    }
    let mut found = RuleNeighbours::new(rule.rule(), bases.iter().cloned().map(Ask::Http).collect());
    for base in &bases {
        let scheme = base.scheme().name();
        let authority = base.authority();
        let target = base.path();
        let raw = RawRequest { method: base.method(), scheme, authority: &authority, target };
        for method in METHODS {
            found.request("method", &RawRequest { method, ..raw });
        }
        let other = if scheme == "https" { "http" } else { "https" };
        found.request("scheme", &RawRequest { scheme: other, ..raw });
        for port in ports(base.port()) {
            found.request("port", &RawRequest { authority: &format!("{}:{port}", base.host()), ..raw });
        }
        let port = authority.strip_prefix(&base.host().to_string()).unwrap_or_default();
        for host in hosts(base.host()) {
            found.request("host", &RawRequest { authority: &format!("{host}{port}"), ..raw });
        }
        for target in paths(target) {
            found.request("path", &RawRequest { target: &target, ..raw });
        }
        around_by_redirect(&mut found, base);
    }
    found
}

/// A request that a rule is for.
fn example(rule: &HttpRule) -> Option<HttpAsk> {
    let methods = rule.methods().to_string();
    let method = methods.split(',').next().filter(|method| !method.is_empty()).unwrap_or("GET");
    let host = match rule.host() {
        HostPattern::Exact(host) => host.to_string(),
        HostPattern::Suffix(suffix) => format!("x{suffix}"),
        HostPattern::Any => "any.example".to_owned(),
    };
    let path = rule.path().to_string().replace("{}", "x").replace('*', "x");
    HttpAsk::new(method, rule.scheme().name(), &format!("{host}:{}", rule.port()), &path).ok()
}

/// Where an answer may send the guest next: each such request is decided on like any other.
fn around_by_redirect(found: &mut RuleNeighbours, base: &HttpAsk) {
    let host = base.host();
    let here = format!("{}://{}{}", base.scheme().name(), base.authority(), base.path());
    let Ok(here) = url::Url::parse(&here) else { return };
    for location in [
        "//elsewhere.example/".to_owned(),
        "/\\elsewhere.example/".to_owned(),
        format!("https://{host}@elsewhere.example/"),
        format!("http://{host}/"),
        format!("https://{host}.elsewhere.example/"),
        "/".to_owned(),
        "../".to_owned(),
        "./other".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ] {
        let Ok(next) = here.join(&location) else { continue };
        let authority = next.authority().to_owned();
        let raw = RawRequest { method: "GET", scheme: next.scheme(), authority: &authority, target: next.path() };
        found.request("redirect", &raw);
    }
}

fn ports(port: u16) -> Vec<u16> {
    let next = [port.saturating_sub(1), port.saturating_add(1), u16::MAX];
    next.into_iter().chain(PORTS).filter(|other| *other != port && *other != 0).collect()
}

/// Other spellings of a host, and hosts that a careless comparison would take for it.
fn hosts(host: &Host) -> Vec<String> {
    let text = host.to_string();
    let mut hosts = vec![
        text.to_ascii_uppercase(),
        format!("{text}."),
        format!("x.{text}"),
        format!("x{text}"),
        format!("{text}.elsewhere.example"),
        format!("{text}@elsewhere.example"),
        format!("elsewhere.example@{text}"),
        format!("{text}%00.elsewhere.example"),
        format!("{text}%2eelsewhere.example"),
        format!("{text}\\elsewhere.example"),
    ];
    match host {
        Host::Name(name) => {
            hosts.extend(name.split_once('.').map(|(_, parent)| parent.to_owned()));
            hosts.extend(name.split_once('.').map(|(_, parent)| format!("y.{parent}")));
            // Letters of another alphabet, and in another width.
            hosts.push(name.replacen('a', "\u{430}", 1).replacen('e', "\u{435}", 1));
            hosts.push(name.replacen('.', "\u{3002}", 1));
            hosts.push(name.replacen('.', "-", 1));
        }
        Host::Addr(IpAddr::V4(address)) => {
            let bits = address.to_bits();
            hosts.push(bits.to_string());
            hosts.push(format!("0x{bits:x}"));
            hosts.push(format!("[::ffff:{address}]"));
            hosts.push(format!("[64:ff9b::{address}]"));
            hosts.push(std::net::Ipv4Addr::from_bits(bits.wrapping_add(1)).to_string());
        }
        Host::Addr(IpAddr::V6(address)) => {
            let next = std::net::Ipv6Addr::from_bits(address.to_bits().wrapping_add(1));
            hosts.push(format!("[{next}]"));
            hosts.extend(address.to_ipv4_mapped().map(|address| address.to_string()));
        }
    }
    hosts.extend(FOREIGN.map(str::to_owned));
    hosts
}

/// Other spellings of a path, and paths next to it.
fn paths(path: &str) -> Vec<String> {
    let trimmed = path.trim_end_matches('/');
    let folder = trimmed.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut paths = vec![
        "/".to_owned(),
        format!("{folder}/"),
        format!("{folder}/other"),
        format!("{trimmed}-other"),
        format!("{trimmed}/"),
        format!("{trimmed}/other"),
        format!("{trimmed}/.."),
        format!("{trimmed}/../other"),
        format!("{trimmed}/%2e%2e/other"),
        format!("{trimmed}/..%2fother"),
        format!("{trimmed}%2fother"),
        format!("{trimmed}/%252e%252e/other"),
        format!("{trimmed}\\..\\other"),
        format!("{trimmed}/..;/other"),
        format!("{trimmed};x=1"),
        format!("{trimmed}%00"),
        format!("/{path}"),
        format!("{folder}//{}", trimmed.rsplit('/').next().unwrap_or_default()),
        path.to_ascii_uppercase(),
        "/%61dmin".to_owned(),
        "/../admin".to_owned(),
    ];
    let segments: Vec<&str> = path.split('/').collect();
    for place in 1..segments.len().min(SEGMENTS_MAX) {
        let other = segments.iter().enumerate().map(|(at, segment)| if at == place { "other" } else { segment });
        paths.push(other.collect::<Vec<_>>().join("/"));
    }
    paths
}

/// The requests around a rule of `tcp` or `udp`.
pub(crate) fn around_socket(kind: Capability, rule: &SocketRule, uses: &[&Ask]) -> RuleNeighbours {
    let is_mine = |host: &Host, port: u16| rule.ports().contains(port) && rule.matches_name(host);
    let used = uses
        .iter()
        .copied()
        .filter(|ask| matches!(ask, Ask::Socket(of, host, port) if *of == kind && is_mine(host, *port)));
    let mut bases: Vec<Ask> = used.take(BASES_MAX).cloned().collect();
    if bases.is_empty() {
        let host = match rule.target() {
            SocketTarget::Name(HostPattern::Exact(host)) => host.clone(),
            SocketTarget::Name(HostPattern::Suffix(suffix)) => Host::Name(format!("x{suffix}")),
            SocketTarget::Name(HostPattern::Any) => Host::Name("any.example".to_owned()),
            SocketTarget::Net(net) => Host::Addr(net.addr()),
        };
        bases.push(Ask::Socket(kind, host, rule.ports().first()));
    }
    let mut found = RuleNeighbours::new(rule.rule(), bases.clone());
    for base in &bases {
        let Some((host, port)) = base.target() else { continue };
        let word = kind.name();
        for other in ports(port).into_iter().chain([rule.ports().first(), rule.ports().last()]) {
            found.text("port", &format!("{word} {host}:{other}"));
        }
        for other in hosts(host) {
            found.text("host", &format!("{word} {other}:{port}"));
        }
        if let SocketTarget::Net(net) = rule.target() {
            for other in [net.network(), net.broadcast()] {
                found.text("host", &format!("{word} {}:{port}", Host::Addr(other)));
            }
        }
        let other = if kind == Capability::Udp { "tcp" } else { "udp" };
        found.text("protocol", &format!("{other} {host}:{port}"));
    }
    found
}

/// The files around a mount.
pub(crate) fn around_mount(rule: &RuleRef, mount: &Mount, uses: &[&Ask]) -> RuleNeighbours {
    let is_mine = |path: &str| mount.rest_of(path).is_some();
    let used = uses.iter().copied().filter(|ask| matches!(ask, Ask::File { path, .. } if is_mine(path)));
    let guest = mount.guest();
    let mut bases: Vec<Ask> = used.take(BASES_MAX).cloned().collect();
    if bases.is_empty() {
        bases.push(Ask::File { want: FileAccess::Read, path: format!("{}/x", guest.trim_end_matches('/')) });
    }
    let mut found = RuleNeighbours::new(rule, bases.clone());
    let root = guest.trim_end_matches('/');
    let parent = root.rsplit_once('/').map_or("", |(parent, _)| parent);
    for base in &bases {
        let Ask::File { want, path } = base else { continue };
        for other in FileAccess::ALL {
            found.file("access", other, path.clone());
        }
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let last = path.rsplit('/').next().unwrap_or_default();
        for other in [
            format!("{root}-other/{last}"),
            format!("{root}other"),
            format!("{parent}/other/{last}"),
            format!("{parent}/"),
            "/".to_owned(),
            "/etc/passwd".to_owned(),
            format!("{folder}/other"),
            format!("{folder}/other/{last}"),
            format!("{root}/other"),
            format!("{root}/.{last}"),
            format!("{path}/../../etc/passwd"),
            format!("{root}/.."),
            format!("{root}/../{last}"),
            format!("{root}/./../{last}"),
            format!("{root}//../{last}"),
            format!("/{path}"),
            format!("{root}//{last}"),
            path.to_ascii_uppercase(),
            path.trim_start_matches('/').to_owned(),
            format!("{root}\\{last}"),
            format!("{root}\0/{last}"),
            format!("{root}/link"),
        ] {
            found.file("path", *want, other);
        }
    }
    found
}

/// The tools around a rule of `calls`.
pub(crate) fn around_call(rule: &CallRule, uses: &[&Ask]) -> RuleNeighbours {
    let mut bases: Vec<Ask> = uses
        .iter()
        .copied()
        .filter(|ask| ask.name(Capability::Call).is_some_and(|tool| rule.takes(tool)))
        .take(BASES_MAX)
        .cloned()
        .collect();
    if bases.is_empty() {
        let more = if rule.takes_more() { "x" } else { "" };
        bases.push(Ask::Named(Capability::Call, format!("{}{more}", rule.name())));
    }
    let mut found = RuleNeighbours::new(rule.rule(), bases.clone());
    for base in &bases {
        around_name(&mut found, Capability::Call, base.name(Capability::Call).unwrap_or_default());
        found.text("name", &format!("call {}other", rule.name()));
    }
    found
}

/// The names around one of `env` or `config`; state has none.
pub(crate) fn around_named(rule: &RuleRef, kind: Capability, name: &str) -> RuleNeighbours {
    let base = Ask::Named(kind, name.to_owned());
    let mut found = RuleNeighbours::new(rule, vec![base]);
    if !name.is_empty() {
        around_name(&mut found, kind, name);
    }
    found
}

fn around_name(found: &mut RuleNeighbours, kind: Capability, name: &str) {
    let cut = name.char_indices().last().and_then(|(at, _)| name.get(..at)).unwrap_or_default();
    for other in [
        name.to_ascii_lowercase(),
        name.to_ascii_uppercase(),
        format!("{name}_other"),
        format!("{name}*"),
        format!("other_{name}"),
        format!("{name}\0"),
        cut.to_owned(),
        "*".to_owned(),
    ] {
        // No tool has such a name.
        if kind == Capability::Call && check_tool(&other).is_err() {
            found.malformed += 1;
            continue;
        }
        found.around.push(Neighbour { kind: "name", ask: Ask::Named(kind, other) });
    }
}
