//! Announcements of a changed list: who gets them, how often, and the changes that are not
//! announced. Both eras, on the raw wire.

use serde_json::{Value, json};
use toolcell_tests::{LEGACY_REVISIONS, LIST_CHANGED, Saving, TestHost};

use super::{TOOL, folder, manifest, names, serving, subscribe, version};

/// The notification for the subscription with this id.
fn for_subscription(id: &Value) -> Value {
    let params = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}});
    json!({"jsonrpc": "2.0", "method": LIST_CHANGED, "params": params})
}

/// Asserts that the list and the code are those of `versioned_c`, no longer those of `versioned_a`.
fn serves_the_other_list(host: &mut TestHost) {
    assert_eq!(host.call("extra", json!({})).text(), "c", "the first call after the notification meets the new code");
    assert_eq!(version(host), "c");
    assert_eq!(names(host), ["version", "extra"]);
    let gone = host.request("tools/call", json!({"name": "linger", "arguments": {}}));
    assert_eq!(gone["error"]["message"], "Unknown tool: linger");
}

#[test]
fn a_legacy_client_hears_of_another_list_once_and_meets_the_new_code() {
    for revision in LEGACY_REVISIONS {
        let mut host = serving("versioned_a", "");
        host.initialize(revision);
        assert_eq!((version(&mut host).as_str(), names(&mut host)), ("a", vec!["version".into(), "linger".into()]));
        host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
        assert_eq!(host.next_of(LIST_CHANGED), json!({"jsonrpc": "2.0", "method": LIST_CHANGED}), "{revision}");
        serves_the_other_list(&mut host);
        host.serves_generation(2);
        assert_eq!(host.list_changes(), 0, "{revision}: one notification is enough");
    }
}

#[test]
fn a_modern_client_hears_of_it_once_for_each_subscription_and_with_its_id() {
    let mut host = serving("versioned_a", "");
    let subscriptions = [subscribe(&mut host), subscribe(&mut host)];
    assert_eq!(version(&mut host), "a");
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    let heard = [host.next_of(LIST_CHANGED), host.next_of(LIST_CHANGED)];
    for id in &subscriptions {
        assert_eq!(heard.iter().filter(|frame| **frame == for_subscription(id)).count(), 1, "{heard:?}");
    }
    serves_the_other_list(&mut host);
    host.serves_generation(2);
    assert_eq!(host.list_changes(), 0);
}

#[test]
fn a_modern_client_without_a_subscription_hears_nothing_and_meets_the_new_code() {
    let mut host = serving("versioned_a", "");
    // A client that subscribed to something else, and one that ended its subscription, hear nothing
    // either.
    host.start("subscriptions/listen", json!({"notifications": {"promptsListChanged": true}}));
    let ended = subscribe(&mut host);
    host.cancel(&ended);
    assert_eq!(version(&mut host), "a");
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    host.serves_generation(2);
    serves_the_other_list(&mut host);
    assert_eq!(host.list_changes(), 0);
}

#[test]
fn a_legacy_client_that_is_not_ready_yet_hears_nothing() {
    let mut host = serving("versioned_a", "");
    let client = json!({"name": "toolcell-tests", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let id = host.start("initialize", params);
    host.reply_to(&id);
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    host.serves_generation(2);
    assert_eq!(host.list_changes(), 0, "the handshake is not over");
}

#[test]
fn new_code_behind_the_same_list_is_served_and_nobody_hears_of_it() {
    for legacy in [true, false] {
        let mut host = serving("versioned_a", "");
        if legacy {
            host.initialize("2025-11-25");
        } else {
            subscribe(&mut host);
        }
        let before = host.list();
        assert_eq!(version(&mut host), "a");
        host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
        host.serves_generation(2);
        assert_eq!((version(&mut host).as_str(), host.list()), ("b", before));
        assert_eq!(host.list_changes(), 0);
        host.will_say("generation 2: tool: new code; the list is the same");
        let status = host.status();
        assert_eq!(status["reloads"]["last"][0]["announced"], false, "{status:#}");
    }
}

#[test]
fn a_burst_of_saves_is_one_swap_and_one_notification() {
    let mut host = serving("versioned_a", "");
    host.initialize("2025-11-25");
    assert_eq!(version(&mut host), "a");
    host.is_done_with_its_start();
    // The whole burst happens between two checks of the host.
    host.pause();
    for round in 0..40 {
        let fixture = ["versioned_b", "versioned_a", "versioned_c"][round % 3];
        host.folder().save_fixture(Saving::ALL[round % 4], TOOL, fixture);
    }
    host.folder().save_fixture(Saving::InPlace, TOOL, "versioned_c");
    host.resume();
    host.next_of(LIST_CHANGED);
    serves_the_other_list(&mut host);
    assert_eq!(host.reload(), json!({"outcome": "unchanged"}), "none of the burst is left to do");
    let status = host.status();
    assert_eq!((&status["generation"], &status["reloads"]["replaced"]), (&json!(2), &json!(1)), "{status:#}");
    assert_eq!(host.list_changes(), 0);
}

#[test]
fn saving_the_same_bytes_again_is_no_swap() {
    let mut host = serving("versioned_a", "");
    host.initialize("2025-11-25");
    assert_eq!(version(&mut host), "a");
    for way in Saving::ALL {
        host.folder().save_fixture(way, TOOL, "versioned_a");
    }
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    host.next_of(LIST_CHANGED);
    host.serves_generation(2);
    let audit = host.audit();
    assert_eq!(audit.iter().filter(|record| record["event"] == "catalog.replaced").count(), 1, "{audit:#?}");
}

#[test]
fn a_cursor_of_an_earlier_list_is_refused_and_one_of_the_same_list_is_taken() {
    let folder = folder("versioned_a", "");
    folder.write("toolcell.toml", manifest("[server]\npage_size = 1\n"));
    let mut host = TestHost::in_folder(folder);
    let cursor = host.request("tools/list", json!({}))["result"]["nextCursor"].clone();
    assert!(cursor.is_string(), "{cursor}");
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
    host.serves_generation(2);
    let page = host.request("tools/list", json!({"cursor": cursor}));
    assert_eq!(page["result"]["tools"][0]["name"], "linger", "the list is the same: {page}");
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    host.serves_generation(3);
    let refused = host.request("tools/list", json!({"cursor": cursor}));
    assert_eq!(refused["error"]["code"], -32602);
    let text = "The cursor is stale: the list of tools has changed; list again without a cursor";
    assert_eq!(refused["error"]["message"], text);
}
