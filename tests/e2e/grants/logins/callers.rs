//! Logins of which each caller has one: asked for by the first call that needs it, made in a
//! browser at a certified authorization server, and used for that caller's requests alone.
//!
//! Promise: a caller's login is that caller's alone.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::Instant;

use serde_json::{Value, json};
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::web::{Ask, Reply, WebHost, Wire};
use toolcell_tests::{Command, Finished, Folder, TestHost, alone, modern_meta, patience};

use super::browser::{Browser, Page};
use super::server::AuthorizationServer;
use super::{FIXTURE, came_to, folder};
use crate::grants::manifest;
use crate::recordings;

/// The tables of a tool that uses its caller's login.
pub(super) fn tables(server: &AuthorizationServer, api: &HttpServer, more: &str) -> String {
    let issuer = server.issuer();
    let address = api.address();
    let authority = server.authority();
    format!(
        "[oauth.notes]\nof = \"caller\"\nissuer = \"{issuer}\"\nclient_id = \"callers\"\n\
         scopes = [\"openid\", \"notes.read\"]\n{more}\n[{{c}}.network]\n\
         http = [\"http://{address}\", \"{issuer}\"]\nprivate = [\"{address}\", \"{authority}\"]\n\n[{{c}}.secrets]\n\
         NOTES = {{ from = \"oauth:notes\", header = \"Authorization\", value = \"Bearer {{}}\", for = \"http://{address}/api/*\" }}\n\
         ME = {{ from = \"oauth:notes\", header = \"Authorization\", value = \"Bearer {{}}\", for = \"{issuer}/me\" }}\n"
    )
}

/// A server whose callers ann and bob have tokens, an authorization server, and an API that repeats
/// what it is sent.
pub(super) struct Scene {
    pub(super) server: AuthorizationServer,
    pub(super) api: HttpServer,
    pub(super) host: WebHost,
    pub(super) ann: String,
    pub(super) bob: String,
}

impl Scene {
    fn start() -> Self {
        Self::serving(HttpServer::start(), "")
    }

    /// One with this API, and these tables besides.
    pub(super) fn serving(api: HttpServer, more: &str) -> Self {
        let _alone = alone("its pages are at a port of one process");
        let server = AuthorizationServer::start();
        let tables = tables(&server, &api, &format!("[http]\ntokens = \"tokens.jsonl\"\n{more}"));
        let folder = folder(FIXTURE, &tables);
        let [ann, bob] = ["ann", "bob"].map(|name| token(&folder, name));
        let options = ["--http", "127.0.0.1:0", "--audit", "audit.jsonl", "--log", "debug"];
        Self { server, api, host: WebHost::in_folder(folder, &options), ann, bob }
    }

    fn folder(&self) -> &Folder {
        self.host.process().folder()
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        Command::in_folder(self.folder(), arguments).run()
    }

    /// A modern call of the tool in this caller's name, from a client that shows pages.
    fn call(&self, token: &str, path: &str, more: &Value) -> Reply {
        self.host.ask(&shown(token, &modern(true, &self.api.url(path), more)))
    }

    /// The first round of a caller who is not logged in.
    fn asked(&self, token: &str) -> Round {
        Round::of(&self.call(token, "/api/echo", &json!({})).frame())
    }

    /// Logs a caller in, and gives the answer to the call that needed it.
    pub(super) fn log_in(&self, token: &str, person: &str) -> Value {
        let round = self.asked(token);
        let page = self.browser(person).logs_in(&round.url);
        assert!(page.body.contains("is logged in to notes"), "{page:?}");
        let reply = self.call(token, "/api/echo", &round.accepted());
        ended(&reply).clone()
    }

    /// The browser of this person.
    fn browser(&self, person: &str) -> Person {
        let mut browser = Browser::default();
        browser.keep(self.server.authority(), "test_user", person);
        Person { browser }
    }

    /// Whose account this caller's login is.
    fn account(&self, token: &str) -> String {
        let url = format!("{}/me", self.server.issuer());
        let reply = self.host.ask(&shown(token, &modern(true, &url, &json!({}))));
        let frame = ended(&reply);
        let body = frame["result"]["structuredContent"]["ok"]["body"].as_str().unwrap_or_else(|| panic!("{frame}"));
        let said: Value = serde_json::from_str(body).unwrap();
        said["sub"].as_str().unwrap().to_owned()
    }

