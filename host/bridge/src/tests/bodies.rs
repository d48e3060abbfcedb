//! What the bodies of requests are made of.
use serde_json::{Value, json};

use super::{document, request, tool};

/// A document with one operation, whose body has these media types.
fn with_body(content: Value) -> Value {
    document(json!({"/a": {"post": {"operationId": "send", "requestBody": {"content": content, "required": true}}}}))
}

fn file(description: &str, members: &[&str]) -> Value {
    let members: serde_json::Map<String, Value> =
        members.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"description": description, "type": "object", "properties": members, "additionalProperties": false})
}

#[test]
fn of_several_media_types_the_one_that_a_model_writes_best_is_taken() {
    let all =
        ["image/png", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded", "application/json"];
    for (count, form) in [(1, "file"), (2, "text"), (3, "parts"), (4, "pairs"), (5, "json")] {
        let content: serde_json::Map<String, Value> =
            all.iter().take(count).map(|media| ((*media).to_owned(), json!({"schema": {"type": "object"}}))).collect();
        let body = &request(&with_body(content.into()))["body"];
        assert_eq!((&body["form"], &body["media"]), (&json!(form), &json!(all[count - 1])));
    }
}

#[test]
fn files_of_a_form_are_objects_and_the_rest_is_as_it_is() {
    let binary = json!({"type": "string", "format": "binary", "description": "A photo."});
    let document = with_body(json!({"multipart/form-data": {
        "schema": {"type": "object", "required": ["photo"], "properties": {
            "photo": binary,
            "more": {"type": "array", "items": {"type": "string", "format": "binary"}},
            "either": {"anyOf": [{"type": "string", "format": "binary"}, {"type": "string", "format": "uri"}]},
            "about": {"type": "object", "properties": {"a": {"type": "string"}}},
            "coded": {"type": "string", "format": "byte"},
        }},
        "encoding": {
            "photo": {"contentType": "image/png, image/jpeg"},
            "about": {"contentType": "application/vnd.example+json", "headers": {}},
            "coded": {"contentType": "a\r\nb/c"},
        },
    }}));
    assert_eq!(
        request(&document)["body"],
        json!({
            "argument": "body", "media": "multipart/form-data", "form": "parts", "files": ["photo", "more", "either"],
            "part_media": {"about": "application/vnd.example+json"},
        })
    );
    let body = &tool(&document).input["properties"]["body"];
    let members = ["text", "base64", "filename", "media_type"];
    let properties = &body["properties"];
    assert_eq!(properties["photo"], file("A photo. A file: its content is either text or base64.", &members));
    let plain = file("A file: its content is either text or base64.", &members);
    assert_eq!(properties["more"]["items"], plain);
    assert_eq!(properties["either"]["anyOf"], json!([plain, {"type": "string", "format": "uri"}]));
    assert_eq!(properties["coded"], json!({"type": "string", "format": "byte"}));
    assert_eq!(body["required"], json!(["photo"]));
}

#[test]
fn a_file_of_3_1_has_the_media_type_of_bytes() {
    let mut document = with_body(json!({"multipart/form-data": {"schema": {"type": "object", "properties": {
        "file": {"type": "string", "contentMediaType": "application/octet-stream"},
        "text": {"type": "string", "contentMediaType": "text/csv"},
        "coded": {"type": "string", "contentMediaType": "image/png", "contentEncoding": "base64"},
        "optional": {"anyOf": [{"type": "string", "contentMediaType": "image/png"}, {"type": "null"}]},
    }}}}));
    document["openapi"] = json!("3.1.0");
    assert_eq!(request(&document)["body"]["files"], json!(["file", "optional"]));
}

#[test]
fn files_are_found_under_any_name_and_in_every_variant() {
    let binary = json!({"type": "string", "format": "binary"});
    let form = |schema: Value| {
        let document = with_body(json!({"multipart/form-data": {"schema": schema}}));
        (request(&document)["body"].clone(), tool(&document).input["properties"]["body"].clone())
    };
    let members = ["text", "base64", "filename", "media_type"];
    let plain = file("A file: its content is either text or base64.", &members);

    let (body, input) = form(json!({
    "type": "object", "required": ["files[]", "my file"], "additionalProperties": false, "properties": {
        "files": {"type": "string"}, "files[]": {"type": "array", "items": binary}, "my file": binary,
        "in": {"type": "object", "properties": {"a b": {"type": "string"}}},
    }}));
    assert_eq!(body["names"], json!({"files_2": "files[]", "my_file": "my file"}));
    assert_eq!(body["files"], json!(["files[]", "my file"]));
    assert_eq!(input["properties"]["files_2"]["items"], plain);
    assert_eq!((&input["properties"]["my_file"], &input["required"]), (&plain, &json!(["files_2", "my_file"])));
    assert_eq!(input["additionalProperties"], false);
    assert_eq!(input["properties"]["in"]["description"], "Also takes: a b.");

    let (body, input) = form(json!({"oneOf": [
        {"type": "object", "properties": {"file": binary}, "required": ["file"]},
        {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
    ]}));
    assert_eq!(body["files"], json!(["file"]));
    assert_eq!(input["anyOf"][0]["properties"]["file"], plain);

    let (body, input) = form(json!({"type": "object", "additionalProperties": binary}));
    assert_eq!((&body["others_are_files"], &body["files"]), (&json!(true), &Value::Null));
    assert_eq!(input["additionalProperties"], plain);
}

#[test]
fn json_with_bytes_in_it_comes_behind_a_form_with_files() {
    let binary = json!({"type": "string", "format": "binary"});
    let with = json!({"schema": {"type": "object", "properties": {"a": {"type": "array", "items": binary}}}});
    let without = json!({"schema": {"type": "object"}});
    for (json_schema, form) in [(&with, "parts"), (&without, "json")] {
        let document = with_body(json!({"application/json": json_schema, "multipart/form-data": with}));
        assert_eq!(request(&document)["body"]["form"], form);
    }
    assert_eq!(request(&with_body(json!({"application/json": with})))["body"]["form"], "json");
}

#[test]
fn operations_of_json_patch_come_behind_other_json() {
    let schema = |kind: &str| json!({"schema": {"type": kind}});
    let patch = "application/json-patch+json";
    let merge = "application/merge-patch+json";
    for (kind, media) in [("object", merge), ("array", patch)] {
        let document = with_body(json!({patch: schema(kind), merge: schema("object")}));
        assert_eq!(request(&document)["body"]["media"], media);
    }
    assert_eq!(request(&with_body(json!({patch: schema("object")})))["body"]["media"], patch);
}

#[test]
fn fields_of_a_form_have_the_style_that_the_document_says() {
    let document = with_body(json!({"application/x-www-form-urlencoded": {
        "schema": {"type": "object", "properties": {"tags[]": {"type": "array", "items": {"type": "string"}}}},
        "encoding": {
            "tags[]": {"explode": false}, "bars": {"style": "pipeDelimited", "contentType": "application/json"},
            "deep": {"style": "deepObject", "explode": true}, "json": {"contentType": "application/json"},
            "form": {"style": "form"}, "text": {"contentType": "text/plain"}, "other": {"style": "matrix"},
        },
    }}));
    let body = &request(&document)["body"];
    assert_eq!(body["names"], json!({"tags": "tags[]"}));
    let style = |style: &str, explode: bool| json!({"style": style, "explode": explode});
    assert_eq!(
        body["styles"],
        json!({
            "tags[]": style("form", false), "bars": style("pipe", false), "deep": style("deep", true),
            "json": style("json", false), "form": style("form", true),
        })
    );
}

#[test]
fn texts_and_bytes_are_whole_bodies() {
    for (media, schema, form, sent) in [
        ("text/plain; charset=utf-8", json!({"type": "string"}), "text", "text/plain; charset=utf-8"),
        ("text/plain; Charset=ISO-8859-1", json!({}), "text", "text/plain; charset=utf-8"),
        ("application/json; charset=latin1; v=2", json!({}), "json", "application/json; v=2; charset=utf-8"),
        ("application/xml", json!({"type": "object", "properties": {"a": {}}}), "text", "application/xml"),
        ("application/soap+xml", json!({}), "text", "application/soap+xml"),
        ("application/x-ndjson", json!({}), "text", "application/x-ndjson"),
        ("application/octet-stream", json!({"type": "string", "format": "binary"}), "file", "application/octet-stream"),
        ("image/*", json!({}), "file", "application/octet-stream"),
        ("*/*", json!({}), "file", "application/octet-stream"),
        ("*/*", json!({"type": "object"}), "json", "application/json"),
        ("application/*", json!({"allOf": [{"type": "object"}]}), "json", "application/json"),
    ] {
        let document = with_body(json!({media: {"schema": schema.clone()}}));
        let body = &request(&document)["body"];
        assert_eq!((&body["form"], &body["media"]), (&json!(form), &json!(sent)), "{media}");
        let input = &tool(&document).input["properties"]["body"];
        match form {
            "text" => assert_eq!(input, &json!({"description": format!("As {sent}."), "type": "string"})),
            "file" => {
                let text = "A file: its content is either text or base64.";
                assert_eq!(input, &file(text, &["text", "base64", "media_type"]));
            }
            _ => assert!(input["type"] == "object" || schema == json!({}), "{input}"),
        }
    }
}
