//! Callers who log in at three replicas that share state: each step is at another one, and the one
//! before is killed.
//!
//! Promise: a caller's login is that caller's alone.

use std::fs::Permissions;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

use serde_json::{Value, json};
use toolcell_tests::engine::Engine;
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::web::{WebHost, Wire};
use toolcell_tests::{Command, Folder, alone, patience};

use super::browser::{Browser, Page};
use super::callers::{Round, ended, modern, shown, tables, token};
use super::server::AuthorizationServer;
use super::{FIXTURE, folder};

/// The address of the pages, at which a proxy would be.
const ADDRESS: &str = "http://127.0.0.1:9";

struct Scene {
    server: AuthorizationServer,
    api: HttpServer,
    engine: Engine,
    ann: String,
    tokens: String,
}

impl Scene {
    fn start() -> Self {
        let server = AuthorizationServer::start();
        let api = HttpServer::start();
        let scratch = Folder::with_manifest("version = 1\n[http]\ntokens = \"tokens.jsonl\"\n");
        let ann = token(&scratch, "ann");
        let tokens = scratch.read("tokens.jsonl");
        Self { server, api, engine: Engine::start(&[]), ann, tokens }
    }

    fn folder(&self) -> Folder {
        let more = format!(
            "[http]\ntokens = \"tokens.jsonl\"\n[logins]\naddress = \"{ADDRESS}\"\n[server]\n\
             state_key = \"file:state.key\"\n[state]\nshared = \"redis://127.0.0.1:{}\"\nwithin = \"10s\"\n",
            self.engine.port()
        );
        let folder = folder(FIXTURE, &tables(&self.server, &self.api, &more));
        for (name, text) in [("state.key", "0123456789abcdef0123456789abcdef"), ("tokens.jsonl", &self.tokens)] {
            folder.write(name, text);
            std::fs::set_permissions(folder.path().join(name), Permissions::from_mode(0o600)).unwrap();
        }
        folder
    }

