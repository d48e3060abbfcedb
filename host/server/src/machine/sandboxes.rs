//! Where guests run: in sandbox processes, or on threads in their place.
use std::sync::Arc;
use std::time::Duration;

use toolcell_policy::Walls;
use toolcell_sandbox::{
    CodeCache, GroupOptions, Loader, LoaderOptions, PoolNotices, PoolOptions, RequiredWalls, SandboxPool, SharedEnds,
    Standing,
};
use toolcell_walls::process::Program;

use crate::machine::memory;
use crate::replicas::replicated_sets::ReplicatedSetName::Ends;
use crate::replicas::replicated_sets::ReplicatedSets;

/// The means of starting sandbox processes, or threads in their place.
#[derive(Clone)]
pub struct SandboxSetup {
    pub(crate) pool: Arc<SandboxPool>,
    pub(crate) options: GroupOptions,
    /// True if the host must not start with a missing wall.
    pub(crate) required: bool,
    without: Arc<[String]>,
    has_walls: bool,
}

impl SandboxSetup {
    /// Processes of this program, or threads in their place.
    ///
    /// # Errors
    /// The machine gives no thread to start them.
    pub fn new(program: Program, server: &toolcell_policy::Server) -> std::io::Result<Self> {
        let has_walls = matches!(program, Program::Process(_));
        let processes = std::thread::available_parallelism().map_or(1, usize::from);
        let memory_bytes_max = server.wall_memory_bytes().unwrap_or_else(memory::for_sandboxes);
        let pool = SandboxPool::new(PoolOptions {
            program,
            stack_bytes: server.stack_bytes(),
            calls_max: server.calls(),
            // This is the budget of all processes of a group together.
            prewarm_bytes: server.prewarm_memory_bytes() / u64::try_from(processes).unwrap_or(1),
            memory_bytes_max,
        })?;
        let required = server.walls() == Walls::Required;
        let without: Arc<[String]> = server.walls_without().into();
        let options = GroupOptions {
            processes,
            idle: server.wall_idle(),
            memory_bytes_max,
            required_walls: if required { RequiredWalls::AllBut(without.to_vec()) } else { RequiredWalls::Best },
            observing: false,
        };
        Ok(Self { pool, options, required, without, has_walls })
    }

    /// From now on, crashes of sandbox processes count for all replicas.
    pub(crate) fn share_ends(&self, sets: &Arc<ReplicatedSets>) {
        self.pool.share_ends(Arc::new(PostedEnds(Arc::clone(sets))));
    }

    /// Starts logging about sandbox processes. Returns one line on the walls of those that have
    /// started.
    pub(crate) fn log(&self) -> String {
        if !self.has_walls {
            return "walls: none, as the manifest says: calls run in threads of the host".to_owned();
        }
        match self.pool.notify(Arc::new(Logged)) {
            None => "walls: no component runs yet that they could stand around".to_owned(),
            Some(missing) if missing.is_empty() => "walls: every wall stands".to_owned(),
            Some(missing) => format!("walls: {}", without(&missing)),
        }
    }

    /// A loader of components, with this folder of compiled code.
    #[must_use]
    pub fn loader(&self, cache: Option<Arc<CodeCache>>) -> Loader {
        let required_walls = self.options.required_walls.clone();
        let PoolOptions { program, stack_bytes, .. } = self.pool.options();
        // Compilers are counted separately: one that does not end must not block calls.
        let program = program.counted_apart();
        let stack_bytes = *stack_bytes;
        Loader::new(LoaderOptions { program, stack_bytes, cache, required_walls }, Arc::clone(self.pool.starter()))
    }

    /// Missing walls that the manifest does not allow to be missing: names and reasons.
    pub(crate) fn missing(&self) -> Vec<(String, String)> {
        let missing = self.pool.walls_missing().unwrap_or_default();
        missing.into_iter().filter(|(wall, _)| !self.without.contains(wall)).collect()
    }

    /// Missing walls that the manifest allows to be missing.
    pub(crate) fn done_without(&self) -> Vec<(String, String)> {
        let missing = self.pool.walls_missing().unwrap_or_default();
        missing.into_iter().filter(|(wall, _)| self.without.contains(wall)).collect()
    }
}

/// Crashes of sandbox processes, shared by all replicas.
struct PostedEnds(Arc<ReplicatedSets>);

impl SharedEnds for PostedEnds {
    fn ended(&self, component: &str, time: Duration) {
        self.0.post_one_more(Ends, &[component], time);
    }

    fn count(&self, component: &str, most: usize) -> usize {
        self.0.count(Ends, &[component], most)
    }

    fn forget(&self) {
        self.0.clear_later(Ends);
    }
}

/// Missing walls, with the reasons.
pub(crate) fn without(missing: &[(String, String)]) -> String {
    let missing: Vec<String> = missing.iter().map(|(wall, reason)| format!("{wall} ({reason})")).collect();
    format!("without {}", missing.join(", "))
}

struct Logged;

impl PoolNotices for Logged {
    fn walls_missing(&self, walls: &[(String, String)]) {
        tracing::warn!("walls: a sandbox process runs {}", without(walls));
    }

    fn standing(&self, component: &str, standing: Standing) {
        let name = component.lines().next().unwrap_or_default();
        tracing::warn!("component {name}: {}", standing.reason());
    }
}
