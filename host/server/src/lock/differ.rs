//! Differences between a lock and what would be served, by component, in words.
use std::collections::BTreeSet;

use super::json_diff;
use super::pinned::{Lock, PinnedComponent, PinnedTool};
use crate::catalog::NOBODY;

/// Characters of a digest that are shown: enough to tell two apart.
const DIGEST_CHARS: usize = 19;

/// One component that differs from the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Its name in the manifest.
    pub component: String,
    /// Differences, a line each.
    pub differences: Vec<String>,
    /// True if the change only takes away: a component is gone, or its tools may do less. Nothing
    /// has to be approved then.
    pub only_less: bool,
    /// `sha256:…` of the bytes that would be served; empty if none would.
    pub digest: String,
    /// True if a signer that is pinned is lost, or signed less.
    pub other_signers: bool,
}

/// All components that differ, by name.
pub fn drift(locked: &Lock, now: &Lock) -> Vec<Drift> {
    let names: BTreeSet<&String> = locked.components.keys().chain(now.components.keys()).collect();
    let drifts = names.into_iter().filter_map(|name| match (locked.components.get(name), now.components.get(name)) {
        (Some(locked), Some(now)) => changed(name, locked, now),
        (None, Some(now)) => Some(Drift {
            component: name.clone(),
            differences: added(now),
            only_less: false,
            digest: now.digest.clone(),
            other_signers: false,
        }),
        (Some(_), None) => Some(Drift {
            component: name.clone(),
            differences: vec!["is in the lock and not in the manifest any more".to_owned()],
            only_less: true,
            digest: String::new(),
            other_signers: false,
        }),
        (None, None) => None,
    });
    drifts.collect()
}

/// Difference of withheld bytes from the pinned ones. Their tools are unknown until they are
/// approved.
pub fn withheld(locked: &Lock, name: &str, digest: &str, size_bytes: u64) -> Drift {
    let is = short(digest);
    let line = match locked.components.get(name) {
        Some(locked) => {
            let (was, sizes) = (short(&locked.digest), format!("{} and {size_bytes} bytes", locked.size_bytes));
            format!("other bytes: {was} was pinned, this is {is} ({sizes})")
        }
        None => format!("is not in the lock: {is}, {size_bytes} bytes"),
    };
    let unread =
        "nothing of it was read; `toolcell diff` reads it, and shows its tools and what they may do".to_owned();
    let (component, differences, digest) = (name.to_owned(), vec![line, unread], digest.to_owned());
    Drift { component, differences, only_less: false, digest, other_signers: false }
}

fn added(component: &PinnedComponent) -> Vec<String> {
    let (digest, source) = (short(&component.digest), &component.source);
    let mut lines = vec![format!("is not in the lock: {source}, {digest}, {} bytes", component.size_bytes)];
    lines.extend(component.signed_by.iter().map(|line| format!("has a {}", json_diff::clean(line))));
    for (name, tool) in &component.tools {
        lines.push(format!(
            "tool {name}: {}",
            json_diff::shown(tool.definition.get("description").unwrap_or(&serde_json::Value::Null))
        ));
        lines.extend(tool.grants.iter().map(|line| format!("tool {name} may: {}", json_diff::clean(line))));
    }
    lines
}

fn changed(name: &str, locked: &PinnedComponent, now: &PinnedComponent) -> Option<Drift> {
    if locked == now {
        return None;
    }
    let mut differences = Vec::new();
    let mut only_less = true;
    if locked.digest != now.digest {
        let (was, is) = (short(&locked.digest), short(&now.digest));
        let sizes = format!("{} and {} bytes", locked.size_bytes, now.size_bytes);
        differences.push(format!("other bytes: {was} was pinned, this is {is} ({sizes})"));
        only_less = false;
    }
    for (what, was, is) in [("source", &locked.source, &now.source), ("tool contract", &locked.contract, &now.contract)]
    {
        if was != is {
            differences.push(format!("{what}: was {}, is {}", json_diff::clean(was), json_diff::clean(is)));
            only_less = false;
        }
    }
    let signers = signers_changed(locked, now);
    only_less = only_less && signers.is_empty();
    let other_signers = !signers.is_empty();
    differences.extend(signers);
    let more = now.signed_by.iter().filter(|line| !locked.signed_by.contains(line));
    differences.extend(more.map(|line| format!("has now a {}", json_diff::clean(line))));
    let names: BTreeSet<&String> = locked.tools.keys().chain(now.tools.keys()).collect();
    for tool in names {
        let (lines, less) = tool_changed(tool, locked.tools.get(tool), now.tools.get(tool));
        differences.extend(lines);
        only_less = only_less && less;
    }
    let (component, digest) = (name.to_owned(), now.digest.clone());
    Some(Drift { component, differences, only_less, digest, other_signers })
}

