//! Hints that are commands: each is typed as it stands, and what was refused works afterwards.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};
use toolcell_tests::loopback::{HttpServer, Registry, TcpEcho, UdpEcho};
use toolcell_tests::{Command, Finished, Folder, fixture_bytes, manifest_of, toolcell};

fn run(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, arguments).run()
}

/// The commands of all hints: a hint that is one, or those in back quotes within a hint.
fn commands(said: &str) -> Vec<String> {
    let hints = said.lines().filter_map(|line| line.trim_start_matches(['=', ' ']).strip_prefix("hint: "));
    let is_command = |text: &&str| ["toolcell ", "mkdir ", "chmod "].iter().any(|begins| text.starts_with(begins));
    hints
        .flat_map(|hint| {
            let whole = Some(hint).filter(is_command);
            let quoted = hint.split('`').skip(1).step_by(2).filter(is_command).filter(|_| whole.is_none());
            whole.into_iter().chain(quoted).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// Types a command of a hint in a shell. Where it asks for a yes, it is given one.
fn types(folder: &Folder, command: &str) {
    let bin = tempfile::tempdir().unwrap();
    symlink(toolcell(), bin.path().join("toolcell")).unwrap();
    let asks = ["toolcell grant ", "toolcell add "].iter().any(|begins| command.contains(begins));
    let line = if asks { format!("{command} --yes") } else { command.to_owned() };
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap());
    let typed = std::process::Command::new("sh")
        .args(["-c", &line])
        .env("PATH", path)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(typed.status.success(), "{line}: {typed:?}");
}

#[test]
fn the_command_behind_each_denial_allows_what_was_denied() {
    let server = HttpServer::start();
    let tcp = TcpEcho::start();
    let udp = UdpEcho::start();
    let url = format!("http://{}/x", server.address());
    let rows: [(&str, &str, Value); 7] = [
        ("reach_http", "http", json!({"url": url})),
        ("reach_sockets", "tcp", json!({"addr": tcp.address().to_string(), "send": "ping"})),
        ("reach_sockets", "udp", json!({"addr": udp.address().to_string(), "send": "pong"})),
        ("reach_state", "keyvalue", json!({"op": "set", "key": "a", "value": "one"})),
        ("reach_settings", "config", json!({"key": "theme"})),
        ("reach_files", "read", json!({"path": "/notes/a.txt"})),
        ("reach_files", "write", json!({"path": "/made/b.txt", "bytes": "beta"})),
    ];
    for (component, tool, arguments) in rows {
        let folder = Folder::with_manifest(&manifest_of(&[component]));
        let arguments = arguments.to_string();
        let call = || run(&folder, &["call", tool, &arguments]);
        let denied = call();
        let told = commands(&denied.stderr);
        assert!(!told.is_empty(), "{tool}: {denied:?}");
        assert!(told.iter().any(|command| command.contains("toolcell grant ")), "{tool}: {told:?}");
        told.iter().for_each(|command| types(&folder, command));
        let allowed = call();
        assert!(commands(&allowed.stderr).is_empty(), "{tool}: {told:?}: {allowed:?}");
        assert!(!allowed.stderr.contains("denied"), "{tool}: {told:?}: {allowed:?}");
    }
}

#[test]
fn the_command_behind_each_load_error_mends_it() {
    let serve = ["serve", "--locked"];
    // A secret that others may read.
    let secret = "[components.reach_http.network]\nhttp = [\"GET https://api.example.com/*\"]\n\
                  [components.reach_http.secrets]\n\
                  KEY = { from = \"file:my key.txt\", header = \"X-Key\", for = \"https://api.example.com\" }\n";
    let open = Folder::with_manifest(&format!("{}{secret}", manifest_of(&["reach_http"])));
    open.write("my key.txt", "sesame");
    let mode = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(open.path().join("my key.txt"), mode).unwrap();
    mends(&open, &["check"], "chmod 600 'my key.txt'");
    // A lock that is not there, and one that has other bytes.
    let all = format!("{}\n[server]\nstart = \"all\"\n", manifest_of(&["good"]));
    mends(&Folder::with_manifest(&all), &serve, "toolcell lock");
    for (place, command) in [(0, "toolcell approve good"), (1, "toolcell lock")] {
        let changed = Folder::with_manifest(&all);
        let _ = run(&changed, &["lock"]).succeeded();
        changed.write("components/good.wasm", fixture_bytes("loops"));
        let refused = run(&changed, &serve);
        let told = commands(refused.failed_with(1));
        assert_eq!(told.get(place).map(String::as_str), Some(command), "{refused:?}");
        types(&changed, command);
        assert_eq!(run(&changed, &serve).code(), 0, "{command}");
    }
    // Callers need tokens, and there is no file of them.
    let tokens = format!("{}\n[http]\ntokens = \"tokens.jsonl\"\n", manifest_of(&["good"]));
    let callers = Folder::with_manifest(&tokens);
    let refused = run(&callers, &["serve", "--http", "127.0.0.1:0"]);
    assert_eq!(commands(refused.failed_with(1)), ["toolcell token new NAME"], "{refused:?}");
    types(&callers, "toolcell token new NAME");
    assert!(callers.read("tokens.jsonl").contains("NAME"));
    // No command mends a file of them that is there.
    let line = callers.read("tokens.jsonl");
    for content in ["no token's line\n".to_owned(), line.repeat(1024 * 1024 / line.len() + 1)] {
        callers.write("tokens.jsonl", content);
        for command in [&["serve", "--http", "127.0.0.1:0"][..], &["check"]] {
            let said = run(&callers, command);
            let text = format!("{}{}", said.stdout, said.stderr);
            assert_eq!(commands(&text), [""; 0], "{said:?}");
            let hint = "it must be a regular file that the server's user can read, with one line for each token";
            assert!(text.contains(hint), "{said:?}");
        }
    }
}

#[test]
fn the_command_behind_a_component_of_a_registry_gets_it() {
    let registry = Registry::start();
    let text =
        format!("version = 1\n[server]\nstore = \"store\"\n[registries.\"{}\"]\nprivate = true\n", registry.host());
    let folder = Folder::with_manifest(&text);
    folder.write("good.wasm", fixture_bytes("good"));
    let reference = registry.reference("acme/good", "1");
    let _ = run(&folder, &["push", &reference, "good.wasm"]).succeeded();
    // Without a digest nobody knows what will run.
    folder.write("toolcell.toml", format!("{text}[components.good]\nsource = \"{reference}\"\n"));
    let refused = run(&folder, &["check"]);
    let told = commands(refused.failed_with(1));
    assert_eq!(told, [format!("toolcell add {reference} --name good")], "{refused:?}");
    folder.write("toolcell.toml", &text);
    types(&folder, &told[0]);
    assert_eq!(run(&folder, &["check"]).code(), 0);
    // A store without it.
    std::fs::remove_dir_all(folder.path().join("store")).unwrap();
    mends(&folder, &["check"], "toolcell pull");
}

#[test]
fn a_command_names_the_manifest_that_it_is_about() {
    // The current folder has a manifest of its own, which no command is about.
    let own = "version = 1\n[http]\ntokens = \"tokens.jsonl\"\n";
    let folder = Folder::with_manifest(own);
    let before = folder.read("toolcell.toml");
    folder.write("qu ar/components/good.wasm", fixture_bytes("good"));
    folder.write("qu ar/components/reach_http.wasm", fixture_bytes("reach_http"));
    let other = "qu ar/q.toml";
    let words = "--manifest 'qu ar/q.toml'";
    let serve = ["serve", "--locked", "-m", other];
    let all = format!("{}\n[server]\nstart = \"all\"\n", manifest_of(&["good"]));
    folder.write(other, format!("{all}[http]\ntokens = \"tokens.jsonl\"\n"));
    let refused = run(&folder, &["serve", "--http", "127.0.0.1:0", "-m", other]);
    let command = format!("toolcell token new NAME {words}");
    assert_eq!(commands(refused.failed_with(1)), [command.as_str()], "{refused:?}");
    types(&folder, &command);
    assert!(folder.read("qu ar/tokens.jsonl").contains("NAME") && !folder.path().join("tokens.jsonl").exists());
    let again = run(&folder, &["token", "new", "NAME", "-m", other]);
    let _ = again.succeeded();
    let revokes = format!("`toolcell token revoke NAME --older {words}`");
    assert!(again.stderr.contains(&revokes), "{again:?}");
    assert!(run(&folder, &["token", "new", "NAME", "-m", other]).failed_with(1).contains(&revokes));

    folder.write(other, &all);
    mends(&folder, &serve, &format!("toolcell lock {words}"));
    folder.write("qu ar/components/good.wasm", fixture_bytes("loops"));
    let refused = run(&folder, &serve);
    let told = commands(refused.failed_with(1));
    assert_eq!(told[0], format!("toolcell approve good {words}"), "{refused:?}");
    let unknown = run(&folder, &["approve", "nobody", "-m", other]);
    assert_eq!(commands(&unknown.stderr), [format!("toolcell list {words}")], "{unknown:?}");
    types(&folder, &told[0]);
    assert_eq!(run(&folder, &serve).code(), 0);

    let secret = "[components.reach_http.network]\nhttp = [\"GET https://api.example.com/*\"]\n\
                  [components.reach_http.secrets]\n\
                  KEY = { from = \"file:my key.txt\", header = \"X-Key\", for = \"https://api.example.com\" }\n";
    folder.write(other, format!("{}{secret}", manifest_of(&["reach_http"])));
    folder.write("qu ar/my key.txt", "sesame");
    let mode = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(folder.path().join("qu ar/my key.txt"), mode).unwrap();
    mends(&folder, &["check", "-m", other], "chmod 600 'qu ar/my key.txt'");

    // Nothing is at this address: the hints alone count.
    let reference = "oci://127.0.0.1:1/acme/good:1";
    let digest = format!("@sha256:{}", "0".repeat(64));
    for (digest, command) in
        [("", format!("toolcell add {reference} --name good {words}")), (&digest, format!("toolcell pull {words}"))]
    {
        let source = format!("[components.good]\nsource = \"{reference}{digest}\"\n");
        folder.write(other, format!("version = 1\n[server]\nstore = \"store\"\n{source}"));
        // The path may also follow the command.
        for named in [&["check", "-m", other][..], &["check", other], &["check", "--json", other]] {
            let refused = run(&folder, named);
            let said = format!("{}{}", refused.stdout, refused.stderr);
            assert!(refused.code() == 1 && said.contains(&format!("`{command}`")), "{named:?}: {refused:?}");
        }
    }
    assert_eq!(folder.read("toolcell.toml"), before);
}

/// A command that is refused, whose hint is this one command, succeeds after it.
fn mends(folder: &Folder, refused: &[&str], command: &str) {
    let said = run(folder, refused);
    assert_eq!(commands(&said.stderr), [command], "{said:?}");
    assert_ne!(said.code(), 0);
    types(folder, command);
    let mended = run(folder, refused);
    assert_eq!(mended.code(), 0, "{command}: {mended:?}");
}
