//! Writing frames: one line of JSON each, without the newline that a transport may put after it.

use std::io::Write as _;

use super::{RequestId, RpcError};
use crate::method::Notification;
use crate::sanitize;

/// Appends a JSON string.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    let plain = text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    if plain {
        out.reserve(text.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    push_json(out, &text);
}

/// Appends an integer.
pub(crate) fn push_number(out: &mut Vec<u8>, number: impl std::fmt::Display) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{number}");
}

/// Appends any value through serde. A value that cannot be serialized becomes `null`; no caller
/// passes one.
pub(crate) fn push_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// Appends JSON text that may contain line breaks between its tokens, without them.
pub(crate) fn push_one_line(out: &mut Vec<u8>, json: &str) {
    let start = out.len();
    out.extend_from_slice(json.as_bytes());
    // Inside strings line breaks are escaped, so any remaining one is between tokens.
    for byte in out.iter_mut().skip(start) {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// An object being written. It adds braces and commas, the last brace where it is dropped; members
/// keep their order.
pub(crate) struct Object<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

impl<'o> Object<'o> {
    pub(crate) fn open(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Starts a member and returns the buffer for its value.
    pub(crate) fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        push_string(self.out, key);
        self.out.push(b':');
        self.out
    }

    pub(crate) fn text(&mut self, key: &str, text: &str) {
        push_string(self.key(key), text);
    }

    pub(crate) fn text_if(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(key, text);
        }
    }

    pub(crate) fn flag(&mut self, key: &str, flag: bool) {
        self.key(key).extend_from_slice(if flag { b"true" } else { b"false" });
    }

    pub(crate) fn json<T: serde::Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        push_json(self.key(key), value);
    }

    /// Appends a member whose value is JSON text.
    pub(crate) fn raw(&mut self, key: &str, json: &str) {
        push_one_line(self.key(key), json);
    }

    /// Ends the object before the end of its scope.
    pub(crate) fn close(self) {}
}

impl Drop for Object<'_> {
    fn drop(&mut self) {
        self.out.push(b'}');
    }
}

/// The JSON that `write` appends, as text.
pub(crate) fn json_text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Appends an array: `push` writes each item.
pub(crate) fn push_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut push: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        push(out, item);
    }
    out.push(b']');
}

/// A frame that answers `id` with the result that `body` writes.
pub(crate) fn result_frame(id: &RequestId, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    /// Enough for the reply to a small call, so that the common frame is allocated once.
    const CAPACITY_BYTES: usize = 512;
    let mut out = Vec::with_capacity(CAPACITY_BYTES);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.push(&mut out);
    out.extend_from_slice(b",\"result\":");
    body(&mut out);
    out.push(b'}');
    out
}

/// The id of a frame that answers with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorId<'a> {
    /// The id of the request.
    Of(&'a RequestId),
    /// No id could be read, and the member is left out (2025-11-25, `JSONRPCErrorResponse`). The
    /// schemas of no revision take `null`, and clients drop it.
    Absent,
    /// No id could be read, and the member is `null` (JSON-RPC 2.0, section 5). The schemas up to
    /// 2025-06-18 want the member.
    Null,
}

impl<'a> From<Option<&'a RequestId>> for ErrorId<'a> {
    fn from(id: Option<&'a RequestId>) -> Self {
        id.map_or(Self::Absent, Self::Of)
    }
}

/// A frame that answers a request of this id with an error.
pub(crate) fn error_frame<'a>(id: impl Into<ErrorId<'a>>, error: &RpcError) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    match id.into() {
        ErrorId::Of(id) => {
            out.extend_from_slice(b",\"id\":");
            id.push(&mut out);
        }
        ErrorId::Absent => {}
        ErrorId::Null => out.extend_from_slice(b",\"id\":null"),
    }
    out.extend_from_slice(b",\"error\":");
    push_error(&mut out, error);
    out.push(b'}');
    out
}

/// Appends an error object. Its message is put on one line: it may repeat text of a client or a
/// guest.
pub(crate) fn push_error(out: &mut Vec<u8>, error: &RpcError) {
    let mut object = Object::open(out);
    push_number(object.key("code"), error.code.number());
    object.text("message", &sanitize::line(&error.message));
    if let Some(data) = &error.data {
        object.raw("data", data);
    }
}

/// A notification with the params that `params` writes.
pub(crate) fn notification_frame(kind: Notification, params: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut frame = Object::open(&mut out);
    frame.text("jsonrpc", "2.0");
    frame.text("method", kind.name());
    let mut object = Object::open(frame.key("params"));
    params(&mut object);
    object.close();
    frame.close();
    out
}

pub(crate) fn batch(replies: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    push_list(&mut out, replies, |out, reply| out.extend_from_slice(reply));
    out
}
