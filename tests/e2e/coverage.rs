//! A test names every fixture and every tool of a fixture. A tool that no test calls proves
//! nothing.

use std::fs;
use std::path::Path;

use toolcell_tests::{TestHost, fixture_names};

/// The text of all tests but this one.
fn tests() -> String {
    texts_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e"))
}

fn texts_below(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text =
        |path: std::path::PathBuf| if path.is_dir() { texts_below(&path) } else { fs::read_to_string(path).unwrap() };
    entries.filter(|path| !path.ends_with("coverage.rs")).map(text).collect()
}

fn not_named_in<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let named =
        |name: &&str| text.contains(&format!("\"{name}\"")) || text.contains(&format!("components/{name}.wasm"));
    names.filter(|name| !named(name)).collect()
}

#[test]
fn every_fixture_is_named_by_a_test() {
    let names = fixture_names();
    assert!(names.len() > 40, "the fixtures were not found: {names:?}");
    assert_eq!(not_named_in(&tests(), names.iter().map(String::as_str)), [""; 0]);
}

#[test]
fn every_tool_of_a_fixture_is_named_by_a_test() {
    // Two hosts, since some tools of the one have the names of tools of the other.
    let hosts: [(&[&str], usize); 2] = [
        (&["good", "hungry", "liar", "loops", "noisy", "nosy", "quitter", "remembers", "versioned_a", "views"], 89),
        (
            &[
                "reach_files",
                "reach_http",
                "reach_sockets",
                "reach_settings",
                "reach_state",
                "path_tricks",
                "address_forms",
                "smuggle",
                "exfiltrate",
                "versioned_c",
            ],
            45,
        ),
    ];
    let tests = tests();
    for (fixtures, tools_min) in hosts {
        let tools = TestHost::serving(fixtures).list();
        assert!(tools.len() > tools_min, "the list is not whole: {}", tools.len());
        assert_eq!(not_named_in(&tests, tools.iter().map(|tool| tool["name"].as_str().unwrap())), [""; 0]);
    }
}
