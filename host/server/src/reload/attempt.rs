//! One attempt to replace the catalog, step by step: [`reading`] builds a generation, [`holding`]
//! holds back what is not pinned, [`swapping`] replaces the catalog, [`reporting`] reports how it
//! ended. The old catalog is served until the swap, or longer if a step fails.
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
use crate::identity::login::LoginService;
use crate::lock::LockPath;
use crate::replicas::announcements::{Announcements, LoadingNotice};
use reading::sources;

/// Bytes of definitions' texts that are kept for pages: those of sixteen large components. Beyond
/// that, pages name the command that shows them.
const DETAILS_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// What replacing the catalog needs.
pub struct Setup {
    /// The manifest's path.
    pub manifest_path: PathBuf,
    /// The manifest's text, if no file holds it.
    pub given: Option<Arc<str>>,
    /// The manifest that the process started with.
    pub manifest: Manifest,
    /// Builds further generations.
    pub builder: CatalogBuilder,
    /// The current catalog.
    pub current: Arc<Current>,
    /// Announces changed lists to clients.
    pub server: Arc<McpServer<Current>>,
    /// Notifies clients of changed lists together with other replicas, if there are any.
    pub announcements: Option<Arc<Announcements>>,
    /// The logins of callers, and their pages.
    pub(crate) logins: Arc<LoginService>,
    /// What all generations share.
    pub(crate) services: Arc<Services>,
    /// The watched files.
    pub files: WatchedFiles,
    /// Path of the lock; `None` if the manifest is not in a file.
    pub lock: Option<LockPath>,
    /// True if only pinned components may be served. If there is a lock, components with other
    /// signers are held back either way.
    pub locked: bool,
    /// Warnings that were already shown.
    pub warned: HashSet<String>,
}

/// Replaces the catalog.
pub struct Reloader {
    setup: Setup,
    /// Side files and code of the current catalog.
    served: Vec<PathBuf>,
    /// The last built catalog, if parts of it are held back.
    proposed: Option<Arc<Catalog>>,
    /// Withheld components, which nothing has parsed, and their manifest.
    withheld: Vec<Withheld>,
    withheld_of: Option<Manifest>,
    /// `[server]` of the current catalog.
    server: toolcell_policy::Server,
    /// By component: bytes that no other replica had approved, and the version of the replicated
    /// set at that check.
    unapproved: HashMap<String, (String, u64)>,
}

/// Outcome of an attempt.
#[derive(Clone, Debug)]
pub enum ReloadOutcome {
    /// The files are those of the current generation.
    Unchanged,
    /// A new generation is served.
    Replaced {
        /// Its number.
        generation: u64,
        /// True if clients were notified of a changed list.
        announced: bool,
        /// Differences, in one line.
        summary: String,
    },
    /// The old generation is still served.
    Failed(ReloadFailure),
}

impl Reloader {
    /// Starts watching the files of the current catalog.
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

    /// Clears the crash history of all components: an operator asked for a reload.
    pub fn forget_ends(&self) {
        self.setup.builder.forget_ends();
    }

    /// Other replicas wait for this one's list while the notice lives.
    pub fn notice_loading(&self) -> Option<LoadingNotice> {
        self.setup.announcements.as_ref().map(|announcements| announcements.loading())
    }

    /// Number of the current generation.
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
            // Undoes the narrowing for a generation that failed.
            self.setup.current.replace(old);
        }
        outcome
    }

    /// Stamps all files.
    fn note_files(&self) {
        self.setup.files.reading(file_stamp::all(&self.files()));
    }

    /// Files of the current catalog, the manifest, and the lock.
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
