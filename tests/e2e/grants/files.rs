//! Files: mounts of folders and of single files, to read and to write; scratch space; nested
//! mounts; links and special files.
//!
//! Promise: no path leads out of a mount.
//! Promise: only files and folders are opened.
//! Promise: other programs are not led out of a mount.
//! Promise: a read-only mount is not written.
//! Promise: scratch space is the call's own.
//! Promise: mounts hold nothing of the host.

use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, TestHost};

use super::{Denied, assert_denied, assert_refused, came_to, check, folder, host};

const FIXTURE: &str = "reach_files";

/// A read-only folder, a writable one, a file of each kind, and scratch space of the call's own.
const TABLES: &str = r#"
[{c}.filesystem]
"/data" = { path = "data" }
"/out" = { path = "out", access = "write" }
"/etc/settings.json" = { path = "settings.json" }
"/etc/state.json" = { path = "state.json", access = "write" }
"/tmp" = { scratch = "64KiB" }
"#;

/// A folder with these tables, filled with files inside and next to the mounts.
fn filled(tables: &str) -> Folder {
    let folder = folder(FIXTURE, tables);
    for (path, text) in [
        ("data/a.txt", "alpha"),
        ("data/sub/b.txt", "beta"),
        ("data/out/inner.txt", "inner"),
        ("out/c.txt", "gamma"),
        ("settings.json", "{}"),
        ("state.json", "{\"n\":1}"),
        ("outside/secret.txt", "the secret"),
        ("outside.txt", "the secret beside"),
    ] {
        folder.write(path, text);
    }
    folder
}

fn serving(tables: &str) -> TestHost {
    TestHost::recording_in(filled(tables), &[])
}

fn assert_table(host: &mut TestHost, rows: &[(&str, Value, Result<Value, &str>)]) {
    for (tool, arguments, expected) in rows {
        let found = came_to(&host.call(tool, arguments.clone()));
        assert_eq!(found, expected.clone().map_err(str::to_owned), "{tool} {arguments}");
    }
}

#[test]
fn what_is_mounted_is_read_and_nothing_else() {
    let mut host = serving(TABLES);
    let listed = json!([["a.txt", "file"], ["out", "folder"], ["sub", "folder"]]);
    assert_table(
        &mut host,
        &[
            ("read", json!({"path": "/data/a.txt"}), Ok(json!("alpha"))),
            ("read", json!({"path": "/data/sub/b.txt"}), Ok(json!("beta"))),
            ("read", json!({"path": "/data/sub/../a.txt"}), Ok(json!("alpha"))),
            ("read", json!({"path": "/data/missing.txt"}), Err("no-entry")),
            ("read", json!({"path": "/data/a.txt/x"}), Err("not-directory")),
            ("list", json!({"path": "/data"}), Ok(listed)),
            ("stat", json!({"path": "/data/a.txt"}), Ok(json!({"type": "file", "size": 5, "links": 1}))),
            ("read", json!({"path": "/etc/settings.json"}), Ok(json!("{}"))),
            ("read", json!({"path": "/etc/passwd"}), Err("no-entry")),
            ("read", json!({"path": "/outside.txt"}), Err("no-mount")),
            ("read", json!({"mount": "/data", "path": "../outside.txt"}), Err("not-permitted")),
            ("read", json!({"mount": "/data", "inside": "sub", "path": "../../outside.txt"}), Err("not-permitted")),
            ("read", json!({"mount": "/data", "path": "/etc/passwd"}), Err("not-permitted")),
            ("std_read", json!({"path": "/data/a.txt"}), Ok(json!("alpha"))),
            ("std_read", json!({"path": "/etc/settings.json"}), Ok(json!("{}"))),
            ("std_list", json!({"path": "/etc"}), Ok(json!(["settings.json", "state.json"]))),
        ],
    );
    for path in ["/etc/passwd", "/data/../outside.txt", "/", "outside.txt", "/proc/self/environ"] {
        assert!(came_to(&host.call("std_read", json!({"path": path}))).is_err(), "{path}");
    }
    host.still_works();
}

