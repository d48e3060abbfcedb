//! Limits proposed from usage: head-room, readable numbers, the bounds of each limit, and the lines
//! of a manifest that set them.

use std::fmt::Write as _;
use std::time::Duration;

use crate::limits::{Limit, Unit};
use crate::quantity::{KIB, MIB, show_bytes, show_count};

/// Usage of a call, or peak usage of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeakUsage {
    /// Units of fuel.
    pub fuel: u64,
    /// Wall clock.
    pub duration: Duration,
    /// The most that memories and tables had together.
    pub memory_bytes: u64,
    /// The result.
    pub output_bytes: u64,
    /// Pieces of content in the result.
    pub output_items: u64,
    /// Output and log lines, those past the limit included.
    pub log_bytes: u64,
    /// The arguments as JSON text.
    pub arguments_bytes: u64,
}

/// Head-room of a limit above the samples' usage.
struct HeadRoom {
    limit: Limit,
    /// Factor on the usage.
    factor: u64,
    /// Lower bound of the proposal, in the limit's unit.
    least: u64,
}

/// Limits that samples can measure. Of the others, `rate`, `concurrency` and `queue` depend on the
/// number of calls; `host_data`, `handles` and `random` guard the host, and their defaults fit
/// every tool.
const HEAD_ROOM: [HeadRoom; 7] = [
    // The same call burns the same fuel everywhere, so this only covers arguments beyond the
    // samples. Below the least, about ten microseconds of computing, a tighter limit protects
    // nobody.
    HeadRoom { limit: Limit::Fuel, factor: 4, least: 100_000 },
    // Time also depends on the machine: if it is busy or its cache cold, a call takes several times
    // longer. A tenth of a second is a scheduler's delay under load.
    HeadRoom { limit: Limit::Deadline, factor: 10, least: 100 },
    // Allocators grow in steps and most collections by doubling, so twice is the next step. Less
    // than a megabyte is not worth a limit, since a Rust guest begins with more.
    HeadRoom { limit: Limit::Memory, factor: 2, least: MIB },
    // Sizes depend on the arguments, like fuel. The least leaves room for an error message.
    HeadRoom { limit: Limit::Output, factor: 4, least: 4 * KIB },
    HeadRoom { limit: Limit::OutputItems, factor: 4, least: 16 },
    // The least leaves room for the message of a panic, which samples do not have.
    HeadRoom { limit: Limit::Log, factor: 4, least: 4 * KIB },
    HeadRoom { limit: Limit::Arguments, factor: 4, least: 4 * KIB },
];

/// A limit for each measured usage.
///
/// ```
/// use toolcell_policy::{PeakUsage, Proposal};
///
/// let used = PeakUsage { fuel: 1_000_000, ..PeakUsage::default() };
/// let lines = Proposal::of(&used).manifest_lines("weather", "forecast", "1 call");
/// assert!(lines.contains("[components.weather.tools.forecast.limits]\nfuel = 4_000_000  "), "{lines}");
/// ```
#[derive(Debug)]
pub struct Proposal(Vec<ProposedLimit>);

/// One limit.
#[derive(Debug, PartialEq, Eq)]
pub struct ProposedLimit {
    /// The limit.
    pub limit: Limit,
    /// In the limit's unit, within its bounds.
    pub value: u64,
    /// How the value follows from the usage.
    pub reason: String,
}

impl PeakUsage {
    /// The larger of each usage.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            fuel: self.fuel.max(other.fuel),
            duration: self.duration.max(other.duration),
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
            output_bytes: self.output_bytes.max(other.output_bytes),
            output_items: self.output_items.max(other.output_items),
            log_bytes: self.log_bytes.max(other.log_bytes),
            arguments_bytes: self.arguments_bytes.max(other.arguments_bytes),
        }
    }

    /// Usage that this limit bounds, in its unit, rounded up; 0 for limits that are not measured.
    fn of(&self, limit: Limit) -> u64 {
        match limit {
            Limit::Fuel => self.fuel,
            Limit::Deadline => u64::try_from(self.duration.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX),
            Limit::Memory => self.memory_bytes,
            Limit::Output => self.output_bytes,
            Limit::OutputItems => self.output_items,
            Limit::Log => self.log_bytes,
            Limit::Arguments => self.arguments_bytes,
            _ => 0,
        }
    }

    fn show(&self, limit: Limit) -> String {
        match limit.spec().unit {
            Unit::Bytes if self.of(limit) > 10 * KIB => format!("{}KiB", self.of(limit).div_ceil(KIB)),
            Unit::Bytes => show_bytes(self.of(limit)),
            Unit::Millis => format!("{:.3}ms", self.duration.as_secs_f64() * 1e3),
            Unit::Count | Unit::Rate => show_count(self.of(limit)),
        }
    }
}

impl Proposal {
    /// Limits with head-room above this usage.
    #[must_use]
    pub fn of(used: &PeakUsage) -> Self {
        Self(HEAD_ROOM.iter().map(|room| room.over(used)).collect())
    }

    /// The limits, in the order of reports.
    pub fn lines(&self) -> impl Iterator<Item = &ProposedLimit> {
        self.0.iter()
    }

    /// The proposed value; `None` for limits that are not measured.
    #[must_use]
    pub fn value(&self, limit: Limit) -> Option<u64> {
        self.0.iter().find(|line| line.limit == limit).map(|line| line.value)
    }

