//! Which operations become tools, with which names, arguments and requests.
use serde_json::json;

use super::{bridge, document, options, refused, request, tool, with};
use crate::{Bridge, BridgeOptions};

#[test]
fn an_operation_is_a_tool_with_its_parameters_and_its_body() {
    let document = document(json!({"/pets/{petId}": {
        "parameters": [{"name": "petId", "in": "path", "required": true, "schema": {"type": "integer"}}],
        "put": {
            "operationId": "updatePet",
            "summary": "Updates a pet",
            "parameters": [
                {"name": "dry run", "in": "query", "schema": {"type": "boolean"}, "description": "Only tries."},
                {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                {"name": "Accept", "in": "header", "schema": {"type": "string"}},
                {"name": "Host", "in": "header", "schema": {"type": "string"}},
                {"name": "session", "in": "cookie", "schema": {"type": "string"}},
            ],
            "requestBody": {"required": true, "content": {"application/json": {"schema": {
                "type": "object",
                "required": ["id", "name"],
                "properties": {"id": {"type": "integer", "readOnly": true}, "name": {"type": "string", "maxLength": 9}},
            }}}},
            "responses": {"200": {"content": {"application/json": {"schema": {
                "type": "object", "required": ["name"], "properties": {"name": {"type": "string", "enum": ["a"]}},
            }}}}},
        },
    }}));
    let tool = tool(&document);
    assert_eq!(tool.name, "updatePet");
    assert_eq!(tool.title.as_deref(), Some("Updates a pet"));
    assert_eq!(tool.description, "Updates a pet");
    assert_eq!(
        tool.input,
        json!({
            "type": "object",
            "properties": {
                "petId": {"type": "integer"},
                "dry_run": {"type": "boolean", "description": "Only tries."},
                "X-Trace": {"type": "string"},
                "body": {
                    "type": "object",
                    "properties": {"name": {"type": "string", "maxLength": 9}},
                    "required": ["name"],
                },
            },
            "required": ["petId", "body"],
            "additionalProperties": false,
        })
    );
    assert_eq!(tool.output, Some(json!({"type": "object", "properties": {"name": {"type": ["string", "null"]}}})));
    assert_eq!((tool.hints.read_only, tool.hints.destructive, tool.hints.idempotent), (Some(false), None, Some(true)));
    assert_eq!(
        request(&document),
        json!({
            "tool": "updatePet", "method": "PUT", "path": "/v1/pets/{petId}",
            "parameters": [
                {"name": "petId", "argument": "petId", "place": "path", "style": "simple", "explode": false},
                {"name": "dry run", "argument": "dry_run", "place": "query", "style": "form", "explode": true},
                {"name": "X-Trace", "argument": "X-Trace", "place": "header", "style": "simple", "explode": false},
            ],
            "body": {"argument": "body", "media": "application/json", "form": "json"},
            "accept": "application/json", "output": "object",
        })
    );
    let bridge = bridge(&document);
    assert_eq!(bridge.grants.http, ["PUT https://api.example.com/v1/pets/{}"]);
    let notes = bridge.notes.join("\n");
    assert!(notes.contains("updatePet: the header \"Host\" is left to the host"), "{notes}");
    assert!(!notes.contains("Accept"), "OpenAPI ignores it as a parameter: {notes}");
    assert!(notes.contains("updatePet: the parameter \"session\" is left out: it is a cookie"), "{notes}");
}

#[test]
fn methods_say_what_a_tool_does_and_rules_join_them() {
    let each = |id: &str| json!({"operationId": id, "responses": {}});
    let bridge = bridge(&document(json!({
        "/pets": {"get": each("list"), "head": each("count"), "post": each("add"), "delete": each("clear"), "trace": each("no")},
        "/day-{day}.json": {"get": each("day")},
        "/{a}{b}/x": {"get": each("pair")},
    })));
    let hints: Vec<_> = bridge
        .definitions
        .tools
        .iter()
        .map(|tool| (tool.name.as_str(), tool.hints.read_only, tool.hints.destructive))
        .collect();
    // `day` and `pair` do not declare the parameters of their paths.
    let expected = [
        ("list", Some(true), Some(false)),
        ("add", Some(false), None),
        ("clear", Some(false), Some(true)),
        ("count", Some(true), Some(false)),
    ];
    assert_eq!(hints, expected);
    assert_eq!(bridge.grants.http, ["DELETE,GET,HEAD,POST https://api.example.com/v1/pets"]);
    let left_out: Vec<_> = bridge.left_out.iter().map(|left| format!("{} {}", left.operation, left.reason)).collect();
    let undeclared =
        |operation: &str, name: &str| format!("{operation} does not declare the parameter \"{name}\" of its path");
    assert_eq!(
        left_out,
        [
            "TRACE /pets is a method that no tool needs".to_owned(),
            undeclared("GET /day-{day}.json", "day"),
            undeclared("GET /{a}{b}/x", "a"),
        ]
    );
}

#[test]
fn patterns_are_as_wide_as_a_path() {
    let parameters = |names: &[&str]| {
        let each = |name: &&str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
        json!({"get": {"parameters": names.iter().map(each).collect::<Vec<_>>()}})
    };
    let bridge = bridge(&document(json!({
        "/{a}": parameters(&["a"]),
        "/x/{a}{b}": parameters(&["a", "b"]),
        "/day-{day}.json": parameters(&["day"]),
        "/{a}/{b}/now": parameters(&["a", "b"]),
    })));
    let rules: Vec<&str> =
        bridge.grants.http.iter().map(|rule| rule.trim_start_matches("GET https://api.example.com/v1")).collect();
    assert_eq!(rules, ["/day-*.json", "/x/{}", "/{}", "/{}/{}/now"]);
}

#[test]
fn names_are_legal_unique_and_short() {
    let long = "a".repeat(80);
    let bridge = bridge(&document(json!({
        "/a": {"get": {"operationId": "repos/get"}, "post": {"operationId": "Repos_Get"}, "delete": {"operationId": long}},
        "/pets/{petId}/": {"get": {"parameters": [{"name": "petId", "in": "path", "required": true}]}},
    })));
    let names: Vec<&str> = bridge.definitions.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names.len(), 4);
    assert_eq!(names[0], "repos_get");
    assert_eq!(names[1], "Repos_Get_2");
    assert!(names[2].starts_with("aaaa") && names[2].len() == 64 - "pets_".len(), "{names:?}");
    assert_eq!(names[3], "get_pets_by_petId");
}

