//! New versions of a component, held against one recorded call: each differs in one way, and has
//! the verdict for it.
//!
//! Promise: a new version shows what it asks for.

use serde_json::{Value, json};
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::{Command, Finished, Folder, fixture_bytes, manifest_of};

/// What the plan follows in the fixture's bytes, and the bytes of both.
const MARK: &[u8] = b"the plan of this version: ";
const PLAN_BYTES: usize = 4096;

/// The fixture with this plan.
fn version(plan: &Value) -> Vec<u8> {
    let mut bytes = fixture_bytes("plans");
    let at = bytes.windows(MARK.len()).position(|window| window == MARK).unwrap();
    let text = plan.to_string();
    assert!(text.len() <= PLAN_BYTES - MARK.len());
    let place = &mut bytes[at + MARK.len()..at + PLAN_BYTES];
    place.fill(b' ');
    place[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

/// A plan of these steps.
fn plan(steps: &[Value]) -> Value {
    json!({"says": "one", "steps": steps})
}

/// A folder with a recording of the first version, and the plan of that.
struct Recorded {
    folder: Folder,
    steps: Vec<Value>,
    http: HttpServer,
}

impl Recorded {
    fn new() -> Self {
        let http = HttpServer::start();
        let address = http.address();
        let steps = vec![
            json!({"does": "http", "url": http.url("/hello")}),
            json!({"does": "http", "url": http.url("/hello?again"), "method": "POST", "body": "one", "headers": [["x-a", "1"], ["x-b", "2"]]}),
            json!({"does": "set", "key": "a", "value": "v"}),
            json!({"does": "get", "key": "a"}),
            json!({"does": "read", "path": "/data/a.txt"}),
            json!({"does": "call", "tool": "echo", "arguments": {"text": "hi"}}),
            json!({"does": "log", "text": "works"}),
            json!({"does": "random"}),
            json!({"does": "now"}),
        ];
        let tables = format!(
            "calls = [\"echo\"]\nnetwork = {{ http = [\"http://{address}\"], private = [\"{address}\"] }}\n\
             filesystem = {{ \"/data\" = {{ path = \"data\", access = \"read\" }} }}\nkeyvalue = {{ quota = \"16KiB\" }}\n"
        );
        let manifest =
            format!("{}\n[components.plans]\nsource = \"components/plans.wasm\"\n{tables}", manifest_of(&["good"]));
        let folder = Folder::with_manifest(&manifest);
        folder.write("data/a.txt", "a file");
        let recorded = Self { folder, steps, http };
        recorded.folder.write("components/plans.wasm", version(&plan(&recorded.steps)));
        std::fs::create_dir_all(recorded.folder.path().join("recordings/plans")).unwrap();
        let call = ["call", "work", "{}", "--record", "recordings/plans/1.jsonl"];
        let said = Command::in_folder(&recorded.folder, &call).run();
        let answer = said.succeeded().to_owned();
        assert!(!answer.contains("error"), "every step of the recorded call is allowed: {answer}");
        recorded
    }

    /// The plan with one step changed.
    fn changed(&self, step: usize, change: &Value) -> Value {
        let mut steps = self.steps.clone();
        for (key, value) in change.as_object().unwrap() {
            steps[step][key] = value.clone();
        }
        plan(&steps)
    }

    /// The plan with further steps.
    fn with(&self, more: &[Value]) -> Value {
        plan(&[&self.steps[..], more].concat())
    }

    /// The recorded call with a version of this plan.
    fn replayed(&self, plan: &Value) -> (Value, Finished) {
        self.folder.write("new.wasm", version(plan));
        let arguments = ["replay", "recordings", "--component", "new.wasm"];
        let shown = Command::in_folder(&self.folder, &arguments).run();
        let json = Command::in_folder(&self.folder, &[&arguments[..], &["--json"]].concat()).run().json();
        (json["calls"][0].clone(), shown)
    }

    /// Asserts the verdict of a version of this plan, and what it asks for that is new.
    #[track_caller]
    fn gets(&self, way: &str, plan: &Value, verdict: &str, asks: &[&str]) {
        let (call, shown) = self.replayed(plan);
        assert_eq!(call["verdict"], verdict, "{way}: {call:#}");
        let named = call["asks"].as_array().cloned().unwrap_or_default();
        let named: Vec<&str> = named.iter().map(|question| question["name"].as_str().unwrap()).collect();
        assert_eq!(named, asks, "{way}: {call:#}");
        for name in asks {
            assert!(shown.stdout.contains(&format!("    asks for {name}")), "{way}: {}", shown.stdout);
        }
        assert_eq!(shown.code(), i32::from(verdict != "as before"), "{way}: {}", shown.stdout);
    }
}

#[test]
fn a_thousand_replays_of_the_recorded_version_end_alike() {
    let recorded = Recorded::new();
    recorded.folder.write("same.wasm", version(&plan(&recorded.steps)));
    let arguments = ["replay", "recordings", "--component", "same.wasm", "--runs", "1000"];
    let replayed = Command::in_folder(&recorded.folder, &arguments).run();
    assert!(replayed.succeeded().contains("1 of 1 recorded call answers as before"), "{}", replayed.stdout);
}

#[test]
fn a_new_version_that_differs_in_one_way_gets_the_verdict_of_that_way() {
    let recorded = Recorded::new();
    let address = recorded.http.address();
    let url = |path: &str| format!("http://{address}{path}");
    let gets = |way: &str, plan: &Value, verdict: &str, asks: &[&str]| recorded.gets(way, plan, verdict, asks);
    let same = plan(&recorded.steps);
    gets("nothing", &same, "as before", &[]);
    gets("another answer", &json!({"says": "two", "steps": recorded.steps}), "differs", &[]);
    let host = recorded.changed(0, &json!({"url": "https://new.example/"}));
    gets("another host", &host, "asks", &["GET https://new.example/"]);
    let path = recorded.changed(0, &json!({"url": url("/other?q=1")}));
    gets("another path", &path, "asks", &[&format!("GET {}", url("/other?q=1"))]);
    let method = recorded.changed(0, &json!({"method": "DELETE"}));
    gets("another method", &method, "asks", &[&format!("DELETE {}", url("/hello"))]);
    let headers = recorded.changed(1, &json!({"headers": [["x-a", "9"]]}));
    gets("other headers", &headers, "asks", &[&format!("POST {} with other headers", url("/hello?again"))]);
    let body = recorded.changed(1, &json!({"body": "two"}));
    gets("another body", &body, "asks", &[&format!("POST {} with another body", url("/hello?again"))]);
    gets("another key", &recorded.changed(3, &json!({"key": "b"})), "asks", &["key b of state"]);
    gets("another store", &recorded.changed(3, &json!({"bucket": "other"})), "asks", &["state other"]);
    gets("another tool", &recorded.changed(5, &json!({"tool": "search"})), "asks", &["tool search"]);
    let file = recorded.changed(4, &json!({"path": "/data/b.txt"}));
    gets("another file", &file, "asks", &["file /data/b.txt"]);
    let socket = recorded.with(&[json!({"does": "tcp", "name": "db.example", "port": 5432})]);
    gets("a connection", &socket, "asks", &["tcp db.example:5432"]);
    gets("fails", &json!({"fails": true, "steps": []}), "fails", &[]);
    gets("lost its tool", &json!({"name": "other", "steps": []}), "not run", &[]);
}

#[test]
fn a_new_version_may_ask_in_another_order_in_another_way_and_say_more() {
    let recorded = Recorded::new();
    let mut turned = recorded.steps.clone();
    turned.reverse();
    // What was written is there to be read.
    recorded.gets("another order", &plan(&turned), "as before", &[]);
    // The same request, built in another way.
    let headers = json!({"headers": [["X-B", "2"], ["x-a", "1"]], "first_byte_ms": 500});
    recorded.gets("headers in another order", &recorded.changed(1, &headers), "as before", &[]);
    recorded.gets("other lines", &recorded.changed(6, &json!({"text": "works well"})), "as before", &[]);
    recorded.gets("reads fewer bytes at once", &recorded.changed(0, &json!({"read_max": 5000})), "as before", &[]);
    recorded.gets("reads a file in pieces", &recorded.changed(4, &json!({"piece": 4})), "as before", &[]);
    let fewer = json!({"says": "one", "steps": recorded.steps[..5]});
    recorded.gets("asks for less, and says so", &fewer, "differs", &[]);
}

#[test]
fn far_more_fuel_is_shown_and_more_than_the_limit_fails() {
    let recorded = Recorded::new();
    let computing = |rounds: u64| {
        let mut plan = plan(&recorded.steps);
        plan["rounds"] = json!(rounds);
        plan
    };
    let (call, shown) = recorded.replayed(&computing(200_000));
    assert_eq!(call["verdict"], "as before", "{call:#}");
    let fuel = |part: &str| call[part]["fuel"].as_u64().unwrap();
    assert!(fuel("after") > fuel("before") + 200_000, "{call:#}");
    assert!(shown.stdout.contains(&format!("fuel {} → {}", fuel("before"), fuel("after"))), "{}", shown.stdout);
    let (call, _) = recorded.replayed(&computing(1_000_000_000));
    assert_eq!(call["verdict"], "fails", "{call:#}");
    assert!(call["problem"].as_str().unwrap().contains("fuel"), "{call:#}");
}

#[test]
fn each_new_question_is_named_and_no_more_than_ten() {
    let recorded = Recorded::new();
    let more = recorded.with(&[
        json!({"does": "http", "url": "https://new.example/v1", "method": "POST", "body": "x"}),
        json!({"does": "http", "url": "https://new.example/v1", "method": "POST", "body": "y"}),
        json!({"does": "call", "tool": "search", "arguments": {}}),
        json!({"does": "set", "key": "a", "bucket": "other"}),
    ]);
    recorded.gets("several", &more, "asks", &["POST https://new.example/v1", "tool search", "state other"]);
    let (_, shown) = recorded.replayed(&more);
    let summary = "0 of 1 recorded call answers as before; \
                   1 asks for `POST https://new.example/v1`, `tool search`, `state other`\n";
    assert!(shown.stdout.contains(summary), "{}", shown.stdout);
    let many: Vec<Value> =
        (0..30).map(|number| json!({"does": "get", "bucket": format!("b{number}"), "key": "a"})).collect();
    let (call, shown) = recorded.replayed(&recorded.with(&many));
    assert_eq!(call["asks"].as_array().unwrap().len(), 10, "{call:#}");
    assert!(shown.stdout.contains("`state b0`, `state b1`, `state b2` and 7 more"), "{}", shown.stdout);
    // The same question again and again ends as well.
    let again = vec![json!({"does": "get", "bucket": "other", "key": "a"}); 60];
    recorded.gets("again and again", &recorded.with(&again[..60]), "asks", &["state other"]);
}

#[test]
fn who_approves_a_new_version_reads_what_it_asks_for() {
    let recorded = Recorded::new();
    let folder = &recorded.folder;
    let _ = Command::in_folder(folder, &["lock"]).run().succeeded();
    let plan = recorded.changed(0, &json!({"url": "https://new.example/", "method": "POST"}));
    folder.write("components/plans.wasm", version(&plan));
    let approved = Command::in_folder(folder, &["approve", "plans"]).run();
    let text = approved.succeeded();
    let summary = "0 of 1 recorded call answers as before; 1 asks for `POST https://new.example/`";
    assert!(text.contains(summary), "{text}");
    assert!(text.contains("asks work: POST https://new.example/"), "{text}");
}
