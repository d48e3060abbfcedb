//! Logins: a person agrees once at a certified authorization server, and the host adds its tokens
//! to requests from then on. The guest never sees one, whatever becomes of it.
//!
//! Promise: tokens of a login are secrets.

mod bridged;
mod browser;
mod callers;
mod exchanged;
mod hunt;
mod lying;
mod own_account;
mod passed;
mod replicas;
mod server;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command as Process, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::{Answer, Command, Finished, Folder, TestHost, toolcell};

use super::{assert_refused, came_to, folder};
use browser::Browser;
use server::AuthorizationServer;

const FIXTURE: &str = "reach_http";

/// The file of the login.
const STORED: &str = ".toolcell/logins/notes.json";

/// The words of a call that gets no token.
const REFUSED: &str = "the login or program whose secret it needs gives none now; the host's log says why";

/// An authorization server, an API that repeats what it is sent, and a folder whose tool may ask
/// both with the login's token.
struct Scene {
    server: AuthorizationServer,
    api: HttpServer,
    folder: Folder,
}

impl Scene {
    fn of(login: &str) -> Self {
        let server = AuthorizationServer::start();
        let api = HttpServer::start();
        let issuer = server.issuer();
        let login = login.replace("{issuer}", issuer);
        let address = api.address();
        let authority = server.authority();
        let folder = folder(
            FIXTURE,
            &format!(
                "[oauth.notes]\n{login}\n[{{c}}.network]\nhttp = [\"http://{address}\", \"{issuer}\"]\n\
                 private = [\"{address}\", \"{authority}\"]\n\n[{{c}}.limits]\noutput = \"8MiB\"\n\n[{{c}}.secrets]\n\
                 NOTES = {{ from = \"oauth:notes\", header = \"Authorization\", value = \"Bearer {{}}\", for = \"http://{address}/api/*\" }}\n\
                 ME = {{ from = \"oauth:notes\", header = \"Authorization\", value = \"Bearer {{}}\", for = \"{issuer}/me\" }}\n"
            ),
        );
        Self { server, api, folder }
    }

    fn desk() -> Self {
        Self::of("issuer = \"{issuer}\"\nclient_id = \"desk\"\nscopes = [\"openid\", \"notes.read\"]")
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        Command::in_folder(&self.folder, arguments).run()
    }

    fn host(&self) -> TestHost {
        TestHost::recording_in(self.folder.clone(), &[])
    }

    /// Logs in with a browser.
    fn log_in(&self) -> String {
        let login = Login::begin(&self.folder, &[]);
        let page = Browser::default().open(&login.address);
        assert!(page.url.starts_with("http://127.0.0.1:") && page.body.contains("close this window"), "{page:?}");
        login.succeeds()
    }

    fn stored(&self) -> Value {
        serde_json::from_str(&self.folder.read(STORED)).unwrap()
    }

    /// One of the tokens in the store.
    fn token(&self, kind: &str) -> String {
        self.stored()[kind].as_str().unwrap().to_owned()
    }

    /// Lets the access token's time be over, for all who look.
    fn age(&self) {
        let mut stored = self.stored();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        (stored["since"], stored["until"]) = (json!(now - 3_600), json!(now - 1));
        self.folder.write(STORED, stored.to_string());
    }

    /// Repeats this until the server was asked for a token anew.
    fn until_refreshed(&self, mut repeat: impl FnMut()) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.server.refreshes().is_empty() {
            assert!(Instant::now() < end, "no token was asked for");
            repeat();
        }
    }

    /// Asks the API.
    fn ask(&self, host: &mut TestHost, path: &str) -> Answer {
        host.call("http", json!({"url": self.api.url(path)}))
    }

    /// The token that the API was shown last.
    fn shown(&self) -> String {
        let shown = self.api.seen().pop().unwrap().values("authorization");
        shown[0].strip_prefix("Bearer ").unwrap().to_owned()
    }

    /// Asks the API with a process of its own.
    fn call(&self) -> Finished {
        self.run(&["call", "http", &json!({"url": self.api.url("/api/x")}).to_string()])
    }

    #[track_caller]
    fn call_succeeds(&self) {
        let finished = self.call();
        assert!(finished.succeeded().contains("\"status\":200"), "{finished:?}");
    }

    /// Asks with a process of its own, which gets no token.
    #[track_caller]
    fn call_is_refused(&self) -> Finished {
        let finished = self.call();
        assert!(finished.stdout.contains("HttpRequestDenied"), "{finished:?}");
        finished
    }
}

