//! Command-line programs as tools. The tests show the input of a run, the part of it that becomes
//! the answer, the ways it ends, and the problems of unsuitable manifests.

use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, LEGACY_REVISIONS, TestHost};

/// A manifest that makes these tools of the program. Each tool is a name and its lines.
fn manifest(component: &str, tools: &[(&str, &str)]) -> String {
    let mut manifest = format!(
        "version = 1\n[defaults.limits]\nfuel = 50_000_000\ndeadline = \"5s\"\nmemory = \"16MiB\"\noutput = \"64KiB\"\n\
         log = \"8KiB\"\nrate = \"1000000/s\"\n[components.p]\nsource = \"components/program.wasm\"\n{component}\n"
    );
    for (name, lines) in tools {
        manifest.push_str(&format!("[components.p.tools.{name}]\ndescription = \"{name}\"\n{lines}\n"));
    }
    manifest
}

fn host(component: &str, tools: &[(&str, &str)]) -> TestHost {
    TestHost::with_manifest(&manifest(component, tools))
}

/// A host with a tool for each mode of the program that takes a number.
fn modes(modes: &[&str]) -> TestHost {
    let lines: Vec<(String, String)> = modes
        .iter()
        .map(|mode| {
            let lines = format!("input = {{ n = {{ type = 'integer', default = 0 }} }}\nargs = ['{mode}', '{{n}}']");
            ((*mode).to_owned(), lines)
        })
        .collect();
    let tools: Vec<(&str, &str)> = lines.iter().map(|(name, lines)| (name.as_str(), lines.as_str())).collect();
    host("", &tools)
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

const SHOW: &str = "input = { text = 'a text', 'lang?' = 'a language', 'verbose?' = 'boolean', 'files?' = 'array' }
args = ['show', '{verbose?-v}', ['--lang', '{lang?}'], '--', '{text}', '{files...}']
stdin = 'it says {text}'
env = { TEXT = '{text}', LANG = '{lang?}', SHADOWED = 'by the tool' }";

#[test]
fn a_program_is_run_with_what_its_templates_say() {
    let component =
        "args = ['fixed']\nenv = { KEPT = 'yes', SHADOWED = 'no' }\nfilesystem = { '/out' = { scratch = '1MiB' } }";
    let shows = SHOW.replace("args = ['show', ", "args = [");
    let mut host = host(&component.replace("fixed", "show"), &[("show", &shows)]);
    let plain = json_of(host.call("show", json!({"text": "a b"})).text());
    assert_eq!(plain["args"], json!(["p", "show", "--", "a b"]));
    assert_eq!(plain["env"], json!([["KEPT", "yes"], ["TEXT", "a b"], ["SHADOWED", "by the tool"]]));
    assert_eq!((&plain["stdin"], &plain["folders"]), (&json!("it says a b"), &json!(["/out"])));
    let all = json!({"text": "x", "lang": "de", "verbose": true, "files": ["a", "b c"]});
    let all = json_of(host.call("show", all).text());
    assert_eq!(all["args"], json!(["p", "show", "-v", "--lang", "de", "--", "x", "a", "b c"]));
    assert_eq!(all["env"][2], json!(["LANG", "de"]));
}

#[test]
fn nothing_of_one_run_is_there_in_the_next() {
    let component = "filesystem = { '/out' = { scratch = '1MiB' } }";
    for prewarm in ["prewarm = 0", "prewarm = 4"] {
        let mut host = host(&format!("{prewarm}\n{component}"), &[("show", SHOW), ("keep", "args = ['keep']")]);
        for round in 0..20 {
            let mut arguments = json!({"text": format!("text {round}")});
            if round % 2 == 0 {
                arguments["lang"] = json!(format!("lang {round}"));
            }
            let shown = json_of(host.call("show", arguments).text());
            assert_eq!(shown["stdin"], format!("it says text {round}"));
            let others = |text: &str| (0..20).any(|other| other != round && text.contains(&format!(" {other}\"")));
            assert!(!others(&shown.to_string()), "{shown}");
            assert_eq!(shown["env"].as_array().unwrap().len(), if round % 2 == 0 { 3 } else { 2 }, "{shown}");
            assert_eq!(host.call("keep", json!({})).text(), "run 1, left \"\"\n");
        }
    }
}

#[test]
fn an_argument_never_splits_and_never_becomes_another_one() {
    let lines = "input = { a = 'text', b = 'text' }\nargs = ['show', '--name={a}', '{a}', '--', '{b}', 'end']";
    let mut host = host("", &[("show", lines)]);
    for hostile in ["a b", "a\nb", "$(id)", "`id`", "a;b|c&d>e", "\"'\\", "{b}", "--x=y", "é\u{202e}\u{1b}", "", " "] {
        let shown = json_of(host.call("show", json!({"a": "a", "b": hostile})).text());
        assert_eq!(shown["args"], json!(["p", "show", "--name=a", "a", "--", hostile, "end"]));
    }
    for hostile in ["-rf", "--output=/etc", "-"] {
        let refused = host.call("show", json!({"a": hostile, "b": "b"}));
        assert_eq!(refused.error_text(), "the argument \"a\" must not begin with \"-\"");
    }
    let refused = host.call("show", json!({"a": "a\0--evil", "b": "b"}));
    assert_eq!(refused.error_text(), "the argument \"a\" must not contain NUL (U+0000)");
    host.still_answers();
}

#[test]
fn tools_are_listed_as_the_manifest_describes_them() {
    let lines = "title = 'Shows'\ninput = { text = 'a text', 'n?' = 'integer: a number' }\nargs = ['count', '{n?}', '{text}']\n\
                 output = 'json'\noutput_schema = { type = 'object', properties = { count = { type = 'integer' } }, required = ['count'] }";
    let manifest = manifest("prefix = 'pre_'", &[("count", lines)]);
    let tool = TestHost::with_manifest(&manifest).list().remove(0);
    assert_eq!((&tool["name"], &tool["title"]), (&json!("pre_count"), &json!("Shows")));
    assert_eq!(tool["description"], "count");
    let properties = json!({
        "text": {"type": "string", "description": "a text"},
        "n": {"type": "integer", "description": "a number"},
    });
    let expected =
        json!({"type": "object", "properties": properties, "required": ["text"], "additionalProperties": false});
    assert_eq!(tool["inputSchema"], expected);
    assert_eq!(tool["outputSchema"]["properties"]["count"]["type"], "integer");
    for revision in LEGACY_REVISIONS {
        let mut host = TestHost::with_manifest(&manifest);
        host.initialize(revision);
        assert_eq!(host.list()[0]["inputSchema"], expected, "{revision}");
        assert!(host.call("pre_count", json!({"text": "x"})).text().contains("\"count\":1"), "{revision}");
        assert!(host.call("pre_count", json!({"txt": "x"})).error_text().contains("input schema of pre_count"));
    }
}

#[test]
fn title_and_description_of_a_component_s_own_tool_are_the_manifest_s() {
    let manifest = "version = 1\n[components.good]\nsource = \"components/good.wasm\"\n[components.good.tools.echo]\n\
                    title = 'Ours'\ndescription = 'As we see it.'\n";
    let tools = TestHost::with_manifest(manifest).list();
    let echo = tools.iter().find(|tool| tool["name"] == "echo").unwrap();
    assert_eq!((&echo["title"], &echo["description"]), (&json!("Ours"), &json!("As we see it.")));
}

#[test]
fn json_is_checked_against_its_schema() {
    let schema =
        "output_schema = { type = 'object', properties = { extra = { type = 'string' } }, required = ['extra'] }";
    let count = format!("input = {{ 'x?' = 'text' }}\nargs = ['count', '{{x?}}']\noutput = 'json'\n{schema}");
    let say = "input = { text = 'a text' }\nargs = ['say', '{text!}']\noutput = 'json'";
    let mut host = host("", &[("count", &count), ("say", say)]);
    assert_eq!(host.call("count", json!({"x": "y"})).structured(), &json!({"count": 1, "extra": "y"}));
    let unfit = host.call("count", json!({}));
    assert!(unfit.error_text().contains("does not fit its output schema"), "{}", unfit.error_text());
    assert_eq!(host.call("say", json!({"text": " [1, 2]\n"})).structured(), &json!([1, 2]));
    for (text, expected) in [
        ("", "the program printed nothing, and one JSON value was expected"),
        ("{} {}", "something else than one JSON value: trailing characters at line 1 column 4; it begins \"{} {}\""),
        ("error: no", "something else than one JSON value: expected value at line 1 column 1; it begins \"error: no\""),
    ] {
        let answer = host.call("say", json!({"text": text}));
        assert!(answer.error_text().contains(expected), "{}", answer.error_text());
    }
}

#[test]
fn a_run_that_fails_says_how_why_and_what_there_was() {
    let exit = "input = { n = 'integer' }\nargs = ['exit', '{n}']\nexit_codes = [0, 1]";
    let mut host = host("", &[("exit", exit), ("mode", "input = { m = 'mode' }\nargs = ['{m}']")]);
    let fine = host.call("exit", json!({"n": 1}));
    assert_eq!((fine.text(), &fine.result()["_meta"]["toolcell/exit_code"]), ("what there was\n", &json!(1)));
    let fine = host.call("exit", json!({"n": 0}));
    assert_eq!((fine.text(), fine.result()["_meta"].get("toolcell/exit_code")), ("what there was\n", None));
    let failed = host.call("mode", json!({"m": "no such"}));
    let text = failed.error_text();
    assert!(text.starts_with("the program ended with exit code "), "{text}");
    assert!(text.ends_with("\n\nstandard error:\nno mode Some(\"no such\")"), "{text}");
    assert!(failed.result()["_meta"]["toolcell/exit_code"].as_u64().unwrap() > 0);
    let panicked = host.call("mode", json!({"m": "panic"}));
    let text = panicked.error_text();
    assert!(text.starts_with("the tool trapped: ") && text.contains("the reason"), "{text}");
}

#[test]
fn every_limit_ends_a_run() {
    let mut host = modes(&["spam_out", "spam_err", "spin", "wait", "hoard", "bytes", "read", "say"]);
    let small = host.call("spam_out", json!({"n": 60_000}));
    assert_eq!(small.text().len(), 60_001);
    for (tool, n, expected) in [
        ("spam_out", 70_000, "the result is larger than 64KiB (limit \"output\")"),
        ("spam_out", 1_000_000_000, "the result is larger than 64KiB (limit \"output\")"),
        ("spin", 0, "out of fuel: the call used its whole budget of 50_000_000 units (limit \"fuel\")"),
        ("hoard", 0, "out of memory: the call needed more than 16MiB (limit \"memory\")"),
        ("wait", 0, "deadline exceeded: the call took longer than 5s (limit \"deadline\")"),
    ] {
        let answer = host.call(tool, json!({"n": n}));
        assert!(answer.error_text().starts_with(expected), "{tool}: {}", answer.error_text());
        host.still_answers();
    }
    let loud = host.call("spam_err", json!({"n": 200_000}));
    let text = loud.error_text();
    assert!(text.ends_with("xxx\nthe last line") && text.len() < 5_000, "{} bytes: {text}", text.len());
    assert_eq!(host.call("bytes", json!({})).text(), "a\u{fffd}\u{fffd}b");
    assert_eq!(host.call("read", json!({})).text(), "0 bytes, then 0\n", "nothing is waited for");
}

#[test]
fn a_file_of_the_run_is_the_answer() {
    let component = "filesystem = { '/out' = { scratch = '32KiB' }, '/data' = { path = '.' } }";
    let write = |kind: &str| {
        format!(
            "input = {{ n = 'integer', path = 'where' }}\nargs = ['write', '{{n}}', '{{path}}']\noutput = {{ file = '/out/x', type = '{kind}' }}"
        )
    };
    let image = write("image/png");
    let audio = write("audio/wav");
    let text = write("text/csv");
    let blob = write("application/zip");
    let mut host = host(component, &[("image", &image), ("audio", &audio), ("text", &text), ("blob", &blob)]);
    let mut content = |tool: &str| host.call(tool, json!({"n": 3, "path": "/out/x"})).result()["content"][0].clone();
    assert_eq!(content("image"), json!({"type": "image", "data": "eXl5", "mimeType": "image/png"}));
    assert_eq!(content("audio"), json!({"type": "audio", "data": "eXl5", "mimeType": "audio/wav"}));
    let resource = |kind: &str, key: &str, body: &str| json!({"type": "resource", "resource": {"uri": "file:///out/x", "mimeType": kind, key: body}});
    assert_eq!(content("text"), resource("text/csv", "text", "yyy"));
    assert_eq!(content("blob"), resource("application/zip", "blob", "eXl5"));
    for (n, path, expected) in [
        (3, "/out/y", "the program made no file /out/x\n\nit printed:\nwrote 3 bytes"),
        (40_000, "/out/x", "the program ended with exit code 1\n\nstandard error:\n/out/x: "),
        (3, "/data/x", "the program ended with exit code 1\n\nstandard error:\n/data/x: "),
        (3, "/etc/x", "the program ended with exit code 1\n\nstandard error:\n/etc/x: "),
    ] {
        let answer = host.call("image", json!({"n": n, "path": path}));
        // A denial is reported in a text of its own.
        let said = answer.result()["content"][0]["text"].as_str().unwrap();
        assert!(answer.is_error() && said.starts_with(expected), "{said}");
    }
}

#[test]
fn standard_output_can_be_a_picture_as_well() {
    let mut host = host("", &[("bytes", "args = ['bytes']\noutput = { type = 'image/png' }")]);
    let content = host.call("bytes", json!({})).result()["content"][0].clone();
    assert_eq!(content, json!({"type": "image", "data": "Yf/+Yg==", "mimeType": "image/png"}));
}

#[test]
fn a_file_larger_than_a_result_is_none() {
    let lines = "input = { n = 'integer' }\nargs = ['write', '{n}', '/out/x']\noutput = { file = '/out/x', type = 'image/png' }";
    let mut host = host("filesystem = { '/out' = { scratch = '1MiB' } }", &[("write", lines)]);
    assert_eq!(host.call("write", json!({"n": 49_000})).result()["content"][0]["type"], "image");
    for n in [65_000, 70_000] {
        let answer = host.call("write", json!({"n": n}));
        assert!(answer.error_text().contains("larger than"), "{}", answer.error_text());
    }
}

#[test]
fn arguments_can_be_files_of_the_call_that_are_gone_after_it() {
    let component = "filesystem = { '/out' = { scratch = '32KiB', files = 3 } }";
    let lines = "input = { a = 'text', 'b?' = 'text' }\nargs = ['files', '/out/a.txt', '{b?/out/b}']\n\
                 files = { '/out/a.txt' = 'a: {a}', '/out/b' = '{b?}' }\noutput = 'json'";
    for prewarm in ["prewarm = 0", "prewarm = 4"] {
        let mut host = host(&format!("{prewarm}\n{component}"), &[("files", lines)]);
        for hostile in ["x", "--help", "../../etc", "a\0b\n\"'$(id)", "", "é"] {
            let one = host.call("files", json!({"a": hostile}));
            assert_eq!(one.structured(), &json!({"names": ["a.txt"], "texts": [format!("a: {hostile}")]}));
            let both = host.call("files", json!({"a": "", "b": hostile}));
            assert_eq!(both.structured(), &json!({"names": ["a.txt", "b"], "texts": ["a: ", hostile]}));
        }
    }
}

#[test]
fn a_file_of_arguments_takes_of_the_quota_of_its_scratch_space() {
    let lines = "input = { a = 'text' }\nargs = ['files', '/out/a']\nfiles = { '/out/a' = '{a}' }";
    let mut exact = host("filesystem = { '/out' = { scratch = '32KiB' } }", &[("files", lines)]);
    let text = exact.call("files", json!({"a": "x".repeat(32 << 10)}));
    assert!(text.text().starts_with("{\"names\":[\"a\"]"), "{}", text.text().len());
    let more = exact.call("files", json!({"a": "x".repeat((32 << 10) + 1)}));
    let expected = "the file /out/a, of 32769 bytes, does not fit the scratch space that it goes to";
    assert_eq!(more.error_text(), expected);
    let two = "input = { a = 'text' }\nargs = ['files']\nfiles = { '/out/a' = '{a}', '/out/b' = '{a}' }";
    let mut few = host("filesystem = { '/out' = { scratch = '32KiB', files = 1 } }", &[("files", two)]);
    assert!(few.call("files", json!({"a": ""})).error_text().contains("the file /out/b"));
    few.still_answers();
}

#[test]
fn a_file_that_a_run_was_given_can_be_its_answer() {
    let lines = "input = { text = 'a text' }\nargs = ['files', '/out/t']\nfiles = { '/out/t' = '{text}' }\n\
                 output = { file = '/out/t', type = 'text/plain' }";
    let mut host = host("filesystem = { '/out' = { scratch = '32KiB' } }", &[("files", lines)]);
    let content = host.call("files", json!({"text": "before"})).result()["content"][0].clone();
    assert_eq!(content["resource"]["text"], "written over");
}

#[test]
fn what_the_manifest_says_of_a_tool_s_behaviour_is_what_clients_are_told() {
    let lines = "read_only = false\ndestructive = false\nidempotent = true\nopen_world = false\nargs = ['count']";
    let tool = TestHost::with_manifest(&manifest("", &[("count", lines), ("plain", "args = ['count']")])).list();
    let told = json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false});
    assert_eq!((&tool[0]["annotations"], tool[1].get("annotations")), (&told, None));
    let own = "version = 1\n[components.good]\nsource = \"components/good.wasm\"\n[components.good.tools.add]\n\
               read_only = false\ndestructive = true\n";
    let tools = TestHost::with_manifest(own).list();
    let add = tools.iter().find(|tool| tool["name"] == "add").unwrap();
    let told = json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false});
    assert_eq!(add["annotations"], told, "what the manifest leaves out is the component's");
}

