//! Untrusted texts made safe to show, and figures in words.
use ratatui::text::Span;

use crate::logging::escaped;

/// Combining marks in a row that are drawn on one letter: languages stack three.
const MARKS_MAX: usize = 3;

/// The text on one line, of at most this many characters, with misleading characters escaped.
pub fn line(text: &str, chars_max: usize) -> String {
    let end = text.char_indices().nth(chars_max).map_or(text.len(), |(at, _)| at);
    let (shown, rest) = text.split_at(end);
    let plain = escaped(shown, false).unwrap_or_else(|| shown.to_owned());
    let mut marks = 0;
    let mut line = String::with_capacity(plain.len());
    for letter in plain.chars() {
        marks = if is_mark(letter) { marks + 1 } else { 0 };
        match letter {
            '\n' => line.push_str("\\n"),
            '\t' => line.push_str("\\t"),
            _ if marks > MARKS_MAX => {}
            letter => line.push(letter),
        }
    }
    if !rest.is_empty() {
        line.push('…');
    }
    line
}

/// A rule on one line: its section, and the lines there.
pub fn rule(section: &str, lines: &str) -> String {
    format!("[{section}] {}", lines.split('\n').collect::<Vec<_>>().join("; "))
}

/// True for a character without a column of its own.
fn is_mark(letter: char) -> bool {
    !letter.is_ascii() && columns(letter.encode_utf8(&mut [0; 4])) == 0
}

/// Columns that a text takes.
pub fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

/// The lines of a text in this many columns.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut current = String::new();
    let mut taken = 0;
    for letter in text.chars() {
        let more = columns(letter.encode_utf8(&mut [0; 4]));
        if taken + more > width {
            lines.push(std::mem::take(&mut current));
            taken = 0;
        }
        current.push(letter);
        taken += more;
    }
    lines.push(current);
    lines
}

/// A time in milliseconds, in words.
pub fn millis(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        _ => seconds(millis / 1_000),
    }
}

/// A time in microseconds, in words.
pub fn micros(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..10_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        _ => millis(micros / 1_000),
    }
}

/// A time in seconds, in words.
pub fn seconds(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// An amount with a unit of a thousand steps: `1.2 M`.
pub fn amount(number: u64) -> String {
    scaled(number, 1_000, &["", " k", " M", " G", " T", " P"])
}

/// A use and its limit: `1.2 G of 10.0 G`, or `10.0 G at most` if the use is unknown.
pub fn of(used: Option<u64>, limit: u64, shown: fn(u64) -> String) -> String {
    match used {
        Some(used) => format!("{} of {}", shown(used), shown(limit)),
        None => format!("{} at most", shown(limit)),
    }
}

/// An amount of bytes: `64.0 MiB`.
pub fn bytes(number: u64) -> String {
    scaled(number, 1_024, &[" B", " KiB", " MiB", " GiB", " TiB"])
}

fn scaled(number: u64, step: u64, units: &[&str]) -> String {
    let mut scale = 1_u64;
    let mut shown = String::new();
    for (place, unit) in units.iter().enumerate() {
        shown = match place {
            0 => format!("{number}{unit}"),
            _ => format!("{}.{}{unit}", number / scale, number % scale / (scale / 10).max(1)),
        };
        if number / scale < step {
            break;
        }
        scale = scale.saturating_mul(step);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_text_is_one_harmless_short_line() {
        let given = "a\u{1b}[2J\u{202e}b\n\tc\u{9b}31m";
        assert_eq!(line(given, 100), "a\\u001b[2J\\u202eb\\n\\tc\\u009b31m");
        assert_eq!(line(&"x".repeat(10_000_000), 8), format!("{}…", "x".repeat(8)));
        let stacked = format!("e{}", "\u{301}".repeat(50));
        assert_eq!(line(&stacked, 100).chars().count(), 1 + MARKS_MAX);
    }

    #[test]
    fn lines_are_as_wide_as_there_is_room() {
        assert_eq!(wrapped("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(wrapped("漢字x", 3), ["漢", "字x"]);
        assert_eq!(wrapped("", 0), [""]);
    }

    #[test]
    fn figures_have_the_unit_that_fits() {
        assert_eq!(
            [micros(900), micros(1_240), micros(340_000), micros(1_240_000)],
            ["900 µs", "1.2 ms", "340 ms", "1.2 s"]
        );
        assert_eq!(
            [seconds(59), seconds(61), seconds(7_260), seconds(90_000)],
            ["59 s", "1 min 1 s", "2 h 1 min", "1 d 1 h"]
        );
        assert_eq!([amount(999), amount(1_200_000), bytes(64 << 20)], ["999", "1.2 M", "64.0 MiB"]);
        assert!(!bytes(u64::MAX).is_empty() && !amount(u64::MAX).is_empty());
    }
}
