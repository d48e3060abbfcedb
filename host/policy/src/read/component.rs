//! Reads `[components.NAME]` and the tools in it. Must not hold: files, or what the component really exports.

use std::sync::Arc;

use super::{
    Entry, Problems, Section, approval, grants, hints, instance, keys, limits, narrow, program, resources, texts, typed,
};
use crate::diagnostic::{Diagnostic, Span};
use crate::grants::Grants;
use crate::limits::{Limits, LoadLimits};
use crate::manifest::{Approval, ComponentPolicy, SourceRef, ToolPolicy};
use crate::names::{self, NameError};
use crate::parse::COMPONENTS_MAX;

/// What holds for components that say nothing of their own.
#[derive(Default)]
pub(crate) struct Defaults {
    pub(crate) limits: Limits,
    pub(crate) load: LoadLimits,
}

/// What a tool has of its component.
struct Inherited<'c> {
    prefix: Option<&'c str>,
    limits: &'c Limits,
    grants: &'c Arc<Grants>,
    approval: Approval,
}

/// All components, in the order of the file. Those with problems are left out once the problems are noted.
pub(crate) fn read_all(root: &Section<'_>, defaults: &Defaults, problems: &mut Problems) -> Vec<ComponentPolicy> {
    let Some(entry) = root.get("components") else {
        problems.add(none());
        return Vec::new();
    };
    let Some(section) = entry.section(problems) else { return Vec::new() };
    if section.len() == 0 {
        problems.add(none().at(entry.key_span.clone()));
    }
    if section.len() > COMPONENTS_MAX {
        let message = format!("{} components, {COMPONENTS_MAX} are allowed", section.len());
        problems.add(Diagnostic::error("components::too_many", message).at(entry.key_span));
        return Vec::new();
    }
    section.entries().into_iter().filter_map(|entry| read(&entry, defaults, problems)).collect()
}

fn none() -> Diagnostic {
    Diagnostic::warning("components::none", "no components: there will be no tools")
        .hint("add [components.NAME] with source = \"FILE.wasm\"")
}

fn read(entry: &Entry<'_>, defaults: &Defaults, problems: &mut Problems) -> Option<ComponentPolicy> {
    if let Err(error) = names::check_component(entry.key) {
        problems.add(
            name_problem("components::name", "component name", entry, &entry.key_span, error)
                .hint("component names are 1 to 64 of a-z, 0-9, _ and -, and start with a letter or a digit"),
        );
    }
    let section = entry.section(problems)?;
    section.check_keys(&keys::COMPONENT, problems);
    let source = read_source(entry, &section, problems);
    let prefix = section.get("prefix").and_then(|entry| read_prefix(&entry, problems));
    let typed = typed::read(&section, problems);
    let limits = limits::read(&section, &defaults.limits, problems);
    let load = limits::read_load(&section, &defaults.load, problems);
    let (instance, prewarm) = instance::read(&section, problems);
    let grants = grants::read(entry.key, &section, problems);
    let approval = approval::read(&section, Approval::default(), problems);
    let resources = resources::read(&section, problems);
    let prefixed = prefix.as_ref().map(|(prefix, _)| prefix.as_str());
    let inherited = Inherited { prefix: prefixed, limits: &limits, grants: &grants, approval };
    let tools = read_tools(&section, &inherited, problems);
    let (source, source_span) = source?;
    let name = entry.key.to_owned();
    let name_span = entry.key_span.clone();
    Some(ComponentPolicy {
        name,
        name_span,
        source,
        source_span,
        prefix,
        typed,
        limits,
        load,
        instance,
        prewarm,
        grants,
        approval,
        resources,
        tools,
    })
}

fn read_source(component: &Entry<'_>, section: &Section<'_>, problems: &mut Problems) -> Option<(SourceRef, Span)> {
    let Some(entry) = section.get("source") else {
        let message = format!("component {:?} has no source", component.key);
        problems.add(
            Diagnostic::error("manifest::missing", message)
                .at(component.key_span.clone())
                .hint("add source = \"FILE.wasm\", a path relative to the manifest"),
        );
        return None;
    };
    let text = entry.string(problems)?;
    if let Some(problem) = source_problem(text) {
        problems.add(problem.at(entry.span));
        return None;
    }
    Some((SourceRef::File(text.to_owned()), entry.span))
}

