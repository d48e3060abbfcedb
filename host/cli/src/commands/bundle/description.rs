//! The bundle's `manifest.json`, which a client reads: name, program, tools, and the values that it
//! asks the person for.
use serde_json::{Map, Value, json};
use toolcell_mcp::ServedCatalog as _;
use toolcell_server::Ready;

use super::PROGRAM;
use super::contents::{Contents, Variable};
use crate::args::BundleArgs;

/// Version of the format. Clients support it since December 2025.
const FORM: &str = "0.3";

/// The client replaces this by the folder into which it installed the bundle.
const FOLDER: &str = "${__dirname}";

/// The text of `manifest.json`.
pub fn of(args: &BundleArgs, name: &str, ready: &Ready, contents: &Contents, locked: bool) -> String {
    let server = ready.manifest.server();
    let shown = server.title().unwrap_or(name);
    let asked = contents.variables().keys().map(|name| (name.clone(), user_config(name)));
    let required = json!({
        "manifest_version": FORM,
        "name": name,
        "display_name": shown,
        "version": args.bundle_version,
        "description": server.instructions().map_or_else(|| shown.to_owned(), first_line),
        "author": {"name": args.author.as_deref().unwrap_or(name)},
        "server": {
            "type": "binary",
            "entry_point": PROGRAM,
            "mcp_config": {
                "command": format!("{FOLDER}/{PROGRAM}"),
                "args": arguments(contents, locked),
                "env": asked.collect::<Map<_, _>>(),
            },
        },
        "tools": tools(ready),
        "compatibility": {"platforms": ["linux"]},
    });
    let questions = contents.variables().iter().map(|(name, variable)| (name.clone(), question(name, variable)));
    let optional = [
        ("long_description", server.instructions().map(|text| json!(text))),
        ("user_config", (!contents.variables().is_empty()).then(|| Value::Object(questions.collect()))),
    ];
    let optional = optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let description = match required {
        Value::Object(keys) => Value::Object(keys.into_iter().chain(optional).collect()),
        other => other,
    };
    format!("{description:#}\n")
}

fn arguments(contents: &Contents, locked: bool) -> Vec<String> {
    let mut arguments = vec!["serve".to_owned(), "--manifest".to_owned(), format!("{FOLDER}/{}", contents.manifest())];
    if locked {
        arguments.push("--locked".to_owned());
    }
    arguments
}

/// The client replaces this by the person's answer.
fn user_config(name: &str) -> Value {
    Value::String(format!("${{user_config.{name}}}"))
}

fn question(name: &str, variable: &Variable) -> Value {
    json!({
        "type": "string",
        "title": name,
        "description": variable.about,
        "required": true,
        "sensitive": variable.is_secret,
    })
}

fn tools(ready: &Ready) -> Vec<Value> {
    let definitions = ready.catalog.tools().tools().iter().filter(|tool| tool.is_tool()).map(|tool| tool.definition());
    definitions
        .map(|definition| json!({"name": definition.name, "description": first_line(&definition.description)}))
        .collect()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
