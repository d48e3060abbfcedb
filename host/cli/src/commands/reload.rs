//! `toolcell reload`: makes every process that serves a manifest reload it now, and prints the
//! outcome.
use std::collections::BTreeSet;

use serde_json::Value;
use toolcell_mcp::sanitize;
use toolcell_server::control::{Request, ask_all};

use crate::args::AskArgs;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Sends the request, waits, and prints the outcome.
pub fn run(args: &AskArgs) -> anyhow::Result<Exit> {
    let answers = ask_all(&args.control, &args.manifest.manifest, &Request::Reload).map_err(Failure::from)?;
    let shown = show(&answers, args.json)?;
    let held: BTreeSet<&str> = answers.iter().flat_map(held_back).collect();
    if held.is_empty() {
        return Ok(shown);
    }
    let names: Vec<&str> = held.into_iter().collect();
    let problem = format!("quarantined, as the lock has them otherwise: {}", names.join(", "));
    let hint = "`toolcell diff` shows how they differ, `toolcell approve NAME` takes one of them";
    Err(Failure::at_fault(sanitize::text(&problem), hint).into())
}

/// Prints answers of processes: as JSON, or each in its form for people.
pub fn print_all(answers: &[Value], json: bool, print: fn(&Value) -> std::io::Result<()>) -> std::io::Result<()> {
    if json {
        return terminal::print(&format!("{:#}\n", Value::from(answers)));
    }
    answers.iter().try_for_each(print)
}

/// Prints outcomes of attempts.
pub fn show(answers: &[Value], json: bool) -> anyhow::Result<Exit> {
    print_all(answers, json, print)?;
    let is_well = answers.iter().all(|answer| matches!(answer["outcome"].as_str(), Some("unchanged" | "replaced")));
    Ok(if is_well { Exit::Done } else { Exit::AtFault })
}

/// Components that a process holds back because they differ from its lock.
fn held_back(answer: &Value) -> impl Iterator<Item = &str> {
    answer["quarantined"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn print(answer: &Value) -> std::io::Result<()> {
    let text = |key: &str| sanitize::text(answer[key].as_str().unwrap_or_default()).into_owned();
    match answer["outcome"].as_str() {
        Some("unchanged") => terminal::print("unchanged: the files match what is served\n"),
        Some("replaced") => {
            let told = if answer["announced"] == true { "; clients are notified of the new list" } else { "" };
            terminal::print(&format!("generation {}: {}{told}\n", answer["generation"], text("summary")))
        }
        Some(_) => {
            terminal::error(&format!("not reloaded: {}", text("summary")), None);
            terminal::eprint(&text("drawn"));
            Ok(())
        }
        None => {
            print_error(answer);
            Ok(())
        }
    }
}

/// Prints the error that a process answered with, or that stands in the place of its answer.
pub fn print_error(answer: &Value) {
    let text = |key: &str| answer[key].as_str().map(sanitize::text);
    terminal::error(&text("error").unwrap_or_default(), text("hint").as_deref());
}
