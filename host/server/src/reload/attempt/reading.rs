//! Reads the manifest, the lock and all files that they name, and builds a generation.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcell_mcp::ServedCatalog as _;
use toolcell_policy::{Diagnostic, Manifest, Severity, SourceRef, parse};

use super::Reloader;
use crate::catalog::{
    Basis, Built, CallerRules, Catalog, LoadStep, Tolerance, apps, folder_of, side_files, skills, texts,
};
use crate::fetching::trust;
use crate::files::file::absolute;
use crate::files::shipped;
use crate::lock::{self, Lock, LockPath};
use crate::machine::shell;
use crate::open::ManifestFile;
use crate::reload::failure::ReloadFailure;

/// Trigger of reloads after a change of files.
const FILES: &str = "files";

/// A built generation, with its inputs.
pub(super) struct BuiltGeneration {
    pub(super) catalog: Catalog,
    pub(super) manifest: Manifest,
    pub(super) warnings: Vec<Diagnostic>,
    /// The lock, if there is one.
    pub(super) locked: Option<Lock>,
}

impl Reloader {
    /// Reads the manifest and builds a generation.
    pub(super) fn build(&mut self, trigger: &str, old: &Arc<Catalog>) -> Result<BuiltGeneration, ReloadFailure> {
        self.note_files();
        let path = self.setup.manifest_path.clone();
        let file = match &self.setup.given {
            Some(text) => ManifestFile::given(text.to_string()),
            None => ManifestFile::read(&path).map_err(|problem| ReloadFailure::saying(&problem))?,
        };
        let parsed = parse(&file.source()).map_err(|problems| ReloadFailure::with(&file, &problems))?;
        let manifest = parsed.manifest;
        self.narrow_early(&manifest, old, &file)?;
        // Stamped before they are read, like the manifest, so that no later change is missed.
        self.served = sources(&manifest, &path);
        self.setup.files.reading_also(&self.files());
        let earlier: Vec<Arc<Catalog>> = [Some(old), self.proposed.as_ref()].into_iter().flatten().cloned().collect();
        // A person who orders a reload also expects changes outside the manifest to take effect,
        // such as a replaced secret.
        let elsewhere = (manifest.server().dns(), manifest.server().state());
        let fresh = trigger != FILES || elsewhere != (self.server.dns(), self.server.state());
        let locked = self.read_pins()?;
        let pinned = locked.as_ref().filter(|_| self.setup.locked).map(Lock::pins);
        let generation = old.tools().generation() + 1;
        // Components that the current generation leaves out may be broken. Others may not.
        let tolerance = Tolerance::Those(old.left_out().iter().map(|component| component.name.clone()).collect());
        let basis = Basis { generation, earlier: &earlier, fresh, pinned, approved: None, tolerance };
        let built = self.setup.builder.build(&self.setup.services, &manifest, &folder_of(&path), &basis, &log_slow);
        let Built { catalog, problems, withheld } = built;
        let Some(catalog) = catalog else { return Err(ReloadFailure::with(&file, &problems)) };
        self.withheld_of = (!withheld.is_empty()).then(|| manifest.clone());
        self.withheld = withheld;
        let problems = problems.into_iter().filter(|problem| problem.severity() == Severity::Warning);
        let warnings = parsed.warnings.into_iter().chain(problems).collect();
        Ok(BuiltGeneration { catalog, manifest, warnings, locked })
    }

    /// Removes rights at once that callers do not have under the new manifest: components may take
    /// long to load. Nobody is notified before the next generation is served.
    fn narrow_early(&self, manifest: &Manifest, old: &Catalog, file: &ManifestFile) -> Result<(), ReloadFailure> {
        if manifest.callers().canonical() == old.callers().canonical() {
            return Ok(());
        }
        let (rules, problems) = CallerRules::compile(manifest.callers());
        if !problems.is_empty() {
            return Err(ReloadFailure::with(file, &problems));
        }
        let rules = Arc::new(rules);
        let narrowed = old.also_under(&rules).map_err(|error| ReloadFailure::saying(&error.to_string()))?;
        self.setup.current.replace(Arc::new(narrowed));
        Ok(())
    }

    /// The lock. Unless only pinned components may be served, a missing or broken lock pins
    /// nothing.
    fn read_pins(&self) -> Result<Option<Lock>, ReloadFailure> {
        match &self.setup.lock {
            Some(path) if self.setup.locked => read_lock(path).map(Some),
            Some(path) => Ok(lock::read(path).unwrap_or_else(|error| {
                tracing::warn!("{error}; {}", shell::named(error.hint()));
                None
            })),
            None => Ok(None),
        }
    }
}

/// Logs that a component takes long to compile.
pub(super) fn log_slow(step: LoadStep<'_>) {
    if let LoadStep::Compiling(compiling) = step {
        tracing::info!("{compiling}");
    }
}

/// The lock at this path, which must exist.
pub(super) fn read_lock(path: &LockPath) -> Result<Lock, ReloadFailure> {
    let saying = |problem: String| ReloadFailure::saying(&shell::named(&problem));
    let locked = lock::read(path).map_err(|error| saying(format!("{error}; {}", error.hint())))?;
    locked.ok_or_else(|| {
        saying(format!("{} is gone, and nothing else is to be served; `toolcell lock` writes it", path.display()))
    })
}

/// Files of a manifest's components: code and side files.
pub(super) fn sources(manifest: &Manifest, path: &Path) -> Vec<PathBuf> {
    let folder = folder_of(path);
    let named = manifest.components().iter().flat_map(|component| {
        let code = match component.source() {
            SourceRef::File(written) => Some(absolute(&folder.join(written))),
            SourceRef::Shipped => shipped::engine(),
            SourceRef::HttpTool(_) => shipped::bridge(),
            _ => None,
        };
        side_files::files(component, &folder).into_iter().chain(code)
    });
    let texts = texts::files(manifest, &folder).into_iter().chain(apps::files(manifest, &folder));
    let trust = trust::files(manifest, &folder);
    named.chain(texts).chain(skills::files(manifest, &folder)).chain(trust).collect()
}
