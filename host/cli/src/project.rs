//! A manifest on disk and the catalog it comes to: what every command but `inspect` begins with.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcell_audit::Sink;
use toolcell_policy::{Diagnostic, MANIFEST_BYTES_MAX, Manifest, Severity, Source, parse, render_all};

use crate::args::CodeCacheArgs;
use crate::catalog::{Basis, Builder, Built, Catalog, Process, Withheld, folder_of, read_bounded};
use crate::lock::Lock;
use crate::machine::Machine;
use crate::terminal::{self, Progress};

/// A manifest's text, by the name people know it.
pub struct ManifestFile {
    path: PathBuf,
    name: String,
    text: String,
}

/// What a manifest came to.
pub struct Project {
    /// The manifest's text.
    pub file: ManifestFile,
    /// Everything wrong with it, warnings included.
    pub problems: Vec<Diagnostic>,
    /// What can be served, where nothing is wrong.
    pub ready: Option<Ready>,
    /// Why the audit cannot be opened.
    audit_problem: Option<String>,
}

/// A checked manifest, its tools, and the machine they run on.
pub struct Ready {
    /// The manifest.
    pub manifest: Manifest,
    /// Its tools.
    pub catalog: Catalog,
    /// What runs them.
    pub machine: Machine,
    /// Where their calls are recorded.
    pub sink: Arc<Sink>,
    /// What builds further generations of them.
    pub builder: Builder,
    /// Components that were not looked into, as the lock does not have them so.
    pub withheld: Vec<Withheld>,
}

/// Opens the audit of a manifest in this folder. `Err` is one sentence.
pub type OpenAudit<'a> = &'a dyn Fn(&Manifest, &Path) -> Result<Sink, String>;

impl ManifestFile {
    /// Reads the text. `Err` is one sentence.
    pub fn read(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let bytes = read_bounded(path, MANIFEST_BYTES_MAX as u64).map_err(|problem| format!("{name} {problem}"))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{name} is not UTF-8 text"))?;
        Ok(Self { path: path.to_owned(), name, text })
    }

    /// For diagnostics.
    pub fn source(&self) -> Source<'_> {
        Source { name: &self.name, text: &self.text }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parses it and loads every component. Nothing is recorded.
    pub fn open(self, code: &CodeCacheArgs) -> anyhow::Result<Project> {
        self.open_recording(code, &|_, _| Ok(Sink::disabled()), None)
    }

    /// Parses it, opens the audit and loads every component; where there is a lock, those alone that it has so.
    fn open_recording(
        self,
        code: &CodeCacheArgs,
        audit: OpenAudit<'_>,
        locked: Option<&Lock>,
    ) -> anyhow::Result<Project> {
        let (manifest, mut problems) = match parse(&self.source()) {
            Ok(parsed) => (parsed.manifest, parsed.warnings),
            Err(problems) => return Ok(Project { file: self, problems, ready: None, audit_problem: None }),
        };
        let sink = match audit(&manifest, &folder_of(&self.path)) {
            Ok(sink) => Arc::new(sink),
            Err(problem) => return Ok(Project { file: self, problems, ready: None, audit_problem: Some(problem) }),
        };
        let machine = Machine::start(code, Some(manifest.server()))?;
        let progress = Progress::new("compiling components", manifest.components().len());
        let process = Process::new(&self.path, sink.path(), code);
        let builder = Builder::new(&machine, Arc::clone(&sink)).of_process(process);
        let basis = Basis::of_pinned(locked.map(Lock::digests));
        let built = builder.build(&manifest, &folder_of(&self.path), &basis, &|done| progress.at(done));
        let Built { catalog, problems: more, withheld } = built;
        problems.extend(more);
        problems.sort_by_key(|problem| problem.span().map(|span| span.start));
        let ready = catalog.map(|catalog| Ready { manifest, catalog, machine, sink, builder, withheld });
        Ok(Project { file: self, problems, ready, audit_problem: None })
    }
}

impl Project {
    /// Shows every problem on stderr: drawn, or where all is JSON there as that.
    pub fn show_problems(&self) {
        if terminal::speaks_json() {
            return self.problems.iter().for_each(|problem| terminal::write(&self.line_of(problem)));
        }
        if !self.problems.is_empty() {
            terminal::say(&render_all(&self.file.source(), &self.problems, terminal::stderr_style()));
        }
    }

    fn line_of(&self, problem: &Diagnostic) -> String {
        let level = match problem.severity() {
            Severity::Error => tracing::Level::ERROR,
            Severity::Warning => tracing::Level::WARN,
        };
        let fields = match problem.to_json(&self.file.source()) {
            serde_json::Value::Object(fields) => fields,
            other => serde_json::Map::from_iter([("message".to_owned(), other)]),
        };
        terminal::json_line(level, fields)
    }

    /// How many errors and warnings there are, in words.
    pub fn summary(&self) -> String {
        summary(&self.problems)
    }
}

/// How many errors and warnings these are, in words.
pub fn summary(problems: &[Diagnostic]) -> String {
    let count = |severity| problems.iter().filter(|problem| problem.severity() == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
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

/// Reads a manifest and loads its components, or says on stderr why that cannot be. Nothing is recorded.
pub fn open_or_say(path: &Path, code: &CodeCacheArgs) -> anyhow::Result<Option<(ManifestFile, Ready)>> {
    open_recording_or_say(path, code, &|_, _| Ok(Sink::disabled()), None)
}

/// The same for whoever records, and serves nothing but what a lock has where there is one.
pub fn open_recording_or_say(
    path: &Path,
    code: &CodeCacheArgs,
    audit: OpenAudit<'_>,
    locked: Option<&Lock>,
) -> anyhow::Result<Option<(ManifestFile, Ready)>> {
    let file = match ManifestFile::read(path) {
        Ok(file) => file,
        Err(problem) => {
            terminal::error(&problem, Some("name the manifest with --manifest, or run this in its folder"));
            return Ok(None);
        }
    };
    let project = file.open_recording(code, audit, locked)?;
    project.show_problems();
    if let Some(problem) = &project.audit_problem {
        terminal::error(problem, Some("without --audit and [audit] nothing is recorded"));
        return Ok(None);
    }
    let summary = project.summary();
    let Some(ready) = project.ready else {
        terminal::say(&format!("\n{}: {summary}\n", project.file.name()));
        return Ok(None);
    };
    Ok(Some((project.file, ready)))
}
