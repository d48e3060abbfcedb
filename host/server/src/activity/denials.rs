//! Denials of guests in groups: one for each component, kind and thing that was asked for. Must
//! not hold: decisions, or the observation's file.
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use toolcell_mcp::Tool;
use toolcell_policy::Attempt;

/// Most groups. Guests choose what they ask for; a group takes some two kilobytes at the most.
const GROUPS_MAX: usize = 1_000;

/// The share of one component: it fills some pages, and leaves room for nine others.
const GROUPS_PER_COMPONENT_MAX: usize = GROUPS_MAX / 10;

/// Most tools that a group names.
const TOOLS_MAX: usize = 12;

/// Groups of denials. Readers and calls that belong to a known group take no lock.
#[derive(Default)]
pub struct DenialGroups {
    groups: ArcSwap<HashMap<Arc<str>, Arc<DenialGroup>>>,
    /// Groups of each component. Held while a group is added.
    adding: Mutex<HashMap<String, usize>>,
    ungrouped: AtomicU64,
}

/// A denied request, without values of secrets.
pub struct DeniedRequest<'a> {
    pub call: u64,
    pub tool: &'a Arc<Tool>,
    pub component: &'a str,
    pub capability: &'static str,
    pub asked: &'a str,
    pub reason: &'a str,
    /// The section and the line of the manifest that would allow it.
    pub allow: Option<(&'a str, &'a str)>,
}

/// Denials of the same thing.
pub struct DenialGroup {
    /// Number of the group, for forms.
    pub number: u64,
    pub component: String,
    pub capability: &'static str,
    pub asked: String,
    pub reason: String,
    pub allow: Option<(String, String)>,
    pub first: SystemTime,
    count: AtomicU64,
    /// Milliseconds since 1970.
    last_ms: AtomicU64,
    last_call: AtomicU64,
    is_muted: AtomicBool,
    tools: ArcSwap<Vec<Arc<Tool>>>,
}

