//! Differences of two catalogs, by components and tools.
use std::collections::BTreeSet;
use std::sync::Arc;

use toolcell_mcp::ServedCatalog as _;

use crate::catalog::{Catalog, CatalogEntry, LoadedComponent, texts};

/// Most names shown of one kind; more are counted.
const NAMES_SHOWN_MAX: usize = 8;

/// Summary for unchanged components whose capabilities were prepared again.
const ANEW: &str = "files and variables checked again";

/// Kind of change of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Added,
    Removed,
    /// Other bytes.
    Code,
    /// Another policy in the manifest.
    Policy,
    CodeAndPolicy,
    /// Other rules for callers of its tools.
    Callers,
    /// Other files of the project that `toolcell dev` serves.
    Source,
    /// Its capabilities were prepared again: a file or variable that the manifest names may have
    /// changed.
    Capabilities,
}

/// Differences of one catalog from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The components that differ, by name.
    pub components: Vec<(String, Change)>,
    /// The rules for callers that differ, by name.
    pub callers: Vec<String>,
    /// New tools, by their names for clients, and prompts, by their paths.
    pub tools_added: Vec<String>,
    /// Removed tools.
    pub tools_removed: Vec<String>,
    /// Tools with another definition.
    pub tools_changed: Vec<String>,
    /// Views that differ, by address.
    pub apps: Vec<String>,
    /// Settings of the whole server that differ, a clause for each.
    pub settings: Vec<&'static str>,
    /// Components that are newly left out, or for another reason than before.
    pub left_out: Vec<String>,
    /// Components that are no longer left out.
    pub mended: Vec<String>,
}

impl Change {
    fn words(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Code => "new code",
            Self::Policy => "new policy",
            Self::CodeAndPolicy => "new code and policy",
            Self::Callers => "other callers",
            Self::Source => "new source",
            Self::Capabilities => "files and variables checked again",
        }
    }

    fn between(old: &Arc<LoadedComponent>, new: &Arc<LoadedComponent>) -> Option<Self> {
        match (old.digest() == new.digest(), old.policy_digest == new.policy_digest) {
            (true, true) if old.dev_source != new.dev_source => Some(Self::Source),
            (true, true) => (!Arc::ptr_eq(old, new)).then_some(Self::Capabilities),
            (false, true) => Some(Self::Code),
            (true, false) => Some(Self::Policy),
            (false, false) => Some(Self::CodeAndPolicy),
        }
    }
}

impl Difference {
    /// Differences of the new catalog from the old one.
    pub fn between(old: &Catalog, new: &Catalog) -> Self {
        let mut components = Vec::new();
        for component in new.components() {
            let change = match old.component(component.name()) {
                None => Some(Change::Added),
                Some(before) => Change::between(before, component)
                    .or_else(|| (called_by(old, before) != called_by(new, component)).then_some(Change::Callers)),
            };
            components.extend(change.map(|change| (component.name().to_owned(), change)));
        }
        let gone = old.components().iter().filter(|component| new.component(component.name()).is_none());
        components.extend(gone.map(|component| (component.name().to_owned(), Change::Removed)));
        let callers = new.callers().differing(old.callers()).into_iter().map(str::to_owned).collect();
        let settings = differing_settings(old, new);
        let names = |of: &Catalog, but: &Catalog| {
            let news = of.left_out().iter().filter(|component| !but.left_out().contains(component));
            news.map(|component| component.name.clone()).collect::<Vec<_>>()
        };
        let left_out = names(new, old);
        let mut mended = names(old, new);
        mended.retain(|name| !left_out.contains(name));
        let mut difference = Self { components, callers, settings, left_out, mended, ..Self::default() };
        for tool in new.tools().tools() {
            let name = &tool.definition().name;
            match old.tools().find(name) {
                None => difference.tools_added.push(name.clone()),
                Some((_, before)) if before.definition() != tool.definition() || before.prompt() != tool.prompt() => {
                    difference.tools_changed.push(name.clone());
                }
                Some(_) => {}
            }
        }
        for text in new.texts() {
            let name = &text.entry.definition().name;
            let before = old.texts().find(|before| before.name() == text.name());
            // A prompt whose text changed has the same definition.
            if before.is_some_and(|before| before.digest != text.digest) && !difference.tools_changed.contains(name) {
                difference.tools_changed.push(name.clone());
            }
        }
        for skill in new.skills.all() {
            let before = old.skills.all().iter().find(|before| before.entry == skill.entry);
            if before.is_some_and(|before| before.json != skill.json)
                && !difference.tools_changed.contains(&skill.entry)
            {
                difference.tools_changed.push(skill.entry.clone());
            }
        }
        let digest_in = |catalog: &Catalog, uri: &str| {
            let mut apps = catalog.apps.all().iter();
            apps.find(|app| app.uri() == uri).map(|app| app.digest().to_owned())
        };
        let uris: BTreeSet<&str> = old.apps.all().iter().chain(new.apps.all()).map(|app| app.uri()).collect();
        let differing = uris.into_iter().filter(|uri| digest_in(old, uri) != digest_in(new, uri));
        difference.apps = differing.map(str::to_owned).collect();
        let gone = old.tools().tools().iter().map(|tool| &tool.definition().name);
        difference.tools_removed = gone.filter(|name| new.tools().find(name).is_none()).cloned().collect();
        difference
    }

