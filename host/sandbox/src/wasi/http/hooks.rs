//! The hooks of wasi:http for outgoing requests: the decision, and the limits that need no waiting.
//! Must not hold: making requests.
use std::sync::Arc;

use http::Request;
use http::header::{HeaderName, HeaderValue};
use http::uri::Scheme;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::p2::bindings::http::outgoing_handler;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::p2::types::HostOutgoingRequest;
use wasmtime_wasi_http::{
    Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpHooks, WasiHttpView as _,
};

use super::client::HttpClient;
use super::connect::Connector;
use super::connections::IdleConnections;
use super::exchange::{Exchange, PhaseLimits, Worker};
use super::{fault, fields};
use crate::caller::denials::Denials;
use crate::wasi::net::{CallNet, NetLimits};
use crate::wasi::state::CallState;

/// Bytes that a guest hands over at once, and that wait for the connection to take them.
const CHUNK_BYTES: usize = 64 << 10;

/// Bytes that wasi:http counts for a field beside its name and value: those of both in memory.
const FIELD_HELD_BYTES: usize = size_of::<HeaderName>() + size_of::<HeaderValue>();

/// The HTTP requests of one call.
pub(crate) struct HttpHooks {
    connector: Connector,
    idle: Arc<IdleConnections>,
}

/// wasi:http's own context: the most that a guest's list of fields may grow. It counts each field's
/// cost in memory too. A guest past it is ended; a guest past the limits of a message is told when
/// it sends.
pub(crate) fn context(limits: &NetLimits) -> WasiHttpCtx {
    let mut context = WasiHttpCtx::new();
    let held = limits.headers.saturating_mul(FIELD_HELD_BYTES).saturating_add(limits.header_bytes);
    context.set_field_size_limit(held.saturating_add(held / 4));
    context
}

/// A request under way.
type Sending = Box<dyn Future<Output = Result<(http::Response<WasiBody>, Worker), Error>> + Send>;

impl HttpHooks {
    pub(crate) fn new(client: Arc<HttpClient>, net: Arc<CallNet>, denials: Denials) -> Self {
        Self { connector: Connector { client, net, denials }, idle: Arc::default() }
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

/// `handle`, which may ask a person first.
pub(crate) fn add_handle(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    type Request = Resource<HostOutgoingRequest>;
    type Options = Option<Resource<RequestOptions>>;
    let mut handler = linker.instance("wasi:http/outgoing-handler@0.2.12")?;
    handler.func_wrap_async(
        "handle",
        |mut store: StoreContextMut<'_, CallState>, (request, options): (Request, Options)| {
            Box::new(async move {
                let state = store.data_mut();
                state.reached().ask_before_request(&request).await?;
                match outgoing_handler::Host::handle(&mut state.http(), request, options) {
                    Ok(response) => Ok((Ok::<_, ErrorCode>(response),)),
                    Err(error) => Ok((Err(error.downcast()?),)),
                }
            })
        },
    )
}

impl WasiHttpHooks for HttpHooks {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(fields::is_forbidden)
    }

    fn is_forbidden_header(&mut self, name: &HeaderName) -> bool {
        fields::is_forbidden(name)
    }

    /// Every scheme is asked of the policy, which knows two: a denial is said and recorded.
    fn is_supported_scheme(&mut self, _: &Scheme) -> bool {
        true
    }

    /// The host writes it, from the request that was decided on.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Sending {
        match self.begin(&request, options) {
            Ok(exchange) => Box::new(exchange.run(request)),
            Err(error) => Box::new(std::future::ready(Err(error))),
        }
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK_BYTES
    }

    // Errors come out of this room in wasi:http's own words. The rest names nothing of the host.

    fn p2_error_from_hyper(&mut self, _: &hyper::Error) -> ErrorCode {
        ErrorCode::HttpProtocolError
    }

    fn p2_error_from_connect(&mut self, _: &std::io::Error) -> ErrorCode {
        ErrorCode::DestinationUnavailable
    }

    fn p2_error_from_tls(&mut self, _: &std::io::Error) -> ErrorCode {
        ErrorCode::TlsProtocolError
    }
}
