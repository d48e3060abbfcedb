//! A call of a tool of another MCP server. Modern servers get one request. Others get a session for
//! the call: `initialize`, the call, and the end of the session where it has a name.
//!
//! Holds the order of requests; must hold neither the form of messages nor that of results.

mod exchange;
mod result;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolcell_bridge_lines::{
    Era, RemoteCall, RemoteServer, SESSION_REVISIONS, SessionState, call, initialize, initialized,
};
use toolkit::{CallResult, Failure};

use exchange::{Exchange, Wanted};

/// Numbers of our requests. One instance makes one call.
const INITIALIZE: u32 = 1;
const CALL: u32 = 2;

/// What `initialize` says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized {
    protocol_version: String,
}

/// Calls the tool there.
pub fn called(server: &RemoteServer, tool: &RemoteCall, arguments: String) -> Result<CallResult, Failure> {
    let mut exchange = Exchange::of(server)?;
    if server.era == Era::Session {
        begin(&mut exchange)?;
    }
    let mirrored = if server.era == Era::Modern { mirrored(tool, &arguments)? } else { Vec::new() };
    let arguments = RawValue::from_string(arguments).map_err(|error| Failure::InvalidInput(error.to_string()))?;
    let body = call(server.era, CALL, &tool.remote, &arguments);
    let wanted = Wanted { id: CALL, method: "tools/call", name: Some(&tool.remote), mirrored, body };
    let answer = exchange.asked(&wanted);
    exchange.end();
    result::of(&answer?)
}

/// Begins a session: no call of the tool is made before the server agrees.
fn begin(exchange: &mut Exchange<'_>) -> Result<(), Failure> {
    let body = initialize(INITIALIZE);
    let answer =
        exchange.asked(&Wanted { id: INITIALIZE, method: "initialize", name: None, mirrored: Vec::new(), body })?;
    let said: Initialized = serde_json::from_str(&answer)
        .map_err(|error| Failure::Failed(format!("the server does not answer initialize as MCP has it: {error}")))?;
    if !SESSION_REVISIONS.contains(&said.protocol_version.as_str()) {
        exchange.end();
        let problem =
            "the server speaks another revision of MCP than when it was added: `toolcell update` reads it anew";
        return Err(Failure::Failed(problem.to_owned()));
    }
    let session = exchange.session_id().map(str::to_owned);
    exchange.session = SessionState { id: session, revision: said.protocol_version };
    exchange.told(initialized())
}

/// The headers that repeat arguments.
fn mirrored(tool: &RemoteCall, arguments: &str) -> Result<Vec<(String, String)>, Failure> {
    if tool.mirrored.is_empty() {
        return Ok(Vec::new());
    }
    let arguments: Value = toolkit::arguments(arguments)?;
    let field = |parameter: &toolcell_bridge_lines::MirroredParameter| {
        Some((format!("mcp-param-{}", parameter.header.to_ascii_lowercase()), parameter.value(&arguments)?))
    };
    Ok(tool.mirrored.iter().filter_map(field).collect())
}
