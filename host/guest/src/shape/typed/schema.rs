//! Types → JSON Schema in the portable form. It accepts exactly the JSON that converts, except for
//! the ranges of floats and 64-bit integers.
use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};
use toolcell_schema::SchemaUse;

use super::ty::{Int, Ty, TyId, TypedField, Types};

/// The source of descriptions of types: WIT's own comments, a manifest.
pub(crate) trait Docs {
    /// The name and description of a type, if known.
    fn of_type(&self, ty: TyId) -> Option<TypeDocs<'_>>;
}

/// The description of a type.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TypeDocs<'a> {
    /// Such as `wind-speed`.
    pub(crate) name: Option<&'a str>,
    /// Its description, in sentences.
    pub(crate) text: Option<&'a str>,
    /// Descriptions of its fields, cases or labels, in the type's order.
    pub(crate) members: &'a [Option<String>],
}

/// No descriptions.
#[cfg(test)]
pub(crate) struct NoDocs;

#[cfg(test)]
impl Docs for NoDocs {
    fn of_type(&self, _: TyId) -> Option<TypeDocs<'_>> {
        None
    }
}

/// The schema of an object with these fields: a function's parameters.
pub(crate) fn of_fields(types: &Types, docs: &dyn Docs, fields: &[TypedField], texts: &[Option<String>]) -> Value {
    let mut writer = SchemaWriter::new(types, docs, SchemaUse::Arguments, fields.iter().map(|field| field.ty));
    let object = writer.object(fields, texts);
    writer.finish(object)
}

/// The schema of an object that is the result of a function: the record itself, any other value as
/// `result`.
pub(crate) fn of_result(types: &Types, docs: &dyn Docs, result: Option<TyId>) -> Value {
    let Some(ty) = result else {
        return json!({"type": "object", "properties": {}, "additionalProperties": false});
    };
    let mut writer = SchemaWriter::new(types, docs, SchemaUse::Result, std::iter::once(ty));
    if let Ty::Record(fields) = types.get(ty) {
        // The root is never a reference: clients look for "type": "object" there.
        let known = docs.of_type(ty).unwrap_or_default();
        let object = writer.object(fields, known.members);
        let described = described(object, known.text);
        return writer.finish(described);
    }
    let inner = writer.schema(ty);
    let object = closed_object(Map::from_iter([("result".to_owned(), inner)]), vec![json!("result")]);
    writer.finish(object)
}

/// Types up to this weight are written in full at each use.
const PLAIN_WEIGHT_MAX: u64 = 4;

struct SchemaWriter<'a> {
    types: &'a Types,
    docs: &'a dyn Docs,
    used: SchemaUse,
    uses: HashMap<TyId, usize>,
    weights: HashMap<TyId, u64>,
    /// The types under `$defs`, by name.
    names: HashMap<TyId, String>,
    definitions: BTreeMap<String, Value>,
}

impl<'a> SchemaWriter<'a> {
    fn new(types: &'a Types, docs: &'a dyn Docs, used: SchemaUse, roots: impl Iterator<Item = TyId>) -> Self {
        let mut uses = HashMap::new();
        for root in roots {
            count(types, root, &mut uses);
        }
        Self { types, docs, used, uses, weights: HashMap::new(), names: HashMap::new(), definitions: BTreeMap::new() }
    }

    fn finish(self, mut root: Value) -> Value {
        if let (Value::Object(root), false) = (&mut root, self.definitions.is_empty()) {
            root.insert("$defs".to_owned(), Value::Object(self.definitions.into_iter().collect()));
        }
        root
    }

    /// The schema of a type, or a reference to it if it is used more than once.
    fn schema(&mut self, ty: TyId) -> Value {
        if !self.repeats(ty) || !self.is_definition(ty) {
            return self.inline(ty);
        }
        let name = match self.names.get(&ty) {
            Some(name) => name.clone(),
            None => {
                let name = self.fresh_name(ty);
                self.names.insert(ty, name.clone());
                let definition = self.inline(ty);
                self.definitions.insert(name.clone(), definition);
                name
            }
        };
        json!({"$ref": format!("#/$defs/{name}")})
    }

