//! Secrets: which requests carry them, and that they do not come back.
//!
//! Promise: a secret that the host adds does not come back.
use wasmtime_wasi_http::Error;

use super::servers::Server;
use super::support::{Granted, request};

const KEY: &str = "sk-live-0123456789";

/// A tool with a key in its `Authorization` for one path, and one in the query for another.
fn granted(server: &Server) -> Granted {
    let lines = format!(
        "http = [\"http://{0}\"]\nprivate = [\"{0}\"]\n[components.it.secrets]\n\
         KEY = {{ from = \"env:KEY\", header = \"Authorization\", value = \"Bearer {{}}\", for = \"http://{0}/api/*\" }}\n\
         ID = {{ from = \"env:ID\", query = \"id\", for = \"http://{0}/query\" }}\n",
        server.address
    );
    Granted { secrets: vec![("KEY", KEY), ("ID", "my id+secret")], ..Granted::network(lines) }
}

/// Echoes requests as JSON, in pieces.
async fn reflecting() -> (Server, tokio::sync::mpsc::Receiver<String>) {
    use tokio::io::AsyncWriteExt as _;
    let (told, heard) = tokio::sync::mpsc::channel(8);
    let server = Server::raw(move |mut stream| {
        let told = told.clone();
        async move {
            let head = super::servers::read_head(&mut stream).await;
            let line = head.lines().next().unwrap().to_owned();
            let authorization = head.lines().find_map(|line| line.strip_prefix("authorization: ")).unwrap_or("none");
            let start = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nx-line: {line}\r\n\r\n", head.len());
            stream
                .write_all(
                    start.to_string().replace("x-line", &format!("x-auth: {authorization}\r\nx-line")).as_bytes(),
                )
                .await
                .unwrap();
            for piece in head.as_bytes().chunks(7) {
                stream.write_all(piece).await.unwrap();
                stream.flush().await.unwrap();
            }
            told.send(head).await.unwrap();
        }
    })
    .await;
    (server, heard)
}

#[tokio::test]
async fn a_secret_goes_to_the_requests_it_is_for_and_comes_back_as_its_name() {
    let (server, mut heard) = reflecting().await;
    let mut call = granted(&server).call();
    let got = call
        .fetch(request(
            "GET",
            &server.url("/api/x"),
            &[("authorization", "guest's own"), ("accept-encoding", "gzip")],
            "",
        ))
        .await
        .unwrap();
    let head = heard.recv().await.unwrap();
    assert!(head.contains(&format!("authorization: Bearer {KEY}\r\n")), "{head}");
    assert!(!head.contains("guest's own") && head.contains("accept-encoding: identity\r\n"), "{head}");
    assert!(got.body.contains("authorization: Bearer [redacted:KEY]"), "{}", got.body);
    assert_eq!(got.headers["x-auth"], "Bearer [redacted:KEY]");
    assert!(!got.headers.contains_key("content-length"), "the length is another now");
    assert!(!format!("{got:?}").contains(KEY));
}

#[tokio::test]
async fn a_secret_in_the_query_is_encoded_and_comes_back_as_its_name() {
    let (server, mut heard) = reflecting().await;
    let mut call = granted(&server).call();
    let got = call.get(&server.url("/query?a=1&id=guest&b=2")).await.unwrap();
    let head = heard.recv().await.unwrap();
    assert!(head.starts_with("GET /query?a=1&b=2&id=my%20id%2Bsecret HTTP/1.1\r\n"), "{head}");
    assert!(got.body.starts_with("GET /query?a=1&b=2&id=[redacted:ID] HTTP/1.1"), "{}", got.body);
    assert_eq!(got.headers["x-line"], "GET /query?a=1&b=2&id=[redacted:ID] HTTP/1.1");
}

