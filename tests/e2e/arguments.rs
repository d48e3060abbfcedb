//! Conditions on arguments: every call meets them, whoever makes it and however it is written.
//!
//! Promise: a condition on arguments holds for what the tool gets.
//! Promise: a nested call is a call.
//! Promise: a withdrawn right is gone at once.

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, Saving, TestHost, manifest_of};

/// Conditions for the one caller over stdio.
const LOCAL: &str = "
[callers.local]
tools = [\"*\"]
[callers.local.arguments.\"good/echo\"]
text = \"sandbox-*\"
[callers.local.arguments.\"good/add\"]
a = { maximum = 5 }
b = { maximum = 7, optional = true }
";

fn host(further: &str) -> TestHost {
    TestHost::recording(&format!("{}{further}", manifest_of(&["good"])))
}

fn of(records: &[Value], event: &str) -> Vec<Value> {
    records.iter().filter(|record| record["event"] == event).cloned().collect()
}

const REFUSED: &str = "The arguments are not allowed here:\n- text: must fit text = \"sandbox-*\" in \
                       [callers.local.arguments.\"good/echo\"]";

#[test]
fn a_call_that_fits_runs_and_another_is_refused_by_the_line_before_anything_of_it_begins() {
    let mut host = host(LOCAL);
    assert_eq!(host.call("echo", json!({"text": "sandbox-1"})).text(), "sandbox-1");
    assert_eq!(host.call("echo", json!({"text": "live"})).error_text(), REFUSED);
    let missing = host.call("echo", json!({}));
    assert_eq!(missing.error_text(), format!("{REFUSED} (it is missing)"));
    let over = host.call("add", json!({"a": 6, "b": 8}));
    assert_eq!(
        over.error_text(),
        "The arguments are not allowed here:\n\
         - a: must fit a = { maximum = 5 } in [callers.local.arguments.\"good/add\"] (must be at most 5)\n\
         - b: must fit b = { maximum = 7, optional = true } in [callers.local.arguments.\"good/add\"] (must be at most 7)"
    );
    let records = host.audit();
    let refused = of(&records, "call.refused");
    assert_eq!((refused.len(), of(&records, "call.started").len()), (3, 1), "{records:#?}");
    assert_eq!(refused[0]["outcome"], "not_allowed");
    assert_eq!(refused[0]["detail"], REFUSED);
    assert!(refused.iter().all(|record| !record.to_string().contains("\"live\"")), "no argument is quoted");
}

/// A number is checked as the guest gets it, and the guest gets it as it was checked.
#[test]
fn arguments_are_checked_in_the_form_that_the_guest_gets() {
    let mut host = host(LOCAL);
    for (arguments, sum) in [(json!({"a": 2.0, "b": 3}), 5), (json!({"a": 5.0e0, "b": 7.0}), 12)] {
        assert_eq!(host.call("add", arguments).structured(), &json!({"sum": sum}));
    }
    for arguments in [json!({"a": 6.0, "b": 1}), json!({"a": "2", "b": 1}), json!({"a": [2], "b": 1}), json!({"b": 1})]
    {
        assert!(host.call("add", arguments.clone()).is_error(), "{arguments}");
    }
    // What fits the rules is checked by the tool's schema as before.
    let unfit = host.call("add", json!({"a": -1, "b": 1}));
    assert!(unfit.error_text().contains("/a: must be at least 0"), "{}", unfit.error_text());
    for text in ["sandbox-1/../live", "sandbox-1\nlive", "Sandbox-1", "sandbox‐1", "ѕandbox-1", "live sandbox-1"] {
        assert_eq!(host.call("echo", json!({ "text": text })).error_text(), REFUSED, "{text}");
    }
    host.still_answers();
}

/// One reader takes the first value, another the last.
#[test]
fn an_argument_that_is_given_twice_reaches_no_rule_and_no_tool() {
    let mut host = host(LOCAL);
    for arguments in [r#"{"text":"sandbox-1","text":"live"}"#, r#"{"text":"live","te\u0078t":"sandbox-1"}"#] {
        host.send_line(&format!(
            r#"{{"jsonrpc":"2.0","id":"twice","method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
        ));
        let answer = host.reply_to(&json!("twice"));
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text == "Duplicate key: text"), "{answer}");
    }
    assert_eq!(of(&host.audit(), "call.started").len(), 0);
}

#[test]
fn clients_see_the_schema_that_is_left() {
    let mut host = host(LOCAL);
    let tools = host.list();
    let schema = |name: &str| &tools.iter().find(|tool| tool["name"] == name).unwrap()["inputSchema"];
    let text = &schema("echo")["properties"]["text"];
    assert_eq!((&text["type"], &text["description"]), (&json!("string"), &json!("What comes back.")));
    assert!(text["pattern"].as_str().unwrap().starts_with("^(?:sandbox-"), "{text}");
    let add = schema("add");
    assert_eq!((&add["properties"]["a"]["maximum"], &add["properties"]["b"]["maximum"]), (&json!(5), &json!(7)));
    assert_eq!(add["properties"]["a"]["type"], "integer");
    assert_eq!(schema("slow")["properties"]["steps"]["maximum"], 4_294_967_295_u64);
}

#[test]
fn calls_of_tools_and_scripts_meet_the_conditions_of_the_client_s_caller() {
    let manifest = format!(
        "{}calls = ['echo']\n[code]\ncalls = ['echo']\n[code.limits]\nfuel = 2_000_000_000\n{LOCAL}",
        manifest_of(&["good", "calls"])
    );
    let mut host = TestHost::recording(&manifest);
    let relayed = host.call("relay", json!({"tool": "echo", "arguments": {"text": "live"}}));
    assert_eq!(relayed.structured(), &json!({"refused": "Denied", "text": REFUSED}));
    let relayed = host.call("relay", json!({"tool": "echo", "arguments": {"text": "sandbox-1"}}));
    assert_eq!(relayed.structured()["ok"]["texts"], json!(["sandbox-1"]));
    let code = "try { return await tools.echo({text: 'live'}) } catch (error) { return [error.reason, error.message] }";
    let script = host.call("run_code", json!({ "code": code }));
    assert_eq!(script.structured()["result"], json!(["denied", format!("echo: {REFUSED}")]));
    let refused = of(&host.audit(), "call.refused");
    assert_eq!(refused.len(), 2, "{refused:#?}");
    assert!(refused.iter().all(|record| record["depth"] == 1 && record["outcome"] == "not_allowed"), "{refused:#?}");
}

#[test]
fn scripts_are_shown_the_values_that_are_left() {
    let rule = "[callers.local]\ntools = [\"*\"]\n[callers.local.arguments.\"good/echo\"]\ntext = [\"one\", \"two\"]\n";
    let mut host = host(&format!("\n[code]\ncalls = ['echo']\n{rule}"));
    let shown = host.call("describe_tools", json!({"names": ["echo"]}));
    assert!(shown.text().contains("text: \"one\" | \"two\";"), "{}", shown.text());
}

#[test]
fn a_condition_on_a_tool_is_for_all_callers() {
    let mut host = host("\n[components.good.tools.echo.arguments]\ntext = [\"one\", \"two\"]\n");
    assert_eq!(host.call("echo", json!({"text": "two"})).text(), "two");
    let refused = host.call("echo", json!({"text": "three"}));
    assert_eq!(
        refused.error_text(),
        "The arguments are not allowed here:\n- text: must fit text = [\"one\", \"two\"] in [components.good.tools.echo.arguments]"
    );
    let tools = host.list();
    let echo = tools.iter().find(|tool| tool["name"] == "echo").unwrap();
    assert_eq!(echo["inputSchema"]["properties"]["text"]["enum"], json!(["one", "two"]));
}

/// The rules of a caller add up: one without conditions takes none of another's away.
#[test]
fn every_rule_of_a_caller_keeps_its_conditions() {
    let rules = "
[http]
tokens = \"tokens.jsonl\"
[callers.dev]
scopes = [\"dev\"]
tools = [\"good/*\"]
[callers.dev.arguments.\"good/echo\"]
text = \"dev-*\"
[callers.short]
scopes = [\"short\"]
tools = [\"echo\"]
[callers.short.arguments.\"good/echo\"]
text = { maxLength = 6 }
[callers.all]
scopes = [\"all\"]
tools = [\"*\"]
";
    let folder = Folder::with_manifest(&format!("{}{rules}", manifest_of(&["good"])));
    let token = |name: &str, scopes: &[&str]| {
        let mut arguments = vec!["token", "new", name];
        scopes.iter().for_each(|scope| arguments.extend(["--scope", *scope]));
        format!("Bearer {}", Command::in_folder(&folder, &arguments).run().succeeded().trim())
    };
    let tokens = [
        token("ann", &["dev"]),
        token("bob", &["short"]),
        token("cyd", &["dev", "short", "all"]),
        token("dan", &["all"]),
    ];
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"]);
    let allows = |token: &str, text: &str| {
        let ask = Ask::call("echo", json!({ "text": text })).with("authorization", token);
        host.ask(&ask).frame()["result"]["isError"] == false
    };
    for (text, expected) in [
        ("dev-1", [true, true, true, true]),
        ("dev-123", [true, false, false, true]),
        ("x", [false, true, false, true]),
        ("xxxxxxx", [false, false, false, true]),
    ] {
        assert_eq!([0, 1, 2, 3].map(|place| allows(&tokens[place], text)), expected, "{text}");
    }
}

#[test]
fn a_condition_that_is_added_holds_from_the_reload_on() {
    let manifest = manifest_of(&["good"]);
    let mut host = host("");
    assert_eq!(host.call("echo", json!({"text": "live"})).text(), "live");
    host.folder().save(Saving::RenamedOver, "toolcell.toml", format!("{manifest}{LOCAL}"));
    let replaced = host.recorded("a reload", |record| record["event"] == "catalog.replaced");
    assert!(replaced["summary"].as_str().unwrap().contains("rules for callers changed: local"), "{replaced}");
    assert_eq!(host.call("echo", json!({"text": "live"})).error_text(), REFUSED);
}

#[test]
fn conditions_that_can_never_hold_or_would_let_anything_pass_are_errors() {
    for (conditions, expected) in [
        ("[callers.local.arguments.\"good/ech\"]\ntext = \"x\"", "component \"good\" has no tool \"ech\""),
        ("[callers.local.arguments.\"good/echo\"]\ntxt = \"x\"", "good/echo has no argument \"txt\""),
        ("[callers.local.arguments.\"good/add\"]\na = \"x\"", "a of good/add is of type integer"),
        ("[callers.local.arguments.\"good/echo\"]\ntext = { maxmum = 5 }", "the keyword \"maxmum\""),
        ("[callers.local.arguments.\"good/echo\"]\ntext = {}", "accepts any value"),
        ("[callers.local.arguments.\"good/echo\"]\ntext = { pattern = \"(?!x)\" }", "look-around"),
        ("[callers.local.arguments.echo]\ntext = \"x\"", "does not name one tool"),
        ("[callers.local.arguments.\"good/*\"]\ntext = \"x\"", "does not name one tool"),
        ("[callers.local.arguments.\"good/clocks\"]\nx = \"y\"", "[callers.local] does not allow good/clocks"),
    ] {
        let manifest =
            format!("{}\n[callers.local]\ntools = [\"echo\", \"add\"]\n{conditions}\n", manifest_of(&["good"]));
        let finished = Command::in_folder(&Folder::with_manifest(&manifest), &["check"]).run();
        let said = finished.failed_with(1);
        assert!(said.contains(expected), "{conditions}: {said}");
    }
}

/// A schema that takes exponential time or memory elsewhere.
#[test]
fn a_pattern_that_costs_much_is_refused_at_load_or_answers_in_time() {
    let manifest = |pattern: &str| {
        let rule = format!(
            "[callers.local]\ntools = [\"*\"]\n[callers.local.arguments.\"good/echo\"]\ntext = {{ pattern = '{pattern}' }}\n"
        );
        format!("{}\n{rule}", manifest_of(&["good"]))
    };
    let large = Command::in_folder(&Folder::with_manifest(&manifest("(((a{100}){100}){100}){100}")), &["check"]).run();
    assert!(large.failed_with(1).contains("is too large, and cannot be applied"), "{}", large.stderr);
    let mut host = TestHost::recording(&manifest("^(a+)+$"));
    let text = format!("{}!", "a".repeat(100_000));
    let refused = host.call("echo", json!({ "text": text }));
    assert!(refused.error_text().starts_with("The arguments are not allowed here:"), "{}", refused.error_text());
    assert!(!host.call("echo", json!({"text": "a".repeat(1_000)})).is_error());
}

#[test]
fn questions_about_calls_are_answered_by_the_rules() {
    let rules = "
[http]
tokens = \"tokens.jsonl\"
[callers.dev]
scopes = [\"dev\"]
tools = [\"echo\"]
[callers.dev.arguments.\"good/echo\"]
text = \"dev-*\"
";
    let folder = Folder::with_manifest(&format!("{}{rules}", manifest_of(&["good"])));
    let explain = |arguments: &[&str]| Command::in_folder(&folder, &[&["policy", "explain"], arguments].concat()).run();
    let allowed = explain(&["good/echo", r#"call {"text":"dev-1"}"#, "--caller", "ann", "--scope", "dev"]);
    assert!(allowed.succeeded().contains("by [callers.dev]"), "{}", allowed.stdout);
    assert!(allowed.stdout.contains("note: text = \"dev-*\" in [callers.dev.arguments.\"good/echo\"] holds"));
    let refused = explain(&["echo", r#"call {"text":"x"}"#, "--caller", "ann", "--scope", "dev"]);
    assert!(refused.succeeded().contains("- text: must fit text = \"dev-*\" in [callers.dev"), "{}", refused.stdout);
    let hidden = explain(&["good/echo", r#"call {"text":"dev-1"}"#, "--caller", "eve"]);
    assert!(hidden.succeeded().contains("no rule in [callers] lets \"eve\" call this tool"), "{}", hidden.stdout);
    let json = explain(&["good/echo", r#"call {"text":"x"}"#, "--scope", "dev", "--caller", "ann", "--json"]).json();
    assert_eq!((&json["allowed"], &json["denial"]), (&json!(false), &Value::Null));
    assert!(json["refusal"].as_str().unwrap().contains("dev-*"), "{json}");
    folder.write(
        "expected.toml",
        "[[expect]]\ntool = \"good/echo\"\nask = 'call {\"text\":\"dev-1\"}'\nscopes = [\"dev\"]\ncaller = \"ann\"\nallowed = true\n\
         [[expect]]\ntool = \"good/echo\"\nask = 'call {\"text\":\"x\"}'\nscopes = [\"dev\"]\ncaller = \"ann\"\nallowed = true\n",
    );
    let tested = Command::in_folder(&folder, &["policy", "test", "expected.toml"]).run();
    assert!(tested.failed_with(1).contains("must fit text = \"dev-*\""), "{}", tested.stderr);
    assert!(tested.stdout.contains("1 of 2 expectations met"), "{}", tested.stdout);
}
