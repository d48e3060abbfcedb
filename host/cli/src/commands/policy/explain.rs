//! `toolcell policy explain`: prints whether a tool may do something, and the line that decides.
use serde_json::{Value, json};
use toolcell_mcp::Caller;
use toolcell_policy::{Ask, Explanation, Source};

use super::subjects::Subjects;
use crate::args::ExplainArgs;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Prints the answer. A denial is an answer like a permission; only an unanswerable question is an
/// error.
pub fn run(args: &ExplainArgs) -> anyhow::Result<Exit> {
    let ask = Ask::of_person(&args.ask).map_err(|error| Failure::usage(error.to_string(), error.hint()))?;
    let mut subjects = Subjects::open(&args.manifest.manifest, &args.code)?;
    let answer = match &ask {
        Ask::Call(_) => {
            let caller = Caller::new(&args.caller, args.scopes.iter().map(String::as_str));
            subjects.call(&args.tool, &ask, &caller)?
        }
        _ => subjects.grants(&args.tool)?.map(|grants| grants.explain(&ask)),
    };
    let Some(explanation) = answer else {
        let message = format!("{} has no tool {:?}", subjects.file.name(), args.tool);
        return Err(Failure::at_fault(message, "name it as `toolcell list` shows it, or as COMPONENT/TOOL").into());
    };
    let explanation = without_useless_lines(explanation, &mut subjects)?;
    let source = subjects.file.source();
    if args.json {
        terminal::print(&format!("{:#}\n", to_json(&args.tool, &explanation, &source)))?;
    } else {
        terminal::print(&format!("{}\n", explanation.render(&source)))?;
    }
    Ok(Exit::Done)
}

/// The answer without lines that the component cannot use: a manifest with them does not load.
fn without_useless_lines(explanation: Explanation, subjects: &mut Subjects<'_>) -> anyhow::Result<Explanation> {
    let denial = explanation.denial().filter(|denial| denial.allow().is_some());
    let Some(component) = denial.map(|denial| denial.subject().component().to_owned()) else { return Ok(explanation) };
    Ok(match subjects.imports(&component)? {
        Some(imports) => explanation.for_imports(imports),
        None => explanation,
    })
}

fn to_json(tool: &str, explanation: &Explanation, source: &Source<'_>) -> Value {
    let rule = explanation.rule().map(|rule| {
        let place = source.position(rule.span().start);
        json!({"text": rule.text(), "file": source.name, "line": place.line, "column": place.column})
    });
    let denial = explanation.denial().map(|denial| {
        let allows: Vec<Value> =
            denial.allows().iter().map(|allow| json!({"section": allow.section(), "line": allow.line()})).collect();
        json!({"text": denial.to_string(), "capability": denial.capability().name(), "allowed_by": allows})
    });
    json!({
        "tool": tool,
        "ask": explanation.asked(),
        "allowed": explanation.is_allowed(),
        "rule": rule,
        "denial": denial,
        "refusal": explanation.refusal(),
        "notes": explanation.notes(),
    })
}
