//! A difference from the lock in its parts: texts of definitions, grants, signers. Pages show them
//! one by one.
//!
//! Texts are unescaped: escape misleading characters before showing them.
use std::collections::BTreeSet;

use serde_json::Value;

use super::json_diff;
use super::pinned::PinnedComponent;
use crate::fetching::trust::Signed;

/// Most parts of definitions of one component, and most grants: a page shows as many.
const ITEMS_MAX: usize = 40;

/// Most bytes of one text: a page compares as many.
const TEXT_BYTES_MAX: usize = 16 * 1_024;

/// Most bytes of a grant or a signature: some sentences.
const LINE_BYTES_MAX: usize = 1_024;

/// Most bytes of all texts of one component: its descriptions, and the schemas of some tools.
const TEXTS_BYTES_MAX: usize = 256 * 1_024;

/// The member of a definition that is shown first.
const DESCRIPTION: &str = "description";

/// A difference in its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriftDetails {
    /// Members of definitions that differ.
    pub definitions: Bounded<DefinitionChange>,
    /// Grants that differ.
    pub grants: Bounded<GrantChange>,
    /// All other differences in words, a line each.
    pub other: Bounded<String>,
    /// Each thing that is signed, and by whom, as the lock pins it.
    pub signed_before: Vec<String>,
    /// Those who signed the version that would be served.
    pub signed_now: Vec<String>,
}

/// The first few items, and the number of the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounded<T> {
    /// The first of them.
    pub first: Vec<T>,
    /// The number of the rest.
    pub beyond: usize,
}

/// A member of a tool's definition that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionChange {
    /// The tool, as clients see it.
    pub tool: String,
    /// The member's key, such as `inputSchema`.
    pub member: String,
    /// The pinned text; empty if the member is new. JSON is indented.
    pub old: String,
    /// The text that would be served; empty if the member was removed.
    pub new: String,
    /// Bytes of both that were cut off.
    pub bytes_left: usize,
}

/// A grant that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantChange {
    /// The tool, as clients see it.
    pub tool: String,
    /// True if the grant is new, false if it was removed.
    pub is_added: bool,
    /// The grant in words.
    pub text: String,
}

/// A difference under construction: in words, and in parts.
#[derive(Default)]
pub(super) struct Findings {
    /// In words, a line each.
    pub(super) lines: Vec<String>,
    pub(super) details: DriftDetails,
    texts_bytes: usize,
}

impl DriftDetails {
    /// Drops its texts if they need more than `room` bytes; otherwise takes them from the room.
    #[must_use]
    pub fn within(mut self, room: &mut usize) -> Self {
        match room.checked_sub(self.texts_bytes()) {
            Some(rest) => *room = rest,
            None => {
                self.definitions.beyond += self.definitions.first.len();
                self.definitions.first = Vec::new();
            }
        }
        self
    }

    /// Bytes of its texts of definitions.
    pub fn texts_bytes(&self) -> usize {
        self.definitions.first.iter().map(DefinitionChange::bytes).sum()
    }
}

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        Self { first: Vec::new(), beyond: 0 }
    }
}

impl<T> Bounded<T> {
    fn push(&mut self, one: T) {
        if self.first.len() < ITEMS_MAX { self.first.push(one) } else { self.beyond += 1 }
    }
}

impl DefinitionChange {
    fn bytes(&self) -> usize {
        self.old.len() + self.new.len()
    }
}

impl Findings {
    /// Findings about a component with these signers before and now.
    pub(super) fn between(locked: Option<&PinnedComponent>, now: &Signed) -> Self {
        let mut findings = Self::default();
        findings.details.signed_before = locked.map(|locked| signatures(&locked.signed_by)).unwrap_or_default();
        findings.details.signed_now = signatures(&now.by);
        findings
    }

    /// Adds a difference that has only words.
    pub(super) fn add(&mut self, line: String) {
        self.details.other.push(line.clone());
        self.lines.push(line);
    }

    /// Adds a new or removed grant.
    pub(super) fn grant(&mut self, tool: &str, verb: &str, is_added: bool, text: &str) {
        self.lines.push(format!("tool {tool} {verb}: {}", json_diff::clean(text)));
        self.details.grants.push(GrantChange {
            tool: tool.to_owned(),
            is_added,
            text: clipped(text, LINE_BYTES_MAX).0.to_owned(),
        });
    }

    /// Adds a new tool.
    pub(super) fn new_definition(&mut self, tool: &str, line: String, now: &Value) {
        self.lines.push(line);
        self.definition(tool, &Value::Null, now);
    }

    /// Adds the differences in a tool's definition.
    pub(super) fn changed_definition(&mut self, tool: &str, locked: &Value, now: &Value) {
        let said = json_diff::between(locked, now);
        self.lines.extend(said.into_iter().map(|line| format!("tool {tool}: {line}")));
        self.definition(tool, locked, now);
    }