#[test]
fn calls_of_a_program_are_confirmed_unless_the_manifest_says_that_they_do_no_harm() {
    let lines = |more: &str| format!("{more}\nargs = ['count']");
    let risky = lines("idempotent = true");
    let reads = lines("read_only = true");
    let adds = lines("destructive = false");
    let mut host = host("approval = 'destructive'", &[("risky", &risky), ("reads", &reads), ("adds", &adds)]);
    host.initialize("2025-11-25");
    assert!(host.call("risky", json!({})).error_text().starts_with("the tool \"risky\" needs a person's approval"));
    for harmless in ["reads", "adds"] {
        assert_eq!(host.call(harmless, json!({})).text(), "{\"count\":0,\"extra\":null}\n");
    }
}

#[test]
fn a_preview_1_module_is_a_program() {
    let manifest = "version = 1\n[components.old]\nsource = \"components/preview1.wasm\"\nstdin = 'fixed'\n\
        [components.old.tools.run]\ndescription = 'd'\ninput = { 'a?' = 'x', 'b?' = 'y', 'text?' = 'z' }\n\
        args = ['{a?}', '{b?}']\nenv = { TEXT = '{text?}' }\n[components.old.tools.cat]\ndescription = 'd'\n\
        input = { text = 'a text' }\nstdin = '{text}'\n";
    let mut host = TestHost::with_manifest(manifest);
    for _ in 0..3 {
        assert_eq!(host.call("run", json!({"a": "one"})).text(), "checked: old\0one\0fixed");
        assert_eq!(
            host.call("cat", json!({"text": "long ".repeat(3_000)})).text(),
            format!("checked: old\0{}", "long ".repeat(3_000))
        );
    }
    let failed = host.call("run", json!({"a": "one", "b": "two"}));
    let expected = "the program ended with exit code 7\n\nstandard output:\nchecked: oldonetwofixed";
    assert_eq!(failed.error_text(), expected);
    let much = host.call("run", json!({"a": "x".repeat(50_000)}));
    assert!(
        much.error_text().starts_with("the arguments are larger than the program can be given"),
        "{}",
        much.error_text()
    );
    assert!(host.call("run", json!({"a": "x".repeat(48_000)})).text().contains("xxx"));
    let folder = Folder::with_manifest(manifest);
    let shown = Command::in_folder(&folder, &["inspect", "components/preview1.wasm"]).run();
    assert!(shown.stdout.contains("program (a preview-1 module, adapted)"), "{}", shown.stdout);
}

