//! The arguments of a call, each as the JSON text that came. A number keeps all its digits, or is refused.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;
use toolkit::Failure;

/// Digits that a number with a fraction or an exponent keeps in any case: what a double has.
const DIGITS_KEPT: usize = 15;

pub struct Arguments<'a> {
    texts: BTreeMap<String, &'a RawValue>,
}

impl<'a> Arguments<'a> {
    pub fn of(arguments_json: &'a str) -> Result<Self, Failure> {
        let texts = serde_json::from_str(arguments_json).map_err(|error| Failure::InvalidInput(error.to_string()))?;
        Ok(Self { texts })
    }

    /// An argument as it came; `None` if it is missing or null.
    pub fn json(&self, name: &str) -> Option<&'a str> {
        self.texts.get(name).map(|text| text.get()).filter(|text| *text != "null")
    }

    /// The value of an argument. A number that would lose digits is the text of it; within a list or
    /// an object it is refused.
    pub fn value(&self, name: &str) -> Result<Option<Value>, Failure> {
        let Some(json) = self.json(name) else { return Ok(None) };
        match inexact(json) {
            None => {
                let value = serde_json::from_str(json);
                value.map(Some).map_err(|error| Failure::InvalidInput(format!("{name:?}: {error}")))
            }
            Some(number) if number == json => Ok(Some(number.into())),
            Some(number) => {
                let problem = format!("{name:?} has the number {number}, whose digits are not all kept there");
                Err(Failure::invalid(problem))
            }
        }
    }
}

/// A number in this JSON text that a value does not hold as it is written.
fn inexact(json: &str) -> Option<&str> {
    let is_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    let mut at = 0;
    while let Some(byte) = json.as_bytes().get(at) {
        let rest = json.as_bytes().get(at..).unwrap_or_default();
        let length = match byte {
            b'"' => text_bytes(rest),
            b'-' | b'0'..=b'9' => rest.iter().take_while(|byte| is_number(**byte)).count(),
            _ => 1,
        };
        let token = json.get(at..at + length).filter(|_| matches!(byte, b'-' | b'0'..=b'9'));
        if let Some(token) = token.filter(|token| !is_exact(token)) {
            return Some(token);
        }
        at += length;
    }
    None
}

/// Bytes of the text that begins here, with its quotation marks.
fn text_bytes(json: &[u8]) -> usize {
    let mut length = 1;
    while let Some(byte) = json.get(length) {
        match byte {
            b'"' => return length + 1,
            b'\\' => length += 2,
            _ => length += 1,
        }
    }
    json.len()
}

fn is_exact(number: &str) -> bool {
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return true;
    }
    let digits = number.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    number.contains(['.', 'e', 'E']) && digits.trim_start_matches('0').len() <= DIGITS_KEPT
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_number_keeps_its_digits_or_is_refused() {
        let text = r#"{"big": 123456789012345678901234567890,
            "long": -0.1234567890123456789, "id": 18446744073709551615,
            "in": {"a": ["1234567890123456789012\"", 123456789012345678901234567890]}, "none": null, "e": 1.5e3}"#;
        let arguments = Arguments::of(text).unwrap();
        let value = |name: &str| arguments.value(name).map_err(|failure| failure.message().to_owned());
        assert_eq!(value("big"), Ok(Some(json!("123456789012345678901234567890"))));
        assert_eq!(value("long"), Ok(Some(json!("-0.1234567890123456789"))));
        assert_eq!(value("id"), Ok(Some(json!(18_446_744_073_709_551_615_u64))));
        assert_eq!(value("e"), Ok(Some(json!(1500.0))));
        assert_eq!((value("none"), value("missing")), (Ok(None), Ok(None)));
        let problem = "\"in\" has the number 123456789012345678901234567890, whose digits are not all kept there";
        assert_eq!(value("in"), Err(problem.to_owned()));
        assert!(arguments.json("in").unwrap().ends_with(", 123456789012345678901234567890]}"));
    }
}
