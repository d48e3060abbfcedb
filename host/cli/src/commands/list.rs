//! `toolcell list`: the tools, for people or for scripts.

use serde_json::{Value, json};
use toolcell_mcp::{Caller, Catalog as _, DeclaredResource, Revision, Tool, sanitize};
use toolcell_policy::Limits;
use toolcell_server::catalog::Catalog;

use crate::args::{ListArgs, SketchRights};
use crate::exit::Exit;
use crate::manifest::open_again_or_say;
use crate::terminal;

/// Columns of a description shown; its first sentence usually fits.
const DESCRIPTION_COLUMNS: usize = 88;

/// Prints the list.
pub fn run(args: &ListArgs) -> anyhow::Result<Exit> {
    let Some((_, ready)) = open_again_or_say(&args.manifest.manifest, &SketchRights::default(), &args.code)? else {
        return Ok(Exit::AtFault);
    };
    let catalog = ready.catalog;
    let caller = args.caller.as_ref().map(|name| Caller::new(name, args.scopes.iter().map(String::as_str)));
    let view = caller.and_then(|caller| catalog.view(&caller));
    let sees = |tool: &Tool| view.as_ref().is_none_or(|view| view.find(&tool.definition().name).is_some());
    let tools: Vec<IndexedTool<'_>> =
        catalog.tools().tools().iter().map(AsRef::as_ref).enumerate().filter(|(_, tool)| sees(tool)).collect();
    let readable = |declared: &&DeclaredResource| view.as_ref().is_none_or(|view| view.find(&declared.tool).is_some());
    let resources: Vec<&DeclaredResource> = catalog.resources().iter().filter(readable).collect();
    let text = if args.json {
        format!("{:#}\n", all(&catalog, &tools, &resources))
    } else {
        table(&catalog, &tools) + &read_by_tools(&resources)
    };
    terminal::print(&text)?;
    Ok(Exit::Done)
}

/// A tool with its index in the catalog.
type IndexedTool<'c> = (usize, &'c Tool);

fn table(catalog: &Catalog, tools: &[IndexedTool<'_>]) -> String {
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

/// Resources that tools read, printed below the tools.
fn read_by_tools(resources: &[&DeclaredResource]) -> String {
    let style = terminal::stdout_style();
    let width = resources.iter().map(|declared| declared.uri.len()).max().unwrap_or_default();
    let mut text = String::new();
    for declared in resources {
        let before = if text.is_empty() { "\n" } else { "" };
        let uri = terminal::bold(&format!("{:width$}", declared.uri), style);
        let said = declared.title.as_deref().or(declared.description.as_deref()).unwrap_or(&declared.name);
        let origin = terminal::faint(&format!("[{}]", declared.tool), style);
        text.push_str(&format!("{before}{uri}  {} {origin}\n", first_line(said)));
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

fn all(catalog: &Catalog, tools: &[IndexedTool<'_>], resources: &[&DeclaredResource]) -> Value {
    let tools = tools.iter().map(|&(index, tool)| {
        let source = catalog.tool_source(index);
        json!({
            "definition": definition(tool),
            "component": source.map(|(component, _)| component.name()),
            "digest": source.map(|(component, _)| component.inspection().digest().to_string()),
            "limits": source.map(|(_, limits)| self::limits(limits)),
        })
    });
    let resources = resources.iter().map(|declared| {
        json!({
            "uri": declared.uri,
            "template": declared.is_template,
            "name": declared.name,
            "tool": declared.tool,
            "argument": declared.argument,
        })
    });
    json!({"tools": tools.collect::<Vec<_>>(), "resources": resources.collect::<Vec<_>>()})
}

fn definition(tool: &Tool) -> Value {
    serde_json::from_str(&Revision::V2026_07_28.definition_json(tool.definition())).unwrap_or_default()
}

fn limits(limits: &Limits) -> Value {
    let shown =
        toolcell_policy::Limit::ALL.iter().map(|limit| (limit.spec().key.to_owned(), limits.show(*limit).into()));
    Value::Object(shown.collect())
}
