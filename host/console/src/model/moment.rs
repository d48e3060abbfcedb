//! A point in time, as pages show it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time: milliseconds since 1970-01-01 00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Moment {
    /// Milliseconds since 1970-01-01 00:00 UTC, leap seconds left out.
    pub unix_ms: u64,
}

impl Moment {
    /// Reads a time as audit records have it, RFC 3339 in UTC: `2026-07-28T09:30:00.123Z`. None for
    /// any other form, and for years before 1970.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
        let mut date = date.splitn(3, '-').map(digits);
        let year = date.next()??;
        let month = date.next()??;
        let day = date.next()??;
        let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let mut clock = clock.splitn(3, ':').map(digits);
        let hour = clock.next()??;
        let minute = clock.next()??;
        let second = clock.next()??;
        let within = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
        if !within || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let milliseconds = digits(&format!("{fraction:0<3}").chars().take(3).collect::<String>())?;
        let seconds = days_since_1970(year, month, day)? * 86_400 + hour * 3_600 + minute * 60 + second;
        Some(Self { unix_ms: seconds * 1_000 + milliseconds })
    }

    /// The date, in UTC: `2026-07-28`.
    #[must_use]
    pub fn date(self) -> String {
        let (year, month, day) = civil(self.unix_ms / 86_400_000);
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// The time of day, in UTC, to the second: `09:30:00`.
    #[must_use]
    pub fn time_of_day(self) -> String {
        let seconds = self.unix_ms / 1_000 % 86_400;
        format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
    }

    /// The time as RFC 3339, in UTC, to the millisecond.
    #[must_use]
    pub fn rfc3339(self) -> String {
        format!("{}T{}.{:03}Z", self.date(), self.time_of_day(), self.unix_ms % 1_000)
    }
}

impl From<SystemTime> for Moment {
    /// Times before 1970 become 1970.
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { unix_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX) }
    }
}

fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// Days from 1970 to a date of the Gregorian calendar. Years begin in March, so that a leap day is
/// the last day of its year.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let shifted = if month <= 2 { year - 1 } else { year };
    let era_year = shifted % 400;
    let year_day = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let era_day = era_year * 365 + era_year / 4 - era_year / 100 + year_day;
    (shifted / 400 * 146_097 + era_day).checked_sub(719_468)
}

/// Year, month and day of a number of days since 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days.saturating_add(719_468);
    let era = shifted / 146_097;
    let era_day = shifted % 146_097;
    let era_year = (era_day - era_day / 1_460 + era_day / 36_524 - era_day / 146_096) / 365;
    let year_day = era_day - (365 * era_year + era_year / 4 - era_year / 100);
    let shifted_month = (5 * year_day + 2) / 153;
    let day = year_day - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era_year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::Moment;

    #[test]
    fn a_time_of_a_record_is_read_and_written_alike() {
        for text in [
            "1970-01-01T00:00:00.000Z",
            "2026-07-28T09:30:00.123Z",
            "2024-02-29T23:59:59.999Z",
            "2100-03-01T00:00:00.000Z",
        ] {
            assert_eq!(Moment::parse(text).map(Moment::rfc3339).as_deref(), Some(text));
        }
        assert_eq!(Moment::parse("2026-07-28T09:30:00Z").map(|time| time.unix_ms), Some(1_785_231_000_000));
        assert_eq!(Moment::parse("2026-07-28T09:30:00.1234567Z"), Moment::parse("2026-07-28T09:30:00.123Z"));
    }

    #[test]
    fn another_form_is_no_time() {
        for text in [
            "",
            "Z",
            "T",
            "TZ",
            "2026-07-28",
            "2026-13-01T00:00:00Z",
            "1969-12-31T00:00:00Z",
            "2026-07-28T09:30:00+01:00",
            "2026-07-28T09:30Z",
            "+026-07-28T09:30:00Z",
            "2026-07-28T09:30:00.\u{e9}Z",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_last_time_there_is_can_be_shown() {
        assert!(Moment { unix_ms: u64::MAX }.rfc3339().ends_with('Z'));
    }
}
