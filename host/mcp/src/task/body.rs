//! The body of a task that has ended: its call's result, or its error, as one text.

use crate::frame::{RpcError, push_error};

/// The body of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskBody<'b> {
    /// A result, as JSON.
    Result(&'b str),
    /// A JSON-RPC error, as JSON.
    Error(&'b str),
}

impl<'b> TaskBody<'b> {
    /// Reads a text that [`of_result`](Self::of_result) or [`of_error`](Self::of_error) wrote.
    pub(crate) fn read(body: &'b str) -> Option<Self> {
        match body.split_at_checked(1)? {
            ("r", result) => Some(Self::Result(result)),
            ("e", error) => Some(Self::Error(error)),
            _ => None,
        }
    }

    /// The text of a result.
    pub(crate) fn of_result(json: &[u8]) -> String {
        format!("r{}", String::from_utf8_lossy(json))
    }

    /// The text of an error.
    pub(crate) fn of_error(error: &RpcError) -> String {
        let mut out = vec![b'e'];
        push_error(&mut out, error);
        String::from_utf8_lossy(&out).into_owned()
    }
}
