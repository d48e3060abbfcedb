//! JSON → component values, driven by the types: no JSON tree in between.
use std::cell::{Cell, RefCell};
use std::fmt;

use base64::Engine as _;
use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use wasmtime::component::Val;

use super::fields::NamedFields;
use super::path::Path;
use super::ty::{Case, Int, Ty, TyId, TypedField, Types};

/// Greatest number up to which an integer that was read as a float is the one that was written:
/// 2^53. The parser has rounded greater ones, and those past 64 bits.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// JSON that is not a value of its type: where, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ConvertError {
    /// Such as `$.days[3].temp`.
    pub path: String,
    /// Such as `expected a number`.
    pub message: String,
}

/// Reads the arguments of a function, in the order of its parameters, from a JSON object.
///
/// `bytes_max` bounds the values' size in the host's memory: `{}` can stand for a record with a
/// thousand optional fields, each a value.
///
/// # Errors
/// The first thing that does not fit, by its path.
pub(crate) fn arguments(
    types: &Types,
    parameters: &[TypedField],
    json: &str,
    bytes_max: u64,
) -> Result<Vec<Val>, ConvertError> {
    let reading = ValueReading { types, problem: RefCell::default(), bytes_left: Cell::new(bytes_max) };
    let fields = NamedFields { reading: &reading, fields: parameters, path: Path::ROOT };
    let named = finish(&reading, json, |json| json.deserialize_map(fields))?;
    Ok(named.into_iter().map(|(_, value)| value).collect())
}

/// Reads one value.
///
/// # Errors
/// As [`arguments`].
#[cfg(test)]
pub(crate) fn value(types: &Types, ty: TyId, json: &str, bytes_max: u64) -> Result<Val, ConvertError> {
    let reading = ValueReading { types, problem: RefCell::default(), bytes_left: Cell::new(bytes_max) };
    finish(&reading, json, |json| Seed { reading: &reading, ty, path: Path::ROOT }.deserialize(json))
}

fn finish<'j, T>(
    reading: &ValueReading<'_>,
    json: &'j str,
    read: impl FnOnce(&mut serde_json::Deserializer<serde_json::de::StrRead<'j>>) -> serde_json::Result<T>,
) -> Result<T, ConvertError> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let read = read(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    read.map_err(|error| {
        let problem = reading.problem.borrow_mut().take();
        problem.unwrap_or_else(|| {
            // The parser itself only says so of a whole that is not an object.
            let message = if error.is_data() { "expected an object".to_owned() } else { format!("not JSON: {error}") };
            ConvertError { path: "$".to_owned(), message }
        })
    })
}

/// State of one reading.
pub(super) struct ValueReading<'a> {
    pub(super) types: &'a Types,
    /// The problem, if our own text is better than the parser's.
    problem: RefCell<Option<ConvertError>>,
    bytes_left: Cell<u64>,
}

impl ValueReading<'_> {
    pub(super) fn fail<T, E: serde::de::Error>(&self, path: &Path<'_>, message: impl Into<String>) -> Result<T, E> {
        *self.problem.borrow_mut() = Some(ConvertError { path: path.to_string(), message: message.into() });
        Err(E::custom("does not convert"))
    }

    /// Counts the size of a value, or of a part of one.
    pub(super) fn charge<E: serde::de::Error>(&self, path: &Path<'_>, bytes: usize) -> Result<(), E> {
        match self.bytes_left.get().checked_sub(bytes as u64) {
            Some(left) => {
                self.bytes_left.set(left);
                Ok(())
            }
            None => self.fail(path, "the values take more of the host's memory than the limit \"host_data\""),
        }
    }
}

/// Reads one value of a type.
#[derive(Clone, Copy)]
pub(super) struct Seed<'a, 'p> {
    pub(super) reading: &'a ValueReading<'a>,
    pub(super) ty: TyId,
    pub(super) path: Path<'p>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Val;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Val, D::Error> {
        self.reading.charge::<D::Error>(&self.path, size_of::<Val>())?;
        deserializer.deserialize_any(self)
    }
}

impl Seed<'_, '_> {
    fn kind(&self) -> &Ty {
        self.reading.types.get(self.ty)
    }

