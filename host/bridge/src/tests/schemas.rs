//! Schemas: references, `allOf`, choices, versions, and what answers keep of them.
use serde_json::{Value, json};

use super::{document, options, tool, with};
use crate::{Bridge, ToolDefinition};

/// A document whose only body has this schema, with these components.
fn of_body(version: &str, schema: Value, schemas: Value) -> Value {
    let paths = json!({"/a": {"post": {
        "operationId": "a",
        "requestBody": {"content": {"application/json": {"schema": schema}}},
    }}});
    let document = with(document(paths), "components", json!({"schemas": schemas}));
    with(document, "openapi", json!(version))
}

fn body(version: &str, schema: Value, schemas: Value) -> Value {
    tool(&of_body(version, schema, schemas)).input["properties"]["body"].clone()
}

fn output(schema: Value) -> Option<Value> {
    let answer = json!({"200": {"content": {"application/json": {"schema": schema}}}});
    tool(&document(json!({"/a": {"get": {"responses": answer}}}))).output
}

#[test]
fn references_are_inlined_and_texts_next_to_them_stay() {
    let schemas = json!({"Pet": {"type": "object", "properties": {"name": {"$ref": "#/components/schemas/Na~1me"}}}, "Na/me": {"type": "string"}});
    let made = body("3.1.0", json!({"$ref": "#/components/schemas/Pet", "description": "The pet."}), schemas);
    assert_eq!(made, json!({"type": "object", "properties": {"name": {"type": "string"}}, "description": "The pet."}));
}

#[test]
fn a_recursive_schema_ends_with_an_open_object() {
    let node = json!({"type": "object", "description": "A node.", "properties": {
        "next": {"$ref": "#/components/schemas/Node"},
        "name": {"type": "string"},
    }, "required": ["name"]});
    let document = of_body("3.0.0", json!({"$ref": "#/components/schemas/Node"}), json!({"Node": node}));
    assert_eq!(
        tool(&document).input["properties"]["body"],
        json!({
            "type": "object",
            "description": "A node.",
            "properties": {"next": {"type": "object", "description": "A node."}, "name": {"type": "string"}},
            "required": ["name"],
        })
    );
    let notes = super::bridge(&document).notes;
    assert_eq!(notes, ["schemas that are large, recursive or refer elsewhere are left open in part: a"]);
    let own = json!({"allOf": [{"$ref": "#/components/schemas/Self"}, {"type": "string"}]});
    assert_eq!(
        body("3.0.0", json!({"$ref": "#/components/schemas/Self"}), json!({"Self": own})),
        json!({"type": "string"})
    );
}

#[test]
fn members_of_all_of_are_one_schema() {
    let made = body(
        "3.0.0",
        json!({
            "description": "Both.",
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"], "additionalProperties": false},
                {"type": "object", "properties": {"a": {"minimum": 5, "maximum": 9}, "b": {"enum": ["x", "y"]}}, "required": ["b"]},
                {"properties": {"b": {"enum": ["y", "z"]}}},
            ],
        }),
        json!({}),
    );
    assert_eq!(
        made,
        json!({
            "description": "Both.",
            "type": "object",
            "properties": {"a": {"type": "integer", "minimum": 5, "maximum": 9}, "b": {"enum": ["y"]}},
            "required": ["a", "b"],
        })
    );
}

#[test]
fn a_name_that_only_answers_have_is_required_nowhere() {
    let schemas = json!({"Base": {"type": "object", "properties": {
        "id": {"type": "string", "readOnly": true}, "name": {"type": "string"},
        "owner": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    }}});
    let base = json!({"$ref": "#/components/schemas/Base"});
    for schema in [
        json!({"allOf": [base, {"type": "object", "required": ["id", "name"]}]}),
        json!({"allOf": [base], "required": ["name", "id"]}),
        json!({"allOf": [{"required": ["id", "name"]}, base]}),
    ] {
        let made = body("3.0.0", schema, schemas.clone());
        assert_eq!(made["required"], json!(["name"]), "{made}");
        assert_eq!(made["properties"]["owner"]["required"], json!(["id"]), "{made}");
    }
    let variants =
        body("3.0.0", json!({"allOf": [base, {"anyOf": [{"required": ["id"]}, {"required": ["name"]}]}]}), schemas);
    assert_eq!(variants["anyOf"], json!([{}, {"required": ["name"]}]));
}

