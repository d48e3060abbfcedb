//! `toolcell inspect FILE.wasm`: exports, imports and declarations of a component. Works without a
//! manifest.
pub(super) mod entry;

use std::path::Path;

use serde_json::{Value, json};
use toolcell_mcp::sanitize;
use toolcell_policy::Limits;
use toolcell_sandbox::{COMPONENT_BYTES_MAX, Descriptions, Inspection, LeftOut, ShapeName, ToolComponent, contract};
use toolcell_server::file::read_bounded;
use toolcell_server::machine::Machine;

use crate::args::InspectArgs;
use crate::exit::Exit;
use crate::manifest::say_note;
use crate::terminal;
pub use entry::name as component_name;

/// Findings about a component.
pub(super) struct Inspected {
    pub(super) inspection: Inspection,
    /// Its tools, or the reason why it cannot be served.
    pub(super) tools: Result<Vec<contract::Tool>, String>,
    /// Shape that makes tools of it.
    pub(super) shape: Option<ShapeName>,
    /// Functions that cannot be tools.
    pub(super) left_out: Vec<LeftOut>,
    /// The entry of a manifest that serves it.
    entry: String,
}

/// Inspects and prints. A file that is not a component, or cannot be served, is at fault.
pub fn run(args: &InspectArgs) -> anyhow::Result<Exit> {
    let name = args.file.display().to_string();
    let machine = Machine::start(&args.code.options(), None, None)?;
    machine.notes.iter().for_each(say_note);
    let found = match read_bounded(&args.file, COMPONENT_BYTES_MAX) {
        Ok(bytes) => inspect(&machine, &args.file, &bytes),
        Err(problem) => Err((format!("{name} {problem}"), "name a built .wasm component")),
    };
    let found = match found {
        Ok(found) => found,
        Err((problem, hint)) => {
            if args.json {
                terminal::print(&format!("{:#}\n", json!({"ok": false, "problem": problem, "hint": hint})))?;
            } else {
                terminal::error(&problem, Some(hint));
            }
            return Ok(Exit::AtFault);
        }
    };
    let text = if args.json { format!("{:#}\n", found.json()) } else { found.text(&name) };
    terminal::print(&text)?;
    Ok(if found.tools.is_ok() { Exit::Done } else { Exit::AtFault })
}

/// Reads a component and lists its tools. `Err` is one sentence, and advice.
pub(super) fn inspect(machine: &Machine, file: &Path, bytes: &[u8]) -> Result<Inspected, (String, &'static str)> {
    let inspection = Inspection::read(&machine.sandbox, bytes).map_err(|error| (error.to_string(), error.hint()))?;
    let (mut shape, mut left_out) = (None, Vec::new());
    let tools = match ToolComponent::load(&machine.sandbox, bytes) {
        Err(error) => Err(error.to_string()),
        Ok(component) => {
            shape = Some(component.shape());
            left_out = component.left_out().to_vec();
            let report = machine.runtime.block_on(component.list_tools(&Limits::default(), &Descriptions::default()));
            report.outcome.map_err(|failure| format!("could not list its tools: {failure}"))
        }
    };
    let entry = entry::entry(file, inspection.imports(), !left_out.is_empty());
    Ok(Inspected { inspection, tools, shape, left_out, entry })
}

impl Inspected {
    fn json(&self) -> Value {
        let tools = self.tools.as_ref().ok().map(|tools| tools.iter().map(tool_json).collect::<Vec<_>>());
        json!({
            "ok": self.tools.is_ok(),
            "digest": self.inspection.digest().to_string(),
            "size_bytes": self.inspection.size_bytes(),
            "shape": self.shape.map(ShapeName::as_str),
            "adapted": self.inspection.is_adapted(),
            "contract": self.inspection.contract_version(),
            "exports": self.inspection.exports(),
            "imports": self.inspection.imports(),
            "not_offered": self.inspection.not_offered(),
            "tools": tools,
            "left_out": self.left_out.iter().map(left_out_json).collect::<Vec<_>>(),
            "manifest": self.tools.is_ok().then_some(&self.entry),
            "problem": self.tools.as_ref().err(),
        })
    }

    fn text(&self, name: &str) -> String {
        let style = terminal::stdout_style();
        let heading = |text: &str| terminal::bold(text, style);
        let mut text = format!("{}\n", heading(&sanitize::line(name)));
        text.push_str(&format!("  digest    {}\n", self.inspection.digest()));
        text.push_str(&format!("  size      {} bytes\n", self.inspection.size_bytes()));
        let contract =
            self.inspection.contract_version().map_or("none".to_owned(), |version| format!("toolcell:mcp {version}"));
        text.push_str(&format!("  contract  {}\n", sanitize::line(&contract)));
        if let Some(shape) = self.shape {
            let adapted = if self.inspection.is_adapted() { " (a preview-1 module, adapted)" } else { "" };
            text.push_str(&format!("  shape     {}{adapted}\n", shape.as_str()));
        }
        for (title, names) in [("exports", self.inspection.exports()), ("imports", self.inspection.imports())] {
            text.push_str(&format!("\n{}\n", heading(title)));
            for name in names {
                let note = if self.inspection.not_offered().contains(name) && title == "imports" {
                    "  (not offered by this host)"
                } else {
                    ""
                };
                text.push_str(&format!("  {}{note}\n", sanitize::line(name)));
            }
        }
        text.push_str(&format!("\n{}\n", heading("tools")));
        match &self.tools {
            Ok(_) if self.shape == Some(ShapeName::Program) => {
                text.push_str("  those that a manifest makes of it: [components.NAME.tools.TOOL]\n");
            }
            Ok(tools) => tools.iter().for_each(|tool| text.push_str(&tool_text(tool))),
            Err(problem) => text.push_str(&format!("  none: {}\n", sanitize::line(problem))),
        }
        for left_out in &self.left_out {
            text.push_str(&format!("  not {}\n", sanitize::line(&left_out.to_string())));
        }
        if self.tools.is_ok() {
            text.push_str(&format!("\n{}\n", heading("manifest")));
            self.entry.lines().for_each(|line| text.push_str(&format!("  {}\n", sanitize::line(line))));
        }
        text
    }
}

fn left_out_json(left_out: &LeftOut) -> Value {
    json!({"function": left_out.function, "reason": left_out.reason})
}

fn tool_text(tool: &contract::Tool) -> String {
    let description = sanitize::text(&tool.description).into_owned();
    let mut text = format!("  {}\n", sanitize::line(&tool.name));
    for line in description.lines() {
        text.push_str(&format!("      {line}\n"));
    }
    text.push_str(&format!("      arguments {}\n", sanitize::line(&tool.input_schema_json)));
    if let Some(schema) = &tool.output_schema_json {
        text.push_str(&format!("      result    {}\n", sanitize::line(schema)));
    }
    text
}

fn tool_json(tool: &contract::Tool) -> Value {
    let schema = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": schema(&tool.input_schema_json),
        "outputSchema": tool.output_schema_json.as_deref().map(schema),
    })
}
