//! Files of the host: read whole, watched for changes, and never waited for without end. Must not
//! hold: their meaning.

pub mod blocking_files;
pub mod file;
pub mod file_stamp;
pub mod inotify;
mod polling;
pub mod shipped;
mod watch;
mod watching_thread;
pub mod wit;

pub(crate) use polling::FilePolling;
pub use watch::Watch;
pub(crate) use watch::on_network;
pub(crate) use watching_thread::{WatchingThread, wait_readable};
