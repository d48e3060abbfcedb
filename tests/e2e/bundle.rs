//! `toolcell bundle`: a bundle serves by its own description, asks for what must not be in it, and
//! is refused where something it needs would be missing. `make dist-check` has the official tool of
//! bundles look at one.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use toolcell_tests::{Command, Finished, Folder, fixture_bytes};

/// A tool that reads a folder, and keeps a secret and a variable.
const MANIFEST: &str = "\
version = 1

[server]
name = \"files\"
title = \"Files of the team\"

[components.reach_files]
source = \"components/reach_files.wasm\"

[components.reach_files.filesystem]
\"/data\" = { path = \"data\" }

[components.reach_http]
source = \"components/reach_http.wasm\"

[components.reach_http.network]
http = [\"https://api.example.com\"]

[components.reach_http.secrets]
KEY = { from = \"env:BUNDLE_TEST_KEY\", header = \"X-Key\", for = \"https://api.example.com\" }
";

/// A program of Linux that is small: packing toolcell itself takes seconds.
const SMALL_PROGRAM: [&str; 2] = ["--program", "/bin/sh"];

/// Value of the secret while it is bundled.
const SECRET: &str = "sesame-1f0e2d";

/// Another reader of zip than the host's writer. It restores modes, as clients do.
const UNZIP: &str = "\
import os, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    assert archive.testzip() is None
    for entry in archive.infolist():
        os.chmod(archive.extract(entry, sys.argv[2]), entry.external_attr >> 16)
";

fn folder(manifest: &str) -> Folder {
    let folder = Folder::with_manifest(manifest);
    folder.make("data/inner");
    std::fs::write(folder.path().join("data/inner/tea.txt"), "oolong").unwrap();
    folder
}

fn bundle(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, &[&["bundle"], arguments].concat()).with_variable("BUNDLE_TEST_KEY", SECRET).run()
}

/// Unpacks a bundle into a folder next to it, which is then the only place with the tools.
fn unpacked(folder: &Folder, bundle: &str) -> PathBuf {
    let place = folder.path().join("installed");
    let said = std::process::Command::new("python3")
        .args(["-c", UNZIP])
        .arg(folder.path().join(bundle))
        .arg(&place)
        .output()
        .unwrap();
    assert!(said.status.success(), "{said:?}");
    for name in ["components", "data", "toolcell.toml"] {
        let path = folder.path().join(name);
        if path.is_dir() { std::fs::remove_dir_all(path).unwrap() } else { std::fs::remove_file(path).unwrap() }
    }
    place
}

fn description(place: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(place.join("manifest.json")).unwrap()).unwrap()
}

/// Starts a bundle as a client does, and gives the answer to one call.
fn called(place: &Path, description: &Value, tool: &str, arguments: &Value) -> Value {
    let start = &description["server"]["mcp_config"];
    let filled = |text: &Value| text.as_str().unwrap().replace("${__dirname}", place.to_str().unwrap());
    let variables = start["env"].as_object().unwrap().iter().map(|(name, value)| {
        let answer = value.as_str().unwrap().replace(&format!("${{user_config.{name}}}"), "another");
        (name.clone(), answer)
    });
    let mut child = std::process::Command::new(filled(&start["command"]))
        .args(start["args"].as_array().unwrap().iter().map(filled))
        .envs(variables)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    for frame in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}),
    ] {
        writeln!(stdin, "{frame}").unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let answers = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    answers.into_iter().find(|answer| answer["id"] == 2).unwrap_or_else(|| panic!("no answer: {lines}"))
}