    fn replica(&self) -> WebHost {
        let _alone = alone("it is one of three replicas");
        WebHost::in_folder(self.folder(), &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"])
    }

    /// A call of the tool at this replica.
    fn call(&self, replica: &WebHost, more: &Value) -> Value {
        replica.ask(&shown(&self.ann, &modern(true, &self.api.url("/api/echo"), more))).frame()
    }

    fn kill(replica: WebHost) {
        let _ = replica.into_process().is_killed_leaving_its_folder();
    }
}

/// The same address at this replica, as a proxy would lead there.
fn at(replica: &WebHost, url: &str) -> String {
    let said = replica.process().said();
    let socket = said.split(", served at ").nth(1).unwrap_or_else(|| panic!("{said}")).lines().next().unwrap();
    url.replacen(ADDRESS, &format!("http://{}", socket.trim()), 1)
}

/// Presses the button at this replica, and agrees. Returns the address to come back to, and the
/// browser's cookies.
fn agrees(replica: &WebHost, url: &str) -> (String, Vec<(String, String)>) {
    let mut browser = Browser::default();
    let here = at(replica, url);
    let page = browser.get(&here);
    assert_eq!(page.status, 200, "{page:?}");
    let (address, query) = here.split_once('?').unwrap();
    let mut page: Page = browser.ask_with("POST", address, query, &format!("Origin: {ADDRESS}\r\n"));
    let cookies = browser.cookies_of(&here);
    for _ in 0..20 {
        let location = page.field("location").unwrap_or_else(|| panic!("{page:?}")).to_owned();
        if location.starts_with(ADDRESS) {
            return (location, cookies);
        }
        let origin: String = page.url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        let next = if location.starts_with('/') { format!("{origin}{location}") } else { location };
        page = browser.get(&next);
    }
    panic!("{page:?}")
}

#[test]
fn each_step_of_a_login_is_at_another_replica_and_the_one_before_is_killed() {
    let scene = Scene::start();
    let [one, two, three] = [(); 3].map(|()| scene.replica());
    let round = Round::of(&scene.call(&one, &json!({})));
    assert!(round.url.starts_with(&format!("{ADDRESS}/begin?ticket=")), "{}", round.url);
    Scene::kill(one);
    let (back, cookies) = agrees(&two, &round.url);
    Scene::kill(two);
    let mut browser = Browser::default();
    let here = at(&three, &back);
    browser.keep_all(&here, &cookies);
    let page = browser.get(&here);
    assert!(page.body.contains("ann is logged in to notes"), "{page:?}");
    assert_eq!(scene.call(&three, &round.accepted())["result"]["resultType"], "complete");
    // A replica that has just started has the login, and sees the end of it.
    let four = scene.replica();
    let url = scene.api.url("/api/echo");
    let _ = ended(&four.ask(&shown(&scene.ann, &modern(true, &url, &json!({})))));
    browser.keep_all(&at(&four, &back), &cookies);
    assert_eq!(browser.get(&at(&four, &back)).status, 410, "a return is used once, wherever");
    let folder = three.process().folder();
    let revoked = Command::in_folder(folder, &["logins", "revoke", "--caller", "ann"]).run();
    assert_eq!(revoked.succeeded(), "the login notes of ann is revoked\n");
    let end = std::time::Instant::now() + toolcell_tests::patience();
    while scene.call(&four, &json!({}))["result"]["resultType"] == "complete" {
        assert!(std::time::Instant::now() < end, "the revoked login is still used");
    }
}

/// Opens this address in a browser with these cookies, and does not hear what it says.
fn opens_unheard(url: &str, cookies: &[(String, String)]) {
    let mut stream = TcpStream::connect(url.split('/').nth(2).unwrap()).unwrap();
    let cookies: Vec<String> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let (_, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let host = url.split('/').nth(2).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nCookie: {}\r\n\r\n", cookies.join("; ")).unwrap();
    // A browser that ends the connection gives up: this one is still there.
    std::mem::forget(stream);
}

#[test]
fn a_replica_that_is_killed_at_any_step_of_a_login_loses_none_and_uses_none_twice() {
    let scene = Scene::start();
    let [one, two, three, four] = [(); 4].map(|()| scene.replica());
    let first = Round::of(&scene.call(&one, &json!({})));
    // Before the redirect.
    scene.server.set("hold-metadata", 1);
    let here = at(&one, &first.url);
    let (address, query) = here.split_once('?').unwrap();
    let mut stream = TcpStream::connect(here.split('/').nth(2).unwrap()).unwrap();
    let (_, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let length = query.len();
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: 127.0.0.1:9\r\nOrigin: {ADDRESS}\r\nContent-Length: {length}\r\n\r\n{query}"
    )
    .unwrap();
    scene.server.holds(1);
    Scene::kill(one);
    let (back, cookies) = agrees(&two, &first.url);
    // While the code is exchanged: the server has given the tokens, and nobody has them.
    scene.server.set("hold-token", 1);
    opens_unheard(&at(&two, &back), &cookies);
    scene.server.holds(2);
    assert_eq!(scene.server.codes(), 1);
    Scene::kill(two);
    let mut browser = Browser::default();
    browser.keep_all(&at(&three, &back), &cookies);
    let page = browser.get(&at(&three, &back));
    assert!(page.status == 410 && page.body.contains("was interrupted. Call the tool again"), "{page:?}");
    let listed = |replica: &WebHost| Command::in_folder(replica.process().folder(), &["logins", "list"]).run();
    assert_eq!(listed(&three).succeeded(), "no caller is logged in\n");
    // The next call asks at another address.
    let second = Round::of(&scene.call(&three, &json!({})));
    assert_ne!(second.url, first.url);
    // After the tokens were kept: the browser does not hear of it.
    let (back, cookies) = agrees(&three, &second.url);
    opens_unheard(&at(&three, &back), &cookies);
    let end = Instant::now() + patience();
    while !listed(&four).succeeded().contains("notes of ann: logged in") {
        assert!(Instant::now() < end, "the login is not kept");
    }
    Scene::kill(three);
    assert_eq!(scene.call(&four, &second.accepted())["result"]["resultType"], "complete");
    browser.keep_all(&at(&four, &back), &cookies);
    assert_eq!(browser.get(&at(&four, &back)).status, 410, "a return is used once");
    assert_eq!(scene.server.codes(), 2, "no code is used twice");
}

#[test]
fn replicas_share_one_refresh() {
    let scene = Scene::start();
    let replicas = [(); 3].map(|()| scene.replica());
    let round = Round::of(&scene.call(&replicas[0], &json!({})));
    scene.server.set("life", 1);
    let (back, cookies) = agrees(&replicas[0], &round.url);
    let mut browser = Browser::default();
    let here = at(&replicas[1], &back);
    browser.keep_all(&here, &cookies);
    assert_eq!(browser.get(&here).status, 200);
    scene.server.set("life", 3_600);
    let end = std::time::Instant::now() + toolcell_tests::patience();
    let folder = replicas[0].process().folder();
    while !Command::in_folder(folder, &["logins", "list"]).run().stdout.contains("the next call refreshes") {
        assert!(std::time::Instant::now() < end, "the token does not end");
    }
    std::thread::scope(|scope| {
        let ask = shown(&scene.ann, &modern(true, &scene.api.url("/api/echo"), &json!({})));
        for address in replicas.iter().cycle().take(9).map(WebHost::address) {
            let ask = ask.clone();
            scope.spawn(move || {
                let frame = Wire::to(address).ask(&ask).frame();
                assert_eq!(frame["result"]["resultType"], "complete", "{frame}");
            });
        }
    });
    assert_eq!(scene.server.refreshes(), [200]);
}
