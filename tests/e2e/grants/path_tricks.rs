//! A hostile guest spells some hundred paths out of its mount, with every operation. Nothing
//! outside is seen or changed.
//!
//! Promise: no path leads out of a mount.

use serde_json::{Value, json};
use toolcell_tests::{Folder, TestHost};

use super::{came_to, folder};

const FIXTURE: &str = "path_tricks";

/// Number of paths that the guest tries at least. It tried some 700 when this was written.
const PATHS_MIN: u64 = 400;

/// A folder `data` to mount, full of symlinks that lead out, and the files next to it that must
/// stay out of reach.
fn staged(access: &str) -> Folder {
    let tables = format!(
        "[{{c}}.filesystem]\n\"/data\" = {{ path = \"data\", access = \"{access}\" }}\n\n[{{c}}.limits]\nfuel = 20_000_000_000\ndeadline = \"60s\"\noutput = \"8MiB\"\n"
    );
    let staged = folder(FIXTURE, &tables);
    for (path, text) in [
        ("data/file", "a file"),
        ("data/spare", "to be moved"),
        ("data/sub/deep/leaf", "a leaf"),
        ("outside/secret.txt", "the secret"),
        ("outside/sub/more.txt", "the secret"),
        ("secret.txt", "the secret"),
    ] {
        staged.write(path, text);
    }
    for (link, says) in [
        ("data/up", ".."),
        ("data/root", "/"),
        ("data/chain", "up"),
        ("data/ring", "ring"),
        ("data/sub/up", "../.."),
        ("data/proc", "/proc/self/root"),
        ("data/self", "."),
    ] {
        staged.link(link, says);
    }
    staged.link("data/absolute", staged.path().join("outside"));
    staged
}

fn tried(access: &str) -> (TestHost, Value) {
    let staged = staged(access);
    let secret = staged.path().join("outside/secret.txt").to_string_lossy().into_owned();
    let manifest = staged.read("toolcell.toml");
    let outside = staged.tree("outside");
    let beside = staged.read("secret.txt");
    let mut host = TestHost::recording_in(staged, &[]);
    let found =
        came_to(&host.call("path_tricks", json!({"mount": "/data", "outside": "outside/secret.txt", "host": secret})))
            .unwrap();
    assert!(found["paths"].as_u64().unwrap() >= PATHS_MIN, "{}", found["paths"]);
    assert!(found["tried"].as_u64().unwrap() >= PATHS_MIN * 10, "{}", found["tried"]);
    for found in found["went_well"].as_array().unwrap() {
        let text = found.to_string();
        for told in ["the secret", "root:", "toolcell.toml", "more.txt", "\"etc\"", "\"outside\""] {
            assert!(!found["found"].to_string().contains(told), "{told:?} was found: {text}");
        }
    }
    assert_eq!(host.folder().tree("outside"), outside);
    assert_eq!(host.folder().read("secret.txt"), beside);
    assert_eq!(host.folder().read("toolcell.toml"), manifest);
    let made =
        std::fs::read_dir(host.folder().path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut made: Vec<String> = made.filter(|name| name != "audit.jsonl").collect();
    made.sort();
    assert_eq!(made, ["components", "data", "outside", "secret.txt", "toolcell.toml"]);
    host.still_works();
    (host, found)
}

#[test]
fn no_path_leads_out_of_a_mount_that_is_written() {
    let (host, found) = tried("write");
    // The guest may do as it likes within its mount. The tricks would prove nothing if all of them
    // failed.
    assert!(!found["went_well"].as_array().unwrap().is_empty());
    let links = host.folder().tree("data").into_iter().filter(|(_, held)| held.starts_with("says ")).count();
    assert!(links >= 8, "the planted links are gone, so that they were not tried");
}

#[test]
fn no_path_leads_out_of_a_mount_that_is_read() {
    let before = staged("read").tree("data").len();
    let (host, _) = tried("read");
    assert_eq!(host.folder().tree("data").len(), before, "something was made, or removed");
    assert_eq!(host.folder().read("data/file"), "a file");
}
