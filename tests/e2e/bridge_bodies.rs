//! What a bridge sends: forms with files, texts and bytes as they are.

use serde_json::{Value, json};
use toolcell_tests::loopback::{HttpServer, Seen};
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
