//! `toolcell grant` and `toolcell revoke`: rights of a component, added to the manifest or taken
//! out of it in place.
use toolcell_policy::edit::{Array, InlineTable, ManifestEdit, ManifestEntry, Value};
use toolcell_policy::{Ask, Attempt, suggest};
use toolcell_server::ManifestFile;

use crate::args::{GrantArgs, RevokeArgs};
use crate::edit::apply_or_say;
use crate::exit::Exit;
use crate::terminal;

/// The forms of a right, for hints.
const FORMS: &str = "write \"GET https://…\", \"read /data = ./data\", \"write /data = ./data\", \"tcp host:port\", \"udp host:port\", \
                     \"private address:port\", \"env NAME = VALUE\", \"config KEY = VALUE\" or \"keyvalue\"";

/// Adds rights.
pub fn run(args: &GrantArgs) -> anyhow::Result<Exit> {
    let Some((file, mut edit)) = open_or_say(&args.manifest.manifest, &args.component) else {
        return Ok(Exit::AtFault);
    };
    for right in &args.rights {
        let Some(entry) = read_or_say(right) else { return Ok(Exit::Usage) };
        let added = edit.add(&args.component, &entry).and_then(|()| private(&args.component, right, &mut edit));
        if let Err(problem) = added {
            terminal::error(
                &format!("{right:?} cannot be granted: {problem}"),
                Some("revoke that first, or edit the manifest"),
            );
            return Ok(Exit::AtFault);
        }
    }
    apply_or_say(&file, &edit.text(), args.consent.consent())
}

/// Takes rights away.
pub fn revoke(args: &RevokeArgs) -> anyhow::Result<Exit> {
    let Some((file, mut edit)) = open_or_say(&args.manifest.manifest, &args.component) else {
        return Ok(Exit::AtFault);
    };
    for right in &args.rights {
        let Some(entry) = read_or_say(right) else { return Ok(Exit::Usage) };
        if !edit.remove(&args.component, &entry) {
            let problem = format!("{} has no such right: {right:?}", args.component);
            terminal::error(
                &problem,
                Some("write it as the manifest does; `toolcell check` lists the rights of each tool"),
            );
            return Ok(Exit::AtFault);
        }
    }
    apply_or_say(&file, &edit.text(), args.consent.consent())
}

fn open_or_say(path: &std::path::Path, component: &str) -> Option<(ManifestFile, ManifestEdit)> {
    let file = match ManifestFile::read(path) {
        Ok(file) => file,
        Err(problem) => {
            terminal::error(&problem, Some("name the manifest with --manifest, or run this in its folder"));
            return None;
        }
    };
    let edit = match ManifestEdit::of(file.text()) {
        Ok(edit) => edit,
        Err(problem) => {
            terminal::error(&format!("{} is no TOML: {problem}", file.name()), Some("`toolcell check` shows where"));
            return None;
        }
    };
    let components = edit.components();
    if !components.iter().any(|name| name == component) {
        let hint = format!("it has: {}", components.join(", "));
        terminal::error(&format!("{} has no component {component:?}", file.name()), Some(&hint));
        return None;
    }
    Some((file, edit))
}

fn read_or_say(right: &str) -> Option<ManifestEntry> {
    let entry = entry(right);
    if entry.is_none() {
        terminal::error(&format!("{right:?} is no right"), Some(FORMS));
    }
    entry
}

/// The entry of a section that a right is.
fn entry(right: &str) -> Option<ManifestEntry> {
    let right = right.trim();
    let (verb, rest) = right.split_once(' ').map_or((right, ""), |(verb, rest)| (verb, rest.trim()));
    let (name, value) = rest.split_once('=').map_or((rest, None), |(name, value)| (name.trim(), Some(value.trim())));
    let rule = |key: &str, rule: &str| ManifestEntry {
        section: "network",
        key: key.to_owned(),
        value: Value::Array(Array::from_iter([rule])),
    };
    let keyed = |section, value| ManifestEntry { section, key: name.to_owned(), value };
    match verb {
        _ if right.contains("://") => Some(rule("http", right)),
        "keyvalue" if rest.is_empty() => {
            Some(ManifestEntry { section: "keyvalue", key: "quota".to_owned(), value: Value::from("1MiB") })
        }
        "tcp" | "udp" | "private" if !rest.is_empty() => Some(rule(verb, rest)),
        "read" | "write" if name.starts_with('/') => {
            let folder = value.unwrap_or_else(|| name.trim_start_matches('/'));
            let mut mount = InlineTable::new();
            mount.insert("path", if folder.is_empty() { "." } else { folder }.into());
            mount.insert("access", verb.into());
            Some(keyed("filesystem", Value::InlineTable(mount)))
        }
        "env" if !name.is_empty() => Some(keyed("env", value.map_or_else(|| from_host(name), Value::from))),
        "config" if !name.is_empty() => Some(keyed("config", Value::from(value.unwrap_or_default()))),
        _ => None,
    }
}

fn from_host(name: &str) -> Value {
    let mut table = InlineTable::new();
    table.insert("from", format!("env:{name}").into());
    Value::InlineTable(table)
}

/// Adds the line for a private address that a right names by itself: without it the right would
/// allow nothing.
fn private(component: &str, right: &str, edit: &mut ManifestEdit) -> Result<(), String> {
    if !matches!(Ask::parse(right), Ok(Ask::Http(_) | Ask::Tcp(..) | Ask::Udp(..))) {
        return Ok(());
    }
    let tables = suggest(&[Attempt::new(component, right, None)]);
    // It is the last key of the only table.
    let private = tables.split_once("private = [").map(|(_, entries)| entries).unwrap_or_default();
    private.split('"').skip(1).step_by(2).try_for_each(|address| {
        let value = Value::Array(Array::from_iter([address]));
        edit.add(component, &ManifestEntry { section: "network", key: "private".to_owned(), value })
    })
}
