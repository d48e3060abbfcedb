//! The HTTP requests of one call: the decision on each, and the limits that need no waiting. Must
//! not hold: making requests.
use std::sync::Arc;

use http::{Request, Response};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::client::HttpClient;
use super::connect::Connector;
use super::connections::IdleConnections;
use super::exchange::{Exchange, PhaseLimits, Worker};
use super::{fault, fields};
use crate::wasi::net::CallNet;
use toolcell_wall::denials::Denials;

/// The HTTP requests of one call. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Requests {
    connector: Connector,
    idle: Arc<IdleConnections>,
}

/// A request under way.
pub(crate) type Sending = Box<dyn Future<Output = Result<(Response<WasiBody>, Worker), Error>> + Send>;

impl Requests {
    pub(crate) fn new(client: Arc<HttpClient>, net: Arc<CallNet>, denials: Denials) -> Self {
        Self { connector: Connector { client, net, denials }, idle: Arc::default() }
    }

    /// Makes the request, where it is permitted.
    pub(crate) fn send(&self, request: Request<WasiBody>, options: Option<RequestOptions>) -> Sending {
        match self.begin(&request, options) {
            Ok(exchange) => Box::new(exchange.run(request)),
            Err(error) => Box::new(std::future::ready(Err(error))),
        }
    }

    /// Decides on the request, and collects everything for making it.
    fn begin(&self, request: &Request<WasiBody>, options: Option<RequestOptions>) -> Result<Exchange, Error> {
        let Connector { client, net, denials } = &self.connector;
        if !net.request() {
            return Err(Error::ConnectionLimitReached);
        }
        let uri = request.uri();
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let scheme = uri.scheme_str().unwrap_or_default();
        let decision = net.decide(client.grants(), |network| {
            network.http_request(request.method().as_str(), scheme, authority, target)
        });
        let permit = decision.map_err(|denial| {
            denials.add(denial);
            Error::HttpRequestDenied
        })?;
        let limits = net.limits();
        // wasi:http lets no guest set them; a request that has them nevertheless is not sent.
        if request.headers().keys().any(fields::is_forbidden) {
            return Err(Error::HttpRequestDenied);
        }
        fields::check(request.headers(), limits.headers, limits.header_bytes)
            .map_err(|bytes| Error::HttpRequestHeaderSectionSize(Some(fault::clamped(bytes))))?;
        let waits = PhaseLimits::new(limits, options);
        Ok(Exchange { connector: self.connector.clone(), idle: Arc::clone(&self.idle), permit, waits })
    }
}
