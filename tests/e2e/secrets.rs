//! Secrets kept by `toolcell secret`: a value goes from a person into a file of that person's own,
//! and is printed nowhere.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::{Command, Finished, Folder, fixture_bytes, manifest_of, terminal, toolchain};

/// A value that stands nowhere else.
const VALUE: &str = "k3y-of-the-test-0123456789";

fn run(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, arguments).run()
}

fn run_with(folder: &Folder, arguments: &[&str], input: &str) -> Finished {
    let finished = Command::in_folder(folder, arguments).with_input(input).run();
    let printed = format!("{}{}", finished.stdout, finished.stderr);
    assert!(!printed.contains(VALUE), "{printed}");
    finished
}

/// A manifest with a secret from the environment, for requests to this server.
fn manifest(server: &HttpServer) -> String {
    format!(
        "{}\n[components.reach_http.network]\nhttp = [\"{url}/*\"]\nprivate = [\"{address}\"]\n\n[components.reach_http.secrets]\n\
         # Of Ann.\nKEY = {{ from = \"env:KEY_OF_TEST\", header = \"Authorization\", value = \"Bearer {{}}\", for = \"{url}\" }} # yearly\n",
        manifest_of(&["reach_http"]),
        url = server.url(""),
        address = server.address()
    )
}

#[test]
fn a_value_is_kept_for_its_owner_alone_and_goes_where_the_manifest_says() {
    let server = HttpServer::start();
    let before = manifest(&server);
    let folder = Folder::with_manifest(&before);
    let missing = run(&folder, &["secret", "list"]);
    assert!(missing.succeeded().contains("missing: the host's environment has no variable"), "{missing:?}");
    let refused = run_with(&folder, &["secret", "set", "KEY"], VALUE);
    assert!(refused.failed_with(2).contains("nobody can be asked"), "{refused:?}");
    assert_eq!(folder.read("toolcell.toml"), before);

    let set = run_with(&folder, &["secret", "set", "KEY", "--yes"], &format!("{VALUE}\n"));
    let _ = set.succeeded();
    let path = ".toolcell/secrets/reach_http.KEY";
    assert_eq!(folder.read("toolcell.toml"), before.replace("env:KEY_OF_TEST", &format!("file:{path}")));
    let mode = |path: &str| std::fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(path), mode(".toolcell/secrets")), (0o600, 0o700));
    assert_eq!(folder.read(".toolcell/secrets/.gitignore"), "*\n");
    let listed = run_with(&folder, &["secret", "list", "--json"], "");
    assert_eq!(listed.json()[0]["ok"], true, "{listed:?}");

    let arguments = json!({"url": server.url("/x")}).to_string();
    let called = run_with(&folder, &["call", "http", &arguments], "");
    let _ = called.succeeded();
    assert_eq!(server.only_seen().values("authorization"), [format!("Bearer {VALUE}")]);

    // The place is known now: a new value needs no consent.
    let other = run_with(&folder, &["secret", "set", "KEY"], "another value\r\n");
    let _ = other.succeeded();
    assert_eq!(folder.read(path), "another value\n");
    let removed = run_with(&folder, &["secret", "remove", "KEY", "--yes"], "");
    assert!(removed.stderr.contains("its value is removed"), "{removed:?}");
    assert!(!folder.path().join(path).exists() && !folder.read("toolcell.toml").contains("KEY"));
}

