//! Reads what a tool's table takes away from its component's grants.

use std::sync::Arc;

use super::network::{PRIVATE_MAX, RULES_MAX};
use super::{Entry, Problems, Section, files, limits, network, paths};
use crate::diagnostic::{Diagnostic, Span};
use crate::grants::{Access, Grants, MOUNT_FILES, MOUNT_QUOTA, Mount, MountKind, Network, Quota, Subject, Ungranted};
use crate::limits::Spec;
use crate::names::did_you_mean;
use crate::table::table;

/// The most names of a list: as many as a component has.
const NAMES_MAX: usize = 256;

table! {
    /// A mount of the component as a tool has it: with less, or as it is.
    pub(crate) MOUNT_OF_TOOL "ToolMount" {
        /// The tool's access.
        "access": Words(&["read", "write"]), {"examples": ["read"]};
        /// Bytes that the mount may hold: at most the component's quota.
        "quota": Within(&MOUNT_QUOTA), {"examples": ["1MiB"]};
        /// Files and folders that the mount may hold: at most as many as the component's.
        "files": Within(&MOUNT_FILES), {"examples": [10]};
    }
    other names {
        "mode" => "access",
    }
}

table! {
    /// The rules that a tool has, each within one of the component's. A list that is missing is
    /// empty, `private` is the component's.
    pub(crate) NETWORK_OF_TOOL "ToolNetwork" {
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

/// A tool's grants: the component's where its table says nothing.
pub(crate) fn read(tool: &str, section: &Section<'_>, component: &Arc<Grants>, problems: &mut Problems) -> Arc<Grants> {
    let subject = Arc::new(Subject::new(component.subject.component(), Some(tool)));
    let mut grants = component.of(&subject);
    if let Some(entry) = section.get("filesystem") {
        grants.files = mounts(&entry, &grants, problems);
    }
    if let Some(entry) = section.get("network") {
        grants.network = narrowed_network(&entry, &grants, problems);
    }
    // A table sets variables for each call of a program and takes none away.
    let env = section.get("env").filter(|entry| !entry.is_table());
    if let Some(entry) = &env {
        let named =
            names(entry, "environment variable", component.env.iter().map(|variable| variable.name()), problems);
        grants.env.retain(|variable| named.contains(&variable.name()));
    }
    if let Some(entry) = section.get("config") {
        let named = names(&entry, "setting", component.config.iter().map(|(name, _)| name.as_str()), problems);
        grants.config.retain(|(name, _)| named.contains(&name.as_str()));
    }
    if let Some(entry) = section.get("secrets") {
        let named = names(&entry, "secret", component.secrets.iter().map(|secret| secret.name()), problems);
        grants.secrets.retain(|secret| named.contains(&secret.name()));
    }
    if let Some(entry) = section.get("keyvalue") {
        keyvalue(&entry, &mut grants, problems);
    }
    if let Some(entry) = section.get("ungranted") {
        ungranted(&entry, &mut grants, problems);
    }
    let says_any = env.is_some()
        || ["filesystem", "network", "config", "secrets", "keyvalue"].iter().any(|key| section.get(key).is_some());
    grants.wider = says_any.then(|| Arc::clone(component));
    Arc::new(grants)
}

fn keyvalue(entry: &Entry<'_>, grants: &mut Grants, problems: &mut Problems) {
    match entry.boolean(problems) {
        Some(false) => grants.keyvalue = None,
        Some(true) if grants.keyvalue.is_none() => problems.add(wider(
            "the component is not granted keyvalue",
            entry.span.clone(),
            &format!("add [{}]", grants.subject.section("keyvalue")),
        )),
        Some(true) | None => {}
    }
}

fn ungranted(entry: &Entry<'_>, grants: &mut Grants, problems: &mut Problems) {
    let answer = entry.one_of(super::grants::WORDS, super::grants::ANSWERS, problems);
    match answer {
        Some(Ungranted::Ask) if grants.ungranted == Ungranted::Deny => problems.add(wider(
            "the component does not ask",
            entry.span.clone(),
            &format!("add ungranted = \"ask\" to [components.{}], or leave it out here", grants.subject.component()),
        )),
        Some(answer) => grants.ungranted = answer,
        None => {}
    }
}

/// The names of a list, each one that the component is granted.
fn names<'t>(
    entry: &Entry<'t>,
    what: &str,
    granted: impl Iterator<Item = &'t str> + Clone,
    problems: &mut Problems,
) -> Vec<&'t str> {
    let mut named = Vec::new();
    for (name, span) in entry.strings(NAMES_MAX, problems).unwrap_or_default() {
        if granted.clone().any(|other| other == name) {
            named.push(name);
            continue;
        }
        let hint = match did_you_mean(name, granted.clone()) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => "a tool narrows what its component is granted, and adds nothing".to_owned(),
        };
        problems.add(wider(&format!("the component has no {what} {name:?}"), span, &hint));
    }
    named
}

fn wider(message: &str, span: Span, hint: &str) -> Diagnostic {
    Diagnostic::error("grants::wider", message).at(span).hint(hint)
}

