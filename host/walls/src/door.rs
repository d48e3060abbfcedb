//! A door: one end of a stream socket, over which the host does one operation for a sandbox
//! process.
//!
//! Frames are those of a link (`link/frame.rs`), and contain a message or plain data. They carry no
//! descriptors, and never go through shared memory.
//!
//! Promise: a process's messages harm nobody else.
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use rustix::net::{RecvFlags, Shutdown};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use toolcell_wall::caller::{FIRST_BYTES_MAX, Outside};
use toolcell_wall::doors::{Opening, decode};
use toolcell_wall::encoding::{EncodingError, encode};

use crate::link::frame::{DoorHeader, HEADER_BYTES};

/// Bytes of one frame of data: what a guest passes on at once.
pub const DATA_BYTES_MAX: usize = 64 << 10;

/// Bytes of one frame that the host sends. The limits of the call are far below.
pub const HOST_BYTES_MAX: usize = 64 << 20;

/// Bytes that are read at once, at most.
const READ_BYTES: usize = 16 << 10;

/// Room that a read has at least: most messages and short answers fit, and need one system call.
const READ_BYTES_MIN: usize = 4 << 10;

/// Bytes that are copied behind each other, to be sent with one system call. Longer pieces of data
/// are sent from where they are.
const QUEUED_BYTES_MAX: usize = 16 << 10;

/// One frame.
#[derive(Debug, PartialEq, Eq)]
pub enum DoorFrame {
    /// A message, still encoded.
    Message(Bytes),
    /// A piece of a body or stream.
    Data(Bytes),
}

/// Why a door can no longer be used. For the operator.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// An error of the socket.
    #[error("the socket failed: {0}")]
    Socket(#[from] io::Error),
    /// Closed where more was expected. Closing a door abandons its operation.
    #[error("the other side closed it")]
    Closed,
    /// Longer than a frame may be here.
    #[error("a frame of {bytes} bytes came, at most {max} are allowed")]
    TooLong {
        /// Its length, in bytes.
        bytes: usize,
        /// The maximum.
        max: usize,
    },
    /// Neither a message nor data.
    #[error("a frame of an unknown kind came")]
    Kind,
    /// A message that cannot be decoded.
    #[error("a message cannot be read: {0}")]
    Malformed(#[from] EncodingError),
    /// A message that is not allowed here, or is impossible.
    #[error("{0}")]
    Wrong(&'static str),
}

impl DoorError {
    /// True if an honest process never causes it.
    pub const fn is_misuse(&self) -> bool {
        !matches!(self, Self::Socket(_) | Self::Closed)
    }
}

/// One end of a door.
pub struct Door(Arc<DoorSocket>);

/// The socket of a door. The runtime watches it for what comes, and only for room to send once it
/// was full: the kernel reports room with each read of the other side, and would wake this one.
struct DoorSocket {
    socket: AsyncFd<OwnedFd>,
    room: OnceLock<AsyncFd<OwnedFd>>,
}

/// Reads frames. It reads no further than the requested frame, except for bytes that came with it.
pub struct FrameReader {
    socket: Arc<DoorSocket>,
    buffer: BytesMut,
}

/// Writes frames. Dropping it tells the other side that nothing more comes.
pub struct FrameWriter {
    socket: Arc<DoorSocket>,
    queued: BytesMut,
    /// True if the direction stays open without it.
    is_forgotten: bool,
}

/// Notices that the other side closes the door, without reading from it.
pub struct Hangup(AsyncFd<OwnedFd>);

impl Door {
    /// Takes the end of a door. Within a tokio runtime.
    ///
    /// # Errors
    /// An error of the system.
    pub fn of(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self(Arc::new(DoorSocket { socket: watched(socket, Interest::READABLE)?, room: OnceLock::new() })))
    }

    /// Limits what the kernel buffers of unread data.
    ///
    /// # Errors
    /// An error of the system.
    pub fn hold_back(&self) -> io::Result<()> {
        Ok(rustix::net::sockopt::set_socket_send_buffer_size(self.0.socket.get_ref(), DATA_BYTES_MAX)?)
    }

    /// Both directions.
    #[must_use]
    pub fn split(self) -> (FrameReader, FrameWriter) {
        self.split_after(&[])
    }

    /// Both directions, where these bytes have come already.
    #[must_use]
    pub fn split_after(self, first: &[u8]) -> (FrameReader, FrameWriter) {
        let reader = FrameReader { socket: Arc::clone(&self.0), buffer: BytesMut::from(first) };
        (reader, FrameWriter { socket: self.0, queued: BytesMut::new(), is_forgotten: false })
    }

    /// Notices that the other side closes it.
    ///
    /// # Errors
    /// An error of the system.
    pub fn hangup(&self) -> io::Result<Hangup> {
        // Registered separately: clearing readiness here must not hide it from the reader.
        Ok(Hangup(watched(self.0.socket.get_ref().try_clone()?, Interest::READABLE)?))
    }
}

#[expect(deprecated, reason = "an `OwnedFd` stays the same descriptor and open: sound")]
fn watched(socket: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(socket, interest)
}

impl DoorSocket {
    /// Reads what is there behind the bytes in the buffer, at most this much. 0 bytes are the end.
    fn poll_read(&self, context: &mut Context<'_>, buffer: &mut BytesMut, room: usize) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.socket.poll_read_ready(context))?;
            let begun = buffer.len();
            buffer.resize(begun.saturating_add(room), 0);
            let into = buffer.get_mut(begun..).unwrap_or_default();
            let read = ready.try_io(|socket| Ok(rustix::net::recv(socket.get_ref(), into, RecvFlags::empty())?.0));
            let bytes = read.as_ref().map_or(0, |read| *read.as_ref().unwrap_or(&0));
            buffer.truncate(begun.saturating_add(bytes));
            if 0 < bytes && bytes < room {
                // It was emptied. What comes later, and its end, is reported anew.
                ready.clear_ready();
            }
            if let Ok(read) = read {
                return Poll::Ready(read);
            }
        }
    }

    fn poll_write(&self, context: &mut Context<'_>, bytes: &impl Buf) -> Poll<io::Result<usize>> {
        let send = |socket: &OwnedFd| -> io::Result<usize> {
            let mut parts = [IoSlice::new(&[]); 2];
            let filled = bytes.chunks_vectored(&mut parts);
            Ok(rustix::io::writev(socket, parts.get(..filled).unwrap_or_default())?)
        };
        loop {
            let sent = match self.room.get() {
                Some(room) => match ready!(room.poll_write_ready(context))?.try_io(|room| send(room.get_ref())) {
                    Ok(sent) => sent,
                    Err(_) => continue,
                },
                None => send(self.socket.get_ref()),
            };
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let room = watched(self.socket.get_ref().try_clone()?, Interest::WRITABLE)?;
                    let _ = self.room.set(room);
                }
                sent => return Poll::Ready(sent),
            }
        }
    }

    async fn write_all(&self, bytes: &mut impl Buf) -> io::Result<()> {
        while bytes.has_remaining() {
            let sent = std::future::poll_fn(|context| self.poll_write(context, &*bytes)).await?;
            bytes.advance(sent);
        }
        Ok(())
    }
}

