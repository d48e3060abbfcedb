//! Files and folders as streams of WASI 0.3. Each turn of a stream moves one bounded piece, and
//! counts as a call of the host. Nothing is read ahead, and only a piece that found no room is held
//! until its folder has been recounted.
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::sync::oneshot;
use wasmtime::component::{Destination, Resource, Source, StreamConsumer, StreamProducer, StreamResult, VecBuffer};
use wasmtime::{AsContextMut as _, StoreContextMut};

use super::super::bindings::types as p2;
use super::super::call::Descriptor;
use super::super::devices::Device;
use super::super::handle::{Handle, PIECE_BYTES_MAX, Position};
use super::super::host::FilesView;
use super::super::listing::{Listing, ListingStep};
use super::super::refused::Refused;
use super::super::streams::Writer;
use super::bindings::types::{DirectoryEntry, ErrorCode};
use super::convert;
use crate::wasi::state::CallState;

/// Entries of a folder that one turn hands over: as many as one step examines at most.
const ENTRIES_MAX: usize = 64;

/// Tells how a stream ended, unless it ended well.
type Outcome = Option<oneshot::Sender<ErrorCode>>;

/// The stream ends with this error. A guest that dropped the future does not want to know.
fn ends(outcome: &mut Outcome, code: p2::ErrorCode) -> Poll<wasmtime::Result<StreamResult>> {
    if let Some(outcome) = outcome.take() {
        let _ = outcome.send(convert::error(code));
    }
    Poll::Ready(Ok(StreamResult::Dropped))
}

/// A file or a device that a guest reads.
pub(super) struct ToGuest {
    from: ReadFrom,
    offset: u64,
    outcome: Outcome,
}

enum ReadFrom {
    File(Arc<Handle>),
    Device(Device),
}

impl ToGuest {
    pub(super) fn of(view: &FilesView<'_>, fd: &Resource<Descriptor>, offset: u64) -> Result<Self, Refused> {
        let from = match view.device(fd)? {
            Some(device) => ReadFrom::Device(device.to_read()?),
            None => ReadFrom::File(Arc::clone(&view.file_to_read(fd)?.handle)),
        };
        Ok(Self { from, offset, outcome: None })
    }

    pub(super) fn telling(self, outcome: oneshot::Sender<ErrorCode>) -> Self {
        Self { outcome: Some(outcome), ..self }
    }

    fn read(&self, length: usize) -> Result<Vec<u8>, p2::ErrorCode> {
        match &self.from {
            ReadFrom::File(handle) => handle.read(length as u64, self.offset),
            ReadFrom::Device(device) => device.read(length as u64),
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
        match self.read(room.len()) {
            Ok(bytes) if bytes.is_empty() => Poll::Ready(Ok(StreamResult::Dropped)),
            Ok(bytes) => {
                room.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
                destination.mark_written(bytes.len());
                self.offset = self.offset.saturating_add(bytes.len() as u64);
                Poll::Ready(Ok(StreamResult::Completed))
            }
            Err(code) => ends(&mut self.outcome, code),
        }
    }
}

/// A file or a device that a guest writes.
pub(super) struct FromGuest {
    /// `None` for a device, which takes everything and keeps nothing.
    to: Option<Writer>,
    /// Bytes of the piece that is held.
    held_bytes: usize,
    outcome: Outcome,
}

impl FromGuest {
    pub(super) fn of(view: &FilesView<'_>, fd: &Resource<Descriptor>, position: Position) -> Result<Self, Refused> {
        let to = match view.device(fd)? {
            Some(device) => {
                device.to_write()?;
                None
            }
            None => Some(Writer::new(Arc::clone(&view.file_to_write(fd)?.handle), position)),
        };
        Ok(Self { to, held_bytes: 0, outcome: None })
    }

    pub(super) fn telling(self, outcome: oneshot::Sender<ErrorCode>) -> Self {
        Self { outcome: Some(outcome), ..self }
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
                return ends(outcome, code);
            }
            *held_bytes = length;
        }
        // The guest keeps the piece until it is written, so that no error is lost. It waits for the
        // count even if it gives the write up.
        if let Err(code) = ready!(writer.poll_done(context)) {
            return ends(outcome, code);
        }
        source.mark_read(std::mem::take(held_bytes));
        Poll::Ready(Ok(StreamResult::Completed))
    }
}

/// The entries of a folder.
pub(super) struct FolderEntries {
    listing: Listing,
    outcome: Outcome,
}

impl FolderEntries {
    pub(super) fn new(listing: Listing, outcome: oneshot::Sender<ErrorCode>) -> Self {
        Self { listing, outcome: Some(outcome) }
    }
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
                    let _ = ends(&mut self.outcome, code);
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
