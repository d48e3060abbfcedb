//! Reads `network` tables.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::Arc;

use super::{Entry, Problems, Section, paths};
use crate::diagnostic::{Diagnostic, Span};
use crate::grants::{
    AddressClass, CaFile, Host, HostPattern, HttpRule, MethodSet, Network, PrivateRule, ProxyUrl, RuleError,
    SocketRule, SocketTarget, Subject,
};
use crate::names::did_you_mean;
use crate::table::table;

/// The most rules of each list: each request is compared with all of them.
pub(crate) const RULES_MAX: usize = 1_000;

/// The most entries of `private`: each address is compared with all of them.
pub(super) const PRIVATE_MAX: usize = 256;

/// The most files of certificates.
const CA_MAX: usize = 16;

table! {
    /// Hosts and addresses.
    pub(crate) NETWORK "Network" {
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

/// A component's network. What is wrong is noted and left out.
pub(crate) fn read(entry: &Entry<'_>, subject: &Arc<Subject>, problems: &mut Problems) -> Network {
    let mut network = Network::sealed(Arc::clone(subject));
    let Some(section) = entry.table(&NETWORK, problems) else { return network };
    read_rules(&section, &mut network, RULES_MAX, problems);
    network.ca = section.get("ca").map(|entry| ca(&entry, problems)).unwrap_or_default();
    network.proxy = section.get("proxy").and_then(|entry| proxy(&entry, problems));
    if network.http.is_empty() && section.get("http").is_none_or(|entry| entry.is_empty_list()) {
        for entry in ["ca", "proxy"].iter().filter_map(|key| section.get(key)) {
            let message = format!("{} without http rules can never apply", entry.key);
            problems.add(entry.key_error("grants::unreachable", message).hint("add http = [...], or remove it"));
        }
    }
    network
}

/// The lists that a component, a tool and wishes have, each with at most this many rules.
pub(crate) fn read_rules(section: &Section<'_>, network: &mut Network, rules_max: usize, problems: &mut Problems) {
    let errors = problems.errors();
    network.http = list(section, "http", rules_max, HttpRule::parse, problems);
    network.tcp = list(section, "tcp", rules_max, SocketRule::parse, problems);
    network.udp = list(section, "udp", rules_max, SocketRule::parse, problems);
    if section.get("private").is_some() {
        network.private = list(section, "private", rules_max.min(PRIVATE_MAX), PrivateRule::parse, problems).into();
    }
    // With a rule left out, others may seem to lead nowhere.
    if problems.errors() == errors {
        refuse_unreachable(network, section.get("private").is_some(), problems);
    }
}

/// The rules of one list, each of them once.
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
            Ok(_) => problems
                .add(Diagnostic::warning("grants::duplicate", format!("the {key} rule is there twice")).at(span)),
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
            match did_you_mean(&method.to_ascii_uppercase(), MethodSet::names().iter().copied()) {
                Some(name) => format!("did you mean \"{name}\"?"),
                None => "write methods in upper case with commas between, such as \"GET,HEAD https://…\"".to_owned(),
            }
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

/// Rules that no connection can follow, and entries of `private` that no rule leads to.
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
        _ => problem.at(span).hint(format!("add private = [\"{entry}\"] beside it")),
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