#[test]
fn closed_variants_do_not_refuse_what_stands_next_to_them() {
    let closed = |name: &str| json!({"type": "object", "properties": {name: {}}, "additionalProperties": false});
    let open = |name: &str| json!({"type": "object", "properties": {name: {}}});
    let id = json!({"type": "object", "properties": {"id": {}}});
    let choice = json!({"oneOf": [closed("a"), closed("b")]});
    let expected = json!({"type": "object", "properties": {"id": {}}, "anyOf": [open("a"), open("b")]});
    assert_eq!(body("3.0.0", json!({"allOf": [id, choice]}), json!({})), expected);
    let beside = json!({"type": "object", "properties": {"id": {}}, "oneOf": choice["oneOf"]});
    assert_eq!(body("3.0.0", beside, json!({})), expected);
    assert_eq!(body("3.0.0", choice, json!({})), json!({"anyOf": [closed("a"), closed("b")]}));
}

#[test]
fn a_discriminator_names_its_variants() {
    let schemas = json!({
        "Cat": {"type": "object", "properties": {"kind": {"type": "string"}, "lives": {"type": "integer"}}},
        "Dog": {"type": "object", "properties": {"kind": {"type": "string"}}},
    });
    let made = body(
        "3.0.0",
        json!({
            "oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
            "discriminator": {"propertyName": "kind", "mapping": {"feline": "#/components/schemas/Cat"}},
        }),
        schemas,
    );
    assert_eq!(
        made,
        json!({"anyOf": [
            {"type": "object", "properties": {"kind": {"type": "string", "enum": ["feline"]}, "lives": {"type": "integer"}}},
            {"type": "object", "properties": {"kind": {"type": "string", "enum": ["Dog"]}}},
        ]})
    );
}

#[test]
fn both_versions_say_null_and_exclusive_bounds() {
    let old = json!({"type": "number", "nullable": true, "minimum": 1, "exclusiveMinimum": true, "maximum": 2, "exclusiveMaximum": false});
    assert_eq!(body("3.0.0", old, json!({})), json!({"type": ["number", "null"], "exclusiveMinimum": 1, "maximum": 2}));
    let new = json!({"type": ["number", "null"], "exclusiveMinimum": 1, "const": 3, "examples": [3], "$comment": "x"});
    for version in ["3.1.0", "3.2.0"] {
        let expected = json!({"type": ["number", "null"], "exclusiveMinimum": 1, "const": 3});
        assert_eq!(body(version, new.clone(), json!({})), expected);
    }
    let of_reference = json!({"nullable": true, "allOf": [{"$ref": "#/components/schemas/Name"}]});
    assert_eq!(body("3.0.0", of_reference, json!({"Name": {"type": "string"}})), json!({"type": ["string", "null"]}));
    let choice = json!({"nullable": true, "oneOf": [{"type": "string"}, {"type": "integer"}]});
    assert_eq!(
        body("3.0.0", choice, json!({})),
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]})
    );
}

#[test]
fn properties_that_apis_refuse_are_named_in_the_description() {
    let made = body(
        "3.0.0",
        json!({"type": "object", "properties": {"+1": {"type": "integer"}, "ok": {}}, "required": ["+1", "ok"], "additionalProperties": false}),
        json!({}),
    );
    assert_eq!(
        made,
        json!({"type": "object", "properties": {"ok": {}}, "required": ["ok"], "description": "Also takes: +1."})
    );
}

