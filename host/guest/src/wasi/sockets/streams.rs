//! The two directions of a TCP connection that the host has.
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use toolcell_wall::doors::decode;
use toolcell_wall::doors::sockets::{SendsNoMore, TcpReply};
use toolcell_walls::door::{DATA_BYTES_MAX, DoorError, DoorFrame, FrameReader, FrameWriter, HOST_BYTES_MAX};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi::runtime::{AbortOnDropJoinHandle, spawn};

use super::error_code;

/// The incoming direction. Its socket holds it, too, to shut it down.
#[derive(Clone)]
pub(super) struct Input(Arc<Mutex<Reading>>);

/// The outgoing direction, in the same way.
#[derive(Clone)]
pub(super) struct Output(Arc<Mutex<Writing>>);

enum Reading {
    /// Open, with bytes that arrived and are still unread.
    Open(FrameReader, Bytes),
    /// Broken, and the guest does not know yet.
    Broken(String),
    Closed,
}

enum Writing {
    Ready(FrameWriter),
    /// A piece is on its way.
    Busy(AbortOnDropJoinHandle<Result<FrameWriter, DoorError>>),
    /// The last piece is on its way, and then the end.
    Ending(AbortOnDropJoinHandle<()>),
    Closed,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(text: &str) -> StreamError {
    StreamError::LastOperationFailed(wasmtime::Error::msg(text.to_owned()))
}

impl Reading {
    /// Ready once there are bytes, or none will come.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Self::Open(reader, bytes) = self else { return Poll::Ready(()) };
        while bytes.is_empty() {
            let said = match ready!(reader.poll_frame(context, HOST_BYTES_MAX)) {
                Ok(Some(DoorFrame::Data(data))) => {
                    *bytes = data;
                    continue;
                }
                Ok(Some(DoorFrame::Message(message))) => decode(&message).map_err(DoorError::from),
                Ok(None) => Err(DoorError::Closed),
                Err(error) => Err(error),
            };
            *self = match said {
                Ok(TcpReply::Ended) => Self::Closed,
                Ok(TcpReply::Over(limit)) => Self::Broken(format!("the call has used its whole limit \"{limit}\"")),
                Ok(TcpReply::Broken(code)) => Self::Broken(error_code(code).to_string()),
                // If the end was not announced, the server did not send it.
                Ok(TcpReply::Connected(_) | TcpReply::Refused(_)) | Err(_) => {
                    Self::Broken("the host closed the connection".to_owned())
                }
            };
            break;
        }
        Poll::Ready(())
    }
}

impl Reading {
    /// What is there: at most so many bytes, the end, or the error once.
    fn take(&mut self, size: usize) -> StreamResult<Bytes> {
        match self {
            Self::Open(_, bytes) => Ok(bytes.split_to(size.min(bytes.len()))),
            Self::Closed => Err(StreamError::Closed),
            Self::Broken(_) => match std::mem::replace(self, Self::Closed) {
                Self::Broken(text) => Err(failed(&text)),
                _ => Err(StreamError::Closed),
            },
        }
    }
}

impl Input {
    /// Reads once there is something, or the end.
    pub(super) fn poll_read(&self, context: &mut Context<'_>, size: usize) -> Poll<StreamResult<Bytes>> {
        let mut reading = lock(&self.0);
        ready!(reading.poll_ready(context));
        Poll::Ready(reading.take(size))
    }

    pub(super) fn new(reader: FrameReader) -> Self {
        Self(Arc::new(Mutex::new(Reading::Open(reader, Bytes::new()))))
    }

    /// Stops reading.
    pub(super) fn shut_down(&self) {
        *lock(&self.0) = Reading::Closed;
    }
}

#[async_trait]
impl Pollable for Input {
    async fn ready(&mut self) {
        std::future::poll_fn(|context| lock(&self.0).poll_ready(context)).await;
    }
}

#[async_trait]
impl InputStream for Input {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let mut reading = lock(&self.0);
        let _ = reading.poll_ready(&mut Context::from_waker(Waker::noop()));
        reading.take(size)
    }
}

impl Writing {
    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Closed)
    }

    /// Ready once it takes more, or never will again.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let next = match self {
            Self::Busy(task) => match ready!(Pin::new(task).poll(context)) {
                Ok(writer) => Self::Ready(writer),
                Err(_) => Self::Closed,
            },
            Self::Ending(task) => {
                ready!(Pin::new(task).poll(context));
                Self::Closed
            }
            Self::Ready(_) | Self::Closed => return Poll::Ready(()),
        };
        *self = next;
        Poll::Ready(())
    }

    fn end(&mut self) {
        let ending = match self.take() {
            Self::Ready(writer) => spawn(end(async { Ok(writer) })),
            Self::Busy(task) => spawn(end(task)),
            Self::Ending(task) => task,
            Self::Closed => return,
        };
        *self = Self::Ending(ending);
    }
}

/// Notifies the host after the last piece that nothing more is sent.
async fn end(last: impl Future<Output = Result<FrameWriter, DoorError>>) {
    if let Ok(mut writer) = last.await {
        let _ = writer.message(&SendsNoMore).await;
        // The other direction continues.
        writer.forget();
    }
}

impl Output {
    /// Ready with true once another piece may be written, with false if none ever may.
    pub(super) fn poll_room(&self, context: &mut Context<'_>) -> Poll<bool> {
        let mut writing = lock(&self.0);
        ready!(writing.poll_ready(context));
        Poll::Ready(matches!(*writing, Writing::Ready(_)))
    }

    pub(super) fn new(writer: FrameWriter) -> Self {
        Self(Arc::new(Mutex::new(Writing::Ready(writer))))
    }

    /// Stops sending.
    pub(super) fn shut_down(&self) {
        lock(&self.0).end();
    }
}

#[async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {
        std::future::poll_fn(|context| lock(&self.0).poll_ready(context)).await;
    }
}

#[async_trait]
impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut writing = lock(&self.0);
        match writing.take() {
            Writing::Ready(mut writer) if bytes.len() <= DATA_BYTES_MAX => {
                *writing = if bytes.is_empty() {
                    Writing::Ready(writer)
                } else {
                    Writing::Busy(spawn(async move { writer.data(bytes).await.map(|()| writer) }))
                };
                Ok(())
            }
            Writing::Closed => Err(StreamError::Closed),
            other => {
                *writing = other;
                Err(StreamError::Trap(wasmtime::Error::msg("more is written than `check-write` permitted")))
            }
        }
    }

    fn flush(&mut self) -> StreamResult<()> {
        // Pieces are sent as soon as the host accepts them.
        if matches!(*lock(&self.0), Writing::Closed) { Err(StreamError::Closed) } else { Ok(()) }
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        let mut writing = lock(&self.0);
        let _ = writing.poll_ready(&mut Context::from_waker(Waker::noop()));
        match &*writing {
            Writing::Ready(_) => Ok(DATA_BYTES_MAX),
            Writing::Busy(_) | Writing::Ending(_) => Ok(0),
            Writing::Closed => Err(StreamError::Closed),
        }
    }

    async fn cancel(&mut self) {
        // What the guest has written is still sent when it closes the stream.
        self.ready().await;
    }
}
