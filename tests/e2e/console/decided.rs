//! Decisions and their records: nothing that is done is missing from the audit, whatever becomes of
//! the browser or of the audit's file.

use std::time::Instant;

use serde_json::{Value, json};
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::web::Wire;
use toolcell_tests::{Command, Folder, manifest_of, patience};

use super::{Operator, good};

#[test]
fn a_decision_is_recorded_though_its_browser_is_gone() {
    let server = HttpServer::start();
    let mut operator = Operator::of(&manifest_of(&["good", "reach_http", "noisy", "hungry", "loops"]));
    operator.host.initialize("2025-11-25");
    let _ = operator.host.call("http", json!({"url": format!("http://{}/x", server.address())}));
    let key = Operator::key(&operator.page("/denials"), "/denials/apply");
    let mut wire = Wire::to(operator.address);
    wire.send(&operator.form("/denials/apply", &format!("key={key}")).bytes());
    let end = Instant::now() + patience();
    while !operator.host.folder().read("toolcell.toml").contains("[components.reach_http.network]") {
        assert!(Instant::now() < end, "the rule is not written");
    }
    drop(wire);
    assert_eq!(operator.decided("grant")["done"], true);
    let begun = operator.host.recorded("its begin", |record| record["event"] == "console.deciding");
    assert_eq!(begun["decision"], "grant");
}

#[test]
fn a_call_that_is_tried_ends_with_its_browser_and_is_recorded() {
    let operator = good();
    let page = operator.page("/tools/slow");
    let form = page.split_once("action=\"/tools/slow/try\"").unwrap().1.split_once("</form>").unwrap().0;
    let field = |argument: &str| {
        let before = form.split_once(&format!(">{argument}<")).unwrap_or_else(|| panic!("{form}")).0;
        before.rsplit_once("for=\"").unwrap().1.split('"').next().unwrap().to_owned()
    };
    let fields = format!("{}=1000&{}=20", field("steps"), field("step_ms"));
    let mut wire = Wire::to(operator.address);
    wire.send(&operator.form("/tools/slow/try", &fields).bytes());
    let _ = operator.host.recorded("its begin", |record| record["event"] == "call.started");
    drop(wire);
    let ended = operator.host.recorded("its end", |record| record["event"] == "call.finished");
    assert_eq!(ended["outcome"], "cancelled");
    let tried = operator.decided("try");
    assert_eq!((&tried["subject"], &tried["detail"]), (&json!("slow"), &json!("cancelled")));
}

#[test]
fn nothing_is_decided_that_a_required_audit_cannot_hold() {
    let audit = "\n[audit]\nrotate = \"64KiB\"\nkeep = 1\narguments = \"values\"\n[http]\ntokens = \"tokens.jsonl\"\n";
    let mut operator = Operator::of(&format!("{}{audit}", manifest_of(&["good"])));
    operator.host.folder().write("tokens.jsonl", "");
    operator.host.initialize("2025-11-25");
    let makes = |name: &str| operator.ask(&operator.form("/callers/tokens/new", &format!("name={name}")));
    assert_eq!(makes("ann").status(), 200);
    let before = operator.host.folder().read("tokens.jsonl");
    // No file can take this name, so that the audit cannot go on in a new one.
    operator.host.folder().make("audit.jsonl.1");
    let long = "x".repeat(8_192);
    let is_full = |_| operator.host.call("echo", json!({"text": long})).is_error();
    assert!((0..100).any(is_full), "the audit goes on");
    // A short record may still fit.
    let is_refused = |_| operator.decides("/calls/stop", "call=1").contains("Nothing was done");
    assert!((0..1_000).any(is_refused), "decisions are recorded on");
    let makes = |name: &str| operator.ask(&operator.form("/callers/tokens/new", &format!("name={name}")));
    let refused = makes("bob");
    assert_eq!(refused.field("location"), Some("/callers"), "{refused:?}");
    let page = operator.page("/callers");
    assert!(page.contains("Nothing was done: the audit cannot be written."), "{page}");
    assert_eq!(operator.host.folder().read("tokens.jsonl"), before);
    let page = operator.decides("/calls/stop", "call=1");
    assert!(page.contains("Nothing was done") && !page.contains("does not run any more"), "{page}");
    std::fs::remove_dir(operator.host.folder().path().join("audit.jsonl.1")).unwrap();
    assert_eq!(makes("bob").status(), 200);
    let made: Value = operator.host.recorded("it", |record| {
        record["event"] == "console.decided" && record["subject"] == "bob" && record["done"] == true
    });
    assert_eq!(made["decision"], "token");
}

#[test]
fn what_is_allowed_is_in_the_lock_too_and_nothing_is_written_beside_another_difference() {
    let server = HttpServer::start();
    let manifest = format!("{}\n[console]\ndecide = true\n", manifest_of(&["good", "reach_http"]));
    for options in [&[][..], &["--locked"]] {
        let folder = Folder::with_manifest(&manifest);
        let run = |arguments: &[&str]| Command::in_folder(&folder, arguments).run();
        let _ = run(&["lock"]).succeeded();
        let mut operator = Operator::deciding(folder.clone(), options);
        operator.host.initialize("2025-11-25");
        let url = format!("http://{}/x", server.address());
        let _ = operator.host.call("http", json!({"url": url}));
        let key = Operator::key(&operator.page("/denials"), "/denials/apply");
        let page = operator.decides("/denials/apply", &format!("key={key}"));
        assert!(page.contains("The lock has it too."), "{options:?}: {page}");
        assert_eq!(operator.decided("grant")["done"], true);
        assert_eq!(run(&["diff"]).code(), 0, "{options:?}");
        assert!(!operator.host.call("http", json!({"url": url})).is_error(), "{options:?}");
        if options.is_empty() {
            // Somebody gives the component a variable that nobody has locked.
            let written = format!("{}\n[components.reach_http.env]\nA = \"b\"\n", folder.read("toolcell.toml"));
            folder.write("toolcell.toml", &written);
            let _ = run(&["reload"]).succeeded();
            let other = HttpServer::start();
            let _ = operator.host.call("http", json!({"url": format!("http://{}/x", other.address())}));
            let key = Operator::key(&operator.page("/denials"), "/denials/apply");
            let page = operator.decides("/denials/apply", &format!("key={key}"));
            assert!(page.contains("Nothing was written: the lock does not have the component"), "{page}");
            assert_eq!(folder.read("toolcell.toml"), written);
        }
    }
}
