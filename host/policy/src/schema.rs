//! The manifest's JSON Schema, for editors and for the reference page, generated from the declared
//! tables.

use serde_json::{Map, Value, json};

use crate::limits::{Spec, Unit};
use crate::parse::ROOT;
use crate::table::{Key, Shape, Table};

/// The JSON Schema (draft 2020-12) of `toolcell.toml`.
#[must_use]
pub fn json_schema() -> Value {
    let mut definitions = Definitions::default();
    let mut schema = definitions.table(&ROOT);
    let about = schema.shift_remove("description").unwrap_or_default();
    schema.insert("title".to_owned(), json!("toolcell manifest"));
    schema.insert("description".to_owned(), about);
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("$defs".to_owned(), Value::Object(definitions.0));
    Value::Object(schema)
}

/// The named parts of the schema, in the order in which they are first needed.
#[derive(Default)]
struct Definitions(Map<String, Value>);

impl Definitions {
    fn table(&mut self, table: &Table) -> Map<String, Value> {
        let required: Vec<&str> = table.keys().filter(|key| key.required).map(|key| key.name).collect();
        let properties: Map<_, _> = table.keys().map(|key| (key.name.to_owned(), self.property(key))).collect();
        let mut schema = map(json!({"type": "object", "additionalProperties": false, "properties": properties}));
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema.insert("description".to_owned(), json!(one_line(table.about)));
        schema
    }

