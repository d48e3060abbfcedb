//! Attacks of guests whose first wall is taken away: in their process every limit of a call is the
//! widest there is, so that only the second wall holds.
//!
//! A guest of the same group does that, as one that has broken out could.
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::{Folder, TestHost, manifest_of, patience};

/// Time within which the host has to end what does not stop: the deadline of these tools, the grace
/// that it gives their process, and room for a busy machine.
const ENDED_WITHIN: Duration = Duration::from_secs(60);

/// Bytes by which the host may have grown after an attack: what its allocator keeps, and half of
/// the largest message that a process may send.
const HOST_GROWTH_MAX: u64 = 48 << 20;

/// Bytes that all sandbox processes may hold once an attack is over: what two idle ones take, and
/// the slots that an engine keeps.
const SANDBOXES_MAX: u64 = 160 << 20;

/// The end of a call that no limit of the guest's ends.
enum End {
    /// The sandbox is ended, for a reason with these words.
    Ended(&'static str),
    /// The call is answered with an error that has one of these words.
    Error(&'static [&'static str]),
    /// Either.
    Bounded,
}

struct Attack {
    name: &'static str,
    tool: &'static str,
    arguments: fn() -> Value,
    /// Arguments of calls of the same tool that come before it.
    earlier: fn() -> Vec<Value>,
    end: End,
}

const fn attack(name: &'static str, tool: &'static str, arguments: fn() -> Value, end: End) -> Attack {
    Attack { name, tool, arguments, earlier: Vec::new, end }
}

impl Attack {
    /// The attack after calls with these arguments, however those end.
    const fn after(self, earlier: fn() -> Vec<Value>) -> Self {
        Self { earlier, ..self }
    }
}

/// A value of 16 MB is kept in 10,000 keys.
fn kept_state() -> Vec<Value> {
    vec![json!({"op": "set_many", "count": 10_000, "bytes": 1_600})]
}

/// Ten times as many bytes as one caller may have kept, each in an answer of allowed size.
fn kept_resources() -> Vec<Value> {
    (0..1_600).map(|first| json!({"first": first, "body": 50_000})).collect()
}

fn nothing() -> Value {
    json!({})
}

/// The attacks that a component makes while it runs, of those that were found to hurt a host.
const ATTACKS: &[Attack] = &[
    attack("compute without end", "spin", nothing, LATE),
    attack("work in memory without end", "fill", nothing, LATE),
    attack("call the host without end", "call_host", nothing, LATE),
    attack("sleep for an hour", "sleep_hour", nothing, LATE),
    attack("wait for nothing", "wait_forever", nothing, LATE),
    attack("recurse", "recurse", nothing, End::Error(&["stack overflow"])),
    attack("recurse with frames", "recurse_with_frames", nothing, End::Bounded),
    attack("log without end", "log_forever", nothing, End::Bounded),
    attack("report without end", "progress_forever", nothing, End::Bounded),
    attack("take memory without end", "grow_steadily", nothing, End::Bounded),
    attack("take memory at once", "grow_at_once", nothing, End::Bounded),
    attack("answer 32 MiB", "long_text", || json!({"bytes": 32 << 20}), End::Bounded),
    attack("answer 12 MiB", "long_text", || json!({"bytes": 12 << 20}), TOO_MUCH),
    attack("answer as much in a picture", "long_image", || json!({"bytes": 12 << 20}), TOO_MUCH),
    attack("answer 5,000 things", "many_items", || json!({"items": 5_000}), End::Error(&["limit \"output_items\""])),
    attack("fail at length", "failed_at_length", || json!({"bytes": 12 << 20}), TOO_MUCH),
    // An honest process cuts both before it sends them.
    attack("log a long line", "log_line", || json!({"bytes": 12 << 20}), End::Bounded),
    attack("report at length", "progress_message", || json!({"bytes": 12 << 20}), End::Bounded),
    attack("hold 100,000 handles", "pollables", || json!({"pollables": 200_000}), End::Bounded),
    attack("ask for random bytes", "random", || json!({"bytes": 1 << 30}), End::Bounded),
    attack("answer in deep nesting", "deep_structured", || json!({"depth": 100_000}), End::Bounded),
    attack("make many instances", "many_globals_run", nothing, End::Bounded),
    attack("make many memories", "many_memories_run", nothing, End::Bounded),
    attack("spin where its memory is asked for", "realloc_spins_run", nothing, LATE),
    attack("spin after its answer", "post_return_spins_run", nothing, LATE),
    attack("answer a list that is amplified", "result_amplified_run", nothing, End::Bounded),
    attack("write batches without end", "keyvalue_batch", || batches("set_many", 10_000, 100), End::Bounded),
    attack("read batches without end", "keyvalue_batch", || batches("get_many", 10_000, 0), End::Bounded)
        .after(kept_state),
    attack("delete batches without end", "keyvalue_batch", || batches("delete_many", 10_000, 0), End::Bounded)
        .after(kept_state),
    attack("write 250,000 keys at once", "keyvalue_batch", || batches("set_many", 250_000, 0), End::Bounded),
    attack("read 250,000 keys at once", "keyvalue_batch", || batches("get_many", 250_000, 0), End::Bounded),
    attack("delete 250,000 keys at once", "keyvalue_batch", || batches("delete_many", 250_000, 0), End::Bounded),
    attack("write 64 MB at once", "keyvalue_batch", || batches("set_many", 10_000, 6_400), End::Bounded),
    attack("keep resources without end", "label", || json!({"body": 50_000}), End::Bounded).after(kept_resources),
    attack("keep a long resource", "label", || json!({"body": 12 << 20}), TOO_MUCH),
    attack("keep a resource with a long address", "label", || json!({"uri": 12 << 20}), TOO_MUCH),
    attack("keep a resource of a long type", "label", || json!({"mime_type": 12 << 20}), TOO_MUCH),
    attack("keep 5,000 resources", "label", || json!({"count": 5_000}), End::Error(&["limit \"output_items\""])),
];

