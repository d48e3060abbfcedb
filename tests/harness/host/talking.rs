//! A client's side of the conversation: frames, requests, calls.
use std::io::Write;
use std::process::ChildStdin;
use std::time::Duration;

use serde_json::{Value, json};

use super::TestHost;
use crate::Answer;
use crate::frames::{Line, Lines, modern_meta};
use crate::patience;

impl TestHost {
    /// Cancels this request.
    ///
    /// # Panics
    /// As [`TestHost::send_bytes`].
    pub fn cancel(&mut self, id: &Value) {
        let params = json!({"requestId": id});
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }

    /// Sends these bytes unchanged, without a line break.
    ///
    /// # Panics
    /// If the host does not read any more.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the input is closed");
        if let Err(error) = input.write_all(bytes).and_then(|()| input.flush()) {
            panic!("the host does not read: {error}\n{}", self.said.text());
        }
    }

    /// Sends this text as one line.
    ///
    /// # Panics
    /// As [`TestHost::send_bytes`].
    pub fn send_line(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes());
    }

    /// Sends one frame.
    ///
    /// # Panics
    /// As [`TestHost::send_bytes`].
    pub fn send(&mut self, frame: &Value) {
        self.send_line(&frame.to_string());
    }

    /// The next frame, in the order in which they came. Every line must be JSON.
    ///
    /// # Panics
    /// If none comes in time, or the host ended.
    pub fn receive(&mut self) -> Value {
        match self.kept.pop_front() {
            Some(frame) => frame,
            None => self.read(patience()).unwrap_or_else(|| panic!("the host ended\n{}", self.said.text())),
        }
    }

    /// The next frame within `patience`. `None` if the host ended instead.
    fn read(&mut self, patience: Duration) -> Option<Value> {
        let line = self.read_line(patience)?;
        Some(serde_json::from_slice(&line).unwrap_or_else(|error| {
            panic!("not a frame: {error}: {}", String::from_utf8_lossy(&line));
        }))
    }

    /// The next line within `patience`, unchanged. `None` if the host ended instead.
    pub(super) fn read_line(&mut self, patience: Duration) -> Option<Vec<u8>> {
        match self.lines().next(patience) {
            Line::Text(line) => Some(line),
            Line::End => None,
            Line::Late => panic!("nothing came within {patience:?}\n{}", self.said.text()),
        }
    }

    /// The lines of its stdout. Reading starts now at the latest.
    fn lines(&mut self) -> &Lines {
        if let Some(stdout) = self.child.stdout.take() {
            let (lines, thread) = Lines::of(stdout);
            self.threads.push(thread);
            self.lines = Some(lines);
        }
        self.lines.as_ref().expect("its stdout was taken")
    }

    /// Sends these bytes as one line, then a `ping`. Returns all frames that come before the ping's
    /// answer.
    ///
    /// # Panics
    /// If the `ping` is not answered in time.
    pub fn all_that_comes_after(&mut self, line: &[u8]) -> Vec<Value> {
        self.send_bytes(&[line, b"\n"].concat());
        self.still_answers();
        self.kept()
    }

    /// Sends the lines that `line` makes of 0, 1, 2 …, at most `count_max`, until the host has not
    /// read for `patience`. Returns the number of lines sent whole, and the unsent rest of the last
    /// one.
    ///
    /// # Panics
    /// If the input is closed or fails.
    pub fn send_until_it_blocks(
        &mut self,
        line: impl Fn(usize) -> String,
        count_max: usize,
        patience: Duration,
    ) -> (usize, Vec<u8>) {
        let input = self.input.as_mut().expect("the input is closed");
        rustix::io::ioctl_fionbio(&*input, true).unwrap();
        let mut count = 0;
        let mut rest = Vec::new();
        while count < count_max && is_writable(input, patience) {
            if rest.is_empty() {
                rest = format!("{}\n", line(count)).into_bytes();
            }
            match input.write(&rest) {
                Ok(bytes) => drop(rest.drain(..bytes)),
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}"),
            }
            count += usize::from(rest.is_empty());
        }
        rustix::io::ioctl_fionbio(&*input, false).unwrap();
        (count, rest)
    }

    /// Starts to read the host's output. It is not read before this, or before the first wait for a
    /// frame.
    pub fn read_from_now(&mut self) {
        self.lines();
    }

    /// The reply with this id. Frames that come before it are kept for [`TestHost::receive`].
    ///
    /// # Panics
    /// As [`TestHost::receive`].
    pub fn reply_to(&mut self, id: &Value) -> Value {
        self.next_that(|frame| frame.get("id") == Some(id) && frame.get("method").is_none())
    }

    /// The next frame of this method, from the kept frames and those to come. Frames before it are
    /// kept for [`TestHost::receive`].
    ///
    /// # Panics
    /// As [`TestHost::receive`].
    pub fn next_of(&mut self, method: &str) -> Value {
        self.next_that(|frame| frame["method"] == method)
    }

    fn next_that(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&is_it) {
            return self.kept.remove(at).unwrap();
        }
        loop {
            let frame = self.read(patience()).unwrap_or_else(|| panic!("the host ended\n{}", self.said.text()));
            if is_it(&frame) {
                return frame;
            }
            self.kept.push_back(frame);
        }
    }

    /// The frames kept so far, in order: all but the awaited replies.
    pub fn kept(&mut self) -> Vec<Value> {
        self.kept.drain(..).collect()
    }

    /// Makes the handshake of this legacy revision; later requests are legacy ones. Returns the
    /// result of `initialize`.
    ///
    /// # Panics
    /// If the answer is an error.
    pub fn initialize(&mut self, revision: &str) -> Value {
        self.initialize_declaring(revision, json!({}))
    }

    /// Makes the handshake of this legacy revision, with these client capabilities.
    ///
    /// # Panics
    /// As [`TestHost::initialize`].
    pub fn initialize_declaring(&mut self, revision: &str, capabilities: Value) -> Value {
        let client = json!({"name": "toolcell-tests", "version": "1"});
        self.is_legacy = true;
        let params = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client});
        let reply = self.request("initialize", params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        reply.get("result").unwrap_or_else(|| panic!("initialize failed: {reply}")).clone()
    }

    /// Sends a request and returns its id. Without a handshake before, it carries the modern meta.
    ///
    /// # Panics
    /// As [`TestHost::send_bytes`].
    pub fn start(&mut self, method: &str, mut params: Value) -> Value {
        self.last_id += 1;
        if !self.is_legacy {
            let mut meta = modern_meta();
            if let Some(Value::Object(own)) = params.get("_meta") {
                meta.as_object_mut().unwrap().extend(own.clone());
            }
            params["_meta"] = meta;
        }
        let id = json!(self.last_id);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a request and returns the whole reply.
    ///
    /// # Panics
    /// If none comes in time.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.start(method, params);
        self.reply_to(&id)
    }

    /// Starts a call and returns the id of its request.
    ///
    /// # Panics
    /// As [`TestHost::send_bytes`].
    pub fn start_call(&mut self, tool: &str, arguments: Value) -> Value {
        self.start("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool and returns its answer.
    ///
    /// # Panics
    /// If none comes in time.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        Answer::new(self.request("tools/call", json!({"name": tool, "arguments": arguments})))
    }

    /// The answer to a call that has been started.
    ///
    /// # Panics
    /// If none comes in time.
    pub fn answer_to(&mut self, id: &Value) -> Answer {
        Answer::new(self.reply_to(id))
    }

    /// All tools, from all pages.
    ///
    /// # Panics
    /// If a page is an error.
    pub fn list(&mut self) -> Vec<Value> {
        let mut tools = Vec::new();
        let mut params = json!({});
        loop {
            let reply = self.request("tools/list", params);
            let page = reply["result"]["tools"].as_array();
            tools.extend(page.unwrap_or_else(|| panic!("no list: {reply}")).clone());
            match &reply["result"]["nextCursor"] {
                Value::Null => return tools,
                cursor => params = json!({"cursor": cursor}),
            }
        }
    }

    /// Asserts that the host lives: it answers a `ping`, which needs no era, and a call of the
    /// fixture `good`.
    ///
    /// # Panics
    /// If it does not.
    pub fn still_works(&mut self) {
        self.still_answers();
        assert_eq!(self.call("echo", json!({"text": "still here"})).text(), "still here");
    }

    /// Asserts that the host answers a `ping`.
    ///
    /// # Panics
    /// If it does not.
    pub fn still_answers(&mut self) {
        if self.is_bridged() && !self.is_legacy {
            // The modern era has no ping over HTTP.
            let found = self.request("server/discover", json!({}));
            return assert!(found["result"].is_object(), "{found}");
        }
        self.last_id += 1;
        let id = json!(format!("ping-{}", self.last_id));
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        assert_eq!(self.reply_to(&id), json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }

    /// Takes the input out, so that another thread can write to it.
    ///
    /// # Panics
    /// If the input is closed.
    pub fn take_input(&mut self) -> ChildStdin {
        self.input.take().expect("the input is closed")
    }

    /// Closes the host's input. The host should answer all it has read, then end.
    pub fn close_input(&mut self) {
        self.input = None;
    }
}

fn is_writable(input: &ChildStdin, patience: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let limit = Timespec::try_from(patience).unwrap();
    poll(&mut [PollFd::new(input, PollFlags::OUT)], Some(&limit)).unwrap() > 0
}
