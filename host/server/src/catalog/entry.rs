//! One entry of a catalog's list, with what belongs to it.
use std::sync::Arc;

use toolcell_mcp::McpTool;
use toolcell_policy::{CALLED_IF, ToolName};

use super::arguments::CallerRules;
use super::visibility::{CALLED_BY, NOBODY};
use super::{CallTarget, LoadedComponent, TextPrompt, skills};

/// A tool or another export of a component, a prompt of the manifest, or a skill.
#[derive(Clone)]
pub(crate) struct CatalogEntry {
    pub kind: EntryKind,
    /// The rules for its callers, from the manifest that it was loaded with.
    pub rules: Arc<CallerRules>,
}

#[derive(Clone)]
pub(crate) enum EntryKind {
    Export(Arc<CallTarget>),
    Text(Arc<TextPrompt>),
    Skill(Arc<McpTool>),
}

impl CatalogEntry {
    /// Its definition.
    pub fn tool(&self) -> &Arc<McpTool> {
        match &self.kind {
            EntryKind::Export(target) => &target.tool,
            EntryKind::Text(text) => &text.entry,
            EntryKind::Skill(entry) => entry,
        }
    }

    /// Its names, for rules about callers.
    pub fn called(&self) -> ToolName<'_> {
        match &self.kind {
            EntryKind::Export(target) => target.called(),
            EntryKind::Text(text) => text.called(),
            EntryKind::Skill(entry) => skills::called(entry),
        }
    }

    /// Rules for its callers, in words; `None`: everybody. Evaluates every pattern of every rule.
    pub fn called_by(&self) -> Option<Vec<String>> {
        let own = self.target().and_then(|target| target.arguments.as_ref());
        let own = own.map(|checks| checks.conditions().words());
        if !self.rules.tells_apart() {
            return own.map(|own| vec![format!("{CALLED_BY}everybody{CALLED_IF}{own}")]);
        }
        let words = self.rules.words(&self.called());
        if words.is_empty() {
            return Some(vec![NOBODY.to_owned()]);
        }
        Some(match own {
            Some(own) => words.into_iter().map(|line| also_if(line, &own)).collect(),
            None => words,
        })
    }

    /// The target of its calls, if it is an export.
    pub fn target(&self) -> Option<&Arc<CallTarget>> {
        match &self.kind {
            EntryKind::Export(target) => Some(target),
            EntryKind::Text(_) | EntryKind::Skill(_) => None,
        }
    }

    /// The prompt of the manifest, if it is one.
    pub fn text(&self) -> Option<&Arc<TextPrompt>> {
        match &self.kind {
            EntryKind::Text(text) => Some(text),
            EntryKind::Export(_) | EntryKind::Skill(_) => None,
        }
    }

    /// True if it is an export of this component.
    pub fn is_of(&self, component: &Arc<LoadedComponent>) -> bool {
        self.target().is_some_and(|target| Arc::ptr_eq(&target.component, component))
    }
}

/// A text that says who may call a tool, with further conditions.
fn also_if(line: String, further: &str) -> String {
    let and = if line.contains(CALLED_IF) { " and " } else { CALLED_IF };
    format!("{line}{and}{further}")
}

/// The targets among these entries.
pub(crate) fn targets(entries: &[CatalogEntry]) -> impl Iterator<Item = &Arc<CallTarget>> + Clone {
    entries.iter().filter_map(CatalogEntry::target)
}
