//! `toolcell policy test`: checks a table of expectations against the manifest.
use serde_json::{Value, json};
use toolcell_mcp::Caller;
use toolcell_policy::{Ask, Diagnostic, Expectation, ExpectationResult, parse_expectations, render_all};
use toolcell_server::ManifestFile;

use super::subjects::Subjects;
use crate::args::PolicyTestArgs;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Checks every expectation and prints the ones that fail.
pub fn run(args: &PolicyTestArgs) -> anyhow::Result<Exit> {
    let hint = "name a file of [[expect]] tables: toolcell policy test --help";
    let file = ManifestFile::read(&args.file).map_err(|problem| Failure::at_fault(problem, hint))?;
    let source = file.source();
    let expectations = parse_expectations(&source).map_err(|problems| {
        terminal::eprint(&render_all(&source, &problems, terminal::stderr_style()));
        Failure::said(Exit::AtFault)
    })?;
    let mut subjects = Subjects::open(&args.manifest.manifest, &args.code)?;
    let mut results = Vec::with_capacity(expectations.len());
    for expectation in &expectations {
        if let ask @ Ask::Call(_) = expectation.ask() {
            let scopes = expectation.scopes().iter().map(String::as_str);
            let caller = Caller::new(expectation.caller().unwrap_or("local"), scopes);
            results.push(expectation.compare(subjects.call(expectation.tool(), ask, &caller)?));
            continue;
        }
        let grants = subjects.grants(expectation.tool())?;
        results.push(expectation.check(grants.as_ref()));
    }
    let differing: Vec<Diagnostic> = results.iter().filter_map(|result| result.problem().cloned()).collect();
    if args.json {
        let rows: Vec<Value> = expectations.iter().zip(&results).map(|(asked, came)| row(asked, came)).collect();
        let problems: Vec<Value> = differing.iter().map(|problem| problem.to_json(&source)).collect();
        let report = json!({"ok": differing.is_empty(), "expectations": rows, "problems": problems});
        terminal::print(&format!("{report:#}\n"))?;
    } else {
        terminal::eprint(&render_all(&source, &differing, terminal::stderr_style()));
        let met = results.len() - differing.len();
        terminal::print(&format!("{}: {met} of {} expectations met\n", source.name, results.len()))?;
    }
    Ok(if differing.is_empty() { Exit::Done } else { Exit::AtFault })
}

fn row(expectation: &Expectation, result: &ExpectationResult) -> Value {
    json!({
        "tool": expectation.tool(),
        "ask": expectation.ask().to_string(),
        "expected": expectation.allowed(),
        "allowed": result.explanation().map(toolcell_policy::Explanation::is_allowed),
        "met": result.is_met(),
    })
}
