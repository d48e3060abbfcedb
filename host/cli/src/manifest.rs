//! Opening a manifest for a command, with its problems on stderr. Must not hold: the command's use
//! of it.
use std::cell::OnceCell;
use std::path::Path;
use std::sync::Mutex;

use toolcell_policy::{Diagnostic, Severity, render_all};
use toolcell_server::{LoadStep, ManifestFile, Note, OpenOptions, Opened, Ready, Refusal};

use crate::args::CodeCacheArgs;
use crate::lock_text::{differences, lock_at_fault};
use crate::terminal::{self, Progress};

/// Reads a manifest and loads its components, or prints the problems. Records nothing.
pub fn open_or_say(path: &Path, code: &CodeCacheArgs) -> anyhow::Result<Option<(ManifestFile, Ready)>> {
    open_with_or_say(path, OpenOptions { code: code.options(), ..OpenOptions::default() })
}

/// [`open_or_say`] with other options.
pub fn open_with_or_say(path: &Path, options: OpenOptions<'_>) -> anyhow::Result<Option<(ManifestFile, Ready)>> {
    let file = match ManifestFile::read(path) {
        Ok(file) => file,
        Err(problem) => {
            terminal::error(&problem, Some("name the manifest with --manifest, or run this in its folder"));
            return Ok(None);
        }
    };
    let opened = open(file, options)?;
    show_problems(&opened);
    if let Some(refusal) = &opened.refusal {
        say_refusal(refusal);
        return Ok(None);
    }
    let summary = opened.summary();
    let Some(ready) = opened.ready else {
        terminal::say(&format!("\n{}: {summary}\n", opened.file.name()));
        return Ok(None);
    };
    Ok(Some((opened.file, ready)))
}

/// Opens a manifest, with progress if it takes long: a line that is redrawn on a terminal, else a
/// line every five seconds.
pub fn open(file: ManifestFile, options: OpenOptions<'_>) -> anyhow::Result<Opened> {
    let bar: Mutex<OnceCell<Progress>> = Mutex::default();
    let show = |step: LoadStep<'_>, total: usize| match step {
        LoadStep::Loaded(done) => {
            if let Ok(bar) = bar.lock() {
                bar.get_or_init(|| Progress::new("compiling components", total)).at(done);
            }
        }
        LoadStep::Compiling(_) if terminal::draws() => {}
        LoadStep::Compiling(compiling) => terminal::say(&format!("{compiling}\n")),
    };
    let opened = file.open(&OpenOptions { progress: Some(&show), ..options })?;
    drop(bar);
    opened.ready.iter().flat_map(|ready| &ready.machine.notes).for_each(say_note);
    Ok(opened)
}

/// Prints a remark on the start.
pub fn say_note(note: &Note) {
    match note {
        Note::CodeDraftsRemoved(drafts) => terminal::say(&format!(
            "note: drafts of compiled code, left by a process that was stopped, were removed: {drafts}\n"
        )),
        Note::CodeNotKept(error) => terminal::warning(&format!("compiled code is not kept: {error}")),
    }
}

/// Prints every problem to stderr: drawn, or as JSON if stderr is JSON.
pub fn show_problems(opened: &Opened) {
    if terminal::speaks_json() {
        return opened.problems.iter().for_each(|problem| terminal::write(&line_of(opened, problem)));
    }
    if !opened.problems.is_empty() {
        terminal::say(&render_all(&opened.file.source(), &opened.problems, terminal::stderr_style()));
    }
}

fn line_of(opened: &Opened, problem: &Diagnostic) -> String {
    let level = match problem.severity() {
        Severity::Error => tracing::Level::ERROR,
        Severity::Warning => tracing::Level::WARN,
    };
    let fields = match problem.to_json(&opened.file.source()) {
        serde_json::Value::Object(fields) => fields,
        other => serde_json::Map::from_iter([("message".to_owned(), other)]),
    };
    terminal::json_line(level, fields)
}

fn say_refusal(refusal: &Refusal) {
    match refusal {
        Refusal::Audit(problem) => terminal::error(problem, Some("without --audit and [audit] nothing is recorded")),
        Refusal::NoLock(path) => {
            let problem = format!("there is no {}, and --locked serves nothing else", path.display());
            terminal::error(&problem, Some("write it with `toolcell lock`, read it, and keep it in version control"));
        }
        Refusal::Lock(error) => drop(lock_at_fault(error)),
        Refusal::Drift { lock, drifts } => {
            terminal::error(&format!("what would be served is not what {} pins", lock.display()), None);
            terminal::say(&differences(drifts));
            terminal::say("\nhint: `toolcell approve NAME` pins one of them as it is now, `toolcell lock` all\n");
        }
    }
}
