//! Functions over WIT values as tools: their definitions, their arguments, and their answers.

use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, LEGACY_REVISIONS, TestHost, fixture_bytes, manifest_of};

const WIT: &str = include_str!("../fixtures/guests/wit/typed/drawings.wit");

/// A manifest of the component. `more` belongs to its table.
fn manifest(more: &str) -> String {
    format!("{}{more}\n", manifest_of(&["drawings"]))
}

fn tool(tools: &[Value], name: &str) -> Value {
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name} in {tools:?}")).clone()
}

fn drawing() -> Value {
    json!({
        "shape": {"polygon": [{"x": 0.25, "y": 0.5}, {"x": -1e300, "y": "NaN"}]},
        "color": "deep-blue",
        "style": ["filled"],
        "name": "a \"name\"",
        "serial": "18446744073709551615",
        "icon": "AAEC/w==",
        "labels": [["one", -128], ["two", 127]],
        "mark": "🦀",
    })
}

#[test]
fn each_function_is_a_tool_by_its_name() {
    let tools = TestHost::serving(&["drawings"]).list();
    let mut names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["area", "do_nothing", "fail", "maybe", "same", "spin", "sum", "trap", "zeros"]);
    assert_eq!(tool(&tools, "area")["description"], "Calls fixture:drawings/shapes.area of the component.");
    assert_eq!(tool(&tools, "sum")["inputSchema"]["required"], json!(["values"]));
    let area = tool(&tools, "area")["inputSchema"].clone();
    let circle = &area["properties"]["shape"]["anyOf"][0]["properties"]["circle"];
    let center = &circle["properties"]["center"];
    assert_eq!(center["required"], json!(["x", "y"]), "what repeats stands in each place: {area}");
    assert!(!area.to_string().contains("$ref") && area.get("$defs").is_none(), "{area}");
    let nothing = json!({"type": "object", "properties": {}, "additionalProperties": false});
    assert_eq!(tool(&tools, "do_nothing")["outputSchema"], nothing);
}

#[test]
fn a_value_of_every_kind_survives_the_way_in_and_out() {
    let mut host = TestHost::serving(&["drawings"]);
    let answer = host.call("same", json!({"drawing": drawing()}));
    assert_eq!(*answer.structured(), drawing());
    assert_eq!(serde_json::from_str::<Value>(answer.text()).unwrap(), drawing(), "the text says the same");
    let mut without = drawing();
    without["name"] = Value::Null;
    let answer = host.call("same", json!({"drawing": without}));
    assert_eq!(answer.structured().get("name"), None, "what an option does not hold is left out");
    for value in [json!(null), json!({"some": null}), json!({"some": 7})] {
        assert_eq!(host.call("maybe", json!({"value": value})).structured()["result"], value);
    }
    assert_eq!(host.call("maybe", json!({})).structured()["result"], Value::Null);
    assert_eq!(*host.call("do_nothing", json!({})).structured(), json!({}));
}

#[test]
fn integers_past_what_json_carries_everywhere_are_strings_too() {
    let mut host = TestHost::serving(&["drawings"]);
    let mut sum = |values: Value| host.call("sum", json!({"values": values})).structured()["result"].clone();
    assert_eq!(sum(json!([1, 2])), 3);
    assert_eq!(sum(json!([9_007_199_254_740_991_i64])), 9_007_199_254_740_991_i64);
    assert_eq!(sum(json!([9_007_199_254_740_991_i64, "1"])), "9007199254740992");
    assert_eq!(sum(json!([i64::MIN])), i64::MIN.to_string());
}

#[test]
fn a_number_with_a_fraction_may_be_text() {
    let mut host = TestHost::serving(&["drawings"]);
    let mut area = |radius: Value| {
        host.call("area", json!({"shape": {"circle": {"center": {"x": "0", "y": "-1.5e1"}, "radius": radius}}}))
    };
    assert_eq!(area(json!("0.5")).structured()["result"], area(json!(0.5)).structured()["result"]);
    assert!(area(json!("+1")).is_error());
}