#[test]
fn an_unpacked_bundle_serves_by_its_own_description() {
    let folder = folder(&format!("{MANIFEST}\n[prompts.greet]\nfile = \"greet.md\"\n"));
    folder.write("greet.md", "Hello.");
    let said = bundle(&folder, &["--author", "Ann", "--bundle-version", "1.2.0"]);
    assert!(said.succeeded().starts_with("files.mcpb: "), "{said:?}");
    let place = unpacked(&folder, "files.mcpb");
    let description = description(&place);
    assert_eq!(description["manifest_version"], "0.3");
    assert_eq!(description["name"], "files");
    assert_eq!(description["display_name"], "Files of the team");
    assert_eq!(description["author"]["name"], "Ann");
    assert_eq!(description["version"], "1.2.0");
    assert_eq!(std::fs::read_to_string(place.join("greet.md")).unwrap(), "Hello.");
    let named = description["tools"].as_array().unwrap();
    assert!(named.iter().any(|tool| tool["name"] == "read"), "{named:?}");
    let answer = called(&place, &description, "read", &json!({"path": "/data/inner/tea.txt"}));
    assert!(answer["result"].to_string().contains("oolong"), "{answer}");
}

#[test]
fn a_bundle_holds_the_components_that_come_with_the_program() {
    let tool = "[components.places.http_tool]\nurl = \"https://api.example.com/places\"\ndescription = \"Places\"\n\
                [components.places.network]\nhttp = [\"GET https://api.example.com/places\"]\n";
    let folder = folder(&format!("{MANIFEST}\n{tool}\n[code]\ncalls = [\"read\"]\n"));
    let _ = bundle(&folder, &["--output", "out.mcpb"]).succeeded();
    let place = unpacked(&folder, "out.mcpb");
    assert!(place.join("server/toolcell-code.wasm").is_file() && place.join("server/toolcell-bridge.wasm").is_file());
    let listed = description(&place)["tools"].to_string();
    assert!(listed.contains("\"places\""), "{listed}");
    let code = "return JSON.stringify(await tools.read({path: '/data/inner/tea.txt'})).includes('oolong')";
    let answer = called(&place, &description(&place), "run_code", &json!({"code": code}));
    assert_eq!(answer["result"]["structuredContent"]["result"], true, "{answer}");
    // A file of that name would be in its place.
    let taken = MANIFEST.replace("path = \"data\"", "path = \"server\"");
    let folder = self::folder(&format!("{taken}\n[code]\n"));
    folder.make("server");
    folder.write("server/toolcell-code.wasm", "x");
    let refused = bundle(&folder, &["--output", "out.mcpb"]);
    assert!(refused.stderr.contains("a \"server/toolcell-code.wasm\" of its own"), "{refused:?}");
}

#[test]
fn a_bundle_of_a_server_without_a_name_has_that_of_its_folder() {
    let outer = folder("");
    outer.make("components");
    outer.make("my weather");
    outer.write("my weather/good.wasm", fixture_bytes("good"));
    outer.write("my weather/toolcell.toml", "version = 1\n[components.good]\nsource = \"good.wasm\"\n");
    let said = bundle(&outer, &[&["--manifest", "my weather/toolcell.toml"], &SMALL_PROGRAM[..]].concat());
    assert!(said.succeeded().starts_with("my-weather.mcpb: "), "{said:?}");
    let description = description(&unpacked(&outer, "my-weather.mcpb"));
    let names = ["name", "display_name"].map(|key| description[key].as_str().unwrap());
    assert_eq!((names, &description["author"]["name"]), (["my-weather"; 2], &json!("my-weather")));
}

#[test]
fn a_secret_is_asked_for_and_not_bundled() {
    let folder = folder(MANIFEST);
    let _ = bundle(&folder, &[&["--output", "out.mcpb"], &SMALL_PROGRAM[..]].concat()).succeeded();
    let place = unpacked(&folder, "out.mcpb");
    let asked = description(&place)["user_config"]["BUNDLE_TEST_KEY"].clone();
    assert_eq!(
        (&asked["sensitive"], &asked["required"], &asked["type"]),
        (&json!(true), &json!(true), &json!("string"))
    );
    let text = std::fs::read_to_string(place.join("manifest.json")).unwrap();
    assert!(text.contains("${user_config.BUNDLE_TEST_KEY}") && !text.contains(SECRET), "{text}");
}

#[test]
fn the_same_folder_gives_the_same_bytes() {
    let folder = folder(MANIFEST);
    for name in ["one.mcpb", "two.mcpb"] {
        let _ = bundle(&folder, &[&["--output", name], &SMALL_PROGRAM[..]].concat()).succeeded();
    }
    let [one, two] = ["one.mcpb", "two.mcpb"].map(|name| std::fs::read(folder.path().join(name)).unwrap());
    assert!(one == two && one.len() > 50_000);
}

