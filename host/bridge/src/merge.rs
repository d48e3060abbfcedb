//! Two schemas that both apply, as one. Where that has no form, the result accepts more than both.
use std::io;

use serde_json::{Map, Value, json};

/// Keywords of which the larger value is the narrower one.
const LEAST: [&str; 5] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];

/// Keywords of which the smaller value is the narrower one.
const MOST: [&str; 5] = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];

/// Both schemas as one. Texts of the first win.
pub(crate) fn merged(mut one: Map<String, Value>, other: Value) -> Map<String, Value> {
    let Value::Object(mut other) = other else { return one };
    // A closed member of an `allOf` would refuse the properties of the others.
    if !one.is_empty() && !other.is_empty() {
        [&mut one, &mut other].into_iter().for_each(open);
    }
    for (key, value) in other {
        let Some(mine) = one.get_mut(&key) else {
            one.insert(key, value);
            continue;
        };
        match key.as_str() {
            "properties" => properties(mine, value),
            "required" => union(mine, value),
            "type" => kinds(mine, &value),
            "enum" => both(mine, &value),
            _ if LEAST.contains(&key.as_str()) => narrower(mine, value, |mine, other| other > mine),
            _ if MOST.contains(&key.as_str()) => narrower(mine, value, |mine, other| other < mine),
            "items" | "additionalProperties" => nested(mine, value),
            // Of two choices, patterns or texts the first stays.
            _ => {}
        }
    }
    one
}

/// Opens a closed schema that does not stand alone, and its variants: it would refuse the
/// properties of the others.
pub(crate) fn open(schema: &mut Map<String, Value>) {
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
    let variants = schema.get_mut("anyOf").and_then(Value::as_array_mut);
    variants.into_iter().flatten().filter_map(Value::as_object_mut).for_each(open);
}

/// The bytes of a value as compact JSON.
pub(crate) fn json_bytes(value: &Value) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting does not fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

fn properties(mine: &mut Value, others: Value) {
    let (Value::Object(mine), Value::Object(others)) = (mine, others) else { return };
    for (name, other) in others {
        match mine.get_mut(&name) {
            Some(property) => nested(property, other),
            None => drop(mine.insert(name, other)),
        }
    }
}

fn nested(mine: &mut Value, other: Value) {
    if let Value::Object(own) = mine {
        *mine = Value::Object(merged(std::mem::take(own), other));
    }
}

fn union(mine: &mut Value, others: Value) {
    let (Value::Array(mine), Value::Array(others)) = (mine, others) else { return };
    for other in others {
        if !mine.contains(&other) {
            mine.push(other);
        }
    }
}

/// Types that both have; those of the first if there is none.
fn kinds(mine: &mut Value, other: &Value) {
    let list = |kinds: &Value| match kinds {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let others = list(other);
    // An integer is a number.
    let fits = |kind: &Value| others.contains(kind) || (*kind == json!("integer") && others.contains(&json!("number")));
    let mut common: Vec<Value> = list(mine).into_iter().filter(fits).collect();
    match common.len() {
        0 => {}
        1 => *mine = common.pop().unwrap_or_default(),
        _ => *mine = common.into(),
    }
}

/// Values that both name; those of the first if there is none.
fn both(mine: &mut Value, other: &Value) {
    if let (Value::Array(values), Value::Array(others)) = (mine, other)
        && values.iter().any(|value| others.contains(value))
    {
        values.retain(|value| others.contains(value));
    }
}

fn narrower(mine: &mut Value, other: Value, is_narrower: impl Fn(f64, f64) -> bool) {
    if let (Some(number), Some(others)) = (mine.as_f64(), other.as_f64())
        && is_narrower(number, others)
    {
        *mine = other;
    }
}
