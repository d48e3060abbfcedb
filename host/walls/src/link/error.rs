//! Why a link ended, and why a frame was not sent.

use rustix::io::Errno;
use thiserror::Error;

use super::{FRAME_BYTES_MAX, FRAME_FDS_MAX, QUEUE_BYTES_MAX};

/// Why a link ended. It stays the same for every caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LinkError {
    /// The other end was closed between two frames.
    #[error("the other process closed the link")]
    Closed,
    /// The other end was closed within a frame.
    #[error("the other process closed the link in the middle of a frame")]
    CutShort,
    /// This end was closed by its own process.
    #[error("the link was closed here")]
    ClosedHere,
    /// The bytes at the beginning of a frame are not a header.
    #[error("the other process sent bytes that are not a frame")]
    NotAFrame,
    /// A header announces more bytes than a frame may have.
    #[error("the other process announced a frame of {0} bytes, at most {FRAME_BYTES_MAX} are taken")]
    FrameTooLarge(u32),
    /// A header announces, or a message carries, too many descriptors.
    #[error("the other process sent more than {FRAME_FDS_MAX} descriptors with one frame")]
    TooManyFds,
    /// Announced descriptors did not come.
    #[error("the other process announced {announced} descriptors with a frame and sent {came}")]
    FdsMissing {
        /// The number in the header.
        announced: usize,
        /// The number that came with its first byte.
        came: usize,
    },
    /// Descriptors came that no header announced.
    #[error("the other process sent descriptors without a frame")]
    FdsUnasked,
    /// Numbers in the shared memory contradict each other.
    #[error("the other process wrote an impossible value into the shared memory")]
    Memory,
    /// The kernel refused to read or to write.
    #[error("the link failed: {0}")]
    Io(Errno),
}

/// Why a frame was not sent. No part of it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SendError {
    /// The other process does not read, and too much already waits. The link goes on.
    #[error("the other process does not read: more than {QUEUE_BYTES_MAX} bytes wait for it")]
    Full,
    /// The frame has too many bytes. The link goes on.
    #[error("a frame of {0} bytes was not sent, at most {FRAME_BYTES_MAX} are taken")]
    TooLarge(usize),
    /// The frame has too many descriptors. The link goes on.
    #[error("a frame with {0} descriptors was not sent, at most {FRAME_FDS_MAX} are taken")]
    TooManyFds(usize),
    /// The kernel could not duplicate the descriptors, which had to wait. The link goes on.
    #[error("a frame was not sent, since its descriptors could not be copied: {0}")]
    Fds(Errno),
    /// The link had already ended.
    #[error(transparent)]
    Ended(#[from] LinkError),
}

impl LinkError {
    /// The reason for this error of a read or a write.
    pub(super) fn of(errno: Errno) -> Self {
        match errno {
            Errno::PIPE | Errno::CONNRESET => Self::Closed,
            other => Self::Io(other),
        }
    }
}
