//! HTTP endpoint of the metrics page, with its bounds.
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::runtime::Handle;
use tokio::time::timeout;
use toolcell_mcp::http::OriginPolicy;
use toolcell_policy::{AdvisedFault, ListenAddress, MetricsPolicy};

use super::page::Page;
use super::plain;
use crate::error::StartError;
use crate::listening::places::{ConnectionPlaces, PlaceBounds};
use crate::listening::small::{BoundSocket, HeadBounds, Visit, answer_one, serve_all};
use crate::owned_task::OwnedTask;

/// Path of the page.
const PATH: &str = "/metrics";

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// Media type of the page for clients that do not accept OpenMetrics.
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The type that scrapers with OpenMetrics accept.
const OPEN_METRICS_NAME: &str = "application/openmetrics-text";

/// Connections at a time. Those with a request are kept: enough for two scrapers and some people.
const PLACES: PlaceBounds = PlaceBounds { strangers: 64, kept: 8 };

/// Bounds of a request's head: a scraper sends about ten fields. hyper accepts no bound below 8
/// KiB.
const HEAD: HeadBounds = HeadBounds { fields_max: 64, bytes_max: 8 * 1_024, time: Duration::from_secs(5) };

/// Time of a connection, which has one request: as long as scrapers wait by default.
const CONNECTION_TIME: Duration = Duration::from_secs(10);

/// A bound socket for the page.
pub struct BoundPage {
    socket: BoundSocket,
    /// Tools with their own series, at most.
    pub tools: usize,
    /// Callers with their own series, at most; 0: none are counted.
    pub callers: usize,
}

impl BoundPage {
    /// Binds the address of the command line, or else of the manifest; `None` if neither has one.
    pub fn open(
        arg: Option<SocketAddr>,
        policy: Option<&MetricsPolicy>,
        insecure_public: bool,
    ) -> Result<Option<Self>, StartError> {
        let Some(address) = arg.or_else(|| policy?.listen()) else { return Ok(None) };
        if let Some(fault) = public_fault(address, policy).filter(|_| !insecure_public) {
            return Err(fault.into());
        }
        let hosts = policy.map(MetricsPolicy::hosts).unwrap_or_default();
        let socket = BoundSocket::bind("the metrics", address, hosts)?;
        let tools = policy.map_or_else(|| MetricsPolicy::default().tools(), MetricsPolicy::tools);
        let callers = policy.map_or(0, MetricsPolicy::callers);
        Ok(Some(Self { socket, tools, callers }))
    }

    /// URL of the page, for people.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.socket.address)
    }

    pub fn serve(self, page: Page, runtime: &Handle) -> std::io::Result<OwnedTask> {
        let _inside = runtime.enter();
        let asked = Arc::new(PageServer { page: Arc::new(page), doors: self.socket.doors.clone() });
        let socket = self.socket.listener()?;
        Ok(OwnedTask(runtime.spawn(async move {
            let converse = |visit| {
                let asked = Arc::clone(&asked);
                // A connection that takes longer is closed without a message.
                async move { timeout(CONNECTION_TIME, asked.converse(visit)).await.err().and(None) }
            };
            serve_all(socket, &ConnectionPlaces::new(PLACES), converse).await
        })))
    }
}

/// Why this address is refused: other machines reach it, and the policy does not say so.
pub fn public_fault(address: SocketAddr, policy: Option<&MetricsPolicy>) -> Option<AdvisedFault> {
    let is_refused = ListenAddress::Tcp(address).is_public() && !policy.is_some_and(MetricsPolicy::public);
    is_refused.then(|| {
        let problem = format!("the metrics at {address} could be read from other machines, by anyone");
        let hint =
            "listen on 127.0.0.1, or write public = true into [metrics] where something else keeps strangers out";
        AdvisedFault::new(problem, hint)
    })
}

/// What requests are answered from.
struct PageServer {
    page: Arc<Page>,
    doors: OriginPolicy,
}

impl PageServer {
    /// One request, one response.
    async fn converse(self: Arc<Self>, visit: Visit) {
        let Visit { stream, place, .. } = visit;
        let Ok(local) = stream.local_addr() else { return };
        let respond = |request| {
            place.keep();
            let asked = Arc::clone(&self);
            async move { asked.respond(request, local.ip()).await }
        };
        answer_one(stream, HEAD, respond).await;
    }

    async fn respond(&self, request: Request<Incoming>, local: IpAddr) -> Response<String> {
        let (parts, _) = request.into_parts();
        if !self.doors.allows(&parts, Some(local)) {
            return text_response(StatusCode::FORBIDDEN, "this server does not answer to the requested host\n");
        }
        if parts.uri.path() != PATH {
            return text_response(StatusCode::NOT_FOUND, "the page is /metrics\n");
        }
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, "the page can only be read\n");
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
            _ => text_response(StatusCode::INTERNAL_SERVER_ERROR, "the page could not be made\n"),
        }
    }
}

fn text_response(status: StatusCode, text: &str) -> Response<String> {
    let mut response = Response::new(text.to_owned());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}
