//! What a manifest says of a component whose functions are tools: where its texts come from. Must not hold: how it is
//! read, or what functions the component has.

use crate::diagnostic::{Diagnostic, Span};
use crate::names::did_you_mean;
use crate::settings::accessors;

/// Texts of one component. Each describes a function, a type, or a part of either.
pub const DESCRIPTIONS_MAX: usize = 4_096;

/// `wit`, `skip_unsupported` and `[components.NAME.describe]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TypedPolicy {
    pub(crate) wit: Option<(String, Span)>,
    pub(crate) skip_unsupported: Option<(bool, Span)>,
    pub(crate) descriptions: Vec<Description>,
}

accessors! {
    /// One entry of `[components.NAME.describe]`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Description {
        /// What it describes, by names as in WIT: `get-forecast`, `get-forecast.city` (a parameter), `place`, `place.lat` (a
        /// field, a case or a label).
        pub(crate) key: String => &str,
        pub(crate) key_span: Span,
        /// What it says.
        pub(crate) text: String => &str,
    }
}

impl TypedPolicy {
    /// The `.wit` file or folder whose comments describe functions and types: a path relative to the manifest's folder,
    /// as it was written.
    #[must_use]
    pub fn wit(&self) -> Option<&str> {
        self.wit.as_ref().map(|(path, _)| path.as_str())
    }

    /// Where the manifest says so.
    #[must_use]
    pub fn wit_span(&self) -> Option<Span> {
        self.wit.as_ref().map(|(_, span)| span.clone())
    }

    /// Whether functions that cannot be tools are left out; by default they are an error.
    #[must_use]
    pub fn skip_unsupported(&self) -> bool {
        self.skip_unsupported.as_ref().is_some_and(|(skip, _)| *skip)
    }

    /// Texts of the manifest's own, in the order of the file.
    #[must_use]
    pub fn descriptions(&self) -> &[Description] {
        &self.descriptions
    }

    /// Compares what is said with the component as it is. `describable` is everything of it that can be described; it has
    /// none where its functions are no tools.
    #[must_use]
    pub fn check(&self, component: &str, describable: Option<&[String]>) -> Vec<Diagnostic> {
        let Some(describable) = describable else { return self.check_other_shape(component) };
        let unknown = self.descriptions.iter().filter(|description| !describable.contains(&description.key));
        let problems = unknown.map(|description| {
            let key = &description.key;
            let message = format!("component {component:?} has no function, type or part of one called {key:?}");
            let problem = Diagnostic::error("describe::unknown", message).at(description.key_span.clone());
            match did_you_mean(key, describable.iter().map(String::as_str)) {
                Some(name) => problem.hint(format!("did you mean \"{name}\"?")),
                None => {
                    problem.hint("toolcell inspect shows a component's functions; names are as in WIT, with hyphens")
                }
            }
        });
        problems.collect()
    }

    fn check_other_shape(&self, component: &str) -> Vec<Diagnostic> {
        let described = self.descriptions.first().map(|description| ("describe", description.key_span.clone()));
        let wit = self.wit_span().map(|span| ("wit", span));
        let skip = self.skip_unsupported.as_ref().map(|(_, span)| ("skip_unsupported", span.clone()));
        let said = [wit, skip, described].into_iter().flatten();
        let problems = said.map(|(key, span)| {
            let message = format!("{key} of component {component:?} can never apply");
            Diagnostic::error("describe::shape", message)
                .at(span)
                .label("its tools are not functions over WIT values")
                .hint("remove it")
        });
        problems.collect()
    }
}
