//! Every way of saving a file is noticed, with every way of watching, and none causes an error that
//! anybody sees.

use std::fs::OpenOptions;
use std::io::Write;

use serde_json::{Value, json};
use toolcell_tests::{Folder, LIST_CHANGED, Readings, Saving, TestHost, fixture_bytes};

use super::{TOOL, folder, manifest, names, version};

/// Asserts that no error is visible: neither in the log nor in the status or the audit.
fn nobody_saw_an_error(host: &TestHost) {
    let status = host.status();
    let said = host.said();
    assert_eq!((&status["failed"], &status["reloads"]["refused"]), (&Value::Null, &json!(0)), "{status:#}");
    assert!(!said.contains("not reloaded"), "{said}");
    assert!(host.audit().iter().all(|record| record["event"] != "catalog.refused"));
}

/// The component's file for the way of saving with this number.
fn file_of(way: usize) -> String {
    format!("components/way{way}.wasm")
}

/// A folder with a component for each way of saving, all at their first version.
fn folder_of_ways() -> Folder {
    let component = |way| format!("[components.way{way}]\nsource = \"{}\"\nprefix = \"way{way}_\"\n", file_of(way));
    let components: String = (0..Saving::ALL.len()).map(component).collect();
    let folder = Folder::with_manifest(&format!("version = 1\n{components}"));
    (0..Saving::ALL.len()).for_each(|way| folder.write(&file_of(way), fixture_bytes("versioned_a")));
    folder
}

/// The version that answers, for each way of saving.
fn versions(host: &mut TestHost) -> Vec<String> {
    let version = |way| host.call(&format!("way{way}_version"), json!({})).text().to_owned();
    (0..Saving::ALL.len()).map(version).collect()
}

#[test]
fn each_way_of_saving_a_component_is_seen_by_each_way_of_watching() {
    for watch in ["native", "poll", "auto"] {
        let mut host = TestHost::recording_with(folder_of_ways(), &["--watch", watch]);
        assert_eq!(versions(&mut host), ["a"; Saving::ALL.len()]);
        for (number, way) in Saving::ALL.into_iter().enumerate() {
            host.folder().save_fixture(way, &file_of(number), "versioned_b");
        }
        let digest_before = host.audit()[1]["digest"].clone();
        host.status_when("saved in every way", |status| {
            status["components"].as_array().unwrap().iter().all(|component| component["digest"] != digest_before)
        });
        assert_eq!(versions(&mut host), ["b"; Saving::ALL.len()], "{watch}");
        nobody_saw_an_error(&host);
    }
}

#[test]
fn each_way_of_saving_the_manifest_is_seen_and_seen_again() {
    for (watch, ways) in
        [("native", &Saving::ALL[..]), ("poll", &[Saving::InPlace, Saving::RenamedOver, Saving::SymlinkSwapped][..])]
    {
        let mut host = TestHost::recording_with(folder("versioned_a", ""), &["--watch", watch]);
        host.initialize("2025-11-25");
        for (number, way) in ways.iter().enumerate() {
            host.folder().save(*way, "toolcell.toml", manifest(&format!("prefix = \"p{number}_\"\n")));
            host.next_of(LIST_CHANGED);
            assert_eq!(names(&mut host), [format!("p{number}_version"), format!("p{number}_linger")], "{way:?}");
        }
        host.serves_generation(1 + ways.len() as u64);
        assert_eq!(host.list_changes(), 0);
        nobody_saw_an_error(&host);
    }
}

#[test]
fn a_file_that_is_kept_open_is_not_looked_at_before_it_is_closed() {
    let mut host = TestHost::recording_with(folder("versioned_a", ""), &["--watch", "native"]);
    assert_eq!(version(&mut host), "a");
    // The debounce of the earlier change is over, so no check of it is still to come.
    assert_eq!(host.reload(), json!({"outcome": "unchanged"}));
    host.folder().save(Saving::RenamedOver, "toolcell.toml", manifest("[components.tool.env]\nUNITS = \"metric\"\n"));
    host.serves_generation(2);
    let path = host.folder().path().join(TOOL);
    let next = fixture_bytes("versioned_b");
    let (first, rest) = next.split_at(next.len() / 2);
    let mut file = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    let readings = Readings::of(&path);
    file.write_all(first).unwrap();
    file.sync_all().unwrap();
    for _ in 0..100 {
        assert_eq!(version(&mut host), "a");
    }
    assert_eq!(readings.count(), 0, "it is half written");
    file.write_all(rest).unwrap();
    drop(file);
    host.serves_generation(3);
    assert_eq!(version(&mut host), "b");
    nobody_saw_an_error(&host);
}

