//! Files of components in sandbox processes: descriptors of what their mounts grant, counted in one
//! place, and nothing that stays. That mounts mean the same as elsewhere is tried in `grants/`.
//!
//! Promise: behind a wall only the mounts are reached.
//! Promise: folders are bounded behind walls too.
//! Promise: scratch space stays nowhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toolcell_tests::{Answer, Folder, TestHost};

use crate::walls::{kill, sandboxes, sealed};

/// Serves `good` and, with these tables for it, `reach_files`.
fn staged(tables: &str) -> Folder {
    let limits = "fuel = 1_000_000_000_000_000\ndeadline = \"1h\"\nmemory = \"64MiB\"";
    let folder = Folder::with_manifest(&format!(
        "version = 1\n[server]\nwalls = \"best\"\n[defaults.limits]\n{limits}\n\
         [components.good]\nsource = \"components/good.wasm\"\n\
         [components.one]\nsource = \"components/reach_files.wasm\"\n{tables}\n"
    ));
    for (path, text) in [("data/a.txt", "alpha"), ("out/c.txt", "gamma"), ("settings.json", "{}"), ("beside", "no")] {
        folder.write(path, text);
    }
    folder
}

fn serving(tables: &str) -> TestHost {
    TestHost::recording_in(staged(tables), &[])
}

fn came_to(answer: &Answer) -> Value {
    answer.structured().clone()
}

/// True if a process has a descriptor of this folder or of something in it; `None` where only root
/// may look.
fn holds(id: u32, folder: &Path) -> Option<bool> {
    let links = fs::read_dir(format!("/proc/{id}/fd")).ok()?;
    let mut places = links.filter_map(|link| fs::read_link(link.ok()?.path()).ok());
    Some(places.any(|place| place.starts_with(folder)))
}

/// Files of this name below a folder.
fn named(folder: &Path, name: &str) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let count = |entry: fs::DirEntry| usize::from(entry.file_name() == name) + named(&entry.path(), name);
    entries.flatten().map(count).sum()
}

/// Waits until this holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        assert!(began.elapsed() < toolcell_tests::patience(), "{what} does not come");
        std::thread::yield_now();
    }
}

#[test]
fn the_process_of_a_component_holds_the_folders_of_its_mounts_and_the_others_do_not() {
    let mut host = serving(
        "[components.one.filesystem]\n\"/data\" = { path = \"data\" }\n\
         \"/out\" = { path = \"out\", access = \"write\" }\n",
    );
    assert_eq!(came_to(&host.call("read", json!({"path": "/data/a.txt"}))), json!({"ok": "alpha"}));
    assert_eq!(came_to(&host.call("write", json!({"path": "/out/new", "bytes": "x"}))), json!({"ok": 1}));
    assert_eq!(host.folder().read("out/new"), "x");
    host.still_works();
    // Another may wait for its group. It holds nothing yet, and others may look into it.
    let all = sealed(host.process_id());
    assert!(all.len() >= 2, "one for each group: {all:?}");
    if !rustix::process::geteuid().is_root() {
        let hidden = all.iter().all(|id| holds(*id, Path::new("/")).is_none());
        assert!(hidden, "others of the same user cannot look into a process");
        return;
    }
    let root = host.folder().path().canonicalize().unwrap();
    // One that rested with much memory is gone.
    let with = |folder: &Path| all.iter().filter(|id| holds(**id, folder).unwrap_or(false)).collect::<Vec<_>>();
    let data = with(&root.join("data"));
    let out = with(&root.join("out"));
    assert_eq!((data.len(), &data), (1, &out), "a folder that is written to is counted in one process");
    // Its code is handed over as a file of the cache, or in memory.
    assert_eq!(with(&root), out, "no other process holds anything of the folder");
}

