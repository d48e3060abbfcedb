//! Warnings of `check` and `inspect` about what model APIs and clients refuse.

use serde_json::{Value, json};
use toolcell_tests::{Command, Finished, Folder, TestHost, fixture_bytes};

fn run(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, arguments).run()
}

/// A program with a tool whose arguments are these properties.
fn with_property(tool: &str, schema: &str, beside: &str) -> String {
    format!(
        "[components.p.tools.{tool}]\ndescription = \"Does it.\"\ntitle = \"T\"\nread_only = true\nargs = [\"{{*}}\"]\n\
         input = {{ type = \"object\", additionalProperties = false, properties = {{ {schema} }}{beside} }}\n"
    )
}

fn manifest(tools: &[String]) -> String {
    format!("version = 1\n[components.p]\nsource = \"components/program.wasm\"\n{}", tools.concat())
}

/// The warnings of `check` about schemas: code, pointer, and whether clients get it.
fn warned(folder: &Folder) -> Vec<(String, String, bool)> {
    let told = run(folder, &["check", "--json"]).json();
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let warnings = told["warnings"].as_array().unwrap_or_else(|| panic!("{told:#}"));
    let of_schemas = warnings.iter().filter(|one| one["code"] != "no_output_schema");
    of_schemas.map(|one| (text(one, "code"), text(one, "pointer"), one["served"] == true)).collect()
}

#[test]
fn check_warns_of_what_an_author_wrote_and_of_what_clients_get() {
    for (schema, beside, code, pointer, is_served) in [
        ("a = { type = \"integer\", maximum = 9223372036854775807 }", "", "inexact_number", "a/maximum", false),
        ("\"$filter\" = { type = \"string\" }", "", "property_name", "$filter", true),
        ("\"a b\" = { type = \"string\" }", "", "property_name", "a b", true),
        ("a = { type = \"number\", enum = [0.5, 0.9] }", "", "enum_not_text", "a/enum", true),
        ("a = { const = \"x\" }", "", "const", "a/const", false),
        ("a = { type = \"array\" }", "", "array_without_items", "a", false),
        ("a = { type = \"string\", pattern = '^(?!x)' }", "", "irregular_pattern", "a/pattern", false),
        (
            "a = { \"$ref\" = \"#/definitions/x\" }",
            ", \"$schema\" = \"http://json-schema.org/draft-07/schema#\", definitions = { x = { type = \"string\" } }",
            "reference",
            "a/$ref",
            false,
        ),
    ] {
        let folder = Folder::with_manifest(&manifest(&[with_property("t", schema, beside)]));
        let expected = (code.to_owned(), format!("/inputSchema/properties/{pointer}"), is_served);
        assert_eq!(warned(&folder), [expected], "{schema}");
        assert_eq!(run(&folder, &["check"]).code(), 0, "{schema}");
        assert_eq!(run(&folder, &["check", "--strict"]).code(), 1, "{schema}");
    }
    let folder = Folder::with_manifest(&manifest(&[with_property("t", "", ", anyOf = [{}]")]));
    assert_eq!(warned(&folder), [("combinator_at_top".to_owned(), "/inputSchema/anyOf".to_owned(), true)]);
}

#[test]
fn what_check_says_clients_do_not_get_is_not_in_the_list() {
    let wide = with_property("t", "a = { type = \"integer\", maximum = 9223372036854775807, const = 5 }", "");
    let mut host = TestHost::with_manifest(&manifest(&[wide]));
    let listed = host.request("tools/list", json!({}));
    let schema = listed["result"]["tools"][0]["inputSchema"]["properties"]["a"].to_string();
    assert!(!schema.contains("9223372036854775807") && !schema.contains("const"), "{schema}");
}

#[test]
fn forty_tools_with_one_fault_take_few_lines() {
    let tools: Vec<String> =
        (0..40).map(|number| with_property(&format!("tool_{number}"), "a = { enum = [1] }", "")).collect();
    let shown = run(&Folder::with_manifest(&manifest(&tools)), &["check"]);
    let (_, warned) = shown.succeeded().split_once("\nwarning[enum_not_text]: ").unwrap();
    let (group, _) = warned.split_once("\n\n").unwrap();
    assert!(
        group.starts_with("an enum of anything but texts, or without \"type\": \"string\": refused by Gemini\n"),
        "{group}"
    );
    assert!(group.contains("  and 30 more tools\n  hint: ") && group.lines().count() == 13, "{group}");
}

#[test]
fn inspect_warns_of_a_component_s_own_definitions() {
    let folder = Folder::with_manifest("");
    folder.write("good.wasm", fixture_bytes("good"));
    let told = run(&folder, &["inspect", "good.wasm", "--json"]).json();
    let codes: Vec<&str> =
        told["warnings"].as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"no_output_schema") && !codes.contains(&"no_title"), "{told:#}");
    assert!(told["warnings"].as_array().unwrap().iter().all(|one| one["component"] == "good"), "{told:#}");
    assert_eq!((told["ok"].clone(), told["warnings_left_out"].clone()), (json!(true), json!(0)));
    let shown = run(&folder, &["inspect", "good.wasm"]);
    let (_, warned) = shown.succeeded().split_once("\nwarnings\nwarning[").unwrap();
    assert!(warned.contains("results without a type in code mode") && warned.contains("\n\nmanifest\n"), "{warned}");
    assert_eq!(run(&folder, &["inspect", "good.wasm", "--strict"]).code(), 1);
}

#[test]
fn functions_break_no_rule_of_schemas() {
    let folder = Folder::with_manifest("");
    folder.write("drawings.wasm", fixture_bytes("drawings"));
    let told = run(&folder, &["inspect", "drawings.wasm", "--json"]).json();
    let warnings = told["warnings"].as_array().unwrap();
    assert!(warnings.iter().all(|one| one["code"] == "no_description"), "{told:#}");
}
