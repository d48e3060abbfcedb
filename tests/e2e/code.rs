//! Code mode: a script is one call whose nested calls are real calls. What users of other code
//! modes complain of does not happen, and hostile scripts end at their limits.
//!
//! Promise: a nested call is a call.

use std::path::Path;

use serde_json::{Value, json};
use toolcell_tests::{Answer, Command, Folder, TestHost, manifest_of};

const LIMITS: &str = "[code.limits]\nfuel = 2_000_000_000\nmemory = \"32MiB\"\n";

/// `good`, and scripts with these keys.
fn manifest(keys: &str) -> String {
    format!("{}\n[code]\n{keys}\n{LIMITS}", manifest_of(&["good"]))
}

fn host(keys: &str) -> TestHost {
    TestHost::recording(&manifest(keys))
}

fn run(host: &mut TestHost, code: &str) -> Answer {
    host.call("run_code", json!({"code": code}))
}

/// What a script returned.
fn returned(host: &mut TestHost, code: &str) -> Value {
    run(host, code).structured()["result"].clone()
}

/// What a script that failed says.
fn problem(host: &mut TestHost, code: &str) -> String {
    run(host, code).error_text().to_owned()
}

/// What `toolcell check` says of a manifest that it refuses.
fn refused(manifest: &str) -> String {
    let folder = Folder::with_manifest(manifest);
    Command::in_folder(&folder, &["check"]).run().failed_with(1).to_owned()
}

fn of(records: &[Value], event: &str) -> Vec<Value> {
    records.iter().filter(|record| record["event"] == event).cloned().collect()
}

#[test]
fn the_engine_was_built() {
    let binary = toolcell_tests::toolcell();
    let engine = Path::new(&binary).with_file_name("toolcell-code.wasm");
    assert!(engine.is_file(), "{} is missing; `make code` builds it", engine.display());
}

#[test]
fn a_script_is_one_call_and_its_calls_are_calls_beneath_it() {
    let mut host = host("calls = ['echo', 'add']");
    let code = "const both = await Promise.all([tools.add({a: 1, b: 2}), tools.echo({text: 'hello'})]); \
                console.log('both', both); return {both, input};";
    let answer = host.call("run_code", json!({"code": code, "input": {"n": [1]}}));
    let both = json!([{"sum": 3}, "hello"]);
    assert_eq!(answer.structured()["result"], json!({"both": both, "input": {"n": [1]}}));
    assert_eq!(answer.structured()["console"], "both [{\"sum\":3},\"hello\"]");
    let started = of(&host.audit(), "call.started");
    let mut tools: Vec<&str> = started.iter().map(|record| record["tool"].as_str().unwrap()).collect();
    assert_eq!(tools[0], "run_code");
    // The two begin at once, in either order.
    tools[1..].sort_unstable();
    assert_eq!(tools[1..], ["add", "echo"]);
    for inner in &started[1..] {
        assert_eq!((&inner["parent"], &inner["depth"]), (&started[0]["id"], &json!(1)));
    }
}

#[test]
fn scripts_are_expressions_bodies_and_functions() {
    let mut host = host("calls = ['add']");
    for (code, expected) in [
        ("return 1 + 1", json!(2)),
        ("1 + 1;", json!(2)),
        ("await tools.add({a: 1, b: 1})", json!({"sum": 2})),
        ("async () => { const { sum } = await tools.add({a: 2, b: 2}); return sum; }", json!(4)),
        ("async ({ input }) => 1 // a comment", json!(1)),
        ("const x = await tools.call('add', {a: 1, b: 4});\nreturn x.sum", json!(5)),
        ("return tools.add({a: 1, b: 5})", json!({"sum": 6})),
        ("({a: undefined, b: new Date(0)})", json!({"b": "1970-01-01T00:00:00.000Z"})),
    ] {
        let input = json!({"code": code, "input": {"input": 1}});
        assert_eq!(host.call("run_code", input).structured()["result"], expected, "{code}");
    }
    let nothing = run(&mut host, "const x = 1;");
    assert_eq!(nothing.structured()["result"], Value::Null);
    assert!(nothing.structured()["console"].as_str().unwrap().contains("return VALUE"));
}

