//! Credentials, and where they never go.
//!
//! Promise: a registry learns no other's password.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolcell_registry::{Credential, PullError, RegistryClient, RegistryOptions};

use crate::server::{Reply, Request, Server};
use crate::{COMPONENT, Place, options_for};

fn password() -> Credential {
    Credential::Password { user: "user".to_owned(), password: "hunter2".to_owned().into() }
}

/// Options with a credential for the first of these servers.
fn with_credential(servers: &[&Server], credential: Credential) -> RegistryOptions {
    let mut options = options_for(servers);
    options.by_host.get_mut(&servers[0].host()).unwrap().credential = Some(credential);
    options
}

fn basic() -> String {
    format!("Basic {}", STANDARD.encode("user:hunter2"))
}

/// Wants this to be shown by everybody.
fn wanting(server: &Server, challenge: String, wanted: String) {
    server.hook(move |request, _| {
        let is_shown = request.header("authorization") == Some(&wanted);
        (!is_shown).then(|| Reply::new(401, &[("www-authenticate", &challenge)], b""))
    });
}

fn authorizations(server: &Server) -> Vec<String> {
    let of = |request: &Request| request.header("authorization").map(str::to_owned);
    server.requests().iter().filter_map(of).collect()
}

#[tokio::test]
async fn a_password_is_shown_to_the_registry_that_it_is_for() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    wanting(&place.server, "Basic realm=\"x\"".to_owned(), basic());
    let client = RegistryClient::new(with_credential(&[&place.server], password()));
    client.pull(&reference, &place.store(), &|_| ()).await.unwrap();
    // One request came without: all others knew.
    let requests = place.server.requests().len();
    assert_eq!(authorizations(&place.server).len(), requests - 1);
    let error = place.pull(&reference).await.unwrap_err();
    assert!(
        matches!(error, PullError::Unauthorized { had_credential: false, .. }) || error.hint().is_some(),
        "{error}"
    );
    let wrong = Credential::Password { user: "user".to_owned(), password: "wrong".to_owned().into() };
    let client = RegistryClient::new(with_credential(&[&place.server], wrong));
    let error = client.resolve(&place.reference()).await.unwrap_err();
    assert!(matches!(error, PullError::Unauthorized { had_credential: true, .. }), "{error}");
}

