//! What a bridge sends: forms with files, texts and bytes as they are.

use serde_json::{Value, json};
use toolcell_tests::loopback::{HttpServer, Scripted, Seen};
use toolcell_tests::{Command, Folder};

use super::bridge::{bridge, holding};

/// Calls a tool of `files.json` by a process of its own, and gives what its server saw.
fn sent(folder: &Folder, server: &HttpServer, tool: &str, body: &Value) -> Seen {
    let before = server.seen().len();
    let arguments = json!({"body": body}).to_string();
    let finished = Command::in_folder(folder, &["call", tool, &arguments]).run();
    let _ = finished.succeeded();
    let mut seen = server.seen().split_off(before);
    assert_eq!(seen.len(), 1, "{finished:?}");
    seen.remove(0)
}

#[test]
fn files_texts_and_bytes_are_sent_as_the_document_says() {
    let server = HttpServer::start();
    let operation = |id: &str, content: Value| json!({"operationId": id, "requestBody": {"content": content, "required": true}, "responses": {}});
    let binary = json!({"type": "string", "format": "binary"});
    let form = json!({"type": "object", "required": ["photo"], "properties": {
        "photo": binary, "more": {"type": "array", "items": binary}, "name": {"type": "string"},
        "about": {"type": "object", "properties": {"year": {"type": "integer"}}}}});
    let document = json!({
        "openapi": "3.0.3", "info": {"title": "Files", "version": "1"}, "servers": [{"url": server.url("/v1")}],
        "paths": {
            "/form": {"post": operation("form", json!({"multipart/form-data": {"schema": form}}))},
            "/text": {"put": operation("text", json!({"application/xml": {"schema": {"type": "object"}}}))},
            "/bytes": {"put": operation("bytes", json!({"application/octet-stream": {"schema": binary}}))},
        },
    });
    let folder = holding(&document);
    let bridge = bridge();
    let added =
        Command::in_folder(&folder, &["add", "pets.json", "--name", "files", "--yes", "--bridge", &bridge]).run();
    let _ = added.succeeded();
    let sent = |tool: &str, body: Value| sent(&folder, &server, tool, &body);

    let seen = sent(
        "files_form",
        json!({"about": {"year": 1999}, "more": [{"text": "one"}, {"text": "two", "filename": "2"}], "name": "a\r\n--x",
               "photo": {"base64": "iVBORw0KGgo=", "filename": "p\".png", "media_type": "image/png"}}),
    );
    let media = seen.values("content-type").concat();
    let boundary = media.strip_prefix("multipart/form-data; boundary=").unwrap();
    let text = String::from_utf8_lossy(&seen.body);
    let parts: Vec<&str> = text.split(&format!("--{boundary}")).map(str::trim_start).collect();
    let field = |name: &str| format!("content-disposition: form-data; name=\"{name}\"");
    assert_eq!(parts.len(), 7, "{text}");
    assert_eq!(parts[1], format!("{}\r\ncontent-type: application/json\r\n\r\n{{\"year\":1999}}\r\n", field("about")));
    assert_eq!(parts[2], format!("{}\r\n\r\na\r\n--x\r\n", field("name")));
    let bytes = "content-type: application/octet-stream";
    assert_eq!(parts[3], format!("{}; filename=\"file\"\r\n{bytes}\r\n\r\none\r\n", field("more")));
    assert_eq!(parts[4], format!("{}; filename=\"2\"\r\n{bytes}\r\n\r\ntwo\r\n", field("more")));
    let head = format!("{}; filename=\"p%22.png\"\r\ncontent-type: image/png\r\n\r\n", field("photo"));
    assert!(parts[5].starts_with(&head), "{text}");
    assert!(seen.body.windows(8).any(|bytes| bytes == b"\x89PNG\r\n\x1a\n"), "{text}");

    let seen = sent("files_text", json!("<a>1</a>"));
    assert_eq!((seen.values("content-type").concat().as_str(), &seen.body[..]), ("application/xml", &b"<a>1</a>"[..]));
    let seen = sent("files_bytes", json!({"base64": "AP8="}));
    assert_eq!(seen.values("content-type"), ["application/octet-stream"]);
    assert_eq!(seen.body, [0x00, 0xff]);
    let seen = sent("files_bytes", json!({"text": "a,b", "media_type": "text/csv"}));
    assert_eq!((seen.values("content-type").concat().as_str(), &seen.body[..]), ("text/csv", &b"a,b"[..]));

    let before = server.seen().len();
    for body in [
        json!({"base64": "AA=="}).to_string().replace("==", "!"),
        json!({"text": "", "media_type": "a/b\r\nX: y"}).to_string(),
    ] {
        let arguments = format!("{{\"body\":{body}}}");
        let refused = Command::in_folder(&folder, &["call", "files_bytes", &arguments]).run();
        assert_ne!(refused.code(), 0, "{refused:?}");
    }
    assert_eq!(server.seen().len(), before);
}

