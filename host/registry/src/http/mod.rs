//! Bounded HTTP/1.1 to registries: one request on one connection, and redirects. Must not hold:
//! credentials, or what a registry's answers mean.
//!
//! Proxies of the environment are ignored: behind one, nothing here would know which address a
//! request goes to.
mod address;
mod answer;
mod tls;

use std::time::Duration;

use ::http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, HOST, LOCATION, USER_AGENT};
use ::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use url::{Host, Url};

pub(crate) use address::{is_loopback, shown};
use answer::Driver;
pub(crate) use answer::{Answer, Rate};

use crate::error::PullError;
use crate::settings::{RegistryOptions, RegistrySettings};
use address::Reach;

/// Most redirects that are followed: a registry sends to its store, and that to a mirror.
const REDIRECTS_MAX: usize = 5;

/// Bytes of an answer's head, and of its body that nobody has read yet. Signed addresses of stores
/// have some kilobytes.
const BUFFER_BYTES: usize = 64 << 10;

/// A request, of which no header names a host or a credential.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Time to the head of the answer, and of all redirects to it.
    pub(crate) within: Duration,
    /// Sent to the very server of `url`, and to no other.
    pub(crate) authorization: Option<HeaderValue>,
}

impl Ask {
    /// A request without a body.
    pub(crate) fn new(method: Method, url: Url, within: Duration) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: Bytes::new(), within, authorization: None }
    }

    /// The request with one more header.
    pub(crate) fn header(mut self, name: ::http::HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

/// Sends requests to the hosts of some options.
pub(crate) struct HttpClient {
    options: RegistryOptions,
    default: RegistrySettings,
    connectors: tls::Connectors,
}

impl HttpClient {
    pub(crate) fn new(options: RegistryOptions) -> Self {
        Self { options, default: RegistrySettings::default(), connectors: tls::Connectors::default() }
    }

    pub(crate) fn options(&self) -> &RegistryOptions {
        &self.options
    }

    /// The settings of a registry, by its name in a reference.
    pub(crate) fn of_registry(&self, registry: &str) -> &RegistrySettings {
        self.options.by_host.get(registry).unwrap_or(&self.default)
    }

    /// The settings of the host of an address.
    fn of_url(&self, url: &Url) -> &RegistrySettings {
        let host = url.host_str().unwrap_or_default();
        let host = if host == crate::client::HUB_HOST { crate::client::HUB } else { host };
        let with_port = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        let found = self.options.by_host.get(&with_port);
        let found = found.or_else(|| self.options.by_host.get(host).filter(|_| url.port().is_none()));
        found.unwrap_or(&self.default)
    }

    /// Sends a request, and follows redirects of one that only reads.
    ///
    /// # Errors
    /// [`PullError::Redirect`], and those of each exchange.
    pub(crate) async fn send(&self, ask: &Ask) -> Result<Answer, PullError> {
        let deadline = Instant::now() + ask.within;
        let follows = matches!(ask.method, Method::GET | Method::HEAD);
        let mut url = ask.url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.exchange(ask, &url, deadline).await?;
            let is_redirect = matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
            if !(is_redirect && follows) {
                return Ok(answer);
            }
            url = next(&url, &answer.headers)?;
        }
        let problem = "but that is the end of more redirects than are followed";
        Err(PullError::Redirect { host: shown(&ask.url), to: without_query(&url), problem })
    }

    async fn exchange(&self, ask: &Ask, url: &Url, deadline: Instant) -> Result<Answer, PullError> {
        let late = |_| PullError::Late { host: shown(url), step: "answer", within: ask.within };
        let exchange = async {
            let request = request(ask, url)?;
            match self.connect(url).await? {
                Connection::Plain(stream) => over(stream, request, url).await,
                Connection::Tls(stream) => over(*stream, request, url).await,
            }
        };
        let (response, driver) = tokio::time::timeout_at(deadline, exchange).await.map_err(late)??;
        Ok(Answer::new(response, url.clone(), driver, (deadline, ask.within)))
    }

    async fn connect(&self, url: &Url) -> Result<Connection, PullError> {
        let settings = self.of_url(url);
        let within = self.options.bounds.connect;
        if url.scheme() == "http" {
            let reach = match (settings.private, settings.plain_http) {
                (true, true) => Reach::Private,
                (false, true) => Reach::Public,
                (true, false) if is_loopback(url) => Reach::Loopback,
                (false, false) if is_loopback(url) => Reach::Public,
                _ => return Err(PullError::PlainHttp(shown(url))),
            };
            return Ok(Connection::Plain(address::connect(url, reach, within).await?));
        }
        let reach = if settings.private { Reach::Private } else { Reach::Public };
        let connector = self.connectors.get(&shown(url), settings.authorities.as_deref())?;
        let tcp = address::connect(url, reach, within).await?;
        let failed = |source| PullError::Connect { host: shown(url), source };
        let name = match url.host() {
            Some(Host::Domain(name)) => {
                ServerName::try_from(name.to_owned()).map_err(|error| failed(std::io::Error::other(error)))?
            }
            Some(Host::Ipv4(address)) => ServerName::from(std::net::IpAddr::from(address)),
            Some(Host::Ipv6(address)) => ServerName::from(std::net::IpAddr::from(address)),
            None => return Err(failed(std::io::Error::other("its address has no host"))),
        };
        let late = |_| PullError::Late { host: shown(url), step: "agree on TLS", within };
        let stream = tokio::time::timeout(within, connector.connect(name, tcp)).await.map_err(late)?.map_err(failed)?;
        Ok(Connection::Tls(Box::new(stream)))
    }
}

