//! `wasi`: WASI 0.3, which is newer in the engine than 0.2, for one component.
//!
//! | `wasi` | the component may import |
//! |---|---|
//! | absent | WASI 0.2 |
//! | `"0.3"` | WASI 0.2 and 0.3 |

use super::ComponentPolicy;
use crate::diagnostic::{Diagnostic, Span};
use crate::read::{Problems, Section};

/// The one word.
pub(crate) const LATER: &str = "0.3";

/// The beginning of each version of it, and of no version of 0.2.
const RELEASES: &str = "0.3.";

/// The place of `wasi = "0.3"`, if the section has it.
pub(crate) fn read(section: &Section<'_>, problems: &mut Problems) -> Option<Span> {
    let entry = section.get("wasi")?;
    match entry.string(problems)? {
        LATER => Some(entry.span),
        other => {
            let message = format!("wasi must be \"{LATER}\", not {other:?}");
            problems.refuse(entry.error("components::wasi", message).hint("remove it for WASI 0.2"))
        }
    }
}

/// True for an interface of WASI 0.3, such as `wasi:cli/run@0.3.0`.
#[must_use]
pub fn is_later_wasi(interface: &str) -> bool {
    let version = interface.strip_prefix("wasi:").and_then(|rest| rest.split_once('@'));
    version.is_some_and(|(_, version)| version.starts_with(RELEASES))
}

impl ComponentPolicy {
    /// True if the component may import WASI 0.3.
    #[must_use]
    pub const fn has_later_wasi(&self) -> bool {
        self.wasi.is_some()
    }

    /// Compares `wasi` with the interfaces that the component imports and exports. Returns an error
    /// if it needs WASI 0.3 and the manifest does not say so, or the other way round.
    #[must_use]
    pub fn check_wasi<'n>(&self, mut names: impl Iterator<Item = &'n String>) -> Option<Diagnostic> {
        let name = self.name();
        match (names.find(|name| is_later_wasi(name)), &self.wasi) {
            (Some(interface), None) => Some(
                Diagnostic::error("components::wasi", format!("component {name:?} needs WASI {LATER}: {interface}"))
                    .at(self.source_span())
                    .label("a manifest allows it for each component by itself")
                    .hint(format!("write wasi = \"{LATER}\" into [components.{name}], or build it for WASI 0.2")),
            ),
            (None, Some(span)) => Some(
                Diagnostic::error("components::wasi", format!("component {name:?} does not use WASI {LATER}"))
                    .at(span.clone())
                    .label("none of its imports and exports is of that version")
                    .hint("remove it; toolcell inspect shows what a component imports"),
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::is_later_wasi;
    use crate::{Source, parse};

    fn found(line: &str, names: &[&str]) -> Option<String> {
        let text = format!("version = 1\n[components.a]\nsource = 'a.wasm'\n{line}\n");
        let manifest = parse(&Source { name: "m.toml", text: &text }).unwrap().manifest;
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let problem = manifest.component("a").unwrap().check_wasi(names.iter());
        problem.map(|problem| problem.message().to_owned())
    }

    #[test]
    fn wasi_0_3_is_for_components_that_need_it_and_whose_manifest_says_so() {
        let later = ["wasi:cli/environment@0.2.6", "wasi:clocks/system-clock@0.3.0"];
        let needs = "component \"a\" needs WASI 0.3: wasi:clocks/system-clock@0.3.0";
        assert_eq!(found("", &later), Some(needs.to_owned()));
        assert_eq!(found("wasi = '0.3'", &later), None);
        assert_eq!(found("", &later[..1]), None);
        let unused = "component \"a\" does not use WASI 0.3";
        assert_eq!(found("wasi = '0.3'", &later[..1]), Some(unused.to_owned()));
    }

    #[test]
    fn only_releases_of_0_3_are_it() {
        assert!(is_later_wasi("wasi:cli/run@0.3.0") && is_later_wasi("wasi:http/client@0.3.12"));
        for other in ["wasi:cli/run@0.2.3", "wasi:cli/run", "acme:a/b@0.3.0", "wasi:cli/run@0.30.0"] {
            assert!(!is_later_wasi(other), "{other}");
        }
    }
}
