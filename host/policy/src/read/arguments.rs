//! Reads conditions on the arguments of a tool: a pattern, several, or a JSON Schema.
//!
//! A misspelt keyword, or one that asks nothing of a value of another type, would let every call
//! pass. So only known keywords are read, and each schema says of which type a value is.

use serde_json::{Map, Value, json};

use super::{Entry, Problems};
use crate::manifest::arguments::{ArgumentCondition, ArgumentConditions, expression};
use crate::names::meant_or;

/// Conditions of one table. A tool with more arguments is rare.
pub(crate) const CONDITIONS_MAX: usize = 64;

/// Conditions of one manifest. Each is compiled at load, and takes a few KiB; a call meets those
/// of its tool alone.
pub(crate) const CONDITIONS_ALL_MAX: usize = 2_000;

/// Patterns of one argument.
const PATTERNS_MAX: usize = 100;

/// The longest pattern, in bytes. An address or a path is shorter.
const PATTERN_BYTES_MAX: usize = 256;

/// Stars in one pattern. Each may multiply the states of its automaton.
const STARS_MAX: usize = 8;

/// The longest schema of one argument, in bytes of compact JSON.
const SCHEMA_BYTES_MAX: usize = 8 * 1024;

/// Levels of subschemas.
const DEPTH_MAX: usize = 8;

/// The key of a condition that lets its argument be missing.
const OPTIONAL: &str = "optional";

/// Keywords that ask something of values of one type alone, and that type.
const TYPED: [(&str, &str); 23] = [
    ("pattern", "string"),
    ("minLength", "string"),
    ("maxLength", "string"),
    ("minimum", "number"),
    ("maximum", "number"),
    ("exclusiveMinimum", "number"),
    ("exclusiveMaximum", "number"),
    ("multipleOf", "number"),
    ("items", "array"),
    ("prefixItems", "array"),
    ("contains", "array"),
    ("minContains", "array"),
    ("maxContains", "array"),
    ("minItems", "array"),
    ("maxItems", "array"),
    ("uniqueItems", "array"),
    ("properties", "object"),
    ("patternProperties", "object"),
    ("additionalProperties", "object"),
    ("propertyNames", "object"),
    ("required", "object"),
    ("minProperties", "object"),
    ("maxProperties", "object"),
];

/// Keywords that ask something of any value, and those that ask nothing.
const UNTYPED: [&str; 9] = ["type", "enum", "const", "anyOf", "oneOf", "allOf", "not", "title", "description"];

/// The tool whose arguments a table is about, and the table's name as in its header.
pub(crate) struct ConditionsOf<'a> {
    pub(crate) section: String,
    pub(crate) component: &'a str,
    pub(crate) tool: &'a str,
}

/// Reads the conditions on one tool's arguments.
pub(crate) fn read(entry: &Entry<'_>, of: ConditionsOf<'_>, problems: &mut Problems) -> Option<ArgumentConditions> {
    let before = problems.errors();
    let entries = entry.entries(CONDITIONS_MAX, "arguments::too_many", "conditions", problems);
    if problems.errors() > before {
        return None;
    }
    if entries.is_empty() {
        let problem = entry.key_error("arguments::empty", "there is no condition on any argument");
        return problems.refuse(problem.hint("write NAME = \"PATTERN\", or remove the table"));
    }
    let conditions: Vec<ArgumentCondition> = entries.iter().filter_map(|entry| condition(entry, problems)).collect();
    Some(ArgumentConditions {
        section: of.section,
        span: entry.key_span.clone(),
        component: of.component.to_owned(),
        tool: of.tool.to_owned(),
        conditions,
    })
}

