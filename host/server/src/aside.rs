//! Work on files that may wait without end, done on threads of its own: a network mount that hangs, a file of the kernel's that has
//! nothing to say yet. What is late is left behind, and the path is not tried again until its thread is done. Must not hold: what
//! is read, or what is made of it.
//!
//! The kernel ends no such wait, so a thread in it cannot be had back. There is one for each path at the most, and whoever asks for
//! the path meanwhile is told at once.
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long nothing may come of a path: a disk that wakes up takes three seconds, a slow network one. Paths that are stuck already
/// share it, so that a mount with a hundred of them is given up in seconds as well.
const QUIET_MAX: Duration = Duration::from_secs(5);

/// The least that is left of it, however many are stuck.
const QUIET_MIN: Duration = Duration::from_millis(50);

/// How long the work on one path may take though it goes on: the largest component over a bad line.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Stack of such a thread, in bytes: it reads files.
const STACK_BYTES: usize = 256 * 1024;

/// The paths whose threads were left behind and are not done.
static STUCK: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Tells that work goes on.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// Something came.
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Does the work on this path.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`]: nothing came of it in time, or it is stuck since earlier. Otherwise no thread starts.
pub fn run<T: Send + 'static>(path: &Path, work: impl FnOnce(&Pulse) -> T + Send + 'static) -> io::Result<T> {
    run_within(QUIET_MAX, path, work)
}

/// The same where nothing may come of it for this long.
///
/// # Errors
/// As [`run`].
pub fn run_within<T: Send + 'static>(
    quiet: Duration,
    path: &Path,
    work: impl FnOnce(&Pulse) -> T + Send + 'static,
) -> io::Result<T> {
    let mut work = Some(work);
    let errand = Errand::start(vec![path.to_owned()], move |_, pulse| work.take().map(|work| work(pulse)))?;
    errand.next(path, quiet)?.ok_or_else(late)
}

/// Does the work on each of these paths, one after the other; nothing for those that are stuck.
pub fn each<T: Send + 'static>(
    paths: impl IntoIterator<Item = PathBuf>,
    work: impl Fn(&Path) -> T + Clone + Send + 'static,
) -> Vec<(PathBuf, Option<T>)> {
    let mut left: Vec<PathBuf> = paths.into_iter().collect();
    let mut done = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let known = stuck().clone();
        let (told, asked): (Vec<PathBuf>, Vec<PathBuf>) = left.into_iter().partition(|path| known.contains(path));
        done.extend(told.into_iter().map(|path| (path, None)));
        if asked.is_empty() {
            break;
        }
        let work = work.clone();
        let Ok(errand) = Errand::start(asked.clone(), move |path, _| work(path)) else {
            done.extend(asked.into_iter().map(|path| (path, None)));
            break;
        };
        let mut asked = asked.into_iter();
        for path in asked.by_ref() {
            let found = errand.next(&path, QUIET_MAX).ok();
            let is_late = found.is_none();
            done.push((path, found));
            if is_late {
                break;
            }
        }
        // Those behind the one that is stuck get another thread.
        left = asked.collect();
    }
    done
}

/// A thread that does something with some paths, and hands over what comes of each.
struct Errand<T> {
    came: Receiver<T>,
    pulse: Pulse,
    /// Nobody waits any more. Changed and looked at under the lock of [`STUCK`], so that what is done is either taken or thrown away.
    left_behind: Arc<AtomicBool>,
}

impl<T: Send + 'static> Errand<T> {
    /// Starts it, unless one of the paths is stuck.
    fn start(paths: Vec<PathBuf>, mut work: impl FnMut(&Path, &Pulse) -> T + Send + 'static) -> io::Result<Self> {
        if paths.iter().any(|path| stuck().contains(path)) {
            return Err(late());
        }
        let (done, came) = channel();
        let (pulse, left_behind) = (Pulse::default(), Arc::new(AtomicBool::new(false)));
        let (own, flag) = (pulse.clone(), Arc::clone(&left_behind));
        let run = move || {
            for path in paths {
                let found = work(&path, &own);
                if !hand_over(&path, found, &done, &flag) {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("toolcell-file".to_owned()).stack_size(STACK_BYTES).spawn(run)?;
        Ok(Self { came, pulse, left_behind })
    }

    /// What comes of the next path.
    fn next(&self, path: &Path, quiet: Duration) -> io::Result<T> {
        let begun = Instant::now();
        loop {
            let beats = self.pulse.count();
            match self.came.recv_timeout(patience(quiet)) {
                Ok(found) => return Ok(found),
                Err(RecvTimeoutError::Timeout) if self.pulse.count() != beats && begun.elapsed() < TIME_MAX => {}
                Err(RecvTimeoutError::Timeout) => return self.leave(path),
                Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("reading it failed")),
            }
        }
    }

    /// Leaves the thread behind, unless it was done at the last moment.
    fn leave(&self, path: &Path) -> io::Result<T> {
        let mut stuck = stuck();
        if let Ok(found) = self.came.try_recv() {
            return Ok(found);
        }
        stuck.insert(path.to_owned());
        self.left_behind.store(true, Ordering::Release);
        Err(late())
    }
}

/// Gives what came of a path to whoever waits; false where nobody does: the path is free again.
fn hand_over<T>(path: &Path, found: T, done: &Sender<T>, left_behind: &AtomicBool) -> bool {
    let mut stuck = stuck();
    if left_behind.load(Ordering::Acquire) {
        stuck.remove(path);
        return false;
    }
    done.send(found).is_ok()
}

/// How long to wait where others are stuck.
fn patience(quiet: Duration) -> Duration {
    let others = u32::try_from(stuck().len()).unwrap_or(u32::MAX);
    (quiet / others.saturating_add(1)).max(QUIET_MIN)
}

fn late() -> io::Error {
    let text = "it does not answer: it is on a mount that hangs, or has nothing to say yet";
    io::Error::new(io::ErrorKind::TimedOut, text)
}

fn stuck() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    STUCK.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work that waits until the sender is dropped.
    fn waiting() -> (Sender<()>, impl FnOnce(&Pulse) -> u32 + Send + 'static) {
        let (end, ended) = channel::<()>();
        (end, move |_: &Pulse| {
            let _ = ended.recv();
            7
        })
    }

    fn waits_until_free(path: &Path) {
        let end = Instant::now() + Duration::from_secs(30);
        while stuck().contains(path) {
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
        let slow = |pulse: &Pulse| {
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(20));
                pulse.beat();
            }
            5
        };
        // Four hundred milliseconds of work, of which none is quiet for longer.
        assert_eq!(run_within(Duration::from_millis(300), Path::new("/test/slow"), slow).unwrap(), 5);
    }

    #[test]
    fn one_that_is_stuck_among_many_keeps_none_of_the_others() {
        let (end, ended) = channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        let work = move |path: &Path| {
            if path.ends_with("stuck") {
                let _ = ended.lock().unwrap().recv();
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
