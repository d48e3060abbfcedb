//! The section `network`: reading and narrowing its lists of rules, each a right of its own, and
//! what they share.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::Arc;

use serde_json::{Value, json};

use super::used::Narrower;
use super::values::{REQUESTS_MAX, check_requested};
use super::{Right, wider};
use crate::canonical::sorted;
use crate::diagnostic::{Diagnostic, Span};
use crate::edit::{self, Change, ManifestEntry};
use crate::grants::{
    AddressClass, CaFile, Capability, Host, HostPattern, HttpRule, MethodSet, Network, PrivateRule, ProxyUrl,
    RuleError, RuleRef, SocketRule, SocketTarget,
};
use crate::names::{meant_or, toml_string};
use crate::read::{Entry, Problems, Section, paths};
use crate::table::{keys, table};

/// The section, which has the keys of all lists.
pub(super) const SECTION: &str = "network";

/// The most rules of each list: each request is compared with all of them.
const RULES_MAX: usize = 1_000;

/// The most entries of `private`: each address is compared with all of them.
const PRIVATE_MAX: usize = 256;

/// The most files of certificates.
const CA_MAX: usize = 16;

table! {
    /// Hosts and addresses.
    NETWORK_TABLE "Network" {
        /// HTTP requests: `[METHODS] scheme://host[:port][/path]`. `*.example.com` is every name
        /// below, `*` within a path one segment, `/*` at its end everything below.
        "http": List(&Text),
            {"maxItems": RULES_MAX, "examples": [["GET https://api.example.com/v1/*", "https://*.example.com"]]};
        /// TCP connections: `host:port`, `address:port` or `range:port`; ports such as `1000-2000`.
        "tcp": List(&Text),
            {"maxItems": RULES_MAX, "examples": [["db.example.com:5432", "192.0.2.0/24:5432"]]};
        /// UDP packets, as `tcp`.
        "udp": List(&Text), {"maxItems": RULES_MAX, "examples": [["192.0.2.1:53"]]};
        /// Addresses that are not public and may be reached where a rule leads there; all ports
        /// where none is named.
        "private": List(&Text),
            {"maxItems": PRIVATE_MAX, "examples": [["127.0.0.1:8080", "10.0.0.0/8", "[::1]:80"]]};
        /// Files of certificates that TLS trusts besides the platform's, relative to this file.
        "ca": List(&Text), {"maxItems": CA_MAX, "examples": [["certs/ca.pem"]]};
        /// The proxy of HTTP requests. Variables such as `HTTPS_PROXY` are not looked at.
        "proxy": Text, {"pattern": "^https?://[^/@]+:[0-9]+/?$", "examples": ["http://proxy.example:3128"]};
    }
    other names {
        "https" => "http", "allow" => "http", "hosts" => "http", "certificates" => "ca",
    }
}

table! {
    /// The rules that a tool has, each within one of the component's. A list that is missing is
    /// empty, `private` is the component's.
    TOOL_TABLE "ToolNetwork" {
        /// HTTP requests.
        "http": List(&Text), {"maxItems": RULES_MAX, "examples": [["GET https://api.example.com/v1/now"]]};
        /// TCP connections.
        "tcp": List(&Text), {"maxItems": RULES_MAX, "examples": [["db.example.com:5432"]]};
        /// UDP packets.
        "udp": List(&Text), {"maxItems": RULES_MAX, "examples": [["192.0.2.1:53"]]};
        /// Addresses that are not public.
        "private": List(&Text), {"maxItems": PRIVATE_MAX, "examples": [["127.0.0.1:8080"]]};
    }
    other names {
        "https" => "http", "allow" => "http", "hosts" => "http",
    }
}

