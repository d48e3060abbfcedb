//! Tools that each caller sees and may call, in one generation.
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use toolcell_mcp::{Caller, McpTool, ToolList};
use toolcell_policy::Rights;
use toolcell_sandbox::export;

use super::arguments::{ArgumentChecks, CallerRules};
use super::entry::{CatalogEntry, targets};

/// Most views kept, one for each set of rights. Further ones are made at each request.
const VIEWS_MAX: usize = 1_000;

/// Key of a view: the rules that apply to the caller, for each rule set.
type ViewKey = Vec<Option<Vec<usize>>>;

/// Rules of a generation, and views of its tools by them.
pub struct Visibility {
    /// The manifest's rules.
    callers: Arc<CallerRules>,
    /// All rule sets that some entry is under. Held components are under earlier ones.
    sets: Vec<Arc<CallerRules>>,
    /// Rules that hold for every tool as well, of a manifest that is being loaded.
    also: Option<Arc<CallerRules>>,
    views: RwLock<HashMap<ViewKey, Option<Arc<ToolList>>>>,
}

impl Visibility {
    /// Views of these entries.
    pub fn new(callers: &Arc<CallerRules>, entries: &[CatalogEntry]) -> Self {
        let mut sets: Vec<Arc<CallerRules>> = Vec::new();
        for CatalogEntry { rules, .. } in entries {
            if sets.iter().all(|set| !Arc::ptr_eq(set, rules)) {
                sets.push(Arc::clone(rules));
            }
        }
        Self { callers: Arc::clone(callers), sets, also: None, views: RwLock::default() }
    }

    /// Narrows it: callers see only what these rules let them see as well.
    pub fn also_under(self, rules: &Arc<CallerRules>) -> Self {
        Self { also: Some(Arc::clone(rules)), views: RwLock::default(), ..self }
    }

    /// True if it is [narrowed](Self::also_under).
    pub const fn is_narrowed(&self) -> bool {
        self.also.is_some()
    }

    /// True if the visible tools depend on the caller.
    pub fn tells_apart(&self) -> bool {
        let mut all = self.sets.iter().chain(&self.also).chain([&self.callers]);
        all.any(|set| set.tells_apart())
    }

    /// Rights of this caller by the manifest's rules.
    pub fn rights(&self, caller: &Caller) -> Rights<'_> {
        self.callers.rights(caller.name(), caller.scopes())
    }

    /// The conditions that this caller's arguments for an entry meet, by the rules for callers.
    pub fn checks<'v>(&'v self, caller: &Caller, entry: &'v CatalogEntry) -> Vec<&'v ArgumentChecks> {
        let name = entry.called();
        let rules = [Some(&entry.rules), self.also.as_ref()];
        rules.into_iter().flatten().flat_map(|rules| rules.checks(caller, &name)).collect()
    }

    /// The tool as this caller sees it, if its arguments meet conditions.
    fn narrowed(&self, caller: &Caller, entry: &CatalogEntry) -> Option<McpTool> {
        let checks = self.checks(caller, entry);
        if checks.is_empty() {
            return None;
        }
        let own = entry.target().and_then(|target| target.arguments.as_deref());
        entry.tool().narrowed(own.into_iter().chain(checks).flat_map(ArgumentChecks::narrowing))
    }

    /// Tools that this caller sees; `None`: all of them.
    pub fn view(&self, caller: &Caller, entries: &[CatalogEntry], tools: &ToolList) -> Option<Arc<ToolList>> {
        if !self.tells_apart() {
            return None;
        }
        let rights_in = |set: &'_ Arc<CallerRules>| set.rights(caller.name(), caller.scopes()).key();
        let key: ViewKey = self.sets.iter().chain(&self.also).map(rights_in).collect();
        if let Some(view) = self.views.read().get(&key) {
            return view.clone();
        }
        let rights: Vec<Rights<'_>> = self.sets.iter().map(|set| set.rights(caller.name(), caller.scopes())).collect();
        let also = self.also.as_ref().map(|set| set.rights(caller.name(), caller.scopes()));
        let sees = |entry: &CatalogEntry| {
            let own = self.sets.iter().zip(&rights).find(|(set, _)| Arc::ptr_eq(set, &entry.rules));
            let name = entry.called();
            own.is_some_and(|(_, rights)| rights.take(&name)) && also.as_ref().is_none_or(|rights| rights.take(&name))
        };
        let mut seen: Vec<bool> = entries.iter().map(sees).collect();
        see_resources(&mut seen, entries);
        let narrowed: HashMap<usize, Arc<McpTool>> = entries
            .iter()
            .enumerate()
            .filter(|(place, _)| seen.get(*place) == Some(&true))
            .filter_map(|(place, entry)| Some((place, Arc::new(self.narrowed(caller, entry)?))))
            .collect();
        let all = seen.iter().all(|seen| *seen) && narrowed.is_empty();
        let sees = |place: usize| seen.get(place).copied().unwrap_or(false);
        let view = (!all).then(|| Arc::new(tools.part_with(sees, |place| narrowed.get(&place).cloned())));
        let mut views = self.views.write();
        if views.len() < VIEWS_MAX {
            // Another request may have made this view meanwhile: one is kept.
            return views.entry(key).or_insert(view).clone();
        }
        view
    }
}

/// Lets those read a component's own resources who see all of its tools and prompts.
fn see_resources(seen: &mut [bool], entries: &[CatalogEntry]) {
    for (place, reader) in targets(entries).enumerate().filter(|(_, target)| target.name == export::RESOURCES) {
        let mut own =
            targets(entries).zip(&*seen).filter(|(target, _)| Arc::ptr_eq(&target.component, &reader.component));
        let sees_all = own.all(|(target, seen)| !target.is_named() || *seen);
        if let Some(seen) = seen.get_mut(place) {
            *seen = sees_all;
        }
    }
}

/// The beginning of each text that says who may call a tool.
pub const CALLED_BY: &str = "be called by ";

/// Text for a tool that no rule lets anybody call.
pub const NOBODY: &str = "be called by nobody";