impl Hangup {
    /// Returns once the other side has closed the door, or its own direction of it.
    pub async fn wait(&self) {
        while let Ok(mut ready) = self.0.readable().await {
            if ready.ready().is_read_closed() {
                return;
            }
            // There are bytes, which the reader reads. Wait again; a close stays visible.
            ready.clear_ready();
        }
    }
}

impl FrameReader {
    /// The next frame, of at most this many bytes of content; `None` if the other side ended it
    /// after a whole frame.
    ///
    /// # Errors
    /// The socket failed, or a frame is malformed, too long, or cut off.
    pub fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
        bytes_max: usize,
    ) -> Poll<Result<Option<DoorFrame>, DoorError>> {
        loop {
            let missing_bytes = match self.missing(bytes_max)? {
                0 => return Poll::Ready(self.take().map(Some)),
                missing => missing,
            };
            let room = missing_bytes.clamp(READ_BYTES_MIN, READ_BYTES);
            if ready!(self.socket.poll_read(context, &mut self.buffer, room))? == 0 {
                return Poll::Ready(if self.buffer.is_empty() { Ok(None) } else { Err(DoorError::Closed) });
            }
        }
    }

    /// As [`FrameReader::poll_frame`].
    ///
    /// # Errors
    /// As for [`FrameReader::poll_frame`].
    pub async fn frame(&mut self, bytes_max: usize) -> Result<Option<DoorFrame>, DoorError> {
        std::future::poll_fn(|context| self.poll_frame(context, bytes_max)).await
    }

    /// The next frame, which must exist and be a message.
    ///
    /// # Errors
    /// As for [`FrameReader::poll_frame`], or it is another message.
    pub async fn message<M: DeserializeOwned>(&mut self, bytes_max: usize) -> Result<M, DoorError> {
        match self.frame(bytes_max).await? {
            Some(DoorFrame::Message(encoded)) => Ok(decode(&encoded)?),
            Some(DoorFrame::Data(_)) => Err(DoorError::Wrong("data came in place of a message")),
            None => Err(DoorError::Closed),
        }
    }

    /// Missing bytes of the next frame.
    fn missing(&self, bytes_max: usize) -> Result<usize, DoorError> {
        let Some(head) = self.buffer.first_chunk() else {
            return Ok(HEADER_BYTES.saturating_sub(self.buffer.len()));
        };
        let header = DoorHeader::parse(head).ok_or(DoorError::Kind)?;
        match usize::try_from(header.bytes).unwrap_or(usize::MAX) {
            bytes if bytes > bytes_max => Err(DoorError::TooLong { bytes, max: bytes_max }),
            bytes => Ok(bytes.saturating_add(HEADER_BYTES).saturating_sub(self.buffer.len())),
        }
    }

    /// Takes the next frame, which is complete.
    fn take(&mut self) -> Result<DoorFrame, DoorError> {
        let header = self.buffer.first_chunk().and_then(DoorHeader::parse).ok_or(DoorError::Kind)?;
        self.buffer.advance(HEADER_BYTES);
        let bytes = usize::try_from(header.bytes).unwrap_or(usize::MAX);
        let content = self.buffer.split_to(bytes.min(self.buffer.len())).freeze();
        Ok(if header.is_data { DoorFrame::Data(content) } else { DoorFrame::Message(content) })
    }
}

