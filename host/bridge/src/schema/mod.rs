//! Schemas of a document as schemas of tools: references inlined, `allOf` merged, and only keywords
//! that every model's API takes. What is cut is open: it accepts more than the document says, so
//! that the server decides.
mod keywords;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::document::Document;
use crate::limits::{ENUM_VALUES_MAX, LEVELS, MEMBERS_MAX, SCHEMA_TEXT_BYTES_MAX, SUBSCHEMAS_MAX, VALUE_BYTES_MAX};
use crate::merge;
use crate::names::{clipped, is_property, of_argument};
pub(crate) use keywords::{add_text, is_bytes};
use keywords::{bounds, made_nullable};

/// Schemas, references and members of `allOf` inside each other. 64: the stack of a thread holds
/// ten times as many.
const NESTING_MAX: usize = 64;

/// Schemas and properties looked at for one schema, those that are merged or left out included.
const VISITS_MAX: usize = 8 * SUBSCHEMAS_MAX;

/// Types of JSON.
const TYPES: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];

/// Whose schema it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaUse {
    /// Of arguments: every keyword, without what only answers have.
    Input,
    /// Of an argument whose members are the fields of a form. It is as of arguments, and fields
    /// whose names no API takes get others.
    Fields,
    /// Of answers: names, types and descriptions. Servers send what their documents do not say,
    /// such as `null` and new values, and an answer must not be lost for that.
    Output,
}

/// A schema within its bounds.
pub(crate) struct Inlined {
    pub(crate) schema: Value,
    /// True if something of it is left open.
    pub(crate) is_cut: bool,
    /// Names of fields in the document, by those that they got.
    pub(crate) names: BTreeMap<String, String>,
    /// Schemas and properties that were looked at for it, in all attempts.
    pub(crate) visits: usize,
}

/// Stops an attempt that exceeds a bound.
struct Over;

/// The schema of the document as one without references, of at most `bytes_max` bytes. It is tried
/// with few levels first, since those cost little, and with more until a bound is reached.
pub(crate) fn inlined(document: &Document<'_>, schema: &Value, usage: SchemaUse, bytes_max: usize) -> Inlined {
    let mut best = Inlined { schema: json!({}), is_cut: true, names: BTreeMap::new(), visits: 0 };
    for levels in LEVELS {
        let mut inliner = Inliner::of(document, usage, levels);
        let made = inliner.schema(schema, Depth::default());
        best.visits += inliner.visits;
        match made {
            Ok(mut made) if merge::json_bytes(&made) <= bytes_max => {
                require_only_what_is_left(&mut made, &inliner.left_out);
                let names = std::mem::take(&mut inliner.names);
                best = Inlined { schema: made, is_cut: inliner.is_cut, names, ..best }
            }
            _ => return best,
        }
        if !inliner.is_deeper {
            return best;
        }
    }
    best
}

/// The schema's type and description alone, for which little is looked at.
pub(crate) fn opened(document: &Document<'_>, schema: &Value, usage: SchemaUse) -> Inlined {
    let mut inliner = Inliner::of(document, usage, 0);
    let made = inliner.schema(schema, Depth::default());
    let Inliner { is_cut, visits, names, .. } = inliner;
    Inlined { schema: made.unwrap_or_else(|_| json!({})), is_cut, names, visits }
}

/// The place of a schema within the whole.
#[derive(Clone, Copy, Default)]
struct Depth {
    /// Levels of properties, items and variants.
    level: usize,
    /// Schemas, references and members of `allOf` inside each other.
    nesting: usize,
    /// True inside a property or an item: what is there has no fields of a form.
    is_inside: bool,
}

impl Depth {
    /// The same level, by a reference or as a member.
    const fn nested(self) -> Self {
        Self { nesting: self.nesting + 1, ..self }
    }

    /// One level further down.
    const fn below(self) -> Self {
        Self { level: self.level + 1, ..self.nested() }
    }

    /// One level further down, where members are not fields of a form.
    const fn inside(self) -> Self {
        Self { is_inside: true, ..self.below() }
    }
}

struct Inliner<'d, 'a> {
    document: &'d Document<'a>,
    usage: SchemaUse,
    levels: usize,
    subschemas: usize,
    visits: usize,
    is_cut: bool,
    /// True if more levels would show more.
    is_deeper: bool,
    /// References that lead to the schema that is being read.
    trail: Vec<String>,
    /// Names of properties that only answers have.
    left_out: BTreeSet<String>,
    /// As in [`Inlined`].
    names: BTreeMap<String, String>,
}