#[test]
fn a_guest_starts_with_its_mounts() {
    let mut host = serving(TABLES);
    let mut mounts = came_to(&host.call("mounts", json!({}))).unwrap().as_array().unwrap().clone();
    mounts.sort_by_key(|mount| mount.as_str().unwrap().to_owned());
    assert_eq!(mounts, [json!("/data"), json!("/etc"), json!("/out"), json!("/tmp")]);
}

#[test]
fn a_read_mount_takes_no_change_and_each_attempt_is_recorded() {
    let mut host = serving(TABLES);
    let before = host.folder().tree("data");
    let rows: [(&str, Value, &str); 13] = [
        ("write", json!({"path": "/data/a.txt", "bytes": "x"}), "create /data/a.txt"),
        ("write", json!({"path": "/data/new.txt", "bytes": "x"}), "create /data/new.txt"),
        ("write", json!({"path": "/data/a.txt", "bytes": "x", "existing": true}), "write /data/a.txt"),
        ("write_stream", json!({"path": "/data/a.txt", "bytes": "x", "append": true}), "create /data/a.txt"),
        ("set_size", json!({"path": "/data/a.txt", "size": 0}), "create /data/a.txt"),
        ("set_times", json!({"path": "/data/a.txt"}), "write /data/a.txt"),
        ("mkdir", json!({"path": "/data/new"}), "create /data/new"),
        ("remove", json!({"path": "/data/a.txt"}), "remove /data/a.txt"),
        ("rmdir", json!({"path": "/data/sub"}), "remove /data/sub"),
        ("rename", json!({"path": "/data/a.txt", "to": "/data/z.txt"}), "remove /data/a.txt"),
        ("link", json!({"path": "/data/a.txt", "to": "/data/z.txt"}), "write /data/a.txt"),
        ("symlink", json!({"path": "a.txt", "to": "/data/z.txt"}), "create /data/z.txt"),
        ("write", json!({"path": "/etc/settings.json", "bytes": "x"}), "create /etc/settings.json"),
    ];
    for (tool, arguments, asked) in rows {
        let answer = host.call(tool, arguments.clone());
        assert_eq!(came_to(&answer), Err("read-only".to_owned()), "{tool} {arguments}");
        let because = format!("tool {tool:?} may read there, not write");
        let allow = match asked.ends_with("settings.json") {
            true => "\"/etc/settings.json\" = { path = \"settings.json\", access = \"write\" }",
            false => "\"/data\" = { path = \"data\", access = \"write\" }",
        };
        let section = "components.reach_files.filesystem";
        assert_denied(&host, &answer, &Denied { capability: "filesystem", asked, because: &because, section, allow });
    }
    assert_eq!(host.folder().tree("data"), before);
    assert_eq!(host.folder().read("settings.json"), "{}");
    host.still_works();
}

