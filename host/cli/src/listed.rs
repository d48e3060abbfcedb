//! The tools that components of a manifest list, for commands about one that a person names. Must
//! not hold: opening a manifest to serve it (see `manifest`).
use toolcell_policy::names::did_you_mean;
use toolcell_policy::{ComponentPolicy, Manifest, parse};
use toolcell_server::catalog::{BuilderOptions, CatalogBuilder, ComponentNames, ListedNames, folder_of};
use toolcell_server::machine::Machine;
use toolcell_server::{CodeCacheOptions, ManifestFile};

use crate::exit::Failure;
use crate::manifest::report_note;
use crate::sandbox_process;
use crate::terminal;

/// Tools that a hint names. More do not fit on a line or two.
const SHOWN_MAX: usize = 12;

/// The name of a component's resources where people name a tool.
const RESOURCES: &str = "resources";

/// The name of a component's completions in records.
const COMPLETION: &str = "completion";

/// An export of a component that is neither a tool nor a prompt.
#[derive(Debug, PartialEq, Eq)]
pub struct Unlisted<'a> {
    /// What it is: `resources` or `completion`.
    pub export: &'a str,
    /// The component's name.
    pub component: &'a str,
}

/// Loads these components of a manifest. Returns what each lists, or why it cannot be loaded.
///
/// # Errors
/// This process cannot load components at all.
pub fn names(
    file: &ManifestFile,
    manifest: &Manifest,
    policies: &[ComponentPolicy],
    code: &CodeCacheOptions,
) -> anyhow::Result<Vec<ComponentNames>> {
    let machine = Machine::start(code, Some(manifest.server()), &sandbox_process::guests())?;
    machine.notes.iter().for_each(report_note);
    let builder = CatalogBuilder::new(&machine, BuilderOptions::default());
    Ok(builder.names(manifest, policies, &folder_of(file.path())))
}

/// What one component lists; `None` if it cannot be loaded, which is said.
///
/// # Errors
/// This process cannot load components at all.
pub fn names_of(
    file: &ManifestFile,
    manifest: &Manifest,
    policy: &ComponentPolicy,
    code: &CodeCacheOptions,
) -> anyhow::Result<Option<ListedNames>> {
    let listed = names(file, manifest, std::slice::from_ref(policy), code)?.pop().and_then(|names| names.listed.ok());
    if listed.is_none() {
        let name = policy.name();
        terminal::warning(&format!("component {name:?} cannot be loaded, so the names of its tools are not checked"));
    }
    Ok(listed)
}

/// True if a component that lists these names has an export of this name: a tool, or a prompt or
/// another export, whose names are not checked.
pub fn has(listed: &ListedNames, name: &str) -> bool {
    is_beside(name) || listed.tools.iter().any(|tool| tool.own == name)
}

/// True for the name of another export than a tool. Such names have a slash.
fn is_beside(name: &str) -> bool {
    name.contains('/') || name == RESOURCES
}

/// The component and the export behind `resources/COMPONENT` or `completion/COMPONENT`, as calls,
/// records and the lock name what no client lists.
pub fn unlisted(name: &str) -> Option<Unlisted<'_>> {
    let (export, component) = name.split_once('/')?;
    [RESOURCES, COMPLETION].contains(&export).then_some(Unlisted { export, component })
}

/// Checks that a component has a tool of this own name, if the component can be loaded.
///
/// # Errors
/// It does not, or this process cannot load components at all.
pub fn check_tool(file: &ManifestFile, component: &str, tool: &str) -> anyhow::Result<()> {
    // Other checks report the problems of a manifest.
    let Ok(parsed) = parse(&file.source()) else { return Ok(()) };
    let manifest = parsed.manifest;
    let Some(policy) = manifest.component(component) else { return Ok(()) };
    let Some(listed) = names_of(file, &manifest, policy, &CodeCacheOptions::default())? else { return Ok(()) };
    if has(&listed, tool) {
        return Ok(());
    }
    Err(Failure::at_fault(format!("component {component:?} has no tool {tool:?}"), hint(&listed, tool)).into())
}

/// The tool that was probably meant, or all there are.
fn hint(listed: &ListedNames, tool: &str) -> String {
    let exposed = listed.tools.iter().find(|named| named.exposed == tool);
    let own = || listed.tools.iter().map(|named| named.own.as_str());
    if let Some(meant) = exposed.map(|named| named.own.as_str()).or_else(|| did_you_mean(tool, own())) {
        return format!("did you mean {meant:?}?");
    }
    let shown: Vec<&str> = own().take(SHOWN_MAX).collect();
    let more = if listed.tools.len() > SHOWN_MAX { ", …" } else { "" };
    if shown.is_empty() { "it has none".to_owned() } else { format!("it has: {}{more}", shown.join(", ")) }
}

#[cfg(test)]
mod tests {
    use toolcell_server::catalog::ToolNames;

    use super::*;

    #[test]
    fn what_no_client_lists_is_named_as_in_records() {
        let resources = Unlisted { export: "resources", component: "wiki" };
        assert_eq!(unlisted("resources/wiki"), Some(resources));
        assert_eq!(unlisted("completion/wiki").map(|found| found.component), Some("wiki"));
        for other in ["wiki/resources", "prompt/study", "resources"] {
            assert_eq!(unlisted(other), None, "{other}");
        }
    }

    #[test]
    fn a_tool_is_named_by_its_own_name_and_a_slip_is_guessed() {
        let tools = ["find", "normals"].map(|own| ToolNames { own: own.to_owned(), exposed: format!("wx_{own}") });
        let listed = ListedNames { imports: Vec::new(), tools: tools.into() };
        assert!(has(&listed, "find") && has(&listed, "prompt/study") && has(&listed, "resources"));
        assert!(!has(&listed, "wx_find") && !has(&listed, "fnid"));
        for (written, expected) in [
            ("fnid", "did you mean \"find\"?"),
            ("wx_normals", "did you mean \"normals\"?"),
            ("convert", "it has: find, normals"),
        ] {
            assert_eq!(hint(&listed, written), expected);
        }
        assert_eq!(hint(&ListedNames { imports: Vec::new(), tools: Vec::new() }, "x"), "it has none");
    }
}
