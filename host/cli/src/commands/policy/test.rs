//! `toolcell policy test`: checks a table of expectations against the manifest.
use serde_json::{Value, json};
use toolcell_mcp::Caller;
use toolcell_policy::{Ask, Diagnostic, Expectation, ExpectationResult, parse_expectations, render_all};
use toolcell_server::ManifestFile;

use super::subjects::{AskedAnswer, Subjects};
use crate::args::PolicyTestArgs;
use crate::exit::Exit;
use crate::terminal;

/// Checks every expectation and prints the ones that fail.
pub fn run(args: &PolicyTestArgs) -> anyhow::Result<Exit> {
    let file = match ManifestFile::read(&args.file) {
        Ok(file) => file,
        Err(problem) => {
            terminal::error(&problem, Some("name a file of [[expect]] tables: toolcell policy test --help"));
            return Ok(Exit::AtFault);
        }
    };
    let source = file.source();
    let expectations = match parse_expectations(&source) {
        Ok(expectations) => expectations,
        Err(problems) => {
            terminal::eprint(&render_all(&source, &problems, terminal::stderr_style()));
            return Ok(Exit::AtFault);
        }
    };
    let Some(mut subjects) = Subjects::open_or_report(&args.manifest.manifest, &args.code) else {
        return Ok(Exit::AtFault);
    };
    let mut results = Vec::with_capacity(expectations.len());
    for expectation in &expectations {
        if let ask @ Ask::Call(_) = expectation.ask() {
            let scopes = expectation.scopes().iter().map(String::as_str);
            let caller = Caller::new(expectation.caller().unwrap_or("local"), scopes);
            let answer = match subjects.call(expectation.tool(), ask, &caller)? {
                AskedAnswer::Answer(answer) => Some(answer),
                AskedAnswer::NoTool => None,
                AskedAnswer::Broken => return Ok(Exit::AtFault),
            };
            results.push(expectation.compare(answer));
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
