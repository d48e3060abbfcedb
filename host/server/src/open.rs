//! Opens a manifest on disk and builds its catalog: every command except `inspect` starts here.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcell_audit::Sink;
use toolcell_policy::shell::COMMAND_LINE;
use toolcell_policy::{Diagnostic, MANIFEST_BYTES_MAX, Manifest, Severity, Source, StartRule, parse};

use crate::catalog::{
    APPS, Basis, BuilderOptions, Built, Catalog, CatalogBuilder, DevFolder, HostFiles, LoadStep, NOT_LOADED, SKILLS,
    Services, TEXTS, Tolerance, Withheld, folder_of,
};
use crate::error::StartError;
use crate::files::file::read_bounded;
use crate::foreseen;
use crate::http::check_certificates;
use crate::lock::{self, Drift, Lock, LockError, PinnedComponent};
use crate::machine::{CodeCacheOptions, GuestRunners, Machine};
use crate::observing::open_audit;
use crate::state::shared::SharedKept;

/// A manifest's text, with the path that the user gave.
pub struct ManifestFile {
    path: PathBuf,
    name: String,
    text: String,
    /// True if it is not in a file.
    is_given: bool,
}

/// Options for opening a manifest.
#[derive(Default)]
pub struct OpenOptions<'a> {
    /// Folder of compiled code.
    pub code: CodeCacheOptions,
    /// Where audit records go; nowhere by default.
    pub records: Records<'a>,
    /// True if only components in the lock may be served; others give a [`Refusal`]. False by
    /// default.
    pub locked: bool,
    /// True if calls will be served: then a component whose signers differ from the lock gives a
    /// [`Refusal`], whatever `locked` says. False by default.
    pub serves: bool,
    /// True if broken components are left out so that others are served, unless the manifest's
    /// `start` says otherwise. False by default: each error fails the manifest.
    pub what_works: bool,
    /// True if what else a start reads is checked as well: certificates that clients refuse are
    /// errors, files and variables that are not there are warnings.
    /// False by default: a running server keeps the certificate that it has.
    pub certificates: bool,
    /// True if the guests' attempts are observed: then more of them reach a check that denies and
    /// notes them. False by default.
    pub observing: bool,
    /// True if any call may be recorded, whatever the manifest says. False by default.
    pub recording: bool,
    /// The means of running guests. Without them, the default, no manifest can be opened.
    pub guests: GuestRunners,
    /// The folder of components that `toolcell dev` builds, which replace those of the manifest.
    /// None by default.
    pub dev: Option<DevFolder>,
    /// Called at each step of loading, with the number of all components.
    pub progress: Option<&'a Progress<'a>>,
}

/// Destination of audit records.
#[derive(Clone, Copy, Debug, Default)]
pub enum Records<'a> {
    /// Nowhere, even if the manifest names a file: for commands that do not serve.
    #[default]
    Nowhere,
    /// To this file, or else to the manifest's.
    In(Option<&'a Path>),
}

/// Called at each step of loading, with the number of all components; first with none loaded.
pub type Progress<'a> = dyn Fn(LoadStep<'_>, usize) + Sync + 'a;

/// Result of opening a manifest.
pub struct Opened {
    /// The manifest's text.
    pub file: ManifestFile,
    /// All errors and warnings, in the order of the text.
    pub problems: Vec<Diagnostic>,
    /// The tools to serve, if there was no error.
    pub ready: Option<Ready>,
    /// Why nothing can be served, apart from the problems.
    pub refusal: Option<Refusal>,
}

/// Why nothing can be served, apart from the manifest's problems.
#[derive(Debug)]
pub enum Refusal {
    /// The audit cannot be opened: one sentence.
    Audit(String),
    /// The lock file at this path is missing, and only pinned components may be served.
    NoLock(PathBuf),
    /// The lock file is broken.
    Lock(LockError),
    /// Components differ from the lock.
    Drift {
        /// The lock file.
        lock: PathBuf,
        /// The differing components.
        drifts: Vec<Drift>,
    },
}

/// A checked manifest, its tools, and the machinery to run them.
pub struct Ready {
    pub(crate) opened: OpenedAs,
    /// The manifest.
    pub manifest: Manifest,
    /// Its tools.
    pub catalog: Catalog,
    /// The threads and the engine for them.
    pub machine: Machine,
    /// Builds further generations.
    pub builder: CatalogBuilder,
}

/// Path and options of a manifest that is opened to serve it.
pub(crate) struct OpenedAs {
    pub(crate) path: PathBuf,
    /// The text, if no file holds it.
    pub(crate) given: Option<Arc<str>>,
    pub(crate) name: String,
    pub(crate) digest: toolcell_sandbox::ComponentDigest,
    pub(crate) locked: bool,
    /// The warnings that were already shown.
    pub(crate) warned: Vec<String>,
    /// True if components differ from the lock, and are not served.
    pub(crate) differs: bool,
}

