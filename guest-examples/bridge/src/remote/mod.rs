//! A call of a tool of another MCP server. Modern servers get one request. Others get a session for
//! the call: `initialize`, the call, and the end of the session where it has a name.
//!
//! Holds the order of requests; must hold neither the form of messages nor that of results.

mod exchange;
mod questions;
mod result;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolcell_bridge_lines::{
    CallRequest, CallRound, Era, RemoteCall, RemoteServer, SESSION_REVISIONS, SessionState, call, initialize,
    initialized,
};
use toolkit::{CallResult, Failure};

use exchange::{Exchange, Wanted};
use questions::{METHOD, NotAsked};
use result::{AskedFor, Said};

/// Numbers of our requests. One instance makes one call, which may have further rounds.
const INITIALIZE: u32 = 1;
const CALL: u32 = 2;

/// Rounds of a modern call. 8: a server that asks again after that does not stop.
const ROUNDS_MAX: u32 = 8;

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
    let mut round = None;
    for id in CALL..CALL + ROUNDS_MAX {
        let elicitation = exchange.questions.elicitation;
        let request = CallRequest { id, tool: &tool.remote, arguments: &arguments, elicitation, round: round.as_ref() };
        let body = call(server.era, &request);
        let mirrored = mirrored.clone();
        let wanted = Wanted { id, method: "tools/call", name: Some(&tool.remote), mirrored, body };
        let answer = exchange.asked(&wanted);
        exchange.end();
        match result::of(&answer?)? {
            Said::Result(result) => return Ok(result),
            Said::AskedFor(asked) if server.era == Era::Modern => round = Some(answered(&mut exchange, asked)?),
            Said::AskedFor(_) => {
                return Err(Failure::Failed("the server answers as one of another revision of MCP".to_owned()));
            }
        }
    }
    Err(Failure::Failed("the server asks for something again and again".to_owned()))
}

/// Answers to what a round asks for.
fn answered(exchange: &mut Exchange<'_>, asked: AskedFor) -> Result<CallRound, Failure> {
    if !asked.requests.iter().all(|(_, request)| request.method == METHOD) {
        return Err(Failure::Failed("the server asks for what a bridge does not pass on".to_owned()));
    }
    if !exchange.questions.are_passed() {
        let problem = "the server asks the person something: variables of the manifest with ELICITATION = \"pass\" \
                       pass that on, if the caller can be asked";
        return Err(Failure::Failed(problem.to_owned()));
    }
    let params: Vec<&str> = asked.requests.values().map(|request| request.params.get()).collect();
    let results = exchange.questions.ask(&params).map_err(|NotAsked { text, .. }| Failure::Failed(text))?;
    let input_responses = asked.requests.keys().cloned().zip(results).collect();
    Ok(CallRound { input_responses, request_state: asked.state })
}

/// Begins a session: no call of the tool is made before the server agrees.
fn begin(exchange: &mut Exchange<'_>) -> Result<(), Failure> {
    let body = initialize(INITIALIZE, exchange.questions.elicitation);
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
