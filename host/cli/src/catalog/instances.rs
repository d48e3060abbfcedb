//! Where the instances of a tool come from: made for the call, made ahead, or kept for the caller.
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use toolcell_policy::{ComponentPolicy, InstancePolicy, Limits};
use toolcell_sandbox::{Kept, Reach, Spawn, Supply, ToolComponent, Warm, WarmBudget};

use crate::workers::GuestExecutor;

/// Callers of one component whose state is kept apart: each keeps a share of the pool. Past them, a caller's calls get an instance each, as without
/// `instance = "per-caller"`: state is lost, never shared.
const CALLERS_MAX: usize = 64;

/// What instances are made ahead with.
#[derive(Clone)]
pub struct Warming {
    budget: Arc<WarmBudget>,
    spawn: Spawn,
}

impl Warming {
    /// `bytes_max` for all tools together, made on the threads of guests when these have nothing else to do.
    pub fn new(bytes_max: u64, executor: GuestExecutor) -> Self {
        Self { budget: WarmBudget::new(bytes_max), spawn: Arc::new(move |work| executor.run_later(work)) }
    }
}

/// The instances of one component that are kept, by caller.
pub struct KeptByCaller {
    callers: Mutex<HashMap<String, Arc<Kept>>>,
    idle: Duration,
    lifetime: Duration,
}

impl KeptByCaller {
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
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = callers.get(caller) {
            return Some(Arc::clone(kept));
        }
        if callers.len() >= CALLERS_MAX {
            return None;
        }
        let kept = Arc::new(Kept::new(self.idle, self.lifetime));
        callers.insert(caller.to_owned(), Arc::clone(&kept));
        Some(kept)
    }
}

/// Where one tool's instances come from.
#[derive(Clone)]
pub enum Instances {
    /// Made for each call.
    Fresh,
    /// Made ahead.
    Warm(Arc<Warm>),
    /// Kept for the caller, for all tools of the component.
    Kept(Arc<KeptByCaller>),
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
        kept: Option<&Arc<KeptByCaller>>,
        (limits, reach): (&Limits, &Arc<Reach>),
        warming: &Warming,
    ) -> Self {
        if let Some(kept) = kept {
            return Self::Kept(Arc::clone(kept));
        }
        match policy.prewarm() {
            0 => Self::Fresh,
            count => {
                let Warming { budget, spawn } = warming.clone();
                Self::Warm(Warm::new(Arc::clone(component), (*limits, Arc::clone(reach)), count, budget, spawn))
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
    pub fn supply(&self) -> Supply<'_> {
        match self {
            Self::Fresh => Supply::Fresh,
            Self::Warm(warm) => Supply::Warm(warm),
            Self::Kept(kept) => Supply::Kept(kept),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> KeptByCaller {
        KeptByCaller { callers: Mutex::default(), idle: Duration::from_secs(1), lifetime: Duration::from_secs(1) }
    }

    #[test]
    fn a_caller_has_its_own_instance_and_nobody_else_s() {
        let kept = kept();
        let (ann, bob) = (kept.of_caller("ann").unwrap(), kept.of_caller("bob").unwrap());
        assert!(!Arc::ptr_eq(&ann, &bob));
        assert!(Arc::ptr_eq(&ann, &kept.of_caller("ann").unwrap()));
    }

    #[test]
    fn past_the_callers_that_are_kept_apart_nobody_shares() {
        let kept = kept();
        for caller in 0..CALLERS_MAX {
            assert!(kept.of_caller(&caller.to_string()).is_some());
        }
        assert!(kept.of_caller("one more").is_none());
        assert!(kept.of_caller("0").is_some());
    }
}
