//! Threads for file work that may block for ever: a hanging network mount, or a kernel file without
//! data. A late thread is left behind, and its path is not tried again until the thread is done.
//!
//! The kernel does not end such a wait, so the thread cannot be stopped. There is at most one
//! thread for each path; others who ask for the path get an error at once.
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Time without progress after which a path is stuck: a disk that wakes up takes three seconds, a
/// slow network one. All stuck paths share it, so a mount with a hundred of them is given up in
/// seconds as well.
const QUIET_MAX: Duration = Duration::from_secs(5);

/// Least share of that time, however many paths are stuck.
const QUIET_MIN: Duration = Duration::from_millis(50);

/// Longest work on one path, even with progress: the largest component over a slow line.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Stack of such a thread in bytes; it only reads files.
const STACK_BYTES: usize = 256 * 1024;

/// Paths whose threads were left behind and still run.
static STUCK: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Reports progress of the work.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat(Arc<AtomicU64>);

impl Heartbeat {
    /// Reports progress once.
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs the work for this path.
///
/// # Errors
///
/// [`io::ErrorKind::TimedOut`]: the work made no progress in time, or the path is stuck already.
/// Other errors: no thread starts.
pub fn run<T: Send + 'static>(path: &Path, work: impl FnOnce(&Heartbeat) -> T + Send + 'static) -> io::Result<T> {
    run_within(QUIET_MAX, path, work)
}

/// Like [`run`], with another time without progress.
///
/// # Errors
/// As [`run`].
pub fn run_within<T: Send + 'static>(
    quiet: Duration,
    path: &Path,
    work: impl FnOnce(&Heartbeat) -> T + Send + 'static,
) -> io::Result<T> {
    let mut work = Some(work);
    let thread = FileThread::start(vec![path.to_owned()], move |_, heartbeat| work.take().map(|work| work(heartbeat)))?;
    thread.next(path, quiet)?.ok_or_else(late)
}

/// Runs the work for each of these paths, one after the other; `None` for stuck ones.
pub fn each<T: Send + 'static>(
    paths: impl IntoIterator<Item = PathBuf>,
    work: impl Fn(&Path) -> T + Clone + Send + 'static,
) -> Vec<(PathBuf, Option<T>)> {
    let mut left: Vec<PathBuf> = paths.into_iter().collect();
    let mut done = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let known = STUCK.lock().clone();
        let (stuck, asked): (Vec<PathBuf>, Vec<PathBuf>) = left.into_iter().partition(|path| known.contains(path));
        done.extend(stuck.into_iter().map(|path| (path, None)));
        if asked.is_empty() {
            break;
        }
        let work = work.clone();
        let Ok(thread) = FileThread::start(asked.clone(), move |path, _| work(path)) else {
            done.extend(asked.into_iter().map(|path| (path, None)));
            break;
        };
        let mut asked = asked.into_iter();
        for path in asked.by_ref() {
            let found = thread.next(&path, QUIET_MAX).ok();
            let is_late = found.is_none();
            done.push((path, found));
            if is_late {
                break;
            }
        }
        // The paths after the stuck one get another thread.
        left = asked.collect();
    }
    done
}

/// A thread that works on some paths, and sends the result of each.
struct FileThread<T> {
    results: Receiver<T>,
    heartbeat: Heartbeat,
    /// Set when nobody waits any more. It is accessed under the lock of [`STUCK`], so a result is
    /// either received or dropped.
    left_behind: Arc<AtomicBool>,
}

