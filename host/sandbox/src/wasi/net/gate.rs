//! The check before each system call on a socket. Must not hold: answers to guests, or records.
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use toolcell_policy::{Capability, Grants};
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::sockets::SocketAddrUse;

use super::CallNet;
use crate::wasi::capabilities::Capabilities;

/// The last check before a system call: wasmtime-wasi asks it with the address that it is about to
/// use. It decides from the same rules as the host functions before the sockets. Those have denied,
/// and recorded, everything that it refuses.
pub(crate) struct Gate {
    grants: Arc<Grants>,
    /// The network share of the call that is under way, with the addresses of its names.
    net: Mutex<Option<Arc<CallNet>>>,
}

impl Gate {
    /// Gives a WASI context the protocols that the tool may have sockets of, behind a gate; none
    /// where it may have none.
    pub(crate) fn before(builder: &mut WasiCtxBuilder, capabilities: &Capabilities) -> Option<Arc<Self>> {
        let grants = capabilities.grants();
        let (tcp, udp) = (capabilities.has_sockets(Capability::Tcp), capabilities.has_sockets(Capability::Udp));
        builder.allow_tcp(tcp).allow_udp(udp).allow_ip_name_lookup(false);
        if !tcp && !udp {
            return None;
        }
        let gate = Arc::new(Self { grants: Arc::clone(grants), net: Mutex::default() });
        let own = Arc::clone(&gate);
        builder.socket_addr_check(move |address, asked| {
            let permitted = own.permits(address, asked);
            Box::pin(async move { permitted })
        });
        Some(gate)
    }

    /// The call that is under way uses this share of the network.
    pub(crate) fn of(&self, net: &Arc<CallNet>) {
        *self.net.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(net));
    }

    fn permits(&self, address: SocketAddr, asked: SocketAddrUse) -> bool {
        let net = self.net.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(net) = net else { return false };
        match asked {
            SocketAddrUse::TcpConnect => {
                net.decide(&self.grants, |network| network.tcp(address, &net.resolved()).is_ok())
            }
            SocketAddrUse::UdpSend | SocketAddrUse::UdpReceive => {
                net.decide(&self.grants, |network| network.udp(address, &net.resolved()).is_ok())
            }
            SocketAddrUse::TcpBind | SocketAddrUse::UdpBind => is_implicit(address),
            SocketAddrUse::TcpListen | SocketAddrUse::TcpAccept => false,
        }
    }
}

/// True for the address that the system would bind to by itself.
pub(crate) fn is_implicit(address: SocketAddr) -> bool {
    address.ip().is_unspecified() && address.port() == 0
}
