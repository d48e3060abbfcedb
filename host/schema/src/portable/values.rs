//! Constants and choices in their portable form: `enum` only of texts and next to their type, no
//! `const`, no number that some JSON reader cannot represent.

use serde_json::{Map, Value, json};

use super::PortableDraft;

/// 2^53 − 1: every JSON reader represents integers up to it exactly.
pub(super) const EXACT_MAX: i64 = (1 << 53) - 1;

/// True if a value is or contains a number beyond ±(2^53 − 1).
pub(crate) fn is_inexact(value: &Value) -> bool {
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(signed), ..) => !(-EXACT_MAX..=EXACT_MAX).contains(&signed),
            (None, Some(_), _) => true,
            (None, None, float) => float.is_none_or(|float| float.abs() > EXACT_MAX as f64),
        },
        Value::Array(items) => items.iter().any(is_inexact),
        Value::Object(members) => members.values().any(is_inexact),
        _ => false,
    }
}

/// A list of one type is that type.
pub(super) fn plain_type(ty: &Value) -> Value {
    match ty.as_array().map(Vec::as_slice) {
        Some([only]) => only.clone(),
        _ => ty.clone(),
    }
}

/// Adds `const` and `enum`.
pub(super) fn choices(written: &Map<String, Value>, draft: &mut PortableDraft) {
    if let Some(constant) = written.get("const") {
        return self::constant(constant, draft);
    }
    let Some(choices) = written.get("enum").and_then(Value::as_array) else { return };
    if choices.iter().any(is_inexact) {
        draft.widen();
        return;
    }
    let has_null = choices.contains(&Value::Null);
    let texts = choices.iter().filter(|choice| !choice.is_null());
    if !choices.iter().all(|choice| choice.is_string() || choice.is_null()) || choices.len() == usize::from(has_null) {
        draft.put("enum", choices.clone());
        return;
    }
    let texts: Vec<Value> = texts.cloned().collect();
    if !has_null {
        draft.put("type", "string");
        draft.put("enum", texts);
        return;
    }
    // The list allows null only if the type does.
    draft.members.shift_remove("type");
    draft.put("anyOf", json!([{"type": "string", "enum": texts}, {"type": "null"}]));
}

/// A schema for one value, without `const`.
fn constant(constant: &Value, draft: &mut PortableDraft) {
    match constant {
        Value::String(_) => {
            draft.put("type", "string");
            draft.put("enum", vec![constant.clone()]);
        }
        Value::Null => draft.put("type", "null"),
        Value::Bool(value) => {
            draft.widen();
            draft.put("type", "boolean");
            draft.note = Some(format!("Always {value}."));
        }
        Value::Number(_) if is_inexact(constant) => draft.widen(),
        Value::Number(number) => {
            draft.put("type", if number.is_f64() { "number" } else { "integer" });
            draft.put("minimum", constant.clone());
            draft.put("maximum", constant.clone());
        }
        Value::Array(_) | Value::Object(_) if is_inexact(constant) => draft.widen(),
        Value::Array(_) | Value::Object(_) => draft.put("enum", vec![constant.clone()]),
    }
}