fn condition(entry: &Entry<'_>, problems: &mut Problems) -> Option<ArgumentCondition> {
    let before = problems.errors();
    let written = entry.json(problems)?;
    let mut optional = false;
    let schema = match &written {
        Value::String(text) => patterns(entry, &[text], problems),
        Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            match texts {
                Some(texts) => patterns(entry, &texts, problems),
                None => {
                    let message = format!("{} has something else than patterns in its list", entry.key);
                    return problems.refuse(entry.error("arguments::pattern", message));
                }
            }
        }
        Value::Object(members) => {
            let mut members = members.clone();
            match members.remove(OPTIONAL) {
                None => {}
                Some(Value::Bool(said)) => optional = said,
                Some(_) => {
                    let problem = entry.error("arguments::optional", "optional must be true or false");
                    return problems.refuse(problem);
                }
            }
            schema(entry, members, problems)
        }
        _ => return entry.wrong_type("a pattern, a list of patterns, or a table with a JSON Schema", problems),
    };
    (problems.errors() == before).then(|| ArgumentCondition {
        name: entry.key.to_owned(),
        span: entry.key_span.clone(),
        line: ArgumentCondition::line_of(entry.key, &written),
        schema,
        optional,
    })
}

/// The schema of texts that fit one of these patterns.
fn patterns(entry: &Entry<'_>, patterns: &[&str], problems: &mut Problems) -> Value {
    if patterns.is_empty() || patterns.len() > PATTERNS_MAX {
        let message = format!("{} has {} patterns, 1 to {PATTERNS_MAX} are allowed", entry.key, patterns.len());
        problems.add(entry.error("arguments::pattern", message));
    }
    for pattern in patterns {
        let stars = pattern.matches('*').count();
        if pattern.len() > PATTERN_BYTES_MAX || stars > STARS_MAX {
            let message =
                format!("{pattern:?} is longer than {PATTERN_BYTES_MAX} bytes, or has over {STARS_MAX} stars");
            problems.add(entry.error("arguments::pattern", message));
        }
    }
    if patterns.iter().all(|pattern| !pattern.contains('*')) {
        return json!({"type": "string", "enum": patterns});
    }
    json!({"type": "string", "pattern": expression(patterns)})
}

/// The schema of a table, with its types filled in.
fn schema(entry: &Entry<'_>, members: Map<String, Value>, problems: &mut Problems) -> Value {
    let mut schema = Value::Object(members);
    if schema.to_string().len() > SCHEMA_BYTES_MAX {
        let message = format!("the schema of {} is longer than {SCHEMA_BYTES_MAX} bytes", entry.key);
        problems.add(entry.error("arguments::schema", message));
        return schema;
    }
    if let Err(problem) = complete(&mut schema, 0) {
        let wrong = entry.error("arguments::schema", format!("the condition on {} {}", entry.key, problem.message));
        problems.add(wrong.hint(problem.hint));
    }
    schema
}

/// Why a schema cannot be a condition.
struct SchemaProblem {
    /// What the condition does, as the end of a sentence.
    message: String,
    hint: String,
}

