//! Tokens of callers, exchanged at the issuer that gave them for tokens of an API, and keys that
//! callers paste.
//!
//! Promise: a caller's token reaches no guest.
//! Promise: a caller's login is that caller's alone.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcell_tests::loopback::{Algorithm, HttpServer, Scripted, Seen, SigningKey, seconds_from_now};
use toolcell_tests::web::{Ask, WebHost, Wire};
use toolcell_tests::{Command, alone};

use super::browser::Browser;
use super::callers::{ended, error_text, modern, shown, token};
use super::{FIXTURE, assert_refused, folder};

/// The server's URL for clients.
pub(super) const RESOURCE: &str = "https://tools.example.com/mcp";

/// An issuer that exchanges its own tokens, and an API that repeats what it is sent.
pub(super) struct Scene {
    pub(super) issuer: HttpServer,
    key: SigningKey,
    /// The status of exchanges, if it is not 200.
    refuses: Arc<AtomicU16>,
    /// The token that is given instead of the right one, if any.
    gives: Arc<Mutex<Option<String>>>,
    pub(super) api: HttpServer,
    pub(super) host: WebHost,
}

/// The answer to a request. An exchanged token tells whose it is and how often was exchanged.
fn answer(seen: &Seen, key: &SigningKey, refuses: u16, gives: Option<String>) -> Scripted {
    let issuer = format!("http://{}", seen.values("host")[0]);
    let body = match seen.target() {
        "/.well-known/openid-configuration" => json!({
            "issuer": issuer, "jwks_uri": format!("{issuer}/keys"), "token_endpoint": format!("{issuer}/token"),
        }),
        "/keys" => json!({"keys": [key.public()]}),
        "/token" if refuses != 0 => return Scripted::Whole(refuses, "application/json", "{}".to_owned()),
        "/token" => {
            let form = String::from_utf8(seen.body.clone()).unwrap();
            let subject = form.split("subject_token=").nth(1).unwrap().split('&').next().unwrap().to_owned();
            let access = gives.unwrap_or_else(|| format!("exchanged-for-{}", &subject[subject.len() - 12..]));
            let access = if access == "the same" { subject } else { access };
            json!({
                "access_token": access, "token_type": "Bearer", "expires_in": 3_600,
                "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
            })
        }
        _ => return Scripted::Whole(404, "text/plain", String::new()),
    };
    Scripted::Whole(200, "application/json", body.to_string())
}

impl Scene {
    fn start() -> Self {
        Self::serving(|issuer, api| tables(issuer, api, issuer))
    }

    /// One whose manifest has these tables.
    pub(super) fn serving(tables: impl FnOnce(&str, &HttpServer) -> String) -> Self {
        let _alone = alone("replicas exchange tokens each for themselves");
        let key = SigningKey::new("first", Algorithm::ES256);
        let refuses = Arc::new(AtomicU16::new(0));
        let gives: Arc<Mutex<Option<String>>> = Arc::default();
        let issuer = {
            let key = key.clone();
            let refuses = Arc::clone(&refuses);
            let gives = Arc::clone(&gives);
            HttpServer::scripted(move |seen| {
                answer(seen, &key, refuses.load(Ordering::Relaxed), gives.lock().unwrap().clone())
            })
        };
        let api = HttpServer::start();
        let folder = folder(FIXTURE, &tables(&issuer.url(""), &api));
        let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl", "--log", "debug"]);
        Self { issuer, key, refuses, gives, api, host }
    }

    /// A token of this person with these scopes.
    pub(super) fn token(&self, subject: &str, scope: &str) -> String {
        self.token_for(subject, scope, 300)
    }

    /// A token of this person with these scopes, for this many seconds.
    pub(super) fn token_for(&self, subject: &str, scope: &str, seconds: i64) -> String {
        self.key.token(&json!({
            "iss": self.issuer.url(""), "sub": subject, "aud": RESOURCE, "scope": scope,
            "iat": seconds_from_now(0), "exp": seconds_from_now(seconds),
        }))
    }

    pub(super) fn ask(&self) -> Ask {
        modern(true, &self.api.url("/api/echo"), &json!({}))
    }

    fn exchanges(&self) -> Vec<String> {
        let seen = self.issuer.seen();
        let forms = seen.iter().filter(|seen| seen.target() == "/token");
        forms.map(|seen| String::from_utf8(seen.body.clone()).unwrap()).collect()
    }

