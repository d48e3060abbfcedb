//! Going through the proxy that a manifest names.
//!
//! Naming the proxy in the manifest permits connecting to it, at any kind of address; the
//! environment's proxies are never used. Rules decide on requests as usual. The proxy resolves
//! names, so its operator decides on their addresses. An address that a request names itself is
//! still checked here.
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use toolcell_policy::{Host, HttpPermit, ProxyScheme, ProxyUrl, Scheme};
use toolcell_wall::doors::http_fault::HttpFault;

use super::connect::{Connector, HttpStream};
use super::tls;

/// Bytes of a proxy's answer: a status line and a few headers.
const ANSWER_BYTES_MAX: usize = 8 << 10;

/// A connection to the proxy, and for HTTPS through it to the server.
pub(super) async fn connect(
    proxy: &ProxyUrl,
    permit: &HttpPermit,
    connector: &Connector,
) -> Result<HttpStream, HttpFault> {
    if matches!(permit.host(), Host::Addr(_)) {
        connector.addresses(permit).await?;
    }
    let addresses = match proxy.host() {
        Host::Addr(address) => vec![*address],
        Host::Name(name) => connector.look_up(name).await?,
    };
    let permits = addresses.into_iter().filter_map(|address| proxy.check_address(address)).collect();
    let stream = connector.dial(permits).await?;
    let mut stream: HttpStream = match proxy.scheme() {
        ProxyScheme::Http => Box::new(stream),
        ProxyScheme::Https => Box::new(connector.tls(stream, proxy.host(), tls::H1).await?),
    };
    if permit.ask().scheme() == Scheme::Https {
        tunnel(&mut stream, &format!("{}:{}", permit.host(), permit.port())).await?;
    }
    Ok(stream)
}

/// Asks the proxy for a connection to the server (RFC 9110, section 9.3.6).
async fn tunnel(stream: &mut HttpStream, authority: &str) -> Result<(), HttpFault> {
    let ask = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    let gone = |_| HttpFault::ConnectionTerminated;
    stream.write_all(ask.as_bytes()).await.map_err(gone)?;
    stream.flush().await.map_err(gone)?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= ANSWER_BYTES_MAX {
            return Err(HttpFault::HttpResponseHeaderSectionSize(None));
        }
        // Byte by byte, so that nothing of what the server sends next is read here.
        answer.push(stream.read_u8().await.map_err(gone)?);
    }
    match status(&answer) {
        Some(b'2') => Ok(()),
        Some(_) => Err(HttpFault::DestinationUnavailable),
        None => Err(HttpFault::HttpProtocolError),
    }
}

/// The first digit of the status code.
fn status(answer: &[u8]) -> Option<u8> {
    let code = answer.strip_prefix(b"HTTP/1.1 ").or_else(|| answer.strip_prefix(b"HTTP/1.0 "))?;
    code.first().copied().filter(u8::is_ascii_digit)
}
