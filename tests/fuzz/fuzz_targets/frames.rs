//! Frames of any kind through one connection. Each is answered exactly as often as it must be,
//! under its own id, in valid JSON. Nothing is open at the end.
#![no_main]

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolcell_fuzz::{Client, MemoryHost, server, tools};
use toolcell_mcp::McpServer;

/// Frames of one input at most.
const FRAMES_MAX: usize = 64;

/// Opening brackets that serde_json reads for certain.
const BRACKETS_MAX: usize = 100;

static SERVER: LazyLock<Arc<McpServer<MemoryHost>>> =
    LazyLock::new(|| server(tools(&["echo", "hold", "report", "structured"])));

fuzz_target!(|data: &[u8]| {
    let mut conversation = Conversation { client: Client::of(&SERVER), owed: HashMap::new(), batched: false };
    for frame in data.split(|byte| *byte == b'\n').take(FRAMES_MAX) {
        conversation.say(frame);
    }
    conversation.end();
});

struct Conversation {
    client: Client,
    /// Ids, as JSON, of requests without an answer so far. One value for each of them, since a
    /// second `initialize` frees ids; it is true if an answer must come.
    owed: HashMap<String, Vec<bool>>,
    /// True after a batch, whose entries are open under ids that this does not count.
    batched: bool,
}

impl Conversation {
    fn say(&mut self, frame: &[u8]) {
        let answers = self.client.ask(frame);
        let frame = frame.strip_prefix("\u{feff}".as_bytes()).unwrap_or(frame);
        let parsed: Option<Value> = serde_json::from_slice(frame).ok();
        match &parsed {
            None => {
                self.batched |= frame.trim_ascii_start().starts_with(b"[");
                is_refused(frame, &answers);
            }
            Some(Value::Array(_)) => self.batched = true,
            Some(message) => self.note(message),
        }
        let own = parsed.as_ref().and_then(id_of);
        let is_request = own.is_some() && parsed.as_ref().is_some_and(|message| message["method"].is_string());
        let mut is_answered = false;
        for answer in &answers {
            let reply = read(answer);
            // The error of an unreadable frame has no id.
            let nobody = reply.get("error").map(|_| &Value::Null);
            let Some(id) = reply.get("id").or(nobody) else { continue };
            // A second request with an open id is answered, and the first one still gets its own
            // answer.
            let is_own = !is_answered && own.as_ref() == Some(id);
            // The error of a frame that only the server can read may name an id that is open.
            let is_of_unread = parsed.is_none() && reply.get("error").is_some();
            let known = is_own || id.is_null() || is_of_unread || self.settle(id);
            assert!(known || self.batched, "a reply to nobody: {reply}");
            is_answered |= is_own || (id.is_null() && parsed.is_some());
        }
        if is_request && !is_answered && !self.batched {
            let message = parsed.unwrap_or_default();
            let method = message["method"].as_str().unwrap_or_default();
            let may_wait = matches!(method, "tools/call" | "subscriptions/listen");
            let has = |member: &str| message.get(member).is_some_and(|value| !value.is_null());
            let is_response = has("result") || has("error");
            assert!(may_wait || is_response, "no answer to {message}");
            if may_wait && !is_response {
                self.owed.entry(own.unwrap_or_default().to_string()).or_default().push(true);
            }
        }
    }

    /// Takes a reply as the answer to a request of this id. False without one.
    fn settle(&mut self, id: &Value) -> bool {
        self.owed.get_mut(&id.to_string()).is_some_and(|owed| owed.pop().is_some())
    }

    /// Records a cancellation: the answer may then be missing. It may still come, since a frame
    /// that looks like a notification here may not be one.
    fn note(&mut self, message: &Value) {
        if message["method"] == "notifications/cancelled" {
            let id = echoed(&message["params"]["requestId"]).to_string();
            self.owed.entry(id).and_modify(|owed| owed.fill(false));
        }
    }

    fn end(mut self) {
        for answer in self.client.leave() {
            let reply = read(&answer);
            let owed = reply.get("id").is_some_and(|id| self.settle(id));
            assert!(owed || reply.get("id").is_none() || self.batched, "a reply to nobody at the end: {reply}");
        }
        self.owed.retain(|_, owed| owed.contains(&true));
        assert!(self.owed.is_empty() || self.batched, "never answered: {:?}", self.owed.keys());
    }
}

/// Asserts that a frame that serde_json cannot read is answered by one error: without an id if it
/// is not JSON, and under its id if it is and cannot be taken. Blank and deeply nested frames are
/// left out, and notifications and responses that hold such values. The answer to a batch has at
/// least one error.
fn is_refused(frame: &[u8], answers: &[Vec<u8>]) {
    let is_blank = frame.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
    let brackets = frame.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    if is_blank || brackets > BRACKETS_MAX {
        return;
    }
    let is_raw_json = serde_json::from_slice::<&serde_json::value::RawValue>(frame).is_ok();
    let [answer] = answers else {
        assert!(is_raw_json && answers.is_empty(), "{} answers to what is not JSON", answers.len());
        return;
    };
    let reply = read(answer);
    if let Value::Array(replies) = &reply {
        // The entries of a batch are read one by one.
        let refuses = replies.iter().any(|reply| reply.get("error").is_some());
        assert!(is_raw_json && refuses, "not refused: {reply}");
        return;
    }
    let code = reply["error"]["code"].as_i64();
    let unread = reply["id"].is_null() && matches!(code, Some(-32_700 | -32_600));
    let untaken = is_raw_json && matches!(code, Some(-32_602 | -32_600));
    assert!(unread || untaken, "not refused: {reply}");
}

/// The largest integer that is an id: 2^53.
const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// The id that a reply to this message carries.
fn id_of(message: &Value) -> Option<Value> {
    message.get("id").filter(|id| id.is_string() || id.is_i64() || id.is_u64() || id.is_f64()).map(echoed)
}

/// The id as the server echoes it: a whole number is an integer, however it is written.
fn echoed(id: &Value) -> Value {
    match id.as_f64().filter(|number| id.is_f64() && number.fract() == 0.0 && number.abs() <= INTEGER_MAX) {
        Some(number) => Value::from(number as i64),
        None => id.clone(),
    }
}

fn read(frame: &[u8]) -> Value {
    assert!(!frame.contains(&b'\n'), "a frame is one line");
    serde_json::from_slice(frame).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(frame)))
}
