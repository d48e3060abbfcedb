//! `text_diff`: shows what changed between two texts, by lines or by words.
//! The lesson: text for people and structured numbers for programs in one result.
//!
//! Holds the tool's definition and the way to its answer; must hold no diffing.

mod comparison;
mod lines;
mod words;

use comparison::Ignore;
use serde::Deserialize;
use toolkit::{CallResult, Failure, Guest, Tool};

struct TextDiff;

toolkit::export!(TextDiff);

/// Unchanged lines or words around each change where the caller does not say; the schema says the same.
const CONTEXT_DEFAULT: usize = 3;

#[derive(Deserialize)]
struct Arguments {
    before: String,
    after: String,
    #[serde(default)]
    by: Granularity,
    #[serde(default)]
    ignore: Ignore,
    context: Option<usize>,
    before_name: Option<String>,
    after_name: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Granularity {
    #[default]
    Line,
    Word,
}

impl Guest for TextDiff {
    fn list_tools() -> Vec<Tool> {
        vec![
            Tool::new(
                "text_diff",
                "Shows what changed between two texts: a unified diff by lines, or marked words within prose, with \
                 counts. Use it instead of comparing by eye.",
                include_str!("../schemas/input.json"),
            )
            .title("Compare two texts")
            .output(include_str!("../schemas/output.json"))
            .read_only(),
        ]
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        match name.as_str() {
            "text_diff" => text_diff(&toolkit::arguments(&arguments_json)?),
            other => Err(Failure::unknown_tool(other)),
        }
    }
}

fn text_diff(arguments: &Arguments) -> Result<CallResult, Failure> {
    let context = arguments.context.unwrap_or(CONTEXT_DEFAULT);
    let before = &arguments.before;
    let after = &arguments.after;
    let (comparison, shown) = match arguments.by {
        Granularity::Line => {
            let names = [(&arguments.before_name, "before"), (&arguments.after_name, "after")]
                .map(|(name, default)| one_line(name.as_deref().unwrap_or(default)));
            lines::diff(before, after, arguments.ignore, context, &names)
        }
        Granularity::Word => words::diff(before, after, arguments.ignore, context),
    };
    let text = if comparison.is_identical() { "The texts are the same.".to_owned() } else { shown };
    CallResult::text(text).with_structured(&comparison)
}

/// A name in the head of a diff must not end its line.
fn one_line(name: &str) -> String {
    name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use serde_json::{Value, json};

    fn call(arguments: &Value) -> (String, Value) {
        let result = TextDiff::call_tool("text_diff".to_owned(), arguments.to_string()).unwrap();
        let numbers = serde_json::from_str(result.structured_json.as_deref().unwrap()).unwrap();
        (result.only_text().unwrap().to_owned(), numbers)
    }

    #[test]
    fn a_changed_line_is_shown_and_counted() {
        let (text, numbers) = call(&json!({"before": "a\nb\nc\n", "after": "a\nB\nc\n"}));
        assert_eq!(text, "--- before\n+++ after\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
        assert_eq!(
            numbers,
            json!({"identical": false, "added": 1, "removed": 1, "unchanged": 2, "changes": 1, "similarity": 0.667})
        );
    }

    #[test]
    fn equal_texts_are_said_to_be_equal() {
        let (text, numbers) = call(&json!({"before": "A b\n", "after": "a b\n", "ignore": "case"}));
        assert_eq!(text, "The texts are the same.");
        assert_eq!(numbers["identical"], true);
        assert_eq!(numbers["similarity"], 1.0);
        assert_eq!(call(&json!({"before": "", "after": ""})).1["identical"], true);
    }

    #[test]
    fn words_are_marked_within_the_text() {
        let arguments = json!({"before": "The quick brown fox.", "after": "The slow brown\nfox!", "by": "word"});
        let (text, numbers) = call(&arguments);
        assert_eq!(text, "The [-quick-]{+slow+} brown fox[-.-]{+!+}");
        assert_eq!(numbers["changes"], 2);
    }

    #[test]
    fn a_name_stays_on_its_line() {
        let (text, _) = call(&json!({"before": "", "after": "x\n", "before_name": "old\n+++ evil"}));
        assert!(text.starts_with("--- old +++ evil\n+++ after\n@@ -0,0 +1 @@\n+x\n"), "{text}");
    }
}
