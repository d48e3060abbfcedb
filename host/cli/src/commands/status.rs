//! `toolcell status`: the state of the processes that serve a manifest.
use serde_json::Value;
use toolcell_mcp::sanitize;
use toolcell_server::control::{Request, ask_all};
use toolcell_server::{lock, shell};

use super::inspect::REGISTRY;
use crate::args::AskArgs;
use crate::commands::reload;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Sends the request and prints the answers.
pub fn run(args: &AskArgs) -> anyhow::Result<Exit> {
    let answers = ask_all(&args.control, &args.manifest.manifest, &Request::Status).map_err(Failure::from)?;
    if args.json {
        terminal::print(&format!("{:#}\n", Value::from(answers.clone())))?;
    } else {
        let (failed, shown): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| is_error(answer));
        terminal::print(&shown.into_iter().map(page).collect::<Vec<_>>().join("\n"))?;
        failed.into_iter().for_each(reload::print_error);
    }
    let is_well = |answer: &Value| {
        let held_back = components(answer).iter().any(|component| component["standing"] == HELD_BACK);
        !is_error(answer)
            && answer["failed"].is_null()
            && !fails_calls(answer)
            && empty(&answer["left_out"])
            && empty(&answer["quarantined"])
            && build_state(answer) != Some("failed")
            && !held_back
    };
    Ok(if answers.iter().all(is_well) { Exit::Done } else { Exit::AtFault })
}

/// Standings of a component with crashed sandboxes, as named in the status.
const APART: &str = "apart";
const HELD_BACK: &str = "held_back";

/// True of an answer without a status.
fn is_error(answer: &Value) -> bool {
    answer["error"].is_string()
}

