//! Files and folders as streams of WASI 0.3. Each turn of a stream moves one bounded piece, and
//! counts as a call of the host. Nothing is read ahead, and only a piece that found no room is held
//! until its folder has been recounted.
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use wasmtime::component::{Destination, Source, StreamConsumer, StreamProducer, StreamResult, VecBuffer};
use wasmtime::{AsContextMut as _, StoreContextMut};

use super::super::bindings::types as p2;
use super::super::devices::Device;
use super::super::handle::{Handle, PIECE_BYTES_MAX, Position};
use super::super::host::{Fd, FilesView};
use super::super::listing::{Listing, ListingStep};
use super::super::refused::Refused;
use super::super::streams::Writer;
use super::bindings::types::{DirectoryEntry, ErrorCode};
use super::convert;
use crate::wasi::p3::outcome::Outcome;
use crate::wasi::state::CallState;

/// Entries of a folder that one turn hands over: as many as one step examines at most.
const ENTRIES_MAX: usize = 64;

/// A file or a device that a guest reads.
pub(super) struct ToGuest {
    pub(super) from: ReadFrom,
    pub(super) offset: u64,
    pub(super) outcome: Outcome<ErrorCode>,
}

/// What a guest reads.
pub(super) enum ReadFrom {
    File(Arc<Handle>),
    Device(Device),
}

impl ReadFrom {
    pub(super) fn of(view: &FilesView<'_>, fd: &Fd) -> Result<Self, Refused> {
        Ok(match view.device(fd)? {
            Some(device) => Self::Device(device.to_read()?),
            None => Self::File(Arc::clone(&view.file_to_read(fd)?.handle)),
        })
    }

    fn read(&self, length: usize, offset: u64) -> Result<Vec<u8>, p2::ErrorCode> {
        match self {
            Self::File(handle) => handle.read(length as u64, offset),
            Self::Device(device) => device.read(length as u64),
        }
    }
}

impl StreamProducer<CallState> for ToGuest {
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
        let mut destination = destination.as_direct(store, PIECE_BYTES_MAX);
        let room = destination.remaining();
        match self.from.read(room.len(), self.offset) {
            Ok(bytes) if bytes.is_empty() => Poll::Ready(Ok(StreamResult::Dropped)),
            Ok(bytes) => {
                room.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
                destination.mark_written(bytes.len());
                self.offset = self.offset.saturating_add(bytes.len() as u64);
                Poll::Ready(Ok(StreamResult::Completed))
            }
            Err(code) => self.outcome.ends(convert::error(code)),
        }
    }
}

/// A file or a device that a guest writes.
pub(super) struct FromGuest {
    /// `None` for a device, which takes everything and keeps nothing.
    pub(super) to: Option<Writer>,
    /// Bytes of the piece that is held.
    pub(super) held_bytes: usize,
    pub(super) outcome: Outcome<ErrorCode>,
}

impl FromGuest {
    pub(super) fn writer(view: &FilesView<'_>, fd: &Fd, position: Position) -> Result<Option<Writer>, Refused> {
        if let Some(device) = view.device(fd)? {
            return Ok(device.to_write().map(|_| None)?);
        }
        Ok(Some(Writer::new(Arc::clone(&view.file_to_write(fd)?.handle), position)))
    }
}

impl StreamConsumer<CallState> for FromGuest {
    type Item = u8;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut store: StoreContextMut<'_, CallState>,
        source: Source<'_, u8>,
        _: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        store.data_mut().called();
        let mut source = source.as_direct(store);
        let Self { to, held_bytes, outcome } = &mut *self;
        let bytes = source.remaining();
        let length = bytes.len().min(PIECE_BYTES_MAX);
        let Some(writer) = to else {
            source.mark_read(length);
            return Poll::Ready(Ok(StreamResult::Completed));
        };
        if length == 0 {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        if *held_bytes == 0 {
            let piece = Bytes::copy_from_slice(bytes.get(..length).unwrap_or_default());
            if let Err(code) = writer.put(piece) {
                return outcome.ends(convert::error(code));
            }
            *held_bytes = length;
        }
        // The guest keeps the piece until it is written, so that no error is lost. It waits for the
        // count even if it gives the write up.
        if let Err(code) = ready!(writer.poll_done(context)) {
            return outcome.ends(convert::error(code));
        }
        source.mark_read(std::mem::take(held_bytes));
        Poll::Ready(Ok(StreamResult::Completed))
    }
}

/// The entries of a folder.
pub(super) struct FolderEntries {
    pub(super) listing: Listing,
    pub(super) outcome: Outcome<ErrorCode>,
}

impl StreamProducer<CallState> for FolderEntries {
    type Item = DirectoryEntry;
    type Buffer = VecBuffer<DirectoryEntry>;

    fn poll_produce<'a>(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut store: StoreContextMut<'a, CallState>,
        mut destination: Destination<'a, DirectoryEntry, VecBuffer<DirectoryEntry>>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        store.data_mut().called();
        let room = destination.remaining(store.as_context_mut()).unwrap_or(ENTRIES_MAX).min(ENTRIES_MAX);
        if room == 0 {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        let mut entries = Vec::new();
        let mut end = StreamResult::Completed;
        while entries.len() < room {
            match self.listing.step() {
                Ok(ListingStep::Entry(entry)) => entries.push(convert::entry(entry)),
                Ok(ListingStep::More) => break,
                Ok(ListingStep::End) => {
                    end = StreamResult::Dropped;
                    break;
                }
                Err(code) => {
                    let _ = self.outcome.ends(convert::error(code));
                    end = StreamResult::Dropped;
                    break;
                }
            }
        }
        if entries.is_empty() && matches!(end, StreamResult::Completed) {
            if finish {
                return Poll::Ready(Ok(StreamResult::Cancelled));
            }
            // A folder may have any number of entries that guests cannot see, so others get a turn.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        destination.set_buffer(entries.into());
        Poll::Ready(Ok(end))
    }
}
