//! The portable form by examples, and that no draft accepts less by it.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::{SchemaUse, portable};

fn form(written: &Value) -> Value {
    portable(written, SchemaUse::Result)
}

/// True if a value is accepted by the written schema, and by its portable form as both drafts.
fn accepted(written: &Value, value: &Value) -> [bool; 3] {
    let form = form(written);
    let written = jsonschema::options().should_validate_formats(false).build(written).unwrap();
    let [seventh, newest] = [jsonschema::Draft::Draft7, jsonschema::Draft::Draft202012]
        .map(|draft| jsonschema::options().with_draft(draft).build(&form).unwrap());
    [written.is_valid(value), seventh.is_valid(value), newest.is_valid(value)]
}

#[test]
fn each_habit_of_model_apis_has_its_form() {
    for (written, expected) in [
        (json!({"const": "none"}), json!({"type": "string", "enum": ["none"]})),
        (json!({"const": 3}), json!({"type": "integer", "minimum": 3, "maximum": 3})),
        (json!({"const": null}), json!({"type": "null"})),
        (json!({"const": true}), json!({"type": "boolean", "description": "Always true."})),
        (json!({"enum": ["a", "b"]}), json!({"type": "string", "enum": ["a", "b"]})),
        (json!({"enum": ["a", null]}), json!({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]})),
        (json!({"enum": [0.5, 0.9]}), json!({"enum": [0.5, 0.9]})),
        (json!({"type": "integer", "maximum": i64::MAX, "minimum": 0}), json!({"type": "integer", "minimum": 0})),
        (
            json!({"type": "number", "maximum": 9_007_199_254_740_991_i64}),
            json!({"type": "number", "maximum": 9_007_199_254_740_991_i64}),
        ),
        (
            json!({"type": "number", "minimum": -9_007_199_254_740_992_i64, "default": u64::MAX}),
            json!({"type": "number"}),
        ),
        (json!({"type": "object"}), json!({"type": "object", "properties": {}})),
        (json!({"type": "array"}), json!({"type": "array", "items": {}})),
        (
            json!({"type": "array", "prefixItems": [{"const": "a"}, {}], "items": false, "minItems": 2}),
            json!({"type": "array", "minItems": 2, "prefixItems": [{"type": "string", "enum": ["a"]}, {}], "items": {}, "maxItems": 2}),
        ),
        (json!({"items": false}), json!({"items": {}, "maxItems": 0})),
        (json!({"properties": {"a": true, "b": false}}), json!({"properties": {"a": {}, "b": {"not": {}}}})),
        (
            json!({"oneOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ),
        (
            json!({"anyOf": [{"oneOf": [{"type": "string"}, {"anyOf": [{"type": "integer"}, {"type": "null"}]}]}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
        ),
        (
            json!({"description": "How.", "anyOf": [
                {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "A unit."}, {"type": "null"}]}),
            json!({"description": "How.\nA unit.", "anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
        ),
        (
            json!({"anyOf": [{"anyOf": [{"type": "string"}], "description": "One of two."}, {"type": "integer"}]}),
            json!({"anyOf": [{"anyOf": [{"type": "string"}], "description": "One of two."}, {"type": "integer"}]}),
        ),
        (
            json!({"type": "string", "description": "A name.", "pattern": "^(?!x)"}),
            json!({"type": "string", "description": "A name.\nMust match the pattern ^(?!x)"}),
        ),
        (json!({"type": "string", "format": "email"}), json!({"type": "string"})),
        (json!({"type": ["string"]}), json!({"type": "string"})),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}], "additionalItems": false}),
            json!({"prefixItems": [{"type": "string"}], "items": {}, "maxItems": 1}),
        ),
        (
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 0, "exclusiveMinimum": true}),
            json!({"exclusiveMinimum": 0}),
        ),
    ] {
        assert_eq!(form(&written), expected, "{written}");
        assert_eq!(form(&expected), expected, "the form of a form is itself");
    }
}

#[test]
fn arguments_keep_their_dialect_and_their_formats() {
    let written = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"a": {"type": "string", "format": "email"}}});
    assert_eq!(portable(&written, SchemaUse::Arguments), written);
}