impl FrameWriter {
    /// Sends a message, after what is queued.
    ///
    /// # Errors
    /// The socket failed, or the message is longer than a frame may be.
    pub async fn message<M: Serialize>(&mut self, message: &M) -> Result<(), DoorError> {
        self.queue(message)?;
        self.flush().await
    }

    /// Queues a message, to be sent together with what follows.
    ///
    /// # Errors
    /// The message is longer than a frame may be.
    pub fn queue<M: Serialize>(&mut self, message: &M) -> Result<(), DoorError> {
        let encoded = encode(message)?;
        self.queue_header(false, encoded.len())?;
        self.queued.extend_from_slice(&encoded);
        Ok(())
    }

    /// Sends a piece of data, as frames of at most [`DATA_BYTES_MAX`].
    ///
    /// # Errors
    /// The socket failed.
    pub async fn data(&mut self, data: Bytes) -> Result<(), DoorError> {
        self.queue_data(data).await?;
        self.flush().await
    }

    /// Queues a piece of data, or sends it if it is long.
    ///
    /// # Errors
    /// The socket failed.
    pub async fn queue_data(&mut self, mut data: Bytes) -> Result<(), DoorError> {
        while !data.is_empty() {
            let mut piece = data.split_to(data.len().min(DATA_BYTES_MAX));
            self.queue_header(true, piece.len())?;
            if self.queued.len().saturating_add(piece.len()) <= QUEUED_BYTES_MAX {
                self.queued.extend_from_slice(&piece);
            } else {
                self.socket.write_all(&mut Buf::chain(&mut self.queued, &mut piece)).await?;
            }
        }
        Ok(())
    }

    /// Waits for what is to be sent next. What is queued is sent first, unless that is there at
    /// once.
    ///
    /// # Errors
    /// The socket failed.
    pub async fn ready<T>(&mut self, next: impl Future<Output = T>) -> Result<T, DoorError> {
        let mut next = pin!(next);
        match std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await {
            Poll::Ready(next) => Ok(next),
            Poll::Pending => {
                self.flush().await?;
                Ok(next.await)
            }
        }
    }

    /// Sends what is queued.
    ///
    /// # Errors
    /// The socket failed.
    pub async fn flush(&mut self) -> Result<(), DoorError> {
        Ok(self.socket.write_all(&mut self.queued).await?)
    }

    /// Keeps the direction open although nothing more is sent.
    pub fn forget(mut self) {
        self.is_forgotten = true;
    }

    fn queue_header(&mut self, is_data: bool, bytes: usize) -> Result<(), DoorError> {
        let Ok(length) = u32::try_from(bytes) else {
            return Err(DoorError::TooLong { bytes, max: HOST_BYTES_MAX });
        };
        self.queued.extend_from_slice(&DoorHeader { bytes: length, is_data }.encoded());
        Ok(())
    }
}

impl Drop for FrameWriter {
    fn drop(&mut self) {
        // Without a reader the socket closes. The other side may have closed it already.
        if !self.is_forgotten && Arc::strong_count(&self.socket) > 1 {
            let _ = rustix::net::shutdown(self.socket.socket.get_ref(), Shutdown::Write);
        }
    }
}

/// Opens a door for this operation.
///
/// # Errors
/// The host opens none, or the socket failed.
pub async fn open(outside: &dyn Outside, opening: &Opening) -> Result<(FrameReader, FrameWriter), DoorError> {
    let mut first = framed_message(&encode(opening)?);
    let rest = first.split_off(first.len().min(FIRST_BYTES_MAX));
    let (reader, mut writer) = Door::of(outside.open(first).await?)?.split();
    writer.queued.extend_from_slice(&rest);
    writer.flush().await?;
    Ok((reader, writer))
}