#[test]
fn the_same_document_gives_the_same_bytes() {
    let document = document(json!({"/a": {"get": {"operationId": "a"}}, "/b": {"get": {"operationId": "b"}}}));
    assert_eq!(bridge(&document).definitions.bytes(), bridge(&document).definitions.bytes());
    let text = String::from_utf8(bridge(&document).definitions.bytes()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], r#"{"format":1,"origin":"https://api.example.com"}"#);
    assert!(lines[1].starts_with(r#"{"tool":"a","#) && lines[2].starts_with(r#"{"tool":"b","#), "{text}");
    assert!(lines[3].starts_with(r#"{"name":"a","#) && lines.len() == 5, "{text}");
}

#[test]
fn operations_are_chosen_by_tag_name_and_age() {
    let document = document(json!({
        "/a": {"get": {"operationId": "a", "tags": ["Read"]}},
        "/b": {"get": {"operationId": "b", "tags": ["Write"], "deprecated": true}},
        "/c": {"get": {"operationId": "c/d"}},
    }));
    let names = |only: &[&str], deprecated: bool| {
        let only = only.iter().map(|&word| word.to_owned()).collect();
        let options = BridgeOptions { only, deprecated, ..options() };
        Bridge::of(&document, &options, |_| Ok(())).map(|bridge| {
            let tools = bridge.definitions.tools.into_iter();
            tools.map(|tool| tool.name).collect::<Vec<_>>()
        })
    };
    assert_eq!(names(&[], false).unwrap(), ["a", "c_d"]);
    assert_eq!(names(&[], true).unwrap(), ["a", "b", "c_d"]);
    assert_eq!(names(&["read"], false).unwrap(), ["a"]);
    assert_eq!(names(&["c/d", "a"], false).unwrap(), ["a", "c_d"]);
    assert_eq!(names(&["c_d"], false).unwrap(), ["c_d"]);
    assert_eq!(names(&["Write"], false).unwrap_err().hint, "all of them are deprecated: add --deprecated");
    let unknown = names(&["rite"], false).unwrap_err();
    assert_eq!(unknown.problem, "the document has no tag and no operation \"rite\"");
    assert!(unknown.hint.ends_with("its tags are \"Read\" (1), \"Write\" (1)"), "{unknown:?}");
}

#[test]
fn what_is_not_openapi_is_refused() {
    for (document, problem) in [
        (json!([]), "the document is not an object"),
        (json!({"swagger": "2.0"}), "the document is Swagger \"2.0\""),
        (json!({"openapi": "4.0.0"}), "the document is of OpenAPI \"4.0.0\""),
        (json!({"paths": {}}), "the document does not say its version of OpenAPI"),
        (with(document(json!({})), "paths", json!(1)), "the document has no paths"),
        (document(json!({})), "the document has no operation that can be a tool"),
    ] {
        assert_eq!(refused(&document).problem, problem);
    }
    assert_eq!(refused(&document(json!({}))).hint, "its paths have none; webhooks and callbacks do not become tools");
    let dots = refused(&document(json!({"/a/..": {"get": {}}})));
    assert_eq!(dots.hint, "GET /a/.. has a path that servers may read in several ways");
}

#[test]
fn what_no_request_can_be_made_for_is_left_out_with_its_reason() {
    let upload = json!({"content": {"multipart/related": {"schema": {"type": "object"}}}, "required": true});
    let cookie = json!({"name": "sid", "in": "cookie", "required": true, "schema": {"type": "string"}});
    let matrix = json!({"name": "id", "in": "path", "required": true, "style": "matrix", "schema": {"type": "string"}});
    let bridge = bridge(&document(json!({
        "/fine": {"get": {}},
        "/upload": {"post": {"requestBody": upload}},
        "/cookie": {"get": {"parameters": [cookie]}},
        "/matrix/{id}": {"get": {"parameters": [matrix]}},
        "/query?a=../b": {"get": {}},
        "/query?{a}": {"get": {}},
        "/query?a={b}": {"get": {}},
        "/a/../b": {"get": {}},
        "/%2e%2e/b": {"get": {}},
        "no-slash": {"get": {}},
        "/gone": {"$ref": "https://elsewhere.example/paths.json"},
        "/other": {"get": {"servers": [{"url": "https://uploads.example.com"}]}},
    })));
    assert_eq!(bridge.definitions.tools.len(), 1);
    let left_out: Vec<_> = bridge.left_out.iter().map(|left| format!("{} {}", left.operation, left.reason)).collect();
    for expected in [
        "POST /upload has a body of \"multipart/related\", which is not made",
        "GET /cookie requires \"sid\", which is a cookie",
        "GET /matrix/{id} requires \"id\", which is of a style that is not known",
        "GET /query?a=../b has a query in its path that servers may read in several ways",
        "GET /query?{a} has a query in its path that servers may read in several ways",
        "GET /query?a={b} does not declare the parameter \"b\" of its path",
        "GET /a/../b has a path that servers may read in several ways",
        "GET /%2e%2e/b has a path that servers may read in several ways",
        "GET no-slash has no proper path",
        "* /gone refers to \"https://elsewhere.example/paths.json\", which is not in the document",
        "GET /other has another server, https://uploads.example.com",
    ] {
        assert!(left_out.iter().any(|left| left == expected), "{expected}: {left_out:#?}");
    }
    assert_eq!(bridge.grants.http, ["GET https://api.example.com/v1/fine"]);
}

#[test]
fn forms_and_json_parameters_are_named_as_such() {
    let document = document(json!({"/a": {"post": {
        "parameters": [
            {"name": "filter[x]", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
            {"name": "ids", "in": "query", "style": "pipeDelimited", "explode": false, "schema": {"type": "array"}},
        ],
        "requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": {"properties": {"a": {}}}}}},
        "responses": {"200": {"content": {"image/png": {}, "text/csv": {}}}},
    }}}));
    let request = request(&document);
    assert_eq!(
        request["parameters"][0],
        json!({"name": "filter[x]", "argument": "filter_x", "place": "query", "style": "json", "explode": false})
    );
    assert_eq!(request["parameters"][1]["style"], "pipe");
    assert_eq!(
        request["body"],
        json!({"argument": "body", "media": "application/x-www-form-urlencoded", "form": "pairs"})
    );
    assert_eq!((&request["accept"], &request["output"]), (&json!("image/png, text/csv"), &json!("free")));
    let tool = tool(&document);
    assert_eq!(tool.input["properties"]["ids"], json!({"type": "array", "items": {}}));
    assert_eq!(tool.output, None);
}

#[test]
fn a_path_with_a_query_is_sent_with_it_and_a_fragment_is_not() {
    let parameter =
        |name: &str, place: &str| json!({"name": name, "in": place, "required": true, "schema": {"type": "string"}});
    let bridge = bridge(&document(json!({
        "/rest?method=photos.get": {"get": {"operationId": "fixed"}},
        "/find?q={text}&all&key={key}": {
            "get": {"operationId": "find", "parameters": [parameter("text", "path"), parameter("key", "query")]},
        },
        "/items/{id}#share": {"put": {"operationId": "share", "parameters": [parameter("id", "path")]}},
        "/items/{id}": {"put": {"operationId": "change", "parameters": [parameter("id", "path")]}},
    })));
    let text = String::from_utf8(bridge.definitions.bytes()).unwrap();
    let requests: Vec<serde_json::Value> =
        text.lines().skip(1).take(4).map(|line| serde_json::from_str(line).unwrap()).collect();
    let paths: Vec<&str> = requests.iter().map(|request| request["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/v1/rest?method=photos.get", "/v1/find?all", "/v1/items/{id}", "/v1/items/{id}"]);
    let in_query =
        |name: &str| json!({"name": name, "argument": name, "place": "query", "style": "form", "explode": true});
    assert_eq!(requests[1]["parameters"], json!([in_query("q"), in_query("key")]));
    let find = &bridge.definitions.tools[1];
    assert_eq!(find.input["required"], json!(["q", "key"]));
    assert_eq!(
        bridge.grants.http,
        [
            "GET https://api.example.com/v1/find",
            "PUT https://api.example.com/v1/items/{}",
            "GET https://api.example.com/v1/rest",
        ]
    );
}

#[test]
fn a_parameter_takes_what_its_document_says_and_says_where_it_goes() {
    let parameters = json!([
        {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
        {"name": "id", "in": "query", "description": "Of the owner.", "schema": {"type": "string"}},
        {"name": "ID", "in": "header", "schema": {"type": "string"}},
        {"name": "filter", "in": "query", "content": {"application/json": {}}},
        {"name": "const", "in": "query", "schema": {"const": 5}},
        {"name": "map", "in": "query", "style": "deepObject", "schema": {"additionalProperties": {"type": "string"}}},
        {"name": "none", "in": "query"},
    ]);
    let document = document(json!({"/a/{id}": {"get": {"parameters": parameters}}}));
    let properties = tool(&document).input["properties"].clone();
    assert_eq!(
        properties,
        json!({
            "id": {"type": "string"},
            "id_2": {"type": "string", "description": "Of the owner. It is \"id\" of the query."},
            "ID_3": {"type": "string", "description": "It is \"ID\" of the header."},
            "filter": {},
            "const": {"const": 5},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "none": {"type": "string"},
        })
    );
}
