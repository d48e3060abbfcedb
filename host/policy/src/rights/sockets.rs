//! TCP connections and UDP packets, and the look-ups of names before them.

use std::borrow::Cow;
use std::net::SocketAddr;

use super::network::{self, SECTION, list_entry, names_note, outside};
use super::used::{ListedSocket, around_socket, rules_for};
use super::{Example, Importer, Narrowing, Right};
use crate::capabilities::ReachRow;
use crate::explain::{Ask, AskTextError};
use crate::grants::{Capability, Host, Network, Resolved, RuleRef, SocketRule};

/// TCP connections.
pub(crate) static TCP: Right = Right {
    what: "TCP",
    imports: &["wasi:sockets/tcp", "wasi:sockets/types@"],
    verbs: &["tcp"],
    ask_forms: &["tcp host:port"],
    forms: &["tcp host:port"],
    help: "  tcp HOST:PORT, udp HOST:PORT\n",
    example: Some(Example {
        imports: &["wasi:sockets/tcp", "wasi:sockets/udp"],
        importer: Importer::Library,
        what: "sockets",
        grant: "network.tcp = [\"db.example.com:5432\"]",
        right: "tcp db.example.com:5432",
    }),
    ..SOCKETS
};

/// UDP packets, and look-ups, which the rules of both lists allow.
pub(crate) static UDP: Right = Right {
    narrowing: Some(Narrowing::Rules("udp")),
    evidence: Some(Capability::Udp),
    what: "UDP",
    imports: &["wasi:sockets/udp", "wasi:sockets/types@"],
    verbs: &["udp", "lookup"],
    ask_forms: &["udp host:port", "lookup name"],
    forms: &["udp host:port"],
    ..SOCKETS
};

/// What TCP and UDP share.
const SOCKETS: Right = Right {
    section: SECTION,
    narrowing: Some(Narrowing::Rules("tcp")),
    requested: |right, requested| {
        rules(right, &requested.network).iter().map(|rule| format!("{} {rule}", kind(right).name())).collect()
    },
    beyond: |right, requested, grants| {
        let requested = rules(right, &requested.network);
        let beyond = outside(rules(right, grants.network()), requested, SocketRule::lies_within, SocketRule::rule);
        beyond.into_iter().map(RuleRef::span).collect()
    },
    reach: |right, grants| {
        let row = |rule: &SocketRule| ReachRow::new(kind(right), rule.to_string(), Some(rule.rule().span()));
        rules(right, grants.network()).iter().map(row).collect()
    },
    lock_lines: |right, grants| {
        rules(right, grants.network()).iter().map(|rule| format!("{} {rule}", kind(right).name())).collect()
    },
    uses: |right, grants| vec![right.used(rules(right, grants.network()).first().map(|rule| rule.rule().span()))],
    ask: |right, verb, rest| {
        let wrong = |message: String, form: &str| AskTextError::hint_of(message, format!("write \"{form}\""));
        if verb == "lookup" {
            return match rest.parse().map(Host::Addr).or_else(|_| Host::parse(rest)) {
                Ok(_) => Ok(Ask::Named(Capability::Lookup, rest.to_owned())),
                Err(error) => Err(wrong(format!("the host {error}"), "lookup db.example.com")),
            };
        }
        let form = "tcp db.example.com:5432";
        let (host, port) = crate::grants::split_port(rest);
        let port = port.and_then(|port| port.parse().ok()).filter(|port| *port != 0);
        let port = port.ok_or_else(|| wrong("the port is missing or invalid".to_owned(), form))?;
        let host = Host::parse(host).map_err(|error| wrong(format!("the host {error}"), form))?;
        Ok(Ask::Socket(kind(right), host, port))
    },
    explain: |right, grants, ask, notes| {
        let network = grants.network();
        match ask {
            Ask::Named(Capability::Lookup, name) => Some(network.lookup(name).map(|permit| permit.rule().clone())),
            Ask::Socket(capability, Host::Addr(address), port) if *capability == kind(right) => {
                let address = SocketAddr::new(*address, *port);
                let none = Resolved::default();
                let udp = *capability == Capability::Udp;
                let permit = if udp { network.udp(address, &none) } else { network.tcp(address, &none) };
                Some(permit.map(|permit| permit.rule().clone()))
            }
            Ask::Socket(capability, host @ Host::Name(name), port) if *capability == kind(right) => {
                let rule = network.socket_of_name(*capability, host, *port);
                Some(rule.inspect(|_| notes.push(names_note(name))))
            }
            _ => None,
        }
    },
    evidence: Some(Capability::Tcp),
    own_table: |_, grants| grants.network().wider.is_some(),
    narrower: |right, used| {
        let network = used.grants.network();
        let kind = kind(right);
        let listed = |rule| ListedSocket { kind, rule: Cow::Borrowed(rule) };
        let rules: Vec<ListedSocket<'_>> = rules(right, network).iter().map(listed).collect();
        let uses: Vec<&Ask> =
            used.uses.iter().copied().filter(|ask| !is_needed_elsewhere(kind, network, ask, used.uses)).collect();
        let needed = rules_for(&rules, &uses);
        network::narrower(kind.name(), needed.into_iter().map(|needed| (needed.rule.rule.rule(), needed.instead)))
    },
    neighbours: |right, grants, uses| {
        rules(right, grants.network()).iter().map(|rule| around_socket(kind(right), rule, uses)).collect()
    },
    entry: |right, verb, rest| (verb == kind(right).name() && !rest.is_empty()).then(|| list_entry(verb, rest)),
    ..Right::NONE
};

/// True for a look-up that the rule of a connection allows as well, or a rule of `tcp`.
fn is_needed_elsewhere(kind: Capability, network: &Network, ask: &Ask, uses: &[&Ask]) -> bool {
    let Some(host) = ask.name(Capability::Lookup).and_then(|name| Host::parse(name).ok()) else { return false };
    let connects = uses.iter().any(|other| matches!(other, Ask::Socket(_, other, _) if *other == host));
    connects || (kind == Capability::Udp && network.tcp_rules().iter().any(|rule| rule.matches_name(&host)))
}

fn kind(right: &Right) -> Capability {
    if right.narrowing == UDP.narrowing { Capability::Udp } else { Capability::Tcp }
}

fn rules<'n>(right: &Right, network: &'n Network) -> &'n [SocketRule] {
    network.sockets(kind(right))
}
