//! A type, and JSON for it. The type's schema accepts exactly the JSON that converts, but for
//! ranges of numbers, and a converted value survives JSON and back. A refusal names a place in the
//! JSON, and no value takes more memory than it may.
//!
//! The conversion is included by its files, without the crate that runs guests. With an engine that
//! compiles, building this would take ten minutes more.
#![no_main]
#![allow(dead_code, reason = "what the crate of these files uses besides")]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use wasmtime::component::Val;

#[path = "../../../host/guest/src/shape/typed/decode.rs"]
mod decode;
#[path = "../../../host/guest/src/shape/typed/encode.rs"]
mod encode;
#[path = "../../../host/guest/src/shape/typed/fields.rs"]
mod fields;
#[path = "../../../host/guest/src/shape/typed/tests/generate.rs"]
mod generate;
#[path = "../../../host/guest/src/shape/typed/path.rs"]
mod path;
#[path = "../../../host/guest/src/shape/typed/schema.rs"]
mod schema;
#[path = "../../../host/guest/src/shape/typed/ty.rs"]
mod ty;

use path::Path;
use ty::{TyId, TypedField, Types};

/// Greatest nesting of types.
const DEPTH: u32 = 4;

/// Memory that is enough for any value of an input: each of its bytes may be a value with a name,
/// many times over.
const BYTES_ENOUGH: u64 = 64 << 20;

/// Memory that is too little for some values.
const BYTES_FEW: u64 = 1 << 10;

/// Choices, one for each byte of an input. After the last byte every choice is the first.
struct Bytes<'a>(&'a [u8]);

