//! Operators who sign in at the console with their tokens: who gets in, for how long, and what is
//! recorded of them and of strangers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::loopback::{Algorithm, Issuer, SigningKey, seconds_from_now};
use toolcell_tests::web::{Ask, Reply, Wire};
use toolcell_tests::{Command, Folder, patience};

use super::{Operator, hears, unhurried};

/// Attempts of one range of addresses in a minute that may fail.
const FAILED_MAX: usize = 10;

/// A manifest whose console decides, with these further lines of `[console]` and of others.
fn manifest(console: &str, http: &str) -> String {
    format!("{}\n[http]\n{http}\n[console]\ndecide = true\n{console}\n", unhurried(&["good"]))
}

/// A folder in which ann, an operator, and eve, a plain caller, have tokens.
fn with_tokens(operators: &str) -> (Folder, [String; 2]) {
    let folder = Folder::with_manifest(&manifest(operators, "tokens = \"tokens.jsonl\""));
    let tokens = ["ann", "eve"].map(|name| {
        let made = Command::in_folder(&folder, &["token", "new", name]).run();
        made.succeeded().trim().to_owned()
    });
    (folder, tokens)
}

const ANN: &str = "operators = [\"ann\"]";

/// A form that signs in, as a browser without a session sends it.
fn signing_in(host: &Operator, token: &str) -> Ask {
    let ask = Ask::bare("POST", "/sign-in").with("host", &host.address.to_string());
    let ask = ask.with("origin", &format!("http://{}", host.address)).with("sec-fetch-site", "same-origin");
    ask.with("content-type", "application/x-www-form-urlencoded").saying(&format!("token={token}"))
}

