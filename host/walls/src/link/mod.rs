//! Frames and descriptors between two processes. Must not hold: what the frames mean.
//!
//! A link is a Unix stream socket. The other end may be hostile: a malformed or too large frame,
//! descriptors that were not announced, a peer that never reads: each ends the link or is refused
//! with a reason, and none makes this process hold more than the limits below.
//!
//! | file | holds |
//! |---|---|
//! | `frame.rs` | frames and their bytes, a pure function |
//! | `error.rs` | why a link ended, or a frame was not sent |
//! | `socket.rs` | the system calls |
//! | `memory.rs` | memory that two processes share: the only `unsafe` code |
//! | `numbers.rs` | numbers that several processes share |
//! | `ring.rs` | small frames handed over in it |
//! | `watch.rs` | waiting until the socket can be read or written, which one may suspend |
//! | `turn.rs` | one at a time, without waiting |
//! | `sender.rs` | sending without waiting, and the bounded queue |
//! | `receiver.rs` | frames received by one task |
//! | `pace.rs` | looking again before sleeping, where that pays |
//! | `dispatcher.rs` | frames handed out by a task or by the thread that waits for one |

mod dispatcher;
mod error;
pub(crate) mod frame;
mod memory;
mod numbers;
mod pace;
mod receiver;
mod ring;
mod sender;
mod socket;
mod turn;
mod watch;

pub use dispatcher::{Attending, Dispatcher};
pub use error::{LinkError, SendError};
pub use frame::Frame;
pub use numbers::Numbers;
pub use pace::{POLL_TIME_MAX, Pace, Wait};
pub use receiver::Receiver;
pub use sender::Sender;
pub use socket::pair;

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use memory::Memory;
use ring::MEMORY_WORDS;

/// Bytes of one frame: 16 MiB of arguments, or of a result with everything that was printed, and 64
/// KiB for the rest of a message. Limits may allow more if there is no link.
pub const FRAME_BYTES_MAX: usize = (16 << 20) + (64 << 10);

/// Descriptors with one frame: the mounts of one group. The kernel takes up to 253.
pub const FRAME_FDS_MAX: usize = 16;

/// Bytes that wait until the other process reads: two of the largest frames, so that one can be
/// queued behind another.
pub const QUEUE_BYTES_MAX: usize = 2 * FRAME_BYTES_MAX;

/// Descriptors that wait until the other process reads: those of four full frames. Each is also a
/// descriptor of this process.
pub const QUEUE_FDS_MAX: usize = 4 * FRAME_FDS_MAX;

/// Bytes read with one system call: about a third of what the socket holds.
const READ_BYTES: usize = 64 << 10;

/// Opens this end of a link, within a tokio runtime: the half that sends, which may be cloned, and
/// the one that receives. The other process must [`join`].
///
/// Small frames go through shared memory, if the system has it, and the rest over the socket.
/// Frames arrive in order either way.
pub fn open(socket: OwnedFd) -> io::Result<(Sender, Receiver)> {
    let (sender, mut receiver) = halves(socket)?;
    let Ok((memory, file)) = Memory::new(MEMORY_WORDS) else {
        sender.send(&[], &[]).map_err(io::Error::other)?;
        return Ok((sender, receiver));
    };
    sender.send(&[], &[file.as_fd()]).map_err(io::Error::other)?;
    let (outlet, inlet) = ring::ends(memory, true);
    sender.0.attach(outlet);
    receiver.attach(inlet);
    Ok((sender, receiver))
}

/// Opens the other end of a link, which this process was given, within a tokio runtime.
pub async fn join(socket: OwnedFd) -> io::Result<(Sender, Receiver)> {
    let (sender, mut receiver) = halves(socket)?;
    let first = receiver.receive().await.map_err(io::Error::other)?;
    if let Some(file) = first.fds.first() {
        let (outlet, mut inlet) = ring::ends(Memory::of(file, MEMORY_WORDS)?, false);
        inlet.took_from_socket().map_err(io::Error::other)?;
        sender.0.attach(outlet);
        receiver.attach(inlet);
    }
    Ok((sender, receiver))
}

fn halves(socket: OwnedFd) -> io::Result<(Sender, Receiver)> {
    let sender = Sender(Arc::new(sender::End::new(socket)?));
    let receiver = Receiver::new(sender.clone());
    Ok((sender, receiver))
}
