//! TCP sockets of a guest in a sandbox process.
use std::mem::replace;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use toolcell_policy::Capability;
use toolcell_wall::doors::Opening;
use toolcell_wall::doors::socket_options::SocketOptions;
use toolcell_wall::doors::sockets::{TcpReply, TcpWanted, can_connect};
use toolcell_walls::door::{self, FrameReader, FrameWriter, HOST_BYTES_MAX};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily, IpSocketAddress};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, DynPollable, Network, Pollable, SocketError, SocketResult, subscribe,
};
use wasmtime_wasi::runtime::{AbortOnDropJoinHandle, spawn};

use super::bindings::wasi::sockets::tcp::{Host, HostTcpSocket, ShutdownType};
use super::bindings::wasi::sockets::tcp_create_socket;
use super::streams::{Input, Output};
use super::{denied, error_code, is_implicit};
use crate::wasi::state::CallState;
use toolcell_wall::caller::Outside;

/// A guest's handle.
pub(super) type Socket = Resource<TcpSocket>;

type Streams = (Resource<DynInputStream>, Resource<DynOutputStream>);

/// A socket: its options, and its connection.
pub struct TcpSocket {
    outside: Arc<dyn Outside>,
    family: IpAddressFamily,
    options: SocketOptions,
    state: TcpState,
    /// The directions that a guest of WASI 0.3 has taken.
    taken: TakenDirections,
}

/// The directions of a connection that were taken as streams.
#[derive(Default)]
struct TakenDirections {
    input: bool,
    output: bool,
}

enum TcpState {
    New,
    Binding,
    Bound,
    Connecting(AbortOnDropJoinHandle<Result<Connected, ErrorCode>>),
    /// A task of a guest of WASI 0.3 connects.
    ConnectingInTask,
    /// The attempt is over, and the guest does not know yet.
    Tried(Result<Connected, ErrorCode>),
    Connected {
        local: SocketAddr,
        remote: SocketAddr,
        input: Input,
        output: Output,
    },
    Failed(ErrorCode),
}

/// A connection that the host made.
pub(super) struct Connected {
    local: SocketAddr,
    remote: SocketAddr,
    reader: FrameReader,
    writer: FrameWriter,
}

impl TcpSocket {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let TcpState::Connecting(attempt) = &mut self.state {
            self.state = TcpState::Tried(ready!(Pin::new(attempt).poll(context)));
        }
        Poll::Ready(())
    }

    pub(super) fn may_connect(&self) -> SocketResult<()> {
        match self.state {
            TcpState::New | TcpState::Bound => Ok(()),
            TcpState::Binding | TcpState::Connecting(_) | TcpState::ConnectingInTask | TcpState::Tried(_) => {
                Err(ErrorCode::ConcurrencyConflict.into())
            }
            TcpState::Connected { .. } | TcpState::Failed(_) => Err(ErrorCode::InvalidState.into()),
        }
    }

    /// Binds it at once, as WASI 0.3 does. The address was checked.
    pub(super) fn binds(&mut self) -> SocketResult<()> {
        if !matches!(self.state, TcpState::New) {
            return Err(ErrorCode::InvalidState.into());
        }
        self.state = TcpState::Bound;
        Ok(())
    }

    /// What a task needs to [connect]; [`TcpSocket::connected`] takes what came of it.
    pub(super) fn begins_to_connect(&mut self, to: SocketAddr) -> SocketResult<(Arc<dyn Outside>, TcpWanted)> {
        self.may_connect()?;
        let six = self.family == IpAddressFamily::Ipv6;
        if can_connect(to, six) {
            self.state = TcpState::ConnectingInTask;
        }
        // Otherwise the host denies it, or agrees that it is denied, and the socket stays as it is.
        Ok((Arc::clone(&self.outside), TcpWanted { to, six, options: self.options.clone() }))
    }

    /// A task has tried to connect.
    pub(super) fn connected(&mut self, tried: Result<Connected, ErrorCode>) -> SocketResult<()> {
        if !matches!(self.state, TcpState::ConnectingInTask) {
            return Err(tried.err().unwrap_or(ErrorCode::InvalidArgument).into());
        }
        self.settle(tried).map(drop)
    }

    /// Has the state after an attempt to connect, and gives the two directions.
    fn settle(&mut self, tried: Result<Connected, ErrorCode>) -> SocketResult<(Input, Output)> {
        match tried {
            Ok(Connected { local, remote, reader, writer }) => {
                let input = Input::new(reader);
                let output = Output::new(writer);
                self.state = TcpState::Connected { local, remote, input: input.clone(), output: output.clone() };
                Ok((input, output))
            }
            Err(code) => {
                self.state = TcpState::Failed(code);
                Err(code.into())
            }
        }
    }

    /// The outgoing direction, once.
    pub(super) fn take_output(&mut self) -> SocketResult<Output> {
        match &self.state {
            TcpState::Connected { output, .. } if !replace(&mut self.taken.output, true) => Ok(output.clone()),
            _ => Err(ErrorCode::InvalidState.into()),
        }
    }

    /// The incoming direction, once.
    pub(super) fn take_input(&mut self) -> SocketResult<Input> {
        match &self.state {
            TcpState::Connected { input, .. } if !replace(&mut self.taken.input, true) => Ok(input.clone()),
            _ => Err(ErrorCode::InvalidState.into()),
        }
    }

    /// The address that a socket has before the host makes it.
    fn unspecified(&self) -> SocketAddr {
        match self.family {
            IpAddressFamily::Ipv4 => SocketAddr::from(([0; 4], 0)),
            IpAddressFamily::Ipv6 => SocketAddr::from(([0_u16; 8], 0)),
        }
    }
}

