//! A file as a stream of `wasi:io`. Every piece is read or written when the call returns, so a
//! stream is always ready and buffers nothing. Only a piece that found no room is held until the
//! folder has been recounted.
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use super::bindings::types::ErrorCode;
use super::handle::{self, PIECE_BYTES_MAX, Position};

/// Reads on from a position.
pub(crate) struct Reader {
    handle: Arc<handle::Handle>,
    offset: u64,
    closed: bool,
}

impl Reader {
    pub(crate) fn new(handle: Arc<handle::Handle>, offset: u64) -> Self {
        Self { handle, offset, closed: false }
    }
}

impl InputStream for Reader {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if self.closed {
            return Err(StreamError::Closed);
        }
        if size == 0 {
            return Ok(Bytes::new());
        }
        match self.handle.read(size as u64, self.offset) {
            Ok(bytes) if bytes.is_empty() => {
                self.closed = true;
                Err(StreamError::Closed)
            }
            Ok(bytes) => {
                self.offset = self.offset.saturating_add(bytes.len() as u64);
                Ok(bytes.into())
            }
            Err(code) => {
                self.closed = true;
                Err(failed(code))
            }
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Reader {
    async fn ready(&mut self) {}
}

/// Writes on from a position, or always at the end.
pub(crate) struct Writer {
    handle: Arc<handle::Handle>,
    position: Position,
    state: StreamState,
}

enum StreamState {
    Open,
    /// A piece of this many bytes waits for the count.
    Held(JoinHandle<Result<(), ErrorCode>>, u64),
    /// An earlier write failed, and the guest does not know yet.
    Failed(ErrorCode),
    Closed,
}

impl Writer {
    pub(crate) fn new(handle: Arc<handle::Handle>, position: Position) -> Self {
        Self { handle, position, state: StreamState::Open }
    }

    /// The number of bytes that may be written.
    fn permitted(&mut self) -> StreamResult<usize> {
        match self.state {
            StreamState::Open => Ok(PIECE_BYTES_MAX),
            StreamState::Held(..) => Ok(0),
            StreamState::Failed(code) => {
                self.state = StreamState::Closed;
                Err(failed(code))
            }
            StreamState::Closed => Err(StreamError::Closed),
        }
    }

    fn advance(&mut self, written: u64) {
        if let Position::At(offset) = &mut self.position {
            *offset = offset.saturating_add(written);
        }
    }

    /// Writes it again on another thread, after a recount. `None` if a recount would change
    /// nothing.
    fn hold(&self, bytes: Bytes) -> Option<StreamState> {
        let account = self.handle.account().filter(|account| account.was_refused())?.clone();
        let runtime = Handle::try_current().ok()?;
        let handle = Arc::clone(&self.handle);
        let position = self.position;
        let length = bytes.len() as u64;
        let writing = runtime.spawn_blocking(move || {
            if account.recount() { handle.write(&bytes, position) } else { Err(ErrorCode::InsufficientSpace) }
        });
        Some(StreamState::Held(writing, length))
    }
}

impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > self.permitted()? {
            return Err(StreamError::trap("more is written than check-write allowed"));
        }
        self.put(bytes).map_err(failed)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.permitted().map(drop)
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.permitted()
    }
}

impl Writer {
    /// Writes a piece, or holds it until the folder has been recounted.
    pub(super) fn put(&mut self, bytes: Bytes) -> Result<(), ErrorCode> {
        let code = match self.handle.write(&bytes, self.position) {
            Ok(()) => {
                self.advance(bytes.len() as u64);
                return Ok(());
            }
            Err(ErrorCode::InsufficientSpace) => match self.hold(bytes) {
                Some(held) => {
                    self.state = held;
                    return Ok(());
                }
                None => ErrorCode::InsufficientSpace,
            },
            Err(code) => code,
        };
        self.state = StreamState::Closed;
        Err(code)
    }

    /// Ready once no piece is held, with the error of one that was.
    pub(super) fn poll_done(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ErrorCode>> {
        ready!(self.poll_ready(context));
        Poll::Ready(match self.state {
            StreamState::Failed(code) => Err(code),
            _ => Ok(()),
        })
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let StreamState::Held(writing, length) = &mut self.state else { return Poll::Ready(()) };
        let length = *length;
        let written = ready!(Pin::new(writing).poll(context)).unwrap_or(Err(ErrorCode::Io));
        self.state = match written {
            Ok(()) => StreamState::Open,
            Err(code) => StreamState::Failed(code),
        };
        if written.is_ok() {
            self.advance(length);
        }
        Poll::Ready(())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {
        poll_fn(|context| self.poll_ready(context)).await;
    }
}

/// `filesystem-error-code` finds the code in it.
fn failed(code: ErrorCode) -> StreamError {
    StreamError::LastOperationFailed(code.into())
}