impl generate::Dice for Bytes<'_> {
    fn roll(&mut self) -> u64 {
        let (now, rest) = self.0.split_at(self.0.len().min(8));
        self.0 = rest;
        now.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    // A choice takes one byte, so that similar inputs give similar types.
    fn below(&mut self, bound: u64) -> u64 {
        let Some((byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        u64::from(*byte) % bound
    }
}

struct NoDocs;

impl schema::Docs for NoDocs {
    fn of_type(&self, _: TyId) -> Option<schema::TypeDocs<'_>> {
        None
    }
}

fuzz_target!(|data: &[u8]| {
    // The input is the length of the choices, the choices, and the JSON.
    let Some((length, data)) = data.split_first() else { return };
    let (choices, text) = data.split_at(data.len().min((*length).into()));
    let mut dice = Bytes(choices);
    let mut types = Types::default();
    let ty = generate::any_type(&mut types, &mut dice, DEPTH);
    let fields = [TypedField { wit_name: "it".to_owned(), name: "it".to_owned(), ty }];
    let schema = schema::of_fields(&types, &NoDocs, &fields, &[]);
    let validator = jsonschema::draft202012::new(&schema).unwrap_or_else(|error| panic!("{error}\n{schema:#}"));
    let value = generate::any_value(&types, &mut dice, ty);
    survives(&types, &fields, &value);
    if let Ok(text) = std::str::from_utf8(text) {
        is_told(&types, &fields, &validator, text);
    }
});

/// Asserts that the value survives JSON and back. Its text fits within its own length; with one
/// byte less there is no text.
fn survives(types: &Types, fields: &[TypedField], value: &Val) {
    let ty = fields[0].ty;
    let whole = encode::error(types, Some(ty), Some(value), usize::MAX).expect("any value of the type has a text");
    let cut = encode::error(types, Some(ty), Some(value), whole.len() - 1);
    assert!(matches!(cut, Err(encode::EncodeError::TooLong)), "{whole}");
    assert!(encode::error(types, Some(ty), Some(value), whole.len()).is_ok_and(|again| again == whole));
    let text = whole.replacen("{\"error\":", "{\"it\":", 1);
    let back = decode::arguments(types, fields, &text, BYTES_ENOUGH).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(back, [value.clone()], "{text}");
    is_within(types, fields, &text, BYTES_FEW);
}

/// Asserts that a value that is too large is refused for that reason alone.
fn is_within(types: &Types, fields: &[TypedField], text: &str, bytes_max: u64) {
    match decode::arguments(types, fields, text, bytes_max) {
        Ok(values) => {
            let bytes: usize = values.iter().map(weight).sum();
            assert!(bytes as u64 <= bytes_max, "{bytes} bytes for {text}");
        }
        Err(error) => assert!(error.message.contains("host_data"), "{error}: {text}"),
    }
}

/// Asserts that any text converts if the schema accepts it. Otherwise the refusal must name a place
/// in it.
fn is_told(types: &Types, fields: &[TypedField], validator: &jsonschema::Validator, text: &str) {
    let converted = decode::arguments(types, fields, text, BYTES_ENOUGH);
    let Ok(json) = serde_json::from_str::<Value>(text) else {
        assert!(converted.is_err(), "no JSON: {text}");
        return;
    };
    // If a key occurs twice, a map read from JSON has the last value.
    let twice = serde_json::from_str::<Keys>(text).is_ok_and(|keys| keys.0);
    match converted {
        Ok(values) => {
            assert!(!twice && validator.is_valid(&json), "converts and should not: {text}");
            survives(types, fields, &values[0]);
            is_within(types, fields, text, BYTES_FEW);
        }
        Err(error) => {
            let is_left_to_us = generate::is_out_of_range(&error.message);
            assert!(twice || is_left_to_us || !validator.is_valid(&json), "{error}: {text}");
            let mut places = HashSet::new();
            note(&json, Path::ROOT, &mut places);
            let known = places.contains(&error.path) || is_missing(&error, &places);
            assert!(twice || known, "{:?} is not a place of {text}", error.path);
        }
    }
}

/// Collects all places of a value.
fn note(json: &Value, path: Path<'_>, places: &mut HashSet<String>) {
    places.insert(path.to_string());
    match json {
        Value::Array(items) => items.iter().enumerate().for_each(|(at, item)| note(item, path.item(at), places)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| note(value, path.key(key), places)),
        _ => {}
    }
}

/// True if a refusal is about a missing field of an existing object.
fn is_missing(error: &decode::ConvertError, places: &HashSet<String>) -> bool {
    let Some((object, name)) = error.path.rsplit_once('.') else { return false };
    let is_field = name == "it" || name.starts_with("some_field_");
    error.message == "is missing" && is_field && places.contains(object)
}

/// The memory of a value, names and texts included.
fn weight(value: &Val) -> usize {
    let all = |values: &[Val]| values.iter().map(weight).sum::<usize>();
    let maybe = |value: &Option<Box<Val>>| value.as_deref().map_or(0, weight);
    size_of::<Val>()
        + match value {
            Val::String(text) | Val::Enum(text) => text.len(),
            Val::List(values) | Val::Tuple(values) | Val::FixedLengthList(values) => all(values),
            Val::Record(fields) => fields.iter().map(|(name, value)| name.len() + weight(value)).sum(),
            Val::Variant(name, payload) => name.len() + maybe(payload),
            Val::Option(payload) | Val::Result(Ok(payload) | Err(payload)) => maybe(payload),
            Val::Flags(labels) => labels.iter().map(String::len).sum(),
            _ => 0,
        }
}

/// True if some object of a JSON text has a key twice.
struct Keys(bool);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeysOf)
    }
}

struct KeysOf;

impl<'de> Visitor<'de> for KeysOf {
    type Value = Keys;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Keys, E> {
        Ok(Keys(false))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Keys, E> {
        Ok(Keys(false))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Keys, E> {
        Ok(Keys(false))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Keys, E> {
        Ok(Keys(false))
    }

    fn visit_str<E>(self, _: &str) -> Result<Keys, E> {
        Ok(Keys(false))
    }

    fn visit_unit<E>(self) -> Result<Keys, E> {
        Ok(Keys(false))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Keys, A::Error> {
        let mut twice = false;
        while let Some(keys) = items.next_element::<Keys>()? {
            twice |= keys.0;
        }
        Ok(Keys(twice))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
        let mut seen = HashSet::new();
        let mut twice = false;
        while let Some((key, keys)) = map.next_entry::<String, Keys>()? {
            twice |= keys.0 | !seen.insert(key);
        }
        Ok(Keys(twice))
    }
}
