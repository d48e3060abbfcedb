//! One attempt to replace the catalog: read, build, compare, swap, announce. The old catalog serves
//! until the swap, and longer if a step fails.
mod approving;

pub use approving::LOCK_UNWRITABLE;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use toolcell_audit::{CatalogRefused, CatalogReplaced, Clipped, ComponentQuarantined, Event, SinkError};
use toolcell_mcp::{Host as _, McpServer, ServedCatalog as _};
use toolcell_policy::{Diagnostic, Manifest, Severity, SourceRef, Style, parse, render_all};

use super::current::Current;
use super::difference::Difference;
use super::files::WatchedFiles;
use super::journal::{Quarantined, ReloadAttempt, ReloadFailure};
use crate::catalog::{
    Basis, Built, Catalog, CatalogBuilder, LoadStep, Services, Tolerance, ToolOffer, Withheld, folder_of,
    record_components, side_files,
};
use crate::catalog::{apps, skills, texts};
use crate::fetching::trust;
use crate::files::file::absolute;
use crate::files::file_stamp;
use crate::lock::{self, Drift, Lock, LockPath, drift};
use crate::open::{ManifestFile, summary};
use crate::replicas::announcements::Announcements;

/// Trigger of reloads after a change of files, which nobody ordered.
const FILES: &str = "files";

/// Most bytes of texts of definitions that are kept for pages: those of sixteen large components.
/// Past them, pages name the command that shows them.
const DETAILS_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Ends every message of a failed attempt, so that nobody believes that a right is already taken
/// away.
const SERVES_ON: &str = "and none of the change is applied: a right that it takes away is not taken away yet";

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

