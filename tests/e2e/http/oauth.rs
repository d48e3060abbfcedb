//! Callers with tokens of an issuer (OAuth 2.1). Each invalid token has its exact answer. Keys
//! change, an issuer does not answer, and streams end with their token.
//!
//! Promise: an issuer's token holds for its caller, server and time.
//! Promise: a caller's token reaches no guest.

use serde_json::{Value, json};
use toolcell_tests::loopback::{Algorithm, Authority, HttpServer, Issuer, SigningKey, seconds_from_now};
use toolcell_tests::web::{Ask, Reply, WebHost, Wire};
use toolcell_tests::{Command, Folder, alone, manifest_of, patience};

/// The server's URL for clients.
const RESOURCE: &str = "https://tools.example.com/mcp";

/// The challenge that names this resource.
const CHALLENGE: &str =
    "resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/mcp\", scope=\"tools\"";

/// One issuer with one key, and a host that accepts its tokens besides those of a file.
struct Scene {
    issuer: Issuer,
    key: SigningKey,
    host: WebHost,
    /// The header value of a caller with a token of the file.
    beside: String,
}

impl Scene {
    fn of(algorithm: Algorithm, times: &str, more: &str) -> Self {
        let key = SigningKey::new("first", algorithm);
        let issuer = Issuer::start(&[&key]);
        Self::with(issuer, key, times, more)
    }

    fn with(issuer: Issuer, key: SigningKey, times: &str, more: &str) -> Self {
        Self::trusting(issuer, key, times, more, &[])
    }

    fn trusting(issuer: Issuer, key: SigningKey, times: &str, more: &str, variables: &[(&str, &str)]) -> Self {
        let manifest = format!(
            "{}\n[http]\ntokens = \"tokens.jsonl\"\n[http.oauth]\nresource = \"{RESOURCE}\"\nscopes = [\"tools\"]\n\
             [http.oauth.issuers.corp]\nissuer = \"{}\"\n{times}\n{more}",
            manifest_of(&["good", "nosy", "reach_http"]),
            issuer.name(),
        );
        let folder = Folder::with_manifest(&manifest);
        let token = Command::in_folder(&folder, &["token", "new", "beside"]).run();
        let beside = token.succeeded().trim().to_owned();
        let options = ["--http", "127.0.0.1:0", "--audit", "audit.jsonl", "--log", "debug"];
        let host = WebHost::in_folder_with(folder, &options, variables);
        Self { issuer, key, host, beside }
    }

    fn claims(&self) -> Value {
        self.issuer.claims("ann", RESOURCE, "tools other")
    }

    /// A valid token.
    fn good(&self) -> String {
        self.key.token(&self.claims())
    }

    /// A valid token, with this claim set.
    fn saying(&self, claim: &str, value: Value) -> String {
        let mut claims = self.claims();
        claims[claim] = value;
        self.key.token(&claims)
    }

    /// A valid token, without this claim.
    fn silent_on(&self, claim: &str) -> String {
        let mut claims = self.claims();
        claims.as_object_mut().unwrap().remove(claim);
        self.key.token(&claims)
    }

    fn ask(&self, token: &str) -> Reply {
        self.host.ask(&shown(token, echo()))
    }

    /// Asks until the answer of each replica has this status. The number of requests depends on the
    /// machine.
    fn will_be(&self, token: &str, status: u16) {
        let end = std::time::Instant::now() + patience();
        let mut in_a_row = 0;
        while in_a_row < self.host.process().replica_count() {
            let reply = self.ask(token);
            in_a_row = if reply.status() == status { in_a_row + 1 } else { 0 };
            assert!(std::time::Instant::now() < end, "still {reply:?}");
        }
    }

    /// The status of this many answers, one of each replica. All have the same one.
    fn status_everywhere(&self, token: &str) -> u16 {
        let all: Vec<u16> = (0..self.host.process().replica_count()).map(|_| self.ask(token).status()).collect();
        assert!(all.iter().all(|status| *status == all[0]), "{all:?}");
        all[0]
    }

    fn others_go_on(&self) {
        let reply = self.ask(&self.beside);
        assert_eq!(reply.frame()["result"]["content"][0]["text"], "x", "{reply:?}");
    }
}

fn echo() -> Ask {
    Ask::call("echo", json!({"text": "x"}))
}