impl SchemaProblem {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

/// Checks the keywords of a schema and of those in it, and adds the type that its keywords mean.
fn complete(schema: &mut Value, depth: usize) -> Result<(), SchemaProblem> {
    if depth > DEPTH_MAX {
        let message = format!("has schemas within schemas over more than {DEPTH_MAX} levels");
        return Err(SchemaProblem::new(message, "write a flatter schema"));
    }
    let members = match schema {
        Value::Object(members) => members,
        Value::Bool(_) => return Ok(()),
        _ => return Err(SchemaProblem::new("has a schema that is not a table", "write { type = \"string\" }")),
    };
    let known = |name: &str| UNTYPED.contains(&name) || TYPED.iter().any(|(keyword, _)| *keyword == name);
    if let Some(unknown) = members.keys().find(|name| !known(name)) {
        let keywords = TYPED.iter().map(|(keyword, _)| *keyword).chain(UNTYPED);
        let otherwise = format!("keywords are {}", keywords.clone().collect::<Vec<_>>().join(", "));
        let hint = meant_or(unknown, keywords, otherwise);
        return Err(SchemaProblem::new(format!("has the keyword {unknown:?}, which is not applied"), hint));
    }
    add_type(members)?;
    for keyword in ["items", "contains", "additionalProperties", "propertyNames", "not"] {
        if let Some(within) = members.get_mut(keyword) {
            check_within(keyword, within, depth)?;
        }
    }
    for keyword in ["properties", "patternProperties"] {
        if let Some(Value::Object(named)) = members.get_mut(keyword) {
            named.values_mut().try_for_each(|within| complete(within, depth + 1))?;
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        if let Some(Value::Array(listed)) = members.get_mut(keyword) {
            listed.iter_mut().try_for_each(|within| complete(within, depth + 1))?;
        }
    }
    Ok(())
}

/// What `not` refuses must not become less by a type that is added.
fn check_within(keyword: &str, within: &mut Value, depth: usize) -> Result<(), SchemaProblem> {
    if keyword == "not" {
        return complete(&mut within.clone(), depth + 1);
    }
    complete(within, depth + 1)
}

/// Adds the type that the keywords of a schema mean. Without it, `maximum` would accept any text.
fn add_type(members: &mut Map<String, Value>) -> Result<(), SchemaProblem> {
    let mut meant: Vec<&str> = Vec::new();
    for (keyword, ty) in TYPED {
        if members.contains_key(keyword) && !meant.contains(&ty) {
            meant.push(ty);
        }
    }
    let is_of = |said: &str, ty: &str| said == ty || (said == "integer" && ty == "number");
    match members.get("type") {
        Some(said) => {
            let said: Vec<&str> = match said {
                Value::Array(listed) => listed.iter().filter_map(Value::as_str).collect(),
                said => said.as_str().into_iter().collect(),
            };
            let never = TYPED
                .iter()
                .find(|(keyword, ty)| members.contains_key(*keyword) && !said.iter().any(|said| is_of(said, ty)));
            match never {
                Some((keyword, ty)) => {
                    let message = format!("has {keyword}, which never applies: its type is not {ty}");
                    Err(SchemaProblem::new(message, format!("remove {keyword}, or write type = \"{ty}\"")))
                }
                None => Ok(()),
            }
        }
        None => match meant.as_slice() {
            [] if UNTYPED.iter().take(7).any(|keyword| members.contains_key(*keyword)) => Ok(()),
            [] => Err(SchemaProblem::new("accepts any value", "write a pattern, or keywords of JSON Schema")),
            [one] => {
                members.insert("type".to_owned(), json!(one));
                Ok(())
            }
            several => {
                let message = format!("has keywords for {}, and no type", several.join(" and "));
                Err(SchemaProblem::new(message, "say which types a value may have: type = [\"string\", \"number\"]"))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn completed(mut schema: Value) -> Result<Value, String> {
        complete(&mut schema, 0).map(|()| schema).map_err(|problem| problem.message)
    }

    #[test]
    fn a_schema_says_which_type_its_keywords_mean() {
        for (written, expected) in [
            (json!({"maximum": 5}), json!({"maximum": 5, "type": "number"})),
            (json!({"maximum": 5, "type": "integer"}), json!({"maximum": 5, "type": "integer"})),
            (
                json!({"items": {"pattern": "^a"}}),
                json!({"items": {"pattern": "^a", "type": "string"}, "type": "array"}),
            ),
            (json!({"enum": ["a", 1]}), json!({"enum": ["a", 1]})),
            (
                json!({"anyOf": [{"maximum": 5}, {"const": "none"}]}),
                json!({"anyOf": [{"maximum": 5, "type": "number"}, {"const": "none"}]}),
            ),
            (json!({"not": {"maximum": 5}}), json!({"not": {"maximum": 5}})),
        ] {
            assert_eq!(completed(written).unwrap(), expected);
        }
    }

    #[test]
    fn a_schema_that_would_let_anything_pass_is_refused() {
        for (written, expected) in [
            (json!({}), "accepts any value"),
            (json!({"description": "x"}), "accepts any value"),
            (json!({"maxmum": 5}), "has the keyword \"maxmum\", which is not applied"),
            (json!({"format": "email"}), "has the keyword \"format\", which is not applied"),
            (json!({"$ref": "#"}), "has the keyword \"$ref\", which is not applied"),
            (json!({"type": "string", "maximum": 5}), "has maximum, which never applies: its type is not number"),
            (json!({"pattern": "a", "maximum": 5}), "has keywords for string and number, and no type"),
            (json!({"items": {"maxmum": 5}}), "has the keyword \"maxmum\", which is not applied"),
            (json!({"not": {}}), "accepts any value"),
        ] {
            assert_eq!(completed(written).unwrap_err(), expected);
        }
        let deep = (0..12).fold(json!({"maximum": 1}), |within, _| json!({ "items": within }));
        assert!(completed(deep).unwrap_err().contains("more than 8 levels"));
    }
}
