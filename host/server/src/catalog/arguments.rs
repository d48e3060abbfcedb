//! Conditions on arguments, compiled with the manifest that they stand in. Must not hold: when a
//! call meets them (see `call::arguments`).
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use toolcell_mcp::{Caller, McpTool, NarrowedArgument, Patience, parse_arguments};
use toolcell_policy::{
    ArgumentCondition, ArgumentConditions, Ask, Callable, Callers, ComponentPolicy, Diagnostic, Explanation, Manifest,
    ToolName,
};
use toolcell_schema::{CheckSteps, DefinitionProblem, Schema, SchemaBudget};

/// Time to compile all conditions of a manifest. Two thousand patterns take a second.
const COMPILED_WITHIN: Duration = Duration::from_secs(10);

/// Conditions that a refusal names. A model mends a few at a time.
const REFUSALS_MAX: usize = 8;

/// Conditions of one rule that are checked in passing.
const SHORT_MAX: usize = 8;

/// Keywords at the root of a schema by which it may have more arguments than it lists.
const FURTHER: [&str; 6] = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties", "if"];

/// The conditions of one rule on one tool's arguments, compiled.
pub struct ArgumentChecks {
    conditions: Arc<ArgumentConditions>,
    /// One for each condition.
    schemas: Vec<Schema>,
}

/// The rules for callers, with their conditions compiled.
pub struct CallerRules {
    callers: Callers,
    /// By component and tool, each with the number of its rule.
    checks: HashMap<String, HashMap<String, Vec<NumberedChecks>>>,
}

struct NumberedChecks {
    rule: usize,
    checks: ArgumentChecks,
}

impl Deref for CallerRules {
    type Target = Callers;

    fn deref(&self) -> &Callers {
        &self.callers
    }
}

impl CallerRules {
    /// Compiles the conditions. With a problem no generation may be served under these rules.
    #[must_use]
    pub fn compile(callers: &Callers) -> (Self, Vec<Diagnostic>) {
        let mut budget = budget();
        let mut problems = Vec::new();
        let mut checks: HashMap<String, HashMap<String, Vec<NumberedChecks>>> = HashMap::new();
        for (rule, conditions) in
            callers.rules().iter().enumerate().flat_map(|(rule, it)| it.arguments().iter().map(move |it| (rule, it)))
        {
            match ArgumentChecks::compile(conditions, &mut budget) {
                Ok(compiled) => {
                    let of_component = checks.entry(conditions.component().to_owned()).or_default();
                    let of_tool = of_component.entry(conditions.tool().to_owned()).or_default();
                    of_tool.push(NumberedChecks { rule, checks: compiled });
                }
                Err(found) => problems.extend(found),
            }
        }
        (Self { callers: callers.clone(), checks }, problems)
    }

    /// The conditions that this caller meets at a tool: those of every rule that holds for it.
    pub(crate) fn checks<'r>(&'r self, caller: &Caller, tool: &ToolName<'_>) -> Vec<&'r ArgumentChecks> {
        let Some(of_tool) = self.checks.get(tool.component).and_then(|of| of.get(tool.own)) else { return Vec::new() };
        let rights = self.callers.rights(caller.name(), caller.scopes());
        let holds = |rule: usize| rights.rules().any(|(number, _)| number == rule);
        of_tool.iter().filter(|numbered| holds(numbered.rule)).map(|numbered| &numbered.checks).collect()
    }
}

/// The budget for the conditions of one manifest.
pub(crate) fn budget() -> SchemaBudget {
    SchemaBudget::within(COMPILED_WITHIN)
}

