//! Rights as the command line names them, such as `GET https://api.example.com/*`, and the entries
//! of a manifest that they are.
use toolcell_policy::edit::{Array, InlineTable, ManifestEntry, Value};
use toolcell_policy::{Ask, Attempt, suggest};

use crate::exit::Failure;

/// Bytes of scratch space where a right names none.
const SCRATCH: &str = "8MiB";

/// The forms of a right, for hints.
const FORMS: &str = "write \"GET https://…\", \"read /data = ./data\", \"write /data = ./data create quota=10MiB\", \
                     \"scratch /tmp\", \"tcp host:port\", \"udp host:port\", \"private address:port\", \"env NAME = VALUE\", \"config KEY = VALUE\", \
                     \"secret NAME = SOURCE as HEADER: Bearer {} for https://…\" or \"keyvalue\"";

/// The entry that a right is. A right of one tool or to be revoked is named without a value.
pub fn read(right: &str) -> Result<ManifestEntry, Failure> {
    entry(right).ok_or_else(|| Failure::usage(format!("{right:?} is no right"), FORMS))
}

/// The entries for private addresses that a right names by itself: without them the right would
/// allow nothing.
pub fn private(component: &str, right: &str) -> Vec<ManifestEntry> {
    // The path of a right may be a pattern, and that of a request is none. Only the host counts,
    // and a rule without a method is for each of them.
    let right = right.trim();
    let has_method = right.split_once("://").is_none_or(|(before, _)| before.contains(' '));
    let asked = if has_method { right.replace('*', "") } else { format!("GET {}", right.replace('*', "")) };
    if !matches!(Ask::parse(&asked), Ok(Ask::Http(_) | Ask::Tcp(..) | Ask::Udp(..))) {
        return Vec::new();
    }
    let tables = suggest(&[Attempt::new(component, &asked, None)]);
    // It is the last key of the only table. `localhost` has two addresses.
    let private = tables.split_once("private = [").map(|(_, entries)| entries).unwrap_or_default();
    private.split('"').skip(1).step_by(2).map(|address| rule("private", address)).collect()
}

/// A secret of a component: the place of its value, and the way it is used.
pub fn secret(name: &str, from: &str, delivery: Vec<(&str, Value)>) -> ManifestEntry {
    let mut table = InlineTable::new();
    table.insert("from", from.into());
    for (key, value) in delivery {
        table.insert(key, value);
    }
    ManifestEntry { section: "secrets", key: name.to_owned(), value: Value::InlineTable(table) }
}

/// A folder or a file, at this path of the guest.
pub fn mount(guest: &str, path: &str, access: &str) -> ManifestEntry {
    let mut table = InlineTable::new();
    table.insert("path", path.into());
    table.insert("access", access.into());
    ManifestEntry { section: "filesystem", key: guest.to_owned(), value: Value::InlineTable(table) }
}

fn entry(right: &str) -> Option<ManifestEntry> {
    let right = right.trim();
    let (verb, rest) = right.split_once(' ').map_or((right, ""), |(verb, rest)| (verb, rest.trim()));
    let (name, value) = rest.split_once('=').map_or((rest, None), |(name, value)| (name.trim(), Some(value.trim())));
    let keyed = |section, value| ManifestEntry { section, key: name.to_owned(), value };
    match verb {
        "secret" if !name.is_empty() => secret_right(name, value),
        "keyvalue" if rest.is_empty() => {
            Some(ManifestEntry { section: "keyvalue", key: "quota".to_owned(), value: Value::from("1MiB") })
        }
        "tcp" | "udp" | "private" if !rest.is_empty() => Some(rule(verb, rest)),
        "read" | "write" if name.starts_with('/') => Some(mount_right(verb, rest)),
        "scratch" if name.starts_with('/') => {
            let mut table = InlineTable::new();
            table.insert("scratch", value.unwrap_or(SCRATCH).into());
            Some(ManifestEntry { section: "filesystem", key: name.to_owned(), value: Value::InlineTable(table) })
        }
        "env" if !name.is_empty() => Some(keyed("env", value.map_or_else(|| from_host(name), Value::from))),
        "config" if !name.is_empty() => Some(keyed("config", Value::from(value.unwrap_or_default()))),
        _ if right.contains("://") => Some(rule("http", right)),
        _ => None,
    }
}

