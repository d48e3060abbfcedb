//! The files of `host/deploy` for Kubernetes and compose, as far as a host can say if they are
//! right. The sample manifest serves, with the rights that the page gives the Valkey user. Alerts,
//! dashboard and autoscaler name metrics that there are.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;
use toolcell_tests::engine::Engine;
use toolcell_tests::web::{Ask, WebHost, Wire};
use toolcell_tests::{Command, Figures, Folder, patience};

/// A file of the clone.
fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text with these words in place of others, each of which it must have once.
fn replaced(text: &str, words: &[(&str, &str)]) -> String {
    words.iter().fold(text.to_owned(), |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 1, "{from} in\n{text}");
        text.replace(from, to)
    })
}

/// A Valkey server whose one user has the rights that the page gives it, and this password.
fn engine(password: &str) -> (Engine, tempfile::TempDir) {
    let page = text("host/docs/kubernetes.md");
    let line = page.lines().find(|line| line.contains(">> users.acl")).expect("a line that makes the user");
    let rights = line.split(") ").nth(1).and_then(|rest| rest.split('"').next()).expect("rights behind the password");
    assert!(rights.starts_with("~toolcell:* &toolcell:* +") && rights.ends_with(" -@dangerous"), "{rights}");
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users.acl");
    // The digest is for the page's shell; here the password stands in the file.
    std::fs::write(&users, format!("user default off\nuser toolcell on >{password} {rights}\n")).unwrap();
    (Engine::start(&["--aclfile", users.to_str().unwrap()]), folder)
}

/// A host that serves the sample, with a component, as the pods do; and a token for it. Its folders
/// and its server are those of the test.
fn sample(engine: &Engine, password: &str) -> (WebHost, String) {
    let manifest = replaced(
        &text("host/deploy/sample/toolcell.toml"),
        &[
            ("redis://valkey", &format!("redis://127.0.0.1:{}", engine.port())),
            ("/etc/toolcell/tokens.jsonl", "tokens.jsonl"),
            ("/var/lib/toolcell/state", "state"),
        ],
    );
    let folder = Folder::with_manifest(&format!("{manifest}\n[components.good]\nsource = \"components/good.wasm\"\n"));
    let token = Command::in_folder(&folder, &["token", "new", "ann"]).run().succeeded().trim().to_owned();
    let _ = Command::in_folder(&folder, &["lock"]).run().succeeded();
    let deployment = text("host/deploy/kubernetes/base/deployment.yaml");
    let arguments = deployment.split("args:\n").nth(1).unwrap().lines().map(str::trim);
    let arguments: Vec<String> = arguments
        .map_while(|line| line.strip_prefix("- "))
        .skip(1)
        // The log is read as text by the harness.
        .filter(|argument| !argument.starts_with("--log-format"))
        .map(|argument| argument.replace("0.0.0.0:8080", "127.0.0.1:0").replace(":9464", ":0"))
        .collect();
    assert!(arguments.contains(&"--locked".to_owned()) && arguments.contains(&"--metrics=0.0.0.0:0".to_owned()));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let variables = [("TOOLCELL_STATE_KEY", "0123456789abcdef0123456789abcdef"), ("TOOLCELL_STATE_PASSWORD", password)];
    (WebHost::in_folder_with(folder, &arguments, &variables), token)
}

/// The metrics of a host that listens on every address.
fn figures(host: &WebHost) -> Figures {
    let port = host.process().metrics_address().port();
    let ask = Ask::bare("GET", "/metrics").with("accept", "application/openmetrics-text");
    let reply = Wire::to(([127, 0, 0, 1], port).into()).ask(&ask);
    Figures::read(std::str::from_utf8(reply.body()).unwrap())
}

/// The words of a text that are names of metrics: those of this program, and of its process.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != ':');
    words.filter(|word| word.starts_with("toolcell_") || word.starts_with("process_")).map(str::to_owned).collect()
}

/// The words that queries compare this label with.
fn values(text: &str, label: &str) -> BTreeSet<String> {
    let text = text.replace('\\', "");
    let after = text.split(label).skip(1);
    let compared = after.filter_map(|rest| rest.strip_prefix("=\"").or_else(|| rest.strip_prefix("=~\"")));
    let texts = compared.filter_map(|rest| rest.split('"').next()).filter(|value| !value.starts_with('$'));
    texts.flat_map(|value| value.split('|').map(str::to_owned)).collect()
}

#[test]
fn the_sample_serves_with_the_rights_of_its_user_and_what_is_watched_is_exported() {
    let (engine, _users) = engine("0f1e2d");
    let (host, token) = sample(&engine, "0f1e2d");
    let end = std::time::Instant::now() + patience();
    while host.ask(&Ask::bare("GET", "/readyz")).status() != 200 {
        assert!(std::time::Instant::now() < end, "not ready: {}", host.process().said());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let echo = || Ask::call("echo", json!({"text": "hello"})).with("host", "tools.example.com");
    let answer = host.ask(&echo().with("authorization", &format!("Bearer {token}")));
    assert_eq!(answer.frame()["result"]["content"][0]["text"], "hello", "{answer:?}");
    assert_eq!(host.ask(&echo()).status(), 401, "callers have to show a token");
    let denied = engine.ask(&["GET", "toolcell:x"]);
    assert!(denied.starts_with("-NOAUTH"), "the default user is off: {denied}");

    let exported = figures(&host).names();
    let figures = figures(&host);
    let files = ["prometheus/rules.yaml", "prometheus/adapter.yaml", "prometheus/dashboard.json"];
    for file in [&files[..], &["kubernetes/base/horizontalpodautoscaler.yaml"]].concat() {
        let text = text(&format!("host/deploy/{file}"));
        let used = metrics(&text);
        assert!(!used.is_empty(), "{file} names no metric");
        let unknown: Vec<_> = used.difference(&exported).collect();
        assert!(unknown.is_empty(), "{file}: the host exports no {unknown:?}, but {exported:#?}");
        let outcomes: BTreeSet<String> =
            ["refused", "replaced", "unchanged"].into_iter().map(str::to_owned).chain(calls(&figures)).collect();
        let unknown: Vec<_> = values(&text, "outcome").into_iter().filter(|word| !outcomes.contains(word)).collect();
        assert!(unknown.is_empty(), "{file}: no call ends with {unknown:?}, but with {outcomes:?}");
    }
}

#[test]
fn compose_mounts_the_folder_of_the_tokens_file_which_commands_replace() {
    let sample = text("host/deploy/sample/toolcell.toml");
    let tokens = sample.lines().find_map(|line| line.strip_prefix("tokens = \"")?.strip_suffix('"')).unwrap();
    let compose = text("host/deploy/compose/compose.yaml");
    let mounts = compose.lines().filter_map(|line| line.trim().strip_prefix("- ./")?.split(':').nth(1));
    let holding: Vec<&Path> = mounts.map(Path::new).filter(|mount| Path::new(tokens).starts_with(mount)).collect();
    assert_eq!(holding, [Path::new(tokens).parent().unwrap()]);
}

/// The outcomes that calls can have.
fn calls(figures: &Figures) -> Vec<String> {
    figures.values_of("outcome").into_iter().map(str::to_owned).collect()
}
