//! A manifest on disk and the catalog it comes to: what every command but `inspect` begins with.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use tokio::runtime::Runtime;
use toolcell_audit::Sink;
use toolcell_policy::{Diagnostic, MANIFEST_BYTES_MAX, Manifest, Severity, Source, parse, render_all};
use toolcell_sandbox::{Sandbox, SandboxOptions};

use crate::catalog::{Builder, Built, Catalog, folder_of, read_bounded};
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
    pub ready: Option<(Manifest, Catalog)>,
}

/// What runs guests: the engine and the worker threads.
pub struct Machine {
    /// The worker threads of guests.
    pub runtime: Runtime,
    /// The engine.
    pub sandbox: Sandbox,
}

impl Machine {
    /// Starts the engine and one worker thread per core.
    pub fn start() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("toolcell-guest")
            .enable_all()
            .build()
            .context("the worker threads for guests do not start")?;
        let sandbox = Sandbox::new(SandboxOptions::default())?;
        Ok(Self { runtime, sandbox })
    }
}

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

    /// The path as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parses it and loads every component.
    pub fn open(self, machine: &Machine, sink: Arc<Sink>) -> Project {
        let (manifest, mut problems) = match parse(&self.source()) {
            Ok(parsed) => (parsed.manifest, parsed.warnings),
            Err(problems) => return Project { file: self, problems, ready: None },
        };
        let progress = Progress::new("compiling components", manifest.components().len());
        let builder = Builder::new(machine.sandbox.clone(), machine.runtime.handle().clone(), sink);
        let built = builder.build(&manifest, &folder_of(&self.path), 1, &|done| progress.at(done));
        let Built { catalog, problems: more } = built;
        problems.extend(more);
        problems.sort_by_key(|problem| problem.span().map(|span| span.start));
        Project { file: self, problems, ready: catalog.map(|catalog| (manifest, catalog)) }
    }
}

impl Project {
    /// Shows every problem on stderr, drawn.
    pub fn show_problems(&self) {
        if !self.problems.is_empty() {
            terminal::say(&render_all(&self.file.source(), &self.problems, terminal::stderr_style()));
        }
    }

    /// How many errors and warnings there are, in words.
    pub fn summary(&self) -> String {
        let count = |severity| self.problems.iter().filter(|problem| problem.severity() == severity).count();
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
}

/// Reads a manifest and loads its components, or says on stderr why that cannot be.
pub fn open_or_say(path: &Path, machine: &Machine, sink: Arc<Sink>) -> Option<(ManifestFile, Manifest, Catalog)> {
    let file = match ManifestFile::read(path) {
        Ok(file) => file,
        Err(problem) => {
            terminal::error(&problem, Some("name the manifest with --manifest, or run this in its folder"));
            return None;
        }
    };
    let project = file.open(machine, sink);
    project.show_problems();
    match project.ready {
        Some((manifest, catalog)) => Some((project.file, manifest, catalog)),
        None => {
            terminal::say(&format!("\n{}: {}\n", project.file.name(), project.summary()));
            None
        }
    }
}
