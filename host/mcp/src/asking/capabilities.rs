//! The capabilities that a client declares for questions.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::QuestionKind;
use crate::revision::Revision;
use crate::task::EXTENSION;

/// The capabilities that questions need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AskCapabilities {
    form: bool,
    page: bool,
    sampling: bool,
    sampling_tools: bool,
    sampling_context: bool,
    roots: bool,
    /// The extension of tasks, which modern requests declare.
    tasks: bool,
}

/// One capability that a question needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskNeed {
    /// The capability for questions of a kind.
    Kind(QuestionKind),
    /// Sampling with `tools` or `toolChoice`.
    SamplingTools,
    /// Sampling with an `includeContext` other than "none".
    SamplingContext,
}

#[derive(Deserialize)]
struct DeclaredAnswers {
    elicitation: Option<Elicitation>,
    sampling: Option<Sampling>,
    roots: Option<IgnoredAny>,
    #[serde(default)]
    extensions: Value,
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

impl AskCapabilities {
    /// Reads a `ClientCapabilities`. Members of a wrong type, or that the revision does not have,
    /// count as not declared.
    pub(crate) fn read(text: &str, revision: Revision) -> Self {
        let Ok(declared) = serde_json::from_str::<DeclaredAnswers>(text) else { return Self::default() };
        let features = revision.features();
        let elicitation = declared.elicitation.filter(|_| features.elicitation);
        let sampling = declared.sampling;
        let rich = features.rich_asks;
        Self {
            // An empty object means form mode (2026-07-28, Elicitation, "Capabilities").
            form: elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none()),
            page: rich && elicitation.as_ref().is_some_and(|modes| modes.url.is_some()),
            sampling: sampling.is_some(),
            sampling_tools: rich && sampling.as_ref().is_some_and(|sampling| sampling.tools.is_some()),
            sampling_context: !rich || sampling.as_ref().is_some_and(|sampling| sampling.context.is_some()),
            roots: declared.roots.is_some(),
            tasks: revision.is_modern() && declared.extensions.get(EXTENSION).is_some_and(Value::is_object),
        }
    }

    /// The capabilities as bits, for an id that holds them.
    pub(crate) fn bits(self) -> u8 {
        // Sessions declare no extensions.
        let Self { form, page, sampling, sampling_tools, sampling_context, roots, tasks: _ } = self;
        let flags = [form, page, sampling, sampling_tools, sampling_context, roots];
        flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag))
    }

    /// The capabilities of these bits.
    pub(crate) const fn of_bits(bits: u8) -> Self {
        Self {
            form: bits & 1 != 0,
            page: bits & 2 != 0,
            sampling: bits & 4 != 0,
            sampling_tools: bits & 8 != 0,
            sampling_context: bits & 16 != 0,
            roots: bits & 32 != 0,
            tasks: false,
        }
    }

    /// True if calls may become tasks.
    pub(crate) const fn tasks(self) -> bool {
        self.tasks
    }

    /// Capabilities with only the extension of tasks.
    #[cfg(test)]
    pub(crate) fn with_tasks() -> Self {
        Self { tasks: true, ..Self::default() }
    }

    /// True if the client supports this kind of question.
    pub(crate) const fn has(self, kind: QuestionKind) -> bool {
        match kind {
            QuestionKind::Form => self.form,
            QuestionKind::Page => self.page,
            QuestionKind::Sampling => self.sampling,
            QuestionKind::Roots => self.roots,
        }
    }

    /// True if the client declares what a question needs.
    pub(crate) const fn meets(self, need: AskNeed) -> bool {
        match need {
            AskNeed::Kind(kind) => self.has(kind),
            AskNeed::SamplingTools => self.sampling_tools,
            AskNeed::SamplingContext => self.sampling_context,
        }
    }
}

/// The `requiredCapabilities` of these needs, as JSON.
pub(super) fn required(needs: &[AskNeed]) -> String {
    let has = |kind| needs.contains(&AskNeed::Kind(kind));
    let mut members = Vec::new();
    let modes: Vec<&str> = [(QuestionKind::Form, r#""form":{}"#), (QuestionKind::Page, r#""url":{}"#)]
        .into_iter()
        .filter_map(|(kind, mode)| has(kind).then_some(mode))
        .collect();
    if !modes.is_empty() {
        members.push(format!(r#""elicitation":{{{}}}"#, modes.join(",")));
    }
    let finer: Vec<&str> = [(AskNeed::SamplingTools, r#""tools":{}"#), (AskNeed::SamplingContext, r#""context":{}"#)]
        .into_iter()
        .filter_map(|(need, member)| needs.contains(&need).then_some(member))
        .collect();
    if has(QuestionKind::Sampling) || !finer.is_empty() {
        members.push(format!(r#""sampling":{{{}}}"#, finer.join(",")));
    }
    if has(QuestionKind::Roots) {
        members.push(r#""roots":{}"#.to_owned());
    }
    format!(r#"{{"requiredCapabilities":{{{}}}}}"#, members.join(","))
}

/// The capability, for people.
pub(super) const fn wanting(need: AskNeed) -> &'static str {
    match need {
        AskNeed::Kind(QuestionKind::Form) => "elicitation with forms",
        AskNeed::Kind(QuestionKind::Page) => "elicitation with pages (\"url\")",
        AskNeed::Kind(QuestionKind::Sampling) => "sampling",
        AskNeed::Kind(QuestionKind::Roots) => "roots",
        AskNeed::SamplingTools => "sampling with tools, so \"tools\" and \"toolChoice\" cannot be sent",
        AskNeed::SamplingContext => "sampling with context, so \"includeContext\" can only be \"none\"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_their_bits() {
        for bits in 0..64 {
            assert_eq!(AskCapabilities::of_bits(bits).bits(), bits);
        }
        assert!(
            AskCapabilities::of_bits(1).has(QuestionKind::Form)
                && AskCapabilities::of_bits(32).has(QuestionKind::Roots)
        );
    }
}
