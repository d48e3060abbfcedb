//! Denials in groups: one for each component, capability and request.
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use toolcell_mcp::McpTool;
use toolcell_policy::Attempt;

/// Groups that are kept. Guests choose what they ask for; a group takes at most some three
/// kilobytes.
const GROUPS_MAX: usize = 1_000;

/// The share of one component: it fills some pages, and leaves room for nine others.
const GROUPS_PER_COMPONENT_MAX: usize = GROUPS_MAX / 10;

/// Most tools that a group names.
const TOOLS_MAX: usize = 12;

/// Callers that a group names; the audit has the others.
const CALLERS_MAX: usize = 8;

/// Most bytes of a caller's name. Issuers may give longer ones.
const CALLER_BYTES_MAX: usize = 128;

/// Groups of denials. Readers and calls that belong to a known group take no lock.
///
/// When it is full, a new group replaces another one of its component.
#[derive(Default)]
pub struct DenialGroups {
    components: ArcSwap<HashMap<String, Arc<ComponentGroups>>>,
    /// Number of the last group. Held while a group is added.
    adding: Mutex<u64>,
    ungrouped: AtomicU64,
}

/// The groups of one component, by capability and request.
type ComponentGroups = HashMap<Arc<str>, Arc<DenialGroup>>;

/// A denied request, without values of secrets.
pub struct DeniedRequest<'a> {
    pub call: u64,
    pub caller: &'a str,
    pub tool: &'a Arc<McpTool>,
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
    /// Twice the generation whose grants were checked last, plus one if they allow it.
    looked_at: AtomicU64,
    tools: ArcSwap<Vec<Arc<McpTool>>>,
    callers: ArcSwap<Vec<String>>,
}