#[test]
fn a_lock_is_bundled_and_only_what_it_pins_is() {
    let folder = folder(MANIFEST);
    let lock =
        |arguments: &[&str]| Command::in_folder(&folder, arguments).with_variable("BUNDLE_TEST_KEY", SECRET).run();
    let _ = lock(&["lock"]).succeeded();
    let _ = bundle(&folder, &["--output", "out.mcpb"]).succeeded();
    let drifted =
        MANIFEST.replace("https://api.example.com\"]", "https://other.example.com\", \"https://api.example.com\"]");
    std::fs::write(folder.manifest(), &drifted).unwrap();
    let refused = bundle(&folder, &["--output", "drifted.mcpb"]);
    assert_eq!(refused.code(), 1, "{refused:?}");
    assert!(refused.stderr.contains("is not what"), "{refused:?}");
    assert!(!folder.path().join("drifted.mcpb").exists());
    std::fs::write(folder.manifest(), MANIFEST).unwrap();
    let place = unpacked(&folder, "out.mcpb");
    let description = description(&place);
    assert!(place.join("toolcell.lock").exists());
    assert_eq!(description["server"]["mcp_config"]["args"][3], "--locked");
    let answer = called(&place, &description, "read", &json!({"path": "/data/inner/tea.txt"}));
    assert!(answer["result"].to_string().contains("oolong"), "{answer}");
}

/// Each is refused with a sentence that names it, and nothing is written.
#[test]
fn what_would_be_missing_or_must_not_be_there_is_refused() {
    let data = "{ path = \"data\" }";
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.txt"), "x").unwrap();
    for (replaced, by, says) in [
        ("env:BUNDLE_TEST_KEY", "file:key.txt", "no secret is put into a bundle"),
        (data, "{ path = \"data\", access = \"write\" }", "add create = true"),
        (data, "{ path = \"data/../data\" }", "lies outside of the manifest's folder"),
        (data, "{ path = \"linked\" }", "is a link"),
        (data, "{ path = \"server\" }", "the bundle has a \"server/toolcell\" of its own"),
    ] {
        assert!(MANIFEST.contains(replaced), "{replaced}");
        let folder = folder(&MANIFEST.replace(replaced, by));
        let key = folder.path().join("key.txt");
        std::fs::write(&key, SECRET).unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        folder.make("linked");
        folder.link("linked/out", outside.path());
        folder.make("server");
        std::fs::write(folder.path().join("server/toolcell"), "x").unwrap();
        let refused = bundle(&folder, &["--output", "out.mcpb"]);
        assert_eq!(refused.code(), 1, "{says}: {refused:?}");
        assert!(refused.stderr.contains(says), "{says}: {refused:?}");
        assert!(!folder.path().join("out.mcpb").exists(), "{says}");
    }
}

#[test]
fn a_bundle_does_not_hold_itself() {
    let folder = folder(MANIFEST);
    let _ = bundle(&folder, &[&["--output", "data/out.mcpb"], &SMALL_PROGRAM[..]].concat()).succeeded();
    let refused = bundle(&folder, &["--output", "data/../data/out.mcpb"]);
    assert_eq!(refused.code(), 1, "{refused:?}");
    assert!(refused.stderr.contains("would hold itself, as data/out.mcpb"), "{refused:?}");
}

#[test]
fn a_program_of_another_kind_is_refused_and_one_of_linux_is_bundled() {
    let folder = folder(MANIFEST);
    std::fs::write(folder.path().join("program"), "#!/bin/sh\n").unwrap();
    let refused = bundle(&folder, &["--program", "program"]);
    assert_eq!(refused.code(), 1, "{refused:?}");
    assert!(refused.stderr.contains("program is not a Linux program"), "{refused:?}");
    let _ = bundle(&folder, &SMALL_PROGRAM).succeeded();
    for version in ["1.2", "1.2.x", ""] {
        assert_eq!(bundle(&folder, &["--bundle-version", version]).code(), 2, "{version}");
    }
}
