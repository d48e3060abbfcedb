//! `toolcell console`: prints links into the consoles of the processes that serve a manifest.
use serde_json::Value;
use toolcell_mcp::sanitize;
use toolcell_server::control::{Request, Unreachable, ask_all};

use crate::args::AskArgs;
use crate::exit::Exit;
use crate::terminal;

/// Asks for links and prints them.
pub fn run(args: &AskArgs) -> anyhow::Result<Exit> {
    let answers = match ask_all(&args.control, &args.manifest.manifest, &Request::Console) {
        Ok(answers) => answers,
        Err(error) => {
            let hint = match &error {
                Unreachable::Nobody(_) => {
                    Some("start one with `toolcell serve --console`, or name its socket with --control")
                }
                other => other.hint(),
            };
            terminal::error(&error.to_string(), hint);
            return Ok(Exit::AtFault);
        }
    };
    if args.json {
        terminal::print(&format!("{:#}\n", Value::from(answers.clone())))?;
    } else {
        answers.iter().try_for_each(print)?;
    }
    Ok(if answers.iter().any(|answer| answer["link"].is_string()) { Exit::Done } else { Exit::AtFault })
}

fn print(answer: &Value) -> std::io::Result<()> {
    let text = |key: &str| answer[key].as_str().map(|text| sanitize::line(text).into_owned());
    match text("link") {
        Some(link) => terminal::print(&format!("{link}\n")),
        None => {
            let problem = text("error").unwrap_or_default();
            terminal::error(&problem, Some("start the server with --console, or write [console] into the manifest"));
            Ok(())
        }
    }
}
