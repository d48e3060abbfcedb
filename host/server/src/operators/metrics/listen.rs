//! HTTP endpoint of the metrics page, with its bounds. Must not hold: figures.
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use toolcell_mcp::http::OriginPolicy;
use toolcell_policy::{ListenAddress, MetricsPolicy};

use super::page::Page;
use super::plain;
use crate::error::StartError;
use crate::http::listener_process::cannot_listen;

/// Path of the page.
const PATH: &str = "/metrics";

/// Media type of the page.
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// Media type of the page for those who do not accept that.
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The type that scrapers name which take OpenMetrics.
const OPEN_METRICS_NAME: &str = "application/openmetrics-text";

/// Most connections at a time; more wait. Enough for two scrapers and some people.
const CONNECTIONS_MAX: usize = 8;

/// Most header fields of a request. A scraper sends about ten.
const FIELDS_MAX: usize = 64;

/// Most bytes of a request's head: the smallest bound that hyper takes.
const HEAD_BYTES_MAX: usize = 8 * 1_024;

/// Time to receive the head.
const HEAD_TIME: Duration = Duration::from_secs(5);

/// Time of a connection, which has one request: as long as scrapers wait by default.
const CONNECTION_TIME: Duration = Duration::from_secs(10);

/// Pause after accepting failed, for example without free descriptors.
const ACCEPT_RESTS: Duration = Duration::from_millis(100);

/// A bound socket for the page.
pub struct BoundPage {
    socket: std::net::TcpListener,
    address: SocketAddr,
    doors: OriginPolicy,
    tools: usize,
}

/// The served page; it ends when dropped.
pub struct ServedPage(JoinHandle<()>);

impl Drop for ServedPage {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl BoundPage {
    /// Binds the address of the command line, or else of the manifest; `None` if neither has one.
    pub fn open(
        arg: Option<SocketAddr>,
        policy: Option<&MetricsPolicy>,
        insecure_public: bool,
    ) -> Result<Option<Self>, StartError> {
        let Some(address) = arg.or_else(|| policy?.listen()) else { return Ok(None) };
        let may_be_public = insecure_public || policy.is_some_and(MetricsPolicy::public);
        if ListenAddress::Tcp(address).is_public() && !may_be_public {
            let message = format!("the metrics at {address} could be read from other machines, by anyone");
            let hint =
                "listen on 127.0.0.1, or write public = true into [metrics] where something else keeps strangers out";
            return Err(StartError::refused(message).hint_if(Some(hint)));
        }
        let wrong = |error: std::io::Error| {
            let reason = cannot_listen(address, &error);
            StartError::refused(format!("the metrics cannot be served at {address}: {reason}"))
        };
        let hosts = policy.map(MetricsPolicy::hosts).unwrap_or_default();
        let doors = hosts.iter().try_fold(OriginPolicy::default(), |doors, host| doors.host(host));
        let doors = doors.map_err(|error| StartError::refused(error.to_string()))?;
        let socket = std::net::TcpListener::bind(address).map_err(wrong)?;
        socket.set_nonblocking(true).map_err(wrong)?;
        let address = socket.local_addr().map_err(wrong)?;
        let tools = policy.map_or_else(|| MetricsPolicy::default().tools(), MetricsPolicy::tools);
        Ok(Some(Self { socket, address, doors, tools }))
    }

    /// URL of the page, for people.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Tools with series of their own, at most.
    pub fn tools(&self) -> usize {
        self.tools
    }

    /// Starts serving the page.
    pub fn serve(self, page: Page, runtime: &Handle) -> std::io::Result<ServedPage> {
        let _inside = runtime.enter();
        let socket = TcpListener::from_std(self.socket)?;
        let asked = Arc::new(PageServer { page: Arc::new(page), doors: self.doors });
        Ok(ServedPage(runtime.spawn(accept(socket, asked))))
    }
}

/// State that requests are answered from.
struct PageServer {
    page: Arc<Page>,
    doors: OriginPolicy,
}

async fn accept(socket: TcpListener, asked: Arc<PageServer>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match socket.accept().await {
            Ok((stream, _)) => {
                let asked = Arc::clone(&asked);
                drop(tokio::spawn(async move {
                    // A connection that takes longer is closed without a message.
                    let _ = tokio::time::timeout(CONNECTION_TIME, converse(stream, asked)).await;
                    drop(place);
                }));
            }
            Err(_) => tokio::time::sleep(ACCEPT_RESTS).await,
        }
    }
}

/// One request, one response.
async fn converse(stream: TcpStream, asked: Arc<PageServer>) {
    let Ok(local) = stream.local_addr() else { return };
    let respond = service_fn(move |request: Request<Incoming>| {
        let asked = Arc::clone(&asked);
        async move { Ok::<_, Infallible>(asked.respond(request, local.ip()).await) }
    });
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(FIELDS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false);
    // A client may break off; that is no error.
    let _ = protocol.serve_connection(TokioIo::new(stream), respond).await;
}

impl PageServer {
    async fn respond(&self, request: Request<Incoming>, local: IpAddr) -> Response<String> {
        let (parts, _) = request.into_parts();
        if !self.doors.allows(&parts, Some(local)) {
            return said(StatusCode::FORBIDDEN, "this server does not go by the host that was asked for\n");
        }
        if parts.uri.path() != PATH {
            return said(StatusCode::NOT_FOUND, "the page is /metrics\n");
        }
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            let mut response = said(StatusCode::METHOD_NOT_ALLOWED, "the page can only be read\n");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let accepted = parts.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let takes_open_metrics = accepted.into_iter().any(|value| value.contains(OPEN_METRICS_NAME));
        let page = Arc::clone(&self.page);
        // With many tools this takes milliseconds, and this thread drives the timers of guests.
        let made = tokio::task::spawn_blocking(move || {
            let text = page.text()?;
            Ok::<_, std::fmt::Error>(if takes_open_metrics { text } else { plain::of(&text) })
        });
        match made.await {
            Ok(Ok(text)) => {
                let mut response = Response::new(text);
                let kind = if takes_open_metrics { OPEN_METRICS } else { PLAIN };
                response.headers_mut().insert(CONTENT_TYPE, kind);
                response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
                response
            }
            _ => said(StatusCode::INTERNAL_SERVER_ERROR, "the page could not be made\n"),
        }
    }
}

fn said(status: StatusCode, text: &str) -> Response<String> {
    let mut response = Response::new(text.to_owned());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}
