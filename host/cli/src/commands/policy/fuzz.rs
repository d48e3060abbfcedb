//! `toolcell policy fuzz`: how wide each rule is. Requests around it are decided on, and none is
//! made.
use serde_json::{Value, json};
use toolcell_mcp::sanitize;
use toolcell_policy::{Fuzzed, NEIGHBOURS_MAX, WideRule, fuzz};

use super::evidence::ReadEvidence;
use super::narrow::CheckedManifest;
use crate::args::FuzzArgs;
use crate::exit::{Exit, Failure};
use crate::listed;
use crate::terminal::{self, counted};

/// Requests that are shown of one rule and kind; with `--json` there are more.
const SHOWN_MAX: usize = 4;

/// Prints the rules, the widest first.
pub fn run(args: &FuzzArgs) -> anyhow::Result<Exit> {
    let checked = CheckedManifest::read(&args.manifest.manifest)?;
    let only =
        args.name.as_deref().map(|name| name.split_once('/').map_or((name, None), |(own, tool)| (own, Some(tool))));
    if let Some((component, _)) = only.filter(|(component, _)| checked.manifest.component(component).is_none()) {
        let problem = format!("{} has no component {component:?}", checked.file.name());
        return Err(Failure::at_fault(problem, "name it as the manifest does, or a tool as COMPONENT/TOOL").into());
    }
    if let Some((component, Some(tool))) = only {
        listed::check_tool(&checked.file, component, tool)?;
    }
    let mut read = ReadEvidence::default();
    let audit = args.audit.clone().or_else(|| checked.audit());
    // Without evidence, all that a rule allows counts.
    if let Some(audit) = audit.filter(|audit| args.audit.is_some() || audit.exists()) {
        read.audit(&audit)?;
    }
    read.recordings(&checked.recordings());
    read.all_uses_of(&args.uses)?;
    let fuzzed = fuzz(&checked.manifest, &read.evidence, only);
    if args.json {
        terminal::print(&format!("{:#}\n", to_json(&checked, &read, &fuzzed)))?;
    } else {
        terminal::print(&shown(&checked, &read, &fuzzed))?;
    }
    Ok(read.exit)
}

fn shown(checked: &CheckedManifest, read: &ReadEvidence, fuzzed: &Fuzzed) -> String {
    let Fuzzed { rules, looked_at, tried, is_cut } = fuzzed;
    let them = if *looked_at == 1 { "it" } else { "them" };
    let allow = if rules.len() == 1 { "allows" } else { "allow" };
    let mut text = format!(
        "{}: {}, {} around {them}, {} known: {} {allow} what no call needs\n",
        checked.file.name(),
        counted(*looked_at, "rule"),
        counted(*tried, "request"),
        counted(read.evidence.all_calls(), "call"),
        counted(rules.len() as u64, "rule"),
    );
    if *is_cut {
        text.push_str(&format!("only the first {NEIGHBOURS_MAX} requests were tried: name a component\n"));
    }
    for rule in rules {
        let place = checked.place(rule.rule.span().start);
        let unused = if rule.is_used { "" } else { ", not used" };
        let requests = counted(rule.allowed, "request");
        let heading = format!("{} {}: {} ({place}{unused}): {requests}", whose(rule), rule.right, rule.rule);
        text.push_str(&format!("\n{}\n", sanitize::line(&heading)));
        // Requests of one kind stand together.
        for kind in rule.requests.chunk_by(|one, other| one.kind == other.kind) {
            for request in kind.iter().take(SHOWN_MAX) {
                text.push_str(&format!("  {:8}  {}\n", request.kind, sanitize::line(&request.asked)));
            }
            if let Some(more) = kind.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
                text.push_str(&format!("            and {more} more\n"));
            }
        }
    }
    text
}

fn whose(rule: &WideRule) -> String {
    rule.tool.as_ref().map_or_else(|| rule.component.clone(), |tool| format!("{}/{tool}", rule.component))
}

fn to_json(checked: &CheckedManifest, read: &ReadEvidence, fuzzed: &Fuzzed) -> Value {
    let source = checked.file.source();
    let row = |rule: &WideRule| {
        let requests: Vec<Value> =
            rule.requests.iter().map(|request| json!({"kind": request.kind, "ask": request.asked})).collect();
        let place = source.position(rule.rule.span().start);
        json!({
            "component": rule.component, "tool": rule.tool, "right": rule.right, "rule": rule.rule.text(),
            "file": source.name, "line": place.line, "used": rule.is_used, "allowed": rule.allowed,
            "requests": requests,
        })
    };
    json!({
        "rules_looked_at": fuzzed.looked_at,
        "requests": fuzzed.tried,
        "cut": fuzzed.is_cut,
        "calls": read.evidence.all_calls(),
        "rules": fuzzed.rules.iter().map(row).collect::<Vec<_>>(),
    })
}
