//! Frames on a door. Must not hold: the meaning of messages.
//!
//! | bytes | hold |
//! |---|---|
//! | 4 | the length of the rest, lowest byte first |
//! | 1 | 0: a message, 1: data |
//! | the rest | the message in postcard's encoding, or the data as they are |
use std::future::Future as _;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use toolcell_wall::caller::Outside;

/// Bytes of one frame of data: what a guest hands over at once.
pub(crate) const DATA_BYTES_MAX: usize = 64 << 10;

/// Bytes of one frame that the host sends: it keeps the limits of the call, which are far below.
pub(crate) const HOST_BYTES_MAX: usize = 64 << 20;

/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

const LENGTH_BYTES: usize = size_of::<u32>();
const MESSAGE: u8 = 0;
const DATA: u8 = 1;

/// One frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A message, still encoded.
    Message(Bytes),
    /// A piece of a body or stream.
    Data(Bytes),
}

/// Why a door is of no more use. For the operator.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DoorError {
    /// The system's words.
    #[error("the socket failed: {0}")]
    Socket(#[from] io::Error),
    /// Closed where more was to come. Whoever gives an operation up closes its door.
    #[error("the other side closed it")]
    Closed,
    /// Longer than a frame may be here.
    #[error("a frame of {bytes} bytes came, and {max} are the most")]
    TooLong {
        /// Its length, in bytes.
        bytes: usize,
        /// The most.
        max: usize,
    },
    /// Neither a message nor data.
    #[error("a frame of no known kind came")]
    Kind,
    /// A message that cannot be read.
    #[error("a message cannot be read: {0}")]
    Malformed(#[from] postcard::Error),
    /// A message that is not allowed here, or says what cannot be.
    #[error("{0}")]
    Wrong(&'static str),
}

impl DoorError {
    /// True if no honest process causes it.
    pub(crate) const fn is_misuse(&self) -> bool {
        !matches!(self, Self::Socket(_) | Self::Closed)
    }
}

/// One end of a door.
pub(crate) struct Door {
    stream: UnixStream,
}

/// Reads frames. Nothing is read ahead of the one that is asked for, but for what came with it.
pub(crate) struct FrameReader {
    stream: OwnedReadHalf,
    buffer: BytesMut,
}

/// Writes frames. Dropping it tells the other side that nothing more comes.
pub(crate) struct FrameWriter {
    stream: OwnedWriteHalf,
}

/// Sees the other side close the door, without reading from it.
pub(crate) struct Hangup(UnixStream);

impl Door {
    /// Opens a door to the host.
    pub(crate) async fn open(outside: &dyn Outside) -> io::Result<Self> {
        Self::of(outside.open().await?)
    }

    /// Takes the end of a door. Within a tokio runtime.
    pub(crate) fn of(socket: OwnedFd) -> io::Result<Self> {
        let stream = std::os::unix::net::UnixStream::from(socket);
        stream.set_nonblocking(true)?;
        Ok(Self { stream: UnixStream::from_std(stream)? })
    }

    /// Lets the kernel keep little of what is sent and not read yet.
    pub(crate) fn hold_back(&self) -> io::Result<()> {
        Ok(rustix::net::sockopt::set_socket_send_buffer_size(&self.stream, DATA_BYTES_MAX)?)
    }

    /// Both directions.
    pub(crate) fn split(self) -> (FrameReader, FrameWriter) {
        let (read, write) = self.stream.into_split();
        (FrameReader { stream: read, buffer: BytesMut::new() }, FrameWriter { stream: write })
    }

    /// Sees the other side close it.
    pub(crate) fn hangup(&self) -> io::Result<Hangup> {
        // Registered on its own: forgetting readiness here must not hide it from the reader.
        let own = self.stream.as_fd().try_clone_to_owned()?;
        Ok(Hangup(UnixStream::from_std(own.into())?))
    }
}

impl Hangup {
    /// Returns once the other side has closed the door, or its own direction of it.
    pub(crate) async fn wait(&self) {
        while let Ok(ready) = self.0.ready(Interest::READABLE).await {
            if ready.is_read_closed() {
                return;
            }
            // Only bytes, which somebody else reads: waits for more. Being closed is never
            // forgotten.
            let _ = self.0.try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
        }
    }
}

impl FrameReader {
    /// The next frame, of at most this many bytes of content; `None` where the other side has ended
    /// it after a whole frame.
    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
        bytes_max: usize,
    ) -> Poll<Result<Option<Frame>, DoorError>> {
        loop {
            let missing_bytes = match self.missing(bytes_max)? {
                0 => return Poll::Ready(self.take().map(Some)),
                missing => missing,
            };
            self.buffer.reserve(missing_bytes.min(READ_BYTES));
            let read = pin!(self.stream.read_buf(&mut self.buffer));
            if ready!(read.poll(context))? == 0 {
                return Poll::Ready(if self.buffer.is_empty() { Ok(None) } else { Err(DoorError::Closed) });
            }
        }
    }

    /// As [`FrameReader::poll_frame`].
    pub(crate) async fn frame(&mut self, bytes_max: usize) -> Result<Option<Frame>, DoorError> {
        std::future::poll_fn(|context| self.poll_frame(context, bytes_max)).await
    }

    /// The next frame, which must be there and be a message.
    pub(crate) async fn message<M: DeserializeOwned>(&mut self, bytes_max: usize) -> Result<M, DoorError> {
        match self.frame(bytes_max).await? {
            Some(Frame::Message(encoded)) => decoded(&encoded),
            Some(Frame::Data(_)) => Err(DoorError::Wrong("data came where a message was to come")),
            None => Err(DoorError::Closed),
        }
    }

    /// Bytes that are missing of the next frame.
    fn missing(&self, bytes_max: usize) -> Result<usize, DoorError> {
        let Some(length) = self.buffer.first_chunk::<LENGTH_BYTES>() else {
            return Ok(LENGTH_BYTES.saturating_sub(self.buffer.len()));
        };
        let bytes = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        match bytes.checked_sub(1) {
            None => Err(DoorError::Kind),
            Some(content) if content > bytes_max => Err(DoorError::TooLong { bytes: content, max: bytes_max }),
            Some(_) => Ok((LENGTH_BYTES + bytes).saturating_sub(self.buffer.len())),
        }
    }

    /// The next frame, which is there.
    fn take(&mut self) -> Result<Frame, DoorError> {
        let bytes = usize::try_from(self.buffer.get_u32_le()).unwrap_or(usize::MAX);
        let mut content = self.buffer.split_to(bytes.min(self.buffer.len())).freeze();
        match content.try_get_u8() {
            Ok(MESSAGE) => Ok(Frame::Message(content)),
            Ok(DATA) => Ok(Frame::Data(content)),
            _ => Err(DoorError::Kind),
        }
    }
}

impl FrameWriter {
    /// Sends a message.
    pub(crate) async fn message<M: Serialize>(&mut self, message: &M) -> Result<(), DoorError> {
        self.write(MESSAGE, postcard::to_stdvec(message)?.into()).await
    }

    /// Sends a piece of data, as frames of at most [`DATA_BYTES_MAX`].
    pub(crate) async fn data(&mut self, mut data: Bytes) -> Result<(), DoorError> {
        while !data.is_empty() {
            self.write(DATA, data.split_to(data.len().min(DATA_BYTES_MAX))).await?;
        }
        Ok(())
    }

    /// Keeps the direction open although nothing more is sent.
    pub(crate) fn forget(self) {
        self.stream.forget();
    }

    async fn write(&mut self, kind: u8, content: Bytes) -> Result<(), DoorError> {
        let Ok(length) = u32::try_from(content.len() + 1) else {
            return Err(DoorError::TooLong { bytes: content.len(), max: HOST_BYTES_MAX });
        };
        let [a, b, c, d] = length.to_le_bytes();
        let mut frame = Bytes::copy_from_slice(&[a, b, c, d, kind]).chain(content);
        Ok(self.stream.write_all_buf(&mut frame).await?)
    }
}

/// The message that these bytes are, all of them.
pub(crate) fn decoded<M: DeserializeOwned>(encoded: &[u8]) -> Result<M, DoorError> {
    match postcard::take_from_bytes(encoded)? {
        (message, []) => Ok(message),
        _ => Err(DoorError::Wrong("there are bytes behind a message")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn pair() -> (Door, UnixStream) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        (Door::of(ours.into()).unwrap(), UnixStream::from_std(theirs).unwrap())
    }

    fn framed(kind: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len() + 1).unwrap().to_le_bytes();
        [&length[..], &[kind], content].concat()
    }

    #[tokio::test]
    async fn frames_come_as_they_were_sent_however_they_are_cut() {
        let sent = [framed(DATA, b""), framed(MESSAGE, &[7]), framed(DATA, &[1; 100])].concat();
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
            assert_eq!(reader.frame(100).await.unwrap(), Some(Frame::Data(Bytes::new())));
            assert_eq!(reader.message::<u8>(100).await.unwrap(), 7);
            assert_eq!(reader.frame(100).await.unwrap(), Some(Frame::Data(vec![1; 100].into())));
            assert_eq!(reader.frame(100).await.unwrap(), None);
            sending.await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_is_no_frame_is_refused_before_it_is_held() {
        let rows: [(&str, Vec<u8>, &str); 6] = [
            ("no content", vec![0, 0, 0, 0], "no known kind"),
            ("another kind", framed(2, b""), "no known kind"),
            ("one byte too long", framed(DATA, &[0; 101]), "a frame of 101 bytes"),
            ("a length alone", vec![0xff; 4], "a frame of 4294967294 bytes"),
            ("in the middle of a length", vec![1, 0], "closed it"),
            ("in the middle of a frame", vec![9, 0, 0, 0, 1, 1], "closed it"),
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
        let rows: [(&str, Vec<u8>); 3] =
            [("too short", framed(MESSAGE, &[])), ("too long", framed(MESSAGE, &[1, 2])), ("data", framed(DATA, &[1]))];
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