/// `toolcell secret login notes`, which waits for a person.
struct Login {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: String,
}

impl Login {
    fn begin(folder: &Folder, options: &[&str]) -> Self {
        let mut child = Process::new(toolcell())
            .args(["secret", "login", "notes"])
            .args(options)
            .current_dir(folder.path())
            .env("OFFICE_SECRET", "0ff1ce:+secret")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut address = String::new();
        stdout.read_line(&mut address).unwrap();
        Self { child, stdout, address: address.trim().to_owned() }
    }

    /// The next line of its stdout.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn ends(mut self) -> (bool, String) {
        let mut said = String::new();
        self.stdout.read_to_string(&mut said).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().success(), said)
    }

    fn succeeds(self) -> String {
        let (success, said) = self.ends();
        assert!(success, "{said}");
        said
    }

    fn fails(self) -> String {
        let (success, said) = self.ends();
        assert!(!success, "{said}");
        said
    }

    /// A part of the address's query, as it stands there.
    fn part(&self, name: &str) -> String {
        let parts = self.address.split(['?', '&']).filter_map(|part| part.split_once('='));
        let mut named = parts.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
        named.next().unwrap_or_else(|| panic!("{name}: {}", self.address))
    }

    /// The address that the browser comes back to.
    fn redirect(&self) -> String {
        self.part("redirect_uri").replace("%3A", ":").replace("%2F", "/")
    }
}

#[test]
fn a_person_logs_in_and_the_requests_carry_the_token_that_no_guest_sees() {
    let scene = Scene::desk();
    let advice = "nobody is logged in; run: toolcell secret login notes";
    let checked = scene.run(&["check"]);
    assert!(checked.stderr.contains(advice) && checked.code() == 0, "{checked:?}");
    assert!(checked.stdout.contains("login notes: nobody is logged in"), "{checked:?}");
    let mut host = scene.host();
    for _ in 0..3 {
        let answer = scene.ask(&mut host, "/api/echo");
        assert!(answer.denials()[0].ends_with(REFUSED), "{:?}", answer.denials());
    }
    assert!(scene.api.seen().is_empty());
    host.will_say(advice);

    let said = scene.log_in();
    assert!(said.contains("logged in to notes; the token ends ") && said.contains(" and is refreshed"), "{said}");
    let access = scene.token("access_token");
    let refresh = scene.token("refresh_token");
    let answer = scene.ask(&mut host, "/api/echo");
    assert_eq!(scene.shown(), access);
    assert!(came_to(&answer).unwrap()["body"].as_str().unwrap().contains("Bearer [redacted:"), "{answer:?}");
    // The real server takes it, and knows whose it is.
    let me = came_to(&host.call("http", json!({"url": format!("{}/me", scene.server.issuer())}))).unwrap();
    assert_eq!(me["body"], "{\"sub\":\"ann\"}");
    // No other request carries it.
    assert!(came_to(&scene.ask(&mut host, "/other")).is_ok());
    assert_eq!(scene.api.seen().pop().unwrap().values("authorization"), Vec::<String>::new());

    let status = scene.run(&["status"]).stdout;
    assert!(status.contains("login notes: logged in; token until "), "{status}");
    let checked = scene.run(&["check"]);
    assert!(checked.stdout.contains("login notes: logged in; token until "), "{checked:?}");
    let _ = host.recorded("the calls", |record| record["event"] == "call.finished");
    let everything = format!(
        "{}{}{said}{status}{}{}{}{}",
        host.said(),
        host.folder().read("audit.jsonl"),
        answer.everything(),
        checked.stdout,
        checked.stderr,
        scene.run(&["check", "--json"]).stdout
    );
    for token in [&access, &refresh] {
        assert!(!everything.contains(token), "{everything}");
    }
}

