//! `bridge`: tools of an HTTP API, or of another MCP server. `toolcell add` makes a component of this
//! one, with the tools in its memory; by itself it has none.
//! The lesson: a component whose tools are data. What it reaches stands in the manifest alone.
//!
//! Holds the way of a call; must hold neither the form of requests nor that of answers.

mod answer;
mod definitions;
mod file;
mod icons;
mod memory;
mod parts;
mod query;
mod remote;
mod request;

use serde_json::{Map, Value};
use toolcell_bridge_lines::{BridgeServer, RemoteCall, Request};
use toolkit::http::{self, Target};
use toolkit::{CallResult, Failure, Guest, Tool};

use definitions::Definitions;

struct Bridge;

toolkit::export!(Bridge);

impl Guest for Bridge {
    fn list_tools() -> Vec<Tool> {
        // Without definitions there are no tools, and the host says that of a component.
        Definitions::of(memory::embedded()).map(|definitions| definitions.tools()).unwrap_or_default()
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        let definitions = Definitions::of(memory::embedded())?;
        match definitions.server() {
            BridgeServer::Origin(origin) => requested(origin, &definitions.request(&name)?, &arguments_json),
            BridgeServer::Mcp(server) => {
                let call: RemoteCall = definitions.request(&name)?;
                remote::called(server, &call, arguments_json)
            }
        }
    }
}

/// Makes the request of an operation.
fn requested(origin: &str, definition: &Request, arguments_json: &str) -> Result<CallResult, Failure> {
    let arguments: Map<String, Value> = toolkit::arguments(arguments_json)?;
    let wanted = request::wanted(definition, &arguments)?;
    let url = format!("{origin}{}", wanted.path);
    let target = Target::of(&url)?;
    let fields: Vec<(&str, &str)> = wanted.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let answer = http::send(&definition.method, target, &fields, wanted.body.as_deref())?;
    answer::result(definition, &url, answer)
}
