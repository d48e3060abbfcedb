//! Two hundred swaps while twenty clients call: no answer is lost or wrong, no generation stays,
//! and memory does not grow.
//!
//! A process that serves on stdio has one connection. The clients are therefore twenty threads that
//! share it, each with its own ids.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, TestHost, bulk, patience};

/// Swaps in all.
const SWAPS: u64 = 200;

/// Swaps after which everything kept for reuse exists. Later memory is compared with that at this
/// point.
const WARM: u64 = 50;

/// Interval, in swaps, at which the tools' descriptions change. Clients are notified of these
/// changes only.
const TELLING: u64 = 10;

/// Threads that make calls.
const CLIENTS: usize = 20;

/// Bytes by which resident memory may grow beyond what it was after [`WARM`] swaps; it grows by
/// some 1 MB. A generation that stayed would hold 100 KiB at least: 150 of them are 15 MB.
const GROWTH_BYTES_MAX: u64 = 8 << 20;

/// The id whose reply ends the conversation.
const OVER: &str = "over";

/// However long a busy machine takes, all records are in one file.
const MANIFEST: &str = "version = 1

[audit]
rotate = \"1GiB\"

[defaults.limits]
rate = \"1000000/s\"
concurrency = 64
deadline = \"1m\"

[components.numbered]
source = \"components/numbered.wasm\"
";

/// The component that is replaced. A number in it shows which version answers.
struct Numbered {
    path: PathBuf,
    bytes: Vec<u8>,
    /// The number saved last. Stored before the file is in place.
    saved: AtomicU64,
    /// The last number that certainly serves. Stored after it does.
    serving: AtomicU64,
}

impl Numbered {
    fn new(folder: &Folder) -> Self {
        let path = folder.path().join("components/numbered.wasm");
        let bytes = std::fs::read(&path).unwrap();
        Self { path, bytes, saved: AtomicU64::new(0), serving: AtomicU64::new(0) }
    }

    /// Puts the component with this number in place, in one step.
    fn save(&self, number: u64) {
        self.put_in_place(number, &self.with_number(number));
    }

    /// Puts the component with this number in place, with that many more bytes of code and another
    /// description.
    fn save_with_code(&self, number: u64, code_bytes: usize) {
        self.put_in_place(number, &bulk::with_code(&self.with_number(number), code_bytes));
    }

    fn with_number(&self, number: u64) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        write_number(&mut bytes, b"number ", number);
        write_number(&mut bytes, b"listed ", number / TELLING);
        bytes
    }

    fn put_in_place(&self, number: u64, bytes: &[u8]) {
        let draft = self.path.with_extension("draft");
        std::fs::write(&draft, bytes).unwrap();
        self.saved.store(number, Ordering::SeqCst);
        std::fs::rename(draft, &self.path).unwrap();
    }
}

/// Writes six digits after these words.
fn write_number(bytes: &mut [u8], words: &[u8], number: u64) {
    let at = bytes.windows(words.len()).position(|window| window == words).expect("the words are in it") + words.len();
    bytes[at..at + 6].copy_from_slice(format!("{number:06}").as_bytes());
}

