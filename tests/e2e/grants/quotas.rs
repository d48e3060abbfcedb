//! Quotas of writable mounts: bytes and files, counted while writing, across calls, in every way a
//! file can grow.
//!
//! Promise: files are bounded.

use serde_json::{Value, json};
use toolcell_tests::{Folder, TestHost};

use super::{assert_refused, came_to, folder};

const FIXTURE: &str = "reach_files";
const QUOTA: u64 = 64 * 1024;

const TABLES: &str = r#"
[{c}.filesystem]
"/out" = { path = "out", access = "write", quota = "64KiB", files = 5 }
"/tmp" = { scratch = "64KiB", files = 5 }
"#;

fn staged() -> Folder {
    let folder = folder(FIXTURE, TABLES);
    folder.make("out");
    folder
}

fn serving() -> TestHost {
    TestHost::recording_in(staged(), &[])
}

fn held(host: &TestHost) -> u64 {
    let sizes = host.folder().tree("out").into_iter().map(|(path, _)| std::fs::symlink_metadata(path).unwrap());
    sizes.filter(std::fs::Metadata::is_file).map(|about| about.len()).sum()
}

fn filled(host: &mut TestHost, path: &str, total: u64) -> Value {
    came_to(&host.call("fill", json!({"path": path, "total": total}))).unwrap()
}

#[test]
fn a_mount_takes_exactly_its_quota_and_the_call_goes_on() {
    for place in ["/out", "/tmp"] {
        let mut host = serving();
        let steps = json!({"steps": [
            {"do": "fill", "path": format!("{place}/full"), "total": QUOTA},
            {"do": "write", "path": format!("{place}/full"), "bytes": 1, "append": true},
            {"do": "stat", "path": format!("{place}/full")},
            {"do": "set_size", "path": format!("{place}/full"), "size": 10},
            {"do": "write", "path": format!("{place}/full"), "bytes": 5, "append": true},
        ]});
        let found = came_to(&host.call("steps", steps)).unwrap();
        assert_eq!(found[0], json!({"ok": {"written": QUOTA, "stopped": null}}), "{place}");
        assert_eq!(found[1], json!({"error": "insufficient-space"}), "{place}");
        assert_eq!(found[2]["ok"]["size"], QUOTA, "{place}");
        assert_eq!((&found[3], &found[4]), (&json!({"ok": null}), &json!({"ok": 5})), "{place}");
        host.still_works();
    }
}

#[test]
fn past_the_quota_writing_stops_with_no_space_and_nothing_more_lands_on_the_disk() {
    let mut host = serving();
    let found = filled(&mut host, "/out/big", 10 * QUOTA);
    assert_eq!(found["stopped"], "insufficient-space");
    assert!(found["written"].as_u64().unwrap() <= QUOTA, "{found}");
    assert!(held(&host) <= QUOTA);
    // The next call finds the mount just as full.
    assert_eq!(
        came_to(&host.call("write", json!({"path": "/out/more", "bytes": 8192}))),
        Err("insufficient-space".to_owned())
    );
    host.still_works();
}

#[test]
fn every_way_to_grow_counts() {
    let ways: [(&str, Value); 6] = [
        ("write", json!({"path": "/out/x", "bytes": QUOTA + 1})),
        ("write_stream", json!({"path": "/out/x", "bytes": QUOTA + 1})),
        ("zeroes", json!({"path": "/out/x", "bytes": QUOTA + 1})),
        ("set_size", json!({"path": "/out/x", "size": QUOTA + 1})),
        ("set_size", json!({"path": "/out/x", "size": 1_u64 << 40})),
        ("write", json!({"path": "/out/x", "bytes": "x", "at": QUOTA})),
    ];
    for (tool, arguments) in ways {
        let mut host = serving();
        assert_eq!(
            came_to(&host.call(tool, arguments.clone())),
            Err("insufficient-space".to_owned()),
            "{tool} {arguments}"
        );
        assert!(held(&host) <= QUOTA, "{tool} {arguments}: {}", held(&host));
    }
}

#[test]
fn what_is_removed_or_cut_gives_its_room_back() {
    let mut host = serving();
    for round in 0..3 {
        assert_eq!(filled(&mut host, "/out/one", QUOTA)["stopped"], Value::Null, "{round}");
        assert_eq!(came_to(&host.call("remove", json!({"path": "/out/one"}))), Ok(Value::Null));
        assert_eq!(filled(&mut host, "/out/two", QUOTA)["stopped"], Value::Null, "{round}");
        assert_eq!(came_to(&host.call("set_size", json!({"path": "/out/two", "size": 0}))), Ok(Value::Null));
    }
}

#[test]
fn what_another_program_put_there_counts_as_well() {
    let folder = staged();
    folder.write("out/theirs", vec![b't'; 40 * 1024]);
    let mut host = TestHost::recording_in(folder, &[]);
    assert_eq!(filled(&mut host, "/out/ours", QUOTA)["stopped"], "insufficient-space");
    assert!(held(&host) <= QUOTA, "{}", held(&host));
}

#[test]
fn calls_at_once_share_one_quota() {
    let mut host = serving();
    let calls: Vec<Value> =
        (0..4).map(|call| host.start_call("fill", json!({"path": format!("/out/{call}"), "total": QUOTA}))).collect();
    let written: u64 = calls.iter().map(|id| came_to(&host.answer_to(id)).unwrap()["written"].as_u64().unwrap()).sum();
    assert!(written <= QUOTA, "{written}");
    assert_eq!(held(&host), written);
}

#[test]
fn files_folders_and_links_are_counted() {
    for place in ["/out", "/tmp"] {
        let mut host = serving();
        let found = came_to(&host.call("fill_files", json!({"path": place, "count": 50}))).unwrap();
        assert_eq!(found, json!({"made": 5, "stopped": "insufficient-space"}), "{place}");
    }
    let ways = [
        ("mkdir", json!({"path": "/out/folder"})),
        ("symlink", json!({"path": "file-0", "to": "/out/symlink"})),
        ("link", json!({"path": "/out/file-0", "to": "/out/hard"})),
        ("write", json!({"path": "/out/one-more", "bytes": ""})),
    ];
    let mut host = serving();
    assert_eq!(came_to(&host.call("fill_files", json!({"path": "/out", "count": 5}))).unwrap()["stopped"], Value::Null);
    for (tool, arguments) in ways {
        assert_eq!(came_to(&host.call(tool, arguments)), Err("insufficient-space".to_owned()), "{tool}");
    }
    assert_eq!(came_to(&host.call("remove", json!({"path": "/out/file-0"}))), Ok(Value::Null));
    assert_eq!(came_to(&host.call("mkdir", json!({"path": "/out/folder"}))), Ok(Value::Null));
}

#[test]
fn a_quota_that_cannot_be_is_a_load_error() {
    for (line, word) in [
        ("\"/x\" = { path = \"components\", access = \"write\", quota = \"0\" }", "quota"),
        ("\"/x\" = { path = \"components\", access = \"write\", quota = \"lots\" }", "lots"),
        ("\"/x\" = { path = \"components\", access = \"write\", files = -1 }", "files"),
        ("\"/x\" = { scratch = \"1MiB\", access = \"read\" }", "access"),
        ("\"/x\" = { scratch = \"1MiB\", path = \"components\" }", "path"),
    ] {
        assert_refused(&folder(FIXTURE, &format!("[{{c}}.filesystem]\n{line}\n")), &[word]);
    }
}