/// The section, with what all of its rules share.
pub(crate) static NETWORK: Right = Right {
    section: SECTION,
    keys: keys! {
        /// Hosts and addresses.
        "network": Table(&NETWORK_TABLE), {};
    },
    keys_of_tool: keys! {
        /// The rules that this tool has, each within one of the component's; `{}` for none.
        "network": Table(&TOOL_TABLE), {};
    },
    keys_of_request: keys! {
        /// Hosts and addresses.
        "network": Table(&TOOL_TABLE), {};
    },
    read: |_, entry, _, grants, problems| {
        let Some(section) = entry.table(&NETWORK_TABLE, problems) else { return };
        let network = &mut grants.network;
        read_rules(&section, network, RULES_MAX, problems);
        network.ca = section.get("ca").map(|entry| ca(&entry, problems)).unwrap_or_default();
        network.proxy = section.get("proxy").and_then(|entry| proxy(&entry, problems));
        if network.http.is_empty() && section.get("http").is_none_or(|entry| entry.is_empty_list()) {
            for entry in ["ca", "proxy"].iter().filter_map(|key| section.get(key)) {
                let message = format!("{} without http rules can never apply", entry.key);
                problems.add(entry.key_error("grants::unreachable", message).hint("add http = [...], or remove it"));
            }
        }
    },
    narrow: |_, entry, grants, problems| {
        let component = grants.network.clone();
        let network = &mut grants.network;
        *network = Network { http: Vec::new(), tcp: Vec::new(), udp: Vec::new(), ..component.clone() };
        network.wider = Some(Arc::new(component.clone()));
        let Some(section) = entry.table(&TOOL_TABLE, problems) else { return true };
        read_rules(&section, network, RULES_MAX, problems);
        let mut refuse = |what: &str, rules: Vec<&RuleRef>, wide: Vec<&RuleRef>| {
            let hint = match wide.as_slice() {
                [] => "the component has none, and a tool cannot add to its component's grants".to_owned(),
                wide => {
                    let first: Vec<String> = wide.iter().take(3).map(|rule| format!("{:?}", rule.text())).collect();
                    format!("the component's are {}", first.join(", "))
                }
            };
            for rule in rules {
                let message = format!("the {what} does not lie within one of the component's");
                problems.add(wider(&message, rule.span(), &hint));
            }
        };
        let wide = component.http.iter().map(HttpRule::rule).collect();
        refuse("http rule", outside(&network.http, &component.http, HttpRule::lies_within, HttpRule::rule), wide);
        for (key, rules, wide) in [("tcp", &network.tcp, &component.tcp), ("udp", &network.udp, &component.udp)] {
            let beyond = outside(rules, wide, SocketRule::lies_within, SocketRule::rule);
            refuse(&format!("{key} rule"), beyond, wide.iter().map(SocketRule::rule).collect());
        }
        if section.get("private").is_some() {
            let beyond = outside(&network.private, &component.private, PrivateRule::lies_within, PrivateRule::rule);
            refuse("private entry", beyond, component.private.iter().map(PrivateRule::rule).collect());
            network.private_section = Arc::from(grants.subject.narrowed_section(SECTION));
        }
        true
    },
    read_request: |_, entry, requested, problems| {
        let Some(section) = entry.table(&TOOL_TABLE, problems) else { return };
        let lists = TOOL_TABLE.names().filter_map(|key| section.get(key));
        let texts = lists.flat_map(|entry| entry.strings(REQUESTS_MAX, &mut Problems::default()).unwrap_or_default());
        for (text, span) in texts {
            // Only the space after the methods is allowed here: the rule itself refuses others.
            check_requested(&text.replacen(' ', "", 1), span, problems);
        }
        read_rules(&section, &mut requested.network, REQUESTS_MAX, problems);
    },
    canonical: |_, grants| {
        let network = grants.network();
        if network.is_empty() {
            return Value::Null;
        }
        let ca: Vec<&str> = network.ca().iter().map(|file| file.path()).collect();
        sorted([
            ("http", rules(network.http_rules())),
            ("tcp", rules(network.tcp_rules())),
            ("udp", rules(network.udp_rules())),
            ("private", rules(network.private())),
            ("ca", json!(ca)),
            ("proxy", json!(network.proxy().map(ToString::to_string))),
        ])
    },
    lock_lines: |_, grants| {
        let network = grants.network();
        let roots = network.ca().iter().map(|file| format!("trust the roots in {}", file.path()));
        roots.chain(network.proxy().map(|proxy| format!("through the proxy {proxy}"))).collect()
    },
    needed: |_, needs| {
        let tcp = needs.names(Capability::Tcp);
        let udp = needs.names(Capability::Udp);
        let private = needs.names(Capability::Private);
        let named =
            |name: &str| tcp.iter().chain(udp).any(|rule| rule.rsplit_once(':').is_some_and(|(host, _)| host == name));
        let lookups = needs.names(Capability::Lookup).iter().filter(|name| !named(name));
        let mut lines: Vec<String> =
            lookups.map(|name| format!("# {name} was looked up: a rule for it and its port allows that")).collect();
        let texts = |rules: &std::collections::BTreeSet<String>| rules.iter().cloned().collect::<Vec<_>>();
        let http = super::http::needed_rules(needs);
        for (key, rules) in [("http", http), ("tcp", texts(tcp)), ("udp", texts(udp)), ("private", texts(private))] {
            match rules.as_slice() {
                [] => {}
                [only] => lines.push(format!("{key} = [{}]", toml_string(only))),
                many => {
                    let many = many.iter().map(|rule| format!("    {},\n", toml_string(rule))).collect::<String>();
                    lines.push(format!("{key} = [\n{many}]"));
                }
            }
        }
        lines
    },
    ..Right::NONE
};

