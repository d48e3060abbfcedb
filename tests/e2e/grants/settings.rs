//! Environment, arguments, standard input and settings: the guest gets what the manifest gives, and
//! nothing of the host's own.
//!
//! Promise: nothing of the machine is there.

use serde_json::{Value, json};
use toolcell_tests::TestHost;

use super::{assert_refused, came_to, folder, host};

const FIXTURE: &str = "reach_settings";

const TABLES: &str = r#"
[{c}]
source = "components/reach_settings.wasm"
args = ["--fast", "a b", ""]
stdin = "line one\nline two"

[{c}.env]
UNITS = "metric"
HOME_CITY = { from = "env:TEST_HOME_CITY" }

[{c}.config]
theme = "dark"
"a.key" = "with a dot"
"#;

/// A folder with these tables, among them the component's own. It replaces the one in the shared
/// manifest.
fn staged(tables: &str) -> toolcell_tests::Folder {
    let staged = folder(FIXTURE, "");
    let manifest = staged.read("toolcell.toml");
    let own = "[components.reach_settings]\nsource = \"components/reach_settings.wasm\"\n";
    assert!(manifest.contains(own));
    staged.write("toolcell.toml", manifest.replace(own, "") + &tables.replace("{c}", "components.reach_settings"));
    staged
}

#[test]
fn a_tool_gets_what_the_manifest_says_and_nothing_else() {
    let variables = [("TEST_HOME_CITY", "Oslo"), ("TEST_NEVER_GIVEN", "a secret of the host")];
    let mut host = TestHost::recording_in(staged(TABLES), &variables);
    let found = came_to(&host.call("settings", json!({}))).unwrap();
    assert_eq!(found["env"], json!([["HOME_CITY", "Oslo"], ["UNITS", "metric"]]));
    assert_eq!(found["std_env"], 2);
    assert_eq!(found["stdin"], "line one\nline two");
    assert_eq!(found["config"], json!([["a.key", "with a dot"], ["theme", "dark"]]));
    let args = found["args"].as_array().unwrap();
    assert!(args.ends_with(&[json!("--fast"), json!("a b"), json!("")]), "{found}");
    assert!(args.len() <= 4, "{found}");
    // Each call gets all of it again.
    assert_eq!(came_to(&host.call("settings", json!({}))).unwrap(), found);
}

#[test]
fn a_setting_is_found_by_its_key() {
    let mut host = TestHost::recording_in(staged(TABLES), &[("TEST_HOME_CITY", "Oslo")]);
    for (key, value) in [
        ("theme", json!("dark")),
        ("a.key", json!("with a dot")),
        ("THEME", Value::Null),
        ("", Value::Null),
        ("UNITS", Value::Null),
    ] {
        assert_eq!(came_to(&host.call("config", json!({"key": key}))), Ok(value), "{key}");
    }
}

#[test]
fn without_a_grant_all_of_it_is_empty() {
    let mut host = host(FIXTURE, "");
    let found = came_to(&host.call("settings", json!({}))).unwrap();
    assert_eq!(found, json!({"env": [], "std_env": 0, "args": [], "stdin": "", "config": []}));
}

#[test]
fn a_variable_that_the_host_does_not_have_is_a_load_error() {
    let tables = "[{c}.env]\nCITY = { from = \"env:TEST_SURELY_NOT_SET\" }\n";
    assert_refused(&folder(FIXTURE, tables), &["TEST_SURELY_NOT_SET", "toolcell.toml"]);
}

#[test]
fn settings_that_cannot_be_are_load_errors() {
    for (tables, word) in [
        ("[{c}.env]\n\"A=B\" = \"x\"\n", "A=B"),
        ("[{c}.env]\n\"\" = \"x\"\n", "must not be empty"),
        ("[{c}.env]\nX = 5\n", "X"),
        ("[{c}.env]\nX = { from = \"file:/etc/passwd\" }\n", "from"),
        ("[{c}.env]\nX = \"nul \\u0000 inside\"\n", "X"),
        ("[{c}.config]\nX = true\n", "X"),
    ] {
        assert_refused(&folder(FIXTURE, tables), &[word, "toolcell.toml"]);
    }
}

#[test]
fn a_grant_of_settings_to_a_component_that_reads_none_is_a_load_error() {
    assert_refused(&folder("reach_files", "[{c}.config]\ntheme = \"dark\"\n"), &["reach_files", "wasi:config"]);
}
