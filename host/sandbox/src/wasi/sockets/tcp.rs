//! `wasi:sockets/tcp`: wasmtime-wasi's sockets, behind decisions on the addresses that they bind
//! and connect to.
use std::net::SocketAddr;
use std::sync::Arc;

use toolcell_policy::Capability;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily, IpSocketAddress};
use wasmtime_wasi::p2::bindings::sockets::tcp::{Host, HostTcpSocket, ShutdownType};
use wasmtime_wasi::p2::pipe::{ClosedInputStream, ClosedOutputStream};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable, Network, SocketResult, TcpSocket};
use wasmtime_wasi::sockets::WasiSocketsView as _;

use super::denied;
use super::streams::{ChargedInput, ChargedOutput};
use crate::wasi::state::CallState;

type Socket = Resource<TcpSocket>;
type Streams = (Resource<DynInputStream>, Resource<DynOutputStream>);

impl Host for CallState {}

/// `start-connect`, which may ask a person first.
pub(super) fn add_connect(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    let mut tcp = linker.instance("wasi:sockets/tcp@0.2.12")?;
    tcp.func_wrap_async(
        "[method]tcp-socket.start-connect",
        |mut store: StoreContextMut<'_, CallState>, (socket, net, to): (Socket, Resource<Network>, IpSocketAddress)| {
            Box::new(async move {
                let state = store.data_mut().reached();
                let to = state.ask_before_socket(Capability::Tcp, to.into()).await?;
                match HostTcpSocket::start_connect(state, socket, net, to.into()) {
                    Ok(()) => Ok((Ok::<(), ErrorCode>(()),)),
                    Err(error) => Ok((Err(error.downcast()?),)),
                }
            })
        },
    )
}

impl CallState {
    /// Puts the meter before wasmtime-wasi's streams.
    fn charge(&mut self, streams: Streams) -> SocketResult<Streams> {
        let (input, output) = streams;
        let net = self.socket_net();
        let table = self.table();
        let inner: &mut DynInputStream = table.get_mut(&input)?;
        let plain = std::mem::replace(inner, Box::new(ClosedInputStream));
        *inner = Box::new(ChargedInput::new(plain, Arc::clone(&net)));
        let inner: &mut DynOutputStream = table.get_mut(&output)?;
        let plain = std::mem::replace(inner, Box::new(ClosedOutputStream));
        *inner = Box::new(ChargedOutput::new(plain, net));
        Ok((input, output))
    }

    fn never_listens(&mut self, socket: &Socket) -> SocketResult<()> {
        let local = self.sockets().local_address(Resource::new_borrow(socket.rep())).map(SocketAddr::from);
        let local = local.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
        self.deny(self.capabilities().grants().network().never_listens(Capability::Tcp, "listen", local));
        Err(denied())
    }
}

impl HostTcpSocket for CallState {
    async fn start_bind(&mut self, socket: Socket, net: Resource<Network>, to: IpSocketAddress) -> SocketResult<()> {
        self.may_bind(Capability::Tcp, to.into())?;
        self.sockets().start_bind(socket, net, to).await
    }

    fn finish_bind(&mut self, socket: Socket) -> SocketResult<()> {
        self.sockets().finish_bind(socket)
    }

    fn start_connect(&mut self, socket: Socket, net: Resource<Network>, to: IpSocketAddress) -> SocketResult<()> {
        self.may_connect(to.into())?;
        self.sockets().start_connect(socket, net, to)
    }

    fn finish_connect(&mut self, socket: Socket) -> SocketResult<Streams> {
        let streams = self.sockets().finish_connect(socket)?;
        self.charge(streams)
    }

    async fn start_listen(&mut self, socket: Socket) -> SocketResult<()> {
        self.never_listens(&socket)
    }

    fn finish_listen(&mut self, socket: Socket) -> SocketResult<()> {
        self.sockets().finish_listen(socket)
    }

