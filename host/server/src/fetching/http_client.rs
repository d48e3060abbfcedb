//! HTTP requests of the host itself, for keys of issuers and to the collector of traces. Must not
//! hold: requests of guests, which the sandbox makes and policy decides on.
//!
//! Each request has a connection of its own, over HTTP/1.1. Redirects and proxies of the
//! environment are ignored, so a request reaches only the address that an operator named.

use std::net::{IpAddr, SocketAddr};
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
use toolcell_policy::AddressClass;

/// Bounds of a request.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Time to connect: name, TCP and TLS.
    pub connect: Duration,
    /// Time of the whole request, to the answer's last byte.
    pub whole: Duration,
    /// Most bytes of the answer's body.
    pub body_bytes: usize,
}

/// Most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 16;

/// Addresses that requests may go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Whatever the operator's address leads to.
    Any,
    /// Those of the internet, this machine and own networks; none of metadata services.
    Private,
    /// Those of the internet alone.
    Public,
}

/// Sends requests. Cheap to clone.
#[derive(Clone)]
pub struct HostHttpClient {
    tls: Option<TlsConnector>,
    bounds: Bounds,
    reach: Reach,
}

/// Reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    /// The address has no host, or a scheme other than `http` and `https`.
    #[error("the address has no host, or is neither http nor https")]
    Address,
    /// The machine has no root certificates, and the address is `https`.
    #[error("the machine has no certificate authorities: install them, or name a file in SSL_CERT_FILE")]
    NoRoots,
    /// Every address of the host is of a kind that is not connected to.
    #[error("{0} is {words}", words = .1.describe())]
    Refused(IpAddr, AddressClass),
    /// Looking up the name, TCP or TLS failed.
    #[error("no connection: {0}")]
    Connect(#[source] std::io::Error),
    /// The connection took too long.
    #[error("no connection within {0:?}")]
    ConnectTime(Duration),
    /// The answer took too long.
    #[error("it does not answer within {0:?}")]
    Time(Duration),
    /// The answer is not HTTP, or incomplete.
    #[error("{0}")]
    Http(#[source] hyper::Error),
    /// The answer is longer than allowed.
    #[error("it answers with more than {0} bytes")]
    TooLong(usize),
    /// The body of the answer was cut off.
    #[error("{0}")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl HostHttpClient {
    /// A client for these addresses. The machine's root certificates are read only if one is
    /// `https`.
    ///
    /// # Errors
    /// [`HttpClientError::NoRoots`] if they are needed and there are none.
    pub fn new<'a>(addresses: impl IntoIterator<Item = &'a str>, bounds: Bounds) -> Result<Self, HttpClientError> {
        let is_plain = addresses.into_iter().all(|address| address.starts_with("http:"));
        let tls = if is_plain { None } else { Some(TlsConnector::from(Arc::new(trusted()?))) };
        Ok(Self { tls, bounds, reach: Reach::Any })
    }

    /// A client that connects to these addresses alone. The address that was checked is the one
    /// that is connected to.
    #[must_use]
    pub fn reaching(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    /// Sends the request, and reads the whole answer.
    ///
    /// # Errors
    /// Each step has its [`HttpClientError`].
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpClientError> {
        let whole = self.bounds.whole;
        tokio::time::timeout(whole, self.exchange(request)).await.map_err(|_| HttpClientError::Time(whole))?
    }

    async fn exchange(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpClientError> {
        let target = RequestTarget::of(request.uri())?;
        let headers = request.headers_mut();
        headers.insert(HOST, target.authority.clone());
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(concat!("toolcell/", env!("CARGO_PKG_VERSION"))));
        *request.uri_mut() = target.path.clone();
        let request = request.map(Full::new);
        let connect = self.bounds.connect;
        let late = |_| HttpClientError::ConnectTime(connect);
        match tokio::time::timeout(connect, self.connect(&target)).await.map_err(late)?? {
            Connection::Plain(stream) => self.over(stream, request).await,
            Connection::Tls(stream) => self.over(*stream, request).await,
        }
    }

    async fn connect(&self, target: &RequestTarget) -> Result<Connection, HttpClientError> {
        let tcp = match self.reach {
            Reach::Any => TcpStream::connect((target.host.as_str(), target.port)).await,
            reach => dial(target, reach).await?,
        };
        let tcp = tcp.map_err(HttpClientError::Connect)?;
        if !target.is_secure {
            return Ok(Connection::Plain(tcp));
        }
        let tls = self.tls.as_ref().ok_or(HttpClientError::NoRoots)?;
        let name = ServerName::try_from(target.host.clone()).map_err(|_| HttpClientError::Address)?;
        let stream = tls.connect(name, tcp).await.map_err(HttpClientError::Connect)?;
        Ok(Connection::Tls(Box::new(stream)))
    }

    async fn over<S>(&self, stream: S, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, HttpClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(HttpClientError::Http)?;
        let body_bytes = self.bounds.body_bytes;
        let answer = async {
            let (parts, body) = sender.send_request(request).await.map_err(HttpClientError::Http)?.into_parts();
            let body = Limited::new(body, body_bytes).collect().await.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    HttpClientError::TooLong(body_bytes)
                } else {
                    HttpClientError::Body(error)
                }
            })?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        let mut answer = std::pin::pin!(answer);
        tokio::select! {
            answered = &mut answer => answered,
            // The pending answer resolves with the reason of the closed connection.
            _ = connection => answer.await,
        }
    }
}

