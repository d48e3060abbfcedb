//! Where the instances of a tool come from: made for the call, made ahead, or kept for the caller.
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolcell_policy::{ComponentPolicy, InstancePolicy, Limits};
use toolcell_sandbox::{
    Capabilities as Reach, InstanceSource, ReusedInstance as Kept, Spawn, StartCall, ToolComponent, WarmBudget,
    WarmInstances as Warm, WarmSetup, WarmTool,
};

use crate::workers::GuestExecutor;

/// Callers of one component that have an instance at once: each keeps a share of the pool. One that comes when all places are taken gets that of
/// whoever was idle for longest; where nobody is idle, its calls get an instance each, as without `instance = "per-caller"`. State is lost, never
/// shared.
const CALLERS_MAX: usize = 64;

/// What instances are made ahead with.
#[derive(Clone)]
pub struct Warming {
    ahead: WarmSetup,
}

impl Warming {
    /// `bytes_max` for all tools together, made on the threads of guests when these have nothing else to do.
    pub fn new(bytes_max: u64, executor: GuestExecutor) -> Self {
        let spawn: Spawn = Arc::new(move |work| executor.run_later(work));
        Self { ahead: WarmSetup { budget: WarmBudget::new(bytes_max), spawn, tell: Arc::new(tell) } }
    }
}

/// Says once of a component that nothing is made ahead of it.
fn tell(component: &str, call: &StartCall) {
    tracing::info!(component, "no instances are made ahead: {call}");
}

/// The instances of one component that are kept, by caller.
pub struct InstancesByCaller {
    callers: Mutex<HashMap<String, CallerInstance>>,
    idle: Duration,
    lifetime: Duration,
}

/// A caller's place.
struct CallerInstance {
    kept: Arc<Kept>,
    used: Instant,
}

impl InstancesByCaller {
    /// Where the manifest says `instance = "per-caller"`.
    pub fn of(policy: &ComponentPolicy) -> Option<Arc<Self>> {
        match policy.instance() {
            InstancePolicy::PerCall => None,
            InstancePolicy::PerCaller { idle, lifetime } => {
                Some(Arc::new(Self { callers: Mutex::default(), idle, lifetime }))
            }
        }
    }

    fn of_caller(&self, caller: &str) -> Option<Arc<Kept>> {
        let used = Instant::now();
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = callers.get_mut(caller) {
            place.used = used;
            return Some(Arc::clone(&place.kept));
        }
        let gone = if callers.len() >= CALLERS_MAX { Some(make_room(&mut callers)?) } else { None };
        let kept = Arc::new(Kept::new(self.idle, self.lifetime));
        callers.insert(caller.to_owned(), CallerInstance { kept: Arc::clone(&kept), used });
        drop(callers);
        // Its instance is given up after the reply.
        gone.into_iter().for_each(|kept| crate::workers::leave(Box::new(kept)));
        Some(kept)
    }
}

/// Takes the place of the caller whose last call is the longest ago. A call that runs, or waits for its turn, holds its own.
fn make_room(callers: &mut HashMap<String, CallerInstance>) -> Option<Arc<Kept>> {
    let idle = callers.iter().filter(|(_, place)| Arc::strong_count(&place.kept) == 1);
    let longest = idle.min_by_key(|(_, place)| place.used).map(|(caller, _)| caller.clone())?;
    callers.remove(&longest).map(|place| place.kept)
}

/// Where one tool's instances come from.
#[derive(Clone)]
pub enum Instances {
    /// Made for each call.
    Fresh,
    /// Made ahead.
    Warm(Arc<Warm>),
    /// Kept for the caller, for all tools of the component.
    Kept(Arc<InstancesByCaller>),
}

/// Where one call's instance comes from.
pub enum Source<'a> {
    Fresh,
    Warm(&'a Arc<Warm>),
    Kept(Arc<Kept>),
}

impl Instances {
    /// As the manifest says.
    pub fn of(
        policy: &ComponentPolicy,
        component: &Arc<ToolComponent>,
        kept: Option<&Arc<InstancesByCaller>>,
        (limits, reach): (&Limits, &Arc<Reach>),
        warming: &Warming,
    ) -> Self {
        if let Some(kept) = kept {
            return Self::Kept(Arc::clone(kept));
        }
        match policy.prewarm() {
            0 => Self::Fresh,
            count => {
                let (component, capabilities) = (Arc::clone(component), Arc::clone(reach));
                let tool = WarmTool { component, limits: *limits, capabilities, count };
                Self::Warm(Warm::new(tool, warming.ahead.clone()))
            }
        }
    }

    /// For one call of this caller.
    pub fn for_caller(&self, caller: &str) -> Source<'_> {
        match self {
            Self::Fresh => Source::Fresh,
            Self::Warm(warm) => Source::Warm(warm),
            Self::Kept(kept) => kept.of_caller(caller).map_or(Source::Fresh, Source::Kept),
        }
    }
}

impl Source<'_> {
    /// As the sandbox has it.
    pub fn supply(&self) -> InstanceSource<'_> {
        match self {
            Self::Fresh => InstanceSource::Fresh,
            Self::Warm(warm) => InstanceSource::Warm(warm),
            Self::Kept(kept) => InstanceSource::Reused(kept),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> InstancesByCaller {
        InstancesByCaller { callers: Mutex::default(), idle: Duration::from_secs(1), lifetime: Duration::from_secs(1) }
    }

    #[test]
    fn a_caller_has_its_own_instance_and_nobody_else_s() {
        let kept = kept();
        let (ann, bob) = (kept.of_caller("ann").unwrap(), kept.of_caller("bob").unwrap());
        assert!(!Arc::ptr_eq(&ann, &bob));
        assert!(Arc::ptr_eq(&ann, &kept.of_caller("ann").unwrap()));
    }

    #[test]
    fn who_comes_when_all_places_are_taken_has_that_of_whoever_was_idle_for_longest() {
        let kept = kept();
        let names: Vec<String> = (0..CALLERS_MAX).map(|caller| caller.to_string()).collect();
        let places: Vec<_> = names.iter().map(|caller| Arc::downgrade(&kept.of_caller(caller).unwrap())).collect();
        assert!(kept.of_caller("0").is_some(), "the first was here again");
        for caller in 0..1_000 {
            assert!(kept.of_caller(&format!("late {caller}")).is_some());
            assert!(kept.callers.lock().unwrap().len() <= CALLERS_MAX);
            assert!(places[1].upgrade().is_none(), "the second had waited for longest");
            assert_eq!(places[0].upgrade().is_none(), caller >= CALLERS_MAX - 1, "after {caller}");
        }
    }

    #[test]
    fn a_place_in_use_is_nobody_else_s() {
        let kept = kept();
        let used: Vec<_> = (0..CALLERS_MAX).map(|caller| kept.of_caller(&caller.to_string()).unwrap()).collect();
        assert!(kept.of_caller("one more").is_none());
        assert!(Arc::ptr_eq(&used[0], &kept.of_caller("0").unwrap()));
        drop(used);
        assert!(kept.of_caller("one more").is_some());
    }
}
