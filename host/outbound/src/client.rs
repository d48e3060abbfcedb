//! Requests to addresses that an operator named, with one bound on time and bytes of each.
//! Redirects are not followed.
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio_rustls::TlsConnector;
use url::Url;

use crate::{AnswerBody, OutboundError, Reach, Way, machine_connector, send};

/// Bounds of a request.
#[derive(Clone, Copy, Debug)]
pub struct OutboundBounds {
    /// Time to connect: name, TCP and TLS.
    pub connect: Duration,
    /// Time of the whole request, to the answer's last byte.
    pub whole: Duration,
    /// Most bytes of the answer's body.
    pub body_bytes: usize,
}

/// Sends requests. Cheap to clone.
#[derive(Clone)]
pub struct OutboundClient {
    tls: Option<TlsConnector>,
    bounds: OutboundBounds,
    reach: Reach,
}

impl OutboundClient {
    /// A client for these addresses. The machine's root certificates are read only if one is
    /// `https`.
    ///
    /// # Errors
    /// [`OutboundError::NoRoots`] if they are needed and there are none.
    pub fn new<'a>(
        addresses: impl IntoIterator<Item = &'a str>,
        bounds: OutboundBounds,
    ) -> Result<Self, OutboundError> {
        let is_plain = addresses.into_iter().all(|address| address.starts_with("http:"));
        let tls = if is_plain { None } else { Some(machine_connector()?) };
        Ok(Self { tls, bounds, reach: Reach::Any })
    }

    /// A client that connects only to these addresses.
    #[must_use]
    pub fn reaching(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    /// Sends the request, and reads the whole answer.
    ///
    /// # Errors
    /// Each step has its [`OutboundError`].
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, OutboundError> {
        let whole = self.bounds.whole;
        tokio::time::timeout(whole, self.exchange(request)).await.map_err(|_| OutboundError::Time(whole))?
    }

    /// Sends the request, and gives the answer before its body. Only the bound on connecting holds:
    /// the caller bounds the rest.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn open(&self, request: Request<Bytes>) -> Result<Response<AnswerBody>, OutboundError> {
        let url = Url::parse(&request.uri().to_string()).map_err(|_| OutboundError::Address)?;
        let way = Way { reach: self.reach, tls: self.tls.as_ref(), connect: self.bounds.connect };
        send(&url, request, &way).await
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, OutboundError> {
        let (parts, mut body) = self.open(request).await?.into_parts();
        match body.beginning(self.bounds.body_bytes).await? {
            (bytes, true) => Ok(Response::from_parts(parts, bytes.into())),
            (_, false) => Err(OutboundError::TooLong(self.bounds.body_bytes)),
        }
    }
}