#[test]
fn a_document_of_an_api_brings_the_login_that_its_operations_need() {
    let server = AuthorizationServer::start();
    let api = HttpServer::start();
    let folder = Folder::with_manifest("version = 1\n");
    let issuer = server.issuer();
    let flow =
        json!({"authorizationUrl": format!("{issuer}/auth"), "tokenUrl": format!("{issuer}/token"), "scopes": {}});
    let document = json!({
        "openapi": "3.1.0", "info": {"title": "Notes", "version": "1"}, "servers": [{"url": api.url("/api")}],
        "security": [{"account": ["openid", "notes.read"]}],
        "components": {"securitySchemes": {"account": {"type": "oauth2", "flows": {"authorizationCode": flow}}}},
        "paths": {"/echo": {"get": {"operationId": "read", "responses": {"200": {"content": {"application/json": {}}}}}}},
    });
    folder.write("notes.json", document.to_string());
    let bridge = concat!(env!("CARGO_MANIFEST_DIR"), "/../guest-examples/components/bridge.wasm");
    let run = |arguments: &[&str]| Command::in_folder(&folder, arguments).run();
    let added = run(&["add", "notes.json", "--client-id", "desk", "--yes", "--bridge", bridge]);
    let _ = added.succeeded();
    assert!(added.stderr.contains("toolcell secret login notes"), "{added:?}");

    let before = run(&["call", "notes_read"]);
    assert!(
        before.stdout.contains("nobody is logged in") || before.stderr.contains("nobody is logged in"),
        "{before:?}"
    );
    assert!(api.seen().is_empty());
    let login = Login::begin(&folder, &[]);
    assert_eq!(login.part("scope"), "notes.read+openid");
    Browser::default().open(&login.address);
    login.succeeds();
    let stored: Value = serde_json::from_str(&folder.read(STORED)).unwrap();
    let token = stored["access_token"].as_str().unwrap();
    let read = run(&["call", "notes_read"]);
    let _ = read.succeeded();
    assert_eq!(api.seen().pop().unwrap().values("authorization"), [format!("Bearer {token}")]);
    assert!(!format!("{read:?}").contains(token), "{read:?}");
}

#[test]
fn a_person_agrees_on_another_machine_with_a_client_that_has_a_secret() {
    let scene = Scene::of(
        "issuer = \"{issuer}\"\nclient_id = \"office\"\nclient_secret = { from = \"env:OFFICE_SECRET\" }\n\
         scopes = [\"openid\", \"notes.read\", \"notes.write\"]",
    );
    let mut login = Login::begin(&scene.folder, &["--device"]);
    let code = login.line();
    assert_eq!(login.address, format!("{}/device", scene.server.issuer()));
    let mut browser = Browser::default();
    let form = browser.open(&login.address);
    let asked = browser.submit(&login.address, &format!("xsrf={}&user_code={code}", form.hidden("xsrf")));
    let agreed = format!("xsrf={}&user_code={code}&confirm=yes", asked.hidden("xsrf"));
    let page = browser.submit(&login.address, &agreed);
    assert!(page.body.contains("Sign-in Success"), "{page:?}");
    let said = login.succeeds();
    assert!(said.contains("the server did not give these scopes: notes.write"), "{said}");
    assert!(said.contains("logged in to notes; the token ends "), "{said}");

    scene.age();
    let mut host = TestHost::recording_in(scene.folder.clone(), &[("OFFICE_SECRET", "0ff1ce:+secret")]);
    assert!(came_to(&scene.ask(&mut host, "/api/x")).is_ok(), "{}", host.said());
    assert_eq!((scene.shown(), scene.server.refreshes()), (scene.token("access_token"), vec![200]));
}

#[test]
fn a_token_is_refreshed_in_time_and_neither_the_old_nor_the_new_one_is_shown() {
    let scene = Scene::desk();
    scene.log_in();
    let mut host = scene.host();
    let old_access = scene.token("access_token");
    let old_refresh = scene.token("refresh_token");
    assert!(came_to(&scene.ask(&mut host, "/api/x")).is_ok());
    scene.age();
    // The host looks at the file once in a second. One of the calls that wait asks the server.
    scene.until_refreshed(|| {
        let url = scene.api.url("/api/x");
        let ids: Vec<Value> = (0..8).map(|_| host.start_call("http", json!({"url": url}))).collect();
        for id in &ids {
            assert!(came_to(&host.answer_to(id)).is_ok(), "{}", host.said());
        }
    });
    let access = scene.token("access_token");
    let refresh = scene.token("refresh_token");
    assert!(access != old_access && refresh != old_refresh, "the server rotates refresh tokens");
    assert_eq!((scene.shown(), scene.server.refreshes()), (access.clone(), vec![200]));
    host.will_say("the login \"notes\" was refreshed");
    // A server that repeats the old one or the new one is not let through.
    let repeated = scene.ask(&mut host, &format!("/api/echo?{old_access}+{access}"));
    let everything = format!("{}{}", repeated.everything(), host.said());
    assert!(!everything.contains(&old_access) && !everything.contains(&access), "{everything}");
    assert!(everything.contains("[redacted:"), "{everything}");
}

