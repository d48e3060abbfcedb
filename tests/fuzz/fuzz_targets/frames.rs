//! Frames of any kind through one connection. Each is answered exactly as often as it must be,
//! under its own id, in valid JSON. Nothing is open at the end.
#![no_main]

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolcell_fuzz::{Client, MemoryHost, server, tools};
use toolcell_mcp::Server;

/// Frames of one input at most.
const FRAMES_MAX: usize = 64;

/// Opening brackets that serde_json reads for certain.
const BRACKETS_MAX: usize = 100;

static SERVER: LazyLock<Arc<Server<MemoryHost>>> =
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
    /// Ids, as JSON, of requests without an answer so far. The value is true if an answer must
    /// come.
    owed: HashMap<String, bool>,
    /// True after a batch, whose entries are open under ids that this does not count.
    batched: bool,
}

impl Conversation {
    fn say(&mut self, frame: &[u8]) {
        let answers = self.client.ask(frame);
        let parsed: Option<Value> = serde_json::from_slice(frame).ok();
        match &parsed {
            None => is_refused(frame, &answers),
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
            let known = is_own || id.is_null() || self.owed.remove(&id.to_string()).is_some();
            assert!(known || self.batched, "a reply to nobody: {reply}");
            is_answered |= is_own || (id.is_null() && parsed.is_some());
        }
        if is_request && !is_answered && !self.batched {
            let message = parsed.unwrap_or_default();
            let method = message["method"].as_str().unwrap_or_default();
            let may_wait = matches!(method, "tools/call" | "subscriptions/listen");
            let is_response = message.get("result").is_some() || message.get("error").is_some();
            assert!(may_wait || is_response, "no answer to {message}");
            if may_wait && !is_response {
                self.owed.insert(own.unwrap_or_default().to_string(), true);
            }
        }
    }

    /// Records a cancellation: the answer may then be missing. It may still come, since a frame
    /// that looks like a notification here may not be one.
    fn note(&mut self, message: &Value) {
        if message["method"] == "notifications/cancelled" {
            let id = echoed(&message["params"]["requestId"]).to_string();
            self.owed.entry(id).and_modify(|must| *must = false);
        }
    }

    fn end(mut self) {
        for answer in self.client.leave() {
            let reply = read(&answer);
            let owed = reply.get("id").is_some_and(|id| self.owed.remove(&id.to_string()).is_some());
            assert!(owed || reply.get("id").is_none() || self.batched, "a reply to nobody at the end: {reply}");
        }
        self.owed.retain(|_, must| *must);
        assert!(self.owed.is_empty() || self.batched, "never answered: {:?}", self.owed.keys());
    }
}

/// Asserts that a frame that serde_json cannot read is answered by one error without an id. Blank
/// and deeply nested frames are left out.
fn is_refused(frame: &[u8], answers: &[Vec<u8>]) {
    let is_blank = frame.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
    let brackets = frame.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    if is_blank || brackets > BRACKETS_MAX {
        return;
    }
    let [answer] = answers else { panic!("{} answers to what is no JSON", answers.len()) };
    let reply = read(answer);
    let code = reply["error"]["code"].as_i64();
    assert!(reply["id"].is_null() && matches!(code, Some(-32_700 | -32_600)), "not refused: {reply}");
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
