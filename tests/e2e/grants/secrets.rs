//! Secrets: their sources, and who sees them. The server gets them; the guest and the host's texts
//! never do.
//!
//! Promise: no request is smuggled.
//! Promise: a secret that the host adds does not come back.
//! Promise: a secret goes with its requests only.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::{Command, Folder, TestHost};

use super::{assert_refused, came_to, folder};

const FIXTURE: &str = "reach_http";

/// A value that appears nowhere by chance.
const VALUE: &str = "s3cr3t-8d1f7c2a94";

fn tables(server: &HttpServer, secrets: &str) -> String {
    let address = server.address();
    format!(
        "[{{c}}.network]\nhttp = [\"http://{address}\"]\nprivate = [\"{address}\"]\n\n[{{c}}.limits]\noutput = \"8MiB\"\n\n[{{c}}.secrets]\n{}\n",
        secrets.replace("{a}", &address.to_string())
    )
}

fn private_file(folder: &Folder, relative: &str, text: &str, mode: u32) {
    folder.write(relative, text);
    std::fs::set_permissions(folder.path().join(relative), std::fs::Permissions::from_mode(mode)).unwrap();
}

const HEADER: &str =
    "KEY = { from = \"env:TEST_KEY\", header = \"Authorization\", value = \"Bearer {}\", for = \"http://{a}/api/*\" }";

fn with_header(server: &HttpServer) -> TestHost {
    TestHost::recording_in(folder(FIXTURE, &tables(server, HEADER)), &[("TEST_KEY", VALUE)])
}

fn get(host: &mut TestHost, url: String) -> Value {
    came_to(&host.call("http", json!({"url": url}))).unwrap()
}

#[test]
fn the_server_gets_the_secret_and_the_guest_does_not() {
    let server = HttpServer::start();
    let mut host = with_header(&server);
    let answer = host.call("http", json!({"url": server.url("/api/echo")}));
    assert_eq!(server.only_seen().values("authorization"), [format!("Bearer {VALUE}")]);
    // The server repeated the secret in its response. The guest sees the response without it.
    let body = came_to(&answer).unwrap()["body"].as_str().unwrap().to_owned();
    assert!(body.contains("Bearer [redacted:KEY]"), "{body}");
    assert!(!answer.everything().contains(VALUE));
}

#[test]
fn a_secret_goes_with_the_requests_it_is_for_and_with_no_others() {
    let server = HttpServer::start();
    let other = HttpServer::start();
    let rules = tables(&server, HEADER).replace(
        &format!("http = [\"http://{0}\"]\nprivate = [\"{0}\"]", server.address()),
        &format!(
            "http = [\"http://{0}\", \"http://{1}\"]\nprivate = [\"{0}\", \"{1}\"]",
            server.address(),
            other.address()
        ),
    );
    let mut host = TestHost::recording_in(folder(FIXTURE, &rules), &[("TEST_KEY", VALUE)]);
    for url in
        [server.url("/api"), server.url("/other"), server.url("/api/../other"), other.url("/api/x"), server.url("/")]
    {
        get(&mut host, url);
    }
    let redirected = json!({"url": server.url(&format!("/redirect?{}", other.url("/api/x")))});
    assert!(came_to(&host.call("http_follow", redirected)).is_ok());
    for seen in server.seen().iter().chain(&other.seen()) {
        assert!(!seen.head.contains(VALUE), "{}", seen.head);
    }
    get(&mut host, server.url("/api/x"));
    assert_eq!(server.seen().pop().unwrap().values("authorization"), [format!("Bearer {VALUE}")]);
}

#[test]
fn what_the_guest_puts_in_its_place_is_replaced() {
    let server = HttpServer::start();
    let mut host = with_header(&server);
    let headers = json!([["Authorization", "Bearer mine"], ["authorization", "Bearer mine too"]]);
    came_to(&host.call("http", json!({"url": server.url("/api/x"), "headers": headers}))).unwrap();
    assert_eq!(server.only_seen().values("authorization"), [format!("Bearer {VALUE}")]);
}

#[test]
fn a_secret_in_the_query_is_added_and_not_told() {
    let server = HttpServer::start();
    let secrets = "KEY = { from = \"env:TEST_KEY\", query = \"api_key\", for = \"http://{a}\" }";
    let mut host = TestHost::recording_in(folder(FIXTURE, &tables(&server, secrets)), &[("TEST_KEY", VALUE)]);
    for (path, sent) in [
        ("/x", format!("/x?api_key={VALUE}")),
        ("/x?a=b", format!("/x?a=b&api_key={VALUE}")),
        ("/x?api_key=mine&a=b", format!("/x?a=b&api_key={VALUE}")),
    ] {
        let answer = host.call("http", json!({"url": server.url(path)}));
        assert_eq!(server.seen().pop().unwrap().target(), sent);
        assert!(!answer.everything().contains(VALUE), "{path}");
    }
}

