//! The portable form of a schema, which clients are served. Every common model API and SDK accepts
//! it, read as draft-07 or as 2020-12. Must not hold: checks of values, which follow the schema as
//! it is written.
//!
//! Read by either draft, the form accepts at least what the written schema accepts, so no client
//! refuses a value that the host accepts. If only one draft knows a keyword, the form counts as
//! *wider*. Keywords that negate or count wider parts (`not`, `if`, `oneOf`) would accept less with
//! them, and are relaxed.
//!
//! The work and its result are bounded, since references are measured before any is replaced:
//!
//! | bound | value | reason |
//! |---|---|---|
//! | `GROWTH_MAX` | 8 times the written bytes | a model reads all of it at each request |
//! | `SMALL_BYTES` | 16,384 bytes | past it, references are replaced for twofold growth at most |
//! | `DEPTH_MAX` | 32 subschemas in each other | recursion, here and in clients |
//! | `NESTING_MAX` | 100 levels of JSON | readers of JSON take 128, with the frame around it |
//!
//! References that cannot be replaced within these bounds stay. If the form does not fit either,
//! the schema is served as written.

mod dialect;
mod references;
mod values;

use serde_json::{Map, Value, json};

use crate::keywords::{self, names_type};
use crate::pattern::is_irregular;
use crate::sanitize;
use references::{Reference, References};
pub(crate) use values::is_inexact;
use values::{EXACT_MAX, plain_type};

/// What a schema is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaUse {
    /// A model writes values for it.
    Arguments,
    /// Clients check results with it.
    Result,
    /// Clients show it to a person. Its choices have the one form that the protocol gives them
    /// (2026-07-28, Elicitation, "Requested Schema").
    Form,
}

/// The default dialect, which needs no `$schema`.
const NEWEST: &str = "https://json-schema.org/draft/2020-12/schema";

/// The first dialect in which keywords next to `$ref` count.
const FIRST_WITH_SIBLINGS: &str = "https://json-schema.org/draft/2019-09/schema";

/// How many times larger a schema may become. A list of constants grows fourfold.
const GROWTH_MAX: usize = 8;

/// Deepest nesting of objects and lists in a form.
const NESTING_MAX: usize = 100;

/// The portable form of a schema, or the schema itself where that would be too large or too deep.
#[must_use]
pub fn portable(schema: &Value, used: SchemaUse) -> Value {
    let bytes_max = GROWTH_MAX.saturating_mul(schema.to_string().len());
    let fits = |form: &Value| nesting(form) <= NESTING_MAX && form.to_string().len() <= bytes_max;
    let known = dialect::known(schema);
    let written = known.as_ref().unwrap_or(schema);
    let replaced = References::replaced(written).map(|references| rendered(written, used, references)).filter(fits);
    let staying = || References::staying(written).map(|references| rendered(written, used, references)).filter(fits);
    replaced.or_else(staying).unwrap_or_else(|| schema.clone())
}

fn rendered(schema: &Value, used: SchemaUse, references: References<'_>) -> Value {
    let dialect = schema.get("$schema").and_then(Value::as_str).map(|uri| uri.trim_end_matches('#'));
    let is_newest = dialect.is_none_or(|uri| uri == NEWEST);
    let siblings_count = is_newest || dialect == Some(FIRST_WITH_SIBLINGS);
    let renderer = Renderer { used, is_newest, siblings_count, references };
    let mut rendered = renderer.schema(schema).schema;
    let definitions = renderer.definitions();
    if let Value::Object(members) = &mut rendered {
        // A client that reads drafts by name might not know this one, and refuse results.
        if used != SchemaUse::Result && dialect == Some(NEWEST) {
            members.shift_insert(0, "$schema".to_owned(), NEWEST.into());
        }
        if !definitions.is_empty() {
            members.insert("$defs".to_owned(), Value::Object(definitions));
        }
    }
    rendered
}

/// The levels of objects and lists in a value.
fn nesting(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(nesting).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(nesting).max().unwrap_or_default(),
        _ => 0,
    }
}

