//! `toolcell list`: the tools, for people or for scripts.

use serde_json::{Value, json};
use toolcell_mcp::{Caller, Catalog as _, Revision, Tool, sanitize};
use toolcell_policy::Limits;

use crate::args::ListArgs;
use crate::catalog::Catalog;
use crate::exit::Exit;
use crate::project::open_or_say;
use crate::terminal;

/// Columns of a description shown; its first sentence usually fits.
const DESCRIPTION_COLUMNS: usize = 88;

/// Lists.
pub fn run(args: &ListArgs) -> anyhow::Result<Exit> {
    let Some((_, ready)) = open_or_say(&args.manifest.manifest, &args.code)? else { return Ok(Exit::AtFault) };
    let catalog = ready.catalog;
    let caller = args.caller.as_ref().map(|name| Caller::new(name, args.scopes.iter().map(String::as_str)));
    let view = caller.and_then(|caller| catalog.view(&caller));
    let sees = |tool: &Tool| view.as_ref().is_none_or(|view| view.find(&tool.definition().name).is_some());
    let tools: Vec<Numbered<'_>> =
        catalog.tools().tools().iter().map(AsRef::as_ref).enumerate().filter(|(_, tool)| sees(tool)).collect();
    let text = if args.json { format!("{:#}\n", all(&catalog, &tools)) } else { table(&catalog, &tools) };
    terminal::print(&text)?;
    Ok(Exit::Done)
}

/// A tool and its place in the catalog.
type Numbered<'c> = (usize, &'c Tool);

fn table(catalog: &Catalog, tools: &[Numbered<'_>]) -> String {
    let style = terminal::stdout_style();
    let width = tools.iter().map(|(_, tool)| tool.definition().name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for &(index, tool) in tools {
        let definition = tool.definition();
        let component = catalog.tool_source(index).map_or("", |(component, _)| component.name());
        let name = terminal::bold(&format!("{:width$}", definition.name), style);
        let origin = terminal::faint(&format!("[{component}]"), style);
        let description = first_line(&definition.description);
        text.push_str(&format!("{name}  {description} {origin}\n"));
    }
    text
}

fn first_line(description: &str) -> String {
    let text = sanitize::text(description);
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= DESCRIPTION_COLUMNS {
        return line.to_owned();
    }
    let cut: String = line.chars().take(DESCRIPTION_COLUMNS - 1).collect();
    format!("{}…", cut.trim_end())
}

fn all(catalog: &Catalog, tools: &[Numbered<'_>]) -> Value {
    let tools = tools.iter().map(|&(index, tool)| {
        let source = catalog.tool_source(index);
        json!({
            "definition": definition(tool),
            "component": source.map(|(component, _)| component.name()),
            "digest": source.map(|(component, _)| component.inspection().digest().to_string()),
            "limits": source.map(|(_, limits)| self::limits(limits)),
        })
    });
    json!({"tools": tools.collect::<Vec<_>>()})
}

fn definition(tool: &Tool) -> Value {
    serde_json::from_str(&Revision::V2026_07_28.definition_json(tool.definition())).unwrap_or_default()
}

fn limits(limits: &Limits) -> Value {
    let shown =
        toolcell_policy::Limit::ALL.iter().map(|limit| (limit.spec().key.to_owned(), limits.show(*limit).into()));
    Value::Object(shown.collect())
}