#[test]
fn two_processes_that_refresh_at_once_spend_one_refresh_token() {
    let scene = Scene::desk();
    scene.log_in();
    scene.server.set("token-delay", 500);
    scene.age();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| scene.call_succeeds());
        }
    });
    assert_eq!(scene.server.refreshes(), [200]);
    let shown: std::collections::BTreeSet<_> =
        scene.api.seen().iter().flat_map(|seen| seen.values("authorization")).collect();
    assert_eq!(Vec::from_iter(shown), [format!("Bearer {}", scene.token("access_token"))]);
    // The refresh token that is stored is the one that holds.
    scene.server.set("token-delay", 0);
    scene.age();
    scene.call_succeeds();
    assert_eq!(scene.server.refreshes(), [200, 200]);
}

#[test]
fn a_login_that_was_taken_back_is_said_once_and_a_new_one_goes_on_without_a_restart() {
    let scene = Scene::desk();
    scene.log_in();
    let mut host = scene.host();
    assert!(came_to(&scene.ask(&mut host, "/api/x")).is_ok());
    let spent = scene.token("refresh_token");
    scene.server.revoke(&spent);
    scene.age();
    scene.until_refreshed(|| drop(scene.ask(&mut host, "/api/x")));
    for _ in 0..4 {
        let answer = scene.ask(&mut host, "/api/x");
        assert!(answer.denials()[0].ends_with(REFUSED), "{:?}", answer.denials());
    }
    assert_eq!(scene.server.refreshes(), [400]);
    host.will_say("run: toolcell secret login notes");
    let said = host.said();
    assert_eq!(said.matches("the login \"notes\": it has ended: ").count(), 1, "{said}");
    assert!(!said.contains(&spent), "{said}");
    let status = scene.run(&["status"]).stdout;
    assert!(status.contains("login notes: the login has ended: "), "{status}");
    // Another process knows it without asking.
    scene.call_is_refused();
    assert_eq!(scene.server.refreshes(), [400]);
    scene.log_in();
    assert!(came_to(&scene.ask(&mut host, "/api/x")).is_ok(), "{}", host.said());
    assert_eq!(scene.shown(), scene.token("access_token"));
}

#[test]
fn a_server_that_is_down_costs_a_call_and_no_login() {
    let scene = Scene::desk();
    scene.log_in();
    let refresh = scene.token("refresh_token");
    scene.age();
    scene.server.set("token-status", 503);
    let finished = scene.call_is_refused();
    assert!(finished.stderr.contains("there is no token: ") && finished.stderr.contains("503"), "{finished:?}");
    assert_eq!(scene.token("refresh_token"), refresh);
    scene.server.set("token-status", 0);
    scene.call_succeeds();
    assert_eq!(scene.shown(), scene.token("access_token"));
}

#[test]
fn a_login_without_a_refresh_token_ends_with_its_token() {
    let scene = Scene::of("issuer = \"{issuer}\"\nclient_id = \"brief\"\nscopes = [\"openid\"]");
    let said = scene.log_in();
    assert!(said.contains("and the server gives no means to refresh it"), "{said}");
    scene.call_succeeds();
    scene.age();
    let mut host = scene.host();
    assert!(came_to(&scene.ask(&mut host, "/api/x")).is_err());
    host.will_say("the login \"notes\": it has ended: expired; run: toolcell secret login notes");
    assert_eq!(scene.server.refreshes(), Vec::<u64>::new());
}