#[test]
fn a_write_mount_takes_every_change() {
    let mut host = serving(TABLES);
    assert_table(
        &mut host,
        &[
            ("write", json!({"path": "/out/new.txt", "bytes": "one"}), Ok(json!(3))),
            ("write", json!({"path": "/out/new.txt", "bytes": " two", "append": true}), Ok(json!(4))),
            ("write", json!({"path": "/out/new.txt", "bytes": "x", "exclusive": true}), Err("exist")),
            ("write_stream", json!({"path": "/out/stream.txt", "bytes": 9000}), Ok(json!(9000))),
            ("mkdir", json!({"path": "/out/sub"}), Ok(Value::Null)),
            ("mkdir", json!({"path": "/out/sub"}), Err("exist")),
            ("rename", json!({"path": "/out/new.txt", "to": "/out/sub/moved.txt"}), Ok(Value::Null)),
            ("read", json!({"path": "/out/sub/moved.txt"}), Ok(json!("one two"))),
            ("link", json!({"path": "/out/c.txt", "to": "/out/hard.txt"}), Ok(Value::Null)),
            ("same", json!({"path": "/out/c.txt", "to": "/out/hard.txt"}), Ok(json!(true))),
            ("remove", json!({"path": "/out/hard.txt"}), Ok(Value::Null)),
            ("symlink", json!({"path": "c.txt", "to": "/out/soft.txt"}), Ok(Value::Null)),
            ("readlink", json!({"path": "/out/soft.txt"}), Ok(json!("c.txt"))),
            ("read", json!({"path": "/out/soft.txt"}), Ok(json!("gamma"))),
            ("set_size", json!({"path": "/out/c.txt", "size": 2}), Ok(Value::Null)),
            ("read", json!({"path": "/out/c.txt"}), Ok(json!("ga"))),
            ("set_times", json!({"path": "/out/c.txt"}), Ok(Value::Null)),
            ("rmdir", json!({"path": "/out/sub"}), Err("not-empty")),
            ("rename", json!({"path": "/out/sub/moved.txt", "to": "/tmp/moved.txt"}), Err("cross-device")),
            ("remove", json!({"path": "/out/sub/moved.txt"}), Ok(Value::Null)),
            ("rmdir", json!({"path": "/out/sub"}), Ok(Value::Null)),
            ("zeroes", json!({"path": "/out/zero", "bytes": 5000}), Ok(json!(5000))),
            ("write", json!({"path": "/etc/state.json", "bytes": "{\"n\":2}"}), Ok(json!(7))),
            ("std_write", json!({"path": "/out/std.txt", "bytes": "std"}), Ok(Value::Null)),
        ],
    );
    let folder = host.folder();
    assert_eq!(folder.read("out/c.txt"), "ga");
    assert_eq!(folder.read("out/std.txt"), "std");
    assert_eq!(folder.read("state.json"), "{\"n\":2}");
    assert_eq!(folder.read("outside/secret.txt"), "the secret");
    assert_eq!(host.audit().iter().filter(|record| record["event"] == "call.denied").count(), 0);
}

#[test]
fn a_single_file_brings_nothing_of_its_folder() {
    let mut host = serving(TABLES);
    for (tool, arguments) in [
        ("read", json!({"path": "/etc/state.json/../outside.txt"})),
        ("read", json!({"mount": "/etc", "path": "../outside.txt"})),
        ("read", json!({"mount": "/etc", "path": "outside.txt"})),
        ("read", json!({"mount": "/etc", "path": "data/a.txt"})),
        ("write", json!({"path": "/etc/other.json", "bytes": "x"})),
        ("mkdir", json!({"path": "/etc/sub"})),
        ("remove", json!({"path": "/etc/state.json"})),
        ("rename", json!({"path": "/etc/state.json", "to": "/etc/other.json"})),
        ("rename", json!({"path": "/out/c.txt", "to": "/etc/state.json"})),
        ("link", json!({"path": "/etc/state.json", "to": "/out/state.json"})),
    ] {
        assert!(came_to(&host.call(tool, arguments.clone())).is_err(), "{tool} {arguments}");
    }
    assert_eq!(host.folder().read("state.json"), "{\"n\":1}");
    assert_eq!(host.folder().read("out/c.txt"), "gamma");
    assert!(!host.folder().path().join("other.json").exists());
}

#[test]
fn scratch_space_is_the_calls_own_and_gone_with_it() {
    let mut host = serving(TABLES);
    let steps = json!({"steps": [
        {"do": "list", "path": "/tmp"},
        {"do": "mkdir", "path": "/tmp/sub"},
        {"do": "write", "path": "/tmp/sub/x.txt", "bytes": "mine"},
        {"do": "read", "path": "/tmp/sub/x.txt"},
        {"do": "rename", "path": "/tmp/sub/x.txt", "to": "/tmp/y.txt"},
        {"do": "list", "path": "/tmp"},
    ]});
    let expected = json!([
        {"ok": []}, {"ok": null}, {"ok": 4}, {"ok": "mine"}, {"ok": null}, {"ok": [["sub", "folder"], ["y.txt", "file"]]},
    ]);
    // The second call finds it as empty as the first one did.
    for _ in 0..2 {
        assert_eq!(came_to(&host.call("steps", steps.clone())), Ok(expected.clone()));
    }
    let one = host.start_call("steps", steps.clone());
    let other = host.start_call("steps", steps);
    assert_eq!(came_to(&host.answer_to(&one)), Ok(expected.clone()));
    assert_eq!(came_to(&host.answer_to(&other)), Ok(expected));
    let left = host.folder().tree(".").into_iter().filter(|(path, _)| path.ends_with("y.txt")).count();
    assert_eq!(left, 0, "it was left in the manifest's folder");
}