/// The bytes of a frame with a message.
#[must_use]
pub fn framed_message(content: &[u8]) -> Vec<u8> {
    framed(false, content)
}

/// The bytes of a frame with data, for tests that act as a dishonest process.
#[must_use]
pub fn framed_data(content: &[u8]) -> Vec<u8> {
    framed(true, content)
}

fn framed(is_data: bool, content: &[u8]) -> Vec<u8> {
    let bytes = u32::try_from(content.len()).unwrap_or(u32::MAX);
    [&DoorHeader { bytes, is_data }.encoded(), content].concat()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::UnixStream;

    fn pair() -> (Door, UnixStream) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        (Door::of(ours.into()).unwrap(), UnixStream::from_std(theirs).unwrap())
    }

    fn whole(mark: &str, fds: u8, bytes: u32, place: u8) -> Vec<u8> {
        [mark.as_bytes(), &[fds], &bytes.to_le_bytes(), &[place], &[0; 7]].concat()
    }

    #[tokio::test]
    async fn frames_come_as_they_were_sent_however_they_are_cut() {
        let sent = [framed_data(b""), framed_message(&encode(&7_u8).unwrap()), framed_data(&[1; 100])].concat();
        for piece in [1, 3, 7, sent.len()] {
            let (door, mut peer) = pair();
            let (mut reader, _writer) = door.split();
            let bytes = sent.clone();
            let sending = tokio::spawn(async move {
                for piece in bytes.chunks(piece) {
                    peer.write_all(piece).await.unwrap();
                    tokio::task::yield_now().await;
                }
            });
            assert_eq!(reader.frame(100).await.unwrap(), Some(DoorFrame::Data(Bytes::new())));
            assert_eq!(reader.message::<u8>(100).await.unwrap(), 7);
            assert_eq!(reader.frame(100).await.unwrap(), Some(DoorFrame::Data(vec![1; 100].into())));
            assert_eq!(reader.frame(100).await.unwrap(), None);
            sending.await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_is_no_frame_is_refused_before_it_is_held() {
        let rows: [(&str, Vec<u8>, &str); 8] = [
            ("what wakes a link", whole("tw!", 0, 0, 0), "an unknown kind"),
            ("descriptors", whole("tw=", 1, 0, 0), "an unknown kind"),
            ("a place", whole("tw=", 0, 0, 1), "an unknown kind"),
            ("another mark", vec![0xff; 16], "an unknown kind"),
            ("one byte too long", framed_data(&[0; 101]), "a frame of 101 bytes"),
            ("a length alone", whole("tw=", 0, u32::MAX, 0), "a frame of 4294967295 bytes"),
            ("in the middle of a header", b"tw=".to_vec(), "closed it"),
            ("in the middle of a frame", whole("tw=", 0, 9, 0), "closed it"),
        ];
        for (name, bytes, error) in rows {
            let (door, mut peer) = pair();
            let (mut reader, _writer) = door.split();
            peer.write_all(&bytes).await.unwrap();
            drop(peer);
            let refused = reader.frame(100).await.unwrap_err();
            assert!(refused.to_string().contains(error), "{name}: {refused}");
            assert!(reader.buffer.capacity() <= 2 * READ_BYTES, "{name}");
        }
    }

    #[tokio::test]
    async fn a_message_is_read_whole_or_not_at_all() {
        let whole = encode(&7_u8).unwrap();
        let longer = [whole.as_slice(), &[2]].concat();
        let rows = [
            ("nothing", framed_message(&[])),
            ("too short", framed_message(&whole[..1])),
            ("too long", framed_message(&longer)),
            ("another version", framed_message(&[0xff, 7])),
            ("data", framed_data(&whole)),
        ];
        for (name, bytes) in rows {
            let (door, mut peer) = pair();
            peer.write_all(&bytes).await.unwrap();
            let refused = door.split().0.message::<u8>(100).await.unwrap_err();
            assert!(refused.is_misuse(), "{name}: {refused}");
        }
    }

    #[tokio::test]
    async fn a_closed_door_is_seen_though_nobody_reads_what_came_before() {
        let (door, mut peer) = pair();
        let hangup = door.hangup().unwrap();
        peer.write_all(b"unread").await.unwrap();
        let mut waiting = pin!(hangup.wait());
        for _ in 0..10 {
            assert!(futures_poll(waiting.as_mut()).await.is_pending());
            tokio::task::yield_now().await;
        }
        drop(peer);
        waiting.await;
    }

    async fn futures_poll(mut future: std::pin::Pin<&mut impl Future<Output = ()>>) -> Poll<()> {
        std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
    }
}
