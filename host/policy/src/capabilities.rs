//! The grants of a component or a tool in words.

use crate::diagnostic::Span;
use crate::grants::{Capability, Delivery, EnvSource, Grants, HttpRule, MethodSet, Mount, MountKind, Quota, Secret};
use crate::quantity::{show_bytes, show_count};
use crate::settings::accessors;

accessors! {
    /// One line of a table: a kind of reach and how far it goes.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ReachRow {
        /// The kind of reach.
        capability: Capability => Capability,
        /// Its extent: `read /data from "data"`, `GET https://api.example.com/v1/*`. Holds no value
        /// of a secret.
        text: String => &str,
        /// Its place in the manifest.
        span: Option<Span> => Option<Span>,
    }
}

impl Grants {
    /// Everything that can be reached, one row for each rule, mount, variable and secret; none
    /// where nothing is granted.
    #[must_use]
    pub fn reach(&self) -> Vec<ReachRow> {
        let row = |capability, text, span| ReachRow { capability, text, span };
        let network = self.network();
        let mut rows: Vec<ReachRow> = Vec::new();
        rows.extend(
            self.files().iter().map(|mount| row(Capability::Filesystem, mount_words(mount), Some(mount.span()))),
        );
        rows.extend(
            network.http_rules().iter().map(|rule| row(Capability::Http, http_words(rule), Some(rule.rule().span()))),
        );
        for (capability, rules) in [(Capability::Tcp, network.tcp_rules()), (Capability::Udp, network.udp_rules())] {
            rows.extend(rules.iter().map(|rule| row(capability, rule.to_string(), Some(rule.rule().span()))));
        }
        rows.extend(network.private().iter().filter(|entry| network.leads_to(entry)).map(|entry| {
            let text = format!("{entry}, where a rule leads there");
            row(Capability::Private, text, Some(entry.rule().span()))
        }));
        rows.extend(self.env().iter().map(|variable| {
            let text = match variable.source() {
                EnvSource::Text(_) => variable.name().to_owned(),
                EnvSource::Host(host) => format!("{} from the host's {host}", variable.name()),
            };
            row(Capability::Env, text, Some(variable.span()))
        }));
        if !self.args().is_empty() {
            rows.push(row(Capability::Args, self.args().join(" "), self.places.args.clone()));
        }
        if let Some(text) = self.stdin() {
            rows.push(row(Capability::Stdin, show_bytes(text.len() as u64), self.places.stdin.clone()));
        }
        rows.extend(
            self.config().iter().map(|(name, _)| row(Capability::Config, name.clone(), self.places.config.clone())),
        );
        rows.extend(self.keyvalue().map(|state| {
            let each = if state.per_caller() { " for each caller" } else { "" };
            let bytes = show_bytes(state.quota_bytes());
            let entries = show_count(state.entries());
            row(Capability::KeyValue, format!("{bytes} in {entries} entries{each}"), self.places.keyvalue.clone())
        }));
        rows.extend(
            self.secrets().iter().map(|secret| row(Capability::Secret, secret_words(secret), Some(secret.span()))),
        );
        rows
    }
}

fn mount_words(mount: &Mount) -> String {
    let guest = mount.guest();
    match mount.kind() {
        MountKind::Host { path, access, quota, .. } => {
            let limit = quota.map(|quota| format!(", {}", quota_words(quota))).unwrap_or_default();
            format!("{} {guest} from {path:?}{limit}", access.name())
        }
        MountKind::Scratch { quota } => format!("scratch {guest}, {}, gone after the call", quota_words(*quota)),
    }
}

fn quota_words(quota: Quota) -> String {
    format!("{} in {} files", show_bytes(quota.bytes), show_count(quota.files))
}

fn http_words(rule: &HttpRule) -> String {
    if rule.methods() == MethodSet::ANY { format!("any method {rule}") } else { rule.to_string() }
}

fn secret_words(secret: &Secret) -> String {
    let name = secret.name();
    let source = secret.source();
    match secret.delivery() {
        Delivery::Header { name: header, target, .. } => format!("{name} from {source}, as {header} of {target}"),
        Delivery::Query { name: part, target } => format!("{name} from {source}, as {part} in the query of {target}"),
        Delivery::Expose => format!("{name} from {source}, held by the guest"),
    }
}
