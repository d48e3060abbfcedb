//! Words of commands in hints, ready to paste into a POSIX shell.

/// One word of a shell command: unchanged if possible, otherwise quoted.
#[must_use]
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=@%+,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// Quotes a text, so that a shell takes it as one word.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_each_word_as_the_text_that_it_was() {
        for (text, written) in [
            ("/srv/tools/toolcell.toml", "/srv/tools/toolcell.toml"),
            ("it's a clone", r"'it'\''s a clone'"),
            ("$(id)`id`\"\\", "'$(id)`id`\"\\'"),
            ("~/tools", "'~/tools'"),
            ("größe", "'größe'"),
            ("", "''"),
        ] {
            assert_eq!(word(text), written);
            for word in [word(text), quoted(text)] {
                let printed = std::process::Command::new("sh").args(["-c", &format!("printf %s {word}")]).output();
                assert_eq!(String::from_utf8(printed.unwrap().stdout).unwrap(), text, "{word}");
            }
        }
    }
}
