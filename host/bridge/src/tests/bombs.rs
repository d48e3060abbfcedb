//! Documents that want too much: each ends with an error or with a cut, and soon.
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{bridge, document, refused, tool, with};
use crate::limits::{DEFINITIONS_BYTES_MAX, OPERATIONS_MAX, PATHS_MAX, SCHEMA_BYTES_MAX};
use crate::merge::json_bytes;
use crate::{Bridge, BridgeOptions};

fn of_schemas(schemas: Value) -> Value {
    let body = json!({"content": {"application/json": {"schema": {"$ref": "#/components/schemas/s0"}}}});
    let document = document(json!({"/a": {"post": {"operationId": "a", "requestBody": body}}}));
    with(document, "components", json!({"schemas": schemas}))
}

#[test]
fn a_schema_that_doubles_at_each_level_is_cut() {
    let mut schemas = Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/components/schemas/s{}", level + 1)});
        schemas.insert(
            format!("s{level}"),
            json!({"type": "object", "properties": {"a": next, "b": next}, "allOf": [next, next]}),
        );
    }
    schemas.insert("s60".to_owned(), json!({"type": "string"}));
    let tool = tool(&of_schemas(schemas.into()));
    assert!(json_bytes(&tool.input) < SCHEMA_BYTES_MAX + 1_000);
}

#[test]
fn references_in_a_long_row_end() {
    let mut schemas = Map::new();
    for at in 0..10_000 {
        schemas.insert(format!("s{at}"), json!({"$ref": format!("#/components/schemas/s{}", at + 1)}));
    }
    assert_eq!(tool(&of_schemas(schemas.clone().into())).input["properties"]["body"], json!({}));
    let mut members = Map::new();
    for at in 0..10_000 {
        members.insert(format!("s{at}"), json!({"allOf": [{"$ref": format!("#/components/schemas/s{}", at + 1)}]}));
    }
    assert_eq!(tool(&of_schemas(members.into())).input["properties"]["body"], json!({}));
    // Parameters, paths and bodies are followed as well.
    let paths = json!({"/a": {"$ref": "#/components/schemas/s0"}, "/b": {"get": {}}});
    let left_out = bridge(&with(document(paths), "components", json!({"schemas": schemas}))).left_out;
    assert_eq!(left_out[0].reason, "has more than 16 references one behind the other");
}

#[test]
fn a_large_enum_and_a_long_text_are_cut() {
    let values: Vec<String> = (0..100_000).map(|value| format!("value {value}")).collect();
    let schema = json!({"s0": {"type": "string", "enum": values, "description": "long ".repeat(10_000), "pattern": "x".repeat(5_000)}});
    let body = tool(&of_schemas(schema)).input["properties"]["body"].clone();
    assert!(json_bytes(&body) < 1_000, "{body}");
    assert!(body["description"].as_str().unwrap().ends_with("… One of 100000 values."), "{body}");
}

#[test]
fn too_many_paths_and_operations_are_refused() {
    let paths = |count: usize| {
        let mut text = String::from("{");
        for at in 0..count {
            let _ = write!(
                text,
                "{}\"/p{at}\": {{\"get\": {{\"tags\": [\"t{}\"]}}}}",
                if at == 0 { "" } else { "," },
                at % 3
            );
        }
        text.push('}');
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let many = refused(&document(paths(100_000)));
    assert_eq!(many.problem, format!("the document has 100000 paths, and {PATHS_MAX} are read at most"));
    let some = refused(&document(paths(101)));
    assert_eq!(some.problem, "the document has 101 operations, and 100 become tools at most");
    let hint = "choose some with --only TAG or --only OPERATION: its tags are \"t0\" (34), \"t1\" (34), \"t2\" (33); --all takes them all";
    assert_eq!(some.hint, hint);
    let all = BridgeOptions { all: true, ..super::options() };
    assert_eq!(Bridge::of(&document(paths(101)), &all, |_| Ok(())).unwrap().definitions.tools.len(), 101);
    let more = Bridge::of(&document(paths(OPERATIONS_MAX + 1)), &all, |_| Ok(())).unwrap_err();
    assert_eq!(more.problem, "the document has 1001 operations, and 1000 become tools at most");
}

#[test]
fn many_large_schemas_are_cut_until_a_host_lists_them() {
    let properties: Map<String, Value> = (0..60)
        .map(|at| {
            (
                format!("p{at}"),
                json!({"type": "object", "properties": {"x": {"type": "string", "description": "word ".repeat(40)}}}),
            )
        })
        .collect();
    let body = json!({"content": {"application/json": {"schema": {"type": "object", "properties": properties}}}});
    let paths: Map<String, Value> =
        (0..100).map(|at| (format!("/p{at}"), json!({"post": {"requestBody": body}}))).collect();
    let bridge = bridge(&document(paths.into()));
    assert_eq!(bridge.definitions.tools.len(), 100);
    let bytes: usize = bridge.definitions.tools.iter().map(|tool| json_bytes(&tool.input)).sum();
    assert!(bytes < DEFINITIONS_BYTES_MAX, "{bytes}");
}

#[test]
fn parameters_that_share_a_large_schema_do_not_multiply_it() {
    let property = json!({"type": "string", "description": "x".repeat(40)});
    let properties: Map<String, Value> = (0..300).map(|at| (format!("p{at}"), property.clone())).collect();
    let parameter = |at: usize| {
        let schema = json!({"$ref": "#/components/schemas/s"});
        json!({"name": format!("q{at}"), "in": "query", "schema": schema})
    };
    let item = json!({"parameters": (0..300).map(parameter).collect::<Vec<_>>(), "get": {}});
    let paths: Map<String, Value> =
        (0..40).map(|at| (format!("/{at}"), json!({"$ref": "#/components/pathItems/i"}))).collect();
    let schema = json!({"type": "object", "properties": properties});
    let components = json!({"schemas": {"s": schema}, "pathItems": {"i": item}});
    let tools = bridge(&with(document(paths.into()), "components", components)).definitions.tools;
    let bytes: usize = tools.iter().map(|tool| json_bytes(&tool.input)).sum();
    assert!(bytes < DEFINITIONS_BYTES_MAX, "{bytes}");
    // What is behind the bound keeps its type.
    assert_eq!(tools[0].input["properties"]["q299"], json!({"type": "object"}));
}

#[test]
fn many_operations_of_one_name_take_no_longer_than_others() {
    let operation = json!({"operationId": "a"});
    let methods = ["get", "put", "post", "delete", "head", "patch"];
    let item: Map<String, Value> = methods.into_iter().map(|method| (method.to_owned(), operation.clone())).collect();
    let paths: Map<String, Value> =
        (0..PATHS_MAX).map(|at| (format!("/{at}"), json!({"$ref": "#/components/pathItems/i"}))).collect();
    let document = with(document(paths.into()), "components", json!({"pathItems": {"i": item}}));
    let last = BridgeOptions { only: vec!["a_120000".to_owned()], ..super::options() };
    let tools = Bridge::of(&document, &last, |_| Ok(())).unwrap().definitions.tools;
    assert_eq!((tools.len(), tools[0].operation()), (1, "PATCH /v1/19999".to_owned()));
}