fn shown(token: &str, ask: Ask) -> Ask {
    ask.with("authorization", &format!("Bearer {token}"))
}

fn invalid(description: &str) -> String {
    format!("Bearer error=\"invalid_token\", error_description=\"{description}\", {CHALLENGE}")
}

#[test]
fn a_token_of_an_issuer_lets_its_caller_in_however_it_is_signed() {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    for algorithm in [RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA] {
        let scene = Scene::of(algorithm, "", "");
        let reply = scene.ask(&scene.good());
        assert_eq!(reply.frame()["result"]["content"][0]["text"], "x", "{algorithm:?}: {reply:?}");
        let started = scene.host.process().recorded("a call", |record| record["event"] == "call.started");
        assert_eq!(started["caller"], "corp:ann");
        scene.others_go_on();
    }
}

#[test]
fn each_token_that_does_not_hold_has_its_exact_answer() {
    let scene =
        Scene::of(Algorithm::ES256, "refresh = \"1h\"\nleeway = \"0ms\"\nalgorithms = [\"ES256\", \"RS256\"]", "");
    let stranger = SigningKey::new("first", Algorithm::ES256);
    let good = scene.good();
    let claims = scene.claims();
    let parts: Vec<&str> = good.split('.').collect();
    let other = scene.saying("sub", json!("root"));
    let tampered = format!("{}.{}.{}", parts[0], other.split('.').nth(1).unwrap(), parts[2]);
    // {"alg":"none"}
    let none = format!("eyJhbGciOiJub25lIn0.{}.", parts[1]);
    let algorithm = "The token is signed with an algorithm that is not accepted";
    let claim = "The token lacks a claim, or has one of another type";
    for (what, token, said) in [
        (
            "another audience",
            scene.saying("aud", json!("https://other.example.com")),
            "The token is meant for another audience",
        ),
        ("other audiences", scene.saying("aud", json!(["a", "b"])), "The token is meant for another audience"),
        ("no audience", scene.silent_on("aud"), claim),
        (
            "another issuer",
            scene.saying("iss", json!("https://evil.example.com")),
            "The token is of an issuer that is not accepted",
        ),
        ("no issuer", scene.silent_on("iss"), claim),
        ("no signature", none, algorithm),
        ("the public key as a secret", scene.key.confused().token(&claims), algorithm),
        ("an algorithm that is not taken", SigningKey::new("first", Algorithm::EdDSA).token(&claims), algorithm),
        (
            "a key of another kind",
            SigningKey::new("first", Algorithm::RS256).token(&claims),
            "The token names a key that its issuer does not have",
        ),
        ("expired", scene.saying("exp", json!(seconds_from_now(-2))), "The token has expired"),
        ("no expiry", scene.silent_on("exp"), claim),
        ("an expiry that is not a number", scene.saying("exp", json!("4102444800")), claim),
        ("the future", scene.saying("nbf", json!(seconds_from_now(3_600))), "The token is not valid yet"),
        ("no subject", scene.silent_on("sub"), claim),
        ("a subject that is none", scene.saying("sub", json!("a b")), claim),
        (
            "an unknown key",
            scene.key.named("second").token(&claims),
            "The token names a key that its issuer does not have",
        ),
        ("a stranger's key", stranger.token(&claims), "The signature of the token does not hold"),
        ("tampered with", tampered, "The signature of the token does not hold"),
        ("cut", good[..good.len() - 6].to_owned(), "The signature of the token does not hold"),
        ("no token", "a.b.c".to_owned(), "The token is not a JSON Web Token"),
        ("no token at all", "0123456789".to_owned(), "The token is not a JSON Web Token"),
        ("of the file, and unknown", "toolcell_00".to_owned(), "The token is not known, or was revoked"),
    ] {
        let reply = scene.ask(&token);
        assert_eq!(reply.error(), (401, -32600), "{what}");
        assert_eq!(reply.field("www-authenticate"), Some(invalid(said).as_str()), "{what}");
        assert_eq!(scene.ask(&good).status(), 200, "after {what}");
    }
    scene.others_go_on();
    let most = scene.host.process().replica_count();
    assert_eq!(scene.issuer.asked(), most, "a token of a key that is unknown has it asked no sooner than it may be");
}

