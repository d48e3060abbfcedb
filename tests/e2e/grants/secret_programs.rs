//! Secrets that programs print: started without a shell and with a clean environment, run again
//! when a value is old, and never replaced by nothing.
//!
//! Promise: a secret goes with its requests only.
//! Promise: a secret is never empty.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::{Answer, Command, Folder, Saving, TestHost};

use super::{came_to, folder};

const FIXTURE: &str = "reach_http";

/// Values that appear nowhere by chance.
const FIRST: &str = "s3cr3t-8d1f7c2a94";
const SECOND: &str = "s3cr3t-0b6e55d1f3";

/// A program that prints nothing until the host that started it is gone.
const HANGS: &str = "host=$PPID\nwhile kill -0 $host 2>/dev/null; do sleep 0.1; done";

/// The denial of a request whose program gives no value.
const REFUSED: &str = "the login or program whose secret it needs gives none now; the host's log says why";

/// A manifest whose secret a program prints, in this folder, with these further keys.
fn tables(server: &HttpServer, program: &str, keys: &str) -> String {
    let address = server.address();
    format!(
        "[{{c}}.network]\nhttp = [\"http://{address}\"]\nprivate = [\"{address}\"]\n\n[{{c}}.secrets.KEY]\n\
         from = {{ exec = [\"{program}\"]{keys} }}\nheader = \"Authorization\"\nvalue = \"Bearer {{}}\"\nfor = \"http://{address}\"\n"
    )
}

/// A folder with a program that prints what the file `value` holds, and notes each run.
fn staged(server: &HttpServer, keys: &str) -> Folder {
    let folder = folder(FIXTURE, "");
    let place = folder.path().join("vault");
    let program = place.display().to_string();
    write_program(&folder, "vault", &format!("cd {}\necho run >> runs\ncat value", folder.path().display()));
    folder.write("toolcell.toml", super::manifest(FIXTURE, &tables(server, &program, keys)));
    folder
}

fn write_program(folder: &Folder, name: &str, text: &str) {
    folder.write(name, format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(folder.path().join(name), std::fs::Permissions::from_mode(0o700)).unwrap();
}

fn runs(folder: &Folder) -> usize {
    std::fs::read_to_string(folder.path().join("runs")).map_or(0, |text| text.lines().count())
}

fn get(host: &mut TestHost, server: &HttpServer) -> Answer {
    host.call("http", json!({"url": server.url("/api/x")}))
}

/// Waits until this holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_server_gets_what_the_program_prints_and_nobody_else_does() {
    let server = HttpServer::start();
    let folder = staged(&server, "");
    folder.write("value", format!("{FIRST}\n"));
    let mut host = TestHost::recording_in(folder, &[]);
    for _ in 0..3 {
        let answer = get(&mut host, &server);
        assert!(came_to(&answer).is_ok() && !answer.everything().contains(FIRST));
        assert_eq!(server.seen().pop().unwrap().values("authorization"), [format!("Bearer {FIRST}")]);
    }
    // At load, for all tools and calls; twice if compiling takes long in between.
    assert!((1..=2).contains(&runs(host.folder())), "{}", runs(host.folder()));
    assert!(!json!(host.audit()).to_string().contains(FIRST) && !host.said().contains(FIRST));
}

#[test]
fn a_value_that_is_old_is_printed_again() {
    let server = HttpServer::start();
    let folder = staged(&server, ", ttl = \"1s\"");
    folder.write("value", FIRST);
    let mut host = TestHost::recording_in(folder, &[]);
    came_to(&get(&mut host, &server)).unwrap();
    host.folder().save(Saving::RenamedOver, "value", SECOND);
    until("the new value", || {
        came_to(&get(&mut host, &server)).unwrap();
        server.seen().pop().unwrap().values("authorization") == [format!("Bearer {SECOND}")]
    });
}

