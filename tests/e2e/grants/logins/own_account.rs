//! A login at the server that also issues callers' tokens: it is for the caller's own account, and
//! for the very login that the browser began.
//!
//! Promise: a caller's login is that caller's alone.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use toolcell_tests::loopback::{Algorithm, HttpServer, Scripted, Seen, SigningKey, seconds_from_now};
use toolcell_tests::web::WebHost;
use toolcell_tests::{Command, alone};

use super::browser::{Browser, Page};
use super::callers::{error_text, modern, shown};
use super::exchanged::RESOURCE;
use super::{FIXTURE, folder};

/// The answer to a request. `identity` are the claims of the identity token, if there is one.
fn answer(seen: &Seen, key: &SigningKey, identity: &Value) -> Scripted {
    let issuer = format!("http://{}", seen.values("host")[0]);
    let body = match seen.target() {
        "/.well-known/openid-configuration" => json!({
            "issuer": issuer, "jwks_uri": format!("{issuer}/keys"), "token_endpoint": format!("{issuer}/token"),
            "authorization_endpoint": format!("{issuer}/authorize"), "code_challenge_methods_supported": ["S256"],
        }),
        "/keys" => json!({"keys": [key.public()]}),
        "/token" => {
            let mut body = json!({"access_token": "a-token", "token_type": "Bearer", "expires_in": 3_600});
            if !identity.is_null() {
                body["id_token"] = json!(format!("e30.{}.", URL_SAFE_NO_PAD.encode(identity.to_string())));
            }
            body
        }
        _ => return Scripted::Whole(404, "text/plain", String::new()),
    };
    Scripted::Whole(200, "application/json", body.to_string())
}

#[test]
fn a_caller_of_the_same_issuer_logs_in_with_no_account_but_the_caller_s_own() {
    let _alone = alone("its pages are at a port of one process");
    let key = SigningKey::new("first", Algorithm::ES256);
    let identity: Arc<Mutex<Value>> = Arc::default();
    let server = {
        let key = key.clone();
        let identity = Arc::clone(&identity);
        HttpServer::scripted(move |seen| answer(seen, &key, &identity.lock().unwrap().clone()))
    };
    let issuer = server.url("");
    let tables = format!(
        "[http.oauth]\nresource = \"{RESOURCE}\"\n[http.oauth.issuers.corp]\nissuer = \"{issuer}\"\n\
         [oauth.notes]\nof = \"caller\"\nissuer = \"{issuer}\"\nclient_id = \"callers\"\nscopes = [\"openid\"]\n\
         [{{c}}.network]\nhttp = [\"{issuer}\"]\nprivate = [\"{}\"]\n\
         [{{c}}.secrets]\nNOTES = {{ from = \"oauth:notes\", header = \"Authorization\", for = \"{issuer}/api\" }}\n",
        server.address()
    );
    let host = WebHost::in_folder(folder(FIXTURE, &tables), &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"]);
    let token = key.token(&json!({
        "iss": issuer, "sub": "ann", "aud": RESOURCE, "iat": seconds_from_now(0), "exp": seconds_from_now(300),
    }));
    // Comes back with a code; the server says then what `claims` makes of the nonce.
    let logs_in = |claims: &dyn Fn(&str) -> Value| -> Page {
        let told = error_text(&host.ask(&shown(&token, &modern(false, &server.url("/api"), &json!({})))));
        let address = told.rsplit(' ').next().unwrap();
        let (page, query) = address.split_once('?').unwrap();
        let mut browser = Browser::default();
        let begun = browser.press(page, query);
        let location = begun.field("location").unwrap_or_else(|| panic!("{begun:?}")).to_owned();
        let part = |name: &str| {
            let mut parts = location.split(['?', '&']).filter_map(|part| part.split_once('='));
            parts.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).unwrap()
        };
        *identity.lock().unwrap() = claims(&part("nonce"));
        let redirect = part("redirect_uri").replace("%3A", ":").replace("%2F", "/");
        browser.get(&format!("{redirect}?code=c&state={}", part("state")))
    };
    let of = |subject: &str, nonce: &str| json!({"iss": issuer, "aud": "callers", "sub": subject, "nonce": nonce});
    let other_person = |nonce: &str| of("bob", nonce);
    let other_login = |_: &str| of("ann", "of-another-login");
    let nobody = |_: &str| Value::Null;
    for (claims, says) in [
        (&other_person as &dyn Fn(&str) -> Value, "another person"),
        (&other_login, "made for another login"),
        (&nobody, "does not say whose account this is"),
    ] {
        let page = logs_in(claims);
        assert!(page.status == 502 && page.body.contains(says), "{says:?} in {page:?}");
        let listed = Command::in_folder(host.process().folder(), &["logins", "list"]).run();
        assert_eq!(listed.succeeded(), "no caller is logged in\n");
    }
    let page = logs_in(&|nonce| of("ann", nonce));
    assert!(page.status == 200 && page.body.contains("corp:ann is logged in to notes"), "{page:?}");
}
