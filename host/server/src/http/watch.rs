//! Looks now and then whether files have changed, while it serves. Must not hold: what a change means.
use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::stamp::{self, Stamps};

/// How often files are looked at. Renewing certificates and revoking tokens needs no more.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What looks; it ends when this is dropped.
pub struct Watching {
    runtime: Handle,
    tasks: Vec<JoinHandle<()>>,
}

/// Some files, and whom to tell.
struct Watched<F> {
    paths: Vec<PathBuf>,
    last: Stamps,
    changed: F,
}

impl<F: Fn()> Watched<F> {
    fn look(&mut self) {
        let now = stamp::all(&self.paths);
        if now != self.last {
            self.last = now;
            (self.changed)();
        }
    }
}

impl Watching {
    pub fn new(runtime: &Handle) -> Self {
        Self { runtime: runtime.clone(), tasks: Vec::new() }
    }

    /// Has `changed` called after one of the files changed.
    pub fn files(&mut self, paths: Vec<PathBuf>, changed: impl Fn() + Send + 'static) {
        let last = stamp::all(&paths);
        let mut watched = Watched { paths, last, changed };
        self.tasks.push(self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                // A mount that hangs takes seconds, which the thread that drives connections does not have.
                let looked = tokio::task::spawn_blocking(move || {
                    watched.look();
                    watched
                });
                match looked.await {
                    Ok(back) => watched = back,
                    Err(_) => return,
                }
            }
        }));
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