/// The folder and the environment in which commands run.
struct Place {
    folder: PathBuf,
    variables: [(&'static str, String); 2],
}

impl Place {
    fn of(folder: &Folder) -> Self {
        let at = |name: &str| folder.path().join(name).display().to_string();
        let variables = [("XDG_CACHE_HOME", at("cache")), ("XDG_STATE_HOME", at("state"))];
        Self { folder: folder.path().to_owned(), variables }
    }

    fn variables(&self) -> Vec<(&str, &str)> {
        self.variables.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }

    /// The answer of the only process that serves.
    fn ask(&self, command: &str) -> Value {
        let place = |command: Command| command.working_in(&self.folder).with_variable("XDG_RUNTIME_DIR", "");
        let variables = self.variables();
        let command =
            variables.iter().fold(place(Command::toolcell(&[command, "--json"])), |command, (name, value)| {
                command.with_variable(name, value)
            });
        let answers = command.run().json();
        assert_eq!(answers.as_array().map(Vec::len), Some(1), "{answers}");
        answers[0].clone()
    }

    /// The status, as soon as `is_so` holds for it.
    fn status_once(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + patience();
        loop {
            let status = self.ask("status");
            if is_so(&status) {
                return status;
            }
            assert!(Instant::now() < end, "never {what}: {status:#}");
        }
    }
}

/// One client's side: the calls it makes, and the answers for it.
struct Client<'s> {
    number: usize,
    wire: &'s Mutex<ChildStdin>,
    replies: Receiver<Value>,
    numbered: &'s Numbered,
    sent: u64,
    answered: u64,
}

impl Client<'_> {
    /// Calls until `over` is set. Each round makes a call that never ends and is cancelled, and
    /// next to it a short call and a long one.
    fn call_until(mut self, over: &AtomicBool) -> u64 {
        while !over.load(Ordering::SeqCst) {
            let never = self.start("never");
            self.call("now");
            self.call("soon");
            let params = json!({"requestId": never});
            send(self.wire, &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
        }
        self.answered
    }

    fn start(&mut self, tool: &str) -> String {
        self.sent += 1;
        let id = format!("{}-{}", self.number, self.sent);
        let params = json!({"name": tool, "arguments": {}});
        send(self.wire, &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        id
    }

    /// Calls and checks the answer. It must come from the version that served at the start of the
    /// call, or from a later one.
    fn call(&mut self, tool: &str) {
        let oldest = self.numbered.serving.load(Ordering::SeqCst);
        let id = self.start(tool);
        let reply = self.replies.recv_timeout(patience()).unwrap_or_else(|_| panic!("no answer to {id} ({tool})"));
        let newest = self.numbered.saved.load(Ordering::SeqCst);
        assert_eq!(reply["id"], json!(id), "an answer to a call that was cancelled: {reply}");
        let text = reply["result"]["content"][0]["text"].as_str();
        let number = text.and_then(|text| text.strip_prefix("number ")?.parse::<u64>().ok());
        let number = number.unwrap_or_else(|| panic!("{tool} answered {reply}"));
        assert!((oldest..=newest).contains(&number), "{number} answered, and {oldest} to {newest} were there");
        self.answered += 1;
    }
}

fn send(wire: &Mutex<ChildStdin>, frame: &Value) {
    let mut wire = wire.lock().unwrap_or_else(PoisonError::into_inner);
    wire.write_all(format!("{frame}\n").as_bytes()).unwrap();
}

/// Replaces the component [`SWAPS`] times. In turns, a command asks for the reload, or the host
/// notices the changed file.
fn swap(numbered: &Numbered, place: &Place, each: impl Fn(u64)) {
    for number in 1..=SWAPS {
        numbered.save(number);
        if number.is_multiple_of(2) {
            let answer = place.ask("reload");
            assert!(matches!(answer["outcome"].as_str(), Some("replaced" | "unchanged")), "{answer:#}");
        }
        let status = place.status_once("replaced", |status| status["generation"] == json!(number + 1));
        assert_eq!(status["failed"], Value::Null, "{status:#}");
        numbered.serving.store(number, Ordering::SeqCst);
        each(number);
    }
}

/// Passes every frame to its client, until the reply with the id [`OVER`]. Returns the number of
/// list-changed notifications.
fn give_out(host: &mut TestHost, clients: &[Sender<Value>]) -> u64 {
    let mut told = 0;
    loop {
        let frame = host.receive();
        if frame["method"] == "notifications/tools/list_changed" {
            told += 1;
            continue;
        }
        let id = frame["id"].as_str().unwrap_or_else(|| panic!("nobody asked for {frame}"));
        if id == OVER {
            return told;
        }
        let client = id.split_once('-').and_then(|(client, _)| client.parse::<usize>().ok()).unwrap();
        // A client that failed no longer receives; joining its thread shows the error.
        let _ = clients[client].send(frame);
    }
}

#[test]
fn two_hundred_swaps_under_twenty_clients_lose_nothing_and_keep_nothing() {
    let folder = Folder::with_manifest(MANIFEST);
    let place = Place::of(&folder);
    let mut variables = place.variables();
    variables.push(("XDG_RUNTIME_DIR", ""));
    let mut host = TestHost::recording_in(folder, &variables);
    host.initialize("2025-11-25");
    let numbered = Numbered::new(host.folder());
    let process = host.process_id();
    let wire = Mutex::new(host.take_input());
    let over = AtomicBool::new(false);
    let memory = Mutex::new(Vec::new());
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..CLIENTS).map(|_| channel()).unzip();
    let (told, answered) = std::thread::scope(|scope| {
        let clients = receivers.into_iter().enumerate().map(|(number, replies)| {
            let client = Client { number, wire: &wire, replies, numbered: &numbered, sent: 0, answered: 0 };
            scope.spawn(|| client.call_until(&over))
        });
        let clients: Vec<_> = clients.collect();
        let conversation = scope.spawn(|| {
            let swapped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                swap(&numbered, &place, |number| {
                    if number % WARM == 0 {
                        memory.lock().unwrap().push(resident_bytes(process));
                    }
                });
            }));
            over.store(true, Ordering::SeqCst);
            let answered: Vec<_> = clients.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            send(&wire, &json!({"jsonrpc": "2.0", "id": OVER, "method": "ping"}));
            swapped.and_then(|()| answered.into_iter().collect::<Result<Vec<u64>, _>>())
        });
        let told = give_out(&mut host, &senders);
        let answered = conversation.join().unwrap().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (told, answered)
    });
    assert_eq!(told, SWAPS / TELLING, "told once for each swap that changed a description");
    assert!(answered.iter().all(|count| *count > SWAPS / 10), "every client was served all along: {answered:?}");
    let replaced = host.audit().iter().filter(|record| record["event"] == "catalog.replaced").count() as u64;
    assert_eq!(replaced, SWAPS, "each swap was one generation");
    let is_idle = |status: &Value| {
        status["generations_held"] == json!([]) && status["calls"]["running"] == 0 && status["calls"]["waiting"] == 0
    };
    place.status_once("without earlier generations and calls", is_idle);
    let memory = memory.into_inner().unwrap();
    let warm = memory[0];
    let most = memory.iter().max().copied().unwrap_or_default();
    eprintln!("resident after every {WARM} swaps: {memory:?}; answers: {}", answered.iter().sum::<u64>());
    assert!(most.saturating_sub(warm) <= GROWTH_BYTES_MAX, "resident after every {WARM} swaps: {memory:?}");
}

fn resident_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(Path::new("/proc").join(process.to_string()).join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the host lives");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn a_large_component_is_replaced_though_tools_keep_every_core_busy() {
    let folder = Folder::with_manifest(
        "version = 1
[components.numbered]
source = \"components/numbered.wasm\"
[components.loops]
source = \"components/loops.wasm\"
[components.loops.limits]
fuel = 1_000_000_000_000_000
deadline = \"1h\"
",
    );
    let mut host = TestHost::in_folder(folder);
    host.initialize("2025-11-25");
    let numbered = Numbered::new(host.folder());
    for _ in 0..2 * std::thread::available_parallelism().unwrap().get() {
        host.start_call("spin", json!({}));
    }
    numbered.save_with_code(70, 400_000);
    while host.receive()["method"] != "notifications/tools/list_changed" {}
    assert_eq!(host.call("now", json!({})).text(), "number 000070");
}
