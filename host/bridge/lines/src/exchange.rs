//! Requests to another MCP server, in either era, as texts and header fields.
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::request::header_text;

/// The revision of modern requests.
pub const MODERN: &str = "2026-07-28";

/// Revisions with sessions that are understood, the newest first. The first is asked for.
pub const SESSION_REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Each request stands by itself (from 2026-07-28).
    Modern,
    /// `initialize` comes first (up to 2025-11-25).
    Session,
}

/// What `initialize` gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionState {
    /// The session, if the server names one.
    pub id: Option<String>,
    /// The revision that the server speaks; empty before it said so.
    pub revision: String,
}

/// What a server may ask the person behind a caller. Nothing else can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elicitation {
    /// To fill in a form.
    pub form: bool,
    /// To go to a page.
    pub page: bool,
}

/// A further round of a modern call: answers to what its result asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRound {
    /// Answers, by the keys of the questions.
    pub input_responses: Map<String, Value>,
    /// What the server gave to be sent back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
}

/// A call of a tool.
#[derive(Clone, Copy, Debug)]
pub struct CallRequest<'a> {
    /// The request's number. Progress comes with it.
    pub id: u32,
    /// The tool's name there.
    pub tool: &'a str,
    /// Its arguments, as they came.
    pub arguments: &'a RawValue,
    /// What the server may ask.
    pub elicitation: Elicitation,
    /// The answers to the round before.
    pub round: Option<&'a CallRound>,
}

impl Elicitation {
    /// The capabilities of a client that passes this on.
    fn capabilities(self) -> Value {
        let modes = [("form", self.form), ("url", self.page)];
        let modes: Map<String, Value> =
            modes.into_iter().filter(|(_, is_asked)| *is_asked).map(|(mode, _)| (mode.to_owned(), json!({}))).collect();
        if modes.is_empty() { json!({}) } else { json!({"elicitation": modes}) }
    }
}

/// `server/discover`: asks whether the server knows modern requests.
#[must_use]
pub fn discover(id: u32, elicitation: Elicitation) -> String {
    request(id, "server/discover", json!({"_meta": meta(elicitation)}))
}

/// `initialize`.
#[must_use]
pub fn initialize(id: u32, elicitation: Elicitation) -> String {
    let [revision, ..] = SESSION_REVISIONS;
    let capabilities = elicitation.capabilities();
    request(
        id,
        "initialize",
        json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client()}),
    )
}

/// The notification behind [`initialize`].
#[must_use]
pub fn initialized() -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()
}

/// One page of `tools/list`.
#[must_use]
pub fn list(era: Era, id: u32, cursor: Option<&str>, elicitation: Elicitation) -> String {
    let mut params = match era {
        Era::Modern => json!({"_meta": meta(elicitation)}),
        Era::Session => json!({}),
    };
    if let (Some(cursor), Value::Object(params)) = (cursor, &mut params) {
        params.insert("cursor".to_owned(), cursor.into());
    }
    request(id, "tools/list", params)
}

/// `tools/call`.
#[must_use]
pub fn call(era: Era, wanted: &CallRequest<'_>) -> String {
    #[derive(Serialize)]
    struct Call<'a> {
        jsonrpc: &'a str,
        id: u32,
        method: &'a str,
        params: Params<'a>,
    }
    #[derive(Serialize)]
    struct Params<'a> {
        name: &'a str,
        arguments: &'a RawValue,
        _meta: Value,
        #[serde(flatten)]
        round: Option<&'a CallRound>,
    }
    let CallRequest { id, tool, arguments, elicitation, round } = *wanted;
    let mut meta = match era {
        Era::Modern => meta(elicitation),
        Era::Session => json!({}),
    };
    if let Value::Object(meta) = &mut meta {
        meta.insert("progressToken".to_owned(), id.into());
    }
    let params = Params { name: tool, arguments, _meta: meta, round };
    // Texts and numbers always have a form in JSON.
    serde_json::to_string(&Call { jsonrpc: "2.0", id, method: "tools/call", params }).unwrap_or_default()
}

/// The answer to a request of the server's that is passed on.
#[must_use]
pub fn reply(id: &RawValue, result: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}", id.get())
}

