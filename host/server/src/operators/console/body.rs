//! Bodies of responses: whole pages, and streams of pieces.
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

/// A body.
pub enum ConsoleBody {
    /// All of it; `None` once it was given.
    Whole(Option<Bytes>),
    /// Pieces, until the sender is dropped. An error breaks the connection, so that the part is not
    /// taken for the whole.
    Pieces(Receiver<io::Result<Bytes>>),
}

impl From<String> for ConsoleBody {
    fn from(text: String) -> Self {
        Self::Whole(Some(text.into()))
    }
}

impl From<&'static [u8]> for ConsoleBody {
    fn from(bytes: &'static [u8]) -> Self {
        Self::Whole(Some(Bytes::from_static(bytes)))
    }
}

impl Body for ConsoleBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(pieces) => pieces.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Pieces(_) => SizeHint::default(),
        }
    }
}