/// The cookie of a session that this token begins.
fn signs_in(host: &Operator, token: &str) -> String {
    let entered = host.ask(&signing_in(host, token));
    assert_eq!((entered.status(), entered.field("location")), (303, Some("/")), "{entered:?}");
    let cookie = entered.field("set-cookie").unwrap();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

fn looked_at(host: &Operator, path: &str, cookie: &str) -> Reply {
    host.ask(&host.get(path).with("cookie", cookie))
}

fn text(reply: &Reply) -> String {
    String::from_utf8(reply.body().to_vec()).unwrap()
}

/// Asserts that this is the page with the form.
fn is_sign_in(reply: &Reply, status: u16, says: &str) {
    let page = text(reply);
    assert!(reply.status() == status && page.contains(says), "{status} {says}: {reply:?} {page}");
    assert!(page.contains("method=\"post\" action=\"/sign-in\"") && page.contains("type=\"password\""), "{page}");
    assert_eq!(reply.field("set-cookie"), None);
    assert_eq!(reply.field("cache-control"), Some("no-store"));
}

#[test]
fn an_operator_signs_in_with_a_token_and_records_say_who_it_was() {
    let (folder, [ann, _]) = with_tokens(ANN);
    let mut host = Operator::deciding(folder, &[]);
    let stranger = |path: &str| host.ask(&host.get(path).without("cookie"));
    is_sign_in(&stranger("/sign-in"), 200, "<label for=\"token\">");
    is_sign_in(&stranger("/audit"), 403, "autocomplete=\"current-password\"");
    let cookie = signs_in(&host, &format!("%20{ann}%0A"));
    let page = looked_at(&host, "/", &cookie);
    assert!(page.status() == 200 && text(&page).contains(">ann<"), "{page:?}");
    assert_eq!(looked_at(&host, "/sign-in", &cookie).field("location"), Some("/"));
    let is_ann = |decision: &'static str| {
        move |record: &Value| {
            record["event"] == "console.decided" && record["decision"] == decision && record["operator"] == "ann"
        }
    };
    let entered = host.host.recorded("an entry", is_ann("enter"));
    assert_eq!((&entered["event"], &entered["done"]), (&json!("console.decided"), &json!(true)));
    let by_link = host.decided("enter");
    assert!(by_link.get("operator").is_none(), "{by_link}");

    host.host.initialize("2025-11-25");
    let id = host.host.start_call("slow", json!({"steps": 1_000, "step_ms": 20}));
    let first = host.cookie.clone();
    let csrf = text(&looked_at(&host, "/", &cookie)).split("name=\"csrf\" value=\"").nth(1).unwrap()[..64].to_owned();
    let page = host.page_with("/", "action=\"/calls/stop\"");
    assert!(page.contains("session ") && !page.contains(">ann<"), "{page}");
    assert_eq!(host.ask(&host.form("/calls/stop", "call=1").with("cookie", &cookie)).status(), 403, "another's form");
    (host.cookie, host.csrf) = (cookie.clone(), csrf);
    let _ = host.decides("/calls/stop", "call=1");
    assert_eq!(host.host.answer_to(&id).error_text(), "the operator ended the call");
    assert_eq!(host.host.recorded("a decision", is_ann("stop"))["done"], true);

    // Who signs in again leaves the session before.
    let again = host.ask(&signing_in(&host, &ann).with("cookie", &cookie));
    let again = again.field("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    is_sign_in(&looked_at(&host, "/", &cookie), 403, "The session has ended");
    assert_eq!((looked_at(&host, "/", &again).status(), looked_at(&host, "/", &first).status()), (200, 200));
}

#[test]
fn whoever_is_no_operator_is_turned_away_and_recorded_as_a_stranger() {
    let (folder, [ann, eve]) = with_tokens(ANN);
    let host = Operator::deciding(folder, &["--http", "127.0.0.1:0"]);
    let wrong = format!("toolcell_{}", "0".repeat(64));
    for token in [wrong.as_str(), eve.as_str(), "", "a.b.c"] {
        let reply = host.ask(&signing_in(&host, token));
        is_sign_in(&reply, 403, "role=\"alert\">This token does not open the console");
        assert!(token.is_empty() || !text(&reply).contains(token), "{token} is shown");
    }
    // These are refused before the token is looked at.
    let right = signing_in(&host, &ann);
    for (ask, status) in [
        (right.clone().with("origin", "http://evil.example"), 403),
        (right.clone().with("sec-fetch-site", "cross-site"), 403),
        (right.clone().with("sec-fetch-site", "same-site"), 403),
        (right.clone().with("sec-fetch-site", "none"), 403),
        (right.clone().without("sec-fetch-site").without("origin"), 403),
        (right.clone().with("host", "evil.example"), 403),
        (right.clone().with("content-type", "text/plain"), 415),
        (signing_in(&host, &"x".repeat(20_000)), 413),
    ] {
        let reply = host.ask(&ask);
        assert_eq!((reply.status(), reply.field("set-cookie")), (status, None), "{ask:?}");
    }
    let _ = signs_in(&host, &ann);
    host.host.terminate();
    let audit = host.host.ends_leaving_its_folder().read("audit.jsonl");
    let records = audit.lines().map(|line| serde_json::from_str(line).unwrap());
    let refused: Vec<Value> = records.filter(|record: &Value| record["event"] == "request.refused").collect();
    let count = |reason: &str| {
        let of_reason = refused.iter().filter(|record| record["reason"] == reason);
        let of_here = of_reason.filter(|record| record["address"] == "127.0.0.0/24");
        of_here.map(|record| record["count"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((count("unknown_credential"), count("missing_right")), (3, 1), "{refused:?}");
    assert!([&wrong, &eve, &ann].iter().all(|token| !audit.contains(token.as_str())), "{audit}");
}

#[test]
fn a_revoked_token_ends_the_sessions_it_began_and_no_other() {
    let (folder, [ann, eve]) = with_tokens("operators = [\"ann\", \"eve\"]");
    let host = Operator::deciding(folder, &["--http", "127.0.0.1:0"]);
    let cookie = signs_in(&host, &ann);
    let other = signs_in(&host, &eve);
    let mut wire = Wire::to(host.address);
    wire.send(&host.get("/events?view=now").with("cookie", &cookie).bytes());
    assert_eq!(wire.head().status(), 200);
    let revoked = Command::in_folder(host.host.folder(), &["token", "revoke", "ann"]).run();
    assert_eq!(revoked.succeeded(), "the token of ann is revoked\n");
    hears(&mut wire, "event: ended");
    is_sign_in(&looked_at(&host, "/audit", &cookie), 403, "The session has ended. Sign in again.");
    is_sign_in(&host.ask(&signing_in(&host, &ann)), 403, "This token does not open the console");
    assert_eq!(looked_at(&host, "/", &other).status(), 200, "eve's goes on");
    let _ = host.page("/");
}

#[test]
fn too_many_attempts_wait_and_links_and_tokens_of_the_file_enter_meanwhile() {
    let (folder, [ann, _]) = with_tokens(ANN);
    let host = Operator::deciding(folder, &[]);
    for _ in 0..3 * FAILED_MAX {
        let _ = signs_in(&host, &ann);
    }
    // The minute in which they count may end meanwhile.
    let is_refused = |_| host.ask(&signing_in(&host, "wrong")).status() == 429;
    let tried = (1..=3 * FAILED_MAX).find(|attempt| is_refused(*attempt)).unwrap();
    assert!(tried > FAILED_MAX, "after {tried}");
    let end = Instant::now() + patience();
    let reply = loop {
        // A token of the file enters whatever others try.
        let _ = signs_in(&host, &ann);
        let reply = host.ask(&signing_in(&host, "wrong"));
        if reply.status() == 429 {
            break reply;
        }
        assert!(Instant::now() < end, "{reply:?}");
    };
    is_sign_in(&reply, 429, "role=\"alert\">Too many wrong tokens came.");
    assert_eq!(reply.field("retry-after"), Some("60"));
    let given = Command::in_folder(host.host.folder(), &["console"]).run();
    let link = given.succeeded().trim().split_once("/enter/").unwrap().1.to_owned();
    assert_eq!(host.ask(&host.get(&format!("/enter/{link}")).without("cookie")).status(), 303);
}

#[test]
fn operators_and_their_right_to_decide_follow_the_manifest() {
    let (folder, [ann, eve]) = with_tokens(ANN);
    let host = Operator::deciding(folder, &["--http", "127.0.0.1:0"]);
    let cookie = signs_in(&host, &ann);
    let mut wire = Wire::to(host.address);
    wire.send(&host.get("/events?view=now").with("cookie", &cookie).bytes());
    assert_eq!(wire.head().status(), 200);
    let manifest = host.host.folder().read("toolcell.toml");
    let eves = manifest.replace("operators = [\"ann\"]", "operators = [\"eve\"]");
    host.host.folder().write("toolcell.toml", &eves);
    // It may have been seen before.
    let _ = Command::in_folder(host.host.folder(), &["reload"]).run().succeeded().len();
    let replaced = host.host.recorded("a reload", |record| record["event"] == "catalog.replaced");
    assert_eq!(replaced["summary"], "other rights at the console");
    hears(&mut wire, "event: ended");
    is_sign_in(&looked_at(&host, "/audit", &cookie), 403, "The session has ended. Sign in again.");
    is_sign_in(&host.ask(&signing_in(&host, &ann)), 403, "This token does not open the console");
    let other = signs_in(&host, &eve);
    assert!(text(&looked_at(&host, "/callers", &other)).contains("Make a token"));
    host.host.folder().write("toolcell.toml", eves.replace("decide = true", "decide = false"));
    let _ = Command::in_folder(host.host.folder(), &["reload"]).run().succeeded().len();
    assert!(!text(&looked_at(&host, "/callers", &other)).contains("Make a token"), "it only shows");
    let refused = host.ask(&host.form("/callers/tokens/new", "name=evil"));
    assert_eq!(refused.status(), 403, "{refused:?}");
    assert!(!host.host.folder().read("tokens.jsonl").contains("evil"));
    // What needs another start is said.
    host.host.folder().write("toolcell.toml", eves.replace("decide = true", "decide = true\nhosts = [\"a.example\"]"));
    let _ = Command::in_folder(host.host.folder(), &["reload"]).run().succeeded().len();
    let status = Command::in_folder(host.host.folder(), &["status"]).run();
    assert!(status.succeeded().contains("[console]"), "{status:?}");
}

#[test]
fn a_page_of_another_site_leads_to_a_view_by_way_of_the_console() {
    let (folder, _) = with_tokens(ANN);
    let host = Operator::deciding(folder, &[]);
    let led = |path: &str| host.get(path).with("sec-fetch-site", "cross-site").with("sec-fetch-mode", "navigate");
    let reply = host.ask(&led("/audit?tool=a%22%3Cb%3E&outcome=ok").without("cookie"));
    let page = text(&reply);
    assert!(
        reply.status() == 200 && page.contains("content=\"0;url=/audit?tool=a%22%3Cb%3E&amp;outcome=ok\""),
        "{page}"
    );
    assert!(reply.field("set-cookie").is_none() && reply.field("content-security-policy").is_some());
    for path in ["//evil.example/", "/enter/x", "/sign-in", "/elsewhere", "/audit/export.csv", "/auditor"] {
        assert!(!text(&host.ask(&led(path).without("cookie"))).contains("http-equiv"), "{path}");
    }
    let long = format!("/audit?text={}", "x".repeat(3_000));
    assert!(
        text(&host.ask(&led(&long).without("cookie"))).contains("content=\"0;url=/\""),
        "a long one leads to the start"
    );
    // Anyone who comes from the console itself is not led on again.
    is_sign_in(&host.ask(&host.get("/audit").with("sec-fetch-site", "same-origin").without("cookie")), 403, "Sign in");
    let given = Command::in_folder(host.host.folder(), &["console"]).run();
    let link = given.succeeded().trim().split_once("/enter/").unwrap().1.to_owned();
    let entered = host.ask(&led(&format!("/enter/{link}")).without("cookie"));
    assert!(text(&entered).contains("content=\"0;url=/\"") && entered.status() == 200, "{entered:?}");
    let cookie = entered.field("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    assert_eq!(looked_at(&host, "/", &cookie).status(), 200);
}

#[test]
fn where_no_operators_are_named_only_links_enter() {
    let (folder, [ann, _]) = with_tokens("");
    let host = Operator::deciding(folder, &[]);
    for ask in [signing_in(&host, &ann), host.get("/sign-in").without("cookie")] {
        let reply = host.ask(&ask);
        assert_eq!((reply.status(), reply.field("set-cookie")), (403, None), "{reply:?}");
        assert!(!text(&reply).contains("<form") && text(&reply).contains("toolcell console"), "{reply:?}");
    }
}

#[test]
fn operators_need_tokens() {
    let refused = |manifest: &str| {
        let folder = Folder::with_manifest(manifest);
        Command::in_folder(&folder, &["serve", "--console", "127.0.0.1:0"]).run().stderr
    };
    let said = refused(&manifest(ANN, ""));
    assert!(said.contains("nobody is called \"ann\": there is no file of tokens"), "{said}");
    let said = refused(&manifest(ANN, "tokens = \"tokens.jsonl\""));
    assert!(said.contains("tokens.jsonl") && said.contains("toolcell token new NAME"), "{said}");
}

#[test]
fn a_token_of_an_issuer_signs_in_until_it_ends() {
    const RESOURCE: &str = "https://tools.example.com/mcp";
    let key = SigningKey::new("first", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]);
    let oauth = format!(
        "[http.oauth]\nresource = \"{RESOURCE}\"\nscopes = [\"tools\"]\n\
         [http.oauth.issuers.corp]\nissuer = \"{}\"\nleeway = \"0ms\"",
        issuer.name()
    );
    let host = Operator::deciding(Folder::with_manifest(&manifest("operators = [\"corp:ann\"]", &oauth)), &[]);
    let token = |subject: &str, audience: &str, scopes: &str, seconds: i64| {
        let mut claims = issuer.claims(subject, audience, scopes);
        claims["exp"] = json!(seconds_from_now(seconds));
        key.token(&claims)
    };
    for wrong in [
        token("eve", RESOURCE, "tools", 600),
        token("ann", "https://other.example/mcp", "tools", 600),
        token("ann", RESOURCE, "other", 600),
        token("ann", RESOURCE, "tools", -60),
    ] {
        is_sign_in(&host.ask(&signing_in(&host, &wrong)), 403, "This token does not open the console");
    }
    let lasting = signs_in(&host, &token("ann", RESOURCE, "tools", 3_600));
    assert!(text(&looked_at(&host, "/", &lasting)).contains(">corp:ann<"));
    // A busy machine may need longer than a token lasts.
    let mut lives = [5, 20, 60].into_iter();
    let short = loop {
        let reply = host.ask(&signing_in(&host, &token("ann", RESOURCE, "tools", lives.next().unwrap())));
        if reply.status() == 303 {
            break reply.field("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        }
    };
    let end = Instant::now() + patience() + Duration::from_secs(60);
    while looked_at(&host, "/", &short).status() == 200 {
        assert!(Instant::now() < end, "the session goes on");
        std::thread::yield_now();
    }
    is_sign_in(&looked_at(&host, "/", &short), 403, "The session has ended");
    assert_eq!(looked_at(&host, "/", &lasting).status(), 200);
}
