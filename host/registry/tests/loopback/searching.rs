//! Searches in a registry of MCP servers, and ones that answer something else.
use std::time::Duration;

use serde_json::{Value, json};
use toolcell_policy::AddressClass;
use toolcell_registry::{Hint, PullError, RegistryClient, SEARCH_PAGES_MAX, SearchResult};
use url::Url;

use crate::options_for;
use crate::server::{Reply, Server};

fn entry(name: &str, runtime: &str) -> Value {
    let identifier = format!("ghcr.io/{name}:1.0.0");
    json!({
        "server": {
            "name": name, "description": "One.", "version": "1.0.0",
            "packages": [{"registryType": "oci", "identifier": identifier, "runtimeHint": runtime}],
        },
        "_meta": {"io.modelcontextprotocol.registry/official": {"status": "active", "isLatest": true}},
    })
}

async fn of(server: &Server) -> Result<SearchResult, PullError> {
    let client = RegistryClient::new(options_for(&[server]));
    client.search(&Url::parse(&server.url("")).unwrap(), "weather").await
}

fn answering(body: impl AsRef<[u8]>) -> Server {
    let server = Server::start();
    let body = body.as_ref().to_vec();
    server.hook(move |_, _| Some(Reply::new(200, &[], &body)));
    server
}

#[tokio::test]
async fn pages_are_followed_to_their_end() {
    let server = Server::start();
    server.hook(|request, _| {
        let second = request.target.contains("cursor=a%26b");
        let page = match second {
            false => json!({"servers": [entry("acme/a", "wasm")], "metadata": {"nextCursor": "a&b", "count": 1}}),
            true => json!({"servers": [entry("acme/a", "wasm"), entry("acme/b", "x")], "metadata": {"count": 2}}),
        };
        Some(Reply::new(200, &[], page.to_string().as_bytes()))
    });
    let client = RegistryClient::new(options_for(&[&server]));
    for path in ["", "/", "/v0.1", "/v0.1/"] {
        let found = client.search(&Url::parse(&server.url(path)).unwrap(), "a&b c").await.unwrap();
        assert_eq!((found.looked_at, found.is_complete), (3, true));
        let names: Vec<_> = found.servers.iter().map(|server| (&*server.name, server.packages[0].hint)).collect();
        assert_eq!(names, [("acme/a", Hint::Component), ("acme/b", Hint::Unsaid)]);
    }
    let first = &server.requests()[0];
    assert_eq!(first.target, "/v0.1/servers?search=a%26b+c&version=latest&limit=50");
    assert_eq!(first.header("authorization"), None);
    let below = client.search(&Url::parse(&server.url("/org/registry")).unwrap(), "x").await.unwrap();
    assert_eq!(below.servers.len(), 2);
    assert!(server.requests().last().unwrap().target.starts_with("/org/registry/v0.1/servers?search=x&"));
}

#[tokio::test]
async fn endless_pages_come_to_an_end() {
    let server = Server::start();
    let served = std::sync::atomic::AtomicUsize::new(0);
    server.hook(move |_, _| {
        let number = served.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let page = json!({
            "servers": [entry(&format!("acme/a{number}"), "wasm")], "metadata": {"nextCursor": number.to_string()},
        });
        Some(Reply::new(200, &[], page.to_string().as_bytes()))
    });
    let found = of(&server).await.unwrap();
    assert_eq!((found.servers.len(), found.is_complete), (SEARCH_PAGES_MAX, false));
    assert_eq!(server.requests().len(), SEARCH_PAGES_MAX);
    for page in [
        json!({"servers": [], "metadata": {"nextCursor": "more"}}),
        json!({"servers": [entry("acme/a", "wasm")], "metadata": {"nextCursor": "same"}}),
    ] {
        let server = answering(page.to_string());
        let found = of(&server).await.unwrap();
        assert!(!found.is_complete && server.requests().len() <= 2, "{page}");
    }
}

#[tokio::test]
async fn a_page_may_hold_wrong_entries_and_not_too_much() {
    let mixed = json!({"servers": [1, {}, entry("acme/a", "wasm"), {"server": {"name": []}}], "metadata": null});
    let found = of(&answering(mixed.to_string())).await.unwrap();
    assert_eq!((found.servers.len(), found.looked_at, found.is_complete), (1, 4, false));
    let many = format!("{{\"servers\":[{}1]}}", "1,".repeat(300_000));
    let found = of(&answering(many)).await.unwrap();
    assert_eq!((found.servers.len(), found.looked_at, found.is_complete), (0, 300_001, false));
    assert_eq!(
        of(&answering("{\"servers\":null}")).await.unwrap(),
        SearchResult { is_complete: true, ..SearchResult::default() }
    );
    for body in [
        "[]".to_owned(),
        "{}".to_owned(),
        "<html>".to_owned(),
        "{\"servers\":[".to_owned(),
        format!("{{\"servers\":[{}", "[".repeat(100_000)),
        format!("{{\"servers\":[],\"metadata\":{{\"nextCursor\":\"{}\"}}}}", "x".repeat(2_000)),
    ] {
        let error = of(&answering(&body)).await.unwrap_err();
        assert!(matches!(error, PullError::Document { .. }), "{error}");
        assert!(error.to_string().len() < 300, "{error}");
    }
    let error = of(&answering(" ".repeat(2 << 20))).await.unwrap_err();
    assert!(matches!(error, PullError::TooLarge { .. }), "{error}");
    let endless = Server::start();
    endless.hook(|_, _| Some(Reply::Endless(b"HTTP/1.1 200 OK\r\n\r\n{".to_vec(), vec![b' '; 4096])));
    assert!(matches!(of(&endless).await.unwrap_err(), PullError::TooLarge { .. }));
}

#[tokio::test]
async fn what_is_no_such_registry_is_said() {
    let server = Server::start();
    let error = of(&server).await.unwrap_err();
    assert!(error.to_string().contains("does not have the API of a registry of MCP servers"), "{error}");
    assert!(!error.is_unreached());
    server.hook(|_, _| Some(Reply::new(429, &[], b"")));
    assert!(matches!(of(&server).await.unwrap_err(), PullError::RateLimited(_)));
    server.hook(|_, _| Some(Reply::redirect("https://169.254.169.254/v0.1/servers")));
    let error = of(&server).await.unwrap_err();
    assert!(matches!(error, PullError::Address { class: AddressClass::Metadata, .. }), "{error}");
    server.hook(|_, _| Some(Reply::Held(Vec::new())));
    let mut options = options_for(&[&server]);
    options.bounds.answer = Duration::from_millis(200);
    let client = RegistryClient::new(options);
    let error = client.search(&Url::parse(&server.url("")).unwrap(), "x").await.unwrap_err();
    assert!(matches!(error, PullError::Late { .. }) && !error.is_unreached(), "{error}");
    // A port that nobody listens on any more.
    let gone = { std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    let settings = toolcell_registry::RegistrySettings { private: true, ..Default::default() };
    let by_host = [(gone.to_string(), settings)].into();
    let client = RegistryClient::new(toolcell_registry::RegistryOptions { by_host, ..Default::default() });
    let error = client.search(&Url::parse(&format!("http://{gone}/")).unwrap(), "x").await.unwrap_err();
    assert!(error.is_unreached(), "{error}");
}