    /// The schema of a key: its shape, description, facts, default and examples.
    fn property(&mut self, key: &Key) -> Value {
        let mut shape = self.shape(&key.shape);
        let mut facts = map((key.facts)());
        let head = ["type", "items", "additionalProperties", "minimum"];
        let mut schema: Map<_, _> = head.into_iter().filter_map(|name| shape.shift_remove_entry(name)).collect();
        schema.insert("description".to_owned(), json!(key.description()));
        let default = match key.shape {
            Shape::Limit(spec) => Some(written(spec, spec.default)),
            _ => facts.shift_remove("default"),
        };
        let last = [("default", default), ("examples", facts.shift_remove("examples"))];
        let rest: Map<_, _> = ["$ref", "anyOf"].into_iter().filter_map(|name| shape.shift_remove_entry(name)).collect();
        schema.extend(facts);
        schema.extend(shape);
        schema.extend(last.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        schema.extend(rest);
        Value::Object(schema)
    }

    fn shape(&mut self, shape: &Shape) -> Map<String, Value> {
        map(match shape {
            Shape::Text => json!({"type": "string"}),
            Shape::Flag => json!({"type": "boolean"}),
            Shape::Fraction => json!({"type": "number"}),
            Shape::UpTo(max) => json!({"type": "integer", "minimum": 0, "maximum": max}),
            Shape::Words(words) => json!({"type": "string", "enum": words}),
            Shape::List(items) => json!({"type": "array", "items": self.shape(items)}),
            Shape::Named(values) => json!({"type": "object", "additionalProperties": self.shape(values)}),
            Shape::Any => json!({"type": "object", "additionalProperties": true}),
            Shape::Limit(spec) | Shape::Optional(spec) | Shape::Within(spec) => return self.limit(spec),
            Shape::Table(table) => self.reference(table.name, |all| all.table(table)),
            Shape::Either(choices) => {
                let choices = choices.iter().map(|(shape, about)| {
                    let mut choice = self.shape(shape);
                    if !about.is_empty() {
                        choice.insert("description".to_owned(), json!(about));
                    }
                    choice
                });
                json!({"anyOf": choices.collect::<Vec<_>>()})
            }
            Shape::Definition(definition) => self.reference(definition.name, |all| {
                let mut schema = all.shape(&definition.shape);
                schema.insert("description".to_owned(), json!(definition.about));
                schema
            }),
        })
    }

    fn limit(&mut self, spec: &Spec) -> Map<String, Value> {
        const SIZE: &str = "^[0-9]+(_[0-9]+)* *(B|KiB|MiB|GiB|kB|KB|MB|GB)$";
        const DURATION: &str = "^(?=[0-9])([0-9]+(_[0-9]+)* *h *)?([0-9]+(_[0-9]+)* *m *)?([0-9]+(_[0-9]+)* *s *)?\
                                ([0-9]+(_[0-9]+)* *ms)?$";
        const RATE: &str = "^[0-9]+(_[0-9]+)* */ *(s|min|h|d)$";
        let (name, pattern, about) = match spec.unit {
            Unit::Count => {
                return map(json!({"type": "integer", "minimum": spec.min, "maximum": spec.max}));
            }
            Unit::Bytes => ("Size", SIZE, "A whole number of bytes with its unit: `64MiB`, `512KiB`, `10 MB`."),
            Unit::Millis => ("Duration", DURATION, "Whole numbers with their units, largest first: `1m30s`, `250ms`."),
            Unit::Rate => {
                ("Rate", RATE, "A whole number in a second, a minute, an hour or a day: `10/s`, `600/min`, `5/h`.")
            }
        };
        map(self.reference(name, |_| map(json!({"type": "string", "pattern": pattern, "description": about}))))
    }

    /// A reference to a definition, which is added if it is missing.
    fn reference(&mut self, name: &str, make: impl FnOnce(&mut Self) -> Map<String, Value>) -> Value {
        if !self.0.contains_key(name) {
            self.0.insert(name.to_owned(), Value::Null);
            let definition = make(self);
            self.0.insert(name.to_owned(), Value::Object(definition));
        }
        json!({"$ref": format!("#/$defs/{name}")})
    }
}

impl Key {
    /// The key's description. The bounds of a value with a unit follow its first sentence; JSON
    /// Schema has no keyword for them.
    fn description(&self) -> String {
        let about = one_line(self.about);
        let spec = match self.shape {
            Shape::Limit(spec) | Shape::Optional(spec) if spec.unit != Unit::Count => spec,
            _ => return about,
        };
        let end = about.find(". ").unwrap_or(about.len().saturating_sub(1));
        let (first, rest) = about.split_at(end);
        format!("{first}: `{}` to `{}`{rest}", spec.show(spec.min), spec.show(spec.max))
    }
}

/// A limit's value as JSON has it.
fn written(spec: &Spec, value: u64) -> Value {
    if spec.unit == Unit::Count { json!(value) } else { json!(spec.show(value)) }
}

/// The lines of a doc comment as one.
fn one_line(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

fn map(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    /// Every table that can be reached from the root.
    fn tables() -> Vec<&'static Table> {
        fn visit(shape: &'static Shape, found: &mut Vec<&'static Table>) {
            match shape {
                Shape::Table(table) if found.iter().all(|known| known.name != table.name) => {
                    found.push(table);
                    table.keys().for_each(|key| visit(&key.shape, found));
                }
                Shape::List(inner) | Shape::Named(inner) => visit(inner, found),
                Shape::Either(choices) => choices.iter().for_each(|(shape, _)| visit(shape, found)),
                Shape::Definition(definition) => visit(&definition.shape, found),
                _ => {}
            }
        }
        let mut found = vec![&ROOT];
        ROOT.keys().for_each(|key| visit(&key.shape, &mut found));
        found
    }

    #[test]
    fn other_names_lead_to_keys_and_are_none() {
        for table in tables() {
            for (other, meant) in table.other_names {
                assert!(table.names().all(|name| name != *other), "{} {other}", table.name);
                let first = meant.split('.').next().unwrap();
                assert!(table.names().any(|name| name == first), "{} {meant}", table.name);
            }
        }
        assert_eq!(tables().len(), 44);
    }

    #[test]
    fn limits_have_a_reason_and_defaults_and_examples_within_their_bounds() {
        for key in tables().into_iter().flat_map(Table::keys) {
            let (Shape::Limit(spec) | Shape::Optional(spec)) = key.shape else { continue };
            assert_eq!(spec.key, key.name);
            assert!(spec.min <= spec.max && !spec.reason.is_empty(), "{}", key.name);
            if matches!(key.shape, Shape::Limit(_)) {
                assert!(spec.min <= spec.default && spec.default <= spec.max, "{}", key.name);
            }
            for example in (key.facts)()["examples"].as_array().unwrap() {
                let fits = |value: u64| spec.min <= value && value <= spec.max;
                match example.as_u64() {
                    Some(count) => assert!(fits(count), "{} {count}", key.name),
                    None => {
                        let text = example.as_str().unwrap();
                        let value = match spec.unit {
                            Unit::Millis => crate::quantity::parse_millis(text).unwrap(),
                            Unit::Rate => crate::quantity::parse_rate(text).unwrap().number(),
                            Unit::Bytes | Unit::Count => crate::quantity::parse_bytes(text).unwrap(),
                        };
                        assert!(fits(value), "{} {text}", key.name);
                    }
                }
            }
        }
    }

    #[test]
    fn every_key_is_described_and_every_plain_one_has_an_example() {
        for table in tables() {
            let schema = Value::Object(Definitions::default().table(table));
            for (key, property) in schema["properties"].as_object().unwrap() {
                assert!(property["description"].as_str().unwrap().ends_with('.'), "{} {key}", table.name);
                let is_table = property.get("$ref").is_some() || property["type"] == "object";
                assert!(is_table || property["examples"].is_array(), "{} {key}", table.name);
            }
        }
    }

    /// Keys and their values.
    type Lines = &'static [(&'static str, &'static str)];

    /// A header for each kind of table, with keys that others depend on.
    const PLACES: [(&str, &str, Lines); 44] = [
        ("", "", &[]),
        ("Server", "[server]", &[]),
        ("Icon", "[[server.icons]]", &[("src", "'https://a.example/i.png'")]),
        ("Http", "[http]", &[]),
        ("Oauth", "[http.oauth]", &[]),
        ("Issuer", "[http.oauth.issuers.i]", &[("issuer", "'https://i.example'")]),
        ("Metrics", "[metrics]", &[]),
        ("Console", "[console]", &[]),
        ("Traces", "[traces]", &[]),
        ("Alerts", "[alerts]", &[]),
        ("State", "[state]", &[("shared", "'rediss://state.example'")]),
        ("Tasks", "[tasks]", &[]),
        ("Paused", "[paused]", &[]),
        ("Code", "[code]", &[]),
        ("Defaults", "[defaults]", &[]),
        ("Limits", "[defaults.limits]", &[]),
        ("Load", "[defaults.load]", &[]),
        ("Login", "[oauth.o]", &[("issuer", "'https://i.example'"), ("client_id", "'c'")]),
        ("ClientSecret", "[oauth.o.client_secret]", &[]),
        ("Logins", "[logins]", &[]),
        ("Audit", "[audit]", &[]),
        ("Recordings", "[recordings]", &[]),
        ("Caller", "[callers.c]", &[]),
        ("Prompt", "[prompts.p]", &[]),
        ("PromptArgument", "[prompts.p.arguments.a]", &[]),
        ("Skills", "[skills]", &[("folder", "'s'")]),
        ("App", "[apps.'ui://a']", &[]),
        ("AppCsp", "[apps.'ui://a'.csp]", &[]),
        ("Registry", "[registries.'r.example']", &[("user", "'u'"), ("password", "'env:P'")]),
        ("Trust", "[trust.'r.example/a/']", &[("signed_by", "[{ key = 'k.pub' }]")]),
        ("Signer", "[[trust.'r.example/a/'.signed_by]]", &[]),
        ("Component", "[components.a]", &[]),
        ("HttpTool", "[components.a.http_tool]", &[("url", "'https://a.example/'"), ("description", "'d'")]),
        ("Mount", "[components.a.filesystem.'/m']", &[("path", "'d'"), ("access", "'write'")]),
        ("Network", "[components.a.network]", &[]),
        ("EnvFrom", "[components.a.env.V]", &[]),
        ("KeyValue", "[components.a.keyvalue]", &[]),
        ("Secret", "[components.a.secrets.S]", &[("header", "'x-key'")]),
        ("SecretProgram", "[components.a.secrets.S.from]", &[("exec", "['/p']")]),
        ("Resource", "[components.a.resources.'note:x']", &[("tool", "'t'"), ("mount", "'/m'")]),
        ("Tool", "[components.a.tools.t]", &[]),
        ("Media", "[components.a.tools.t.output]", &[]),
        ("ToolMount", "[components.a.filesystem.'/m']\nscratch = '1MiB'\n[components.a.tools.t.filesystem.'/m']", &[]),
        ("ToolNetwork", "[components.a.tools.t.network]", &[]),
    ];

    #[test]
    fn every_declared_key_is_read() {
        for table in tables() {
            let (_, header, needed) = PLACES.into_iter().find(|(name, _, _)| *name == table.name).unwrap();
            for key in table.names() {
                let needed = needed.iter().filter(|(other, _)| *other != key);
                let needed: String = needed.map(|(other, value)| format!("{other} = {value}\n")).collect();
                let version = if table.name.is_empty() { "" } else { "version = 1\n" };
                let start = format!("{version}{header}\n{needed}");
                // No key accepts a date, but a key that is never read would not complain.
                let text = format!("{start}{key} = 1979-05-27\n");
                let problems = crate::parse(&crate::Source { name: "m", text: &text }).unwrap_err();
                let at_key = |span: &crate::Span| span.start >= start.len() && span.start < text.len();
                let found = problems.iter().filter(|problem| problem.span().is_some_and(at_key));
                let codes: Vec<_> = found.map(crate::Diagnostic::code).collect();
                assert!(
                    !codes.is_empty() && !codes.contains(&"manifest::unknown_key"),
                    "{} {key}: {codes:?}",
                    table.name
                );
            }
        }
    }
}