    fn accept(
        &mut self,
        socket: Socket,
    ) -> SocketResult<(Socket, Resource<DynInputStream>, Resource<DynOutputStream>)> {
        self.never_listens(&socket)?;
        Err(denied())
    }

    fn local_address(&mut self, socket: Socket) -> SocketResult<IpSocketAddress> {
        self.sockets().local_address(socket)
    }

    fn remote_address(&mut self, socket: Socket) -> SocketResult<IpSocketAddress> {
        self.sockets().remote_address(socket)
    }

    fn is_listening(&mut self, socket: Socket) -> wasmtime::Result<bool> {
        self.sockets().is_listening(socket)
    }

    fn address_family(&mut self, socket: Socket) -> wasmtime::Result<IpAddressFamily> {
        HostTcpSocket::address_family(&mut self.sockets(), socket)
    }

    fn set_listen_backlog_size(&mut self, socket: Socket, value: u64) -> SocketResult<()> {
        self.sockets().set_listen_backlog_size(socket, value)
    }

    fn keep_alive_enabled(&mut self, socket: Socket) -> SocketResult<bool> {
        self.sockets().keep_alive_enabled(socket)
    }

    fn set_keep_alive_enabled(&mut self, socket: Socket, value: bool) -> SocketResult<()> {
        self.sockets().set_keep_alive_enabled(socket, value)
    }

    fn keep_alive_idle_time(&mut self, socket: Socket) -> SocketResult<u64> {
        self.sockets().keep_alive_idle_time(socket)
    }

    fn set_keep_alive_idle_time(&mut self, socket: Socket, value: u64) -> SocketResult<()> {
        self.sockets().set_keep_alive_idle_time(socket, value)
    }

    fn keep_alive_interval(&mut self, socket: Socket) -> SocketResult<u64> {
        self.sockets().keep_alive_interval(socket)
    }

    fn set_keep_alive_interval(&mut self, socket: Socket, value: u64) -> SocketResult<()> {
        self.sockets().set_keep_alive_interval(socket, value)
    }

    fn keep_alive_count(&mut self, socket: Socket) -> SocketResult<u32> {
        self.sockets().keep_alive_count(socket)
    }

    fn set_keep_alive_count(&mut self, socket: Socket, value: u32) -> SocketResult<()> {
        self.sockets().set_keep_alive_count(socket, value)
    }

    fn hop_limit(&mut self, socket: Socket) -> SocketResult<u8> {
        self.sockets().hop_limit(socket)
    }

    fn set_hop_limit(&mut self, socket: Socket, value: u8) -> SocketResult<()> {
        self.sockets().set_hop_limit(socket, value)
    }

    fn receive_buffer_size(&mut self, socket: Socket) -> SocketResult<u64> {
        HostTcpSocket::receive_buffer_size(&mut self.sockets(), socket)
    }

    fn set_receive_buffer_size(&mut self, socket: Socket, value: u64) -> SocketResult<()> {
        HostTcpSocket::set_receive_buffer_size(&mut self.sockets(), socket, value)
    }

    fn send_buffer_size(&mut self, socket: Socket) -> SocketResult<u64> {
        HostTcpSocket::send_buffer_size(&mut self.sockets(), socket)
    }

    fn set_send_buffer_size(&mut self, socket: Socket, value: u64) -> SocketResult<()> {
        HostTcpSocket::set_send_buffer_size(&mut self.sockets(), socket, value)
    }

    fn subscribe(&mut self, socket: Socket) -> wasmtime::Result<Resource<DynPollable>> {
        HostTcpSocket::subscribe(&mut self.sockets(), socket)
    }

    fn shutdown(&mut self, socket: Socket, how: ShutdownType) -> SocketResult<()> {
        self.sockets().shutdown(socket, how)
    }

    fn drop(&mut self, socket: Socket) -> wasmtime::Result<()> {
        HostTcpSocket::drop(&mut self.sockets(), socket)
    }
}
