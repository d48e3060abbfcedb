//! The proxy that a manifest names.
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use wasmtime_wasi_http::Error;

use super::servers::{Certificate, Server, read_head};
use super::support::{Call, Granted};

/// A proxy that reports its requests, and connects every CONNECT to one server.
async fn proxy(goal: Option<std::net::SocketAddr>) -> (Server, tokio::sync::mpsc::Receiver<String>) {
    let (told, heard) = tokio::sync::mpsc::channel(8);
    let server = Server::raw(move |mut stream| {
        let told = told.clone();
        async move {
            let head = read_head(&mut stream).await;
            let connect = head.starts_with("CONNECT ");
            told.send(head).await.unwrap();
            let Some(goal) = goal.filter(|_| connect) else {
                let answer =
                    if connect { "HTTP/1.1 403 No\r\n\r\n" } else { "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi" };
                return stream.write_all(answer.as_bytes()).await.unwrap();
            };
            stream.write_all(b"HTTP/1.1 200 Connected\r\nx: y\r\n\r\n").await.unwrap();
            let mut further = TcpStream::connect(goal).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut further).await;
        }
    })
    .await;
    (server, heard)
}

fn through(proxy: &Server, rules: &str, ca_pem: &str) -> Call {
    let ca = if ca_pem.is_empty() { "" } else { "ca = [\"ca.pem\"]\n" };
    let lines = format!("http = [{rules}]\nproxy = \"http://{}\"\n{ca}", proxy.address);
    Granted { ca_pem: ca_pem.to_owned(), ..Granted::network(lines) }.call()
}

#[tokio::test]
async fn a_request_without_tls_names_its_server_to_the_proxy() {
    let (proxy, mut heard) = proxy(None).await;
    let mut call = through(&proxy, "\"http://api.example:8080\"", "");
    assert_eq!(call.get("http://api.example:8080/x?q=1").await.unwrap().body, "hi");
    let head = heard.recv().await.unwrap();
    assert!(head.starts_with("GET http://api.example:8080/x?q=1 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("host: api.example:8080\r\n"), "{head}");
}

#[tokio::test]
async fn a_request_with_tls_goes_through_the_proxy_to_the_server_that_proves_its_name() {
    let certificate = Certificate::of(&["api.example"]);
    let server = Server::echo_tls(&certificate, &[b"h2"]).await;
    let (proxy, mut heard) = proxy(Some(server.address)).await;
    let mut call = through(&proxy, "\"https://api.example\"", &certificate.authority_pem);
    let got = call.get("https://api.example/x").await.unwrap();
    assert!(got.body.starts_with("GET https://api.example/x HTTP/2.0\n"), "{}", got.body);
    assert_eq!(heard.recv().await.unwrap(), "CONNECT api.example:443 HTTP/1.1\r\nHost: api.example:443\r\n\r\n");

    let mut call = through(&proxy, "\"https://other.example\"", &certificate.authority_pem);
    let error = call.get("https://other.example/x").await.unwrap_err();
    assert!(matches!(error, Error::TlsCertificateError), "{error}");
}

#[tokio::test]
async fn rules_decide_as_ever_and_so_do_addresses_that_the_request_names() {
    let (proxy, _heard) = proxy(None).await;
    let mut call = through(&proxy, "\"http://*\"", "");
    for url in ["https://api.example/", "http://api.example:8080/", "http://10.0.0.1/", "http://169.254.169.254/"] {
        let error = call.get(url).await.unwrap_err();
        assert!(matches!(error, Error::HttpRequestDenied), "{url}: {error}");
    }
    assert_eq!((proxy.connections(), call.denied().len()), (0, 4));
}

#[tokio::test]
async fn a_proxy_that_refuses_is_no_server() {
    let (proxy, _heard) = proxy(None).await;
    let mut call = through(&proxy, "\"https://api.example\"", "");
    let error = call.get("https://api.example/x").await.unwrap_err();
    assert!(matches!(error, Error::DestinationUnavailable), "{error}");
}

#[tokio::test]
async fn a_proxy_that_answers_without_end_is_left() {
    let proxy = Server::raw(|mut stream| async move {
        read_head(&mut stream).await;
        while stream.write_all(b"HTTP/1.1 200 OK\r\nx: y\r\n").await.is_ok() {}
    })
    .await;
    let error = through(&proxy, "\"https://api.example\"", "").get("https://api.example/x").await.unwrap_err();
    assert!(matches!(error, Error::HttpResponseHeaderSectionSize(_)), "{error}");
}
