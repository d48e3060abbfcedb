//! Reads a `limits` or `load` table, and single values that have a [`Spec`].

use std::sync::Arc;

use super::{Entry, Problems, Section};
use crate::diagnostic::{Diagnostic, Span};
use crate::limits::{LIMITS, LOAD, Limit, LimitPlace, Limits, LoadLimits, PlacedLimits, Spec, Unit};
use crate::quantity::{QuantityError, parse_bytes, parse_millis, parse_rate, show_count};

/// The limits after an optional `limits` table, on top of the earlier ones.
pub(crate) fn read(parent: &Section<'_>, inherited: &PlacedLimits, problems: &mut Problems) -> PlacedLimits {
    let section = parent.get("limits").and_then(|entry| entry.table(&LIMITS, problems));
    let Some(section) = section else { return inherited.clone() };
    let limits = inherited.limits.read(&section, problems);
    warn_of_unreachable_output(&section, &limits, problems);
    for limit in [Limit::HttpConnect, Limit::HttpFirstByte] {
        warn_of_unreachable_wait(&section, &limits, limit, problems);
    }
    PlacedLimits { limits, places: inherited.places.under(places(&section)) }
}

/// The places of all limits that a table sets.
fn places(section: &Section<'_>) -> Vec<LimitPlace> {
    let table: Arc<str> = section.path().into();
    let place = |limit: Limit| {
        let entry = section.get(limit.spec().key)?;
        Some(LimitPlace { limit, table: Arc::clone(&table), span: entry.key_span })
    };
    Limit::ALL.into_iter().filter_map(place).collect()
}

/// The limits of loading that hold after a `load` table.
pub(crate) fn read_load(parent: &Section<'_>, inherited: &LoadLimits, problems: &mut Problems) -> LoadLimits {
    let section = parent.get("load").and_then(|entry| entry.table(&LOAD, problems));
    section.map_or(*inherited, |section| inherited.read(&section, problems))
}

/// A result reaches the host as strings and lists, so `host_data` also bounds it.
fn warn_of_unreachable_output(section: &Section<'_>, limits: &Limits, problems: &mut Problems) {
    let set_here = section.get("output").or_else(|| section.get("host_data"));
    if let Some(entry) = set_here
        && limits.output_bytes() > limits.host_data_bytes()
    {
        let output = limits.show(Limit::Output);
        let host_data = limits.show(Limit::HostData);
        let message = format!("output of {output} can never be reached: host_data is {host_data}");
        problems.add(
            Diagnostic::warning("limits::unreachable", message)
                .at(entry.span)
                .hint("a result counts against host_data as well: raise host_data or lower output"),
        );
    }
}

/// A part of a request cannot take longer than the request.
fn warn_of_unreachable_wait(section: &Section<'_>, limits: &Limits, limit: Limit, problems: &mut Problems) {
    let key = limit.spec().key;
    let Some(entry) = section.get(key) else { return };
    if limits.get(limit) <= limits.get(Limit::HttpTime) {
        return;
    }
    let wait = limits.show(limit);
    let whole = limits.show(Limit::HttpTime);
    let message = format!("{key} of {wait} can never be reached: http_time is {whole}");
    let problem = Diagnostic::warning("limits::unreachable", message).at(entry.span);
    problems.add(problem.hint(format!("raise http_time or lower {key}")));
}

/// A value in its unit and within its bounds.
pub(crate) fn value(entry: &Entry<'_>, spec: &'static Spec, problems: &mut Problems) -> Option<u64> {
    let value = match spec.unit {
        // A value below zero is below every minimum, and one that no u64 holds above every maximum.
        Unit::Count => count(entry, problems)?,
        Unit::Bytes | Unit::Millis | Unit::Rate => quantity(entry, spec.unit, problems)?,
    };
    let fitting = u64::try_from(value).ok().and_then(|value| spec.check(value).ok());
    if fitting.is_none() {
        let label = if value < i128::from(spec.min) { "less than the least" } else { "more than the most" };
        let min = spec.show(spec.min);
        let max = spec.show(spec.max);
        problems.add(
            entry
                .error("limits::range", format!("{} must be between {min} and {max}", entry.key))
                .label(label)
                .hint(format!("the default is {}", spec.show(spec.default))),
        );
    }
    fitting
}

