//! Components whose calls end their sandbox processes.
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Ends of a component's sandbox that count, and how long it is held back.
const WITHIN: Duration = Duration::from_secs(600);

/// Ends after which a component runs apart from the others of its group. With the first it may have
/// been beside another that did it.
const APART_AFTER: usize = 2;

/// Ends after which it is held back. Three of them happened in processes that it had for itself.
const HELD_BACK_AFTER: usize = 5;

/// Ends of sandbox processes that several hosts count together.
pub trait SharedEnds: Send + Sync {
    /// A process was ended here, and ran a call of this component. It counts for a time.
    fn ended(&self, component: &str, time: Duration);

    /// Ends that count now, those here included, up to `most`.
    fn count(&self, component: &str, most: usize) -> usize;

    /// No end counts any more, of any component.
    fn forget(&self);
}

/// The standing of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It runs with its group.
    Good,
    /// It runs in processes of its own.
    Apart,
    /// It does not run.
    HeldBack,
}

/// The ends of sandboxes, by the components whose calls they ran. A component is known by the name
/// that other hosts know it by as well, so its ends count whatever becomes of its group.
#[derive(Debug, Default)]
pub(super) struct Conduct(Mutex<HashMap<String, VecDeque<End>>>);

/// The end of one process.
#[derive(Debug)]
struct End {
    at: Instant,
    process: u32,
}

impl End {
    fn counts(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < WITHIN
    }
}

impl Conduct {
    /// This process was ended, and ran a call of this component. However many it ran, it ended
    /// once. Other hosts are told. Returns the standing where that is another one now.
    pub(super) fn ended(&self, component: &str, process: u32, shared: Option<&dyn SharedEnds>) -> Option<Standing> {
        let before = self.of(component, shared);
        if !self.ended_at(component, End { at: Instant::now(), process }) {
            return None;
        }
        if let Some(shared) = shared {
            shared.ended(component, WITHIN);
        }
        Some(self.of(component, shared)).filter(|now| *now != before)
    }

    /// False where this end is counted already.
    fn ended_at(&self, component: &str, end: End) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Of components that are served no more nobody asks.
        all.retain(|_, ends| ends.back().is_some_and(|last| last.counts(end.at)));
        let ends = all.entry(component.to_owned()).or_default();
        if ends.iter().any(|known| known.process == end.process) {
            return false;
        }
        ends.push_back(end);
        // Older ones change nothing.
        while ends.len() > HELD_BACK_AFTER {
            ends.pop_front();
        }
        true
    }

    /// No end so far counts any more, here and where hosts count together.
    pub(super) fn forget(&self, shared: Option<&dyn SharedEnds>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
        shared.into_iter().for_each(SharedEnds::forget);
    }

    /// The standing of this component now, after its ends here and those that hosts count together.
    /// An end here that others do not know yet counts as well.
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
    /// After so many ends.
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

    /// The reason for it, and what to do, in one sentence without a full stop. That of a component
    /// that is held back answers its calls.
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
        let conduct = Conduct::default();
        let began = Instant::now();
        let second = Duration::from_secs(1);
        let standings: Vec<_> = (0..6)
            .map(|time| {
                let now = began + second * time;
                let standing = Standing::after(conduct.ends_at("one", now));
                // Each of its calls says so.
                let counted = [(); 3].map(|()| conduct.ended_at("one", End { at: now, process: time }));
                assert_eq!(counted, [true, false, false]);
                standing
            })
            .collect();
        use Standing::{Apart, Good, HeldBack};
        assert_eq!(standings, [Good, Good, Apart, Apart, Apart, HeldBack]);
        assert_eq!(Standing::after(conduct.ends_at("other", began)), Good, "another component");
        assert_eq!(Standing::after(conduct.ends_at("one", began + WITHIN)), HeldBack, "five are not old enough");
        assert_eq!(Standing::after(conduct.ends_at("one", began + WITHIN + second * 2)), Apart);
        assert_eq!(Standing::after(conduct.ends_at("one", began + WITHIN + second * 6)), Good);
    }

    /// Ends elsewhere, and those that were told from here.
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
        let [one, other] = [(); 2].map(|()| Conduct::default());
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
            let conduct = if number % 2 == 0 { &one } else { &other };
            assert_eq!([&one, &other].map(|conduct| conduct.of("tool", shared)), [standing; 2]);
            let told = [(); 3].map(|()| conduct.ended("tool", process, shared));
            assert_eq!(told, [change, None, None], "each of its calls says so, and a change is told once");
        }
        assert_eq!(one.of("another", shared), Good);
        assert_eq!(one.of("tool", None), Apart, "its own alone");
        other.forget(shared);
        assert_eq!(
            [&one, &other].map(|conduct| conduct.of("tool", shared)),
            [Apart, Good],
            "each host forgets its own"
        );
        one.forget(shared);
        assert_eq!(one.of("tool", shared), Good);
    }
}