fn batches(op: &str, keys: u64, value_bytes: u64) -> Value {
    json!({"op": op, "count": keys, "bytes": value_bytes, "times": 1_000_000})
}

const LATE: End = End::Ended("it did not stop within its deadline");
const TOO_MUCH: End = End::Ended("it sent more than any call may answer");

/// Serves the components of the attacks in one group with the drill, and one with a group of its
/// own.
fn host() -> TestHost {
    let mut manifest = manifest_of(&[]).replace("\"5s\"", "\"2s\"\nqueue_wait = \"500ms\"");
    // State is a grant: without this name its component would have a group of its own.
    let mut add = |name: &str, more: &str| {
        let table = format!("\n[components.{name}]\nsource = \"components/{name}.wasm\"\nwall = \"broken\"\n{more}");
        manifest.push_str(&table);
    };
    for name in ["drill", "loops", "hungry", "quitter", "labels"] {
        add(name, "");
    }
    add("reach_state", "[components.reach_state.keyvalue]\nquota = \"64MiB\"\nentries = 100_000\n");
    for name in ["many_globals", "many_memories", "realloc_spins", "post_return_spins", "result_amplified"] {
        add(name, &format!("prefix = \"{name}_\"\n"));
    }
    // Granted something, so that it has processes of its own.
    manifest
        .push_str("\n[components.good]\nsource = \"components/good.wasm\"\n[components.good.env]\nOF = \"its own\"\n");
    manifest.push_str("\n[server]\nwalls = \"best\"\n");
    let mut host = TestHost::drilling(Folder::with_manifest(&manifest), &[]);
    // A client of this revision has resources kept for it.
    host.initialize("2025-11-25");
    host
}

#[test]
fn attacks_without_their_first_wall_are_held_by_the_second() {
    let wrong: Vec<String> =
        ATTACKS.iter().filter_map(|attack| Some(format!("{}: {}", attack.name, attack.wrong()?))).collect();
    assert!(wrong.is_empty(), "{} of {} attacks:\n{}", wrong.len(), ATTACKS.len(), wrong.join("\n"));
}

impl Attack {
    /// The fault of how the attack ended, if there is one.
    fn wrong(&self) -> Option<String> {
        let mut host = host();
        host.still_works();
        let opened = host.call("attack", json!({"steps": ["open"]}));
        if opened.is_error() {
            return Some(opened.everything());
        }
        let before = host.resident_bytes();
        for arguments in (self.earlier)() {
            let _ = host.call(self.tool, arguments);
        }
        let began = Instant::now();
        let call = host.start_call(self.tool, (self.arguments)());
        // Meanwhile other tools answer.
        for _ in 0..20 {
            host.still_works();
        }
        let answer = host.answer_to(&call);
        let took = began.elapsed();
        if took > ENDED_WITHIN {
            return Some(format!("it took {took:?}"));
        }
        let text = answer.everything();
        let is_right = match &self.end {
            End::Ended(words) => text.contains("the sandbox was ended: ") && text.contains(words),
            End::Error(words) => {
                let told = text.replace("\\\"", "\"");
                answer.is_error() && words.iter().any(|words| told.contains(words))
            }
            End::Bounded => text.len() < 4 << 20,
        };
        if !is_right {
            return Some(text.chars().take(600).collect());
        }
        host.still_works();
        // The next call of the same group answers, and what the attack took comes back.
        let next = host.call("attack", json!({"steps": [{"call": {"name": "SYS_getpid"}}]}));
        if next.is_error() {
            return Some(next.everything());
        }
        let grown = settled(HOST_GROWTH_MAX, || host.resident_bytes().saturating_sub(before));
        if grown > HOST_GROWTH_MAX {
            return Some(format!("the host has grown by {grown} bytes"));
        }
        let held = settled(SANDBOXES_MAX, || sandboxes(&host));
        (held > SANDBOXES_MAX).then(|| format!("sandbox processes hold {held} bytes"))
    }
}

/// Bytes that are held, once they are this few, or no more of them are given back.
fn settled(bytes_max: u64, held: impl Fn() -> u64) -> u64 {
    let end = Instant::now() + patience();
    loop {
        let held = held();
        if held <= bytes_max || Instant::now() > end {
            return held;
        }
        std::thread::yield_now();
    }
}

/// Bytes of their own that the children of the host have.
fn sandboxes(host: &TestHost) -> u64 {
    let parent = format!("PPid:\t{}\n", host.process_id());
    let statuses = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let status = std::fs::read_to_string(entry.ok()?.path().join("status")).ok()?;
        status.contains(&parent).then_some(status)
    });
    let own = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    statuses.filter_map(own).sum::<u64>() * 1024
}
