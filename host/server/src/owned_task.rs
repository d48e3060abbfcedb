//! Background tasks that end with their owner.
use tokio::task::JoinHandle;

/// A background task. It ends when this is dropped.
#[derive(Debug)]
pub struct OwnedTask(pub JoinHandle<()>);

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