#[test]
fn paths_of_a_preview_1_program_that_are_not_utf_8_are_eilseq() {
    for walls in ["best", "none"] {
        let manifest = format!(
            "version = 1\n[server]\nwalls = \"{walls}\"\n[components.odd]\nsource = \"components/odd_paths.wasm\"\n\
             filesystem = {{ '/data' = {{ path = 'data', access = 'write', quota = '1MiB' }} }}\n\
             [components.odd.tools.run]\ndescription = 'd'\n"
        );
        let folder = Folder::with_manifest(&manifest);
        folder.make("data/folder");
        folder.link("data/link", "folder");
        let mut host = TestHost::in_folder(folder);
        // Its exit code is the number of the first function that answers something else.
        assert_eq!(host.call("run", json!({})).text(), "", "{walls}");
    }
}

#[test]
fn a_call_of_a_program_is_recorded_as_any_other() {
    let exit = "input = { n = 'integer' }\nargs = ['exit', '{n}']";
    let mut host = TestHost::recording(&manifest("", &[("exit", exit)]));
    host.call("exit", json!({"n": 0}));
    host.call("exit", json!({"n": 1}));
    for outcome in ["ok", "tool_error"] {
        let _ = host.recorded(outcome, |record| record["event"] == "call.finished" && record["outcome"] == outcome);
    }
}

