//! Frames and descriptors between two processes. Must not hold: what the frames mean.
//!
//! A link is a Unix stream socket. The other end may be hostile: a frame that is malformed or too
//! large, descriptors nobody announced, a peer that never reads, each ends the link or is refused
//! with a reason, and none makes this process hold more than the limits below.
//!
//! | file | holds |
//! |---|---|
//! | `frame.rs` | frames and their bytes, a pure function |
//! | `socket.rs` | the system calls |
//! | `watch.rs` | waiting until the socket can be read or written, which one may suspend |
//! | `turn.rs` | one at a time, without waiting |
//! | `sender.rs` | sending without waiting, and the bounded queue |
//! | `receiver.rs` | frames received by one task |
//! | `dispatcher.rs` | frames handed out by a task or by the thread that waits for one |

mod dispatcher;
mod error;
mod frame;
mod pace;
mod receiver;
mod sender;
mod socket;
mod turn;
mod watch;

pub use dispatcher::Dispatcher;
pub use error::{LinkError, SendError};
pub use frame::Frame;
pub use pace::LOOK_TIME_MAX;
pub use receiver::Receiver;
pub use sender::Sender;
pub use socket::pair;

use std::{io, os::fd::OwnedFd, sync::Arc};

/// Bytes of one frame: the 16 MiB that the largest arguments or results have, and 64 KiB for what
/// is said around them.
pub const FRAME_BYTES_MAX: usize = (16 << 20) + (64 << 10);

/// Descriptors with one frame: the mounts of one group. The kernel takes up to 253.
pub const FRAME_FDS_MAX: usize = 16;

/// Bytes that wait until the other process reads: two of the largest frames, so that one can be
/// sent behind another.
pub const QUEUE_BYTES_MAX: usize = 2 * FRAME_BYTES_MAX;

/// Descriptors that wait until the other process reads: those of four full frames. Each is a
/// descriptor of this process too.
pub const QUEUE_FDS_MAX: usize = 4 * FRAME_FDS_MAX;

/// Bytes read with one system call: about a third of what the socket holds.
const READ_BYTES: usize = 64 << 10;

/// Opens one end of a link, within a tokio runtime: the half that sends, which may be cloned, and
/// the one that receives.
pub fn open(socket: OwnedFd) -> io::Result<(Sender, Receiver)> {
    let sender = Sender(Arc::new(sender::End::new(socket)?));
    let receiver = Receiver::new(sender.clone());
    Ok((sender, receiver))
}
