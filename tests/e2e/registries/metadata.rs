//! Metadata of a component's author: carried, shown, taken into a manifest up to its defaults, and
//! granted by nobody. Hostile metadata is one sentence, and nothing of it is written.

use serde_json::{Value, json};
use toolcell_tests::loopback::Registry;
use toolcell_tests::{Finished, Folder, fixture_bytes, terminal, toolchain};

use super::{REPOSITORY, folder_for, json_of, run, with_section};

/// An author's entry: `add` has a title of its own, and `now` is a tool of another component.
const AUTHORS: &str = r#"
[components.mine]
source = "good.wasm"
env = { UNITS = "metric" }
approval = "never"
limits = { deadline = "20s", memory = "1GiB" }
load = { compile_time = "5m" }
[components.mine.tools.echo]
title = "Echo"
description = "Other words."
read_only = true
limits = { fuel = 1_000_000 }
[components.mine.tools.add]
title = "Not this"
[components.mine.tools.now]
title = "Somebody else's"
"#;

/// All that it suggests.
const SUGGESTED: [&str; 8] = [
    "limits.deadline = \"20s\"",
    "limits.memory = \"1GiB\"",
    "load.compile_time = \"5m\"",
    "tools.echo.title = \"Echo\"",
    "tools.echo.description = \"Other words.\"",
    "tools.echo.read_only = true",
    "tools.echo.limits.fuel = 1000000",
    "tools.add.title = \"Not this\"",
];

const UNREAD: &str = "its author's suggestions are not shown: the metadata ";

/// A folder with the author's component, and what its manifest says of it in it.
fn authors(registry: &Registry) -> Folder {
    let folder = folder_for(registry, AUTHORS);
    let annotated = run(&folder, &["annotate", "good.wasm", "--metadata", "toolcell.toml"]);
    assert_eq!(annotated.succeeded(), "good.wasm: 9 suggestions of its author\n");
    folder
}

fn add(folder: &Folder, source: &str, more: &[&str]) -> Finished {
    run(folder, &[&["add", source, "--name", "good"], more].concat())
}

