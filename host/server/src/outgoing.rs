//! Requests of the host's own: for issuers' keys, and to the collector of traces. Must not hold: what guests ask for, whose
//! requests the sandbox makes and policy decides on.
//!
//! Each request has a connection of its own, over HTTP/1.1. Redirects are not followed and proxies of the environment are
//! not asked, so that nothing but the address that an operator named is reached.

use std::sync::Arc;
use std::time::Duration;

use ::http::header::{CONNECTION, HOST, USER_AGENT};
use ::http::uri::{PathAndQuery, Scheme};
use ::http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// What a request may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The connection: name, TCP and TLS.
    pub connect: Duration,
    /// All of it, to the answer's last byte.
    pub whole: Duration,
    /// Bytes of the answer's body.
    pub body_bytes: usize,
}

/// Sends requests. Cheap to clone.
#[derive(Clone)]
pub struct Outgoing {
    tls: Option<TlsConnector>,
    bounds: Bounds,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum OutgoingError {
    /// It names no host, or neither `http` nor `https`.
    #[error("this is no address that can be asked")]
    Address,
    /// The machine has no roots, and the address is one of `https`.
    #[error("the machine has no certificate authorities: install them, or name a file in SSL_CERT_FILE")]
    NoRoots,
    /// Name, TCP or TLS.
    #[error("it is not reached: {0}")]
    Connect(#[source] std::io::Error),
    /// The connection took too long.
    #[error("it is not reached within {0:?}")]
    ConnectTime(Duration),
    /// The answer took too long.
    #[error("it does not answer within {0:?}")]
    Time(Duration),
    /// What came is no answer of HTTP, or half of one.
    #[error("{0}")]
    Http(#[source] hyper::Error),
    /// The answer is longer than it may be.
    #[error("it answers with more than {0} bytes")]
    TooLong(usize),
    /// The body of an answer was cut.
    #[error("{0}")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Outgoing {
    /// A client for these addresses. The machine's roots are read only where one of them is `https`.
    ///
    /// # Errors
    /// [`OutgoingError::NoRoots`] where they are needed and there are none.
    pub fn new<'a>(addresses: impl IntoIterator<Item = &'a str>, bounds: Bounds) -> Result<Self, OutgoingError> {
        let is_plain = addresses.into_iter().all(|address| address.starts_with("http:"));
        let tls = if is_plain { None } else { Some(TlsConnector::from(Arc::new(trusted()?))) };
        Ok(Self { tls, bounds })
    }

    /// The answer to this request, read whole.
    ///
    /// # Errors
    /// Each step has its [`OutgoingError`].
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, OutgoingError> {
        let whole = self.bounds.whole;
        tokio::time::timeout(whole, self.exchange(request)).await.map_err(|_| OutgoingError::Time(whole))?
    }

    async fn exchange(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, OutgoingError> {
        let place = Place::of(request.uri())?;
        let headers = request.headers_mut();
        headers.insert(HOST, place.authority.clone());
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(concat!("toolcell/", env!("CARGO_PKG_VERSION"))));
        *request.uri_mut() = place.path.clone();
        let request = request.map(Full::new);
        let connect = self.bounds.connect;
        let late = |_| OutgoingError::ConnectTime(connect);
        match tokio::time::timeout(connect, self.connect(&place)).await.map_err(late)?? {
            Wire::Plain(stream) => self.over(stream, request).await,
            Wire::Tls(stream) => self.over(*stream, request).await,
        }
    }

    async fn connect(&self, place: &Place) -> Result<Wire, OutgoingError> {
        let tcp = TcpStream::connect((place.host.as_str(), place.port)).await.map_err(OutgoingError::Connect)?;
        if !place.is_secure {
            return Ok(Wire::Plain(tcp));
        }
        let tls = self.tls.as_ref().ok_or(OutgoingError::NoRoots)?;
        let name = ServerName::try_from(place.host.clone()).map_err(|_| OutgoingError::Address)?;
        let stream = tls.connect(name, tcp).await.map_err(OutgoingError::Connect)?;
        Ok(Wire::Tls(Box::new(stream)))
    }

    async fn over<S>(&self, stream: S, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, OutgoingError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(OutgoingError::Http)?;
        let body_bytes = self.bounds.body_bytes;
        let answer = async {
            let (parts, body) = sender.send_request(request).await.map_err(OutgoingError::Http)?.into_parts();
            let body = Limited::new(body, body_bytes).collect().await.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    OutgoingError::TooLong(body_bytes)
                } else {
                    OutgoingError::Body(error)
                }
            })?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        let mut answer = std::pin::pin!(answer);
        tokio::select! {
            answered = &mut answer => answered,
            // The answer knows by now what ended the connection.
            _ = connection => answer.await,
        }
    }
}

enum Wire {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

/// Where a request goes.
struct Place {
    is_secure: bool,
    host: String,
    port: u16,
    /// As `Host` says it.
    authority: HeaderValue,
    /// What the request line says.
    path: Uri,
}

impl Place {
    fn of(address: &Uri) -> Result<Self, OutgoingError> {
        let is_secure = match address.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(OutgoingError::Address),
        };
        let authority = address.authority().ok_or(OutgoingError::Address)?;
        // Names and passwords in an address are never sent.
        let shown = authority.as_str().rsplit('@').next().unwrap_or_default();
        let path = address.path_and_query().map_or("/", PathAndQuery::as_str);
        Ok(Self {
            is_secure,
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(if is_secure { 443 } else { 80 }),
            authority: HeaderValue::from_str(shown).map_err(|_| OutgoingError::Address)?,
            path: path.parse().map_err(|_| OutgoingError::Address)?,
        })
    }
}

/// TLS with the machine's roots, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
fn trusted() -> Result<ClientConfig, OutgoingError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(OutgoingError::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| OutgoingError::Connect(std::io::Error::other(error)))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_goes_where_its_address_says_and_says_nothing_else_of_it() {
        for (address, secure, host, port, authority, path) in [
            ("http://127.0.0.1:4318/v1/traces", false, "127.0.0.1", 4318, "127.0.0.1:4318", "/v1/traces"),
            ("https://login.example.com", true, "login.example.com", 443, "login.example.com", "/"),
            (
                "https://a:b@login.example.com:8443/x?y=z",
                true,
                "login.example.com",
                8443,
                "login.example.com:8443",
                "/x?y=z",
            ),
            ("http://[::1]/keys", false, "::1", 80, "[::1]", "/keys"),
        ] {
            let place = Place::of(&address.parse().unwrap()).unwrap();
            assert_eq!((place.is_secure, place.host.as_str(), place.port), (secure, host, port), "{address}");
            assert_eq!((place.authority.to_str().unwrap(), place.path.to_string().as_str()), (authority, path));
        }
        for address in ["/keys", "ftp://example.com/keys", "example.com:80"] {
            assert!(Place::of(&address.parse().unwrap()).is_err(), "{address}");
        }
    }
}