#[test]
fn answers_keep_names_and_types_alone() {
    let schema = json!({
        "type": "object",
        "required": ["a"],
        "additionalProperties": false,
        "properties": {
            "a": {"type": "string", "format": "uri", "maxLength": 3, "description": "An A."},
            "secret": {"type": "string", "writeOnly": true},
            "list": {"type": "array", "items": {"type": "integer"}},
        },
    });
    assert_eq!(
        output(schema),
        Some(json!({
            "type": "object",
            "properties": {
                "a": {"type": ["string", "null"], "description": "An A."},
                "list": {"type": ["array", "null"], "items": {"type": ["integer", "null"]}},
            },
        }))
    );
    let list = output(json!({"type": "array", "items": {"type": "string"}}));
    assert_eq!(
        list,
        Some(
            json!({"type": "object", "properties": {"result": {"type": ["array", "null"], "items": {"type": ["string", "null"]}}}})
        )
    );
    assert_eq!(output(json!({})), None);
    // Without a type, `items` does not make a list of an answer. Of an argument it does.
    let untyped = json!({"type": "object", "properties": {"channel": {"items": {"type": "integer"}}}});
    let items = json!({"items": {"type": ["integer", "null"]}});
    assert_eq!(output(untyped.clone()), Some(json!({"type": "object", "properties": {"channel": items}})));
    let channel = body("3.0.0", untyped, json!({}))["properties"]["channel"].clone();
    assert_eq!(channel, json!({"type": "array", "items": {"type": "integer"}}));
    let different = json!({
        "200": {"content": {"application/json": {"schema": {"type": "object"}}}},
        "202": {"content": {"application/json": {"schema": {"type": "array"}}}},
    });
    assert_eq!(tool(&document(json!({"/a": {"get": {"responses": different}}}))).output, None);
}

#[test]
fn bounds_that_are_none_and_words_that_stand_twice_are_left_out() {
    let written = json!({
        "type": ["string", "null", "string"],
        "minLength": -1, "maxLength": 1.5, "minItems": "3", "multipleOf": 0, "minimum": -4, "maxProperties": 2,
    });
    let made = body("3.1.0", written, json!({}));
    assert_eq!(made, json!({"type": ["string", "null"], "minimum": -4, "maxProperties": 2}));
    let object =
        json!({"type": ["object", "object"], "properties": {"a": {"multipleOf": 0.5}}, "required": ["a", "a"]});
    let made = body("3.1.0", object, json!({}));
    assert_eq!(made, json!({"type": "object", "properties": {"a": {"multipleOf": 0.5}}, "required": ["a"]}));
}

#[test]
fn a_tool_that_the_host_does_not_take_loses_patterns_then_the_schema_of_its_answers() {
    let pattern = json!({"type": "string", "pattern": "a"});
    let variants = json!([{"type": "array", "items": pattern}, {"type": "object", "additionalProperties": pattern}]);
    let parameters = json!([
        {"name": "pattern", "in": "query", "schema": pattern},
        {"name": "some", "in": "query", "schema": {"anyOf": variants}},
    ]);
    let answer = json!({"200": {"content": {"application/json": {"schema": {"type": "object"}}}}});
    let document =
        document(json!({"/a": {"get": {"operationId": "a", "parameters": parameters, "responses": answer}}}));
    let made = |is_taken: fn(&str) -> bool| {
        let check = |tool: &ToolDefinition| {
            let schemas = format!("{} {:?}", tool.input, tool.output);
            if is_taken(&schemas) { Ok(()) } else { Err("cannot be served: why".to_owned()) }
        };
        Bridge::of(&document, &options(), check)
    };
    let has_pattern = |schema: &Value| schema.to_string().contains(r#""pattern":"a""#);

    let whole = made(|_| true).unwrap();
    assert!(has_pattern(&whole.definitions.tools[0].input) && whole.notes.is_empty(), "{:?}", whole.notes);
    let looser = made(|schemas| !schemas.contains(r#""pattern":"a""#)).unwrap();
    assert!(!has_pattern(&looser.definitions.tools[0].input));
    assert!(looser.definitions.tools[0].input["properties"]["pattern"].is_object());
    assert!(looser.definitions.tools[0].output.is_some());
    assert_eq!(looser.notes, ["a: its patterns are left out, because as written it cannot be served: why"]);
    // Patterns stay where they are not the fault.
    let open = made(|schemas| schemas.ends_with("None")).unwrap();
    assert_eq!(open.definitions.tools[0].output, None);
    assert!(has_pattern(&open.definitions.tools[0].input));
    assert_eq!(open.notes, ["a: its answers have no schema, because as written it cannot be served: why"]);
    let both = made(|schemas| schemas.ends_with("None") && !schemas.contains(r#""pattern":"a""#)).unwrap();
    assert_eq!(both.definitions.tools[0].output, None);
    assert!(!has_pattern(&both.definitions.tools[0].input));
    assert_eq!(both.notes.len(), 2, "{:?}", both.notes);
    let none = made(|_| false).unwrap_err();
    assert_eq!(none.problem, "the document has no operation that can be a tool");
    assert_eq!(none.hint, "GET /v1/a cannot be served: why");
}