/// A rewritten schema.
struct Rendered {
    schema: Value,
    /// True if some draft may accept more than the written schema accepts.
    wider: bool,
    /// A sentence to append to its description, for what cannot be expressed otherwise.
    note: Option<String>,
}

impl Rendered {
    /// A schema that accepts what the written one accepts.
    fn exact(schema: Value) -> Self {
        Self { schema, wider: false, note: None }
    }
}

struct Renderer<'s> {
    used: SchemaUse,
    /// The schema is of draft 2020-12.
    is_newest: bool,
    /// Keywords next to `$ref` count.
    siblings_count: bool,
    references: References<'s>,
}

/// The members of a rewritten schema.
#[derive(Default)]
struct PortableDraft {
    members: Map<String, Value>,
    wider: bool,
    /// Schemas that also apply.
    also: Vec<Value>,
    note: Option<String>,
}

impl PortableDraft {
    fn put(&mut self, keyword: &str, value: impl Into<Value>) {
        self.members.insert(keyword.to_owned(), value.into());
    }

    /// Adds a subschema.
    fn put_schema(&mut self, keyword: &str, rendered: Rendered) {
        self.wider |= rendered.wider;
        self.members.insert(keyword.to_owned(), rendered.schema);
    }

    fn widen(&mut self) {
        self.wider = true;
    }
}

impl<'s> Renderer<'s> {
    /// The definitions that references still name, and those with an anchor, which others may name.
    fn definitions(&self) -> Map<String, Value> {
        let mut definitions = Map::new();
        for (name, target) in self.references.kept() {
            definitions.insert(name.to_owned(), self.schema(target).schema);
        }
        for (name, target) in self.references.anchored() {
            let mut schema = self.schema(target).schema;
            if let (Value::Object(members), Some(anchor)) = (&mut schema, target.get("$anchor")) {
                members.insert("$anchor".to_owned(), anchor.clone());
            }
            definitions.entry(name).or_insert(schema);
        }
        definitions
    }

    fn schema(&self, schema: &'s Value) -> Rendered {
        match schema {
            Value::Object(members) => self.members(members),
            Value::Bool(false) => Rendered::exact(json!({"not": {}})),
            _ => Rendered::exact(json!({})),
        }
    }

    fn members(&self, written: &'s Map<String, Value>) -> Rendered {
        let mut draft = PortableDraft::default();
        if let Some(reference) = self.references.of_schema(written) {
            self.reference(reference, written, &mut draft);
            if !self.siblings_count {
                // Up to draft-07, keywords next to `$ref` are ignored.
                return finished(draft);
            }
        }
        for (keyword, value) in written {
            self.keyword(keyword, value, written, &mut draft);
        }
        self.arrays(written, &mut draft);
        self.choices(written, &mut draft);
        self.conditions(written, &mut draft);
        self.left_over(written, &mut draft);
        let is = |name: &str| names_type(draft.members.get("type"), name);
        let is_object = is("object");
        let is_array = is("array");
        if is_object && !draft.members.contains_key("properties") {
            draft.put("properties", json!({}));
        }
        if is_array && !draft.members.contains_key("items") {
            draft.put("items", json!({}));
        }
        finished(draft)
    }

