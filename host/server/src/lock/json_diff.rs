//! Differences of two JSON values in words: place, old value, new value. Control characters are
//! removed.
use serde_json::Value;
use toolcell_mcp::sanitize;

/// Characters shown of one value.
const VALUE_CHARS_MAX: usize = 160;

/// Differences shown of one definition; then their number.
const LINES_MAX: usize = 12;

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
        _ => lines.push(format!("{path} was {}, is {}", shown(old), shown(new))),
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

/// A value as JSON, shortened.
pub fn shown(value: &Value) -> String {
    let text = value.to_string();
    let cut: String = text.chars().take(VALUE_CHARS_MAX).collect();
    let end = if cut.len() < text.len() { "…" } else { "" };
    clean(&format!("{cut}{end}"))
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
        let many = |value: u64| Value::Object((0..40).map(|key| (key.to_string(), json!(value))).collect());
        let lines = between(&many(1), &many(2));
        assert_eq!(lines.len(), LINES_MAX + 1);
        assert_eq!(lines.last().unwrap(), "and 28 more differences in its definition");
        assert!(shown(&json!("x".repeat(1_000))).chars().count() <= VALUE_CHARS_MAX + 1);
    }
}
