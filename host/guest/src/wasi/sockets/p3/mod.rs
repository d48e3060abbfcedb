//! `wasi:sockets` of WASI 0.3, over the sockets, doors, questions and denials of 0.2.
//!
//! | file | holds |
//! |---|---|
//! | `tcp.rs`, `streams.rs` | TCP sockets, and the two directions of a connection |
//! | `lookup.rs` | look-ups of names |
//! | `udp.rs` | UDP sockets |
//! | `convert.rs`, `bindings.rs` | its types, and what is generated |
/// The functions of a socket that 0.2 has, too: those of every socket, and these options.
macro_rules! functions_of_p2 {
    ($($get:ident as $value:ty = $of_p2:ident, $set:ident;)*) => {
        fn get_local_address(&mut self, socket: Socket) -> Result<IpSocketAddress> {
            let address = P2::local_address(self, socket).map_err(refused)?;
            Ok(convert::address(address.into()))
        }

        fn get_remote_address(&mut self, socket: Socket) -> Result<IpSocketAddress> {
            let address = P2::remote_address(self, socket).map_err(refused)?;
            Ok(convert::address(address.into()))
        }

        fn get_address_family(&mut self, socket: Socket) -> wasmtime::Result<IpAddressFamily> {
            P2::address_family(self, socket).map(convert::family_of)
        }

        $(
            fn $get(&mut self, socket: Socket) -> Result<$value> {
                P2::$of_p2(self, socket).map_err(refused)
            }

            fn $set(&mut self, socket: Socket, value: $value) -> Result<()> {
                P2::$set(self, socket, value).map_err(refused)
            }
        )*

        fn drop(&mut self, socket: Socket) -> wasmtime::Result<()> {
            P2::drop(self, socket)
        }
    };
}

mod bindings;
mod convert;
mod lookup;
mod streams;
mod tcp;
mod udp;

use std::net::SocketAddr;

use wasmtime::component::{HasSelf, Linker};

use crate::consent::PermissionQuestion;
use crate::wasi::state::CallState;

/// Why a function fails.
pub type Refused = wasmtime_wasi::TrappableError<bindings::types::ErrorCode>;

/// Offers `wasi:sockets` of WASI 0.3 to guests.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    bindings::types::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::called)?;
    bindings::ip_name_lookup::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::called)
}

/// The address to use, after a person was asked about it if somebody is to be.
async fn asked(question: Option<PermissionQuestion>, to: SocketAddr) -> Result<SocketAddr, Refused> {
    match question {
        Some(question) => Ok(question.ask().await.map_err(Refused::trap)?.unwrap_or(to)),
        None => Ok(to),
    }
}