#[test]
fn a_typed_error_is_an_error_with_its_value() {
    let mut host = TestHost::serving(&["drawings"]);
    for (shape, error) in [
        (json!({"circle": {"center": {"x": 0, "y": 0}, "radius": -1.5}}), json!({"negative-radius": -1.5})),
        (json!({"polygon": []}), json!("empty-polygon")),
    ] {
        let answer = host.call("area", json!({"shape": shape}));
        assert!(answer.is_error());
        assert_eq!(answer.result()["structuredContent"], json!({"error": error}));
    }
    assert_eq!(host.call("area", json!({"shape": "nothing"})).structured()["result"], 0.0);
    let answer = host.call("fail", json!({}));
    assert!(answer.is_error());
    assert_eq!(answer.result()["structuredContent"], json!({"error": null}));
}

#[test]
fn what_does_not_fit_the_types_is_refused_by_its_place() {
    let mut host = TestHost::serving(&["drawings"]);
    for (pointer, value, place) in [
        (
            "/shape/polygon/1/x",
            json!("far"),
            "$.drawing.shape.polygon[1].x: expected a number, \"NaN\", \"Infinity\" or \"-Infinity\"",
        ),
        ("/labels/0/1", json!(128), "$.drawing.labels[0][1]: expected an integer from -128 to 127"),
        ("/icon", json!("not base64!"), "$.drawing.icon: expected a string in base64"),
        ("/mark", json!("two"), "$.drawing.mark: expected a string of one character"),
        (
            "/serial",
            json!("18446744073709551616"),
            "$.drawing.serial: expected an integer from 0 to 18446744073709551615",
        ),
        ("/color", json!("deep_blue"), "$.drawing.color: expected one of \"red\", \"green\", \"deep-blue\""),
        ("/style", json!(["filled", "filled"]), "$.drawing.style[1]: \"filled\" appears twice"),
    ] {
        let mut drawing = drawing();
        *drawing.pointer_mut(pointer).unwrap() = value;
        let answer = host.call("same", json!({"drawing": drawing}));
        assert_eq!(answer.error_text(), place);
    }
    host.still_answers();
}

#[test]
fn every_revision_has_the_answer_as_text_or_structured() {
    for revision in LEGACY_REVISIONS {
        let mut host = TestHost::serving(&["drawings"]);
        host.initialize(revision);
        let result = host.request("tools/call", json!({"name": "sum", "arguments": {"values": [1, 2]}}));
        assert_eq!(result["result"]["content"], json!([{"type": "text", "text": "{\"result\":3}"}]), "{revision}");
    }
}

#[test]
fn limits_hold_for_functions_as_for_any_tool() {
    let mut host = TestHost::serving(&["drawings"]);
    assert!(host.call("spin", json!({})).error_text().contains("out of fuel"));
    assert!(host.call("trap", json!({})).error_text().contains("unreachable"));
    assert!(host.call("zeros", json!({"count": 60_000})).error_text().contains("(limit \"output\")"));
    assert!(host.call("zeros", json!({"count": 4_000_000})).error_text().contains("(limit \"host_data\")"));
    assert_eq!(host.call("zeros", json!({"count": 3})).structured()["result"], "AAAA");
    host.still_answers();
}

#[test]
fn texts_come_from_the_manifest_then_from_the_wit_beside_it_then_from_the_component() {
    let annotated = |folder: &Folder| {
        folder.write("texts.wit", WIT.replace("/// The area of a shape.", "/// From the component."));
        let arguments = ["annotate", "components/drawings.wasm", "--wit", "texts.wit"];
        Command::in_folder(folder, &arguments).run().succeeded().to_owned()
    };
    let described =
        "[components.drawings.describe]\n\"area.shape\" = \"Which one.\"\n\"point.x\" = \"From the manifest.\"\n";
    for (more, area, x) in [
        ("", "From the component.", "To the right."),
        ("wit = \"wit/\"\n", "The area of a shape.", "To the right."),
        (described, "From the component.", "From the manifest."),
    ] {
        let folder = Folder::with_manifest(&manifest(more));
        folder.write("wit/drawings.wit", WIT);
        assert!(annotated(&folder).contains("10 descriptions"), "{}", annotated(&folder));
        let tools = TestHost::in_folder(folder).list();
        let tool = tool(&tools, "area");
        assert_eq!(tool["description"], area, "{more}");
        let schema = tool["inputSchema"].to_string();
        assert!(schema.contains(&format!("\"description\":{}", json!(x))), "no {x:?} in {schema}");
        assert!(schema.contains("A closed line."), "{schema}");
        assert_eq!(schema.contains("Which one."), !more.is_empty() && !more.contains("wit"), "{schema}");
    }
}

