//! Tools that the manifest makes of a program.
use std::sync::Arc;

use toolcell_policy::{ComponentPolicy, Diagnostic, InstancePolicy, Program};
use toolcell_sandbox::{HeldComponent, ShapeName, contract};

/// The tools that the manifest makes of a program, as if it had listed them; none for any other
/// component.
pub fn tools(policy: &ComponentPolicy, component: &HeldComponent) -> Vec<contract::GuestTool> {
    let json =
        |schema: &serde_json::Map<String, serde_json::Value>| serde_json::Value::Object(schema.clone()).to_string();
    let tool = |tool: &toolcell_policy::ToolPolicy| {
        let program = of_tool(policy, tool.name(), component)?;
        Some(contract::GuestTool {
            name: tool.name().to_owned(),
            title: tool.title().map(str::to_owned),
            description: tool.description().unwrap_or_default().to_owned(),
            input_schema_json: json(program.input_schema()),
            output_schema_json: program.output_schema().map(json),
            hints: None,
            icons: Vec::new(),
            meta_json: None,
        })
    };
    policy.tools().iter().filter_map(tool).collect()
}

/// Command line and input of a program's tool; `None` for a tool of another shape. If a component
/// also has functions, only tables that describe a run belong to the program.
pub fn of_tool(policy: &ComponentPolicy, tool: &str, component: &HeldComponent) -> Option<Arc<Program>> {
    let tool = policy.tool(tool).filter(|_| component.is_program())?;
    let plain = || Arc::new(Program::plain(tool.name_span()));
    tool.program().cloned().or_else(|| (component.shape() == ShapeName::Program).then(plain))
}

/// Reports manifest keys of tools that do not fit the component's shape.
pub fn check(policy: &ComponentPolicy, component: &HeldComponent) -> Vec<Diagnostic> {
    let name = policy.name();
    let shape = component.shape();
    if !component.is_program() {
        let programs = policy.tools().iter().filter_map(|tool| Some((tool, tool.program()?)));
        let problem = |(tool, program): (&toolcell_policy::ToolPolicy, &Arc<Program>)| {
            let message = format!(
                "tool \"{}\" says how a program is run, but component \"{name}\" is not a program",
                tool.name()
            );
            let hint =
                "keep title, description, limits and grants; a program exports wasi:cli/run or is built for preview 1";
            Diagnostic::error("components::program", message)
                .at(program.span())
                .label(format!("its tools are those of a {} component", shape.as_str()))
                .hint(hint)
        };
        return programs.map(problem).collect();
    }
    let mut problems = Vec::new();
    let is_only_a_program = shape == ShapeName::Program;
    if is_only_a_program && policy.tools().is_empty() {
        let message = format!("component \"{name}\" is a program, and the manifest makes no tools of it");
        let hint = format!(
            "add [components.{name}.tools.TOOL] with description = \"what it does\", \
             input = {{ text = \"what it takes\" }}, args = [\"--\", \"{{text}}\"]"
        );
        problems.push(Diagnostic::error("components::program", message).at(policy.source_span()).hint(hint));
    }
    let runs = is_only_a_program || policy.tools().iter().any(|tool| tool.program().is_some());
    if runs && policy.instance() != InstancePolicy::PerCall {
        let message = format!("component \"{name}\" is a program, which runs once: no call can share its instance");
        let problem = Diagnostic::error("components::program", message).at(policy.name_span());
        problems.push(problem.hint("remove instance = \"per-caller\""));
    }
    let is_plain = |tool: &&toolcell_policy::ToolPolicy| tool.description().is_none() && tool.program().is_none();
    for tool in policy.tools().iter().filter(|tool| is_only_a_program && is_plain(tool)) {
        let message = format!("the tool \"{}\" has no description", tool.name());
        let problem = Diagnostic::error("manifest::missing", message).at(tool.name_span());
        problems.push(
            problem.hint("add description = \"…\": a model chooses tools by it, and a program does not have one"),
        );
    }
    problems
}
