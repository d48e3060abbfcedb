//! `bridge`: tools of an HTTP API, or of another MCP server. `toolcell add` makes a component of this
//! one, with the tools in its memory; by itself it has none.
//! The lesson: a component whose tools are data. What it reaches stands in the manifest alone.
//!
//! Holds the way of a call; must hold neither the form of requests nor that of answers.

mod answer;
mod arguments;
mod definitions;
mod file;
mod fit;
mod icons;
mod memory;
mod parts;
mod query;
mod remote;
mod request;
mod text;

use toolcell_bridge_lines::{BridgeServer, OutputForm, RemoteCall, Request};
use toolkit::http::{self, Target};
use toolkit::{CallResult, Failure, Guest, Tool};

use arguments::Arguments;
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
            BridgeServer::Origin(origin) => requested(origin, &definitions, &name, &arguments_json),
            BridgeServer::Mcp(server) => {
                let call: RemoteCall = definitions.request(&name)?;
                remote::called(server, &call, arguments_json)
            }
        }
    }
}

/// Makes the request of an operation.
fn requested(
    origin: &str,
    definitions: &Definitions<'_>,
    tool: &str,
    arguments_json: &str,
) -> Result<CallResult, Failure> {
    let definition: Request = definitions.request(tool)?;
    let wanted = request::wanted(&definition, &Arguments::of(arguments_json)?)?;
    let url = format!("{origin}{}", wanted.path);
    let target = Target::of(&url)?;
    let fields: Vec<(&str, &str)> = wanted.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let answer = http::send(&definition.method, target, &fields, wanted.body.as_deref())?;
    let has_output = definition.output != OutputForm::Free;
    let output = has_output.then(|| definitions.output(tool)).flatten();
    answer::result(&definition, output.as_ref(), &url, answer)
}
