//! `toolcell audit`: checks and shows the audit of `toolcell serve`.
mod filter;
mod loads;
mod printer;
mod row;
mod show;
mod tail;
mod verify;

use std::io;
use std::path::Path;

use toolcell_audit::Archive;

use crate::args::{AuditArgs, AuditCommand};
use crate::exit::Exit;
use crate::terminal;

/// Runs one of its commands.
pub fn run(args: &AuditArgs) -> anyhow::Result<Exit> {
    let done = match &args.command {
        AuditCommand::Verify(args) => verify::run(args),
        AuditCommand::Show(args) => show::run(args),
        AuditCommand::Tail(args) => tail::run(args),
    };
    match done {
        // The reader of the output closed it.
        Err(error) if is_broken_pipe(&error) => Ok(Exit::Done),
        done => done,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Does this with each chain of an audit: those of processes that ran at once. Returns the worst
/// exit.
fn each_chain(file: &Path, mut work: impl FnMut(&Path, Archive) -> anyhow::Result<Exit>) -> anyhow::Result<Exit> {
    let chains = match toolcell_audit::chains(file) {
        Ok(chains) => chains,
        Err(error) => return Ok(unreadable(file, &error)),
    };
    let mut worst = Exit::Done;
    for path in &chains {
        let exit = match Archive::open(path) {
            Ok(archive) => work(path, archive)?,
            Err(error) => unreadable(path, &error),
        };
        if exit != Exit::Done {
            worst = exit;
        }
    }
    Ok(worst)
}

/// Reports that the audit cannot be read.
fn unreadable(file: &Path, error: &io::Error) -> Exit {
    let hint = (error.kind() == io::ErrorKind::NotFound)
        .then_some("name the file that `toolcell serve --audit FILE` or the manifest's [audit] section names");
    terminal::error(&format!("{}: {error}", file.display()), hint);
    Exit::AtFault
}

/// Reports an invalid filter.
fn wrong_filter(problem: &str) -> Exit {
    terminal::error(problem, None);
    Exit::Usage
}

/// Reports lines that are no records.
fn say_unreadable(file: &Path, lines: u64) -> Exit {
    if lines == 0 {
        return Exit::Done;
    }
    let message = format!("{}: lines that are no records, left out: {lines}", file.display());
    terminal::error(&message, Some("`toolcell audit verify` says where"));
    Exit::AtFault
}
