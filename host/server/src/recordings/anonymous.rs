//! A recording without its content, for a bug report: each text and number is replaced by one that
//! stands for it. It is for reading, and is not replayed.
//!
//! | in the recording | in its place |
//! |---|---|
//! | a text | `text-3(12)`: the third text of the file, of 12 bytes |
//! | bytes that are not UTF-8 | `bytes-4(120)` |
//! | a number | its number among the numbers: 1, 2, 3; with a fraction 4.5 |
//! | a list of more than 16 numbers or short texts | `["list-1(500)"]` |
//! | the key of an object that is not in the tool's schema | `key-1(7)` |
//! | JSON in a text | JSON in a text, replaced in the same way |
//!
//! Equal values have equal ones. They come from the order in the file and not from the values, so
//! nobody can guess a value and compare. A long list of letters or bytes would still be a text in a
//! simple cipher, so it has one stand-in. Lengths stay, and so do `true`, `false` and `null`.
use std::collections::{BTreeSet, HashMap};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};
use toolcell_sandbox::contract::GuestResult;
use toolcell_sandbox::tapes::TapeEntry;

use super::recording::{ANONYMOUS, Recording, RecordingHead};

/// Bytes of a name of WIT that is kept. Ours have 60 at most.
const NAME_BYTES_MAX: usize = 128;

/// Numbers or short texts of a list that has a stand-in for each: an address of IPv6 has 16 bytes,
/// and equal letters among so few spell nothing.
const SPELLED_MIN: usize = 16;

/// Bytes of a text that may be a letter.
const LETTER_BYTES_MAX: usize = 4;

/// Names in a tool's schemas that are kept. A schema has at most 256 KiB.
const SCHEMA_NAMES_MAX: usize = 10_000;

/// Names of the members of a tool's schemas: these are its component's, and not its callers'.
#[derive(Clone, Debug, Default)]
pub struct SchemaNames(BTreeSet<String>);

impl SchemaNames {
    /// Those of these schemas.
    #[must_use]
    pub fn of<'s>(schemas: impl IntoIterator<Item = &'s Value>) -> Self {
        let mut names = BTreeSet::new();
        schemas.into_iter().for_each(|schema| collect(schema, &mut names));
        Self(names)
    }
}

/// The names under `properties`, at any depth.
fn collect(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Array(values) => values.iter().for_each(|value| collect(value, names)),
        Value::Object(members) => {
            for (key, value) in members {
                if let (true, Value::Object(properties)) = (key == "properties", value) {
                    names.extend(properties.keys().take(SCHEMA_NAMES_MAX.saturating_sub(names.len())).cloned());
                }
                collect(value, names);
            }
        }
        _ => {}
    }
}

impl Recording {
    /// The bytes of a file that has nothing of what the call was about.
    ///
    /// # Errors
    /// An error of JSON: none is known.
    pub fn to_anonymous_bytes(&self, names: &SchemaNames) -> serde_json::Result<Vec<u8>> {
        let mut stand_ins = StandIns { names, seen: HashMap::new(), counts: HashMap::new() };
        let mut lines = vec![stand_ins.head(&self.head)];
        lines.extend(self.entries.iter().map(|entry| stand_ins.entry(entry)));
        let ended = match &self.outcome {
            Ok(result) => json!({"Ok": stand_ins.result(result)}),
            Err(failure) => json!({"Err": {
                "outcome": failure.outcome().name(),
                "text": stand_ins.text(&failure.to_string()),
            }}),
        };
        lines.push(json!({"ended": ended, "used": self.used}));
        let mut bytes = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut bytes, &line)?;
            bytes.push(b'\n');
        }
        Ok(bytes)
    }
}

/// What was replaced, by its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Content {
    Text(String),
    Bytes(Vec<u8>),
    Key(String),
    /// As JSON writes it.
    Number(String),
    List(String),
    Handle(u64),
}

impl Content {
    /// Its kind has numbers of its own.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Key(_) => "key",
            Self::Number(_) => "number",
            Self::List(_) => "list",
            Self::Handle(_) => "handle",
        }
    }
}

/// What stands for the values of one recording.
struct StandIns<'n> {
    names: &'n SchemaNames,
    /// The number of each value.
    seen: HashMap<Content, u64>,
    /// How many there are of each kind.
    counts: HashMap<&'static str, u64>,
}