    fn at<'q>(&self, ty: TyId, path: Path<'q>) -> Seed<'_, 'q> {
        Seed { reading: self.reading, ty, path }
    }

    fn fail<T, E: serde::de::Error>(&self, message: impl Into<String>) -> Result<T, E> {
        self.reading.fail(&self.path, message)
    }

    fn expected<T, E: serde::de::Error>(&self) -> Result<T, E> {
        self.fail(format!("expected {}", self.wanted()))
    }

    /// What was expected, in words.
    fn wanted(&self) -> String {
        match self.kind() {
            Ty::Bool => "true or false".to_owned(),
            Ty::Int(int) => {
                let (least, greatest) = int.range();
                format!("an integer from {least} to {greatest}")
            }
            Ty::F32 => "a number within ±3.4028235e38, \"NaN\", \"Infinity\" or \"-Infinity\"".to_owned(),
            Ty::F64 => "a number, \"NaN\", \"Infinity\" or \"-Infinity\"".to_owned(),
            Ty::Char => "a string of one character".to_owned(),
            Ty::Text => "a string".to_owned(),
            Ty::Bytes => "a string in base64".to_owned(),
            Ty::List(_) => "an array".to_owned(),
            Ty::FixedList(_, length) => format!("an array of {length} items"),
            Ty::Tuple(types) => format!("an array of {} items", types.len()),
            Ty::Record(_) => "an object".to_owned(),
            Ty::Variant(cases) => format!("one of {}", listed(cases.iter().map(|case| case.name.as_str()))),
            Ty::Enum(labels) => format!("one of {}", listed(labels.iter().map(String::as_str))),
            Ty::Flags(labels) => format!("an array of {}", listed(labels.iter().map(String::as_str))),
            Ty::Option(inner) if self.reading.types.is_optional(*inner) => "null or an object with \"some\"".to_owned(),
            Ty::Option(inner) => format!("null or {}", self.at(*inner, self.path).wanted()),
            Ty::Result(..) => "an object with \"ok\" or \"err\"".to_owned(),
            // No parameter has one.
            Ty::Stream(_) | Ty::Future(_) => "nothing".to_owned(),
        }
    }

    fn integer<E: serde::de::Error>(&self, int: Int, value: i128) -> Result<Val, E> {
        let converted = match int {
            Int::S8 => value.try_into().map(Val::S8).ok(),
            Int::U8 => value.try_into().map(Val::U8).ok(),
            Int::S16 => value.try_into().map(Val::S16).ok(),
            Int::U16 => value.try_into().map(Val::U16).ok(),
            Int::S32 => value.try_into().map(Val::S32).ok(),
            Int::U32 => value.try_into().map(Val::U32).ok(),
            Int::S64 => value.try_into().map(Val::S64).ok(),
            Int::U64 => value.try_into().map(Val::U64).ok(),
        };
        converted.map_or_else(|| self.expected(), Ok)
    }

    /// Wraps a payload, which is a value of its own, into an option.
    fn some<E: serde::de::Error>(&self, value: Result<Val, E>) -> Result<Val, E> {
        self.reading.charge(&self.path, size_of::<Val>())?;
        value.map(|value| Val::Option(Some(Box::new(value))))
    }

    /// A name of the type, copied into a value.
    fn name<E: serde::de::Error>(&self, name: &str) -> Result<String, E> {
        self.reading.charge(&self.path, name.len())?;
        Ok(name.to_owned())
    }

    /// The seed of an option's payload, if it needs no wrapper.
    fn bare(&self) -> Option<Self> {
        let Ty::Option(inner) = self.kind() else { return None };
        let bare = Seed { ty: *inner, ..*self };
        (!self.reading.types.is_optional(*inner)).then_some(bare)
    }

    fn floating<E: serde::de::Error>(&self, value: f64) -> Result<Val, E> {
        match self.kind() {
            Ty::F64 => Ok(Val::Float64(value)),
            // The usual spelling of the largest one is greater than it, and rounds to it.
            Ty::F32 if (value as f32).is_finite() => Ok(Val::Float32(value as f32)),
            Ty::Int(int) if value.fract() == 0.0 && value.abs() <= EXACT_MAX => self.integer(*int, value as i128),
            Ty::Int(int) if int.is_wide() && value.fract() == 0.0 => {
                self.fail(format!("expected {}, and this one was rounded: give its digits as a string", self.wanted()))
            }
            _ => self.expected(),
        }
    }

    fn text<E: serde::de::Error>(&self, text: &str) -> Result<Val, E> {
        match self.kind() {
            Ty::Text => {
                self.reading.charge(&self.path, text.len())?;
                Ok(Val::String(text.to_owned()))
            }
            Ty::Char => {
                let mut characters = text.chars();
                match (characters.next(), characters.next()) {
                    (Some(only), None) => Ok(Val::Char(only)),
                    _ => self.expected(),
                }
            }
            Ty::Bytes => self.bytes(text),
            Ty::Int(int) if int.is_wide() => match digits(text) {
                Some(value) => self.integer(*int, value),
                None => self.expected(),
            },
            Ty::F32 | Ty::F64 => match special(text) {
                Some(value) if matches!(self.kind(), Ty::F32) => Ok(Val::Float32(value as f32)),
                Some(value) => Ok(Val::Float64(value)),
                None => decimal(text).map_or_else(|| self.expected(), |value| self.floating(value)),
            },
            Ty::Enum(labels) if labels.iter().any(|label| label == text) => self.name(text).map(Val::Enum),
            Ty::Variant(cases) => match cases.iter().find(|case| case.name == text) {
                Some(Case { payload: None, .. }) => Ok(Val::Variant(self.name(text)?, None)),
                Some(_) => self.fail(format!("expected an object: the case {text:?} has a value")),
                None => self.expected(),
            },
            _ => self.expected(),
        }
    }

    fn bytes<E: serde::de::Error>(&self, text: &str) -> Result<Val, E> {
        // To the engine, each byte is a value.
        self.reading.charge(&self.path, (text.len() / 4 * 3).saturating_mul(size_of::<Val>()))?;
        match BASE64.decode(text) {
            Ok(bytes) => Ok(Val::List(bytes.into_iter().map(Val::U8).collect())),
            Err(_) => self.expected(),
        }
    }

    fn items<'de, A: SeqAccess<'de>>(
        &self,
        mut items: A,
        mut ty_at: impl FnMut(usize) -> Option<TyId>,
    ) -> Result<Vec<Val>, A::Error> {
        let mut values = Vec::new();
        loop {
            let index = values.len();
            let Some(ty) = ty_at(index) else {
                return match items.next_element::<serde::de::IgnoredAny>()? {
                    None => Ok(values),
                    Some(_) => self.expected(),
                };
            };
            match items.next_element_seed(self.at(ty, self.path.item(index)))? {
                Some(value) => values.push(value),
                None => return Ok(values),
            }
        }
    }

    /// An object with exactly one of some keys.
    fn tagged<'de, A: MapAccess<'de>>(
        &self,
        mut map: A,
        payload_of: impl Fn(&str) -> Option<Option<TyId>>,
    ) -> Result<(String, Option<Val>), A::Error> {
        let Some(key) = map.next_key::<String>()? else { return self.expected() };
        let Some(payload) = payload_of(&key) else { return self.expected() };
        let path = self.path.key(&key);
        let value = match payload {
            Some(ty) => Some(map.next_value_seed(self.at(ty, path))?),
            None => {
                map.next_value_seed(Null { reading: self.reading, path })?;
                None
            }
        };
        if map.next_key::<serde::de::IgnoredAny>()?.is_some() {
            return self.fail("expected an object with one key");
        }
        Ok((key, value))
    }

    fn flags<'de, A: SeqAccess<'de>>(&self, labels: &[String], mut items: A) -> Result<Val, A::Error> {
        let mut set: Vec<String> = Vec::new();
        while let Some(label) = items.next_element_seed(FlagLabel { seed: self, index: set.len(), labels })? {
            if set.contains(&label) {
                return self.reading.fail(&self.path.item(set.len()), format!("{label:?} appears twice"));
            }
            set.push(label);
        }
        Ok(Val::Flags(set))
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Val;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.wanted())
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Val, E> {
        match self.bare() {
            Some(bare) => self.some(bare.visit_bool(value)),
            None if matches!(self.kind(), Ty::Bool) => Ok(Val::Bool(value)),
            None => self.expected(),
        }
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Val, E> {
        match (self.bare(), self.kind()) {
            (Some(bare), _) => self.some(bare.visit_i64(value)),
            (None, Ty::Int(int)) => self.integer(*int, value.into()),
            (None, _) => self.floating(value as f64),
        }
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Val, E> {
        match (self.bare(), self.kind()) {
            (Some(bare), _) => self.some(bare.visit_u64(value)),
            (None, Ty::Int(int)) => self.integer(*int, value.into()),
            (None, _) => self.floating(value as f64),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Val, E> {
        match self.bare() {
            Some(bare) => self.some(bare.visit_f64(value)),
            None => self.floating(value),
        }
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Val, E> {
        match self.bare() {
            Some(bare) => self.some(bare.visit_str(text)),
            None => self.text(text),
        }
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Val, E> {
        if matches!(self.kind(), Ty::Option(_)) { Ok(Val::Option(None)) } else { self.expected() }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Val, A::Error> {
        if let Some(bare) = self.bare() {
            return self.some(bare.visit_seq(items));
        }
        match self.kind() {
            Ty::List(item) => self.items(items, |_| Some(*item)).map(Val::List),
            Ty::FixedList(item, length) => {
                let length = *length as usize;
                let values = self.items(items, |index| (index < length).then_some(*item))?;
                if values.len() == length { Ok(Val::FixedLengthList(values)) } else { self.expected() }
            }
            Ty::Tuple(types) => {
                let values = self.items(items, |index| types.get(index).copied())?;
                if values.len() == types.len() { Ok(Val::Tuple(values)) } else { self.expected() }
            }
            Ty::Flags(labels) => self.flags(labels, items),
            _ => self.expected(),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Val, A::Error> {
        if let Some(bare) = self.bare() {
            return self.some(bare.visit_map(map));
        }
        match self.kind() {
            Ty::Record(fields) => {
                let fields = NamedFields { reading: self.reading, fields, path: self.path };
                fields.visit_map(map).map(Val::Record)
            }
            Ty::Variant(cases) => {
                let payload_of = |key: &str| {
                    // A case without a value can only be a plain string.
                    cases.iter().find(|case| case.name == key && case.payload.is_some()).map(|case| case.payload)
                };
                let (case, payload) = self.tagged(map, payload_of)?;
                self.reading.charge(&self.path, case.len())?;
                Ok(Val::Variant(case, payload.map(Box::new)))
            }
            Ty::Result(ok, err) => {
                let payload_of = |key: &str| match key {
                    "ok" => Some(*ok),
                    "err" => Some(*err),
                    _ => None,
                };
                let (key, payload) = self.tagged(map, payload_of)?;
                let payload = payload.map(Box::new);
                Ok(Val::Result(if key == "ok" { Ok(payload) } else { Err(payload) }))
            }
            // An option of an option: the payload is wrapped in an object, so that an inner `null`
            // differs from the outer one.
            Ty::Option(inner) => {
                let (_, value) = self.tagged(map, |key| (key == "some").then_some(Some(*inner)))?;
                Ok(Val::Option(value.map(Box::new)))
            }
            _ => self.expected(),
        }
    }
}

/// Reads one label of a set of flags.
struct FlagLabel<'a, 'b, 'p> {
    seed: &'b Seed<'a, 'p>,
    index: usize,
    labels: &'b [String],
}

impl<'de> DeserializeSeed<'de> for FlagLabel<'_, '_, '_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        let path = self.seed.path.item(self.index);
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(label) if self.labels.contains(&label) => {
                self.seed.reading.charge::<D::Error>(&path, size_of::<String>() + label.len())?;
                Ok(label)
            }
            _ => {
                let known = listed(self.labels.iter().map(String::as_str));
                self.seed.reading.fail(&path, format!("expected one of {known}"))
            }
        }
    }
}

/// Reads `null`.
struct Null<'a, 'p> {
    reading: &'a ValueReading<'a>,
    path: Path<'p>,
}

impl<'de> DeserializeSeed<'de> for Null<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::Null => Ok(()),
            _ => self.reading.fail(&self.path, "expected null"),
        }
    }
}

/// Names, as lists in messages show them.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

/// A whole number in decimal digits, without leading zeros, plus sign or `-0`: exactly one text for
/// each.
fn digits(text: &str) -> Option<i128> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let canonical = match unsigned.as_bytes() {
        b"0" => unsigned.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.len() < 20 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if canonical { text.parse().ok() } else { None }
}

/// A finite float from its decimal digits, with a fraction and an exponent or without.
fn decimal(text: &str) -> Option<f64> {
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut halves = text.strip_prefix('-').unwrap_or(text).splitn(2, ['e', 'E']);
    let is_mantissa = halves.next().is_some_and(|half| half.splitn(2, '.').all(are_digits));
    let is_exponent = |half: &str| are_digits(half.strip_prefix(['+', '-']).unwrap_or(half));
    if !is_mantissa || !halves.next().is_none_or(is_exponent) {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// A float that JSON numbers cannot express, from its text.
fn special(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Standard alphabet, padding required. Bits after the last byte are ignored, since the schema
/// cannot forbid them.
const BASE64: base64::engine::GeneralPurpose = base64::engine::GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    base64::engine::GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);
