//! The frames of the benchmark: requests as bytes, and a check of each answer. Each request has its
//! own id and its own text, so an answer that belongs to another call is noticed.

use std::borrow::Cow;
use std::io::Write as _;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use toolcell_tests::{LEGACY_REVISIONS, MODERN_REVISION};

/// The protocol era of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// After an `initialize` handshake. Requests do not name the protocol.
    Legacy,
    /// No handshake. Every request names the protocol.
    Modern,
}

/// A tool that returns its input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// 5 KB, no imports. Returns its arguments as JSON text.
    Tiny,
    /// Rust with its standard library. Parses its arguments and returns their `text`.
    Echo,
}

/// A request to make.
#[derive(Clone, Copy)]
pub enum Ask {
    /// The line of a legacy call of `echo`, which the baselines return as it is.
    Line,
    /// `ping`.
    Ping,
    /// `tools/list`, legacy.
    List,
    /// `tools/call`.
    Call(Tool, Era),
    /// A legacy `tools/call` of a tool of this name. Its answer contains the call's text. Its
    /// server may send notifications before it answers.
    Named(&'static str),
    /// A legacy `tools/call` of `http_again`. It asks the server on this port that many times and
    /// says how many answers it got.
    Fetch {
        /// Number of requests, one after another.
        times: usize,
        /// The server's port on 127.0.0.1.
        port: u16,
    },
}

impl Tool {
    /// The tool's name, which is also its component's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Echo => "echo",
        }
    }

    /// True if the tool answers the call of this id with this text.
    fn has_answered(self, id: u64, text: &str) -> bool {
        let said = match self {
            Self::Tiny => text.strip_prefix("{\"text\":\"").and_then(|rest| rest.strip_suffix("\"}")),
            Self::Echo => Some(text),
        };
        said.and_then(|said| said.strip_prefix(WORDS)).is_some_and(|number| number.parse() == Ok(id))
    }
}

