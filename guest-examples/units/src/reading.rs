//! Quantities out of a text: `5 ft 11 in`.
use crate::bindings::{Problem, Quantity};
use crate::table;

/// The quantities of a text, in its order.
pub fn quantities(text: &str) -> Result<Vec<Quantity>, Problem> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if rest.is_empty() {
            return Ok(found);
        }
        let (number, after) = split(rest, |c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
        let Ok(value) = number.parse::<f64>() else { return Err(not_understood(rest)) };
        let (name, after) = split(after.trim_start(), |c| !c.is_whitespace() && c != ',' && !is_of_number(c));
        let Some(unit) = table::named(name) else {
            return Err(not_understood(if name.is_empty() { number } else { name }));
        };
        found.push(Quantity { value, unit });
        rest = after;
    }
}

/// A number may follow a unit at once: `5ft11in`. The 3 of `m3` is part of the unit.
fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() && c != '3' || matches!(c, '-' | '+')
}

fn split(text: &str, is_part: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()))
}

fn not_understood(text: &str) -> Problem {
    Problem::NotUnderstood(text.split_whitespace().next().unwrap_or_default().to_owned())
}
