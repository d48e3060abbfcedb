//! Differences between a lock and what would be served, by component, in words.
use std::collections::{BTreeMap, BTreeSet, HashMap};

use toolcell_policy::CALLED_IF;

use super::details::{DriftDetails, Findings};
use super::pinned::{Lock, PinnedComponent, PinnedTool};
use super::{earlier, json_diff};
use crate::catalog::{CALLED_BY, NOBODY, Withheld};
use crate::fetching::trust::Signed;

/// Characters of a digest that are shown: enough to tell two apart.
const DIGEST_CHARS: usize = 19;

/// One component that differs from the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Its name in the manifest.
    pub component: String,
    /// Differences, a line each.
    pub differences: Vec<String>,
    /// The differences in their parts.
    pub details: DriftDetails,
    /// True if the change only removes: a component, or rights of its tools. Such a change needs no
    /// approval.
    pub only_less: bool,
    /// `sha256:…` of the bytes that would be served; empty if none would.
    pub digest: String,
    /// True if a pinned signer is missing or signed less, or the trusted root changed.
    pub other_signers: bool,
    /// True if a pinned signer is missing or signed less.
    pub lost_signers: bool,
}

/// The components that differ, by name.
pub fn drift(locked: &Lock, now: &Lock) -> Vec<Drift> {
    let locked = earlier::settled(locked, now);
    let names: BTreeSet<&String> = locked.components.keys().chain(now.components.keys()).collect();
    let drifts = names.into_iter().filter_map(|name| match (locked.components.get(name), now.components.get(name)) {
        (Some(locked), Some(now)) => changed(name, locked, now),
        (None, Some(now)) => Some(added(name, now)),
        (Some(locked), None) => Some(gone(name, locked)),
        (None, None) => None,
    });
    drifts.collect()
}

/// The difference of withheld bytes from the pinned ones. Their tools are unknown until they are
/// approved.
pub fn withheld(locked: &Lock, held: &Withheld) -> Drift {
    let is = short(&held.digest);
    let size_bytes = held.bytes.len();
    let locked = locked.components.get(&held.name);
    let mut findings = Findings::between(locked, &held.signed);
    let lost = locked.is_some_and(|locked| lost(locked, &held.signed).next().is_some());
    findings.add(match locked {
        Some(locked) => {
            let was = short(&locked.digest);
            let sizes = format!("{} and {size_bytes} bytes", locked.size_bytes);
            format!("other bytes: {was} was pinned, this is {is} ({sizes})")
        }
        None => format!("is not in the lock: {is}, {size_bytes} bytes"),
    });
    let other_signers = locked.is_some_and(|locked| add_signers(locked, &held.signed, &mut findings));
    if locked.is_none() {
        held.signed.by.iter().for_each(|line| findings.add(format!("has a {}", json_diff::clean(line))));
    }
    findings.add("none of it was read; `toolcell diff` reads it, and shows its tools and what they may do".to_owned());
    Drift { other_signers, lost_signers: lost, ..drift_of(&held.name, findings, held.digest.clone()) }
}

/// A drift that adds something, with unchanged signers.
fn drift_of(name: &str, findings: Findings, digest: String) -> Drift {
    Drift {
        component: name.to_owned(),
        differences: findings.lines,
        details: findings.details,
        only_less: false,
        digest,
        other_signers: false,
        lost_signers: false,
    }
}

fn gone(name: &str, locked: &PinnedComponent) -> Drift {
    let mut findings = Findings::between(Some(locked), &Signed::default());
    findings.add("is in the lock and not in the manifest any more".to_owned());
    Drift { only_less: true, ..drift_of(name, findings, String::new()) }
}

fn added(name: &str, component: &PinnedComponent) -> Drift {
    let digest = short(&component.digest);
    let source = &component.source;
    let mut findings = Findings::between(None, &signed(component));
    findings.add(format!("is not in the lock: {source}, {digest}, {} bytes", component.size_bytes));
    component.signed_by.iter().for_each(|line| findings.add(format!("has a {}", json_diff::clean(line))));
    for (tool, now) in &component.tools {
        findings.new_definition(tool, format!("tool {tool}: {}", described(now)), &now.definition);
        now.grants.iter().for_each(|line| findings.grant(tool, "may", true, line));
    }
    drift_of(name, findings, component.digest.clone())
}

/// The description of a tool.
fn described(tool: &PinnedTool) -> String {
    json_diff::shown(tool.definition.get("description").unwrap_or(&serde_json::Value::Null))
}

