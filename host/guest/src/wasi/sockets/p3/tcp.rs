//! TCP sockets of WASI 0.3. A socket is the same as in 0.2; connecting is a task, and each
//! direction is a stream that can be taken once.
use toolcell_policy::Capability;
use wasmtime::component::{Access, Accessor, HasSelf, StreamReader};
use wasmtime_wasi::p2::SocketResult;

use super::super::bindings::wasi::sockets::tcp::HostTcpSocket as P2;
use super::super::bindings::wasi::sockets::tcp_create_socket::Host as _;
use super::super::tcp::{Socket, TcpSocket, connect};
use super::bindings::types::{
    ErrorCode, Host, HostTcpSocket, HostTcpSocketWithStore, IpAddressFamily, IpSocketAddress,
};
use super::convert::{self, refused};
use super::streams::{Receiving, Sending};
use super::{Refused, asked};
use crate::wasi::p3::outcome::{Ended, from_guest, to_guest};
use crate::wasi::state::CallState;

type Result<T> = std::result::Result<T, Refused>;
type Store<'a> = Access<'a, CallState, HasSelf<CallState>>;

impl Host for CallState {
    fn convert_error_code(&mut self, error: Refused) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }
}

/// What a direction is, or the code that a guest gets.
fn told<T>(taken: SocketResult<T>) -> wasmtime::Result<std::result::Result<T, ErrorCode>> {
    match taken {
        Ok(direction) => Ok(Ok(direction)),
        Err(error) => Ok(Err(convert::error(error.downcast()?))),
    }
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

    fn send(mut store: Store<'_>, socket: Socket, data: StreamReader<u8>) -> wasmtime::Result<Ended<ErrorCode>> {
        let output = told(store.get().tcp_socket(&socket).and_then(TcpSocket::take_output))?;
        from_guest(store, data, output.map(|output| move |outcome| Sending { output, outcome }))
    }

    fn receive(mut store: Store<'_>, socket: Socket) -> wasmtime::Result<(StreamReader<u8>, Ended<ErrorCode>)> {
        let input = told(store.get().tcp_socket(&socket).and_then(TcpSocket::take_input))?;
        to_guest(store, input.map(|input| move |outcome| Receiving { input, outcome }))
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

    fn get_is_listening(&mut self, socket: Socket) -> wasmtime::Result<bool> {
        P2::is_listening(self, socket)
    }

    fn set_listen_backlog_size(&mut self, socket: Socket, value: u64) -> Result<()> {
        P2::set_listen_backlog_size(self, socket, value).map_err(refused)
    }

    functions_of_p2! {
        get_keep_alive_enabled as bool = keep_alive_enabled, set_keep_alive_enabled;
        get_keep_alive_idle_time as u64 = keep_alive_idle_time, set_keep_alive_idle_time;
        get_keep_alive_interval as u64 = keep_alive_interval, set_keep_alive_interval;
        get_keep_alive_count as u32 = keep_alive_count, set_keep_alive_count;
        get_hop_limit as u8 = hop_limit, set_hop_limit;
        get_receive_buffer_size as u64 = receive_buffer_size, set_receive_buffer_size;
        get_send_buffer_size as u64 = send_buffer_size, set_send_buffer_size;
    }
}