impl ArgumentChecks {
    /// Compiles the conditions of one rule.
    ///
    /// # Errors
    /// Every problem of their schemas.
    pub fn compile(conditions: &Arc<ArgumentConditions>, budget: &mut SchemaBudget) -> Result<Self, Vec<Diagnostic>> {
        let mut schemas = Vec::with_capacity(conditions.conditions().len());
        let mut problems = Vec::new();
        for condition in conditions.conditions() {
            match compiled(condition, budget) {
                Ok(schema) => schemas.push(schema),
                Err(found) => problems.extend(found.iter().map(|problem| unusable(condition, problem))),
            }
        }
        if problems.is_empty() { Ok(Self { conditions: Arc::clone(conditions), schemas }) } else { Err(problems) }
    }

    /// Conditions on arguments that the tool does not have, or that have another type there: they
    /// would refuse every call, or none.
    #[must_use]
    pub fn never(conditions: &ArgumentConditions, tool: &McpTool) -> Vec<Diagnostic> {
        let schema = &tool.definition().input_schema;
        let may_have_more = FURTHER.iter().any(|keyword| schema.get(keyword).is_some());
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
        if may_have_more || properties.is_empty() && schema.get("additionalProperties") != Some(&Value::Bool(false)) {
            return Vec::new();
        }
        let of = format!("{}/{}", conditions.component(), conditions.tool());
        let problem = |condition: &ArgumentCondition| {
            let name = condition.name();
            let Some(property) = properties.get(name) else {
                let known: Vec<&str> = properties.keys().map(String::as_str).collect();
                let problem = Diagnostic::error("arguments::unknown", format!("{of} has no argument {name:?}"));
                return Some(problem.at(condition.span().clone()).hint(format!("it has {}", known.join(", "))));
            };
            let is = property.get("type").and_then(Value::as_str)?;
            let wanted = condition.schema().get("type").and_then(Value::as_str)?;
            let fits = is == wanted || [is, wanted].iter().all(|ty| matches!(*ty, "integer" | "number"));
            let message = format!("{name} of {of} is of type {is}, and the condition is for type {wanted}");
            (!fits).then(|| Diagnostic::error("arguments::never", message).at(condition.span().clone()))
        };
        conditions.conditions().iter().filter_map(problem).collect()
    }

    /// The conditions.
    #[must_use]
    pub fn conditions(&self) -> &Arc<ArgumentConditions> {
        &self.conditions
    }

    /// The conditions, for the schema that clients see.
    pub(crate) fn narrowing(&self) -> impl Iterator<Item = NarrowedArgument<'_>> {
        self.conditions.conditions().iter().map(|condition| NarrowedArgument {
            name: condition.name(),
            schema: condition.schema(),
            required: !condition.optional(),
        })
    }

    /// True if checking this text may take longer than a thread with other duties can spare.
    pub(crate) fn take_long(&self, text: &str) -> bool {
        self.schemas.len() > SHORT_MAX || self.schemas.iter().any(|schema| schema.is_long(text))
    }

    /// The conditions that these arguments do not fit, one line each, which names the rule.
    fn refusals<'c>(
        &'c self,
        arguments: &'c Map<String, Value>,
        steps: &'c mut CheckSteps,
    ) -> impl Iterator<Item = String> + 'c {
        let each = self.conditions.conditions().iter().zip(&self.schemas);
        each.filter_map(move |(condition, schema)| {
            let problem = match arguments.get(condition.name()) {
                None if condition.optional() => return None,
                None => " (it is missing)".to_owned(),
                Some(value) => said(condition, &schema.check_within(value, steps, &Patience::default()).err()?),
            };
            let section = self.conditions.section();
            Some(format!("- {}: must fit {} in [{section}]{problem}", condition.name(), condition.line()))
        })
    }
}

/// What a condition that is not a pattern asks, in the words of its check.
fn said(condition: &ArgumentCondition, problems: &toolcell_schema::ArgumentProblems) -> String {
    let is_pattern = !condition.line().ends_with('}');
    match problems.problems.first() {
        Some(problem) if !is_pattern => format!(" ({}{})", place(&problem.path), problem.rule),
        _ => String::new(),
    }
}

fn place(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path} ") }
}

