//! Sending requests to authorization servers, behind a trait that tests answer.
use std::future::Future;
use std::time::Duration;

use ::http::{Request, Response};
use hyper::body::Bytes;
use toolcell_outbound::{OutboundBounds, OutboundClient, OutboundError};
use toolcell_policy::LoginPolicy;

use super::error::LoginError;

/// Bounds of one answer, for which a call or a person waits. Two tokens of 32 KiB and an identity
/// token fit several times.
const BOUNDS: OutboundBounds =
    OutboundBounds { connect: Duration::from_secs(5), whole: Duration::from_secs(15), body_bytes: 256 * 1024 };

/// Sends a request, and reads the whole answer.
pub trait SendRequest: Sync {
    /// Sends it.
    fn send(&self, request: Request<Bytes>) -> impl Future<Output = Result<Response<Bytes>, OutboundError>> + Send;
}

impl SendRequest for OutboundClient {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, OutboundError> {
        Self::send(self, request).await
    }
}

/// The client for a login's server.
///
/// # Errors
/// [`LoginError::Client`] where the machine has no certificate authorities.
pub fn client(policy: &LoginPolicy) -> Result<impl SendRequest + use<>, LoginError> {
    let addresses = [policy.issuer(), policy.authorize(), policy.token(), policy.device()];
    OutboundClient::new(addresses.into_iter().flatten(), BOUNDS).map_err(LoginError::Client)
}
