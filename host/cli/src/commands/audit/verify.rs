//! `toolcell audit verify`: checks that the hash chain is whole.
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use toolcell_audit::{Archive, ArchivedFile, Break, Summary, Verifier};

use super::{named, unreadable};
use crate::args::AuditVerifyArgs;
use crate::exit::Exit;
use crate::terminal::{self, counted};

/// Time for a running server to complete the last record, which is a single write.
const WRITTEN_WITHIN: Duration = Duration::from_millis(250);

/// Checks every file of every chain.
pub fn run(args: &AuditVerifyArgs) -> anyhow::Result<Exit> {
    let file = match named(&args.file) {
        Ok(file) => file,
        Err(failure) => return failure.report(args.json),
    };
    let chains = toolcell_audit::chains(&file).map_err(|error| unreadable(&file, &error))?;
    let mut worst = Exit::Done;
    let mut is_head_found = false;
    for chain in chains {
        match check(&ChainQuestion { file: &chain.path, head: args.head.as_deref(), json: args.json })? {
            Checked::Whole { has_head } => is_head_found |= has_head,
            Checked::Not(exit) => worst = exit,
        }
    }
    if let Some(head) = args.head.as_deref().filter(|_| worst == Exit::Done && !is_head_found) {
        return head_missing(&ChainQuestion { file: &file, head: Some(head), json: args.json }, head);
    }
    Ok(worst)
}

/// What is checked of one chain.
struct ChainQuestion<'a> {
    file: &'a Path,
    head: Option<&'a str>,
    json: bool,
}

impl ChainQuestion<'_> {
    /// Reports a problem: in JSON what was found, for people with a hint.
    fn report(&self, problem: &str, hint: &str, found: &Value) -> anyhow::Result<Exit> {
        if self.json {
            terminal::print(&format!("{found}\n"))?;
        } else {
            terminal::error(problem, Some(hint));
        }
        Ok(Exit::AtFault)
    }
}

/// Result of checking one chain.
enum Checked {
    /// Nothing is wrong with it.
    Whole {
        /// True if it has the record whose hash was asked for.
        has_head: bool,
    },
    /// The problem was already reported.
    Not(Exit),
}

/// Checks every file of one chain.
fn check(args: &ChainQuestion<'_>) -> anyhow::Result<Checked> {
    let (archive, strays) = match Archive::open_with_strays(args.file) {
        Ok(opened) => opened,
        Err(error) => return unreadable(args.file, &error).report(false).map(Checked::Not),
    };
    let verifier = args.head.map_or_else(Verifier::new, Verifier::looking_for);
    let found = archive.verify_with(verifier);
    let summary = match found {
        Ok(summary) => summary,
        Err((file, broken)) => return broken_at(args, file, &broken).map(Checked::Not),
    };
    if let Some(first) = strays.first() {
        return beyond_gap(args, first, &strays).map(Checked::Not);
    }
    if let Some(torn) = archive.files().last().filter(|file| is_torn(file)) {
        return torn_at(args, torn, &summary).map(Checked::Not);
    }
    let has_head = summary.found.is_some();
    if has_head || args.head.is_none() {
        let text = if args.json { as_json(&archive, &summary) } else { as_text(args, &archive, &summary) };
        terminal::print(&text)?;
    }
    Ok(Checked::Whole { has_head })
}

/// True if the incomplete last line stays incomplete.
fn is_torn(file: &ArchivedFile) -> bool {
    if file.torn_bytes() == 0 {
        return false;
    }
    std::thread::sleep(WRITTEN_WITHIN);
    file.is_unchanged().unwrap_or(true)
}

fn broken_at(args: &ChainQuestion<'_>, file: &ArchivedFile, broken: &Break) -> anyhow::Result<Exit> {
    let Break { line, record, reason } = broken;
    let place = file.path().display().to_string();
    let problem = format!("{place}:{line}: the chain breaks at record {record}: {reason}");
    let hint = "the records before it are as they were written; those after it may not be";
    let reason = reason.to_string();
    let found = json!({"ok": false, "file": place, "line": line, "record": record, "reason": reason});
    args.report(&problem, hint, &found)
}

/// Reports files after a gap in the numbers, which rotation never leaves.
fn beyond_gap(args: &ChainQuestion<'_>, first: &Path, strays: &[PathBuf]) -> anyhow::Result<Exit> {
    let reason = format!("{} beyond a gap, where nothing is checked", counted(strays.len() as u64, "file"));
    let place = first.display().to_string();
    let hint = "rotation leaves a gap of one number at the most: files before it were removed, or it was put there; put \
                them back, or move it elsewhere";
    let unchecked: Vec<_> = strays.iter().map(|path| path.display().to_string()).collect();
    let found = json!({"ok": false, "file": place, "reason": reason, "unchecked": unchecked});
    args.report(&format!("{place}: {reason}"), hint, &found)
}

fn torn_at(args: &ChainQuestion<'_>, file: &ArchivedFile, summary: &Summary) -> anyhow::Result<Exit> {
    let reason = format!("the last record is torn: {} bytes of it are there", file.torn_bytes());
    let place = file.path().display().to_string();
    let hint =
        "the process or the machine ended while writing it; the next `toolcell serve` cuts it off and records that";
    let found = json!({"ok": false, "file": place, "record": summary.last + 1, "reason": reason});
    args.report(&format!("{place}: {reason}"), hint, &found)
}

fn head_missing(args: &ChainQuestion<'_>, head: &str) -> anyhow::Result<Exit> {
    let reason = format!("no record has the hash {head}");
    let hint = "the end was cut off or written anew, or the record is in a file that rotation has removed";
    let problem = format!("{}: {reason}", args.file.display());
    args.report(&problem, hint, &json!({"ok": false, "reason": reason}))
}

fn as_json(archive: &Archive, summary: &Summary) -> String {
    let Summary { records, first, last, head, times, found } = summary;
    let files: Vec<_> = archive.files().iter().map(|file| file.path().display().to_string()).collect();
    let (from, to) = times.as_ref().map_or((None, None), |(from, to)| (Some(from), Some(to)));
    let found = json!({
        "ok": true, "records": records, "first": first, "last": last, "from": from, "to": to, "head": head,
        "found": found, "files": files,
    });
    format!("{found}\n")
}

fn as_text(args: &ChainQuestion<'_>, archive: &Archive, summary: &Summary) -> String {
    let Summary { records, first, last, head, times, found } = summary;
    let mut text = format!("{}: ok; records: {records}, files: {}\n", args.file.display(), archive.files().len());
    if let Some((from, to)) = times {
        text.push_str(&format!("from:  {from}, record {first}\nto:    {to}, record {last}\n"));
    }
    if archive.lacks_current() {
        text.push_str("       the file itself is not there: a host ended while it rotated, or somebody removed it\n");
    }
    if *first > 1 {
        text.push_str("       what was recorded before is in files that rotation has removed\n");
    }
    if let Some(found) = found {
        text.push_str(&format!("found: the hash that was asked for is record {found}'s\n"));
    }
    text.push_str(&format!("head:  {head}\n"));
    text
}
