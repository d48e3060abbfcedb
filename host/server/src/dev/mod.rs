//! `toolcell dev`: builds the project of a component whenever a file of it changes. The reload then
//! sees the new component, like any other change.
//!
//! The build command stands on the command line, never in the manifest: a person who may write a
//! manifest must not thereby run programs on the host. Must not hold: reloading.
mod build;
mod driver;
mod folder_watch;
mod project;

pub use crate::catalog::DevFolder;
pub use crate::observing::LastBuild;
pub(crate) use driver::keep_built;
pub use project::{Project, ProjectState};

use std::io;
use std::time::Duration;

use build::{Build, BuildResult};

/// A project with its build command.
#[derive(Clone)]
pub struct BuildJob {
    /// The project.
    pub project: Project,
    /// A program and its arguments. Never empty.
    pub command: Vec<String>,
    /// True if it may put components into the project's [`DevFolder`].
    pub hands_over: bool,
    /// Gets the result of each build.
    pub last_build: LastBuild,
}

/// A project that is built while a server runs.
#[derive(Clone)]
pub struct ProjectBuild {
    /// The project.
    pub job: BuildJob,
    /// The project as it was at its last build; none if it is to be built at once.
    pub built: Option<ProjectState>,
}

/// Interval of checks of the first build, since nothing waits for it and for signals together.
const POLL_EVERY: Duration = Duration::from_millis(20);

impl BuildJob {
    /// Builds once, before anything is served. `Ok(false)`: a signal ended the build.
    ///
    /// # Errors
    /// The command does not start, or signals cannot be handled.
    pub fn build_first(&self) -> io::Result<bool> {
        use tokio::signal::unix::{SignalKind, signal};
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut terminated = signal(SignalKind::terminate())?;
            let mut interrupted = signal(SignalKind::interrupt())?;
            let mut build = self.begin()?;
            loop {
                if let Some(done) = build.step() {
                    self.report(&done);
                    return Ok(true);
                }
                tokio::select! {
                    _ = terminated.recv() => return Ok(false),
                    _ = interrupted.recv() => return Ok(false),
                    () = tokio::time::sleep(POLL_EVERY) => {}
                }
            }
        })
    }

    /// Starts a build.
    fn begin(&self) -> io::Result<Build> {
        tracing::info!("building: {}", self.command.join(" "));
        self.last_build.building();
        let begun = Build::start(&self.command, self.project.folder(), self.hands_over);
        if let Err(error) = &begun {
            self.last_build.failed(&format!("{} does not start: {error}", self.command.join(" ")), Duration::ZERO);
        }
        begun
    }

    /// Reports the result of a build.
    fn report(&self, done: &BuildResult) {
        let took = done.took.as_secs_f64();
        if done.is_good {
            tracing::info!("built in {took:.1} s");
            self.last_build.built(done.took);
        } else {
            let output = toolcell_mcp::sanitize::text(&done.output);
            tracing::error!("the build failed after {took:.1} s ({}); what serves stays\n{output}", done.status);
            self.last_build.failed(&output, done.took);
        }
    }
}