/// fastmcp#4702: an error that could not be caught lost the run. bifrost#5571: `isError` was taken
/// for success.
#[test]
fn an_error_of_a_tool_is_thrown_and_can_be_caught() {
    let mut host = host("calls = ['says_error', 'echo', 'add']");
    let code = "try { await tools.says_error({}); return 'no error' } \
                catch (error) { return [error.name, error.message, error.reason, error.tool] }";
    let expected = json!(["ToolError", "says_error: the shop is closed", "failed", "says_error"]);
    assert_eq!(returned(&mut host, code), expected);
    let code = "const ends = await Promise.allSettled([tools.says_error({}), tools.add({a: 1, b: 1}), \
                tools.add({a: 'x'})]); return ends.map(end => end.status)";
    assert_eq!(returned(&mut host, code), json!(["rejected", "fulfilled", "rejected"]));
    let refused = "try { await tools.clocks({}) } catch (error) { return [error.reason, error.message] }";
    let refused = returned(&mut host, refused);
    assert_eq!(refused[0], "denied");
    assert_eq!(refused[1], "clocks: denied: call clocks — no rule of tool \"run_code\" allows it");
    let denials = of(&host.audit(), "call.denied");
    assert_eq!((&denials[0]["section"], &denials[0]["allow"]), (&json!("code"), &json!("calls = [\"clocks\"]")));
}

/// Errors elsewhere are masked, so that a model cannot correct itself.
#[test]
fn an_uncaught_error_says_what_where_and_in_which_call() {
    let mut host = host("calls = ['says_error', 'add']");
    for (code, expected) in [
        ("const a = 1;\n  a.b.c;", "TypeError: cannot read property 'c' of undefined (line 2, column 3)"),
        ("const a = ;", "SyntaxError: unexpected token in expression: ';' (line 1)"),
        ("\nJSON.parse('\\n\\n\\n\\n\\n\\nx')", "SyntaxError: unexpected token: 'x' (line 2, column 6)"),
        ("throw 'a text'", "the script threw a text"),
        ("throw {code: 7}", "the script threw {\"code\":7}"),
        (
            "await tools.add({a: 1, b: 1});\nawait tools.says_error({})",
            "says_error: the shop is closed (line 2, column 13), in call 2 of the script",
        ),
        (
            "await new Promise(() => {})",
            "the script waits for something that never comes; there are no timers, only calls of tools",
        ),
        ("return 1n", "the result has no JSON form: TypeError: BigInt are forbidden in JSON.stringify"),
    ] {
        let said = problem(&mut host, code);
        assert!(said.starts_with(expected), "{code}: {said}");
    }
}

/// The engine counts columns in a text around the script's, and finds what is missing behind it.
#[test]
fn a_script_that_cannot_be_read_gets_its_line_and_whether_it_is_of_another_language() {
    let mut host = host("calls = ['echo']");
    let javascript = ". Scripts are JavaScript, without types and imports";
    let incomplete = "SyntaxError: the end is missing, or there is a bracket too many";
    for (code, expected) in [
        ("const a = 1;\nreturn a b;\n", "SyntaxError: expecting ';' (line 2)".to_owned()),
        ("async function f() { return 1\nreturn f()\n\n", format!("{incomplete} (line 2)")),
        ("return (", format!("{incomplete} (line 1)")),
        ("return 1 }", format!("{incomplete} (line 1)")),
        ("return {a, b: c;}", "SyntaxError: Unexpected token ';' (line 1)".to_owned()),
        ("const a: number = 1", format!("SyntaxError: missing initializer for const variable (line 1){javascript}")),
        ("\nconst f = (a: string) => a", format!("SyntaxError: Unexpected token ':' (line 2){javascript}")),
        ("import x from 'y';", format!("SyntaxError: Unexpected identifier 'x' (line 1){javascript}")),
        ("interface A { a: string }", format!("SyntaxError: expecting ';' (line 1){javascript}")),
        (
            "```ts\nconst a: string = ''\n```",
            format!("SyntaxError: missing initializer for const variable (line 2){javascript}"),
        ),
    ] {
        assert_eq!(problem(&mut host, code), expected, "{code}");
    }
    assert_eq!(returned(&mut host, "```js\nconst x = await tools.echo({text: 'x'});\nreturn x;\n```\n"), "x");
    assert_eq!(problem(&mut host, "\n```\nthrow new Error('x')\n```"), "Error: x (line 3, column 11)");
}