impl<'d, 'a> Inliner<'d, 'a> {
    const fn of(document: &'d Document<'a>, usage: SchemaUse, levels: usize) -> Self {
        Self {
            document,
            usage,
            levels,
            subschemas: 0,
            visits: 0,
            is_cut: false,
            is_deeper: false,
            trail: Vec::new(),
            left_out: BTreeSet::new(),
            names: BTreeMap::new(),
        }
    }

    /// Counts a schema, or a property, that is looked at.
    fn look(&mut self) -> Result<(), Over> {
        self.visits += 1;
        if self.visits > VISITS_MAX { Err(Over) } else { Ok(()) }
    }

    fn schema(&mut self, schema: &Value, at: Depth) -> Result<Value, Over> {
        self.look()?;
        // `true`, and `false`, which no API takes.
        let Value::Object(written) = schema else { return Ok(json!({})) };
        if at.nesting >= NESTING_MAX {
            return Ok(self.open(schema));
        }
        if let Some(Value::String(reference)) = written.get("$ref") {
            return self.reference(reference, written, at);
        }
        if at.level >= self.levels {
            self.is_deeper = true;
            return Ok(self.open(schema));
        }
        let mut made = self.own(written, at)?;
        if let Some(Value::Array(members)) = written.get("allOf") {
            for member in self.members(members) {
                let member = self.schema(member, at.nested())?;
                made = merge::merged(made, member);
            }
        }
        Ok(Value::Object(made_nullable(made, written)))
    }

    /// What a reference leads to, with the texts next to it.
    fn reference(&mut self, reference: &str, written: &Map<String, Value>, at: Depth) -> Result<Value, Over> {
        let Ok(target) = self.document.target(reference) else {
            self.is_cut = true;
            return Ok(json!({}));
        };
        if self.trail.iter().any(|earlier| earlier == reference) {
            return Ok(self.open(target));
        }
        self.trail.push(reference.to_owned());
        let made = self.schema(target, at.nested());
        self.trail.pop();
        let mut made = match made? {
            Value::Object(made) => made,
            _ => Map::new(),
        };
        if written.len() > 1 && !self.document.is_30 {
            let mut others = written.clone();
            others.remove("$ref");
            let others = self.schema(&Value::Object(others), at.nested())?;
            made = merge::merged(made, others);
        }
        self.texts(written, &mut made);
        Ok(Value::Object(made))
    }

    /// A schema's type alone: nothing inside it is looked at.
    fn open(&mut self, schema: &Value) -> Value {
        self.is_cut = true;
        let mut open = Map::new();
        if let Value::Object(written) = schema {
            self.kind(written, &mut open);
            self.texts(written, &mut open);
            if self.usage != SchemaUse::Output && is_bytes(written) {
                open.insert("format".to_owned(), "binary".into());
            }
        }
        Value::Object(made_nullable(open, &Map::new()))
    }

    /// Everything but `allOf`.
    fn own(&mut self, written: &Map<String, Value>, at: Depth) -> Result<Map<String, Value>, Over> {
        self.subschemas += 1;
        if self.subschemas > SUBSCHEMAS_MAX {
            return Err(Over);
        }
        let mut made = Map::new();
        self.kind(written, &mut made);
        self.texts(written, &mut made);
        if self.usage != SchemaUse::Output {
            self.values(written, &mut made);
            bounds(written, &mut made);
        }
        self.list(written, &mut made, at)?;
        self.object(written, &mut made, at)?;
        self.choice(written, &mut made, at)?;
        Ok(made)
    }

    fn kind(&self, written: &Map<String, Value>, made: &mut Map<String, Value>) {
        let is_type = |kind: &&Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
        let mut kinds: Vec<Value> = match written.get("type") {
            Some(Value::Array(kinds)) => distinct(kinds.iter().filter(is_type).take(TYPES.len())),
            Some(kind) => Some(kind).filter(is_type).into_iter().cloned().collect(),
            None if written.contains_key("properties") => vec!["object".into()],
            // Real answers of such schemas are objects as well.
            None if self.usage != SchemaUse::Output && written.get("items").is_some_and(Value::is_object) => {
                vec!["array".into()]
            }
            None => Vec::new(),
        };
        let may_be_null = self.usage == SchemaUse::Output || written.get("nullable") == Some(&Value::Bool(true));
        if may_be_null && !kinds.is_empty() && !kinds.contains(&"null".into()) {
            kinds.push("null".into());
        }
        match kinds.as_slice() {
            [] => {}
            [kind] => drop(made.insert("type".to_owned(), kind.clone())),
            _ => drop(made.insert("type".to_owned(), kinds.into())),
        }
    }