#[test]
fn an_annotated_component_works_as_before_and_is_annotated_once() {
    let folder = Folder::with_manifest(&manifest(""));
    folder.write("drawings.wit", WIT);
    let before = fixture_bytes("drawings").len();
    let sizes: Vec<usize> = (0..2)
        .map(|_| {
            let arguments = ["annotate", "components/drawings.wasm", "--wit", "drawings.wit"];
            assert!(Command::in_folder(&folder, &arguments).run().succeeded().contains("descriptions"));
            std::fs::metadata(folder.path().join("components/drawings.wasm")).unwrap().len() as usize
        })
        .collect();
    assert!(sizes[0] > before && sizes[0] == sizes[1], "{before} {sizes:?}");
    let mut host = TestHost::in_folder(folder);
    assert_eq!(host.call("sum", json!({"values": [40, 2]})).structured()["result"], 42);
}

#[test]
fn annotate_leaves_out_what_wasi_says_of_itself() {
    let folder = Folder::with_manifest(&manifest(""));
    folder.write("wit/drawings.wit", WIT);
    let arguments = ["annotate", "components/drawings.wasm", "--wit", "wit"];
    let alone = Command::in_folder(&folder, &arguments).run().succeeded().to_owned();
    let wasi = "/// Streams.\npackage wasi:io@0.2.12;\ninterface streams {\n    /// Reads.\n    read: func();\n}\n";
    folder.write("wit/deps/io.wit", wasi);
    assert_eq!(Command::in_folder(&folder, &arguments).run().succeeded(), alone);
    assert!(alone.contains("10 descriptions"), "{alone}");
}

#[test]
fn annotate_says_what_is_wrong() {
    let folder = Folder::with_manifest(&manifest_of(&["drawings", "core_module"]));
    folder.write("silent.wit", "package a:b;\ninterface c { go: func(); }\n");
    folder.write("broken.wit", "package a:b;\ninterface c { go func(); }\n");
    folder.write("empty/readme.txt", "");
    for (component, wit, expected) in [
        ("drawings", "silent.wit", "silent.wit describes nothing"),
        ("drawings", "broken.wit", "broken.wit:2:"),
        ("drawings", "empty", "empty has no .wit files"),
        ("drawings", "missing.wit", "missing.wit cannot be read: there is no such file"),
        ("core_module", "silent.wit", "is not a WebAssembly component"),
    ] {
        let component = format!("components/{component}.wasm");
        let finished = Command::in_folder(&folder, &["annotate", &component, "--wit", wit]).run();
        assert!(finished.failed_with(1).contains(expected), "no {expected:?} in {}", finished.stderr);
    }
}

fn refused(manifest: &str) -> String {
    let folder = Folder::with_manifest(manifest);
    folder.write("broken.wit", "package a:b;\ninterface c {\n  go func();\n}\n");
    Command::in_folder(&folder, &["check", "toolcell.toml"]).run().failed_with(1).to_owned()
}

#[test]
fn what_the_manifest_says_of_functions_must_fit() {
    let text = refused(&manifest("wit = \"broken.wit\"\n"));
    assert!(text.contains("broken.wit:3:") && text.contains("wit = \"broken.wit\""), "{text}");
    let text = refused(&manifest("[components.drawings.describe]\n\"area.shap\" = \"x\"\n"));
    assert!(text.contains("did you mean \"area.shape\"?"), "{text}");
    let good = format!("{}skip_unsupported = true\nwit = \"wit\"\n", manifest_of(&["good"]));
    let text = refused(&good.replace("wit = \"wit\"\n", ""));
    assert!(text.contains("skip_unsupported of component \"good\" can never apply"), "{text}");
}

/// The names of the tools, sorted.
fn names(host: &mut TestHost) -> Vec<String> {
    let mut names: Vec<String> = host.list().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    names.sort_unstable();
    names
}

