//! The Streamable HTTP transport, both eras on one endpoint: HTTP/1.1 and HTTP/2, over TCP, TLS or a Unix socket.
//!
//! A modern request (2026-07-28) is a connection of its own, which ends with its response. A legacy session is a
//! connection that many requests share by its `Mcp-Session-Id`. Who calls is asked of a [`Gatekeeper`]; how callers are
//! recognised is no business of this transport.

mod accept;
mod body;
mod connections;
mod executor;
mod headers;
mod legacy;
mod limits;
mod line_endings;
mod listener;
mod mailbox;
mod modern;
pub mod oauth;
mod origin;
mod quota;
mod refusal;
mod serve;
mod service;
mod session;
mod stream;
mod tls;
mod traffic;
mod watch;

use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

use http::HeaderMap;

use crate::caller::Caller;
use crate::cancellation::Cancellation;

pub use limits::{CallerLimits, HttpLimits};
pub use listener::Listener;
pub use origin::{OriginError, OriginPolicy};
pub use serve::{HttpOptions, Shutdown, serve};
pub use tls::{Certificate, TlsError};
pub use traffic::{Load, Traffic};

/// Finds out who calls.
pub trait Gatekeeper: Send + Sync + 'static {
    /// Recognises the caller of one request by its headers. Asked before the body is read.
    fn admit<'h>(&'h self, headers: &'h HeaderMap) -> Admitting<'h>;

    /// What is at this path for callers who are not known yet: a JSON text that says how to become known.
    fn metadata(&self, path: &str) -> Option<String> {
        let _ = path;
        None
    }
}

/// A caller while it is found out who it is.
pub type Admitting<'h> = Pin<Box<dyn Future<Output = Result<Admitted, AuthFailure>> + Send + 'h>>;

/// A caller that was let in.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// Who it is.
    pub caller: Caller,
    /// For how long what it showed holds.
    pub standing: CredentialValidity,
}

/// For how long what a caller showed holds. Streams that it opened end with it; requests are asked for it anew. Forever
/// by default.
#[derive(Clone, Debug, Default)]
pub struct CredentialValidity {
    /// When it ends by itself.
    pub until: Option<Instant>,
    /// Cancelled once it was taken back.
    pub revoked: Option<Cancellation>,
}

impl From<Caller> for Admitted {
    fn from(caller: Caller) -> Self {
        Self { caller, standing: CredentialValidity::default() }
    }
}

/// Why a caller is turned away. `challenge` is the value of `WWW-Authenticate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthFailure {
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
    /// Who calls cannot be found out just now: 503.
    NotNow,
}

/// Lets everybody in, as [`Caller::anyone`].
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmitEveryone;

impl Gatekeeper for AdmitEveryone {
    fn admit<'h>(&'h self, _: &'h HeaderMap) -> Admitting<'h> {
        Box::pin(std::future::ready(Ok(Caller::anyone().into())))
    }
}