#[test]
fn tokens_that_are_too_long_or_too_many_are_refused() {
    let _alone = alone("a balancer refuses these itself");
    let scene = Scene::of(Algorithm::ES256, "", "");
    let good = scene.good();
    let long = scene.ask(&format!("{good}{}", "A".repeat(17_000)));
    assert_eq!(long.error(), (401, -32600));
    assert_eq!(long.field("www-authenticate"), Some(invalid("The token is too long").as_str()));
    let two = scene.host.ask(&shown(&good, echo()).and("authorization", &format!("Bearer {good}")));
    assert_eq!(two.error(), (401, -32600));
    assert_eq!(two.field("www-authenticate"), Some(format!("Bearer {CHALLENGE}").as_str()));
    assert_eq!(scene.ask(&"A".repeat(40_000)).status(), 431, "past what a head may have");
    scene.others_go_on();
    assert_eq!(scene.issuer.asked(), 0);
}

#[test]
fn who_shows_no_token_is_told_how_to_get_one() {
    let scene = Scene::of(Algorithm::ES256, "", "");
    let good = format!("Bearer {}", scene.good());
    for (what, ask) in [
        ("none", echo()),
        ("another scheme", echo().with("authorization", &good.replace("Bearer", "Basic"))),
        ("nothing behind the scheme", echo().with("authorization", "Bearer ")),
    ] {
        let reply = scene.host.ask(&ask);
        assert_eq!(reply.error(), (401, -32600), "{what}");
        assert_eq!(reply.field("www-authenticate"), Some(format!("Bearer {CHALLENGE}").as_str()), "{what}");
    }
    scene.others_go_on();
    assert_eq!(scene.issuer.asked(), 0);
}

#[test]
fn a_token_without_a_scope_that_is_needed_is_told_which() {
    let scene = Scene::of(Algorithm::ES256, "", "");
    let token = scene.saying("scope", json!("other"));
    let reply = scene.ask(&token);
    assert_eq!(reply.error(), (403, -32600));
    let metadata = CHALLENGE.split(", ").next().unwrap();
    let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"tools\", {metadata}");
    assert_eq!(reply.field("www-authenticate"), Some(challenge.as_str()));
    let mut claims = scene.claims();
    claims["scope"].take();
    for scopes in [json!(["tools"]), json!("x tools")] {
        claims["scp"] = scopes;
        assert_eq!(scene.ask(&scene.key.token(&claims)).status(), 200, "{claims}");
    }
    scene.others_go_on();
}

#[test]
fn metadata_say_without_a_token_who_gives_tokens() {
    let rules = "[callers.adders]\nscopes = [\"add\"]\ntools = [\"add\"]\n";
    let scene = Scene::of(Algorithm::ES256, "", rules);
    let expected = json!({
        "resource": RESOURCE, "authorization_servers": [scene.issuer.name()],
        "bearer_methods_supported": ["header"], "scopes_supported": ["tools", "add"],
    });
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let reply = scene.host.ask(&Ask::bare("GET", path));
        assert_eq!((reply.status(), reply.field("content-type")), (200, Some("application/json")), "{path}");
        assert_eq!(reply.frame(), expected, "{path}");
        let reply = scene.host.ask(&Ask::bare("POST", path));
        assert_eq!((reply.status(), reply.field("allow")), (405, Some("GET, HEAD, OPTIONS")), "{path}");
    }
    for path in ["/.well-known/oauth-protected-resource/other", "/.well-known/oauth-authorization-server"] {
        assert_eq!(scene.host.ask(&Ask::bare("GET", path)).status(), 404, "{path}");
    }
    let elsewhere = Ask::bare("GET", "/.well-known/oauth-protected-resource").with("host", "evil.example.com");
    assert_eq!(scene.host.ask(&elsewhere).status(), 403);
}

