//! Prompts of the manifest itself: fixed texts, which no guest writes.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use toolcell_mcp::{ContentIcon, IconTheme, McpTool, PromptArgument, ToolDefinition};
use toolcell_policy::{
    Callable, Diagnostic, IconRule, Limits, Manifest, PROMPT_BYTES_MAX, PromptRule, PromptSource, PromptText, ToolName,
};
use toolcell_sandbox::ComponentDigest;

use super::Catalog;
use super::meters::{self, Meters};
use super::queue::Admission;
use crate::files::file;
use crate::files::file::absolute;

/// The name of all of them together, where a component's name would stand. No component has a dot.
pub const TEXTS: &str = "manifest.prompts";

/// One prompt of the manifest.
pub struct TextPrompt {
    /// Its definition.
    pub(crate) entry: Arc<McpTool>,
    /// Its text.
    pub(crate) text: PromptText,
    /// Limits of all calls that set none of their own.
    pub(crate) limits: Limits,
    /// `sha256:…` of its definition and its text.
    pub(crate) digest: String,
    pub(crate) admission: Arc<Admission>,
    pub(crate) meters: Arc<Meters>,
}

/// The files of a manifest's prompts.
pub fn files(manifest: &Manifest, folder: &Path) -> BTreeSet<PathBuf> {
    manifest.prompts().iter().filter_map(PromptRule::file).map(|file| absolute(&folder.join(file))).collect()
}

/// Reads the prompts of a manifest, in its order. `earlier` is what serves: a prompt of the same
/// name goes on with its counts and allowances.
pub fn build(
    manifest: &Manifest,
    folder: &Path,
    earlier: Option<&Catalog>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Arc<TextPrompt>> {
    let mut all = Vec::new();
    for rule in manifest.prompts() {
        let before = earlier.and_then(|earlier| earlier.texts().find(|prompt| prompt.name() == rule.name()));
        match one(rule, manifest.default_limits(), folder, before) {
            Ok(prompt) => all.push(Arc::new(prompt)),
            Err(found) => problems.extend(found),
        }
    }
    all
}

/// `sha256:…` of all prompts of a catalog.
pub fn digest(catalog: &Catalog) -> String {
    let each: Vec<(&str, &str)> = catalog.texts().map(|prompt| (prompt.name(), prompt.digest.as_str())).collect();
    ComponentDigest::of(json!(each).to_string().as_bytes()).to_string()
}

/// True if clients get the same prompts from both.
pub fn are_like(one: &Catalog, other: &Catalog) -> bool {
    let of_each = |prompt: &Arc<TextPrompt>| (prompt.name().to_owned(), prompt.digest.clone(), prompt.limits);
    one.texts().map(of_each).eq(other.texts().map(of_each))
}

impl TextPrompt {
    /// The name that clients use.
    pub fn name(&self) -> &str {
        self.entry.prompt().map_or("", |prompt| prompt.name())
    }

    /// Its name, as rules for callers match it.
    pub fn called(&self) -> ToolName<'_> {
        let name = self.name();
        ToolName { kind: Callable::Prompt, component: TEXTS, own: name, exposed: name }
    }
}

fn one(
    rule: &PromptRule,
    limits: &Limits,
    folder: &Path,
    before: Option<&Arc<TextPrompt>>,
) -> Result<TextPrompt, Vec<Diagnostic>> {
    let text = match rule.source() {
        PromptSource::Text(text) => text.clone(),
        PromptSource::File(written) => read(rule, written, folder).map_err(|problem| vec![problem])?,
    };
    let digest = ComponentDigest::of(rule.canonical(&text).as_bytes()).to_string();
    let description = rule.description().unwrap_or_default();
    let definition = ToolDefinition {
        title: rule.title().map(str::to_owned),
        icons: rule.icons().iter().map(icon).collect(),
        ..ToolDefinition::new(rule.name(), description, json!({"type": "object"}))
    };
    let arguments = rule.arguments().iter().map(|argument| PromptArgument {
        name: argument.name().to_owned(),
        title: argument.title().map(str::to_owned),
        description: argument.description().map(str::to_owned),
        required: argument.required(),
        values: argument.values().to_vec(),
    });
    let entry = McpTool::compile(definition).and_then(|entry| entry.into_prompt(arguments.collect()));
    let entry = entry.map_err(|found| {
        let wrong = |problem: &toolcell_mcp::DefinitionProblem| {
            let message = format!("the prompt {:?}: {} {}", rule.name(), problem.field, problem.message);
            Diagnostic::error("prompts::definition", message).at(rule.span())
        };
        found.iter().map(wrong).collect::<Vec<_>>()
    })?;
    let path = &entry.definition().name;
    let meters = meters::continued(before.map(|before| &before.meters));
    let kept = before.filter(|before| before.admission.suits(limits)).map(|before| Arc::clone(&before.admission));
    let admission = kept.unwrap_or_else(|| Arc::new(Admission::new(limits, TEXTS, path).counting(&meters)));
    Ok(TextPrompt { entry: Arc::new(entry), text, limits: *limits, digest, admission, meters })
}

/// Reads the text of a file.
fn read(rule: &PromptRule, written: &str, folder: &Path) -> Result<PromptText, Diagnostic> {
    let wrong = |problem: String| {
        let message = format!("the prompt {:?}: {written} {problem}", rule.name());
        Diagnostic::error("prompts::file", message).at(rule.span())
    };
    let bytes = file::read(&folder.join(written), PROMPT_BYTES_MAX as u64);
    let bytes = bytes.map_err(|error| wrong(error.to_string()).hint("paths are relative to the manifest's folder"))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8 text".to_owned()))?;
    rule.read_text(&text)
}

/// An icon, as clients get it.
pub fn icon(rule: &IconRule) -> ContentIcon {
    ContentIcon {
        src: rule.src().to_owned(),
        mime_type: rule.mime_type().map(str::to_owned),
        sizes: rule.sizes().to_vec(),
        theme: rule.is_for_dark().map(|dark| if dark { IconTheme::Dark } else { IconTheme::Light }),
    }
}