/// Asks the host to connect.
pub(super) async fn connect(outside: Arc<dyn Outside>, wanted: TcpWanted) -> Result<Connected, ErrorCode> {
    let remote = wanted.to;
    let opened = door::open(&*outside, &Opening::Tcp(wanted)).await;
    let (mut reader, writer) = opened.map_err(|_| ErrorCode::NewSocketLimit)?;
    match reader.message(HOST_BYTES_MAX).await {
        Ok(TcpReply::Connected(local)) => Ok(Connected { local, remote, reader, writer }),
        Ok(TcpReply::Refused(code)) => Err(error_code(code)),
        _ => Err(ErrorCode::ConnectionAborted),
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for TcpSocket {
    async fn ready(&mut self) {
        std::future::poll_fn(|context| self.poll(context)).await;
    }
}

impl Host for CallState {}

impl tcp_create_socket::Host for CallState {
    fn create_tcp_socket(&mut self, family: IpAddressFamily) -> SocketResult<Socket> {
        let outside = self.new_socket()?;
        Ok(self.table().push(TcpSocket {
            outside,
            family,
            options: SocketOptions::default(),
            state: TcpState::New,
            taken: TakenDirections::default(),
        })?)
    }
}

impl CallState {
    pub(super) fn tcp_socket(&mut self, socket: &Socket) -> SocketResult<&mut TcpSocket> {
        Ok(self.table().get_mut(socket)?)
    }

    fn never_listens(&mut self, capability: Capability, what: &str, local: SocketAddr) -> SocketResult<()> {
        self.deny(self.capabilities().grants().network().never_listens(capability, what, local));
        Err(denied())
    }

    /// Clients can only bind to an unspecified address.
    pub(super) fn may_bind(&mut self, capability: Capability, address: SocketAddr) -> SocketResult<()> {
        if is_implicit(address) { Ok(()) } else { self.never_listens(capability, "bind", address) }
    }
}

impl HostTcpSocket for CallState {
    fn start_bind(&mut self, socket: Socket, network: Resource<Network>, to: IpSocketAddress) -> SocketResult<()> {
        self.table().get(&network)?;
        self.may_bind(Capability::Tcp, to.into())?;
        let socket = self.tcp_socket(&socket)?;
        match socket.state {
            TcpState::New => {
                socket.state = TcpState::Binding;
                Ok(())
            }
            TcpState::Binding | TcpState::Connecting(_) | TcpState::ConnectingInTask | TcpState::Tried(_) => {
                Err(ErrorCode::ConcurrencyConflict.into())
            }
            _ => Err(ErrorCode::InvalidState.into()),
        }
    }

    fn finish_bind(&mut self, socket: Socket) -> SocketResult<()> {
        let socket = self.tcp_socket(&socket)?;
        if !matches!(socket.state, TcpState::Binding) {
            return Err(ErrorCode::NotInProgress.into());
        }
        socket.state = TcpState::Bound;
        Ok(())
    }

    async fn start_connect(
        &mut self,
        socket: Socket,
        network: Resource<Network>,
        to: IpSocketAddress,
    ) -> SocketResult<()> {
        self.table().get(&network)?;
        self.tcp_socket(&socket)?.may_connect()?;
        let asked = self.ask_before_socket(Capability::Tcp, to.into()).await;
        let to = asked.map_err(SocketError::trap)?;
        let socket = self.tcp_socket(&socket)?;
        let six = socket.family == IpAddressFamily::Ipv6;
        let wanted = TcpWanted { to, six, options: socket.options.clone() };
        if !can_connect(to, six) {
            // The host denies it, or agrees that it is denied. The guest gets the answer at once,
            // as from the host's own socket.
            let refused = connect(Arc::clone(&socket.outside), wanted).await;
            return Err(refused.err().unwrap_or(ErrorCode::InvalidArgument).into());
        }
        socket.state = TcpState::Connecting(spawn(connect(Arc::clone(&socket.outside), wanted)));
        Ok(())
    }

    fn finish_connect(&mut self, socket: Socket) -> SocketResult<Streams> {
        let own = self.tcp_socket(&socket)?;
        if own.poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            return Err(ErrorCode::WouldBlock.into());
        }
        let (input, output) = match replace(&mut own.state, TcpState::Failed(ErrorCode::InvalidState)) {
            TcpState::Tried(tried) => own.settle(tried)?,
            other => {
                own.state = other;
                return Err(ErrorCode::NotInProgress.into());
            }
        };
        let input: DynInputStream = Box::new(input);
        let output: DynOutputStream = Box::new(output);
        let input = self.table().push_child(input, &socket)?;
        let output = self.table().push_child(output, &socket)?;
        Ok((input, output))
    }

    fn start_listen(&mut self, socket: Socket) -> SocketResult<()> {
        let local = self.tcp_socket(&socket)?.unspecified();
        self.never_listens(Capability::Tcp, "listen", local)
    }

    fn finish_listen(&mut self, _: Socket) -> SocketResult<()> {
        Err(ErrorCode::NotInProgress.into())
    }

    fn accept(
        &mut self,
        socket: Socket,
    ) -> SocketResult<(Socket, Resource<DynInputStream>, Resource<DynOutputStream>)> {
        HostTcpSocket::start_listen(self, socket)?;
        Err(denied())
    }

    fn local_address(&mut self, socket: Socket) -> SocketResult<IpSocketAddress> {
        let socket = self.tcp_socket(&socket)?;
        match socket.state {
            TcpState::Connected { local, .. } => Ok(local.into()),
            TcpState::Bound => Ok(socket.unspecified().into()),
            TcpState::Failed(code) => Err(code.into()),
            _ => Err(ErrorCode::InvalidState.into()),
        }
    }

    fn remote_address(&mut self, socket: Socket) -> SocketResult<IpSocketAddress> {
        match self.tcp_socket(&socket)?.state {
            TcpState::Connected { remote, .. } => Ok(remote.into()),
            TcpState::Failed(code) => Err(code.into()),
            _ => Err(ErrorCode::InvalidState.into()),
        }
    }

    fn is_listening(&mut self, _: Socket) -> wasmtime::Result<bool> {
        Ok(false)
    }

    fn address_family(&mut self, socket: Socket) -> wasmtime::Result<IpAddressFamily> {
        Ok(self.table().get(&socket)?.family)
    }

    fn set_listen_backlog_size(&mut self, _: Socket, value: u64) -> SocketResult<()> {
        // No socket listens.
        if value == 0 { Err(ErrorCode::InvalidArgument.into()) } else { Ok(()) }
    }

    fn keep_alive_enabled(&mut self, socket: Socket) -> SocketResult<bool> {
        Ok(self.tcp_socket(&socket)?.options.keep_alive.unwrap_or_default())
    }

    fn set_keep_alive_enabled(&mut self, socket: Socket, value: bool) -> SocketResult<()> {
        self.tcp_socket(&socket)?.options.keep_alive = Some(value);
        Ok(())
    }

    options! {
        Socket, tcp_socket:
        keep_alive_idle_time as u64 = keep_alive_idle_nanos, set_keep_alive_idle_time = set_keep_alive_idle_nanos;
        keep_alive_interval as u64 = keep_alive_interval_nanos, set_keep_alive_interval = set_keep_alive_interval_nanos;
        keep_alive_count as u32 = keep_alive_count, set_keep_alive_count = set_keep_alive_count;
        hop_limit as u8 = hop_limit, set_hop_limit = set_hop_limit;
        receive_buffer_size as u64 = receive_bytes, set_receive_buffer_size = set_receive_bytes;
        send_buffer_size as u64 = send_bytes, set_send_buffer_size = set_send_bytes;
    }

    fn subscribe(&mut self, socket: Socket) -> wasmtime::Result<Resource<DynPollable>> {
        subscribe(self.table(), socket)
    }

    fn shutdown(&mut self, socket: Socket, how: ShutdownType) -> SocketResult<()> {
        let TcpState::Connected { input, output, .. } = &self.tcp_socket(&socket)?.state else {
            return Err(ErrorCode::InvalidState.into());
        };
        if matches!(how, ShutdownType::Receive | ShutdownType::Both) {
            input.shut_down();
        }
        if matches!(how, ShutdownType::Send | ShutdownType::Both) {
            output.shut_down();
        }
        Ok(())
    }

    fn drop(&mut self, socket: Socket) -> wasmtime::Result<()> {
        self.table().delete(socket)?;
        Ok(())
    }
}
