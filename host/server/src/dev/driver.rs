//! The thread that watches a project and builds it: one build at a time, always of the newest
//! files.
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, PipeReader};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::BuildJob;
use super::build::Build;
use super::folder_watch::FolderWatch;
use super::project::ProjectState;
use crate::files::{WatchingThread, wait_readable};
use crate::reload::Orders;

/// Quiet time after a change before a build, for editors that save several files and for checkouts.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// Longest wait for quiet: a project that is never quiet is examined this often.
const DEBOUNCE_MAX: Duration = Duration::from_millis(500);

/// Interval of polls without inotify, and of checks of a build whose output another process keeps
/// open.
const POLL_EVERY: Duration = Duration::from_millis(500);

/// Interval of checks of a build that closed its output and still runs.
const POLL_CLOSED_EVERY: Duration = Duration::from_millis(20);

/// Consecutive builds that change the same file, after which the build itself counts as its writer.
const WRITTEN_BY_BUILDS: u32 = 3;

/// State of the thread.
struct BuildThread {
    job: BuildJob,
    orders: Orders,
    stopped: PipeReader,
    /// inotify; `None` if the kernel gives no instance.
    folder_watch: Option<FolderWatch>,
    /// The project at the start of its last build.
    built: ProjectState,
    build: Option<Build>,
    /// By file, the number of consecutive builds that changed it.
    changed_by_builds: BTreeMap<PathBuf, u32>,
    /// Files that builds write.
    left_out: BTreeSet<PathBuf>,
}

/// Builds the project once, and then whenever it differs from `built`. Dropping the thread also
/// ends its build.
pub fn keep_built(job: BuildJob, built: Option<ProjectState>, orders: Orders) -> io::Result<WatchingThread> {
    WatchingThread::start("toolcell-dev", move |stopped| {
        let mut work = BuildThread {
            job,
            orders,
            stopped,
            folder_watch: FolderWatch::new().ok(),
            built: built.unwrap_or_default(),
            build: None,
            changed_by_builds: BTreeMap::new(),
            left_out: BTreeSet::new(),
        };
        work.go_on();
    })
}

/// Reasons for the end of a wait.
struct BuildWakeup {
    stopped: bool,
    changed: bool,
}

