//! Testing a place with the expression of a filter. Holds no syntax, and no selection of its own.

use crate::place::{Place, Places, TooMany};
use crate::query::{Comparison, Operand, Pattern, RegexCall, Test};
use crate::regexp;
use crate::select::select_from;
use serde_json::{Number, Value};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Whether a place passes a test.
///
/// # Errors
/// [`TooMany`] where the queries in the test look at too many places.
pub fn passes<'value>(test: &'value Test, place: &Place<'value>, places: &Places<'value>) -> Result<bool, TooMany> {
    match test {
        Test::Any(tests) => fold(tests, place, places, true),
        Test::All(tests) => fold(tests, place, places, false),
        Test::Not(test) => Ok(!passes(test, place, places)?),
        Test::Exists(query) => Ok(!select_from(query, place, places)?.is_empty()),
        Test::Compare(left, comparison, right) => {
            let left = value(left, place, places)?;
            let right = value(right, place, places)?;
            Ok(compare(left.as_deref(), *comparison, right.as_deref()))
        }
        Test::Matches(call) => matches(call, place, places),
    }
}

/// Tests in turn until one gives the answer that decides.
fn fold(tests: &[Test], place: &Place<'_>, places: &Places<'_>, deciding: bool) -> Result<bool, TooMany> {
    for test in tests {
        if passes(test, place, places)? == deciding {
            return Ok(deciding);
        }
    }
    Ok(!deciding)
}

fn value<'value>(
    operand: &'value Operand,
    place: &Place<'value>,
    places: &Places<'value>,
) -> Result<Option<Cow<'value, Value>>, TooMany> {
    Ok(match operand {
        Operand::Literal(value) => Some(Cow::Borrowed(value)),
        Operand::Singular(query) | Operand::Value(query) => match select_from(query, place, places)?.as_slice() {
            [only] => Some(Cow::Borrowed(only.value())),
            _ => None,
        },
        Operand::Count(query) => Some(Cow::Owned(Value::from(select_from(query, place, places)?.len()))),
        Operand::Length(operand) => match value(operand, place, places)?.as_deref() {
            Some(Value::String(text)) => Some(Cow::Owned(Value::from(text.chars().count()))),
            Some(Value::Array(elements)) => Some(Cow::Owned(Value::from(elements.len()))),
            Some(Value::Object(members)) => Some(Cow::Owned(Value::from(members.len()))),
            _ => None,
        },
    })
}

/// Compares two values, either of which may be nothing at all (RFC 9535, section 2.3.5.2.2).
fn compare(left: Option<&Value>, comparison: Comparison, right: Option<&Value>) -> bool {
    match comparison {
        Comparison::Equal => equal(left, right),
        Comparison::NotEqual => !equal(left, right),
        Comparison::Less => less(left, right),
        Comparison::LessOrEqual => less(left, right) || equal(left, right),
        Comparison::Greater => less(right, left),
        Comparison::GreaterOrEqual => less(right, left) || equal(left, right),
    }
}

fn equal(left: Option<&Value>, right: Option<&Value>) -> bool {
    match (left, right) {
        (None, None) => true,
        (Some(left), Some(right)) => same(left, right),
        _ => false,
    }
}

/// Equality by value: 2 is 2.0, and the order of members does not matter.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => order(left, right) == Some(Ordering::Equal),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

/// Only numbers and texts have an order.
fn less(left: Option<&Value>, right: Option<&Value>) -> bool {
    match (left, right) {
        (Some(Value::Number(left)), Some(Value::Number(right))) => order(left, right) == Some(Ordering::Less),
        (Some(Value::String(left)), Some(Value::String(right))) => left < right,
        _ => false,
    }
}

fn order(left: &Number, right: &Number) -> Option<Ordering> {
    // Whole numbers are compared as such: as floating point, neighbours beyond 2^53 would be equal.
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

fn matches<'value>(call: &'value RegexCall, place: &Place<'value>, places: &Places<'value>) -> Result<bool, TooMany> {
    let text = value(&call.text, place, places)?;
    let Some(Value::String(text)) = text.as_deref() else { return Ok(false) };
    let computed = match &call.pattern {
        Pattern::Written(regex) => return Ok(regex.is_match(text)),
        Pattern::Computed(operand) => value(operand, place, places)?,
    };
    let Some(Value::String(pattern)) = computed.as_deref() else { return Ok(false) };
    // An expression from the document that is not valid matches nothing, as RFC 9535 wants it.
    Ok(regexp::compile(pattern, call.whole).is_ok_and(|regex| regex.is_match(text)))
}
