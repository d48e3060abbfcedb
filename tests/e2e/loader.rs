//! With walls, components are loaded in processes of their own, which end with their load. The host
//! looks at none of their bytes, and holds no engine.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;
use toolcell_tests::{Command, Folder, Saving, TestHost, bulk, fixture_bytes, toolcell};

use crate::walls::{children, is_gone, sandboxes, signal};

/// The file that is saved again.
const TOOL: &str = "components/tool.wasm";

/// Bytes of code that take seconds to compile on two cores, and moments on many.
const LARGE_BYTES: usize = 8 << 20;

/// Bytes of code that take a second to compile.
const MIDDLE_BYTES: usize = 1 << 20;

/// Code that is compiled in a moment.
const SMALL_BYTES: usize = 100_000;

/// The beginnings of the names of a compiler's threads, and of an engine's.
const COMPILER: &str = "toolcell-compil";
const ENGINE: &str = "toolcell-epoch";

fn manifest(walls: &str, lines: &str) -> String {
    format!("version = 1\n[server]\nwalls = \"{walls}\"\n[components.tool]\nsource = \"{TOOL}\"\n{lines}\n")
}

/// A host that serves version `a` of a tool, and looks at its files when it is asked to.
fn serving(lines: &str) -> TestHost {
    let folder = Folder::with_manifest(&manifest("best", lines));
    folder.write(TOOL, fixture_bytes("versioned_a"));
    let mut host = TestHost::with_options(folder, &["--watch", "off"]);
    serves(&mut host, "a");
    host
}

fn serves(host: &mut TestHost, version: &str) {
    assert_eq!(host.call("version", json!({})).text(), version);
}

/// A fixture with more code, which no cache has seen.
fn unseen(fixture: &str, code_bytes: usize) -> Vec<u8> {
    let mut bytes = bulk::with_code(&fixture_bytes(fixture), code_bytes);
    let label = format!("{:032}", std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos());
    bytes.extend_from_slice(&[0, 34, 1, b'n']);
    bytes.extend_from_slice(label.as_bytes());
    bytes
}

/// The processes of a host that compile.
fn loaders(host: &TestHost) -> Vec<u32> {
    sandboxes(host).into_iter().filter(|id| has_thread(*id, COMPILER)).collect()
}

/// True if the process has a thread whose name begins so.
fn has_thread(id: u32, wanted: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let name = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
    threads.map(name).any(|name| name.starts_with(wanted))
}

/// The names of a host's threads, and its mappings that can be run and are not program's or
/// library's.
fn engine_of(host: &TestHost) -> (Vec<String>, Vec<String>) {
    let at = PathBuf::from(format!("/proc/{}", host.process_id()));
    let name = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
    let threads = fs::read_dir(at.join("task")).unwrap().map(|entry| name(entry.unwrap()).trim().to_owned());
    let maps = fs::read_to_string(at.join("maps")).unwrap();
    let is_code = |line: &&str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let path = words.get(5).copied().unwrap_or_default();
        words[1].contains('x') && (path.is_empty() || path.contains(".cwasm") || path.contains("memfd"))
    };
    (threads.collect(), maps.lines().filter(is_code).map(str::to_owned).collect())
}

#[test]
fn a_host_with_walls_holds_no_engine_and_no_code() {
    for (walls, is_there) in [("none", true), ("best", false)] {
        let folder = Folder::with_manifest(&manifest(walls, ""));
        folder.write(TOOL, unseen("versioned_a", SMALL_BYTES));
        let mut host = TestHost::in_folder(folder);
        serves(&mut host, "a");
        let (threads, code) = engine_of(&host);
        assert_eq!(threads.iter().any(|name| name == "toolcell-epoch"), is_there, "{walls}: {threads:?}");
        assert_eq!(!code.is_empty(), is_there, "{walls}: {code:?}");
    }
}

#[test]
fn commands_that_are_given_a_component_look_at_it_in_another_process_too() {
    let folder = Folder::with_manifest("version = 1\n");
    folder.write(TOOL, unseen("versioned_a", MIDDLE_BYTES));
    for arguments in [&["inspect", TOOL, "--json"][..], &["add", TOOL, "--yes", "--json"]] {
        let mut command = std::process::Command::new(toolcell());
        command.args(arguments).arg("--no-code-cache").current_dir(folder.path());
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut loaded_elsewhere = false;
        let id = process.id();
        let status = loop {
            let has_engine = [COMPILER, ENGINE].into_iter().any(|thread| has_thread(id, thread));
            assert!(!has_engine, "{arguments:?} compiles in its own process");
            loaded_elsewhere |= children(id).into_iter().any(|id| has_thread(id, COMPILER));
            match process.try_wait().unwrap() {
                Some(status) => break status,
                None => std::thread::yield_now(),
            }
        };
        assert!(status.success() && loaded_elsewhere, "{arguments:?}: {status}");
    }
    assert!(folder.read("toolcell.toml").contains("tool.wasm"));
}

