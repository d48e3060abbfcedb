//! Instances that are kept for callers.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toolcell_policy::{ComponentPolicy, InstancePolicy};
use toolcell_sandbox::{RemoteInstance, ReusedInstance, StartCall};

/// Callers of one component with an instance at a time; each holds a share of the pool. A further
/// caller replaces the one that was idle for longest. If nobody is idle, each of its calls gets its
/// own instance, as without `instance = "per-caller"`. State is lost, never shared.
pub(super) const CALLERS_MAX: usize = 64;

/// Logs once for a component that its instances cannot be prewarmed.
pub(super) fn report_unwarmed(component: &str, call: &StartCall) {
    tracing::info!(component, "no instances are prewarmed: {call}");
}

/// The kept instances of one component, by caller. Tools with the same grants share them.
pub struct InstancesByCaller {
    callers: Mutex<HashMap<String, CallerInstance>>,
    idle: Duration,
    lifetime: Duration,
}

struct CallerInstance {
    kept: Arc<ReusedInstance<RemoteInstance>>,
    used: Instant,
}

impl InstancesByCaller {
    pub fn of(policy: &ComponentPolicy) -> Option<Arc<Self>> {
        match policy.instance() {
            InstancePolicy::PerCall => None,
            InstancePolicy::PerCaller { idle, lifetime } => {
                Some(Arc::new(Self { callers: Mutex::default(), idle, lifetime }))
            }
        }
    }

    /// The instance of this caller; `None` if all places are in use.
    pub(crate) fn of_caller(&self, caller: &str) -> Option<Arc<ReusedInstance<RemoteInstance>>> {
        let used = Instant::now();
        let mut callers = self.callers.lock();
        if let Some(slot) = callers.get_mut(caller) {
            slot.used = used;
            return Some(Arc::clone(&slot.kept));
        }
        let gone = if callers.len() >= CALLERS_MAX { Some(make_room(&mut callers)?) } else { None };
        let kept = Arc::new(ReusedInstance::new(self.idle, self.lifetime));
        callers.insert(caller.to_owned(), CallerInstance { kept: Arc::clone(&kept), used });
        drop(callers);
        // Dropping it notifies its process.
        drop(gone);
        Some(kept)
    }
}

/// Evicts the caller whose last call was longest ago. Callers with a running or waiting call keep
/// their instance.
fn make_room(callers: &mut HashMap<String, CallerInstance>) -> Option<Arc<ReusedInstance<RemoteInstance>>> {
    let idle = callers.iter().filter(|(_, slot)| Arc::strong_count(&slot.kept) == 1);
    let longest = idle.min_by_key(|(_, slot)| slot.used).map(|(caller, _)| caller.clone())?;
    callers.remove(&longest).map(|slot| slot.kept)
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
        let ann = kept.of_caller("ann").unwrap();
        let bob = kept.of_caller("bob").unwrap();
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
            assert!(kept.callers.lock().len() <= CALLERS_MAX);
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
