//! Timestamps of records.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// RFC 3339 in UTC with microseconds, as records have it: `2026-01-12T15:00:58.000001Z`. Timestamps
/// sort as texts. Times before 1970 are shown as 1970.
#[must_use]
pub fn timestamp(time: SystemTime) -> String {
    let mut text = Vec::with_capacity(27);
    push_timestamp(&mut text, time);
    text.into_iter().map(char::from).collect()
}

/// Appends a [`timestamp`].
pub(crate) fn push_timestamp(line: &mut Vec<u8>, time: SystemTime) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let days = since.as_secs() / 86_400;
    let second = since.as_secs() % 86_400;
    let (year, month, day) = date(days);
    for (value, width, end) in [
        (year, 4, b'-'),
        (month, 2, b'-'),
        (day, 2, b'T'),
        (second / 3_600, 2, b':'),
        (second / 60 % 60, 2, b':'),
        (second % 60, 2, b'.'),
        (u64::from(since.subsec_micros()), 6, b'Z'),
    ] {
        push_number(line, value, width);
        line.push(end);
    }
}

/// Appends a decimal number, with leading zeros up to `width`.
pub(crate) fn push_number(line: &mut Vec<u8>, value: u64, width: usize) {
    let start = line.len();
    let mut rest = value;
    while rest > 0 || line.len() - start < width {
        line.push(b'0' + u8::try_from(rest % 10).unwrap_or_default());
        rest /= 10;
    }
    if let Some(digits) = line.get_mut(start..) {
        digits.reverse();
    }
}

/// Year, month and day of a number of days after 1970-01-01, by counting years from March so that
/// the leap day is the last of its year (Hinnant, "chrono-compatible low-level date algorithms").
const fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    // From 0000-03-01 to 1970-01-01.
    let days = days + 719_468;
    let era = days / DAYS_OF_400_YEARS;
    let day_of_era = days % DAYS_OF_400_YEARS;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_utc() {
        for (seconds, micros, expected) in [
            (0, 0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399, 999_999, "2000-02-28T23:59:59.999999Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000000Z"),
            (951_868_800, 1, "2000-03-01T00:00:00.000001Z"),
            (1_767_225_599, 0, "2025-12-31T23:59:59.000000Z"),
            (1_767_225_600, 0, "2026-01-01T00:00:00.000000Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000000Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_micros(micros);
            assert_eq!(timestamp(time), expected);
        }
        assert_eq!(timestamp(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000000Z");
    }
}
