//! The head of a `SKILL.md`: YAML between two lines of dashes, as one JSON object.
//!
//! Plain values have the types of YAML 1.2's core schema. Anchors, aliases and tags are refused:
//! clients compare the object with their own reading of the head, and readers differ in these.
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// Longest head, in bytes. 16 KiB, as a tool's description: clients show it before they load a
/// skill.
const BYTES_MAX: usize = 16 * 1024;

/// Deepest nesting. The fields of Agent Skills have two levels.
const DEPTH_MAX: usize = 16;

/// The line that begins and ends the head.
const DASHES: &str = "---";

/// Longest description, in characters (Agent Skills, "description field").
const DESCRIPTION_CHARS_MAX: usize = 1_024;

/// Longest name, in characters (Agent Skills, "name field").
const NAME_CHARS_MAX: usize = 64;

/// The head of a skill, with its two required fields.
#[derive(Debug, PartialEq)]
pub struct Frontmatter {
    pub name: String,
    pub description: String,
    /// All fields, these two among them.
    pub fields: Map<String, Value>,
}

/// Reads the head of this text. `Err` is the end of a sentence that begins with the file.
pub fn read(text: &str) -> Result<Frontmatter, String> {
    let fields = object(head(text)?)?;
    let field = |key: &str| match fields.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("has a {key} that is not text")),
        None => Err(format!("has no {key} in its head")),
    };
    let name = field("name")?;
    let description = field("description")?;
    if !is_name(&name) {
        return Err(format!(
            "has the name {name:?}: write 1 to {NAME_CHARS_MAX} of a-z, 0-9 and single hyphens between them"
        ));
    }
    if description.trim().is_empty() || description.chars().count() > DESCRIPTION_CHARS_MAX {
        return Err(format!("must have a description of 1 to {DESCRIPTION_CHARS_MAX} characters"));
    }
    Ok(Frontmatter { name, description, fields })
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= NAME_CHARS_MAX && name.split('-').all(|part| !part.is_empty() && part.bytes().all(plain))
}

/// The text between the lines of dashes.
fn head(text: &str) -> Result<&str, String> {
    let begins = || format!("must begin with a line {DASHES}, and its head end with another");
    let is_dashes = |line: &str| line.trim_end() == DASHES;
    let first = text.split_inclusive('\n').next().filter(|line| is_dashes(line)).ok_or_else(begins)?;
    let mut end = first.len();
    for line in text.get(end..).unwrap_or_default().split_inclusive('\n') {
        if is_dashes(line) {
            return text.get(first.len()..end).ok_or_else(begins);
        }
        end += line.len();
        if end > BYTES_MAX {
            return Err(format!("has a head of more than {BYTES_MAX} bytes"));
        }
    }
    Err(begins())
}

/// A list or an object that is being read.
enum Open {
    List(Vec<Value>),
    /// With the key whose value comes next.
    Object(Map<String, Value>, Option<String>),
}

fn object(yaml: &str) -> Result<Map<String, Value>, String> {
    let mut open: Vec<Open> = Vec::new();
    let mut whole = None;
    for event in Parser::new_from_str(yaml) {
        let (event, _) = event.map_err(|error| format!("has a head that is not YAML: {error}"))?;
        let value = match event {
            Event::Alias(_) => return Err(refused("an alias")),
            Event::Scalar(_, _, anchor, _) | Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _)
                if anchor > 0 =>
            {
                return Err(refused("an anchor"));
            }
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                return Err(refused("a tag"));
            }
            Event::Scalar(text, style, ..) => {
                if let Some(Open::Object(fields, key @ None)) = open.last_mut() {
                    if fields.contains_key(text.as_ref()) {
                        return Err(format!("has {text:?} twice in its head"));
                    }
                    *key = Some(text.into_owned());
                    continue;
                }
                scalar(&text, style)?
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= DEPTH_MAX => {
                return Err(format!("has a head that is nested deeper than {DEPTH_MAX}"));
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if awaits_key(&open) => {
                return Err("has a key in its head that is not text".to_owned());
            }
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::Object(Map::new(), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(items)) => Value::Array(items),
                Some(Open::Object(fields, _)) => Value::Object(fields),
                None => continue,
            },
            Event::DocumentStart(_) if whole.is_some() => return Err("has several documents in its head".to_owned()),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                continue;
            }
        };
        match open.last_mut() {
            None => whole = Some(value),
            Some(Open::List(items)) => items.push(value),
            Some(Open::Object(fields, key)) => {
                if let Some(key) = key.take() {
                    fields.insert(key, value);
                }
            }
        }
    }
    match whole {
        Some(Value::Object(fields)) => Ok(fields),
        _ => Err("has a head that is not a list of fields".to_owned()),
    }
}

fn awaits_key(open: &[Open]) -> bool {
    matches!(open.last(), Some(Open::Object(_, None)))
}

fn refused(what: &str) -> String {
    format!("has {what} in its head, which clients read differently: write the value out")
}