    /// The token that the API was shown last.
    fn last_token(&self) -> String {
        let shown = self.api.seen().pop().unwrap().values("authorization");
        shown[0].strip_prefix("Bearer ").unwrap().to_owned()
    }

    /// Everything that leaves the host, and lies on its disk.
    pub(super) fn everything(&self) -> String {
        let logins = self.folder().path().join(".toolcell/logins/callers");
        let files = std::fs::read_dir(logins).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
        let stored: String = files.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect();
        format!("{}{}{stored}", self.host.process().said(), self.folder().read("audit.jsonl"))
    }
}

pub(super) fn token(folder: &Folder, name: &str) -> String {
    let made = Command::in_folder(folder, &["token", "new", name]).run();
    made.succeeded().trim().to_owned()
}

pub(super) fn shown(token: &str, ask: &Ask) -> Ask {
    ask.clone().with("authorization", &format!("Bearer {token}"))
}

/// A call of the tool. `pages`: the client shows pages to its person.
pub(super) fn modern(pages: bool, url: &str, more: &Value) -> Ask {
    let capabilities = if pages { json!({"elicitation": {"form": {}, "url": {}}}) } else { json!({}) };
    let mut params = json!({"name": "http", "arguments": {"url": url}, "_meta": modern_meta()});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    Ask::call("http", json!({})).saying(&message.to_string())
}

/// The frame of a call that ran.
pub(super) fn ended(reply: &Reply) -> Value {
    let frame = reply.frame();
    assert_eq!(frame["result"]["resultType"], "complete", "{frame}");
    assert_ne!(frame["result"]["isError"], true, "{frame}");
    frame
}