/// The output of `check` for this manifest. It must fail.
fn refused(manifest: &str) -> String {
    let folder = Folder::with_manifest(manifest);
    Command::in_folder(&folder, &["check", "toolcell.toml"]).run().failed_with(1).to_owned()
}

#[test]
fn manifests_that_do_not_fit_the_component_are_refused_with_what_to_write() {
    let contract = "version = 1\n[components.good]\nsource = \"components/good.wasm\"\n[components.good.tools.echo]\n\
                    description = 'd'\ninput = { text = 'x' }\nargs = ['{text}']\n";
    let plain = "version = 1\n[components.p]\nsource = \"components/program.wasm\"\n";
    for (manifest, parts) in [
        (
            contract.to_owned(),
            vec![
                "tool \"echo\" says how a program is run, but component \"good\" is not a program",
                "contract component",
            ],
        ),
        (
            plain.to_owned(),
            vec![
                "is a program, and the manifest makes no tools of it",
                "add [components.p.tools.TOOL] with description",
            ],
        ),
        (
            format!("{plain}instance = 'per-caller'\ntools.t.description = 'd'\n"),
            vec!["no call can share its instance"],
        ),
        (format!("{plain}tools.t.title = 'T'\n"), vec!["the tool \"t\" has no description"]),
        (
            format!(
                "{plain}[components.p.tools.t]\ndescription = 'd'\nargs = ['{{x}}']\ninput = {{ x = {{ type = 'strng' }} }}\n"
            ),
            vec!["tool \"t\": inputSchema/properties/x/type it is not valid"],
        ),
    ] {
        let said = refused(&manifest);
        for part in parts {
            assert!(said.contains(part), "no {part:?} in\n{said}");
        }
    }
}

