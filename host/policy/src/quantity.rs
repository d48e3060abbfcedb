//! Sizes, durations and rates as people write them, both ways.
//!
//! | form | meaning | example |
//! |---|---|---|
//! | size, `B` | bytes | `100B` |
//! | size, `KiB` `MiB` `GiB` | 1024, 1024², 1024³ bytes | `64MiB` |
//! | size, `kB` `KB` `MB` `GB` | 1000, 1000², 1000³ bytes | `10 MB` |
//! | duration, `h` `m` `s` `ms` | hours, minutes, seconds, milliseconds; largest first | `1m30s` |
//! | rate, `/s` `/min` `/h` `/d` | this many in a second, a minute, an hour, a day | `600/min` |
//!
//! Every number may have underscores between its digits, as numbers of TOML have them: `1_000/min`.

use std::fmt::{self, Write as _};
use std::time::Duration;

/// Bytes of the sizes that limits are declared in.
pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

/// Milliseconds of the times that limits are declared in.
pub(crate) const SECOND: u64 = 1_000;
pub(crate) const MINUTE: u64 = 60 * SECOND;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;

/// The units of sizes, with the number of bytes in each.
const SIZE_UNITS: [(&str, u64); 8] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// The units of durations, largest first, with the number of milliseconds in each.
const DURATION_UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The times of rates, as they stand behind the stroke.
const RATE_TIMES: [(&str, Per); 4] = [("s", Per::Second), ("min", Per::Minute), ("h", Per::Hour), ("d", Per::Day)];

/// An amount per time: `600/min`. The same ratio with another time is another rate: `600/min`
/// allows a burst of 600, `10/s` only one of 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    /// The number of things.
    pub count: u64,
    /// The time in which they are counted.
    pub per: Per,
}

/// The unit of time of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Per {
    /// `/d`: 24 hours, without a time of day at which they begin.
    Day,
    /// `/h`
    Hour,
    /// `/min`
    Minute,
    /// `/s`
    Second,
}

impl Per {
    /// The duration.
    #[must_use]
    pub const fn duration(self) -> Duration {
        match self {
            Self::Day => Duration::from_secs(86_400),
            Self::Hour => Duration::from_secs(3_600),
            Self::Minute => Duration::from_secs(60),
            Self::Second => Duration::from_secs(1),
        }
    }
}

impl Rate {
    /// The largest rate: practically unlimited, but its interval is still measurable.
    pub const MOST: Self = Self { count: 1_000_000, per: Per::Second };

    /// The smallest rate.
    pub(crate) const LEAST: Self = Self { count: 1, per: Per::Day };

    /// A unique number for the rate. Those from `1/d` to [`Rate::MOST`] are exactly the rates of 1
    /// to 1,000,000 per any of the times.
    #[must_use]
    pub const fn number(self) -> u64 {
        let per = match self.per {
            Per::Day => 0,
            Per::Hour => 1,
            Per::Minute => 2,
            Per::Second => 3,
        };
        self.count.saturating_mul(4).saturating_add(per)
    }

    /// The inverse of [`Rate::number`].
    #[must_use]
    pub const fn of_number(number: u64) -> Self {
        let per = match number % 4 {
            0 => Per::Day,
            1 => Per::Hour,
            2 => Per::Minute,
            _ => Per::Second,
        };
        Self { count: number / 4, per }
    }
}

impl fmt::Display for Rate {
    /// As [`parse_rate`] reads it: `600/min`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = RATE_TIMES.iter().find(|(_, per)| *per == self.per).map_or("", |(time, _)| time);
        write!(formatter, "{}/{time}", self.count)
    }
}