/// True if this text contains the text of the call with this id, not followed by a further digit.
fn has_within(id: u64, text: &str) -> bool {
    let said = format!("{WORDS}{id}");
    text.split_once(&said).is_some_and(|(_, rest)| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// The text of every call, before its number. It is as long as a short sentence, and no encoding
/// needs to escape any of it.
const WORDS: &str = "the quick brown fox jumps over call ";

/// A path at the HTTP server whose response has [`FETCHED_BYTES`].
pub const FETCHED_PATH: &str = "/bytes/1024";

/// Bytes of such a response's body: a small document.
pub const FETCHED_BYTES: usize = 1024;

impl Ask {
    /// Appends the request with this id, as one line.
    ///
    /// # Errors
    /// None but those of a buffer that grows.
    pub fn write(self, id: u64, line: &mut Vec<u8>) -> anyhow::Result<()> {
        write!(line, r#"{{"jsonrpc":"2.0","id":{id},"method":"#)?;
        match self {
            Self::Ping => write!(line, r#""ping"}}"#)?,
            Self::List => write!(line, r#""tools/list"}}"#)?,
            Self::Line => write_call(line, id, Tool::Echo.name(), Era::Legacy)?,
            Self::Call(tool, era) => write_call(line, id, tool.name(), era)?,
            Self::Named(name) => write_call(line, id, name, Era::Legacy)?,
            Self::Fetch { times, port } => write!(
                line,
                r#""tools/call","params":{{"name":"http_again","arguments":{{"text":"{WORDS}{id}","times":{times},"url":"http://127.0.0.1:{port}{FETCHED_PATH}"}}}}}}"#
            )?,
        }
        line.push(b'\n');
        Ok(())
    }

    /// True if this line, which came before the answer, may be skipped: a notification of another
    /// server. This project's own subjects send none while they answer calls.
    pub fn passes_over(self, line: &[u8]) -> bool {
        matches!(self, Self::Named(_)) && Reply::read(line).is_ok_and(|reply| reply.is_told())
    }

    /// Checks that this line is the right answer to the request with this id.
    ///
    /// # Errors
    /// The answer is wrong.
    pub fn check(self, id: u64, line: &[u8]) -> anyhow::Result<()> {
        if matches!(self, Self::Line) {
            let mut sent = Vec::with_capacity(line.len());
            self.write(id, &mut sent)?;
            ensure!(sent == line, "{:?} came back as {:?}", lossy(&sent), lossy(line));
            return Ok(());
        }
        let reply = Reply::read(line)?;
        ensure!(reply.id == Some(id), "an answer to {id} was expected, not {:?}", lossy(line));
        self.check_reply(id, &reply).with_context(|| lossy(line).into_owned())
    }

    /// Checks that a reply that the caller has read is the right answer to the request with this
    /// id.
    ///
    /// # Errors
    /// The answer is wrong.
    pub fn check_reply(self, id: u64, reply: &Reply<'_>) -> anyhow::Result<()> {
        let result = reply.result.as_ref().context("the answer is an error")?;
        match self {
            Self::List if result.tools.is_empty() => bail!("the list is empty"),
            Self::Ping | Self::List | Self::Line => Ok(()),
            Self::Call(tool, _) => match result.content.as_slice() {
                [content] if !result.is_error && tool.has_answered(id, &content.text) => Ok(()),
                _ => bail!("the answer to call {id} is wrong"),
            },
            Self::Named(_) => match result.content.first() {
                Some(content) if !result.is_error && has_within(id, &content.text) => Ok(()),
                _ => bail!("the answer to call {id} is wrong"),
            },
            Self::Fetch { times, .. } => {
                let expected = format!("{WORDS}{id}: {times} came, {} bytes", times * FETCHED_BYTES);
                let text = result.content.first().map(|content| &*content.text);
                ensure!(text == Some(expected.as_str()), "not {expected:?}");
                Ok(())
            }
        }
    }
}

fn write_call(line: &mut Vec<u8>, id: u64, name: &str, era: Era) -> anyhow::Result<()> {
    write!(line, r#""tools/call","params":{{"name":"{name}","arguments":{{"text":"{WORDS}{id}"}}"#)?;
    if era == Era::Modern {
        write!(line, r#","_meta":{}"#, modern_meta())?;
    }
    line.extend_from_slice(b"}}");
    Ok(())
}

fn modern_meta() -> &'static str {
    static META: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    META.get_or_init(|| toolcell_tests::modern_meta().to_string())
}

/// A modern request of this method, with these further params, as one line.
pub fn modern(id: u64, method: &str, mut params: Value) -> Vec<u8> {
    params.as_object_mut().map(|params| params.insert("_meta".to_owned(), toolcell_tests::modern_meta()));
    line(&serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// The line that opens a legacy conversation, in the newest legacy revision: a request with this
/// id.
pub fn initialize(id: u64) -> Vec<u8> {
    let revision = LEGACY_REVISIONS.last().copied().unwrap_or(MODERN_REVISION);
    let client = serde_json::json!({"name": "toolcell-bench", "version": "1"});
    let params = serde_json::json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
    line(&serde_json::json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}))
}

/// A legacy request of this method, without params, as one line.
pub fn legacy(id: u64, method: &str) -> Vec<u8> {
    line(&serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method}))
}

/// A legacy call of this tool, as one line.
pub fn legacy_call(id: u64, tool: &str) -> Vec<u8> {
    let params = serde_json::json!({"name": tool, "arguments": {}});
    line(&serde_json::json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

/// The notification that a client sends after the answer to [`initialize`].
pub fn initialized() -> Vec<u8> {
    line(&serde_json::json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
}

fn line(frame: &Value) -> Vec<u8> {
    format!("{frame}\n").into_bytes()
}

fn lossy(line: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line))
}

/// The parts of a received frame that the benchmark uses.
#[derive(Debug, Deserialize)]
pub struct Reply<'a> {
    /// The id, if the frame is a reply to one of our requests.
    pub id: Option<u64>,
    /// The method of a request or a notification; `None` in a reply.
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    result: Option<Answered<'a>>,
}

impl<'a> Reply<'a> {
    /// Reads a line.
    ///
    /// # Errors
    /// The line is not such a frame.
    pub fn read(line: &'a [u8]) -> anyhow::Result<Self> {
        serde_json::from_slice(line).with_context(|| format!("not a frame: {:?}", lossy(line)))
    }

    /// True if this is a notification. The server may send one at any time.
    pub fn is_told(&self) -> bool {
        self.id.is_none() && self.method.is_some()
    }

    /// True if this notification says that the list of tools has changed.
    pub fn is_list_changed(&self) -> bool {
        self.method.as_deref() == Some("notifications/tools/list_changed")
    }
}

#[derive(Debug, Deserialize)]
struct Answered<'a> {
    #[serde(borrow, default)]
    content: Vec<Content<'a>>,
    #[serde(default)]
    tools: Vec<serde::de::IgnoredAny>,
    #[serde(default, rename = "isError")]
    is_error: bool,
}

#[derive(Debug, Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    text: Cow<'a, str>,
}