    fn texts(&self, written: &Map<String, Value>, made: &mut Map<String, Value>) {
        if let Some(Value::String(text)) = written.get("description") {
            let text = clipped(text, SCHEMA_TEXT_BYTES_MAX);
            if !text.is_empty() {
                made.insert("description".to_owned(), text.into());
            }
        }
    }

    /// Values that are named: `enum`, `const` and `default`.
    fn values(&mut self, written: &Map<String, Value>, made: &mut Map<String, Value>) {
        let is_short = |value: &Value| merge::json_bytes(value) <= VALUE_BYTES_MAX;
        if let Some(Value::Array(values)) = written.get("enum") {
            let fits = values.len() <= ENUM_VALUES_MAX && values.iter().all(is_short);
            if fits && !values.is_empty() {
                made.insert("enum".to_owned(), values.clone().into());
            } else if !values.is_empty() {
                self.is_cut = true;
                add_text(made, &format!("One of {} values.", values.len()));
            }
        }
        if let Some(value) = written.get("const").filter(|value| is_short(value)) {
            made.insert("const".to_owned(), value.clone());
        }
        if let Some(value) = written.get("default").filter(|value| is_short(value) && !value.is_null()) {
            made.insert("default".to_owned(), value.clone());
        }
    }

    fn list(&mut self, written: &Map<String, Value>, made: &mut Map<String, Value>, at: Depth) -> Result<(), Over> {
        if let Some(items @ Value::Object(_)) = written.get("items") {
            let items = self.schema(items, at.inside())?;
            made.insert("items".to_owned(), items);
        } else if made.get("type") == Some(&"array".into()) {
            made.insert("items".to_owned(), json!({}));
        }
        Ok(())
    }

