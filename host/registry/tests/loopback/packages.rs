//! Packages by their names, and registries whose metadata says something else than it may.
use serde_json::json;
use toolcell_policy::{AddressClass, PackageName};
use toolcell_registry::{PullError, RegistryClient};

use crate::server::{Reply, Server};
use crate::{COMPONENT, Place, options_for};

const METADATA: &str = "/.well-known/wasm-pkg/registry.json";

/// A server that answers with this metadata, and nothing else.
fn saying(metadata: impl AsRef<[u8]>) -> Server {
    let server = Server::start();
    let metadata = metadata.as_ref().to_vec();
    server.hook(move |request, _| request.is("GET", METADATA).then(|| Reply::new(200, &[], &metadata)));
    server
}

fn package(text: &str) -> PackageName {
    PackageName::parse(text).unwrap()
}

async fn of(server: &Server, text: &str) -> Result<String, PullError> {
    let client = RegistryClient::new(options_for(&[server]));
    client.package(&server.host(), &package(text)).await.map(|reference| reference.to_string())
}

#[tokio::test]
async fn the_metadata_of_a_namespace_says_where_its_packages_are() {
    for (metadata, expected) in [
        (
            json!({"preferredProtocol": "oci", "oci": {"registry": "ghcr.io", "namespacePrefix": "web/"}}),
            "ghcr.io/web/",
        ),
        (json!({"oci": {"registry": "ghcr.io"}, "other": {"key": [1]}}), "ghcr.io/"),
        (json!({"ociRegistry": "ghcr.io", "ociNamespacePrefix": "web-"}), "ghcr.io/web-"),
        (json!({"ociRegistry": "ghcr.io", "oci": {"registry": "elsewhere.example"}}), "ghcr.io/"),
    ] {
        let server = saying(metadata.to_string());
        let found = of(&server, "acme:weather@1.2.0").await.unwrap();
        assert_eq!(found, format!("oci://{expected}acme/weather:1.2.0"));
    }
    // Without a registry in it, or without metadata at all, the host is the registry.
    let own = saying("{}");
    assert_eq!(of(&own, "a:b@1.0.0").await.unwrap(), format!("oci://{}/a/b:1.0.0", own.host()));
    let none = Server::start();
    assert_eq!(of(&none, "a:b@1.0.0").await.unwrap(), format!("oci://{}/a/b:1.0.0", none.host()));
}

#[tokio::test]
async fn a_name_without_a_version_is_its_newest_release() {
    let server = Server::start();
    let tags = ["1.9.0", "1.10.0", "2.0.0-rc.1", "latest", "v3.0.0", "sha256-12"];
    server.hook(move |request, _| {
        let list = json!({"tags": tags}).to_string();
        request.is("GET", "/v2/acme/weather/tags/list").then(|| Reply::new(200, &[], list.as_bytes()))
    });
    assert_eq!(of(&server, "acme:weather").await.unwrap(), format!("oci://{}/acme/weather:1.10.0", server.host()));
    server.hook(|request, _| {
        let list = json!({"tags": ["latest"]}).to_string();
        request.is("GET", "/tags/list").then(|| Reply::new(200, &[], list.as_bytes()))
    });
    let error = of(&server, "acme:weather").await.unwrap_err();
    assert!(error.to_string().contains("does not have a release of acme:weather"), "{error}");
}

