//! A time as mail writes it (RFC 5322, 3.3), in UTC. Holds no clock.

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Such as `Sun, 22 Nov 2026 10:24:00 +0000`, of seconds since 1970.
pub fn written(seconds: u64) -> String {
    let days = seconds / 86_400;
    let within = seconds % 86_400;
    let (year, month, day) = civil(days);
    let weekday = usize::try_from(days % 7).ok().and_then(|at| DAYS.get(at)).unwrap_or(&"Thu");
    let month = MONTHS.get(month).unwrap_or(&"Jan");
    let hour = within / 3600;
    let minute = within / 60 % 60;
    let second = within % 60;
    format!("{weekday}, {day} {month} {year} {hour:02}:{minute:02}:{second:02} +0000")
}

/// Year, month from 0, and day of a count of days since 1970, by Gregorian years that begin in March.
fn civil(days: u64) -> (u64, usize, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = (march_month + 2) % 12;
    let year = year_of_era + era * 400 + u64::from(month < 2);
    (year, usize::try_from(month).unwrap_or(0), day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_a_calendar() {
        for (seconds, date) in [
            (0, "Thu, 1 Jan 1970 00:00:00 +0000"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 +0000"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 +0000"),
            (1_709_208_000, "Thu, 29 Feb 2024 12:00:00 +0000"),
            (4_107_542_400, "Mon, 1 Mar 2100 00:00:00 +0000"),
        ] {
            assert_eq!(written(seconds), date);
        }
    }
}
