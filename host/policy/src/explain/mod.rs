//! Explanations: the decision on a question and the line that decides, without acting on it. Must
//! not hold: decisions of its own, apart from `grants`.

mod ask;

use crate::diagnostic::{Position, Source};
use crate::grants::{Capability, Denial, FileAccess, Grants, Reason, RuleRef};
use crate::imports::unusable;
use crate::manifest::CallerRule;
use crate::names::toml_key;
use crate::rights::ALL;
use crate::rights::config::CONFIG;
use crate::settings::accessors;
use crate::words::Word as _;

pub use ask::{Ask, AskTextError};

/// The rule that allows what was asked, or the denial.
pub(crate) type Verdict = Result<RuleRef, Denial>;

/// What a guest asks for that reads its environment as a whole.
pub(crate) const ENVIRONMENT: &str = "env";

/// The words of requests that are never granted; see [`Network::never_listens`](crate::Network).
const LISTENS: [&str; 2] = [" bind ", " listen "];

/// Bytes of a file's path in a denial: several of the longest paths.
const FILE_BYTES_MAX: usize = 64 << 10;

accessors! {
    /// An answer: allowed by a rule, or denied.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Explanation {
        /// The question, in its normal form.
        asked: String => &str,
        verdict: Result<Option<RuleRef>, Refused>,
        /// Decisions that are only made during a call, in sentences without a full stop.
        notes: Vec<String> => &[String],
    }
}

/// Why something is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refused {
    /// A guest would be denied it.
    Denied(Denial),
    /// A call would be refused, with this text.
    Call(String),
}

impl Explanation {
    /// The answer to a question about a call: the rule for its caller, if there are rules, or the
    /// text of the refusal.
    #[must_use]
    pub fn of_call(ask: &Ask, rule: Option<&CallerRule>, refused: Option<String>, notes: Vec<String>) -> Self {
        let verdict = match refused {
            Some(text) => Err(Refused::Call(text)),
            None => {
                Ok(rule.map(|rule| RuleRef::new(&format!("[callers.{}]", toml_key(rule.name())), rule.span().clone())))
            }
        };
        Self { asked: ask.to_string(), verdict, notes }
    }

    /// True if it is allowed.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        self.verdict.is_ok()
    }

    /// The rule that allows it, with its place in the manifest.
    #[must_use]
    pub fn rule(&self) -> Option<&RuleRef> {
        self.verdict.as_ref().ok()?.as_ref()
    }

    /// This answer about a component with these imports, as they are named in it. If it cannot use
    /// the lines that would allow it, a note says so in their place.
    #[must_use]
    pub fn for_imports(mut self, imports: &[String]) -> Self {
        if let Err(Refused::Denied(denial)) = &mut self.verdict
            && denial.allow().is_some()
            && let Some(why) = unusable(denial.capability(), imports)
        {
            denial.forget_allows();
            self.notes.push(why);
        }
        self
    }

    /// The denial, which knows the line that would allow it.
    #[must_use]
    pub fn denial(&self) -> Option<&Denial> {
        match &self.verdict {
            Err(Refused::Denied(denial)) => Some(denial),
            _ => None,
        }
    }

    /// The text of a call's refusal.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        match &self.verdict {
            Err(Refused::Call(text)) => Some(text),
            _ => None,
        }
    }

    /// The answer for people, in lines: the verdict with the rule's place, the hint, the notes.
    #[must_use]
    pub fn render(&self, source: &Source<'_>) -> String {
        let mut lines = match &self.verdict {
            Ok(None) => vec![format!("allowed: {}", self.asked)],
            Err(Refused::Call(text)) => vec![format!("refused: {}", self.asked), text.clone()],
            Ok(Some(rule)) => {
                let Position { line, column } = source.position(rule.span().start);
                vec![
                    format!("allowed: {}", self.asked),
                    format!("  by {rule}"),
                    format!("  at {}:{line}:{column}", source.name),
                ]
            }
            Err(Refused::Denied(denial)) => {
                let hint = denial.hint().map(|hint| format!("  hint: {hint}"));
                std::iter::once(denial.to_string()).chain(hint).collect()
            }
        };
        lines.extend(self.notes.iter().map(|note| format!("  note: {note}")));
        lines.join("\n")
    }
}

impl Grants {
    /// The answer to a question: the rule that allows it, or the denial.
    #[must_use]
    pub fn explain(&self, ask: &Ask) -> Explanation {
        let mut notes = Vec::new();
        let verdict = ALL.iter().find_map(|right| (right.explain)(right, self, ask, &mut notes));
        let verdict = verdict.unwrap_or_else(|| {
            Err(Denial::new(Capability::Filesystem, ask.to_string(), Reason::NoRule, self.subject()))
        });
        let verdict = verdict.map(Some).map_err(Refused::Denied);
        Explanation { asked: ask.to_string(), verdict, notes }
    }

    /// The denial for a missing setting, for observing it.
    #[must_use]
    pub fn no_setting(&self, key: &str) -> Denial {
        CONFIG.denied(self, key)
    }

    /// The denial for an empty environment, for observing it. A guest reads all variables at once,
    /// so the one that it wanted is unknown.
    #[must_use]
    pub fn no_environment(&self) -> Denial {
        Denial::new(Capability::Env, ENVIRONMENT.to_owned(), Reason::NoRule, self.subject())
            .allowed_by(&self.subject().section("env"), "NAME = \"VALUE\"".to_owned())
    }

    /// A denial that another process reported as a text. Only the text is believed: these grants
    /// decide again. If they would allow it, or the text is not a question, the result only repeats
    /// that it was denied.
    #[must_use]
    pub fn denied_elsewhere(&self, capability: Capability, asked: &str) -> Denial {
        if capability == Capability::Env && asked == ENVIRONMENT {
            return self.no_environment();
        }
        if capability == Capability::Filesystem
            && let Some(denial) = self.file_elsewhere(asked)
        {
            return denial;
        }
        let again = Ask::parse(asked).ok().and_then(|ask| self.explain(&ask).denial().cloned());
        again.filter(|denial| denial.capability() == capability).unwrap_or_else(|| {
            let listens = LISTENS.iter().any(|verb| asked.contains(verb));
            let reason = if listens { Reason::NeverListens } else { Reason::NoRule };
            Denial::new(capability, asked.to_owned(), reason, self.subject())
        })
    }

    /// The denial of a file. Names of files may have any characters, so the text is not parsed as a
    /// question.
    fn file_elsewhere(&self, asked: &str) -> Option<Denial> {
        let (verb, path) = asked.split_once(' ')?;
        let want = FileAccess::of(verb)?;
        let is_path = path.starts_with('/') && path.len() <= FILE_BYTES_MAX;
        let denial = is_path.then(|| self.file(want, path).err())??;
        (denial.asked() == asked).then_some(denial)
    }
}