#[test]
fn scopes_of_a_token_say_which_tools_its_caller_sees() {
    let rules = "[callers.adders]\nscopes = [\"add\"]\ntools = [\"add\"]\n\
                 [callers.bob]\nnames = [\"corp:bob\"]\ntools = [\"echo\"]\n";
    let scene = Scene::of(Algorithm::ES256, "", rules);
    let sees = |subject: &str, scope: &str| {
        let token = scene.key.token(&scene.issuer.claims(subject, RESOURCE, scope));
        let reply = scene.host.ask(&shown(&token, Ask::modern(1, "tools/list", json!({}))));
        let tools = reply.frame()["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(sees("ann", "tools add"), ["add"]);
    assert_eq!(sees("ann", "tools"), [""; 0]);
    assert_eq!(sees("bob", "tools add"), ["echo"]);
}

#[test]
fn a_token_that_names_no_key_holds_where_only_one_could_be_meant() {
    let scene = Scene::of(Algorithm::ES256, "refresh = \"100ms\"\nfresh = \"100ms\"", "");
    let token = scene.key.anonymous_token(&scene.claims());
    assert_eq!(scene.ask(&token).status(), 200);
    let second = SigningKey::new("second", Algorithm::ES256);
    scene.issuer.publishes(&[&scene.key, &second]);
    scene.will_be(&token, 401);
    let said = scene.ask(&token);
    assert_eq!(
        said.field("www-authenticate"),
        Some(invalid("The token names a key that its issuer does not have").as_str())
    );
    assert_eq!(scene.ask(&scene.good()).status(), 200);
}

#[test]
fn keys_that_an_issuer_changes_are_followed() {
    let scene = Scene::of(Algorithm::ES256, "refresh = \"100ms\"\nfresh = \"100ms\"", "");
    let old = scene.good();
    let second = SigningKey::new("second", Algorithm::RS256);
    assert_eq!(scene.ask(&old).status(), 200);
    scene.issuer.publishes(&[&scene.key, &second]);
    let new = second.token(&scene.claims());
    scene.will_be(&new, 200);
    assert_eq!(scene.ask(&old).status(), 200, "both are taken");
    scene.issuer.publishes(&[&second]);
    scene.will_be(&old, 401);
    assert_eq!(scene.ask(&new).status(), 200, "what was signed with a key that is gone holds no longer");
    scene.others_go_on();
}

#[test]
fn an_issuer_that_is_gone_from_the_start_is_waited_for() {
    let key = SigningKey::new("first", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]);
    issuer.answers(false);
    let scene = Scene::with(issuer, key, "refresh = \"100ms\"", "");
    let reply = scene.ask(&scene.good());
    assert_eq!((reply.error(), reply.field("retry-after")), ((503, -32603), Some("1")));
    assert_eq!(reply.field("www-authenticate"), None, "nothing is wrong with the token");
    scene.others_go_on();
    scene.issuer.answers(true);
    scene.will_be(&scene.good(), 200);
}

#[test]
fn known_keys_go_on_through_an_outage_and_no_longer_than_they_may() {
    for (outage, lasts) in [("1h", true), ("0ms", false)] {
        let times = format!("refresh = \"100ms\"\nfresh = \"100ms\"\noutage = \"{outage}\"");
        let scene = Scene::of(Algorithm::ES256, &times, "");
        let good = scene.good();
        let unknown = SigningKey::new("second", Algorithm::ES256).token(&scene.claims());
        assert_eq!(scene.status_everywhere(&good), 200);
        scene.issuer.answers(false);
        // At this time nobody can say if the issuer has the unknown key.
        scene.will_be(&unknown, 503);
        if lasts {
            assert_eq!(scene.status_everywhere(&good), 200);
            let also = scene.saying("sub", json!("bob"));
            assert_eq!(scene.status_everywhere(&also), 200, "tokens that were never seen as well");
        } else {
            scene.will_be(&good, 503);
        }
        scene.others_go_on();
        scene.issuer.answers(true);
        scene.will_be(&good, 200);
        scene.will_be(&unknown, 401);
    }
}

#[test]
fn a_token_reaches_no_guest_no_server_no_log_and_no_record() {
    let upstream = HttpServer::start();
    let private = format!(
        "[components.reach_http.network]\nhttp = [\"{}/*\"]\nprivate = [\"{}\"]\n",
        upstream.url(""),
        upstream.address()
    );
    let scene = Scene::of(Algorithm::ES256, "", &private);
    let token = scene.good();
    let secret = token.rsplit('.').next().unwrap().to_owned();
    let calls = [
        ("request", json!({})),
        ("clocks", json!({})),
        ("environment", json!({})),
        ("http", json!({"url": upstream.url("/echo")})),
    ];
    for (tool, arguments) in calls {
        let reply = scene.host.ask(&shown(&token, Ask::call(tool, arguments)));
        let said = String::from_utf8_lossy(reply.body()).into_owned();
        assert!(!said.contains(&secret) && !said.to_lowercase().contains("bearer"), "{tool}: {said}");
    }
    assert!(!upstream.seen().is_empty(), "a guest has asked");
    for seen in upstream.seen() {
        assert!(!seen.head.contains(&secret) && !seen.head.to_lowercase().contains("authorization"), "{seen:?}");
    }
    let process = scene.host.process();
    let _ = process.recorded("a call", |record| record["event"] == "call.finished");
    for (what, text) in [("log", process.said()), ("audit", process.folder().read("audit.jsonl"))] {
        assert!(!text.contains(&secret), "the {what} has it");
    }
}

#[test]
fn keys_come_over_tls_from_an_issuer_that_is_trusted_and_no_other() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let folder = Folder::with_manifest("version = 1\n");
    folder.write("roots.pem", authority.pem());
    let roots = folder.path().join("roots.pem").to_string_lossy().into_owned();
    for (who, identity, status) in [
        ("trusted", authority.identity(&["127.0.0.1"]), 200),
        ("of another authority", stranger.identity(&["127.0.0.1"]), 503),
        ("of another name", authority.identity(&["login.example.com"]), 503),
        ("expired", authority.expired_identity(&["127.0.0.1"]), 503),
    ] {
        let key = SigningKey::new("first", Algorithm::ES256);
        let issuer = Issuer::secure(&[&key], &identity);
        let scene = Scene::trusting(issuer, key, "", "", &[("SSL_CERT_FILE", &roots)]);
        assert_eq!(scene.ask(&scene.good()).status(), status, "{who}");
        scene.others_go_on();
    }
}