/// The answer to a request of the server's that is not passed on. `ping` is answered; everything
/// else is refused.
#[must_use]
pub fn refusal(id: &RawValue, method: &str) -> String {
    if method == "ping" {
        return reply(id, &json!({}));
    }
    let message = match method {
        "elicitation/create" => "this bridge does not pass on what its server asks the person",
        _ => "a bridge does not pass on what its server asks for",
    };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{{\"code\":-32601,\"message\":\"{message}\"}}}}", id.get())
}

/// The fields of a request. `name` is the tool of a call.
#[must_use]
pub fn fields(era: Era, session: &SessionState, method: &str, name: Option<&str>) -> Vec<(String, String)> {
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut fields = vec![
        field("accept", "application/json, text/event-stream"),
        field("content-type", "application/json"),
        field("user-agent", "toolcell"),
    ];
    match era {
        Era::Modern => {
            fields.push(field("mcp-protocol-version", MODERN));
            fields.push(field("mcp-method", method));
            fields.extend(name.map(|name| field("mcp-name", &header_text(name))));
        }
        Era::Session => {
            fields.extend(session.id.as_deref().map(|id| field("mcp-session-id", id)));
            let known = Some(session.revision.as_str()).filter(|revision| !revision.is_empty());
            fields.extend(known.map(|revision| field("mcp-protocol-version", revision)));
        }
    }
    fields
}

fn request(id: u32, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// What each modern request says of its client.
fn meta(elicitation: Elicitation) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": client(),
        "io.modelcontextprotocol/clientCapabilities": elicitation.capabilities(),
    })
}

fn client() -> Value {
    json!({"name": "toolcell", "version": env!("CARGO_PKG_VERSION")})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn modern_requests_say_everything_each_time() {
        let arguments = RawValue::from_string("{\"a\":1.50}".to_owned()).unwrap();
        let mut wanted =
            CallRequest { id: 3, tool: "ö", arguments: &arguments, elicitation: Elicitation::default(), round: None };
        let text = call(Era::Modern, &wanted);
        assert!(text.contains("\"arguments\":{\"a\":1.50}"), "{text}");
        let sent: Value = serde_json::from_str(&text).unwrap();
        let meta = &sent["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], MODERN);
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
        assert_eq!(meta["progressToken"], 3);
        assert_eq!(sent["params"].get("inputResponses"), None);
        let answers = json!({"a": {"action": "decline"}});
        let round =
            CallRound { input_responses: answers.as_object().unwrap().clone(), request_state: Some("s".to_owned()) };
        wanted.round = Some(&round);
        wanted.elicitation = Elicitation { form: true, page: false };
        let sent: Value = serde_json::from_str(&call(Era::Modern, &wanted)).unwrap();
        assert_eq!((&sent["params"]["inputResponses"], &sent["params"]["requestState"]), (&answers, &json!("s")));
        let capabilities = &sent["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(capabilities, &json!({"elicitation": {"form": {}}}));
        let fields = fields(Era::Modern, &SessionState::default(), "tools/call", Some("ö"));
        let value = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        assert_eq!(value("mcp-protocol-version"), Some(MODERN));
        assert_eq!((value("mcp-method"), value("mcp-name")), (Some("tools/call"), Some("=?base64?w7Y=?=")));
    }

    #[test]
    fn session_requests_name_their_session() {
        let session = SessionState { id: Some("s".to_owned()), revision: "2025-06-18".to_owned() };
        let names = |session: &SessionState| -> Vec<String> {
            fields(Era::Session, session, "tools/list", None).into_iter().skip(3).map(|(name, _)| name).collect()
        };
        assert_eq!(names(&SessionState::default()), Vec::<String>::new());
        assert_eq!(names(&session), ["mcp-session-id", "mcp-protocol-version"]);
        let sent: Value = serde_json::from_str(&list(Era::Session, 2, Some("next"), Elicitation::default())).unwrap();
        assert_eq!(sent["params"], json!({"cursor": "next"}));
    }

    #[test]
    fn a_request_of_the_server_is_refused_with_its_own_id() {
        let id = RawValue::from_string("\"x\\n\"".to_owned()).unwrap();
        let refused: Value = serde_json::from_str(&refusal(&id, "sampling/createMessage")).unwrap();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("x\n"), &json!(-32601)));
        let answered: Value = serde_json::from_str(&refusal(&id, "ping")).unwrap();
        assert_eq!(answered["result"], json!({}));
        let answered: Value = serde_json::from_str(&reply(&id, &json!({"action": "cancel"}))).unwrap();
        assert_eq!((&answered["id"], &answered["result"]["action"]), (&json!("x\n"), &json!("cancel")));
    }
}
