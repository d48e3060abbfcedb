//! Components that are refused at load: the problems that are reported. Nothing is served with such
//! a component.
//!
//! Promise: imports are an allow-list.
//! Promise: risky features of the engine are off.
//! Promise: code outside of tools is bounded.
//! Promise: schemas cannot be used against the host.
//! Promise: definitions do not mislead people.
//! Promise: names do not collide.

use serde_json::json;
use toolcell_tests::{Command, Folder, TestHost, manifest_of};

/// The output of `check` for a manifest with this fixture. It must fail.
fn refused(fixture: &str) -> String {
    refused_in(&Folder::with_manifest(&manifest_of(&[fixture])))
}

fn refused_in(folder: &Folder) -> String {
    Command::in_folder(folder, &["check", "toolcell.toml"]).run().failed_with(1).to_owned()
}

#[test]
fn nothing_is_served_with_a_component_that_is_refused() {
    for fixture in ["core_module", "imports_unknown", "list_exits", "list_twins", "start_traps"] {
        let manifest = format!("{}[server]\nstart = \"all\"\n", manifest_of(&["good", fixture]));
        let folder = Folder::with_manifest(&manifest);
        nothing_is_served(&folder, &refused_in(&folder));
    }
}

/// Asserts that `serve` ends without an answer and reports the same problems.
fn nothing_is_served(folder: &Folder, problems: &str) {
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    let served = Command::in_folder(folder, &["serve", "--manifest", "toolcell.toml"]).with_input(ping).run();
    assert_eq!(served.stdout, "", "nothing is answered on a broken manifest");
    assert!(served.failed_with(1).contains(problems.trim()), "{problems}\n{}", served.stderr);
}

/// Asserts that each part is in the output of `check`.
fn says(fixture: &str, parts: &[&str]) {
    let text = refused(fixture);
    for part in parts.iter().chain(&[format!("component \"{fixture}\"").as_str()]) {
        assert!(text.contains(part), "{fixture}: no {part:?} in\n{text}");
    }
    for wrong in ['\u{1b}', '\u{202e}', '\u{200b}', '\u{7}'] {
        assert!(!text.contains(wrong), "{fixture}: {wrong:?} in {text:?}");
    }
}

#[test]
fn imports_that_the_host_does_not_offer_are_named() {
    says("imports_unknown", &["imports what this host does not offer: evil:corp/api@1.0.0"]);
    says("imports_http", &["imports what this host does not offer: wasi:http/incoming-handler@0.2.12"]);
    says("imports_draft", &["wasi:keyvalue/store@0.2.0-draft2 (offered: 0.2.0-draft)"]);
    says("imports_draft", &["wasi:cli/environment@0.4.0 (offered: 0.2.x and 0.3.x)"]);
    says("imports_draft", &["wasi:clocks/timezone@0.3.0", "host/docs/interfaces.md has the interfaces of WASI 0.3"]);
    says("imports_unknown_function", &["it imports \"erase\" of toolcell:mcp/log@1.0.0, which has no such item here"]);
    says("imports_other_type", &["it imports \"write\" of toolcell:mcp/log@1.0.0 with another type than it has here"]);
}

#[test]
fn what_is_no_tool_component_is_said_to_be_none() {
    says("core_module", &["a core WebAssembly module, not a component", "\"env\""]);
    says("http_server", &["exports no tools", "it answers HTTP requests, not calls", "`wasmtime serve`"]);
    says("no_export", &["neither \"toolcell:mcp/tools\" nor functions", "exports nothing"]);
    says("other_export", &["toolcell:mcp/tools@1.3.0", "list-tools"]);
    says("future_contract", &["toolcell:mcp/tools@9.0.0", "this host speaks"]);
}

#[test]
fn features_that_are_off_are_not_compiled() {
    for (fixture, name, without) in [
        ("feature_exceptions", "WebAssembly exceptions", "-fno-exceptions"),
        ("feature_externref", "references to the host's values (externref)", "-mno-reference-types"),
        ("feature_garbage_collected", "garbage-collected types", "linear-memory"),
        ("feature_memory64", "64-bit memories", "wasm32"),
        ("feature_shared_memory", "threads and shared memories", "-pthread"),
        ("feature_wide_arithmetic", "wide arithmetic", "-mwide-arithmetic"),
    ] {
        says(fixture, &[&format!("uses {name}, which the engine has off"), without]);
    }
    says("feature_maps", &["not a valid component", "Maps require", "write list<tuple<KEY, VALUE>>"]);
    says("feature_fixed_lists", &["not a valid component", "Fixed-length lists require", "write a list, or a tuple"]);
}

