//! A run of tests through a balancer. Where `TEST_REPLICAS` names a number, each host of a test is
//! that many replicas behind nginx: in one folder, with one state, in turns, without affinity.
//!
//! A test of one process by its nature says so, with [`alone`]. Replicas and balancers that a test
//! starts itself stay as they are: their manifests have `[state]`.

use std::cell::Cell;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::bridge::Bridge;
use crate::engine::Engine;
use crate::nginx::{self, Nginx};
use crate::{Command, Folder, TestHost};

/// The variable with the number of replicas behind each host's address.
const REPLICAS: &str = "TEST_REPLICAS";

/// The variable that names a file for lines about each host that was started: the test, what it
/// was, and why it was alone.
const NOTES: &str = "TEST_REPLICAS_NOTES";

/// The key that all replicas share.
const KEY: &str = "0123456789abcdef0123456789abcdef";

/// The name of the link to what lies above a manifest.
const ABOVE: &str = "above";

/// The name of the caller that a conversation over stdio has over HTTP.
const CALLER: &str = "local-client";

thread_local! {
    /// The reason for which hosts of this test are one process.
    static ALONE: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// While it lives, hosts that this thread starts are one process each.
#[derive(Debug)]
pub struct Alone(Option<&'static str>);

/// Says why a test is about one process, also in a run through a balancer. It holds for the hosts
/// that this thread starts as long as the returned value lives.
#[must_use]
pub fn alone(why: &'static str) -> Alone {
    Alone(ALONE.replace(Some(why)))
}

impl Drop for Alone {
    fn drop(&mut self) {
        ALONE.set(self.0);
    }
}

/// The number of replicas for a host of this folder. `None` if it is one process.
pub(crate) fn replicas_in(folder: &Folder) -> Option<usize> {
    replicas_for(&if folder.is_shared() { String::new() } else { folder.read("toolcell.toml") })
}

/// The number of replicas for a host of this manifest. `None` if it is one process.
pub(crate) fn replicas_for(manifest: &str) -> Option<usize> {
    let count = std::env::var(REPLICAS).ok()?;
    let count = count.parse().unwrap_or_else(|error| panic!("{REPLICAS}={count}: {error}"));
    assert!(count > 1, "{REPLICAS}={count}: one process is not a replica");
    if let Some(why) = ALONE.get() {
        note("alone", why);
        return None;
    }
    if manifest.lines().any(|line| line == "[state]") {
        note("own", "it starts replicas of its own");
        return None;
    }
    note("balanced", "");
    Some(count)
}

fn note(kind: &str, why: &str) {
    let Ok(path) = std::env::var(NOTES) else { return };
    let thread = std::thread::current();
    let line = format!("{}\t{kind}\t{why}\n", thread.name().unwrap_or("?"));
    fs::File::options().append(true).create(true).open(path).unwrap().write_all(line.as_bytes()).unwrap();
}

/// The state that the replicas in one folder share.
pub(crate) struct Shared {
    engine: Arc<Engine>,
    prefix: String,
    /// The lines of `[http]` that a client needs to be told from others.
    http: &'static str,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Shared {
    /// State that no other folder has, on a server that all folders of this process use.
    pub(crate) fn new(http: &'static str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("test-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        Self { engine: engine(), prefix, http }
    }

    /// True while a call has a place that replicas share.
    pub(crate) fn a_call_has_a_place(&self) -> bool {
        self.engine.ask(&["KEYS", &format!("{}:1:run:*", self.prefix)]) != "*0"
    }

    /// This manifest with the shared state. One that has some stays as it is.
    pub(crate) fn said_in(&self, manifest: &str) -> String {
        if manifest.lines().any(|line| line == "[state]") {
            return manifest.to_owned();
        }
        let key = match manifest.contains("state_key") {
            true => "",
            false => "state_key = \"file:state.key\"\n",
        };
        let http = match manifest.lines().any(|line| line.starts_with("[http")) {
            true => "",
            false => self.http,
        };
        // Behind all others where that can be, so that few lines have other numbers.
        let (manifest, server) = match manifest.split_once("[server]\n") {
            Some((before, after)) => (format!("{before}[server]\n{key}{after}"), String::new()),
            None => (manifest.to_owned(), format!("[server]\n{key}")),
        };
        let (manifest, limits) = with_shared_places(&manifest);
        let port = self.engine.port();
        let prefix = &self.prefix;
        // A busy machine takes its time, and these tests are not about that.
        let state =
            format!("[state]\nshared = \"redis://127.0.0.1:{port}\"\nprefix = \"{prefix}\"\nwithin = \"10s\"\n");
        format!("{manifest}\n{server}{http}{limits}{state}")
    }
}

/// This manifest with each `concurrency` as one over all replicas too, and the lines of defaults
/// that it lacks: a call that runs is known by its place at the server.
fn with_shared_places(manifest: &str) -> (String, &'static str) {
    const DEFAULTS: &str = "[defaults.limits]";
    let mut lines: Vec<String> = Vec::new();
    let mut section = "";
    let mut has_places = false;
    for line in manifest.lines() {
        lines.push(line.to_owned());
        if line.starts_with('[') {
            section = line;
        } else if let Some(places) = line.strip_prefix("concurrency = ") {
            lines.push(format!("concurrency_shared = {places}"));
            has_places |= section == DEFAULTS;
        }
    }
    if has_places {
        return (lines.join("\n"), "");
    }
    match lines.iter().position(|line| line == DEFAULTS) {
        Some(at) => {
            lines.insert(at + 1, "concurrency_shared = 1000".to_owned());
            (lines.join("\n"), "")
        }
        None => (lines.join("\n"), "[defaults.limits]\nconcurrency_shared = 1000\n"),
    }
}

/// A server of this process for shared state. It ends with the last folder that uses it.
fn engine() -> Arc<Engine> {
    static ENGINE: Mutex<Weak<Engine>> = Mutex::new(Weak::new());
    let mut known = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    known.upgrade().unwrap_or_else(|| {
        let engine = Arc::new(Engine::start(&[]));
        *known = Arc::downgrade(&engine);
        engine
    })
}

/// The other replicas of a host, and the nginx before all of them.
#[derive(Debug)]
pub(crate) struct Balanced {
    pub(crate) others: Vec<TestHost>,
    pub(crate) nginx: Nginx,
    /// The conversation over stdio, for a host that a test speaks with so.
    pub(crate) bridge: Option<Bridge>,
}

/// The way in which a host was to be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Http,
    Stdio,
}

/// Starts that many replicas in this folder, with these arguments, behind an nginx.
pub(crate) fn start(count: usize, folder: Folder, arguments: &[&str], variables: &[(&str, &str)]) -> TestHost {
    let way = if arguments.contains(&"--http") { Way::Http } else { Way::Stdio };
    // A client over stdio is known. Over HTTP it needs a token for that.
    folder.share(match way {
        Way::Http => "",
        Way::Stdio => "[http]\ntokens = \"callers.jsonl\"\n",
    });
    if !folder.path().join("state.key").exists() {
        fs::write(folder.path().join("state.key"), KEY).unwrap();
        fs::set_permissions(folder.path().join("state.key"), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let manifest = folder.read("toolcell.toml");
    let token = (way == Way::Stdio && manifest.contains("\"callers.jsonl\"")).then(|| token(&folder));
    let mut replicas: Vec<TestHost> = (0..count)
        .map(|place| {
            let arguments = arguments_of(place, arguments, way);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            TestHost::start_alone(folder.clone(), &arguments, variables).recording_as(&audit(place))
        })
        .collect();
    let addresses: Vec<_> = replicas.iter().map(TestHost::http_address).collect();
    let program = nginx::installed().expect("an nginx");
    let nginx = Nginx::before(&program, &addresses, |shown| shown);
    let others = replicas.split_off(1);
    let bridge = (way == Way::Stdio).then(|| Bridge::to(nginx.address(), token));
    replicas.remove(0).balanced(Balanced { others, nginx, bridge })
}

/// A token of the client over stdio, made once in a folder.
fn token(folder: &Folder) -> String {
    let kept = folder.path().join("client.token");
    if !kept.exists() {
        let made = Command::in_folder(folder, &["token", "new", CALLER]).run();
        fs::write(&kept, made.succeeded().trim()).unwrap();
    }
    fs::read_to_string(&kept).unwrap()
}

/// The name of the audit file of the replica at this place.
fn audit(place: usize) -> String {
    if place == 0 { "audit.jsonl".to_owned() } else { format!("audit-{place}.jsonl") }
}

/// The arguments of the replica at this place: an address, an audit file and a control socket of
/// its own.
fn arguments_of(place: usize, arguments: &[&str], way: Way) -> Vec<String> {
    let mut own: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    if let Some(at) = own.iter().position(|argument| argument == "--audit") {
        own[at + 1] = audit(place);
    }
    if way == Way::Stdio {
        own.extend(["--http", "127.0.0.1:0"].map(str::to_owned));
    }
    // One process of a folder has its socket.
    if place > 0 && !own.iter().any(|argument| argument == "--control") {
        own.extend(["--control", "off"].map(str::to_owned));
    }
    own
}

/// A folder that stands for that of this manifest: it has the manifest, and links to all that lies
/// next to it and above it.
pub(crate) fn standing_for(manifest: &Path) -> Folder {
    let folder = Folder::with_manifest("");
    let beside = manifest.parent().unwrap().canonicalize().unwrap();
    for entry in fs::read_dir(&beside).unwrap().map(|entry| entry.unwrap()) {
        if entry.path().file_name() != manifest.file_name() && entry.file_name() != "toolcell.toml" {
            folder.link(&entry.file_name().to_string_lossy(), entry.path());
        }
    }
    folder.link(ABOVE, beside.parent().unwrap());
    let text = fs::read_to_string(manifest).unwrap().replace("\"../", &format!("\"{ABOVE}/"));
    fs::write(folder.manifest(), text).unwrap();
    folder
}