impl ManifestFile {
    /// Reads the text.
    ///
    /// # Errors
    /// One sentence.
    pub fn read(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let bytes = read_bounded(path, MANIFEST_BYTES_MAX as u64).map_err(|problem| format!("{name} {problem}"))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
            let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
            format!("{name} is not UTF-8 text: line {line} has a byte that is not")
        })?;
        Ok(Self { path: path.to_owned(), name, text, is_given: false })
    }

    /// A text for this path, which may not exist yet.
    pub fn unwritten(path: &Path, text: String) -> Self {
        Self { path: path.to_owned(), name: path.display().to_string(), text, is_given: false }
    }

    /// A text that is not in a file. Relative paths start from the current folder.
    pub fn given(text: String) -> Self {
        Self { is_given: true, ..Self::unwritten(Path::new(COMMAND_LINE), text) }
    }

    /// The text as a source of diagnostics.
    pub fn source(&self) -> Source<'_> {
        Source { name: &self.name, text: &self.text }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path as the user gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parses it, opens the audit and loads every component. If only the lock's components are
    /// served, others are withheld.
    ///
    /// # Errors
    ///
    /// The machine is at fault. Problems of the manifest go into [`Opened`].
    pub fn open(self, options: &OpenOptions<'_>) -> Result<Opened, StartError> {
        let locked = match options.locked.then(|| locked(&self.path)).transpose() {
            Ok(locked) => locked,
            Err(refusal) => return Ok(self.refused(Vec::new(), Some(refusal))),
        };
        let (manifest, mut problems) = match parse(&self.source()) {
            Ok(parsed) => (parsed.manifest, parsed.warnings),
            Err(problems) => return Ok(self.refused(problems, None)),
        };
        let folder = folder_of(&self.path);
        let certificates = if options.certificates { check_certificates(&manifest, &folder) } else { Vec::new() };
        let is_refused = certificates.iter().any(|problem| problem.severity() == Severity::Error);
        problems.extend(certificates);
        if options.certificates {
            problems.extend(foreseen::faults(&manifest, &folder));
        }
        let sink = match options.records {
            Records::Nowhere => Ok(Sink::disabled()),
            Records::In(file) => open_audit(file, manifest.audit(), &folder),
        };
        let sink = match sink {
            Ok(sink) => Arc::new(sink),
            Err(problem) => return Ok(self.refused(problems, Some(Refusal::Audit(problem)))),
        };
        let machine = Machine::start(&options.code, Some(manifest.server()), &options.guests)?;
        let total = manifest.components().len();
        let tell = |step: LoadStep<'_>| options.progress.iter().for_each(|progress| progress(step, total));
        tell(LoadStep::Loaded(0));
        let on_disk = (!self.is_given).then_some(self.path.as_path());
        let own = sink.path().filter(|path| Some(*path) != sink.audit());
        let lock = on_disk.map(|manifest| lock::path_beside(manifest).into_path());
        let process = HostFiles::new(on_disk, lock.as_deref(), [sink.audit(), own], &options.code);
        let builder = BuilderOptions {
            kept: SharedKept::new(manifest.state(), &folder),
            host_files: process,
            observing: options.observing,
            recording: options.recording,
            serves: options.serves,
            relay: options.guests.relay,
            dev: options.dev.clone(),
        };
        let builder = CatalogBuilder::new(&machine, builder);
        let services = Services::new(sink, machine.runtime.handle(), manifest.server().calls());
        let services = Arc::new(services.with_logins(&manifest, &folder));
        let tolerant = options.what_works && manifest.server().start() == StartRule::WhatWorks;
        let tolerance = if tolerant { Tolerance::All } else { Tolerance::None };
        let basis = Basis { pinned: locked.as_ref().map(Lock::pins), tolerance, ..Basis::none() };
        let Built { catalog, problems: more, withheld } = builder.build(&services, &manifest, &folder, &basis, &tell);
        problems.extend(more);
        problems.sort_by_key(|problem| problem.span().map(|span| span.start));
        if problems.iter().any(|problem| problem.code() == NOT_LOADED) {
            machine.check_sandboxes()?;
        }
        let Some(catalog) = catalog.filter(|_| !is_refused) else {
            let is_error = |problem: &Diagnostic| problem.severity() == Severity::Error;
            let refusal = locked.filter(|_| !problems.iter().any(is_error)).map(|locked| {
                // The difference kept the rest from being compiled.
                Refusal::Drift {
                    lock: lock::path_beside(&self.path).into_path(),
                    drifts: unread(&locked, &withheld).collect(),
                }
            });
            return Ok(self.refused(problems, refusal));
        };
        let drifts = match &locked {
            Some(locked) => drifts(locked, &catalog, &withheld),
            None if options.serves && !self.is_given => lost_signers(&self.path, &catalog),
            None => Vec::new(),
        };
        // A component that is left out is not a difference.
        let is_left_out = |drift: &Drift| catalog.left_out().iter().any(|out| out.name == drift.component);
        let drifts: Vec<Drift> = drifts.into_iter().filter(|drift| !is_left_out(drift)).collect();
        let differs = !drifts.is_empty();
        let as_pinned =
            locked.as_ref().map(|locked| serving_as_pinned(locked, &catalog, &withheld)).unwrap_or_default();
        let out: Vec<Drift> = drifts.iter().filter(|drift| !as_pinned.contains(&drift.component)).cloned().collect();
        let catalog = match without(catalog, &out, tolerant) {
            Some(catalog) => catalog,
            None => {
                let lock = lock::path_beside(&self.path).into_path();
                return Ok(self.refused(problems, Some(Refusal::Drift { lock, drifts })));
            }
        };
        let opened = OpenedAs {
            path: self.path.clone(),
            given: self.is_given.then(|| self.text.as_str().into()),
            name: self.name.clone(),
            digest: toolcell_sandbox::ComponentDigest::of(self.text.as_bytes()),
            locked: options.locked,
            warned: problems.iter().map(|problem| problem.message().to_owned()).collect(),
            differs,
        };
        let ready = Ready { opened, manifest, catalog, machine, builder };
        Ok(Opened { file: self, problems, ready: Some(ready), refusal: None })
    }

    fn refused(self, problems: Vec<Diagnostic>, refusal: Option<Refusal>) -> Opened {
        Opened { file: self, problems, ready: None, refusal }
    }
}