impl StandIns<'_> {
    fn head(&mut self, head: &RecordingHead) -> Value {
        // All members are named, so that a new one is left out until somebody decides about it.
        let mut shown = json!({
            "recording": RecordingHead::version(),
            "toolcell": head.toolcell,
            "processor": head.processor,
            "recorded": head.recorded.get(..DATE_BYTES),
            "revision": head.revision,
            "component": self.text(&head.component),
            "digest": head.digest,
            "tool": head.tool,
            "caller": self.text(&head.caller),
            "arguments": self.json_text(&head.arguments),
            "is_conformed": head.is_conformed,
            "manifest": self.text(&head.manifest),
            "secrets": head.secrets.len(),
        });
        if let Some(members) = shown.as_object_mut() {
            members.insert(ANONYMOUS.to_owned(), Value::Bool(true));
        }
        shown
    }

    fn entry(&mut self, entry: &TapeEntry) -> Value {
        let TapeEntry { function, arguments, results, counted, fuel, ended } = entry;
        let function = if is_function(function) { function.clone() } else { self.text(function) };
        let mut values = |values: &[Value]| values.iter().map(|value| self.typed(value)).collect::<Vec<_>>();
        let with = values(arguments);
        let gave = values(results);
        let ended = ended.as_ref().map(|text| self.text(text));
        json!({"call": function, "with": with, "gave": gave, "counted": counted, "fuel": fuel, "ended": ended})
    }

    /// A value of the component model: keys are names of its type.
    fn typed(&mut self, value: &Value) -> Value {
        let Value::Object(members) = value else { return self.value(value, |stand_ins, value| stand_ins.typed(value)) };
        if let (1, Some((key, inner))) = (members.len(), members.iter().next()) {
            match (key.as_str(), inner) {
                ("base64", Value::String(text)) => return json!({key: self.bytes(text)}),
                ("handle", Value::Number(number)) => {
                    let handle = self.number_of(Content::Handle(number.as_u64().unwrap_or(u64::MAX)));
                    return json!({key: handle});
                }
                _ => {}
            }
        }
        let mut shown = Map::new();
        for (key, value) in members {
            let key = if is_name(key) { key.clone() } else { self.key(key) };
            let value = self.typed(value);
            shown.insert(key, value);
        }
        Value::Object(shown)
    }

    /// JSON of a caller or a component: keys are theirs.
    fn json(&mut self, value: &Value) -> Value {
        let Value::Object(members) = value else { return self.value(value, |stand_ins, value| stand_ins.json(value)) };
        let mut shown = Map::new();
        for (key, value) in members {
            let key = if self.names.0.contains(key) { key.clone() } else { self.key(key) };
            let value = self.json(value);
            shown.insert(key, value);
        }
        Value::Object(shown)
    }

    /// A value that is not an object.
    fn value(&mut self, value: &Value, mut inner: impl FnMut(&mut Self, &Value) -> Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Number(number) => {
                let shown = self.number_of(Content::Number(number.to_string()));
                let whole = f64::from(u32::try_from(shown).unwrap_or(u32::MAX));
                if number.is_f64() { json!(whole + 0.5) } else { json!(shown) }
            }
            Value::Array(values) if is_spelled(values) => {
                let number = self.number_of(Content::List(value.to_string()));
                json!([format!("list-{number}({})", values.len())])
            }
            Value::Array(values) => Value::Array(values.iter().map(|value| inner(self, value)).collect()),
            other => other.clone(),
        }
    }

    fn result(&mut self, result: &GuestResult) -> Value {
        let GuestResult { content, structured_json, is_error, meta_json } = result;
        let content = serde_json::to_value(content).unwrap_or_default();
        let content = self.typed(&content);
        let structured = structured_json.as_deref().map(|text| self.json_text(text));
        let meta = meta_json.as_deref().map(|text| self.json_text(text));
        json!({"content": content, "structured_json": structured, "is_error": is_error, "meta_json": meta})
    }

    /// JSON in a text.
    fn json_text(&mut self, text: &str) -> String {
        match serde_json::from_str::<Value>(text) {
            Ok(value) => self.json(&value).to_string(),
            Err(_) => self.text(text),
        }
    }

    fn text(&mut self, text: &str) -> String {
        let number = self.number_of(Content::Text(text.to_owned()));
        format!("text-{number}({})", text.len())
    }

    fn key(&mut self, key: &str) -> String {
        let number = self.number_of(Content::Key(key.to_owned()));
        format!("key-{number}({})", key.len())
    }

    fn bytes(&mut self, base64: &str) -> String {
        let bytes = BASE64.decode(base64).unwrap_or_else(|_| base64.as_bytes().to_vec());
        let length = bytes.len();
        let number = self.number_of(Content::Bytes(bytes));
        format!("bytes-{number}({length})")
    }

    /// The number of this value among those of its kind.
    fn number_of(&mut self, content: Content) -> u64 {
        let count = self.counts.entry(content.kind()).or_default();
        *self.seen.entry(content).or_insert_with(|| {
            *count += 1;
            *count
        })
    }
}

