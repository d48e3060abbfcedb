//! `toolcell list`: the tools, and everything else that clients get, for people or for scripts.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcell_mcp::{Caller, DeclaredResource, McpTool, ResourceReader, Revision, ServedCatalog as _, Skill, sanitize};
use toolcell_policy::{Limits, SourceRef};
use toolcell_server::catalog::{App, Catalog, LeftOutComponent, LoadedComponent};
use toolcell_server::lost_signers;

use crate::args::{ListArgs, SketchRights};
use crate::exit::Exit;
use crate::manifest::open_again_or_report;
use crate::terminal::{self, counted};

/// Columns of a description shown; its first sentence usually fits.
const DESCRIPTION_COLUMNS: usize = 88;

/// The prefix of the entry that reads a component's resources, which is not a tool.
const OWN_RESOURCES: &str = "resources/";

/// Shown for a component that is not served until its signers are approved.
const NOT_AS_PINNED: &str = "; not as the lock pins it, and not served";

/// Prints the list.
pub fn run(args: &ListArgs) -> anyhow::Result<Exit> {
    let (_, ready) = open_again_or_report(&args.manifest.manifest, &SketchRights::default(), &args.code)?;
    let catalog = ready.catalog;
    let caller = args.caller.as_ref().map(|name| Caller::new(name, args.scopes.iter().map(String::as_str)));
    let view = caller.and_then(|caller| catalog.view(&caller));
    let sees = |tool: &McpTool| view.as_ref().is_none_or(|view| view.find(&tool.definition().name).is_some());
    let seen = || catalog.tools().tools().iter().map(AsRef::as_ref).enumerate().filter(|(_, tool)| sees(tool));
    let tools: Vec<IndexedTool<'_>> = seen().filter(|(_, tool)| tool.is_tool()).collect();
    let prompts: Vec<IndexedTool<'_>> = seen().filter(|(_, entry)| entry.prompt().is_some()).collect();
    let skills =
        catalog.skills().iter().filter(|skill| view.as_ref().is_none_or(|view| view.find(&skill.entry).is_some()));
    let skills: Vec<&Skill> = skills.collect();
    let readable = |declared: &&DeclaredResource| view.as_ref().is_none_or(|view| declared.is_seen_with(view));
    let resources: Vec<&DeclaredResource> = catalog.resources().iter().filter(readable).collect();
    let views: Vec<ListedView<'_>> = catalog.views().iter().filter_map(|app| ListedView::of(app, &tools)).collect();
    let lost: Vec<String> =
        lost_signers(&args.manifest.manifest, &catalog).into_iter().map(|drift| drift.component).collect();
    let text = if args.json {
        let beside = BesideTools { resources: &resources, skills: &skills, views: &views };
        format!("{:#}\n", all(&catalog, &lost, &tools, &prompts, &beside))
    } else {
        // Files of skills and views are shown with these.
        let is_held = |declared: &DeclaredResource| matches!(declared.reader, ResourceReader::Held { .. });
        let others: Vec<&DeclaredResource> = resources.iter().copied().filter(|declared| !is_held(declared)).collect();
        let below = [
            listed_prompts(&catalog, &prompts),
            listed_skills(&skills),
            listed_views(&views),
            read_by_tools(&others),
            pulled(&catalog, &lost),
            left_out(&catalog),
        ];
        let below = below.into_iter().filter(|table| !table.is_empty());
        below.fold(listed_tools(&catalog, &tools), |text, table| format!("{text}\n{table}"))
    };
    terminal::print(&text)?;
    Ok(if catalog.left_out().is_empty() { Exit::Done } else { Exit::AtFault })
}

/// Components that are not served, printed last.
fn left_out(catalog: &Catalog) -> String {
    let line = |component: &LeftOutComponent| format!("left out: {}\n", sanitize::line(&component.problem));
    catalog.left_out().iter().map(line).collect()
}

/// A tool with its index in the catalog.
type IndexedTool<'c> = (usize, &'c McpTool);

/// A view, with the tools whose results it shows.
struct ListedView<'c> {
    app: &'c App,
    tools: Vec<&'c str>,
}

impl<'c> ListedView<'c> {
    /// The view, if one of these tools names it.
    fn of(app: &'c App, tools: &[IndexedTool<'c>]) -> Option<Self> {
        let naming = tools.iter().map(|(_, tool)| tool.definition());
        let naming = naming.filter(|definition| definition.view() == Some(app.uri()));
        let tools: Vec<&str> = naming.map(|definition| definition.name.as_str()).collect();
        (!tools.is_empty()).then_some(Self { app, tools })
    }
}

/// Everything that clients get besides tools and prompts.
struct BesideTools<'a, 'c> {
    resources: &'a [&'c DeclaredResource],
    skills: &'a [&'c Skill],
    views: &'a [ListedView<'c>],
}

/// A line about one thing.
struct Row<'a> {
    name: &'a str,
    text: String,
    /// What it is, or where it is from.
    origin: String,
}

fn table<'a>(rows: impl Iterator<Item = Row<'a>>) -> String {
    let style = terminal::stdout_style();
    let rows: Vec<Row<'a>> = rows.collect();
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or_default();
    let line = |Row { name, text, origin }: &Row<'a>| {
        let name = terminal::bold(&format!("{name:width$}"), style);
        format!("{name}  {text} {}\n", terminal::faint(&format!("[{origin}]"), style))
    };
    rows.iter().map(line).collect()
}

