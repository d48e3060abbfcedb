//! `toolcell check`: every problem of a manifest and its components at once.
mod capabilities;
mod components;
mod pages;

use std::path::Path;

use serde_json::json;
use toolcell_mcp::sanitize;
use toolcell_server::{ManifestFile, OpenOptions, Opened, Ready, login, shell};

use super::warnings::ToolWarnings;
use crate::args::{CheckArgs, SketchRights};
use crate::exit::Exit;
use crate::logging::escaped;
use crate::manifest;
use crate::sketch::{self, Sketch};
use crate::terminal;

/// Checks and reports.
pub fn run(args: &CheckArgs) -> anyhow::Result<Exit> {
    let path = args.file.as_deref().unwrap_or(&args.manifest.manifest);
    shell::name_manifest(path);
    let file = match file(args, path) {
        Ok(file) => file,
        Err(problem) => {
            if args.json {
                let problems = [json!({"severity": "error", "code": "manifest::unreadable", "message": problem})];
                terminal::print(&format!("{:#}\n", json!({"ok": false, "problems": problems})))?;
            } else {
                terminal::error(&problem, Some("name the manifest after the command"));
            }
            return Ok(Exit::AtFault);
        }
    };
    let options = OpenOptions { code: args.code.options(), certificates: true, ..OpenOptions::default() };
    let opened = manifest::open(file, options)?;
    let warnings = opened.ready.as_ref().map(warnings).unwrap_or_default();
    let pages = opened.ready.as_ref().map_or(1, pages::of);
    if args.json {
        // Names of properties may contain control characters.
        let text = format!("{:#}\n", report(&opened, &warnings, pages));
        terminal::print(escaped(&text, false).as_deref().unwrap_or(&text))?;
    } else {
        if sketch::is_component(path) {
            opened.problems.iter().for_each(|problem| sketch::report(None, problem));
        } else {
            manifest::show_problems(&opened);
        }
        let separator = if opened.problems.is_empty() { "" } else { "\n" };
        terminal::print(&format!("{separator}{}\n", sum_up(&opened, path)))?;
        if let Some(ready) = &opened.ready {
            terminal::print(&components::table(&ready.catalog, terminal::stdout_style()))?;
            terminal::print(&capabilities::table(&ready.catalog, &opened.file.source(), terminal::stdout_style()))?;
            terminal::print(&components::later_wasi(&ready.catalog))?;
            terminal::print(&logins(&login::in_use()))?;
        }
        if !warnings.is_empty() {
            terminal::print(&format!("\n{}", warnings.text(terminal::stdout_style())))?;
        }
        terminal::print(&pages::shown(pages, terminal::stdout_style()))?;
    }
    let is_clean = opened.problems.is_empty() && warnings.is_empty() && pages <= 1;
    let passes = opened.ready.is_some() && (is_clean || !args.strict);
    Ok(if passes { Exit::Done } else { Exit::AtFault })
}

/// The warnings about the tools that would be served.
fn warnings(ready: &Ready) -> ToolWarnings {
    ToolWarnings::of_catalog(&ready.catalog, ready.manifest.server().name())
}

/// One line for each login that tools use; empty without any.
fn logins(states: &[serde_json::Value]) -> String {
    let text = |value: &serde_json::Value| sanitize::line(value.as_str().unwrap_or_default()).into_owned();
    let line = |login: &serde_json::Value| format!("login {}: {}\n", text(&login["name"]), text(&login["state"]));
    let lines: String = states.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// The manifest, or a sketch for a single component.
fn file(args: &CheckArgs, path: &Path) -> Result<ManifestFile, String> {
    if !sketch::is_component(path) {
        return ManifestFile::read(path);
    }
    let files = [path.to_owned()];
    let sketch = Sketch::of(&files, &SketchRights::default(), Path::new("."), &args.code);
    sketch.map(|sketch| sketch.file(None)).map_err(|failure| failure.to_string())
}

fn sum_up(opened: &Opened, path: &Path) -> String {
    let name = path.display();
    match &opened.ready {
        None => format!("{name}: {}", opened.summary()),
        Some(ready) => {
            let catalog = &ready.catalog;
            let tools =
                toolcell_mcp::ServedCatalog::tools(catalog).tools().iter().filter(|tool| tool.is_tool()).count();
            let components = catalog.components().len();
            let found = if opened.problems.is_empty() { "ok".to_owned() } else { opened.summary() };
            format!("{name}: {found}; components: {components}, tools: {tools}")
        }
    }
}

fn report(opened: &Opened, warnings: &ToolWarnings, pages: usize) -> serde_json::Value {
    let source = opened.file.source();
    let problems: Vec<_> = opened.problems.iter().map(|problem| problem.to_json(&source)).collect();
    let components = opened.ready.as_ref().map_or_else(|| json!([]), |ready| components::to_json(&ready.catalog));
    let tools: Vec<_> = opened
        .ready
        .iter()
        .flat_map(|ready| toolcell_mcp::ServedCatalog::tools(&ready.catalog).tools())
        .map(|tool| tool.definition().name.clone())
        .collect();
    let capabilities = opened.ready.as_ref().map(|ready| capabilities::to_json(&ready.catalog, &source));
    json!({
        "ok": opened.ready.is_some(),
        "problems": problems,
        "components": components,
        "tools": tools,
        "reach": capabilities,
        "logins": login::in_use(),
        "pages": pages,
        "warnings": warnings.to_json(),
        "warnings_left_out": warnings.left_out(),
    })
}
