//! Editing a manifest: reading, checking, showing the difference, asking and writing. Must not
//! hold: the edits themselves.
pub mod rights;
mod shown;

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use toolcell_policy::edit::ManifestEdit;
use toolcell_policy::{CODE, Diagnostic, Severity, Source, parse, render_all};
use toolcell_server::file::write_whole;
use toolcell_server::{ManifestFile, OpenOptions, Opened, VALUE_MISSING, lock};

use crate::args::{Consent, manifest_words};
use crate::exit::{Exit, Failure};
use crate::manifest;
use crate::terminal;
pub use shown::{difference, unified};

/// Stream that a change is shown on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// The answer of the command.
    Stdout,
    /// Next to an answer in JSON.
    Stderr,
}

/// Reads a manifest to edit it.
pub fn read(path: &Path) -> Result<(ManifestFile, ManifestEdit), Failure> {
    let file = manifest::read(path)?;
    let edit = ManifestEdit::of(file.text()).map_err(|problem| {
        Failure::at_fault(format!("{} is not TOML: {problem}", file.name()), "`toolcell check` shows where")
    })?;
    Ok((file, edit))
}

/// Checks that the manifest has this component.
pub fn check_known(file: &ManifestFile, edit: &ManifestEdit, component: &str) -> Result<(), Failure> {
    let components = edit.components();
    if components.iter().any(|name| name == component) || component == CODE && edit.has_scripts() {
        return Ok(());
    }
    let hint =
        if components.is_empty() { "it has none".to_owned() } else { format!("it has: {}", components.join(", ")) };
    Err(Failure::at_fault(format!("{} has no component {component:?}", file.name()), hint))
}

/// Shows how the manifest changes, and writes it if the person agrees. A text that is not a
/// manifest is refused.
pub fn apply_or_report(file: &ManifestFile, text: &str, consent: Consent) -> anyhow::Result<Exit> {
    if text == file.text() {
        terminal::print(&format!("{}: nothing to change\n", file.name()))?;
        return Ok(Exit::Done);
    }
    agree(file, text, consent, Screen::Stdout)?;
    write(file, text)?;
    terminal::eprint(&format!("{}: changed{}\n", file.name(), lock_note(file.path())));
    Ok(Exit::Done)
}

/// Checks that everything that loaded with a manifest's old text loads with the new one, like
/// `toolcell check`. New problems are shown. A value that is missing in this process is shown but
/// not refused: the server may have it.
///
/// # Errors
/// It does not, or this process cannot load components at all.
pub fn loads(file: &ManifestFile, text: &str) -> anyhow::Result<()> {
    let new = new_problems(file, text)?;
    if !new.is_empty() {
        terminal::eprint(&render_all(&Source { name: file.name(), text }, &new, terminal::stderr_style()));
    }
    if new.iter().all(|problem| problem.code() == VALUE_MISSING) {
        return Ok(());
    }
    let problem = format!("{} would not load, and stays as it is", file.name());
    Err(Failure::at_fault(problem, "").into())
}

/// Errors that loading finds with a manifest's new text, and not with its old one. None for a text
/// that is not a manifest: [`agree`] shows why.
///
/// # Errors
/// This process cannot load components at all.
pub fn new_problems(file: &ManifestFile, text: &str) -> anyhow::Result<Vec<Diagnostic>> {
    if text == file.text() || parse(&Source { name: file.name(), text }).is_err() {
        return Ok(Vec::new());
    }
    let after = opened(file.path(), text)?;
    if !after.problems.iter().any(is_error) {
        return Ok(Vec::new());
    }
    let before = opened(file.path(), file.text())?;
    let is_new = |problem: &Diagnostic| {
        let mut old = before.problems.iter();
        !old.any(|old| old.code() == problem.code() && old.message() == problem.message())
    };
    Ok(after.problems.into_iter().filter(|problem| is_error(problem) && is_new(problem)).collect())
}

/// True if this text would load but for values that are missing in this process.
///
/// # Errors
/// This process cannot load components at all.
pub fn lacks_values(edited: &ManifestFile) -> anyhow::Result<bool> {
    let opened = opened(edited.path(), edited.text())?;
    let mut errors = opened.problems.iter().filter(|problem| is_error(problem)).peekable();
    Ok(errors.peek().is_some() && errors.all(|problem| problem.code() == VALUE_MISSING))
}

/// Opens this text at the manifest's path. Broken components are problems like any other.
fn opened(path: &Path, text: &str) -> anyhow::Result<Opened> {
    let options = OpenOptions { what_works: true, ..OpenOptions::default() };
    manifest::open(ManifestFile::unwritten(path, text.to_owned()), options)
}

fn is_error(problem: &Diagnostic) -> bool {
    problem.severity() == Severity::Error
}

/// Checks a manifest's new text, shows how it differs, and asks for consent.
pub fn agree(file: &ManifestFile, text: &str, consent: Consent, screen: Screen) -> anyhow::Result<()> {
    let name = file.name();
    if let Err(problems) = parse(&Source { name, text }) {
        terminal::eprint(&render_all(&Source { name, text }, &problems, terminal::stderr_style()));
        return Err(Failure::at_fault(format!("{name} would have these problems, and stays as it is"), "").into());
    }
    match screen {
        Screen::Stdout => terminal::print(&difference(file.text(), text, terminal::stdout_style()))?,
        Screen::Stderr => terminal::eprint(&difference(file.text(), text, terminal::stderr_style())),
    }
    agrees_or_reports(name, &format!("Write {name}?"), consent)
}

/// Asks for consent, or reports that this stays unchanged.
pub fn agrees_or_reports(name: &str, question: &str, consent: Consent) -> anyhow::Result<()> {
    if consent == Consent::Given {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        let problem = format!("{name} stays as it is: nobody can be asked");
        return Err(Failure::usage(problem, "add --yes to write it").into());
    }
    if agrees(&format!("{question} [y/N] "))? {
        return Ok(());
    }
    terminal::eprint(&format!("{name} stays as it is\n"));
    Err(Failure::said(Exit::AtFault).into())
}

/// Writes a manifest's new text atomically. `file` is the text that was edited: if the file has
/// changed since, it stays.
pub fn write(file: &ManifestFile, text: &str) -> Result<(), Failure> {
    let now = match file.path().symlink_metadata() {
        Ok(_) => ManifestFile::read(file.path()).map(|now| now.text().to_owned()),
        Err(_) => Ok(String::new()),
    };
    if now.as_deref() != Ok(file.text()) {
        let problem = format!("{} was changed meanwhile, and stays as it is", file.name());
        return Err(Failure::at_fault(problem, "run the command again"));
    }
    write_whole(file.path(), text.as_bytes())
        .map_err(|error| Failure::at_fault(format!("{} cannot be written: {error}", file.name()), ""))
}

/// A note that new rights need approval if only a lock is served.
fn lock_note(manifest: &Path) -> String {
    if !lock::path_beside(manifest).exists() {
        return String::new();
    }
    let words = manifest_words(manifest);
    format!("; `toolcell lock{words}` pins it, `toolcell diff{words}` shows how it differs")
}

/// Asks a person on the terminal. Anything but yes counts as no.
pub fn agrees(question: &str) -> std::io::Result<bool> {
    let mut stderr = std::io::stderr();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
