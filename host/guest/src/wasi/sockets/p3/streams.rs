//! The two directions of a TCP connection as streams of WASI 0.3. One piece at a time is on its
//! way, and each turn of a stream counts as a call of the host.
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use toolcell_walls::door::DATA_BYTES_MAX;
use wasmtime::component::{Destination, Source, StreamConsumer, StreamProducer, StreamResult};
use wasmtime::{AsContextMut as _, StoreContextMut};
use wasmtime_wasi::p2::{OutputStream as _, StreamError};

use super::super::streams::{Input, Output};
use super::bindings::types::ErrorCode;
use crate::wasi::p3::outcome::Outcome;
use crate::wasi::state::CallState;

/// Bytes that a guest sends. The other side hears the end when the guest drops its stream.
pub(super) struct Sending {
    pub(super) output: Output,
    pub(super) outcome: Outcome<ErrorCode>,
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.output.shut_down();
    }
}

impl StreamConsumer<CallState> for Sending {
    type Item = u8;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut store: StoreContextMut<'_, CallState>,
        source: Source<'_, u8>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        store.data_mut().called();
        match self.output.poll_room(context) {
            Poll::Pending if finish => return Poll::Ready(Ok(StreamResult::Cancelled)),
            Poll::Pending => return Poll::Pending,
            Poll::Ready(false) => return self.outcome.ends(ErrorCode::ConnectionBroken),
            Poll::Ready(true) => {}
        }
        let mut source = source.as_direct(store);
        let bytes = source.remaining();
        let piece = bytes.get(..DATA_BYTES_MAX).unwrap_or(bytes);
        let length = piece.len();
        if length > 0 {
            if self.output.write(Bytes::copy_from_slice(piece)).is_err() {
                return self.outcome.ends(ErrorCode::ConnectionBroken);
            }
            source.mark_read(length);
        }
        Poll::Ready(Ok(StreamResult::Completed))
    }
}

/// Bytes that a guest receives.
pub(super) struct Receiving {
    pub(super) input: Input,
    pub(super) outcome: Outcome<ErrorCode>,
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.input.shut_down();
    }
}

impl StreamProducer<CallState> for Receiving {
    type Item = u8;
    type Buffer = BytesMut;

    fn poll_produce<'a>(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut store: StoreContextMut<'a, CallState>,
        destination: Destination<'a, u8, BytesMut>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        store.data_mut().called();
        if destination.remaining(store.as_context_mut()) == Some(0) {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        let mut destination = destination.as_direct(store, DATA_BYTES_MAX);
        let room = destination.remaining();
        match self.input.poll_read(context, room.len()) {
            Poll::Pending if finish => Poll::Ready(Ok(StreamResult::Cancelled)),
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(bytes)) => {
                room.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
                destination.mark_written(bytes.len());
                Poll::Ready(Ok(StreamResult::Completed))
            }
            Poll::Ready(Err(StreamError::Closed)) => Poll::Ready(Ok(StreamResult::Dropped)),
            Poll::Ready(Err(error)) => self.outcome.ends(ErrorCode::Other(Some(error.to_string()))),
        }
    }
}
