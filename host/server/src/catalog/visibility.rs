//! Tools that each caller sees and may call, in one generation.
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use toolcell_mcp::{Caller, ToolList};
use toolcell_policy::{Callers, Rights, ToolName};
use toolcell_sandbox::export;

use super::{CallTarget, skills, texts};

/// Most views kept, one for each set of rights. Further ones are made at each request.
const VIEWS_MAX: usize = 1_000;

/// Key of a view: the rules that apply to the caller, for each rule set.
type ViewKey = Vec<Option<Vec<usize>>>;

/// Rules of a generation, and views of its tools by them.
pub struct Visibility {
    /// The manifest's rules.
    callers: Arc<Callers>,
    /// All rule sets that some tool is under. Held components are under earlier ones.
    sets: Vec<Arc<Callers>>,
    /// Index of each tool's rule set.
    which: Vec<usize>,
    /// Rules that hold for every tool besides, of a manifest that is being loaded.
    also: Option<Arc<Callers>>,
    views: RwLock<HashMap<ViewKey, Option<Arc<ToolList>>>>,
}

impl Visibility {
    /// `rules` holds one rule set for each tool, in the order of the tools.
    pub fn new(callers: Arc<Callers>, rules: Vec<Arc<Callers>>) -> Self {
        let mut sets: Vec<Arc<Callers>> = Vec::new();
        let which = rules.into_iter().map(|rules| match sets.iter().position(|set| Arc::ptr_eq(set, &rules)) {
            Some(place) => place,
            None => {
                sets.push(rules);
                sets.len() - 1
            }
        });
        let which = which.collect();
        Self { callers, sets, which, also: None, views: RwLock::default() }
    }

    /// Narrows it: callers see only what these rules let them see as well.
    pub fn also_under(self, rules: &Arc<Callers>) -> Self {
        Self { also: Some(Arc::clone(rules)), views: RwLock::default(), ..self }
    }

    /// True if it is [narrowed](Self::also_under).
    pub const fn is_narrowed(&self) -> bool {
        self.also.is_some()
    }

    /// The manifest's rules.
    pub fn callers(&self) -> &Arc<Callers> {
        &self.callers
    }

    /// Rules of one tool, by its index.
    pub fn rules_of(&self, place: usize) -> Option<&Arc<Callers>> {
        self.which.get(place).and_then(|set| self.sets.get(*set))
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

    /// Tools that this caller sees; `None`: all of them.
    pub fn view(&self, caller: &Caller, targets: &[Arc<CallTarget>], tools: &ToolList) -> Option<Arc<ToolList>> {
        if !self.tells_apart() {
            return None;
        }
        let rights_in = |set: &'_ Arc<Callers>| set.rights(caller.name(), caller.scopes()).key();
        let key: ViewKey = self.sets.iter().chain(&self.also).map(rights_in).collect();
        if let Some(view) = self.views.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return view.clone();
        }
        let rights: Vec<Rights<'_>> = self.sets.iter().map(|set| set.rights(caller.name(), caller.scopes())).collect();
        let also = self.also.as_ref().map(|set| set.rights(caller.name(), caller.scopes()));
        let mut seen: Vec<bool> = self
            .which
            .iter()
            .zip(names(targets, tools))
            .map(|(set, name)| {
                let takes = rights.get(*set).is_some_and(|rights| rights.take(&name));
                takes && also.as_ref().is_none_or(|rights| rights.take(&name))
            })
            .collect();
        see_resources(&mut seen, targets, tools);
        let all = seen.iter().all(|seen| *seen);
        let view = (!all).then(|| Arc::new(tools.part(|place| seen.get(place).copied().unwrap_or(false))));
        let mut views = self.views.write().unwrap_or_else(PoisonError::into_inner);
        if views.len() < VIEWS_MAX {
            // Another request may have made this view meanwhile: one is kept.
            return views.entry(key).or_insert(view).clone();
        }
        view
    }

    /// Callers of one tool, in words; `None`: everybody.
    pub fn words(&self, place: usize, name: &ToolName<'_>) -> Option<Vec<String>> {
        let rules = self.rules_of(place).filter(|rules| rules.tells_apart())?;
        let words = rules.words(name);
        Some(if words.is_empty() { vec![NOBODY.to_owned()] } else { words })
    }
}

/// Lets those read a component's own resources who see all of its tools and prompts.
fn see_resources(seen: &mut [bool], targets: &[Arc<CallTarget>], tools: &ToolList) {
    let reading = targets.iter().enumerate().filter(|(_, target)| target.name == export::RESOURCES);
    for (place, reader) in reading {
        let own = |target: &Arc<CallTarget>| Arc::ptr_eq(&target.component, &reader.component);
        let mut listed = targets.iter().zip(tools.tools()).zip(&*seen);
        let sees_all = listed
            .all(|((target, entry), seen)| !own(target) || !(entry.is_tool() || entry.prompt().is_some()) || *seen);
        if let Some(seen) = seen.get_mut(place) {
            *seen = sees_all;
        }
    }
}

/// The names of a catalog's entries, as rules match them.
pub fn names<'c>(targets: &'c [Arc<CallTarget>], tools: &'c ToolList) -> impl Iterator<Item = ToolName<'c>> {
    tools.tools().iter().enumerate().map(|(place, entry)| match targets.get(place) {
        Some(target) => target.called(entry),
        None if entry.prompt().is_some() => texts::called(entry),
        None => skills::called(entry),
    })
}

/// The beginning of each text that says who may call a tool.
pub const CALLED_BY: &str = "be called by ";

/// Text for a tool that no rule lets anybody call.
pub const NOBODY: &str = "be called by nobody";