#[test]
fn the_longest_of_nested_mounts_decides() {
    let tables = r#"
[{c}.filesystem]
"/data" = { path = "data" }
"/data/out" = { path = "out", access = "write" }
"/data/out/fixed" = { path = "outside" }
"#;
    let mut host = serving(tables);
    assert_table(
        &mut host,
        &[
            ("write", json!({"path": "/data/out/new.txt", "bytes": "x"}), Ok(json!(1))),
            ("write", json!({"path": "/data/new.txt", "bytes": "x"}), Err("read-only")),
            ("write", json!({"path": "/data/out/fixed/new.txt", "bytes": "x"}), Err("read-only")),
            ("read", json!({"path": "/data/out/fixed/secret.txt"}), Ok(json!("the secret"))),
            // The outer mount's handle works too: the inner mount hides the files below it on the
            // disk.
            ("write", json!({"mount": "/data", "path": "out/by-path.txt", "bytes": "x"}), Ok(json!(1))),
            ("read", json!({"mount": "/data", "path": "out/inner.txt"}), Err("no-entry")),
            ("read", json!({"mount": "/data", "path": "out/fixed/secret.txt"}), Ok(json!("the secret"))),
            ("write", json!({"mount": "/data/out", "path": "../a.txt", "bytes": "x"}), Err("not-permitted")),
            ("write", json!({"mount": "/data", "path": "out/../new.txt", "bytes": "x"}), Err("read-only")),
            ("rename", json!({"path": "/data/out/new.txt", "to": "/data/new.txt"}), Err("read-only")),
            ("rmdir", json!({"mount": "/data/out", "path": "fixed"}), Err("read-only")),
        ],
    );
    let folder = host.folder();
    assert_eq!(folder.read("out/by-path.txt"), "x");
    assert_eq!(folder.read("data/a.txt"), "alpha");
    assert!(!folder.path().join("data/new.txt").exists());
    assert!(!folder.path().join("data/out/new.txt").exists());
}

