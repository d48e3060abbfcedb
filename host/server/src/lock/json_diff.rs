//! Differences of two JSON values in words: place, old value, new value. Control characters are
//! removed.
use serde_json::Value;
use toolcell_mcp::sanitize;

/// Characters shown of one value. 1,000: most descriptions of tools are whole.
const VALUE_CHARS_MAX: usize = 1_000;

/// Characters before the first difference of two values that are not shown whole: some words.
const CHARS_BEFORE: usize = 40;

/// Differences shown of one definition; then their number. 40: as many parts as a page shows.
const LINES_MAX: usize = 40;

/// Differences, a line each.
pub fn between(old: &Value, new: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", old, new, &mut lines);
    bounded(lines)
}

/// Differences of one member, which may have been added or removed.
pub fn of_member(key: &str, old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
    let mut lines = Vec::new();
    compare_member(place("", key), old, new, &mut lines);
    bounded(lines)
}

fn bounded(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    if more > 0 {
        lines.push(format!("and {more} more differences in its definition"));
    }
    lines
}

fn compare(path: &str, old: &Value, new: &Value, lines: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before {
                compare_member(place(path, key), Some(value), after.get(key), lines);
            }
            for (key, value) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
                compare_member(place(path, key), None, Some(value), lines);
            }
        }
        _ if old == new => {}
        _ => lines.push(changed(path, &old.to_string(), &new.to_string())),
    }
}

fn compare_member(place: String, old: Option<&Value>, new: Option<&Value>, lines: &mut Vec<String>) {
    match (old, new) {
        (Some(old), Some(new)) => compare(&place, old, new, lines),
        (Some(old), None) => lines.push(format!("{place} is gone, was {}", shown(old))),
        (None, Some(new)) => lines.push(format!("{place} is new: {}", shown(new))),
        (None, None) => {}
    }
}

fn place(path: &str, key: &str) -> String {
    let key = clean(key);
    if path.is_empty() { key } else { format!("{path}/{key}") }
}

/// Two values as JSON. Long ones begin near their first difference, so that it is shown.
fn changed(path: &str, old: &str, new: &str) -> String {
    let is_long = [old, new].iter().any(|text| text.chars().count() > VALUE_CHARS_MAX);
    let same = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
    let from = if is_long { same.saturating_sub(CHARS_BEFORE) } else { 0 };
    format!("{path} was {}, is {}", shown_from(old, from), shown_from(new, from))
}

/// A value as JSON, shortened.
pub fn shown(value: &Value) -> String {
    shown_from(&value.to_string(), 0)
}

/// A text from this character on, shortened, with the number of characters behind that.
fn shown_from(text: &str, from: usize) -> String {
    let cut: String = text.chars().skip(from).take(VALUE_CHARS_MAX).collect();
    let behind = text.chars().count().saturating_sub(from + VALUE_CHARS_MAX);
    let start = if from > 0 { "…" } else { "" };
    let end = if behind > 0 { format!("… and {behind} characters more") } else { String::new() };
    clean(&format!("{start}{cut}{end}"))
}

/// One line without control characters.
pub fn clean(text: &str) -> String {
    sanitize::line(text).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_named_and_values_shown() {
        let old = json!({"description": "A", "inputSchema": {"properties": {"city": {"type": "string"}, "unit": {}}}});
        let new = json!({"description": "B", "inputSchema": {"properties": {"city": {"type": "integer"}, "to": true}}});
        assert_eq!(
            between(&old, &new),
            [
                "description was \"A\", is \"B\"",
                "inputSchema/properties/city/type was \"string\", is \"integer\"",
                "inputSchema/properties/unit is gone, was {}",
                "inputSchema/properties/to is new: true",
            ]
        );
    }

    #[test]
    fn long_lists_and_values_are_cut() {
        let many = |value: u64| Value::Object((0..68).map(|key| (key.to_string(), json!(value))).collect());
        let lines = between(&many(1), &many(2));
        assert_eq!(lines.len(), LINES_MAX + 1);
        assert_eq!(lines.last().unwrap(), "and 28 more differences in its definition");
        let long = shown(&json!("x".repeat(2_000)));
        assert!(long.ends_with("xx… and 1002 characters more"), "{long}");
    }

    #[test]
    fn long_values_begin_near_their_first_difference() {
        let start = "Finds notes. ".repeat(200);
        let text = |end: &str| json!({"description": format!("{start}{end}")});
        let lines = between(&text("Ends here."), &text("Sends them away."));
        let before = "… Finds notes. Finds notes. Finds notes. ";
        let expected = format!("description was {before}Ends here.\", is {before}Sends them away.\"");
        assert_eq!(lines, [expected]);
    }
}