#[test]
fn calls_at_once_fill_a_mount_to_its_quota_and_one_process_writes() {
    let mut host =
        serving("[components.one.filesystem]\n\"/out\" = { path = \"out\", access = \"write\", quota = \"64KiB\" }\n");
    let fill = |name: usize| json!({"path": format!("/out/{name}"), "total": 64 << 10});
    let calls: Vec<Value> = (0..8).map(|name| host.start_call("fill", fill(name))).collect();
    let sum: u64 = calls.iter().map(|id| came_to(&host.answer_to(id))["ok"]["written"].as_u64().unwrap()).sum();
    assert!(sum > 0 && sum + 5 <= 64 << 10, "{sum} beside the five bytes that were there");
    assert_eq!(
        came_to(&host.call("write", json!({"path": "/out/more", "bytes": 8192})))["error"],
        "insufficient-space"
    );
}

#[test]
fn two_components_share_the_quota_of_one_folder() {
    let mount = "filesystem]\n\"/out\" = { path = \"out\", access = \"write\", quota = \"64KiB\" }\n";
    let mut host = serving(&format!(
        "[components.one.{mount}[components.two]\nsource = \"components/reach_files.wasm\"\nprefix = \"two_\"\n\
         [components.two.{mount}"
    ));
    let fill = json!({"path": "/out/first", "total": 60_000});
    assert_eq!(came_to(&host.call("fill", fill)), json!({"ok": {"written": 60_000, "stopped": null}}));
    let found = came_to(&host.call("two_fill", json!({"path": "/out/second", "total": 60_000})));
    assert_eq!(found["ok"]["stopped"], "insufficient-space", "{found}");
    assert!(found["ok"]["written"].as_u64().unwrap() <= (64 << 10) - 60_000);
    assert_eq!(came_to(&host.call("remove", json!({"path": "/out/first"}))), json!({"ok": null}));
    let found = came_to(&host.call("two_fill", json!({"path": "/out/third", "total": 50_000})));
    assert_eq!(found, json!({"ok": {"written": 50_000, "stopped": null}}), "what one gives back, the other has");
}

#[test]
fn folders_nested_deeply_within_a_quota_stop_nobody() {
    let mount = "filesystem]\n\"/out\" = { path = \"out\", access = \"write\", quota = \"64KiB\", files = 500 }\n";
    let mut host = serving(&format!(
        "[components.one.{mount}[components.two]\nsource = \"components/reach_files.wasm\"\nprefix = \"two_\"\n\
         [components.two.{mount}"
    ));
    let nested = |depth: usize| format!("/out/{}", vec!["d"; depth].join("/"));
    let steps: Vec<Value> = (1..=100).map(|depth| json!({"do": "mkdir", "path": nested(depth)})).collect();
    let made = came_to(&host.call("steps", json!({"steps": steps})));
    assert_eq!(made, json!({"ok": vec![json!({"ok": null}); 100]}));
    let answers = |host: &mut TestHost| {
        for round in 0..20 {
            for tool in ["write", "two_write"] {
                let written = host.call(tool, json!({"path": format!("{}/file", nested(100)), "bytes": "x"}));
                assert_eq!(came_to(&written), json!({"ok": 1}), "{tool} {round}");
            }
        }
        host.still_works();
    };
    answers(&mut host);
    // The next process counts what is there before anything else.
    let mut host = TestHost::recording_in(host.ends_leaving_its_folder(), &[]);
    answers(&mut host);
}