/// A built generation with its manifest and warnings.
struct Proposal {
    catalog: Catalog,
    manifest: Manifest,
    warnings: Vec<Diagnostic>,
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
        let outcome = self.attempt_from(trigger, &old);
        if !matches!(outcome, ReloadOutcome::Replaced { .. }) && !self.setup.current.serves(&old) {
            // What was narrowed for a generation that does not come.
            self.setup.current.replace(old);
        }
        outcome
    }

    fn attempt_from(&mut self, trigger: &'static str, old: &Arc<Catalog>) -> ReloadOutcome {
        self.note_files();
        let proposal = match self.propose(trigger, old) {
            Ok(proposal) => proposal,
            Err(failed) => return ReloadOutcome::Failed(failed),
        };
        self.say_what_waits(&proposal.manifest);
        self.server = proposal.manifest.server().clone();
        self.setup.services.log.follow(self.server.log().into());
        self.say_warnings(&proposal.warnings);
        if Difference::is_none(old, &proposal.catalog) {
            return ReloadOutcome::Unchanged;
        }
        self.replace(trigger, old, proposal.catalog)
    }

    /// Takes rights away at once that callers have no more by the new manifest: components may take
    /// long to load. Nobody is notified before the next generation serves.
    fn narrow_early(&self, manifest: &Manifest, old: &Catalog) -> Result<(), ReloadFailure> {
        if manifest.callers().canonical() == old.callers().canonical() {
            return Ok(());
        }
        let rules = Arc::new(manifest.callers().clone());
        let narrowed = old.also_under(&rules).map_err(|error| ReloadFailure::saying(&error.to_string()))?;
        self.setup.current.replace(Arc::new(narrowed));
        Ok(())
    }

    /// Reads the manifest and builds a generation.
    fn propose(&mut self, trigger: &str, old: &Arc<Catalog>) -> Result<Proposal, ReloadFailure> {
        let path = self.setup.manifest_path.clone();
        let file = match &self.setup.given {
            Some(text) => ManifestFile::given(text.to_string()),
            None => ManifestFile::read(&path).map_err(|problem| ReloadFailure::saying(&problem))?,
        };
        let parsed = parse(&file.source()).map_err(|problems| ReloadFailure::with(&file, &problems))?;
        let manifest = parsed.manifest;
        self.narrow_early(&manifest, old)?;
        // Stamped before they are read, like the manifest: any change from here on is seen.
        self.served = sources(&manifest, &path);
        self.setup.files.reading_also(&self.files());
        let earlier: Vec<Arc<Catalog>> = [Some(old), self.proposed.as_ref()].into_iter().flatten().cloned().collect();
        // A person who orders a reload also expects changes outside of the manifest to count, such
        // as a replaced secret.
        let elsewhere = (manifest.server().dns(), manifest.server().state());
        let fresh = trigger != FILES || elsewhere != (self.server.dns(), self.server.state());
        let locked = self.read_pins()?;
        let pinned = locked.as_ref().filter(|_| self.setup.locked).map(Lock::pins);
        let generation = old.tools().generation() + 1;
        // What a start did without does not keep a change from being taken. What serves does.
        let tolerance = Tolerance::Those(old.left_out().iter().map(|component| component.name.clone()).collect());
        let basis = Basis { generation, earlier: &earlier, fresh, pinned, approved: None, tolerance };
        let built = self.setup.builder.build(&self.setup.services, &manifest, &folder_of(&path), &basis, &say_slow);
        let Built { catalog, problems, withheld } = built;
        let Some(catalog) = catalog else { return Err(ReloadFailure::with(&file, &problems)) };
        self.withheld_of = (!withheld.is_empty()).then(|| manifest.clone());
        self.withheld = withheld;
        let catalog = self.hold_back(old, catalog, locked.as_ref())?;
        let problems = problems.into_iter().filter(|problem| problem.severity() == Severity::Warning);
        let warnings = parsed.warnings.into_iter().chain(problems).collect();
        say_left_out(old, &catalog);
        Ok(Proposal { catalog, manifest, warnings })
    }

    /// The lock. Where others than pinned components may be served, there may be none, and one that
    /// is broken pins nothing.
    fn read_pins(&self) -> Result<Option<Lock>, ReloadFailure> {
        match &self.setup.lock {
            Some(path) if self.setup.locked => read_lock(path).map(Some),
            Some(path) => Ok(lock::read(path).unwrap_or_else(|error| {
                tracing::warn!("{error}; {}", error.hint());
                None
            })),
            None => Ok(None),
        }
    }

    /// The catalog without components that differ from the lock, or without `--locked` those that
    /// others signed. Those keep serving their old
    /// version; new ones are not served.
    fn hold_back(&mut self, old: &Catalog, built: Catalog, locked: Option<&Lock>) -> Result<Catalog, ReloadFailure> {
        let Some(locked) = locked else {
            self.proposed = None;
            self.say_quarantined(Vec::new())?;
            return Ok(built);
        };
        let is_withheld = |drift: &Drift| self.withheld.iter().any(|held| held.name == drift.component);
        // What is left out is missing for another reason.
        let is_left_out = |drift: &Drift| built.left_out().iter().any(|out| out.name == drift.component);
        let drifts = drift(locked, &Lock::of(&built)).into_iter();
        let drifts = drifts.filter(|drift| !is_withheld(drift) && !is_left_out(drift));
        let drifts = drifts.filter(|drift| self.setup.locked || drift.lost_signers);
        let (less, mut held): (Vec<Drift>, Vec<Drift>) = drifts.partition(|drift| drift.only_less);
        held.extend(self.withheld.iter().map(|withheld| lock::withheld(locked, withheld)));
        let less: Vec<String> = less.into_iter().map(|drift| drift.component).collect();
        let shown = less.join(", ");
        if self.setup.current.journal.serves_less(less) {
            tracing::warn!(
                "less is served than the lock pins: {shown}; `toolcell lock` or `toolcell approve` notes that"
            );
        }
        let names: BTreeSet<String> = held.iter().map(|drift| drift.component.clone()).collect();
        self.unapproved.clear();
        self.say_quarantined(held)?;
        if names.is_empty() {
            self.proposed = None;
            return Ok(built);
        }
        let built = Arc::new(built);
        self.proposed = Some(Arc::clone(&built));
        let collide = |error| ReloadFailure::saying(&format!("with the quarantined components as they were, {error}"));
        built.holding(&names, old).map_err(collide)
    }

    fn say_quarantined(&self, held: Vec<Drift>) -> Result<(), ReloadFailure> {
        let since = SystemTime::now();
        let mut room = DETAILS_BYTES_MAX;
        let quarantined = held.into_iter().map(|drift| {
            let Drift { component, differences, details, digest, other_signers, .. } = drift;
            let details = Arc::new(details.within(&mut room));
            let is_withheld = self.withheld.iter().any(|held| held.name == component);
            Quarantined { component, digest, differences, details, is_withheld, read: None, other_signers, since }
        });
        for held in self.setup.current.journal.quarantine(quarantined.collect()) {
            let name = held.component.as_str();
            let differences = held.differences.join("\n  ");
            self.note(Event::ComponentQuarantined(ComponentQuarantined {
                generation: self.generation(),
                name,
                digest: &held.digest,
                differences: Clipped(&differences),
            }))?;
            let serves = match self.setup.current.snapshot().component(name) {
                Some(_) => "serves as it was, with every right that it had,",
                None => "does not serve",
            };
            tracing::error!(
                "quarantined: {name} is not as the lock has it, and {serves} until `{}`\n  {differences}",
                lock::approving(name, &held.digest, held.other_signers)
            );
        }
        Ok(())
    }

    fn note(&self, event: Event<'_>) -> Result<(), ReloadFailure> {
        let recorded = self.setup.services.sink.record(|| event);
        recorded.map_err(|error| ReloadFailure::saying(&format!("the audit cannot be written: {error}")))
    }

    /// Records, then swaps: a change that cannot be recorded does not happen.
    fn replace(&self, trigger: &'static str, old: &Catalog, new: Catalog) -> ReloadOutcome {
        let difference = Difference::between(old, &new);
        let generation = new.tools().generation();
        if let Err(problem) = self.setup.builder.raise_walls(&new) {
            return ReloadOutcome::Failed(ReloadFailure::saying(&problem));
        }
        if let Err(error) = self.record(trigger, &difference, old, &new) {
            return ReloadOutcome::Failed(ReloadFailure::saying(&format!("the audit cannot be written: {error}")));
        }
        let new = Arc::new(new);
        self.setup.current.replace(Arc::clone(&new));
        if self.server.narrow_cancels() {
            self.end_narrowed(&new);
        }
        let announced = match &self.setup.announcements {
            Some(announcements) => {
                self.setup.server.resources_replaced_by(old, &new);
                announcements.changed(old, &new)
            }
            None => self.setup.server.catalog_replaced(old, &new),
        };
        ReloadOutcome::Replaced { generation, announced, summary: difference.summary() }
    }

    /// Ends calls on earlier generations whose tools were narrowed. A component that left the
    /// manifest may reach nothing. A tool that new code no longer lists was not narrowed.
    fn end_narrowed(&self, new: &Catalog) {
        let now: HashMap<(&str, &str), ToolOffer<'_>> =
            new.offers().map(|offer| ((offer.component().name(), offer.own_name()), offer)).collect();
        for earlier in self.setup.current.held() {
            for offer in earlier.offers() {
                let component = offer.component().name();
                let removed = new.component(component).is_none();
                let narrower = |now: &ToolOffer<'_>| lock::narrowed(offer.grants(), now.grants());
                if removed || now.get(&(component, offer.own_name())).is_some_and(narrower) {
                    offer.narrow(removed);
                }
            }
        }
    }

    fn record(&self, trigger: &str, difference: &Difference, old: &Catalog, new: &Catalog) -> Result<(), SinkError> {
        let changed = |name: &str| difference.components.iter().any(|(changed, _)| changed == name);
        record_components(&self.setup.services.sink, new, changed)?;
        let summary = difference.summary();
        self.setup.services.sink.record(|| {
            Event::CatalogReplaced(CatalogReplaced {
                generation: new.tools().generation(),
                replaces: old.tools().generation(),
                trigger,
                summary: Clipped(&summary),
                tools_added: difference.tools_added.len() as u64,
                tools_removed: difference.tools_removed.len() as u64,
                tools_changed: difference.tools_changed.len() as u64,
            })
        })
    }

    /// Logs, records and remembers an outcome.
    pub fn report(&self, trigger: &'static str, began: Instant, outcome: &ReloadOutcome) {
        let generation = self.generation();
        let (replaced, announced, summary) = match outcome {
            ReloadOutcome::Unchanged => {
                self.setup.current.journal.is_well();
                tracing::debug!("checked ({trigger}): the files match what is served");
                return;
            }
            ReloadOutcome::Replaced { announced, summary, .. } => (true, *announced, summary.clone()),
            ReloadOutcome::Failed(failed) => (false, false, failed.summary.clone()),
        };
        let took = began.elapsed();
        let time = SystemTime::now();
        let took_ms = took.as_millis();
        let failed = match outcome {
            ReloadOutcome::Failed(failed) => {
                self.record_failure(trigger, failed);
                if self.setup.current.journal.failed().is_some_and(|before| before.problems == failed.problems) {
                    tracing::error!("not reloaded, as before: {summary}; generation {generation} serves on");
                } else {
                    tracing::error!(
                        "not reloaded: {summary}; generation {generation} serves on, {SERVES_ON}\n{}",
                        failed.drawn
                    );
                }
                Some(failed.clone())
            }
            _ => {
                let told = if announced { "clients are notified of the new list" } else { "the list is the same" };
                tracing::info!("reloaded in {took_ms} ms: generation {generation}: {summary}; {told}");
                None
            }
        };
        let attempted = ReloadAttempt { time, trigger, generation, replaced, announced, took, summary };
        self.setup.current.journal.attempted(attempted, failed);
    }

    fn record_failure(&self, trigger: &str, failed: &ReloadFailure) {
        let cause = if failed.drawn.is_empty() { &failed.summary } else { &failed.drawn };
        let event = || {
            let generation = self.generation();
            let cause = Clipped(cause);
            Event::CatalogRefused(CatalogRefused { generation, trigger, cause })
        };
        if let Err(error) = self.setup.services.sink.record(event) {
            tracing::error!("a failed reload is missing from the audit: {error}");
        }
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

    fn say_what_waits(&self, manifest: &Manifest) {
        let keys = super::restart::waiting(&self.setup.manifest, manifest);
        let shown = keys.join(", ");
        if self.setup.current.journal.waits_for_start(keys) {
            tracing::warn!("changed, and in effect from the next start: {shown}");
        }
    }

    fn say_warnings(&mut self, warnings: &[Diagnostic]) {
        for warning in warnings {
            if self.setup.warned.insert(warning.message().to_owned()) {
                tracing::warn!("{}", warning.message());
            }
        }
    }
}

