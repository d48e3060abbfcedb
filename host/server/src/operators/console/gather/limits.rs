//! The limits of a tool: what calls used, the proposed limits, and where each is set.
use std::time::Duration;

use toolcell_console::model::{LimitRow, LimitUse, MeasuredCalls, Place, SetIn, Unit as ShownUnit};
use toolcell_policy::quantity::{Per, Rate};
use toolcell_policy::{Limit, Limits, Proposal, Unit};

use super::written::WrittenManifest;
use crate::catalog::ToolOffer;
use crate::catalog::usage::{NEWEST_CALLS, Quantiles, UseSoFar};

/// The limits of one tool, and statistics of its calls.
pub struct ToolLimits<'a> {
    offer: &'a ToolOffer<'a>,
    limits: &'a Limits,
    written: Option<&'a WrittenManifest>,
    used: UseSoFar,
    proposal: Option<Proposal>,
}

impl<'a> ToolLimits<'a> {
    /// For this tool. `written` is the current manifest file.
    pub fn of(offer: &'a ToolOffer<'a>, limits: &'a Limits, written: Option<&'a WrittenManifest>) -> Self {
        let used = offer.meters().used();
        let proposal = (used.answered > 0).then(|| Proposal::of(&used.peak()));
        Self { offer, limits, written, used, proposal }
    }

    /// A row for each limit.
    pub fn rows(&self) -> Vec<LimitRow> {
        Limit::ALL.into_iter().map(|limit| self.row(limit)).collect()
    }

    /// The number of measured calls.
    pub fn measured(&self) -> MeasuredCalls {
        let all = self.used.calls;
        MeasuredCalls { all, newest: all.min(NEWEST_CALLS as u64), answered: self.used.answered }
    }

    /// The manifest lines that set the proposed limits.
    pub fn proposal(&self) -> Option<String> {
        let calls = match self.used.answered {
            1 => "1 call".to_owned(),
            calls => format!("{calls} calls"),
        };
        let component = self.offer.component().name();
        let tool = self.offer.own_name();
        self.proposal.as_ref().map(|proposal| proposal.manifest_lines(component, tool, &calls))
    }

    /// True if the manifest has a table for the tool.
    pub fn has_table(&self) -> bool {
        let policy = self.written.and_then(|written| written.manifest.component(self.offer.component().name()));
        policy.is_some_and(|policy| policy.tool(self.offer.own_name()).is_some())
    }

    fn row(&self, limit: Limit) -> LimitRow {
        let (unit, shown) = shown(limit, self.limits.get(limit));
        LimitRow {
            key: limit.spec().key.to_owned(),
            unit,
            limit: shown,
            used: self.used.of(limit).map(|used| in_unit(unit, used)),
            proposed: self
                .proposal
                .as_ref()
                .and_then(|proposal| proposal.value(limit))
                .map(|value| self::shown(limit, value).1),
            set_in: self.set_in(limit),
        }
    }

    fn set_in(&self, limit: Limit) -> SetIn {
        let policy = self
            .written
            .and_then(|written| Some((written, written.manifest.component(self.offer.component().name())?)));
        let Some((written, policy)) = policy else { return SetIn::Unknown };
        let tool = self.offer.own_name();
        if policy.tool_limits(tool).get(limit) != self.limits.get(limit) {
            return SetIn::Unknown;
        }
        policy.tool_limit_place(tool, limit).map_or(SetIn::Default, |place| {
            SetIn::Manifest(Place { key: place.table().to_string(), ..written.place(place.span()) })
        })
    }
}

/// Median time of the newest calls.
pub fn median_time(used: &UseSoFar) -> Option<Duration> {
    used.of(Limit::Deadline).or_else(|| used.of(Limit::TaskDeadline)).map(|used| Duration::from_nanos(used.p50))
}

/// A limit's number in the displayed unit, and that unit.
fn shown(limit: Limit, number: u64) -> (ShownUnit, u64) {
    match limit.spec().unit {
        Unit::Count if limit == Limit::Fuel => (ShownUnit::Fuel, number),
        Unit::Count => (ShownUnit::Count, number),
        Unit::Bytes => (ShownUnit::Bytes, number),
        Unit::Millis => (ShownUnit::Microseconds, number.saturating_mul(1_000)),
        Unit::Rate => {
            let rate = Rate::of_number(number);
            let unit = match rate.per {
                Per::Day => ShownUnit::PerDay,
                Per::Hour => ShownUnit::PerHour,
                Per::Minute => ShownUnit::PerMinute,
                Per::Second => ShownUnit::PerSecond,
            };
            (unit, rate.count)
        }
    }
}

/// A use in the displayed unit; times are measured in nanoseconds.
fn in_unit(unit: ShownUnit, used: Quantiles) -> LimitUse {
    let Quantiles { p50, p99, max } = used;
    let [p50, p99, max] = match unit {
        ShownUnit::Microseconds => [p50, p99, max].map(|nanos| nanos.div_ceil(1_000)),
        _ => [p50, p99, max],
    };
    LimitUse { p50, p99, max }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_in_the_units_of_their_limits() {
        for (limit, number, expected) in [
            (Limit::Fuel, 7, (ShownUnit::Fuel, 7)),
            (Limit::Handles, 7, (ShownUnit::Count, 7)),
            (Limit::Memory, 7, (ShownUnit::Bytes, 7)),
            (Limit::Deadline, 7, (ShownUnit::Microseconds, 7_000)),
            (Limit::Rate, Rate { count: 600, per: Per::Minute }.number(), (ShownUnit::PerMinute, 600)),
            (Limit::Progress, Rate { count: 20, per: Per::Second }.number(), (ShownUnit::PerSecond, 20)),
            (Limit::Rate, Rate { count: 5, per: Per::Hour }.number(), (ShownUnit::PerHour, 5)),
        ] {
            assert_eq!(shown(limit, number), expected, "{limit:?}");
        }
        let used = Quantiles { p50: 1, p99: 1_000, max: 1_001 };
        assert_eq!(in_unit(ShownUnit::Microseconds, used), LimitUse { p50: 1, p99: 1, max: 2 });
        assert_eq!(in_unit(ShownUnit::Bytes, used), LimitUse { p50: 1, p99: 1_000, max: 1_001 });
    }
}