pub(super) fn error_text(reply: &Reply) -> String {
    let frame = reply.frame();
    assert_eq!(frame["result"]["isError"], true, "{frame}");
    frame["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

/// A round that asks for a login.
pub(super) struct Round {
    key: String,
    pub(super) url: String,
    state: Value,
}

impl Round {
    pub(super) fn of(frame: &Value) -> Self {
        let result = &frame["result"];
        assert_eq!(result["resultType"], "input_required", "{frame}");
        let (key, question) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!((&question["method"], &question["params"]["mode"]), (&json!("elicitation/create"), &json!("url")));
        let url = question["params"]["url"].as_str().unwrap().to_owned();
        Self { key: key.clone(), url, state: result["requestState"].clone() }
    }

    /// The params of the next round.
    fn answered(&self, action: &str) -> Value {
        let mut answers = serde_json::Map::new();
        answers.insert(self.key.clone(), json!({"action": action}));
        json!({"requestState": self.state, "inputResponses": answers})
    }

    pub(super) fn accepted(&self) -> Value {
        self.answered("accept")
    }

    /// The ticket of the address.
    fn ticket(&self) -> &str {
        self.url.split_once("ticket=").unwrap().1
    }

    /// The address of the form, and what it sends.
    fn form(&self) -> (String, String) {
        (self.url.split('?').next().unwrap().to_owned(), format!("ticket={}", self.ticket()))
    }
}

/// A person at a browser.
struct Person {
    browser: Browser,
}

impl Person {
    /// Presses the button of the page that begins. Returns the redirect to the server.
    fn begins(&mut self, url: &str) -> Page {
        let page = self.browser.get(url);
        assert_eq!(page.status, 200, "{page:?}");
        let form = format!("ticket={}", page.hidden("ticket"));
        let (address, _) = url.split_once('?').unwrap();
        let page = self.browser.press(address, &form);
        assert_eq!(page.status, 303, "{page:?}");
        page
    }

    /// Logs in, up to the page that says so.
    fn logs_in(&mut self, url: &str) -> Page {
        let page = self.begins(url);
        self.browser.follow(page)
    }

    /// Agrees at the authorization server. Returns the address that it sends the browser back to,
    /// which is not opened.
    fn agrees(&mut self, url: &str) -> String {
        let mut page = self.begins(url);
        for _ in 0..20 {
            let location = page.field("location").unwrap_or_else(|| panic!("{page:?}")).to_owned();
            if location.contains("/return/") {
                return location;
            }
            let origin: String = page.url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
            let next = if location.starts_with('/') { format!("{origin}{location}") } else { location };
            page = self.browser.get(&next);
        }
        panic!("{page:?}")
    }
}

#[test]
fn a_caller_logs_in_at_the_first_call_and_no_other_caller_s_requests_carry_the_token() {
    let scene = Scene::start();
    let frame = scene.log_in(&scene.ann, "ann");
    let token = scene.last_token();
    let body = frame["result"]["structuredContent"]["ok"]["body"].as_str().unwrap();
    assert!(body.contains("Bearer [redacted:"), "{frame}");
    assert_eq!(scene.account(&scene.ann), "ann");
    // Bob is asked for his own, at another address.
    let seen = scene.api.seen().len();
    let round = scene.asked(&scene.bob);
    assert_eq!(scene.api.seen().len(), seen);
    let page = scene.browser("bob").logs_in(&round.url);
    assert!(page.body.contains("bob is logged in to notes"), "{page:?}");
    let _ = ended(&scene.call(&scene.bob, "/api/echo", &round.accepted()));
    assert_ne!(scene.last_token(), token);
    assert_eq!([&scene.ann, &scene.bob].map(|token| scene.account(token)), ["ann", "bob"]);
    let other = scene.last_token();
    let everything = format!("{frame}{}", scene.everything());
    for secret in [&token, &other, round.ticket()] {
        assert!(!everything.contains(secret), "{secret} in {everything}");
    }
    let made = scene
        .host
        .process()
        .recorded("a login", |record| record["event"] == "login.changed" && record["caller"] == "bob");
    assert_eq!((&made["change"], &made["by"], &made["component"]), (&json!("made"), &json!("caller"), &json!(FIXTURE)));
    let listed = scene.run(&["logins", "list"]);
    let listed = listed.succeeded();
    assert!(listed.contains("notes of ann: logged in; token until ") && listed.contains("notes of bob: "), "{listed}");
}

#[test]
fn a_client_that_shows_no_page_gets_the_address_as_text() {
    let scene = Scene::start();
    let url = scene.api.url("/api/echo");
    let told = error_text(&scene.host.ask(&shown(&scene.ann, &modern(false, &url, &json!({})))));
    assert!(told.contains("Open this address in a browser and log in, then call the tool again: http://127.0.0.1:"));
    let address = told.rsplit(' ').next().unwrap();
    let asked = scene.host.process().recorded("a question", |record| record["event"] == "call.asked");
    assert_eq!((&asked["asked"], &asked["answer"]), (&json!("login"), &json!("unsupported")));
    let page = scene.browser("ann").logs_in(address);
    assert!(page.body.contains("ann is logged in to notes"), "{page:?}");
    let _ = ended(&scene.host.ask(&shown(&scene.ann, &modern(false, &url, &json!({})))));
    let ticket = address.split_once("ticket=").unwrap().1;
    assert!(!scene.everything().contains(ticket), "{}", scene.everything());
}

#[test]
fn over_stdio_the_caller_is_one_and_a_legacy_client_shows_the_page() {
    let server = AuthorizationServer::start();
    let api = HttpServer::start();
    let mut host = TestHost::recording(&manifest(FIXTURE, &tables(&server, &api, "")));
    let _ = host.initialize_declaring("2025-11-25", json!({"elicitation": {"url": {}}}));
    let id = host.start_call("http", json!({"url": api.url("/api/echo")}));
    let asked = host.next_of("elicitation/create");
    assert_eq!(asked["params"]["mode"], "url", "{asked}");
    let url = asked["params"]["url"].as_str().unwrap();
    let page = Person { browser: Browser::default() }.logs_in(url);
    assert!(page.body.contains("local is logged in to notes"), "{page:?}");
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}}));
    let completed = host.next_of("notifications/elicitation/complete");
    assert_eq!(completed["params"], json!({"elicitationId": asked["params"]["elicitationId"]}));
    assert!(came_to(&host.answer_to(&id)).is_ok());
    assert!(came_to(&host.call("http", json!({"url": api.url("/api/echo")}))).is_ok());
    // A command by hand is the same caller's.
    let url = json!({"url": api.url("/api/echo")}).to_string();
    let called = Command::in_folder(host.folder(), &["call", "http", &url]).run();
    assert!(called.succeeded().contains("\"status\":200"), "{called:?}");
    let revoked = Command::in_folder(host.folder(), &["logins", "revoke", "notes", "--caller", "local"]).run();
    assert_eq!(revoked.succeeded(), "the login notes of local is revoked\n");
    let called = Command::in_folder(host.folder(), &["call", "http", &url]).run();
    assert!(format!("{called:?}").contains("toolcell secret login notes --caller local"), "{called:?}");
    // The next call asks at another address: the one before was used.
    let id = host.start_call("http", json!({"url": api.url("/api/echo")}));
    let again = host.next_of("elicitation/create");
    assert_ne!(again["params"]["url"], asked["params"]["url"]);
    let page = Person { browser: Browser::default() }.logs_in(again["params"]["url"].as_str().unwrap());
    assert!(page.body.contains("local is logged in to notes"), "{page:?}");
    host.send(&json!({"jsonrpc": "2.0", "id": again["id"], "result": {"action": "accept"}}));
    assert!(came_to(&host.answer_to(&id)).is_ok());
}

