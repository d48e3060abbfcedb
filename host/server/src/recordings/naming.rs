//! The names of files that the manifest's rules have recorded. Neither a guest nor a caller has a
//! part in them.
use std::fmt;
use std::time::SystemTime;

/// What every name ends with.
const ENDING: &str = ".jsonl";

/// Bytes of the time in a name: `2026-11-29T16-29-46Z`.
const TIME_BYTES: usize = 20;

/// Random bits that tell processes apart: replicas and restarts count their calls from one.
const PROCESS_BITS: u32 = 48;

/// The name of a recording's file: `2026-11-29T16-29-46Z-17-4f2a9c31d0b2.jsonl`. Names are in the
/// order of their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordingName {
    at: [u8; TIME_BYTES],
    call: u64,
    process: u64,
}

/// A random number of this process.
///
/// # Errors
/// The machine gives no random numbers.
pub(super) fn process_number() -> Result<u64, getrandom::Error> {
    Ok(getrandom::u64()? & ((1 << PROCESS_BITS) - 1))
}

impl RecordingName {
    /// Of a call of this process that ended now.
    pub(super) fn new(ended: SystemTime, call: u64, process: u64) -> Self {
        Self { at: time(ended), call, process }
    }

    /// Reads a name. `None` of any other file.
    pub(super) fn parse(name: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(name).ok()?.strip_suffix(ENDING)?;
        let (time, rest) = text.split_at_checked(TIME_BYTES)?;
        let (call, process) = rest.strip_prefix('-')?.split_once('-')?;
        let parsed = Self {
            at: time.as_bytes().try_into().ok()?,
            call: call.parse().ok()?,
            process: u64::from_str_radix(process, 16).ok()?,
        };
        // Only one spelling is a name.
        (is_time(&parsed.at) && parsed.to_string().as_bytes() == name).then_some(parsed)
    }

    /// True if the call ended before this time.
    pub(super) fn is_before(&self, time: SystemTime) -> bool {
        self.at < self::time(time)
    }
}

impl fmt::Display for RecordingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = std::str::from_utf8(&self.at).unwrap_or_default();
        write!(f, "{at}-{}-{:012x}{ENDING}", self.call, self.process)
    }
}

/// `2026-11-29T16-29-46Z`: a colon is not allowed in names on every system.
fn time(time: SystemTime) -> [u8; TIME_BYTES] {
    let text = toolcell_audit::timestamp(time);
    let mut at = [b'Z'; TIME_BYTES];
    for (to, from) in at.iter_mut().zip(text.bytes().take(TIME_BYTES - 1)) {
        *to = if from == b':' { b'-' } else { from };
    }
    at
}

fn is_time(at: &[u8; TIME_BYTES]) -> bool {
    at.iter().zip(b"0000-00-00T00-00-00Z").all(|(byte, form)| match form {
        b'0' => byte.is_ascii_digit(),
        form => byte == form,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_name_has_time_call_and_process_and_one_spelling() {
        let at = UNIX_EPOCH + Duration::from_millis(1_795_969_786_999);
        let name = RecordingName::new(at, 17, 0x4f2a_9c31_d0b2);
        assert_eq!(name.to_string(), "2026-11-29T16-29-46Z-17-4f2a9c31d0b2.jsonl");
        assert_eq!(RecordingName::parse(name.to_string().as_bytes()), Some(name));
        for other in [
            "",
            ".jsonl",
            "2026-11-29T16-29-46Z-17-4f2a9c31d0b2",
            "2026-11-29T16-29-46Z-017-4f2a9c31d0b2.jsonl",
            "2026-11-29T16-29-46Z-17-4F2A9C31D0B2.jsonl",
            "2026-11-29T16-29-46Z-+17-4f2a9c31d0b2.jsonl",
            "2026-11-29T16:29:46Z-17-4f2a9c31d0b2.jsonl",
            "2026-11-29T16-29-46Z-17-4f2a9c31d0b2.jsonl.jsonl",
            "../6-11-29T16-29-46Z-17-4f2a9c31d0b2.jsonl",
            ".2026-11-29T16-29-46Z-17-4f2a9c31d0b2.jsonl.draft",
            "2026-11-29T16-29-4\u{e9}Z-17-4f2a9c31d0b2.jsonl",
        ] {
            assert_eq!(RecordingName::parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn names_are_in_the_order_of_their_times_then_of_their_calls() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let ordered = [(1, 10), (2, 9), (2, 10), (3_000_000_000, 1)];
        let names = ordered.map(|(seconds, call)| RecordingName::new(at(seconds), call, 7));
        assert!(names.is_sorted());
        assert!(names[0].is_before(at(2)) && !names[1].is_before(at(2)));
    }
}