    /// Adds the schema that a reference names, or a reference to its new place.
    fn reference(&self, reference: Reference<'s>, written: &'s Map<String, Value>, draft: &mut PortableDraft) {
        let annotation = |keyword: &str| {
            matches!(
                keyword,
                "$ref"
                    | "$dynamicRef"
                    | "$recursiveRef"
                    | "title"
                    | "description"
                    | "default"
                    | "examples"
                    | "$comment"
                    | "$defs"
                    | "definitions"
                    | "$schema"
                    | "$id"
                    | "id"
                    | "$anchor"
                    | "$dynamicAnchor"
                    | "$recursiveAnchor"
                    | "$vocabulary"
                    | "deprecated"
                    | "readOnly"
                    | "writeOnly"
            )
        };
        match reference {
            Reference::Kept(target) => {
                // Draft-07 ignores what stands next to it.
                draft.widen();
                draft.put("$ref", target);
            }
            Reference::Inlined(target) => {
                let rendered = self.schema(target);
                draft.wider |= rendered.wider;
                // An annotation, or something that the target says as well.
                let adds_nothing = |(keyword, value): (&String, &Value)| {
                    annotation(keyword) || keyword == "type" && target.get(keyword) == Some(value)
                };
                match rendered.schema {
                    Value::Object(members) if !self.siblings_count || written.iter().all(adds_nothing) => {
                        draft.members = members;
                        draft.note = rendered.note;
                    }
                    Value::Object(members) if members.is_empty() => {}
                    schema => draft.also.push(schema),
                }
            }
        }
    }

