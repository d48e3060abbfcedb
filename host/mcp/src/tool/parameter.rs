//! Parameters of a tool that HTTP clients repeat in headers (2026-07-28, "Custom Headers from Tool
//! Parameters"). They are found in the input schema at load, and compared at every call that came
//! with headers.

use std::collections::HashSet;

use http::HeaderName;
use serde_json::Value;
use serde_json::value::RawValue;
use toolcell_schema::DefinitionProblem;

use super::McpTool;
use crate::frame::RpcError;
use crate::mirrored::{Mirrored, Mismatch};

/// The keyword that names the header.
const KEYWORD: &str = "x-mcp-header";

/// The prefix of that name.
const PREFIX: &str = "Mcp-Param-";

/// Longest name, in bytes. Headers that proxies route by are much shorter.
const NAME_BYTES_MAX: usize = 128;

/// The most problems of a definition that are reported.
const PROBLEMS_MAX: usize = 100;

/// Bytes of a place that are shown.
const PLACE_BYTES_MAX: usize = 300;

/// Bytes of the names on the paths to all parameters of a tool. A hundred with ordinary names take
/// a fortieth of it.
const PATHS_BYTES_MAX: usize = 128 * 1024;

/// 2^53: not every JSON reader distinguishes larger integers.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Keywords whose values are data, not schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "required"];

/// Keywords whose values are schemas by name.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// One repeated parameter.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    header: HeaderName,
    /// The header as the definition writes it.
    shown: String,
    path: Vec<String>,
}

/// Finds the parameters of an input schema, and the problems of their declarations. Clients must
/// leave out a tool with wrong declarations, so it is not loaded.
pub(super) fn parameters(schema: &Value, problems: &mut Vec<DefinitionProblem>) -> Vec<Parameter> {
    let mut search = ParameterSearch { found: Vec::new(), names: HashSet::new(), paths_bytes: 0, problems };
    search.schema(schema, &mut Vec::new(), true, &SchemaPlace { within: None, name: "inputSchema" });
    search.found
}

struct ParameterSearch<'p> {
    found: Vec<Parameter>,
    names: HashSet<String>,
    paths_bytes: usize,
    problems: &'p mut Vec<DefinitionProblem>,
}

/// A place in the schema, converted to text only for a report: the paths of thousands of places may
/// be long.
struct SchemaPlace<'p> {
    within: Option<&'p SchemaPlace<'p>>,
    name: &'p str,
}

impl SchemaPlace<'_> {
    fn within<'p>(&'p self, name: &'p str) -> SchemaPlace<'p> {
        SchemaPlace { within: Some(self), name }
    }

    /// The place as text; only the end of a very long one.
    fn written(&self) -> String {
        let mut names = Vec::new();
        let mut bytes = 0;
        let mut place = Some(self);
        while let Some(here) = place.filter(|_| bytes <= PLACE_BYTES_MAX) {
            bytes += here.name.len() + 1;
            names.push(here.name);
            place = here.within;
        }
        names.reverse();
        let text = names.join("/");
        let from = text.ceil_char_boundary(text.len().saturating_sub(PLACE_BYTES_MAX));
        if from == 0 && place.is_none() { text } else { format!("…{}", text.get(from..).unwrap_or_default()) }
    }
}

