//! Reads a `limits` table. Must not hold: which limits there are.

use super::{Entry, Problems, Section, keys};
use crate::diagnostic::{Diagnostic, Span};
use crate::limits::{Limit, Limits, Unit};
use crate::quantity::{QuantityError, parse_bytes, parse_millis, show_count};

/// The limits that hold after a `limits` table, if there is one, on top of those that held before it.
pub(crate) fn read(parent: &Section<'_>, inherited: &Limits, problems: &mut Problems) -> Limits {
    let mut limits = *inherited;
    let Some(section) = parent.get("limits").and_then(|entry| entry.section(problems)) else { return limits };
    section.check_keys(&keys::LIMITS, problems);
    for entry in section.entries() {
        let Some(limit) = Limit::from_key(entry.key) else { continue };
        let Some(value) = value_of(&entry, limit, problems) else { continue };
        limits.set(limit, value);
    }
    warn_of_unreachable_output(&section, &limits, problems);
    limits
}

/// A result reaches the host as strings and lists: what `host_data` does not let in can never be put out.
fn warn_of_unreachable_output(section: &Section<'_>, limits: &Limits, problems: &mut Problems) {
    let set_here = section.get("output").or_else(|| section.get("host_data"));
    if let Some(entry) = set_here
        && limits.output_bytes() > limits.host_data_bytes()
    {
        let (output, host_data) = (limits.show(Limit::Output), limits.show(Limit::HostData));
        let message = format!("output of {output} can never be reached: host_data is {host_data}");
        problems.add(
            Diagnostic::warning("limits::unreachable", message)
                .at(entry.span)
                .hint("a result counts against host_data as well: raise host_data or lower output"),
        );
    }
}

fn value_of(entry: &Entry<'_>, limit: Limit, problems: &mut Problems) -> Option<u64> {
    let unit = limit.spec().unit;
    let value = match unit {
        // A value below zero is below every minimum, and one that no u64 holds above every maximum.
        Unit::Count => count(entry, problems)?,
        Unit::Bytes | Unit::Millis => quantity(entry, unit, problems)?,
    };
    in_range(entry, limit, value, problems)
}

fn in_range(entry: &Entry<'_>, limit: Limit, value: i128, problems: &mut Problems) -> Option<u64> {
    let spec = limit.spec();
    let fitting = u64::try_from(value).ok().filter(|value| (spec.min..=spec.max).contains(value));
    if fitting.is_none() {
        let label = if value < i128::from(spec.min) { "less than the least" } else { "more than the most" };
        problems.add(out_of_range(entry, (spec.unit, spec.min, spec.max), spec.default).label(label));
    }
    fitting
}

/// The problem of a value outside `(unit, min, max)`.
pub(crate) fn out_of_range(entry: &Entry<'_>, (unit, min, max): (Unit, u64, u64), default: u64) -> Diagnostic {
    let (min, max) = (unit.show(min), unit.show(max));
    Diagnostic::error("limits::range", format!("{} must be between {min} and {max}", entry.key))
        .at(entry.span.clone())
        .hint(format!("the default is {}", unit.show(default)))
}

/// An integer; quoted ones are refused with a hint.
pub(crate) fn count(entry: &Entry<'_>, problems: &mut Problems) -> Option<i128> {
    if let Some(text) = entry.as_str() {
        let digits = text.replace('_', "").parse::<u64>().ok();
        let example = digits.map_or_else(|| "10_000".to_owned(), show_count);
        problems.add(
            Diagnostic::error("manifest::type", format!("{} must be an integer, not a string", entry.key))
                .at(entry.span.clone())
                .label("this is a string")
                .hint(format!("write {} = {example}, without quotes", entry.key)),
        );
        return None;
    }
    entry.integer(problems)
}

/// A size or a duration, in bytes or milliseconds.
pub(crate) fn quantity(entry: &Entry<'_>, unit: Unit, problems: &mut Problems) -> Option<i128> {
    if let Some(number) = entry.as_integer() {
        problems.add(without_unit(entry.key, entry.span.clone(), unit, &number.to_string()));
        return None;
    }
    if let Some(number) = entry.as_float() {
        problems.add(without_unit(entry.key, entry.span.clone(), unit, number));
        return None;
    }
    let Some(text) = entry.as_str() else {
        let expected = if unit == Unit::Millis { "a duration, such as \"30s\"" } else { "a size, such as \"64MiB\"" };
        return entry.wrong_type(expected, problems);
    };
    let parsed = if unit == Unit::Millis { parse_millis(text) } else { parse_bytes(text) };
    match parsed {
        Ok(value) => Some(i128::from(value)),
        Err(QuantityError::NoUnit) => {
            problems.add(without_unit(entry.key, entry.span.clone(), unit, text.trim()));
            None
        }
        Err(QuantityError::TooLarge) => Some(i128::MAX),
        Err(error) => {
            let hint = if unit == Unit::Millis {
                "durations are whole numbers of h, m, s and ms, such as \"1m30s\" or \"500ms\""
            } else {
                "sizes are whole numbers of B, KiB, MiB, GiB, kB, MB or GB, such as \"64MiB\""
            };
            problems.add(
                Diagnostic::error("limits::unit", format!("{} {error}", entry.key)).at(entry.span.clone()).hint(hint),
            );
            None
        }
    }
}

fn without_unit(key: &str, span: Span, unit: Unit, number: &str) -> Diagnostic {
    let whole = number.parse::<u64>().is_ok();
    let hint = match (unit, whole) {
        (Unit::Millis, true) => format!("write \"{number}s\" or \"{number}ms\""),
        (Unit::Millis, false) => "write a whole number with its unit, such as \"30s\" or \"500ms\"".to_owned(),
        (_, true) => format!("write \"{number}B\", \"{number}KiB\" or \"{number}MiB\""),
        (_, false) => "write a whole number with its unit, such as \"64MiB\" or \"512KiB\"".to_owned(),
    };
    Diagnostic::error("limits::unit", format!("{key} needs a unit"))
        .at(span)
        .label("a number without a unit")
        .hint(hint)
}