#[test]
fn a_secret_from_a_file_is_its_only_line() {
    let server = HttpServer::start();
    let secrets = HEADER.replace("env:TEST_KEY", "file:secrets/key");
    for text in [VALUE.to_owned(), format!("{VALUE}\n"), format!("{VALUE}\r\n")] {
        let staged = folder(FIXTURE, &tables(&server, &secrets));
        private_file(&staged, "secrets/key", &text, 0o600);
        let mut host = TestHost::recording_in(staged, &[]);
        get(&mut host, server.url("/api/x"));
        assert_eq!(server.seen().pop().unwrap().values("authorization"), [format!("Bearer {VALUE}")]);
    }
}

#[test]
fn a_file_that_others_may_read_and_a_source_that_is_not_there_are_load_errors() {
    let server = HttpServer::start();
    let from_file = HEADER.replace("env:TEST_KEY", "file:secrets/key");
    for mode in [0o640, 0o604, 0o620, 0o644, 0o666] {
        let staged = folder(FIXTURE, &tables(&server, &from_file));
        private_file(&staged, "secrets/key", VALUE, mode);
        let finished = Command::in_folder(&staged, &["check"]).run();
        let said = finished.failed_with(1);
        assert!(said.contains("secrets/key") && said.contains("chmod 600"), "{mode:o}: {said}");
        assert!(!said.contains(VALUE), "{said}");
    }
    assert_refused(&folder(FIXTURE, &tables(&server, &from_file)), &["secrets/key"]);
    assert_refused(&folder(FIXTURE, &tables(&server, HEADER)), &["TEST_KEY"]);
    let staged = folder(FIXTURE, &tables(&server, &from_file));
    private_file(&staged, "secrets/key", "two\nlines\n", 0o600);
    assert_refused(&staged, &["secrets/key"]);
}

#[test]
fn secrets_that_would_go_astray_are_load_errors() {
    let server = HttpServer::start();
    for (secrets, words) in [
        ("KEY = \"s3cr3t-8d1f7c2a94\"", &["must not hold the secret itself"][..]),
        ("KEY = { from = \"s3cr3t-8d1f7c2a94\", expose = true }", &["from"]),
        ("KEY = { from = \"env:TEST_KEY\" }", &["KEY"]),
        ("KEY = { from = \"env:TEST_KEY\", header = \"Host\", for = \"http://{a}\" }", &["Host"]),
        ("KEY = { from = \"env:TEST_KEY\", header = \"X-Key\", query = \"key\", for = \"http://{a}\" }", &["query"]),
        ("KEY = { from = \"env:TEST_KEY\", header = \"X-Key\" }", &["for"]),
        (
            "KEY = { from = \"env:TEST_KEY\", header = \"X-Key\", for = \"https://elsewhere.example\" }",
            &["elsewhere.example"],
        ),
        ("KEY = { from = \"env:TEST_KEY\", header = \"X-Key\", expose = true }", &["header"]),
    ] {
        let staged = folder(FIXTURE, &tables(&server, secrets));
        let finished = Command::in_folder(&staged, &["check"]).with_variable("TEST_KEY", VALUE).run();
        let said = finished.failed_with(1);
        for word in words {
            assert!(said.contains(word), "{secrets}: no {word:?} in {said}");
        }
        assert!(!said.contains(VALUE), "{said}");
    }
}

#[test]
fn nothing_that_the_host_writes_has_the_secret() {
    let server = HttpServer::start();
    let mut host = with_header(&server);
    for path in ["/api/echo", "/api/redirect?/x", "/api/status/500", "/api/cut"] {
        let answer = host.call("http", json!({"url": server.url(path)}));
        assert!(!answer.everything().contains(VALUE), "{path}");
    }
    let _ = host.recorded("the calls", |record| record["event"] == "call.finished");
    assert!(!host.folder().read("audit.jsonl").contains(VALUE));
    assert!(!host.said().contains(VALUE), "{}", host.said());
    let folder = host.folder();
    for arguments in [&["check"][..], &["list"], &["list", "--json"], &["inspect", "components/reach_http.wasm"]] {
        let finished = Command::in_folder(folder, arguments).with_variable("TEST_KEY", VALUE).run();
        assert_eq!(finished.code(), 0, "{finished:?}");
        assert!(!format!("{}{}", finished.stdout, finished.stderr).contains(VALUE), "{arguments:?}");
    }
    assert!(
        Command::in_folder(folder, &["check"]).with_variable("TEST_KEY", VALUE).run().stdout.contains("KEY"),
        "its name is shown"
    );
}

