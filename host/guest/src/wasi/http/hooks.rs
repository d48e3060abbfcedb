//! The hooks of wasi:http for outgoing requests.
use std::sync::Arc;

use http::Request;
use http::header::HeaderName;
use http::uri::Scheme;
use toolcell_wall::doors::http::is_forbidden;
use toolcell_wall::doors::net_limits::NetLimits;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::p2::bindings::http::outgoing_handler;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::p2::types::HostOutgoingRequest;
use wasmtime_wasi_http::p3::bindings::http::types::ErrorCode as P3ErrorCode;
use wasmtime_wasi_http::{
    Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpHooks, WasiHttpView as _,
};

use super::outside::{OutsideRequests, Sending};
use crate::wasi::net::OutsideNet;
use crate::wasi::state::CallState;
use toolcell_wall::caller::CallerLink;

/// Bytes that a guest passes on at once, which then wait for the connection.
pub(super) const CHUNK_BYTES: usize = 64 << 10;

/// wasi:http's way to the requests of one call: they are sent to the host. `None` for a guest
/// without a call, which makes no requests.
pub(crate) struct HttpHooks(Option<OutsideRequests>);

/// wasi:http's own context: the most that a guest's list of fields may grow, where each field's
/// cost in memory counts, too. A guest beyond it is ended. A guest beyond the limits of a message
/// gets an error when it sends.
pub(crate) fn context(limits: &NetLimits) -> WasiHttpCtx {
    let mut context = WasiHttpCtx::new();
    context.set_field_size_limit(limits.held_bytes_max());
    context
}

impl HttpHooks {
    /// The requests of a call.
    pub(crate) fn new(net: Arc<OutsideNet>, caller: &dyn CallerLink) -> Self {
        Self(caller.outside().map(|outside| OutsideRequests::new(outside, net)))
    }
}

/// Adds `handle`, which may ask a person first.
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
        Arc::new(is_forbidden)
    }

    fn is_forbidden_header(&mut self, name: &HeaderName) -> bool {
        is_forbidden(name)
    }

    /// The policy decides on every scheme and knows two, so that a denial has a text and a record.
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
        match &self.0 {
            Some(requests) => requests.send(request, options),
            None => Box::new(std::future::ready(Err(Error::HttpRequestDenied))),
        }
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK_BYTES
    }

    fn p3_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK_BYTES
    }

    // Errors from this folder already are wasi:http's own. The rest reveals nothing of the host.

    fn p2_error_from_hyper(&mut self, _: &hyper::Error) -> ErrorCode {
        ErrorCode::HttpProtocolError
    }

    fn p2_error_from_connect(&mut self, _: &std::io::Error) -> ErrorCode {
        ErrorCode::DestinationUnavailable
    }

    fn p2_error_from_tls(&mut self, _: &std::io::Error) -> ErrorCode {
        ErrorCode::TlsProtocolError
    }

    fn p3_error_from_hyper(&mut self, _: &hyper::Error) -> P3ErrorCode {
        P3ErrorCode::HttpProtocolError
    }

    fn p3_error_from_connect(&mut self, _: &std::io::Error) -> P3ErrorCode {
        P3ErrorCode::DestinationUnavailable
    }

    fn p3_error_from_tls(&mut self, _: &std::io::Error) -> P3ErrorCode {
        P3ErrorCode::TlsProtocolError
    }
}
