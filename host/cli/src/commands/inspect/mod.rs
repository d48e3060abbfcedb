//! `toolcell inspect COMPONENT`: exports, imports and declarations of a component from a file or a
//! registry. Works without a manifest.
mod artifact;
mod entry;

use std::path::Path;

use serde_json::{Value, json};
use toolcell_mcp::sanitize;
use toolcell_policy::AdvisedFault;
use toolcell_sandbox::{COMPONENT_BYTES_MAX, LeftOutFunction, ShapeName, carries_javascript, contract};
use toolcell_server::file::read_bounded;
use toolcell_server::inspect::{Inspected as Found, MORE, inspect as look};
use toolcell_server::machine::Machine;
use toolcell_server::requested_permissions::read as read_permissions;

use super::metadata::{self, ReadMetadata};
use super::requested_permissions::{self, ReadPermissions};
use super::warnings::ToolWarnings;
use crate::args::InspectArgs;
use crate::exit::{Exit, Failure, reported};
use crate::logging::escaped;
use crate::manifest::report_note;
use crate::naming::component_name;
use crate::sandbox_process;
use crate::terminal;

/// Prefix of a reference to a registry.
pub(super) const REGISTRY: &str = "oci://";

/// Values of an argument or a variable that are shown: a line of them.
const VALUES_SHOWN: usize = 12;

/// Findings about a component.
pub(super) struct Inspected {
    pub(super) found: Found,
    /// Grants that it may need, by its imports.
    pub(super) needs: entry::Needs,
    /// Its requested permissions.
    pub(super) requested: ReadPermissions,
    /// Its author's metadata.
    pub(super) metadata: ReadMetadata,
    /// Warnings about its tools.
    warnings: ToolWarnings,
    /// The entry of a manifest that serves it.
    entry: String,
}

/// Inspects and prints. A file that is not a component, or cannot be served, is at fault.
pub fn run(args: &InspectArgs) -> anyhow::Result<Exit> {
    let name = args.file.display().to_string();
    let outcome = if name.starts_with(REGISTRY) { artifact::run(args, &name) } else { of_file(args, &name) };
    reported(outcome, args.json)
}

fn of_file(args: &InspectArgs, name: &str) -> anyhow::Result<Exit> {
    let machine = Machine::start(&args.code.options(), None, &sandbox_process::guests())?;
    machine.notes.iter().for_each(report_note);
    let bytes = read_bounded(&args.file, COMPONENT_BYTES_MAX)
        .map_err(|problem| Failure::at_fault(format!("{name} {problem}"), "name a built .wasm component"))?;
    let found = inspect(&machine, &args.file, &bytes).map_err(Failure::from)?;
    let text = if args.json { json_text(&found.json()) } else { found.text(name) };
    terminal::print(&text)?;
    Ok(found.exit(args.strict))
}

/// Reads a component and lists its tools. `Err` is one sentence, and advice.
pub(super) fn inspect(machine: &Machine, file: &Path, bytes: &[u8]) -> Result<Inspected, AdvisedFault> {
    let metadata = metadata::of_component(bytes);
    let found = look(machine, &file.display().to_string(), bytes).map_err(|fault| match fault.hint() {
        Some(MORE) => AdvisedFault::new(fault.problem, format!("{MORE}{}", metadata::loading_advice(&metadata))),
        _ => fault,
    })?;
    let needs = entry::Needs::of(found.inspection.imports(), carries_javascript(bytes));
    let entry = entry::entry(entry::Described {
        file,
        needs: &needs,
        skips: found.skips_functions(),
        is_program: found.shape == Some(ShapeName::Program),
        is_later_wasi: found.inspection.is_later_wasi(),
    });
    let requested = read_permissions(&found.requested);
    let warnings = match (&found.tools, found.shape) {
        (Ok(tools), Some(shape)) => ToolWarnings::of_component(&component_name(file), shape, tools),
        _ => ToolWarnings::default(),
    };
    Ok(Inspected { found, needs, requested, metadata, warnings, entry })
}

/// JSON with escapes for terminals: JSON itself does not escape all control characters.
pub(super) fn json_text(json: &Value) -> String {
    let text = format!("{json:#}\n");
    escaped(&text, false).unwrap_or(text)
}

impl Inspected {
    /// A component that cannot be served is at fault; with `strict`, so is one with warnings.
    fn exit(&self, strict: bool) -> Exit {
        let passes = self.found.tools.is_ok() && (self.warnings.is_empty() || !strict);
        if passes { Exit::Done } else { Exit::AtFault }
    }