fn changed(name: &str, locked: &PinnedComponent, now: &PinnedComponent) -> Option<Drift> {
    if locked == now {
        return None;
    }
    let mut findings = Findings::between(Some(locked), &signed(now));
    let mut only_less = true;
    if locked.digest != now.digest {
        let was = short(&locked.digest);
        let is = short(&now.digest);
        let sizes = format!("{} and {} bytes", locked.size_bytes, now.size_bytes);
        findings.add(format!("other bytes: {was} was pinned, this is {is} ({sizes})"));
        only_less = false;
    }
    for (what, was, is) in [("source", &locked.source, &now.source), ("tool contract", &locked.contract, &now.contract)]
    {
        if was != is {
            findings.add(format!("{what}: was {}, is {}", json_diff::clean(was), json_diff::clean(is)));
            only_less = false;
        }
    }
    let other_signers = add_signers(locked, &signed(now), &mut findings);
    only_less = only_less && !other_signers;
    let renamed = renamed(locked, now);
    let were: BTreeSet<&str> = renamed.values().copied().collect();
    let names: BTreeSet<&str> = locked.tools.keys().chain(now.tools.keys()).map(String::as_str).collect();
    // //A renamed tool is reported only under its new name.
    for tool in names.into_iter().filter(|tool| !were.contains(tool)) {
        let was = renamed.get(tool).copied().unwrap_or(tool);
        let less = tool_changed(tool, locked.tools.get(was), now.tools.get(tool), &mut findings);
        only_less = only_less && less;
    }
    let lost_signers = lost(locked, &signed(now)).next().is_some();
    Some(Drift { only_less, other_signers, lost_signers, ..drift_of(name, findings, now.digest.clone()) })
}

/// Tools whose name changed and nothing else: new name → old name.
fn renamed<'l>(locked: &'l PinnedComponent, now: &'l PinnedComponent) -> BTreeMap<&'l str, &'l str> {
    let gone = nameless(locked, now);
    let new = nameless(now, locked);
    let pairs = new.into_iter().filter_map(|(definition, new)| Some((new?, (*gone.get(&definition)?)?)));
    pairs.collect()
}

/// The tools that only this version has, by their definitions without the name; `None` if several
/// are equal.
fn nameless<'l>(component: &'l PinnedComponent, other: &PinnedComponent) -> HashMap<String, Option<&'l str>> {
    let mut tools: HashMap<String, Option<&str>> = HashMap::new();
    for (name, tool) in component.tools.iter().filter(|(name, _)| !other.tools.contains_key(*name)) {
        let mut definition = tool.definition.clone();
        definition.as_object_mut().map(|members| members.remove("name"));
        tools.entry(definition.to_string()).and_modify(|one| *one = None).or_insert(Some(name));
    }
    tools
}

/// True if a pinned signature is missing or weaker, or was checked against another root.
pub(super) fn signers_differ(locked: &PinnedComponent, now: &PinnedComponent) -> bool {
    !signers_changed(locked, &signed(now)).is_empty()
}

fn signed(component: &PinnedComponent) -> Signed {
    Signed { by: component.signed_by.clone(), root: component.trusted_root.clone() }
}

/// Adds how signatures differ. True if a pinned one is missing or weaker.
fn add_signers(locked: &PinnedComponent, now: &Signed, findings: &mut Findings) -> bool {
    let changed = signers_changed(locked, now);
    let differ = !changed.is_empty();
    changed.into_iter().for_each(|line| findings.add(line));
    let more = now.by.iter().filter(|line| !locked.signed_by.contains(line));
    more.for_each(|line| findings.add(format!("has now a {}", json_diff::clean(line))));
    differ
}

/// Pinned signatures that are missing, or were checked against another root. An additional
/// signature is allowed.
fn signers_changed(locked: &PinnedComponent, now: &Signed) -> Vec<String> {
    let gone = lost(locked, now).map(|line| format!("has no longer a {}", json_diff::clean(line)));
    let mut lines: Vec<String> = gone.collect();
    if let Some(was) = &locked.trusted_root
        && locked.trusted_root != now.root
    {
        let is = now.root.as_deref().map_or_else(|| "none".to_owned(), short);
        lines.push(format!("trusted root: was {}, is {is}", short(was)));
    }
    lines
}

/// The pinned signatures that are missing or weaker.
fn lost<'l>(locked: &'l PinnedComponent, now: &'l Signed) -> impl Iterator<Item = &'l String> {
    locked.signed_by.iter().filter(|line| !now.by.contains(line))
}

