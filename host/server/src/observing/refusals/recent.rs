//! Refusals of the last hour in rows, within a bound, for operators.
use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

use super::table::{Who, kept_name};
use super::{Reason, Refusal};
use crate::listening::AddressRange;
use crate::observing::window::Window;

/// One part of the hour. The oldest part leaves as a whole, so an hour is up to five minutes
/// shorter.
const PART: Duration = Duration::from_secs(5 * 60);

/// Parts of an hour.
const PARTS: usize = 12;

/// Most rows of ranges of addresses: a screen or two, at about 200 bytes each.
pub const RANGE_ROWS_MAX: usize = 64;

/// Rows of callers. Strangers cannot displace them.
pub const CALLER_ROWS_MAX: usize = 64;

/// Counts of the last hour.
#[derive(Default)]
pub(super) struct Recent {
    began: Option<Instant>,
    ranges: HashMap<RecentKey, RecentCount>,
    callers: HashMap<RecentKey, RecentCount>,
    /// Refusals without a row.
    others: RecentCount,
}

/// Refusals of the last hour.
#[derive(Debug, Default)]
pub struct RecentRefusals {
    /// Refusals grouped by kind, the newest first.
    pub rows: Vec<RecentRefusal>,
    /// Refusals without a row, because there were too many.
    pub beyond: u64,
}

/// Refusals of one kind.
#[derive(Debug, PartialEq, Eq)]
pub struct RecentRefusal {
    pub refusal: Refusal,
    /// The caller's name, or the range of addresses.
    pub who: String,
    /// The tool that is hidden from the caller.
    pub tool: Option<String>,
    /// Their number within the hour.
    pub count: u64,
    /// The time of the last one.
    pub last: SystemTime,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct RecentKey {
    refusal: Refusal,
    who: RefusedSubject,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum RefusedSubject {
    Range(AddressRange),
    Caller(String, Option<String>),
}

#[derive(Clone, Copy)]
struct RecentCount {
    window: Window<PARTS>,
    last: SystemTime,
}

impl Default for RecentCount {
    fn default() -> Self {
        Self { window: Window::default(), last: SystemTime::UNIX_EPOCH }
    }
}

impl Recent {
    pub(super) fn count(&mut self, refusal: Refusal, who: &Who<'_>, now: Instant, time: SystemTime) {
        let part = self.part(now);
        let (rows, rows_max, who) = match who {
            Who::Address(address) => {
                (&mut self.ranges, RANGE_ROWS_MAX, RefusedSubject::Range(AddressRange::of(*address)))
            }
            Who::Caller(name, tool) => {
                let who = RefusedSubject::Caller(kept_name(name), tool.map(str::to_owned));
                (&mut self.callers, CALLER_ROWS_MAX, who)
            }
        };
        let key = RecentKey { refusal, who };
        if rows.len() >= rows_max && !rows.contains_key(&key) {
            rows.retain(|_, count| count.window.sum(part) > 0);
        }
        let has_room = rows.len() < rows_max || rows.contains_key(&key);
        let count = if has_room { rows.entry(key).or_default() } else { &mut self.others };
        count.window.add(part);
        count.last = time;
    }

    /// The counts of the hour before this time.
    pub(super) fn list(&mut self, now: Instant) -> RecentRefusals {
        let part = self.part(now);
        let all = self.ranges.iter().chain(&self.callers);
        let rows = all.map(|(key, count)| {
            let (who, tool) = match &key.who {
                RefusedSubject::Range(range) => (range.text(), None),
                RefusedSubject::Caller(name, tool) => (name.clone(), tool.clone()),
            };
            RecentRefusal { refusal: key.refusal, who, tool, count: count.window.sum(part), last: count.last }
        });
        let mut rows: Vec<RecentRefusal> = rows.filter(|row| row.count > 0).collect();
        rows.sort_by(|one, other| other.last.cmp(&one.last).then_with(|| one.who.cmp(&other.who)));
        RecentRefusals { rows, beyond: self.others.window.sum(part) }
    }

    /// The number of the part that this time is in.
    fn part(&mut self, now: Instant) -> u64 {
        let began = *self.began.get_or_insert(now);
        now.saturating_duration_since(began).as_secs() / PART.as_secs()
    }
}

impl Refusal {
    /// A refusal by the server, with the status of its reason.
    pub(super) const fn of(reason: Reason) -> Self {
        let status = match reason {
            Reason::NoCredential | Reason::UnknownCredential => Some(401),
            Reason::MissingRight | Reason::Host | Reason::Origin => Some(403),
            Reason::HiddenTool | Reason::UnknownTool => None,
        };
        Self { reason, status, is_at_console: false }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn alike_refusals_are_one_row_which_leaves_after_an_hour() {
        let mut recent = Recent::default();
        let now = Instant::now();
        let time = SystemTime::UNIX_EPOCH;
        let stranger = Who::Address(Some(IpAddr::from([203, 0, 113, 7])));
        let missing = Refusal::of(Reason::NoCredential);
        for minute in [0, 1, 30] {
            let later = Duration::from_secs(60 * minute);
            recent.count(missing, &stranger, now + later, time + later);
        }
        recent.count(Refusal::of(Reason::HiddenTool), &Who::Caller("tom", Some("pay")), now, time);
        let row = |refusal, who: &str, tool: Option<&str>, count, minutes: u64| RecentRefusal {
            refusal,
            who: who.to_owned(),
            tool: tool.map(str::to_owned),
            count,
            last: time + Duration::from_secs(60 * minutes),
        };
        let hidden = row(Refusal::of(Reason::HiddenTool), "tom", Some("pay"), 1, 0);
        let half = Duration::from_secs(1_800);
        assert_eq!(recent.list(now + half).rows, [row(missing, "203.0.113.0/24", None, 3, 30), hidden]);
        assert_eq!(recent.list(now + HOUR).rows, [row(missing, "203.0.113.0/24", None, 1, 30)], "the first ones left");
        let all = recent.list(now + HOUR + half);
        assert_eq!((all.rows.len(), all.beyond), (0, 0));
    }

    #[test]
    fn rows_are_bounded_and_those_of_before_make_room() {
        let mut recent = Recent::default();
        let now = Instant::now();
        let time = SystemTime::UNIX_EPOCH;
        let refusal = Refusal::of(Reason::UnknownTool);
        let flood = |recent: &mut Recent, now: Instant| {
            for number in 0..1_000_u32 {
                let address = IpAddr::from(number.wrapping_mul(0x0001_0001).to_be_bytes());
                recent.count(refusal, &Who::Address(Some(address)), now, time);
                recent.count(refusal, &Who::Caller(&format!("caller-{number}"), None), now, time);
            }
        };
        flood(&mut recent, now);
        let all = recent.list(now);
        assert_eq!(all.rows.len(), RANGE_ROWS_MAX + CALLER_ROWS_MAX);
        assert_eq!(all.rows.iter().map(|row| row.count).sum::<u64>() + all.beyond, 2_000, "nothing is lost");
        recent.count(refusal, &Who::Caller("late", None), now + 2 * HOUR, time);
        let all = recent.list(now + 2 * HOUR);
        let names: Vec<&str> = all.rows.iter().map(|row| row.who.as_str()).collect();
        assert_eq!((names, all.beyond), (vec!["late"], 0));
    }
}