    /// The tools, each with its function, if any.
    fn with_functions<'a>(
        &'a self,
        tools: &'a [contract::GuestTool],
    ) -> impl Iterator<Item = (&'a contract::GuestTool, Option<&'a str>)> {
        let functions = self.found.functions.iter().map(|function| Some(function.as_str()));
        let functions = functions.chain(std::iter::repeat(None));
        tools.iter().zip(functions)
    }

    fn json(&self) -> Value {
        let tools = self.found.tools.as_ref().ok();
        let tools = tools.map(|tools| {
            self.with_functions(tools).map(|(tool, function)| tool_json(tool, function)).collect::<Vec<_>>()
        });
        let mut json = json!({
            "ok": self.found.tools.is_ok(),
            "digest": self.found.inspection.digest().to_string(),
            "size_bytes": self.found.inspection.size_bytes(),
            "shape": self.found.shape.map(ShapeName::as_str),
            "program": self.found.is_program,
            "adapted": self.found.inspection.is_adapted(),
            "contract": self.found.inspection.contract_version(),
            "exports": self.found.inspection.exports(),
            "imports": self.found.inspection.imports(),
            "not_offered": self.found.inspection.not_offered(),
            "tools": tools,
            "prompts": self.found.beside.prompts.iter().map(prompt_json).collect::<Vec<_>>(),
            "resources": self.found.beside.resources.iter().map(resource_json).collect::<Vec<_>>(),
            "left_out": self.found.left_out.iter().map(left_out_json).collect::<Vec<_>>(),
            "warnings": self.warnings.to_json(),
            "warnings_left_out": self.warnings.left_out(),
            "manifest": self.found.tools.is_ok().then_some(&self.entry),
            "problem": self.found.tools.as_ref().err(),
        });
        if let Some(members) = json.as_object_mut() {
            let carried =
                requested_permissions::json(&self.requested).into_iter().chain(metadata::json(&self.metadata));
            members.extend(carried.map(|(name, value)| (name.to_owned(), value)));
        }
        json
    }

    fn text(&self, name: &str) -> String {
        let style = terminal::stdout_style();
        let heading = |text: &str| terminal::bold(text, style);
        let mut text = format!("{}\n", heading(&sanitize::line(name)));
        text.push_str(&format!("  digest    {}\n", self.found.inspection.digest()));
        text.push_str(&format!("  size      {} bytes\n", self.found.inspection.size_bytes()));
        let contract = self
            .found
            .inspection
            .contract_version()
            .map_or("none".to_owned(), |version| format!("toolcell:mcp {version}"));
        text.push_str(&format!("  contract  {}\n", sanitize::line(&contract)));
        if let Some(shape) = self.found.shape {
            let more = match (self.found.inspection.is_adapted(), shape) {
                (true, _) => " (a preview-1 module, adapted)",
                (false, ShapeName::Typed) if self.found.is_program => ", and a program",
                _ => "",
            };
            text.push_str(&format!("  shape     {}{more}\n", shape.as_str()));
        }
        for (title, names) in
            [("exports", self.found.inspection.exports()), ("imports", self.found.inspection.imports())]
        {
            text.push_str(&format!("\n{}\n", heading(title)));
            if names.is_empty() {
                text.push_str("  none\n");
            }
            for name in names {
                let note = if self.found.inspection.not_offered().contains(name) && title == "imports" {
                    "  (not offered by this host)"
                } else {
                    ""
                };
                text.push_str(&format!("  {}{note}\n", sanitize::line(name)));
            }
        }
        let requested = requested_permissions::text(&self.requested);
        if !requested.is_empty() {
            text.push_str(&format!("\n{}\n{requested}", heading("requested permissions")));
        }
        let metadata = metadata::text(&self.metadata);
        if !metadata.is_empty() {
            text.push_str(&format!("\n{}\n{metadata}", heading("its author suggests")));
        }
        text.push_str(&format!("\n{}\n", heading("tools")));
        match &self.found.tools {
            Ok(_) if self.found.shape == Some(ShapeName::Program) => {
                text.push_str("  those that a manifest makes of it: [components.NAME.tools.TOOL]\n");
            }
            Ok(tools) => {
                self.with_functions(tools).for_each(|(tool, function)| text.push_str(&tool_text(tool, function)))
            }
            Err(problem) => text.push_str(&format!("  none: {}\n", sanitize::line(problem))),
        }
        if !self.found.beside.prompts.is_empty() {
            text.push_str(&format!("\n{}\n", heading("prompts")));
            self.found.beside.prompts.iter().for_each(|prompt| text.push_str(&prompt_text(prompt)));
        }
        if !self.found.beside.resources.is_empty() {
            text.push_str(&format!("\n{}\n", heading("resources")));
            self.found.beside.resources.iter().for_each(|resource| text.push_str(&resource_text(resource)));
        }
        for left_out in &self.found.left_out {
            text.push_str(&format!("  not {}\n", sanitize::line(&left_out.to_string())));
        }
        if !self.warnings.is_empty() {
            text.push_str(&format!("\n{}\n{}", heading("warnings"), self.warnings.text(style)));
        }
        if self.found.tools.is_ok() {
            text.push_str(&format!("\n{}\n", heading("manifest")));
            self.entry.lines().for_each(|line| text.push_str(&format!("  {}\n", sanitize::line(line))));
        }
        text
    }
}

