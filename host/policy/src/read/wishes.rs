//! Reads the wishes that a component carries. They come from strangers: each text is bounded, and
//! shown as it is read.

use std::sync::Arc;

use super::narrow::NETWORK_OF_TOOL;
use super::{Entry, Problems, Section, grants, network, paths};
use crate::diagnostic::{Diagnostic, Severity, Span};
use crate::grants::{Access, Network, Subject};
use crate::parse::parse_toml;
use crate::table::table;
use crate::wishes::{WISHES_BYTES_MAX, Wishes};

/// The most entries of one kind: a person reads all of them.
const ENTRIES_MAX: usize = 64;

/// The longest text of one wish, in bytes: an address with a long path.
const TEXT_BYTES_MAX: usize = 200;

table! {
    /// All that a component would like to reach.
    pub(crate) WISHES "Wishes" {
        /// Folders and files, by their paths in the guest's tree.
        "filesystem": Named(&Table(&MOUNT_OF_WISHES)), {};
        /// Hosts and addresses.
        "network": Table(&NETWORK_OF_TOOL), {};
        /// Names of environment variables.
        "env": List(&Text), {};
        /// Names of settings.
        "config": List(&Text), {};
        /// Names of secrets.
        "secrets": List(&Text), {};
        /// State between calls.
        "keyvalue": Flag, {};
    }
    other names {
        "fs" => "filesystem", "files" => "filesystem", "http" => "network", "environment" => "env",
        "kv" => "keyvalue", "secret" => "secrets",
    }
}

table! {
    /// One folder or file.
    pub(crate) MOUNT_OF_WISHES "WishedMount" {
        /// The access.
        "access": Words(&["read", "write"]), {"default": "read"};
    }
    other names {
        "mode" => "access",
    }
}

/// Reads the whole text.
pub(crate) fn parse(text: &str) -> Result<Wishes, Vec<Diagnostic>> {
    if text.len() > WISHES_BYTES_MAX {
        let message = format!("the wishes have {} bytes, {WISHES_BYTES_MAX} are allowed", text.len());
        return Err(vec![Diagnostic::error("wishes::too_large", message)]);
    }
    let table = parse_toml(text)?;
    let root = Section::root(&table);
    let mut problems = Problems::default();
    let wishes = read(&root, &mut problems);
    let found = problems.into_sorted();
    if found.iter().any(|problem| problem.severity() == Severity::Error) { Err(found) } else { Ok(wishes) }
}

fn read(root: &Section<'_>, problems: &mut Problems) -> Wishes {
    root.check_keys(&WISHES, problems);
    let names =
        |key: &str, problems: &mut Problems| root.get(key).map(|entry| names(&entry, problems)).unwrap_or_default();
    Wishes {
        files: root.get("filesystem").map(|entry| files(&entry, problems)).unwrap_or_default(),
        network: wished_network(root, problems),
        env: names("env", problems),
        config: names("config", problems),
        secrets: names("secrets", problems),
        keyvalue: root.get("keyvalue").and_then(|entry| entry.boolean(problems)).unwrap_or_default(),
    }
}

fn files(entry: &Entry<'_>, problems: &mut Problems) -> Vec<(String, Access)> {
    let mut files: Vec<(String, Access)> = Vec::new();
    for entry in entry.entries(ENTRIES_MAX, "grants::too_many", "paths", problems) {
        let path = match paths::guest_path(entry.key) {
            Ok(path) => path,
            Err(wrong) => {
                let message = format!("the path {:?} {wrong}", entry.key);
                problems.add(entry.key_error("grants::mount", message).hint("write it like \"/data\""));
                continue;
            }
        };
        check_text(&path, entry.key_span.clone(), problems);
        if files.iter().any(|(other, _)| *other == path) {
            problems.add(entry.key_error("grants::duplicate", format!("{path:?} is there twice")));
        }
        let Some(section) = entry.table(&MOUNT_OF_WISHES, problems) else { continue };
        let access = section.get("access");
        let access = access.and_then(|entry| entry.one_of(["read", "write"], [Access::Read, Access::Write], problems));
        files.push((path, access.unwrap_or(Access::Read)));
    }
    files
}

fn wished_network(root: &Section<'_>, problems: &mut Problems) -> Network {
    let mut network = Network::sealed(Arc::new(Subject::new("", None)));
    let Some(section) = root.get("network").and_then(|entry| entry.table(&NETWORK_OF_TOOL, problems)) else {
        return network;
    };
    let lists = ["http", "tcp", "udp", "private"].into_iter().filter_map(|key| section.get(key));
    for (text, span) in lists.flat_map(|entry| entry.strings(ENTRIES_MAX, &mut Problems::default()).unwrap_or_default())
    {
        // A space is between the methods and the address alone: the rule itself refuses others.
        check_text(&text.replacen(' ', "", 1), span, problems);
    }
    network::read_rules(&section, &mut network, ENTRIES_MAX, problems);
    network
}

fn names(entry: &Entry<'_>, problems: &mut Problems) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, span) in entry.strings(ENTRIES_MAX, problems).unwrap_or_default() {
        if let Some(wrong) = grants::name_problem(name) {
            problems.add(Diagnostic::error("grants::name", format!("the name {name:?} {wrong}")).at(span));
            continue;
        }
        check_text(name, span, problems);
        if !names.iter().any(|other| other == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Refuses a text that a terminal may show otherwise than it is, or that wraps into other lines.
fn check_text(text: &str, span: Span, problems: &mut Problems) {
    if text.len() > TEXT_BYTES_MAX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = format!("a wish has more than {TEXT_BYTES_MAX} bytes, or others than visible ASCII");
        let hint = "write hosts as xn--…, and encode paths as requests do";
        problems.add(Diagnostic::error("wishes::text", message).at(span).hint(hint));
    }
}
