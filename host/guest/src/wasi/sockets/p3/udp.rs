//! UDP sockets of WASI 0.3. A socket is the same as in 0.2. Its tasks send one after the other, and
//! a packet that is on its way is sent even if its task is given up.
use tokio::sync::OwnedMutexGuard;
use wasmtime::component::{Accessor, HasSelf};
use wasmtime_wasi::p2::bindings::sockets::network::ErrorCode as P2Error;

use super::super::bindings::wasi::sockets::udp::HostUdpSocket as P2;
use super::super::bindings::wasi::sockets::udp_create_socket::Host as _;
use super::super::udp::Socket;
use super::super::udp_link::UdpLink;
use super::Refused;
use super::bindings::types::{ErrorCode, HostUdpSocket, HostUdpSocketWithStore, IpAddressFamily, IpSocketAddress};
use super::convert::{self, refused};
use crate::wasi::state::CallState;

type Result<T> = std::result::Result<T, Refused>;

fn failed(code: P2Error) -> Refused {
    convert::error(code).into()
}

impl CallState {
    /// The turn of a function that no task can wait for: it fails while one binds or sends.
    fn udp_turn(&mut self, socket: &Socket) -> Result<OwnedMutexGuard<()>> {
        let turn = self.udp_socket(socket).map_err(refused)?.turn();
        turn.try_lock_owned().map_err(|_| ErrorCode::InvalidState.into())
    }
}

impl HostUdpSocket for CallState {
    fn create(&mut self, family: IpAddressFamily) -> Result<Socket> {
        self.create_udp_socket(convert::family(family)).map_err(refused)
    }

    async fn bind(&mut self, socket: Socket, to: IpSocketAddress) -> Result<()> {
        let _turn = self.udp_turn(&socket)?;
        self.bind_udp(&socket, convert::target(to)).await.map_err(refused)
    }

    async fn connect(&mut self, socket: Socket, to: IpSocketAddress) -> Result<()> {
        let _turn = self.udp_turn(&socket)?;
        let to = convert::target(to);
        let own = self.udp_socket(&socket).map_err(refused)?;
        if !own.reaches(to) {
            return Err(ErrorCode::InvalidArgument.into());
        }
        if own.link().is_none() {
            let opened = own.opening().await.map_err(failed)?;
            own.opened(opened);
        }
        self.connect_udp(&socket, Some(to)).await.map(drop).map_err(refused)
    }

    async fn disconnect(&mut self, socket: Socket) -> Result<()> {
        let _turn = self.udp_turn(&socket)?;
        if !self.udp_socket(&socket).map_err(refused)?.is_connected() {
            return Err(ErrorCode::InvalidState.into());
        }
        self.connect_udp(&socket, None).await.map(drop).map_err(refused)
    }

    functions_of_p2! {
        get_unicast_hop_limit as u8 = unicast_hop_limit, set_unicast_hop_limit;
        get_receive_buffer_size as u64 = receive_buffer_size, set_receive_buffer_size;
        get_send_buffer_size as u64 = send_buffer_size, set_send_buffer_size;
    }
}

/// The door of a socket, which is bound first where it is not yet. Its turn is the caller's.
async fn bound(store: &Accessor<CallState, HasSelf<CallState>>, socket: &Socket) -> Result<UdpLink> {
    let opening = store.with(|mut store| {
        let own = store.get().udp_socket(socket)?;
        Ok(own.link().ok_or_else(|| own.opening()))
    });
    let opening = match opening.map_err(refused)? {
        Ok(link) => return Ok(link),
        Err(opening) => opening,
    };
    let opened = opening.await.map_err(failed)?;
    let link = opened.link.clone();
    let kept = store.with(|mut store| store.get().udp_socket(socket).map(|own| own.opened(opened)));
    kept.map(|()| link).map_err(refused)
}

impl HostUdpSocketWithStore<CallState> for HasSelf<CallState> {
    async fn send(
        store: &Accessor<CallState, Self>,
        socket: Socket,
        data: Vec<u8>,
        to: Option<IpSocketAddress>,
    ) -> Result<()> {
        let to = to.map(convert::target);
        let turn = store.with(|mut store| store.get().udp_socket(&socket).map(|own| own.turn()));
        let turn = turn.map_err(refused)?.lock_owned().await;
        let route = store.with(|mut store| store.get().udp_socket(&socket).map(|own| own.route()));
        let to = route.map_err(refused)?.target(to, data.len()).map_err(failed)?;
        let link = bound(store, &socket).await?;
        // What the host was asked to do is answered before anything else is.
        let sending = tokio::spawn(async move {
            let sent = link.send(to, data).await;
            drop(turn);
            sent
        });
        sending.await.unwrap_or(Err(P2Error::ConnectionAborted)).map_err(failed)
    }

    async fn receive(store: &Accessor<CallState, Self>, socket: Socket) -> Result<(Vec<u8>, IpSocketAddress)> {
        let link = store.with(|mut store| store.get().udp_socket(&socket).map(|own| own.link()));
        let Some(link) = link.map_err(refused)? else { return Err(ErrorCode::InvalidState.into()) };
        let (from, data) = link.receive().await.map_err(failed)?;
        Ok((data, convert::address(from)))
    }
}