#[test]
fn functions_that_json_cannot_serve_are_left_out_with_a_warning_that_can_be_taken_away() {
    let manifest = manifest_of(&["takes_resource"]);
    for (more, warns) in [("", true), ("skip_unsupported = true\n", false)] {
        let folder = Folder::with_manifest(&format!("{manifest}{more}"));
        let said = Command::in_folder(&folder, &["check", "toolcell.toml"]).run().stderr;
        let warning = "goes without \"take\" (its parameter \"it\" has a resource)";
        assert_eq!(said.contains(warning), warns, "{said}");
        assert_eq!(said.contains("hint: skip_unsupported = true"), warns, "{said}");
        let mut host = TestHost::in_folder(folder);
        assert_eq!(names(&mut host), ["go"]);
        assert_eq!(host.call("go", json!({})).structured()["result"], 7);
    }
}

#[test]
fn functions_beside_a_list_of_tools_are_left_out_with_a_warning_that_can_be_taken_away() {
    let manifest = manifest_of(&["lists_and_functions"]);
    for (more, warns) in [("", true), ("skip_unsupported = true\n", false)] {
        let folder = Folder::with_manifest(&format!("{manifest}{more}"));
        let said = Command::in_folder(&folder, &["check", "toolcell.toml"]).run().stderr;
        let warning =
            "goes without \"acme:more/numbers@1.0.0.double\" (the component lists its tools itself, by the contract)";
        assert_eq!(said.contains(warning), warns, "{said}");
        let mut host = TestHost::in_folder(folder);
        assert_eq!(names(&mut host), ["run"]);
        assert_eq!(host.call("run", json!({})).text(), "survived");
    }
}

const LONG: &str = "this_is_a_very_long_function_name_that_goes_on_and_on_u_118103e4";

#[test]
fn functions_of_one_name_are_told_apart_and_long_names_are_shortened() {
    let mut host = TestHost::serving(&["same_names"]);
    assert_eq!(names(&mut host), ["acme_a_one_go", "acme_b_one_1_0_0_go", "acme_b_one_2_0_0_go", LONG]);
    for (tool, answer) in [("acme_a_one_go", 0), ("acme_b_one_1_0_0_go", 1), ("acme_b_one_2_0_0_go", 2), (LONG, 3)] {
        assert_eq!(host.call(tool, json!({})).structured()["result"], answer, "{tool}");
    }
    // A prefix makes no name too long.
    let mut host = TestHost::with_manifest(&format!("{}prefix = \"p_\"\n", manifest_of(&["same_names"])));
    let prefixed = names(&mut host);
    let long = prefixed.iter().find(|name| name.starts_with("p_this")).unwrap();
    assert_eq!(long.len(), 64);
    assert_eq!(host.call(long, json!({})).structured()["result"], 3);
}

#[test]
fn the_manifest_names_the_functions_that_are_tools() {
    let exports = |rows: &str| format!("{}[components.same_names.exports]\n{rows}", manifest_of(&["same_names"]));
    let named = exports("\"acme:b/one@2.0.0.go\" = \"go\"\n\"acme:a/one.go\" = \"begin\"\n");
    for walls in ["best", "none"] {
        let manifest = named.replacen("[components", &format!("[server]\nwalls = \"{walls}\"\n[components"), 1);
        let mut host = TestHost::with_manifest(&manifest);
        assert_eq!(names(&mut host), ["begin", "go"], "{walls}");
        assert_eq!(host.call("go", json!({})).structured()["result"], 2, "{walls}");
        assert_eq!(host.call("begin", json!({})).structured()["result"], 0, "{walls}");
        assert!(!host.said().contains("warning"), "{}", host.said());
    }
    for (rows, expected) in [
        ("\"acme:b/one.go\" = \"go\"\n", "add the version: acme:b/one@1.0.0.go or acme:b/one@2.0.0.go"),
        ("\"acme:c/one.go\" = \"go\"\n", "did you mean \"acme:a/one.go\"?"),
        ("\"acme:a/one.go\" = \"go\"\n[components.same_names.tools.begin]\n", "has no tool \"begin\""),
    ] {
        let text = refused(&exports(rows));
        assert!(text.contains(expected), "no {expected} in {text}");
    }
    let takes = format!("{}[components.takes_resource.exports]\ntake = \"take\"\n", manifest_of(&["takes_resource"]));
    let text = refused(&takes);
    assert!(text.contains("\"take\" of component \"takes_resource\" cannot be a tool: its parameter"), "{text}");
    let other = format!("{}[components.good.exports]\ngo = \"go\"\n", manifest_of(&["good"]));
    assert!(refused(&other).contains("exports of component \"good\" can never apply"), "{}", refused(&other));
}

