//! A running `toolcell serve`, and one client's side of its conversation.

use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::command::Finished;
use crate::folder::RUNTIME_FOLDER;
use crate::frames::{Line, Lines, PATIENCE, Said, modern_meta};
use crate::{Answer, Folder, binary, fixture};

/// The name of the audit file in the folder of a host that records.
const AUDIT: &str = "audit.jsonl";

/// A running host. Dropping this ends it.
#[derive(Debug)]
pub struct TestHost {
    child: Child,
    input: Option<ChildStdin>,
    /// Its stdout, which is not read until a test waits for a frame.
    lines: Option<Lines>,
    said: Said,
    threads: Vec<JoinHandle<()>>,
    /// Frames that came before the awaited one, in the order in which they came.
    kept: VecDeque<Value>,
    last_id: u64,
    /// True once `initialize` is done. Requests then carry no modern meta.
    is_legacy: bool,
    folder: Folder,
}

impl TestHost {
    /// Serves this manifest. Sources of the form `components/FIXTURE.wasm` are put in place.
    ///
    /// # Panics
    /// If the host does not start. Problems of the manifest show only with the first request.
    #[must_use]
    pub fn with_manifest(manifest: &str) -> Self {
        Self::in_folder(Folder::with_manifest(manifest))
    }

    /// Serves these fixtures under the limits that the tests share.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn serving(fixtures: &[&str]) -> Self {
        Self::with_manifest(&fixture::manifest_of(fixtures))
    }

    /// Serves the manifest of this folder.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn in_folder(folder: Folder) -> Self {
        Self::start_with(folder, &[], &[])
    }

    /// Serves the manifest of this folder with these further options.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn with_options(folder: Folder, options: &[&str]) -> Self {
        Self::start_with(folder, options, &[])
    }

    /// Serves this manifest and records each call. [`TestHost::audit`] reads the records.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn recording(manifest: &str) -> Self {
        Self::recording_in(Folder::with_manifest(manifest), &[])
    }

    /// Serves the manifest of this folder, with these variables in the host's environment, and
    /// records each call.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn recording_in(folder: Folder, variables: &[(&str, &str)]) -> Self {
        Self::start_with(folder, &["--audit", AUDIT], variables)
    }

    /// Serves the manifest of this folder with these further options, and records each call.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn recording_with(folder: Folder, options: &[&str]) -> Self {
        Self::start_with(folder, &[&["--audit", AUDIT], options].concat(), &[])
    }

    /// Serves the manifest of this folder, and builds the project `guest` in it with a shell
    /// script.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn building(folder: Folder, script: &str) -> Self {
        let manifest = folder.manifest();
        Self::start_as("dev", (folder, &manifest), &["--project", "guest", "--", "sh", "-c", script], &[])
    }

    pub(crate) fn start_with(folder: Folder, further: &[&str], variables: &[(&str, &str)]) -> Self {
        let manifest = folder.manifest();
        Self::start_as("serve", (folder, &manifest), further, variables)
    }

    /// Serves this manifest in its own place, with a new folder for everything else.
    pub(crate) fn start_of(manifest: &Path, further: &[&str]) -> Self {
        Self::start_as("serve", (Folder::with_manifest(""), manifest), further, &[])
    }

    fn start_as(
        command: &str,
        (folder, manifest): (Folder, &Path),
        further: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let mut child = std::process::Command::new(binary::toolcell())
            .arg(command)
            .arg("--manifest")
            .arg(manifest)
            .args(further)
            .env(RUNTIME_FOLDER, folder.runtime())
            .envs(variables.iter().copied())
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (said, thread) = Said::of(child.stderr.take().unwrap());
        Self {
            input: child.stdin.take(),
            child,
            lines: None,
            said,
            threads: vec![thread],
            kept: VecDeque::new(),
            last_id: 0,
            is_legacy: false,
            folder,
        }
    }

    /// The folder that it serves from.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The records so far, of a host that was started with [`TestHost::recording`].
    ///
    /// # Panics
    /// If there are none, or one is not JSON.
    #[must_use]
    pub fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join(AUDIT)).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The first record for which `fits` holds, from a host that records. A call's answer may be on
    /// the wire before its record is on the disk.
    ///
    /// # Panics
    /// If none comes in time.
    #[must_use]
    pub fn recorded(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let records = self.audit();
            if let Some(record) = records.iter().find(|record| fits(record)) {
                return record.clone();
            }
            assert!(Instant::now() < end, "no record of {what} in {records:#?}\n{}", self.said.text());
            std::thread::yield_now();
        }
    }

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
            None => self.read(PATIENCE).unwrap_or_else(|| panic!("the host ended\n{}", self.said.text())),
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
    fn read_line(&mut self, patience: Duration) -> Option<Vec<u8>> {
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
        let (mut count, mut rest) = (0, Vec::new());
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
            let frame = self.read(PATIENCE).unwrap_or_else(|| panic!("the host ended\n{}", self.said.text()));
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
        self.last_id += 1;
        let id = json!(format!("ping-{}", self.last_id));
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        assert_eq!(self.reply_to(&id), json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }

    /// The text that the host has written to stderr so far.
    #[must_use]
    pub fn said(&self) -> String {
        self.said.text()
    }

    /// Waits until the host has written these words to stderr.
    ///
    /// # Panics
    /// If it does not in time.
    pub fn will_say(&self, words: &str) {
        assert!(self.said.wait_for(words), "it never said {words:?}, but:\n{}", self.said.text());
    }

    /// The resident memory of the host in bytes, as the kernel counts its pages.
    ///
    /// # Panics
    /// If the host ended.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the host ended");
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// The process id.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.child.id()
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

    /// Asks the host to end (SIGTERM).
    ///
    /// # Panics
    /// If the process is gone.
    pub fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Asks the host to check its files (SIGHUP).
    ///
    /// # Panics
    /// If the process is gone.
    pub fn hang_up(&self) {
        self.signal(rustix::process::Signal::HUP);
    }

    /// Stops the process until [`TestHost::resume`]. Events meanwhile look simultaneous to it.
    ///
    /// # Panics
    /// If the process is gone.
    pub fn pause(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    /// Resumes the process.
    ///
    /// # Panics
    /// If the process is gone.
    pub fn resume(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// Closes the input, waits until the host has ended, and returns its folder. Another host can
    /// then start in it.
    ///
    /// # Panics
    /// If it does not end in time.
    #[must_use]
    pub fn ends_leaving_its_folder(mut self) -> Folder {
        self.close_input();
        while self.read_line(PATIENCE).is_some() {}
        self.wait();
        std::mem::replace(&mut self.folder, Folder::with_manifest(""))
    }

    /// Kills the host, as the kernel does when memory runs out, and returns its folder.
    ///
    /// # Panics
    /// If that cannot be done.
    #[must_use]
    pub fn is_killed_leaving_its_folder(mut self) -> Folder {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.folder, Folder::with_manifest(""))
    }

    /// Waits until the host has ended by itself, and returns the output that was not received yet.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn ends(mut self) -> Finished {
        let mut stdout: String = self.kept().iter().map(|frame| format!("{frame}\n")).collect();
        while let Some(line) = self.read_line(PATIENCE) {
            stdout.push_str(&String::from_utf8(line).unwrap());
        }
        let status = self.wait();
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
        Finished { status, stdout, stderr: self.said.text() }
    }

    fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "stdout is closed and the host does not end\n{}", self.said.text());
            std::thread::yield_now();
        }
    }
}

fn is_writable(input: &ChildStdin, patience: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let limit = Timespec::try_from(patience).unwrap();
    poll(&mut [PollFd::new(input, PollFlags::OUT)], Some(&limit)).unwrap() > 0
}

impl Drop for TestHost {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
