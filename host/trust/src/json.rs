//! One pass over JSON before anything is built from it: nesting and the number of values.
//!
//! The parser behind it is strict; this pass only bounds what that costs.

use crate::limits::JSON_DEPTH_MAX;

/// Refuses JSON nested deeper than [`JSON_DEPTH_MAX`] or with more than `values_max` values.
///
/// Every value but the first follows one of `[`, `{` or `,`, so counting those bounds them.
pub(crate) fn check(text: &[u8], values_max: usize) -> Result<(), String> {
    let mut depth = 0usize;
    let mut values = 1usize;
    let mut in_string = false;
    let mut escaped = false;
    for byte in text {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                values += 1;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if depth > JSON_DEPTH_MAX {
            return Err(format!("its JSON is nested deeper than {JSON_DEPTH_MAX}"));
        }
        if values > values_max {
            return Err(format!("its JSON has more than {values_max} values"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_do_not_nest() {
        let text = format!(r#"["{}", "\"[[["]"#, "[".repeat(1000));
        assert_eq!(check(text.as_bytes(), 10), Ok(()));
    }

    #[test]
    fn depth_and_values_are_bounded_exactly() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(check(nested(64).as_bytes(), 1000), Ok(()));
        assert_eq!(check(nested(65).as_bytes(), 1000), Err("its JSON is nested deeper than 64".to_owned()));
        assert_eq!(check(b"[1,2,3]", 4), Ok(()));
        assert_eq!(check(b"[1,2,3]", 3), Err("its JSON has more than 3 values".to_owned()));
    }
}
