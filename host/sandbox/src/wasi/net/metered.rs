//! A connection whose bytes are charged to its call.
//!
//! It is between the protocol and TLS. Headers, chunk framing, HTTP/2 frames and informational
//! responses count like bodies; TLS handshakes do not.
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::call_net::CallNet;

/// Charges reads and writes to a call. Fails if the call has used up its bytes.
pub(crate) struct MeteredStream<S> {
    stream: S,
    net: Arc<CallNet>,
}

impl<S> MeteredStream<S> {
    pub(crate) const fn new(stream: S, net: Arc<CallNet>) -> Self {
        Self { stream, net }
    }
}

fn spent() -> io::Error {
    io::Error::from(io::ErrorKind::QuotaExceeded)
}

fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let bytes = buffer.filled().len().saturating_sub(before);
        if self.net.charge_ingress(count(bytes)) {
            return Poll::Ready(Ok(()));
        }
        buffer.set_filled(before);
        Poll::Ready(Err(spent()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let taken = self.net.take_egress(count(bytes.len()));
        let taken_bytes = bytes.get(..usize::try_from(taken).unwrap_or(usize::MAX)).unwrap_or_default();
        if taken_bytes.is_empty() && !bytes.is_empty() {
            return Poll::Ready(Err(spent()));
        }
        let written = Pin::new(&mut self.stream).poll_write(context, taken_bytes);
        let sent = match &written {
            Poll::Ready(Ok(sent)) => count(*sent),
            _ => 0,
        };
        self.net.give_back_egress(taken.saturating_sub(sent));
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
