//! Checks one schema: the places that break rules of APIs.
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::ApiRule;
use super::table::TABLE;
use crate::keywords::{self, names_type};
use crate::pattern::is_irregular;
use crate::portable::is_inexact;

/// Most places of one rule in one schema; further ones are counted. A person mends the first few,
/// and checks again.
const PLACES_MAX: usize = 8;

/// Longest JSON Pointer, in bytes. One of five levels with names of 40 letters fits.
const POINTER_BYTES_MAX: usize = 256;

/// Deepest part of a schema that is checked, in subschemas. JSON of definitions is never deeper.
const DEPTH_MAX: usize = 128;

/// What a schema is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// It is sent to a model's API.
    Arguments,
    /// Clients check results with it, and do not send it on.
    Result,
}

/// The places of a schema that break rules.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) places: BTreeMap<ApiRule, Places>,
}

/// The places that break one rule.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The first ones, as JSON Pointers.
    pub(super) pointers: Vec<String>,
    /// How many there are.
    pub(super) count: usize,
}

impl Findings {
    /// The findings about a schema at this pointer.
    pub(super) fn of(pointer: &'static str, form: Form, schema: &Value) -> Self {
        let mut scan = SchemaScan { pointer, form, path: Vec::new(), found: Self::default() };
        scan.schema(schema);
        scan.found
    }
}

struct SchemaScan<'s> {
    pointer: &'static str,
    form: Form,
    /// The path from the root to the current schema.
    path: Vec<SchemaStep<'s>>,
    found: Findings,
}

/// A step from a schema to one of its subschemas.
struct SchemaStep<'s> {
    keyword: &'s str,
    /// Its name, if the keyword holds schemas by name.
    name: Option<&'s str>,
    number: Option<usize>,
}

impl<'s> SchemaScan<'s> {
    fn schema(&mut self, schema: &'s Value) {
        let Some(members) = schema.as_object().filter(|_| self.path.len() < DEPTH_MAX) else { return };
        self.keywords(ApiRule::Reference, members);
        if self.form == Form::Arguments {
            self.values(members);
            self.shape(members);
        }
        for child in keywords::children(members) {
            let [keyword, name] = child.place;
            let name = keywords::is_map(keyword).then_some(name);
            self.path.push(SchemaStep { keyword, name, number: child.number });
            self.schema(child.schema);
            self.path.pop();
        }
    }

    /// Rules about the values that a schema accepts.
    fn values(&mut self, members: &'s Map<String, Value>) {
        for (keyword, value) in members {
            if !keywords::holds_schemas(keyword) && is_inexact(value) {
                self.found(ApiRule::InexactNumber, &[keyword]);
            }
        }
        let is_text = members.get("type").is_some_and(|ty| ty == "string");
        if let Some(choices) = members.get("enum").and_then(Value::as_array)
            && (!is_text || !choices.iter().all(Value::is_string))
        {
            self.found(ApiRule::EnumNotText, &["enum"]);
        }
        if members.get("pattern").and_then(Value::as_str).is_some_and(is_irregular) {
            self.found(ApiRule::IrregularPattern, &["pattern"]);
        }
        let named = members.get("patternProperties").and_then(Value::as_object);
        for pattern in named.into_iter().flat_map(Map::keys).filter(|pattern| is_irregular(pattern)) {
            self.found(ApiRule::IrregularPattern, &["patternProperties", pattern]);
        }
        self.keywords(ApiRule::Const, members);
        self.keywords(ApiRule::StrictKeyword, members);
        if self.path.is_empty() {
            self.keywords(ApiRule::CombinatorAtTop, members);
            self.keywords(ApiRule::ChoiceAtTop, members);
        }
    }

    /// Rules about objects, arrays and types.
    fn shape(&mut self, members: &'s Map<String, Value>) {
        let ty = members.get("type");
        if ty.is_some_and(Value::is_array) {
            self.found(ApiRule::TypeList, &["type"]);
        }
        if names_type(ty, "array") && !members.get("items").is_some_and(Value::is_object) {
            self.found(ApiRule::ArrayWithoutItems, &[]);
        }
        let properties = members.get("properties").and_then(Value::as_object);
        let has_any = properties.is_some_and(|properties| !properties.is_empty());
        if members.get("additionalProperties").map_or(has_any, |further| *further != Value::Bool(false)) {
            self.found(ApiRule::OpenObject, &[]);
        }
        for name in properties.into_iter().flat_map(Map::keys).filter(|name| !is_usual(name)) {
            self.found(ApiRule::PropertyName, &["properties", name]);
        }
    }

    /// Adds the keywords of a rule that occur.
    fn keywords(&mut self, rule: ApiRule, members: &Map<String, Value>) {
        let Some(row) = TABLE.rule(rule).filter(|row| row.results || self.form == Form::Arguments) else { return };
        for keyword in row.keywords.iter().filter(|keyword| members.contains_key(*keyword)) {
            self.found(rule, &[keyword]);
        }
    }

    fn found(&mut self, rule: ApiRule, below: &[&str]) {
        let places = self.found.places.entry(rule).or_default();
        places.count += 1;
        if places.pointers.len() < PLACES_MAX {
            places.pointers.push(pointer(self.pointer, &self.path, below));
        }
    }
}

/// True if every API accepts a property with this name.
fn is_usual(name: &str) -> bool {
    let most = TABLE.rule(ApiRule::PropertyName).and_then(|row| row.most).unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    !name.is_empty() && name.len() as u64 <= most && name.bytes().all(plain)
}

/// The JSON Pointer (RFC 6901) of a place, cut at its bound.
fn pointer(root: &str, path: &[SchemaStep<'_>], below: &[&str]) -> String {
    let mut text = root.to_owned();
    for step in path {
        push_part(&mut text, step.keyword);
        if let Some(name) = step.name {
            push_part(&mut text, name);
        }
        if let Some(number) = step.number {
            push_part(&mut text, &number.to_string());
        }
    }
    for part in below {
        push_part(&mut text, part);
    }
    if text.len() > POINTER_BYTES_MAX {
        text.truncate(text.floor_char_boundary(POINTER_BYTES_MAX - '…'.len_utf8()));
        text.push('…');
    }
    text
}

/// Appends a part up to the bound.
fn push_part(text: &mut String, part: &str) {
    if text.len() > POINTER_BYTES_MAX {
        return;
    }
    text.push('/');
    for letter in part.chars().take(POINTER_BYTES_MAX) {
        match letter {
            '~' => text.push_str("~0"),
            '/' => text.push_str("~1"),
            letter => text.push(letter),
        }
    }
}
