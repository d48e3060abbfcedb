//! An authorization server that lies, or is slow, to callers who log in: nothing of it is kept, no
//! call is held up, and each failure is told to the person and recorded.
//!
//! Promise: a caller's login is that caller's alone.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use toolcell_tests::loopback::{HttpServer, Scripted, Seen};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, alone, modern_meta};

use super::browser::{Browser, Page};
use super::{FIXTURE, folder};

/// The code that the server gives. No page and no record shows it.
const CODE: &str = "a-code-that-nobody-shows";

/// What the server says at an endpoint, where it is not the truth.
#[derive(Clone, Default)]
struct Lies {
    /// Members of its metadata.
    metadata: Value,
    /// Its whole answer for metadata.
    instead: Option<Scripted>,
    /// Its answer to the token endpoint.
    token: Option<Scripted>,
}

struct Scene {
    server: HttpServer,
    lies: Arc<Mutex<Lies>>,
    host: WebHost,
    token: String,
}

impl Scene {
    fn start() -> Self {
        let _alone = alone("its pages are at a port of one process");
        let lies: Arc<Mutex<Lies>> = Arc::default();
        let told = Arc::clone(&lies);
        let server = HttpServer::scripted(move |seen| answer(seen, &told.lock().unwrap().clone()));
        let issuer = server.url("");
        let folder = folder(
            FIXTURE,
            &format!(
                "[oauth.notes]\nof = \"caller\"\nissuer = \"{issuer}\"\nclient_id = \"callers\"\n\
                 [http]\ntokens = \"tokens.jsonl\"\n[{{c}}.network]\nhttp = [\"{issuer}\"]\nprivate = [\"{}\"]\n\
                 [{{c}}.secrets]\nNOTES = {{ from = \"oauth:notes\", header = \"Authorization\", for = \"{issuer}/api\" }}\n",
                server.address()
            ),
        );
        let made = Command::in_folder(&folder, &["token", "new", "ann"]).run();
        let token = made.succeeded().trim().to_owned();
        let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"]);
        Self { server, lies, host, token }
    }

    fn lies(&self, lies: Lies) {
        *self.lies.lock().unwrap() = lies;
    }

    /// The address at which the caller logs in.
    fn address(&self) -> String {
        let params = json!({"name": "http", "arguments": {"url": self.server.url("/api")}, "_meta": modern_meta()});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let ask = Ask::call("http", json!({})).saying(&message.to_string());
        let frame = self.host.ask(&ask.with("authorization", &format!("Bearer {}", self.token))).frame();
        let text = frame["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{frame}"));
        text.rsplit(' ').next().unwrap().to_owned()
    }

    /// Comes back with a code, as this server would send the browser.
    fn returns(&self) -> Page {
        returns(&self.address(), &self.server.url(""))
    }

    /// Asserts that nobody is logged in, and that nothing of the code is left anywhere.
    fn has_nothing(&self, page: &Page, says: &str) {
        assert!(page.status == 502 && page.body.contains(says), "{says:?} in {page:?}");
        let folder = self.host.process().folder();
        let listed = Command::in_folder(folder, &["logins", "list"]).run();
        assert_eq!(listed.succeeded(), "no caller is logged in\n");
        let everything = format!("{}{}{}", page.body, self.host.process().said(), folder.read("audit.jsonl"));
        assert!(!everything.contains(CODE), "{everything}");
    }
}

/// Presses the button.
fn begins(browser: &mut Browser, address: &str) -> Page {
    let (page, query) = address.split_once('?').unwrap();
    browser.press(page, query)
}

/// Begins at this address, and comes back with a code, as this issuer would send the browser.
fn returns(address: &str, issuer: &str) -> Page {
    let mut browser = Browser::default();
    let page = begins(&mut browser, address);
    let location = page.field("location").unwrap_or_else(|| panic!("{page:?}")).to_owned();
    let part = |name: &str| {
        let parts = location.split(['?', '&']).filter_map(|part| part.split_once('='));
        let mut named = parts.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
        named.next().unwrap_or_else(|| panic!("{name}: {location}"))
    };
    assert_eq!((part("code_challenge_method"), part("code_challenge").len()), ("S256".to_owned(), 43));
    let redirect = part("redirect_uri").replace("%3A", ":").replace("%2F", "/");
    let issuer = issuer.replace(':', "%3A").replace('/', "%2F");
    browser.get(&format!("{redirect}?code={CODE}&state={}&iss={issuer}", part("state")))
}

fn answer(seen: &Seen, lies: &Lies) -> Scripted {
    let issuer = format!("http://{}", seen.values("host")[0]);
    let path = seen.target().split('?').next().unwrap_or_default();
    if path.starts_with("/.well-known/") {
        if let Some(instead) = &lies.instead {
            return instead.clone();
        }
        let mut metadata = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        });
        for (name, value) in lies.metadata.as_object().into_iter().flatten() {
            metadata[name] = value.clone();
        }
        return Scripted::Whole(200, "application/json", metadata.to_string());
    }
    match &lies.token {
        Some(token) if path == "/token" => token.clone(),
        _ => Scripted::Whole(404, "text/plain", String::new()),
    }
}