enum Connection {
    Plain(tokio::net::TcpStream),
    Tls(Box<tokio_rustls::client::TlsStream<tokio::net::TcpStream>>),
}

/// True if both addresses are of one server: scheme, host and port.
pub(crate) fn is_same_server(a: &Url, b: &Url) -> bool {
    (a.scheme(), a.host(), a.port_or_known_default()) == (b.scheme(), b.host(), b.port_or_known_default())
}

/// The address that a redirect leads to.
pub(crate) fn next(url: &Url, headers: &HeaderMap) -> Result<Url, PullError> {
    let refuse = |to: &str, problem| Err(PullError::Redirect { host: shown(url), to: to.to_owned(), problem });
    let location = headers.get(LOCATION).and_then(|location| location.to_str().ok());
    let Some(mut next) = location.and_then(|location| url.join(location).ok()) else {
        return refuse("no address", "which cannot be followed");
    };
    let to = without_query(&next);
    if !matches!(next.scheme(), "http" | "https") || next.host().is_none() {
        return refuse(&to, "which is neither http nor https");
    }
    if next.scheme() == "http" && url.scheme() == "https" {
        return refuse(&to, "which is not https");
    }
    if !next.username().is_empty() || next.password().is_some() {
        return refuse(&to, "which names a user");
    }
    next.set_fragment(None);
    Ok(next)
}

/// The address without what may be secret in it.
fn without_query(url: &Url) -> String {
    const CHARS_SHOWN: usize = 200;
    let text = format!("{}://{}{}", url.scheme(), shown(url), url.path());
    text.chars().take(CHARS_SHOWN).collect()
}

fn request(ask: &Ask, url: &Url) -> Result<Request<Full<Bytes>>, PullError> {
    let wrong = |problem: String| PullError::Broken { host: shown(url), problem };
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let mut request = Request::new(Full::new(ask.body.clone()));
    *request.method_mut() = ask.method.clone();
    *request.uri_mut() = path.parse().map_err(|_| wrong("its address has another form".to_owned()))?;
    let headers = request.headers_mut();
    headers.clone_from(&ask.headers);
    let host = HeaderValue::from_str(&shown(url)).map_err(|error| wrong(error.to_string()))?;
    headers.insert(HOST, host);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("toolcell/", env!("CARGO_PKG_VERSION"))));
    if let Some(authorization) = ask.authorization.as_ref().filter(|_| is_same_server(&ask.url, url)) {
        headers.insert(AUTHORIZATION, authorization.clone());
    }
    Ok(request)
}

async fn over<S>(stream: S, request: Request<Full<Bytes>>, url: &Url) -> Result<(Response<Incoming>, Driver), PullError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken = |error: hyper::Error| PullError::Broken { host: shown(url), problem: error.to_string() };
    let (mut sender, connection) =
        http1::Builder::new().max_buf_size(BUFFER_BYTES).handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // The end of the connection shows in its answer.
    let driver = Driver::new(tokio::spawn(async move { drop(connection.await) }));
    let response = sender.send_request(request).await.map_err(broken)?;
    // Nobody asks for a change of the protocol.
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(PullError::Broken { host: shown(url), problem: "it changes the protocol".to_owned() });
    }
    Ok((response, driver))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_read_with_care() {
        for (from, location, expected) in [
            ("https://a.example/v2/x", "https://b.example/y?z#f", Ok("https://b.example/y?z")),
            ("https://a.example/v2/x", "/y", Ok("https://a.example/y")),
            ("https://a.example/v2/x", "y", Ok("https://a.example/v2/y")),
            ("http://a.example/", "https://a.example/", Ok("https://a.example/")),
            ("https://a.example/", "http://a.example/?secret", Err("which is not https")),
            ("https://a.example/", "https://a:b@b.example/", Err("which names a user")),
            ("https://a.example/", "file:///etc/passwd", Err("neither http nor https")),
            ("https://a.example/", "https://", Err("cannot be followed")),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, location.parse().unwrap());
            match (next(&Url::parse(from).unwrap(), &headers), expected) {
                (Ok(next), Ok(expected)) => assert_eq!(next.as_str(), expected),
                (Err(error), Err(expected)) => {
                    assert!(error.to_string().contains(expected), "{location}: {error}");
                    assert!(!error.to_string().contains("secret"));
                }
                (found, _) => panic!("{location}: {found:?}"),
            }
        }
    }

    #[test]
    fn settings_are_those_of_host_and_port() {
        let of = |private| RegistrySettings { private, ..RegistrySettings::default() };
        let by_host = [("a.example", true), ("b.example:5000", true), ("docker.io", true)];
        let by_host = by_host.into_iter().map(|(host, private)| (host.to_owned(), of(private))).collect();
        let client = HttpClient::new(RegistryOptions { by_host, ..RegistryOptions::default() });
        for (url, expected) in [
            ("https://a.example/x", true),
            ("https://a.example:443/x", true),
            ("https://a.example:8443/x", false),
            ("https://b.example/", false),
            ("https://b.example:5000/", true),
            ("https://registry-1.docker.io/", true),
            ("https://x.a.example/", false),
        ] {
            assert_eq!(client.of_url(&Url::parse(url).unwrap()).private, expected, "{url}");
        }
    }
}
