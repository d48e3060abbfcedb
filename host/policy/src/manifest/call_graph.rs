//! Which tools call which: rules that take no tool, tools that call themselves, and circles.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;

use crate::diagnostic::{Diagnostic, Span};
use crate::grants::{CallRule, Grants};
use crate::manifest::CODE;
use crate::names::meant_or;

/// Pairs of a tool and one that it may call, at most: a thousand tools that may call a thousand
/// others each.
const PAIRS_MAX: usize = 1_000_000;

/// Circles that are named at most. Who mends these mends most others.
const CIRCLES_MAX: usize = 20;

/// A tool, or another export that may call tools.
#[derive(Debug, Clone, Copy)]
pub struct CallingTool<'c> {
    /// Its name as clients see it. Of another export, any text of its own.
    pub name: &'c str,
    /// True if it is a tool, which others may call.
    pub is_tool: bool,
    /// All that it may reach.
    pub grants: &'c Grants,
}

/// Compares rules for calls with the tools there are. Each rule must take at least one of them, if
/// these are `all`; and no tool may reach itself.
#[must_use]
pub fn check_calls(tools: &[CallingTool<'_>], all: bool) -> Vec<Diagnostic> {
    let named: BTreeSet<&str> = tools.iter().filter(|tool| tool.is_tool).map(|tool| tool.name).collect();
    let calling: Vec<&CallingTool<'_>> = tools.iter().filter(|tool| !tool.grants.calls().is_empty()).collect();
    let mut problems = Vec::new();
    if all {
        problems.extend(unknown(&calling, &named));
    }
    problems.extend(circles(&calling, &named));
    problems
}

/// The names that a rule takes.
fn taken<'n>(rule: &CallRule, named: &BTreeSet<&'n str>) -> Vec<&'n str> {
    let from = named.range::<str, _>((Bound::Included(rule.name()), Bound::Unbounded)).copied();
    from.take_while(|name| rule.takes(name)).collect()
}