/// True if a signature that is pinned is lost or weaker, or was checked against another root.
pub(super) fn signers_differ(locked: &PinnedComponent, now: &PinnedComponent) -> bool {
    !signers_changed(locked, now).is_empty()
}

/// Signatures that are pinned and lost, or checked against another root. A signature more is no
/// loss.
fn signers_changed(locked: &PinnedComponent, now: &PinnedComponent) -> Vec<String> {
    let lost = locked.signed_by.iter().filter(|line| !now.signed_by.contains(line));
    let mut lines: Vec<String> = lost.map(|line| format!("has no longer a {}", json_diff::clean(line))).collect();
    if let Some(was) = &locked.trusted_root
        && locked.trusted_root != now.trusted_root
    {
        let is = now.trusted_root.as_deref().map_or_else(|| "none".to_owned(), short);
        lines.push(format!("trusted root: was {}, is {is}", short(was)));
    }
    lines
}

/// Differences of one tool, and true if they only take away.
fn tool_changed(name: &str, locked: Option<&PinnedTool>, now: Option<&PinnedTool>) -> (Vec<String>, bool) {
    let (locked, now) = match (locked, now) {
        (Some(locked), Some(now)) => (locked, now),
        (None, Some(now)) => {
            let mut lines = vec![format!(
                "tool {name}: new: {}",
                json_diff::shown(now.definition.get("description").unwrap_or(&serde_json::Value::Null))
            )];
            lines.extend(now.grants.iter().map(|line| format!("tool {name} may: {}", json_diff::clean(line))));
            return (lines, false);
        }
        (Some(_), None) => return (vec![format!("tool {name}: gone")], true),
        (None, None) => return (Vec::new(), true),
    };
    let mut lines = Vec::new();
    let same_definition = locked.definition_digest == now.definition_digest;
    if !same_definition {
        let said = json_diff::between(&locked.definition, &now.definition);
        lines.extend(said.into_iter().map(|line| format!("tool {name}: {line}")));
    }
    let (was, is) = (rights(&locked.grants), rights(&now.grants));
    // "Everybody" covers any single caller.
    let more: Vec<&str> = is.iter().filter(|line| !was.contains(line) && !covers(&was, line)).copied().collect();
    let less: Vec<&str> = was.iter().filter(|line| !is.contains(line) && !covers(&is, line)).copied().collect();
    lines.extend(more.iter().map(|line| format!("tool {name} may now: {}", json_diff::clean(line))));
    lines.extend(less.iter().map(|line| format!("tool {name} may no longer: {}", json_diff::clean(line))));
    let same_grants = locked.grants_digest == now.grants_digest;
    if !same_grants && more.is_empty() && less.is_empty() {
        lines.push(format!("tool {name}: its grants differ in how they are written"));
    }
    let confirmed = now.confirmed.since(locked.confirmed);
    lines.extend(confirmed.map(|line| format!("tool {name} {line}")));
    let weaker = now.confirmed.is_weaker_than(locked.confirmed);
    let only_less = same_definition && more.is_empty() && (same_grants || !less.is_empty()) && !weaker;
    (lines, only_less)
}

/// Stands for the callers of a tool without rules for callers: everybody may call it.
const EVERYBODY: &str = "be called by everybody";

/// Prefix of a line about callers.
const CALLED_BY: &str = "be called by ";

/// Each right of a tool, including its callers.
fn rights(lines: &[String]) -> Vec<&str> {
    let said = lines.iter().any(|line| line.starts_with(CALLED_BY));
    let lines = lines.iter().map(String::as_str).filter(|line| *line != NOBODY);
    lines.chain((!said).then_some(EVERYBODY)).collect()
}

fn covers(rights: &[&str], line: &str) -> bool {
    line.starts_with(CALLED_BY) && rights.contains(&EVERYBODY)
}