impl ParameterSearch<'_> {
    /// Searches one schema at `place`. `reached`: only through `properties`.
    fn schema(&mut self, schema: &Value, path: &mut Vec<String>, reached: bool, place: &SchemaPlace<'_>) {
        match schema {
            Value::Object(keywords) => {
                for (keyword, value) in keywords {
                    let place = place.within(keyword);
                    if keyword == KEYWORD {
                        self.declared(schema, path, reached, &place);
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

    fn named(&mut self, schemas: &Value, path: &mut Vec<String>, reached: bool, place: &SchemaPlace<'_>) {
        for (name, schema) in schemas.as_object().into_iter().flatten() {
            path.push(name.clone());
            self.schema(schema, path, reached, &place.within(name));
            path.pop();
        }
    }

    fn declared(&mut self, schema: &Value, path: &[String], reached: bool, place: &SchemaPlace<'_>) {
        if self.problems.len() >= PROBLEMS_MAX {
            return;
        }
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        let name = schema.get(KEYWORD).and_then(Value::as_str).unwrap_or_default();
        let shown = format!("{PREFIX}{name}");
        let header = HeaderName::from_bytes(shown.as_bytes()).ok();
        let header = header.filter(|_| !name.is_empty() && name.len() <= NAME_BYTES_MAX);
        let wrong = match header {
            None => "is not a header name",
            Some(_) if !reached || path.is_empty() => {
                "is only allowed on properties that are reached through properties alone"
            }
            Some(_) if !matches!(kind, "string" | "integer" | "boolean") => {
                "is only allowed on a property of type string, integer or boolean"
            }
            Some(_) if !self.names.insert(name.to_ascii_lowercase()) => "is the name of another property's header",
            Some(header) => {
                self.paths_bytes += path.iter().map(|name| name.len() + size_of::<String>()).sum::<usize>();
                if self.paths_bytes <= PATHS_BYTES_MAX {
                    return self.found.push(Parameter { header, shown, path: path.to_vec() });
                }
                "is reached by too many names, or too long ones"
            }
        };
        self.problems.push(DefinitionProblem::new(place.written(), wrong));
    }
}

impl McpTool {
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
            // Without a value, a header could only mislead proxies that route by it.
            None | Some(Value::Null) => return if header.is_none() { Ok(()) } else { Err(Mismatch::Different) },
            // The schema refuses this anyway.
            Some(Value::Array(_) | Value::Object(_)) => return Ok(()),
            Some(Value::String(text)) => header.ok_or(Mismatch::Missing)? == *text,
            Some(Value::Bool(value)) => header.ok_or(Mismatch::Missing)? == value.to_string(),
            Some(Value::Number(number)) => same_number(&header.ok_or(Mismatch::Missing)?, number),
        };
        if same { Ok(()) } else { Err(Mismatch::Different) }
    }
}

/// True if a header's text is this number: `42.0` and `42` are equal.
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
    use http::HeaderMap;
    use serde_json::json;

    use super::*;
    use crate::tool::ToolDefinition;

    fn tool(schema: Value) -> Result<McpTool, Vec<DefinitionProblem>> {
        McpTool::compile(ToolDefinition::new("t", "A tool of a test.", schema))
    }

    fn compare(arguments: &str, headers: &[(&str, &str)]) -> Result<(), String> {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "count"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
            "in": {"type": "object", "properties": {"tenant": {"type": "string", "x-mcp-header": "Tenant"}}},
        }});
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        tool(schema).unwrap().compare(&Mirrored::of(map), &arguments).map_err(|error| error.message.into_owned())
    }

    #[test]
    fn headers_say_what_the_arguments_say() {
        let region = [("Mcp-Param-Region", "eu")];
        for (arguments, headers) in [
            ("{}", &[][..]),
            (r#"{"region":null}"#, &[]),
            (r#"{"region":"eu"}"#, &region),
            (r#"{"region":"eu"}"#, &[("mcp-param-region", "=?base64?ZXU=?=")]),
            (r#"{"region":"=?base64?ZXU="}"#, &[("mcp-param-region", "=?base64?ZXU=")]),
            (r#"{"count":42}"#, &[("mcp-param-count", "42.0")]),
            (r#"{"dry":true}"#, &[("mcp-param-dry-run", "true")]),
            (r#"{"in":{"tenant":"a"}}"#, &[("mcp-param-tenant", "a")]),
            (r#"{"region":["eu"]}"#, &[]),
            (r#"{"other":"eu"}"#, &[("mcp-param-other", "us")]),
        ] {
            assert_eq!(compare(arguments, headers), Ok(()), "{arguments} {headers:?}");
        }
        for (arguments, headers, wrong) in [
            (r#"{"region":"eu"}"#, &[][..], "Mcp-Param-Region is missing"),
            (r#"{"region":""}"#, &[], "Mcp-Param-Region is missing"),
            (r#"{"region":"us"}"#, &region, "does not say what the body says"),
            (r#"{"region":"EU"}"#, &region, "does not say what the body says"),
            ("{}", &region, "does not say what the body says"),
            (r#"{"region":null}"#, &region, "does not say what the body says"),
            (r#"{"region":"eu"}"#, &[("mcp-param-region", "eu"), ("mcp-param-region", "us")], "came more than once"),
            (r#"{"region":"eu"}"#, &[("mcp-param-region", "=?base64?ZXU?=")], "holds characters or base64"),
            (r#"{"region":"eu"}"#, &[("mcp-param-region", "=?base64?Z!U=?=")], "holds characters or base64"),
            (r#"{"count":42}"#, &[("mcp-param-count", "43")], "does not say what the body says"),
            (r#"{"dry":true}"#, &[("mcp-param-dry-run", "True")], "does not say what the body says"),
            (r#"{"in":{"tenant":"a"}}"#, &[("mcp-param-tenant", "b")], "does not say what the body says"),
        ] {
            let said = compare(arguments, headers).unwrap_err();
            assert!(said.starts_with("Header mismatch: ") && said.contains(wrong), "{arguments} {headers:?}: {said}");
        }
    }

    #[test]
    fn a_header_that_no_client_could_send_is_refused_at_load() {
        let named =
            |name: Value| json!({"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": name}}});
        for schema in [
            named(json!("")),
            named(json!("a b")),
            named(json!("a\r\nb")),
            named(json!("ä")),
            named(json!(1)),
            json!({"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}),
            json!({"type": "object", "properties": {"a": {"x-mcp-header": "A"}}}),
            json!({"type": "object", "x-mcp-header": "A"}),
            json!({"type": "object", "properties": {
                "a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}
            }}),
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}}),
            json!({"type": "object", "anyOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]}),
            json!({"type": "object", "$defs": {"a": {"type": "string", "x-mcp-header": "A"}}}),
        ] {
            let problems = tool(schema.clone()).unwrap_err();
            assert!(problems.iter().any(|problem| problem.field.ends_with("x-mcp-header")), "{schema}: {problems:?}");
        }
        let long = "n".repeat(2_000);
        let many: serde_json::Map<String, Value> = (0..100)
            .map(|number| (format!("{long}{number}"), json!({"type": "string", "x-mcp-header": format!("A{number}")})))
            .collect();
        let problems = tool(json!({"type": "object", "properties": many})).unwrap_err();
        let told = problems.iter().map(|problem| problem.field.len() + problem.message.len()).max();
        assert!(problems.iter().any(|problem| problem.message.starts_with("is reached by")), "{}", problems.len());
        assert!(told.is_some_and(|bytes| bytes < 400), "{told:?}");
        let data = json!({"type": "object", "properties": {
            "x-mcp-header": {"type": "string"}, "a": {"const": {"x-mcp-header": "A"}}
        }});
        assert!(tool(data).is_ok(), "a property of that name, and data, declare nothing");
    }

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