impl HttpClientError {
    /// True if another attempt ends alike.
    pub const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(..) | Self::Address | Self::NoRoots)
    }
}

impl Reach {
    /// The kind of the address where it is not in reach.
    fn refused(self, address: IpAddr) -> Option<AddressClass> {
        let class = AddressClass::of(address)?;
        match class {
            // Such an address is as public as the one that packets end at.
            AddressClass::V4Mapped | AddressClass::Nat64 => {
                AddressClass::carried(address).map_or(Some(class), |carried| self.refused(carried))
            }
            AddressClass::Loopback | AddressClass::Private | AddressClass::SharedNat | AddressClass::UniqueLocal
                if self == Self::Private =>
            {
                None
            }
            class => Some(class),
        }
    }
}

/// Connects to the first address of the host that is in reach and answers.
async fn dial(target: &RequestTarget, reach: Reach) -> Result<std::io::Result<TcpStream>, HttpClientError> {
    let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await;
    let addresses: Vec<SocketAddr> = found.map_err(HttpClientError::Connect)?.take(ADDRESSES_MAX).collect();
    let mut last = std::io::Error::other("its name has no address");
    let mut refused = None;
    for address in addresses {
        if let Some(class) = reach.refused(address.ip()) {
            refused = Some(HttpClientError::Refused(address.ip(), class));
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(Ok(stream)),
            Err(error) => (last, refused) = (error, None),
        }
    }
    refused.map_or(Ok(Err(last)), Err)
}

enum Connection {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

/// Target of a request.
struct RequestTarget {
    is_secure: bool,
    host: String,
    port: u16,
    /// Value of the `Host` header.
    authority: HeaderValue,
    /// Path and query for the request line.
    path: Uri,
}

impl RequestTarget {
    fn of(address: &Uri) -> Result<Self, HttpClientError> {
        let is_secure = match address.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(HttpClientError::Address),
        };
        let authority = address.authority().ok_or(HttpClientError::Address)?;
        // Names and passwords in an address are never sent.
        let shown = authority.as_str().rsplit('@').next().unwrap_or_default();
        let path = address.path_and_query().map_or("/", PathAndQuery::as_str);
        Ok(Self {
            is_secure,
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(if is_secure { 443 } else { 80 }),
            authority: HeaderValue::from_str(shown).map_err(|_| HttpClientError::Address)?,
            path: path.parse().map_err(|_| HttpClientError::Address)?,
        })
    }
}

/// TLS with the machine's root certificates, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
fn trusted() -> Result<ClientConfig, HttpClientError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(HttpClientError::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpClientError::Connect(std::io::Error::other(error)))?;
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
            let target = RequestTarget::of(&address.parse().unwrap()).unwrap();
            assert_eq!((target.is_secure, target.host.as_str(), target.port), (secure, host, port), "{address}");
            assert_eq!((target.authority.to_str().unwrap(), target.path.to_string().as_str()), (authority, path));
        }
        for (address, private, public) in [
            ("1.1.1.1", true, true),
            ("127.0.0.1", true, false),
            ("10.0.0.1", true, false),
            ("fd00::1", true, false),
            ("::ffff:10.0.0.1", true, false),
            ("169.254.169.254", false, false),
            ("::ffff:169.254.169.254", false, false),
            ("fd00:ec2::254", false, false),
            ("0.0.0.0", false, false),
        ] {
            let reached =
                [Reach::Private, Reach::Public].map(|reach| reach.refused(address.parse().unwrap()).is_none());
            assert_eq!(reached, [private, public], "{address}");
        }
        for address in ["/keys", "ftp://example.com/keys", "example.com:80"] {
            assert!(RequestTarget::of(&address.parse().unwrap()).is_err(), "{address}");
        }
    }
}
