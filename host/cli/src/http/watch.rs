//! Looks now and then whether files have changed, while it serves. Must not hold: what a change means.
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// How often files are looked at. Renewing certificates and revoking tokens needs no more.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What looks; it ends when this is dropped.
pub struct Watching {
    runtime: Handle,
    tasks: Vec<JoinHandle<()>>,
}

/// What tells one state of a file from another.
type Stamp = Option<(u64, u64, i64, i64)>;

fn stamp(path: &Path) -> Stamp {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
}

impl Watching {
    pub fn new(runtime: &Handle) -> Self {
        Self { runtime: runtime.clone(), tasks: Vec::new() }
    }

    /// Has `changed` called after one of the files changed.
    pub fn files(&mut self, paths: Vec<PathBuf>, changed: impl Fn() + Send + 'static) {
        let look = move || paths.iter().map(|path| stamp(path)).collect::<Vec<_>>();
        let mut last = look();
        self.tasks.push(self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                let now = look();
                if now != last {
                    last = now;
                    changed();
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
