//! Components whose functions are tools: their descriptions, and manifest keys that do not fit
//! them.
use std::path::Path;

use toolcell_mcp::sanitize;
use toolcell_policy::{ComponentPolicy, Diagnostic, ExportedFunctions};
use toolcell_sandbox::{HeldComponent, LeftOutFunction, WrittenDescriptions};

use super::problems::{PROBLEMS_PER_COMPONENT_MAX, check_count};
use crate::files::wit;

/// Characters of a function and its reason that are shown: enough to find it in its WIT.
const LEFT_OUT_CHARS_MAX: usize = 300;

/// Descriptions of the component from outside: in the manifest, and in the `.wit` files it names.
/// Nothing is parsed here. Includes the files of `toolcell dev`.
pub(super) fn written(
    policy: &ComponentPolicy,
    folder: &Path,
    dev_source: Option<&str>,
) -> Result<WrittenDescriptions, Diagnostic> {
    let given = policy.typed().descriptions().iter().map(|given| (given.key().to_owned(), given.text().to_owned()));
    let files = policy.typed().wit().map(|written| wit::files(&folder.join(written), written));
    let wit = files.transpose().map_err(|problem| no_wit(policy, &problem))?;
    let exports = policy.typed().exports().iter();
    let exports = exports.map(|export| (export.function().to_owned(), export.tool().to_owned()));
    let dev_source = dev_source.map(str::to_owned);
    Ok(WrittenDescriptions { exports: exports.collect(), given: given.collect(), wit, dev_source })
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

/// Counts the functions that become tools.
///
/// # Errors
/// None of them can be a tool, or they are too many.
pub(super) fn check_functions(policy: &ComponentPolicy, component: &HeldComponent) -> Result<(), Diagnostic> {
    let Some(functions) = component.functions() else { return Ok(()) };
    if functions.is_empty() {
        let left_out = listed(component.left_out());
        let message = format!("component \"{}\" exports no function that can be a tool: {left_out}", policy.name());
        return Err(Diagnostic::error("components::unsupported", message)
            .at(policy.source_span())
            .hint("export a function over values that JSON can carry"));
    }
    let chosen = policy.typed().exports().len();
    check_count(policy, if chosen > 0 { chosen } else { functions.len() }, "tools")
}

/// Reports keys of the manifest that do not fit the component's functions, and functions that are
/// left out.
pub(super) fn check(policy: &ComponentPolicy, component: &HeldComponent) -> Vec<Diagnostic> {
    let left_out = component.left_out();
    let names: Vec<_> = left_out.iter().map(|it| (it.function.as_str(), it.reason.as_str())).collect();
    let mut problems = policy.typed().check(
        policy.name(),
        ExportedFunctions {
            served: component.functions().as_deref(),
            left_out: &names,
            describable: &component.describable().unwrap_or_default(),
        },
    );
    if !left_out.is_empty() && !policy.typed().skip_unsupported() && policy.typed().exports().is_empty() {
        let message = format!("component \"{}\" goes without {}", policy.name(), listed(left_out));
        let problem = Diagnostic::warning("components::left_out", message).at(policy.source_span());
        problems.push(problem.hint("skip_unsupported = true takes this warning away"));
    }
    problems
}

fn listed(left_out: &[LeftOutFunction]) -> String {
    let shown = left_out.iter().take(PROBLEMS_PER_COMPONENT_MAX);
    // Its names may be long, and a loader may report any text.
    let shown: Vec<String> = shown.map(|it| sanitize::line(&clipped(&it.to_string())).into_owned()).collect();
    let more = left_out.len() - shown.len();
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{}{more}", shown.join("; "))
}

/// The beginning of a text.
fn clipped(text: &str) -> String {
    match text.char_indices().nth(LEFT_OUT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
