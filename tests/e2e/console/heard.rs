//! Sentences that screen readers say while a page is open.
use serde_json::json;
use toolcell_tests::web::Wire;
use toolcell_tests::{Command, Folder, Saving, manifest_of};

use super::{Operator, hears};

/// The part of an event that is for screen readers.
fn said(sentence: &str) -> String {
    format!("\"say\":\"{sentence}\"")
}

#[test]
fn a_call_that_waits_a_denial_and_a_quarantine_are_said_once_each() {
    let manifest = manifest_of(&["reach_http", "good"])
        .replace("version = 1\n", "version = 1\n[server]\napprove_in = [\"console\"]\n[console]\ndecide = true\n");
    let folder = Folder::with_manifest(&format!("{manifest}approval = \"always\"\n"));
    let _ = Command::in_folder(&folder, &["lock"]).run().succeeded();
    let mut operator = Operator::deciding(folder, &["--locked"]);
    operator.host.initialize("2025-11-25");
    let before = operator.host.start_call("echo", json!({"text": "before the page was loaded"}));
    let page = operator.page_with("/approvals", "action=\"/approvals/answer\"");
    let key = Operator::key(&page, "/approvals/answer");
    let mut wire = Wire::to(operator.address);
    wire.send(&operator.get("/events?view=audit").bytes());
    assert_eq!(wire.head().status(), 200);
    let mut heard = hears(&mut wire, "event: update");
    let _ = operator.decides("/approvals/answer", &format!("key={key}&answer=decline"));
    assert!(operator.host.answer_to(&before).is_error());

    let id = operator.host.start_call("echo", json!({"text": "hello"}));
    heard += &hears(&mut wire, &said("A call of echo waits for a person."));
    let _ = operator.host.call("http", json!({"url": "http://127.0.0.1:9/x"}));
    heard += &hears(&mut wire, &said("reach_http was denied GET http://127.0.0.1:9/x."));
    // The same again is in the same group, and is not said again.
    let _ = operator.host.call("http", json!({"url": "http://127.0.0.1:9/x"}));
    let written = operator.host.folder().read("toolcell.toml");
    let other = format!("{written}\n[components.good.tools.echo]\ndescription = \"Says it back.\"\n");
    operator.host.folder().save(Saving::RenamedOver, "toolcell.toml", &other);
    heard += &hears(&mut wire, &said("good is quarantined."));
    assert_eq!(heard.matches("\"say\":\"").count(), 3, "{heard}");
    operator.host.cancel(&id);
}
