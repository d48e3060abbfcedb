//! Polls files for changes while the server runs.
use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::files::file_stamp::{self, Stamps};
use crate::owned_task::OwnedTask;

/// Interval of polls. Renewing certificates and revoking tokens needs no more.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Polls of several groups of files; they end when dropped.
pub struct FilePolling {
    runtime: Handle,
    tasks: Vec<OwnedTask>,
}

/// A group of files with the function to call after a change.
struct PolledFiles<F> {
    paths: Vec<PathBuf>,
    last: Stamps,
    changed: F,
}

impl<F: Fn()> PolledFiles<F> {
    fn poll(&mut self) {
        let now = file_stamp::all(&self.paths);
        if now != self.last {
            self.last = now;
            (self.changed)();
        }
    }
}

impl FilePolling {
    pub fn new(runtime: &Handle) -> Self {
        Self { runtime: runtime.clone(), tasks: Vec::new() }
    }

    /// Calls `changed` after one of the files changed.
    pub fn files(&mut self, paths: Vec<PathBuf>, changed: impl Fn() + Send + 'static) {
        let last = file_stamp::all(&paths);
        let mut watched = PolledFiles { paths, last, changed };
        self.tasks.push(OwnedTask(self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(POLL_EVERY).await;
                // A hanging mount takes seconds, which the thread that drives connections does not
                // have.
                let looked = tokio::task::spawn_blocking(move || {
                    watched.poll();
                    watched
                });
                match looked.await {
                    Ok(back) => watched = back,
                    Err(_) => return,
                }
            }
        })));
    }
}
