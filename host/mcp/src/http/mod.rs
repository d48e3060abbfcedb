//! The Streamable HTTP transport, both eras on one endpoint: HTTP/1.1 and HTTP/2, over TCP, TLS or
//! a Unix socket.
//!
//! A modern request (2026-07-28) is its own connection, which ends with its response. A legacy
//! session is a connection that many requests share by its `Mcp-Session-Id`. A [`Gatekeeper`]
//! authenticates callers.

mod body;
mod checks;
mod exchange;
mod executor;
mod headers;
mod legacy;
mod limits;
mod line_endings;
mod listener;
mod long;
mod mailbox;
mod modern;
pub mod oauth;
mod origin;
mod quota;
mod refusal;
mod replicas;
mod response;
mod resume;
mod sealed;
mod serve;
mod service;
mod session;
mod stream;
mod tls;
mod traffic;
mod unread;
mod watch;

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Instant;

use http::HeaderMap;

use crate::caller::Caller;
use crate::cancellation::Cancellation;

pub use checks::CredentialChecks;
pub use limits::{CallerLimits, HttpLimits};
pub use listener::HttpListener;
pub use origin::{OriginError, OriginPolicy};
pub use replicas::{Recipient, ReplicaAnswer, ReplicaItem, Replicas, ReplicasAway};
pub use serve::{HttpOptions, HttpShutdown, serve};
pub use tls::{Certificate, TlsError};
pub use traffic::{HttpLoad, Traffic};

/// Authenticates callers.
pub trait Gatekeeper: Send + Sync + 'static {
    /// Authenticates the caller of one request by its headers. Called before the body is read, on a
    /// thread that drives connections: what takes longer than some 50 µs goes to `checks`.
    fn admit<'h>(&'h self, headers: &'h HeaderMap, checks: &'h CredentialChecks) -> Admitting<'h>;

    /// The document at this path for unauthenticated callers: a JSON text about how to
    /// authenticate.
    fn metadata(&self, path: &str) -> Option<String> {
        let _ = path;
        None
    }
}

/// Whether the server can do its work, apart from accepting requests.
pub trait Readiness: Send + Sync + 'static {
    /// Checks. Anyone may ask for it at any rate, so its work must be bounded.
    fn check(&self) -> ReadinessCheck<'_>;
}

/// A running check. Returns a word or two for what is missing.
pub type ReadinessCheck<'r> = Pin<Box<dyn Future<Output = Option<&'static str>> + Send + 'r>>;

/// A running authentication.
pub type Admitting<'h> = Pin<Box<dyn Future<Output = Result<Admitted, AuthFailure>> + Send + 'h>>;

/// An authenticated caller.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// Who it is.
    pub caller: Caller,
    /// The validity of its credential.
    pub validity: CredentialValidity,
}

/// The validity of a credential. Streams end with it; each request is authenticated anew. Forever
/// by default.
#[derive(Clone, Debug, Default)]
pub struct CredentialValidity {
    /// Its expiry.
    pub until: Option<Instant>,
    /// Cancelled when it is revoked.
    pub revoked: Option<Cancellation>,
}

impl From<Caller> for Admitted {
    fn from(caller: Caller) -> Self {
        Self { caller, validity: CredentialValidity::default() }
    }
}

/// Why a caller is rejected. `challenge` is the value of `WWW-Authenticate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthFailure {
    /// The caller is unknown: 401.
    Unknown {
        /// How to authenticate.
        challenge: String,
    },
    /// The caller is known but lacks a right: 403.
    NotAllowed {
        /// The missing right.
        challenge: String,
    },
    /// Authentication is unavailable: 503.
    NotNow,
}

/// Is notified of requests that are refused before they are read, on the threads that answer them.
/// It must not block.
pub trait RefusalObserver: Send + Sync + 'static {
    /// A request from this address was refused; `None` for a Unix socket.
    fn refused(&self, from: Option<IpAddr>, reason: RefusalReason);
}

/// Why a request got a 401 or a 403.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// It has no credential: 401.
    NoCredential,
    /// Its credential is unknown or no longer valid: 401.
    UnknownCredential,
    /// Its credential lacks a right: 403.
    MissingRight,
    /// It asks for a host that the server does not answer to: 403.
    Host,
    /// It comes from a web page whose origin is not allowed: 403.
    Origin,
}

/// Admits everyone, as [`Caller::anyone`].
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmitEveryone;

impl Gatekeeper for AdmitEveryone {
    fn admit<'h>(&'h self, _: &'h HeaderMap, _: &'h CredentialChecks) -> Admitting<'h> {
        Box::pin(std::future::ready(Ok(Caller::anyone().into())))
    }
}