#[test]
fn files_that_are_no_wasm_are_said_to_be_none() {
    let scrambled: Vec<u8> = (0_u32..4096).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let folder = Folder::with_manifest(&manifest_of(&["good"]));
    let good = std::fs::read(folder.path().join("components/good.wasm")).unwrap();
    let half = good[..good.len() / 2].to_vec();
    let mut flipped = good;
    for byte in flipped.iter_mut().skip(2000).step_by(977) {
        *byte ^= 0xff;
    }
    for (bytes, expected) in [
        (Vec::new(), "not a WebAssembly component"),
        (scrambled, "not a WebAssembly component"),
        (b"#!/bin/sh\necho hello\n".to_vec(), "a script, not a WebAssembly component"),
        (b"\x7fELF\x02\x01\x01".to_vec(), "a native binary (ELF), not a WebAssembly component"),
        (b"\xcf\xfa\xed\xfe".to_vec(), "a native binary (Mach-O), not a WebAssembly component"),
        (b"MZ\x90".to_vec(), "a native binary (PE), not a WebAssembly component"),
        (b"(component)".to_vec(), "WebAssembly as text, not a WebAssembly component"),
        (b"PK\x03\x04".to_vec(), "an archive (zip), not a WebAssembly component"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n".to_vec(),
            "a pointer of Git LFS, not a WebAssembly component",
        ),
        (b"version https://git-lfs.github.com/spec/v1\n".to_vec(), "`git lfs pull`"),
        (b"/annex/objects/SHA256E-s1234--ab.wasm\n".to_vec(), "a pointer of git-annex, not a WebAssembly component"),
        (b"/annex/objects/SHA256E-s1234--ab.wasm\n".to_vec(), "`git annex get .`"),
        (b"\0asm".to_vec(), "not a WebAssembly component"),
        (half, "not a valid component"),
        (flipped, "not a valid component"),
    ] {
        let folder = Folder::with_manifest("version = 1\n[components.broken]\nsource = \"components/broken.wasm\"\n");
        folder.write("components/broken.wasm", bytes);
        let text = refused_in(&folder);
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
    }
}

#[test]
fn other_patches_of_the_same_wasi_are_the_host_s_own() {
    let mut host = TestHost::with_manifest(&manifest_of(&["imports_patches"]));
    for tool in ["of_old", "of_new"] {
        assert_eq!(host.call(tool, serde_json::json!({})).text(), "{\"result\":1}", "{tool}");
    }
}

#[test]
fn the_configuration_is_offered_under_each_name_it_had() {
    let manifest =
        format!("{}[components.config_drafts.config]\nUNITS = \"metric\"\n", manifest_of(&["config_drafts"]));
    let mut host = TestHost::with_manifest(&manifest);
    for tool in ["of_draft", "of_runtime"] {
        assert_eq!(host.call(tool, serde_json::json!({"key": "UNITS"})).text(), "{\"result\":\"metric\"}", "{tool}");
        assert_eq!(host.call(tool, serde_json::json!({"key": "OTHER"})).text(), "{\"result\":null}", "{tool}");
    }
    let all = host.call("of_candidate", serde_json::json!({}));
    assert_eq!(all.text(), "{\"result\":[[\"UNITS\",\"metric\"]]}");
}

#[test]
fn logging_goes_to_the_log_of_the_tool_under_each_name_it_had() {
    let mut host = TestHost::serving(&["logging"]);
    host.initialize("2025-11-25");
    assert_eq!(host.request("logging/setLevel", json!({"level": "debug"}))["result"], json!({}));
    for tool in ["say_bare", "say_draft", "say_first"] {
        for (level, heard) in ["debug", "debug", "info", "warning", "error", "critical"].into_iter().enumerate() {
            assert!(!host.call(tool, json!({"level": level})).is_error(), "{tool}");
            let message = host.next_of("notifications/message");
            assert_eq!(message["params"]["level"], heard, "{tool}");
            assert_eq!(message["params"]["data"], "work: it goes on", "{tool}");
        }
    }
    assert!(host.call("say_bare", json!({"level": 6})).is_error());
    host.will_say("work: it goes on");
    // 64 KiB of lines of 42 bytes, as they count.
    assert!(!host.call("flood", json!({"lines": 2_000})).is_error());
    host.will_say("printed or logged 18480 bytes past the limit \"log\"");
}