/// `PATH = FOLDER`, and behind it what bounds the mount: `create`, `quota=10MiB`, `files=100`.
fn mount_right(access: &str, right: &str) -> ManifestEntry {
    let mut rest = right;
    let mut words = Vec::new();
    while let Some((before, word)) = rest.rsplit_once(' ').filter(|(before, _)| !before.ends_with('=')) {
        let setting = match word.split_once('=') {
            None if word == "create" => ("create", Value::from(true)),
            Some(("quota", bytes)) => ("quota", Value::from(bytes)),
            Some(("files", count)) => ("files", count.parse::<i64>().map_or_else(|_| Value::from(count), Value::from)),
            _ => break,
        };
        words.push(setting);
        rest = before.trim_end();
    }
    let (name, folder) = match rest.split_once('=') {
        Some((name, folder)) => (name.trim(), folder.trim()),
        None => (rest, rest.trim_start_matches('/')),
    };
    let mut entry = mount(name, if folder.is_empty() { "." } else { folder }, access);
    if let Value::InlineTable(table) = &mut entry.value {
        words.into_iter().rev().for_each(|(key, value)| drop(table.insert(key, value)));
    }
    entry
}

fn rule(key: &str, rule: &str) -> ManifestEntry {
    ManifestEntry { section: "network", key: key.to_owned(), value: Value::Array(Array::from_iter([rule])) }
}

fn from_host(name: &str) -> Value {
    let mut table = InlineTable::new();
    table.insert("from", format!("env:{name}").into());
    Value::InlineTable(table)
}

/// `SOURCE as HEADER: VALUE for URL`, `SOURCE as ?NAME for URL`, or `SOURCE exposed`. Without all
/// of that, only the name counts: to take the secret away.
fn secret_right(name: &str, value: Option<&str>) -> Option<ManifestEntry> {
    let Some(value) = value else { return Some(secret(name, &format!("env:{name}"), Vec::new())) };
    if let Some(from) = value.strip_suffix(" exposed") {
        return Some(secret(name, from.trim(), vec![("expose", true.into())]));
    }
    let (from, rest) = value.split_once(" as ")?;
    let (place, target) = rest.rsplit_once(" for ")?;
    let target = ("for", Value::from(target.trim()));
    let place = place.trim();
    let delivery = match (place.strip_prefix('?'), place.split_once(':')) {
        (Some(query), _) => vec![("query", query.into()), target],
        (None, Some((header, value))) => vec![("header", header.trim().into()), ("value", value.trim().into()), target],
        (None, None) => vec![("header", place.into()), target],
    };
    Some(secret(name, from.trim(), delivery))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_right_is_an_entry_of_a_section() {
        for (right, expected) in [
            ("GET https://a.example/*", "network.http = [\"GET https://a.example/*\"]"),
            ("tcp a.example:1", "network.tcp = [\"a.example:1\"]"),
            ("read /data", "filesystem./data = { path = \"data\", access = \"read\" }"),
            ("write / = x", "filesystem./ = { path = \"x\", access = \"write\" }"),
            (
                "write /out = my notes create quota=10MiB files=100",
                "filesystem./out = { path = \"my notes\", access = \"write\", create = true, quota = \"10MiB\", files = 100 }",
            ),
            ("read /a b = create", "filesystem./a b = { path = \"create\", access = \"read\" }"),
            ("write /out create", "filesystem./out = { path = \"out\", access = \"write\", create = true }"),
            ("scratch /tmp", "filesystem./tmp = { scratch = \"8MiB\" }"),
            ("scratch /tmp = 1MiB", "filesystem./tmp = { scratch = \"1MiB\" }"),
            ("env A", "env.A = { from = \"env:A\" }"),
            ("env A = b = c", "env.A = \"b = c\""),
            ("env URL = https://a.example/", "env.URL = \"https://a.example/\""),
            ("config k = v", "config.k = \"v\""),
            ("keyvalue", "keyvalue.quota = \"1MiB\""),
            (
                "secret K = env:K as Authorization: Bearer {} for https://a.example",
                "secrets.K = { from = \"env:K\", header = \"Authorization\", value = \"Bearer {}\", for = \"https://a.example\" }",
            ),
            (
                "secret K = file:k as x-key for GET https://a.example/x",
                "secrets.K = { from = \"file:k\", header = \"x-key\", for = \"GET https://a.example/x\" }",
            ),
            (
                "secret K = keyring:s/a as ?key for https://a.example",
                "secrets.K = { from = \"keyring:s/a\", query = \"key\", for = \"https://a.example\" }",
            ),
            ("secret K = env:K exposed", "secrets.K = { from = \"env:K\", expose = true }"),
            ("secret K", "secrets.K = { from = \"env:K\" }"),
        ] {
            let entry = entry(right).unwrap();
            assert_eq!(format!("{}.{} = {}", entry.section, entry.key, entry.value), expected, "{right}");
        }
        for right in ["", "launch rockets", "read data", "tcp", "secret K = env:K", "secret"] {
            assert!(entry(right).is_none(), "{right}");
        }
        assert_eq!(private("a", "GET http://127.0.0.1:80/x").len(), 1);
        assert_eq!(private("a", "http://127.0.0.1:80/*").len(), 1);
        assert_eq!(private("a", "GET https://a.example/x").len(), 0);
    }
}
