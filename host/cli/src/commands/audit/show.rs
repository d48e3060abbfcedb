//! `toolcell audit show`: the records, those of a call where it ended.
use std::io;
use std::path::Path;

use toolcell_audit::{Archive, ArchivedFile, Filter};

use super::filter;
use super::printer::Printer;
use super::{each_chain, say_unreadable, unreadable, wrong_filter};
use crate::args::AuditShowArgs;
use crate::exit::Exit;

/// Prints the records.
pub fn run(args: &AuditShowArgs) -> anyhow::Result<Exit> {
    let filter = match filter::of(&args.filter) {
        Ok(filter) => filter,
        Err(problem) => return Ok(wrong_filter(&problem)),
    };
    each_chain(&args.file, |path, archive| print(args, filter.clone(), path, &archive))
}

/// Prints the records of one chain.
fn print(args: &AuditShowArgs, filter: Filter, path: &Path, archive: &Archive) -> anyhow::Result<Exit> {
    let mut printer = Printer::new(filter, args.filter.json);
    let files = archive.files();
    for (place, file) in files.iter().enumerate() {
        // A file ends before the first record of the next.
        let over = files.get(place + 1).and_then(begins);
        if over.is_some_and(|time| !printer.filter().reaches(&time)) {
            continue;
        }
        let mut lines = file.lines();
        loop {
            match lines.next_line() {
                Ok(Some(line)) => printer.line(line)?,
                Ok(None) => break,
                Err(error) => {
                    printer.flush()?;
                    let problem = io::Error::other(format!("line {}: {error}", lines.number()));
                    return Ok(unreadable(file.path(), &problem));
                }
            }
        }
    }
    Ok(say_unreadable(path, printer.end()?))
}

/// Time of the file's first record.
fn begins(file: &ArchivedFile) -> Option<String> {
    let mut lines = file.lines();
    let record: serde_json::Value = serde_json::from_slice(lines.next_line().ok()??).ok()?;
    Some(record.get("time")?.as_str()?.to_owned())
}