#[test]
fn a_source_that_cannot_be_read_is_named() {
    let folder = Folder::with_manifest("version = 1\n[components.lost]\nsource = \"components/lost.wasm\"\n");
    assert!(refused_in(&folder).contains("components/lost.wasm"));
    folder.write("components/lost.wasm/is/a/folder", "");
    assert!(refused_in(&folder).contains("components/lost.wasm"));
}

#[test]
fn a_component_that_cannot_be_instantiated_is_refused() {
    says("start_spins", &["out of fuel"]);
    says("start_traps", &["the tool trapped: wasm `unreachable` instruction executed"]);
    says("large_memory", &["out of memory"]);
    says("large_table", &["out of memory"]);
    says("many_instances", &["too many parts"]);
}

#[test]
fn a_component_that_does_not_list_is_refused() {
    says("list_exits", &["exited with status 0"]);
    says("list_traps", &["the tool trapped: wasm `unreachable` instruction executed"]);
    says("list_spins", &["out of fuel"]);
    says("list_hoards", &["out of memory"]);
    says("list_amplified", &["too much data"]);
}

#[test]
fn a_component_that_lists_a_hundred_thousand_tools_is_refused() {
    // With enough fuel and memory to list them all, the limit on the number of tools applies.
    let manifest = manifest_of(&["list_many"])
        .replace("fuel = 20_000_000", "fuel = 10_000_000_000\nhost_data = \"256MiB\"")
        .replace("memory = \"16MiB\"", "memory = \"256MiB\"");
    let text = refused_in(&Folder::with_manifest(&manifest));
    let expected = "component \"list_many\" lists 100000 tools; a component may list 1000";
    assert!(text.contains(expected), "no {expected:?} in\n{text}");
    // Without them, one of the limits of every call applies.
    says("list_many", &["(limit \""]);
}

#[test]
fn a_broken_definition_names_the_tool_and_the_field() {
    says("list_twins", &["component \"list_twins\" lists the tool \"twin\" twice"]);
    says("list_bad_name", &["two words", "64", "name"]);
    says(
        "list_bad_schema",
        &["not_json", "not_a_schema", "no_object", "unknown_dialect", "too_deep", "too_long", "output", "meta"],
    );
    says("list_remote_ref", &["http://127.0.0.1:9/schema.json", "file:///etc/passwd"]);
}

#[test]
fn the_same_tool_in_two_components_is_refused_and_a_prefix_helps() {
    let twice = |prefix: &str| {
        format!(
            "version = 1\n[components.one]\nsource = \"components/good.wasm\"\n\
             [components.two]\nsource = \"components/good.wasm\"\n{prefix}"
        )
    };
    let text = refused_in(&Folder::with_manifest(&twice("")));
    for part in ["echo", "one", "two", "prefix"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let mut host = TestHost::with_manifest(&twice("prefix = \"second_\"\n"));
    for tool in ["echo", "second_echo"] {
        assert_eq!(host.call(tool, serde_json::json!({"text": tool})).text(), tool);
    }
}

#[test]
fn escapes_are_taken_out_of_definitions() {
    let mut host = TestHost::serving(&["good", "list_escapes"]);
    let tools = host.list();
    let tool = tools.iter().find(|tool| tool["name"] == "escapes").unwrap();
    assert_eq!(tool["title"], "Title");
    assert_eq!(tool["description"], "Red evil zerowidth tag bell line\nbreak");
    assert_eq!(tool["inputSchema"]["properties"]["x"]["description"], "plain red evil");
    host.still_works();
}

#[test]
fn what_a_component_prints_while_it_is_listed_never_reaches_the_wire() {
    let mut host = TestHost::serving(&["good", "list_prints"]);
    assert_eq!(host.call("printed", serde_json::json!({})).text(), "called");
    host.still_works();
    assert_eq!(host.kept(), [serde_json::Value::Null; 0]);
}

#[test]
fn all_problems_are_told_at_once() {
    let text = refused_in(&Folder::with_manifest(&manifest_of(&[
        "list_twins",
        "core_module",
        "imports_unknown",
        "list_traps",
    ])));
    for part in ["twin", "a core WebAssembly module", "evil:corp/api", "trapped"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}
