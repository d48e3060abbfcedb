//! Real MCP clients talk to toolcell, over stdio and over HTTP: they list every tool, call every
//! example, are refused, and cancel.
//!
//! Holds the tests, and the code that finds and runs the client programs of `tests/clients`. The
//! calls and the expected answers are in `tests/clients/cases.json`, which every client reads; none
//! of them belongs here.

mod cases;
mod rmcp;
mod rmcp_reload;
mod served;

use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use served::Served;
use tokio::process::Command;
use tokio::time::timeout;
use toolcell_tests::{Folder, fixture_bytes, toolcell};

/// Longest time that a client may talk. The slowest is the Inspector, which starts a server for
/// each of its dozen requests. It takes a minute, or some minutes while other tests and builds keep
/// the machine busy.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(600);

/// Longest time that an installation may take with an empty cache: some 300 MB are downloaded.
const SETUP_TIME_MAX: Duration = Duration::from_secs(600);

/// The modes, as the SDKs name them.
const MODES: [&str; 3] = ["legacy", "auto", "2026-07-28"];

#[test]
fn python_legacy() {
    python("legacy");
}

#[test]
fn python_auto() {
    python("auto");
}

#[test]
fn python_modern() {
    python("2026-07-28");
}

#[test]
fn python_over_http_in_every_mode() {
    over_http(&MODES, || python_client("client.py"));
}

#[test]
fn typescript_legacy() {
    node("typescript.mjs", "legacy");
}

#[test]
fn typescript_auto() {
    node("typescript.mjs", "auto");
}

#[test]
fn typescript_modern() {
    node("typescript.mjs", "2026-07-28");
}

#[test]
fn typescript_over_http_in_every_mode() {
    over_http(&MODES, || node_client("typescript.mjs"));
}

#[test]
fn python_sees_reloads_in_every_mode() {
    reloads(|| python_client("client.py"));
}

#[test]
fn typescript_sees_reloads_in_every_mode() {
    reloads(|| node_client("typescript.mjs"));
}

#[test]
fn python_answers_what_tools_ask_in_every_mode() {
    answers(|| python_client("client.py"));
}

#[test]
fn typescript_answers_what_tools_ask_in_every_mode() {
    answers(|| node_client("typescript.mjs"));
}

#[test]
#[ignore = "takes minutes: make test-e2e ARGS='--ignored clients::'"]
fn inspector_legacy() {
    node("inspector.mjs", "legacy");
}

#[test]
#[ignore = "takes minutes: make test-e2e ARGS='--ignored clients::'"]
fn inspector_modern() {
    node("inspector.mjs", "modern");
}

#[test]
#[ignore = "takes minutes: make test-e2e ARGS='--ignored clients::'"]
fn inspector_over_http_in_every_mode() {
    over_http(&["legacy", "auto", "modern"], || node_client("inspector.mjs"));
}

#[test]
fn rmcp_legacy() {
    within(CLIENT_TIME_MAX, "rmcp legacy", rmcp::converse(rmcp::Mode::Legacy, &Served::by_the_client()));
}

#[test]
fn rmcp_auto() {
    within(CLIENT_TIME_MAX, "rmcp auto", rmcp::converse(rmcp::Mode::Auto, &Served::by_the_client()));
}

#[test]
fn rmcp_modern() {
    within(CLIENT_TIME_MAX, "rmcp 2026-07-28", rmcp::converse(rmcp::Mode::Modern, &Served::by_the_client()));
}

#[test]
fn rmcp_over_http_in_every_mode() {
    let served = Served::over_http();
    for mode in rmcp::Mode::ALL {
        within(CLIENT_TIME_MAX, "rmcp over HTTP", rmcp::converse(mode, &served));
    }
    served.end();
}

#[test]
fn rmcp_sees_reloads_in_every_mode() {
    for mode in rmcp::Mode::ALL {
        let folder = folder_to_reload();
        let arguments = ["serve", "--manifest", &folder.manifest().display().to_string()].map(str::to_owned);
        let target = rmcp::Target::Arguments(arguments.to_vec());
        within(CLIENT_TIME_MAX, "rmcp and reloads", rmcp_reload::converse(mode, &folder, target));
        let folder = folder_to_reload();
        let served = Served::folder("reload", &folder);
        let target = served.url("reload").unwrap();
        within(CLIENT_TIME_MAX, "rmcp and reloads over HTTP", rmcp_reload::converse(mode, &folder, target));
        served.end();
    }
}

/// Runs a client over HTTP in each of these modes, against one set of servers.
fn over_http(modes: &[&str], client: impl Fn() -> Command) {
    let served = Served::over_http();
    for mode in modes {
        let mut client = client();
        served.tell(&mut client);
        talk(&mut client, mode);
    }
    served.end();
}