impl ReloadFailure {
    /// A failure without a place in the manifest.
    pub fn saying(problem: &str) -> Self {
        let problems = vec![serde_json::json!({"severity": "error", "message": problem})];
        Self { summary: problem.to_owned(), drawn: String::new(), problems }
    }

    /// [`saying`](Self::saying), with a code for programs.
    pub(super) fn coded(code: &str, problem: &str) -> Self {
        let problems = vec![serde_json::json!({"severity": "error", "code": code, "message": problem})];
        Self { problems, ..Self::saying(problem) }
    }

    /// A failure of the manifest or its components.
    fn with(file: &ManifestFile, problems: &[Diagnostic]) -> Self {
        let mut problems = problems.to_vec();
        problems.sort_by_key(|problem| problem.span().map(|span| span.start));
        let source = file.source();
        let errors = problems.iter().filter(|problem| problem.severity() == Severity::Error);
        Self {
            summary: match errors.clone().next() {
                Some(only) if errors.clone().count() == 1 => only.message().to_owned(),
                _ => format!("{}: {}", file.name(), summary(&problems)),
            },
            drawn: format!("\n{}", render_all(&source, &problems, Style::Plain)),
            problems: problems.iter().map(|problem| problem.to_json(&source)).collect(),
        }
    }
}