/// A cut within an emoji gave null, or lost the run.
#[test]
fn half_of_a_surrogate_pair_is_replaced_wherever_a_script_gives_it() {
    let mut host = host("calls = ['echo']");
    for (code, expected) in [
        ("return {preview: 'a🍕'.slice(0, 2), ok: true}", json!({"preview": "a\u{fffd}", "ok": true})),
        ("'🍕'.split('')", json!(["\u{fffd}", "\u{fffd}"])),
        ("return ['\\\\\\ud83c', '\\\\ud83c', '🍕']", json!(["\\\u{fffd}", "\\ud83c", "🍕"])),
        ("tools.echo({text: '\\udf55'})", json!("\u{fffd}")),
        ("try { await tools.call('\\ud83c', {}) } catch (error) { return error.reason }", json!("denied")),
        (
            "return (await Promise.allSettled([tools.call('\\ud83c'), tools.echo({text: 'x'})])).map(end => end.status)",
            json!(["rejected", "fulfilled"]),
        ),
        ("[await tools.find('\\ud83c'), await tools.describe('\\ud83c').catch(() => null)]", json!([[], null])),
    ] {
        assert_eq!(returned(&mut host, code), expected, "{code}");
    }
    assert_eq!(problem(&mut host, "throw new Error('\\ud83c')"), "Error: \u{fffd} (line 1, column 11)");
    let printed = run(&mut host, "console.log('🍕'.slice(0, 1)); return 1");
    assert_eq!(printed.structured()["console"], "\u{fffd}");
    let cut = run(&mut host, "console.log('a'.repeat(256 * 1024 - 1) + '🍕'); return 1");
    assert_eq!(cut.structured()["result"], 1);
}

#[test]
fn a_result_that_has_no_json_form_is_an_error_and_never_null() {
    let mut host = host("calls = ['echo']");
    for (code, expected) in [
        (
            "let a = 1; for (let i = 0; i < 200; i++) a = [a]; return {done: true, a}",
            "the result cannot be written as JSON: ",
        ),
        (
            "return {r: tools.echo({text: 'x'})}",
            "the result has no JSON form: TypeError: the value of \"r\" is a promise: await it",
        ),
        (
            "await tools.echo({text: tools.echo({text: 'x'})})",
            "TypeError: the value of \"text\" is a promise: await it (line 1, ",
        ),
    ] {
        let said = problem(&mut host, code);
        assert!(said.starts_with(expected), "{code}: {said}");
    }
    let answer = run(&mut host, "console.log(Promise.resolve(1)); return 1");
    assert_eq!(answer.structured()["console"], "(a promise: await it)");
}

#[test]
fn tools_as_a_value_are_shown_and_make_no_calls() {
    let mut host = host("calls = ['echo']");
    let code = "console.log(tools, `${tools}`, tools + ''); await tools; return {tools}";
    let answer = run(&mut host, code);
    assert_eq!(answer.structured()["console"], "{} [tools] [tools]");
    assert_eq!(answer.structured()["result"], json!({"tools": {}}));
    assert_eq!(of(&host.audit(), "call.started").len(), 1, "the script alone");
}

#[test]
fn a_script_that_leaves_calls_behind_fails_and_says_which() {
    let mut host = host("calls = ['echo', 'add']");
    for (code, expected) in [
        (
            "tools.echo({text: 'x'}); return 'deleted'",
            "the script ended before a call that it did not await was made, of echo (line 1, column 7). \
             Await every call, several with `await Promise.all([…])`. It returned \"deleted\"",
        ),
        (
            "await tools.add({a: 1, b: 1});\n['a', 'b'].forEach(async text => { await tools.echo({text}) })\nreturn 1",
            "the script ended before 2 calls that it did not await were made, the first of echo (line 2, column 48). \
             Await every call, several with `await Promise.all([…])`. Its other call is not undone. It returned 1",
        ),
    ] {
        assert_eq!(problem(&mut host, code), expected, "{code}");
    }
    assert_eq!(of(&host.audit(), "call.started").len(), 3, "two scripts and one call");
    // Those that were begun before the script waited are made with the one that it waits for.
    assert_eq!(returned(&mut host, "tools.echo({text: 'x'}); return (await tools.add({a: 1, b: 1})).sum"), 2);
}

#[test]
fn looking_for_tools_leaves_a_script_as_many_calls() {
    let text = manifest("calls = ['list_of_numbers']").replace(LIMITS, &format!("{LIMITS}calls_max = 5\n"));
    let mut host = TestHost::recording(&text);
    let code = "await tools.find('numbers'); let made = 0; \
                try { for (;;) { await tools.list_of_numbers(); made++ } } catch (error) { return [made, error.reason] }";
    assert_eq!(returned(&mut host, code), json!([5, "over-limit"]));
    let searches =
        "let found = 0; for (let i = 0; i < 10; i++) found += (await tools.find('numbers')).length; return found";
    assert_eq!(returned(&mut host, searches), 5);
}

