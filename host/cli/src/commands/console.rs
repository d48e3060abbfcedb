//! `toolcell console`: prints links into the consoles of the processes that serve a manifest.
use serde_json::Value;
use toolcell_mcp::sanitize;
use toolcell_server::control::{Request, Unreachable, ask_all};

use crate::args::AskArgs;
use crate::commands::reload;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Asks for links and prints them.
pub fn run(args: &AskArgs) -> anyhow::Result<Exit> {
    let answers = ask_all(&args.control, &args.manifest.manifest, &Request::Console).map_err(|error| match error {
        Unreachable::Nobody(_) => {
            let hint = "start one with `toolcell serve --console`, or name its socket with --control";
            Failure::at_fault(error.to_string(), hint)
        }
        other => other.into(),
    })?;
    reload::print_all(&answers, args.json, print)?;
    Ok(if answers.iter().any(|answer| answer["link"].is_string()) { Exit::Done } else { Exit::AtFault })
}

fn print(answer: &Value) -> std::io::Result<()> {
    let text = |key: &str| answer[key].as_str().map(|text| sanitize::line(text).into_owned());
    match text("link") {
        Some(link) => terminal::print(&format!("{link}\n")),
        None if answer["hint"].is_string() => {
            reload::print_error(answer);
            Ok(())
        }
        None => {
            let problem = text("error").unwrap_or_default();
            terminal::error(&problem, Some("start the server with --console, or write [console] into the manifest"));
            Ok(())
        }
    }
}