/// The rules that are within none of the wider ones.
pub(super) fn outside<'r, R>(
    rules: &'r [R],
    wider: &[R],
    within: impl Fn(&R, &R) -> bool,
    rule: impl Fn(&'r R) -> &'r RuleRef,
) -> Vec<&'r RuleRef> {
    rules.iter().filter(|each| !wider.iter().any(|wider| within(each, wider))).map(rule).collect()
}

/// The entry that adds a rule to a list.
pub(super) fn list_entry(list: &str, rule: &str) -> ManifestEntry {
    let value = edit::Value::Array(edit::Array::from_iter([rule]));
    ManifestEntry { section: SECTION, key: list.to_owned(), value }
}

/// The rules of one of its lists that may be narrower.
pub(super) fn narrower<'r>(
    key: &'static str,
    needed: impl Iterator<Item = (&'r RuleRef, Option<Vec<String>>)>,
) -> Vec<Narrower> {
    let narrower = |(rule, instead): (&RuleRef, Option<Vec<String>>)| {
        let new = instead?;
        let change = Change::Rules { section: SECTION, key, old: rule.text().to_owned(), new: new.clone() };
        Some(Narrower { rule: rule.clone(), instead: new, change })
    };
    needed.filter_map(narrower).collect()
}

/// The note that the addresses of a name are only checked during a call.
pub(super) fn names_note(name: &str) -> String {
    format!("each address that {name} leads to must be public, or one that private names with this port")
}

fn rules<R: Display>(rules: &[R]) -> Value {
    let mut texts: Vec<String> = rules.iter().map(R::to_string).collect();
    texts.sort();
    json!(texts)
}

/// The lists of a component, a tool or a request, each with at most this many rules.
fn read_rules(section: &Section<'_>, network: &mut Network, rules_max: usize, problems: &mut Problems) {
    let errors = problems.errors();
    network.http = list(section, "http", rules_max, HttpRule::parse, problems);
    network.tcp = list(section, "tcp", rules_max, SocketRule::parse, problems);
    network.udp = list(section, "udp", rules_max, SocketRule::parse, problems);
    if section.get("private").is_some() {
        network.private = list(section, "private", rules_max.min(PRIVATE_MAX), PrivateRule::parse, problems).into();
    }
    // If a rule was left out, others could seem unreachable.
    if problems.errors() == errors {
        refuse_unreachable(network, section.get("private").is_some(), problems);
    }
}

/// The rules of one list, without duplicates.
fn list<R: Display>(
    section: &Section<'_>,
    key: &str,
    max: usize,
    parse: impl Fn(&str, Span) -> Result<R, RuleError>,
    problems: &mut Problems,
) -> Vec<R> {
    let texts = section.get(key).and_then(|entry| entry.strings(max, problems)).unwrap_or_default();
    let mut rules = Vec::with_capacity(texts.len());
    let mut seen = HashSet::with_capacity(texts.len());
    for (text, span) in texts {
        match parse(text, span.clone()) {
            Ok(rule) if seen.insert(rule.to_string()) => rules.push(rule),
            Ok(_) => {
                problems.add(Diagnostic::warning("grants::duplicate", format!("the {key} rule appears twice")).at(span))
            }
            Err(error) => problems.add(rule_problem(key, text, &error, span)),
        }
    }
    rules
}