fn short(digest: &str) -> String {
    match digest.get(..DIGEST_CHARS) {
        Some(start) => format!("{start}…"),
        None => json_diff::clean(digest),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::pinned::digest;
    use super::*;

    fn tool(definition: Value, grants: &[&str]) -> PinnedTool {
        let grants: Vec<String> = grants.iter().map(|line| (*line).to_owned()).collect();
        let (definition_digest, grants_digest) = (digest(&definition), digest(&json!(grants)));
        PinnedTool { definition_digest, definition, grants_digest, grants, ..PinnedTool::default() }
    }

    fn lock(bytes: &str, tools: &[(&str, PinnedTool)]) -> Lock {
        let component = PinnedComponent {
            source: "w.wasm".to_owned(),
            digest: format!("sha256:{}", bytes.repeat(64)),
            size_bytes: 7,
            contract: "1.0.0".to_owned(),
            signed_by: Vec::new(),
            trusted_root: None,
            tools: tools.iter().map(|(name, tool)| ((*name).to_owned(), tool.clone())).collect(),
        };
        Lock { components: [("w".to_owned(), component)].into() }
    }

    fn described(text: &str, grants: &[&str]) -> Lock {
        lock("a", &[("now", tool(json!({"description": text}), grants))])
    }

    #[test]
    fn what_is_the_same_does_not_drift() {
        assert_eq!(drift(&described("A", &["read /d: d"]), &described("A", &["read /d: d"])), []);
    }

    #[test]
    fn each_difference_is_said_in_words() {
        let plain = described("A", &["read /d: d"]);
        let table = [
            (
                lock("b", &[("now", tool(json!({"description": "A"}), &["read /d: d"]))]),
                vec!["other bytes: sha256:aaaaaaaaaaaa… was pinned, this is sha256:bbbbbbbbbbbb… (7 and 7 bytes)"],
                false,
            ),
            (described("B", &["read /d: d"]), vec!["tool now: description said \"A\" and says \"B\""], false),
            (described("A", &["read /d: d", "write /d: d"]), vec!["tool now may now: write /d: d"], false),
            (described("A", &[]), vec!["tool now may no longer: read /d: d"], true),
            (
                described("A", &["be called by the name ann", "read /d: d"]),
                vec!["tool now may no longer: be called by everybody"],
                true,
            ),
            (lock("a", &[]), vec!["tool now: gone"], true),
            (Lock::default(), vec!["is in the lock and not in the manifest any more"], true),
        ];
        for (now, lines, only_less) in table {
            let found = drift(&plain, &now);
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].differences, lines);
            assert_eq!(found[0].only_less, only_less, "{lines:?}");
        }
        let added = drift(&Lock::default(), &plain);
        assert_eq!(
            added[0].differences,
            [
                "is not in the lock: w.wasm, sha256:aaaaaaaaaaaa…, 7 bytes",
                "tool now: \"A\"",
                "tool now may: read /d: d"
            ]
        );
    }

    #[test]
    fn a_signature_less_or_a_weaker_one_is_drift_and_one_more_is_not() {
        let signed = |lines: &[&str], root: Option<&str>| {
            let mut lock = described("A", &[]);
            let component = lock.components.get_mut("w").unwrap();
            component.signed_by = lines.iter().map(|line| (*line).to_owned()).collect();
            component.trusted_root = root.map(|root| format!("sha256:{}", root.repeat(64)));
            lock
        };
        let (ann, bob) =
            ("signature by ann (issuer i), in a transparency log", "signature by bob (issuer i), in no log");
        let pinned = signed(&[ann], Some("a"));
        for (now, lines, other) in [
            (signed(&[ann, bob], Some("a")), vec![format!("has now a {bob}")], false),
            (signed(&[bob], Some("a")), vec![format!("has no longer a {ann}"), format!("has now a {bob}")], true),
            (
                signed(&["signature by ann (issuer i), in no log"], Some("a")),
                vec![format!("has no longer a {ann}"), "has now a signature by ann (issuer i), in no log".to_owned()],
                true,
            ),
            (
                signed(&[ann], Some("b")),
                vec!["trusted root: was sha256:aaaaaaaaaaaa…, is sha256:bbbbbbbbbbbb…".to_owned()],
                true,
            ),
        ] {
            let found = drift(&pinned, &now);
            assert_eq!(found[0].differences, lines);
            assert_eq!((found[0].only_less, found[0].other_signers), (!other, other), "{lines:?}");
        }
    }

    #[test]
    fn a_caller_more_is_more_and_everybody_is_the_most() {
        let ann = described("A", &["be called by the name ann"]);
        for (from, to, line, only_less) in [
            (&ann, "be called by the name bob", "tool now may now: be called by the name bob", false),
            (&ann, NOBODY, "tool now may no longer: be called by the name ann", true),
            (
                &described("A", &[NOBODY]),
                "be called by the name ann",
                "tool now may now: be called by the name ann",
                false,
            ),
        ] {
            let found = drift(from, &described("A", &[to]));
            assert_eq!((found[0].differences[0].as_str(), found[0].only_less), (line, only_less), "{to}");
        }
        let open = drift(&ann, &described("A", &[]));
        assert_eq!(open[0].differences, ["tool now may now: be called by everybody"]);
        assert!(!open[0].only_less);
    }
}