    fn object(&mut self, written: &Map<String, Value>, made: &mut Map<String, Value>, at: Depth) -> Result<(), Over> {
        let mut unnamed = Vec::new();
        if let Some(Value::Object(properties)) = written.get("properties") {
            let mut own = Map::new();
            for (name, property) in properties {
                self.look()?;
                if self.leaves_out(property) {
                    self.left_out.insert(name.clone());
                    continue;
                }
                let Some(given) = self.given(name, properties, at) else {
                    unnamed.push(name.as_str());
                    continue;
                };
                let property = self.schema(property, at.inside())?;
                own.insert(given, property);
            }
            made.insert("properties".to_owned(), own.into());
        }
        if self.usage == SchemaUse::Output {
            return Ok(());
        }
        if !unnamed.is_empty() {
            self.is_cut = true;
            add_text(made, &clipped(&format!("Also takes: {}.", unnamed.join(", ")), SCHEMA_TEXT_BYTES_MAX));
        }
        if let Some(Value::Array(required)) = written.get("required") {
            let required = required.iter().take(SUBSCHEMAS_MAX).filter_map(Value::as_str);
            let none = Map::new();
            let properties = written.get("properties").and_then(Value::as_object).unwrap_or(&none);
            let required: Vec<Value> =
                required.filter_map(|name| self.given(name, properties, at)).map(Value::from).collect();
            let required = distinct(required.iter());
            if !required.is_empty() {
                made.insert("required".to_owned(), required.into());
            }
        }
        match written.get("additionalProperties") {
            Some(Value::Bool(false)) if unnamed.is_empty() => {
                made.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            Some(others @ Value::Object(members)) if !members.is_empty() && unnamed.is_empty() => {
                let others = self.schema(others, at.inside())?;
                made.insert("additionalProperties".to_owned(), others);
            }
            _ => {}
        }
        Ok(())
    }

    /// The name that a property of these gets; `None` if no API takes one like it.
    fn given(&mut self, name: &str, properties: &Map<String, Value>, at: Depth) -> Option<String> {
        if self.usage == SchemaUse::Output || is_property(name) {
            return Some(name.to_owned());
        }
        if self.usage != SchemaUse::Fields || at.is_inside {
            return None;
        }
        if let Some((known, _)) = self.names.iter().find(|(_, field)| *field == name) {
            return Some(known.clone());
        }
        let wanted = of_argument(name);
        let numbered = (2..MEMBERS_MAX).map(|number| format!("{wanted}_{number}"));
        let is_free =
            |given: &String| is_property(given) && !properties.contains_key(given) && !self.names.contains_key(given);
        let given = std::iter::once(wanted.clone()).chain(numbered).find(is_free)?;
        self.names.insert(given.clone(), name.to_owned());
        Some(given)
    }

    /// True for a property that only the other direction has.
    fn leaves_out(&self, property: &Value) -> bool {
        let key = if self.usage == SchemaUse::Output { "writeOnly" } else { "readOnly" };
        let followed = self.document.followed(property).unwrap_or(property);
        [property, followed].iter().any(|property| property.get(key) == Some(&Value::Bool(true)))
    }

    /// `oneOf` and `anyOf`, both as `anyOf`: variants of real documents overlap.
    fn choice(&mut self, written: &Map<String, Value>, made: &mut Map<String, Value>, at: Depth) -> Result<(), Over> {
        let variants = ["oneOf", "anyOf"].iter().find_map(|key| written.get(*key)?.as_array());
        let Some(variants) = variants.filter(|variants| !variants.is_empty()) else { return Ok(()) };
        let is_filled = |properties: &Map<String, Value>| !properties.is_empty();
        let has_properties = made.get("properties").and_then(Value::as_object).is_some_and(is_filled);
        let mut own: Vec<Value> = Vec::new();
        for variant in self.members(variants) {
            let mut each = self.schema(variant, at.below())?;
            self.discriminate(written, variant, &mut each);
            if let (true, Value::Object(each)) = (has_properties, &mut each) {
                merge::open(each);
            }
            if !own.contains(&each) {
                own.push(each);
            }
        }
        if let [Value::Object(_)] = own.as_slice() {
            let only = own.pop().unwrap_or_default();
            *made = merge::merged(std::mem::take(made), only);
            return Ok(());
        }
        let is_null = |variant: &Value| variant.get("type") == Some(&"null".into());
        if self.usage == SchemaUse::Output && !own.iter().any(is_null) {
            own.push(json!({"type": "null"}));
        }
        made.insert("anyOf".to_owned(), own.into());
        Ok(())
    }

    /// Names the value of the discriminator in a variant: what `mapping` says, or the schema's
    /// name.
    fn discriminate(&self, written: &Map<String, Value>, variant: &Value, made: &mut Value) {
        let Some(discriminator) = written.get("discriminator").filter(|_| self.usage != SchemaUse::Output) else {
            return;
        };
        let Some(property) = discriminator.get("propertyName").and_then(Value::as_str) else { return };
        let Some(reference) = variant.get("$ref").and_then(Value::as_str) else { return };
        let name = reference.rsplit('/').next().unwrap_or_default();
        let mapping = discriminator.get("mapping").and_then(Value::as_object);
        let leads_here = |target: &&Value| target.as_str().is_some_and(|target| target == reference || target == name);
        let named = mapping.into_iter().flatten().take(MEMBERS_MAX).filter(|(_, target)| leads_here(target));
        let mut values: Vec<Value> = named.map(|(value, _)| value.as_str().into()).collect();
        if values.is_empty() {
            values.push(name.into());
        }
        let place = made.get_mut("properties").and_then(|properties| properties.get_mut(property));
        let Some(Value::Object(place)) = place else { return };
        if !place.contains_key("enum") && !place.contains_key("const") {
            place.insert("enum".to_owned(), values.into());
        }
    }

    fn members<'m>(&mut self, members: &'m [Value]) -> &'m [Value] {
        if members.len() > MEMBERS_MAX {
            self.is_cut = true;
        }
        members.get(..MEMBERS_MAX).unwrap_or(members)
    }
}

/// Drops names from `required` whose properties are left out, wherever in the schema they were: a
/// member of an `allOf` requires those of the others.
fn require_only_what_is_left(schema: &mut Value, left_out: &BTreeSet<String>) {
    if left_out.is_empty() {
        return;
    }
    let Value::Object(members) = schema else { return };
    if let Some(Value::Array(mut required)) = members.remove("required") {
        let has = |name: &str| members.get("properties").is_some_and(|properties| properties.get(name).is_some());
        required.retain(|name| name.as_str().is_some_and(|name| has(name) || !left_out.contains(name)));
        if !required.is_empty() {
            members.insert("required".to_owned(), required.into());
        }
    }
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.values_mut().for_each(|property| require_only_what_is_left(property, left_out));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inside) = members.get_mut(key) {
            require_only_what_is_left(inside, left_out);
        }
    }
    if let Some(Value::Array(variants)) = members.get_mut("anyOf") {
        variants.iter_mut().for_each(|variant| require_only_what_is_left(variant, left_out));
    }
}

/// Each value once: a type or a required name that stands twice makes a schema invalid.
fn distinct<'v>(values: impl Iterator<Item = &'v Value>) -> Vec<Value> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(value) {
            distinct.push(value.clone());
        }
    }
    distinct
}