    fn fresh_name(&self, ty: TyId) -> String {
        let known = self.docs.of_type(ty).and_then(|known| known.name);
        let plain = known.map_or_else(|| self.kind(ty).to_owned(), super::ty::json_name);
        let taken = |name: &String| self.names.values().any(|other| other == name);
        let mut name = plain.clone();
        let mut number = 2;
        while taken(&name) {
            name = format!("{plain}_{number}");
            number += 1;
        }
        name
    }

    /// Types that get a name if they repeat: those that have one in WIT, and those much longer than
    /// a reference.
    fn is_definition(&mut self, ty: TyId) -> bool {
        self.is_named(ty) || self.weight(ty) > PLAIN_WEIGHT_MAX
    }

    fn is_named(&self, ty: TyId) -> bool {
        self.types.get(ty).has_parts()
    }

    /// The number of types that a type consists of, written in full; a reference counts as one.
    fn weight(&mut self, ty: TyId) -> u64 {
        if let Some(weight) = self.weights.get(&ty) {
            return *weight;
        }
        let mut weight = 1_u64;
        for part in self.types.parts(ty) {
            let is_reference = self.is_named(part) && self.repeats(part);
            weight = weight.saturating_add(if is_reference { 1 } else { self.weight(part) });
        }
        self.weights.insert(ty, weight);
        weight
    }

    fn repeats(&self, ty: TyId) -> bool {
        self.uses.get(&ty).is_some_and(|uses| *uses > 1)
    }

    fn kind(&self, ty: TyId) -> &'static str {
        match self.types.get(ty) {
            Ty::Record(_) => "record",
            Ty::Variant(_) => "variant",
            Ty::Enum(_) => "enum",
            Ty::Flags(_) => "flags",
            Ty::Tuple(_) => "tuple",
            Ty::List(_) | Ty::FixedList(..) => "list",
            Ty::Stream(_) => "stream",
            Ty::Future(_) => "future",
            Ty::Option(_) => "option",
            Ty::Result(..) => "result",
            _ => "type",
        }
    }

    fn inline(&mut self, ty: TyId) -> Value {
        let types = self.types;
        let known = self.docs.of_type(ty).unwrap_or_default();
        let schema = match types.get(ty) {
            Ty::Bool => json!({"type": "boolean"}),
            Ty::Int(int) => integer(*int),
            Ty::F32 | Ty::F64 => float(self.used),
            Ty::Char => json!({"type": "string", "minLength": 1, "maxLength": 1}),
            Ty::Text => json!({"type": "string"}),
            Ty::Bytes => bytes(),
            Ty::Stream(_) if types.is_bytes(ty) => bytes(),
            Ty::List(item) | Ty::Stream(Some(item)) => json!({"type": "array", "items": self.schema(*item)}),
            Ty::Stream(None) => json!({"type": "array", "items": {"type": "null"}}),
            Ty::Future(Some(item)) => self.schema(*item),
            Ty::Future(None) => json!({"type": "null"}),
            Ty::FixedList(item, length) => {
                json!({"type": "array", "items": self.schema(*item), "minItems": length, "maxItems": length})
            }
            Ty::Tuple(items) => {
                let schemas: Vec<Value> = items.iter().map(|item| self.schema(*item)).collect();
                let length = schemas.len();
                json!({"type": "array", "prefixItems": schemas, "items": {}, "minItems": length, "maxItems": length})
            }
            Ty::Record(fields) => self.object(fields, known.members),
            Ty::Variant(cases) => {
                let schemas: Vec<Value> = cases
                    .iter()
                    .enumerate()
                    .map(|(at, case)| {
                        let text = known.members.get(at).and_then(Option::as_deref);
                        let schema = match case.payload {
                            None => json!({"type": "string", "enum": [case.name]}),
                            Some(payload) => self.tagged(&case.name, Some(payload)),
                        };
                        described(schema, text)
                    })
                    .collect();
                json!({"anyOf": schemas})
            }
            Ty::Enum(labels) => {
                let texts = member_texts(labels, known.members);
                described(json!({"type": "string", "enum": labels}), texts.as_deref())
            }
            Ty::Flags(labels) => {
                let texts = member_texts(labels, known.members);
                let item = json!({"type": "string", "enum": labels});
                described(json!({"type": "array", "items": item, "uniqueItems": true}), texts.as_deref())
            }
            Ty::Option(inner) if types.is_optional(*inner) => {
                json!({"anyOf": [self.tagged("some", Some(*inner)), {"type": "null"}]})
            }
            Ty::Option(inner) => json!({"anyOf": [self.schema(*inner), {"type": "null"}]}),
            Ty::Result(ok, err) => json!({"anyOf": [self.tagged("ok", *ok), self.tagged("err", *err)]}),
        };
        described(schema, known.text)
    }

    /// An object with one key.
    fn tagged(&mut self, key: &str, payload: Option<TyId>) -> Value {
        let payload = payload.map_or_else(|| json!({"type": "null"}), |ty| self.schema(ty));
        closed_object(Map::from_iter([(key.to_owned(), payload)]), vec![json!(key)])
    }

    fn object(&mut self, fields: &[TypedField], texts: &[Option<String>]) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (at, field) in fields.iter().enumerate() {
            let text = texts.get(at).and_then(Option::as_deref);
            properties.insert(field.name.clone(), described(self.schema(field.ty), text));
            if !self.types.is_optional(field.ty) {
                required.push(json!(field.name));
            }
        }
        closed_object(properties, required)
    }
}

