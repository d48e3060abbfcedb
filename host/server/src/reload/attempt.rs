//! One attempt to replace the catalog: read, build, compare, swap, tell. The old one serves until the last step, and on
//! where any step fails.
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use toolcell_audit::{
    CatalogRefused, CatalogReplaced, Clipped, ComponentApproved, ComponentQuarantined, Event, Sink, SinkError,
};
use toolcell_mcp::{Catalog as _, Host as _, Server};
use toolcell_policy::{Diagnostic, Manifest, Severity, SourceRef, Style, parse, render_all};

use super::current::Current;
use super::difference::Difference;
use super::files::Files;
use super::journal::{Attempted, Failed, Journal, Quarantined};
use crate::aside;
use crate::catalog::{Basis, Builder, Built, Catalog, Offer, Withheld, folder_of, side_files};
use crate::lock::{self, Approval, Component, Drift, Lock, drift};
use crate::open::{ManifestFile, summary};
use crate::serve::record_components;
use crate::stamp;

/// The trigger that nobody gave on purpose.
const FILES: &str = "files";

/// What a failed attempt means, said each time: that a right is taken away is what people must not believe too early.
const SERVES_ON: &str = "and nothing of the change is applied: a right that it takes away is not taken away yet";

/// What replacing the catalog needs.
pub struct Setup {
    /// The manifest's path.
    pub manifest_path: PathBuf,
    /// What the host was started with.
    pub manifest: Manifest,
    /// Builds further generations.
    pub builder: Builder,
    /// What serves.
    pub current: Arc<Current>,
    /// Tells clients.
    pub server: Arc<Server<Current>>,
    /// Where it is recorded.
    pub sink: Arc<Sink>,
    /// Where it is remembered.
    pub journal: Arc<Journal>,
    /// Which files are watched.
    pub files: Files,
    /// The lock, where nothing else is to be served.
    pub lock: Option<PathBuf>,
}

/// Replaces the catalog.
pub struct Reloader {
    setup: Setup,
    /// The files of what serves, beside the manifest.
    served: Vec<PathBuf>,
    /// The last catalog that was built, where not all of it serves.
    proposed: Option<Arc<Catalog>>,
    /// Components that nothing has looked into, and the manifest that names them.
    withheld: Vec<Withheld>,
    withheld_of: Option<Manifest>,
    /// `[server]` of what serves.
    server: toolcell_policy::Server,
    /// Warnings that were shown: they are not shown again each time.
    shown: HashSet<String>,
}

/// What an attempt came to.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The files say what is served already.
    Unchanged,
    /// Another generation serves.
    Replaced {
        /// Its number.
        generation: u64,
        /// Whether clients were told of another list.
        announced: bool,
        /// What is different, in one line.
        summary: String,
    },
    /// The old one serves on.
    Failed(Failed),
}

/// A generation that was built, and what there is to say of it.
struct Proposal {
    catalog: Catalog,
    manifest: Manifest,
    warnings: Vec<Diagnostic>,
}