#[test]
fn scratch_space_is_gone_with_its_call_and_with_a_process_that_is_killed() {
    let folder = staged("[components.one.filesystem]\n\"/tmp\" = { scratch = \"1GiB\" }\n");
    folder.make("temporary");
    let temporary = folder.path().join("temporary");
    let place = temporary.to_str().unwrap().to_owned();
    let mut host = TestHost::recording_in(folder, &[("TMPDIR", &place)]);
    assert_eq!(came_to(&host.call("write", json!({"path": "/tmp/ended", "bytes": "x"}))), json!({"ok": 1}));
    until("the end of its scratch space", || named(&temporary, "ended") == 0);
    let running = host.start_call("fill", json!({"path": "/tmp/killed", "total": 1 << 30, "block": 1}));
    until("the file of the call", || named(&temporary, "killed") == 1);
    sandboxes(&host).into_iter().for_each(kill);
    assert!(host.answer_to(&running).error_text().starts_with("the sandbox was ended: "));
    until("the end of its scratch space", || named(&temporary, "killed") == 0);
    assert_eq!(came_to(&host.call("list", json!({"path": "/tmp"}))), json!({"ok": []}));
    // A host that dies leaves it to the next one.
    let _ = host.start_call("fill", json!({"path": "/tmp/left", "total": 1 << 30, "block": 1}));
    until("the file of the call", || named(&temporary, "left") == 1);
    let folder = host.is_killed_leaving_its_folder();
    let mut host = TestHost::recording_in(folder, &[("TMPDIR", &place)]);
    assert_eq!(came_to(&host.call("list", json!({"path": "/tmp"}))), json!({"ok": []}));
    until("the end of what was left", || named(&temporary, "left") == 0);
}

#[test]
fn a_single_file_that_is_replaced_is_read_as_it_is_now() {
    let mut host = serving(
        "[components.one.filesystem]\n\"/etc/settings.json\" = { path = \"settings.json\" }\n\
         \"/etc/state.json\" = { path = \"out/c.txt\", access = \"write\" }\n",
    );
    host.still_works();
    let mut served = BTreeSet::new();
    let mut serves = |host: &TestHost| served.extend(sealed(host.process_id()));
    let read = json!({"path": "/etc/settings.json"});
    assert_eq!(came_to(&host.call("read", read.clone())), json!({"ok": "{}"}));
    serves(&host);
    host.folder().write("next.json", "{\"n\":1}");
    let at = |name: &str| host.folder().path().join(name);
    fs::rename(at("next.json"), at("settings.json")).unwrap();
    assert_eq!(came_to(&host.call("read", read.clone())), json!({"ok": "{\"n\":1}"}));
    serves(&host);
    fs::remove_file(host.folder().path().join("settings.json")).unwrap();
    assert_eq!(came_to(&host.call("read", read.clone())), json!({"error": "no-entry"}));
    serves(&host);
    host.folder().write("settings.json", "again");
    assert_eq!(came_to(&host.call("read", read)), json!({"ok": "again"}));
    serves(&host);
    assert_eq!(came_to(&host.call("write", json!({"path": "/etc/state.json", "bytes": "1"}))), json!({"ok": 1}));
    assert_eq!(host.folder().read("out/c.txt"), "1");
    let beside = came_to(&host.call("read", json!({"mount": "/etc", "path": "beside"})));
    assert_eq!(beside, json!({"error": "no-entry"}));
    assert!(served.len() > 2, "a process does not open a file anew: {served:?}");
    // Left are that of `good` and that which holds the file as it is now.
    let left = || sandboxes(&host).into_iter().filter(|id| served.contains(id)).count();
    until("the end of the processes that held the earlier files", || left() <= 2);
}

#[test]
fn what_a_read_mount_denies_is_recorded_as_elsewhere_whatever_the_name() {
    for walls in ["best", "none"] {
        let folder = staged("[components.one.filesystem]\n\"/data\" = { path = \"data\" }\n");
        let manifest = folder.read("toolcell.toml").replace("\"best\"", &format!("{walls:?}"));
        folder.write("toolcell.toml", manifest);
        let mut host = TestHost::recording_in(folder, &[]);
        for name in ["plain", " spaces ", "a: b", "back\\slash", "write /data/x"] {
            let answer = host.call("write", json!({"path": format!("/data/{name}"), "bytes": "x"}));
            assert_eq!(came_to(&answer), json!({"error": "read-only"}), "{name:?}");
            let asked = format!("create /data/{name}");
            let denied = |record: &Value| record["event"] == "call.denied" && record["asked"] == asked.as_str();
            let record = host.recorded(name, denied);
            assert_eq!(record["allow"], "\"/data\" = { path = \"data\", access = \"write\" }", "{record}");
            assert_eq!(record["section"], "components.one.filesystem");
        }
    }
}