#[test]
fn a_machine_without_roots_takes_tokens_of_an_issuer_without_tls_and_says_why_of_no_other() {
    let none = [("SSL_CERT_FILE", "/dev/null"), ("SSL_CERT_DIR", "/dev/null")];
    let key = SigningKey::new("first", Algorithm::ES256);
    let scene = Scene::trusting(Issuer::start(&[&key]), key, "", "", &none);
    assert_eq!(scene.ask(&scene.good()).status(), 200);
    let oauth = "[http.oauth]\nresource = \"https://tools.example.com/mcp\"\n[http.oauth.issuers.corp]\n\
                 issuer = \"https://login.example.com\"\n";
    let folder = Folder::with_manifest(&format!("{}{oauth}", manifest_of(&["good"])));
    let serve = Command::in_folder(&folder, &["serve", "--http", "127.0.0.1:0"]);
    let served = none.iter().fold(serve, |serve, (name, value)| serve.with_variable(name, value)).run();
    let said = served.failed_with(1);
    assert!(said.contains("issuers cannot be asked for their keys") && said.contains("SSL_CERT_FILE"), "{said}");
}

#[test]
fn an_issuer_that_answers_with_something_else_is_as_one_that_is_gone() {
    let hostile = HttpServer::start();
    for (what, path, said) in [
        ("more than fits", "/bytes/300000", "answers with more than 262144 bytes"),
        ("without end", "/endless", "answers with more than 262144 bytes"),
        ("another place", "/redirect", "answers with status 302"),
        ("an error", "/status/500", "answers with status 500"),
        ("no keys", "/echo", "this is not a JSON key set"),
        ("half of it", "/cut", "the keys of"),
        ("nothing", "/silent", "the keys of"),
        ("byte by byte", "/dribble", "the keys of"),
        ("headers without end", "/slow-head", "the keys of"),
    ] {
        let scene = Scene::of(Algorithm::ES256, &format!("jwks = \"{}\"", hostile.url(path)), "");
        let token = scene.good();
        let mut waits = scene.host.connect();
        waits.send(&shown(&token, echo()).bytes());
        scene.others_go_on();
        assert_eq!(waits.reply().error(), (503, -32603), "{what}");
        scene.host.process().will_say(said);
        scene.others_go_on();
    }
}

