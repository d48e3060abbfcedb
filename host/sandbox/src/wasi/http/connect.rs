//! Making a connection for a permitted request: addresses, TCP, proxy, TLS, protocol.
//!
//! Refused addresses of a name are skipped; the request is denied if none is left. One refused
//! address among others must not refuse the rest: networks with address translation (DNS64) and
//! hosts with both a private and a public address answer that way. Only a checked address is ever
//! connected to.
use std::net::IpAddr;
use std::sync::Arc;

use hyper::client::conn::{http1, http2};
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use toolcell_policy::{AddressPermit, Host, HttpPermit, Scheme};
use toolcell_wall::doors::http_fault::HttpFault;
use toolcell_wall::doors::net_limits::NetLimits;

use super::client::ToolHttpClient;
use super::connections::{PooledConnection, RequestSender};
use super::framing::{ExpectedHead, ResponseHeads};
use super::{fault, fields, proxy, tls};
use crate::wasi::net::{CallNet, MeteredStream, dial};
use toolcell_framing::CheckedStream;
use toolcell_wall::denials::CallDenials;

/// Bytes that an HTTP/1.1 connection may have received but not read yet. Headers must fit, too.
const BUFFER_BYTES: usize = 64 << 10;
/// Bytes of a status line, in addition to the headers.
const STATUS_LINE_BYTES: usize = 1 << 10;
/// Window of one HTTP/2 response, in bytes: the most that a server sends ahead of the guest's
/// reading.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// Window of all responses on a connection.
const CONNECTION_WINDOW_BYTES: u32 = 512 << 10;
/// Header fields that hyper accepts by default.
const FIELDS_DEFAULT: usize = 100;

/// A connection below HTTP, of any kind.
pub(super) type HttpStream = Box<dyn HttpDuplex>;

/// Both directions in one.
pub(super) trait HttpDuplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> HttpDuplex for S {}

/// Makes the connections of one call.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) client: Arc<ToolHttpClient>,
    pub(super) net: Arc<CallNet>,
    pub(super) denials: CallDenials,
}

/// Runs HTTP/2's background work as tasks of the call.
#[derive(Clone)]
struct CallTasks(Arc<CallNet>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for CallTasks {
    fn execute(&self, task: F) {
        // A call that has ended runs nothing more, so its connection fails.
        let _ = self.0.spawn(task);
    }
}

impl Connector {
    /// A new connection for this request.
    ///
    /// Dropping the future abandons everything that it began.
    pub(super) async fn link(&self, permit: &HttpPermit) -> Result<PooledConnection, HttpFault> {
        let proxy = self.client.grants().network().proxy();
        let stream: HttpStream = match proxy {
            Some(proxy) => proxy::connect(proxy, permit, self).await?,
            None => Box::new(self.dial(self.addresses(permit).await?).await?),
        };
        if permit.ask().scheme() == Scheme::Http {
            return self.http1(stream, proxy.is_some()).await;
        }
        let stream = self.tls(stream, permit.host(), tls::BOTH).await?;
        if stream.get_ref().1.alpn_protocol() == Some(tls::ALPN_H2) {
            return self.http2(stream).await;
        }
        self.http1(stream, false).await
    }

    /// The addresses that the request may go to.
    pub(super) async fn addresses(&self, permit: &HttpPermit) -> Result<Vec<AddressPermit>, HttpFault> {
        let addresses = match permit.host() {
            Host::Addr(address) => vec![*address],
            Host::Name(name) => self.look_up(name).await?,
        };
        let mut denial = None;
        let mut permitted = Vec::new();
        for address in addresses {
            match permit.check_address(address) {
                Ok(address) => permitted.push(address),
                Err(refused) => {
                    denial.get_or_insert(refused);
                }
            }
        }
        if let Some(denial) = denial.filter(|_| permitted.is_empty()) {
            self.denials.add(denial);
            return Err(HttpFault::HttpRequestDenied);
        }
        Ok(permitted)
    }

    pub(super) async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, HttpFault> {
        let found = self.client.resolver().addresses(name, self.net.limits().connect).await;
        found.map_err(|error| fault::of_lookup(&error))
    }

    pub(super) async fn tls<S>(&self, stream: S, host: &Host, protocols: &[&[u8]]) -> Result<TlsStream<S>, HttpFault>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.client.tls().connect(stream, host, protocols).await.map_err(|error| fault::of_tls(&error))
    }

    pub(super) async fn dial(&self, permits: Vec<AddressPermit>) -> Result<TcpStream, HttpFault> {
        dial(permits).await.map_err(|error| fault::of_connect(&error))
    }

    async fn http1<S>(&self, stream: S, proxied: bool) -> Result<PooledConnection, HttpFault>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let NetLimits { headers, header_bytes, .. } = *self.net.limits();
        let mut builder = http1::Builder::new();
        let head_bytes = header_bytes.saturating_add(STATUS_LINE_BYTES);
        builder.max_header_size(head_bytes).max_buf_size(BUFFER_BYTES.max(head_bytes));
        if headers != FIELDS_DEFAULT {
            builder.max_headers(headers);
        }
        let expected = ExpectedHead::default();
        let metered = MeteredStream::new(stream, Arc::clone(&self.net));
        let stream = CheckedStream::new(metered, ResponseHeads::new(expected.clone()));
        let (sender, connection) =
            builder.handshake(TokioIo::new(stream)).await.map_err(|error| fault::of_hyper(&error, &self.net))?;
        self.drive(connection, RequestSender::One(sender, expected), proxied)
    }

    async fn http2<S>(&self, stream: S) -> Result<PooledConnection, HttpFault>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let NetLimits { headers, header_bytes, .. } = *self.net.limits();
        let mut builder = http2::Builder::new(CallTasks(Arc::clone(&self.net)));
        builder
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_send_buf_size(BUFFER_BYTES)
            .max_header_list_size(fields::list_bytes_max(headers, header_bytes));
        let stream = TokioIo::new(MeteredStream::new(stream, Arc::clone(&self.net)));
        let (sender, connection) =
            builder.handshake(stream).await.map_err(|error| fault::of_hyper(&error, &self.net))?;
        self.drive(connection, RequestSender::Many(sender), false)
    }

    fn drive<C>(&self, connection: C, sender: RequestSender, proxied: bool) -> Result<PooledConnection, HttpFault>
    where
        C: Future<Output = hyper::Result<()>> + Send + 'static,
    {
        // The requests on a connection show how it ends.
        let driver = self.net.spawn(async move { drop(connection.await) });
        driver.map(|driver| PooledConnection { sender, driver, proxied }).ok_or(HttpFault::ConnectionTerminated)
    }
}