#[test]
fn a_loader_that_is_late_is_killed_and_nothing_of_it_is_left() {
    let mut host = serving("");
    let text = manifest("best", "[components.tool.load]\ncompile_time = \"1ms\"");
    host.folder().save(Saving::RenamedOver, "toolcell.toml", text);
    host.folder().save(Saving::RenamedOver, TOOL, unseen("versioned_b", LARGE_BYTES));
    let answer = host.reload().to_string();
    assert!(answer.contains("compiling it takes longer than 1ms (limit \\\"compile_time\\\")"), "{answer}");
    loaders(&host).into_iter().for_each(is_gone);
    serves(&mut host, "a");
}

#[test]
fn a_loader_that_takes_more_memory_than_it_may_is_one_error() {
    let mut host = serving("");
    let text = manifest("best", "[components.tool.load]\ncompile_memory = \"64MiB\"");
    host.folder().save(Saving::RenamedOver, "toolcell.toml", text);
    host.folder().save(Saving::RenamedOver, TOOL, unseen("versioned_b", LARGE_BYTES));
    let answer = host.reload().to_string();
    let said = "compiling it takes more memory than 64MiB (limit \\\"compile_memory\\\")";
    assert!(answer.contains(said) && answer.contains("raise compile_memory in [components.tool.load]"), "{answer}");
    loaders(&host).into_iter().for_each(is_gone);
    serves(&mut host, "a");
}

#[test]
fn a_loader_that_is_ended_is_one_error_and_the_old_version_serves() {
    let mut host = serving("");
    // The first process of a namespace of process ids ignores other signals that it has no use for.
    for sent in [Signal::KILL, Signal::ABORT] {
        host.folder().save(Saving::RenamedOver, TOOL, unseen("versioned_b", LARGE_BYTES));
        let folder = host.folder().clone();
        let reload = std::thread::spawn(move || Command::in_folder(&folder, &["reload", "--json"]).run().stdout);
        let mut ended = Vec::new();
        // The first one gives way to every other thread of the machine. Another takes its place
        // where it is late for that.
        while !reload.is_finished() {
            for id in loaders(&host) {
                signal(id, sent);
                ended.push(id);
            }
        }
        let answer = reload.join().unwrap();
        assert!(answer.contains("the process that loads it was ended: "), "{sent:?}: {answer}");
        ended.into_iter().for_each(is_gone);
        serves(&mut host, "a");
    }
    // A small one, which is compiled soon on a busy machine too.
    host.folder().save(Saving::RenamedOver, TOOL, unseen("versioned_b", SMALL_BYTES));
    let answer = host.reload().to_string();
    assert!(!answer.contains("the process that loads it"), "{answer}");
    serves(&mut host, "b");
}

/// A user with an empty home.
fn at_home(folder: &Folder, arguments: &[&str]) -> String {
    let at = |name: &str| folder.path().join(name).display().to_string();
    let command = Command::in_folder(folder, arguments);
    let command = command.with_variable("XDG_CACHE_HOME", &at("cache")).with_variable("XDG_STATE_HOME", &at("state"));
    command.run().succeeded().to_owned()
}

#[test]
fn what_was_made_behind_walls_is_never_run_without_them() {
    let folder = Folder::with_manifest(&manifest("best", ""));
    folder.write(TOOL, fixture_bytes("versioned_a"));
    assert_eq!(at_home(&folder, &["compile"]), "tool compiled\n");
    assert_eq!(at_home(&folder, &["compile"]), "tool was compiled already\n");
    let kept = || {
        let names = fs::read_dir(folder.path().join("cache/toolcell/code")).unwrap().map(|entry| entry.unwrap().path());
        let mut code: Vec<_> = names.filter(|path| path.extension().is_some_and(|end| end == "cwasm")).collect();
        code.sort();
        code
    };
    let [loaded] = kept().try_into().unwrap();
    assert!(loaded.file_name().unwrap().to_str().unwrap().starts_with("loaded-"), "{loaded:?}");
    folder.write("toolcell.toml", manifest("none", ""));
    assert_eq!(at_home(&folder, &["compile"]), "tool compiled\n", "what was made behind walls is not there for it");
    let own = kept().into_iter().find(|path| *path != loaded).unwrap();
    // Not even where it lies instead of what was made without.
    fs::remove_file(&own).unwrap();
    fs::copy(&loaded, &own).unwrap();
    assert_eq!(at_home(&folder, &["compile"]), "tool compiled\n");
    // A changed byte is seen.
    folder.write("toolcell.toml", manifest("best", ""));
    let mut bytes = fs::read(&loaded).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::set_permissions(&loaded, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&loaded, bytes).unwrap();
    assert_eq!(at_home(&folder, &["compile"]), "tool compiled\n");
    assert_eq!(at_home(&folder, &["call", "version"]), "a\n");
}

#[test]
fn a_list_that_is_kept_is_the_list_that_was_made() {
    let folder = Folder::with_manifest(&manifest("best", ""));
    folder.write(TOOL, fixture_bytes("versioned_a"));
    let lists: Vec<String> = (0..2).map(|_| at_home(&folder, &["list", "--json"])).collect();
    folder.write("toolcell.toml", manifest("none", ""));
    assert_eq!(lists, [at_home(&folder, &["list", "--json"]), lists[0].clone()]);
}
