//! JSON-RPC errors, and the only codes that this host sends.

use std::borrow::Cow;

/// Characters of a caller's own text (a method, a tool's name) that an error message repeats.
pub(crate) const ECHO_CHARS_MAX: usize = 128;

/// The codes that this host sends (JSON-RPC 2.0 section 5.1, and the 2026-07-28 revision's "Error
/// Codes").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// -32700: the frame is not JSON that this host reads.
    Parse,
    /// -32600: JSON, but not a request.
    InvalidRequest,
    /// -32601: no such method here.
    MethodNotFound,
    /// -32602: the method's params are wrong, its tool unknown, its cursor stale.
    InvalidParams,
    /// -32602 as well: the protocol's own keys in `_meta` are missing or wrong.
    InvalidMeta,
    /// -32002: no such resource, for a legacy client (2025-11-25, Resources, "Error Handling").
    ResourceNotFound,
    /// -32603: the host failed.
    Internal,
    /// -32021: the request needs a capability that the client did not declare.
    MissingClientCapability,
    /// -32020: headers of the HTTP request are missing, or differ from its body.
    HeaderMismatch,
    /// -32022: the protocol version named in `_meta` is not served.
    UnsupportedProtocolVersion,
}

impl ErrorCode {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::InvalidMeta,
        Self::ResourceNotFound,
        Self::Internal,
        Self::MissingClientCapability,
        Self::HeaderMismatch,
        Self::UnsupportedProtocolVersion,
    ];

    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams | Self::InvalidMeta => -32602,
            Self::ResourceNotFound => -32002,
            Self::Internal => -32603,
            Self::MissingClientCapability => -32021,
            Self::HeaderMismatch => -32020,
            Self::UnsupportedProtocolVersion => -32022,
        }
    }
}

/// One JSON-RPC error object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    /// Its code.
    pub code: ErrorCode,
    /// One sentence for people.
    pub message: Cow<'static, str>,
    /// The `data` member as JSON text.
    pub data: Option<String>,
}

impl RpcError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    pub(crate) fn params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InvalidParams, message)
    }

    pub(crate) fn meta(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InvalidMeta, message)
    }

    pub(crate) fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// The same error, for a member of the params instead of `_meta`.
    pub(crate) fn of_params(self) -> Self {
        Self { code: ErrorCode::InvalidParams, ..self }
    }

    pub(crate) fn header(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::HeaderMismatch, message)
    }

    pub(crate) fn method(name: &str) -> Self {
        Self::new(ErrorCode::MethodNotFound, format!("Method not found: {}", echo(name)))
    }
}

/// A caller's own text, cut for an error message.
pub(crate) fn echo(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(ECHO_CHARS_MAX) {
        Some((cut, _)) => Cow::Owned(format!("{}…", text.get(..cut).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}