    /// True if both have the same components in the same order, for the same callers, with the same
    /// lists and results.
    pub fn is_none(old: &Catalog, new: &Catalog) -> bool {
        old.components.len() == new.components.len()
            && old.components.iter().zip(&new.components).all(|(old, new)| Arc::ptr_eq(old, new))
            && old.callers().canonical() == new.callers().canonical()
            && differing_settings(old, new).is_empty()
            && old.left_out() == new.left_out()
            && texts::are_like(old, new)
            && old.skills.is_like(&new.skills)
            && old.apps.is_like(&new.apps)
            && old.entries.iter().map(CatalogEntry::called_by).eq(new.entries.iter().map(CatalogEntry::called_by))
    }

    /// The differences in one line. Capabilities that were only prepared again are omitted.
    pub fn summary(&self) -> String {
        let changed = self.components.iter().filter(|(_, change)| *change != Change::Capabilities);
        let components: Vec<String> = changed.map(|(name, change)| format!("{name}: {}", change.words())).collect();
        let mut parts = Vec::new();
        if !components.is_empty() {
            parts.push(listed(&components));
        }
        for (names, what) in [
            (&self.callers, "rules for callers changed"),
            (&self.tools_added, "tools added"),
            (&self.tools_removed, "tools removed"),
            (&self.tools_changed, "tools defined otherwise"),
            (&self.apps, "other views"),
            (&self.left_out, "left out"),
            (&self.mended, "no longer left out"),
        ] {
            if !names.is_empty() {
                parts.push(format!("{what}: {}", listed(names)));
            }
        }
        parts.extend(self.settings.iter().map(|&clause| clause.to_owned()));
        if !parts.is_empty() {
            return parts.join("; ");
        }
        let anew: Vec<String> = self.components.iter().map(|(name, _)| name.clone()).collect();
        if anew.is_empty() { "the order of components".to_owned() } else { format!("{ANEW}: {}", listed(&anew)) }
    }
}

fn differing_settings(old: &Catalog, new: &Catalog) -> Vec<&'static str> {
    let old = &old.settings;
    let new = &new.settings;
    let compared = [
        (old.searching != new.searching, "tools are listed and searched differently"),
        (old.console != new.console, "other rights at the console"),
        (old.tells_usage != new.tells_usage, "usage in results changed"),
        (old.recordings != new.recordings, "recordings are kept differently"),
    ];
    compared.into_iter().filter(|(differs, _)| *differs).map(|(_, clause)| clause).collect()
}

/// Rules for callers of each tool of a component, in words.
fn called_by(catalog: &Catalog, component: &Arc<LoadedComponent>) -> Vec<(String, Option<Vec<String>>)> {
    let own = catalog.offers().filter(|offer| Arc::ptr_eq(offer.component(), component));
    own.map(|offer| (offer.tool().definition().name.clone(), offer.called_by())).collect()
}

fn listed(names: &[String]) -> String {
    let shown = names.get(..NAMES_SHOWN_MAX).unwrap_or(names).join(", ");
    match names.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_names_components_and_tools_and_counts_the_rest() {
        let names = |prefix: &str, count: usize| (1..=count).map(|number| format!("{prefix}{number}")).collect();
        let difference = Difference {
            components: vec![("echo".to_owned(), Change::Code), ("chart".to_owned(), Change::Removed)],
            callers: names("c", 1),
            tools_added: names("a", 10),
            tools_removed: names("r", 1),
            tools_changed: Vec::new(),
            apps: names("ui://", 1),
            settings: vec![
                "tools are listed and searched differently",
                "other rights at the console",
                "usage in results changed",
                "recordings are kept differently",
            ],
            left_out: names("o", 1),
            mended: names("m", 1),
        };
        assert_eq!(
            difference.summary(),
            "echo: new code, chart: removed; rules for callers changed: c1; tools added: a1, a2, a3, a4, a5, a6, a7, a8 and 2 more; tools removed: r1; other views: ui://1; left out: o1; no longer left out: m1; tools are listed and searched differently; other rights at the console; usage in results changed; recordings are kept differently"
        );
        assert_eq!(Difference::default().summary(), "the order of components");
    }

    #[test]
    fn what_was_only_looked_at_anew_is_not_listed() {
        let anew = |name: &str| (name.to_owned(), Change::Capabilities);
        let mut difference = Difference { components: vec![anew("notes"), anew("fetch")], ..Difference::default() };
        assert_eq!(difference.summary(), "files and variables checked again: notes, fetch");
        difference.components.push(("echo".to_owned(), Change::Code));
        assert_eq!(difference.summary(), "echo: new code");
    }
}