/// The catalog without the components that differ from the lock; `None` if a start must fail. The
/// first reload, which follows at once, quarantines them.
fn without(catalog: Catalog, drifts: &[Drift], tolerant: bool) -> Option<Catalog> {
    if drifts.is_empty() {
        return Some(catalog);
    }
    let is_of_all = |drift: &Drift| [TEXTS, SKILLS, APPS].contains(&drift.component.as_str());
    if !tolerant || drifts.iter().any(is_of_all) {
        return None;
    }
    let differing = drifts.iter().filter(|drift| !drift.only_less).map(|drift| drift.component.clone());
    let catalog = catalog.without(&differing.collect()).ok()?;
    (!catalog.components().is_empty()).then_some(catalog)
}

/// Components whose source has changed, and whose pinned bytes are served instead.
fn serving_as_pinned(locked: &Lock, catalog: &Catalog, withheld: &[Withheld]) -> BTreeSet<String> {
    if withheld.is_empty() {
        return BTreeSet::new();
    }
    let mut now = Lock::of(catalog);
    let is_as_pinned = |name: &String| {
        let (Some(pinned), Some(mut now)) = (locked.components.get(name), now.components.remove(name)) else {
            return false;
        };
        // Only the source may differ.
        now.source.clone_from(&pinned.source);
        let only = |component: &PinnedComponent| Lock { components: [(name.clone(), component.clone())].into() };
        now.digest == pinned.digest && lock::drift(&only(pinned), &only(&now)).is_empty()
    };
    withheld.iter().map(|held| held.name.clone()).filter(is_as_pinned).collect()
}

/// The lock of this manifest.
fn locked(manifest: &Path) -> Result<Lock, Refusal> {
    let path = lock::path_beside(manifest);
    match lock::read(&path) {
        Ok(Some(locked)) => Ok(locked),
        Ok(None) => Err(Refusal::NoLock(path.into_path())),
        Err(error) => Err(Refusal::Lock(error)),
    }
}

/// Components that differ from the lock. Withheld ones, which nothing has parsed, come first.
fn drifts(locked: &Lock, catalog: &Catalog, withheld: &[Withheld]) -> Vec<Drift> {
    let is_withheld = |drift: &Drift| withheld.iter().any(|held| held.name == drift.component);
    let drifts = lock::drift(locked, &Lock::of(catalog)).into_iter().filter(|drift| !is_withheld(drift));
    unread(locked, withheld).chain(drifts).collect()
}

/// Components whose pinned signers are missing or signed less. None if the lock cannot be read,
/// which a start reports.
pub fn lost_signers(manifest: &Path, catalog: &Catalog) -> Vec<Drift> {
    let Ok(Some(locked)) = lock::read(&lock::path_beside(manifest)) else { return Vec::new() };
    lock::drift(&locked, &Lock::of(catalog)).into_iter().filter(|drift| drift.lost_signers).collect()
}

/// Components that were not parsed, because they differ from the lock.
fn unread(locked: &Lock, withheld: &[Withheld]) -> impl Iterator<Item = Drift> {
    withheld.iter().map(|held| lock::withheld(locked, held))
}

impl Opened {
    /// The number of errors and warnings, in words.
    pub fn summary(&self) -> String {
        summary(&self.problems)
    }
}

/// The number of errors and warnings among these, in words.
pub(crate) fn summary(problems: &[Diagnostic]) -> String {
    let count = |severity| problems.iter().filter(|problem| problem.severity() == severity).count();
    let errors = count(Severity::Error);
    let warnings = count(Severity::Warning);
    let words = |count: usize, word: &str| match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    };
    match (errors, warnings) {
        (_, 0) => words(errors, "error"),
        (0, _) => words(warnings, "warning"),
        _ => format!("{}, {}", words(errors, "error"), words(warnings, "warning")),
    }
}
