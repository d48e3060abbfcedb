//! A JSON value as the validator sees it: every access is paid for ([`super::meter`]).
//!
//! Once the steps are used up, objects and arrays have no members, texts no characters, and nothing
//! equals anything. The type of a value stays the same, so the validator meets nothing unexpected.

use std::borrow::Cow;
use std::sync::OnceLock;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object};
use serde_json::{Map, Value};

use super::equal;
use super::meter::{pay, rates};

/// Steps of accessing one value: a call or two, and a comparison.
const ACCESS_STEPS: u64 = 10;

/// Steps of finding a member by name: hashing it, and a probe.
const FIND_STEPS: u64 = 20;

/// Bytes of a text that one step counts or compares.
const BYTES_PER_STEP: usize = 4;

/// Steps per digit of dividing a number, which is a fraction of integers then.
const DIGIT_STEPS: u64 = 100;

/// The number that stands for all others once the steps are used up.
static ZERO: OnceLock<serde_json::Number> = OnceLock::new();

/// The validator's view of JSON.
pub(super) struct Metered;

/// One value.
#[derive(Clone, Copy)]
pub(super) struct MeteredValue<'a>(pub(super) &'a Value);

/// The members of an object.
pub(super) struct Members<'a>(&'a Map<String, Value>);

/// The elements of an array.
pub(super) struct Elements<'a>(&'a [Value]);

/// Iterates over members.
pub(super) struct EachMember<'a>(serde_json::map::Iter<'a>);

/// Iterates over elements.
pub(super) struct EachElement<'a>(std::slice::Iter<'a, Value>);

impl Json for Metered {
    type Node<'a> = MeteredValue<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    const KEYS_PER_LOOKUP: usize = 2;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, check: impl FnOnce(MeteredValue<'_>) -> T) -> T {
        if let Value::String(kept) = buffer {
            kept.clear();
            kept.push_str(string);
        } else {
            *buffer = Value::String(string.to_owned());
        }
        check(MeteredValue(buffer))
    }
}

impl<'a> Node<'a, Metered> for MeteredValue<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = &'a serde_json::Number;

    fn as_object(&self) -> Option<Members<'a>> {
        pay(ACCESS_STEPS);
        self.0.as_object().map(Members)
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        pay(ACCESS_STEPS);
        self.0.as_array().map(|elements| Elements(elements))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_str();
        let paid = pay(ACCESS_STEPS + text.map_or(0, reading_steps));
        text.map(|text| Cow::Borrowed(if paid { text } else { "" }))
    }

    fn as_number(&self) -> Option<&'a serde_json::Number> {
        let number = self.0.as_number();
        let divided = rates().divided.map_or(0, |divided| divided.saturating_add(dividing_steps(number)));
        // A number stays a number, paid for or not: 0 is divided at once.
        if pay(ACCESS_STEPS.saturating_add(divided)) { number } else { number.map(|_| ZERO.get_or_init(|| 0.into())) }
    }

    fn as_boolean(&self) -> Option<bool> {
        pay(ACCESS_STEPS);
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        pay(ACCESS_STEPS);
        JsonType::from(self.0)
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.0.as_str()?;
        let paid = pay(ACCESS_STEPS + (text.len() / BYTES_PER_STEP) as u64);
        Some(if paid { text.chars().count() as u64 } else { 0 })
    }

    fn equals_value(&self, expected: &Value) -> bool {
        equal::are_equal(self.0, expected)
    }

    /// Called for each failing place that is reported.
    fn to_value(&self) -> Cow<'a, Value> {
        let rates = rates();
        let paid = pay(rates.problem) && (!rates.problems_copy || equal::pay_for_all_of(self.0));
        if paid { Cow::Borrowed(self.0) } else { Cow::Owned(Value::Null) }
    }

    fn identity(&self) -> Option<NodeIdentity> {
        pay(ACCESS_STEPS);
        Some(NodeIdentity::new(std::ptr::from_ref::<Value>(self.0).addr()))
    }
}

/// The steps of dividing this number.
fn dividing_steps(number: Option<&serde_json::Number>) -> u64 {
    number.and_then(serde_json::Number::as_f64).map_or(0, digits_steps)
}

/// The steps for the digits of a number in a division.
pub(super) fn digits_steps(number: f64) -> u64 {
    // At most 324 of them.
    let digits = if number == 0.0 { 1.0 } else { number.abs().log10().abs() + 1.0 };
    DIGIT_STEPS.saturating_mul(digits as u64)
}

/// The steps of reading a whole text.
fn reading_steps(text: &str) -> u64 {
    let bytes = text.len() as u64;
    let rates = rates();
    let squared = if rates.text_squared { bytes.saturating_mul(bytes) } else { 0 };
    bytes.saturating_mul(rates.text_byte).saturating_add(squared) + (text.len() / BYTES_PER_STEP) as u64
}

impl<'a> Object<'a, Metered> for Members<'a> {
    type Node = MeteredValue<'a>;
    type MemberName = &'a str;
    type MembersIter = EachMember<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<MeteredValue<'a>> {
        let paid = pay(FIND_STEPS + (key.len() / BYTES_PER_STEP) as u64);
        self.0.get(key.as_str()).filter(|_| paid).map(MeteredValue)
    }

    fn members(&self) -> EachMember<'a> {
        EachMember(self.0.iter())
    }
}

impl<'a> Iterator for EachMember<'a> {
    type Item = (&'a str, MeteredValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.0.next()?;
        let rates = rates();
        let bytes = name.len() as u64;
        let paid = pay(rates.value + FIND_STEPS + bytes.saturating_mul(rates.name_byte).saturating_add(bytes));
        paid.then_some((name.as_str(), MeteredValue(value)))
    }
}

impl<'a> Array<'a, Metered> for Elements<'a> {
    type Node = MeteredValue<'a>;
    type ElementsIter = EachElement<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> EachElement<'a> {
        EachElement(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        equal::all_differ(self.0)
    }
}

impl<'a> Iterator for EachElement<'a> {
    type Item = MeteredValue<'a>;

    fn next(&mut self) -> Option<MeteredValue<'a>> {
        let element = self.0.next()?;
        pay(rates().value + ACCESS_STEPS).then_some(MeteredValue(element))
    }
}
