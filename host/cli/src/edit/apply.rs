//! Writing an edited manifest: checked, shown, and consented to. Must not hold: what is edited.
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use toolcell_policy::{Source, parse, render_all};
use toolcell_server::file::write_whole;
use toolcell_server::{ManifestFile, lock};

use super::shown::difference;
use crate::exit::Exit;
use crate::terminal;

/// Consent to write a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// The command line said yes.
    Given,
    /// A person is asked on the terminal. Without one, nothing is written.
    Asked,
}

/// Shows how the manifest changes, and writes it once that is wanted. A text that is no manifest is
/// refused.
pub fn apply_or_say(file: &ManifestFile, text: &str, consent: Consent) -> anyhow::Result<Exit> {
    let name = file.name();
    if text == file.text() {
        terminal::print(&format!("{name}: nothing to change\n"))?;
        return Ok(Exit::Done);
    }
    if let Err(problems) = parse(&Source { name, text }) {
        terminal::say(&render_all(&Source { name, text }, &problems, terminal::stderr_style()));
        terminal::error(&format!("{name} would have these problems, and stays as it is"), None);
        return Ok(Exit::AtFault);
    }
    terminal::print(&difference(file.text(), text, terminal::stdout_style()))?;
    if consent == Consent::Asked {
        if !std::io::stdin().is_terminal() {
            terminal::error(&format!("{name} stays as it is: nobody can be asked"), Some("add --yes to write it"));
            return Ok(Exit::Usage);
        }
        if !agrees(&format!("Write {name}? [y/N] "))? {
            terminal::say(&format!("{name} stays as it is\n"));
            return Ok(Exit::AtFault);
        }
    }
    if let Err(error) = write_whole(file.path(), text.as_bytes()) {
        terminal::error(&format!("{name} cannot be written: {error}"), None);
        return Ok(Exit::AtFault);
    }
    terminal::say(&format!("{name}: changed{}\n", lock_note(file.path())));
    Ok(Exit::Done)
}

/// More rights wait for an approval where only a lock is served.
fn lock_note(manifest: &Path) -> &'static str {
    if lock::path_beside(manifest).exists() {
        "; `toolcell lock` pins it, `toolcell diff` shows how it differs"
    } else {
        ""
    }
}

fn agrees(question: &str) -> std::io::Result<bool> {
    let mut stderr = std::io::stderr();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