    pub(super) fn last_token(&self) -> String {
        let shown = self.api.seen().pop().unwrap().values("authorization");
        shown[0].strip_prefix("Bearer ").unwrap().to_owned()
    }
}

fn tables(issuer: &str, api: &HttpServer, exchanged_at: &str) -> String {
    let address = api.address();
    format!(
        "[http.oauth]\nresource = \"{RESOURCE}\"\n[http.oauth.issuers.corp]\nissuer = \"{issuer}\"\n\
         [oauth.notes]\nof = \"caller\"\nexchange = true\nissuer = \"{exchanged_at}\"\nclient_id = \"tools\"\n\
         audience = \"api://notes\"\nscopes = [\"notes.read\"]\n[{{c}}.network]\nhttp = [\"http://{address}\"]\n\
         private = [\"{address}\"]\n[{{c}}.secrets]\nNOTES = {{ from = \"oauth:notes\", header = \"Authorization\", \
         value = \"Bearer {{}}\", for = \"http://{address}/api/*\" }}\n"
    )
}

#[test]
fn a_caller_s_token_is_exchanged_once_and_never_leaves_for_the_api() {
    let scene = Scene::start();
    let ann = scene.token("ann", "tools");
    let address = scene.host.address();
    let ask = shown(&ann, &scene.ask());
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| drop(ended(&Wire::to(address).ask(&ask))));
        }
    });
    let exchanges = scene.exchanges();
    assert_eq!(exchanges.len(), 1, "{exchanges:?}");
    let form = &exchanges[0];
    for part in [
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange",
        "subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token",
        "audience=api%3A%2F%2Fnotes",
        "scope=notes.read",
        "client_id=tools",
    ] {
        assert!(form.contains(part), "{part} in {form}");
    }
    let exchanged = scene.last_token();
    assert!(exchanged.starts_with("exchanged-for-"), "{exchanged}");
    // Another token of the same person, with other scopes, is another caller's here.
    let _ = ended(&scene.host.ask(&shown(&scene.token("ann", "tools other"), &scene.ask())));
    assert_eq!(scene.exchanges().len(), 2);
    assert_ne!(scene.last_token(), exchanged);
    let _ = ended(&scene.host.ask(&shown(&scene.token("bob", "tools"), &scene.ask())));
    assert_eq!(scene.exchanges().len(), 3);
    let folder = scene.host.process().folder();
    let seen = scene.api.seen().iter().map(|seen| seen.head.clone()).collect::<String>();
    let everything = format!("{}{}{seen}", scene.host.process().said(), folder.read("audit.jsonl"));
    assert!(!everything.contains(&ann), "{everything}");
    let records = format!("{}{}", scene.host.process().said(), folder.read("audit.jsonl"));
    assert!(!records.contains(&exchanged), "{records}");
}

#[test]
fn the_token_that_a_caller_shows_is_exchanged_also_if_an_older_one_lives_longer() {
    let scene = Scene::start();
    let long = scene.token_for("ann", "tools", 3_600);
    let short = scene.token_for("ann", "tools", 600);
    for token in [&long, &short, &long] {
        let _ = ended(&scene.host.ask(&shown(token, &scene.ask())));
        assert_eq!(scene.last_token(), format!("exchanged-for-{}", &token[token.len() - 12..]));
    }
    assert_eq!(scene.exchanges().len(), 2, "each once");
}

#[test]
fn an_issuer_that_refuses_or_gives_the_token_back_gives_the_api_nothing() {
    let scene = Scene::start();
    scene.refuses.store(400, Ordering::Relaxed);
    let told = error_text(&scene.host.ask(&shown(&scene.token("ann", "tools"), &scene.ask())));
    assert!(told.contains("its server gives no token now"), "{told}");
    // It is not pressed.
    let _ = error_text(&scene.host.ask(&shown(&scene.token("ann", "tools"), &scene.ask())));
    scene.refuses.store(0, Ordering::Relaxed);
    *scene.gives.lock().unwrap() = Some("the same".to_owned());
    let told = error_text(&scene.host.ask(&shown(&scene.token("bob", "tools"), &scene.ask())));
    assert!(told.contains("its server gives no token now"), "{told}");
    scene.host.process().will_say("it gave the caller's own token back");
    assert!(scene.api.seen().is_empty());
}

