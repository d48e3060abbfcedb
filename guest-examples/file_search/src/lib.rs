//! `file_search`: searches the files of a folder that it was given to read, as grep does.
//! The lesson: files. A mount is an ordinary folder to the standard library, and there is nothing else.
//!
//! Holds the tool's definition and the way to its answer; must hold no walking and no matching.

mod pattern;
mod search;

use std::path::Path;

use serde::Deserialize;
use toolkit::{CallResult, Failure, Guest, Tool};

use pattern::Pattern;
use search::{Found, Search};

struct FileSearch;

toolkit::export!(FileSearch);

/// Where the manifest mounts the folder.
const MOUNT: &str = "/files";

/// Matches shown where the caller does not say; the schema says the same.
const LIMIT_DEFAULT: usize = 20;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    #[serde(default)]
    regex: bool,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    path: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    context: usize,
    limit: Option<usize>,
}

impl Guest for FileSearch {
    fn list_tools() -> Vec<Tool> {
        vec![
            Tool::new(
                "file_search",
                "Searches the text files of a folder for a word or a regular expression, and gives the lines with their \
                 places. Use it to find where something is said before you answer from memory.",
                include_str!("../schemas/input.json"),
            )
            .title("Search files")
            .output(include_str!("../schemas/output.json"))
            .read_only(),
        ]
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        match name.as_str() {
            "file_search" => file_search(Path::new(MOUNT), &toolkit::arguments(&arguments_json)?),
            other => Err(Failure::unknown_tool(other)),
        }
    }
}

fn file_search(root: &Path, arguments: &Arguments) -> Result<CallResult, Failure> {
    if std::fs::read_dir(root).is_err() {
        return Err(Failure::Failed(format!(
            "there is no folder to search: the server's manifest gives this tool none at {MOUNT}"
        )));
    }
    let search = Search {
        pattern: Pattern::new(&arguments.pattern, arguments.regex, arguments.ignore_case)?,
        name: &arguments.name,
        context: arguments.context,
        limit: arguments.limit.unwrap_or(LIMIT_DEFAULT),
    };
    let found = search.below(root, &arguments.path)?;
    CallResult::text(shown(&found)).with_structured(&found)
}

/// As grep shows it: `path:line: text`, the lines around with `-`, and `--` between what does not touch.
fn shown(found: &Found) -> String {
    let mut lines = Vec::new();
    let mut last: Option<(&str, usize)> = None;
    for hit in &found.matches {
        let first = hit.line - hit.before.len();
        let touches = last.is_some_and(|(path, line)| path == hit.path && first <= line + 1);
        if found.has_context() && !lines.is_empty() && !touches {
            lines.push("--".to_owned());
        }
        let start = last.map_or(0, |(path, line)| if path == hit.path { line + 1 } else { 0 });
        let around = |number: usize, text: &str| format!("{}-{number}- {text}", hit.path);
        lines.extend(
            (first..)
                .zip(&hit.before)
                .filter(|(number, _)| *number >= start)
                .map(|(number, text)| around(number, text)),
        );
        lines.push(format!("{}:{}: {}", hit.path, hit.line, hit.text));
        lines.extend((hit.line + 1..).zip(&hit.after).map(|(number, text)| around(number, text)));
        last = Some((&hit.path, hit.line + hit.after.len()));
    }
    lines.push(found.summary());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use serde_json::{Value, json};

    fn sample() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/sample"))
    }

    fn search(arguments: Value) -> Result<(String, Value), String> {
        let arguments: Arguments = serde_json::from_value(arguments).unwrap();
        let result = file_search(sample(), &arguments).map_err(|failure| failure.message().to_owned())?;
        let text = result.only_text().unwrap().to_owned();
        Ok((text, serde_json::from_str(&result.structured_json.unwrap()).unwrap()))
    }

    #[test]
    fn a_word_is_found_in_every_file_in_order() {
        let (text, found) = search(json!({"pattern": "kettle"})).unwrap();
        let places: Vec<String> = found["matches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| format!("{}:{}", hit["path"].as_str().unwrap(), hit["line"]))
            .collect();
        assert_eq!(places, ["coffee.md:7", "howto/descale.md:1", "howto/descale.md:3", "tea.md:5"]);
        assert!(text.ends_with("4 matches in 3 of 4 files."), "{text}");
    }

    #[test]
    fn case_names_folders_and_expressions_narrow_it_down() {
        for (arguments, count) in [
            (json!({"pattern": "KETTLE"}), 0),
            (json!({"pattern": "KETTLE", "ignore_case": true}), 4),
            (json!({"pattern": "kettle", "path": "howto"}), 2),
            (json!({"pattern": "kettle", "path": "/howto/"}), 2),
            (json!({"pattern": "kettle", "path": "tea.md"}), 1),
            (json!({"pattern": "kettle", "name": "te*.md"}), 1),
            (json!({"pattern": "kettle", "name": "*.txt"}), 0),
            (json!({"pattern": r"\b\d+ °C", "regex": true}), 2),
            (json!({"pattern": r"\b\d+ °C"}), 0),
            (json!({"pattern": "a+b"}), 0),
        ] {
            let (_, found) = search(arguments.clone()).unwrap();
            assert_eq!(found["matches"].as_array().unwrap().len(), count, "{arguments}");
        }
    }

    #[test]
    fn lines_around_a_match_are_shown_once() {
        let (text, _) = search(json!({"pattern": "kettle", "path": "howto", "context": 1})).unwrap();
        assert_eq!(
            text,
            "howto/descale.md:1: # Descale the kettle\nhowto/descale.md-2- \nhowto/descale.md:3: Fill the kettle with water and two \
             spoons of citric acid, and boil it.\nhowto/descale.md-4- Wait twenty minutes, pour it out, and rinse twice.\n2 matches in 1 \
             of 1 file."
        );
    }

    #[test]
    fn past_the_limit_it_stops_and_says_so() {
        let (text, found) = search(json!({"pattern": "kettle", "limit": 2})).unwrap();
        assert_eq!(found["matches"].as_array().unwrap().len(), 2);
        assert_eq!(found["truncated"], true);
        assert!(text.ends_with("There are more: narrow it down, or raise the limit."), "{text}");
    }

    #[test]
    fn wrong_arguments_say_what_is_wrong() {
        for (arguments, expected) in [
            (json!({"pattern": "("  , "regex": true}), "the expression"),
            (json!({"pattern": "x", "path": "../src"}), "must not lead upwards"),
            (json!({"pattern": "x", "path": "missing"}), "there is no \"missing\""),
        ] {
            let message = search(arguments.clone()).unwrap_err();
            assert!(message.contains(expected), "{arguments}: {message}");
        }
    }

    #[test]
    fn without_a_folder_it_says_what_is_missing() {
        let arguments: Arguments = serde_json::from_value(json!({"pattern": "x"})).unwrap();
        let failure = file_search(Path::new("/no/such/folder"), &arguments).unwrap_err();
        assert!(failure.message().contains("gives this tool none at /files"), "{}", failure.message());
    }
}
