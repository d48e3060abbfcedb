//! Components whose calls end their sandbox processes. Must not hold: how a process is ended, or
//! where a component runs.
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
}

/// The standing of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It runs with its group.
    Good,
    /// It runs in processes of its own.
    Apart,
    /// It does not run.
    HeldBack,
}

/// The ends of the sandboxes of a group's members.
#[derive(Debug, Default)]
pub(super) struct Conduct(Mutex<HashMap<usize, VecDeque<End>>>);

/// The end of one process.
#[derive(Debug)]
struct End {
    at: Instant,
    process: u32,
}

impl Conduct {
    /// This process was ended, and ran a call of this member. However many it ran, it ended once:
    /// false for the others.
    fn ended(&self, member: usize, process: u32) -> bool {
        self.ended_at(member, End { at: Instant::now(), process })
    }

    /// As [`ended`](Self::ended), and tells other hosts.
    pub(super) fn ended_for_all(
        &self,
        member: usize,
        process: u32,
        (shared, component): (Option<&dyn SharedEnds>, &str),
    ) {
        if self.ended(member, process)
            && let Some(shared) = shared
        {
            shared.ended(component, WITHIN);
        }
    }

    fn ended_at(&self, member: usize, end: End) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = all.entry(member).or_default();
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

    /// The standing of this member now, after its ends here and those that hosts count together. An
    /// end here that others do not know yet counts as well.
    pub(super) fn of(&self, member: usize, (shared, component): (Option<&dyn SharedEnds>, &str)) -> Standing {
        let together = shared.map_or(0, |shared| shared.count(component, HELD_BACK_AFTER));
        Standing::after(self.ends_at(member, Instant::now()).max(together))
    }

    fn ends_at(&self, member: usize, now: Instant) -> usize {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ends) = all.get_mut(&member) else { return 0 };
        ends.retain(|end| now.saturating_duration_since(end.at) < WITHIN);
        let count = ends.len();
        if count == 0 {
            all.remove(&member);
        }
        count
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
}

impl Conduct {
    /// The answer to a call of a component that is held back.
    pub(super) fn held_back() -> String {
        format!(
            "calls of this component ended its sandbox {HELD_BACK_AFTER} times within {} minutes, so it is held back; \
             look into the component, and replace it or try again later",
            WITHIN.as_secs() / 60
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ends_sandboxes_runs_apart_and_then_not_at_all_until_time_has_passed() {
        let (conduct, began) = (Conduct::default(), Instant::now());
        let second = Duration::from_secs(1);
        let standings: Vec<_> = (0..6)
            .map(|time| {
                let now = began + second * time;
                let standing = Standing::after(conduct.ends_at(1, now));
                // Each of its calls says so.
                let counted = [(); 3].map(|()| conduct.ended_at(1, End { at: now, process: time }));
                assert_eq!(counted, [true, false, false]);
                standing
            })
            .collect();
        use Standing::{Apart, Good, HeldBack};
        assert_eq!(standings, [Good, Good, Apart, Apart, Apart, HeldBack]);
        assert_eq!(Standing::after(conduct.ends_at(2, began)), Good, "another component");
        assert_eq!(Standing::after(conduct.ends_at(1, began + WITHIN)), HeldBack, "five are not old enough");
        assert_eq!(Standing::after(conduct.ends_at(1, began + WITHIN + second * 2)), Apart);
        assert_eq!(Standing::after(conduct.ends_at(1, began + WITHIN + second * 6)), Good);
    }

    /// Ends elsewhere, and those that were told from here.
    #[derive(Default)]
    struct Elsewhere(Mutex<Vec<String>>);

    impl SharedEnds for Elsewhere {
        fn ended(&self, component: &str, _: Duration) {
            self.0.lock().unwrap().push(component.to_owned());
        }

        fn count(&self, component: &str, most: usize) -> usize {
            self.0.lock().unwrap().iter().filter(|known| *known == component).take(most).count()
        }
    }

    #[test]
    fn ends_at_several_hosts_count_together() {
        let elsewhere = Elsewhere::default();
        let [one, other] = [(); 2].map(|()| Conduct::default());
        let tool = (Some(&elsewhere as &dyn SharedEnds), "tool");
        use Standing::{Apart, Good, HeldBack};
        for (number, standing) in [Good, Good, Apart, Apart, Apart, HeldBack].into_iter().enumerate() {
            let (process, conduct) = (u32::try_from(number).unwrap(), if number % 2 == 0 { &one } else { &other });
            assert_eq!([&one, &other].map(|conduct| conduct.of(0, tool)), [standing; 2]);
            (0..3).for_each(|_| conduct.ended_for_all(0, process, tool));
        }
        assert_eq!(one.of(1, (tool.0, "another")), Good);
        assert_eq!(one.of(0, (None, "tool")), Apart, "its own alone");
    }
}
