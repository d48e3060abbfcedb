//! Figures in words: counts, bytes, fuel, times.

use std::time::Duration;

use maud::{Markup, html};

use crate::model::{Moment, Unit};

/// A number with commas: `12,345`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Bytes: `12.3 MiB`.
#[must_use]
pub fn bytes(number: u64) -> String {
    scaled(number, 1_024, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// Fuel: `1.20 G`, in units of the SI.
#[must_use]
pub fn fuel(number: u64) -> String {
    scaled(number, 1_000, &["", "k", "M", "G", "T"])
}

#[must_use]
pub fn time(duration: Duration) -> String {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..10_000 => format!("{}.{:01} ms", micros / 1_000, micros % 1_000 / 100),
        10_000..1_000_000 => format!("{} ms", micros / 1_000),
        1_000_000..60_000_000 => format!("{}.{:01} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
        _ => long_time(micros / 1_000_000),
    }
}

fn long_time(seconds: u64) -> String {
    let days = seconds / 86_400;
    let hours = seconds / 3_600 % 24;
    let minutes = seconds / 60 % 60;
    match (days, hours) {
        (0, 0) if seconds.is_multiple_of(60) => format!("{minutes} min"),
        (0, 0) => format!("{minutes} min {} s", seconds % 60),
        (0, _) if minutes == 0 => format!("{hours} h"),
        (0, _) => format!("{hours} h {minutes} min"),
        _ => format!("{} d {hours} h", count(days)),
    }
}

/// An amount with its unit.
#[must_use]
pub fn amount(number: u64, unit: Unit) -> String {
    match unit {
        Unit::Count => count(number),
        Unit::Bytes => bytes(number),
        Unit::Fuel => fuel(number),
        Unit::Microseconds => time(Duration::from_micros(number)),
        Unit::PerSecond => format!("{}/s", count(number)),
        Unit::PerMinute => format!("{}/min", count(number)),
        Unit::PerHour => format!("{}/h", count(number)),
        Unit::PerDay => format!("{}/d", count(number)),
    }
}

/// A value that may be missing: a dash, which screen readers read as "none".
#[must_use]
pub fn or_none(text: Option<String>) -> Markup {
    html! {
        @match text {
            Some(text) => (text),
            None => span.none { span aria-hidden="true" { "–" } span.hidden { "none" } },
        }
    }
}

/// A point in time: the date and the time of day in UTC.
#[must_use]
pub fn moment(at: Moment) -> Markup {
    html! { time datetime=(at.rfc3339()) { (at.date()) " " (at.time_of_day()) } }
}

/// A use in tenths of a percent of its limit, at most 1,000.
#[must_use]
pub fn permille(used: u64, limit: u64) -> u64 {
    let share = u128::from(used) * 1_000 / u128::from(limit.max(1));
    u64::try_from(share).unwrap_or(u64::MAX).min(1_000)
}

fn scaled(number: u64, step: u64, units: &[&str]) -> String {
    let mut scale = 1_u64;
    let mut unit = units.first().copied().unwrap_or_default();
    for next in units.iter().skip(1) {
        if number / scale < step {
            break;
        }
        scale = scale.saturating_mul(step);
        unit = next;
    }
    let whole = number / scale;
    let rest = number % scale;
    let hundredths = u128::from(rest) * 100 / u128::from(scale);
    let space = if unit.is_empty() { "" } else { " " };
    match whole {
        _ if scale == 1 => format!("{whole}{space}{unit}"),
        0..10 => format!("{whole}.{hundredths:02}{space}{unit}"),
        10..100 => format!("{whole}.{}{space}{unit}", hundredths / 10),
        _ => format!("{}{space}{unit}", count(whole)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{bytes, count, fuel, permille, time};

    #[test]
    fn figures_are_short() {
        assert_eq!([count(0), count(999), count(1_000), count(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [bytes(0), bytes(1_023), bytes(1_536), bytes(64 << 20)],
            ["0 B", "1,023 B".replace(',', "").as_str(), "1.50 KiB", "64.0 MiB"]
        );
        assert_eq!([fuel(999), fuel(10_000_000_000), fuel(1_234)], ["999", "10.0 G", "1.23 k"]);
        assert!(!bytes(u64::MAX).is_empty() && !fuel(u64::MAX).is_empty());
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        let shown = [
            (900, "900 µs"),
            (1_240, "1.2 ms"),
            (340_000, "340 ms"),
            (1_240_000, "1.2 s"),
            (200_000_000, "3 min 20 s"),
            (600_000_000, "10 min"),
            (7_200_000_000, "2 h"),
            (7_260_000_000, "2 h 1 min"),
            (90_000_000_000, "1 d 1 h"),
        ];
        for (micros, expected) in shown {
            assert_eq!(time(Duration::from_micros(micros)), expected);
        }
        assert!(!time(Duration::MAX).is_empty());
    }

    #[test]
    fn a_share_is_at_most_all() {
        assert_eq!([permille(1, 2), permille(5, 0), permille(u64::MAX, 1), permille(0, 9)], [500, 1_000, 1_000, 0]);
    }
}
