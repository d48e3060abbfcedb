//! One request on one connection, and its answer while it comes.
use std::future::Future;
use std::pin::{Pin, pin};

use bytes::Bytes;
use http::header::{CONNECTION, HOST, USER_AGENT};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use url::{Position, Url};

use crate::connect::connect;
use crate::{OutboundError, Way, shown};

/// Bytes of an answer's head, and of unread body. Signed addresses of stores have some kilobytes.
const BUFFER_BYTES: usize = 64 << 10;

/// The body of an answer, which is read on demand.
pub struct AnswerBody {
    body: Incoming,
    wire: ExchangeWire,
}

/// The connection, until it ends.
struct ExchangeWire(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl ExchangeWire {
    /// Drives the connection while it waits for the work.
    async fn drive<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        if let Some(connection) = &mut self.0 {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = connection => self.0 = None,
            }
        }
        // It resolves with what came before the end of the connection, or with the reason for the
        // end.
        work.await
    }
}

/// Sends a request to the server of this address; nothing in it names another. Dropping the answer
/// closes the connection.
///
/// # Errors
/// Each step has its [`OutboundError`].
pub async fn send(url: &Url, request: Request<Bytes>, way: &Way<'_>) -> Result<Response<AnswerBody>, OutboundError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(OutboundError::Address);
    }
    let mut request = request.map(Full::new);
    // Names and passwords in an address are never sent.
    *request.uri_mut() = url[Position::BeforePath..Position::AfterQuery].parse().map_err(|_| OutboundError::Address)?;
    let host = HeaderValue::from_str(&shown(url)).map_err(|_| OutboundError::Address)?;
    let headers = request.headers_mut();
    headers.insert(HOST, host);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(concat!("toolcell/", env!("CARGO_PKG_VERSION"))));
    let stream = connect(url, way).await?;
    let mut protocol = http1::Builder::new();
    let shaken = protocol.max_buf_size(BUFFER_BYTES).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(OutboundError::Http)?;
    // The end of the connection shows in its answer.
    let mut wire = ExchangeWire(Some(Box::pin(async move { drop(connection.await) })));
    let response = wire.drive(sender.send_request(request)).await.map_err(OutboundError::Http)?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(OutboundError::Upgrade);
    }
    Ok(response.map(|body| AnswerBody { body, wire }))
}

impl AnswerBody {
    /// The next data; trailers are skipped. Cancel-safe.
    ///
    /// # Errors
    /// [`OutboundError::Http`] where it breaks off.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, OutboundError> {
        while let Some(frame) = self.wire.drive(self.body.frame()).await {
            if let Ok(data) = frame.map_err(OutboundError::Http)?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The beginning, at most this many bytes, and whether that is all of it.
    ///
    /// # Errors
    ///
    /// [`OutboundError::Http`] where it breaks off.
    pub async fn beginning(&mut self, bytes_max: usize) -> Result<(Vec<u8>, bool), OutboundError> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.piece().await? {
            let room = bytes_max.saturating_sub(bytes.len());
            bytes.extend_from_slice(piece.get(..room).unwrap_or(&piece));
            if piece.len() > room {
                return Ok((bytes, false));
            }
        }
        Ok((bytes, true))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::Uri;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::{OutboundBounds, OutboundClient, Reach};

    const WAY: Way<'static> = Way { reach: Reach::Loopback, tls: None, connect: Duration::from_mins(1) };

    /// The head of the request as sent.
    async fn head(listener: &TcpListener) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        String::from_utf8(head).unwrap()
    }

    #[tokio::test]
    async fn a_server_gets_the_path_and_its_own_name_and_nothing_else_of_the_address() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        for (address, line) in [
            (format!("http://{at}/v1/traces"), "GET /v1/traces HTTP/1.1"),
            (format!("http://{at}"), "GET / HTTP/1.1"),
            (format!("http://name:password@{at}/x?y=z#part"), "GET /x?y=z HTTP/1.1"),
        ] {
            let url = Url::parse(&address).unwrap();
            let (head, answer) = tokio::join!(head(&listener), send(&url, Request::new(Bytes::new()), &WAY));
            assert_eq!(answer.unwrap().status(), StatusCode::NO_CONTENT, "{address}");
            assert_eq!(head.lines().next(), Some(line), "{address}");
            let hosts: Vec<&str> = head.lines().filter_map(|line| line.strip_prefix("host: ")).collect();
            assert_eq!(hosts, [at.to_string()], "{head}");
            assert!(!head.contains("password") && !head.to_lowercase().contains("authorization"), "{head}");
        }
    }

    #[tokio::test]
    async fn nothing_is_sent_to_an_address_that_is_not_http() {
        let bounds = OutboundBounds { connect: WAY.connect, whole: WAY.connect, body_bytes: 1 };
        let client = OutboundClient::new(["http://127.0.0.1"], bounds).unwrap();
        for address in ["/keys", "ftp://example.com/keys", "example.com:80"] {
            let mut request = Request::new(Bytes::new());
            *request.uri_mut() = address.parse::<Uri>().unwrap();
            let refused = client.send(request).await.unwrap_err();
            assert!(matches!(refused, OutboundError::Address), "{address}: {refused}");
        }
    }
}
