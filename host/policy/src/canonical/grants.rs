//! The canonical form of grants: sorted wherever the manifest's order has no meaning.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::grants::Grants;
use crate::rights::ALL;

/// The grants; null if there are none.
pub(super) fn form(grants: &Grants) -> Value {
    match sorted(ALL.iter().map(|right| (right.section, (right.canonical)(right, grants)))) {
        Value::Object(parts) if parts.is_empty() => Value::Null,
        parts => parts,
    }
}

/// An object of the non-empty values, with its keys in order.
pub(crate) fn sorted<'n>(entries: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
    let entries: BTreeMap<&str, Value> = entries.into_iter().filter(|(_, value)| !is_empty(value)).collect();
    Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// True for null, and for empty lists and objects.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        _ => false,
    }
}
