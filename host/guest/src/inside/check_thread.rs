//! The thread of a sandbox process that does long checks.
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use tokio::sync::oneshot;

use toolcell_walls::background::step_back;

/// Nice value of the thread. Under full load it keeps a quarter of a core, so checks of several
/// callers wait no longer than a call may.
const NICER: i32 = 5;

/// Queues work for the thread, which runs it in order. Calls have priority where cores are short,
/// so nobody waits for the check of another caller's arguments.
#[derive(Clone)]
pub(super) struct CheckThread(mpsc::Sender<CheckJob>);

type CheckJob = Box<dyn FnOnce() + Send>;

impl CheckThread {
    /// Starts the thread. It ends with the process, or once this is dropped.
    pub(super) fn start() -> io::Result<Self> {
        let (sender, checks) = mpsc::channel::<CheckJob>();
        std::thread::Builder::new().name("toolcell-checks".to_owned()).spawn(move || {
            step_back(NICER);
            checks.into_iter().for_each(|check| check());
        })?;
        Ok(Self(sender))
    }

    /// Queues a check. The receiver fails if the check panics.
    pub(super) fn run<T: Send + 'static>(&self, check: impl FnOnce() -> T + Send + 'static) -> oneshot::Receiver<T> {
        let (done, result) = oneshot::channel();
        let check = move || {
            if let Ok(value) = catch_unwind(AssertUnwindSafe(check)) {
                // The caller may have given up.
                let _ = done.send(value);
            }
        };
        // The thread lives as long as this sender.
        let _ = self.0.send(Box::new(check));
        result
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[tokio::test]
    async fn checks_follow_each_other_and_a_panic_ends_its_own_alone() {
        let thread = CheckThread::start().unwrap();
        let failed = thread.run(|| panic!("as the test wants it"));
        let name = thread.run(|| std::thread::current().name().map(str::to_owned));
        assert!(failed.await.is_err());
        assert_eq!(name.await.unwrap().as_deref(), Some("toolcell-checks"));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn other_threads_go_first() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let expected = (nice() + NICER).min(19);
        assert_eq!(CheckThread::start().unwrap().run(nice).await.unwrap(), expected);
    }
}