impl BuildThread {
    fn go_on(&mut self) {
        self.poll();
        // Times of the first and the last change.
        let mut noticed: Option<(Instant, Instant)> = None;
        loop {
            let now = Instant::now();
            let due = noticed.map(|(first, last)| (last + DEBOUNCE).min(first + DEBOUNCE_MAX));
            if due.is_some_and(|due| due <= now) {
                noticed = None;
                self.poll();
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
            self.check_build();
        }
    }

    /// Builds if the project differs from its state at the start of the last build. A running build
    /// of older files is killed. One next to which nothing but new files came runs to its end: most
    /// are drafts that the build renames, and what is still there then is built.
    fn poll(&mut self) {
        let look = self.job.project.poll();
        // Watched before it is compared, so any change from here on is noticed.
        if let Some(folder_watch) = &mut self.folder_watch
            && let Err(error) = folder_watch.follow(&look.folders)
        {
            tracing::warn!("the kernel does not watch the project ({error}): it is polled twice a second");
            self.folder_watch = None;
        }
        let mut look = self.job.project.poll();
        look.files.retain(|path, _| !self.left_out.contains(path));
        if look == self.built || (self.is_building() && self.built.is_part_of(&look)) {
            return;
        }
        if self.is_by_the_build_alone(&mut look) {
            self.built = look;
            return;
        }
        if look.is_cut && !self.built.is_cut {
            tracing::warn!("the project has more files than are examined: changes of some go unseen");
        }
        self.built = look;
        self.build = None;
        match self.job.begin() {
            Ok(build) => self.build = Some(build),
            Err(error) => tracing::error!("the build does not start: {error}"),
        }
    }

    fn is_building(&self) -> bool {
        self.build.as_ref().is_some_and(|build| !build.is_over)
    }

    /// True if nothing changed but files that builds write: those that changed during several
    /// consecutive builds. They are ignored from now on.
    fn is_by_the_build_alone(&mut self, look: &mut ProjectState) -> bool {
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
                    "the build itself writes {}: its changes are ignored from now on; add it to .gitignore",
                    path.display()
                );
                self.left_out.insert(path.clone());
            }
        }
        look.files.retain(|path, _| !self.left_out.contains(path));
        different.iter().all(|path| self.left_out.contains(path))
    }

    fn check_build(&mut self) {
        let Some(done) = self.build.as_mut().and_then(Build::step) else { return };
        self.job.report(&done);
        if done.is_good {
            self.orders.files();
        }
        // Changes during this build must be examined now, while they still count as such. Another
        // build may begin.
        self.poll();
        drop(self.build.take_if(|build| build.is_over));
    }

    /// Waits for a change, for the end of a build, or for output of it.
    fn wait(&self, until: Option<Duration>) -> BuildWakeup {
        let is_looked_at = self.build.is_some() || self.folder_watch.is_none();
        let is_closed = self.build.as_ref().is_some_and(|build| build.fd().is_none());
        let every = [is_looked_at.then_some(POLL_EVERY), is_closed.then_some(POLL_CLOSED_EVERY)];
        let timeout = until.into_iter().chain(every.into_iter().flatten()).min();
        let build = self.build.as_ref().and_then(Build::fd);
        let fds = [Some(self.stopped.as_fd()), self.folder_watch.as_ref().map(FolderWatch::fd), build];
        let [stopped, changed, _] = wait_readable(fds, timeout);
        let changed = changed || self.folder_watch.is_none();
        if let Some(folder_watch) = self.folder_watch.as_ref().filter(|_| changed) {
            folder_watch.take();
        }
        BuildWakeup { stopped, changed }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::PipeWriter;

    use rustix::fs::{CWD, Mode, mkfifoat};

    use crate::dev::{LastBuild, Project};

    use super::*;

    /// A project whose builds note that they began, and end once the pipe `go` is written.
    struct Staged {
        folder: tempfile::TempDir,
        thread: BuildThread,
        _stop: PipeWriter,
    }

    impl Staged {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let go = folder.path().join("go");
            mkfifoat(CWD, &go, Mode::RUSR | Mode::WUSR).unwrap();
            fs::create_dir(folder.path().join("project")).unwrap();
            let command = ["sh", "-c", "echo begun >> ../builds; read line < ../go"].map(str::to_owned).into();
            let project = Project::new(&folder.path().join("project"), None, folder.path());
            let (stopped, stop) = io::pipe().unwrap();
            let thread = BuildThread {
                job: BuildJob { project, command, hands_over: false, last_build: LastBuild::default() },
                orders: Orders::to_nobody(),
                stopped,
                folder_watch: None,
                built: ProjectState::default(),
                build: None,
                changed_by_builds: BTreeMap::new(),
                left_out: BTreeSet::new(),
            };
            let mut staged = Self { folder, thread, _stop: stop };
            staged.save("tool.py", "1");
            staged.thread.poll();
            staged
        }

        fn save(&self, name: &str, text: &str) {
            fs::write(self.folder.path().join("project").join(name), text).unwrap();
        }

        fn remove(&self, name: &str) {
            fs::remove_file(self.folder.path().join("project").join(name)).unwrap();
        }

        /// Lets the running build end, and looks at the project then.
        fn ends(&mut self) {
            // Waits until the build reads.
            fs::write(self.folder.path().join("go"), "\n").unwrap();
            let builds = self.builds();
            while self.thread.build.as_ref().is_some_and(|build| !build.is_over) && self.builds() == builds {
                self.thread.check_build();
                std::thread::yield_now();
            }
        }

        /// Number of builds that began so far.
        fn builds(&self) -> usize {
            fs::read_to_string(self.folder.path().join("builds")).unwrap_or_default().lines().count()
        }

        /// Waits until this many builds have begun.
        fn have_begun(&self, builds: usize) {
            while self.builds() < builds {
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn a_draft_that_comes_and_goes_beside_a_build_begins_no_other() {
        let mut staged = Staged::new();
        staged.have_begun(1);
        staged.save("tool.wasm.4711.draft", "half");
        staged.thread.poll();
        staged.thread.poll();
        staged.remove("tool.wasm.4711.draft");
        staged.ends();
        staged.thread.poll();
        assert!(staged.thread.build.is_none(), "nothing is left to build");
        assert_eq!(staged.builds(), 1);
        staged.save("tool.py", "two");
        staged.thread.poll();
        staged.have_begun(2);
        staged.ends();
        assert!(staged.thread.build.is_none());
        assert_eq!(staged.builds(), 2, "one save is one build");
    }

    #[test]
    fn a_file_that_comes_beside_a_build_and_stays_is_built_when_that_has_ended() {
        let mut staged = Staged::new();
        staged.have_begun(1);
        staged.save("more.py", "1");
        staged.thread.poll();
        assert_eq!(staged.builds(), 1, "the build goes on");
        staged.ends();
        staged.have_begun(2);
        staged.ends();
        assert!(staged.thread.build.is_none());
        assert_eq!(staged.builds(), 2);
    }

    #[test]
    fn a_file_that_changes_beside_a_build_ends_it_for_one_of_the_newest_files() {
        let mut staged = Staged::new();
        staged.have_begun(1);
        staged.save("tool.py", "two");
        staged.thread.poll();
        staged.have_begun(2);
        staged.ends();
        assert!(staged.thread.build.is_none());
        assert_eq!(staged.builds(), 2);
    }
}
