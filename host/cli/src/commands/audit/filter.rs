//! Filter of records.
use std::time::{Duration, SystemTime};

use serde_json::Value;
use toolcell_audit::timestamp;
use toolcell_policy::quantity::parse_millis;

use crate::args::AuditFilterArgs;

/// A time as records have it, with a digit for each `0`.
const TIME_SHAPE: &[u8] = b"0000-00-00T00:00:00.000000Z";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Filter of records.
pub struct Filter<'a> {
    args: &'a AuditFilterArgs,
    /// Beginning of a time; earlier records are left out.
    since: Option<String>,
}

impl<'a> Filter<'a> {
    /// `Err` is the problem with the arguments.
    pub fn new(args: &'a AuditFilterArgs) -> Result<Self, String> {
        let since = args.since.as_deref().map(|text| since(text, SystemTime::now())).transpose()?;
        Ok(Self { args, since })
    }

    /// True if this record passes.
    pub fn takes(&self, record: &Value) -> bool {
        let text = |key: &str| record.get(key).and_then(Value::as_str);
        let is = |key: &str, wanted: &Option<String>| wanted.as_ref().is_none_or(|wanted| text(key) == Some(wanted));
        is("tool", &self.args.tool)
            && is("outcome", &self.args.outcome)
            && self.args.call.is_none_or(|id| record.get("id").and_then(Value::as_u64) == Some(id))
            && (!self.args.denials || text("event") == Some("call.denied"))
            && self.since.as_deref().is_none_or(|since| text("time").is_some_and(|time| time >= since))
    }

    /// True if only records of calls pass.
    pub fn is_about_calls(&self) -> bool {
        self.args.tool.is_some() || self.args.outcome.is_some() || self.args.call.is_some() || self.args.denials
    }

    /// True if a record of this time may pass.
    pub fn reaches(&self, time: &str) -> bool {
        self.since.as_deref().is_none_or(|since| time >= since)
    }
}

/// Beginning of the time that the text means.
fn since(text: &str, now: SystemTime) -> Result<String, String> {
    let wrong = || format!("{text:?} is no time: write 30m, 12h, 7d, 2026-01-12 or 2026-01-12T15:00");
    if let Some(days) = text.strip_suffix('d') {
        let days = days.parse().map_err(|_| wrong())?;
        return ago(DAY.checked_mul(days), now).ok_or_else(wrong);
    }
    if let Ok(millis) = parse_millis(text) {
        return ago(Some(Duration::from_millis(millis)), now).ok_or_else(wrong);
    }
    let time = text.trim_end_matches('Z').replace(' ', "T");
    let fits = |(byte, shape): (u8, &u8)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == *shape };
    let is_time = time.len() >= "2026".len() && time.len() < TIME_SHAPE.len() && time.bytes().zip(TIME_SHAPE).all(fits);
    if is_time { Ok(time) } else { Err(wrong()) }
}

fn ago(duration: Option<Duration>, now: SystemTime) -> Option<String> {
    now.checked_sub(duration?).map(timestamp)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn times_are_read_in_every_form_and_nothing_else() {
        let now = SystemTime::UNIX_EPOCH + 10 * DAY;
        for (text, expected) in [
            ("1d", Some("1970-01-10T00:00:00.000000Z")),
            ("36h", Some("1970-01-09T12:00:00.000000Z")),
            ("30m", Some("1970-01-10T23:30:00.000000Z")),
            ("2026-01-12", Some("2026-01-12")),
            ("2026-01-12T15:00", Some("2026-01-12T15:00")),
            ("2026-01-12 15:00", Some("2026-01-12T15:00")),
            ("2026-01-12T15:00:01.5Z", Some("2026-01-12T15:00:01.5")),
            ("yesterday", None),
            ("d", None),
            ("99999999999999d", None),
            ("2026/01/12", None),
            ("20", None),
            ("2026-01-12T15:00:00.0000000", None),
            ("", None),
        ] {
            assert_eq!(since(text, now).ok().as_deref(), expected, "{text}");
        }
    }
}
