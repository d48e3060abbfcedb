//! Components whose calls end their sandbox processes.
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the end of a component's sandbox counts, and how long it is held back.
const WITHIN: Duration = Duration::from_secs(600);

/// Ends after which a component runs apart from the others of its group. At the first end, another
/// component of the group may have been the cause.
const APART_AFTER: usize = 2;

/// Ends after which it is held back. Three of them happened in processes of its own.
const HELD_BACK_AFTER: usize = 5;

/// Ends of sandbox processes that several hosts count together.
pub trait SharedEnds: Send + Sync {
    /// A process that ran a call of this component was ended here. It counts for this time.
    fn ended(&self, component: &str, time: Duration);

    /// Ends that count now, including those here, up to `most`.
    fn count(&self, component: &str, most: usize) -> usize;

    /// Forgets all ends, of every component.
    fn forget(&self);
}

/// How the host treats a component after its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It runs with its group.
    Good,
    /// It runs in processes of its own.
    Apart,
    /// It does not run.
    HeldBack,
}

/// The crash history of components: ends of the sandboxes that ran their calls. A component is
/// known by the name that other hosts also use, so its ends count even if its group changes.
#[derive(Debug, Default)]
pub(super) struct CrashHistory(Mutex<HashMap<String, VecDeque<ProcessEnd>>>);

/// The end of one process.
#[derive(Debug)]
struct ProcessEnd {
    at: Instant,
    process: u32,
}

impl ProcessEnd {
    fn counts(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < WITHIN
    }
}

impl CrashHistory {
    /// Notes that this process was ended while it ran a call of this component. A process counts
    /// once, however many calls it ran. Notifies other hosts. Returns the standing if it changed.
    pub(super) fn ended(&self, component: &str, process: u32, shared: Option<&dyn SharedEnds>) -> Option<Standing> {
        let before = self.of(component, shared);
        if !self.ended_at(component, ProcessEnd { at: Instant::now(), process }) {
            return None;
        }
        if let Some(shared) = shared {
            shared.ended(component, WITHIN);
        }
        Some(self.of(component, shared)).filter(|now| *now != before)
    }

    /// False if this end already counts.
    fn ended_at(&self, component: &str, end: ProcessEnd) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Components that are no longer served are never asked about.
        all.retain(|_, ends| ends.back().is_some_and(|last| last.counts(end.at)));
        let ends = all.entry(component.to_owned()).or_default();
        if ends.iter().any(|known| known.process == end.process) {
            return false;
        }
        ends.push_back(end);
        // Older ones make no difference.
        while ends.len() > HELD_BACK_AFTER {
            ends.pop_front();
        }
        true
    }

    /// Forgets all ends so far, here and at the hosts that count together.
    pub(super) fn forget(&self, shared: Option<&dyn SharedEnds>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
        shared.into_iter().for_each(SharedEnds::forget);
    }

    /// The standing of this component now, after its ends here and those that hosts count together.
    /// An end that other hosts do not know yet counts, too.
    pub(super) fn of(&self, component: &str, shared: Option<&dyn SharedEnds>) -> Standing {
        let together = shared.map_or(0, |shared| shared.count(component, HELD_BACK_AFTER));
        Standing::after(self.ends_at(component, Instant::now()).max(together))
    }

    fn ends_at(&self, component: &str, now: Instant) -> usize {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(component).map_or(0, |ends| ends.iter().filter(|end| end.counts(now)).count())
    }
}

impl Standing {
    /// The standing after this number of ends.
    const fn after(ends: usize) -> Self {
        match ends {
            few if few < APART_AFTER => Self::Good,
            more if more < HELD_BACK_AFTER => Self::Apart,
            _ => Self::HeldBack,
        }
    }

    /// Its name for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Apart => "apart",
            Self::HeldBack => "held_back",
        }
    }

    /// The reason for it, and what to do, in one sentence without a full stop. For a component that
    /// is held back, it is the answer to its calls.
    #[must_use]
    pub fn reason(self) -> String {
        let minutes = WITHIN.as_secs() / 60;
        match self {
            Self::Good => "its calls end no sandboxes".to_owned(),
            Self::Apart => format!(
                "calls of this component ended its sandbox {APART_AFTER} times within {minutes} minutes, so it runs \
                 apart from others; look into the component"
            ),
            Self::HeldBack => format!(
                "calls of this component ended its sandbox {HELD_BACK_AFTER} times within {minutes} minutes, so it is \
                 held back; look into the component, and replace it, or have it run again by `toolcell reload`"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ends_sandboxes_runs_apart_and_then_not_at_all_until_time_has_passed() {
        let crash_history = CrashHistory::default();
        let began = Instant::now();
        let second = Duration::from_secs(1);
        let standings: Vec<_> = (0..6)
            .map(|time| {
                let now = began + second * time;
                let standing = Standing::after(crash_history.ends_at("one", now));
                // Each of its calls reports the end.
                let counted = [(); 3].map(|()| crash_history.ended_at("one", ProcessEnd { at: now, process: time }));
                assert_eq!(counted, [true, false, false]);
                standing
            })
            .collect();
        use Standing::{Apart, Good, HeldBack};
        assert_eq!(standings, [Good, Good, Apart, Apart, Apart, HeldBack]);
        assert_eq!(Standing::after(crash_history.ends_at("other", began)), Good, "another component");
        assert_eq!(Standing::after(crash_history.ends_at("one", began + WITHIN)), HeldBack, "five are not old enough");
        assert_eq!(Standing::after(crash_history.ends_at("one", began + WITHIN + second * 2)), Apart);
        assert_eq!(Standing::after(crash_history.ends_at("one", began + WITHIN + second * 6)), Good);
    }

    /// Ends elsewhere, and those reported from here.
    #[derive(Default)]
    struct Elsewhere(Mutex<Vec<String>>);

    impl SharedEnds for Elsewhere {
        fn ended(&self, component: &str, _: Duration) {
            self.0.lock().unwrap().push(component.to_owned());
        }

        fn forget(&self) {
            self.0.lock().unwrap().clear();
        }

        fn count(&self, component: &str, most: usize) -> usize {
            self.0.lock().unwrap().iter().filter(|known| *known == component).take(most).count()
        }
    }

    #[test]
    fn ends_at_several_hosts_count_together() {
        let elsewhere = Elsewhere::default();
        let [one, other] = [(); 2].map(|()| CrashHistory::default());
        let shared = Some(&elsewhere as &dyn SharedEnds);
        use Standing::{Apart, Good, HeldBack};
        let steps = [
            (Good, None),
            (Good, Some(Apart)),
            (Apart, None),
            (Apart, None),
            (Apart, Some(HeldBack)),
            (HeldBack, None),
        ];
        for (number, (standing, change)) in steps.into_iter().enumerate() {
            let process = u32::try_from(number).unwrap();
            let crash_history = if number % 2 == 0 { &one } else { &other };
            assert_eq!([&one, &other].map(|crash_history| crash_history.of("tool", shared)), [standing; 2]);
            let told = [(); 3].map(|()| crash_history.ended("tool", process, shared));
            assert_eq!(told, [change, None, None], "each of its calls says so, and a change is told once");
        }
        assert_eq!(one.of("another", shared), Good);
        assert_eq!(one.of("tool", None), Apart, "its own alone");
        other.forget(shared);
        assert_eq!(
            [&one, &other].map(|crash_history| crash_history.of("tool", shared)),
            [Apart, Good],
            "each host forgets its own"
        );
        one.forget(shared);
        assert_eq!(one.of("tool", shared), Good);
    }
}
