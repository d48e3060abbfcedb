//! The keywords of JSON Schema that hold subschemas, over all drafts. Keywords that a schema's own
//! draft ignores are visited too: bounds may only err towards refusing.

use serde_json::{Map, Value};

/// The values that a subschema applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applies {
    /// To the value itself.
    Here,
    /// To the member of this name.
    Member,
    /// To members, or elements, of any name or place.
    Below,
    /// To nothing by itself, only through a `$ref`.
    Nowhere,
}

/// One subschema in its parent.
pub(super) struct Child<'s> {
    /// The parts of its place below the parent, such as `properties` and `city`.
    pub(super) place: [&'s str; 2],
    /// Its index in a list; then the second part of `place` is empty.
    pub(super) number: Option<usize>,
    pub(super) applies: Applies,
    pub(super) schema: &'s Value,
}

const SINGLE: [(&str, Applies); 12] = [
    ("additionalItems", Applies::Below),
    ("additionalProperties", Applies::Below),
    ("contains", Applies::Below),
    ("contentSchema", Applies::Below),
    ("else", Applies::Here),
    ("if", Applies::Here),
    ("items", Applies::Below),
    ("not", Applies::Here),
    ("propertyNames", Applies::Below),
    ("then", Applies::Here),
    ("unevaluatedItems", Applies::Below),
    ("unevaluatedProperties", Applies::Below),
];

const LISTS: [(&str, Applies); 5] = [
    ("allOf", Applies::Here),
    ("anyOf", Applies::Here),
    ("items", Applies::Below),
    ("oneOf", Applies::Here),
    ("prefixItems", Applies::Below),
];

const MAPS: [(&str, Applies); 6] = [
    ("$defs", Applies::Nowhere),
    ("definitions", Applies::Nowhere),
    ("dependencies", Applies::Here),
    ("dependentSchemas", Applies::Here),
    ("patternProperties", Applies::Below),
    ("properties", Applies::Member),
];

/// The direct subschemas of a schema.
pub(super) fn children(schema: &Map<String, Value>) -> Vec<Child<'_>> {
    let mut found = Vec::new();
    for (keyword, value) in schema {
        if let Some(applies) = applies(&SINGLE, keyword) {
            found.push(Child { place: [keyword, ""], number: None, applies, schema: value });
        }
        if let (Some(applies), Value::Array(list)) = (applies(&LISTS, keyword), value) {
            for (number, schema) in list.iter().enumerate() {
                found.push(Child { place: [keyword, ""], number: Some(number), applies, schema });
            }
        }
        if let (Some(applies), Value::Object(map)) = (applies(&MAPS, keyword), value) {
            for (name, schema) in map {
                found.push(Child { place: [keyword, name], number: None, applies, schema });
            }
        }
    }
    found.retain(|child| is_schema(child.schema));
    found
}

fn applies(keywords: &[(&str, Applies)], keyword: &str) -> Option<Applies> {
    keywords.iter().find(|(name, _)| *name == keyword).map(|(_, applies)| *applies)
}

/// Keywords that refer to a schema elsewhere, over all drafts.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// True if `type` names this type, alone or among others.
pub(super) fn names_type(ty: Option<&Value>, name: &str) -> bool {
    match ty {
        Some(Value::String(ty)) => ty == name,
        Some(Value::Array(types)) => types.iter().any(|ty| ty == name),
        _ => false,
    }
}

/// True if a keyword holds subschemas, in some draft.
pub(super) fn holds_schemas(keyword: &str) -> bool {
    is_single(keyword) || is_map(keyword) || LISTS.iter().any(|(name, _)| *name == keyword)
}

/// True if a keyword holds one subschema, in some draft.
pub(super) fn is_single(keyword: &str) -> bool {
    SINGLE.iter().any(|(name, _)| *name == keyword)
}

/// True if a keyword holds subschemas by name, in some draft.
pub(super) fn is_map(keyword: &str) -> bool {
    MAPS.iter().any(|(name, _)| *name == keyword)
}

fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

/// Calls `change` with every `title`, `description` and `$comment` of a schema and its subschemas.
pub(super) fn annotations_mut(schema: &mut Value, change: &mut impl FnMut(&mut String)) {
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members {
        if matches!(keyword.as_str(), "title" | "description" | "$comment") {
            if let Value::String(text) = value {
                change(text);
            }
            continue;
        }
        let single = is_single(keyword);
        let list = LISTS.iter().any(|(name, _)| name == keyword);
        let map = is_map(keyword);
        match value {
            Value::Object(_) if single => annotations_mut(value, change),
            Value::Array(entries) if list => entries.iter_mut().for_each(|entry| annotations_mut(entry, change)),
            Value::Object(entries) if map => entries.values_mut().for_each(|entry| annotations_mut(entry, change)),
            _ => {}
        }
    }
}