#[test]
fn a_secret_is_added_with_the_place_it_goes_to() {
    let server = HttpServer::start();
    let bare = manifest(&server).split("\n[components.reach_http.secrets]").next().unwrap().to_owned();
    let folder = Folder::with_manifest(&bare);
    let nowhere = run_with(&folder, &["secret", "set", "TOKEN", "--yes"], VALUE);
    assert!(nowhere.failed_with(2).contains("nothing says where it goes"), "{nowhere:?}");
    let url = server.url("");
    let arguments = ["secret", "set", "TOKEN", "--header", "x-token", "--for", &url, "--yes"];
    let _ = run_with(&folder, &arguments, VALUE).succeeded();
    let entry = format!(
        "\n[components.reach_http.secrets]\nTOKEN = {{ from = \"file:.toolcell/secrets/reach_http.TOKEN\", \
         header = \"x-token\", for = \"{url}\" }}\n"
    );
    assert_eq!(folder.read("toolcell.toml"), format!("{bare}{entry}"));
    let again = run_with(&folder, &arguments, VALUE);
    assert!(again.failed_with(2).contains("has a secret TOKEN already"), "{again:?}");
    let elsewhere =
        run_with(&folder, &["secret", "set", "OTHER", "--query", "key", "--for", "https://x.example", "--yes"], VALUE);
    assert!(elsewhere.failed_with(1).contains("no http rule allows"), "{elsewhere:?}");
    assert!(!folder.path().join(".toolcell/secrets/reach_http.OTHER").exists());
}

#[test]
fn a_value_that_cannot_be_a_secret_changes_nothing() {
    let server = HttpServer::start();
    let folder = Folder::with_manifest(&manifest(&server));
    let before = folder.tree("");
    let long = "a".repeat((32 << 10) + 1);
    for (name, value, words) in [
        ("KEY", "", "the value is empty"),
        ("KEY", "one\ntwo\n", "the value has control characters"),
        ("KEY", "a\0b", "the value has control characters"),
        ("KEY", long.as_str(), "the value is longer than 32 KiB"),
        ("../KEY", "value", "cannot be the name of a file"),
    ] {
        let finished = run_with(&folder, &["secret", "set", name, "--yes"], value);
        assert_ne!(finished.code(), 0, "{finished:?}");
        assert!(finished.stderr.contains(words), "no {words:?} in\n{}", finished.stderr);
        assert_eq!(folder.tree(""), before, "{name} {words}");
    }
}

#[test]
fn several_components_with_one_secret_are_told_apart() {
    let secrets = |name: &str| format!("[components.{name}.secrets]\nKEY = {{ from = \"env:KEY\", expose = true }}\n");
    let folder = Folder::with_manifest(&format!(
        "{}\n{}\n[components.again]\nsource = \"components/reach_settings.wasm\"\nprefix = \"a_\"\n\n{}",
        manifest_of(&["reach_settings"]),
        secrets("reach_settings"),
        secrets("again")
    ));
    folder.write("components/reach_settings.wasm", fixture_bytes("reach_settings"));
    let which = run_with(&folder, &["secret", "set", "KEY", "--yes"], VALUE);
    assert!(which.failed_with(2).contains("several components have a secret KEY: reach_settings, again"), "{which:?}");
    let _ = run_with(&folder, &["secret", "set", "KEY", "--component", "again", "--yes"], VALUE).succeeded();
    let listed = run_with(&folder, &["secret", "list"], "");
    let lines: Vec<bool> = listed.succeeded().lines().map(|line| line.ends_with("ok")).collect();
    assert_eq!(lines, [false, true], "{listed:?}");
}

#[test]
fn a_value_that_is_typed_is_not_shown() {
    if !terminal::can_be_had() {
        toolchain::say("LEFT OUT: how secrets are typed: this machine gives no terminal");
        return;
    }
    let server = HttpServer::start();
    let folder = Folder::with_manifest(&manifest(&server));
    let set = || Command::in_folder(&folder, &["secret", "set", "KEY", "--yes"]).on_terminal();
    let mut typed = set();
    typed.until("Value of KEY (it is not shown): ");
    typed.type_in(&format!("wrong\u{15}x\u{7f}{VALUE}\r"));
    let (code, shown) = typed.ended();
    assert_eq!(code, 0, "{shown}");
    assert!(!shown.contains(VALUE) && !shown.contains("wrong"), "{shown}");
    assert_eq!(folder.read(".toolcell/secrets/reach_http.KEY"), format!("{VALUE}\n"));
    let mut given_up = set();
    given_up.until("Value of KEY (it is not shown): ");
    given_up.type_in(terminal::CTRL_C);
    let (code, shown) = given_up.ended();
    assert_eq!(code, 1, "{shown}");
    assert_eq!(folder.read(".toolcell/secrets/reach_http.KEY"), format!("{VALUE}\n"));
}