impl DenialGroups {
    /// Counts a denial.
    pub fn note(&self, denied: &DeniedRequest<'_>) {
        let name = [denied.capability, denied.asked].join("\n");
        let known = self.components.load().get(denied.component).and_then(|own| own.get(name.as_str())).map(Arc::clone);
        match known.or_else(|| self.add(name, denied)) {
            Some(group) => group.note(denied),
            None => {
                self.ungrouped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// All groups, newest first.
    pub fn list(&self) -> Vec<Arc<DenialGroup>> {
        let components = self.components.load();
        let mut groups: Vec<_> = components.values().flat_map(|own| own.values()).map(Arc::clone).collect();
        groups.sort_by_key(|group| std::cmp::Reverse((group.last_ms.load(Ordering::Relaxed), group.number)));
        groups
    }

    pub fn find(&self, number: u64) -> Option<Arc<DenialGroup>> {
        let components = self.components.load();
        components.values().flat_map(|own| own.values()).find(|group| group.number == number).map(Arc::clone)
    }

    /// Denials in no group, or in a group that was replaced.
    pub fn ungrouped(&self) -> u64 {
        self.ungrouped.load(Ordering::Relaxed)
    }

    /// Adds a group; `None` if there are too many components.
    fn add(&self, name: String, denied: &DeniedRequest<'_>) -> Option<Arc<DenialGroup>> {
        let mut last = self.adding.lock();
        let components = self.components.load_full();
        let own = components.get(denied.component);
        if let Some(known) = own.and_then(|own| own.get(name.as_str())) {
            return Some(Arc::clone(known));
        }
        let mut own = own.map(|own| ComponentGroups::clone(own)).unwrap_or_default();
        let all: usize = components.values().map(|own| own.len()).sum();
        if all >= GROUPS_MAX || own.len() >= GROUPS_PER_COMPONENT_MAX {
            self.give_way(&mut own)?;
        }
        *last += 1;
        let group = Arc::new(DenialGroup {
            number: *last,
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
            looked_at: AtomicU64::new(0),
            tools: ArcSwap::default(),
            callers: ArcSwap::default(),
        });
        own.insert(name.into(), Arc::clone(&group));
        let mut more = HashMap::clone(&components);
        more.insert(denied.component.to_owned(), Arc::new(own));
        self.components.store(Arc::new(more));
        Some(group)
    }

    /// Replaces one of these groups: the oldest that is muted or allowed, or else the oldest.
    /// `None` without any.
    fn give_way(&self, own: &mut ComponentGroups) -> Option<()> {
        let age = |group: &DenialGroup| (!group.is_settled(), group.last_ms.load(Ordering::Relaxed), group.number);
        let oldest = own.iter().min_by_key(|(_, group)| age(group)).map(|(name, _)| Arc::clone(name))?;
        let gone = own.remove(&oldest)?;
        self.ungrouped.fetch_add(gone.count(), Ordering::Relaxed);
        Some(())
    }
}

impl DenialGroup {
    fn note(&self, denied: &DeniedRequest<'_>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.last_call.store(denied.call, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_ms.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        let name = &denied.tool.definition().name;
        let is_new = |tools: &Vec<Arc<McpTool>>| {
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
        self.note_caller(denied.caller);
    }

    fn note_caller(&self, caller: &str) {
        let caller: Cow<'_, str> = match caller.get(..caller.floor_char_boundary(CALLER_BYTES_MAX)) {
            Some(start) if start.len() < caller.len() => format!("{start}…").into(),
            _ => caller.into(),
        };
        let is_new =
            |callers: &Vec<String>| callers.len() < CALLERS_MAX && !callers.iter().any(|known| **known == *caller);
        if is_new(&self.callers.load()) {
            self.callers.rcu(|callers| {
                let mut more = Vec::clone(callers);
                if is_new(&more) {
                    more.push(caller.clone().into_owned());
                }
                more
            });
        }
    }

    /// Number of denials.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub fn last(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }

    /// Number of the last call that asked.
    pub fn last_call(&self) -> u64 {
        self.last_call.load(Ordering::Relaxed)
    }

    /// The first tools that asked.
    pub fn tools(&self) -> Vec<String> {
        self.tools.load().iter().map(|tool| tool.definition().name.clone()).collect()
    }

    /// The first callers whose calls asked.
    pub fn callers(&self) -> Vec<String> {
        Vec::clone(&self.callers.load())
    }

    /// True if an operator muted it.
    pub fn is_muted(&self) -> bool {
        self.is_muted.load(Ordering::Relaxed)
    }

    /// Mutes or unmutes it.
    pub fn mute(&self, is_muted: bool) {
        self.is_muted.store(is_muted, Ordering::Relaxed);
    }

    /// True if the grants of this generation allow it. The answer is kept for the generation.
    pub fn is_allowed_in(&self, generation: u64, allows: impl FnOnce() -> bool) -> bool {
        let known = self.looked_at.load(Ordering::Relaxed);
        if known / 2 == generation {
            return known % 2 == 1;
        }
        let allowed = allows();
        self.looked_at.store(generation * 2 + u64::from(allowed), Ordering::Relaxed);
        allowed
    }

    /// True if it needs no attention: it is muted, or was allowed when last checked.
    fn is_settled(&self) -> bool {
        self.is_muted() || self.looked_at.load(Ordering::Relaxed) % 2 == 1
    }

    /// The denied request, for suggesting rules.
    pub fn attempt(&self) -> Attempt {
        Attempt::new(&self.component, &self.asked, self.allow.as_ref().map(|(_, line)| line.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use toolcell_mcp::ToolDefinition;

    use super::*;

    fn tool(name: &str) -> Arc<McpTool> {
        let definition = ToolDefinition::new(name, "", serde_json::json!({"type": "object"}));
        Arc::new(McpTool::compile(definition).unwrap())
    }

    #[test]
    fn groups_are_bounded_and_count_alike_requests_together() {
        let groups = DenialGroups::default();
        let tools = [tool("a"), tool("b")];
        let note_by = |component: &str, asked: &str, tool: &Arc<McpTool>, caller: &str| {
            let capability = "tcp";
            let reason = "no rule";
            groups.note(&DeniedRequest { call: 7, caller, tool, component, capability, asked, reason, allow: None });
        };
        let note_of = |component: &str, asked: &str, tool: &Arc<McpTool>| note_by(component, asked, tool, "ann");
        let note = |asked: &str, tool: &Arc<McpTool>| note_of("c", asked, tool);
        for number in 0..GROUPS_PER_COMPONENT_MAX {
            note(&format!("tcp h:{number}"), &tools[0]);
        }
        for number in 0..GROUPS_MAX - GROUPS_PER_COMPONENT_MAX {
            note_of(&format!("c{}", number % 9), &format!("tcp h:{number}"), &tools[0]);
        }
        note("tcp h:0", &tools[1]);
        note("tcp h:0", &tools[1]);
        assert_eq!((groups.list().len(), groups.ungrouped()), (GROUPS_MAX, 0));
        let group = groups.find(1).unwrap();
        assert_eq!((group.count(), group.tools(), group.last_call()), (3, vec!["a".to_owned(), "b".to_owned()], 7));
        note_of("further", "tcp h:0", &tools[0]);
        assert_eq!((groups.list().len(), groups.ungrouped()), (GROUPS_MAX, 1), "no room for an eleventh component");
        (0..100).for_each(|number| note("tcp h:0", &tool(&format!("t{number}"))));
        assert_eq!(group.tools().len(), TOOLS_MAX);
        note_by("c", "tcp h:0", &tools[0], "bob");
        note_by("c", "tcp h:0", &tools[0], "ann");
        assert_eq!(group.callers(), ["ann", "bob"]);
        (0..100).for_each(|number| note_by("c", "tcp h:0", &tools[0], &format!("{number}{}", "é".repeat(9_000))));
        let callers = group.callers();
        assert_eq!((callers.len(), callers[2].len()), (CALLERS_MAX, CALLER_BYTES_MAX - 1 + "…".len()), "{callers:?}");
    }

    #[test]
    fn a_new_group_takes_the_place_of_an_old_one_of_its_component() {
        let groups = DenialGroups::default();
        let tool = tool("a");
        let note = |component: &str, asked: &str| {
            let tool = &tool;
            let caller = "ann";
            let reason = "no rule";
            let capability = "tcp";
            let allow = None;
            groups.note(&DeniedRequest { call: 7, caller, tool, component, capability, asked, reason, allow });
        };
        note("other", "tcp h:0");
        (1..=GROUPS_PER_COMPONENT_MAX).for_each(|number| note("c", &format!("tcp h:{number}")));
        let find = |asked: &str| groups.list().into_iter().find(|group| group.component == "c" && group.asked == asked);
        let muted = find("tcp h:50").unwrap();
        let allowed = find("tcp h:60").unwrap();
        muted.mute(true);
        assert!(allowed.is_allowed_in(2, || true) && allowed.is_allowed_in(2, || false), "it is looked at once");
        assert!(!find("tcp h:70").unwrap().is_allowed_in(2, || false));
        for (new, gone) in [("tcp new:1", "tcp h:50"), ("tcp new:2", "tcp h:60"), ("tcp new:3", "tcp h:1")] {
            assert!(find(gone).is_some());
            note("c", new);
            assert!(find(gone).is_none() && find(new).is_some(), "{new}");
        }
        let mut numbers: Vec<u64> = groups.list().iter().map(|group| group.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!((numbers.len(), numbers.last()), (GROUPS_PER_COMPONENT_MAX + 1, Some(&104)), "no number twice");
        assert_eq!((groups.ungrouped(), find("tcp new:1").unwrap().count()), (3, 1));
        assert!(groups.list().iter().any(|group| group.component == "other"));
    }
}