/// Makes a client see reloads in every mode, over stdio and over HTTP.
fn reloads(client: impl Fn() -> Command) {
    for mode in MODES {
        let folder = folder_to_reload();
        talk(client().arg("--reload").arg(folder.path()), mode);
        let folder = folder_to_reload();
        let served = Served::folder("reload", &folder);
        let mut client = client();
        served.tell(client.arg("--reload").arg(folder.path()));
        talk(&mut client, mode);
        served.end();
    }
}

/// Makes a client answer the questions of tools in every mode, over stdio and over HTTP.
fn answers(client: impl Fn() -> Command) {
    let folder = folder_that_asks();
    let served = Served::folder("asking", &folder);
    for mode in MODES {
        talk(client().arg("--asking").arg(folder.path()), mode);
        let mut client = client();
        served.tell(client.arg("--asking").arg(folder.path()));
        talk(&mut client, mode);
    }
    served.end();
}

/// A folder whose component the client saves again: as other code with an equal list, and as code
/// with another list.
fn folder_to_reload() -> Folder {
    // Clients call until the new code answers. On a busy machine they would reach the default rate
    // before.
    let limits = "[components.tool.limits]\nrate = \"1000000/s\"\n";
    let folder =
        Folder::with_manifest(&format!("version = 1\n[components.tool]\nsource = \"components/tool.wasm\"\n{limits}"));
    folder.write("components/tool.wasm", fixture_bytes("versioned_a"));
    folder.write("next/same_list.wasm", fixture_bytes("versioned_b"));
    folder.write("next/other_list.wasm", fixture_bytes("versioned_c"));
    folder
}

/// A folder whose tools ask, and one whose calls need approval.
pub(crate) fn folder_that_asks() -> Folder {
    let confirmed = "[components.good]\nsource = \"components/good.wasm\"\napproval = \"always\"\n";
    Folder::with_manifest(&format!("version = 1\n[components.asks]\nsource = \"components/asks.wasm\"\n{confirmed}"))
}

/// Runs the Python client in one mode.
fn python(mode: &str) {
    talk(&mut python_client("client.py"), mode);
}

/// One of the Python clients, installed.
pub(crate) fn python_client(program: &str) -> Command {
    static INSTALLED: OnceLock<Result<Vec<String>, String>> = OnceLock::new();
    let paths = INSTALLED.get_or_init(|| install("python")).as_ref().unwrap_or_else(|problem| panic!("{problem}"));
    let mut client = Command::new(&paths[0]);
    client.arg(folder().join("python").join(program));
    client
}

/// Runs one of the Node clients in one mode.
fn node(program: &str, mode: &str) {
    talk(&mut node_client(program), mode);
}

/// One of the Node clients, installed.
pub(crate) fn node_client(program: &str) -> Command {
    static INSTALLED: OnceLock<Result<Vec<String>, String>> = OnceLock::new();
    let paths = INSTALLED.get_or_init(|| install("node")).as_ref().unwrap_or_else(|problem| panic!("{problem}"));
    let mut client = Command::new(&paths[0]);
    client.arg(folder().join("node").join(program)).arg("--modules").arg(&paths[1]);
    client
}

/// Installs the clients of one language unless they are installed. Returns the paths that
/// `setup.sh` prints.
fn install(language: &str) -> Result<Vec<String>, String> {
    let mut setup = Command::new("sh");
    setup.arg(folder().join("setup.sh")).arg(language);
    let done = run(&mut setup, SETUP_TIME_MAX);
    if !done.status.success() {
        return Err(format!("the {language} clients cannot be installed:\n{}", String::from_utf8_lossy(&done.stderr)));
    }
    Ok(String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect())
}

/// Runs a client against toolcell. Fails with all its output unless the client succeeds.
pub(crate) fn talk(client: &mut Command, mode: &str) {
    converse(client.arg("--toolcell").arg(toolcell()).arg("--cases").arg(folder().join("cases.json")), mode);
}

/// Runs a client in one mode against the servers that its arguments name. Fails with all its output
/// unless the client succeeds.
pub(crate) fn converse(client: &mut Command, mode: &str) {
    client.args(["--mode", mode]);
    let done = run(client, CLIENT_TIME_MAX);
    let said = String::from_utf8_lossy(&done.stdout);
    let complained = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "the client ended with {}\n{said}\n{complained}", done.status);
    assert!(said.contains("ok "), "the client checked nothing\n{said}\n{complained}");
}

/// Runs a program to its end. A program that exceeds `limit` is killed.
fn run(program: &mut Command, limit: Duration) -> Output {
    program.stdin(Stdio::null()).kill_on_drop(true);
    let name = format!("{program:?}");
    within(limit, &name, async { program.output().await.unwrap_or_else(|error| panic!("{name}: {error}")) })
}

/// The result of `work`. Panics if it takes longer than `limit`.
fn within<T>(limit: Duration, name: &str, work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime
        .block_on(async { timeout(limit, work).await.unwrap_or_else(|_| panic!("{name} is not done after {limit:?}")) })
}

/// The folder of the client programs.
fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/clients"))
}
