//! TCP sockets of WASI 0.3. A socket is the same as in 0.2; connecting is a task, and each
//! direction is a stream that can be taken once.
use tokio::sync::oneshot;
use toolcell_policy::Capability;
use wasmtime::component::{Access, Accessor, FutureReader, HasSelf, Resource, StreamReader};

use super::super::bindings::wasi::sockets::tcp::HostTcpSocket as P2;
use super::super::bindings::wasi::sockets::tcp_create_socket::Host as _;
use super::super::tcp::{TcpSocket, connect};
use super::bindings::types::{
    ErrorCode, Host, HostTcpSocket, HostTcpSocketWithStore, IpAddressFamily, IpSocketAddress,
};
use super::convert::{self, refused};
use super::streams::{Receiving, Sending};
use super::{Refused, asked};
use crate::wasi::state::CallState;

type Result<T> = std::result::Result<T, Refused>;
type Socket = Resource<TcpSocket>;
type Store<'a> = Access<'a, CallState, HasSelf<CallState>>;

/// How a direction ended.
type Ended = FutureReader<std::result::Result<(), ErrorCode>>;

impl Host for CallState {
    fn convert_error_code(&mut self, error: Refused) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }
}

fn ended(store: &mut Store<'_>, outcome: oneshot::Receiver<ErrorCode>) -> wasmtime::Result<Ended> {
    FutureReader::new(store, async { wasmtime::error::Ok(outcome.await.map_or(Ok(()), Err)) })
}

fn failed(store: &mut Store<'_>, error: wasmtime_wasi::p2::SocketError) -> wasmtime::Result<Ended> {
    let code = convert::error(error.downcast()?);
    FutureReader::new(store, async { wasmtime::error::Ok(Err(code)) })
}

impl HostTcpSocketWithStore<CallState> for HasSelf<CallState> {
    async fn connect(store: &Accessor<CallState, Self>, socket: Socket, to: IpSocketAddress) -> Result<()> {
        let to = convert::target(to);
        let question = store.with(|mut store| {
            let state = store.get();
            state.tcp_socket(&socket)?.may_connect()?;
            Ok(state.question_before_socket(Capability::Tcp, to))
        });
        let to = asked(question.map_err(refused)?, to).await?;
        let attempt = store.with(|mut store| store.get().tcp_socket(&socket)?.begins_to_connect(to));
        let (outside, wanted) = attempt.map_err(refused)?;
        let connected = connect(outside, wanted).await;
        let done = store.with(|mut store| store.get().tcp_socket(&socket)?.connected(connected));
        done.map_err(refused)
    }

    fn send(mut store: Store<'_>, socket: Socket, mut data: StreamReader<u8>) -> wasmtime::Result<Ended> {
        match store.get().tcp_socket(&socket).and_then(TcpSocket::take_output) {
            Ok(output) => {
                let (sender, outcome) = oneshot::channel();
                data.pipe(&mut store, Sending::new(output, sender))?;
                ended(&mut store, outcome)
            }
            Err(error) => {
                data.close(&mut store)?;
                failed(&mut store, error)
            }
        }
    }

    fn receive(mut store: Store<'_>, socket: Socket) -> wasmtime::Result<(StreamReader<u8>, Ended)> {
        match store.get().tcp_socket(&socket).and_then(TcpSocket::take_input) {
            Ok(input) => {
                let (sender, outcome) = oneshot::channel();
                let stream = StreamReader::new(&mut store, Receiving::new(input, sender))?;
                Ok((stream, ended(&mut store, outcome)?))
            }
            Err(error) => {
                let stream = StreamReader::new(&mut store, Vec::new())?;
                Ok((stream, failed(&mut store, error)?))
            }
        }
    }
}

impl HostTcpSocket for CallState {
    fn create(&mut self, family: IpAddressFamily) -> Result<Socket> {
        self.create_tcp_socket(convert::family(family)).map_err(refused)
    }

