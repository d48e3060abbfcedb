//! An HTTP/2 server over TLS. It returns method, target and fields of a request, or a body of N
//! bytes for `/bytes/N`.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::Identity;

/// A running server. It ends with the test process.
#[derive(Debug)]
pub struct Http2Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Http2Server {
    /// A server on 127.0.0.1 that speaks only HTTP/2, with this identity.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn start(identity: &Identity) -> Self {
        let acceptor = TlsAcceptor::from(identity.server(&[b"h2"]));
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, acceptor.clone(), Arc::clone(&kept)));
                }
            });
        });
        Self { address, seen }
    }

    /// A URL of this server with this name.
    #[must_use]
    pub fn url_as(&self, name: &str, path: &str) -> String {
        format!("https://{name}:{}{path}", self.address.port())
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The requests received so far, each with `version`, `method`, `uri`, `headers` and `body`.
    #[must_use]
    pub fn seen(&self) -> Vec<Value> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(stream: tokio::net::TcpStream, acceptor: TlsAcceptor, seen: Arc<Mutex<Vec<Value>>>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(move |request| answer(request, Arc::clone(&seen)));
    // The test decides about a client that goes away.
    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(request: Request<Incoming>, seen: Arc<Mutex<Vec<Value>>>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let headers: Vec<(String, String)> = parts
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let told = json!({
        "version": format!("{:?}", parts.version),
        "method": parts.method.as_str(),
        "uri": parts.uri.to_string(),
        "headers": headers,
        "body": String::from_utf8_lossy(&body),
    });
    seen.lock().unwrap().push(told.clone());
    let bytes = parts.uri.path().strip_prefix("/bytes/").and_then(|count| count.parse().ok());
    let body = bytes.map_or_else(|| Bytes::from(told.to_string()), |count: usize| Bytes::from(vec![b'b'; count]));
    Ok(Response::new(Full::new(body)))
}