/// Why a text is not a size, a duration or a rate. The message completes the sentence "KEY …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// A number alone.
    #[error("needs a unit")]
    NoUnit,
    /// A unit alone, or no text at all.
    #[error("needs a number")]
    NoNumber,
    /// An unknown unit, as it was written.
    #[error("has an unknown unit: \"{0}\"")]
    UnknownUnit(String),
    /// A fraction: `1.5MiB`.
    #[error("must be a whole number of its unit")]
    Fraction,
    /// `_1`, `1_` or `1__0`.
    #[error("may have single underscores between digits, and nowhere else")]
    Underscore,
    /// `30s1m`, `1s1s`, or two parts in a size.
    #[error("must name each unit once, largest first")]
    Order,
    /// More than 2⁶⁴ − 1 bytes or milliseconds.
    #[error("is larger than any number this program can hold")]
    TooLarge,
}

/// Reads a size: `64MiB`, `1 MiB`, `10MB`. Gives bytes.
///
/// ```
/// use toolcell_policy::quantity::parse_bytes;
/// assert_eq!(parse_bytes("64MiB"), Ok(64 << 20));
/// assert_eq!(parse_bytes("10 MB"), Ok(10_000_000));
/// assert_eq!(parse_bytes("1_024 B"), Ok(1_024));
/// assert!(parse_bytes("10").is_err());
/// ```
///
/// # Errors
/// [`QuantityError`] where the text is not one whole number with one of the units above.
pub fn parse_bytes(text: &str) -> Result<u64, QuantityError> {
    let (number, unit, rest) = part(text.trim())?;
    if !rest.is_empty() {
        return Err(QuantityError::Order);
    }
    let factor = factor_of(&SIZE_UNITS, unit)?;
    number.checked_mul(factor).ok_or(QuantityError::TooLarge)
}

/// Reads a duration: `30s`, `1m30s`, `250ms`. Gives milliseconds.
///
/// ```
/// use toolcell_policy::quantity::parse_millis;
/// assert_eq!(parse_millis("1m30s"), Ok(90_000));
/// assert!(parse_millis("30s1m").is_err());
/// ```
///
/// # Errors
/// [`QuantityError`] where the text is not whole numbers with the units above, largest first.
pub fn parse_millis(text: &str) -> Result<u64, QuantityError> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    let mut factor_before = u64::MAX;
    loop {
        let (number, unit, after) = part(rest)?;
        let factor = factor_of(&DURATION_UNITS, unit)?;
        if factor >= factor_before {
            return Err(QuantityError::Order);
        }
        let added = number.checked_mul(factor).ok_or(QuantityError::TooLarge)?;
        total = total.checked_add(added).ok_or(QuantityError::TooLarge)?;
        if after.is_empty() {
            return Ok(total);
        }
        factor_before = factor;
        rest = after;
    }
}

/// Reads a rate: `600/min`, `1_000/min`, `5 / h`.
///
/// ```
/// use toolcell_policy::quantity::{Per, Rate, parse_rate};
/// assert_eq!(parse_rate("600/min"), Ok(Rate { count: 600, per: Per::Minute }));
/// assert!(parse_rate("600").is_err());
/// ```
///
/// # Errors
/// [`QuantityError`] where the text is not one whole number, a stroke and one of the times above.
pub fn parse_rate(text: &str) -> Result<Rate, QuantityError> {
    let (count, rest) = number(text.trim())?;
    let unit = rest.trim_start();
    let unknown = || QuantityError::UnknownUnit(unit.to_owned());
    let time = match unit.strip_prefix('/').map(str::trim_start) {
        None if !unit.is_empty() => return Err(unknown()),
        None | Some("") => return Err(QuantityError::NoUnit),
        Some(time) => time,
    };
    let (_, per) = *RATE_TIMES.iter().find(|(name, _)| *name == time).ok_or_else(unknown)?;
    Ok(Rate { count: count?, per })
}

