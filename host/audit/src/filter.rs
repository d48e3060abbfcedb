//! Filters for records.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::clock::timestamp;

/// The format of times in records, with `0` for each digit.
const TIME_SHAPE: &[u8] = b"0000-00-00T00:00:00.000000Z";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A filter for records. The default passes all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only records of this caller, and of its calls.
    pub caller: Option<String>,
    /// Only records of this tool.
    pub tool: Option<String>,
    /// Only calls with this outcome.
    pub outcome: Option<String>,
    /// A prefix of a time, from [`time`]; earlier records are left out.
    pub since: Option<String>,
    /// A prefix of a time; later records are left out.
    pub until: Option<String>,
    /// Only records of the call with this number.
    pub call: Option<u64>,
    /// Only denials.
    pub denials: bool,
}

impl Filter {
    /// True if this record passes. `caller` is the caller of its call, which only `call.started`
    /// names.
    #[must_use]
    pub fn takes(&self, record: &Value, caller: Option<&str>) -> bool {
        let text = |key: &str| record.get(key).and_then(Value::as_str);
        let is = |key: &str, wanted: &Option<String>| wanted.as_ref().is_none_or(|wanted| text(key) == Some(wanted));
        let caller = text("caller").or(caller);
        self.caller.as_ref().is_none_or(|wanted| caller == Some(wanted))
            && is("tool", &self.tool)
            && is("outcome", &self.outcome)
            && self.call.is_none_or(|id| record.get("id").and_then(Value::as_u64) == Some(id))
            && (!self.denials || text("event") == Some("call.denied"))
            && self.since.as_deref().is_none_or(|since| text("time").is_some_and(|time| time >= since))
            && self.until.as_deref().is_none_or(|until| text("time").is_some_and(|time| !is_after(time, until)))
    }

    /// True if only records of calls pass.
    #[must_use]
    pub const fn is_about_calls(&self) -> bool {
        self.tool.is_some() || self.outcome.is_some() || self.call.is_some() || self.denials
    }

    /// True if a record of this time may pass.
    #[must_use]
    pub fn reaches(&self, time: &str) -> bool {
        self.since.as_deref().is_none_or(|since| time >= since)
    }
}

/// True if a time is after all times with this prefix.
fn is_after(time: &str, until: &str) -> bool {
    time > until && !time.starts_with(until)
}

/// The prefix of the time that a text names: `30m`, `12h`, `7d` ago, `2026-01-12` or
/// `2026-01-12T15:00`, with an offset or in UTC. `millis` reads a duration.
///
/// # Errors
/// One sentence.
pub fn time(text: &str, now: SystemTime, millis: impl Fn(&str) -> Option<u64>) -> Result<String, String> {
    let wrong = || format!("{text:?} is not a time: write 30m, 12h, 7d, 2026-01-12 or 2026-01-12T15:00:00+02:00");
    if let Some(days) = text.strip_suffix('d') {
        let days = days.parse().map_err(|_| wrong())?;
        return ago(DAY.checked_mul(days), now).ok_or_else(wrong);
    }
    if let Some(millis) = millis(text) {
        return ago(Some(Duration::from_millis(millis)), now).ok_or_else(wrong);
    }
    if let Some(time) = with_offset(text) {
        return Ok(time);
    }
    let time = text.trim_end_matches('Z').replace(' ', "T");
    let fits = |(byte, shape): (u8, &u8)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == *shape };
    let is_time = time.len() >= "2026".len() && time.len() < TIME_SHAPE.len() && time.bytes().zip(TIME_SHAPE).all(fits);
    if is_time { Ok(time) } else { Err(wrong()) }
}

/// A time with an offset from UTC (RFC 3339, section 5.6) in the format of records, to the second.
fn with_offset(text: &str) -> Option<String> {
    let (time, offset) = text.split_at_checked(text.len().checked_sub("+00:00".len())?)?;
    let (sign, offset) = offset.split_at_checked(1)?;
    let (hours, minutes) = offset.split_once(':')?;
    let hours = number(hours, 2, 23)?;
    let minutes = number(minutes, 2, 59)?;
    let (date, time) = time.split_once(['T', 't', ' '])?;
    let mut date = date.split('-');
    let year = number(date.next()?, 4, 9_999)?;
    let month = number(date.next()?, 2, 12)?;
    let day = number(date.next()?, 2, 31)?;
    let mut time = time.split('.').next()?.split(':');
    let hour = number(time.next()?, 2, 23)?;
    let minute = number(time.next()?, 2, 59)?;
    let second = number(time.next()?, 2, 60)?;
    if date.next().is_some() || time.next().is_some() || year < 1970 {
        return None;
    }
    // Days since 1970, in a calendar whose years begin in March.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day;
    let seconds = days.checked_sub(719_469)? * 86_400 + hour * 3_600 + minute * 60 + second;
    let offset = hours * 3_600 + minutes * 60;
    let seconds = match sign {
        "+" => seconds.saturating_sub(offset),
        "-" => seconds + offset,
        _ => return None,
    };
    Some(timestamp(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)))
}

/// A number with this many digits, up to a bound.
fn number(text: &str, digits: usize, max: u64) -> Option<u64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && *number <= max)
}

fn ago(duration: Option<Duration>, now: SystemTime) -> Option<String> {
    now.checked_sub(duration?).map(timestamp)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_read_in_every_form_and_nothing_else() {
        let now = SystemTime::UNIX_EPOCH + 10 * DAY;
        let millis = |text: &str| match text {
            "36h" => Some(36 * 3_600_000),
            "30m" => Some(30 * 60_000),
            _ => None,
        };
        for (text, expected) in [
            ("1d", Some("1970-01-10T00:00:00.000000Z")),
            ("36h", Some("1970-01-09T12:00:00.000000Z")),
            ("30m", Some("1970-01-10T23:30:00.000000Z")),
            ("2026-01-12", Some("2026-01-12")),
            ("2026-01-12T15:00", Some("2026-01-12T15:00")),
            ("2026-01-12 15:00", Some("2026-01-12T15:00")),
            ("2026-01-12T15:00:01.5Z", Some("2026-01-12T15:00:01.5")),
            ("2026-01-12T15:00:01+02:00", Some("2026-01-12T13:00:01.000000Z")),
            ("2026-01-12T23:30:00.123-01:30", Some("2026-01-13T01:00:00.000000Z")),
            ("2024-02-29T00:00:00+00:00", Some("2024-02-29T00:00:00.000000Z")),
            ("2024-03-01T00:30:00+01:00", Some("2024-02-29T23:30:00.000000Z")),
            ("1970-01-01T00:00:00+05:00", Some("1970-01-01T00:00:00.000000Z")),
            ("2026-01-12T15:00:01*02:00", None),
            ("2026-13-12T15:00:01+02:00", None),
            ("2026-01-12T15:00+02:00", None),
            ("yesterday", None),
            ("d", None),
            ("99999999999999d", None),
            ("2026/01/12", None),
            ("20", None),
            ("2026-01-12T15:00:00.0000000", None),
            ("", None),
        ] {
            assert_eq!(time(text, now, millis).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_time_takes_all_that_begin_so() {
        let takes = |since: Option<&str>, until: Option<&str>| {
            let filter =
                Filter { since: since.map(str::to_owned), until: until.map(str::to_owned), ..Filter::default() };
            filter.takes(&json!({"event": "x", "time": "2026-01-12T15:00:00.000000Z"}), None)
        };
        assert!(takes(None, None) && takes(Some("2026-01-12"), Some("2026-01-12")));
        assert!(!takes(Some("2026-01-13"), None) && !takes(None, Some("2026-01-11")));
    }
}