#[test]
fn two_callers_who_log_in_at_once_get_each_their_own_account() {
    let scene = Scene::start();
    let ann = scene.asked(&scene.ann);
    let bob = scene.asked(&scene.bob);
    let mut ann_browser = scene.browser("ann");
    let mut bob_browser = scene.browser("bob");
    let ann_returns = ann_browser.agrees(&ann.url);
    let bob_returns = bob_browser.agrees(&bob.url);
    // What each browser carries is of no use in the other.
    for (browser, url) in [(&mut ann_browser, &bob_returns), (&mut bob_browser, &ann_returns)] {
        let page = browser.browser.get(url);
        assert!(page.status == 400, "{page:?}");
    }
    std::thread::scope(|scope| {
        for (name, round) in [("ann", &ann), ("bob", &bob)] {
            let mut person = scene.browser(name);
            scope.spawn(move || {
                let page = person.logs_in(&round.url);
                assert!(page.body.contains(&format!("{name} is logged in to notes")), "{page:?}");
            });
        }
    });
    assert_eq!([&scene.ann, &scene.bob].map(|token| scene.account(token)), ["ann", "bob"]);
}

#[test]
fn a_return_that_this_browser_did_not_begin_or_that_was_used_makes_no_login() {
    let scene = Scene::start();
    let round = scene.asked(&scene.ann);
    let mut ann = scene.browser("ann");
    let url = ann.agrees(&round.url);
    assert_eq!(Browser::default().get(&url).status, 400, "a browser without the cookie");
    let with = |name: &str, value: &str| -> String {
        let (address, query) = url.split_once('?').unwrap();
        let pairs = query.split('&').filter(|pair| !pair.starts_with(&format!("{name}=")));
        let pairs: Vec<&str> = pairs.collect();
        format!("{address}?{}&{name}={value}", pairs.join("&"))
    };
    // A state that is another's changes nothing: the login can still be finished.
    let cookie = |browser: &Browser| browser.cookies_of(&url);
    let kept = cookie(&ann.browser);
    for wrong in [with("state", "other"), url.replace("state=", "stat="), format!("{url}&state=x")] {
        let mut browser = Browser::default();
        browser.keep_all(&url, &kept);
        let page = browser.get(&wrong);
        assert!(page.status == 400 && !page.body.contains("logged in to"), "{wrong}: {page:?}");
    }
    // Another server's redirect (RFC 9207) fails the login, which may begin again.
    let mut browser = Browser::default();
    browser.keep_all(&url, &kept);
    let page = browser.get(&with("iss", "http%3A%2F%2Fevil.example"));
    assert!(page.body.contains("came back from another authorization server"), "{page:?}");
    let failed = scene
        .host
        .process()
        .recorded("a failure", |record| record["event"] == "login.changed" && record["change"] == "failed");
    assert_eq!(failed["caller"], "ann");
    let mut browser = Browser::default();
    browser.keep_all(&url, &kept);
    assert_eq!(browser.get(&url).status, 410, "the state was used");

    let mut ann = scene.browser("ann");
    let url = ann.agrees(&round.url);
    let kept = ann.browser.cookies_of(&url);
    assert_eq!(ann.browser.get(&url).status, 200);
    let mut browser = Browser::default();
    browser.keep_all(&url, &kept);
    assert_eq!(browser.get(&url).status, 410, "the same return again");
    let page = scene.browser("ann").browser.get(&round.url);
    assert!(page.status == 410 && page.body.contains("was made already"), "{page:?}");
}

