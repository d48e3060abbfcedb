//! `toolcell audit`: checks and shows the audit of `toolcell serve`.
mod filter;
mod loads;
mod printer;
mod row;
mod show;
mod tail;
pub mod usage;
mod verify;

use std::io;
use std::path::{Path, PathBuf};

use toolcell_audit::{Archive, Chain};
use toolcell_policy::Manifest;
use toolcell_server::catalog::folder_of;
use toolcell_server::file::plain;

use crate::args::{AUDIT, AuditArgs, AuditCommand, AuditFileArg, MANIFEST};
use crate::exit::{Exit, Failure};
use crate::{manifest, terminal};

/// Bytes of a record up to its time: its number, a hash and the time.
const HEAD_BYTES_MAX: usize = 192;

/// The advice where the manifest does not say which audit is meant.
const NAME_AUDIT: &str = "name the audit itself after the command, such as audit.jsonl";

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

/// The audit of a command: the named one, or [`of`] the manifest, or the default one where no
/// manifest was named and there is none.
fn named(arg: &AuditFileArg) -> Result<PathBuf, Failure> {
    let path = &arg.manifest.manifest;
    if let Some(file) = &arg.file {
        return Ok(file.clone());
    }
    let is_missing = || path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    if path == Path::new(MANIFEST) && is_missing() {
        return Ok(PathBuf::from(AUDIT));
    }
    let manifest = manifest::checked(path).map_err(|problem| Failure::at_fault(problem, NAME_AUDIT))?;
    of(&manifest, path).ok_or_else(|| keeps_none(path))
}

/// The audit that a manifest names. Where it names none, the manifest of the current folder has the
/// default one there; `audit.jsonl` of the current folder is not that of a manifest elsewhere.
pub(in crate::commands) fn of(manifest: &Manifest, path: &Path) -> Option<PathBuf> {
    let named = manifest.audit().file().map(|file| folder_of(path).join(file));
    named.or_else(|| (path == Path::new(MANIFEST)).then(|| PathBuf::from(AUDIT)))
}

/// Failure: the manifest at this path names no audit, and neither does the command.
pub(in crate::commands) fn keeps_none(path: &Path) -> Failure {
    Failure::at_fault(format!("{} keeps no audit", path.display()), NAME_AUDIT)
}

/// Runs this for each chain of an audit: one for each concurrent process. Returns the first exit
/// that is not `Done`.
pub(in crate::commands) fn each_chain(
    file: &Path,
    mut work: impl FnMut(&Chain, Archive) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let chains = match toolcell_audit::chains(file) {
        Ok(chains) => chains,
        Err(error) => return unreadable(file, &error).report(false),
    };
    let mut exit = Exit::Done;
    for chain in &chains {
        let next = match Archive::open(&chain.path) {
            Ok(archive) => work(chain, archive)?,
            Err(error) => unreadable(&chain.path, &error).report(false)?,
        };
        exit = exit.or(next);
    }
    Ok(exit)
}

/// The time of a record, or an empty text. Times in the same format sort as text.
fn time_of(line: Option<&[u8]>) -> &[u8] {
    const KEY: &[u8] = b"\"time\":\"";
    let head = line.unwrap_or_default();
    let head = head.get(..HEAD_BYTES_MAX).unwrap_or(head);
    let begin = head.windows(KEY.len()).position(|window| window == KEY).map(|at| at + KEY.len());
    let rest = begin.and_then(|begin| head.get(begin..)).unwrap_or_default();
    rest.split(|byte| *byte == b'"').next().unwrap_or_default()
}

pub(in crate::commands) fn unreadable(file: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => {
            "name the file that `toolcell serve --audit FILE` or the manifest's [audit] section names"
        }
        _ => "",
    };
    Failure::at_fault(format!("{}: {}", file.display(), plain(error)), hint)
}

/// Reports lines that are not records.
pub(in crate::commands) fn report_unreadable(file: &Path, lines: u64) -> Exit {
    if lines == 0 {
        return Exit::Done;
    }
    let message = format!("{}: lines that are not records, left out: {lines}", file.display());
    terminal::error(&message, Some("`toolcell audit verify` says where"));
    Exit::AtFault
}
