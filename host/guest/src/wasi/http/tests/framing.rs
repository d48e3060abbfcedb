//! Responses that two readers may understand as different messages: refused, and the next request
//! works.
//!
//! Promise: no request is smuggled.
use wasmtime_wasi_http::Error;

use super::servers::Server;
use super::support::Granted;

fn granted(server: &Server) -> Granted {
    Granted::network(format!("http = [\"http://{0}\"]\nprivate = [\"{0}\"]\n", server.address))
}

#[tokio::test]
async fn a_response_with_two_ends_is_refused() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 12\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\n\r\nhi",
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx-a: b\ncontent-length: 2\r\n\r\nhi",
        "HTTP/1.1 200 OK\ncontent-length: 2\n\nhi",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    ] {
        let server = Server::saying(answer).await;
        let mut call = granted(&server).call();
        let error = call.get(&server.url("/")).await.unwrap_err();
        assert!(matches!(error, Error::HttpProtocolError), "{answer:?}: {error}");
        let proper = Server::echo().await;
        assert!(granted(&proper).call().get(&proper.url("/")).await.is_ok());
    }
}

#[tokio::test]
async fn trailers_do_not_say_where_a_message_ends() {
    for field in ["content-length: 2", "transfer-encoding: chunked"] {
        let answer = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n{field}\r\n\r\n");
        let server = Server::saying(answer).await;
        let got = granted(&server).call().get(&server.url("/")).await;
        let is_refused = match &got {
            Ok(got) => got.trailers.as_ref().is_none_or(http::HeaderMap::is_empty),
            Err(error) => matches!(error, Error::HttpProtocolError),
        };
        assert!(is_refused, "{field}: {got:?}");
    }
}
