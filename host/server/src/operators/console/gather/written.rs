//! The current manifest file, for the places of grants and limits.
use std::path::Path;
use std::sync::Arc;

use toolcell_console::model::Place;
use toolcell_policy::{Callers, Grants, Manifest, Source, Span, parse};

use crate::catalog::ToolOffer;
use crate::files::file::read_bounded;

/// A manifest with the text that it was read from.
pub struct WrittenManifest {
    name: String,
    text: String,
    pub manifest: Manifest,
}

impl WrittenManifest {
    /// The manifest in this file; `None` if it cannot be read, or has problems.
    pub fn read(path: &Path) -> Option<Self> {
        let name = path.display().to_string();
        let bytes = read_bounded(path, toolcell_policy::MANIFEST_BYTES_MAX as u64).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let manifest = parse(&Source { name: &name, text: &text }).ok()?.manifest;
        Some(Self { name, text, manifest })
    }

    /// The file and line of a place in its text.
    pub fn place(&self, span: Span) -> Place {
        let position = Source { name: &self.name, text: &self.text }.position(span.start);
        Place { file: self.name.clone(), line: position.line as u64, key: String::new() }
    }
    /// The place of a rule of `[callers]`; `None` if the file has another one by now.
    pub fn place_of_caller_rule(&self, serving: &Callers, name: &str) -> Option<Place> {
        let written = self.manifest.callers();
        let rule = written.rules().iter().find(|rule| rule.name() == name)?;
        let is_same = !written.differing(serving).contains(&name);
        is_same.then(|| Place { key: format!("callers.{name}"), ..self.place(rule.span().clone()) })
    }
    /// The grants of a tool in the file; `None` if its component is no longer there.
    pub fn grants(&self, offer: &ToolOffer<'_>) -> Option<Arc<Grants>> {
        Some(self.manifest.component(offer.component().name())?.tool_grants(offer.own_name()))
    }
}