fn listed_tools(catalog: &Catalog, tools: &[IndexedTool<'_>]) -> String {
    table(tools.iter().map(|&(index, tool)| {
        let component = catalog.tool_source(index).map_or("", |(component, _)| component.name());
        let definition = tool.definition();
        Row { name: &definition.name, text: first_line(&definition.description), origin: component.to_owned() }
    }))
}

/// Prompts, printed below the tools.
fn listed_prompts(catalog: &Catalog, prompts: &[IndexedTool<'_>]) -> String {
    table(prompts.iter().filter_map(|&(index, entry)| {
        let component = catalog.tool_source(index).map_or("manifest", |(component, _)| component.name());
        let definition = entry.definition();
        let said = definition.title.as_deref().unwrap_or(&definition.description);
        Some(Row { name: entry.prompt()?.name(), text: first_line(said), origin: format!("prompt of {component}") })
    }))
}

/// Skills, printed below the prompts.
fn listed_skills(skills: &[&Skill]) -> String {
    table(skills.iter().map(|skill| {
        let entry = entry_of(skill);
        let said = entry.pointer("/frontmatter/description").and_then(Value::as_str).unwrap_or_default();
        let files = entry.get("resources").and_then(Value::as_array).map_or(0, Vec::len);
        Row {
            name: path_of(skill),
            text: first_line(said),
            origin: format!("skill, {}", counted(files as u64, "file")),
        }
    }))
}

/// The path of a skill, relative to the folder of skills.
fn path_of(skill: &Skill) -> &str {
    skill.entry.split_once('/').map_or(skill.entry.as_str(), |(_, path)| path)
}

fn entry_of(skill: &Skill) -> Value {
    serde_json::from_str(&skill.json).unwrap_or_default()
}

/// Views of tools' results, printed below the skills.
fn listed_views(views: &[ListedView<'_>]) -> String {
    table(views.iter().map(|ListedView { app, tools }| {
        let said = app.title().or(app.description()).unwrap_or_default();
        Row { name: app.uri(), text: first_line(said), origin: format!("view of {}", tools.join(", ")) }
    }))
}

/// Declared resources, printed below all others.
fn read_by_tools(resources: &[&DeclaredResource]) -> String {
    table(resources.iter().map(|declared| {
        let said = declared.title.as_deref().or(declared.description.as_deref()).unwrap_or(&declared.name);
        let origin = match &declared.reader {
            ResourceReader::Tool { tool, .. } => match tool.strip_prefix(OWN_RESOURCES) {
                Some(component) => format!("resource of {component}"),
                None => tool.clone(),
            },
            ResourceReader::Host { .. } | ResourceReader::Held { .. } => "the host".to_owned(),
        };
        Row { name: &declared.uri, text: first_line(said), origin }
    }))
}

/// Components of registries, printed last: their sources and signers. The signers of those in
/// `lost` differ from the lock.
fn pulled(catalog: &Catalog, lost: &[String]) -> String {
    let of_registry = |component: &&Arc<LoadedComponent>| matches!(component.policy().source(), SourceRef::Registry(_));
    table(catalog.components().iter().filter(of_registry).map(|component| {
        let source = component.policy().source().to_string();
        let signed = match component.signed().by.as_slice() {
            [] => "nobody vouches for it".to_owned(),
            by => sanitize::line(&by.join("; ")).into_owned(),
        };
        let held = if lost.iter().any(|name| name == component.name()) { NOT_AS_PINNED } else { "" };
        let text = sanitize::line(&source).into_owned();
        Row { name: component.name(), text, origin: format!("component, {signed}{held}") }
    }))
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

fn all(
    catalog: &Catalog,
    lost: &[String],
    tools: &[IndexedTool<'_>],
    prompts: &[IndexedTool<'_>],
    BesideTools { resources, skills, views }: &BesideTools<'_, '_>,
) -> Value {
    let prompts = prompts.iter().map(|&(index, entry)| {
        let definition: Value = Revision::V2026_07_28
            .prompt_json(entry)
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let component = catalog.tool_source(index).map(|(component, _)| component.name());
        json!({"definition": definition, "component": component})
    });
    let prompts: Vec<Value> = prompts.collect();
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
        let (tool, argument) = match &declared.reader {
            ResourceReader::Tool { tool, argument } => (Some(tool), Some(argument)),
            ResourceReader::Host { .. } | ResourceReader::Held { .. } => (None, None),
        };
        json!({
            "uri": declared.uri,
            "template": declared.is_template,
            "name": declared.name,
            "tool": tool,
            "argument": argument,
        })
    });
    let skills = skills.iter().map(|skill| json!({"path": path_of(skill), "entry": entry_of(skill)}));
    let views = views.iter().map(|ListedView { app, tools }| {
        json!({
            "uri": app.uri(), "title": app.title(), "description": app.description(), "file": app.file(), "tools": tools,
        })
    });
    let components = catalog.components().iter().map(|component| {
        json!({
            "name": component.name(),
            "source": component.policy().source().to_string(),
            "digest": component.digest(),
            "signed_by": component.signed().by,
            "other_signers": lost.iter().any(|name| name == component.name()),
        })
    });
    let left_out = catalog.left_out().iter();
    let left_out = left_out.map(|component| json!({"component": component.name, "problem": component.problem}));
    json!({
        "components": components.collect::<Vec<_>>(),
        "left_out": left_out.collect::<Vec<_>>(),
        "tools": tools.collect::<Vec<_>>(),
        "prompts": prompts,
        "resources": resources.collect::<Vec<_>>(),
        "skills": skills.collect::<Vec<_>>(),
        "views": views.collect::<Vec<_>>(),
    })
}

fn definition(tool: &McpTool) -> Value {
    serde_json::from_str(&Revision::V2026_07_28.definition_json(tool.served())).unwrap_or_default()
}

fn limits(limits: &Limits) -> Value {
    let shown =
        toolcell_policy::Limit::ALL.iter().map(|limit| (limit.spec().key.to_owned(), limits.show(*limit).into()));
    Value::Object(shown.collect())
}
