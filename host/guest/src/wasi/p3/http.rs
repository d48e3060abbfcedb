//! `wasi:http/client` of WASI 0.3. wasmtime-wasi-http makes the request; the same hooks as in 0.2
//! send it to the host, which decides on it and counts it. Before that, a person may be asked about
//! it, as in 0.2.
use toolcell_wall::doors::consent::{HttpWanted, PermissionRequest};
use wasmtime::AsContextMut as _;
use wasmtime::component::{Accessor, HasData, Linker, Resource};
use wasmtime_wasi::TrappableError;
use wasmtime_wasi_http::p3::bindings::http::client::{self, HostWithStore};
use wasmtime_wasi_http::p3::bindings::http::types::{self, ErrorCode};
use wasmtime_wasi_http::p3::{Request, Response};
use wasmtime_wasi_http::{WasiHttp, WasiHttpCtxView, WasiHttpView};

use crate::wasi::http::add_p3_bounds;
use crate::wasi::state::CallState;

type Result<T> = std::result::Result<T, TrappableError<ErrorCode>>;

pub(super) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    client::add_to_linker::<CallState, Asking>(linker, CallState::http)?;
    types::add_to_linker::<CallState, WasiHttp>(linker, CallState::http)?;
    // These replace functions of the interface that was just added.
    linker.allow_shadowing(true);
    add_p3_bounds(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}

/// The client that asks before it sends.
struct Asking;

impl HasData for Asking {
    type Data<'a> = WasiHttpCtxView<'a>;
}

impl HostWithStore<CallState> for Asking {
    async fn send(store: &Accessor<CallState, Self>, request: Resource<Request>) -> Result<Resource<Response>> {
        let question = store.with(|mut store| {
            let mut store = store.as_context_mut();
            let state = store.data_mut();
            let wanted = state.capabilities().may_ask().then(|| state.table().get(&request).ok().map(wanted)).flatten();
            state.question(PermissionRequest::Request(wanted?))
        });
        if let Some(question) = question {
            question.ask().await.map_err(TrappableError::trap)?;
        }
        let plain = store.with_getter::<WasiHttp>(CallState::http);
        <WasiHttp as HostWithStore<CallState>>::send(&plain, request).await
    }
}

fn wanted(request: &Request) -> HttpWanted {
    HttpWanted {
        method: request.method.to_string(),
        scheme: request.scheme.as_ref().map_or("https", |scheme| scheme.as_str()).to_owned(),
        authority: request.authority.as_ref().map(ToString::to_string).unwrap_or_default(),
        target: request.path_with_query.as_ref().map_or_else(|| "/".to_owned(), ToString::to_string),
    }
}