#[test]
fn modules_that_are_no_programs_are_told_why() {
    for (fixture, parts) in [
        ("core_module", ["it imports from \"env\"", "build it for wasm32-wasi"]),
        ("core_library", ["it exports no \"_start\"", "build a component for wasm32-wasip2, or a program"]),
    ] {
        let said = refused(&format!("version = 1\n[components.a]\nsource = \"components/{fixture}.wasm\"\n"));
        for part in parts {
            assert!(said.contains(part), "no {part:?} in\n{said}");
        }
    }
}

#[test]
fn a_template_that_changed_is_a_change_to_approve() {
    let before = manifest("", &[("say", "input = { text = 'x' }\nargs = ['say', '{text}']")]);
    let folder = Folder::with_manifest(&before);
    assert_eq!(Command::in_folder(&folder, &["lock", "--manifest", "toolcell.toml"]).run().code(), 0);
    std::fs::write(folder.manifest(), before.replace("'{text}'", "'--loud', '{text}'")).unwrap();
    let differs = Command::in_folder(&folder, &["diff", "--manifest", "toolcell.toml"]).run();
    assert!(differs.stdout.contains("--loud"), "{}\n{}", differs.stdout, differs.stderr);
}

#[test]
fn a_program_has_the_devices_that_programs_expect_and_no_other() {
    for component in ["", "filesystem = { '/out' = { scratch = '1MiB' } }"] {
        let mut host = host(component, &[("devices", "args = ['devices']")]);
        let found = json_of(host.call("devices", json!({})).text());
        assert_eq!(found["names"], json!(["null", "random", "urandom", "zero"]));
        assert_eq!(found["zero"], json!(vec![0; 16]));
        assert_eq!((&found["null"], &found["taken"], &found["is_file"]), (&json!([]), &Value::Null, &json!(false)));
        let random = found["random"].as_array().unwrap();
        assert!(random.iter().all(|bytes| bytes.as_array().is_some_and(|bytes| bytes.len() == 16)), "{found}");
        assert!(random[0] != random[1] && random[0] != found["zero"], "{found}");
        for refused in ["disk", "inside", "above", "made", "removed", "renamed"] {
            assert!(found[refused].is_string(), "{refused}: {found}");
        }
    }
}