/// A folder with the tools of these paths of a server.
fn with_paths(server: &HttpServer, paths: &Value) -> Folder {
    let document = json!({
        "openapi": "3.0.3", "info": {"title": "Files", "version": "1"}, "servers": [{"url": server.url("/v1")}],
        "paths": paths,
    });
    let folder = holding(&document);
    let bridge = bridge();
    let arguments = ["add", "pets.json", "--name", "files", "--yes", "--bridge", &bridge];
    let _ = Command::in_folder(&folder, &arguments).run().succeeded();
    folder
}

#[test]
fn fields_have_the_names_and_styles_of_the_document_and_numbers_their_digits() {
    let server = HttpServer::start();
    let operation =
        |id: &str, content: Value| json!({"operationId": id, "requestBody": {"content": content}, "responses": {}});
    let binary = json!({"type": "string", "format": "binary"});
    let list = json!({"type": "array", "items": {"type": "string"}});
    let files = json!({"type": "object", "required": ["files[]"], "properties": {"files[]": {"type": "array", "items": binary}}});
    let either = json!({"oneOf": [{"type": "object", "properties": {"file": binary}}, {"type": "object", "properties": {"url": {"type": "string"}}}]});
    let form = json!({
        "schema": {"type": "object", "properties": {"tags": list, "bars": list, "meta": {"type": "object"}}},
        "encoding": {"tags": {"explode": false}, "bars": {"style": "pipeDelimited"}, "meta": {"contentType": "application/json"}},
    });
    let paths = json!({
        "/files": {"post": operation("files", json!({"multipart/form-data": {"schema": files}}))},
        "/either": {"post": operation("either", json!({"multipart/form-data": {"schema": either}}))},
        "/map": {"post": operation("map", json!({"multipart/form-data": {"schema": {"type": "object", "additionalProperties": binary}}}))},
        "/form": {"post": operation("form", json!({"application/x-www-form-urlencoded": form}))},
        "/json": {"post": operation("json", json!({"application/json": {"schema": {"type": "object"}}}))},
    });
    let folder = with_paths(&server, &paths);
    let sent = |tool: &str, body: Value| String::from_utf8(sent(&folder, &server, tool, &body).body).unwrap();
    let file = json!({"text": "hi", "filename": "a.txt"});
    for (tool, body, name) in [
        ("files_files", json!({"files": [file]}), "files[]"),
        ("files_either", json!({"file": file}), "file"),
        ("files_map", json!({"any": file}), "any"),
    ] {
        let text = sent(tool, body);
        assert!(text.contains(&format!("name=\"{name}\"; filename=\"a.txt\"\r\n")), "{tool}: {text}");
    }
    let pairs = sent("files_form", json!({"tags": ["a", "b"], "bars": ["c", "d"], "meta": {"k": 1}}));
    for pair in ["tags=a,b", "bars=c%7Cd", "meta=%7B%22k%22%3A1%7D"] {
        assert!(pairs.split('&').any(|other| other == pair), "no {pair} in {pairs}");
    }
    let arguments = r#"{"body":{"n":123456789012345678901234567890}}"#;
    let _ = Command::in_folder(&folder, &["call", "files_json", arguments]).run().succeeded();
    let seen = server.seen().pop().unwrap();
    assert_eq!(String::from_utf8(seen.body).unwrap(), r#"{"n":123456789012345678901234567890}"#);
}

#[test]
fn a_request_that_succeeds_is_a_result_whatever_its_answer_is() {
    let server = HttpServer::scripted(|seen: &Seen| match seen.target() {
        "/v1/other" => Scripted::Whole(201, "application/json", r#"{"id":"12","name":"Ada"}"#.to_owned()),
        "/v1/text" => Scripted::Whole(200, "text/plain", "created 17".to_owned()),
        _ => Scripted::Bytes(
            200,
            vec![("content-type", "application/json; charset=iso-8859-1".to_owned())],
            b"{\"name\":\"\xe9\"}".to_vec(),
        ),
    });
    let pet = json!({"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}});
    let operation = |id: &str| json!({"post": {"operationId": id, "responses": {"200": {"content": {"application/json": {"schema": pet}}}}}});
    let folder = with_paths(
        &server,
        &json!({"/other": operation("other"), "/text": operation("text"), "/latin": operation("latin")}),
    );
    let called = |tool: &str| {
        let finished = Command::in_folder(&folder, &["call", tool, "{}", "--json"]).run();
        serde_json::from_str::<Value>(finished.succeeded()).unwrap()
    };
    let other = called("files_other");
    assert_eq!(other["structuredContent"], json!({"id": null, "name": "Ada"}), "{other}");
    assert!(other["content"][0]["text"].as_str().unwrap().contains("has a text for \"id\""), "{other}");
    assert_eq!(other["content"][1]["text"], r#"{"id":"12","name":"Ada"}"#);
    let text = called("files_text");
    assert_eq!((&text["structuredContent"], &text["content"][1]["text"]), (&json!({}), &json!("created 17")), "{text}");
    assert_eq!(called("files_latin")["structuredContent"], json!({"name": "\u{e9}"}));
}
