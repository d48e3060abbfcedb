//! What happens beside a script: tools are replaced, removed and have like names, other callers
//! call, processes die.
//!
//! Promise: a nested call is a call.

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, Saving, TestHost, alone, fixture_bytes, manifest_of};

const LIMITS: &str = "[code.limits]\nfuel = 1_000_000_000_000\nmemory = \"32MiB\"\ndeadline = \"1h\"\n";

fn of(records: &[Value], event: &str) -> Vec<Value> {
    records.iter().filter(|record| record["event"] == event).cloned().collect()
}

/// Stale catalogs: a script that goes on for long calls what serves by then.
#[test]
fn a_script_calls_what_serves_by_then_and_not_what_has_left_the_manifest() {
    let file = "components/tool.wasm";
    let good = manifest_of(&["good"]);
    let gate =
        "[components.tool.filesystem]\n\"/gate\" = { path = \"gate\" }\n[components.tool.limits]\ndeadline = \"1h\"\n";
    let tool = format!("[components.tool]\nsource = \"{file}\"\n{gate}fuel = 1_000_000_000_000\n");
    let code = format!("[code]\ncalls = ['*']\n{LIMITS}");
    let folder = Folder::with_manifest(&format!("{good}{tool}{code}"));
    folder.write(file, fixture_bytes("versioned_a"));
    folder.make("gate");
    let mut host = TestHost::recording_in(folder, &[]);
    let script = "const told = async (call) => { try { return await call() } catch (error) { return error.reason } };
                  const before = await tools.version({});
                  const held = await tools.linger({});
                  const after = await told(() => tools.version({}));
                  const found = (await tools.find('', 50)).some((tool) => tool.name === 'version');
                  return [before, held, after, found, await told(() => tools.echo({text: 'x'}))];";
    host.still_works();
    // Replaced: the call under way ends on its code, the next one meets the new code.
    let id = host.start_call("run_code", json!({"code": script}));
    let _ = host.recorded("it", |record| record["event"] == "call.started" && record["tool"] == "linger");
    host.folder().save_fixture(Saving::RenamedOver, file, "versioned_b");
    host.serves_generation(2);
    host.folder().save(Saving::RenamedOver, "gate/open", "open");
    let said = host.answer_to(&id).structured()["result"].clone();
    assert_eq!(said, json!(["a", "a open", "b", true, "x"]));
    // Removed, while a call of another component runs: an error that the script catches.
    let text = format!(
        "{good}[components.other]\nsource = \"{file}\"\nprefix = \"o_\"\n[components.other.filesystem]\n\
                        \"/gate\" = {{ path = \"gate\" }}\n[components.other.limits]\ndeadline = \"1h\"\nfuel = 1_000_000_000_000\n{code}"
    );
    std::fs::remove_file(host.folder().path().join("gate/open")).unwrap();
    host.folder().save(Saving::RenamedOver, "toolcell.toml", format!("{text}{tool}"));
    host.serves_generation(3);
    let other = script.replace("tools.linger", "tools.o_linger");
    let id = host.start_call("run_code", json!({"code": other}));
    let _ = host.recorded("it", |record| record["event"] == "call.started" && record["tool"] == "o_linger");
    host.folder().save(Saving::RenamedOver, "toolcell.toml", &text);
    host.serves_generation(4);
    host.folder().save(Saving::RenamedOver, "gate/open", "open");
    let said = host.answer_to(&id).structured()["result"].clone();
    assert_eq!(said, json!(["b", "b open", "unknown", false, "x"]));
}

/// Names of which two give one property.
#[test]
fn tools_whose_names_give_one_property_are_both_reached() {
    let one = manifest_of(&["good"]);
    let source = one.lines().find(|line| line.starts_with("source")).unwrap();
    let table = |name: &str, prefix: &str| format!("[components.{name}]\n{source}\nprefix = \"{prefix}\"\n");
    let tables = [("one", "a-b_"), ("two", "a_b-"), ("line", "b_"), ("dash", "b-")];
    let all: String = tables.iter().map(|(name, prefix)| table(name, prefix)).collect();
    let defaults = one.split("[components").next().unwrap();
    let calls = "calls = ['a-b_echo', 'a_b-echo', 'b_echo', 'b-echo']";
    let mut host = TestHost::recording(&format!("{defaults}{all}[code]\n{calls}\n{LIMITS}"));
    for (code, expected) in [
        // An identifier is always its own property.
        ("tools.b_echo({text: 'b_'})", json!("b_")),
        ("tools['b-echo']({text: 'b-'})", json!("b-")),
        ("tools['a-b_echo']({text: '1'})", json!("1")),
        ("tools.call('a_b-echo', {text: '2'})", json!("2")),
        (
            "try { await tools.a_b_echo({text: 'x'}) } catch (error) { return error.message }",
            json!("tools.a_b_echo may be any of 2 tools: write tools.call(\"NAME\", arguments)"),
        ),
    ] {
        assert_eq!(host.call("run_code", json!({"code": code})).structured()["result"], expected, "{code}");
    }
    let started = of(&host.audit(), "call.started");
    let tools: Vec<&str> = started.iter().map(|record| record["tool"].as_str().unwrap()).collect();
    assert_eq!(tools.iter().filter(|tool| tool.ends_with("echo")).count(), 4, "{tools:?}");
}