#[test]
fn a_file_that_grows_piece_by_piece_is_looked_at_until_it_is_whole() {
    for watch in ["native", "poll"] {
        let mut host = TestHost::recording_with(folder("versioned_a", ""), &["--watch", watch]);
        assert_eq!(version(&mut host), "a");
        let path = host.folder().path().join(TOOL);
        let next = fixture_bytes("versioned_b");
        std::fs::write(&path, b"").unwrap();
        let readings = Readings::of(&path);
        for piece in next.chunks(next.len().div_ceil(4)) {
            OpenOptions::new().append(true).open(&path).unwrap().write_all(piece).unwrap();
            // Each time the host read it, the file was incomplete. It grows before the host reads
            // it again.
            readings.wait();
            assert!(["a", "b"].contains(&version(&mut host).as_str()));
        }
        host.serves_generation(2);
        assert_eq!(version(&mut host), "b");
        nobody_saw_an_error(&host);
    }
}

/// Writes one version in the layout of a config map of Kubernetes: files in a folder of their own,
/// which the link `..data` leads to.
fn put_config_map(folder: &Folder, number: u64, fixture: &str) {
    folder.write(&format!("..2026_{number}/tool.wasm"), fixture_bytes(fixture));
    folder.write(&format!("..2026_{number}/toolcell.toml"), manifest(&format!("prefix = \"v{number}_\"\n")));
    folder.link("..data_tmp", format!("..2026_{number}"));
    let path = |relative| folder.path().join(relative);
    std::fs::rename(path("..data_tmp"), path("..data")).unwrap();
}

#[test]
fn a_config_map_that_is_swapped_by_its_link_is_seen() {
    for watch in ["native", "poll"] {
        let folder = folder("versioned_a", "");
        put_config_map(&folder, 1, "versioned_a");
        for (file, says) in [(TOOL, "../..data/tool.wasm"), ("toolcell.toml", "..data/toolcell.toml")] {
            std::fs::remove_file(folder.path().join(file)).unwrap();
            folder.link(file, says);
        }
        let mut host = TestHost::recording_with(folder, &["--watch", watch]);
        host.initialize("2025-11-25");
        assert_eq!(host.call("v1_version", json!({})).text(), "a");
        for (number, fixture, answer) in [(2, "versioned_b", "b"), (3, "versioned_c", "c")] {
            put_config_map(host.folder(), number, fixture);
            std::fs::remove_dir_all(host.folder().path().join(format!("..2026_{}", number - 1))).unwrap();
            host.next_of(LIST_CHANGED);
            host.serves_generation(number);
            assert_eq!(host.call(&format!("v{number}_version"), json!({})).text(), answer, "{watch}");
        }
        assert_eq!(host.list_changes(), 0, "the manifest and the component came together");
        nobody_saw_an_error(&host);
    }
}

#[test]
fn a_folder_that_is_put_in_place_of_another_is_seen() {
    let mut host = TestHost::recording_with(folder("versioned_a", ""), &["--watch", "native"]);
    assert_eq!(version(&mut host), "a");
    let path = |relative| host.folder().path().join(relative);
    let served = path("components");
    let old = path("components.old");
    let next = path("components.next");
    host.folder().write("components.next/tool.wasm", fixture_bytes("versioned_b"));
    std::fs::rename(&served, &old).unwrap();
    std::fs::rename(&next, &served).unwrap();
    host.serves_generation(2);
    assert_eq!(version(&mut host), "b");
    // From now on the new folder is watched.
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    host.serves_generation(3);
    assert_eq!(version(&mut host), "c");
}

#[test]
fn unwatched_files_are_looked_at_when_somebody_says_so() {
    let mut host = TestHost::recording_with(folder("versioned_a", ""), &["--watch", "off"]);
    assert_eq!(version(&mut host), "a");
    assert_eq!(host.reload(), json!({"outcome": "unchanged"}));
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_b");
    assert_eq!(version(&mut host), "a");
    host.hang_up();
    host.serves_generation(2);
    assert_eq!(version(&mut host), "b");
    host.folder().save_fixture(Saving::RenamedOver, TOOL, "versioned_c");
    assert_eq!(version(&mut host), "b");
    let replaced = host.reload();
    assert_eq!((&replaced["outcome"], &replaced["generation"]), (&json!("replaced"), &json!(3)), "{replaced:#}");
    assert_eq!(version(&mut host), "c", "the answer to `reload` comes after the swap");
    let audit = host.audit();
    let triggers: Vec<&Value> =
        audit.iter().filter(|record| record["event"] == "catalog.replaced").map(|record| &record["trigger"]).collect();
    assert_eq!(triggers, ["hangup", "asked"]);
    nobody_saw_an_error(&host);
}