#[tokio::test]
async fn other_requests_carry_no_secret() {
    let (server, mut heard) = reflecting().await;
    let mut call = granted(&server).call();
    for path in ["/", "/apix", "/API/x", "/query/x", "/x/../query2"] {
        call.get(&server.url(path)).await.unwrap();
        let head = heard.recv().await.unwrap();
        assert!(!head.contains("authorization") && !head.contains("id="), "{path}: {head}");
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_looked_through_is_refused_where_the_request_carried_a_secret() {
    let server = Server::saying("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\nhi").await;
    let mut call = granted(&server).call();
    let error = call.get(&server.url("/api/x")).await.unwrap_err();
    assert!(matches!(&error, Error::HttpResponseContentCoding(Some(coding)) if coding == "gzip"), "{error}");
    assert_eq!(call.get(&server.url("/other")).await.unwrap().body, "hi");
}

#[tokio::test]
async fn trailers_are_looked_through_as_well() {
    let answer =
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nsk-live-0\r\n0\r\nx-key: {KEY}\r\n\r\n");
    let server = Server::saying(answer).await;
    let got = granted(&server).call().get(&server.url("/api/x")).await.unwrap();
    // Bytes that only looked like the start of a value are passed on.
    assert_eq!((got.body.as_str(), got.trailers.unwrap()["x-key"].to_str().unwrap()), ("sk-live-0", "[redacted:KEY]"));
}

#[tokio::test]
async fn an_answer_is_refused_for_any_coding_in_any_field_and_the_refusal_tells_no_secret() {
    let answer = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}content-length: 2\r\n\r\nhi");
    for (fields, named) in [
        ("content-encoding: identity\r\ncontent-encoding: gzip\r\n", "gzip"),
        ("content-encoding: identity, br\r\n", "br"),
        ("content-encoding: identity,,\t deflate ,identity\r\n", "deflate"),
        ("content-encoding:\r\nContent-Encoding: X-GZIP\r\n", "X-GZIP"),
        (format!("content-encoding: x-{KEY}\r\n").as_str(), "x-[redacted:KEY]"),
    ] {
        let server = Server::saying(answer(fields)).await;
        let mut call = granted(&server).call();
        let error = call.get(&server.url("/api/x")).await.unwrap_err();
        assert!(
            matches!(&error, Error::HttpResponseContentCoding(Some(coding)) if coding == named),
            "{fields}: {error}"
        );
    }
    for fields in ["content-encoding: identity\r\n", "content-encoding: Identity, identity\r\ncontent-encoding:\r\n"] {
        let server = Server::saying(answer(fields)).await;
        assert_eq!(granted(&server).call().get(&server.url("/api/x")).await.unwrap().body, "hi", "{fields}");
    }
}

#[tokio::test]
async fn names_of_fields_and_escapes_in_pieces_of_bodies_have_no_secret() {
    let escaped: String = KEY.bytes().map(|byte| format!("\\\\u00{byte:02x}")).collect();
    let body: String = escaped
        .as_bytes()
        .chunks(3)
        .map(|piece| format!("{:x}\r\n{}\r\n", piece.len(), String::from_utf8_lossy(piece)))
        .collect();
    let answer = format!(
        "HTTP/1.1 200 OK\r\n{KEY}: a\r\nX-{KEY}: {KEY}\r\nx-html: &#x73;{}\r\ntransfer-encoding: chunked\r\n\r\n{body}0\r\nX-T-{KEY}: 1\r\n\r\n",
        KEY.get(1..).unwrap()
    );
    let server = Server::saying(answer).await;
    let got = granted(&server).call().get(&server.url("/api/x")).await.unwrap();
    assert_eq!(got.body, "[redacted:KEY]");
    assert_eq!(got.headers["x-html"], "[redacted:KEY]");
    assert_eq!(got.headers.get_all("redacted").iter().count(), 2);
    assert_eq!(got.trailers.as_ref().unwrap()["redacted"], "[redacted]");
    assert!(!format!("{got:?}").contains(KEY), "{got:?}");
}