/// The text of a refusal, if these arguments do not fit every condition.
#[must_use]
pub fn refusal<'c>(checks: impl IntoIterator<Item = &'c ArgumentChecks>, arguments: &str) -> Option<String> {
    let lines = match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(arguments) => {
            let mut steps = CheckSteps::default();
            let mut lines: Vec<String> = Vec::new();
            for checks in checks {
                let room = REFUSALS_MAX.saturating_sub(lines.len());
                lines.extend(checks.refusals(&arguments, &mut steps).take(room));
            }
            lines
        }
        Err(_) => vec!["- they cannot be read".to_owned()],
    };
    (!lines.is_empty()).then(|| format!("The arguments are not allowed here:\n{}", lines.join("\n")))
}

/// A call that a person asks about.
#[derive(Clone, Copy)]
pub struct AskedCall<'a> {
    /// The tool's component.
    pub component: &'a ComponentPolicy,
    /// The tool's own name, without prefix.
    pub tool: &'a str,
    /// Who would make it.
    pub caller: &'a Caller,
    /// A JSON object.
    pub arguments: &'a str,
}

/// Whether the manifest's rules allow a call, and which rule decides. The tool's own schema is not
/// applied.
///
/// # Errors
/// The problems of conditions that do not compile.
pub fn explain_call(manifest: &Manifest, ask: &Ask, call: AskedCall<'_>) -> Result<Explanation, Vec<Diagnostic>> {
    let AskedCall { component, tool, caller, arguments } = call;
    let (rules, mut problems) = CallerRules::compile(manifest.callers());
    let own = component.tool(tool).and_then(|policy| policy.arguments());
    let own = own.map(|conditions| ArgumentChecks::compile(conditions, &mut budget())).transpose();
    let own = own.unwrap_or_else(|found| {
        problems.extend(found);
        None
    });
    if !problems.is_empty() {
        return Err(problems);
    }
    let exposed = component.exposed_name(tool).unwrap_or_default();
    let name = ToolName { kind: Callable::Tool, component: component.name(), own: tool, exposed: &exposed };
    let rights = rules.rights(caller.name(), caller.scopes());
    let rule = rights.rules().map(|(_, rule)| rule).find(|rule| rule.takes(&name));
    let checks: Vec<&ArgumentChecks> = own.iter().chain(rules.checks(caller, &name)).collect();
    let refused = if !rights.take(&name) {
        Some(format!("no rule in [callers] lets {:?} call this tool", caller.name()))
    } else {
        match parse_arguments(arguments.to_owned()) {
            Ok(arguments) => refusal(checks.iter().copied(), arguments.get()),
            Err(refusal) => Some(refusal.to_string()),
        }
    };
    let met = checks.iter().flat_map(|checks| {
        let conditions = checks.conditions();
        let note = |it: &ArgumentCondition| format!("{} in [{}] holds", it.line(), conditions.section());
        conditions.conditions().iter().map(note)
    });
    let notes = if refused.is_some() { Vec::new() } else { met.collect() };
    Ok(Explanation::of_call(ask, rule, refused, notes))
}

fn compiled(condition: &ArgumentCondition, budget: &mut SchemaBudget) -> Result<Schema, Vec<DefinitionProblem>> {
    let schema = Schema::compile(condition.name(), condition.schema(), &budget.bounds())?;
    // A pattern that is left out would let every text pass.
    if !schema.unapplied().is_empty() {
        let refused = |place: &String| {
            let message = "has look-around or a back-reference or is too large, and cannot be applied";
            DefinitionProblem::new(place.as_str(), message)
        };
        return Err(schema.unapplied().iter().map(refused).collect());
    }
    budget.take(schema.bytes());
    Ok(schema)
}