/// What keeps a text from being the source of a component.
fn source_problem(text: &str) -> Option<Diagnostic> {
    if text.starts_with("oci://") {
        let message = "an oci:// source is not supported by this version";
        Some(Diagnostic::error("manifest::not_supported_yet", message).hint("fetch the component and name the file"))
    } else {
        path_problem("source", text, "\"components/weather.wasm\"")
    }
}

/// What keeps the text of a key from being the relative path of a file.
pub(super) fn path_problem(key: &str, text: &str, example: &str) -> Option<Diagnostic> {
    let error = |message: &str| Diagnostic::error("components::source", format!("{key} must {message}"));
    let relative = format!("write a path relative to the manifest, such as {example}");
    let drive = text.as_bytes().get(1) == Some(&b':');
    if text.contains("://") {
        Some(error("be a file, not an address").hint(relative))
    } else if text.is_empty() || text.ends_with(['/', '\\']) {
        Some(error("name a file").hint(relative))
    } else if text.starts_with(['/', '\\']) || drive {
        Some(error("be relative to the manifest, not an absolute path").hint(relative))
    } else if text.chars().any(char::is_control) {
        Some(error("not contain control characters"))
    } else {
        None
    }
}

fn read_prefix(entry: &Entry<'_>, problems: &mut Problems) -> Option<(String, Span)> {
    let prefix = entry.string(problems)?;
    if let Err(error) = names::check_prefix(prefix) {
        let hint = match error {
            NameError::Empty => "leave the key out for tools without a prefix",
            _ => "a prefix is 1 to 63 of A-Z, a-z, 0-9, _ and -",
        };
        let message = format!("prefix {error}");
        problems.add(Diagnostic::error("components::prefix", message).at(entry.span.clone()).hint(hint));
        return None;
    }
    Some((prefix.to_owned(), entry.span.clone()))
}

fn read_tools(component: &Section<'_>, inherited: &Inherited<'_>, problems: &mut Problems) -> Vec<ToolPolicy> {
    let section = component.get("tools").and_then(|entry| entry.section(problems));
    let entries = section.map(|section| section.entries()).unwrap_or_default();
    entries.into_iter().filter_map(|entry| read_tool(&entry, inherited, problems)).collect()
}

fn read_tool(entry: &Entry<'_>, inherited: &Inherited<'_>, problems: &mut Problems) -> Option<ToolPolicy> {
    if let Err(error) = names::check_tool(entry.key) {
        problems.add(
            name_problem("tools::name", "tool name", entry, &entry.key_span, error)
                .hint("tool names are 1 to 64 of A-Z, a-z, 0-9, _ and -"),
        );
    } else if let Err(error) = names::exposed(inherited.prefix, entry.key) {
        let message = format!("tool name {:?} with its prefix {error}", entry.key);
        problems.add(Diagnostic::error("tools::name", message).at(entry.key_span.clone()).hint("shorten the prefix"));
    }
    let section = entry.section(problems)?;
    section.check_keys(&keys::TOOL, problems);
    let limits = limits::read(&section, inherited.limits, problems);
    let grants = narrow::read(entry.key, &section, inherited.grants, problems);
    let title = section.get("title").and_then(|entry| texts::line(&entry, "tools::text", problems));
    let description = section.get("description").and_then(|entry| texts::lines(&entry, "tools::text", problems));
    let hints = hints::read(&section, problems);
    let program = program::read(entry, &section, &grants, problems).map(Arc::new);
    let approval = approval::read(&section, inherited.approval, problems);
    let (name, name_span) = (entry.key.to_owned(), entry.key_span.clone());
    Some(ToolPolicy { name, name_span, title, description, hints, program, limits, grants, approval })
}

fn name_problem(code: &'static str, what: &str, entry: &Entry<'_>, span: &Span, error: NameError) -> Diagnostic {
    Diagnostic::error(code, format!("{what} {:?} {error}", entry.key)).at(span.clone())
}
