//! `toolcell dev`: a change of a project's file builds the project and serves the result. A failed
//! build changes nothing.
//!
//! Projects are folders `guest` that shell scripts build by copying.

use std::fs;

use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, TestHost, fixture_bytes};

/// The component that the build script writes.
const BUILT: &str = "components/tool.wasm";

/// A folder with a manifest that names the component before it exists. It is built from
/// `guest/code`.
fn folder(fixture: &str) -> Folder {
    let folder = Folder::with_manifest(&format!("version = 1\n[components.tool]\nsource = \"{BUILT}\"\n"));
    folder.make("components");
    folder.write("guest/code", fixture_bytes(fixture));
    folder
}

/// Puts the code in place, as the last step of a build does.
const COPY: &str = "cp code ../components/draft && mv ../components/draft ../components/tool.wasm";

fn version(host: &mut TestHost) -> String {
    host.call("version", json!({})).text().to_owned()
}

/// Saves the code as editors do that write a file elsewhere first: nobody sees half of it.
fn saves_whole(host: &TestHost, fixture: &str) {
    host.folder().write("next", fixture_bytes(fixture));
    fs::rename(host.folder().path().join("next"), host.folder().path().join("guest/code")).unwrap();
}

fn is_alive(process: &str) -> bool {
    // A dead process that its parent has not waited for is a zombie.
    fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let end = std::time::Instant::now() + toolcell_tests::patience();
    while !is_so() {
        assert!(std::time::Instant::now() < end, "never {what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_component_that_is_missing_is_built_first_and_every_change_after_that_is_built_and_served() {
    let mut host = TestHost::building(folder("versioned_a"), COPY);
    assert_eq!(version(&mut host), "a");
    host.folder().write("guest/code", fixture_bytes("versioned_b"));
    host.serves_generation(2);
    assert_eq!(version(&mut host), "b");
    host.status_when("built", |status| status["dev"]["state"] == "built");
}

#[test]
fn what_a_failed_build_says_is_shown_and_what_served_goes_on_until_it_is_mended() {
    let script = format!("cat notes; grep -q right notes || exit 7; {COPY}");
    let staged = folder("versioned_a");
    staged.write("guest/notes", "all right");
    let mut host = TestHost::building(staged, &script);
    assert_eq!(version(&mut host), "a");
    host.folder().write("guest/code", fixture_bytes("versioned_b"));
    host.serves_generation(2);
    host.folder().write("guest/notes", "main.rs:3: this is wrong");
    host.will_say("the build failed");
    host.will_say("main.rs:3: this is wrong");
    let status = host.status_when("failed", |status| status["dev"]["state"] == "failed");
    assert_eq!(status["dev"]["output"], "main.rs:3: this is wrong");
    assert_eq!(version(&mut host), "b");
    host.folder().write("guest/code", fixture_bytes("versioned_a"));
    host.folder().write("guest/notes", "right again");
    host.serves_generation(3);
    assert_eq!(version(&mut host), "a");
    host.status_when("built", |status| status["dev"]["state"] == "built" && status["failed"] == Value::Null);
}

#[test]
fn a_first_build_that_fails_says_so_and_nothing_is_served() {
    let finished = TestHost::building(folder("versioned_a"), "echo no compiler here; exit 1").ends();
    assert_eq!(finished.code(), 1, "{finished:?}");
    assert!(finished.stderr.contains("no compiler here"), "{}", finished.stderr);
    assert_eq!(finished.stdout, "");
}

#[test]
fn a_build_of_older_files_is_ended_with_what_it_started() {
    let staged = folder("versioned_a");
    staged.write("guest/code", fixture_bytes("versioned_a"));
    staged.write(BUILT, fixture_bytes("versioned_a"));
    staged.write("guest/hangs", "yes");
    let script = format!(
        "if [ -e hangs ]; then sleep 1000 & echo $! > ../sleeper.part; mv ../sleeper.part ../sleeper; wait; fi; {COPY}"
    );
    let mut host = TestHost::building(staged, &script);
    assert_eq!(version(&mut host), "a", "what is there is served while it is built");
    let sleeper = host.folder().path().join("sleeper");
    wait_for("built", || sleeper.exists());
    let sleeper = fs::read_to_string(sleeper).unwrap().trim().to_owned();
    assert!(is_alive(&sleeper));
    host.folder().write("guest/code", fixture_bytes("versioned_b"));
    fs::remove_file(host.folder().path().join("guest/hangs")).unwrap();
    host.serves_generation(2);
    assert_eq!(version(&mut host), "b");
    wait_for("ended", || !is_alive(&sleeper));
}

#[test]
fn a_host_that_ends_leaves_no_build_behind() {
    for by_signal in [false, true] {
        let staged = folder("versioned_a");
        staged.write(BUILT, fixture_bytes("versioned_a"));
        let script = "sleep 1000 & echo $! > ../sleeper.part; mv ../sleeper.part ../sleeper; wait";
        let mut host = TestHost::building(staged, script);
        host.still_answers();
        let sleeper = host.folder().path().join("sleeper");
        wait_for("built", || sleeper.exists());
        let sleeper = fs::read_to_string(sleeper).unwrap().trim().to_owned();
        if by_signal {
            host.terminate()
        } else {
            host.close_input()
        }
        assert_eq!(host.ends().code(), 0);
        wait_for("ended", || !is_alive(&sleeper));
    }
}

#[test]
fn a_host_that_is_ended_during_its_first_build_leaves_none_behind() {
    let script = "sleep 1000 & echo $! > ../sleeper.part; mv ../sleeper.part ../sleeper; wait";
    let host = TestHost::building(folder("versioned_a"), script);
    let sleeper = host.folder().path().join("sleeper");
    wait_for("built", || sleeper.exists());
    let sleeper = fs::read_to_string(sleeper).unwrap().trim().to_owned();
    host.terminate();
    assert_eq!(host.ends().code(), 0);
    wait_for("ended", || !is_alive(&sleeper));
}

#[test]
fn a_file_that_every_build_writes_is_no_reason_to_build_for_ever() {
    let staged = folder("versioned_a");
    staged.write(BUILT, fixture_bytes("versioned_a"));
    // The file differs each time, as a generated file with the time in it does.
    let mut host = TestHost::building(staged, &format!("echo . >> generated; {COPY}"));
    host.still_answers();
    host.will_say("the build itself writes");
    host.folder().write("guest/code", fixture_bytes("versioned_b"));
    host.serves_generation(2);
    assert_eq!(version(&mut host), "b");
}

#[test]
fn what_a_tool_prints_is_shown_with_its_name() {
    let mut host = TestHost::building(folder("noisy"), COPY);
    assert_eq!(host.call("stdout_frames", json!({})).text(), "printed");
    let printed = r#"printed: {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"forged"}]}}"#;
    host.will_say(printed);
    let said = host.said();
    let line = said.lines().find(|line| line.contains(printed)).unwrap();
    assert!(line.contains(" INFO ") && line.ends_with("caller=\"local\" tool=\"stdout_frames\""), "{line}");
}

/// A build that keeps its draft among the sources, as compilers do.
#[test]
fn one_save_is_one_build() {
    let staged = folder("versioned_a");
    let script = "echo . >> ../builds; cp code code.draft && mv code.draft ../components/tool.wasm";
    let mut host = TestHost::building(staged, script);
    let builds = |host: &TestHost| u64::try_from(host.folder().read("builds").lines().count()).unwrap();
    assert_eq!((version(&mut host).as_str(), builds(&host)), ("a", 1));
    for (save, fixture, served) in [(1, "versioned_b", "b"), (2, "versioned_a", "a"), (3, "versioned_b", "b")] {
        saves_whole(&host, fixture);
        host.serves_generation(save + 1);
        host.status_when("built", |status| status["dev"]["state"] == "built");
        assert_eq!((version(&mut host).as_str(), builds(&host)), (served, save + 1));
    }
}

/// The manifest stands among the sources, as in what `toolcell new` writes.
#[test]
fn a_change_of_the_manifest_is_a_reload_and_no_build() {
    let staged = folder("versioned_a");
    let manifest = "version = 1\n[components.tool]\nsource = \"tool.wasm\"\n";
    staged.write("guest/toolcell.toml", manifest);
    let script = "echo . >> ../builds; cp code tool.wasm.draft && mv tool.wasm.draft tool.wasm";
    let mut host = TestHost::building_beside_its_manifest(staged, script);
    assert_eq!(version(&mut host), "a");
    host.folder().write("guest/toolcell.toml", format!("{manifest}prefix = \"x_\"\n"));
    host.serves_generation(2);
    saves_whole(&host, "versioned_b");
    host.serves_generation(3);
    assert_eq!(host.call("x_version", json!({})).text(), "b");
    assert_eq!(host.folder().read("builds").lines().count(), 2);
}

#[test]
fn nothing_of_a_build_is_on_stdout_and_it_has_nothing_to_read() {
    let mut host = TestHost::building(folder("versioned_a"), &format!("echo out; echo err >&2; cat; {COPY}"));
    assert_eq!(version(&mut host), "a");
    host.close_input();
    assert_eq!(host.ends().stdout, "", "nothing but the answers that were received");
}

/// Does as `make` of a Python project under `toolcell dev`: the component is there once, and a save
/// copies the text that it is handed.
const HAND_OVER: &str = "mkdir -p $TOOLCELL_DEV/draft && echo . >> ../builds && \
    { [ -e $TOOLCELL_DEV/tool.wasm ] || cp code $TOOLCELL_DEV/tool.wasm; } && cp tool.txt $TOOLCELL_DEV/draft && \
    rm -rf $TOOLCELL_DEV/tool && mv $TOOLCELL_DEV/draft $TOOLCELL_DEV/tool";

/// A project whose component reads `tool.txt` when it runs, with these words in it.
fn handing_over(words: &str, walls: &str) -> Folder {
    let folder = Folder::with_manifest(&format!(
        "version = 1\n[server]\nwalls = \"{walls}\"\n[components.tool]\nsource = \"{BUILT}\"\n"
    ));
    folder.make("components");
    folder.write("guest/code", fixture_bytes("dev_source"));
    folder.write("guest/tool.txt", words);
    folder
}

fn save(host: &TestHost, words: &str) {
    host.folder().write("next", words);
    fs::rename(host.folder().path().join("next"), host.folder().path().join("guest/tool.txt")).unwrap();
}

/// The description of the tool, and the answer of a call.
fn listed_and_called(host: &mut TestHost) -> [String; 2] {
    let listed = host.list();
    [listed[0]["description"].as_str().unwrap().to_owned(), host.call("shows", json!({})).text().to_owned()]
}

#[test]
fn a_save_of_files_that_a_component_reads_is_listed_and_served_though_its_bytes_stay() {
    for walls in ["required", "none"] {
        let mut host = TestHost::building(handing_over("one", walls), HAND_OVER);
        assert_eq!(listed_and_called(&mut host), ["one", "one"], "the first build makes what is missing");
        for (generation, words) in [(2, "two"), (3, "three"), (4, "one")] {
            save(&host, words);
            host.serves_generation(generation);
            assert_eq!(listed_and_called(&mut host), [words, words], "{walls}");
        }
        assert!(!host.folder().path().join(BUILT).exists(), "what serves is nowhere else");
        host.will_say("tool: new source");
    }
}

#[test]
fn what_is_wrong_with_such_files_is_said_with_its_place_and_the_old_ones_serve_on() {
    let mut host = TestHost::building(handing_over("one", "required"), HAND_OVER);
    assert_eq!(listed_and_called(&mut host), ["one", "one"]);
    save(&host, "broken: no such word");
    host.will_say("printed while it listed its tools: Traceback: broken: no such word");
    host.will_say("component \"tool\" could not list its tools: tool.txt:1: broken: no such word");
    assert_eq!(listed_and_called(&mut host), ["one", "one"]);
    save(&host, "mended");
    host.serves_generation(2);
    assert_eq!(listed_and_called(&mut host), ["mended", "mended"]);
}

#[test]
fn such_a_component_is_served_by_dev_alone() {
    let folder = handing_over("one", "required");
    folder.write(BUILT, fixture_bytes("versioned_a"));
    let manifest = folder.manifest();
    let mut host = TestHost::building(folder, HAND_OVER);
    host.serves_generation(2);
    assert_eq!(listed_and_called(&mut host), ["one", "one"]);
    let listed = Command::in_folder(host.folder(), &["list", "--json", "--manifest", manifest.to_str().unwrap()]);
    let listed = listed.run().json();
    assert_eq!(listed["tools"][0]["definition"]["name"], "version", "{listed}");
    // A build that hands over nothing is served as ever, whatever an earlier process left.
    let dev = host.folder().path().join("guest/.toolcell/dev");
    assert!(dev.join("tool/tool.txt").exists());
    let mut host = TestHost::building(host.ends_leaving_its_folder(), "true");
    assert_eq!(version(&mut host), "a");
    assert!(!dev.join("tool").exists() && dev.join("tool.wasm").exists());
}
