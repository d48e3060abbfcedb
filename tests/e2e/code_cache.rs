//! Compiled code is kept from one start to the next, and is never trusted only because of its
//! place.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use toolcell_tests::{Command, Folder, TestHost};

const MANIFEST: &str = "version = 1\n[components.good]\nsource = \"components/good.wasm\"\n";

/// A manifest whose user has an empty home.
struct Home {
    folder: Folder,
}

impl Home {
    fn new() -> Self {
        Self { folder: Folder::with_manifest(MANIFEST) }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let at = |name: &str| self.folder.path().join(name).display().to_string();
        Command::in_folder(&self.folder, arguments)
            .with_variable("XDG_CACHE_HOME", &at("cache"))
            .with_variable("XDG_STATE_HOME", &at("state"))
    }

    fn compile(&self) -> String {
        self.command(&["compile"]).run().succeeded().to_owned()
    }

    fn code(&self) -> PathBuf {
        self.folder.path().join("cache/toolcell/code")
    }

    fn entry(&self) -> PathBuf {
        let entries: Vec<_> = fs::read_dir(self.code()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries[0].clone()
    }

    fn echoes(&self) {
        let finished = self.command(&["call", "echo", r#"{"text":"hi"}"#]).run();
        assert_eq!(finished.succeeded(), "hi\n");
    }
}

#[test]
fn a_component_is_compiled_at_the_first_start_only() {
    let home = Home::new();
    assert_eq!(home.compile(), "good compiled\n");
    assert_eq!(home.compile(), "good was compiled already\n");
    home.echoes();
}

#[test]
fn folder_entry_and_key_are_this_user_s_alone() {
    let home = Home::new();
    home.compile();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(home.code()), 0o700);
    assert_eq!(mode(home.entry()), 0o400);
    assert_eq!(mode(home.folder.path().join("state/toolcell/code-cache.key")), 0o600);
}

#[test]
fn an_entry_that_was_tampered_with_is_compiled_again_and_nobody_is_told() {
    let home = Home::new();
    home.compile();
    let untouched = fs::read(home.entry()).unwrap();
    for place in [0, untouched.len() / 3, untouched.len() / 2, untouched.len() - 1] {
        let mut bytes = untouched.clone();
        bytes[place] ^= 1;
        fs::set_permissions(home.entry(), fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(home.entry(), bytes).unwrap();
        home.echoes();
        assert_eq!(fs::read(home.entry()).unwrap(), untouched, "byte {place} was mended");
    }
}

#[test]
fn an_entry_that_was_cut_short_is_compiled_again() {
    let home = Home::new();
    home.compile();
    let entry = home.entry();
    let bytes = fs::read(&entry).unwrap();
    for left in [0, 31, 32, bytes.len() / 2] {
        fs::set_permissions(&entry, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&entry, &bytes[..left]).unwrap();
        assert_eq!(home.compile(), "good compiled\n", "{left} bytes left");
    }
}

#[test]
fn another_key_makes_every_entry_worthless() {
    let home = Home::new();
    home.compile();
    fs::remove_file(home.folder.path().join("state/toolcell/code-cache.key")).unwrap();
    assert_eq!(home.compile(), "good compiled\n");
}

#[test]
fn an_entry_that_is_no_file_or_larger_than_any_is_not_read() {
    let home = Home::new();
    home.compile();
    let entry = home.entry();
    // A FIFO that nobody ever opens at the other end.
    fs::remove_file(&entry).unwrap();
    make_fifo(&entry);
    assert_eq!(home.compile(), "good compiled\n");
    // Files of a gigabyte and of a terabyte, with no data.
    for bytes in [1 << 30, 1 << 40] {
        fs::set_permissions(&entry, fs::Permissions::from_mode(0o600)).unwrap();
        fs::OpenOptions::new().write(true).open(&entry).unwrap().set_len(bytes).unwrap();
        let began = Instant::now();
        assert_eq!(home.compile(), "good compiled\n");
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }
    home.echoes();
}

#[test]
fn a_key_that_is_no_file_is_said_so_and_the_tools_work() {
    let home = Home::new();
    home.compile();
    let key = home.folder.path().join("state/toolcell/code-cache.key");
    fs::remove_file(&key).unwrap();
    make_fifo(&key);
    assert_eq!(home.command(&["compile"]).run().succeeded(), "good compiled\n");
    home.echoes();
}

fn make_fifo(path: &std::path::Path) {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

#[test]
fn a_cache_that_others_can_write_to_is_not_used_and_the_tools_work() {
    let home = Home::new();
    home.compile();
    fs::set_permissions(home.code(), fs::Permissions::from_mode(0o777)).unwrap();
    let finished = home.command(&["compile"]).run();
    assert_eq!(finished.succeeded(), "good compiled\n");
    home.echoes();
}

#[test]
fn without_a_cache_nothing_is_kept() {
    let home = Home::new();
    assert_eq!(home.command(&["compile", "--no-code-cache"]).run().succeeded(), "good compiled\n");
    assert!(!home.code().exists());
}

#[test]
fn a_component_that_does_not_fit_the_pool_runs_all_the_same_and_that_is_said() {
    let manifest = "version = 1\n[components.wide]\nsource = \"components/wide_table.wasm\"\n\
                    [components.good]\nsource = \"components/good.wasm\"\n";
    let finished = Command::in_folder(&Folder::with_manifest(manifest), &["check", "--json"]).run();
    assert_eq!(finished.json()["ok"], json!(true));
    assert_eq!(finished.json()["problems"][0]["code"], "components::not_pooled");
    assert_eq!(finished.json()["problems"][0]["severity"], "warning");
    let mut host = TestHost::with_manifest(manifest);
    for _ in 0..3 {
        assert!(!host.call("run", json!({})).is_error());
    }
    host.still_works();
}
