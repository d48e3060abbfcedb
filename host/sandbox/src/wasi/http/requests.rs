//! The HTTP requests of one call: the decision on each, and the limits that need no waiting.
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use toolcell_policy::Ask;
use toolcell_wall::doors::http::{RequestWaits, is_forbidden};
use toolcell_wall::doors::http_fault::HttpFault;

use super::client::ToolHttpClient;
use super::connect::Connector;
use super::connections::IdleConnections;
use super::exchange::{BodyTask, PermittedRequest, PhaseLimits};
use super::{fault, fields};
use crate::wasi::net::CallNet;
use toolcell_wall::denials::CallDenials;

/// The HTTP requests of one call. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CallRequests {
    connector: Connector,
    idle: Arc<IdleConnections>,
}

/// A body on its way, in either direction.
pub(super) type HttpBody = UnsyncBoxBody<Bytes, HttpFault>;

/// A response, and the task that runs along with it.
pub(super) type Answered = (Response<HttpBody>, BodyTask);

impl CallRequests {
    pub(crate) fn new(client: Arc<ToolHttpClient>, net: Arc<CallNet>, denials: CallDenials) -> Self {
        Self { connector: Connector { client, net, denials }, idle: Arc::default() }
    }

    /// Makes the request, if it is permitted.
    pub(super) async fn send(&self, request: Request<HttpBody>, waits: RequestWaits) -> Result<Answered, HttpFault> {
        self.begin(&request, waits)?.run(request).await
    }

    /// Decides on the request, and collects everything for making it.
    fn begin(&self, request: &Request<HttpBody>, waits: RequestWaits) -> Result<PermittedRequest, HttpFault> {
        let Connector { client, net, denials } = &self.connector;
        if !net.request() {
            return Err(HttpFault::ConnectionLimitReached);
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
            HttpFault::HttpRequestDenied
        })?;
        net.used(|| Ask::Http(permit.ask().clone()).to_string());
        let limits = net.limits();
        // wasi:http lets no guest set them; a request that still has them is not sent.
        if request.headers().keys().any(is_forbidden) {
            return Err(HttpFault::HttpRequestDenied);
        }
        fields::check(request.headers(), limits.headers, limits.header_bytes)
            .map_err(|bytes| HttpFault::HttpRequestHeaderSectionSize(fault::clamped(bytes)))?;
        let waits = PhaseLimits::new(limits, waits);
        Ok(PermittedRequest { connector: self.connector.clone(), idle: Arc::clone(&self.idle), permit, waits })
    }
}