/// True for a long list of numbers or short texts, which could spell something.
fn is_spelled(values: &[Value]) -> bool {
    let is_short = |value: &Value| match value {
        Value::Number(_) => true,
        Value::String(text) => text.len() <= LETTER_BYTES_MAX,
        _ => false,
    };
    values.len() > SPELLED_MIN && values.iter().filter(|value| is_short(value)).count() > SPELLED_MIN
}

/// Bytes of the date in a time: `2026-11-29`.
const DATE_BYTES: usize = 10;

/// True for a name of WIT, or of a type of the tool contract.
fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_letter)
}

/// True for the name of a function of WIT: `wasi:io/streams#[method]input-stream.read`.
fn is_function(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-:/#[].$".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shown(names: &SchemaNames, value: &Value) -> Value {
        StandIns { names, seen: HashMap::new(), counts: HashMap::new() }.json(value)
    }

    #[test]
    fn each_value_has_one_of_its_type_and_equal_ones_have_the_same() {
        let value = json!({"a": ["x", "xyz", "x", 5, 5, -7, 5.5, true, null], "b": "xyz"});
        let expected = json!({
            "key-1(1)": ["text-1(1)", "text-2(3)", "text-1(1)", 1, 1, 2, 3.5, true, null],
            "key-2(1)": "text-2(3)",
        });
        assert_eq!(shown(&SchemaNames::default(), &value), expected);
    }

    #[test]
    fn names_of_the_schema_stay_at_any_depth_and_no_others() {
        let schema = json!({"properties": {"a": {"items": [{"properties": {"b": {}}}]}}, "examples": [{"secret": 1}]});
        let names = SchemaNames::of([&schema]);
        let value = json!({"a": [{"b": 1, "secret": 2}], "examples": 3});
        assert_eq!(shown(&names, &value), json!({"a": [{"b": 1, "key-1(6)": 2}], "key-2(8)": 3}));
    }

    #[test]
    fn a_list_that_spells_a_text_is_one_value() {
        let letters: Vec<Value> = "a customer's name".bytes().map(Value::from).collect();
        let spelled: Vec<Value> = "a customer's name".chars().map(|letter| json!(letter.to_string())).collect();
        let value = json!([letters, spelled, [1, 2]]);
        let names = SchemaNames::default();
        assert_eq!(shown(&names, &value), json!([["list-1(17)"], ["list-2(17)"], [1, 2]]));
    }

    #[test]
    fn names_of_types_and_functions_stay_and_other_texts_do_not() {
        let names = SchemaNames::default();
        let mut stand_ins = StandIns { names: &names, seen: HashMap::new(), counts: HashMap::new() };
        let entry = TapeEntry {
            function: "wasi:io/streams#[method]input-stream.read".to_owned(),
            arguments: vec![json!({"handle": 712}), json!({"handle": 3}), json!({"handle": 712})],
            results: vec![json!({"ok": {"base64": BASE64.encode(b"\xff\xfe")}}), json!({"ann@example.com": 1})],
            ended: Some("the limit of ann".to_owned()),
            ..TapeEntry::default()
        };
        let expected = json!({
            "call": entry.function,
            "with": [{"handle": 1}, {"handle": 2}, {"handle": 1}],
            "gave": [{"ok": {"base64": "bytes-1(2)"}}, {"key-1(15)": 1}],
            "counted": 0, "fuel": 0, "ended": "text-1(16)",
        });
        assert_eq!(stand_ins.entry(&entry), expected);
        let other = TapeEntry { function: "a b".to_owned(), ..TapeEntry::default() };
        assert_eq!(stand_ins.entry(&other)["call"], "text-2(3)");
    }
}