    fn bind(&mut self, socket: Socket, to: IpSocketAddress) -> Result<()> {
        self.may_bind(Capability::Tcp, convert::target(to)).map_err(refused)?;
        self.tcp_socket(&socket).and_then(TcpSocket::binds).map_err(refused)
    }

    fn listen(&mut self, socket: Socket) -> Result<StreamReader<Socket>> {
        P2::start_listen(self, socket).map_err(refused)?;
        Err(ErrorCode::AccessDenied.into())
    }

    fn get_local_address(&mut self, socket: Socket) -> Result<IpSocketAddress> {
        let address = P2::local_address(self, socket).map_err(refused)?;
        Ok(convert::address(address.into()))
    }

    fn get_remote_address(&mut self, socket: Socket) -> Result<IpSocketAddress> {
        let address = P2::remote_address(self, socket).map_err(refused)?;
        Ok(convert::address(address.into()))
    }

    fn get_is_listening(&mut self, socket: Socket) -> wasmtime::Result<bool> {
        P2::is_listening(self, socket)
    }

    fn get_address_family(&mut self, socket: Socket) -> wasmtime::Result<IpAddressFamily> {
        P2::address_family(self, socket).map(convert::family_of)
    }

    fn set_listen_backlog_size(&mut self, socket: Socket, value: u64) -> Result<()> {
        P2::set_listen_backlog_size(self, socket, value).map_err(refused)
    }

    fn get_keep_alive_enabled(&mut self, socket: Socket) -> Result<bool> {
        P2::keep_alive_enabled(self, socket).map_err(refused)
    }

    fn set_keep_alive_enabled(&mut self, socket: Socket, value: bool) -> Result<()> {
        P2::set_keep_alive_enabled(self, socket, value).map_err(refused)
    }

    fn get_keep_alive_idle_time(&mut self, socket: Socket) -> Result<u64> {
        P2::keep_alive_idle_time(self, socket).map_err(refused)
    }

    fn set_keep_alive_idle_time(&mut self, socket: Socket, value: u64) -> Result<()> {
        P2::set_keep_alive_idle_time(self, socket, value).map_err(refused)
    }

    fn get_keep_alive_interval(&mut self, socket: Socket) -> Result<u64> {
        P2::keep_alive_interval(self, socket).map_err(refused)
    }

    fn set_keep_alive_interval(&mut self, socket: Socket, value: u64) -> Result<()> {
        P2::set_keep_alive_interval(self, socket, value).map_err(refused)
    }

    fn get_keep_alive_count(&mut self, socket: Socket) -> Result<u32> {
        P2::keep_alive_count(self, socket).map_err(refused)
    }

    fn set_keep_alive_count(&mut self, socket: Socket, value: u32) -> Result<()> {
        P2::set_keep_alive_count(self, socket, value).map_err(refused)
    }

    fn get_hop_limit(&mut self, socket: Socket) -> Result<u8> {
        P2::hop_limit(self, socket).map_err(refused)
    }

    fn set_hop_limit(&mut self, socket: Socket, value: u8) -> Result<()> {
        P2::set_hop_limit(self, socket, value).map_err(refused)
    }

    fn get_receive_buffer_size(&mut self, socket: Socket) -> Result<u64> {
        P2::receive_buffer_size(self, socket).map_err(refused)
    }

    fn set_receive_buffer_size(&mut self, socket: Socket, value: u64) -> Result<()> {
        P2::set_receive_buffer_size(self, socket, value).map_err(refused)
    }

    fn get_send_buffer_size(&mut self, socket: Socket) -> Result<u64> {
        P2::send_buffer_size(self, socket).map_err(refused)
    }

    fn set_send_buffer_size(&mut self, socket: Socket, value: u64) -> Result<()> {
        P2::set_send_buffer_size(self, socket, value).map_err(refused)
    }

    fn drop(&mut self, socket: Socket) -> wasmtime::Result<()> {
        P2::drop(self, socket)
    }
}