/// Logs what a generation is without, where that is news.
fn say_left_out(old: &Catalog, new: &Catalog) {
    for component in new.left_out().iter().filter(|component| !old.left_out().contains(component)) {
        tracing::error!("left out: {}", component.problem);
    }
}

/// Logs that a component takes long to compile.
fn say_slow(step: LoadStep<'_>) {
    if let LoadStep::Compiling(compiling) = step {
        tracing::info!("{compiling}");
    }
}

fn read_lock(path: &LockPath) -> Result<Lock, ReloadFailure> {
    let saying = |problem: String| ReloadFailure::saying(&problem);
    let locked = lock::read(path).map_err(|error| saying(format!("{error}; {}", error.hint())))?;
    locked.ok_or_else(|| {
        saying(format!("{} is gone, and nothing else is to be served; `toolcell lock` writes it", path.display()))
    })
}

/// Files of a manifest's components: code and side files.
fn sources(manifest: &Manifest, path: &Path) -> Vec<PathBuf> {
    let folder = folder_of(path);
    let named = manifest.components().iter().flat_map(|component| {
        let code = match component.source() {
            SourceRef::File(written) => Some(absolute(&folder.join(written))),
            _ => None,
        };
        side_files::files(component, &folder).into_iter().chain(code)
    });
    let texts = texts::files(manifest, &folder).into_iter().chain(apps::files(manifest, &folder));
    let trust = trust::files(manifest, &folder);
    named.chain(texts).chain(skills::files(manifest, &folder)).chain(trust).collect()
}
