//! Addresses of cards: `library:///` is all of them, `library:///PATH` is one.

/// Begins every address here, and is that of the list.
pub const LIST: &str = "library:///";

/// The template of the other addresses.
pub const TEMPLATE: &str = "library:///{+path}";

/// The address of a document's card. What an address cannot hold is escaped (RFC 3986 section 2.1).
pub fn of(path: &str) -> String {
    let mut uri = LIST.to_owned();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// The path that an address stands for. `None` where it stands for none; the list's is empty.
pub fn path(uri: &str) -> Option<String> {
    let mut rest = uri.strip_prefix(LIST)?.as_bytes();
    let mut path = Vec::with_capacity(rest.len());
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            path.push(byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        path.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(path).ok()
}

#[cfg(test)]
mod tests {
    use super::{of, path};

    #[test]
    fn every_path_has_an_address_and_comes_back() {
        for (given, uri) in [
            ("", "library:///"),
            ("tea.md", "library:///tea.md"),
            ("how to/100%.md", "library:///how%20to/100%25.md"),
            ("schön?#.md", "library:///sch%C3%B6n%3F%23.md"),
        ] {
            assert_eq!(of(given), uri);
            assert_eq!(path(uri).as_deref(), Some(given));
        }
        assert_eq!(path("library:///caf%c3%a9").as_deref(), Some("café"));
        for wrong in ["note:///tea.md", "library:///%", "library:///%4", "library:///%zz", "library:///%ff"] {
            assert_eq!(path(wrong), None, "{wrong}");
        }
    }
}