#[test]
fn another_server_s_metadata_redirect_or_answer_is_no_login() {
    let scene = Scene::desk();
    // The same server by another name says that it is the first.
    let manifest = scene.folder.read("toolcell.toml");
    let named = format!("issuer = \"{}\"", scene.server.issuer());
    scene.folder.write("toolcell.toml", manifest.replace(&named, &named.replace("127.0.0.1", "localhost")));
    let finished = scene.run(&["secret", "login", "notes"]);
    assert!(finished.code() == 1 && finished.stderr.contains("metadata of another issuer"), "{finished:?}");
    scene.folder.write("toolcell.toml", manifest);

    let login = Login::begin(&scene.folder, &[]);
    let redirect = login.redirect();
    let state = login.part("state");
    assert_eq!((login.part("code_challenge_method"), login.part("code_challenge").len()), ("S256".to_owned(), 43));
    let mut browser = Browser::default();
    for (query, status) in [
        ("?code=c&state=wrong".to_owned(), 400),
        (format!("?code=c&state={state}&state={state}"), 400),
        (format!("/else?code=c&state={state}"), 404),
        ("?error=access_denied".to_owned(), 400),
    ] {
        assert_eq!(browser.get(&format!("{redirect}{query}")).status, status, "{query}");
    }
    let page = browser.get(&format!("{redirect}?code=c&state={state}&iss=http%3A%2F%2Fevil.example"));
    assert_eq!(page.status, 200);
    let said = login.fails();
    assert!(said.contains("the browser came back from another authorization server"), "{said}");

    // A code that the server did not give; the server says so, and nothing of it is shown.
    let login = Login::begin(&scene.folder, &[]);
    let iss = scene.server.issuer().replace(':', "%3A").replace('/', "%2F");
    let url = format!("{}?code=a-code-of-nobody&state={}&iss={iss}", login.redirect(), login.part("state"));
    assert_eq!(browser.get(&url).status, 200);
    let said = login.fails();
    assert!(said.contains("/token refuses: invalid_grant") && !said.contains("a-code-of-nobody"), "{said}");

    let login = Login::begin(&scene.folder, &[]);
    let url = format!("{}?error=access_denied&state={}&iss={iss}", login.redirect(), login.part("state"));
    browser.get(&url);
    assert!(login.fails().contains("the server refuses: access_denied"));

    // What others write acts on no terminal.
    let login = Login::begin(&scene.folder, &[]);
    let hostile = "a%E2%80%AEb%1B%5B2J%E2%80%8Bc%C2%9B31m";
    browser.get(&format!("{}?error={hostile}&state={}&iss={iss}", login.redirect(), login.part("state")));
    let said = login.fails();
    assert!(!said.contains(['\u{202e}', '\u{1b}', '\u{200b}', '\u{9b}']), "{said:?}");
    assert!(said.contains("the server refuses: a"), "{said:?}");
    assert!(!scene.folder.path().join(STORED).exists());
}

#[test]
fn a_logout_takes_the_tokens_back_and_serving_goes_on_without() {
    let scene = Scene::desk();
    scene.log_in();
    let mut host = scene.host();
    let refresh = scene.token("refresh_token");
    assert_eq!(scene.run(&["secret", "logout", "notes"]).succeeded(), "the login notes is forgotten\n");
    assert!(!scene.folder.path().join(STORED).exists());
    assert!(scene.ask(&mut host, "/api/x").denials()[0].ends_with(REFUSED));
    let form = format!("grant_type=refresh_token&client_id=desk&refresh_token={refresh}");
    let page = Browser::default().post(&format!("{}/token", scene.server.issuer()), &form);
    assert!(page.status == 400 && page.body.contains("invalid_grant"), "{page:?}");
    let again = scene.run(&["secret", "logout", "notes"]);
    assert!(again.code() == 1 && again.stderr.contains("nobody is logged in to notes"), "{again:?}");
}

#[test]
fn the_server_and_the_scopes_of_a_login_are_pinned_and_its_folder_is_no_guest_s() {
    let scene = Scene::desk();
    scene.log_in();
    assert_eq!(scene.run(&["lock"]).code(), 0);
    let manifest = scene.folder.read("toolcell.toml");
    scene.folder.write("toolcell.toml", manifest.replace("\"notes.read\"", "\"notes.read\", \"notes.write\""));
    let differs = scene.run(&["diff"]);
    assert!(differs.code() == 1 && differs.stdout.contains("notes.write"), "{differs:?}");
    let checked = scene.run(&["check"]);
    let other = "the login is for another server, client or scope than the manifest's";
    assert!(checked.stdout.contains(other), "{checked:?}");
    scene.call_is_refused();
    let mount = "[components.reach_http.filesystem]\n\"/in\" = { path = \".toolcell/logins\", access = \"read\" }\n";
    scene.folder.write("toolcell.toml", format!("{manifest}\n{mount}"));
    assert_refused(&scene.folder, &["\".toolcell/logins\" is the host's own"]);
}
