//! `toolcell check`: every problem of a manifest and its components at once.
mod components;
mod reach;

use serde_json::json;

use crate::args::CheckArgs;
use crate::exit::Exit;
use crate::project::{ManifestFile, Project};
use crate::terminal;

/// Checks and reports.
pub fn run(args: &CheckArgs) -> anyhow::Result<Exit> {
    let file = match ManifestFile::read(&args.manifest) {
        Ok(file) => file,
        Err(problem) => {
            if args.json {
                let problems = [json!({"severity": "error", "code": "manifest::unreadable", "message": problem})];
                terminal::print(&format!("{:#}\n", json!({"ok": false, "problems": problems})))?;
            } else {
                terminal::error(&problem, Some("name the manifest: toolcell check FILE"));
            }
            return Ok(Exit::AtFault);
        }
    };
    let project = file.open(&args.code)?;
    if args.json {
        terminal::print(&format!("{:#}\n", report(&project)))?;
    } else {
        project.show_problems();
        let separator = if project.problems.is_empty() { "" } else { "\n" };
        terminal::print(&format!("{separator}{}\n", sum_up(&project)))?;
        if let Some(ready) = &project.ready {
            terminal::print(&components::table(&ready.catalog, terminal::stdout_style()))?;
            terminal::print(&reach::table(&ready.catalog, &project.file.source(), terminal::stdout_style()))?;
        }
    }
    Ok(if project.ready.is_some() { Exit::Done } else { Exit::AtFault })
}

fn sum_up(project: &Project) -> String {
    let name = project.file.name();
    match &project.ready {
        None => format!("{name}: {}", project.summary()),
        Some(ready) => {
            let catalog = &ready.catalog;
            let tools = toolcell_mcp::Catalog::tools(catalog).tools().len();
            let components = catalog.components().len();
            let found = if project.problems.is_empty() { "ok".to_owned() } else { project.summary() };
            format!("{name}: {found}; components: {components}, tools: {tools}")
        }
    }
}

fn report(project: &Project) -> serde_json::Value {
    let source = project.file.source();
    let problems: Vec<_> = project.problems.iter().map(|problem| problem.to_json(&source)).collect();
    let components = project.ready.as_ref().map_or_else(|| json!([]), |ready| components::to_json(&ready.catalog));
    let tools: Vec<_> = project
        .ready
        .iter()
        .flat_map(|ready| toolcell_mcp::Catalog::tools(&ready.catalog).tools())
        .map(|tool| tool.definition().name.clone())
        .collect();
    let reach = project.ready.as_ref().map(|ready| reach::to_json(&ready.catalog, &source));
    json!({"ok": project.ready.is_some(), "problems": problems, "components": components, "tools": tools, "reach": reach})
}