#[test]
fn the_lock_tells_a_tool_that_was_renamed_or_became_another_function() {
    let manifest = |rows: &str| format!("{}[components.same_names.exports]\n{rows}", manifest_of(&["same_names"]));
    let folder = Folder::with_manifest(&manifest("\"acme:a/one.go\" = \"go\"\n"));
    let _ = Command::in_folder(&folder, &["lock"]).run().succeeded();
    for (rows, expected) in [
        ("\"acme:a/one.go\" = \"begin\"\n", "tool begin: name was \"go\", is \"begin\""),
        ("\"acme:b/one@1.0.0.go\" = \"go\"\n", "tool go may now: be the function acme:b/one@1.0.0.go"),
    ] {
        folder.write("toolcell.toml", manifest(rows));
        let finished = Command::in_folder(&folder, &["diff"]).run();
        let said = format!("{}{}", finished.stdout, finished.stderr);
        assert!(said.contains(expected), "no {expected} in {said}");
    }
}

#[test]
fn a_program_that_exports_functions_is_both() {
    let more = "[components.run_and_functions.tools.run]\ndescription = \"Runs.\"\nargs = []\nexit_codes = [1]\n";
    for (walls, run) in [("best", more), ("none", more), ("best", "")] {
        let manifest = manifest_of(&["run_and_functions"]) + run;
        let manifest = manifest.replacen("[components", &format!("[server]\nwalls = \"{walls}\"\n[components"), 1);
        let mut host = TestHost::with_manifest(&manifest);
        let tools = if run.is_empty() { vec!["add_one"] } else { vec!["add_one", "run"] };
        assert_eq!(names(&mut host), tools, "{walls}");
        assert_eq!(host.call("add_one", json!({"a": 41})).structured()["result"], 42, "{walls}");
        assert!(host.call("add_one", json!({"a": "x"})).error_text().starts_with("$.a: "), "{walls}");
        if !run.is_empty() {
            assert!(!host.call("run", json!({})).is_error(), "{walls}");
        }
    }
    let shared = format!("{}instance = \"per-caller\"\n{more}", manifest_of(&["run_and_functions"]));
    assert!(refused(&shared).contains("no call can share its instance"), "{}", refused(&shared));
    let folder = Folder::with_manifest(&manifest_of(&["run_and_functions"]));
    let arguments = ["inspect", "components/run_and_functions.wasm"];
    let shown = Command::in_folder(&folder, &arguments).run().succeeded().to_owned();
    for part in ["typed, and a program", "add_one", "function  probe:both/api@1.0.0.add-one"] {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
}

#[test]
fn inspect_shows_the_tools_and_the_entry_to_paste() {
    let folder = Folder::with_manifest(&manifest_of(&["drawings", "takes_resource"]));
    let shown =
        Command::in_folder(&folder, &["inspect", "components/takes_resource.wasm"]).run().succeeded().to_owned();
    for part in ["typed", "not \"take\"", "[components.takes_resource]", "skip_unsupported = true"] {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
    let found = Command::in_folder(&folder, &["inspect", "components/drawings.wasm", "--json"]).run().json();
    assert_eq!((&found["shape"], found["tools"].as_array().unwrap().len()), (&json!("typed"), 9));
    let entry = found["manifest"].as_str().unwrap();
    let pasted = Folder::with_manifest(&format!("version = 1\n{entry}"));
    pasted.write("components/drawings.wasm", fixture_bytes("drawings"));
    assert_eq!(Command::in_folder(&pasted, &["check", "toolcell.toml"]).run().code(), 0);
}
