//! Arguments of a call that no frame carried, such as that of a tool. They meet the rules of a
//! frame, so that no two readers of them differ.

use serde_json::value::RawValue;

use super::scan::{DEPTH_MAX, ValueError, check_value};

/// Why arguments are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsRefusal {
    /// The text is not JSON, or has what frames may not have.
    #[error("the arguments are {0}")]
    Unreadable(String),
    /// A JSON value, but not an object.
    #[error("the arguments are not a JSON object")]
    NotAnObject,
    /// Readers differ in which of the values they take.
    #[error("the arguments have the key {0:?} twice in one object")]
    DuplicateKey(String),
}

/// Reads the text of an object, as strictly as a frame: no key twice, at most 128 levels, no
/// number beyond 64-bit floats and no unpaired surrogate.
///
/// # Errors
/// The first rule that it breaks.
pub fn parse_arguments(text: String) -> Result<Box<RawValue>, ArgumentsRefusal> {
    let unreadable = |problem: &dyn std::fmt::Display| ArgumentsRefusal::Unreadable(problem.to_string());
    match check_value(&text, DEPTH_MAX) {
        Ok(None) => {}
        Ok(Some(key)) => return Err(ArgumentsRefusal::DuplicateKey(super::echo(&key).into_owned())),
        Err(ValueError::Excess(excess)) => return Err(unreadable(&format_args!("not taken: {excess}"))),
        Err(ValueError::Fault(fault)) => return Err(unreadable(&fault)),
    }
    let json = RawValue::from_string(text).map_err(|error| unreadable(&format_args!("not valid JSON: {error}")))?;
    if json.get().starts_with('{') { Ok(json) } else { Err(ArgumentsRefusal::NotAnObject) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse_arguments(text.to_owned()).unwrap_err().to_string()
    }

    #[test]
    fn arguments_outside_of_frames_meet_the_rules_of_frames() {
        assert_eq!(parse_arguments(" {\"a\": [1, {\"a\": 2}]} ".to_owned()).unwrap().get(), "{\"a\": [1, {\"a\": 2}]}");
        assert_eq!(refusal("[1]"), "the arguments are not a JSON object");
        assert_eq!(refusal("7"), "the arguments are not a JSON object");
        assert_eq!(refusal("{\"a\":1"), "the arguments are not valid JSON at byte 6");
        assert_eq!(refusal(""), "the arguments are not valid JSON at byte 0");
        assert_eq!(refusal("{\"a\":1,\"\\u0061\":2}"), "the arguments have the key \"a\" twice in one object");
        assert_eq!(refusal("{\"x\":{\"b\":1,\"b\":2}}"), "the arguments have the key \"b\" twice in one object");
        assert_eq!(
            refusal("{\"a\":1e999}"),
            "the arguments are not taken: a number at byte 5 is too large for a 64-bit float"
        );
        assert_eq!(refusal("{\"a\":\"\\ud800\"}"), "the arguments are not taken: an unpaired surrogate at byte 6");
        let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse_arguments(nested(DEPTH_MAX - 1)).is_ok());
        assert_eq!(
            refusal(&nested(DEPTH_MAX)),
            format!("the arguments are not taken: nested deeper than 128 levels at byte {}", DEPTH_MAX + 4)
        );
    }
}
