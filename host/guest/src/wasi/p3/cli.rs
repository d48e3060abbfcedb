//! `wasi:cli` of WASI 0.3: the same variables, arguments and standard streams as in 0.2. A stream
//! of output takes each piece at once, so that nothing waits in the host.
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use wasmtime::component::{
    Access, Destination, HasSelf, Linker, Source, StreamConsumer, StreamProducer, StreamReader, StreamResult,
};
use wasmtime::{AsContextMut as _, StoreContextMut};
use wasmtime_wasi::cli::{WasiCli, WasiCliView as _};
use wasmtime_wasi::p2::InputStream as _;
use wasmtime_wasi::p2::bindings::cli::environment as p2;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::p3::bindings::cli::types::ErrorCode;
use wasmtime_wasi::p3::bindings::cli::{
    environment, exit, stderr, stdin, stdout, terminal_input, terminal_output, terminal_stderr, terminal_stdin,
    terminal_stdout,
};

use super::outcome::{Ended, Outcome, from_guest, to_guest};
use crate::wasi::cli::standard::OutputStream;
use crate::wasi::state::CallState;

/// Bytes of standard input that one read gets, if the guest's buffer has room: as much as WASI
/// hosts commonly move at once.
const READ_BYTES_MAX: usize = 64 * 1024;

pub(super) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    exit::add_to_linker::<CallState, WasiCli>(linker, CallState::cli)?;
    environment::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::reached)?;
    stdin::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::called)?;
    stdout::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::called)?;
    stderr::add_to_linker::<CallState, HasSelf<CallState>>(linker, CallState::called)?;
    terminal_input::add_to_linker::<CallState, WasiCli>(linker, CallState::cli)?;
    terminal_output::add_to_linker::<CallState, WasiCli>(linker, CallState::cli)?;
    terminal_stdin::add_to_linker::<CallState, WasiCli>(linker, CallState::cli)?;
    terminal_stdout::add_to_linker::<CallState, WasiCli>(linker, CallState::cli)?;
    terminal_stderr::add_to_linker::<CallState, WasiCli>(linker, CallState::cli)
}

impl environment::Host for CallState {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        p2::Host::get_environment(self)
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        p2::Host::get_arguments(self)
    }

    fn get_initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        p2::Host::initial_cwd(self)
    }
}

impl stdin::Host for CallState {}
impl stdout::Host for CallState {}
impl stderr::Host for CallState {}

impl stdin::HostWithStore<CallState> for HasSelf<CallState> {
    fn read_via_stream(
        mut store: Access<'_, CallState, Self>,
    ) -> wasmtime::Result<(StreamReader<u8>, Ended<ErrorCode>)> {
        let stdin = store.get().standard().stdin.clone();
        to_guest(store, Ok(|outcome| Input { stdin, _outcome: outcome }))
    }
}

impl stdout::HostWithStore<CallState> for HasSelf<CallState> {
    fn write_via_stream(
        mut store: Access<'_, CallState, Self>,
        data: StreamReader<u8>,
    ) -> wasmtime::Result<Ended<ErrorCode>> {
        let output = store.get().standard().stdout.clone();
        printed(store, data, output)
    }
}

impl stderr::HostWithStore<CallState> for HasSelf<CallState> {
    fn write_via_stream(
        mut store: Access<'_, CallState, Self>,
        data: StreamReader<u8>,
    ) -> wasmtime::Result<Ended<ErrorCode>> {
        let output = store.get().standard().stderr.clone();
        printed(store, data, output)
    }
}

fn printed(
    store: Access<'_, CallState, HasSelf<CallState>>,
    data: StreamReader<u8>,
    output: OutputStream,
) -> wasmtime::Result<Ended<ErrorCode>> {
    from_guest(store, data, Ok(|outcome| Output { output, _outcome: outcome }))
}

/// Standard input.
struct Input {
    stdin: Option<MemoryInputPipe>,
    /// Never told anything: the future resolves when this is dropped with its stream.
    _outcome: Outcome<ErrorCode>,
}

impl StreamProducer<CallState> for Input {
    type Item = u8;
    type Buffer = BytesMut;

    fn poll_produce<'a>(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut store: StoreContextMut<'a, CallState>,
        destination: Destination<'a, u8, BytesMut>,
        _: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        store.data_mut().called();
        if destination.remaining(store.as_context_mut()) == Some(0) {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        let mut destination = destination.as_direct(store, READ_BYTES_MAX);
        let room = destination.remaining();
        let length = room.len().min(READ_BYTES_MAX);
        // The pipe's one error is its end.
        let Some(Ok(bytes)) = self.stdin.as_mut().map(|stdin| stdin.read(length)) else {
            return Poll::Ready(Ok(StreamResult::Dropped));
        };
        room.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
        destination.mark_written(bytes.len());
        Poll::Ready(Ok(StreamResult::Completed))
    }
}

/// Standard output or standard error.
struct Output {
    output: OutputStream,
    /// Never told anything: the future resolves when this is dropped with its stream.
    _outcome: Outcome<ErrorCode>,
}

impl StreamConsumer<CallState> for Output {
    type Item = u8;

    fn poll_consume(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut store: StoreContextMut<'_, CallState>,
        source: Source<'_, u8>,
        _: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        store.data_mut().called();
        let mut source = source.as_direct(store);
        let bytes = source.remaining();
        let length = bytes.len();
        // Past a limit, the call ends here, as it does with WASI 0.2.
        self.output.print(bytes)?;
        source.mark_read(length);
        Poll::Ready(Ok(StreamResult::Completed))
    }
}
