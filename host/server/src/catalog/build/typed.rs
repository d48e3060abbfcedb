//! Components whose functions are tools: their descriptions, and manifest keys that do not fit
//! them. Must not hold: where `.wit` files are.
use std::path::Path;

use toolcell_policy::{ComponentPolicy, Diagnostic};
use toolcell_sandbox::{Descriptions, HeldComponent, LeftOut, WrittenDescriptions};

use super::problems::PROBLEMS_PER_COMPONENT_MAX;
use crate::wit;

/// Descriptions of the component from outside: in the manifest, and in the `.wit` files it names.
pub(super) fn descriptions(policy: &ComponentPolicy, folder: &Path) -> Result<Descriptions, Diagnostic> {
    written(policy, folder)?.read().map_err(|error| no_wit(policy, &error.to_string()))
}

/// Those descriptions, of which nothing is parsed.
pub(super) fn written(policy: &ComponentPolicy, folder: &Path) -> Result<WrittenDescriptions, Diagnostic> {
    let given = policy.typed().descriptions().iter().map(|given| (given.key().to_owned(), given.text().to_owned()));
    let files = policy.typed().wit().map(|written| wit::files(&folder.join(written), written));
    let wit = files.transpose().map_err(|problem| no_wit(policy, &problem))?;
    Ok(WrittenDescriptions { given: given.collect(), wit })
}

/// Error: the `.wit` files that the manifest names cannot be read.
pub(super) fn no_wit(policy: &ComponentPolicy, problem: &str) -> Diagnostic {
    let message = format!("component \"{}\": {problem}", policy.name());
    let diagnostic = Diagnostic::error("components::wit", message);
    match policy.typed().wit_span() {
        Some(span) => diagnostic.at(span),
        None => diagnostic,
    }
}

/// Refuses functions that cannot be tools, unless the manifest leaves them out.
pub(super) fn check_supported(policy: &ComponentPolicy, component: &HeldComponent) -> Result<(), Diagnostic> {
    if component.left_out().is_empty() || policy.typed().skip_unsupported() {
        return Ok(());
    }
    let functions = listed(component.left_out());
    let message = format!("component \"{}\" exports what cannot be a tool: {functions}", policy.name());
    Err(Diagnostic::error("components::unsupported", message)
        .at(policy.source_span())
        .hint("skip_unsupported = true leaves such functions out"))
}

/// Descriptions that do not fit the component, and functions that it goes without.
pub(super) fn check(policy: &ComponentPolicy, component: &HeldComponent) -> Vec<Diagnostic> {
    let mut problems = policy.typed().check(policy.name(), component.describable().as_deref());
    if !component.left_out().is_empty() {
        let message = format!("component \"{}\" goes without {}", policy.name(), listed(component.left_out()));
        problems.push(Diagnostic::warning("components::left_out", message).at(policy.source_span()));
    }
    problems
}

fn listed(left_out: &[LeftOut]) -> String {
    let shown: Vec<String> = left_out.iter().take(PROBLEMS_PER_COMPONENT_MAX).map(LeftOut::to_string).collect();
    let more = left_out.len() - shown.len();
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{}{more}", shown.join("; "))
}
