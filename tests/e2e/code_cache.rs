//! Compiled code is kept from one start to the next, and is never trusted only because of its
//! place.
//!
//! Promise: compiled code is the host's own.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use toolcell_tests::{Command, Folder, TestHost, fixture_bytes};

const MANIFEST: &str = "version = 1\n[components.good]\nsource = \"components/good.wasm\"\n";

/// A manifest whose component a test writes.
const EDITED: &str = "version = 1\n[components.tool]\nsource = \"tool.wasm\"\n";

/// A table with this word for walls.
fn server(walls: &str) -> String {
    format!("[server]\nwalls = \"{walls}\"\n")
}

/// A manifest whose user has an empty home.
struct Home {
    folder: Folder,
}

impl Home {
    fn new() -> Self {
        Self::with_manifest(MANIFEST)
    }

    fn with_manifest(manifest: &str) -> Self {
        Self { folder: Folder::with_manifest(manifest) }
    }

    /// Compiles these bytes as the component.
    fn compile_edited(&self, bytes: impl AsRef<[u8]>) {
        self.folder.write("tool.wasm", bytes);
        assert_eq!(self.compile(), "tool compiled\n");
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

    /// The codes of all that `check` finds.
    fn problems(&self) -> Vec<String> {
        let found = self.command(&["check", "--json"]).run().json();
        let code = |problem: &serde_json::Value| problem["code"].as_str().unwrap().to_owned();
        found["problems"].as_array().unwrap().iter().map(code).collect()
    }

    /// The files in the cache with this end.
    fn kept(&self, end: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.code()).into_iter().flatten().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.to_string_lossy().ends_with(end)).collect()
    }

    /// The only compiled component.
    fn entry(&self) -> PathBuf {
        let mut entries = self.kept(".cwasm");
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries.remove(0)
    }

    /// The keys of the functions that are kept.
    fn functions(&self) -> HashSet<Vec<u8>> {
        let [path] = self.kept(".made").try_into().unwrap();
        let bytes = fs::read(path).unwrap();
        // The index lies before 16 bytes of the file's end, and the MAC behind it.
        let bytes = &bytes[..bytes.len() - 32];
        let (rest, end) = bytes.split_at(bytes.len() - 16);
        let number = usize::try_from(u64::from_le_bytes(end[..8].try_into().unwrap())).unwrap();
        rest[rest.len() - number * 44..].chunks(44).map(|place| place[..32].to_vec()).collect()
    }

    /// The only component's code, without its MAC.
    fn machine_code(&self) -> Vec<u8> {
        let bytes = fs::read(self.entry()).unwrap();
        bytes[..bytes.len() - 32].to_vec()
    }

    fn forget_components(&self) {
        self.kept(".cwasm").iter().for_each(|path| fs::remove_file(path).unwrap());
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
    home.kept(".made").into_iter().for_each(|path| assert_eq!(mode(path), 0o400));
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
    let finished = home.command(&["compile"]).run();
    assert_eq!((finished.code(), finished.stdout.as_str()), (3, "good compiled\n"), "nothing is kept");
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
    assert_eq!((finished.code(), finished.stdout.as_str()), (3, "good compiled\n"), "nothing is kept");
    home.echoes();
}

#[test]
fn without_a_cache_nothing_is_kept() {
    let home = Home::new();
    assert_eq!(home.command(&["compile", "--no-code-cache"]).run().succeeded(), "good compiled\n");
    assert!(!home.code().exists());
}

#[test]
fn an_edited_component_compiles_only_what_changed_and_its_code_is_the_same() {
    let [edited, alone] = [(); 2].map(|()| Home::with_manifest(EDITED));
    edited.compile_edited(fixture_bytes("versioned_a"));
    let whole = edited.functions();
    edited.forget_components();
    edited.compile_edited(fixture_bytes("versioned_c"));
    let more = edited.functions().difference(&whole).count();
    // Some are compiled again that did not change, as Cranelift's keys have chance in them.
    assert!((1..whole.len() / 2).contains(&more), "{}, then {more} more", whole.len());
    alone.compile_edited(fixture_bytes("versioned_c"));
    assert!(edited.machine_code() == alone.machine_code(), "found or compiled, the code is the same");
    let version = edited.command(&["call", "version"]).run();
    assert_eq!(version.succeeded(), alone.command(&["call", "version"]).run().succeeded());
}

#[test]
fn functions_that_were_tampered_with_are_compiled_again() {
    for walls in ["none", "best"] {
        tampers_with_functions(&Home::with_manifest(&format!("{MANIFEST}{}", server(walls))));
    }
}

