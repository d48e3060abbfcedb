//! A start where something is broken: what works serves, and what does not is said everywhere.

use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, TestHost, alone, fixture_bytes, manifest_of};

/// A component that is cut off, one without its secret, and one without its folder, next to a good
/// one; with these lines in `[server]`.
fn manifest(server: &str) -> String {
    format!(
        "version = 1\n[server]\n{server}\n\
         [components.good]\nsource = \"components/good.wasm\"\n\
         [components.cut]\nsource = \"cut.wasm\"\n\
         [components.secretless]\nsource = \"components/loops.wasm\"\n\
         secrets.KEY = {{ from = \"env:TOOLCELL_TEST_THAT_NOBODY_SETS\", expose = true }}\n\
         [components.folderless]\nsource = \"components/reach_files.wasm\"\n\
         filesystem.\"/data\" = {{ path = \"nowhere\", access = \"read\" }}\n"
    )
}

fn folder(server: &str) -> Folder {
    let folder = Folder::with_manifest(&manifest(server));
    let good = fixture_bytes("good");
    folder.write("cut.wasm", &good[..good.len() / 2]);
    folder
}

fn status(folder: &Folder) -> (Option<i32>, Value) {
    let status = Command::in_folder(folder, &["status", "--json"]).run();
    (status.status.code(), status.json()[0].clone())
}

/// The names of the components that are left out.
fn left_out(folder: &Folder) -> Vec<String> {
    let status = status(folder).1;
    let left_out = status["left_out"].as_array().unwrap().iter();
    left_out.map(|component| component["component"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_works_serves_and_what_does_not_is_said_everywhere() {
    let _alone = alone("the start of one process");
    let mut host = TestHost::with_options(folder(""), &["--metrics", "127.0.0.1:0"]);
    assert_eq!(host.call("echo", json!({"text": "here"})).text(), "here");
    let broken = ["cut", "secretless", "folderless"];
    assert_eq!(left_out(host.folder()), broken);
    let (code, status) = status(host.folder());
    assert_eq!(code, Some(1), "{status}");
    for (component, text) in broken.iter().zip(["cut", "TOOLCELL_TEST_THAT_NOBODY_SETS", "nowhere"]) {
        let said = |texts: &Value| {
            texts.as_array().unwrap().iter().any(|problem| {
                let problem = problem["text"].as_str().or(problem["problem"].as_str()).unwrap();
                problem.contains(component) && problem.contains(text)
            })
        };
        assert!(said(&status["problems"]) && said(&status["left_out"]), "{component}: {status}");
        host.will_say(&format!("left out: component \"{component}\""));
    }
    assert!(status["problems"].as_array().unwrap().iter().all(|problem| problem["fails_calls"] == false));
    let figures = host.figures();
    assert_eq!(figures.get("toolcell_left_out_components", &[]), 3.0);
    assert_eq!(figures.get("toolcell_unhealthy", &[("part", "components")]), 1.0);
    let list = Command::in_folder(host.folder(), &["list"]).run();
    assert_eq!(list.status.code(), Some(1), "{list:?}");
    let lines = list.stdout.lines().filter(|line| line.starts_with("left out: component ")).count();
    assert_eq!((lines, list.stdout.contains("[good]")), (3, true), "{list:?}");
}

#[test]
fn a_reload_takes_what_was_broken_before_and_nothing_that_served() {
    let _alone = alone("reloads of one process");
    let mut host = TestHost::with_options(folder(""), &["--watch", "off"]);
    host.still_answers();
    let reload = |host: &TestHost| Command::in_folder(host.folder(), &["reload"]).run();
    // The start looks for changes that came meanwhile. It has, once another reload is answered.
    assert!(reload(&host).status.success());
    // Another limit of the good one, with the others as they were.
    let text = manifest("").replace("good.wasm\"\n", "good.wasm\"\nlimits.deadline = \"4s\"\n");
    host.folder().write("toolcell.toml", &text);
    let taken = reload(&host);
    assert!(taken.status.success() && taken.stdout.contains("good: new policy"), "{taken:?}");
    // What served and would not any more keeps the old generation.
    host.folder().write("toolcell.toml", text.replace("components/good.wasm", "cut.wasm"));
    let refused = reload(&host);
    assert!(!refused.status.success() && refused.stderr.contains("\"good\""), "{refused:?}");
    assert_eq!(host.call("echo", json!({"text": "on"})).text(), "on");
    // A new one that is broken was never served, and is no reason to do without it either.
    host.folder().write("toolcell.toml", format!("{text}[components.new]\nsource = \"cut.wasm\"\n"));
    assert!(!reload(&host).status.success());
    // Mended, it serves.
    host.folder().write("toolcell.toml", &text);
    host.folder().make("nowhere");
    let mended = reload(&host);
    assert!(mended.status.success() && mended.stdout.contains("folderless: added"), "{mended:?}");
    assert_eq!(left_out(host.folder()), ["cut", "secretless"]);
}

#[test]
fn a_start_fails_where_nothing_works_and_where_all_has_to() {
    let nothing = Folder::with_manifest("version = 1\n[components.cut]\nsource = \"cut.wasm\"\n");
    nothing.write("cut.wasm", "");
    for folder in [folder("start = \"all\""), nothing] {
        let refused = Command::in_folder(&folder, &["serve"]).run();
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(refused.stderr.contains("component \"cut\""), "{refused:?}");
    }
    // What decides who may do what is never left out.
    let callers = format!("{}[callers.ann]\ntools = [\"no-such-tool\"]\n", manifest_of(&["good"]));
    let refused = Command::in_folder(&Folder::with_manifest(&callers), &["serve"]).run();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    // A command that serves nobody finds what is wrong.
    let checked = Command::in_folder(&folder(""), &["check"]).run();
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
}

#[test]
fn under_a_lock_only_what_differs_is_left_out() {
    let _alone = alone("the lock of one process");
    let folder = Folder::with_manifest(&manifest_of(&["good", "loops"]));
    let locked = Command::in_folder(&folder, &["lock"]).run();
    assert!(locked.status.success(), "{locked:?}");
    let other = fixture_bytes("reach_files");
    folder.write("components/loops.wasm", &other);
    folder.write("components/reach_files.wasm", &other);
    folder.write(
        "toolcell.toml",
        format!("{}[components.unpinned]\nsource = \"components/reach_files.wasm\"\n", manifest_of(&["good", "loops"])),
    );
    let mut host = TestHost::with_options(folder, &["--locked"]);
    assert_eq!(host.call("echo", json!({"text": "pinned"})).text(), "pinned");
    host.will_say("quarantined: loops");
    host.will_say("quarantined: unpinned");
    let (code, status) = status(host.folder());
    assert_eq!(code, Some(1), "{status}");
    let held: Vec<&str> =
        status["quarantined"].as_array().unwrap().iter().map(|held| held["component"].as_str().unwrap()).collect();
    assert_eq!(held, ["loops", "unpinned"]);
    let reloaded = Command::in_folder(host.folder(), &["reload"]).run();
    assert_eq!(reloaded.stdout, "unchanged: the files match what is served\n");
    let says = "quarantined, as the lock has them otherwise: loops, unpinned";
    assert!(reloaded.failed_with(1).contains(says), "{reloaded:?}");
    let approved = Command::in_folder(host.folder(), &["approve", "unpinned"]).run();
    assert!(approved.status.success(), "{approved:?}");
    assert!(host.list().len() > 1);
}