impl DenialGroups {
    /// Counts a denial.
    pub fn note(&self, denied: &DeniedRequest<'_>) {
        let name = [denied.component, denied.capability, denied.asked].join("\n");
        let known = self.groups.load().get(name.as_str()).map(Arc::clone);
        match known.or_else(|| self.add(name, denied)) {
            Some(group) => group.note(denied),
            None => {
                self.ungrouped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// All groups, newest first.
    pub fn list(&self) -> Vec<Arc<DenialGroup>> {
        let mut groups: Vec<_> = self.groups.load().values().map(Arc::clone).collect();
        groups.sort_by_key(|group| std::cmp::Reverse((group.last_ms.load(Ordering::Relaxed), group.number)));
        groups
    }

    /// The group of this number.
    pub fn find(&self, number: u64) -> Option<Arc<DenialGroup>> {
        self.groups.load().values().find(|group| group.number == number).map(Arc::clone)
    }

    /// Number of groups that are not muted.
    pub fn count(&self) -> usize {
        self.groups.load().values().filter(|group| !group.is_muted()).count()
    }

    /// Denials that belong to no group, as there are too many.
    pub fn ungrouped(&self) -> u64 {
        self.ungrouped.load(Ordering::Relaxed)
    }

    /// Adds a group; `None` if there is no room, for its component or at all.
    fn add(&self, name: String, denied: &DeniedRequest<'_>) -> Option<Arc<DenialGroup>> {
        let mut shares = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let groups = self.groups.load_full();
        if let Some(known) = groups.get(name.as_str()) {
            return Some(Arc::clone(known));
        }
        let share = shares.get(denied.component).copied().unwrap_or_default();
        if groups.len() >= GROUPS_MAX || share >= GROUPS_PER_COMPONENT_MAX {
            return None;
        }
        shares.insert(denied.component.to_owned(), share + 1);
        let group = Arc::new(DenialGroup {
            number: groups.len() as u64 + 1,
            component: denied.component.to_owned(),
            capability: denied.capability,
            asked: denied.asked.to_owned(),
            reason: denied.reason.to_owned(),
            allow: denied.allow.map(|(section, line)| (section.to_owned(), line.to_owned())),
            first: SystemTime::now(),
            count: AtomicU64::new(0),
            last_ms: AtomicU64::new(0),
            last_call: AtomicU64::new(0),
            is_muted: AtomicBool::new(false),
            tools: ArcSwap::default(),
        });
        let mut more = HashMap::clone(&groups);
        more.insert(name.into(), Arc::clone(&group));
        self.groups.store(Arc::new(more));
        Some(group)
    }
}

impl DenialGroup {
    fn note(&self, denied: &DeniedRequest<'_>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.last_call.store(denied.call, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_ms.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        let name = &denied.tool.definition().name;
        let is_new = |tools: &Vec<Arc<Tool>>| {
            tools.len() < TOOLS_MAX && !tools.iter().any(|tool| tool.definition().name == *name)
        };
        if is_new(&self.tools.load()) {
            self.tools.rcu(|tools| {
                let mut more = Vec::clone(tools);
                if is_new(&more) {
                    more.push(Arc::clone(denied.tool));
                }
                more
            });
        }
    }

    /// Number of denials.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Time of the last one.
    pub fn last(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }

    /// Number of the last call that asked.
    pub fn last_call(&self) -> u64 {
        self.last_call.load(Ordering::Relaxed)
    }

    /// Names of tools that asked; the first ones, where there are many.
    pub fn tools(&self) -> Vec<String> {
        self.tools.load().iter().map(|tool| tool.definition().name.clone()).collect()
    }

    /// True if an operator muted it.
    pub fn is_muted(&self) -> bool {
        self.is_muted.load(Ordering::Relaxed)
    }

    /// Mutes it, or ends that.
    pub fn mute(&self, is_muted: bool) {
        self.is_muted.store(is_muted, Ordering::Relaxed);
    }

    /// It, for suggestions of rules.
    pub fn attempt(&self) -> Attempt {
        Attempt::new(&self.component, &self.asked, self.allow.as_ref().map(|(_, line)| line.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use toolcell_mcp::{DefinitionBounds, ToolDefinition};

    use super::*;

    fn tool(name: &str) -> Arc<Tool> {
        let definition = ToolDefinition::new(name, "", serde_json::json!({"type": "object"}));
        Arc::new(Tool::compile(definition, &DefinitionBounds::default()).unwrap())
    }

    #[test]
    fn groups_are_bounded_and_count_alike_requests_together() {
        let groups = DenialGroups::default();
        let tools = [tool("a"), tool("b")];
        let note_of = |component: &str, asked: &str, tool: &Arc<Tool>| {
            let reason = "no rule";
            groups.note(&DeniedRequest { call: 7, tool, component, capability: "tcp", asked, reason, allow: None });
        };
        let note = |asked: &str, tool: &Arc<Tool>| note_of("c", asked, tool);
        for number in 0..GROUPS_PER_COMPONENT_MAX + 10 {
            note(&format!("tcp h:{number}"), &tools[0]);
        }
        assert_eq!((groups.list().len(), groups.ungrouped()), (GROUPS_PER_COMPONENT_MAX, 10), "one leaves room");
        for number in 0..GROUPS_MAX - GROUPS_PER_COMPONENT_MAX {
            note_of(&format!("c{}", number % 10), &format!("tcp h:{number}"), &tools[0]);
        }
        note("tcp h:0", &tools[1]);
        note("tcp h:0", &tools[1]);
        assert_eq!((groups.list().len(), groups.ungrouped()), (GROUPS_MAX, 10));
        let group = groups.find(1).unwrap();
        assert_eq!((group.count(), group.tools(), group.last_call()), (3, vec!["a".to_owned(), "b".to_owned()], 7));
        group.mute(true);
        assert_eq!(groups.count(), GROUPS_MAX - 1);
        (0..100).for_each(|number| note("tcp h:0", &tool(&format!("t{number}"))));
        assert_eq!(group.tools().len(), TOOLS_MAX);
    }
}
