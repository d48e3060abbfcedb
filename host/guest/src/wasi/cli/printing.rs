//! Receivers of a guest's output, as the streams of WASI.
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use crate::wasi::cli::standard;

/// Bytes that a guest may write at once: the size that WASI hosts commonly permit. It bounds the
/// host's allocation for one `write-zeroes`.
const WRITE_BYTES_MAX: usize = 64 * 1024;

/// Standard output or standard error, which never is a terminal.
#[derive(Clone, Debug)]
pub(crate) struct Printer(pub(crate) standard::OutputStream);

impl OutputStream for Printer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.0.print(&bytes).map_err(StreamError::Trap)
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BYTES_MAX)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Printer {
    async fn ready(&mut self) {}
}

impl AsyncWrite for Printer {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Poll::Ready(self.0.print(bytes).map(|()| bytes.len()).map_err(std::io::Error::other))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl IsTerminal for Printer {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Printer {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}