impl Reloader {
    /// Watches the files of what serves from now on.
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
            shown: HashSet::new(),
        };
        reloader.note_files();
        reloader
    }

    /// Whether a file looks other than when it was last read.
    pub fn files_changed(&self) -> bool {
        !self.setup.files.changed().is_empty()
    }

    /// The number of the generation that serves.
    pub fn generation(&self) -> u64 {
        self.setup.current.generation()
    }

    /// Looks at the files and replaces the catalog where they say something else. What it comes to is still to be
    /// [`reported`](Self::report).
    pub fn attempt(&mut self, trigger: &'static str) -> Outcome {
        let old = self.setup.current.snapshot();
        self.note_files();
        let proposal = match self.propose(trigger, &old) {
            Ok(proposal) => proposal,
            Err(failed) => return Outcome::Failed(failed),
        };
        self.say_what_waits(&proposal.manifest);
        self.server = proposal.manifest.server().clone();
        self.say_warnings(&proposal.warnings);
        if Difference::is_none(&old, &proposal.catalog) {
            return Outcome::Unchanged;
        }
        self.replace(trigger, &old, proposal.catalog)
    }

    /// Reads and builds.
    fn propose(&mut self, trigger: &str, old: &Arc<Catalog>) -> Result<Proposal, Failed> {
        let path = self.setup.manifest_path.clone();
        let file = ManifestFile::read(&path).map_err(|problem| Failed::saying(&problem))?;
        let parsed = parse(&file.source()).map_err(|problems| Failed::with(&file, &problems))?;
        let manifest = parsed.manifest;
        // Looked at before they are read, as the manifest was: what changes from here on is seen.
        self.served = sources(&manifest, &path);
        self.setup.files.reading_also(&self.files());
        let earlier: Vec<Arc<Catalog>> = [Some(old), self.proposed.as_ref()].into_iter().flatten().cloned().collect();
        // Whoever asks wants what is outside of the manifest looked at as well: a secret that was replaced, say.
        let elsewhere = (manifest.server().dns(), manifest.server().state());
        let fresh = trigger != FILES || elsewhere != (self.server.dns(), self.server.state());
        let locked = self.setup.lock.as_deref().map(read_lock).transpose()?;
        let pinned = locked.as_ref().map(Lock::digests);
        let generation = old.tools().generation() + 1;
        let basis = Basis { generation, earlier: &earlier, fresh, pinned, approved: None };
        let built = self.setup.builder.build(&manifest, &folder_of(&path), &basis, &|_| {});
        let Built { catalog, problems, withheld } = built;
        let Some(catalog) = catalog else { return Err(Failed::with(&file, &problems)) };
        self.withheld_of = (!withheld.is_empty()).then(|| manifest.clone());
        self.withheld = withheld;
        let catalog = self.hold_back(old, catalog, locked.as_ref())?;
        let warnings = parsed.warnings.into_iter().chain(problems).collect();
        Ok(Proposal { catalog, manifest, warnings })
    }

    /// The catalog without what the lock does not have so: that serves as it was, and is not served where it is new.
    fn hold_back(&mut self, old: &Catalog, built: Catalog, locked: Option<&Lock>) -> Result<Catalog, Failed> {
        let Some(locked) = locked else { return Ok(built) };
        let is_withheld = |drift: &Drift| self.withheld.iter().any(|held| held.name == drift.component);
        let drifts = drift(locked, &Lock::of(&built)).into_iter().filter(|drift| !is_withheld(drift));
        let (less, mut held): (Vec<Drift>, Vec<Drift>) = drifts.partition(|drift| drift.only_less);
        held.extend(
            self.withheld.iter().map(|withheld| {
                lock::withheld(locked, &withheld.name, (&withheld.digest, withheld.bytes.len() as u64))
            }),
        );
        let less: Vec<String> = less.into_iter().map(|drift| drift.component).collect();
        let shown = less.join(", ");
        if self.setup.journal.serves_less(less) {
            tracing::warn!(
                "less is served than the lock pins: {shown}; `toolcell lock` or `toolcell approve` notes that"
            );
        }
        let names: BTreeSet<String> = held.iter().map(|drift| drift.component.clone()).collect();
        self.say_quarantined(held)?;
        if names.is_empty() {
            self.proposed = None;
            return Ok(built);
        }
        let built = Arc::new(built);
        self.proposed = Some(Arc::clone(&built));
        let collide = |error| Failed::saying(&format!("with what is quarantined as it was, {error}"));
        built.holding(&names, old).map_err(collide)
    }

    fn say_quarantined(&self, held: Vec<Drift>) -> Result<(), Failed> {
        let quarantined = held.into_iter().map(|drift| {
            let Drift { component, differences, digest, .. } = drift;
            Quarantined { component, digest, differences }
        });
        for held in self.setup.journal.quarantine(quarantined.collect()) {
            let (name, differences) = (held.component.as_str(), held.differences.join("\n  "));
            self.note(Event::ComponentQuarantined(ComponentQuarantined {
                generation: self.generation(),
                name,
                digest: &held.digest,
                differences: Clipped(&differences),
            }))?;
            tracing::error!(
                "quarantined: {name} is not as the lock has it, and serves as it was, with every right that it had, until \
                 `{}`\n  {differences}",
                lock::approving(name, &held.digest)
            );
        }
        Ok(())
    }

    /// Pins what is quarantined under this name, as it was when it was quarantined. Nothing is to be done where nothing but
    /// what is pinned has to be served, or where another process has pinned it meanwhile.
    pub fn approve(&mut self, approval: &Approval) -> Result<(), Failed> {
        let Some(path) = self.setup.lock.clone() else { return Ok(()) };
        let mut locked = read_lock(&path)?;
        self.look_into(approval, &locked)?;
        let Some((component, pinned)) = self.quarantined_as(&approval.name) else {
            let serving = Lock::of(&self.setup.current.snapshot());
            let as_pinned = |name: &str| serving.components.get(name) == locked.components.get(name);
            return match serving.component_named(&approval.name) {
                Some(component) if as_pinned(component) => Ok(()),
                _ => Err(Failed::saying(&format!("nothing that is called {:?} is quarantined", approval.name))),
            };
        };
        let digest = pinned.digest.clone();
        approval.check(&component, &digest).map_err(|problem| Failed::saying(&problem))?;
        self.note(Event::ComponentApproved(ComponentApproved { name: &component, digest: &digest }))?;
        locked.components.insert(component, pinned);
        let own = path.clone();
        let written = aside::run(&path, move |_| lock::write(&own, &locked).map_err(|error| error.to_string()));
        written.unwrap_or_else(|error| Err(error.to_string())).map_err(|problem| Failed::saying(&problem))
    }

    /// Reads what is approved and was not looked into, that it may be pinned whole.
    fn look_into(&mut self, approval: &Approval, locked: &Lock) -> Result<(), Failed> {
        let old = self.setup.current.snapshot();
        let named = Lock::of(&old).component_named(&approval.name).map(str::to_owned);
        let is_named = |held: &&Withheld| held.name == approval.name || named.as_ref() == Some(&held.name);
        let (Some(held), Some(manifest)) = (self.withheld.iter().find(is_named), &self.withheld_of) else {
            return Ok(());
        };
        approval.check(&held.name, &held.digest).map_err(|problem| Failed::saying(&problem))?;
        let mut pinned = locked.digests();
        pinned.insert(held.name.clone(), held.digest.clone());
        let earlier = [Arc::clone(&old)];
        let generation = old.tools().generation() + 1;
        let basis = Basis { generation, earlier: &earlier, fresh: false, pinned: Some(pinned), approved: Some(held) };
        let folder = folder_of(&self.setup.manifest_path);
        let Built { catalog, problems, .. } = self.setup.builder.build(manifest, &folder, &basis, &|_| {});
        let why = problems.iter().find(|problem| problem.severity() == Severity::Error);
        let catalog = catalog.ok_or_else(|| Failed::saying(why.map_or("it cannot be loaded", |why| why.message())))?;
        self.proposed = Some(Arc::new(catalog));
        Ok(())
    }

    /// What is quarantined under this name: the component's, or a tool's.
    fn quarantined_as(&self, name: &str) -> Option<(String, Component)> {
        let mut now = Lock::of(self.proposed.as_ref()?);
        let component = now.component_named(name)?.to_owned();
        let quarantined = self.setup.journal.quarantined();
        let is_held = quarantined.iter().any(|held| held.component == component);
        is_held.then(|| now.components.remove_entry(&component)).flatten()
    }

    fn note(&self, event: Event<'_>) -> Result<(), Failed> {
        let recorded = self.setup.sink.record(|| event);
        recorded.map_err(|error| Failed::saying(&format!("the audit cannot be written: {error}")))
    }

    /// Records and swaps, in this order: what cannot be recorded does not happen.
    fn replace(&self, trigger: &'static str, old: &Catalog, new: Catalog) -> Outcome {
        let difference = Difference::between(old, &new);
        let generation = new.tools().generation();
        if let Err(error) = self.record(trigger, &difference, old, &new) {
            return Outcome::Failed(Failed::saying(&format!("the audit cannot be written: {error}")));
        }
        let new = Arc::new(new);
        self.setup.current.replace(Arc::clone(&new));
        if self.server.narrow_cancels() {
            self.end_narrowed(&new);
        }
        let announced = self.setup.server.catalog_replaced(old, &new);
        Outcome::Replaced { generation, announced, summary: difference.summary() }
    }

    /// Ends calls on earlier generations whose tools may do less now. A component that the manifest has no more may do
    /// nothing; a tool that new code does not list any more had nothing taken away.
    fn end_narrowed(&self, new: &Catalog) {
        let now: HashMap<(&str, &str), Offer<'_>> =
            new.offers().map(|offer| ((offer.component().name(), offer.own_name()), offer)).collect();
        for earlier in self.setup.current.held() {
            for offer in earlier.offers() {
                let component = offer.component().name();
                let less = match now.get(&(component, offer.own_name())) {
                    Some(now) => lock::narrowed(offer.grants(), now.grants()),
                    None => new.component(component).is_none(),
                };
                if less {
                    offer.narrow();
                }
            }
        }
    }

    fn record(&self, trigger: &str, difference: &Difference, old: &Catalog, new: &Catalog) -> Result<(), SinkError> {
        let changed = |name: &str| difference.components.iter().any(|(changed, _)| changed == name);
        record_components(&self.setup.sink, new, changed)?;
        let summary = difference.summary();
        self.setup.sink.record(|| {
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

    /// Says, records and remembers what an attempt came to.
    pub fn report(&self, trigger: &'static str, began: Instant, outcome: &Outcome) {
        let generation = self.generation();
        let (replaced, announced, summary) = match outcome {
            Outcome::Unchanged => {
                self.setup.journal.is_well();
                tracing::debug!("looked ({trigger}): the files say what is served");
                return;
            }
            Outcome::Replaced { announced, summary, .. } => (true, *announced, summary.clone()),
            Outcome::Failed(failed) => (false, false, failed.summary.clone()),
        };
        let took = began.elapsed();
        let (time, took_ms) = (SystemTime::now(), took.as_millis());
        let failed = match outcome {
            Outcome::Failed(failed) => {
                self.record_failure(trigger, failed);
                tracing::error!(
                    "not reloaded: {summary}; generation {generation} serves on, {SERVES_ON}\n{}",
                    failed.drawn
                );
                Some(failed.clone())
            }
            _ => {
                let told = if announced { "clients are told of the new list" } else { "the list is the same" };
                tracing::info!("reloaded in {took_ms} ms: generation {generation}: {summary}; {told}");
                None
            }
        };
        let attempted = Attempted { time, trigger, generation, replaced, announced, took, summary };
        self.setup.journal.attempted(attempted, failed);
    }

    fn record_failure(&self, trigger: &str, failed: &Failed) {
        let cause = if failed.drawn.is_empty() { &failed.summary } else { &failed.drawn };
        let event = || {
            let (generation, cause) = (self.generation(), Clipped(cause));
            Event::CatalogRefused(CatalogRefused { generation, trigger, cause })
        };
        if let Err(error) = self.setup.sink.record(event) {
            tracing::error!("a failed reload is missing in the audit: {error}");
        }
    }

    /// Notes how the files look now.
    fn note_files(&self) {
        self.setup.files.reading(stamp::all(&self.files()));
    }

    /// Those that are served, the manifest, and the lock.
    fn files(&self) -> BTreeSet<PathBuf> {
        let lock = self.setup.lock.as_deref().map(side_files::absolute);
        let manifest = side_files::absolute(&self.setup.manifest_path);
        self.served.iter().cloned().chain([manifest]).chain(lock).collect()
    }

    fn say_what_waits(&self, manifest: &Manifest) {
        let keys = super::restart::waiting(&self.setup.manifest, manifest);
        let shown = keys.join(", ");
        if self.setup.journal.waits_for_start(keys) {
            tracing::warn!("changed, and in effect from the next start: {shown}");
        }
    }

    fn say_warnings(&mut self, warnings: &[Diagnostic]) {
        for warning in warnings {
            if self.shown.insert(warning.message().to_owned()) {
                tracing::warn!("{}", warning.message());
            }
        }
    }
}

impl Failed {
    /// For what has no place in the manifest.
    pub fn saying(problem: &str) -> Self {
        let problems = vec![serde_json::json!({"severity": "error", "message": problem})];
        Self { summary: problem.to_owned(), drawn: String::new(), problems }
    }

    /// For what is wrong with the manifest and its components.
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

fn read_lock(path: &Path) -> Result<Lock, Failed> {
    let saying = |problem: String| Failed::saying(&problem);
    let locked = lock::read(path).map_err(|error| saying(format!("{error}; {}", error.hint())))?;
    locked.ok_or_else(|| {
        saying(format!("{} is gone, and nothing else is to be served; `toolcell lock` writes it", path.display()))
    })
}

/// The files of a manifest's components: their code, and what else is read when they are loaded.
fn sources(manifest: &Manifest, path: &Path) -> Vec<PathBuf> {
    let folder = folder_of(path);
    let named = manifest.components().iter().flat_map(|component| {
        let code = match component.source() {
            SourceRef::File(written) => Some(side_files::absolute(&folder.join(written))),
            _ => None,
        };
        side_files::files(component, &folder).into_iter().chain(code)
    });
    named.collect()
}
