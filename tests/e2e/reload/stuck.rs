//! Files that block whatever opens or reads them. The reload fails in time, names the file, and
//! later reloads still work. A permission that is taken away afterwards is gone at once.
//!
//! Promise: no file ends reloading.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use toolcell_tests::{Command, Finished, Folder, TestHost, manifest_of};

/// Longest time of a reload that a file blocks: several times the limit on one file's silence,
/// since the machine may be busy.
const FAILS_WITHIN: Duration = Duration::from_secs(60);

/// Exit code of the script if the user may not mount.
const MAY_NOT: i32 = 77;

/// A mount of one file, `file`, that hangs on request. Dropping this ends the mount and everything
/// that waits for it. Drop it before the host: a host's process cannot end while one of its threads
/// waits.
struct Mount {
    child: Child,
    orders: Option<ChildStdin>,
}

impl Mount {
    /// Mounts a copy of this file in this folder. If this user may not mount, says so on stderr and
    /// returns `None`.
    fn of(folder: &Path, file: &Path) -> Option<Self> {
        std::fs::create_dir_all(folder).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("harness/hung_mount.py");
        let mut child = std::process::Command::new("python3")
            .args([script.as_path(), folder, file])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let orders = child.stdin.take();
        if said != "mounted\n" {
            assert_eq!(child.wait().unwrap().code(), Some(MAY_NOT), "{said}");
            eprintln!("SKIPPED: a mount that hangs is not tried: {said}");
            return None;
        }
        Some(Self { child, orders })
    }

    fn order(&mut self, order: &str) {
        let orders = self.orders.as_mut().unwrap();
        writeln!(orders, "{order}").unwrap();
        orders.flush().unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}

fn reload(folder: &Folder) -> Finished {
    let begun = Instant::now();
    let finished = Command::in_folder(folder, &["reload"]).run();
    assert!(begun.elapsed() < FAILS_WITHIN, "it took {:?}", begun.elapsed());
    finished
}

/// The manifest of the fixture `good`, with a further component if `source` is not empty.
fn manifest(source: &str) -> String {
    let good = manifest_of(&["good"]);
    if source.is_empty() {
        good
    } else {
        format!("{good}[components.other]\nsource = \"{source}\"\nprefix = \"other_\"\n")
    }
}

/// True if the tools of the other component are served.
fn has_other(host: &mut TestHost) -> bool {
    host.list().iter().any(|tool| tool["name"].as_str().is_some_and(|name| name.starts_with("other_")))
}

/// Asserts that the host still reloads: it drops the tools of the other component.
fn still_reloads(host: &mut TestHost) {
    host.folder().write("toolcell.toml", manifest(""));
    let reloaded = reload(host.folder());
    assert_eq!(reloaded.code(), 0, "{reloaded:?}");
    assert_eq!(host.call("echo", json!({"text": "x"})).text(), "x");
    assert!(!has_other(host));
}

#[test]
fn a_file_of_the_kernel_that_has_nothing_to_say_ends_no_reloading() {
    let mut host = TestHost::serving(&["good"]);
    assert_eq!(host.call("echo", json!({"text": "x"})).text(), "x");
    // A user who may not read the file gets that error instead.
    host.folder().link("kmsg", "/proc/kmsg");
    host.folder().write("toolcell.toml", manifest("kmsg"));
    for _ in 0..3 {
        let refused = reload(host.folder());
        assert_eq!(refused.code(), 1, "{refused:?}");
        assert!(refused.stderr.contains("kmsg"), "{}", refused.stderr);
    }
    still_reloads(&mut host);
}

#[test]
fn pipes_in_the_place_of_any_file_that_is_read_end_no_reloading() {
    let mut host = TestHost::serving(&["good", "drawings", "reach_http"]);
    assert_eq!(host.call("echo", json!({"text": "x"})).text(), "x");
    let with = |name: &str| manifest_of(&["good", name]);
    let fifo = host.folder().path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let grants = format!("{}[components.reach_http.network]\nhttp = [\"https://example.com\"]\n", with("reach_http"));
    let secret = "KEY = { from = \"file:fifo\", header = \"X-Key\", for = \"https://example.com\" }";
    for (what, text) in [
        ("a component", manifest("fifo")),
        ("texts", format!("{}wit = \"fifo\"\n", with("drawings"))),
        ("certificates", format!("{grants}ca = [\"fifo\"]\n")),
        ("a secret", format!("{grants}[components.reach_http.secrets]\n{secret}\n")),
    ] {
        host.folder().write("toolcell.toml", text);
        let refused = reload(host.folder());
        assert_eq!(refused.code(), 1, "{what}: {refused:?}");
        assert!(refused.stderr.contains("not a regular file"), "{what}: {}", refused.stderr);
    }
    // The manifest itself may be such a file as well.
    let manifest = host.folder().path().join("toolcell.toml");
    std::fs::remove_file(&manifest).unwrap();
    std::fs::rename(&fifo, &manifest).unwrap();
    let refused = reload(host.folder());
    assert!(refused.code() == 1 && refused.stderr.contains("is not a regular file"), "{refused:?}");
    std::fs::remove_file(&manifest).unwrap();
    still_reloads(&mut host);
}

#[test]
fn a_mount_that_hangs_is_given_up_and_a_right_is_taken_away_all_the_same() {
    for order in ["hang reads", "hang"] {
        let mut host = TestHost::serving(&["good"]);
        let folder = host.folder().path().to_owned();
        let Some(mut mount) = Mount::of(&folder.join("mount"), &folder.join("components/good.wasm")) else { return };
        assert_eq!(host.call("echo", json!({"text": "x"})).text(), "x");
        host.folder().write("toolcell.toml", manifest("mount/file"));
        let served = reload(host.folder());
        assert_eq!(served.code(), 0, "{order}: {served:?}");
        assert!(has_other(&mut host), "{order}");

        mount.order(order);
        // Both times it is reported; the second time soon, since the host does not wait for the
        // file again.
        for _ in 0..2 {
            let refused = reload(host.folder());
            assert_eq!(refused.code(), 1, "{order}: {refused:?}");
            assert!(refused.stderr.contains("it does not answer"), "{order}: {}", refused.stderr);
        }
        assert_eq!(host.call("echo", json!({"text": "x"})).text(), "x", "{order}: calls go on");
        assert_eq!(host.call("other_echo", json!({"text": "y"})).text(), "y", "{order}: with what is served");

        // Saving the manifest is enough to drop the component that hangs, and a permission with it.
        let begun = Instant::now();
        host.folder().write("toolcell.toml", manifest(""));
        while has_other(&mut host) {
            assert!(begun.elapsed() < FAILS_WITHIN, "{order}: nothing was taken away");
        }
        let status = Command::in_folder(host.folder(), &["status", "--json"]).run();
        assert_eq!(status.code(), 0, "{order}: {status:?}");
        mount.order("go");
        still_reloads(&mut host);
        drop(mount);
        let _ = host.ends_leaving_its_folder();
    }
}