/// Rules that take no tool, each once.
fn unknown(calling: &[&CallingTool<'_>], named: &BTreeSet<&str>) -> Vec<Diagnostic> {
    let mut seen: HashSet<Span> = HashSet::new();
    let mut problems = Vec::new();
    // The component's own rules are those of its tools that narrow nothing.
    for rule in calling.iter().flat_map(|tool| tool.grants.calls()) {
        let span = rule.rule().span();
        if !seen.insert(span.clone()) {
            continue;
        }
        if taken(rule, named).is_empty() {
            let problem =
                Diagnostic::error("calls::unknown_tool", format!("there is no tool {:?}", rule.rule().text()));
            let otherwise = "write a name as `toolcell list` shows it, or its beginning and a star";
            problems.push(problem.at(span).hint(meant_or(rule.name(), named.iter().copied(), otherwise)));
        }
    }
    problems
}

/// The first tool of each circle, with the way back to it.
fn circles(calling: &[&CallingTool<'_>], named: &BTreeSet<&str>) -> Vec<Diagnostic> {
    let by_name: HashMap<&str, &CallingTool<'_>> = calling.iter().map(|tool| (tool.name, *tool)).collect();
    let mut walk =
        Walk { by_name, named, done: HashSet::new(), on_way: HashSet::new(), pairs: 0, problems: Vec::new() };
    for tool in calling {
        if walk.problems.len() >= CIRCLES_MAX {
            break;
        }
        if !walk.from(tool) {
            let message = format!("`calls` names more than {PAIRS_MAX} pairs of tools");
            let span = tool.grants.calls().first().map(|rule| rule.rule().span()).unwrap_or_default();
            walk.problems.push(Diagnostic::error("calls::too_many", message).at(span).hint("name fewer tools"));
            break;
        }
    }
    walk.problems
}

/// A walk along calls, each tool once.
struct Walk<'w, 'c> {
    by_name: HashMap<&'c str, &'w CallingTool<'c>>,
    named: &'w BTreeSet<&'c str>,
    done: HashSet<&'c str>,
    /// The tools of the way that is walked.
    on_way: HashSet<&'c str>,
    pairs: usize,
    problems: Vec<Diagnostic>,
}

/// A tool on the way, and those it may call that were not looked at yet, each with its rule.
struct Step<'c> {
    tool: &'c str,
    left: Vec<(&'c str, Span)>,
}

impl<'c> Walk<'_, 'c> {
    /// Walks from a tool. False if there is more than anybody can look at.
    fn from(&mut self, tool: &CallingTool<'c>) -> bool {
        if self.done.contains(tool.name) {
            return true;
        }
        let mut way = vec![self.step(tool)];
        while let Some(step) = way.last_mut() {
            let Some((next, span)) = step.left.pop() else {
                self.done.insert(step.tool);
                self.on_way.remove(step.tool);
                way.pop();
                continue;
            };
            if self.on_way.contains(next) {
                let circle: Vec<&str> = way.iter().map(|step| step.tool).skip_while(|tool| *tool != next).collect();
                self.problems.push(circle_problem(&circle, span));
                if self.problems.len() >= CIRCLES_MAX {
                    return true;
                }
                continue;
            }
            let Some(next) = self.by_name.get(next).copied().filter(|next| !self.done.contains(next.name)) else {
                continue;
            };
            way.push(self.step(next));
            if self.pairs > PAIRS_MAX {
                return false;
            }
        }
        self.pairs <= PAIRS_MAX
    }

    fn step(&mut self, tool: &CallingTool<'c>) -> Step<'c> {
        let mut left: Vec<(&'c str, Span)> = Vec::new();
        for rule in tool.grants.calls() {
            // A star of scripts takes every tool but their own, which the host refuses anyway.
            let is_script = tool.grants.subject().component() == CODE && rule.takes_more();
            let taken = taken(rule, self.named).into_iter().filter(|name| !is_script || *name != tool.name);
            left.extend(taken.map(|name| (name, rule.rule().span())));
            if left.len() > PAIRS_MAX {
                break;
            }
        }
        self.pairs = self.pairs.saturating_add(left.len());
        self.on_way.insert(tool.name);
        Step { tool: tool.name, left }
    }
}

fn circle_problem(circle: &[&str], span: Span) -> Diagnostic {
    let (message, hint) = match circle {
        [tool] => (
            format!("the tool {tool:?} may call itself"),
            "name other tools, or give the tool a `calls` of its own that leaves it out".to_owned(),
        ),
        tools => {
            let first = tools.first().copied().unwrap_or_default();
            let way: Vec<&str> = tools.iter().copied().chain([first]).collect();
            let hint = "take one of them out of a `calls`".to_owned();
            (format!("tools may call each other in a circle: {}", way.join(" → ")), hint)
        }
    };
    Diagnostic::error("calls::circle", message).at(span).hint(hint)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{Source, parse};

    /// The problems of components `NAME = calls`, each with one tool of that name.
    fn problems(components: &[(&str, &str)]) -> Vec<String> {
        let table = |(name, calls): &(&str, &str)| format!("[components.{name}]\nsource = 'x.wasm'\ncalls = {calls}\n");
        let text = format!("version = 1\n{}", components.iter().map(table).collect::<String>());
        let manifest = parse(&Source { name: "m.toml", text: &text }).unwrap().manifest;
        let tools: Vec<_> = manifest.components().iter().collect();
        let tools: Vec<_> =
            tools.iter().map(|tool| CallingTool { name: tool.name(), is_tool: true, grants: tool.grants() }).collect();
        check_calls(&tools, true).iter().map(|problem| problem.message().to_owned()).collect()
    }

    #[test]
    fn each_rule_takes_a_tool_and_no_tool_reaches_itself() {
        for (components, expected) in [
            (vec![("a", "['b', 'c*']"), ("b", "[]"), ("c1", "['b']")], vec![]),
            (vec![("a", "['x']")], vec!["there is no tool \"x\""]),
            (vec![("a", "['x*']")], vec!["there is no tool \"x*\""]),
            (vec![("a", "['a']")], vec!["the tool \"a\" may call itself"]),
            (vec![("a", "['*']")], vec!["the tool \"a\" may call itself"]),
            (
                vec![("a", "['b']"), ("b", "['c']"), ("c", "['a']")],
                vec!["tools may call each other in a circle: a → b → c → a"],
            ),
            (
                vec![("a", "['b', 'c']"), ("b", "['d']"), ("c", "['d']"), ("d", "['b']")],
                vec!["tools may call each other in a circle: d → b → d"],
            ),
        ] {
            let found = problems(&components);
            let found: Vec<&str> = found.iter().map(String::as_str).collect();
            assert_eq!(found.len(), expected.len(), "{components:?}: {found:?}");
            assert!(expected.iter().all(|text| found.contains(text)), "{components:?}: {found:?}");
        }
    }

    #[test]
    fn tools_that_may_call_each_other_by_the_thousand_are_looked_at_in_bounded_time() {
        let names: Vec<String> = (0..400).map(|number| format!("t{number:03}")).collect();
        let components: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "['t*']")).collect();
        assert_eq!(problems(&components).len(), CIRCLES_MAX);
    }

    #[test]
    fn a_long_way_without_a_circle_is_walked_once() {
        let names: Vec<String> = (0..200).map(|number| format!("t{number:03}")).collect();
        // Each may call all after it: about as many pairs as can be, and the longest way.
        let calls: Vec<String> = (0..200).map(|at| format!("{:?}", names.get(at + 1..).unwrap())).collect();
        let components: Vec<(&str, &str)> = names.iter().zip(&calls).map(|(name, calls)| (&**name, &**calls)).collect();
        assert!(problems(&components).is_empty());
    }
}