/// Adds the differences of one tool. True if they only remove something.
fn tool_changed(name: &str, locked: Option<&PinnedTool>, now: Option<&PinnedTool>, findings: &mut Findings) -> bool {
    let (locked, now) = match (locked, now) {
        (Some(locked), Some(now)) => (locked, now),
        (None, Some(now)) => {
            findings.new_definition(name, format!("tool {name}: new: {}", described(now)), &now.definition);
            now.grants.iter().for_each(|line| findings.grant(name, "may", true, line));
            return false;
        }
        (Some(_), None) => {
            findings.add(format!("tool {name}: gone"));
            return true;
        }
        (None, None) => return true,
    };
    let same_definition = locked.definition_digest == now.definition_digest;
    if !same_definition {
        findings.changed_definition(name, &locked.definition, &now.definition);
    }
    let was = rights(&locked.grants);
    let is = rights(&now.grants);
    // "Everybody" covers any single caller.
    let more: Vec<&str> = is.iter().filter(|line| !was.contains(line) && !covers(&was, line)).copied().collect();
    let less: Vec<&str> = was.iter().filter(|line| !is.contains(line) && !covers(&is, line)).copied().collect();
    more.iter().for_each(|line| findings.grant(name, "may now", true, line));
    less.iter().for_each(|line| findings.grant(name, "may no longer", false, line));
    let same_grants = locked.grants_digest == now.grants_digest;
    if !same_grants && more.is_empty() && less.is_empty() {
        findings.add(format!("tool {name}: its grants differ in how they are written"));
    }
    if let Some(confirmed) = now.confirmed.since(locked.confirmed) {
        findings.add(format!("tool {name} {confirmed}"));
    }
    let weaker = now.confirmed.is_weaker_than(locked.confirmed);
    same_definition && more.is_empty() && (same_grants || !less.is_empty()) && !weaker
}

/// Stands for the callers of a tool without rules for callers.
const EVERYBODY: &str = "be called by everybody";

/// Each right of a tool, including its callers.
fn rights(lines: &[String]) -> Vec<&str> {
    let said = lines.iter().any(|line| line.starts_with(CALLED_BY));
    let lines = lines.iter().map(String::as_str).filter(|line| *line != NOBODY);
    lines.chain((!said).then_some(EVERYBODY)).collect()
}

/// True if these rights include one about callers: everybody, or the same callers under fewer
/// conditions.
fn covers(rights: &[&str], line: &str) -> bool {
    if !line.starts_with(CALLED_BY) {
        return false;
    }
    let callers = line.split_once(CALLED_IF).map(|(callers, _)| callers);
    rights.contains(&EVERYBODY) || callers.is_some_and(|callers| rights.contains(&callers))
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
        let definition_digest = digest(&definition);
        let grants_digest = digest(&json!(grants));
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
            (described("B", &["read /d: d"]), vec!["tool now: description was \"A\", is \"B\""], false),
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
    fn a_tool_with_another_name_is_told_by_both_names() {
        let named = |names: &[&str]| {
            let tools = names.iter().map(|name| {
                let definition = json!({"name": name, "description": "Goes.", "inputSchema": {}});
                (*name, tool(definition, &["read /d: d"]))
            });
            lock("a", &tools.collect::<Vec<_>>())
        };
        for (was, is, lines) in [
            (vec!["go"], vec!["one_go"], vec!["tool one_go: name was \"go\", is \"one_go\""]),
            // Nobody knows which of them it was.
            (
                vec!["go"],
                vec!["one_go", "two_go"],
                vec![
                    "tool go: gone",
                    "tool one_go: new: \"Goes.\"",
                    "tool one_go may: read /d: d",
                    "tool two_go: new: \"Goes.\"",
                    "tool two_go may: read /d: d",
                ],
            ),
        ] {
            let found = drift(&named(&was), &named(&is));
            assert_eq!(found[0].differences, lines);
            assert!(!found[0].only_less, "a name is approved as any other part of a definition");
        }
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
        let ann = "signature by ann (issuer i), in a transparency log";
        let bob = "signature by bob (issuer i), in no log";
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
            let is_root_alone = lines.iter().all(|line| line.starts_with("trusted root"));
            assert_eq!(found[0].lost_signers, other && !is_root_alone, "{lines:?}");
        }
    }

    #[test]
    fn a_caller_more_is_more_and_everybody_is_the_most() {
        let ann = described("A", &["be called by the name ann"]);
        for (from, to, line, only_less) in [
            (&ann, "be called by the name bob", "tool now may now: be called by the name bob", false),
            (&ann, NOBODY, "tool now may no longer: be called by the name ann", true),
            (
                &ann,
                "be called by the name ann, if a = \"x\"",
                "tool now may no longer: be called by the name ann",
                true,
            ),
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
        // Conditions that are removed or replaced are a further right.
        let conditioned = described("A", &["be called by the name ann, if a = \"x\""]);
        for now in ["be called by the name ann", "be called by the name ann, if a = \"y\""] {
            let found = drift(&conditioned, &described("A", &[now]));
            assert_eq!(found[0].differences[0], format!("tool now may now: {now}"));
            assert!(!found[0].only_less, "{now}");
        }
        assert!(!open[0].only_less);
    }
}