#[test]
fn metadata_that_are_another_s_or_have_no_end_send_no_browser_anywhere() {
    let scene = Scene::start();
    let away =
        || Scripted::Bytes(302, vec![("location", scene.server.url("/.well-known/openid-configuration"))], Vec::new());
    for (metadata, instead, says) in [
        (json!({"issuer": "https://evil.example"}), None, "metadata of another issuer"),
        (json!({"token_endpoint": "http://evil.example/token"}), None, "not reached over https"),
        (json!({"authorization_endpoint": "javascript:alert(1)"}), None, "not reached over https"),
        (json!({"code_challenge_methods_supported": ["plain"]}), None, "does not say that it knows PKCE with S256"),
        (Value::Null, Some(away()), "status 302"),
        (Value::Null, Some(Scripted::As("/endless?application/json")), "more than"),
        (Value::Null, Some(Scripted::As("/cut")), "openid-configuration"),
    ] {
        scene.lies(Lies { metadata, instead, token: None });
        let page = begins(&mut Browser::default(), &scene.address());
        assert_eq!(page.field("location"), None);
        scene.has_nothing(&page, says);
    }
    let failed = scene.host.process().recorded("a failure", |record| record["event"] == "login.changed");
    assert_eq!((&failed["change"], &failed["caller"]), (&json!("failed"), &json!("ann")));
}

#[test]
fn an_answer_of_the_token_endpoint_that_is_no_token_is_none() {
    let scene = Scene::start();
    let elsewhere = HttpServer::start();
    let said = |status: u16, body: Value| Scripted::Whole(status, "application/json", body.to_string());
    for (token, says) in [
        (said(200, json!({"access_token": "t", "token_type": "DPoP"})), "not Bearer"),
        (said(200, json!({"access_token": "a\nb", "token_type": "Bearer"})), "control characters"),
        (said(200, json!({"access_token": "t".repeat(40_000), "token_type": "Bearer"})), "longer than 32 KiB"),
        (said(200, json!({"token_type": "Bearer"})), "without a token"),
        (said(400, json!({"error": "invalid_grant", "error_description": format!("no code {CODE}")})), "invalid_grant"),
        (said(500, json!([])), "status 500"),
        (Scripted::Bytes(307, vec![("location", elsewhere.url("/token"))], Vec::new()), "status 307"),
        (Scripted::As("/endless?application/json"), "more than"),
        (Scripted::As("/bytes/10"), "without a token"),
    ] {
        scene.lies(Lies { token: Some(token), ..Lies::default() });
        scene.has_nothing(&scene.returns(), says);
    }
    assert!(elsewhere.seen().is_empty(), "a code follows no redirect");
    // The same server tells the truth, and the same caller logs in.
    let token = json!({"access_token": "the-token-of-ann", "token_type": "Bearer", "expires_in": 3_600});
    scene.lies(Lies { token: Some(said(200, token)), ..Lies::default() });
    let page = scene.returns();
    assert!(page.status == 200 && page.body.contains("ann is logged in to notes"), "{page:?}");
}

#[test]
fn an_identity_token_of_another_issuer_or_for_another_client_makes_no_login() {
    let scene = Scene::start();
    let issuer = scene.server.url("");
    for (claims, says) in [
        (json!({"iss": "https://evil.example", "aud": "callers", "sub": "ann"}), "another issuer"),
        (json!({"iss": issuer, "aud": "somebody-else", "sub": "ann"}), "for another client"),
        (json!({"iss": issuer, "aud": ["callers"], "azp": "somebody-else", "sub": "ann"}), "for another client"),
        (json!({"iss": issuer, "sub": "ann"}), "cannot be read"),
    ] {
        let identity = format!("e30.{}.", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let token = json!({"access_token": "a-token-of-a-liar", "token_type": "Bearer", "id_token": identity});
        let token = Scripted::Whole(200, "application/json", token.to_string());
        scene.lies(Lies { token: Some(token), ..Lies::default() });
        scene.has_nothing(&scene.returns(), says);
    }
}

#[test]
fn a_token_endpoint_that_moves_while_the_person_agrees_gets_no_code() {
    let scene = Scene::start();
    let mut browser = Browser::default();
    let page = begins(&mut browser, &scene.address());
    let location = page.field("location").unwrap().to_owned();
    let state = location.split("&state=").nth(1).unwrap().split('&').next().unwrap();
    let redirect = location.split("redirect_uri=").nth(1).unwrap().split('&').next().unwrap();
    let redirect = redirect.replace("%3A", ":").replace("%2F", "/");
    scene.lies(Lies { metadata: json!({"token_endpoint": scene.server.url("/other")}), ..Lies::default() });
    let issuer = scene.server.url("").replace(':', "%3A").replace('/', "%2F");
    let page = browser.get(&format!("{redirect}?code={CODE}&state={state}&iss={issuer}"));
    scene.has_nothing(&page, "token endpoint changed meanwhile");
    assert!(scene.server.seen().iter().all(|seen| !seen.target().starts_with("/other")));
}

#[test]
fn a_server_that_never_answers_holds_up_neither_the_page_nor_other_calls() {
    let scene = Scene::start();
    scene.lies(Lies { token: Some(Scripted::As("/silent")), ..Lies::default() });
    std::thread::scope(|scope| {
        let address = scene.address();
        let issuer = scene.server.url("");
        let waiting = scope.spawn(move || returns(&address, &issuer));
        while !waiting.is_finished() {
            let echo = Ask::call("echo", json!({"text": "on"}));
            let reply = scene.host.ask(&echo.with("authorization", &format!("Bearer {}", scene.token)));
            assert_eq!(reply.frame()["result"]["content"][0]["text"], "on", "{reply:?}");
        }
        scene.has_nothing(&waiting.join().unwrap(), "/token");
    });
}