#[test]
fn forms_keep_their_choices_and_formats_and_nothing_that_json_readers_cannot_hold() {
    let titled = json!([{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]);
    let form = |count: Value| {
        json!({"type": "object", "required": ["color"], "properties": {
            "color": {"type": "string", "oneOf": titled},
            "colors": {"type": "array", "items": {"anyOf": titled}, "minItems": 1},
            "old": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"], "default": "a"},
            "mail": {"type": "string", "format": "email", "maxLength": 80},
            "count": count
        }})
    };
    let written = form(json!({"type": "integer", "minimum": 0, "maximum": u64::MAX, "default": i64::MAX}));
    assert_eq!(portable(&written, SchemaUse::Form), form(json!({"type": "integer", "minimum": 0})));
}

#[test]
fn references_are_replaced_where_they_end_and_are_small() {
    let city = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let written = json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/city", "description": "The first."}, "b": {"$ref": "#c"}, "c": {"$ref": "#/definitions/x~1y"}},
        "$defs": {"city": city, "by": {"$dynamicAnchor": "c", "type": "integer"}}, "definitions": {"x/y": {"type": "null"}}
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"name": {"type": "string"}}, "description": "The first."},
            "b": {"type": "integer"}, "c": {"type": "null"}
        }
    });
    assert_eq!(form(&written), expected);
    // At the top, `type` and definitions add nothing to a reference: no combinator stands there.
    let top = json!({"type": "object", "$ref": "#/$defs/city", "$defs": {"city": city}, "$comment": "x"});
    assert_eq!(form(&top), json!({"type": "object", "properties": {"name": {"type": "string"}}, "$comment": "x"}));
    // A tree stays one, under the one reference that it needs.
    let tree = json!({"type": "object", "properties": {"root": {"$ref": "#/definitions/node"}}, "definitions": {
        "node": {"type": "object", "properties": {"next": {"$ref": "#/definitions/nodes"}}},
        "nodes": {"type": "array", "items": {"$ref": "#/definitions/node"}}
    }});
    let node = json!({"type": "object", "properties": {"next": {"type": "array", "items": {"$ref": "#/$defs/node"}}}});
    assert_eq!(
        form(&tree),
        json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}})
    );
    let itself = json!({"type": "object", "properties": {"more": {"$ref": "#"}}});
    assert_eq!(form(&itself), itself);
    // A pattern that is left out is reported, whatever the reference says.
    let mail = json!({"type": "string", "pattern": "^(?!x)"});
    let told = json!({"properties": {"m": {"$ref": "#/$defs/m", "description": "Where to."}}, "$defs": {"m": mail}});
    let expected = json!({"type": "string", "description": "Where to.\nMust match the pattern ^(?!x)"});
    assert_eq!(form(&told), json!({"properties": {"m": expected}}));
    let hidden = json!({"type": "string", "pattern": "^(?!x)\u{202e}"});
    assert!(!form(&hidden)["description"].as_str().unwrap().contains('\u{202e}'), "{}", form(&hidden));
    // Up to draft-07 nothing next to a reference counts.
    let old = json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"type": "string"}}, "properties": {"p": {"$ref": "#/definitions/a", "minLength": 9}}});
    assert_eq!(form(&old), json!({"properties": {"p": {"type": "string"}}}));
}

#[test]
fn a_choice_that_may_be_null_and_stands_in_two_places_is_one_list() {
    let unit = json!({"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "A unit."});
    let maybe = json!({"anyOf": [{"$ref": "#/$defs/unit"}, {"type": "null"}]});
    let written = json!({"properties": {"a": maybe, "b": maybe}, "$defs": {"unit": unit}});
    let flat = json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}], "description": "A unit."});
    assert_eq!(form(&written), json!({"properties": {"a": flat, "b": flat}}));
}

#[test]
fn references_that_multiply_or_nest_without_end_stay() {
    let mut definitions = serde_json::Map::new();
    for number in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
        definitions.insert(format!("d{number}"), json!({"properties": {"a": next, "b": next}}));
    }
    definitions.insert("d40".to_owned(), json!({"type": "integer"}));
    let doubled = json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    let mut chain = serde_json::Map::new();
    for number in 0..2_000 {
        chain.insert(format!("d{number}"), json!({"items": {"$ref": format!("#/$defs/d{}", number + 1)}}));
    }
    chain.insert("d2000".to_owned(), json!({}));
    let chain = json!({"properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": chain});
    for written in [doubled, chain] {
        let form = form(&written);
        assert!(
            form["properties"]["p"]["$ref"] == "#/$defs/d0" && form.to_string().len() <= 2 * written.to_string().len()
        );
    }
}

/// A schema of forty definitions, each of which names the next one twice, and one more with this
/// root.
fn doubling(root: Value) -> Value {
    let mut definitions = serde_json::Map::new();
    for number in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
        definitions.insert(format!("d{number}"), json!({"properties": {"a": next, "b": next}}));
    }
    definitions.insert("d40".to_owned(), json!({"type": "integer"}));
    definitions.insert("root".to_owned(), root);
    json!({"type": "object", "properties": {}, "$defs": definitions})
}

#[test]
fn what_nothing_names_is_measured_too() {
    let anchored = doubling(json!({"$anchor": "here", "items": {"$ref": "#/$defs/d0"}}));
    let form = form(&anchored);
    assert!(form.to_string().len() <= 2 * anchored.to_string().len(), "{}", form.to_string().len());
    assert_eq!(form["$defs"]["root"]["items"]["$ref"], "#/$defs/d0");
}

