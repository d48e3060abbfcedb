//! Finds the id of a message that is too long to be kept, in one pass with constant memory.

use super::RequestId;

/// Longest id that is found, in bytes as written. Clients' ids have at most about 40.
const ID_BYTES_MAX: usize = 1_024;

/// A message that is longer than a transport keeps.
#[derive(Debug, Default)]
pub struct OverlongFrame {
    /// Number of open objects and arrays.
    depth: usize,
    /// `Some` within a string; `Some(true)` after a backslash.
    string: Option<bool>,
    /// The current key or value of the outermost object, as far as an id can be that long.
    token: Vec<u8>,
    /// The member that `token` is the value of; `None` while it is a key.
    member: Option<OverlongMember>,
    ids: usize,
    id: Option<RequestId>,
    has_method: bool,
    has_reply: bool,
    /// Nothing further is read: the outermost object has ended, or there is none.
    done: bool,
    bytes: usize,
}

/// A member of the outermost object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OverlongMember {
    Id,
    Other,
}

impl OverlongFrame {
    /// Reads further bytes of the message, without checking its grammar.
    pub fn read(&mut self, mut bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len());
        while let Some((first, rest)) = bytes.split_first() {
            if self.done {
                return;
            }
            bytes = match self.string {
                Some(escaped) => self.in_string(escaped, bytes),
                None => {
                    self.between(*first);
                    rest
                }
            };
        }
    }

    /// The id of the request, if exactly one was read.
    pub(crate) fn request_id(&self) -> Option<&RequestId> {
        self.found().filter(|_| self.has_method || !self.has_reply)
    }

    /// The id of the reply to a request of the server, if it is one.
    pub(crate) fn reply_id(&self) -> Option<&RequestId> {
        self.found().filter(|_| self.has_reply && !self.has_method)
    }

    /// The number of bytes read.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn found(&self) -> Option<&RequestId> {
        self.id.as_ref().filter(|_| self.ids == 1)
    }

    /// Continues in a string. Returns the remaining bytes.
    fn in_string<'b>(&mut self, escaped: bool, bytes: &'b [u8]) -> &'b [u8] {
        let special = |byte: &u8| matches!(byte, b'"' | b'\\');
        let plain = if escaped { 0 } else { bytes.iter().position(special).unwrap_or(bytes.len()) };
        let (text, rest) = bytes.split_at(plain);
        self.keep(text);
        let Some((byte, rest)) = rest.split_first() else { return rest };
        self.keep(&[*byte]);
        self.string = match byte {
            b'"' if !escaped => None,
            b'\\' if !escaped => Some(true),
            _ => Some(false),
        };
        rest
    }

    /// Reads one byte outside of strings.
    fn between(&mut self, byte: u8) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'{' if self.depth == 0 => self.depth = 1,
            // A byte-order mark may precede the object. Arrays and single values have no id.
            0xEF | 0xBB | 0xBF if self.depth == 0 => {}
            _ if self.depth == 0 => self.done = true,
            b'"' => {
                self.string = Some(false);
                self.keep(b"\"");
            }
            b'{' | b'[' => {
                self.keep(&[byte]);
                self.depth += 1;
            }
            b'}' | b']' => {
                self.depth -= 1;
                self.done = self.depth == 0;
                if self.done {
                    self.end_member();
                }
            }
            b',' if self.depth == 1 => self.end_member(),
            b':' if self.depth == 1 => self.begin_member(),
            _ => self.keep(&[byte]),
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = (ID_BYTES_MAX + 1).saturating_sub(self.token.len());
        if self.depth == 1 && self.member != Some(OverlongMember::Other) {
            self.token.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
    }

    /// The token is a key, and its value follows.
    fn begin_member(&mut self) {
        if self.member.is_some() {
            return;
        }
        let key = std::str::from_utf8(&self.token).ok().and_then(super::scan::string);
        self.member = Some(match key.as_deref() {
            Some("id") => OverlongMember::Id,
            _ => OverlongMember::Other,
        });
        self.has_method |= key.as_deref() == Some("method");
        self.has_reply |= matches!(key.as_deref(), Some("result" | "error"));
        self.token.clear();
    }

    fn end_member(&mut self) {
        if self.member.take() == Some(OverlongMember::Id) {
            self.ids += 1;
            let value = std::str::from_utf8(&self.token).ok().filter(|value| value.len() <= ID_BYTES_MAX);
            self.id = value.and_then(RequestId::parse);
        }
        self.token.clear();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use super::*;

    fn read(text: &str, pieces: usize) -> OverlongFrame {
        let mut frame = OverlongFrame::default();
        text.as_bytes().chunks(pieces).for_each(|piece| frame.read(piece));
        frame
    }

    #[test]
    fn an_id_is_found_wherever_it_stands_among_the_members() {
        let long = "x".repeat(5_000);
        for (text, id) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"a":"{long}"}}}}"#), "7"),
            (format!(r#"{{"method":"m","params":{{"id":1,"a":["{long}",{{"id":2}}]}},"jsonrpc":"2.0","id":7}}"#), "7"),
            (format!("\u{feff} {{ \"method\" : \"m\" , \"x\" : \"{long}\" ,\r\n \"id\" : 7 }} "), "7"),
            (format!(r#"{{"a":"\\\"id\":1,{long}\\","i\u0064":"a\"b\\","method":"m"}}"#), r#"a"b\"#),
            // The end was not read.
            (format!(r#"{{"id":"a","method":"m","params":{{"a":"{long}"#), "a"),
            (format!(r#"{{"id":7.0,"method":"m","params":"{long}"}}"#), "7"),
        ] {
            for pieces in [1, 2, 3, 1_000, text.len()] {
                let frame = read(&text, pieces);
                assert_eq!(frame.request_id().map(ToString::to_string).as_deref(), Some(id), "{pieces} {text}");
                assert_eq!(frame.bytes(), text.len());
            }
        }
    }

    #[test]
    fn there_is_no_id_where_none_is_certain() {
        let long = "x".repeat(2_000);
        for text in [
            "",
            "7",
            "\"id\"",
            r#"[{"id":1,"method":"m"}]"#,
            r#"{"method":"m","params":{"id":1}}"#,
            r#"{"id":1,"method":"m","id":2}"#,
            r#"{"id":1,"method":"m","i\u0064":1}"#,
            r#"{"id":{"id":1},"method":"m"}"#,
            r#"{"id":[1],"method":"m"}"#,
            r#"{"id":null,"method":"m"}"#,
            r#"{"id":1"#,
            r#"x{"id":1,"method":"m"}"#,
            &format!(r#"{{"id":"{long}","method":"m"}}"#),
        ] {
            assert_eq!(read(text, 7).request_id(), None, "{text}");
        }
    }

    #[test]
    fn a_reply_is_told_from_a_request() {
        let frame = read(r#"{"jsonrpc":"2.0","id":"toolcell/ask/1","result":{"method":1}}"#, 5);
        assert_eq!(frame.request_id(), None);
        assert_eq!(frame.reply_id(), Some(&RequestId::Text("toolcell/ask/1".into())));
        let frame = read(r#"{"jsonrpc":"2.0","id":1,"method":"m","result":null}"#, 5);
        assert_eq!((frame.request_id(), frame.reply_id()), (Some(&RequestId::Integer(1)), None));
    }

    #[test]
    fn memory_does_not_grow_with_the_message() {
        let mut frame = OverlongFrame::default();
        frame.read(b"{\"");
        for piece in [&b"x"[..], b"[{", b"\\", b"\"", b","] {
            (0..100_000).for_each(|_| frame.read(piece));
        }
        assert!(frame.token.capacity() < 4 * ID_BYTES_MAX, "{}", frame.token.capacity());
    }
}