#[test]
fn an_answer_that_is_compressed_is_not_let_through_with_a_secret_in_it() {
    let server = HttpServer::start();
    let secrets = HEADER.replace("/api/*", "");
    let mut host = TestHost::recording_in(folder(FIXTURE, &tables(&server, &secrets)), &[("TEST_KEY", VALUE)]);
    let headers = json!([["Accept-Encoding", "gzip"]]);
    let found = came_to(&host.call("http", json!({"url": server.url("/gzip"), "headers": headers})));
    assert!(found.as_ref().is_err_and(|error| error.contains("HttpResponseContentCoding")), "{found:?}");
    assert_eq!(server.only_seen().values("accept-encoding"), ["identity"]);
}

#[test]
fn a_secret_is_redacted_where_it_lies_across_pieces_of_a_body() {
    // The host reads a body in pieces. The value may begin in one piece and end in the next.
    let server = HttpServer::start();
    let secrets = HEADER.replace("/api/*", "");
    let mut host = TestHost::recording_in(folder(FIXTURE, &tables(&server, &secrets)), &[("TEST_KEY", VALUE)]);
    for padding in [4_050, 8_150, 16_340, 65_480, 131_000] {
        let body = "p".repeat(padding);
        let sent = json!({"method": "POST", "url": server.url("/echo"), "body": body, "headers": [["X-Pad", "q".repeat(100)]], "read_max": 1_000_000});
        let found = came_to(&host.call("http", sent)).unwrap();
        let text = found["body"].as_str().unwrap();
        assert!(!text.contains(VALUE) && text.contains("[redacted:KEY]"), "{padding}");
    }
}

/// Makes the server send this text, which contains the secret.
fn say(host: &mut TestHost, server: &HttpServer, words: &str) -> Result<Value, String> {
    came_to(&host.call("http", json!({"url": server.url("/api/say"), "method": "POST", "body": words})))
}

#[test]
fn a_secret_does_not_come_back_in_escapes_or_as_the_name_of_a_field() {
    let server = HttpServer::start();
    let secrets = HEADER.replace(", value = \"Bearer {}\"", "");
    let mut host = TestHost::recording_in(folder(FIXTURE, &tables(&server, &secrets)), &[("TEST_KEY", VALUE)]);
    for form in ["{plain}", "{json}", "{html}", "{percent}", "{twice}", "{digits}"] {
        let words = format!("HTTP/1.1 200 OK\r\nconnection: close\r\nx-form: {form}\r\n\r\n<{form}>");
        let found = say(&mut host, &server, &words).unwrap();
        assert_eq!(found["body"], "<[redacted:KEY]>", "{form}: {found}");
        assert!(found.to_string().contains("[\"x-form\",\"[redacted:KEY]\"]"), "{form}: {found}");
    }
    let found = say(&mut host, &server, "HTTP/1.1 200 OK\r\nx-{plain}-y: 1\r\ncontent-length: 2\r\n\r\nok").unwrap();
    assert!(
        found.to_string().contains("[\"redacted\",\"[redacted]\"]") && !found.to_string().contains(VALUE),
        "{found}"
    );
    host.still_works();
}

#[test]
fn a_coding_in_a_second_field_does_not_pass() {
    let server = HttpServer::start();
    let mut host = with_header(&server);
    let words =
        "HTTP/1.1 200 OK\r\ncontent-encoding: identity\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\nzz";
    let found = say(&mut host, &server, words);
    assert_eq!(found, Err("response: ErrorCode::HttpResponseContentCoding(Some(\"gzip\"))".to_owned()));
    host.still_works();
}

#[test]
fn a_response_with_two_ends_is_refused() {
    let server = HttpServer::start();
    let mut host = with_header(&server);
    for head in [
        "content-length: 1\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 14\r\n",
        "content-length: 1\r\ncontent-length: 2\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
        "x-a: b\ntransfer-encoding: chunked\r\n",
    ] {
        let found = say(&mut host, &server, &format!("HTTP/1.1 200 OK\r\n{head}\r\n2\r\nhi\r\n0\r\n\r\n"));
        assert_eq!(found, Err("response: ErrorCode::HttpProtocolError".to_owned()), "{head:?}");
    }
    let found =
        say(&mut host, &server, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n").unwrap();
    assert_eq!(found["body"], "hi");
}