    /// Adds one keyword, unless it is handled together with others.
    fn keyword(&self, keyword: &str, value: &'s Value, written: &'s Map<String, Value>, draft: &mut PortableDraft) {
        match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" | "$defs" | "definitions" | "$schema" | "$id" | "$anchor"
            | "$dynamicAnchor" | "$recursiveAnchor" | "$vocabulary" => {}
            "id" if value.is_string() => {}
            // Handled together, below.
            "items"
            | "prefixItems"
            | "additionalItems"
            | "contains"
            | "minContains"
            | "maxContains"
            | "enum"
            | "const"
            | "oneOf"
            | "anyOf"
            | "allOf"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedProperties"
            | "unevaluatedItems" => {}
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => bound(keyword, value, written, draft),
            "multipleOf" | "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
                if is_inexact(value) =>
            {
                draft.widen();
            }
            "default" | "examples" if is_inexact(value) => {}
            "type" => {
                draft.members.entry(keyword).or_insert_with(|| plain_type(value));
            }
            "pattern" => match value.as_str() {
                Some(pattern) if is_irregular(pattern) => {
                    draft.widen();
                    draft.note = Some(format!("Must match the pattern {}", sanitize::escaped(pattern)));
                }
                _ => draft.put(keyword, value.clone()),
            },
            "format" => {
                // Some clients check formats, and the host does not.
                draft.widen();
                if self.used != SchemaUse::Result {
                    draft.put(keyword, value.clone());
                }
            }
            "patternProperties" => self.named_by_patterns(value, draft),
            "additionalProperties" if has_irregular_names(written) => draft.widen(),
            "additionalProperties" if value.is_boolean() => draft.put(keyword, value.clone()),
            // Only one of the drafts knows these.
            "dependentSchemas" | "dependentRequired" | "dependencies" => {
                draft.widen();
                self.subschemas(keyword, value, draft);
            }
            _ => self.subschemas(keyword, value, draft),
        }
    }

    /// Adds a keyword with its subschemas, if it has any.
    fn subschemas(&self, keyword: &str, value: &'s Value, draft: &mut PortableDraft) {
        match value {
            Value::Object(entries) if keywords::is_map(keyword) => {
                let mut rendered = Map::new();
                for (name, entry) in entries {
                    // Draft-07's `dependencies` also holds lists of names.
                    if entry.is_array() {
                        rendered.insert(name.clone(), entry.clone());
                        continue;
                    }
                    rendered.insert(name.clone(), self.part(entry, draft));
                }
                draft.put(keyword, Value::Object(rendered));
            }
            Value::Bool(_) if keyword.starts_with("unevaluated") => draft.put(keyword, value.clone()),
            Value::Object(_) | Value::Bool(_) if keywords::is_single(keyword) => {
                draft.put_schema(keyword, self.schema(value));
            }
            _ => draft.put(keyword, value.clone()),
        }
    }

    fn named_by_patterns(&self, value: &'s Value, draft: &mut PortableDraft) {
        let Some(entries) = value.as_object() else { return };
        let mut rendered = Map::new();
        for (name, entry) in entries {
            if is_irregular(name) {
                draft.widen();
                continue;
            }
            rendered.insert(name.clone(), self.part(entry, draft));
        }
        if !rendered.is_empty() {
            draft.put("patternProperties", Value::Object(rendered));
        }
    }

    /// The items of an array. In draft-07 `items` next to `prefixItems` would apply to all of them.
    fn arrays(&self, written: &'s Map<String, Value>, draft: &mut PortableDraft) {
        let items = written.get("items");
        let prefix = match items {
            Some(Value::Array(prefix)) => Some(prefix),
            _ if self.is_newest => written.get("prefixItems").and_then(Value::as_array),
            _ => None,
        };
        let rest = if matches!(items, Some(Value::Array(_))) { written.get("additionalItems") } else { items };
        let closed_after = (rest == Some(&Value::Bool(false))).then(|| prefix.map_or(0, Vec::len));
        match (prefix, rest) {
            (Some(prefix), _) => {
                draft.widen();
                let prefix: Vec<Value> = prefix.iter().map(|item| self.schema(item).schema).collect();
                draft.put("prefixItems", prefix);
                draft.put("items", json!({}));
            }
            (None, Some(Value::Bool(_))) => draft.put("items", json!({})),
            (None, Some(rest)) => draft.put_schema("items", self.schema(rest)),
            (None, None) => {}
        }
        if let Some(most) = closed_after {
            let written = draft.members.get("maxItems").and_then(Value::as_u64);
            let most = written.map_or(most as u64, |written| written.min(most as u64));
            draft.put("maxItems", most);
        }
        let Some(contains) = written.get("contains") else { return };
        let least = written.get("minContains").and_then(Value::as_u64);
        if written.contains_key("minContains") || written.contains_key("maxContains") {
            draft.widen();
        }
        // Draft-07 does not know `minContains`; without it, one item has to match.
        if least != Some(0) {
            let rendered = self.schema(contains);
            let most = written.get("maxContains").filter(|_| !rendered.wider);
            let least = least.filter(|least| *least > 1);
            let most = most.cloned();
            draft.put_schema("contains", rendered);
            if let Some(least) = least {
                draft.put("minContains", least);
            }
            if let Some(most) = most {
                draft.put("maxContains", most);
            }
        }
    }

    /// `const`, `enum`, `anyOf`, `oneOf` and `allOf`.
    fn choices(&self, written: &'s Map<String, Value>, draft: &mut PortableDraft) {
        if self.used == SchemaUse::Form {
            let choices = ["enum", "oneOf", "anyOf"].into_iter().filter_map(|keyword| written.get_key_value(keyword));
            return choices.for_each(|(keyword, listed)| draft.put(keyword, listed.clone()));
        }
        values::choices(written, draft);
        let list = |keyword: &str| written.get(keyword).and_then(Value::as_array);
        let any = list("anyOf").map(|branches| self.branches(branches, draft)).map(|all| spliced(all, draft));
        let one = list("oneOf").map(|branches| {
            // What matches two branches in one draft may match one in the other.
            draft.wider |= branches.len() > 1;
            let branches = self.branches(branches, draft);
            spliced(branches, draft)
        });
        for branches in [any, one].into_iter().flatten() {
            if draft.members.contains_key("anyOf") {
                draft.also.push(json!({"anyOf": branches}));
            } else {
                draft.put("anyOf", branches);
            }
        }
        for part in list("allOf").into_iter().flatten() {
            let part = self.part(part, draft);
            draft.also.push(part);
        }
    }

    fn branches(&self, branches: &'s [Value], draft: &mut PortableDraft) -> Vec<Value> {
        branches.iter().map(|branch| self.part(branch, draft)).collect()
    }

    /// A subschema of the draft, which is wider where this is.
    fn part(&self, schema: &'s Value, draft: &mut PortableDraft) -> Value {
        let Rendered { schema, wider, .. } = self.schema(schema);
        draft.wider |= wider;
        schema
    }

    /// `not` and `if`, which accept less if their subschemas accept more.
    fn conditions(&self, written: &'s Map<String, Value>, draft: &mut PortableDraft) {
        if let Some(not) = written.get("not") {
            let rendered = self.schema(not);
            if rendered.wider {
                draft.widen();
            } else {
                draft.put("not", rendered.schema);
            }
        }
        let Some(condition) = written.get("if").map(|condition| self.schema(condition)) else { return };
        if condition.wider {
            draft.widen();
            return;
        }
        draft.put("if", condition.schema);
        for keyword in ["then", "else"] {
            if let Some(branch) = written.get(keyword) {
                draft.put_schema(keyword, self.schema(branch));
            }
        }
    }

    /// Unevaluated members and items. If a keyword is wider or left out, there may be more of them
    /// than in the written schema.
    fn left_over(&self, written: &'s Map<String, Value>, draft: &mut PortableDraft) {
        let is_exact = !draft.wider;
        for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
            let Some(value) = written.get(keyword) else { continue };
            if is_exact {
                self.subschemas(keyword, value, draft);
            }
            draft.widen();
        }
    }
}

