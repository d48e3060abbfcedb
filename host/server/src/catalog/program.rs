//! Tools that the manifest makes of a program. Must not hold: how a program is run.
use std::sync::Arc;

use toolcell_policy::{ComponentPolicy, Diagnostic, InstancePolicy, Program};
use toolcell_sandbox::{ShapeName, contract};

/// The tools of a program, as if it listed them itself.
pub fn tools(policy: &ComponentPolicy) -> Vec<contract::Tool> {
    let json =
        |schema: &serde_json::Map<String, serde_json::Value>| serde_json::Value::Object(schema.clone()).to_string();
    let tool = |tool: &toolcell_policy::ToolPolicy| {
        let program = tool.program().cloned().unwrap_or_else(|| Arc::new(Program::plain(tool.name_span())));
        contract::Tool {
            name: tool.name().to_owned(),
            title: tool.title().map(str::to_owned),
            description: tool.description().unwrap_or_default().to_owned(),
            input_schema_json: json(program.input_schema()),
            output_schema_json: program.output_schema().map(json),
            hints: None,
            icons: Vec::new(),
            meta_json: None,
        }
    };
    policy.tools().iter().map(tool).collect()
}

/// Command line and input of a program's tool; nothing for a tool of another shape.
pub fn of_tool(policy: &ComponentPolicy, tool: &str, shape: ShapeName) -> Option<Arc<Program>> {
    let tool = policy.tool(tool).filter(|_| shape == ShapeName::Program)?;
    Some(tool.program().cloned().unwrap_or_else(|| Arc::new(Program::plain(tool.name_span()))))
}

/// Manifest keys of tools that do not fit the component's shape.
pub fn check(policy: &ComponentPolicy, shape: ShapeName) -> Vec<Diagnostic> {
    let name = policy.name();
    if shape != ShapeName::Program {
        let programs = policy.tools().iter().filter_map(|tool| Some((tool, tool.program()?)));
        let problem = |(tool, program): (&toolcell_policy::ToolPolicy, &Arc<Program>)| {
            let message =
                format!("tool \"{}\" says how a program is run, and component \"{name}\" is none", tool.name());
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
    if policy.tools().is_empty() {
        let message = format!("component \"{name}\" is a program, and the manifest makes no tools of it");
        let hint = format!(
            "add [components.{name}.tools.TOOL] with description = \"what it does\", \
             input = {{ text = \"what it takes\" }}, args = [\"--\", \"{{text}}\"]"
        );
        problems.push(Diagnostic::error("components::program", message).at(policy.source_span()).hint(hint));
    }
    if policy.instance() != InstancePolicy::PerCall {
        let message = format!("component \"{name}\" is a program, which runs once: no call can share its instance");
        let problem = Diagnostic::error("components::program", message).at(policy.name_span());
        problems.push(problem.hint("remove instance = \"per-caller\""));
    }
    for tool in policy.tools().iter().filter(|tool| tool.description().is_none() && tool.program().is_none()) {
        let message = format!("the tool \"{}\" has no description", tool.name());
        let problem = Diagnostic::error("manifest::missing", message).at(tool.name_span());
        problems.push(
            problem.hint("add description = \"…\": a model chooses tools by it, and a program does not have one"),
        );
    }
    problems
}