#[test]
fn a_caller_who_may_call_nothing_gets_nothing_by_script() {
    let mut host = host("");
    let code = "try { return await tools.echo({text: 'x'}) } catch (error) { return error.reason }";
    assert_eq!(returned(&mut host, code), "denied");
    assert_eq!(returned(&mut host, "return tools.find('')"), json!([]));
    let rules = "[callers.local]\ntools = ['run_code', 'add']";
    let mut host = TestHost::recording(&format!("{}{rules}\n", manifest("calls = ['*']")));
    assert_eq!(returned(&mut host, code), "unknown");
    let found = "return (await tools.find('')).map(tool => tool.name)";
    assert_eq!(returned(&mut host, found), json!(["add"]), "and a script does not find itself");
    assert_eq!(returned(&mut host, "return (await tools.add({a: 1, b: 2})).sum"), 3);
}

/// Calls beneath what a script calls, and scripts beneath scripts.
#[test]
fn what_a_script_calls_calls_nothing() {
    let calls = manifest_of(&["good", "calls"]);
    let text = format!("{}calls = ['echo', 'run_code']\n[code]\ncalls = ['relay']\n{LIMITS}", calls);
    let said = refused(&text);
    assert!(said.contains("in a circle"), "{said}");
    let text = format!("{calls}calls = ['echo']\n[code]\ncalls = ['relay', 'echo']\n{LIMITS}");
    let mut host = TestHost::recording(&text);
    let code = "return (await tools.relay({tool: 'echo', arguments: {text: 'x'}})).refused";
    assert_eq!(returned(&mut host, code), "OverLimit");
}

#[test]
fn a_script_is_a_function_of_its_text_its_input_and_what_tools_answer() {
    let mut host = host("calls = ['add']");
    let code = "return [Math.random(), Math.random(), Date.now() === new Date().getTime(), typeof setTimeout, \
                typeof performance, typeof fetch, typeof require, typeof process]";
    let one = returned(&mut host, code);
    assert_eq!(one, returned(&mut host, code));
    assert_ne!(one[0], one[1]);
    let absent: Vec<&Value> = one.as_array().unwrap().iter().skip(3).collect();
    assert_eq!(one[2], true);
    assert!(absent.len() == 5 && absent.iter().all(|kind| *kind == "undefined"), "{one}");
    let other = returned(&mut host, &format!("{code};"));
    assert_ne!(one[0], other[0]);
    let waits = "const before = Date.now(); for (let i = 0; i < 200000; i++); await tools.add({a: 1, b: 1}); \
                 return Date.now() - before";
    assert_eq!(returned(&mut host, waits), 0);
}

#[test]
fn hostile_scripts_end_at_their_limits_and_leave_the_rest_alone() {
    let mut host = host("calls = ['echo']");
    for (code, expected) in [
        ("while (true) {}", "fuel"),
        ("/(((a+)+)+)+$/.test('a'.repeat(40) + 'b')", "fuel"),
        ("const all = []; while (true) all.push(new Array(100000).fill(1))", "out of memory"),
        ("'x'.repeat(2 ** 30).repeat(4)", "Error: "),
        ("const deep = eval('['.repeat(1000000)); return deep", "stack overflow"),
        ("return 'x'.repeat(5000000)", "the result is larger than 4MiB (limit \"output\")"),
    ] {
        let said = problem(&mut host, code);
        assert!(said.contains(expected), "{code}: {said}");
        host.still_works();
    }
    // Its promises fill the memory about as fast as they use up the fuel.
    let said = problem(&mut host, "const next = () => Promise.resolve().then(next); await next()");
    assert!(said.contains("the script") || said.contains("fuel"), "{said}");
    host.still_works();
    // These can be caught, and the script goes on.
    for (code, expected) in [
        ("const f = n => f(n + 1) + 1; try { f(0) } catch (error) { return error.name }", json!("RangeError")),
        (
            "const p = new Proxy({}, {get: (t, k, r) => r[k]}); try { p.x } catch (error) { return error.name }",
            json!("RangeError"),
        ),
        ("tools.echo = 1", Value::Null),
    ] {
        let answer = run(&mut host, code);
        if expected.is_null() {
            assert!(answer.error_text().contains("tools cannot be changed"), "{answer:?}");
        } else {
            assert_eq!(answer.structured()["result"], expected, "{code}");
        }
    }
    let answer = run(&mut host, "for (let i = 0; i < 1000000; i++) console.log('line', i); return 1");
    let console = answer.error_text();
    assert!(console.contains("fuel") || console.contains("output"), "{console}");
    let answer = run(&mut host, "for (let i = 0; i < 2000; i++) console.log('x'.repeat(20)); return 1");
    let console = answer.structured()["console"].as_str().unwrap();
    assert!(console.len() < 20_000 && console.ends_with("more lines)"), "{}", console.len());
}

