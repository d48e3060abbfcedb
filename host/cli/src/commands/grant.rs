//! `toolcell grant` and `toolcell revoke`: rights of a component, added to the manifest or taken
//! out of it in place.
use toolcell_policy::edit::{ManifestEdit, ManifestEntry};
use toolcell_policy::{Source, parse, render_all};
use toolcell_server::catalog::folder_of;
use toolcell_server::{ManifestFile, requested_permissions};

use crate::args::{GrantArgs, RevokeArgs};
use crate::edit::{self, apply_or_report, rights};
use crate::exit::{Exit, Failure};
use crate::listed;
use crate::terminal;

/// Adds rights.
pub fn run(args: &GrantArgs) -> anyhow::Result<Exit> {
    let (file, mut edit) = edit::read(&args.manifest.manifest)?;
    edit::check_known(&file, &edit, &args.component)?;
    check_tool(&file, &args.component, args.tool.as_deref())?;
    for right in &args.rights {
        let entry = rights::read(right)?;
        let added = match &args.tool {
            Some(tool) => edit.widen(&args.component, tool, &entry).map(drop),
            None => grant(&mut edit, &args.component, right, &entry),
        };
        added.map_err(|problem| {
            let problem = format!("{right:?} cannot be granted: {problem}");
            Failure::at_fault(problem, "revoke that first, or edit the manifest")
        })?;
    }
    let text = edit.text();
    edit::loads(&file, &text)?;
    warn_beyond(&file, &text, &args.component);
    apply_or_report(&file, &text, args.consent.consent())
}

/// Warns of rights that the component does not request. Does not read its code; other commands
/// report unreadable components and invalid manifests.
fn warn_beyond(file: &ManifestFile, text: &str, component: &str) {
    let source = Source { name: file.name(), text };
    let Ok(manifest) = parse(&source).map(|parsed| parsed.manifest) else { return };
    let Some(policy) = manifest.component(component) else { return };
    let Some(carried) = requested_permissions::carried_by(&manifest, policy, &folder_of(file.path())) else { return };
    let warnings = requested_permissions::check(policy, &carried);
    if !warnings.is_empty() {
        terminal::eprint(&render_all(&source, &warnings, terminal::stderr_style()));
    }
}

/// Takes rights away.
pub fn revoke(args: &RevokeArgs) -> anyhow::Result<Exit> {
    let (file, mut edit) = edit::read(&args.manifest.manifest)?;
    edit::check_known(&file, &edit, &args.component)?;
    check_tool(&file, &args.component, args.tool.as_deref())?;
    for right in &args.rights {
        let entry = rights::read(right)?;
        let taken = match &args.tool {
            Some(tool) => edit.narrow(&args.component, tool, &entry).map_err(|problem| {
                let problem = format!("{right:?} cannot be taken from {tool}: {problem}");
                Failure::at_fault(problem, "edit the manifest")
            })?,
            None => edit.remove(&args.component, &entry),
        };
        if !taken {
            let whose = args.tool.as_ref().map_or_else(String::new, |tool| format!("/{tool}"));
            let problem = format!("{}{whose} has no such right: {right:?}", args.component);
            let hint = "write it as the manifest does; `toolcell check` lists the rights of each tool";
            return Err(Failure::at_fault(problem, hint).into());
        }
    }
    let text = edit.text();
    edit::loads(&file, &text)?;
    apply_or_report(&file, &text, args.consent.consent())
}

/// Checks that the component has this tool.
fn check_tool(file: &ManifestFile, component: &str, tool: Option<&str>) -> anyhow::Result<()> {
    tool.map_or(Ok(()), |tool| listed::check_tool(file, component, tool))
}

/// Adds a right, with what it requires.
pub(super) fn grant(
    edit: &mut ManifestEdit,
    component: &str,
    right: &str,
    entry: &ManifestEntry,
) -> Result<(), String> {
    edit.add(component, entry)?;
    ManifestEntry::private_of_right(right).iter().try_for_each(|entry| edit.add(component, entry))
}