#[tokio::test]
async fn hostile_metadata_leads_nowhere() {
    let oci = |registry: &str, prefix: &str| json!({"oci": {"registry": registry, "namespacePrefix": prefix}});
    for (metadata, words) in [
        (oci("ghcr.io", "../../"), "may have a-z and 0-9"),
        (oci("ghcr.io", "/"), "the prefix"),
        (oci("ghcr.io", "library/busybox:latest@sha256:"), "the prefix"),
        (oci("ghcr.io", "a?b="), "the prefix"),
        (oci("ghcr.io", &"a/".repeat(300)), "255 are allowed"),
        (oci("https://ghcr.io", ""), "the registry"),
        (oci("user:password@ghcr.io", ""), "the registry"),
        (oci("ghcr.io/other", ""), "the registry"),
        (oci("ghcr", ""), "is not a registry"),
        (json!({"preferredProtocol": "warg"}), "only \"oci\" is spoken"),
        (json!({"preferredProtocol": "w".repeat(9_000)}), "only \"oci\" is spoken"),
        (json!([]), "is not understood"),
        (json!({"oci": {"registry": 1}}), "is not understood"),
        (json!("x"), "is not understood"),
    ] {
        let error = of(&saying(metadata.to_string()), "acme:weather@1.2.0").await.unwrap_err().to_string();
        assert!(error.contains(words) && error.len() < 400, "{metadata}: {error}");
    }
    for text in
        ["{\"ociRegistry\":\"a.b\",\"ociRegistry\":\"c.d\"}".to_owned(), "[".repeat(16_000), "\u{feff}{}".to_owned()]
    {
        let error = of(&saying(&text), "acme:weather@1.2.0").await.unwrap_err();
        assert!(matches!(error, PullError::Document { .. }), "{error}");
    }
    let error = of(&saying(" ".repeat(17 << 10)), "acme:weather@1.2.0").await.unwrap_err();
    assert!(matches!(error, PullError::TooLarge { .. }), "{error}");
    let endless = Server::start();
    endless.hook(|_, _| Some(Reply::Endless(b"HTTP/1.1 200 OK\r\n\r\n{".to_vec(), vec![b' '; 4096])));
    let error = of(&endless, "acme:weather@1.2.0").await.unwrap_err();
    assert!(matches!(error, PullError::TooLarge { .. }), "{error}");
    let failing = Server::start();
    failing.hook(|_, _| Some(Reply::new(500, &[], b"{}")));
    assert!(matches!(of(&failing, "a:b@1.0.0").await.unwrap_err(), PullError::Status { status: 500, .. }));
}

#[tokio::test]
async fn metadata_is_followed_no_further_than_a_registry() {
    let server = Server::start();
    for (to, class) in [
        ("https://169.254.169.254/x", AddressClass::Metadata),
        ("https://10.0.0.1/x", AddressClass::Private),
        ("https://127.0.0.1:1/x", AddressClass::Loopback),
    ] {
        server.hook(move |_, _| Some(Reply::redirect(to)));
        let error = of(&server, "a:b@1.0.0").await.unwrap_err();
        assert!(matches!(error, PullError::Address { class: found, .. } if found == class), "{to}: {error}");
    }
    server.hook(|_, _| Some(Reply::redirect("?again")));
    let error = of(&server, "a:b@1.0.0").await.unwrap_err();
    assert!(error.to_string().contains("more redirects than are followed"), "{error}");
    // The registry that it names is asked under its own settings, and no other.
    let place = Place::new();
    place.publish(COMPONENT);
    let named = saying(json!({"oci": {"registry": place.server.host()}}).to_string());
    let client = RegistryClient::new(options_for(&[&named]));
    let error = client.package(&named.host(), &package("example:weather")).await.unwrap_err();
    assert!(matches!(error, PullError::Address { class: AddressClass::Loopback, .. }), "{error}");
    assert_eq!(place.server.requests().len(), 0);
}

#[tokio::test]
async fn metadata_over_https_never_comes_over_http() {
    let tls = Server::with_tls();
    let plain = saying("{}");
    let folder = tempfile::tempdir().unwrap();
    let authorities = folder.path().join("ca.pem");
    std::fs::write(&authorities, tls.authority.as_ref().unwrap()).unwrap();
    let mut options = options_for(&[&tls, &plain]);
    options.by_host.get_mut(&tls.host()).unwrap().authorities = Some(authorities);
    let to = plain.url(METADATA);
    tls.hook(move |_, _| Some(Reply::redirect(&to)));
    let error = RegistryClient::new(options).package(&tls.host(), &package("a:b@1.0.0")).await.unwrap_err();
    assert!(error.to_string().ends_with("which is not https"), "{error}");
    assert_eq!(plain.requests().len(), 0);
}
