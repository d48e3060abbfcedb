//! Who sees and calls which tools of one generation. Must not hold: how callers are recognised, or how often they call.
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use toolcell_mcp::{Caller, ToolList};
use toolcell_policy::{Callers, Rights, ToolName};

use super::CallTarget;

/// Views that are kept, one for each kind of rights. Callers of more kinds have theirs made at each request.
const VIEWS_MAX: usize = 1_000;

/// Tells apart what callers see: under each set of rules, which of them hold.
type Key = Vec<Option<Vec<usize>>>;

/// The rules of a generation, and what callers see by them.
pub struct Visibility {
    /// The manifest's.
    callers: Arc<Callers>,
    /// All sets of rules that some tool is under. What is held back is under earlier ones.
    sets: Vec<Arc<Callers>>,
    /// Of each tool, by its place, the set.
    which: Vec<usize>,
    views: RwLock<HashMap<Key, Option<Arc<ToolList>>>>,
}

impl Visibility {
    /// `rules` are those of each tool, by its place.
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
        Self { callers, sets, which, views: RwLock::default() }
    }

    /// The manifest's rules.
    pub fn callers(&self) -> &Arc<Callers> {
        &self.callers
    }

    /// The rules of one tool, by its place.
    pub fn rules_of(&self, place: usize) -> Option<&Arc<Callers>> {
        self.which.get(place).and_then(|set| self.sets.get(*set))
    }

    /// Whether what a caller sees depends on who it is.
    pub fn tells_apart(&self) -> bool {
        self.callers.tells_apart() || self.sets.iter().any(|set| set.tells_apart())
    }

    /// What this caller may by the manifest's rules.
    pub fn rights(&self, caller: &Caller) -> Rights<'_> {
        self.callers.rights(caller.name(), caller.scopes())
    }

    /// The tools that this caller sees, where these are not all of them.
    pub fn view(&self, caller: &Caller, targets: &[Arc<CallTarget>], tools: &ToolList) -> Option<Arc<ToolList>> {
        if !self.tells_apart() {
            return None;
        }
        let rights: Vec<Rights<'_>> = self.sets.iter().map(|set| set.rights(caller.name(), caller.scopes())).collect();
        let key: Key = rights.iter().map(Rights::key).collect();
        if let Some(view) = self.views.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return view.clone();
        }
        let seen: Vec<bool> = self
            .which
            .iter()
            .zip(targets.iter().zip(tools.tools()))
            .map(|(set, (target, tool))| {
                let name = target.called(&tool.definition().name);
                rights.get(*set).is_some_and(|rights| rights.take(&name))
            })
            .collect();
        let all = seen.iter().all(|seen| *seen);
        let view = (!all).then(|| Arc::new(tools.part(|place| seen.get(place).copied().unwrap_or(false))));
        let mut views = self.views.write().unwrap_or_else(PoisonError::into_inner);
        if views.len() < VIEWS_MAX {
            // Another request may have made the same meanwhile: one is kept.
            return views.entry(key).or_insert(view).clone();
        }
        view
    }

    /// Who may call one tool, in words; `None`: everybody.
    pub fn words(&self, place: usize, name: &ToolName<'_>) -> Option<Vec<String>> {
        let rules = self.rules_of(place).filter(|rules| rules.tells_apart())?;
        let words = rules.words(name);
        Some(if words.is_empty() { vec![NOBODY.to_owned()] } else { words })
    }
}

/// What stands for the callers of a tool that no rule names.
pub const NOBODY: &str = "be called by nobody";
