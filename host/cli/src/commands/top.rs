//! `toolcell top`: calls, denials and approvals of serving processes, on a terminal.
use std::io::IsTerminal as _;

use serde_json::Value;
use toolcell_policy::Style;

use crate::args::TopArgs;
use crate::exit::{Exit, Failure};
use crate::logging::escaped;
use crate::terminal;
use crate::top::{self, Processes, Seen};

/// Asks once and prints the answers, or runs until the person quits.
pub fn run(args: &TopArgs) -> anyhow::Result<Exit> {
    let processes = Processes { control: args.ask.control.clone(), manifest: args.ask.manifest.manifest.clone() };
    let answers = processes.answers().map_err(Failure::from)?;
    if args.ask.json {
        let answers = answers.into_iter().map(|(_, answer)| answer.unwrap_or_else(|error| error.answer()));
        return print_json(answers.collect());
    }
    let seen = Seen::of(answers);
    if seen.processes.is_empty() {
        seen.problems.iter().for_each(|problem| terminal::error(problem, None));
        return Ok(Exit::AtFault);
    }
    let is_seen = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if args.once || !is_seen {
        seen.problems.iter().for_each(|problem| terminal::warning(problem));
        terminal::print(&top::page(&seen))?;
        return Ok(Exit::Done);
    }
    top::run(processes, seen, terminal::stdout_style() == Style::Color)
}

fn print_json(answers: Vec<Value>) -> anyhow::Result<Exit> {
    let is_well = answers.iter().any(|answer| answer["error"].is_null());
    let text = format!("{:#}\n", Value::from(answers));
    terminal::print(&escaped(&text, false).unwrap_or(text))?;
    Ok(if is_well { Exit::Done } else { Exit::AtFault })
}