    /// The manifest table that sets them for a tool, by the tool's own name, without prefix. `from`
    /// describes the calls, in words.
    #[must_use]
    pub fn manifest_lines(&self, component: &str, tool: &str, from: &str) -> String {
        let lines: Vec<(String, &str)> = self.0.iter().map(|line| (line.written(), line.reason.as_str())).collect();
        let width = lines.iter().map(|(line, _)| line.len()).max().unwrap_or_default();
        let mut text = format!("# From {from}; next to each limit: what they used at most, and the head-room.\n");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "[components.{component}.tools.{tool}.limits]");
        for (line, reason) in lines {
            let _ = writeln!(text, "{line:width$}  # {reason}");
        }
        text
    }
}

impl ProposedLimit {
    /// A line of a manifest, with counts bare and everything else quoted.
    fn written(&self) -> String {
        let spec = self.limit.spec();
        let shown = spec.show(self.value);
        if spec.unit == Unit::Count { format!("{} = {shown}", spec.key) } else { format!("{} = \"{shown}\"", spec.key) }
    }
}

impl HeadRoom {
    fn over(&self, used: &PeakUsage) -> ProposedLimit {
        let Self { limit, factor, least } = *self;
        let spec = limit.spec();
        let wanted = used.of(limit).saturating_mul(factor);
        let value = readable(spec.unit, wanted.max(least)).clamp(spec.min, spec.max);
        let mut reason = format!("{}, ×{factor}", used.show(limit));
        if wanted < least {
            reason.push_str(&format!(", at least {}", spec.show(least)));
        } else if value < wanted {
            reason.push_str(", the most there is");
        }
        ProposedLimit { limit, value, reason }
    }
}

/// The next larger readable value: two digits and zeros, whole KiB or MiB, tenths of a second or
/// seconds.
fn readable(unit: Unit, value: u64) -> u64 {
    let step = match unit {
        Unit::Bytes if value > MIB => MIB,
        Unit::Bytes => KIB,
        Unit::Millis if value > 1_000 => 1_000,
        Unit::Millis => 100,
        Unit::Count | Unit::Rate => 10_u64.pow(value.checked_ilog10().unwrap_or_default().saturating_sub(1)),
    };
    value.checked_next_multiple_of(step).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(used: &PeakUsage) -> Vec<String> {
        Proposal::of(used).lines().map(|line| line.limit.spec().show(line.value)).collect()
    }

    #[test]
    fn each_limit_leaves_its_head_room_in_round_numbers() {
        let used = PeakUsage {
            fuel: 3_163_800,
            duration: Duration::from_micros(240_100),
            memory_bytes: 1_114_816,
            output_bytes: 300_000,
            output_items: 5,
            log_bytes: 1_500,
            arguments_bytes: 2_000_000,
        };
        assert_eq!(shown(&used), ["13_000_000", "3s", "3MiB", "2MiB", "20", "6KiB", "8MiB"]);
    }

    #[test]
    fn what_is_hardly_used_gets_the_least() {
        assert_eq!(shown(&PeakUsage::default()), ["100_000", "100ms", "1MiB", "4KiB", "16", "4KiB", "4KiB"]);
        let line = Proposal::of(&PeakUsage { fuel: 1_000, ..PeakUsage::default() });
        let reasons: Vec<&str> = line.lines().map(|line| line.reason.as_str()).take(2).collect();
        assert_eq!(reasons, ["1_000, ×4, at least 100_000", "0.000ms, ×10, at least 100ms"]);
    }

    #[test]
    fn no_limit_leaves_its_bounds() {
        let most = u64::MAX;
        let used = PeakUsage {
            fuel: most,
            duration: Duration::MAX,
            memory_bytes: most,
            output_bytes: most,
            output_items: most,
            log_bytes: most,
            arguments_bytes: most,
        };
        for line in Proposal::of(&used).lines() {
            assert_eq!(line.value, line.limit.spec().max);
            assert!(line.reason.ends_with(", the most there is"), "{}", line.reason);
        }
    }

    #[test]
    fn numbers_are_rounded_up_to_ones_that_are_easily_read() {
        for (unit, value, expected) in [
            (Unit::Count, 0, 0),
            (Unit::Count, 9, 9),
            (Unit::Count, 99, 99),
            (Unit::Count, 101, 110),
            (Unit::Count, 126_552, 130_000),
            (Unit::Bytes, 1, KIB),
            (Unit::Bytes, MIB, MIB),
            (Unit::Bytes, MIB + 1, 2 * MIB),
            (Unit::Millis, 101, 200),
            (Unit::Millis, 1_000, 1_000),
            (Unit::Millis, 1_001, 2_000),
        ] {
            assert_eq!(readable(unit, value), expected, "{unit:?} {value}");
        }
    }

    #[test]
    fn the_most_of_two_calls_is_the_larger_of_each_value() {
        let one = PeakUsage { fuel: 2, log_bytes: 1, ..PeakUsage::default() };
        let other = PeakUsage { fuel: 1, output_items: 3, ..PeakUsage::default() };
        assert_eq!(one.max(other), PeakUsage { fuel: 2, log_bytes: 1, output_items: 3, ..PeakUsage::default() });
    }
}
