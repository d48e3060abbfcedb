//! Servers for the tests: raw ones that send a test's exact bytes, and proper ones with HTTP/1.1,
//! HTTP/2 and TLS.
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// A server on a port of its own, stopped on drop.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Hands each connection to the test's own code.
    pub(super) async fn raw<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::raw_at("127.0.0.1:0".parse().unwrap(), serve).await
    }

    pub(super) async fn raw_at<F>(address: SocketAddr, serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                serving.spawn(serve(stream));
            }
        });
        Self { address, connections, _tasks: tasks }
    }

    /// Answers each request with these bytes, and closes the connection.
    pub(super) async fn saying(answer: impl AsRef<[u8]> + Clone + Send + Sync + 'static) -> Self {
        Self::raw(move |mut stream| {
            let answer = answer.clone();
            async move {
                read_head(&mut stream).await;
                // A client that has read enough closes first.
                let _ = stream.write_all(answer.as_ref()).await;
            }
        })
        .await
    }

    /// Answers each request with its own head and body as text.
    pub(super) async fn echo() -> Self {
        Self::raw(|stream| async move {
            let service = service_fn(echo);
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        })
        .await
    }

    /// An echo server with TLS, with the protocol that the client chooses.
    pub(super) async fn echo_tls(certificate: &Certificate, protocols: &[&[u8]]) -> Self {
        let acceptor = certificate.acceptor(protocols);
        Self::raw(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let many = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let stream = TokioIo::new(stream);
                let service = service_fn(echo);
                if many {
                    let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(stream, service).await;
                } else {
                    let _ = hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await;
                }
            }
        })
        .await
    }

    /// The number of connections that it had.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// `http://127.0.0.1:PORT/path`
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// The request as it came in.
async fn echo(request: Request<hyper::body::Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let mut text = format!("{} {} {:?}\n", parts.method, parts.uri, parts.version);
    for (name, value) in &parts.headers {
        text += &format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes()));
    }
    text += "\n";
    text += &String::from_utf8_lossy(&body);
    let mut response = Response::new(Full::new(text.into()));
    if let Some(authorization) = parts.headers.get("authorization") {
        response.headers_mut().insert("x-got", authorization.clone());
    }
    Ok(response)
}

/// Reads a request's head, to its empty line.
pub(super) async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

/// A server's certificate, and the authority that vouches for it.
pub(super) struct Certificate {
    pub(super) authority_pem: String,
    chain: Vec<rustls_pki_types::CertificateDer<'static>>,
    key: rustls_pki_types::PrivateKeyDer<'static>,
}

impl Certificate {
    pub(super) fn of(names: &[&str]) -> Self {
        let authority_key = rcgen::KeyPair::generate().unwrap();
        let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
        let issuer = rcgen::Issuer::new(authority, authority_key);
        let key = rcgen::KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let leaf = rcgen::CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        let key = rustls_pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        Self { authority_pem, chain: vec![leaf.der().clone()], key }
    }

    pub(super) fn acceptor(&self, protocols: &[&[u8]]) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}
