//! Parameters of a tool that HTTP clients repeat in headers (2026-07-28, "Custom Headers from Tool Parameters"): found in
//! the input schema at load, compared at every call that came with headers.

use std::collections::HashSet;

use http::HeaderName;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{DefinitionProblem, Tool};
use crate::frame::RpcError;
use crate::mirrored::{Mirrored, Mismatch};

/// The keyword that names the header.
const KEYWORD: &str = "x-mcp-header";

/// What stands before that name.
const PREFIX: &str = "Mcp-Param-";

/// Longest name, in bytes. No header that a proxy routes by comes close.
const NAME_BYTES_MAX: usize = 128;

/// Integers past this are not told apart by every reader of JSON: 2^53.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Keywords whose values are data, not schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "required"];

/// Keywords whose values are schemas by name.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// One parameter that is repeated.
#[derive(Debug)]
pub(super) struct Parameter {
    header: HeaderName,
    /// The header as the definition writes it.
    shown: String,
    path: Vec<String>,
}

/// Finds the parameters of an input schema, and what is wrong with how they are declared. Clients have to leave out a
/// tool whose declarations are wrong, so it is not loaded at all.
pub(super) fn parameters(schema: &Value, problems: &mut Vec<DefinitionProblem>) -> Vec<Parameter> {
    let mut search = Search { found: Vec::new(), names: HashSet::new(), problems };
    search.schema(schema, &mut Vec::new(), true, "inputSchema");
    search.found
}

struct Search<'p> {
    found: Vec<Parameter>,
    names: HashSet<String>,
    problems: &'p mut Vec<DefinitionProblem>,
}

impl Search<'_> {
    /// Looks through one schema; `place` is where it stands. `reached`: by `properties` alone.
    fn schema(&mut self, schema: &Value, path: &mut Vec<String>, reached: bool, place: &str) {
        match schema {
            Value::Object(keywords) => {
                for (keyword, value) in keywords {
                    let place = format!("{place}/{keyword}");
                    if keyword == KEYWORD {
                        self.declared(schema, value, path, reached, &place);
                    } else if NAMED.contains(&keyword.as_str()) {
                        self.named(value, path, reached && keyword == "properties", &place);
                    } else if !DATA.contains(&keyword.as_str()) {
                        self.schema(value, path, false, &place);
                    }
                }
            }
            Value::Array(schemas) => schemas.iter().for_each(|schema| self.schema(schema, path, false, place)),
            _ => {}
        }
    }

    fn named(&mut self, schemas: &Value, path: &mut Vec<String>, reached: bool, place: &str) {
        for (name, schema) in schemas.as_object().into_iter().flatten() {
            path.push(name.clone());
            self.schema(schema, path, reached, &format!("{place}/{name}"));
            path.pop();
        }
    }

    fn declared(&mut self, schema: &Value, name: &Value, path: &[String], reached: bool, place: &str) {
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        let name = name.as_str().unwrap_or_default();
        let shown = format!("{PREFIX}{name}");
        let header = HeaderName::from_bytes(shown.as_bytes()).ok();
        let header = header.filter(|_| !name.is_empty() && name.len() <= NAME_BYTES_MAX);
        let wrong = match header {
            None => "is no name for a header",
            Some(_) if !reached || path.is_empty() => {
                "may only stand on properties that are reached by properties alone"
            }
            Some(_) if !matches!(kind, "string" | "integer" | "boolean") => {
                "may only stand on a property of type string, integer or boolean"
            }
            Some(_) if !self.names.insert(name.to_ascii_lowercase()) => "is the name of another property's header",
            Some(header) => return self.found.push(Parameter { header, shown, path: path.to_vec() }),
        };
        self.problems.push(DefinitionProblem::new(place, wrong));
    }
}

impl Tool {
    /// Compares arguments with the headers that repeat them.
    pub(crate) fn compare(&self, mirrored: &Mirrored, arguments: &RawValue) -> Result<(), RpcError> {
        if self.parameters.is_empty() {
            return Ok(());
        }
        let arguments: Value = serde_json::from_str(arguments.get())
            .map_err(|_| RpcError::params("params.arguments must be an object"))?;
        for parameter in &self.parameters {
            parameter.compare(mirrored, &arguments).map_err(|mismatch| mismatch.error(&parameter.shown))?;
        }
        Ok(())
    }
}

impl Parameter {
    fn compare(&self, mirrored: &Mirrored, arguments: &Value) -> Result<(), Mismatch> {
        let header = mirrored.get(&self.header)?;
        let mut value = Some(arguments);
        for name in &self.path {
            value = value.and_then(|value| value.get(name));
        }
        let same = match value {
            // Nothing to repeat, so that a header could only lead astray whoever goes by it.
            None | Some(Value::Null) => return if header.is_none() { Ok(()) } else { Err(Mismatch::Different) },
            // The schema refuses it, whatever a header says.
            Some(Value::Array(_) | Value::Object(_)) => return Ok(()),
            Some(Value::String(text)) => header.ok_or(Mismatch::Missing)? == *text,
            Some(Value::Bool(value)) => header.ok_or(Mismatch::Missing)? == value.to_string(),
            Some(Value::Number(number)) => same_number(&header.ok_or(Mismatch::Missing)?, number),
        };
        if same { Ok(()) } else { Err(Mismatch::Different) }
    }
}

/// Whether a header's text is this number: `42.0` and `42` are the same.
fn same_number(text: &str, number: &serde_json::Number) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let decimal = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !decimal(whole) || !decimal(fraction) {
        return false;
    }
    match (text.parse::<f64>(), number.as_f64()) {
        (Ok(header), Some(body)) if body.abs() < EXACT_MAX => header == body,
        _ => text == number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers() {
        for (text, number, same) in [
            ("42", "42", true),
            ("42.0", "42", true),
            ("42", "42.0", true),
            ("-7", "-7", true),
            ("042", "42", true),
            ("43", "42", false),
            ("42.5", "42", false),
            ("4e1", "40", false),
            ("", "0", false),
            ("-", "0", false),
            (".0", "0", false),
            ("0x2a", "42", false),
            ("inf", "42", false),
            ("9007199254740993", "9007199254740993", true),
            ("9007199254740992", "9007199254740993", false),
        ] {
            assert_eq!(same_number(text, &number.parse().unwrap()), same, "{text} {number}");
        }
    }
}