impl<T: Send + 'static> FileThread<T> {
    /// Starts it, unless one of the paths is stuck.
    fn start(paths: Vec<PathBuf>, mut work: impl FnMut(&Path, &Heartbeat) -> T + Send + 'static) -> io::Result<Self> {
        if paths.iter().any(|path| STUCK.lock().contains(path)) {
            return Err(late());
        }
        let (done, results) = channel();
        let heartbeat = Heartbeat::default();
        let left_behind = Arc::new(AtomicBool::new(false));
        let own = heartbeat.clone();
        let flag = Arc::clone(&left_behind);
        let run = move || {
            for path in paths {
                let found = work(&path, &own);
                if !hand_over(&path, found, &done, &flag) {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("toolcell-file".to_owned()).stack_size(STACK_BYTES).spawn(run)?;
        Ok(Self { results, heartbeat, left_behind })
    }

    /// Result of the next path.
    fn next(&self, path: &Path, quiet: Duration) -> io::Result<T> {
        let begun = Instant::now();
        loop {
            let beats = self.heartbeat.count();
            match self.results.recv_timeout(patience(quiet)) {
                Ok(found) => return Ok(found),
                Err(RecvTimeoutError::Timeout) if self.heartbeat.count() != beats && begun.elapsed() < TIME_MAX => {}
                Err(RecvTimeoutError::Timeout) => return self.leave(path),
                Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("reading it failed")),
            }
        }
    }

    /// Leaves the thread behind, unless it finished at the last moment.
    fn leave(&self, path: &Path) -> io::Result<T> {
        let mut stuck = STUCK.lock();
        if let Ok(found) = self.results.try_recv() {
            return Ok(found);
        }
        stuck.insert(path.to_owned());
        self.left_behind.store(true, Ordering::Release);
        Err(late())
    }
}

/// Sends the result of a path to its receiver. False if the thread was left behind; then the path
/// is free again.
fn hand_over<T>(path: &Path, found: T, done: &Sender<T>, left_behind: &AtomicBool) -> bool {
    let mut stuck = STUCK.lock();
    if left_behind.load(Ordering::Acquire) {
        stuck.remove(path);
        return false;
    }
    done.send(found).is_ok()
}

/// Time to wait, given the number of stuck paths.
fn patience(quiet: Duration) -> Duration {
    let others = u32::try_from(STUCK.lock().len()).unwrap_or(u32::MAX);
    (quiet / others.saturating_add(1)).max(QUIET_MIN)
}

fn late() -> io::Error {
    let text = "it does not answer: it is on a mount that hangs, or has nothing to say yet";
    io::Error::new(io::ErrorKind::TimedOut, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work that blocks until the sender is dropped.
    fn waiting() -> (Sender<()>, impl FnOnce(&Heartbeat) -> u32 + Send + 'static) {
        let (end, ended) = channel::<()>();
        (end, move |_: &Heartbeat| {
            let _ = ended.recv();
            7
        })
    }

    fn waits_until_free(path: &Path) {
        let end = Instant::now() + Duration::from_secs(30);
        while STUCK.lock().contains(path) {
            assert!(Instant::now() < end, "the thread that was left behind is done, and the path is not free");
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_is_stuck_is_given_up_told_at_once_and_free_again_once_it_is_done() {
        let path = Path::new("/test/one");
        let (end, work) = waiting();
        let error = run_within(Duration::from_millis(20), path, work).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let begun = Instant::now();
        assert_eq!(run(path, |_| 1).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < QUIET_MAX, "nobody waits for it again");
        assert_eq!(run(Path::new("/test/other"), |_| 1).unwrap(), 1);
        drop(end);
        waits_until_free(path);
        assert_eq!(run(path, |_| 2).unwrap(), 2);
    }

    #[test]
    fn what_goes_on_is_waited_for() {
        let slow = |heartbeat: &Heartbeat| {
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(20));
                heartbeat.beat();
            }
            5
        };
        // Four hundred milliseconds of work, with progress every twenty.
        assert_eq!(run_within(Duration::from_millis(300), Path::new("/test/slow"), slow).unwrap(), 5);
    }

    #[test]
    fn one_that_is_stuck_among_many_keeps_none_of_the_others() {
        let (end, ended) = channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        let work = move |path: &Path| {
            if path.ends_with("stuck") {
                let _ = ended.lock().recv();
            }
            path.to_owned()
        };
        let paths = ["/many/a", "/many/stuck", "/many/b", "/many/c"].map(PathBuf::from);
        for _ in 0..2 {
            let mut found = each(paths.clone(), work.clone());
            found.sort();
            let shown: Vec<_> = found.iter().map(|(path, found)| (path.to_str().unwrap(), found.is_some())).collect();
            assert_eq!(shown, [("/many/a", true), ("/many/b", true), ("/many/c", true), ("/many/stuck", false)]);
        }
        drop(end);
        waits_until_free(Path::new("/many/stuck"));
    }

    #[test]
    fn work_that_panics_is_an_error_and_nothing_is_stuck() {
        let path = Path::new("/test/panics");
        let error = run(path, |_| -> u32 { panic!("on purpose") }).unwrap_err();
        assert_eq!(error.to_string(), "reading it failed");
        assert_eq!(run(path, |_| 1).unwrap(), 1);
    }
}
