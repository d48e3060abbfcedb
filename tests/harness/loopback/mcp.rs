//! An MCP server over HTTP that a test writes: its list, and its answers to calls.

use serde_json::{Value, json};

use super::{HttpServer, Scripted, Seen};

/// The session that it names.
const SESSION: &str = "session-of-the-test";

/// How it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpEra {
    /// It knows 2026-07-28 alone.
    Modern,
    /// It knows 2025-11-25 alone, and names its sessions.
    Session,
}

/// What it answers.
pub struct McpScript<L, C> {
    /// Its era.
    pub era: McpEra,
    /// The params of `tools/list` → the result of the page.
    pub list: L,
    /// The whole `tools/call` → the answer.
    pub call: C,
}

/// The answer to this request with this result, as JSON.
#[must_use]
pub fn result(request: &Value, result: &Value) -> Scripted {
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    Scripted::Whole(200, "application/json", answer.to_string())
}

/// An answer that is a stream of these messages.
#[must_use]
pub fn events(messages: &[Value]) -> Scripted {
    let events = messages.iter().map(|message| format!("event: message\ndata: {message}\n\n"));
    Scripted::Whole(200, "text/event-stream", events.collect())
}

impl<L, C> McpScript<L, C>
where
    L: Fn(&Value) -> Value + Send + Sync + 'static,
    C: Fn(&Value) -> Scripted + Send + Sync + 'static,
{
    /// A server on 127.0.0.1. Its endpoint is `/mcp`.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn start(self) -> HttpServer {
        self.start_behind(|_| None)
    }

    /// The same behind a gate, whose answers come first.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn start_behind(self, gate: impl Fn(&Seen) -> Option<Scripted> + Send + Sync + 'static) -> HttpServer {
        HttpServer::scripted(move |seen: &Seen| gate(seen).unwrap_or_else(|| self.answered(seen)))
    }

    fn answered(&self, seen: &Seen) -> Scripted {
        match seen.method() {
            "POST" if seen.target() == "/mcp" => {
                let message: Value = serde_json::from_slice(&seen.body).expect("a message");
                self.answer(seen, &message)
            }
            "DELETE" => Scripted::Bytes(204, Vec::new(), Vec::new()),
            _ => Scripted::Whole(404, "text/html", "<p>nothing here</p>".to_owned()),
        }
    }

    fn answer(&self, seen: &Seen, message: &Value) -> Scripted {
        let Some(method) = message["method"].as_str().filter(|_| message.get("id").is_some()) else {
            return Scripted::Bytes(202, Vec::new(), Vec::new());
        };
        match (self.era, method) {
            (McpEra::Modern, "server/discover") => {
                let server = json!({"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}});
                let said = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "_meta": server});
                result(message, &said)
            }
            (McpEra::Modern, _) if seen.values("mcp-method") != [method] => refused(message, -32020, "Header mismatch"),
            (McpEra::Session, "initialize") => {
                let said = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "scripted", "version": "1"}});
                let Scripted::Whole(status, kind, body) = result(message, &said) else { unreachable!() };
                let fields = vec![("Content-Type", kind.to_owned()), ("Mcp-Session-Id", SESSION.to_owned())];
                Scripted::Bytes(status, fields, body.into_bytes())
            }
            (McpEra::Session, _) if seen.values("mcp-session-id") != [SESSION] => {
                refused(message, -32000, "Bad Request: no session")
            }
            (_, "tools/list") => result(message, &(self.list)(&message["params"])),
            (_, "tools/call") => (self.call)(message),
            _ => refused(message, -32601, "Method not found"),
        }
    }
}

fn refused(request: &Value, code: i64, message: &str) -> Scripted {
    let error = json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}});
    Scripted::Whole(400, "application/json", error.to_string())
}
