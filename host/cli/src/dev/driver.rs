//! The thread that watches a project and builds it: one build at a time, and always of the newest files.
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use toolcell_server::reload::Orders;

use super::Job;
use super::build::Build;
use super::project::Look;
use super::sight::Sight;

/// How long it must be quiet after a change before it is built: an editor that saves several files, or a checkout.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// A project that is never quiet is looked at as often as this all the same.
const DEBOUNCE_MAX: Duration = Duration::from_millis(500);

/// How often a project is looked at where the kernel does not tell, and a build whose output something it started keeps open.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How often a build is looked at that has closed its output and goes on.
const LOOK_AT_CLOSED_EVERY: Duration = Duration::from_millis(20);

/// Builds in a row that change the same file, after which it is taken for one that the build itself writes.
const WRITTEN_BY_BUILDS: u32 = 3;

/// The thread; it ends when this is dropped, and the build that it runs with it.
pub struct Driver {
    thread: Option<JoinHandle<()>>,
    stop: Option<PipeWriter>,
}

/// What the thread has.
struct Work {
    job: Job,
    orders: Orders,
    stopped: PipeReader,
    /// `None` where the kernel does not tell.
    sight: Option<Sight>,
    /// The project as it was when its last build began.
    built: Look,
    build: Option<Build>,
    /// How many builds in a row changed which files.
    changed_by_builds: BTreeMap<PathBuf, u32>,
    /// Files that builds write.
    left_out: BTreeSet<PathBuf>,
}

impl Driver {
    /// Builds the project once, and then whenever it looks other than `built`.
    pub fn start(job: Job, built: Option<Look>, orders: Orders) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let sight = Sight::new().ok();
        let mut work = Work {
            job,
            orders,
            stopped,
            sight,
            built: built.unwrap_or_default(),
            build: None,
            changed_by_builds: BTreeMap::new(),
            left_out: BTreeSet::new(),
        };
        let run = move || work.go_on();
        let thread = std::thread::Builder::new().name("toolcell-dev".to_owned()).spawn(run)?;
        Ok(Self { thread: Some(thread), stop: Some(stop) })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The thread sees the other end close.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Why a wait ended.
struct Woken {
    stopped: bool,
    changed: bool,
}

impl Work {
    fn go_on(&mut self) {
        self.look();
        // When something was noticed: first, and last.
        let mut noticed: Option<(Instant, Instant)> = None;
        loop {
            let now = Instant::now();
            let due = noticed.map(|(first, last)| (last + DEBOUNCE).min(first + DEBOUNCE_MAX));
            if due.is_some_and(|due| due <= now) {
                noticed = None;
                self.look();
                continue;
            }
            let woken = self.wait(due.map(|due| due.saturating_duration_since(now)));
            if woken.stopped {
                return;
            }
            if woken.changed {
                let now = Instant::now();
                noticed.get_or_insert((now, now)).1 = now;
            }
            self.see_to_build();
        }
    }

    /// Builds where the project looks other than when its last build began. A build of older files is ended.
    fn look(&mut self) {
        let look = self.job.project.look();
        // Watched before it is compared: what changes from here on is noticed.
        if let Some(sight) = &mut self.sight
            && let Err(error) = sight.follow(&look.folders)
        {
            tracing::warn!("the kernel does not watch the project ({error}): it is looked at twice a second");
            self.sight = None;
        }
        let mut look = self.job.project.look();
        look.files.retain(|path, _| !self.left_out.contains(path));
        if look == self.built {
            return;
        }
        if self.is_by_the_build_alone(&mut look) {
            self.built = look;
            return;
        }
        if look.is_cut && !self.built.is_cut {
            tracing::warn!("the project has more files than are looked at: changes of some go unseen");
        }
        self.built = look;
        self.build = None;
        match self.job.begin() {
            Ok(build) => self.build = Some(build),
            Err(error) => tracing::error!("the build does not start: {error}"),
        }
    }

    /// Whether nothing is different but files that builds write: those that were different during several builds in a row. They
    /// are left out from now on.
    fn is_by_the_build_alone(&mut self, look: &mut Look) -> bool {
        let names: BTreeSet<&PathBuf> = look.files.keys().chain(self.built.files.keys()).collect();
        let differ = |path: &&&PathBuf| look.files.get(**path) != self.built.files.get(**path);
        let different: BTreeSet<PathBuf> = names.iter().filter(differ).map(|path| (*path).clone()).collect();
        if self.build.is_none() {
            self.changed_by_builds.clear();
            return false;
        }
        self.changed_by_builds.retain(|path, _| different.contains(path));
        for path in &different {
            let times = self.changed_by_builds.entry(path.clone()).or_default();
            *times += 1;
            if *times >= WRITTEN_BY_BUILDS {
                tracing::warn!(
                    "the build itself writes {}: it is no longer looked at; .gitignore can say so",
                    path.display()
                );
                self.left_out.insert(path.clone());
            }
        }
        look.files.retain(|path, _| !self.left_out.contains(path));
        different.iter().all(|path| self.left_out.contains(path))
    }

    fn see_to_build(&mut self) {
        let Some(done) = self.build.as_mut().and_then(Build::step) else { return };
        self.job.tell(&done);
        if done.is_good {
            self.orders.files();
        }
        // What changed meanwhile is looked at while it still counts as changed during a build. Another one may begin.
        self.look();
        drop(self.build.take_if(|build| build.is_over()));
    }

    /// Waits for a change, an end, or something that a build wrote.
    fn wait(&self, until: Option<Duration>) -> Woken {
        let mut fds = vec![PollFd::from_borrowed_fd(self.stopped.as_fd(), PollFlags::IN)];
        fds.extend(self.sight.iter().map(|sight| PollFd::from_borrowed_fd(sight.fd(), PollFlags::IN)));
        fds.extend(self.build.iter().filter_map(Build::fd).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let is_looked_at = self.build.is_some() || self.sight.is_none();
        let is_closed = self.build.as_ref().is_some_and(|build| build.fd().is_none());
        let every = [is_looked_at.then_some(LOOK_EVERY), is_closed.then_some(LOOK_AT_CLOSED_EVERY)];
        let timeout = until.into_iter().chain(every.into_iter().flatten()).min();
        // One more millisecond: the poll must not end just before the time and spin.
        let timeout = timeout.and_then(|time| Timespec::try_from(time + Duration::from_millis(1)).ok());
        // An interrupted poll is a spurious wake-up: the caller looks again.
        let _ = poll(&mut fds, timeout.as_ref());
        let ready = |place: usize| fds.get(place).is_some_and(|fd| !fd.revents().is_empty());
        let changed = self.sight.is_none() || ready(1);
        let woken = Woken { stopped: ready(0), changed };
        if let Some(sight) = self.sight.as_ref().filter(|_| changed) {
            sight.take();
        }
        woken
    }
}
