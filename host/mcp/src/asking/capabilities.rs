//! The capabilities that a client declares for questions. Must not hold: its other capabilities.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::QuestionKind;
use crate::revision::Revision;

/// The capabilities that questions need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    form: bool,
    page: bool,
    sampling: bool,
    pub(super) sampling_tools: bool,
    pub(super) sampling_context: bool,
    roots: bool,
}

#[derive(Deserialize)]
struct Declared {
    elicitation: Option<Elicitation>,
    sampling: Option<Sampling>,
    roots: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Elicitation {
    form: Option<IgnoredAny>,
    url: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Sampling {
    tools: Option<IgnoredAny>,
    context: Option<IgnoredAny>,
}

impl Capabilities {
    /// Reads a `ClientCapabilities`. Ill-typed members count as not declared, and so do members
    /// that the revision does not have.
    pub(crate) fn read(text: &str, revision: Revision) -> Self {
        let Ok(declared) = serde_json::from_str::<Declared>(text) else { return Self::default() };
        let features = revision.features();
        let elicitation = declared.elicitation.filter(|_| features.elicitation);
        let sampling = declared.sampling;
        let rich = features.rich_asks;
        Self {
            // An empty object stands for form mode (2026-07-28, Elicitation, "Capabilities").
            form: elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none()),
            page: rich && elicitation.as_ref().is_some_and(|modes| modes.url.is_some()),
            sampling: sampling.is_some(),
            sampling_tools: rich && sampling.as_ref().is_some_and(|sampling| sampling.tools.is_some()),
            sampling_context: !rich || sampling.as_ref().is_some_and(|sampling| sampling.context.is_some()),
            roots: declared.roots.is_some(),
        }
    }

    /// True if the client can be asked this.
    pub(crate) const fn has(self, kind: QuestionKind) -> bool {
        match kind {
            QuestionKind::Form => self.form,
            QuestionKind::Page => self.page,
            QuestionKind::Sampling => self.sampling,
            QuestionKind::Roots => self.roots,
        }
    }
}

/// The `requiredCapabilities` of questions of these kinds, as JSON.
pub(super) fn required(kinds: &[QuestionKind]) -> String {
    let has = |kind| kinds.contains(&kind);
    let mut members = Vec::new();
    let modes: Vec<&str> = [(QuestionKind::Form, r#""form":{}"#), (QuestionKind::Page, r#""url":{}"#)]
        .into_iter()
        .filter_map(|(kind, mode)| has(kind).then_some(mode))
        .collect();
    if !modes.is_empty() {
        members.push(format!(r#""elicitation":{{{}}}"#, modes.join(",")));
    }
    if has(QuestionKind::Sampling) {
        members.push(r#""sampling":{}"#.to_owned());
    }
    if has(QuestionKind::Roots) {
        members.push(r#""roots":{}"#.to_owned());
    }
    format!(r#"{{"requiredCapabilities":{{{}}}}}"#, members.join(","))
}

/// The capability that a question of this kind needs, for people.
pub(super) const fn wanting(kind: QuestionKind) -> &'static str {
    match kind {
        QuestionKind::Form => "elicitation with forms",
        QuestionKind::Page => "elicitation with pages (\"url\")",
        QuestionKind::Sampling => "sampling",
        QuestionKind::Roots => "roots",
    }
}
