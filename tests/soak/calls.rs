//! The requests of the soak and the right answer to each.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::random::Random;
use crate::serving::{ENDLESS, FUEL, LATE, LATE_DEADLINE};

/// The protocol era of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// After `initialize`. Ids are numbers.
    Legacy,
    /// Each request names its version. Ids are strings.
    Modern,
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A call that succeeds with the expected result.
    Good,
    /// A call of a tool that misbehaves; the answer says in which way.
    Hostile,
    /// A call that never ends and is cancelled. It gets no answer.
    Cancelled,
    /// A call that is cancelled while its answer may be on the way. It gets at most one answer.
    Raced,
    /// A list, a ping, a discovery.
    Other,
    /// A request or line that is refused.
    Refused,
}

impl Kind {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 6] = [Self::Good, Self::Hostile, Self::Cancelled, Self::Raced, Self::Other, Self::Refused];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Hostile => "hostile",
            Self::Cancelled => "cancelled",
            Self::Raced => "raced",
            Self::Other => "other",
            Self::Refused => "refused",
        }
    }
}

/// The content of the right answer.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// A result with exactly this text.
    Text(String),
    /// A result that is an error with exactly this text.
    Error(Cow<'static, str>),
    /// A result that is an error with a text that begins with this.
    ErrorBeginning(&'static str),
    /// A structured result.
    Structured(Value),
    /// A result that has this member.
    Member(&'static str),
    /// An empty result.
    Empty,
    /// A JSON-RPC error of this code.
    Refusal(i64),
    /// No answer at any time.
    Nothing,
}

/// A request to send.
pub struct Request {
    /// The purpose.
    pub kind: Kind,
    /// The era.
    pub era: Era,
    method: &'static str,
    params: Value,
    /// The content of the right answer.
    pub wanted: Wanted,
}

/// Tools that never end by themselves and exhaust no budget.
const ENDLESS_TOOLS: [&str; 6] = ["spin", "ignore_cancel", "call_host", "sleep_hour", "nap_forever", "wait_forever"];

const OUT_OF_MEMORY: &str = "out of memory: the call needed more than 16MiB (limit \"memory\")";
const TOO_LARGE: &str = "the result is larger than 64KiB (limit \"output\")";
const UNREACHABLE: &str = "the tool trapped: wasm `unreachable` instruction executed";

/// Tools that misbehave, their arguments, and the error text. Tools that spin are in [`spinning`].
const HOSTILE: [(&str, &str, &str); 19] = [
    ("grow_steadily", "{}", OUT_OF_MEMORY),
    ("grow_at_once", "{}", OUT_OF_MEMORY),
    ("many_memories_run", "{}", OUT_OF_MEMORY),
    ("long_text", r#"{"bytes":65537}"#, TOO_LARGE),
    ("long_image", r#"{"bytes":65537}"#, TOO_LARGE),
    ("failed_at_length", r#"{"bytes":65537}"#, TOO_LARGE),
    ("panic", "{}", UNREACHABLE),
    ("trap", "{}", UNREACHABLE),
    ("out_of_bounds", "{}", "the tool trapped: out of bounds memory access"),
    ("divide", "{}", "the tool trapped: integer divide by zero"),
    ("exit", r#"{"status":7}"#, "the tool exited with status 1 instead of answering"),
    ("failed", "{}", "the printer is out of paper"),
    ("recurse", "{}", "stack overflow: the tool recursed too deep"),
    (
        "pollables",
        r#"{"pollables":2000}"#,
        "too many handles: the tool held more than 1_000 at once (limit \"handles\")",
    ),
    (
        "random",
        r#"{"bytes":65537}"#,
        "too many random bytes at once: the tool asked for more than 64KiB (limit \"random\")",
    ),
    ("realloc_outside_run", "{}", "the tool trapped: realloc return: beyond end of memory"),
    ("result_outside_run", "{}", "the tool trapped: pointer out of bounds of memory"),
    (
        "twice_the_key",
        "{}",
        "The result of twice_the_key is unusable: its structured content has the key \"count\" twice in one object",
    ),
    ("says_error", "{}", "the shop is closed"),
];

/// The hostile tools that take most of the resources that the host keeps ready: memories, tables
/// and stacks.
const GREEDY: [&str; 5] = ["grow_steadily", "grow_at_once", "many_memories_run", "recurse", "pollables"];

/// Tools that burn all their fuel.
const SPINNING: [&str; 5] = ["spin", "call_host", "progress_forever", "realloc_spins_run", "post_return_spins_run"];

/// Tools that write noise and then answer with this text.
const NOISY: [(&str, &str, &str); 4] = [
    ("stdout_frames", "{}", "printed"),
    ("log_frames", "{}", "logged"),
    ("log_lines", r#"{"lines":200}"#, "logged"),
    ("progress_reports", r#"{"reports":200}"#, "reported"),
];

impl Request {
    /// A random request, except one that must be cancelled.
    pub fn at_random(random: &mut Random, number: u64) -> Self {
        match random.below(100) {
            0..55 => Self::good(random, number),
            55..75 => Self::hostile(random),
            75..80 => Self { kind: Kind::Raced, ..Self::good(random, number) },
            80..92 => Self::other(random),
            _ => Self::refused(random),
        }
    }

    /// Each call that takes many of the resources that the host keeps ready.
    pub fn greedy(random: &mut Random) -> Vec<Self> {
        let greedy = HOSTILE.iter().filter(|(tool, ..)| GREEDY.contains(tool));
        greedy.map(|(tool, arguments, text)| Self::of_hostile(random, tool, arguments, text)).collect()
    }

    fn of_hostile(random: &mut Random, tool: &str, arguments: &str, text: &'static str) -> Self {
        let arguments = serde_json::from_str(arguments).unwrap_or_default();
        Self::call(random, Kind::Hostile, tool, arguments, Wanted::Error(text.into()))
    }

    /// A call that never ends.
    pub fn endless(random: &mut Random) -> Self {
        let tool = random.of(&ENDLESS_TOOLS).copied().unwrap_or("spin");
        Self::call(random, Kind::Cancelled, &format!("{ENDLESS}{tool}"), json!({}), Wanted::Nothing)
    }

    fn good(random: &mut Random, number: u64) -> Self {
        match random.below(8) {
            0 => {
                let a = random.below(1_000);
                let b = random.below(1_000);
                let sum = Wanted::Structured(json!({"sum": a + b}));
                Self::call(random, Kind::Good, "add", json!({"a": a, "b": b}), sum)
            }
            1 => {
                let steps = 1 + random.below(3);
                let arguments = json!({"steps": steps, "step_ms": random.below(8)});
                Self::call(random, Kind::Good, "slow", arguments, Wanted::Text(format!("{steps} steps done")))
            }
            2 => {
                let text = format!("{number} ").repeat(usize::try_from(random.below(2_000)).unwrap_or_default());
                Self::call(random, Kind::Good, "echo", json!({"text": text}), Wanted::Text(text))
            }
            _ => {
                let text = format!("call {number}: \u{1f980} \"quoted\" \\ \u{7f}");
                Self::call(random, Kind::Good, "echo", json!({"text": text}), Wanted::Text(text))
            }
        }
    }

    fn hostile(random: &mut Random) -> Self {
        let (tool, arguments, wanted) = match random.below(10) {
            0 => return Self::spinning(random),
            1 => return Self::late(random),
            2 => {
                let (tool, arguments, text) = random.of(&NOISY).copied().unwrap_or_default();
                (tool, arguments, Wanted::Text(text.to_owned()))
            }
            _ => {
                let (tool, arguments, text) = random.of(&HOSTILE).copied().unwrap_or_default();
                return Self::of_hostile(random, tool, arguments, text);
            }
        };
        let arguments = serde_json::from_str(arguments).unwrap_or_default();
        Self::call(random, Kind::Hostile, tool, arguments, wanted)
    }

    fn spinning(random: &mut Random) -> Self {
        let tool = random.of(&SPINNING).copied().unwrap_or("spin");
        let text = format!("out of fuel: the call used its whole budget of {FUEL} units (limit \"fuel\")");
        Self::call(random, Kind::Hostile, tool, json!({}), Wanted::Error(text.into()))
    }

    fn late(random: &mut Random) -> Self {
        let tool = random.of(&ENDLESS_TOOLS).copied().unwrap_or("spin");
        let text = format!("deadline exceeded: the call took longer than {LATE_DEADLINE} (limit \"deadline\")");
        Self::call(random, Kind::Hostile, &format!("{LATE}{tool}"), json!({}), Wanted::Error(text.into()))
    }

    fn other(random: &mut Random) -> Self {
        let (era, method, wanted) = match random.below(5) {
            0 => (Era::Legacy, "ping", Wanted::Empty),
            1 => (Era::Legacy, "tools/list", Wanted::Member("tools")),
            2 => (Era::Modern, "tools/list", Wanted::Member("tools")),
            3 => (era(random), "resources/list", Wanted::Member("resources")),
            _ => (Era::Modern, "server/discover", Wanted::Member("supportedVersions")),
        };
        Self { kind: Kind::Other, era, method, params: json!({}), wanted }
    }

    fn refused(random: &mut Random) -> Self {
        const INVALID_PARAMS: i64 = -32_602;
        const METHOD_NOT_FOUND: i64 = -32_601;
        match random.below(4) {
            0 => Self::call(random, Kind::Refused, "nobody", json!({}), Wanted::Refusal(INVALID_PARAMS)),
            1 => Self::call(random, Kind::Refused, "echo", json!(["text"]), Wanted::Refusal(INVALID_PARAMS)),
            2 => {
                let wanted = Wanted::ErrorBeginning("The arguments do not fit the input schema of add");
                Self::call(random, Kind::Refused, "add", json!({"a": "one", "b": -1}), wanted)
            }
            _ => {
                let era = era(random);
                let wanted = Wanted::Refusal(METHOD_NOT_FOUND);
                Self { kind: Kind::Refused, era, method: "prompts/list", params: json!({}), wanted }
            }
        }
    }

    fn call(random: &mut Random, kind: Kind, tool: &str, arguments: Value, wanted: Wanted) -> Self {
        let params = json!({"name": tool, "arguments": arguments});
        Self { kind, era: era(random), method: "tools/call", params, wanted }
    }

    /// The name of the called tool, or else of the method.
    pub fn name(&self) -> &str {
        self.params.get("name").and_then(Value::as_str).unwrap_or(self.method)
    }

    /// The line of this request with this id. Calls ask for progress with their own number as the
    /// token.
    pub fn line(mut self, id: u64) -> Vec<u8> {
        let mut meta = match self.era {
            Era::Legacy => json!({}),
            Era::Modern => toolcell_tests::modern_meta(),
        };
        if let Some(meta) = meta.as_object_mut().filter(|_| self.method == "tools/call") {
            meta.insert("progressToken".to_owned(), json!(id));
        }
        if let Some(params) = self.params.as_object_mut() {
            params.insert("_meta".to_owned(), meta);
        }
        line(&json!({"jsonrpc": "2.0", "id": self.era.id(id), "method": self.method, "params": self.params}))
    }
}

impl Era {
    /// An id in the form of this era.
    pub fn id(self, id: u64) -> Value {
        match self {
            Self::Legacy => json!(id),
            Self::Modern => json!(format!("s{id}")),
        }
    }
}

fn era(random: &mut Random) -> Era {
    if random.below(2) == 0 { Era::Legacy } else { Era::Modern }
}

/// The notification that cancels a call.
pub fn cancellation(era: Era, id: u64) -> Vec<u8> {
    let params = json!({"requestId": era.id(id), "reason": "soak"});
    line(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
}

/// The request with this id that opens the legacy half of the conversation.
pub fn opening(id: u64) -> Vec<u8> {
    let revision = toolcell_tests::LEGACY_REVISIONS.last();
    let client = json!({"name": "toolcell-soak", "version": "1"});
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
    let mut lines = line(&json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}));
    lines.extend(line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})));
    lines
}

/// A `ping`, with this id.
pub fn ping(id: u64) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))
}

fn line(frame: &Value) -> Vec<u8> {
    format!("{frame}\n").into_bytes()
}