fn components(status: &Value) -> &[Value] {
    status["components"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// True if a problem makes all calls fail.
fn fails_calls(status: &Value) -> bool {
    status["problems"].as_array().into_iter().flatten().any(|problem| problem["fails_calls"] == true)
}

/// The last build of a project, if there is one.
fn build_state(status: &Value) -> Option<&str> {
    status.pointer("/dev/state").and_then(Value::as_str)
}

fn empty(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}

/// State of one process, for people.
fn page(status: &Value) -> String {
    let style = terminal::stdout_style();
    let tools = status["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let components = components(status);
    let calls = &status["calls"];
    let mut text = format!(
        "{} {}\n  up {}, process {}\n  generation {}: components: {}, tools: {}\n  calls: {} running, {} waiting, {} started\n",
        terminal::bold("serving", style),
        line(&status["manifest"]),
        duration(status["uptime_s"].as_u64().unwrap_or_default()),
        status["pid"],
        status["generation"],
        components.len(),
        tools.len(),
        calls["running"],
        calls["waiting"],
        calls["started"],
    );
    text.push_str(&format!("  slots are reset: {}\n", line(&status["slot_resets"])));
    if let Some(hits) = status["limits_hit"].as_object().filter(|hits| !hits.is_empty()) {
        let hits: Vec<String> = hits.iter().map(|(limit, count)| format!("{limit} {count}")).collect();
        text.push_str(&format!("  limits hit: {}\n", hits.join(", ")));
    }
    for component in components.iter().filter(|component| line(&component["source"]).starts_with(REGISTRY)) {
        text.push_str(&format!("  component {}: {}\n", line(&component["name"]), line(&component["source"])));
        let signed = component["signed_by"].as_array().into_iter().flatten();
        signed.for_each(|signed| text.push_str(&format!("    {}\n", line(signed))));
    }
    for component in components {
        let standing = match component["standing"].as_str() {
            Some(APART) => "runs apart, since its calls ended its sandbox",
            Some(HELD_BACK) => {
                "held back, since its calls ended its sandbox again and again (`toolcell reload` lets it run)"
            }
            _ => continue,
        };
        text.push_str(&format!("  component {}: {}\n", line(&component["name"]), shell::named(standing)));
    }
    for problem in status["problems"].as_array().into_iter().flatten() {
        let then = if problem["fails_calls"] == true { ", so it is not ready" } else { "" };
        text.push_str(&format!(
            "  {}: {}{then}\n",
            terminal::bold("wrong", style),
            shell::named(&line(&problem["text"]))
        ));
    }
    let without: Vec<String> =
        status["walls_done_without"].as_array().into_iter().flatten().map(|wall| line(&wall["wall"])).collect();
    if !without.is_empty() {
        text.push_str(&format!("  walls that the manifest does without: {}\n", without.join(", ")));
    }
    push_lines(&mut text, "waits for the next start", &status["waits_for_start"]);
    push_lines(&mut text, "differs from the lock", &status["lock_differs"]);
    for held in status["quarantined"].as_array().into_iter().flatten() {
        let name = line(&held["component"]);
        let digest = line(&held["digest"]);
        let approving = lock::approving(&name, &digest, held["other_signers"] == true);
        text.push_str(&shell::named(&format!("  quarantined: {name} (`{approving}` serves it)\n")));
        let differences = held["differences"].as_array().into_iter().flatten();
        differences.for_each(|difference| text.push_str(&format!("    {}\n", shell::named(&line(difference)))));
    }
    for login in status["logins"].as_array().into_iter().flatten() {
        text.push_str(&format!("  login {}: {}\n", line(&login["name"]), line(&login["state"])));
    }
    let attempts = status.pointer("/reloads/last").and_then(Value::as_array);
    text.push_str(&reloads(attempts.map(Vec::as_slice).unwrap_or_default()));
    if let Some(failed) = status["failed"].as_object() {
        let summary = failed.get("summary").map(line).unwrap_or_default();
        text.push_str(&format!("  {}: {summary}\n", terminal::bold("not reloaded", style)));
        let drawn = failed.get("drawn").and_then(Value::as_str).unwrap_or_default();
        text.push_str(&sanitize::text(drawn));
    }
    if let Some(state) = build_state(status) {
        text.push_str(&format!("  project: {}\n", sanitize::line(state)));
        text.push_str(&sanitize::text(status.pointer("/dev/output").and_then(Value::as_str).unwrap_or_default()));
    }
    text
}

/// Most reloads shown; `--json` has all that are kept.
const RELOADS_SHOWN_MAX: usize = 8;

/// The last reloads, a line each. Consecutive ones with the same outcome share a line, with the
/// last time.
fn reloads(attempts: &[Value]) -> String {
    let outcome = |attempt: &Value| (attempt["replaced"].clone(), attempt["summary"].clone());
    let alike: Vec<&[Value]> = attempts.chunk_by(|one, next| outcome(one) == outcome(next)).collect();
    let mut text = String::new();
    for attempts in alike.get(alike.len().saturating_sub(RELOADS_SHOWN_MAX)..).unwrap_or_default() {
        let Some(last) = attempts.last() else { continue };
        let what = if last["replaced"] == true { "replaced" } else { "refused" };
        let times = if attempts.len() > 1 { format!(", {} times", attempts.len()) } else { String::new() };
        let time = line(&last["time"]);
        let trigger = line(&last["trigger"]);
        let summary = line(&last["summary"]);
        text.push_str(&format!("  {time} {what} ({trigger}{times}): {summary}\n"));
    }
    text
}

fn push_lines(text: &mut String, what: &str, list: &Value) {
    let shown: Vec<String> = list.as_array().into_iter().flatten().map(line).collect();
    if !shown.is_empty() {
        text.push_str(&format!("  {what}: {}\n", shown.join(", ")));
    }
}

fn line(value: &Value) -> String {
    match value.as_str() {
        Some(text) => sanitize::line(text).into_owned(),
        None => value.to_string(),
    }
}

fn duration(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reloads_with_one_outcome_are_one_line() {
        let attempt = |second: u32, replaced: bool, summary: &str| serde_json::json!({"time": format!("12:00:0{second}"), "trigger": "files", "replaced": replaced, "summary": summary});
        let attempts = [attempt(1, true, "a: new code"), attempt(2, false, "wrong"), attempt(3, false, "wrong")];
        let shown = "  12:00:01 replaced (files): a: new code\n  12:00:03 refused (files, 2 times): wrong\n";
        assert_eq!(reloads(&attempts), shown);
        let many: Vec<Value> = (0..20).map(|number| attempt(0, true, &format!("a{number}: new code"))).collect();
        assert_eq!(reloads(&many).lines().count(), RELOADS_SHOWN_MAX);
        assert!(reloads(&many).ends_with("a19: new code\n"));
    }

    #[test]
    fn durations_are_as_coarse_as_people_want_them() {
        let shown = [0, 59, 60, 3_600, 3_660, 90_000].map(duration);
        assert_eq!(shown, ["0 s", "59 s", "1 min", "1 h 0 min", "1 h 1 min", "1 d 1 h"]);
    }
}
