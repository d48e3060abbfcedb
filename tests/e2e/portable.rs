//! Schemas as clients are served them, arguments as clients write them, and errors as clients read
//! them: what common model APIs and SDKs take.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{
    Command, Folder, LEGACY_REVISIONS, LIST_CHANGED, MODERN_REVISION, Saving, TestHost, fixture_bytes, manifest_of,
};

/// The largest bound that every reader of JSON tells from its neighbours: 2^53 − 1.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

/// The fixtures with calls behind walls, and in the host's process.
fn both_ways(fixtures: &[&str]) -> [TestHost; 2] {
    ["best", "none"].map(|walls| {
        let walled = format!("version = 1\n[server]\nwalls = \"{walls}\"\n");
        TestHost::with_manifest(&manifest_of(fixtures).replace("version = 1\n", &walled))
    })
}

fn tool<'t>(tools: &'t [Value], name: &str) -> &'t Value {
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name} in {tools:?}"))
}

#[test]
fn written_schemas_are_served_in_a_form_that_every_client_takes_and_checked_as_written() {
    let range = json!({"type": "array", "minItems": 2, "prefixItems": [{"type": "integer"}, {"type": "integer"}],
        "items": {}, "maxItems": 2});
    let pattern = r"^(?!\.)[a-z.]+@[a-z.]+$";
    let served = json!({
        "type": "object",
        "properties": {
            "mode": {"type": "string"},
            "indent": {"type": "integer", "minimum": 0},
            "size": {"type": "string", "enum": ["small", "large"]},
            "kind": {"type": "string", "enum": ["plain"]},
            "mail": {"type": "string", "description": format!("Must match the pattern {pattern}")},
            "lines": range, "columns": range,
            "more": {"type": "object", "properties": {}},
        },
        "required": ["mode"],
        "additionalProperties": false,
    });
    for mut host in both_ways(&["picky"]) {
        assert_eq!(tool(&host.list(), "takes")["inputSchema"], served);
        let refused = host.call("takes", json!({"mode": "x", "size": "huge", "lines": [1, 2, 3], "kind": "fancy"}));
        for place in ["/size", "/lines", "/kind"] {
            assert!(refused.error_text().contains(place), "no {place} in {}", refused.error_text());
        }
    }
}

#[test]
fn a_pattern_that_looks_ahead_keeps_nothing_from_loading_and_is_warned_of_once() {
    let mut host = TestHost::serving(&["picky"]);
    host.initialize("2025-11-25");
    let arguments = r#"{"mode":"x","mail":".@."}"#;
    assert_eq!(host.call("takes", serde_json::from_str(arguments).unwrap()).text(), arguments, "it is a note");
    let warning = "component \"picky\", tool \"takes\": inputSchema/properties/mail/pattern looks around, refers back \
                   or is too large, and is not applied";
    host.will_say(warning);
    // Nor is it said again by a reload.
    host.folder().write("components/good.wasm", fixture_bytes("good"));
    host.folder().save(Saving::RenamedOver, "toolcell.toml", manifest_of(&["picky", "good"]));
    let _ = host.next_of(LIST_CHANGED);
    assert_eq!(host.said().matches("looks around, refers back").count(), 1, "{}", host.said());
}

