//! Completions: values offered for an argument of a prompt, or for a variable of a template of
//! addresses.

use crate::host::ServedCatalog;

/// Values of one answer (2026-07-28, Completion, "Data Types").
pub const COMPLETIONS_MAX: usize = 100;

/// Longest value, in bytes. Clients show them in a list of one-line entries.
const VALUE_BYTES_MAX: usize = 1_024;

/// The argument that a client asks values for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completing {
    /// The listed template; `None` if the call's entry is a prompt.
    pub template: Option<String>,
    /// The argument of the prompt, or the variable of the template. It exists.
    pub argument: String,
    /// The text so far.
    pub value: String,
    /// Other arguments that already have a value.
    pub others: Vec<(String, String)>,
}

/// Values, the best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    values: Vec<String>,
    total: Option<u64>,
    has_more: bool,
}

impl Completions {
    /// These values, cut to the limit of one answer. `total` is the number of all, if known.
    #[must_use]
    pub fn new(values: Vec<String>, total: Option<u64>, has_more: bool) -> Self {
        let given = values.len();
        let fits = |value: &String| value.len() <= VALUE_BYTES_MAX;
        let values: Vec<String> = values.into_iter().filter(fits).take(COMPLETIONS_MAX).collect();
        let has_more = has_more || given > values.len() || total.is_some_and(|total| total > values.len() as u64);
        // A total below the number of given values would be wrong.
        Self { total: total.filter(|total| *total >= given as u64), has_more, values }
    }

    /// The values that begin with the typed text, in their order, ignoring case.
    pub fn matching<'v>(values: impl Iterator<Item = &'v str>, typed: &str) -> Self {
        if typed.len() > VALUE_BYTES_MAX {
            return Self::new(Vec::new(), Some(0), false);
        }
        let typed = typed.to_lowercase();
        let found: Vec<String> =
            values.filter(|value| value.to_lowercase().starts_with(&typed)).map(str::to_owned).collect();
        let total = found.len() as u64;
        Self::new(found, Some(total), false)
    }

    /// The values.
    #[must_use]
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// The number of all values, if known.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// True if there are more.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.has_more
    }
}

impl Completing {
    /// The values that the catalog itself knows; `None` if it knows none of this argument. `entry`
    /// is the number of the prompt.
    pub fn known<C: ServedCatalog + ?Sized>(&self, catalog: &C, entry: usize) -> Option<Completions> {
        let values: &[String] = match &self.template {
            None => &catalog.tools().tools().get(entry)?.prompt()?.argument(&self.argument)?.values,
            Some(template) => {
                let declared = catalog.resources().iter().find(|declared| declared.uri == *template)?;
                let (_, values) = declared.variables.iter().find(|(name, _)| *name == self.argument)?;
                values
            }
        };
        (!values.is_empty()).then(|| Completions::matching(values.iter().map(String::as_str), &self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_has_more_values_than_the_protocol_allows() {
        let all: Vec<String> = (0..250).map(|number| format!("Value {number}")).collect();
        let values = || all.iter().map(String::as_str);
        let found = Completions::matching(values(), "vALUE");
        assert_eq!((found.values().len(), found.total(), found.has_more()), (100, Some(250), true));
        let found = Completions::matching(values(), "Value 24");
        assert_eq!((found.values().len(), found.total(), found.has_more()), (11, Some(11), false));
        let long = vec!["x".repeat(VALUE_BYTES_MAX + 1), "y".to_owned()];
        let found = Completions::new(long, None, false);
        assert_eq!((found.values(), found.has_more()), (&["y".to_owned()][..], true));
        assert_eq!(Completions::new(all.clone(), Some(3), false).total(), None, "fewer than there are");
        assert_eq!(Completions::matching(values(), &"v".repeat(1 << 20)).values().len(), 0);
    }
}