/// The tool's definition, as clients see it.
fn definition(folder: &Folder, tool: &str) -> Value {
    let listed = json_of(&run(folder, &["list", "--json"]));
    let tools = listed["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    let found = tools.iter().find(|entry| entry["definition"]["name"] == tool);
    found.unwrap_or_else(|| panic!("{listed}"))["definition"].clone()
}

#[test]
fn metadata_travels_through_a_registry_and_is_taken_up_to_this_manifests_defaults() {
    let registry = Registry::start();
    let reference = registry.reference(REPOSITORY, "1");
    let folder = folder_for(&registry, AUTHORS);
    let pushed = run(&folder, &["push", &reference, "good.wasm"]);
    let _ = pushed.succeeded();
    assert!(pushed.stderr.contains("`toolcell annotate 'good.wasm' --metadata 'toolcell.toml'`"), "{pushed:?}");
    let folder = authors(&registry);
    let inspected = json_of(&run(&folder, &["inspect", "good.wasm", "--json"]));
    let all: Vec<&str> = SUGGESTED.into_iter().chain(["tools.now.title = \"Somebody else's\""]).collect();
    assert_eq!((&inspected["metadata"], &inspected["metadata_problem"]), (&json!(all), &Value::Null), "{inspected}");
    let shown = run(&folder, &["inspect", "good.wasm"]);
    assert!(shown.succeeded().contains("\nits author suggests\n    ? limits.deadline = \"20s\"\n"), "{shown:?}");
    let pushed = run(&folder, &["push", &reference, "good.wasm"]);
    let _ = pushed.succeeded();
    assert!(!pushed.stderr.contains("annotate"), "it carries all: {pushed:?}");

    let elsewhere = folder_for(&registry, "");
    let added = add(&elsewhere, &reference, &["--yes"]);
    let expected = "  its author suggests this for the manifest; none of it grants anything:\n\
                    \x20   ? limits.deadline = \"20s\"\n\
                    \x20   ? tools.echo.title = \"Echo\"\n\
                    \x20   ? tools.echo.read_only = true\n\
                    \x20   ? tools.echo.limits.fuel = 1000000\n\
                    \x20 its author suggests more than this manifest's defaults, which is not written unless you say so:\n\
                    \x20   ? limits.memory = \"1GiB\" (64MiB by default)\n\
                    \x20   ? load.compile_time = \"5m\" (2m by default)\n\
                    \x20 its author describes tools that it does not list, left out: now\n";
    assert!(added.succeeded().contains(expected), "{}", added.stdout);
    let manifest = elsewhere.read("toolcell.toml");
    let (_, entry) = manifest.split_once("\"\n\n[components.good.limits]\n").unwrap_or_else(|| panic!("{manifest}"));
    let expected = "deadline = \"20s\"\n\n[components.good.tools.echo]\ntitle = \"Echo\"\nread_only = true\n\n\
                    [components.good.tools.echo.limits]\nfuel = 1000000\n";
    assert_eq!(entry, expected, "neither a grant nor an approval: {manifest}");
    let echo = definition(&elsewhere, "echo");
    assert_eq!((&echo["title"], &echo["annotations"]["readOnlyHint"]), (&json!("Echo"), &json!(true)), "{echo}");
    assert_eq!(echo["description"], "Gives the text back.", "the component's own words win");
    assert_eq!(definition(&elsewhere, "add")["title"], "Add");
    assert_eq!(run(&elsewhere, &["call", "echo", r#"{"text":"hi"}"#]).succeeded(), "hi\n");
    assert!(elsewhere.read("toolcell.lock").contains("Echo"), "the lock pins what clients see");
}

#[test]
fn metadata_that_the_manifest_does_not_say_changes_no_definition() {
    let registry = Registry::start();
    let folder = authors(&registry);
    let bare = folder_for(&registry, "");
    let carrying = folder_for(&registry, "");
    bare.write("new.wasm", fixture_bytes("good"));
    carrying.write("new.wasm", std::fs::read(folder.path().join("good.wasm")).unwrap());
    assert!(!json_of(&add(&bare, "new.wasm", &["--yes", "--json"]))["metadata"].is_array());
    let added = json_of(&add(&carrying, "new.wasm", &["--no-metadata", "--yes", "--json"]));
    let nothing = json!([]);
    assert_eq!((&added["metadata_taken"], &added["metadata_beyond_defaults"]), (&nothing, &nothing), "{added}");
    assert_eq!(carrying.read("toolcell.toml"), bare.read("toolcell.toml"));
    let pinned = |folder: &Folder| {
        let lock = folder.read("toolcell.lock");
        let (_, tools) = lock.split_once("\ncontract = ").unwrap_or_else(|| panic!("{lock}"));
        assert!(tools.contains("Gives the text back.") && !tools.contains("\"Echo\""), "{tools}");
        tools.to_owned()
    };
    assert_eq!(pinned(&bare), pinned(&carrying), "definitions are the component's own");
}

#[test]
fn a_file_carries_descriptions_for_functions_that_have_none() {
    let registry = Registry::start();
    let entry = "[components.drawings]\nsource = \"drawings.wasm\"\n[components.drawings.tools.area]\n\
                 description = \"Measures a shape.\"\nopen_world = false\n";
    let folder = folder_for(&registry, entry);
    folder.write("drawings.wasm", fixture_bytes("drawings"));
    let _ = run(&folder, &["annotate", "drawings.wasm", "--metadata", "toolcell.toml", "-o", "out.wasm"]).succeeded();
    let elsewhere = folder_for(&registry, "");
    elsewhere.write("drawings.wasm", std::fs::read(folder.path().join("out.wasm")).unwrap());
    let added = json_of(&add(&elsewhere, "drawings.wasm", &["--link", "--yes", "--json"]));
    let taken = ["tools.area.description = \"Measures a shape.\"", "tools.area.open_world = false"];
    assert_eq!(added["metadata_taken"], json!(taken), "{added}");
    let area = definition(&elsewhere, "area");
    assert_eq!(area["description"], "Measures a shape.");
    // A project's manifest says what its author wants, whatever its file carries.
    let of_project = folder_for(&registry, "");
    of_project.write("project/toolcell.toml", "version = 1\n[components.drawings]\nsource = \"drawings.wasm\"\n");
    of_project.write("project/drawings.wasm", std::fs::read(folder.path().join("out.wasm")).unwrap());
    let added = json_of(&add(&of_project, "project", &["--yes", "--json"]));
    assert_eq!(added["metadata_taken"], json!([]), "{added}");
}

#[test]
fn hostile_metadata_is_one_sentence_and_nothing_of_it_is_written() {
    let registry = Registry::start();
    let plain = fixture_bytes("reach_http");
    let section = |component: &[u8], content: &[u8]| with_section(component, "toolcell-metadata", content);
    let text = |text: &str| section(&plain, format!("\u{1}{text}").as_bytes());
    let tools: String = (0..1_000_000).map(|number| format!("[tools.t{number}]\n")).collect();
    let table = [
        (section(&section(&plain, b"\x01"), b"\x01"), "are there twice"),
        (section(&plain, b"\x01\xff\xfe"), "are not UTF-8 text"),
        (section(&plain, b"\x07"), "have a version that this program does not know"),
        (text(&tools), "have more than 65536 bytes"),
        (text("\"\u{1b}[2J\\nsigned by you\" = 1"), "cannot be read: "),
        (text("[tools.fetch]\ntitle = \"a\\u001b[2K\\rsigned by you\""), "cannot be read: "),
        (text(&format!("tools = {}", "{ a = ".repeat(9_000))), "cannot be read: "),
        (text("network = { http = [\"https://x.example\"] }"), "cannot be read: unknown key \"network\""),
        (text("[tools.fetch]\nkeyvalue = true"), "cannot be read: unknown key \"keyvalue\""),
        (text("limits = { deadline = \"2h\" }"), "cannot be read: deadline must be between"),
    ];
    for (component, problem) in table {
        let folder = folder_for(&registry, "");
        folder.write("hostile.wasm", component);
        let added = add(&folder, "hostile.wasm", &["--yes"]);
        let shown = added.succeeded();
        let said: Vec<&str> = shown.lines().filter(|line| line.contains(UNREAD)).collect();
        assert!(said.len() == 1 && said[0].contains(problem), "{problem}: {shown}");
        assert!(said[0].chars().count() < 120, "{shown}");
        for text in [shown, &added.stderr] {
            assert!(!text.contains(['\u{1b}', '\r']) && !text.contains("\nsigned by you"), "{text:?}");
        }
        let manifest = folder.read("toolcell.toml");
        assert!(manifest.ends_with("[components.good]\nsource = \"components/good.wasm\"\n"), "{manifest}");
        assert_eq!(run(&folder, &["check"]).code(), 0);
    }
    let folder = folder_for(&registry, "");
    let turned = "[tools.echo]\ntitle = \"\\u202etxt\\u200b\"\nread_only = true\n[tools.now]\ntitle = \"\\u202e\"\n";
    folder.write("turned.wasm", section(&fixture_bytes("good"), format!("\u{1}{turned}").as_bytes()));
    let _ = add(&folder, "turned.wasm", &["--yes"]).succeeded();
    assert!(folder.read("toolcell.toml").contains("title = \"txt\"\n"), "{}", folder.read("toolcell.toml"));
    // Limits under which it cannot be listed leave the manifest as it was, with what to type.
    let folder = folder_for(&registry, "");
    folder.write("starved.wasm", section(&fixture_bytes("good"), b"\x01limits = { fuel = 10_000 }"));
    let before = folder.read("toolcell.toml");
    let refused = add(&folder, "starved.wasm", &["--yes"]);
    assert_eq!((refused.code(), folder.read("toolcell.toml")), (1, before), "{refused:?}");
    assert!(refused.stderr.contains("`--no-metadata` takes nothing"), "{refused:?}");
    let _ = add(&folder, "starved.wasm", &["--yes", "--no-metadata"]).succeeded();
}

#[test]
fn a_person_on_a_terminal_is_asked_for_each_limit_beyond_the_defaults() {
    if !terminal::can_be_had() {
        toolchain::say("LEFT OUT: questions on a terminal: this machine gives none");
        return;
    }
    let registry = Registry::start();
    let folder = authors(&registry);
    let elsewhere = folder_for(&registry, "");
    elsewhere.write("new.wasm", std::fs::read(folder.path().join("good.wasm")).unwrap());
    let arguments = ["add", "new.wasm", "--name", "good"];
    let mut terminal = toolcell_tests::Command::in_folder(&elsewhere, &arguments).on_terminal();
    terminal.until("Give it limits.memory = \"1GiB\" (64MiB by default)? [y/N] ");
    terminal.type_in("n\n");
    terminal.until("Give it load.compile_time = \"5m\" (2m by default)? [y/N] ");
    terminal.type_in("y\n");
    terminal.until("Write toolcell.toml? [y/N] ");
    terminal.type_in("y\n");
    let (code, shown) = terminal.ended();
    assert_eq!(code, 0, "{shown}");
    let manifest = elsewhere.read("toolcell.toml");
    assert!(manifest.contains("[components.good.load]\ncompile_time = \"5m\"\n"), "{manifest}");
    assert!(!manifest.contains("1GiB") && !manifest.contains("UNITS"), "{manifest}");
}

#[test]
fn an_authors_manifest_is_checked_before_anything_goes_into_a_component() {
    let registry = Registry::start();
    for (entry, words) in [
        (
            "[components.a]\nsource = \"other.wasm\"\nlimits = { fuel = 1_000_000 }\n",
            "no component with the file good.wasm",
        ),
        ("[components.a]\nsource = \"good.wasm\"\nenv = { A = \"1\" }\n", "has nothing to suggest for this component"),
        ("[components.a]\nsource = \"good.wasm\"\nlimits = { deadline = \"2h\" }\n", "deadline must be between"),
        ("[components.a]\nsource = \"good.wasm\"\nnonsense = 1\n", "unknown key \"nonsense\""),
    ] {
        let folder = folder_for(&registry, entry);
        let refused = run(&folder, &["annotate", "good.wasm", "--metadata", "toolcell.toml"]);
        assert!(refused.failed_with(1).contains(words), "{words}: {refused:?}");
        assert_eq!(std::fs::read(folder.path().join("good.wasm")).unwrap(), fixture_bytes("good"));
    }
}