#[test]
fn a_storm_of_promises_is_a_bounded_number_of_calls() {
    let text = manifest("calls = ['echo']").replace(LIMITS, &format!("{LIMITS}calls_max = 30\n"));
    let mut host = TestHost::recording(&text);
    let code = "const ends = await Promise.allSettled(Array.from({length: 2000}, (_, i) => tools.echo({text: `${i}`}))); \
                return [ends.filter(end => end.status === 'fulfilled').length, ends.at(-1).reason.reason]";
    assert_eq!(returned(&mut host, code), json!([30, "over-limit"]));
    assert_eq!(of(&host.audit(), "call.started").len(), 31);
}

#[test]
fn what_a_script_changes_of_the_language_is_its_own() {
    let mut host = host("calls = ['echo', 'add']");
    let tamper = "Array.prototype.push = () => { throw 1 }; JSON.stringify = () => '{}'; JSON.parse = () => null; \
                  Promise.prototype.then = () => { throw 2 }; Object.prototype.text = 'polluted'; Map.prototype.get = 3; \
                  String.prototype.replace = 4; Object.setPrototypeOf(tools, {}); ";
    let answer = run(&mut host, &format!("{tamper} return 1"));
    assert!(answer.is_error() || answer.structured()["result"] == 1, "{answer:?}");
    // The next script has a language of its own.
    assert_eq!(returned(&mut host, "return (await tools.echo({text: 'x'})) + [].concat([1]).length"), "x1");
    let gentle =
        "JSON.stringify = () => '{\"text\":\"other\"}'; Array.prototype.map = null; return tools.echo({text: 'mine'})";
    assert_eq!(returned(&mut host, gentle), "mine");
}

/// goose#11425: tools that only an app's view may call were callable from code.
#[test]
fn tools_for_views_alone_are_not_there_for_scripts() {
    let text = format!("{}\n[components.good.tools.echo]\nvisibility = ['app']\n", manifest("calls = ['echo', 'add']"));
    let mut host = TestHost::recording(&text);
    assert_eq!(returned(&mut host, "(await tools.find('', 50)).map(tool => tool.name)"), json!(["add"]));
    let call = "try { await tools.echo({text: 'x'}) } catch (error) { return error.reason }";
    assert_eq!(returned(&mut host, call), "unknown");
}

#[test]
fn describe_tools_declares_them_with_either_way_of_listing() {
    for discovery in ["list", "search"] {
        let text = format!("{}\n[server]\ndiscovery = \"{discovery}\"\n", manifest("calls = ['add']"));
        let mut host = TestHost::recording(&text);
        let names: Vec<String> = host.list().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        let own = ["run_code", "describe_tools", "find_tools"];
        assert!(own.iter().all(|own| names.iter().any(|name| name == own)), "{discovery}: {names:?}");
        assert_eq!(names.iter().any(|name| name == "call_tool"), discovery == "search");
        let said = host.call("describe_tools", json!({"names": ["add", "echo", "nothing"]}));
        let text = said.text();
        assert!(text.starts_with("declare const tools: {\n"), "{text}");
        assert!(text.contains("add(arguments: {") && text.contains("sum: number;"), "{text}");
        assert!(text.contains("// echo: scripts may not call it"), "{text}");
        assert!(text.contains("// there is no tool nothing"), "{text}");
        let found = host.call("find_tools", json!({"query": "add numbers"}));
        assert!(found.structured()["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "add"));
    }
}

#[test]
fn without_the_engine_the_manifest_says_how_to_get_it() {
    let text = manifest("engine = 'no/such.wasm'");
    let said = refused(&text);
    assert!(said.contains("no/such.wasm"), "{said}");
    let taken = format!("{}\n[components.code]\nsource = 'x.wasm'\n", manifest_of(&["good"]));
    let said = refused(&taken);
    assert!(said.contains("is that of [code]"), "{said}");
}