fn resource_text(resource: &contract::ListedResource) -> String {
    let said = resource.title.as_deref().unwrap_or(&resource.name);
    let kind = resource.mime_type.as_deref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    let mut text = format!("  {}\n      {}\n", sanitize::line(&resource.uri), sanitize::line(&format!("{said}{kind}")));
    for variable in resource.variables.iter().filter(|variable| !variable.values.is_empty()) {
        text.push_str(&format!("      variable  {}{}\n", sanitize::line(&variable.name), values(&variable.values)));
    }
    text
}

/// Known values, after the name that they are for. Empty if there are none.
fn values(values: &[String]) -> String {
    let shown: Vec<_> = values.iter().take(VALUES_SHOWN).map(|value| sanitize::line(value)).collect();
    match values.len() {
        0 => String::new(),
        known if known > shown.len() => format!(": {}, and {} more", shown.join(", "), known - shown.len()),
        _ => format!(": {}", shown.join(", ")),
    }
}

fn resource_json(resource: &contract::ListedResource) -> Value {
    let variables = resource.variables.iter().map(|variable| (variable.name.clone(), json!(variable.values)));
    json!({
        "uri": resource.uri,
        "name": resource.name,
        "title": resource.title,
        "description": resource.description,
        "mimeType": resource.mime_type,
        "values": Value::Object(variables.collect()),
    })
}

fn left_out_json(left_out: &LeftOutFunction) -> Value {
    json!({"function": left_out.function, "reason": left_out.reason})
}

fn prompt_text(prompt: &contract::GuestPrompt) -> String {
    let mut text = format!("  {}\n", sanitize::line(&prompt.name));
    for line in sanitize::text(prompt.description.as_deref().unwrap_or_default()).lines() {
        text.push_str(&format!("      {line}\n"));
    }
    for argument in &prompt.arguments {
        let required = if argument.required { " (required)" } else { "" };
        let values = values(&argument.values);
        text.push_str(&format!("      argument  {}{required}{values}\n", sanitize::line(&argument.name)));
    }
    text
}

fn prompt_json(prompt: &contract::GuestPrompt) -> Value {
    let arguments = prompt.arguments.iter().map(|argument| {
        json!({
            "name": argument.name,
            "description": argument.description,
            "required": argument.required,
            "values": argument.values,
        })
    });
    json!({
        "name": prompt.name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": arguments.collect::<Vec<_>>(),
    })
}

fn tool_text(tool: &contract::GuestTool, function: Option<&str>) -> String {
    let description = sanitize::text(&tool.description).into_owned();
    let mut text = format!("  {}\n", sanitize::line(&tool.name));
    for line in description.lines() {
        text.push_str(&format!("      {line}\n"));
    }
    if let Some(function) = function {
        text.push_str(&format!("      function  {}\n", sanitize::line(function)));
    }
    text.push_str(&format!("      arguments {}\n", sanitize::line(&tool.input_schema_json)));
    if let Some(schema) = &tool.output_schema_json {
        text.push_str(&format!("      result    {}\n", sanitize::line(schema)));
    }
    text
}

fn tool_json(tool: &contract::GuestTool, function: Option<&str>) -> Value {
    let schema = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    json!({
        "name": tool.name,
        "function": function,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": schema(&tool.input_schema_json),
        "outputSchema": tool.output_schema_json.as_deref().map(schema),
    })
}