fn closed_object(properties: Map<String, Value>, required: Vec<Value>) -> Value {
    let mut object = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if let (Value::Object(object), false) = (&mut object, required.is_empty()) {
        object.insert("required".to_owned(), Value::Array(required));
    }
    object
}

/// The meanings of a type's labels, as lines of its description.
fn member_texts(labels: &[String], texts: &[Option<String>]) -> Option<String> {
    let lines: Vec<String> = labels
        .iter()
        .zip(texts)
        .filter_map(|(label, text)| text.as_ref().map(|text| format!("{label}: {}", text.replace('\n', " "))))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Prepends a description to the existing one.
fn described(mut schema: Value, text: Option<&str>) -> Value {
    if let (Value::Object(object), Some(text)) = (&mut schema, text) {
        let text = match object.get("description").and_then(Value::as_str) {
            Some(more) => format!("{text}\n{more}"),
            None => text.to_owned(),
        };
        object.insert("description".to_owned(), Value::String(text));
    }
    schema
}

fn count(types: &Types, ty: TyId, uses: &mut HashMap<TyId, usize>) {
    let seen = uses.entry(ty).or_insert(0);
    *seen += 1;
    // Types within a repeated type repeat, too, so there is nothing more to count.
    if *seen > 2 {
        return;
    }
    for part in types.parts(ty) {
        count(types, part, uses);
    }
}

/// The conversion checks the range of 64-bit integers: some model APIs refuse bounds past 2^53, and
/// every request pays for a long pattern.
fn integer(int: Int) -> Value {
    let (least, greatest) = int.range();
    match int {
        Int::U64 => json!({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": U64_PATTERN}]}),
        Int::S64 => json!({"anyOf": [{"type": "integer"}, {"type": "string", "pattern": S64_PATTERN}]}),
        _ => json!({"type": "integer", "minimum": least as i64, "maximum": greatest as i64}),
    }
}

/// Decimal digits without leading zeros or `-0`, as many as 64 bits may need.
const U64_PATTERN: &str = "^(0|[1-9][0-9]{0,19})$";
const S64_PATTERN: &str = "^(0|-?[1-9][0-9]{0,18})$";

fn bytes() -> Value {
    json!({"type": "string", "contentEncoding": "base64", "pattern": BASE64_PATTERN})
}

/// Clients of command lines send an argument as text where the schema has a choice. Results have
/// numbers.
fn float(used: SchemaUse) -> Value {
    let special = json!({"type": "string", "enum": ["NaN", "Infinity", "-Infinity"]});
    match used {
        SchemaUse::Arguments => {
            json!({"anyOf": [{"type": "number"}, special, {"type": "string", "pattern": DECIMAL_PATTERN}]})
        }
        SchemaUse::Result | SchemaUse::Form => json!({"anyOf": [{"type": "number"}, special]}),
    }
}

/// A decimal number, leading zeros too. [`super::decode`] reads the same.
const DECIMAL_PATTERN: &str = "^-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$";

/// Base64 of the standard alphabet, with padding.
const BASE64_PATTERN: &str = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";