#[test]
fn while_the_program_fails_the_last_value_serves_and_then_requests_are_refused() {
    let server = HttpServer::start();
    let keys = ", ttl = \"1s\", stale = \"2s\"";
    let folder = staged(&server, keys);
    let manifest = super::manifest(FIXTURE, &tables(&server, &folder.path().join("vault").display().to_string(), keys));
    folder.write("toolcell.toml", format!("{manifest}\n[alerts]\nsecret_failures = 1\n"));
    folder.write("value", FIRST);
    let mut host = TestHost::recording_in(folder, &[]);
    came_to(&get(&mut host, &server)).unwrap();
    host.folder().save(Saving::RenamedOver, "value", "");
    until("a refusal", || came_to(&get(&mut host, &server)).is_err());
    // Before that, the last value served, and never an empty one.
    for seen in server.seen() {
        assert_eq!(seen.values("authorization"), [format!("Bearer {FIRST}")]);
    }
    let refused = get(&mut host, &server);
    assert!(refused.denials().iter().any(|denial| denial.ends_with(REFUSED)), "{:?}", refused.denials());
    let alert = host.recorded("an alert", |record| record["event"] == "alert.raised");
    assert_eq!(alert["rule"], "secret_failures", "{alert}");
    host.will_say("gave a value that is empty");
    let status = Command::in_folder(host.folder(), &["status", "--json"]).run().json()[0].clone();
    let program = &status["secret_programs"][0];
    assert_eq!((&program["serves"], &program["problem"]), (&json!(false), &json!("gave a value that is empty")));
    host.still_answers();
}

#[test]
fn a_program_that_fails_at_the_start_leaves_its_component_out_and_says_so() {
    let server = HttpServer::start();
    for (text, expected) in [
        (format!("echo {FIRST} >&2; echo {FIRST}; exit 7"), "ended with exit code 7"),
        ("true".to_owned(), "is empty"),
        (HANGS.to_owned(), "gave no value within 500 ms"),
        (format!("echo {FIRST}; echo {SECOND}"), "has control characters"),
    ] {
        let folder = staged(&server, ", timeout = \"500ms\"");
        write_program(&folder, "vault", &text);
        let mut host = TestHost::recording_in(folder, &[]);
        assert_eq!(host.call("echo", json!({"text": "here"})).text(), "here");
        host.will_say(expected);
        assert!(!host.said().contains(FIRST), "{}", host.said());
        let tools: Vec<Value> = host.list().iter().map(|tool| tool["name"].clone()).collect();
        assert!(!tools.contains(&json!("http")), "{tools:?}");
    }
}

#[test]
fn a_program_gets_no_shell_no_input_and_a_clean_environment() {
    let server = HttpServer::start();
    let folder = staged(&server, "");
    let keys = ", env = { VAULT_ADDR = \"$HOME `x`\" }, inherit = [\"TEST_TOKEN\"]";
    let place = folder.path().join("vault").display().to_string();
    let manifest = super::manifest(FIXTURE, &tables(&server, &place, keys));
    let manifest = manifest.replace(&format!("[\"{place}\"]"), &format!("[\"{place}\", \"$(touch x)\", \"a b;c\"]"));
    folder.write("toolcell.toml", manifest);
    let seen = folder.path().join("seen").display().to_string();
    write_program(
        &folder,
        "vault",
        &format!("{{ printf '%s|' \"$@\"; cat; env; }} > {seen}\necho value-of-the-program"),
    );
    let mut host = TestHost::recording_in(folder, &[("TEST_TOKEN", "t0k3n"), ("TEST_OTHER", "other")]);
    came_to(&get(&mut host, &server)).unwrap();
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(seen.starts_with("$(touch x)|a b;c|"), "{seen}");
    assert!(seen.contains("VAULT_ADDR=$HOME `x`\n") && seen.contains("TEST_TOKEN=t0k3n\n"), "{seen}");
    assert!(!seen.contains("TEST_OTHER") && !seen.contains("CARGO"), "{seen}");
}