#[test]
fn an_optional_argument_that_is_null_is_left_out_and_an_integer_with_a_point_is_one() {
    for mut host in both_ways(&["picky", "drawings"]) {
        for (given, seen) in [
            (json!({"mode": "crlf", "indent": null}), r#"{"mode":"crlf"}"#),
            (json!({"mode": "crlf", "indent": 1.0, "lines": null}), r#"{"mode":"crlf","indent":1}"#),
            (json!({"mode": "crlf", "lines": [1.0, 2e3]}), r#"{"mode":"crlf","lines":[1,2000]}"#),
            (
                json!({"mode": "crlf", "more": {"any": null, "thing": 1.0}}),
                r#"{"mode":"crlf","more":{"any":null,"thing":1.0}}"#,
            ),
        ] {
            assert_eq!(host.call("takes", given).text(), seen);
        }
        assert!(host.call("takes", json!({"mode": null})).error_text().contains("/mode"), "a required one is not");
        assert!(host.call("takes", json!({"mode": "x", "indent": 1.5})).error_text().contains("/indent"));
        // A typed function converts them itself.
        assert_eq!(host.call("sum", json!({"values": [40.0, 2]})).structured()["result"], 42);
        assert_eq!(host.call("maybe", json!({"value": null})).structured(), host.call("maybe", json!({})).structured());
    }
}

#[test]
fn an_optional_argument_of_a_program_may_be_null() {
    let program = "[components.p]\nsource = \"components/program.wasm\"\n[components.p.tools.show]\ndescription = \"Shows.\"\n\
                   input = { text = 'a text', 'lang?' = 'a language', 'n?' = 'integer: a number' }\n\
                   args = ['show', ['--lang', '{lang?}'], ['-n', '{n?}'], '--', '{text}']\n";
    for walls in ["best", "none"] {
        let manifest = format!("version = 1\n[server]\nwalls = \"{walls}\"\n{program}");
        let mut host = TestHost::with_manifest(&manifest);
        let mut args = |arguments: Value| -> Value {
            serde_json::from_str::<Value>(host.call("show", arguments).text()).unwrap()["args"].clone()
        };
        let plain = args(json!({"text": "x"}));
        assert_eq!(plain, json!(["p", "show", "--", "x"]));
        assert_eq!(args(json!({"text": "x", "lang": null, "n": null})), plain);
        assert_eq!(args(json!({"text": "x", "n": 7.0})), json!(["p", "show", "-n", "7", "--", "x"]));
    }
}

#[test]
fn an_error_has_no_content_that_the_output_schema_refuses() {
    let inside_out = json!({"shape": {"circle": {"center": {"x": 0, "y": 0}, "radius": -1.5}}});
    let rows = [
        ("fails_with_a_value", json!({}), json!({"reason": "closed"}), vec![r#"{"reason":"closed"}"#]),
        (
            "fails_in_words",
            json!({}),
            json!({"reason": "closed"}),
            vec!["come back tomorrow", r#"{"reason":"closed"}"#],
        ),
        (
            "area",
            inside_out,
            json!({"error": {"negative-radius": -1.5}}),
            vec![r#"{"error":{"negative-radius":-1.5}}"#],
        ),
        ("fail", json!({}), json!({"error": null}), vec![r#"{"error":null}"#]),
    ];
    let check = |revision: &str, name: &str, result: &Value, value: &Value, texts: &[&str]| {
        assert_eq!(result["isError"], true, "{revision} {name}: {result}");
        let said: Vec<&str> =
            result["content"].as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap()).collect();
        if revision == MODERN_REVISION {
            // Its clients hold results alone to the schema.
            assert_eq!(&result["structuredContent"], value, "{name}");
            assert_eq!(said[0], texts[0], "{name}");
        } else {
            assert_eq!(result.get("structuredContent"), None, "{revision} {name}: {result}");
            assert_eq!(said, texts, "{revision} {name}");
        }
    };
    let web = WebHost::serving(&["picky", "drawings"]);
    for revision in LEGACY_REVISIONS.into_iter().chain([MODERN_REVISION]) {
        let mut host = TestHost::serving(&["picky", "drawings"]);
        let session = (revision != MODERN_REVISION).then(|| {
            host.initialize(revision);
            web.session(revision)
        });
        for (name, arguments, value, texts) in &rows {
            let params = json!({"name": name, "arguments": arguments});
            let result = host.request("tools/call", params.clone())["result"].clone();
            check(revision, name, &result, value, texts);
            let ask = match &session {
                Some(session) => Ask::request(9, "tools/call", params).of_session(session),
                None => Ask::call(name, arguments.clone()),
            };
            check(revision, name, &web.ask(&ask).frame()["result"], value, texts);
        }
    }
}

#[test]
fn a_list_of_records_with_a_hundred_wide_integers_is_a_tool() {
    for mut host in both_ways(&["hundred_fields"]) {
        let tools = host.list();
        let row = &tool(&tools, "same")["inputSchema"]["properties"]["rows"]["items"];
        assert_eq!(row["properties"].as_object().unwrap().len(), 100);
        assert!(tools[0].to_string().len() < 32 * 1024, "{}", tools[0].to_string().len());
        let row: Value = (0..100).map(|n| (format!("f{n}"), json!(n))).collect::<serde_json::Map<_, _>>().into();
        let mut rows = json!([row, row]);
        rows[0]["f99"] = json!(i64::MIN.to_string());
        assert_eq!(host.call("same", json!({"rows": rows})).structured()["result"], rows);
        rows[0]["f99"] = json!("9223372036854775808");
        let refused = host.call("same", json!({"rows": rows}));
        assert!(refused.error_text().starts_with("$.rows[0].f99: expected an integer from -9223372036854775808"));
    }
}

#[test]
fn no_schema_that_is_served_has_what_some_api_refuses() {
    let fixtures = ["good", "picky", "drawings", "prompts", "tasks", "asks", "labels", "remembers"];
    let program = "[components.p]\nsource = \"components/program.wasm\"\n[components.p.tools.counts]\n\
                   description = \"Counts.\"\ninput = { n = { type = 'integer', maximum = 9_223_372_036_854_775_807 } }\n\
                   args = ['count', '{n}']\noutput = 'json'\n\
                   output_schema = { type = 'object', properties = { kind = { const = 'count' }, all = { type = 'array' } } }\n";
    let manifest = format!("{}{program}", manifest_of(&fixtures));
    for revision in LEGACY_REVISIONS.into_iter().chain([MODERN_REVISION]) {
        let mut host = TestHost::with_manifest(&manifest);
        if revision != MODERN_REVISION {
            host.initialize(revision);
        }
        let tools = host.list();
        assert!(tools.len() > 20, "{tools:?}");
        assert!(tool(&tools, "counts")["inputSchema"]["properties"]["n"].get("maximum").is_none());
        tools.iter().for_each(|tool| check_tool(tool, revision));
    }
}

#[test]
fn nor_has_one_of_the_examples_or_of_the_fixtures_that_behave() {
    let fixtures = [
        "asks",
        "chained",
        "composed",
        "contract_1_0",
        "contract_1_1",
        "contract_1_2",
        "declared_views",
        "drawings",
        "good",
        "hundred_fields",
        "hungry",
        "labels",
        "liar",
        "loops",
        "markup",
        "noisy",
        "nosy",
        "numbered",
        "picky",
        "prompts",
        "quitter",
        "reach_files",
        "reach_http",
        "reach_settings",
        "reach_sockets",
        "reach_state",
        "remembers",
        "resources",
        "smuggle",
        "tasks",
        "versioned_a",
        "views",
    ];
    let component = |name: &str, source: &str| {
        format!("\n[components.{name}]\nsource = \"{source}/{name}.wasm\"\nprefix = \"{name}_\"\n")
    };
    let mut manifest = "version = 1\n".to_owned();
    manifest.extend(fixtures.iter().map(|name| component(name, "components")));
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-examples/components");
    let examples: Vec<String> = fs::read_dir(&built)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(examples.len() > 10, "{examples:?}; run `make guests`");
    manifest.extend(examples.iter().map(|name| component(name, "examples")));
    let folder = Folder::with_manifest(&manifest);
    for name in &examples {
        folder.write(&format!("examples/{name}.wasm"), fs::read(built.join(format!("{name}.wasm"))).unwrap());
    }
    // By the table of what each API takes, too.
    let refused = ["inexact_number", "enum_not_text", "const", "reference", "array_without_items", "irregular_pattern"];
    let checked = Command::in_folder(&folder, &["check", "--json", "toolcell.toml"]).run().json();
    let warnings = checked["warnings"].as_array().unwrap();
    let is_served = |one: &Value| one["served"] == true && refused.iter().any(|code| one["code"] == *code);
    assert!(!warnings.is_empty() && !warnings.iter().any(is_served), "{warnings:?}");
    let tools = TestHost::in_folder(folder).list();
    assert!(tools.len() > 150, "{}", tools.len());
    tools.iter().for_each(|tool| check_tool(tool, MODERN_REVISION));
}

fn check_tool(tool: &Value, revision: &str) {
    for field in ["inputSchema", "outputSchema"] {
        if let Some(schema) = tool.get(field) {
            check_schema(schema, &format!("{revision} {} {field}", tool["name"]));
        }
    }
}

/// Fails on the parts of a schema that some model API or SDK refuses.
fn check_schema(schema: &Value, place: &str) {
    let members = schema.as_object().unwrap_or_else(|| panic!("{place} is {schema}"));
    for keyword in ["$ref", "$defs", "definitions", "const", "oneOf"] {
        assert!(!members.contains_key(keyword), "{keyword} at {place}");
    }
    for bound in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        let bound = members.get(bound).map_or(0.0, |bound| bound.as_f64().unwrap());
        assert!(bound.abs() <= EXACT_MAX, "{bound} at {place}");
    }
    let is = |name: &str| members.get("type").is_some_and(|ty| ty == name);
    assert!(!is("object") || members["properties"].is_object(), "no properties at {place}");
    assert!(!is("array") || members["items"].is_object(), "no items at {place}");
    let texts = members.get("enum").and_then(Value::as_array);
    assert!(texts.is_none_or(|texts| is("string") && texts.iter().all(Value::is_string)), "enum at {place}");
    let pattern = members.get("pattern").and_then(Value::as_str).unwrap_or_default();
    assert!(pattern.len() < 100 && !pattern.contains("(?="), "{pattern} at {place}");
    for (name, schema) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        check_schema(schema, &format!("{place}/{name}"));
    }
    for keyword in ["prefixItems", "anyOf", "allOf"] {
        for schema in members.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            check_schema(schema, &format!("{place}/{keyword}"));
        }
    }
    for schema in
        members.get("items").into_iter().chain(members.get("additionalProperties").filter(|it| it.is_object()))
    {
        check_schema(schema, &format!("{place}/*"));
    }
}