#[test]
fn metadata_of_another_issuer_are_not_followed() {
    let key = SigningKey::new("first", Algorithm::ES256);
    let other = Issuer::start(&[&key]);
    let named = other.name().replace("127.0.0.1", "localhost");
    let scene = Scene::of(Algorithm::ES256, &format!("[http.oauth.issuers.other]\nissuer = \"{named}\""), "");
    let mut claims = other.claims("ann", RESOURCE, "tools");
    claims["iss"] = named.into();
    assert_eq!(scene.ask(&key.token(&claims)).error(), (503, -32603));
    scene.host.process().will_say("is of another issuer");
    // A token of one issuer is not valid for the other, whichever key signed it.
    let crossed = key.token(&scene.claims());
    assert_eq!(
        scene.ask(&crossed).field("www-authenticate"),
        Some(invalid("The signature of the token does not hold").as_str())
    );
    assert_eq!(scene.ask(&scene.good()).status(), 200);
}

#[test]
fn a_session_goes_on_with_the_next_token_of_its_caller_and_no_other() {
    let scene = Scene::of(Algorithm::ES256, "", "");
    let opened = scene.host.ask(&shown(&scene.good(), Ask::initialize("2025-11-25")));
    let session = opened.field("mcp-session-id").unwrap().to_owned();
    let ping = |token: &str| {
        let ask = Ask::request(1, "ping", json!({})).of_session(&session);
        scene.host.ask(&shown(token, ask)).status()
    };
    let again = scene.saying("iat", json!(seconds_from_now(-1)));
    assert_ne!(again, scene.good());
    assert_eq!(ping(&again), 200, "the next token of the same caller");
    for (what, token) in [
        ("another subject", scene.saying("sub", json!("bob"))),
        ("other scopes", scene.saying("scope", json!("tools"))),
        ("another kind of caller", scene.beside.clone()),
    ] {
        assert_eq!(ping(&token), 404, "{what}");
    }
    assert_eq!(ping(&again), 200);
}

/// An open stream of a legacy session.
fn session_stream(host: &WebHost, token: &str) -> Wire {
    let opened = host.ask(&shown(token, Ask::initialize("2025-11-25")));
    let id = opened.field("mcp-session-id").unwrap().to_owned();
    let ready = Ask::post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).of_session(&id);
    assert_eq!(host.ask(&shown(token, ready)).status(), 202);
    let mut wire = host.connect();
    wire.send(&shown(token, Ask::bare("GET", "/mcp").of_session(&id)).bytes());
    assert_eq!(wire.head().status(), 200);
    wire
}

fn subscription(host: &WebHost, token: &str) -> Wire {
    let mut wire = host.connect();
    wire.send(&shown(token, Ask::listen(5)).bytes());
    assert_eq!(wire.head().status(), 200);
    assert_eq!(wire.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
    wire
}

/// Asserts that both streams of a caller end by themselves, in the proper way.
fn both_end(mut modern: Wire, mut legacy: Wire) {
    assert_eq!(modern.event().unwrap()["result"]["resultType"], "complete");
    assert_eq!(modern.event(), None);
    assert_eq!(legacy.event(), None);
}

#[test]
fn streams_end_when_the_token_does() {
    let scene = Scene::of(Algorithm::ES256, "leeway = \"0ms\"", "");
    let token = scene.saying("exp", json!(seconds_from_now(15)));
    let modern = subscription(&scene.host, &token);
    let legacy = session_stream(&scene.host, &token);
    let mut lasting = subscription(&scene.host, &scene.good());
    both_end(modern, legacy);
    assert_eq!(scene.ask(&token).status(), 401);
    scene.host.process().terminate();
    assert_eq!(lasting.event().unwrap()["result"]["resultType"], "complete", "others stay to the end");
}

#[test]
fn streams_end_when_the_token_is_revoked() {
    let scene = Scene::of(Algorithm::ES256, "", "");
    let folder = scene.host.process().folder();
    let second = Command::in_folder(folder, &["token", "new", "second"]).run().succeeded().trim().to_owned();
    scene.will_be(&second, 200);
    let modern = subscription(&scene.host, &second);
    let legacy = session_stream(&scene.host, &second);
    let mut lasting = subscription(&scene.host, &scene.beside);
    let revoked = Command::in_folder(folder, &["token", "revoke", "second"]).run();
    assert_eq!(revoked.succeeded(), "the token of second is revoked\n");
    both_end(modern, legacy);
    scene.will_be(&second, 401);
    scene.others_go_on();
    scene.host.process().terminate();
    assert_eq!(lasting.event().unwrap()["result"]["resultType"], "complete", "others stay to the end");
}
