//! The Streamable HTTP transport, both eras on one endpoint: HTTP/1.1 and HTTP/2, over TCP, TLS or a Unix socket.
//!
//! A modern request (2026-07-28) is a connection of its own, which ends with its response. A legacy session is a
//! connection that many requests share by its `Mcp-Session-Id`. Who calls is asked of a [`Gatekeeper`]; how callers are
//! recognised is no business of this transport.

mod accept;
mod body;
mod doors;
mod headers;
mod legacy;
mod limits;
mod listener;
mod mailbox;
mod modern;
mod refusal;
mod room;
mod serve;
mod service;
mod session;
mod stream;
mod tls;
mod traffic;
mod watch;

use std::future::Future;
use std::pin::Pin;

use http::HeaderMap;

use crate::caller::Caller;

pub use doors::{Doors, OriginError};
pub use limits::HttpLimits;
pub use listener::Listener;
pub use serve::{HttpOptions, Shutdown, serve};
pub use tls::{Certificate, TlsError};
pub use traffic::{Load, Traffic};

/// Finds out who calls.
pub trait Gatekeeper: Send + Sync + 'static {
    /// Recognises the caller of one request by its headers. Asked before the body is read.
    fn admit<'h>(&'h self, headers: &'h HeaderMap)
    -> Pin<Box<dyn Future<Output = Result<Caller, Turned>> + Send + 'h>>;
}

/// Why a caller is turned away. `challenge` is the value of `WWW-Authenticate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turned {
    /// Who calls is not known: 401.
    Unknown {
        /// How to become known.
        challenge: String,
    },
    /// Who calls is known and may not: 403.
    NotAllowed {
        /// What is missing.
        challenge: String,
    },
}

/// Lets everybody in, as [`Caller::anyone`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Open;

impl Gatekeeper for Open {
    fn admit<'h>(&'h self, _: &'h HeaderMap) -> Pin<Box<dyn Future<Output = Result<Caller, Turned>> + Send + 'h>> {
        Box::pin(std::future::ready(Ok(Caller::anyone())))
    }
}
