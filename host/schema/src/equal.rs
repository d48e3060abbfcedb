//! Equality of JSON values, in time proportional to their size.
//!
//! The validator's own comparison visits members in another order twice, members within them four
//! times, and so on. With forty levels it would never finish.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::{BuildHasher as _, Hash as _, Hasher};

use jsonschema::json::cmp;
use serde_json::Value;

use super::meter::pay;

/// Steps for a value that is compared, hashed or copied.
const VALUE_STEPS: u64 = 20;

/// Steps for an entry of a large table, which is not in the processor's cache.
const ENTRY_STEPS: u64 = 200;

/// Up to this length arrays are compared pair by pair, which is cheaper than hashing.
const PAIRS_LENGTH_MAX: usize = 8;

/// JSON equality: numbers by value, members in any order. False once the steps are used up.
pub(super) fn are_equal(one: &Value, other: &Value) -> bool {
    if !pay(VALUE_STEPS) {
        return false;
    }
    match (one, other) {
        (Value::String(one), Value::String(other)) => one.len() == other.len() && pay(one.len() as u64) && one == other,
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| are_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| {
                    pay(name.len() as u64) && other.get(name).is_some_and(|other| are_equal(value, other))
                })
        }
        (Value::Array(_) | Value::Object(_) | Value::String(_), _) => false,
        // From here on, neither value is a container of the other's kind.
        _ => !matches!(other, Value::Array(_) | Value::Object(_)) && cmp::equal(one, other),
    }
}

/// True if no two of these are equal. Also true once the steps are used up.
pub(super) fn all_differ(values: &[Value]) -> bool {
    if values.len() <= PAIRS_LENGTH_MAX {
        let mut rest = values;
        while let Some((first, others)) = rest.split_first() {
            if others.iter().any(|other| are_equal(first, other)) {
                return false;
            }
            rest = others;
        }
        return true;
    }
    let state = RandomState::new();
    let mut seen: HashMap<u64, &Value> = HashMap::new();
    // Values whose hash collides: hardly ever any.
    let mut more: Vec<&Value> = Vec::new();
    for value in values {
        let Some(hash) = hash(value, &state).filter(|_| pay(ENTRY_STEPS)) else { return true };
        match seen.entry(hash) {
            Entry::Vacant(place) => {
                place.insert(value);
            }
            Entry::Occupied(other) => {
                if are_equal(value, other.get()) || more.iter().any(|other| are_equal(value, other)) {
                    return false;
                }
                more.push(value);
            }
        }
    }
    true
}

/// A hash of a value: equal values have the same. `None` once the steps are used up.
fn hash(value: &Value, state: &RandomState) -> Option<u64> {
    if !pay(2 * VALUE_STEPS) {
        return None;
    }
    let mut hasher = state.build_hasher();
    match value {
        Value::Null => hasher.write_u8(0),
        Value::Bool(value) => value.hash(&mut hasher),
        // Adding zero makes negative zero positive.
        Value::Number(number) => number.as_f64().map(|number| (number + 0.0).to_bits()).hash(&mut hasher),
        Value::String(text) => {
            pay(text.len() as u64).then_some(())?;
            text.hash(&mut hasher);
        }
        Value::Array(elements) => {
            for element in elements {
                hasher.write_u64(hash(element, state)?);
            }
        }
        Value::Object(members) => {
            let mut all = 0_u64;
            for (name, member) in members {
                pay(name.len() as u64).then_some(())?;
                all = all.wrapping_add(state.hash_one((name, hash(member, state)?)));
            }
            hasher.write_u64(all);
        }
    }
    Some(hasher.finish())
}

/// Uses steps for a copy of a value with everything in it.
pub(super) fn pay_for_all_of(value: &Value) -> bool {
    let more = match value {
        Value::String(text) => text.len() as u64,
        Value::Object(members) => members.keys().map(|name| name.len() as u64).sum(),
        _ => 0,
    };
    pay(VALUE_STEPS.saturating_add(more))
        && match value {
            Value::Array(elements) => elements.iter().all(pay_for_all_of),
            Value::Object(members) => members.values().all(pay_for_all_of),
            _ => true,
        }
}