#[test]
fn another_page_presses_no_button_and_no_other_host_is_answered() {
    let scene = Scene::start();
    let round = scene.asked(&scene.ann);
    let (address, form) = round.form();
    let mut browser = Browser::default();
    for fields in ["Origin: http://evil.example\r\n", "Origin: null\r\n", "", "Sec-Fetch-Site: cross-site\r\n"] {
        let page = browser.ask_with("POST", &address, &form, fields);
        assert_eq!(page.status, 403, "{fields}: {page:?}");
    }
    let page = browser.get(&round.url);
    let policy = page.field("content-security-policy").unwrap();
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"), "{policy}");
    assert_eq!(page.field("cache-control"), Some("no-store"));
    assert!(page.body.contains("of <b>ann</b>") || page.body.contains("<b>ann</b>"), "{page:?}");
    let flipped = if round.ticket().starts_with('A') { "B" } else { "A" };
    let forged = format!("{address}?ticket={flipped}{}", &round.ticket()[1..]);
    for wrong in [forged, address.clone(), format!("{}&ticket=x", round.url), address.replace("/begin", "/else")] {
        assert_eq!(browser.get(&wrong).status, 404, "{wrong}");
    }
    assert_eq!(browser.press(&address, &format!("ticket={}", "A".repeat(8_000))).status, 404);
    assert_eq!(browser.ask_with("PUT", &address, "", "").status, 405);
}

#[test]
fn a_ticket_ends_when_its_tool_is_swapped() {
    let scene = Scene::start();
    let round = scene.asked(&scene.ann);
    let mut ann = scene.browser("ann");
    let url = ann.agrees(&round.url);
    let manifest = scene.folder().read("toolcell.toml");
    scene.folder().write("toolcell.toml", manifest.replace("[\"openid\", \"notes.read\"]", "[\"openid\"]"));
    let replaced = scene.run(&["reload"]);
    assert_eq!(replaced.code(), 0, "{replaced:?}");
    for page in [ann.browser.get(&url), scene.browser("ann").browser.get(&round.url)] {
        assert!(page.status == 410 && page.body.contains("was changed since"), "{page:?}");
    }
    assert!(scene.run(&["logins", "list"]).succeeded().contains("no caller is logged in"));
    assert_ne!(scene.asked(&scene.ann).url, round.url);
}

#[test]
fn calls_that_wait_share_one_refresh_and_a_revoked_login_ends_at_once() {
    let scene = Scene::start();
    scene.server.set("life", 1);
    let _ = scene.log_in(&scene.ann, "ann");
    scene.server.set("life", 3_600);
    until_due(&scene);
    let before = scene.server.refreshes().len();
    let address = scene.host.address();
    let ask = shown(&scene.ann, &modern(true, &scene.api.url("/api/x"), &json!({})));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| drop(ended(&Wire::to(address).ask(&ask))));
        }
    });
    assert_eq!(scene.server.refreshes().len() - before, 1, "{:?}", scene.server.refreshes());
    let shown: BTreeSet<String> =
        scene.api.seen().iter().rev().take(8).flat_map(|seen| seen.values("authorization")).collect();
    assert_eq!(shown.len(), 1, "{shown:?}");
    // Under load: after the command has ended, no request carries the token.
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = Wire::to(address).ask(&ask).frame();
                }
            });
        }
        let revoked = scene.run(&["logins", "revoke", "notes", "--caller", "ann"]);
        assert_eq!(revoked.succeeded(), "the login notes of ann is revoked\n");
        // Those that had begun may end.
        let _ = scene.asked(&scene.ann);
        let last = scene.api.seen().len();
        for _ in 0..20 {
            let _ = scene.asked(&scene.ann);
        }
        assert!(scene.api.seen().len() <= last + 4, "{} after {last}", scene.api.seen().len());
        let settled = scene.api.seen().len();
        for _ in 0..20 {
            let _ = scene.asked(&scene.ann);
        }
        assert_eq!(scene.api.seen().len(), settled);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let again = scene.run(&["logins", "revoke", "notes", "--caller", "ann"]);
    assert!(again.code() == 1 && again.stderr.contains("ann is not logged in"), "{again:?}");
}

