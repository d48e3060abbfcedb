//! A call's way out of its sandbox process, where it runs in one. Must not hold: what goes through
//! it, or decisions.
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;

/// The way out of a sandbox process. The process itself may open nothing. For each operation it
/// asks the host for a *door*: one end of a stream socket, whose other end the host serves.
pub trait Outside: Send + Sync {
    /// A new door, to nothing in particular: the first frame on it says what is wanted. Closing it
    /// gives the operation up.
    ///
    /// The future fails where the host gives no door, because the call has ended or has too many.
    fn open(&self) -> Pin<Box<dyn Future<Output = io::Result<OwnedFd>> + Send>>;
}