fn tampers_with_functions(home: &Home) {
    home.compile();
    let untouched = home.machine_code();
    assert!(!home.kept(".made").is_empty(), "no functions are kept");
    for place in [0, 100, 4_000, 20_000] {
        home.forget_components();
        for path in home.kept(".made") {
            let mut bytes = fs::read(&path).unwrap();
            for byte in bytes.iter_mut().skip(place).step_by(997) {
                *byte ^= 1;
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            fs::write(&path, bytes).unwrap();
        }
        assert_eq!(home.compile(), "good compiled\n");
        assert!(home.machine_code() == untouched, "from byte {place} on");
    }
    home.echoes();
}

#[test]
fn facts_and_lists_are_kept_and_mended_where_they_were_tampered_with() {
    for walls in ["none", "best"] {
        let home = Home::with_manifest(&format!("{MANIFEST}{}", server(walls)));
        home.compile();
        let told = |begin: &str| -> Vec<PathBuf> {
            let begins = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(begin);
            home.kept(".facts").into_iter().filter(begins).collect()
        };
        for begin in ["engine-", "facts-", "list-"] {
            let [path] = told(begin).try_into().unwrap();
            let untouched = fs::read(&path).unwrap();
            for place in [0, untouched.len() / 2, untouched.len() - 1] {
                let mut bytes = untouched.clone();
                bytes[place] ^= 1;
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
                fs::write(&path, bytes).unwrap();
                home.echoes();
                assert_eq!(fs::read(&path).unwrap(), untouched, "{walls}: byte {place} of {begin} was mended");
            }
        }
    }
}

#[test]
fn code_is_found_again_where_the_engine_that_it_is_for_was_forgotten() {
    for walls in ["none", "best"] {
        let home = Home::with_manifest(&format!("{MANIFEST}{}", server(walls)));
        home.compile();
        let names_engine = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("engine-");
        let engines: Vec<PathBuf> = home.kept(".facts").into_iter().filter(names_engine).collect();
        assert_eq!(engines.len(), 1, "{walls}: {engines:?}");
        fs::remove_file(&engines[0]).unwrap();
        assert_eq!(home.compile(), "good was compiled already\n", "{walls}");
        assert!(engines[0].exists(), "{walls}: the process that was to compile said its name");
    }
}

/// A component that takes long to compile, as far as the host knows: its size says so.
fn large() -> Vec<u8> {
    let mut bytes = fixture_bytes("good");
    // A custom section of 512 KiB, with an empty name.
    bytes.extend([0, 0x80, 0x80, 0x20]);
    bytes.extend(vec![0; 512 << 10]);
    bytes
}

#[test]
fn errors_that_need_no_compiler_are_told_before_a_long_compilation() {
    let wrong = [
        ("[components.tool.secrets]\nKEY = { from = \"file:key\", expose = true }\n", &["grants::value"][..]),
        ("[components.tool.filesystem]\n\"/data\" = { path = \"nowhere\", access = \"read\" }\n", &["grants::host"]),
        ("[components.other]\nsource = \"missing.wasm\"\n", &["components::source"]),
    ];
    let edited = EDITED;
    let home = Home::with_manifest(edited);
    home.folder.write("tool.wasm", large());
    for (more, found) in wrong {
        home.folder.write("toolcell.toml", format!("{edited}{more}"));
        let mut codes = home.problems();
        codes.sort();
        let mut expected = [&["components::not_compiled"][..], found].concat();
        expected.sort_unstable();
        assert_eq!(codes, expected);
        assert_eq!((home.kept(".cwasm"), home.kept(".made")), (Vec::new(), Vec::new()));
    }
    // A small component is compiled all the same, so that all is reported at once.
    home.folder.write("tool.wasm", fixture_bytes("good"));
    assert_eq!(home.problems(), ["components::source"]);
    assert_eq!(home.kept(".cwasm").len(), 1);
    // Compiled before, a large one is no reason to leave anything out.
    home.folder.write("tool.wasm", large());
    home.folder.write("toolcell.toml", edited);
    assert_eq!(home.compile(), "tool compiled\n");
    home.folder.write("toolcell.toml", format!("{edited}{}", wrong[0].0));
    assert_eq!(home.problems(), ["grants::value"]);
}

#[test]
fn bytes_that_differ_from_the_lock_are_told_before_a_long_compilation() {
    let tables = "[components.tool]\nsource = \"tool.wasm\"\nprefix = \"t_\"\n[server]\nstart = \"all\"\n";
    let home = Home::with_manifest(&format!("{MANIFEST}{tables}"));
    home.folder.write("tool.wasm", large());
    let _ = home.command(&["lock"]).run().succeeded();
    fs::remove_dir_all(home.code()).unwrap();
    home.folder.write("components/good.wasm", [large(), vec![0, 1, 0]].concat());
    let refused = home.command(&["serve", "--locked", "--control", "off"]).run();
    let said = refused.failed_with(1);
    assert!(said.contains("other bytes: "), "{said}");
    assert_eq!(home.kept(".cwasm"), Vec::<PathBuf>::new());
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
