//! Conditions on the arguments of one tool: `[callers.RULE.arguments."COMPONENT/TOOL"]` for some
//! callers, `[components.COMPONENT.tools.TOOL.arguments]` for all of them. Must not hold: the check
//! of arguments.

use serde_json::{Map, Value, json};

use crate::canonical::sorted;
use crate::diagnostic::Span;
use crate::names::{toml_key, toml_string};
use crate::settings::accessors;

/// The longest line of a condition that is shown, in characters. Longer ones are cut.
const LINE_CHARS_MAX: usize = 300;

accessors! {
    /// The conditions of one rule on the arguments of one tool. All of them have to hold.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ArgumentConditions {
        /// The table that holds them, as in its header:
        /// `callers.ci.arguments."github/create_issue"`.
        pub(crate) section: String => &str,
        /// The place of the table's name.
        pub(crate) span: Span => &Span,
        /// The tool's component.
        pub(crate) component: String => &str,
        /// The tool's own name, without prefix.
        pub(crate) tool: String => &str,
        /// What each argument has to fit.
        pub(crate) conditions: Vec<ArgumentCondition> => &[ArgumentCondition],
    }
}

accessors! {
    /// A condition on one argument.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ArgumentCondition {
        /// The argument.
        pub(crate) name: String => &str,
        /// The place of the argument's name.
        pub(crate) span: Span => &Span,
        /// The line of the manifest, in its normal form: `repo = "sandbox-*"`.
        pub(crate) line: String => &str,
        /// The JSON Schema that the argument has to fit.
        pub(crate) schema: Value => &Value,
        /// True if the argument may be missing.
        pub(crate) optional: bool => bool,
    }
}

impl ArgumentConditions {
    /// The conditions as JSON, by the arguments' names: equal conditions give equal values.
    pub(crate) fn canonical(&self) -> Value {
        let conditions = self.conditions.iter();
        sorted(conditions.map(|condition| {
            let shown = json!({ "schema": condition.schema, "optional": condition.optional });
            (condition.name.as_str(), shown)
        }))
    }

    /// The conditions in words: `repo = "sandbox-*" and amount = { maximum = 1500 }`.
    #[must_use]
    pub fn words(&self) -> String {
        let mut lines: Vec<&str> = self.conditions.iter().map(ArgumentCondition::line).collect();
        lines.sort_unstable();
        lines.join(" and ")
    }
}

impl ArgumentCondition {
    /// The line for a value that is written so.
    pub(crate) fn line_of(name: &str, written: &Value) -> String {
        cut(format!("{} = {}", toml_key(name), toml(written)))
    }
}

fn cut(line: String) -> String {
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// The pattern of a text, as a regular expression for the whole of it. `*` stands for any
/// characters but `/` and control characters, `**` for any characters at all.
///
/// | form | example | fits | does not fit |
/// |---|---|---|---|
/// | `TEXT` | `main` | `main` | `main2`, `Main` |
/// | `*` | `sandbox-*` | `sandbox-`, `sandbox-7` | `sandbox-7/../live` |
/// | `**` | `docs/**` | `docs/a/b` | `doc` |
pub(crate) fn expression(patterns: &[&str]) -> String {
    let one = |pattern: &&str| {
        let mut expression = String::new();
        let mut rest = *pattern;
        while let Some(character) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix("**") {
                expression.push_str("[\\s\\S]*");
                rest = after.trim_start_matches('*');
                continue;
            }
            match character {
                '*' => expression.push_str("[^/\\x00-\\x1f\\x7f]*"),
                character if "\\^$.|?+()[]{}/".contains(character) => expression.extend(['\\', character]),
                character => expression.push(character),
            }
            rest = rest.get(character.len_utf8()..).unwrap_or_default();
        }
        expression
    };
    let all: Vec<String> = patterns.iter().map(one).collect();
    format!("^(?:{})$", all.join("|"))
}

/// A value as it stands in a manifest, on one line.
fn toml(value: &Value) -> String {
    match value {
        Value::String(text) => toml_string(text),
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => format!("{{ {} }}", entries(members).join(", ")),
        other => other.to_string(),
    }
}

fn entries(members: &Map<String, Value>) -> Vec<String> {
    members.iter().map(|(name, value)| format!("{} = {}", toml_key(name), toml(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_of_a_text_is_an_expression_for_the_whole_of_it() {
        for (pattern, expected) in [
            ("main", "^(?:main)$"),
            ("sandbox-*", "^(?:sandbox-[^/\\x00-\\x1f\\x7f]*)$"),
            ("docs/**", "^(?:docs\\/[\\s\\S]*)$"),
            ("a.b+c", "^(?:a\\.b\\+c)$"),
            ("é***x", "^(?:é[\\s\\S]*x)$"),
        ] {
            assert_eq!(expression(&[pattern]), expected);
        }
        assert_eq!(expression(&["a*", "b"]), "^(?:a[^/\\x00-\\x1f\\x7f]*|b)$");
    }

    #[test]
    fn a_condition_is_shown_as_it_stands_in_a_manifest() {
        let condition = |name: &str, written: Value| ArgumentCondition::line_of(name, &written);
        assert_eq!(condition("repo", json!("sandbox-*")), "repo = \"sandbox-*\"");
        assert_eq!(condition("a b", json!(["x", "y"])), "\"a b\" = [\"x\", \"y\"]");
        assert_eq!(condition("amount", json!({"maximum": 1500})), "amount = { maximum = 1500 }");
        assert_eq!(condition("x", json!("y".repeat(400))).chars().count(), LINE_CHARS_MAX + 1);
    }
}
