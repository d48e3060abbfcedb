//! `bridge`: tools for the operations of an HTTP API. `toolcell add openapi.json` makes a component
//! of this one, with the document's tools in its memory; by itself it has none.
//! The lesson: a component whose tools are data. What it reaches stands in the manifest alone.
//!
//! Holds the way of a call; must hold neither the form of requests nor that of answers.

mod answer;
mod definitions;
mod memory;
mod query;
mod request;

use serde_json::{Map, Value};
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
        let definition = definitions.request(&name)?;
        let arguments: Map<String, Value> = toolkit::arguments(&arguments_json)?;
        let wanted = request::wanted(&definition, &arguments)?;
        let url = format!("{}{}", definitions.origin(), wanted.path);
        let target = Target::of(&url)?;
        let fields: Vec<(&str, &str)> =
            wanted.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let answer = http::send(&definition.method, target, &fields, wanted.body.as_deref())?;
        answer::result(&definition, &url, answer)
    }
}