fn narrowed_network(entry: &Entry<'_>, grants: &Grants, problems: &mut Problems) -> Network {
    let component = &grants.network;
    let mut network = Network { http: Vec::new(), tcp: Vec::new(), udp: Vec::new(), ..component.clone() };
    network.wider = Some(Arc::new(component.clone()));
    let Some(section) = entry.section(problems) else { return network };
    section.check_keys(&NETWORK_OF_TOOL, problems);
    network::read_rules(&section, &mut network, RULES_MAX, problems);
    if section.get("private").is_some() {
        network.private_section = Arc::from(grants.subject.narrowed_section("network"));
    }
    let hint = |rules: Vec<String>| match rules.as_slice() {
        [] => "the component has none: a tool adds nothing to its component's grants".to_owned(),
        rules => format!(
            "the component's are {}",
            rules.iter().take(3).map(|rule| format!("{rule:?}")).collect::<Vec<_>>().join(", ")
        ),
    };
    for rule in network.http.iter().filter(|rule| !component.http.iter().any(|wider| rule.lies_within(wider))) {
        let message = "the http rule does not lie within one of the component's";
        let rules = component.http.iter().map(|rule| rule.rule().text().to_owned()).collect();
        problems.add(wider(message, rule.rule().span(), &hint(rules)));
    }
    for (key, rules, wide) in [("tcp", &network.tcp, &component.tcp), ("udp", &network.udp, &component.udp)] {
        for rule in rules.iter().filter(|rule| !wide.iter().any(|wider| rule.lies_within(wider))) {
            let message = format!("the {key} rule does not lie within one of the component's");
            let rules = wide.iter().map(|rule| rule.rule().text().to_owned()).collect();
            problems.add(wider(&message, rule.rule().span(), &hint(rules)));
        }
    }
    if section.get("private").is_some() {
        let entries = network.private.iter();
        for entry in entries.filter(|entry| !component.private.iter().any(|wider| entry.lies_within(wider))) {
            let message = "the private entry does not lie within one of the component's";
            let rules = component.private.iter().map(|rule| rule.rule().text().to_owned()).collect();
            problems.add(wider(message, entry.rule().span(), &hint(rules)));
        }
    }
    network
}

/// The mounts that a tool keeps, each with the component's access or less.
fn mounts(entry: &Entry<'_>, grants: &Grants, problems: &mut Problems) -> Vec<Mount> {
    let Some(section) = entry.section(problems) else { return Vec::new() };
    let mut kept = Vec::new();
    for entry in section.entries() {
        let guest = paths::guest_path(entry.key).unwrap_or_else(|_| entry.key.to_owned());
        let Some(mount) = grants.files.iter().find(|mount| mount.guest == guest) else {
            let hint = match did_you_mean(&guest, grants.files.iter().map(Mount::guest)) {
                Some(meant) => format!("did you mean {meant:?}?"),
                None => "a tool takes its component's mounts as they are called there".to_owned(),
            };
            problems.add(wider(&format!("the component has no mount {guest:?}"), entry.key_span, &hint));
            continue;
        };
        if let Some(kind) = entry.section(problems).and_then(|section| narrowed_kind(mount, &section, problems)) {
            let narrowed =
                mount.access() == Access::Write && matches!(kind, MountKind::Host { access: Access::Read, .. });
            kept.push(Mount { kind, narrowed, span: entry.key_span, ..mount.clone() });
        }
    }
    kept.sort_by(|one, other| other.guest.len().cmp(&one.guest.len()).then_with(|| one.guest.cmp(&other.guest)));
    kept
}

fn narrowed_kind(mount: &Mount, section: &Section<'_>, problems: &mut Problems) -> Option<MountKind> {
    section.check_keys(&MOUNT_OF_TOOL, problems);
    let access = match section.get("access") {
        Some(entry) => {
            let write = entry.one_of(["read", "write"], [false, true], problems)?;
            let scratch = matches!(mount.kind, MountKind::Scratch { .. });
            if write && mount.access() == Access::Read {
                let message = format!("the component may only read {:?}", mount.guest);
                return problems.refuse(wider(
                    &message,
                    entry.span,
                    "a tool narrows what its component is granted, and adds nothing",
                ));
            }
            if scratch && !write {
                let message = "scratch space that cannot be written stays empty";
                return problems.refuse(entry.error("grants::mount", message).hint("leave the mount out"));
            }
            if write { Access::Write } else { Access::Read }
        }
        None => mount.access(),
    };
    let quota = match (mount.quota(), access) {
        (Some(wide), Access::Write) => Some(Quota {
            bytes: number(section, &MOUNT_QUOTA, wide.bytes, problems),
            files: number(section, &MOUNT_FILES, wide.files, problems),
        }),
        _ => {
            files::refuse_quota(section, problems);
            None
        }
    };
    Some(match (&mount.kind, quota) {
        (MountKind::Scratch { .. }, Some(quota)) => MountKind::Scratch { quota },
        (MountKind::Scratch { quota }, None) => MountKind::Scratch { quota: *quota },
        (MountKind::Host { path, create, .. }, quota) => {
            MountKind::Host { path: path.clone(), access, create: *create, quota }
        }
    })
}

fn number(section: &Section<'_>, spec: &'static Spec, wide: u64, problems: &mut Problems) -> u64 {
    let Some(entry) = section.get(spec.key) else { return wide };
    match limits::value(&entry, spec, problems) {
        Some(value) if value > wide => {
            let message = format!("{} is more than the component's {}", spec.key, spec.show(wide));
            problems.add(wider(&message, entry.span, "a tool narrows what its component is granted, and adds nothing"));
            wide
        }
        Some(value) => value,
        None => wide,
    }
}