    fn definition(&mut self, tool: &str, locked: &Value, now: &Value) {
        let members = |value: &Value| -> BTreeSet<String> {
            value.as_object().into_iter().flat_map(|members| members.keys().cloned()).collect()
        };
        let mut keys: Vec<String> = members(locked).union(&members(now)).cloned().collect();
        keys.sort_by_key(|key| key != DESCRIPTION);
        for key in keys {
            let was = locked.get(&key);
            let is = now.get(&key);
            // The name of a new tool is shown next to each member.
            if was != is && !(locked.is_null() && key == "name") {
                self.member(tool, key, was, is);
            }
        }
    }

    fn member(&mut self, tool: &str, member: String, was: Option<&Value>, is: Option<&Value>) {
        let old = text(was);
        let new = text(is);
        let (old, old_left) = clipped(&old, TEXT_BYTES_MAX);
        let (new, new_left) = clipped(&new, TEXT_BYTES_MAX);
        let bytes_left = old_left + new_left;
        // The difference may be in the part that was cut off.
        if old == new || bytes_left > 0 {
            let said = json_diff::of_member(&member, was, is);
            said.into_iter().for_each(|line| self.details.other.push(format!("tool {tool}: {line}")));
        }
        if old == new {
            return;
        }
        self.texts_bytes += old.len() + new.len();
        if self.texts_bytes > TEXTS_BYTES_MAX {
            self.details.definitions.beyond += 1;
            return;
        }
        let tool = tool.to_owned();
        let old = old.to_owned();
        let new = new.to_owned();
        self.details.definitions.push(DefinitionChange { tool, member, old, new, bytes_left });
    }
}

/// A text as it is, any other value as indented JSON.
fn text(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

/// The beginning of a text, and the number of bytes that were cut off.
fn clipped(text: &str, bytes_max: usize) -> (&str, usize) {
    let (start, rest) = text.split_at(text.floor_char_boundary(bytes_max));
    (start, rest.len())
}

fn signatures(lines: &[String]) -> Vec<String> {
    lines.iter().take(ITEMS_MAX).map(|line| clipped(line, LINE_BYTES_MAX).0.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(locked: &Value, now: &Value) -> DriftDetails {
        let mut findings = Findings::default();
        findings.changed_definition("now", locked, now);
        findings.details
    }

    fn parts(details: &DriftDetails) -> Vec<(&str, &str, &str)> {
        let parts = details.definitions.first.iter();
        parts.map(|part| (part.member.as_str(), part.old.as_str(), part.new.as_str())).collect()
    }

    #[test]
    fn each_member_that_differs_is_a_part_and_the_description_is_first() {
        let old = json!({"name": "now", "annotations": {}, "description": "A \u{202e}", "title": "T"});
        let new = json!({"name": "now", "description": "B", "inputSchema": {"type": "object"}, "title": "T"});
        assert_eq!(
            parts(&changed(&old, &new)),
            [
                ("description", "A \u{202e}", "B"),
                ("annotations", "{}", ""),
                ("inputSchema", "", "{\n  \"type\": \"object\"\n}")
            ]
        );
        assert_eq!(changed(&old, &new).other, Bounded::default());
        assert_eq!(changed(&old, &old), DriftDetails::default());
    }

    #[test]
    fn a_difference_that_the_texts_do_not_show_is_said_in_words() {
        let start = "x".repeat(TEXT_BYTES_MAX);
        let table = [
            (json!({"title": "7"}), json!({"title": 7}), 0, "tool now: title was \"7\", is 7"),
            (json!({}), json!({"title": ""}), 0, "tool now: title is new: \"\""),
            (json!({"title": ""}), json!({}), 0, "tool now: title is gone, was \"\""),
            (json!({"title": start}), json!({"title": format!("{start}é")}), 0, "tool now: title was "),
            (json!({"title": start}), json!({"title": format!("y{start}")}), 1, "tool now: title was "),
        ];
        for (old, new, count, line) in table {
            let details = changed(&old, &new);
            assert_eq!((details.definitions.first.len(), details.other.first.len()), (count, 1), "{line}");
            assert!(details.other.first[0].starts_with(line), "{details:?}");
        }
    }

    #[test]
    fn texts_and_lists_are_bounded_and_what_is_left_is_counted() {
        let many = |letter: &str| -> Value {
            (0..100)
                .map(|key| (format!("k{key:03}"), json!(letter.repeat(1_000_000))))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let details = changed(&many("a"), &many("b"));
        assert_eq!((details.definitions.first.len(), details.definitions.beyond), (8, 92));
        assert_eq!(details.definitions.first[0].bytes_left, 2 * (1_000_000 - TEXT_BYTES_MAX));
        assert_eq!((details.other.first.len(), details.other.beyond), (ITEMS_MAX, 100 - ITEMS_MAX));
        let mut room = TEXTS_BYTES_MAX + 7;
        let kept = details.clone().within(&mut room);
        assert_eq!((&kept, room), (&details, 7));
        let left = details.within(&mut room);
        assert_eq!((left.definitions.first.len(), left.definitions.beyond, room), (0, 100, 7));

        let mut findings = Findings::default();
        (0..100).for_each(|_| findings.grant("now", "may", true, &"g".repeat(1_000_000)));
        let grants = findings.details.grants;
        assert_eq!((grants.first.len(), grants.beyond, grants.first[0].text.len()), (ITEMS_MAX, 60, LINE_BYTES_MAX));
    }
}