fn unusable(condition: &ArgumentCondition, problem: &DefinitionProblem) -> Diagnostic {
    let diagnostic = Diagnostic::error("arguments::schema", format!("{}: {}", problem.field, problem.message));
    let diagnostic = diagnostic.at(condition.span().clone());
    match &problem.hint {
        Some(hint) => diagnostic.hint(hint.as_str()),
        None => diagnostic,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use std::time::Instant;

    use toolcell_mcp::ToolDefinition;
    use toolcell_policy::{Source, parse};

    use super::*;

    fn rules(text: &str) -> CallerRules {
        let (rules, problems) = compile(text);
        assert_eq!(problems, Vec::<String>::new(), "{text}");
        rules
    }

    fn compile(text: &str) -> (CallerRules, Vec<String>) {
        let text = format!("version = 1\n[http]\ntokens = 't'\n[components.g]\nsource = 'g.wasm'\n{text}");
        let parsed = parse(&Source { name: "test", text: &text }).unwrap();
        let (rules, problems) = CallerRules::compile(parsed.manifest.callers());
        (rules, problems.iter().map(|problem| problem.message().to_owned()).collect())
    }

    fn refused(rules: &CallerRules, scopes: &[&str], arguments: &str) -> Option<String> {
        let caller = Caller::new("ann", scopes.iter().copied());
        let tool = ToolName { kind: Callable::Tool, component: "g", own: "issue", exposed: "issue" };
        refusal(rules.checks(&caller, &tool), arguments)
    }

    const ONE: &str = "[callers.dev]\nscopes = ['dev']\ntools = ['g/*']\n[callers.dev.arguments.'g/issue']\n";

    #[test]
    fn a_pattern_takes_the_whole_text_and_nothing_else() {
        let rules = rules(&format!("{ONE}repo = 'sandbox-*'\n"));
        let allows = |arguments: &str| refused(&rules, &["dev"], arguments).is_none();
        for arguments in
            [r#"{"repo":"sandbox-"}"#, r#"{"repo":"sandbox-1","other":7}"#, r#"{"re\u0070o":"\u0073andbox-é"}"#]
        {
            assert!(allows(arguments), "{arguments}");
        }
        for arguments in [
            "{}",
            r#"{"repo":null}"#,
            r#"{"repo":7}"#,
            r#"{"repo":["sandbox-1"]}"#,
            r#"{"repo":{"sandbox-":1}}"#,
            r#"{"repo":"prod"}"#,
            r#"{"repo":"Sandbox-1"}"#,
            r#"{"repo":"x-sandbox-1"}"#,
            r#"{"repo":"sandbox-1/../prod"}"#,
            r#"{"repo":"sandbox-1\nprod"}"#,
            r#"{"repo":"prod\nsandbox-1"}"#,
            r#"{"repo":"sandbox-1\n"}"#,
            r#"{"repo":"ѕandbox-1"}"#,
            r#"{"Repo":"sandbox-1"}"#,
        ] {
            assert!(!allows(arguments), "{arguments}");
        }
        assert_eq!(
            refused(&rules, &["dev"], r#"{"repo":"prod"}"#).unwrap(),
            "The arguments are not allowed here:\n- repo: must fit repo = \"sandbox-*\" in [callers.dev.arguments.\"g/issue\"]"
        );
        assert!(refused(&rules, &["dev"], "{}").unwrap().ends_with("(it is missing)"));
    }

    #[test]
    fn a_schema_is_for_values_of_its_type_alone() {
        let rules = rules(&format!("{ONE}amount = {{ maximum = 1500, optional = true }}\n"));
        let allows = |arguments: &str| refused(&rules, &["dev"], arguments).is_none();
        for arguments in ["{}", r#"{"amount":1500}"#, r#"{"amount":1.5e3}"#, r#"{"amount":1500.0}"#, r#"{"amount":-1}"#]
        {
            assert!(allows(arguments), "{arguments}");
        }
        for arguments in [
            r#"{"amount":1501}"#,
            r#"{"amount":1500.5}"#,
            r#"{"amount":"99999"}"#,
            r#"{"amount":[99999]}"#,
            r#"{"amount":null}"#,
            r#"{"amount":18446744073709551616}"#,
        ] {
            assert!(!allows(arguments), "{arguments}");
        }
        let text = refused(&rules, &["dev"], r#"{"amount":1501}"#).unwrap();
        assert!(text.ends_with("[callers.dev.arguments.\"g/issue\"] (must be at most 1500)"), "{text}");
    }

    #[test]
    fn every_condition_of_every_rule_of_the_caller_holds() {
        let rules = rules(
            "[callers.dev]\nscopes = ['dev']\ntools = ['g/*']\n[callers.dev.arguments.'g/issue']\nrepo = 'a*'\n\
             [callers.ops]\nscopes = ['ops']\ntools = ['g/*']\n[callers.ops.arguments.'g/issue']\nrepo = '*b'\n\
             [callers.all]\nscopes = ['all']\ntools = ['*']\n",
        );
        let allows = |scopes: &[&str], repo: &str| refused(&rules, scopes, &format!("{{\"repo\":{repo:?}}}")).is_none();
        assert!(allows(&["dev"], "ax") && !allows(&["dev"], "xb"));
        assert!(allows(&["ops"], "xb") && !allows(&["ops"], "ax"));
        // A rule without conditions takes none away.
        assert!(allows(&["all"], "x") && !allows(&["all", "dev"], "x"));
        assert!(allows(&["dev", "ops", "all"], "ab") && !allows(&["dev", "ops"], "a"));
    }

    #[test]
    fn a_condition_that_cannot_be_applied_is_a_problem_at_load() {
        for (condition, expected) in [
            ("repo = { pattern = '(?=a)' }", "has look-around or a back-reference"),
            ("repo = { pattern = '(' }", "is not a regular expression"),
            ("repo = { pattern = '[a-z]{1000}{1000}' }", "is too large, and cannot be applied"),
        ] {
            let (_, problems) = compile(&format!("{ONE}{condition}\n"));
            assert!(problems.len() == 1 && problems[0].contains(expected), "{condition}: {problems:?}");
        }
    }

    #[test]
    fn arguments_that_cost_much_are_refused_in_bounded_time() {
        let many: String = (0..64)
            .map(|number| format!("a{number} = {{ pattern = '^[01]*1[01]{{1900}}2', optional = true }}\n"))
            .collect();
        let (rules, problems) = compile(&format!("{ONE}{many}"));
        assert!(problems.is_empty() || problems[0].contains("memory"), "{problems:?}");
        let arguments: Vec<String> =
            (0..64).map(|number| format!("\"a{number}\":\"{}\"", "01".repeat(8_000))).collect();
        let began = Instant::now();
        let text = refused(&rules, &["dev"], &format!("{{{}}}", arguments.join(",")));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert_eq!(text.is_some(), problems.is_empty());
    }

    #[test]
    fn conditions_on_arguments_that_a_tool_does_not_have_are_found() {
        let rules = rules(&format!("{ONE}rep = 'a*'\namount = 'x'\nfree = 'y'\n"));
        let caller = Caller::new("ann", ["dev"]);
        let name = ToolName { kind: Callable::Tool, component: "g", own: "issue", exposed: "issue" };
        let checks = rules.checks(&caller, &name);
        let never = |schema: Value| {
            let tool = McpTool::checked_elsewhere(
                ToolDefinition::new("issue", "d", schema),
                toolcell_schema::ToolFindings::default(),
            )
            .unwrap();
            let found = ArgumentChecks::never(checks[0].conditions(), &tool);
            found.iter().map(|problem| problem.message().to_owned()).collect::<Vec<_>>()
        };
        let properties = serde_json::json!({"repo": {"type": "string"}, "amount": {"type": "integer"}, "free": {}});
        assert_eq!(
            never(serde_json::json!({"type": "object", "properties": properties})),
            [
                "g/issue has no argument \"rep\"",
                "amount of g/issue is of type integer, and the condition is for type string"
            ]
        );
        assert_eq!(never(serde_json::json!({"type": "object"})), Vec::<String>::new());
    }
}