/// The branches of a choice, with those of choices among them in their place: some clients fail on
/// nested ones. The description of a choice moves up if null alone stands next to it.
fn spliced(branches: Vec<Value>, draft: &mut PortableDraft) -> Vec<Value> {
    let is_null = |branch: &Value| names_type(branch.get("type"), "null");
    let is_only = branches.iter().filter(|branch| !is_null(branch)).count() == 1;
    let mut flat = Vec::with_capacity(branches.len());
    for mut branch in branches {
        let members = branch.as_object_mut();
        let choice = members
            .filter(|members| members.keys().all(|keyword| keyword == "anyOf" || is_only && keyword == "description"));
        let Some(Value::Array(inner)) = choice.and_then(|members| members.remove("anyOf")) else {
            flat.push(branch);
            continue;
        };
        flat.extend(inner);
        if let Some(text) = branch.get("description").and_then(Value::as_str) {
            describe(&mut draft.members, text);
        }
    }
    flat
}

/// Appends a line to the description, unless it ends with it.
fn describe(members: &mut Map<String, Value>, line: &str) {
    let text = match members.get("description").and_then(Value::as_str) {
        Some(written) if written.ends_with(line) => return,
        Some(written) => format!("{written}\n{line}"),
        None => line.to_owned(),
    };
    members.insert("description".to_owned(), Value::String(text));
}

fn finished(draft: PortableDraft) -> Rendered {
    let PortableDraft { mut members, wider, also, note } = draft;
    if !also.is_empty() {
        members.insert("allOf".to_owned(), Value::Array(also));
    }
    if let Some(note) = &note {
        // It may already be in the schema that a reference names.
        describe(&mut members, note);
    }
    Rendered { schema: Value::Object(members), wider, note }
}

/// Adds the bound of a number, unless some JSON reader cannot represent it.
fn bound(keyword: &str, value: &Value, written: &Map<String, Value>, draft: &mut PortableDraft) {
    let is_strict = |strict: &str| written.get(strict) == Some(&Value::Bool(true));
    match (keyword, value) {
        // In draft-04 this is a boolean that makes the bound next to it exclusive.
        ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) => {}
        (_, number) if is_inexact(number) => draft.widen(),
        ("minimum", number) if is_strict("exclusiveMinimum") => draft.put("exclusiveMinimum", number.clone()),
        ("maximum", number) if is_strict("exclusiveMaximum") => draft.put("exclusiveMaximum", number.clone()),
        _ => draft.put(keyword, value.clone()),
    }
}

/// True if members are named by a pattern that the portable form cannot contain.
fn has_irregular_names(written: &Map<String, Value>) -> bool {
    let patterns = written.get("patternProperties").and_then(Value::as_object);
    patterns.is_some_and(|patterns| patterns.keys().any(|pattern| is_irregular(pattern)))
}

/// The largest absolute value of a bound in a served schema: 2^53 − 1.
pub const PORTABLE_INTEGER_MAX: i64 = EXACT_MAX;

#[cfg(test)]
mod tests;
