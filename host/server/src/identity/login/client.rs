//! Sending requests to authorization servers, behind a trait that tests answer. Must not hold: what
//! is asked.
use std::future::Future;
use std::time::Duration;

use ::http::{Request, Response};
use hyper::body::Bytes;
use toolcell_policy::LoginPolicy;

use super::error::LoginError;
use crate::fetching::http_client::{Bounds, HostHttpClient, HttpClientError};

/// Bounds of one answer, for which a call or a person waits. Two tokens of 32 KiB and an identity
/// token fit several times.
const BOUNDS: Bounds =
    Bounds { connect: Duration::from_secs(5), whole: Duration::from_secs(15), body_bytes: 256 * 1024 };

/// Sends a request, and reads the whole answer.
pub trait SendRequest: Sync {
    /// Sends it.
    fn send(&self, request: Request<Bytes>) -> impl Future<Output = Result<Response<Bytes>, HttpClientError>> + Send;
}

impl SendRequest for HostHttpClient {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpClientError> {
        Self::send(self, request).await
    }
}

/// The client for a login's server.
///
/// # Errors
/// [`LoginError::Client`] where the machine has no certificate authorities.
pub fn client(policy: &LoginPolicy) -> Result<impl SendRequest + use<>, LoginError> {
    let addresses = [policy.issuer(), policy.authorize(), policy.token(), policy.device()];
    HostHttpClient::new(addresses.into_iter().flatten(), BOUNDS).map_err(LoginError::Client)
}