/// A value of the core schema (YAML 1.2.2, section 10.3.2).
fn scalar(text: &str, style: ScalarStyle) -> Result<Value, String> {
    if style != ScalarStyle::Plain {
        return Ok(Value::String(text.to_owned()));
    }
    let special = text.strip_prefix(['-', '+']).unwrap_or(text);
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if matches!(special, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") => {
            return Err(format!("has {text} in its head, which JSON does not have: write \"{text}\""));
        }
        _ => match number(text) {
            Some(Some(number)) => Value::Number(number),
            Some(None) => {
                return Err(format!("has a number in its head that JSON readers do not keep: write \"{text}\""));
            }
            None => Value::String(text.to_owned()),
        },
    })
}

/// A number; `Some(None)` for one that no reader of JSON keeps.
fn number(text: &str) -> Option<Option<Number>> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let integer = |radix: u32, text: &str| i64::from_str_radix(text, radix).ok().map(Number::from);
    if let Some(hex) = text.strip_prefix("0x").filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return (!hex.is_empty()).then(|| integer(16, hex));
    }
    if let Some(octal) = text.strip_prefix("0o").filter(|octal| octal.bytes().all(|byte| (b'0'..=b'7').contains(&byte)))
    {
        return (!octal.is_empty()).then(|| integer(8, octal));
    }
    if digits(unsigned) {
        return Some(integer(10, text));
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let plain = (digits(whole) && (fraction.is_empty() || digits(fraction))) || (whole.is_empty() && digits(fraction));
    if !plain || !exponent.is_none_or(digits) {
        return None;
    }
    Some(text.parse::<f64>().ok().and_then(Number::from_f64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(fields: &str) -> Result<Value, String> {
        let text = format!("---\nname: a\ndescription: b\n{fields}\n---\n# Body\n");
        read(&text).map(|head| Value::Object(head.fields))
    }

    #[test]
    fn all_fields_are_there_with_the_types_of_the_core_schema() {
        let fields = "license: Apache-2.0\nmetadata:\n  version: \"1.0\"\n  tags: [a, 'b', {c: ~}]\nn: 1.0\ni: -7\nh: 0x1F\n\
                      o: 0o17\ne: 1e3\nyes: yes\non: True\nday: 2026-01-01\ntext: |\n  one\n  two\nempty:\nplus: +.5\nv: 1.2.3";
        let expected = json!({
            "name": "a", "description": "b", "license": "Apache-2.0",
            "metadata": {"version": "1.0", "tags": ["a", "b", {"c": null}]},
            "n": 1.0, "i": -7, "h": 31, "o": 15, "e": 1000.0, "yes": "yes", "on": true, "day": "2026-01-01",
            "text": "one\ntwo\n", "empty": null, "plus": 0.5, "v": "1.2.3",
        });
        assert_eq!(with(fields).unwrap(), expected);
        let windows = "---\r\nname: a\r\ndescription: b\r\n---\r\n";
        assert_eq!(read(windows).unwrap().fields.len(), 2);
    }

    #[test]
    fn what_readers_take_differently_and_what_is_made_to_grow_is_refused() {
        let deep = format!("x: {}{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
        let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]";
        for (fields, problem) in [
            (bomb, "an anchor"),
            ("a: *b", "has a"),
            ("a: !!int 7", "a tag"),
            ("a: 1\na: 2", "\"a\" twice"),
            ("? [a]\n: b", "not text"),
            ("a: .inf", "JSON does not have"),
            ("a: 99999999999999999999", "do not keep"),
            ("a: [", "not YAML"),
            ("a: 'b", "not YAML"),
            (deep.as_str(), "nested deeper"),
        ] {
            let found = with(fields).unwrap_err();
            assert!(found.contains(problem), "{fields}: {found}");
        }
    }

    #[test]
    fn a_head_begins_the_file_ends_and_is_bounded() {
        let long = format!("---\nname: a\ndescription: b\nx: {}\n---\n", "y".repeat(BYTES_MAX));
        let endless = format!("---\n{}", "a".repeat(100_000));
        let named = |name: &str| format!("---\nname: {name}\ndescription: b\n---\n");
        for (text, problem) in [
            ("", "must begin"),
            ("# Title\n", "must begin"),
            ("\u{feff}---\nname: a\n---\n", "must begin"),
            ("---\nname: a\ndescription: b\n", "must begin"),
            ("---\n---\n", "not a list of fields"),
            ("---\n- a\n---\n", "not a list of fields"),
            ("---\nname: a\n---\n", "no description"),
            ("---\nname: a\ndescription: ' '\n---\n", "description of 1 to"),
            ("---\nname: 7\ndescription: b\n---\n", "name that is not text"),
            (&named("A"), "has the name"),
            (&named("a--b"), "has the name"),
            (&named("-a"), "has the name"),
            (&named("../a"), "has the name"),
            (&named(&"a".repeat(65)), "has the name"),
            (&long, "more than"),
            (&endless, "more than"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.contains(problem), "{text:.40}: {found}");
        }
        assert!(read(&named(&"a".repeat(64))).is_ok() && read(&named("a-1-b")).is_ok());
    }
}