/// Waits until the token of a login is to be refreshed.
fn until_due(scene: &Scene) {
    let end = Instant::now() + patience();
    loop {
        let listed = scene.run(&["logins", "list", "--json"]);
        let listed: Value = serde_json::from_str(listed.succeeded()).unwrap();
        if listed[0]["state"] == "logged in; the next call refreshes the token" {
            return;
        }
        assert!(Instant::now() < end, "{listed}");
    }
}

#[test]
fn a_caller_ends_the_login_in_the_browser_that_made_it_and_nobody_does_in_another() {
    let scene = Scene::start();
    let [mut ann, mut bob] = ["ann", "bob"].map(|name| scene.browser(name));
    let round = scene.asked(&scene.ann);
    let page = ann.logs_in(&round.url);
    let end = round.url.replace(&format!("/begin?ticket={}", round.ticket()), "/end");
    assert!(page.body.contains(&format!("<a href=\"{end}\">")), "{page:?}");
    let _ = ended(&scene.call(&scene.ann, "/api/echo", &round.accepted()));
    let token = scene.last_token();
    let _ = bob.logs_in(&scene.asked(&scene.bob).url);
    // Another browser, another page and another cookie end nothing.
    let page = ann.browser.get(&end);
    assert!(page.body.contains("notes of ann") && !page.body.contains("bob"), "{page:?}");
    let form = format!("login={}", page.hidden("login"));
    assert!(Browser::default().get(&end).body.contains("made no login here"));
    assert_eq!(bob.browser.press(&end, &form).status, 404);
    assert_eq!(ann.browser.ask_with("POST", &end, &form, "Origin: http://evil.example\r\n").status, 403);
    let kept = ann.browser.cookies_of(&end);
    let mut forged = Browser::default();
    let flipped = |value: &str| value.replacen(&value[..1], if value.starts_with('A') { "B" } else { "A" }, 1);
    let cookies: Vec<_> = kept.iter().map(|(name, value)| (name.clone(), flipped(value))).collect();
    forged.keep_all(&end, &cookies);
    assert_eq!(forged.press(&end, &form).status, 404);
    let _ = ended(&scene.call(&scene.ann, "/api/echo", &json!({})));

    let page = ann.browser.press(&end, &form);
    assert!(page.status == 200 && page.body.contains("The login notes of ann is ended."), "{page:?}");
    let me = format!("{}/me", scene.server.issuer());
    let shown = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(Browser::default().ask_with("GET", &me, "", &shown).status, 401, "the server took it back");
    let revoked = scene.host.process().recorded("an end", |record| record["change"] == "revoked");
    assert_eq!((&revoked["caller"], &revoked["by"]), (&json!("ann"), &json!("caller")));
    assert!(ann.browser.get(&end).body.contains("made no login here"));
    let _ = ended(&scene.call(&scene.bob, "/api/echo", &json!({})));
    // A login that was made later, in another browser, is not the first one's.
    let again = scene.asked(&scene.ann);
    let page = scene.browser("ann").logs_in(&again.url);
    assert_eq!(page.status, 200, "{page:?}");
    let mut old = Browser::default();
    old.keep_all(&end, &kept);
    let page = old.press(&end, &form);
    assert!(page.body.contains("another login of ann took its place"), "{page:?}");
    let _ = ended(&scene.call(&scene.ann, "/api/echo", &again.accepted()));
}