#[test]
fn a_mount_of_the_manifest_takes_the_place_of_the_devices() {
    for mount in ["/dev", "/dev/shm"] {
        let component = format!("filesystem = {{ '{mount}' = {{ scratch = '1MiB' }} }}");
        let mut host = host(&component, &[("devices", "args = ['devices']")]);
        let found = json_of(host.call("devices", json!({})).text());
        assert_eq!(found["null"], Value::Null, "{mount}: {found}");
    }
}

#[test]
fn standard_error_is_part_of_the_answer_where_the_manifest_says_so() {
    let lines = "exit_codes = [0, 1]\nargs = ['exit', '1']\noutput = { stderr = true }";
    let silent = "args = ['say']\noutput = { stderr = true }";
    let spam = "input = { n = 'integer' }\nargs = ['spam_err', '{n}']\nexit_codes = [1]\noutput = { stderr = true }";
    let mut host = host("", &[("both", lines), ("silent", silent), ("spam_err", spam)]);
    let texts = |result: &Value| -> Vec<String> {
        let content = result["content"].as_array().unwrap();
        content.iter().map(|one| one["text"].as_str().unwrap_or("none").to_owned()).collect()
    };
    let both = host.call("both", json!({}));
    assert_eq!(texts(both.result()), ["what there was\n", "why it ends\n"]);
    assert_eq!(texts(host.call("silent", json!({})).result()), [""]);
    let one = host.call("spam_err", json!({"n": 3}));
    assert_eq!(texts(one.result()), ["xxx\n\u{1b}[31mthe last line\u{1b}[0m\n"]);
    let much = host.call("spam_err", json!({"n": 100_000}));
    assert!(much.is_error(), "the answer has the bound of `output`: {much:?}");
}

#[test]
fn standard_error_is_no_answer_of_bytes() {
    let lines = "args = ['say']\noutput = { stderr = true, type = 'image/png' }";
    let folder = Folder::with_manifest(&manifest("", &[("say", lines)]));
    let checked = Command::in_folder(&folder, &["check", "toolcell.toml"]).run();
    assert!(checked.failed_with(1).contains("standard error is text"), "{}", checked.stderr);
}
