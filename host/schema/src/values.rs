//! Counts the values in a JSON text, before it is parsed.

/// An upper bound for the values in a JSON text, at most its length. For other texts the number
/// means nothing.
pub(super) fn in_text(text: &str) -> usize {
    let mut values = 1;
    let mut in_string = false;
    let mut escaped = false;
    // True after an opening bracket, until a value follows.
    let mut opened = false;
    for byte in text.bytes() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => continue,
            b']' | b'}' => {}
            _ if opened => values += 1,
            _ => {}
        }
        opened = matches!(byte, b'[' | b'{');
        in_string = byte == b'"';
        values += usize::from(byte == b',');
    }
    values
}

#[cfg(test)]
mod tests {
    use super::in_text;

    #[test]
    fn each_value_counts_once_and_names_count_not() {
        for (text, values) in [
            ("1", 1),
            ("[]", 1),
            ("[ ]", 1),
            ("{}", 1),
            ("[1]", 2),
            ("[1, 2]", 3),
            ("[[], {}]", 3),
            ("[[[]]]", 3),
            (r#"{"a":1,"b":[1,2]}"#, 5),
            (r#"["a,b","[c","\"],","\\\\"]"#, 5),
            (r#" { "a" : { "b" : null } } "#, 3),
        ] {
            assert_eq!(in_text(text), values, "{text}");
        }
    }
}