/// An integer; quoted ones are refused with a hint.
fn count(entry: &Entry<'_>, problems: &mut Problems) -> Option<i128> {
    if let Some(text) = entry.as_str() {
        let digits = text.replace('_', "").parse::<u64>().ok();
        let example = digits.map_or_else(|| "10_000".to_owned(), show_count);
        return problems.refuse(
            entry
                .error("manifest::type", format!("{} must be an integer, not a string", entry.key))
                .label("this is a string")
                .hint(format!("write {} = {example}, without quotes", entry.key)),
        );
    }
    entry.integer(problems)
}

/// A size, a duration or a rate: bytes, milliseconds or a rate's number.
fn quantity(entry: &Entry<'_>, unit: Unit, problems: &mut Problems) -> Option<i128> {
    let written = match (entry.as_integer(), entry.as_float()) {
        (Some(number), _) => Some(number.to_string()),
        (None, number) => number.map(str::to_owned),
    };
    if let Some(number) = written {
        return problems.refuse(without_unit(entry.key, entry.span.clone(), unit, &number));
    }
    let Some(text) = entry.as_str() else {
        return entry.wrong_type(expected(unit), problems);
    };
    let parsed = match unit {
        Unit::Millis => parse_millis(text),
        Unit::Rate => parse_rate(text).map(|rate| rate.number()),
        Unit::Bytes | Unit::Count => parse_bytes(text),
    };
    match parsed {
        Ok(value) => Some(i128::from(value)),
        Err(QuantityError::NoUnit) => {
            let number = text.trim().trim_end_matches('/').trim_end();
            problems.refuse(without_unit(entry.key, entry.span.clone(), unit, number))
        }
        Err(QuantityError::TooLarge) => Some(i128::MAX),
        Err(error) => problems.refuse(entry.error("limits::unit", format!("{} {error}", entry.key)).hint(forms(unit))),
    }
}

/// The words for the type that a value should have.
fn expected(unit: Unit) -> &'static str {
    match unit {
        Unit::Millis => "a duration, such as \"30s\"",
        Unit::Rate => "a rate, such as \"600/min\"",
        Unit::Bytes | Unit::Count => "a size, such as \"64MiB\"",
    }
}

/// All forms.
fn forms(unit: Unit) -> &'static str {
    match unit {
        Unit::Millis => "durations are whole numbers of h, m, s and ms, such as \"1m30s\" or \"500ms\"",
        Unit::Rate => "rates are a whole number in a time: \"10/s\", \"600/min\", \"5/h\" or \"2000/d\"",
        Unit::Bytes | Unit::Count => "sizes are whole numbers of B, KiB, MiB, GiB, kB, MB or GB, such as \"64MiB\"",
    }
}

fn without_unit(key: &str, span: Span, unit: Unit, number: &str) -> Diagnostic {
    let whole = number.parse::<u64>().is_ok();
    let hint = match (unit, whole) {
        (Unit::Millis, true) => format!("write \"{number}s\" or \"{number}ms\""),
        (Unit::Millis, false) => "write a whole number with its unit, such as \"30s\" or \"500ms\"".to_owned(),
        (Unit::Rate, true) => {
            format!("write \"{number}/s\", \"{number}/min\", \"{number}/h\" or \"{number}/d\"")
        }
        (Unit::Rate, false) => "write a whole number in a time, such as \"10/s\" or \"600/min\"".to_owned(),
        (_, true) => format!("write \"{number}B\", \"{number}KiB\" or \"{number}MiB\""),
        (_, false) => "write a whole number with its unit, such as \"64MiB\" or \"512KiB\"".to_owned(),
    };
    Diagnostic::error("limits::unit", format!("{key} needs a unit"))
        .at(span)
        .label("a number without a unit")
        .hint(hint)
}
