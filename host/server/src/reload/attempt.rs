//! One attempt to replace the catalog, step by step: [`reading`] builds a generation, [`holding`]
//! holds back what is not pinned, [`swapping`] replaces what serves, [`reporting`] says how it
//! ended. The old catalog serves until the swap, and longer if a step fails.
mod approving;
mod holding;
mod reading;
mod reporting;
mod swapping;

pub use approving::LOCK_UNWRITABLE;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use toolcell_audit::Event;
use toolcell_mcp::{Host as _, McpServer};
use toolcell_policy::Manifest;

use super::current::Current;
use super::failure::ReloadFailure;
use super::files::WatchedFiles;
use crate::catalog::{Catalog, CatalogBuilder, Services, Withheld};
use crate::files::file::absolute;
use crate::files::file_stamp;
use crate::lock::LockPath;
use crate::replicas::announcements::Announcements;
use reading::sources;

/// Most bytes of texts of definitions that are kept for pages: those of sixteen large components.
/// Past them, pages name the command that shows them.
const DETAILS_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Parts that replacing the catalog needs.
pub struct Setup {
    /// The manifest's path.
    pub manifest_path: PathBuf,
    /// The manifest's text, if no file holds it.
    pub given: Option<Arc<str>>,
    /// The manifest that the process started with.
    pub manifest: Manifest,
    /// Builds further generations.
    pub builder: CatalogBuilder,
    /// The serving catalog.
    pub current: Arc<Current>,
    /// Announces changed lists to clients.
    pub server: Arc<McpServer<Current>>,
    /// Tells clients of changed lists, where replicas do so together.
    pub announcements: Option<Arc<Announcements>>,
    /// What all generations have.
    pub(crate) services: Arc<Services>,
    /// The watched files.
    pub files: WatchedFiles,
    /// Path of the lock; `None` where no file holds the manifest.
    pub lock: Option<LockPath>,
    /// True if only pinned components may be served. Where there is a lock, other signers than it
    /// pins are held back either way.
    pub locked: bool,
    /// Warnings that were shown before. None is said again.
    pub warned: HashSet<String>,
}

/// Replaces the catalog.
pub struct Reloader {
    setup: Setup,
    /// Side files and code of the serving catalog.
    served: Vec<PathBuf>,
    /// The last built catalog, if parts of it are held back.
    proposed: Option<Arc<Catalog>>,
    /// Withheld components, which nothing has parsed, and the manifest that names them.
    withheld: Vec<Withheld>,
    withheld_of: Option<Manifest>,
    /// `[server]` of the serving catalog.
    server: toolcell_policy::Server,
    /// By component: the bytes, and the version of the replicated set, when it was last seen that
    /// no other replica has approved it as it is here.
    unapproved: HashMap<String, (String, u64)>,
}

/// Outcome of an attempt.
#[derive(Clone, Debug)]
pub enum ReloadOutcome {
    /// The files equal the serving generation.
    Unchanged,
    /// A new generation serves.
    Replaced {
        /// Its number.
        generation: u64,
        /// True if clients were notified of a changed list.
        announced: bool,
        /// Differences, in one line.
        summary: String,
    },
    /// The old generation still serves.
    Failed(ReloadFailure),
}

impl Reloader {
    /// Starts to watch the files of the serving catalog.
    pub fn new(setup: Setup) -> Self {
        let served = sources(&setup.manifest, &setup.manifest_path);
        let server = setup.manifest.server().clone();
        let reloader = Self {
            setup,
            served,
            proposed: None,
            withheld: Vec::new(),
            withheld_of: None,
            server,
            unapproved: HashMap::new(),
        };
        reloader.note_files();
        reloader
    }

    /// True if a file changed since it was last read.
    pub fn files_changed(&self) -> bool {
        !self.setup.files.changed().is_empty()
    }

    /// No component is held back any more for what its calls did: an operator asked for a reload.
    pub fn forget_ends(&self) {
        self.setup.builder.forget_ends();
    }

    /// Number of the serving generation.
    pub fn generation(&self) -> u64 {
        self.setup.current.generation()
    }

    /// Reads the files, and replaces the catalog if they differ. The caller then
    /// [reports](Self::report) the outcome.
    pub fn attempt(&mut self, trigger: &'static str) -> ReloadOutcome {
        let old = self.setup.current.snapshot();
        let built = self.build(trigger, &old).and_then(|built| self.hold_back(&old, built));
        let outcome = match built {
            Ok(built) => self.swap(trigger, &old, built),
            Err(failed) => ReloadOutcome::Failed(failed),
        };
        if !matches!(outcome, ReloadOutcome::Replaced { .. }) && !self.setup.current.serves(&old) {
            // What was narrowed for a generation that does not come.
            self.setup.current.replace(old);
        }
        outcome
    }

    /// Takes the stamps of all files now.
    fn note_files(&self) {
        self.setup.files.reading(file_stamp::all(&self.files()));
    }

    /// Files of the serving catalog, the manifest, and the lock.
    fn files(&self) -> BTreeSet<PathBuf> {
        let lock = self.setup.lock.as_deref().map(absolute);
        let manifest = absolute(&self.setup.manifest_path);
        self.served.iter().cloned().chain([manifest]).chain(lock).collect()
    }

    fn note(&self, event: Event<'_>) -> Result<(), ReloadFailure> {
        let recorded = self.setup.services.sink.record(|| event);
        recorded.map_err(|error| ReloadFailure::saying(&format!("the audit cannot be written: {error}")))
    }
}