#[test]
fn what_is_no_file_and_no_folder_is_not_opened() {
    let staged = filled(TABLES);
    let fifo = staged.path().join("data/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(staged.path().join("data/socket")).unwrap();
    let fifo = staged.path().join("out/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let mut host = TestHost::recording_in(staged, &[]);
    for (tool, arguments, error) in [
        ("read", json!({"path": "/data/pipe"}), "not-permitted"),
        ("read", json!({"path": "/data/socket"}), "not-permitted"),
        ("write", json!({"path": "/out/pipe", "bytes": "x"}), "not-permitted"),
        ("write", json!({"path": "/out/pipe", "bytes": "x", "append": true}), "not-permitted"),
    ] {
        assert_eq!(came_to(&host.call(tool, arguments.clone())), Err(error.to_owned()), "{tool} {arguments}");
    }
    assert_eq!(came_to(&host.call("stat", json!({"path": "/data/pipe"}))).unwrap()["type"], "fifo");
    host.still_works();
}

#[test]
fn symlinks_lead_nowhere_outside() {
    let staged = filled(TABLES);
    for folder in ["data", "out"] {
        staged.link(&format!("{folder}/near"), "../outside/secret.txt");
        staged.link(&format!("{folder}/far"), staged.path().join("outside/secret.txt"));
        staged.link(&format!("{folder}/above"), "..");
        staged.link(&format!("{folder}/chain"), "near");
        staged.link(&format!("{folder}/ring"), "ring");
    }
    staged.link("data/within", "sub/b.txt");
    let mut host = TestHost::recording_in(staged, &[]);
    let outside = host.folder().tree("outside");
    assert_table(&mut host, &[("read", json!({"path": "/data/within"}), Ok(json!("beta")))]);
    for mount in ["/data", "/out"] {
        for path in [
            "near",
            "far",
            "chain",
            "ring",
            "above/outside/secret.txt",
            "above/outside.txt",
            "above/data/../outside.txt",
        ] {
            let place = format!("{mount}/{path}");
            for tool in ["read", "std_read", "list", "stat"] {
                let found = came_to(&host.call(tool, json!({"path": place})));
                assert!(found.is_err(), "{tool} {place}: {found:?}");
            }
            for (tool, further) in [
                ("write", json!({"path": place, "bytes": "was here"})),
                ("write", json!({"path": place, "bytes": "was here", "existing": true})),
                ("set_size", json!({"path": place, "size": 0})),
                ("set_times", json!({"path": place})),
                ("mkdir", json!({"path": format!("{place}/made")})),
            ] {
                let found = came_to(&host.call(tool, further));
                assert!(found.is_err(), "{tool} {place}: {found:?}");
            }
        }
    }
    assert_eq!(host.folder().tree("outside"), outside);
    assert_eq!(host.folder().read("outside.txt"), "the secret beside");
    host.still_works();
}

#[test]
fn a_symlink_out_is_not_made_for_another_program_to_follow() {
    let mut host = serving(TABLES);
    let secret = host.folder().path().join("outside/secret.txt").to_string_lossy().into_owned();
    for says in ["/etc/passwd", "../outside/secret.txt", "..", "sub/../../outside.txt", secret.as_str()] {
        let made = came_to(&host.call("symlink", json!({"path": says, "to": "/out/leads-out"})));
        assert!(made.is_err(), "{says}: {made:?}");
        assert!(std::fs::symlink_metadata(host.folder().path().join("out/leads-out")).is_err(), "{says}");
    }
}

#[test]
fn a_hard_link_to_what_lies_outside_is_never_written() {
    let staged = filled(TABLES);
    std::fs::hard_link(staged.path().join("outside/secret.txt"), staged.path().join("out/hard.txt")).unwrap();
    let mut host = TestHost::recording_in(staged, &[]);
    for (tool, arguments) in [
        ("write", json!({"path": "/out/hard.txt", "bytes": "was here"})),
        ("write", json!({"path": "/out/hard.txt", "bytes": "was here", "append": true})),
        ("write", json!({"path": "/out/hard.txt", "bytes": "was here", "existing": true})),
        ("write_stream", json!({"path": "/out/hard.txt", "bytes": "was here"})),
        ("set_size", json!({"path": "/out/hard.txt", "size": 0})),
    ] {
        assert_eq!(came_to(&host.call(tool, arguments.clone())), Err("not-permitted".to_owned()), "{tool} {arguments}");
    }
    assert_eq!(host.folder().read("outside/secret.txt"), "the secret");
    // A guest cannot make such a link either: the path of a link's target begins in a mount and
    // ends in the same one.
    for (path, to) in [("../outside/secret.txt", "stolen"), ("/etc/passwd", "stolen"), ("c.txt", "../outside/planted")]
    {
        let made = came_to(&host.call("link", json!({"mount": "/out", "path": path, "to": to})));
        assert_eq!(made, Err("not-permitted".to_owned()), "{path} {to}");
    }
    assert!(!host.folder().path().join("outside/planted").exists());
}

#[test]
fn a_missing_folder_is_a_load_error_unless_it_may_be_made() {
    let missing = folder(FIXTURE, "[{c}.filesystem]\n\"/data\" = { path = \"not-there\" }\n");
    assert_refused(&missing, &["not-there", "create = true", "toolcell.toml"]);
    let made =
        folder(FIXTURE, "[{c}.filesystem]\n\"/out\" = { path = \"not/there\", access = \"write\", create = true }\n");
    let mut host = TestHost::recording_in(made, &[]);
    assert_eq!(came_to(&host.call("write", json!({"path": "/out/x", "bytes": "x"}))), Ok(json!(1)));
    assert_eq!(host.folder().read("not/there/x"), "x");
}

#[test]
fn mounts_that_would_undo_the_grants_are_load_errors() {
    for (tables, words) in [
        ("[{c}.filesystem]\n\"/x\" = { path = \".\", access = \"write\" }\n", &["manifest"][..]),
        ("[{c}.filesystem]\n\"/x\" = { path = \"..\", access = \"write\" }\n", &["manifest"]),
        ("[{c}.filesystem]\n\"/x/../y\" = { path = \"components\" }\n", &["/x/../y"]),
        ("[{c}.filesystem]\n\"x\" = { path = \"components\" }\n", &["\"x\""]),
        ("[{c}.filesystem]\n\"/x\" = { path = \"components\", access = \"everything\" }\n", &["everything"]),
        ("[{c}.filesystem]\n\"/x\" = { path = \"components\", quota = \"1KiB\" }\n", &["quota"]),
        ("[{c}.filesystem]\n\"/x\" = { path = \"components\", sratch = \"1KiB\" }\n", &["sratch"]),
    ] {
        assert_refused(&folder(FIXTURE, tables), words);
    }
}

#[test]
fn a_grant_of_files_to_a_component_without_files_is_a_load_error() {
    let staged = folder("result_outside", "[{c}.filesystem]\n\"/data\" = { path = \"components\" }\n");
    assert_refused(&staged, &["result_outside", "wasi:filesystem", "toolcell.toml"]);
}

#[test]
fn without_a_grant_there_is_no_file() {
    let mut host = host(FIXTURE, "");
    assert_eq!(came_to(&host.call("mounts", json!({}))), Ok(json!([])));
    assert_eq!(came_to(&host.call("read", json!({"path": "/data/a.txt"}))), Err("no-mount".to_owned()));
    assert!(came_to(&host.call("std_read", json!({"path": "/etc/passwd"}))).is_err());
}

#[test]
fn check_shows_what_files_a_tool_reaches() {
    let finished = check(&filled(TABLES));
    let said = finished.succeeded();
    for part in ["/data", "/out", "/etc/state.json", "/tmp"] {
        assert!(said.contains(part), "no {part} in {said}");
    }
}

/// A manifest with host files in `keys`, and one mount.
fn enclosing(mount: &str) -> Folder {
    let tables = format!(
        "[server]\nstate = \"kept\"\nstate_key = \"file:keys/state/key\"\n[audit]\nfile = \"log/audit.jsonl\"\n\
         [alerts]\nurl = \"https://hook.example/\"\nsecret = \"file:keys/alerts/key\"\n\
         [http]\ntokens = \"keys/tokens/none/yet.jsonl\"\ncertificate = \"keys/tls/chain.pem\"\nkey = \"keys/tls/key.pem\"\n\
         [{{c}}.filesystem]\n\"/m\" = {mount}\n"
    );
    let staged = filled(&tables);
    for path in ["keys/alerts", "keys/state", "keys/tls", "keys/tokens", "kept", "log", "ways"] {
        staged.make(path);
    }
    staged.write("keys/state/key", "0123456789abcdef0123456789abcdef");
    staged.write("keys/alerts/key", "0123456789abcdef0123456789abcdef");
    staged.write("keys/tls/key.pem", "none");
    staged.link("alias", staged.path());
    staged.link("ways/keys", "../keys");
    staged.link("ways/tls", "keys/tls");
    staged
}

#[test]
fn what_is_the_hosts_own_is_in_no_mount_however_its_path_is_written() {
    for (mount, words) in [
        // Through a link, through `..` from elsewhere, by an absolute path, through a parent
        // folder, and as the file itself.
        ("{ path = \"ways/keys\" }", &["the file of tokens", "the key of TLS", "the key of [alerts]", "state_key"][..]),
        ("{ path = \"keys/alerts\" }", &["the key of [alerts]"]),
        ("{ path = \"alias/keys/tls\" }", &["the key of TLS"]),
        ("{ path = \"ways/tls/key.pem\" }", &["the key of TLS"]),
        ("{ path = \"data/../alias/ways/keys/state\" }", &["state_key"]),
        ("{ path = \"keys/tokens\" }", &["the file of tokens"]),
        ("{ path = \"alias/log\", access = \"write\" }", &["the audit"]),
        ("{ path = \"alias/kept\", access = \"write\" }", &["is the host's own"]),
        (
            "{ path = \"alias/components\", access = \"write\" }",
            &["the code of component \"good\"", "the code of component \"reach_files\""],
        ),
        ("{ path = \"alias/components/good.wasm\", access = \"write\" }", &["the code of component \"good\""]),
        ("{ path = \"alias/toolcell.toml\", access = \"write\" }", &["the manifest"]),
        ("{ path = \"alias/ways/keys/tls\", access = \"write\" }", &["the certificate of TLS", "the key of TLS"]),
    ] {
        assert_refused(&enclosing(mount), &[&["/m"], words].concat());
    }
    let staged = enclosing("{ path = \"FOLDER\", access = \"write\" }");
    let absolute = staged.path().join("log").display().to_string();
    staged.write("toolcell.toml", staged.read("toolcell.toml").replace("FOLDER", &absolute));
    assert_refused(&staged, &["the audit"]);
    for mount in [
        "{ path = \"alias/data\", access = \"write\" }",
        "{ path = \"alias/log\" }",
        "{ path = \"alias/components\" }",
        "{ path = \"alias/out\" }",
    ] {
        // The certificate is missing, and others may read the keys. That has nothing to do with
        // mounts.
        let checked = Command::in_folder(&enclosing(mount), &["check", "--json"]).run().json();
        let mut codes = checked["problems"].as_array().unwrap().iter().map(|problem| &problem["code"]);
        assert!(codes.all(|code| code == "http::certificate_file" || code == "serve::unreadable"), "{checked}");
    }
}

#[test]
fn a_file_that_comes_to_lie_in_a_mount_is_noticed_at_the_next_load_though_the_mount_is_the_same() {
    let tables = "[{c}.filesystem]\n\"/m\" = { path = \"now\", access = \"write\" }\n";
    let staged = filled(tables);
    for path in ["one", "two"] {
        staged.make(path);
    }
    staged.link("now", "one");
    let mut host = TestHost::recording_in(staged, &[]);
    assert_eq!(came_to(&host.call("write", json!({"path": "/m/a.txt", "bytes": "a"}))).map(drop), Ok(()));
    // The link now leads to another folder, and the audit is to be in the one it led to before. The
    // mount stays the folder that was opened.
    let folder = host.folder().path().to_owned();
    std::fs::remove_file(folder.join("now")).unwrap();
    std::os::unix::fs::symlink("two", folder.join("now")).unwrap();
    let text = host.folder().read("toolcell.toml") + "\n[audit]\nfile = \"one/audit.jsonl\"\n";
    host.folder().write("toolcell.toml", text);
    host.will_say("the mount \"/m\" holds the audit");
    host.still_works();
}

#[test]
fn a_denied_file_stands_behind_a_tools_own_error_only_where_that_speaks_of_it() {
    // Only where attempts are observed does a guest reach a check without a mount.
    let mut host = TestHost::recording_with(folder("looks_around", ""), &["--observe", "tried.jsonl"]);
    let denial = |path: &str| format!("denied: read {path} — no rule of tool \"look\" allows it");
    let other = host.call("look", json!({"path": "/python/app.py", "fail": "division by zero"}));
    assert_eq!(other.error_text(), "division by zero");
    assert_eq!(other.denials(), [denial("/python/app.py")]);
    let named = host.call("look", json!({"path": "/data/a.txt", "fail": "cannot open a.txt"}));
    let texts: Vec<_> = (0..2).map(|at| named.result()["content"][at]["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(texts, ["cannot open a.txt".to_owned(), denial("/data/a.txt")]);
    assert!(named.is_error() && named.denials().is_empty());
    let silent = host.call("look", json!({"path": "/data/b.txt"}));
    assert_eq!(silent.result()["content"][1]["text"], json!(denial("/data/b.txt")));
    // The audit has them all.
    for path in ["/python/app.py", "/data/a.txt", "/data/b.txt"] {
        let asked = format!("read {path}");
        let _ = host.recorded(&asked, |record| record["event"] == "call.denied" && record["asked"] == asked.as_str());
    }
}