/// Writes bytes in the largest unit that leaves a whole number: `64MiB`, `10MB`, `1500B`.
#[must_use]
pub fn show_bytes(bytes: u64) -> String {
    for (unit, factor) in
        [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("GB", 1_000_000_000), ("MB", 1_000_000)]
    {
        if bytes >= factor && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    format!("{bytes}B")
}

/// Writes milliseconds as [`parse_millis`] reads them: `1m30s`, `250ms`, `0ms`.
#[must_use]
pub fn show_millis(millis: u64) -> String {
    let mut text = String::new();
    let mut rest = millis;
    for (unit, factor) in DURATION_UNITS {
        let number = rest / factor;
        rest %= factor;
        if number > 0 {
            // Writing into a String cannot fail.
            let _ = write!(text, "{number}{unit}");
        }
    }
    if text.is_empty() { "0ms".to_owned() } else { text }
}

/// Writes a count with its digits in groups, as TOML reads it: `10_000_000_000`.
#[must_use]
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// Splits `30s…` into its number, its unit and the rest.
fn part(text: &str) -> Result<(u64, &str, &str), QuantityError> {
    let (number, rest) = number(text)?;
    let (unit, rest) = split_while(rest.trim_start(), |c| !c.is_ascii_digit() && !c.is_whitespace());
    if unit.is_empty() {
        return Err(QuantityError::NoUnit);
    }
    Ok((number?, unit, rest.trim_start()))
}

/// Splits a text into its number and the rest. The inner error means that the number does not fit a
/// `u64`; problems of the unit are reported first.
fn number(text: &str) -> Result<(Result<u64, QuantityError>, &str), QuantityError> {
    let (digits, rest) = split_while(text, |c| c.is_ascii_digit() || c == '_');
    if digits.is_empty() {
        return Err(QuantityError::NoNumber);
    }
    if digits.split('_').any(str::is_empty) {
        return Err(QuantityError::Underscore);
    }
    if rest.starts_with(['.', ',']) {
        return Err(QuantityError::Fraction);
    }
    let number = digits.replace('_', "").parse().map_err(|_| QuantityError::TooLarge);
    Ok((number, rest))
}

fn split_while(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !keep(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn factor_of(units: &[(&str, u64)], unit: &str) -> Result<u64, QuantityError> {
    let found = units.iter().find(|(name, _)| *name == unit);
    found.map(|(_, factor)| *factor).ok_or_else(|| QuantityError::UnknownUnit(unit.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_written() {
        for (text, expected) in [
            ("64MiB", Ok(64 << 20)),
            ("1 MiB", Ok(1 << 20)),
            (" 512KiB ", Ok(512 << 10)),
            ("10MB", Ok(10_000_000)),
            ("3kB", Ok(3_000)),
            ("3KB", Ok(3_000)),
            ("2GiB", Ok(2 << 30)),
            ("0B", Ok(0)),
            ("64", Err(QuantityError::NoUnit)),
            ("", Err(QuantityError::NoNumber)),
            ("MiB", Err(QuantityError::NoNumber)),
            ("-1MiB", Err(QuantityError::NoNumber)),
            ("1.5MiB", Err(QuantityError::Fraction)),
            ("1MiB 2KiB", Err(QuantityError::Order)),
            ("64mib", Err(QuantityError::UnknownUnit("mib".to_owned()))),
            ("64Mb", Err(QuantityError::UnknownUnit("Mb".to_owned()))),
            ("18446744073709551615B", Ok(u64::MAX)),
            ("18446744073709551616B", Err(QuantityError::TooLarge)),
            ("18446744073709551615KiB", Err(QuantityError::TooLarge)),
            ("６４MiB", Err(QuantityError::NoNumber)),
            ("1_000_000 B", Ok(1_000_000)),
            ("1_0_0MB", Ok(100_000_000)),
            ("_1MiB", Err(QuantityError::Underscore)),
            ("1_MiB", Err(QuantityError::Underscore)),
            ("1__0MiB", Err(QuantityError::Underscore)),
            ("_", Err(QuantityError::Underscore)),
            ("1_8446744073709551616B", Err(QuantityError::TooLarge)),
        ] {
            assert_eq!(parse_bytes(text), expected, "{text:?}");
        }
    }

    #[test]
    fn durations_are_read_as_they_are_written() {
        for (text, expected) in [
            ("30s", Ok(30_000)),
            ("1m30s", Ok(90_000)),
            ("1m 30s", Ok(90_000)),
            ("250ms", Ok(250)),
            ("2h", Ok(7_200_000)),
            ("0s", Ok(0)),
            ("30", Err(QuantityError::NoUnit)),
            ("1m30", Err(QuantityError::NoUnit)),
            ("0.5s", Err(QuantityError::Fraction)),
            ("30s1m", Err(QuantityError::Order)),
            ("1s1s", Err(QuantityError::Order)),
            ("5min", Err(QuantityError::UnknownUnit("min".to_owned()))),
            ("s", Err(QuantityError::NoNumber)),
            ("1_500ms", Ok(1_500)),
            ("1m1_0s", Ok(70_000)),
            ("1m_30s", Err(QuantityError::UnknownUnit("m_".to_owned()))),
            ("1s_", Err(QuantityError::UnknownUnit("s_".to_owned()))),
            ("9999999999999999999h", Err(QuantityError::TooLarge)),
        ] {
            assert_eq!(parse_millis(text), expected, "{text:?}");
        }
    }

    #[test]
    fn rates_are_read_as_they_are_written() {
        let unknown = |unit: &str| Err(QuantityError::UnknownUnit(unit.to_owned()));
        for (text, expected) in [
            ("600/min", Ok(Rate { count: 600, per: Per::Minute })),
            (" 10 / s ", Ok(Rate { count: 10, per: Per::Second })),
            ("5/h", Ok(Rate { count: 5, per: Per::Hour })),
            ("2_000/d", Ok(Rate { count: 2_000, per: Per::Day })),
            ("1_000/min", Ok(Rate { count: 1_000, per: Per::Minute })),
            ("1_000_000 / s", Ok(Rate { count: 1_000_000, per: Per::Second })),
            ("1_/s", Err(QuantityError::Underscore)),
            ("_1/s", Err(QuantityError::Underscore)),
            ("1__0/s", Err(QuantityError::Underscore)),
            ("1_0", Err(QuantityError::NoUnit)),
            ("0/s", Ok(Rate { count: 0, per: Per::Second })),
            ("600", Err(QuantityError::NoUnit)),
            ("600/", Err(QuantityError::NoUnit)),
            ("", Err(QuantityError::NoNumber)),
            ("/s", Err(QuantityError::NoNumber)),
            ("-1/s", Err(QuantityError::NoNumber)),
            ("0.5/s", Err(QuantityError::Fraction)),
            ("600/m", unknown("/m")),
            ("600/minute", unknown("/minute")),
            ("600/1min", unknown("/1min")),
            ("600 per min", unknown("per min")),
            ("18446744073709551616/s", Err(QuantityError::TooLarge)),
        ] {
            assert_eq!(parse_rate(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_rate_and_its_number_tell_the_same() {
        for per in [Per::Hour, Per::Minute, Per::Second] {
            for count in [0, 1, 2, 600, 1_000_000] {
                let rate = Rate { count, per };
                assert_eq!(Rate::of_number(rate.number()), rate);
                assert_eq!(parse_rate(&rate.to_string()), Ok(rate));
                let least = Rate::LEAST.number();
                assert_eq!((least..=Rate::MOST.number()).contains(&rate.number()), count > 0, "{rate}");
            }
            assert!(Rate { count: 1_000_001, per }.number() > Rate::MOST.number());
        }
        assert_eq!(Rate { count: u64::MAX, per: Per::Second }.number(), u64::MAX);
    }

    #[test]
    fn what_is_shown_is_read_back_as_the_same_amount() {
        for amount in [0, 1, 999, 1_000, 1_024, 1_500, 90_000, 3_600_000, 3_661_001, 64 << 20, 10_000_000] {
            assert_eq!(parse_bytes(&show_bytes(amount)), Ok(amount));
            assert_eq!(parse_millis(&show_millis(amount)), Ok(amount));
        }
        assert_eq!(show_bytes(64 << 20), "64MiB");
        assert_eq!(show_bytes(1_500), "1500B");
        assert_eq!(show_millis(90_000), "1m30s");
        assert_eq!(show_count(10_000_000_000), "10_000_000_000");
        assert_eq!(show_count(999), "999");
    }
}
