//! Problems of components, in words: files, loading, bounds and definitions.
use toolcell_mcp::{DefinitionProblem, McpTool, sanitize};
use toolcell_policy::{ComponentPolicy, Diagnostic, LoadLimit, ToolPolicy, names};
use toolcell_sandbox::NotLoaded;

use crate::files::file::Unreadable;

/// Most problems reported for one component: further ones most likely repeat the same mistake.
pub(super) const PROBLEMS_PER_COMPONENT_MAX: usize = 20;

/// Characters of a place in a schema that are shown: as many as its compiler gives.
const PLACE_CHARS_MAX: usize = 320;

/// The code of a component that was not loaded.
pub(crate) const NOT_LOADED: &str = "components::load";

/// Characters shown of an invalid name: enough to find it in the tool's source.
const NAME_CHARS_SHOWN: usize = 80;

pub(super) fn misnamed(policy: &ComponentPolicy, name: &str, error: &names::NameError) -> Diagnostic {
    let shown: String = name.chars().take(NAME_CHARS_SHOWN).collect();
    let message = format!("component \"{}\" lists a tool whose name {shown:?} {error}", policy.name());
    Diagnostic::error("tools::name", message).at(policy.source_span())
}

pub(super) fn broken(policy: &ComponentPolicy, tool: &str, problem: &DefinitionProblem) -> Diagnostic {
    // The text comes from a loader, which a component may control.
    let field = sanitize::line(&problem.field);
    let said = sanitize::line(&problem.message);
    let message = format!("component \"{}\", tool \"{tool}\": {field} {said}", policy.name());
    let own = policy.tool(tool).filter(|tool| tool.program().is_some()).map(ToolPolicy::name_span);
    let diagnostic = Diagnostic::error("tools::definition", message).at(own.unwrap_or_else(|| policy.source_span()));
    match &problem.hint {
        Some(hint) => diagnostic.hint(sanitize::line(hint)),
        None => diagnostic,
    }
}

pub(super) fn broken_resource(policy: &ComponentPolicy, uri: &str, problem: &DefinitionProblem) -> Diagnostic {
    let shown: String = sanitize::line(uri).chars().take(NAME_CHARS_SHOWN).collect();
    let field = sanitize::line(&problem.field);
    let said = sanitize::line(&problem.message);
    let message = format!("component \"{}\", resource {shown:?}: {field} {said}", policy.name());
    Diagnostic::error("resources::definition", message).at(policy.source_span())
}

/// Each problem once: compiling finds those of the precheck again.
pub(super) fn once(problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut told = Vec::with_capacity(problems.len());
    for problem in problems {
        if !told.contains(&problem) {
            told.push(problem);
        }
    }
    told
}

pub(super) fn not_compiled(policy: &ComponentPolicy) -> Diagnostic {
    let message = format!("component \"{}\" was not compiled: that takes long, and there are errors", policy.name());
    Diagnostic::warning("components::not_compiled", message)
        .at(policy.source_span())
        .hint("it is checked once they are mended")
}

pub(super) fn unreadable(policy: &ComponentPolicy, written: &str, error: &Unreadable) -> Diagnostic {
    let message = format!("component \"{}\": {written} {error}", policy.name());
    match error {
        Unreadable::TooLarge { .. } => {
            past(policy, "components::too_large", message, LoadLimit::ComponentSize, "build a smaller component")
        }
        Unreadable::Otherwise(_) => Diagnostic::error("components::source", message)
            .at(policy.source_span())
            .hint("paths are relative to the manifest's folder; has the component been built?"),
    }
}

pub(super) fn refused(policy: &ComponentPolicy, error: &NotLoaded) -> Diagnostic {
    let refused = |text: String| {
        let message = format!("component \"{}\": {text}", policy.name());
        Diagnostic::error(NOT_LOADED, message).at(policy.source_span())
    };
    match error {
        NotLoaded::Refused { message, hint, .. } => {
            refused(sanitize::line(message).into_owned()).hint(sanitize::line(hint))
        }
        NotLoaded::TooMuchMemory => {
            let memory = policy.load().show(LoadLimit::CompileMemory);
            let message = format!("component \"{}\": compiling it takes more memory than {memory}", policy.name());
            past(policy, "components::too_large", message, LoadLimit::CompileMemory, "build a smaller component")
        }
        NotLoaded::Ended { .. } => refused(sanitize::line(&error.to_string()).into_owned())
            .hint("load it again; if that ends the same way, it met a fault of the engine, or was made to harm"),
        NotLoaded::TooLate => {
            let time = policy.load().show(LoadLimit::CompileTime);
            let message = format!("component \"{}\": compiling it takes longer than {time}", policy.name());
            past(policy, "components::too_slow", message, LoadLimit::CompileTime, "build a smaller component")
        }
        NotLoaded::Walls(_) | NotLoaded::Failed(_) => refused(error.to_string()),
    }
}

/// Error: no time is left to check the schemas of its tools.
pub(super) fn schemas_too_slow(policy: &ComponentPolicy) -> Diagnostic {
    let time = policy.load().show(LoadLimit::CompileTime);
    let message =
        format!("component \"{}\": compiling it and its tools' schemas takes longer than {time}", policy.name());
    past(policy, "components::too_slow", message, LoadLimit::CompileTime, "use fewer and simpler patterns")
}

pub(super) fn check_count(policy: &ComponentPolicy, listed: usize, what: &str) -> Result<(), Diagnostic> {
    let tools_max = policy.load().tools();
    if listed <= tools_max {
        return Ok(());
    }
    let message = format!("component \"{}\" lists {listed} {what}; a component may list {tools_max}", policy.name());
    Err(past(policy, "tools::too_many", message, LoadLimit::Tools, "offer fewer tools"))
}

/// Warning: patterns in a component's schemas that are not checked.
pub(super) fn not_applied<'t>(
    policy: &ComponentPolicy,
    tools: impl Iterator<Item = &'t McpTool>,
) -> Option<Diagnostic> {
    let mut places = tools.flat_map(|tool| {
        let name = &tool.definition().name;
        tool.unapplied_patterns().iter().map(move |place| {
            let place: String = sanitize::line(place).chars().take(PLACE_CHARS_MAX).collect();
            format!("tool \"{name}\": {place}")
        })
    });
    let first = places.next()?;
    let more = match places.count() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let name = policy.name();
    let message =
        format!("component \"{name}\", {first}{more} looks around, refers back or is too large, and is not applied");
    let diagnostic = Diagnostic::warning("tools::pattern", message).at(policy.source_span());
    Some(diagnostic.hint("the tool has to check such values itself"))
}

pub(super) fn not_pooled(policy: &ComponentPolicy) -> Diagnostic {
    let message = format!("component \"{}\" does not fit the pool: each call maps its memory anew", policy.name());
    Diagnostic::warning("components::not_pooled", message)
        .at(policy.source_span())
        .hint("its calls work and cost more; a table of at most 32,768 elements would fit")
}

/// Error: a component exceeds this limit of loading. `otherwise` is advice in addition to raising
/// it.
pub(super) fn past(
    policy: &ComponentPolicy,
    code: &'static str,
    message: String,
    limit: LoadLimit,
    otherwise: &str,
) -> Diagnostic {
    let key = limit.spec().key;
    let name = policy.name();
    Diagnostic::error(code, format!("{message} (limit \"{key}\")"))
        .at(policy.source_span())
        .hint(format!("{otherwise}, or raise {key} in [components.{name}.load]"))
}