#[test]
fn a_program_by_another_name_than_an_absolute_path_is_an_error() {
    let server = HttpServer::start();
    for (from, expected) in [
        ("{ exec = [\"vault\"] }", "absolute path"),
        ("{ exec = [] }", "absolute path"),
        ("{ exec = \"/bin/vault kv get\" }", "must be a list"),
        ("{ ttl = \"5m\" }", "the program is missing"),
        ("{ exec = [\"/bin/true\"], ttl = \"0s\" }", "ttl"),
    ] {
        let manifest =
            super::manifest(FIXTURE, &tables(&server, "PROGRAM", "")).replace("{ exec = [\"PROGRAM\"] }", from);
        let finished = Command::in_folder(&Folder::with_manifest(&manifest), &["check"]).run();
        assert!(finished.failed_with(1).contains(expected), "{from}: {}", finished.stderr);
    }
    let exposed =
        super::manifest(FIXTURE, "[{c}.secrets]\nKEY = { from = { exec = [\"/bin/true\"] }, expose = true }\n");
    let finished = Command::in_folder(&Folder::with_manifest(&exposed), &["check"]).run();
    assert!(finished.failed_with(1).contains("the guest would keep an old value"), "{}", finished.stderr);
}

/// A host that ends takes what it has started along.
#[test]
fn a_program_that_runs_ends_with_the_host() {
    let server = HttpServer::start();
    let folder = staged(&server, ", ttl = \"1s\", timeout = \"1m\"");
    let place = folder.path().display().to_string();
    let text = format!("cd {place}\nif [ -e hang ]; then echo $$ > pid; sleep 120; fi\ncat value");
    write_program(&folder, "vault", &text);
    folder.write("value", FIRST);
    let mut host = TestHost::recording_in(folder, &[]);
    came_to(&get(&mut host, &server)).unwrap();
    host.folder().write("hang", "");
    // The first request after the time of the value waits for the program.
    let pid = host.folder().path().join("pid");
    let pid = || std::fs::read_to_string(&pid).ok().filter(|text| text.ends_with('\n'));
    until("a run that hangs", || {
        drop(host.start_call("http", json!({"url": server.url("/api/x")})));
        pid().is_some()
    });
    let pid = pid().unwrap();
    let status = format!("/proc/{}/stat", pid.trim());
    host.terminate();
    let folder = host.ends_leaving_its_folder();
    // One that nobody has reaped yet has ended as well.
    until("the end of the program", || std::fs::read_to_string(&status).map_or(true, |stat| stat.contains(") Z")));
    drop(folder);
}

/// Debian's `pass`, with a key of its own. Where it is not installed, there is nothing to try.
#[test]
fn pass_gives_a_secret() {
    let is_there = |program: &str| std::path::Path::new(program).is_file();
    if !is_there("/usr/bin/pass") || !is_there("/usr/bin/gpg") {
        eprintln!("pass and gpg are not installed: nothing was tried");
        return;
    }
    let server = HttpServer::start();
    // The agent's socket has a short path.
    let home = tempfile::Builder::new().prefix("p").tempdir_in("/tmp").unwrap();
    let gnupg = home.path().join("g");
    std::fs::create_dir(&gnupg).unwrap();
    std::fs::set_permissions(&gnupg, std::fs::Permissions::from_mode(0o700)).unwrap();
    let run = |program: &str, arguments: &[&str], input: &str| {
        use std::io::Write as _;
        let mut command = std::process::Command::new(program);
        command.args(arguments).env("HOME", home.path()).env("GNUPGHOME", &gnupg);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{program} {arguments:?}");
    };
    let key = ["--batch", "--passphrase", "", "--quick-generate-key", "toolcell@example.com", "default", "default"];
    run("/usr/bin/gpg", &key, "");
    run("/usr/bin/pass", &["init", "toolcell@example.com"], "");
    run("/usr/bin/pass", &["insert", "--multiline", "weather/key"], FIRST);
    let keys = format!(
        ", \"show\", \"weather/key\"], env = {{ HOME = \"{}\", GNUPGHOME = \"{}\" }}, timeout = \"30s\"",
        home.path().display(),
        gnupg.display()
    );
    let tables = tables(&server, "/usr/bin/pass", "").replace("\"] }", &format!("\"{keys} }}"));
    let mut host = TestHost::recording_in(folder(FIXTURE, &tables), &[]);
    came_to(&get(&mut host, &server)).unwrap();
    assert_eq!(server.only_seen().values("authorization"), [format!("Bearer {FIRST}")]);
    drop(host);
    run("/usr/bin/gpgconf", &["--homedir", &gnupg.display().to_string(), "--kill", "all"], "");
}