/// Waits until the callers with a login are these.
fn until_logged_in(folder: &Folder, callers: &[&str]) {
    let end = Instant::now() + patience();
    loop {
        let listed = Command::in_folder(folder, &["logins", "list", "--json"]).run();
        let listed: Value = serde_json::from_str(listed.succeeded()).unwrap();
        let names: Vec<&str> = listed.as_array().unwrap().iter().map(|row| row["caller"].as_str().unwrap()).collect();
        if names == callers {
            return;
        }
        assert!(Instant::now() < end, "{listed}");
    }
}

/// The sealed logins in a folder.
fn sealed_in(folder: &Folder) -> usize {
    let entries = std::fs::read_dir(folder.path().join(".toolcell/logins/callers")).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|kind| kind == "sealed")).count()
}

#[test]
fn a_login_ends_with_the_right_of_its_caller_at_a_reload_and_at_a_start() {
    let scene = Scene::start();
    for (token, person) in [(&scene.ann, "ann"), (&scene.bob, "bob")] {
        let _ = scene.log_in(token, person);
    }
    let bobs = scene.last_token();
    let before = scene.folder().read("toolcell.toml");
    let rule = "[callers.team]\nnames = [\"ann\"]\ntools = [\"*\"]\n";
    scene.folder().write("toolcell.toml", format!("{before}\n{rule}"));
    assert_eq!(scene.run(&["reload"]).code(), 0);
    until_logged_in(scene.folder(), &["ann"]);
    let revoked = scene.host.process().recorded("an end", |record| record["change"] == "revoked");
    assert_eq!((&revoked["caller"], &revoked["by"]), (&json!("bob"), &json!("server")));
    assert_eq!(sealed_in(scene.folder()), 1);
    let me = format!("{}/me", scene.server.issuer());
    let end = Instant::now() + patience();
    while Browser::default().ask_with("GET", &me, "", &format!("Authorization: Bearer {bobs}\r\n")).status != 401 {
        assert!(Instant::now() < end, "the server still takes it");
    }
    // A caller whose token went while no server ran.
    let folder = scene.host.into_process().is_killed_leaving_its_folder();
    let tokens = folder.read("tokens.jsonl");
    let others: Vec<&str> = tokens.lines().filter(|line| !line.contains("\"ann\"")).collect();
    assert_eq!(others.len() + 1, tokens.lines().count());
    folder.write("tokens.jsonl", others.join("\n") + "\n");
    let _alone = alone("its pages are at a port of one process");
    let options = ["--http", "127.0.0.1:0", "--audit", "later.jsonl"];
    let host = WebHost::in_folder(folder, &options);
    until_logged_in(host.process().folder(), &[]);
    assert_eq!(sealed_in(host.process().folder()), 0);
    // A login that left the manifest while no server ran stays: it may be another manifest's.
    let folder = host.into_process().is_killed_leaving_its_folder();
    let run = |arguments: &[&str]| Command::in_folder(&folder, arguments).run();
    let keys = tables(&scene.server, &scene.api, "").replace("oauth:notes", "caller:notes");
    folder.write("toolcell.toml", manifest(FIXTURE, &keys[keys.find("[{c}").unwrap()..]));
    let set = Command::in_folder(&folder, &["logins", "set", "notes", "--caller", "ann"]).with_input("a-key\n").run();
    assert_eq!(set.succeeded(), "the key notes of ann is kept\n");
    folder.write("toolcell.toml", manifest(FIXTURE, ""));
    assert_eq!(run(&["call", "echo", "{\"text\":\"on\"}"]).code(), 0);
    assert_eq!(sealed_in(&folder), 1);
    assert_eq!(run(&["logins", "list"]).succeeded(), "notes of ann: the manifest has no such login\n");
    // A store that cannot be used is at fault, and not the host.
    let callers = folder.path().join(".toolcell/logins/callers");
    let aside = folder.path().join("aside");
    std::fs::rename(&callers, &aside).unwrap();
    std::fs::write(&callers, "").unwrap();
    let _ = run(&["logins", "revoke", "notes", "--caller", "ann"]).failed_with(1);
    std::fs::remove_file(&callers).unwrap();
    std::fs::rename(&aside, &callers).unwrap();
    let removed = run(&["logins", "revoke", "notes", "--caller", "ann"]);
    assert_eq!(removed.succeeded(), "the login notes of ann is removed\n");
    assert!(removed.stderr.contains("did not take the tokens back"), "{removed:?}");
    assert_eq!(sealed_in(&folder), 0);
    assert!(run(&["logins", "revoke", "notes", "--caller", "ann"]).stderr.contains("has no login or key"));
}

