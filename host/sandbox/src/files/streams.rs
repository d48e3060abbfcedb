//! A file as a stream of `wasi:io`: every piece is read or written by the time the call returns, so a stream is always
//! ready and holds nothing back.
use std::sync::Arc;

use bytes::Bytes;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use super::bindings::types::ErrorCode;
use super::handle::{Handle, PIECE_BYTES_MAX, Position};

/// Reads on from a position.
pub(crate) struct Reader {
    handle: Arc<Handle>,
    offset: u64,
    closed: bool,
}

impl Reader {
    pub(crate) fn new(handle: Arc<Handle>, offset: u64) -> Self {
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
    handle: Arc<Handle>,
    position: Position,
    closed: bool,
}

impl Writer {
    pub(crate) fn new(handle: Arc<Handle>, position: Position) -> Self {
        Self { handle, position, closed: false }
    }

    fn open(&self) -> StreamResult<()> {
        if self.closed { Err(StreamError::Closed) } else { Ok(()) }
    }
}

impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.open()?;
        if bytes.len() > PIECE_BYTES_MAX {
            return Err(StreamError::trap("more is written than check-write allowed"));
        }
        match self.handle.write(&bytes, self.position) {
            Ok(()) => {
                if let Position::At(offset) = &mut self.position {
                    *offset = offset.saturating_add(bytes.len() as u64);
                }
                Ok(())
            }
            Err(code) => {
                self.closed = true;
                Err(failed(code))
            }
        }
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.open()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.open()?;
        Ok(PIECE_BYTES_MAX)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {}
}

/// `filesystem-error-code` finds the code in it again.
fn failed(code: ErrorCode) -> StreamError {
    StreamError::LastOperationFailed(code.into())
}
