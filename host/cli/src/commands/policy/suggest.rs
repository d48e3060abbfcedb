//! `toolcell policy suggest`: turns denied attempts of tools into manifest lines that would allow
//! them.
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use serde::Deserialize;
use toolcell_policy::{ATTEMPTS_MAX, Attempt, suggest};
use toolcell_server::ManifestFile;
use toolcell_server::file::plain;

use crate::args::SuggestArgs;
use crate::edit::{ManifestEdit, apply_or_say};
use crate::exit::Exit;
use crate::terminal;

/// Most bytes of one line: more than an audit record may have.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Fields of a line of an audit or an observation.
#[derive(Deserialize)]
struct DeniedLine {
    event: Option<String>,
    component: Option<String>,
    asked: Option<String>,
    allow: Option<String>,
}

/// Prints the tables.
pub fn run(args: &SuggestArgs) -> anyhow::Result<Exit> {
    let attempts = match read(&args.file) {
        Ok(attempts) => attempts,
        Err(problem) => {
            let hint = "name a file that `toolcell serve --observe` or `--audit` wrote";
            terminal::error(&format!("{} {problem}", args.file.display()), Some(hint));
            return Ok(Exit::AtFault);
        }
    };
    if attempts.is_empty() {
        terminal::say("nothing was denied: the manifest allows all that was tried\n");
        return Ok(Exit::Done);
    }
    let attempts: Vec<Attempt> = attempts.into_iter().collect();
    if args.apply {
        return apply(args, &suggest(&attempts));
    }
    terminal::print(&suggest(&attempts))?;
    Ok(Exit::Done)
}

/// Merges the tables into the manifest.
fn apply(args: &SuggestArgs, tables: &str) -> anyhow::Result<Exit> {
    let merged = ManifestFile::read(&args.manifest.manifest).and_then(|file| {
        let mut edit = ManifestEdit::of(file.text()).map_err(|problem| format!("{}: {problem}", file.name()))?;
        edit.merge(tables)?;
        Ok((file, edit.text()))
    });
    match merged {
        Ok((file, text)) => apply_or_say(&file, &text, args.consent.consent()),
        Err(problem) => {
            terminal::error(&problem, Some("name the manifest with --manifest, or merge the tables by hand"));
            Ok(Exit::AtFault)
        }
    }
}

/// Denied attempts, each once and sorted, so that the same file gives the same suggestion.
fn read(path: &Path) -> Result<BTreeSet<Attempt>, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {}", plain(&error));
    let mut reader = BufReader::new(std::fs::File::open(path).map_err(cannot)?);
    let mut attempts = BTreeSet::new();
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let read = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(cannot)?;
        if read == 0 || attempts.len() >= ATTEMPTS_MAX {
            break;
        }
        // A line without its end was cut off by a crash.
        if line.last() != Some(&b'\n') && read as u64 != LINE_BYTES_MAX {
            break;
        }
        let record: DeniedLine =
            serde_json::from_slice(&line).map_err(|_| format!("is no JSON Lines: look at line {number}"))?;
        let DeniedLine { event: Some(event), component: Some(component), asked: Some(asked), allow } = record else {
            continue;
        };
        if event == "call.denied" {
            attempts.insert(Attempt::new(&component, &asked, allow.as_deref()));
        }
    }
    Ok(attempts)
}