#[test]
fn a_reload_that_adds_the_first_login_of_callers_serves_its_pages() {
    let _alone = alone("its pages are at a port of one process");
    let server = AuthorizationServer::start();
    let api = HttpServer::start();
    let http = "[http]\ntokens = \"tokens.jsonl\"\n";
    let folder = folder(FIXTURE, http);
    let [ann, bob] = ["ann", "bob"].map(|name| token(&folder, name));
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"]);
    let scene = Scene { server, api, host, ann, bob };
    // An address that is taken: the reload fails, and says so.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = |address: std::net::SocketAddr| format!("{http}[logins]\nlisten = \"{address}\"\n");
    let write = |lines: &str| {
        let manifest = manifest(FIXTURE, &tables(&scene.server, &scene.api, lines));
        scene.folder().write("toolcell.toml", manifest);
        scene.run(&["reload"])
    };
    let failed = write(&at(taken.local_addr().unwrap()));
    assert!(failed.code() != 0 && failed.stderr.contains("the pages of logins cannot be served at"), "{failed:?}");
    let done = write(http);
    assert_eq!(done.code(), 0, "{done:?}");
    let _ = scene.log_in(&scene.ann, "ann");
    assert_eq!(scene.account(&scene.ann), "ann");
    // Another address takes effect with the next start.
    assert_eq!(write(&at(taken.local_addr().unwrap())).code(), 0);
    scene.host.process().will_say("changed, and in effect from the next start: [logins]");
}

#[test]
fn a_caller_without_a_token_keeps_no_login() {
    let scene = Scene::start();
    let _ = scene.log_in(&scene.ann, "ann");
    let revoked = scene.run(&["token", "revoke", "ann"]);
    assert_eq!(revoked.succeeded(), "the token of ann is revoked\nthe login notes of ann is revoked\n");
    assert_eq!(scene.run(&["logins", "list"]).succeeded(), "no caller is logged in\n");
}

#[test]
fn a_caller_that_may_be_anybody_has_no_login() {
    let server = AuthorizationServer::start();
    let api = HttpServer::start();
    let host = WebHost::with_manifest(&manifest(FIXTURE, &tables(&server, &api, "")));
    let told = error_text(&host.ask(&modern(true, &api.url("/api/echo"), &json!({}))));
    assert!(told.contains("this server does not know whose call this is"), "{told}");
    assert!(api.seen().is_empty());
}

#[test]
fn a_person_who_declines_or_waits_is_told_so_and_may_come_again() {
    let scene = Scene::start();
    let round = scene.asked(&scene.ann);
    let told = error_text(&scene.call(&scene.ann, "/api/echo", &round.answered("decline")));
    assert!(told.contains("declined to log in to notes"), "{told}");
    // Nobody may answer in another caller's rounds.
    let refused = scene.call(&scene.bob, "/api/echo", &round.accepted());
    assert!(refused.frame()["error"]["message"].as_str().unwrap().contains("another caller"), "{refused:?}");
    let _ = scene.log_in(&scene.ann, "ann");
    assert_eq!(scene.account(&scene.ann), "ann");
}

#[test]
fn the_recording_of_a_call_has_no_login_of_its_caller() {
    let scene = Scene::serving(HttpServer::start(), "[{c}.tools.http]\nrecord = \"all\"\n");
    let _ = scene.log_in(&scene.ann, "ann");
    let token = scene.last_token();
    let until = Instant::now() + patience();
    while recordings::files(scene.folder()).iter().all(|file| file.extension().is_none_or(|ending| ending != "jsonl")) {
        assert!(Instant::now() < until, "no recording");
        std::thread::yield_now();
    }
    // The API repeats the token.
    recordings::assert_marked(scene.folder(), "NOTES", &[&token]);
}
