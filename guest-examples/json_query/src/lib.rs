//! `json_query`: selects parts of a JSON document with a JSONPath query (RFC 9535).
//! The lesson: a language inside an argument, with errors that point at the place.
//!
//! Holds the tool's definition and limits; must hold no syntax and no selection.

mod condition;
mod parse;
mod place;
mod query;
mod regexp;
mod select;

use place::Places;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolkit::{CallResult, Failure, Guest, Tool};

struct JsonQuery;

toolkit::export!(JsonQuery);

/// Matches listed where the caller does not say; the schema says the same.
const LIMIT_DEFAULT: usize = 100;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    // `Some(null)` and an absent document are two things, hence the function.
    #[serde(default, deserialize_with = "present")]
    document: Option<Value>,
    text: Option<String>,
    limit: Option<usize>,
}

#[derive(Serialize)]
struct Answer<'document> {
    count: usize,
    matches: Vec<Match<'document>>,
}

#[derive(Serialize)]
struct Match<'document> {
    path: String,
    value: &'document Value,
}

impl Guest for JsonQuery {
    fn list_tools() -> Vec<Tool> {
        vec![
            Tool::new(
                "json_query",
                "Selects parts of a JSON document with a JSONPath query (RFC 9535: names, indexes, slices, wildcards, \
                 descendants, filters, functions). Gives each match with its path. Use it instead of reading a long \
                 document.",
                include_str!("../schemas/input.json"),
            )
            .title("Query JSON")
            .output(include_str!("../schemas/output.json"))
            .read_only(),
        ]
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        match name.as_str() {
            "json_query" => json_query(toolkit::arguments(&arguments_json)?),
            other => Err(Failure::unknown_tool(other)),
        }
    }
}

fn json_query(arguments: Arguments) -> Result<CallResult, Failure> {
    let query = parse::query(&arguments.path).map_err(|error| Failure::invalid(error.to_string()))?;
    let document = match (arguments.document, arguments.text) {
        (Some(document), None) => document,
        (None, Some(text)) => {
            serde_json::from_str(&text).map_err(|error| Failure::invalid(format!("`text` is not JSON: {error}")))?
        }
        (Some(_), Some(_)) => return Err(Failure::invalid("give `document` or `text`, not both")),
        (None, None) => return Err(Failure::invalid("there is nothing to look in: give `document` or `text`")),
    };
    let places = Places::of(&document);
    let found = select::select(&query, &places).map_err(|error| Failure::Failed(error.to_string()))?;
    let listed = found.iter().take(arguments.limit.unwrap_or(LIMIT_DEFAULT));
    let matches = listed.map(|place| Match { path: place.path(), value: place.value() }).collect();
    CallResult::structured(&Answer { count: found.len(), matches })
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use serde_json::json;

    fn call(arguments: &Value) -> Result<Value, String> {
        match JsonQuery::call_tool("json_query".to_owned(), arguments.to_string()) {
            Ok(result) => Ok(serde_json::from_str(&result.structured_json.unwrap()).unwrap()),
            Err(failure) => Err(failure.message().to_owned()),
        }
    }

    #[test]
    fn matches_come_with_their_paths() {
        let answer = call(&json!({"path": "$.a[1:]", "document": {"a": [1, "two", null]}})).unwrap();
        assert_eq!(
            answer,
            json!({"count": 2, "matches": [
                {"path": "$['a'][1]", "value": "two"},
                {"path": "$['a'][2]", "value": null},
            ]})
        );
    }

    #[test]
    fn text_is_read_as_json_and_members_keep_their_order() {
        let answer = call(&json!({"path": "$.*", "text": "{\"z\":1,\"a\":2}"})).unwrap();
        assert_eq!(answer["matches"][0]["path"], "$['z']");
    }

    #[test]
    fn null_is_a_document() {
        assert_eq!(call(&json!({"path": "$", "document": null})).unwrap()["count"], 1);
    }

    #[test]
    fn the_limit_cuts_the_list_and_not_the_count() {
        let answer = call(&json!({"path": "$[*]", "document": [1, 2, 3], "limit": 2})).unwrap();
        assert_eq!(answer["count"], 3);
        assert_eq!(answer["matches"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn mistakes_are_explained() {
        for (arguments, message) in [
            (json!({"path": "$"}), "there is nothing to look in: give `document` or `text`"),
            (json!({"path": "$", "document": 1, "text": "1"}), "give `document` or `text`, not both"),
            (json!({"path": "$", "text": "{"}), "`text` is not JSON: EOF while parsing an object at line 1 column 1"),
            (
                json!({"path": "$.a[", "document": 1}),
                "the path ends where a selector should be: a name in quotes, an index, a slice, * or ?\n  $.a[\n      ^",
            ),
        ] {
            assert_eq!(call(&arguments).unwrap_err(), message, "{arguments}");
        }
    }
}