/// A registry whose server of tokens is this one, or another.
fn with_tokens(place: &Place, tokens: &Server) {
    let challenge = format!("Bearer realm=\"{}\",service=\"s\",scope=\"registry:catalog:*\"", tokens.url("/token"));
    let is_same = place.server.host() == tokens.host();
    let answer = |request: &Request| {
        let is_known = request.header("authorization") == Some(&basic())
            || String::from_utf8_lossy(&request.body).contains("refresh_token=identity");
        if is_known { Reply::new(200, &[], br#"{"token": "abc"}"#) } else { Reply::new(401, &[], b"") }
    };
    place.server.hook(move |request, _| {
        if is_same && request.target.starts_with("/token") {
            return Some(answer(request));
        }
        let is_shown = request.header("authorization") == Some("Bearer abc");
        (!is_shown).then(|| Reply::new(401, &[("www-authenticate", &challenge)], b""))
    });
    if !is_same {
        tokens.hook(move |request, _| Some(answer(request)));
    }
}

#[tokio::test]
async fn a_token_is_asked_for_once_with_a_scope_of_this_sides_own() {
    let place = Place::new();
    let tokens = Server::start();
    let (_, reference) = place.publish(COMPONENT);
    with_tokens(&place, &tokens);
    for credential in [password(), Credential::IdentityToken("identity".to_owned().into())] {
        let before = tokens.requests().len();
        let client = RegistryClient::new(with_credential(&[&place.server, &tokens], credential));
        client.pull(&reference, &place.store(), &|_| ()).await.unwrap();
        assert_eq!(tokens.requests().len() - before, 1);
    }
    let requests = tokens.requests();
    assert_eq!(requests[0].target, "/token?service=s&scope=repository%3Aexample%2Fweather%3Apull");
    assert_eq!((requests[1].method.as_str(), requests[1].target.as_str()), ("POST", "/token"));
    assert!(!requests.iter().any(|request| String::from_utf8_lossy(&request.body).contains("catalog")));
    assert!(authorizations(&place.server).iter().all(|shown| shown == "Bearer abc"));
    let error =
        RegistryClient::new(options_for(&[&place.server, &tokens])).resolve(&place.reference()).await.unwrap_err();
    assert!(matches!(error, PullError::Unauthorized { had_credential: false, .. }), "{error}");
}

#[tokio::test]
async fn a_token_of_the_registry_itself_is_shown_to_it_alone() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    with_tokens(&place, &place.server);
    let token = Credential::RegistryToken("abc".to_owned().into());
    let client = RegistryClient::new(with_credential(&[&place.server], token));
    client.pull(&reference, &place.store(), &|_| ()).await.unwrap();
    assert_eq!(place.server.count("GET", "/token"), 0);
}

#[tokio::test]
async fn credentials_come_from_files() {
    let place = Place::new();
    place.publish(COMPONENT);
    wanting(&place.server, "Basic realm=\"x\"".to_owned(), basic());
    let file = place.folder.path().join("auth.json");
    let text =
        format!(r#"{{"auths": {{"{}": {{"auth": "{}"}}}}}}"#, place.server.host(), STANDARD.encode("user:hunter2"));
    std::fs::write(&file, text).unwrap();
    let options = RegistryOptions { credential_files: vec![file], ..place.options() };
    RegistryClient::new(options).resolve(&place.reference()).await.unwrap();
}

#[tokio::test]
async fn a_redirect_takes_no_credential_along_and_its_challenge_is_not_answered() {
    let place = Place::new();
    let other = Server::start();
    let (_, reference) = place.publish(COMPONENT);
    let to = other.url("/store");
    place.server.hook(move |request, _| {
        if request.header("authorization").is_none() {
            return Some(Reply::new(401, &[("www-authenticate", "Basic realm=\"x\"")], b""));
        }
        request.is("GET", "/blobs/").then(|| Reply::redirect(&to))
    });
    let realm = format!("Bearer realm=\"{}\"", other.url("/token"));
    other.hook(move |_, _| Some(Reply::new(401, &[("www-authenticate", &realm)], b"")));
    let client = RegistryClient::new(with_credential(&[&place.server, &other], password()));
    let error = client.pull(&reference, &place.store(), &|_| ()).await.unwrap_err();
    assert!(matches!(error, PullError::Unauthorized { .. }), "{error}");
    assert_eq!((other.requests().len(), authorizations(&other).len()), (1, 0));
}

#[tokio::test]
async fn a_realm_is_checked_like_any_address() {
    let place = Place::new();
    place.publish(COMPONENT);
    let stranger = Server::start();
    for (realm, is_expected) in [
        (
            "https://169.254.169.254/token".to_owned(),
            (|e| matches!(e, PullError::Address { .. })) as fn(&PullError) -> bool,
        ),
        ("https://10.0.0.1/token".to_owned(), |e| matches!(e, PullError::Address { .. })),
        ("http://tokens.example/token".to_owned(), |e| matches!(e, PullError::Token { .. })),
        ("http://169.254.169.254/token".to_owned(), |e| matches!(e, PullError::Token { .. })),
        ("https://a:b@tokens.example/token".to_owned(), |e| matches!(e, PullError::Token { .. })),
        ("no address".to_owned(), |e| matches!(e, PullError::Token { .. })),
        // Loopback too, where its settings do not say that it is private.
        (stranger.url("/token"), |e| matches!(e, PullError::Address { .. })),
    ] {
        wanting(&place.server, format!("Bearer realm=\"{realm}\""), String::new());
        let client = RegistryClient::new(with_credential(&[&place.server], password()));
        let error = client.resolve(&place.reference()).await.unwrap_err();
        assert!(is_expected(&error), "{realm}: {error}");
    }
    assert_eq!((stranger.requests().len(), authorizations(&place.server).len()), (0, 0));
}

#[tokio::test]
async fn a_registry_over_https_names_no_realm_over_http() {
    let server = Server::with_tls();
    let folder = tempfile::tempdir().unwrap();
    let place = Place { server, folder };
    let tokens = Server::start();
    let authorities = place.folder.path().join("ca.pem");
    std::fs::write(&authorities, place.server.authority.as_ref().unwrap()).unwrap();
    let mut options = with_credential(&[&place.server, &tokens], password());
    options.by_host.get_mut(&place.server.host()).unwrap().authorities = Some(authorities);
    wanting(&place.server, format!("Bearer realm=\"{}\"", tokens.url("/token")), basic());
    let error = RegistryClient::new(options).resolve(&place.reference()).await.unwrap_err();
    assert!(matches!(error, PullError::Token { .. }), "{error}");
    assert_eq!(tokens.requests().len(), 0);
}

#[tokio::test]
async fn an_answer_with_a_token_has_a_form_and_a_size() {
    let place = Place::new();
    let tokens = Server::start();
    with_tokens(&place, &tokens);
    for (answer, problem) in [
        (b"{}".to_vec(), "no token"),
        (b"<html>".to_vec(), "not JSON"),
        (br#"{"token": "a\r\nx: y"}"#.to_vec(), "characters that are not allowed in a header"),
        (vec![b' '; 65 << 10], "more than 65536 bytes"),
    ] {
        tokens.hook(move |_, _| Some(Reply::new(200, &[], &answer)));
        let client = RegistryClient::new(options_for(&[&place.server, &tokens]));
        let error = client.resolve(&place.reference()).await.unwrap_err().to_string();
        assert!(error.contains(problem), "{problem}: {error}");
    }
}