/// Other callers' calls go through while scripts of one caller are at all of their bounds.
#[test]
fn others_are_served_beside_scripts_at_their_bounds() {
    let loops = "[components.loops.limits]\ndeadline = \"1h\"\n";
    let bounds = "calls_max = 40\ncalls_at_once = 8\n";
    let text = format!(
        "{}{loops}[code]\ncalls = ['echo', 'sleep_hour']\n{LIMITS}{bounds}[http]\ntokens = \"tokens.jsonl\"\n",
        manifest_of(&["good", "loops"])
    );
    let folder = Folder::with_manifest(&text);
    let bearer = |name: &str| {
        let made = Command::in_folder(&folder, &["token", "new", name]).run();
        format!("Bearer {}", made.succeeded().trim())
    };
    let ann = bearer("ann");
    let bob = bearer("bob");
    let host = WebHost::in_folder(folder.clone(), &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"]);
    let first = host.ask(&Ask::call("echo", json!({"text": "first"})).with("authorization", &bob));
    assert_eq!(first.status(), 200);
    // One with as many calls at once as it may have, and one that goes on calling past its last.
    let sleeps = "await Promise.all(Array.from({length: 30}, () => tools.sleep_hour({})))";
    let storms = "for (;;) try { await tools.echo({text: 'x'}) } catch {}";
    let wires: Vec<_> = [sleeps, storms]
        .map(|code| {
            let mut wire = host.connect();
            wire.send(&Ask::call("run_code", json!({"code": code})).with("authorization", &ann).bytes());
            wire
        })
        .into_iter()
        .collect();
    let began = |tool: &str| {
        let records = host.process().audit();
        of(&records, "call.started").iter().filter(|record| record["tool"] == tool).count()
    };
    while began("sleep_hour") < 8 || began("echo") < 41 {
        std::thread::yield_now();
    }
    for text in ["one", "two", "three"] {
        let answer = host.ask(&Ask::call("echo", json!({"text": text})).with("authorization", &bob)).frame();
        assert_eq!(answer["result"]["content"][0]["text"], text, "{answer}");
        let script = json!({"code": "return (await tools.echo({text: input})) + '!'", "input": text});
        let answer = host.ask(&Ask::call("run_code", script).with("authorization", &bob)).frame();
        assert_eq!(answer["result"]["structuredContent"]["result"], format!("{text}!"), "{answer}");
    }
    let records = host.process().audit();
    let scripts = |event: &str| of(&records, event).iter().filter(|record| record["tool"] == "run_code").count();
    assert_eq!((scripts("call.started"), scripts("call.finished")), (5, 3), "both scripts of the other still run");
    assert_eq!((began("sleep_hour"), began("echo")), (8, 47));
    drop(wires);
}

#[test]
fn a_process_that_is_killed_is_an_error_for_the_script_or_for_its_call() {
    let _alone = alone("it kills sandbox processes of its host");
    let text = manifest_of(&["good", "loops"]).replace("fuel = 20_000_000", "fuel = 1_000_000_000_000");
    let text =
        text.replace("source = \"components/loops.wasm\"", "source = \"components/loops.wasm\"\nwall = \"inner\"");
    let limits = "[components.loops.limits]\ndeadline = \"1h\"\n";
    let mut host = TestHost::recording(&format!("{text}{limits}[code]\ncalls = ['echo', 'spin']\n{LIMITS}"));
    host.still_works();
    let code = "try { await tools.spin({}) } catch (error) { return [error.reason, error.message, await tools.echo({text: 'on'})] }";
    let runs = |host: &TestHost, count: usize| {
        while of(&host.audit(), "call.started").iter().filter(|record| record["tool"] == "spin").count() < count {
            std::thread::yield_now();
        }
        crate::walls::busy(host.process_id())
    };
    let id = host.start_call("run_code", json!({"code": code}));
    crate::walls::kill(runs(&host, 1));
    let said = host.answer_to(&id).structured()["result"].clone();
    assert_eq!((&said[0], &said[2]), (&json!("failed"), &json!("on")), "{said}");
    assert!(said[1].as_str().unwrap().starts_with("spin: the sandbox was ended"), "{said}");
    // The script's own process.
    let id = host.start_call("run_code", json!({"code": code}));
    let inner = runs(&host, 2);
    let others = crate::walls::sealed(host.process_id()).into_iter().filter(|process| *process != inner);
    others.for_each(crate::walls::kill);
    let said = host.answer_to(&id).error_text().to_owned();
    assert!(said.starts_with("the sandbox was ended"), "{said}");
    let _ = crate::nested::whole(&host);
    crate::walls::recovers(&mut host, "echo", &json!({"text": "x"}));
    host.still_works();
}