#[test]
fn tokens_are_exchanged_at_no_issuer_but_that_of_callers() {
    let api = HttpServer::start();
    let folder = folder(FIXTURE, &tables("https://login.example.com", &api, "https://evil.example.com"));
    assert_refused(&folder, &["exchanges tokens at an issuer that gives no caller one", "[http.oauth.issuers]"]);
    let manifest = folder.read("toolcell.toml");
    folder.write("toolcell.toml", manifest.replace("of = \"caller\"\n", ""));
    assert_refused(&folder, &["exchanges tokens of callers, and is not of a caller"]);
}

#[test]
fn a_caller_pastes_a_key_that_no_other_caller_s_requests_carry() {
    let _alone = alone("its pages are at a port of one process");
    let api = HttpServer::start();
    let address = api.address();
    let folder = folder(
        FIXTURE,
        &format!(
            "[http]\ntokens = \"tokens.jsonl\"\n[audit]\nfile = \"audit.jsonl\"\n[{{c}}.network]\nhttp = [\"http://{address}\"]\nprivate = [\"{address}\"]\n\
             [{{c}}.secrets]\nKEY = {{ from = \"caller:weather\", header = \"X-Key\", for = \"http://{address}/api/*\" }}\n"
        ),
    );
    let [ann, bob] = ["ann", "bob"].map(|name| token(&folder, name));
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]);
    let ask = modern(false, &api.url("/api/echo"), &json!({}));
    let told = error_text(&host.ask(&shown(&ann, &ask)));
    assert!(told.contains("works with a key of yours, and has no \"weather\" of you"), "{told}");
    let url = told.rsplit(' ').next().unwrap();
    let mut browser = Browser::default();
    let page = browser.get(url);
    assert!(page.status == 200 && page.body.contains("type=\"password\""), "{page:?}");
    let (address, query) = url.split_once('?').unwrap();
    assert_eq!(browser.press(address, &format!("{query}&key=")).status, 502, "an empty key");
    let page = browser.press(address, &format!("{query}&key=+the-key-of-ann+"));
    assert!(page.status == 200 && page.body.contains("The key weather of ann is kept"), "{page:?}");
    assert_eq!(browser.press(address, &format!("{query}&key=another")).status, 410, "it is given once");
    let frame: Value = ended(&host.ask(&shown(&ann, &ask)));
    assert_eq!(api.seen().pop().unwrap().values("x-key"), ["the-key-of-ann"]);
    assert!(!frame.to_string().contains("the-key-of-ann") && frame.to_string().contains("[redacted:KEY]"), "{frame}");
    let _ = error_text(&host.ask(&shown(&bob, &ask)));
    assert_eq!(api.seen().len(), 1);
    // An operator gives bob's on stdin, and takes it back.
    let folder = host.process().folder();
    let set =
        Command::in_folder(folder, &["logins", "set", "weather", "--caller", "bob"]).with_input("bobs-own-key\n").run();
    assert_eq!(set.succeeded(), "the key weather of bob is kept\n");
    let _ = ended(&host.ask(&shown(&bob, &ask)));
    assert_eq!(api.seen().pop().unwrap().values("x-key"), ["bobs-own-key"]);
    let listed = Command::in_folder(folder, &["logins", "list"]).run();
    assert_eq!(listed.succeeded(), "weather of ann: logged in\nweather of bob: logged in\n");
    let _ = Command::in_folder(folder, &["logins", "revoke", "--caller", "bob"]).run().succeeded();
    let _ = error_text(&host.ask(&shown(&bob, &ask)));
    // Each is in the audit, though the server writes it meanwhile.
    let audited = Command::in_folder(folder, &["audit", "show", "--json"]).run();
    let records = audited.succeeded().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let changed = records.filter(|record| record["event"] == "login.changed");
    let changed: Vec<_> =
        changed.map(|record| [&record["caller"], &record["change"], &record["by"]].map(Value::clone)).collect();
    assert_eq!(
        changed,
        [
            ["ann", "failed", "caller"],
            ["ann", "made", "caller"],
            ["bob", "made", "operator"],
            ["bob", "revoked", "operator"]
        ]
        .map(|row| row.map(Value::from))
    );
    assert_eq!(Command::in_folder(folder, &["audit", "verify"]).run().code(), 0);
    let everything = format!("{}{}", host.process().said(), audited.stdout);
    assert!(!everything.contains("the-key-of-ann") && !everything.contains("bobs-own-key"), "{everything}");
}