#[test]
fn as_many_definitions_of_one_name_take_no_longer_than_of_many() {
    let mut members = serde_json::Map::new();
    for number in 0..330 {
        // Each leads back to itself, so its reference stays.
        let itself = json!({"$ref": format!("#/properties/p{number}/items")});
        members.insert(format!("p{number}"), json!({"items": {"items": itself}}));
    }
    let written = json!({"type": "object", "properties": members});
    let began = std::time::Instant::now();
    let form = form(&written);
    assert_eq!(form["$defs"].as_object().unwrap().len(), 330);
    assert_eq!(form["$defs"]["items_330"]["items"]["$ref"], "#/$defs/items_330");
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn a_form_is_at_most_eight_times_as_long_and_a_hundred_levels_deep() {
    // The least that grows the most: each definition is four references to the next one.
    for levels in 1..12 {
        let mut definitions = serde_json::Map::new();
        for number in 0..levels {
            let next = json!({"$ref": format!("#/$defs/{}", number + 1)});
            definitions.insert(number.to_string(), json!({"anyOf": [next, next, next, next]}));
        }
        definitions.insert(levels.to_string(), json!({"const": 1}));
        let written = json!({"items": {"$ref": "#/$defs/0"}, "$defs": definitions});
        let was = written.to_string().len();
        let is = form(&written).to_string().len();
        assert!(is <= super::GROWTH_MAX * was, "{levels}: {was} became {is}");
    }
    let mut deep = json!({"const": "x"});
    let mut written = Vec::new();
    for _ in 0..55 {
        deep = json!({"anyOf": [{"type": "null"}], "oneOf": [deep]});
        written.push(deep.clone());
    }
    for written in written {
        let form = form(&written);
        assert!(form == written || super::nesting(&form) <= super::NESTING_MAX, "{}", super::nesting(&form));
    }
    // Constants grow fourfold.
    let constants: Vec<Value> = (0..1_000).map(|number| json!({"const": number})).collect();
    assert!(!form(&json!({"anyOf": constants})).to_string().contains("const"));
}

#[test]
fn neither_draft_accepts_less_by_the_form_than_the_written_schema() {
    let pair = json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false, "minItems": 2});
    let other = json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false, "minItems": 2});
    let values = [
        json!(["a", 1]),
        json!([1, "a"]),
        json!(["a", 1, 2]),
        json!([]),
        json!({}),
        json!({"a": 1}),
        json!({"a": "x", "b": ["a", 1]}),
        json!("admin"),
        json!("x"),
        json!(1),
        json!(2.5),
        json!(null),
        json!(9_007_199_254_740_993_i64),
        json!(["a"]),
        json!([[1, "a"], ["a", 1]]),
        json!(["a", "b"]),
    ];
    let look = json!({"type": "string", "pattern": "^(?!admin)"});
    for written in [
        pair.clone(),
        json!({"oneOf": [pair, other]}),
        json!({"not": pair}),
        json!({"not": {"const": true}}),
        json!({"not": {"maximum": 9_007_199_254_740_992_i64}}),
        json!({"if": pair, "then": false, "else": {"type": ["object", "string"]}}),
        json!({"items": {"oneOf": [pair, other]}}),
        json!({"contains": {"type": "string"}, "minContains": 0, "maxContains": 1}),
        json!({"contains": pair, "maxContains": 1}),
        json!({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}),
        json!({"properties": {"b": pair}, "unevaluatedProperties": {"type": "string"}}),
        json!({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"a": {"required": ["b"]}}}),
        json!({"not": {"dependentRequired": {"a": ["b"]}}}),
        json!({"$ref": "#/$defs/p", "maxItems": 1, "$defs": {"p": {"type": "array"}}}),
        json!({"not": {"$ref": "#/$defs/p", "maxItems": 1}, "$defs": {"p": {"type": "array", "items": {"$ref": "#/$defs/p"}}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}], "additionalItems": {"type": "integer"}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["b"]}}),
        json!({"enum": ["x", null, 1]}),
        json!({"anyOf": [{"const": "x"}, {"const": 1}], "oneOf": [{"type": "string"}, {"const": 1}]}),
        json!({"type": "string", "format": "email"}),
        json!({"not": look}),
        json!({"patternProperties": {"^(?!b)": {"type": "integer"}}, "additionalProperties": false}),
        json!({"if": {"properties": {"a": {"format": "email"}}}, "then": {"properties": {"b": {}}}, "properties": {"a": {}}, "unevaluatedProperties": false}),
        json!({"contains": {"type": "string"}, "minContains": 0, "unevaluatedItems": false}),
        json!({"allOf": [{"patternProperties": {"^(?!b)": {}}}], "unevaluatedProperties": false}),
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "not": {"$ref": "#/$defs/t", "minLength": 5}, "$defs": {"t": {"type": "string"}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "contains": {"type": "string"}, "maxContains": 1, "dependentRequired": {"a": ["z"]}, "unevaluatedItems": false}),
        json!({"$schema": "http://json-schema.org/draft-06/schema#", "if": {"type": "string"}, "then": false}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "const": 3, "contains": false, "propertyNames": false}),
    ] {
        for value in &values {
            if let [true, seventh, newest] = accepted(&written, value) {
                assert!(
                    seventh && newest,
                    "{written} accepts {value}; {} does not: {seventh} {newest}",
                    form(&written)
                );
            }
        }
    }
}
