//! Requested permissions of components: carried, signed with them, shown, compared, and never
//! granted by themselves. Hostile ones are shown as no more than they are.

use serde_json::{Value, json};
use toolcell_tests::loopback::Registry;
use toolcell_tests::{Folder, fixture_bytes, terminal, toolchain};

use super::{REPOSITORY, folder_for, json_of, run, with_section};

const WANTS: &str = "env = [\"UNITS\"]\n[network]\nhttp = [\"GET https://api.example.com/v1/*\"]\n";

const RULE: &str = "GET https://api.example.com/v1/*";

const BEYOND: &str = "warning[grants::beyond_requested]: component \"good\" is granted more than it requests";

/// A folder with a component that makes requests, and these requested permissions in it.
fn requesting(registry: &Registry, wants: &str) -> Folder {
    let folder = folder_for(registry, "");
    folder.write("requesting.wasm", fixture_bytes("reach_http"));
    folder.write("wants.toml", wants);
    let annotated = run(&folder, &["annotate", "requesting.wasm", "--wants", "wants.toml"]);
    let _ = annotated.succeeded();
    folder
}

/// The arguments that add what was pushed.
fn add<'a>(reference: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["add", reference, "--name", "good"], more].concat()
}

#[test]
fn requested_permissions_travel_in_the_component_and_grant_nothing() {
    let registry = Registry::start();
    let folder = requesting(&registry, WANTS);
    let inspected = json_of(&run(&folder, &["inspect", "requesting.wasm", "--json"]));
    let rights = json!([RULE, "env UNITS"]);
    assert_eq!(
        (&inspected["requested_permissions"], &inspected["requested_permissions_problem"]),
        (&rights, &Value::Null),
        "{inspected}"
    );
    assert!(run(&folder, &["inspect", "requesting.wasm"]).succeeded().contains(&format!("    ? {RULE}\n")));
    let reference = registry.reference(REPOSITORY, "1");
    let _ = run(&folder, &["push", &reference, "requesting.wasm"]).succeeded();
    let elsewhere = folder_for(&registry, "");
    let added = run(&elsewhere, &add(&reference, &["--yes"]));
    let shown = added.succeeded();
    let question = "  it requests, in its own words; nothing is granted unless you say so:\n";
    assert!(shown.contains(&format!("{question}    ? {RULE}\n    ? env UNITS\n")), "{shown}");
    for command in
        [format!("  toolcell grant good '{RULE}'\n"), "  toolcell grant good 'env UNITS = VALUE'\n".to_owned()]
    {
        assert!(added.stderr.contains(&command), "{command}: {added:?}");
    }
    let manifest = elsewhere.read("toolcell.toml");
    assert!(!manifest.contains("api.example.com") && !manifest.contains("UNITS"), "{manifest}");
    let again = ["add", &reference, "--name", "more", "--prefix", "x_", "--yes", "--json"];
    assert_eq!(json_of(&run(&elsewhere, &again))["requested_permissions"], rights);
}

#[test]
fn grants_beyond_the_requested_permissions_are_warned_of_with_their_line_and_are_no_error() {
    let registry = Registry::start();
    let folder = requesting(&registry, WANTS);
    let reference = registry.reference(REPOSITORY, "1");
    let _ = run(&folder, &["push", &reference, "requesting.wasm"]).succeeded();
    let _ = run(&folder, &add(&reference, &["--yes"])).succeeded();
    let within = run(&folder, &["grant", "good", "GET https://api.example.com/v1/now", "--yes"]);
    let _ = within.succeeded();
    assert!(!within.stderr.contains("more than it requests"), "{within:?}");
    assert!(!run(&folder, &["check"]).stderr.contains("more than it requests"));
    let beyond = run(&folder, &["grant", "good", "GET https://other.example/*", "--yes"]);
    let _ = beyond.succeeded();
    assert!(folder.read("toolcell.toml").contains("other.example"));
    let lines = |text: &str| text.lines().filter(|line| line.starts_with(BEYOND)).count();
    assert_eq!(lines(&beyond.stderr), 1, "{beyond:?}");
    for arguments in [&["check"][..], &["lock"], &["serve"]] {
        let finished = run(&folder, arguments);
        assert_eq!(finished.code(), 0, "{finished:?}");
        let said = format!("{}{}", finished.stderr, finished.stdout);
        assert_eq!(lines(&said), 1, "{arguments:?}: {said}");
        assert!(said.contains("https://other.example/*"), "the line is shown: {said}");
    }
    let checked = json_of(&run(&folder, &["check", "--json"]));
    assert!(checked.to_string().contains("grants::beyond_requested"), "{checked}");
    // Without requested permissions there is no ceiling.
    let text = folder.read("toolcell.toml");
    let from = text.find("oci://").unwrap();
    let to = text.find("\"\n\n[components.good.network]").unwrap_or_else(|| panic!("{text}"));
    folder.write("plain.wasm", fixture_bytes("reach_http"));
    folder.write("toolcell.toml", text.replace(&text[from..to], "plain.wasm"));
    let checked = run(&folder, &["check"]);
    assert_eq!((checked.code(), lines(&checked.stderr)), (0, 0), "{checked:?}");
}

