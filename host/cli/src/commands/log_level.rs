//! `toolcell log-level`: prints or changes the log level of the processes that serve a manifest.
use serde_json::Value;
use toolcell_mcp::sanitize;
use toolcell_server::control::{Request, ask_all};

use crate::args::LogLevelArgs;
use crate::commands::reload;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Sends the request and prints the level.
pub fn run(args: &LogLevelArgs) -> anyhow::Result<Exit> {
    let request = Request::LogLevel(args.level.map(Into::into));
    let answers = ask_all(&args.ask.control, &args.ask.manifest.manifest, &request).map_err(Failure::from)?;
    reload::print_all(&answers, args.ask.json, print)?;
    Ok(if answers.iter().all(|answer| answer["level"].is_string()) { Exit::Done } else { Exit::AtFault })
}

fn print(answer: &Value) -> std::io::Result<()> {
    let text = |key: &str| answer[key].as_str().map(|text| sanitize::line(text).into_owned());
    match (text("level"), text("before")) {
        (Some(level), Some(before)) if level != before => {
            terminal::print(&format!("process {}: {level}, {before} before\n", answer["pid"]))
        }
        (Some(level), _) => terminal::print(&format!("process {}: {level}\n", answer["pid"])),
        (None, _) => {
            reload::print_error(answer);
            Ok(())
        }
    }
}