/// A text that is not a rule.
pub(crate) fn rule_problem(key: &str, text: &str, error: &RuleError, span: Span) -> Diagnostic {
    let problem = Diagnostic::error("grants::rule", format!("the {key} rule {error}")).at(span);
    match hint(key, text, error) {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

fn hint(key: &str, text: &str, error: &RuleError) -> Option<String> {
    Some(match error {
        RuleError::NoScheme if key == "proxy" => format!("write \"http://{text}\""),
        RuleError::NoScheme => match text.trim().rsplit_once(' ') {
            Some((methods, url)) => format!("write \"{methods} https://{url}\""),
            None => format!("write \"https://{}\"", text.trim()),
        },
        RuleError::Scheme(_) => "schemes are http and https; tcp and udp have lists of their own".to_owned(),
        RuleError::Method(method) => {
            let otherwise = "write methods in upper case with commas between, such as \"GET,HEAD https://…\"";
            meant_or(&method.to_ascii_uppercase(), MethodSet::names().iter().copied(), otherwise)
        }
        RuleError::Star => {
            "write \"*.example.com\" for every name below example.com, or \"*\" for every host".to_owned()
        }
        RuleError::NoPort if key == "proxy" => "write \"http://proxy.example:3128\"".to_owned(),
        RuleError::NoPort => format!("write \"{text}:PORT\""),
        RuleError::Port(_) => {
            "ports are 1 to 65535; tcp, udp and private take ranges such as \"1000-2000\" as well".to_owned()
        }
        RuleError::Rest => "write * for one segment, and /** or /* at the end for everything below".to_owned(),
        RuleError::DotSegment => "write the path as it is after . and .. are resolved".to_owned(),
        RuleError::AmbiguousPath => {
            "leave the path out: only a rule for every path of a host matches such requests".to_owned()
        }
        RuleError::HostBits(net) => format!("write {net:?} for the range"),
        RuleError::NotAnAddress => "write the address that the name leads to, such as \"127.0.0.1:8080\"".to_owned(),
        RuleError::Range(_) => "write \"10.0.0.0/8\", \"192.0.2.1\" or, with IPv6, \"[fd00::/8]:443\"".to_owned(),
        RuleError::Path => "write \"host:port\" alone".to_owned(),
        RuleError::Query => "leave the query out: every query is allowed".to_owned(),
        RuleError::User => "secrets belong into [components.NAME.secrets]".to_owned(),
        _ => return None,
    })
}

/// Reports rules that no connection can use, and entries of `private` that no rule leads to.
fn refuse_unreachable(network: &Network, own_private: bool, problems: &mut Problems) {
    for rule in &network.http {
        let HostPattern::Exact(Host::Addr(address)) = rule.host() else { continue };
        let port = rule.port();
        if let Err(class) = crate::grants::check_address(*address, port, &network.private) {
            let entry = std::net::SocketAddr::new(*address, port).to_string();
            problems.add(not_private("http", class, &entry, rule.rule().span()));
        }
    }
    for (key, rules) in [("tcp", &network.tcp), ("udp", &network.udp)] {
        for rule in rules {
            let SocketTarget::Net(net) = rule.target() else { continue };
            let ends = (AddressClass::of(net.network()), AddressClass::of(net.broadcast()));
            let (Some(class), Some(_)) = ends else { continue };
            let named = network.private.iter().any(|entry| rule.meets(entry));
            if !named {
                problems.add(not_private(key, class, &rule.to_string(), rule.rule().span()));
            }
        }
    }
    for entry in network.private.iter().filter(|_| own_private) {
        if entry.is_public() {
            let problem = Diagnostic::error("grants::unreachable", "the private entry names public addresses only");
            problems
                .add(problem.at(entry.rule().span()).hint("remove it: http, tcp and udp rules are enough for them"));
        } else if !network.leads_to(entry) {
            let problem =
                Diagnostic::error("grants::unreachable", "no http, tcp or udp rule leads to this private entry");
            problems.add(problem.at(entry.rule().span()).hint("add a rule for the host and the port, or remove it"));
        }
    }
}

fn not_private(key: &str, class: AddressClass, entry: &str, span: Span) -> Diagnostic {
    let problem = Diagnostic::error(
        "grants::unreachable",
        format!("the {key} rule can never match: it names {}", class.describe()),
    );
    match class {
        AddressClass::Unspecified => problem.at(span).hint("name 127.0.0.1 or [::1] for this host"),
        _ => problem.at(span).hint(format!("add private = [\"{entry}\"] next to it")),
    }
}

fn ca(entry: &Entry<'_>, problems: &mut Problems) -> Vec<CaFile> {
    let mut files = Vec::new();
    for (text, span) in entry.strings(CA_MAX, problems).unwrap_or_default() {
        match paths::check_host_path("ca", text) {
            Ok(path) => files.push(CaFile { path, span }),
            Err(problem) => problems.add(problem.at(span)),
        }
    }
    files
}

fn proxy(entry: &Entry<'_>, problems: &mut Problems) -> Option<ProxyUrl> {
    let text = entry.string(problems)?;
    let read = ProxyUrl::parse(text, entry.span.clone());
    read.map_err(|error| problems.add(rule_problem("proxy", text, &error, entry.span.clone()))).ok()
}
