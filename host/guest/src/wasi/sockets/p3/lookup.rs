//! `wasi:sockets/ip-name-lookup` of WASI 0.3. The host looks the names up.
use wasmtime::component::{Accessor, HasSelf};
use wasmtime_wasi::p2::bindings::sockets::network::ErrorCode as P2;

use super::super::lookup::{Lookup, look_up_outside};
use super::bindings::ip_name_lookup::{ErrorCode, Host, HostWithStore};
use super::bindings::types::IpAddress;
use super::convert;
use crate::wasi::state::CallState;

impl Host for CallState {}

impl HostWithStore<CallState> for HasSelf<CallState> {
    async fn resolve_addresses(
        store: &Accessor<CallState, Self>,
        name: String,
    ) -> wasmtime::Result<Result<Vec<IpAddress>, ErrorCode>> {
        let lookup = store.with(|mut store| store.get().lookup(name));
        let found = match lookup {
            Ok(Lookup { outside, net, name }) => look_up_outside(outside, net, name).await,
            Err(error) => Err(error.downcast()?),
        };
        Ok(found.map(|addresses| addresses.map(convert::ip).collect()).map_err(code))
    }
}

fn code(code: P2) -> ErrorCode {
    match code {
        P2::AccessDenied => ErrorCode::AccessDenied,
        P2::InvalidArgument => ErrorCode::InvalidArgument,
        P2::NameUnresolvable => ErrorCode::NameUnresolvable,
        P2::TemporaryResolverFailure => ErrorCode::TemporaryResolverFailure,
        P2::PermanentResolverFailure => ErrorCode::PermanentResolverFailure,
        _ => ErrorCode::Other(None),
    }
}