#[test]
fn hostile_requested_permissions_are_named_and_never_shown_as_they_are() {
    let registry = Registry::start();
    let plain = fixture_bytes("reach_http");
    let section = |component: &[u8], content: &[u8]| with_section(component, "toolcell-permissions", content);
    let text = |text: &str| section(&plain, format!("\u{1}{text}").as_bytes());
    let table = [
        (section(&section(&plain, b"\x01"), b"\x01"), "are there twice"),
        (section(&plain, b"\x01\xff\xfe"), "are not UTF-8 text"),
        (section(&plain, b"\x07"), "have a version that this program does not know"),
        (text(&"#".repeat(1 << 20)), "have more than 16384 bytes"),
        (text("\"\u{1b}[2J\\nsigned by you\" = 1"), "cannot be read: "),
        (text("env = [\"A\\u001b[2K\\rnobody needs to check this\"]"), "cannot be read: "),
        (text("env = [\"A\\u202eB\"]"), "cannot be read: "),
        (text(&format!("env = {}", "[".repeat(9_000))), "cannot be read: "),
        (text(&format!("network = {{ http = [\"https://x.example/{}\"] }}", "a".repeat(4_000))), "cannot be read: "),
    ];
    for (number, (component, problem)) in table.into_iter().enumerate() {
        let folder = folder_for(&registry, "");
        folder.write("hostile.wasm", component);
        let reference = registry.reference(REPOSITORY, &number.to_string());
        let _ = run(&folder, &["push", &reference, "hostile.wasm"]).succeeded();
        let added = run(&folder, &add(&reference, &["--yes"]));
        let shown = added.succeeded();
        let said: Vec<&str> = shown.lines().filter(|line| line.contains("its requests are not shown: ")).collect();
        assert!(said.len() == 1 && said[0].contains(problem), "{problem}: {shown}");
        assert!(said[0].chars().count() < 110, "{shown}");
        for text in [shown, &added.stderr] {
            assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']) && !text.contains("\nsigned by you"), "{text:?}");
        }
        assert!(added.stderr.contains("components::permissions"), "{added:?}");
        assert_eq!(run(&folder, &["check"]).code(), 0);
    }
}

#[test]
fn a_person_on_a_terminal_is_asked_for_each_requested_permission() {
    if !terminal::can_be_had() {
        toolchain::say("LEFT OUT: questions on a terminal: this machine gives none");
        return;
    }
    let registry = Registry::start();
    let wants =
        "keyvalue = true\nenv = [\"UNITS\"]\n[network]\nhttp = [\"https://a.example\", \"https://b.example\"]\n";
    let folder = requesting(&registry, wants);
    let reference = registry.reference(REPOSITORY, "1");
    let _ = run(&folder, &["push", &reference, "requesting.wasm"]).succeeded();
    let arguments = add(&reference, &[]);
    let mut terminal = toolcell_tests::Command::in_folder(&folder, &arguments).on_terminal();
    terminal.until("Grant it https://a.example? [y/N] ");
    terminal.type_in("n\n");
    terminal.until("Grant it https://b.example? [y/N] ");
    terminal.type_in("y\n");
    // It imports no state, and of a variable only a person knows the value.
    terminal.until("Write toolcell.toml? [y/N] ");
    terminal.type_in("y\n");
    let (code, shown) = terminal.ended();
    assert_eq!(code, 0, "{shown}");
    assert!(!shown.contains("Grant it keyvalue") && !shown.contains("Grant it env"), "{shown}");
    let manifest = folder.read("toolcell.toml");
    assert!(manifest.contains("https://b.example") && !manifest.contains("https://a.example"), "{manifest}");
    assert!(!manifest.contains("keyvalue") && !manifest.contains("UNITS"), "{manifest}");
}

#[test]
fn a_file_of_requested_permissions_is_checked_before_it_goes_into_a_component() {
    let registry = Registry::start();
    let folder = folder_for(&registry, "");
    let before = fixture_bytes("good");
    folder.write("wants.toml", "source = \"x\"\n[network]\nhttp = [\"nonsense\"]\n");
    let refused = run(&folder, &["annotate", "good.wasm", "--wants", "wants.toml"]);
    assert_eq!(refused.code(), 1);
    for words in ["unknown key \"source\"", "wants.toml:3", "has no requested permissions that can be read"] {
        assert!(refused.stderr.contains(words), "{words}: {refused:?}");
    }
    assert_eq!(std::fs::read(folder.path().join("good.wasm")).unwrap(), before);
    assert_eq!(run(&folder, &["annotate", "good.wasm"]).code(), 2, "one of the two is needed");
    folder.write("wants.toml", "");
    let none = run(&folder, &["annotate", "good.wasm", "--wants", "wants.toml", "-o", "none.wasm"]);
    assert_eq!(none.succeeded(), "none.wasm: it requests no permissions\n");
    assert_eq!(json_of(&run(&folder, &["inspect", "none.wasm", "--json"]))["requested_permissions"], json!([]));
}
