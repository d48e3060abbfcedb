//! Tools that a tool may call in the middle of its own call.

use std::fmt;

use super::rule::RuleRef;
use super::{Capability, Denial, Grants, Reason};
use crate::diagnostic::Span;
use crate::manifest::CODE;
use crate::names::check_tool;

/// The end of a pattern that takes every name with its beginning.
const ANY: char = '*';

/// Some tools, by the names that clients see: `weather_now`, or `weather_*` for every name with
/// that beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRule {
    /// Without the star.
    name: String,
    takes_more: bool,
    rule: RuleRef,
}

impl CallRule {
    /// Reads a pattern; `None` where no name can match it.
    pub(crate) fn parse(text: &str, span: Span) -> Option<Self> {
        let name = text.strip_suffix(ANY).unwrap_or(text);
        let takes_more = name.len() < text.len();
        let is_name = check_tool(name).is_ok() || (takes_more && name.is_empty());
        is_name.then(|| Self { name: name.to_owned(), takes_more, rule: RuleRef::new(text, span) })
    }

    /// True if it takes the tool of this name.
    #[must_use]
    pub fn takes(&self, tool: &str) -> bool {
        if self.takes_more { tool.starts_with(&self.name) } else { tool == self.name }
    }

    /// The name that it takes, or their beginning.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if it takes every name that begins so.
    #[must_use]
    pub const fn takes_more(&self) -> bool {
        self.takes_more
    }

    /// True if all that it takes is taken by the other one.
    pub(crate) fn lies_within(&self, other: &Self) -> bool {
        if self.takes_more { other.takes_more && self.name.starts_with(&other.name) } else { other.takes(&self.name) }
    }

    /// The rule in the manifest.
    #[must_use]
    pub const fn rule(&self) -> &RuleRef {
        &self.rule
    }
}

impl fmt::Display for CallRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.rule.text())
    }
}

impl Grants {
    /// The rule that lets a tool be called, by the name that clients see.
    ///
    /// # Errors
    /// [`Denial`] where none does.
    pub fn call(&self, tool: &str) -> Result<&RuleRef, Denial> {
        // A star of scripts takes every tool but their own.
        let is_own = self.subject.component() == CODE && self.subject.tool() == Some(tool);
        let found = self.calls.iter().find(|rule| rule.takes(tool) && !(is_own && rule.takes_more()));
        found.map(CallRule::rule).ok_or_else(|| {
            let denial = Denial::new(Capability::Call, format!("call {tool}"), Reason::NoRule, &self.subject);
            let named = |table: &Self| table.calls.iter().any(|rule| rule.takes(tool));
            let is_narrowed = self.wider.as_deref().is_some_and(named);
            let component = self.subject.table();
            let section = match self.subject.tool().filter(|_| is_narrowed) {
                Some(own) => format!("{component}.tools.{own}"),
                None => component,
            };
            if check_tool(tool).is_err() {
                return denial;
            }
            denial.allowed_by(&section, format!("calls = [\"{tool}\"]"))
        })
    }
}
