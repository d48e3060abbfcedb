//! `toolcell audit show`: the records of all chains by time, a call at its end.
use std::io::{self, BufReader};
use std::path::PathBuf;

use toolcell_audit::{Archive, ArchivedFile, Between, Filter, Lines};

use super::filter;
use super::printer::Printer;
use super::{each_chain, named, report_unreadable, time_of, unreadable};
use crate::args::AuditShowArgs;
use crate::exit::{Exit, Failure};

/// One chain, opened.
struct OpenChain {
    number: u32,
    path: PathBuf,
    archive: Archive,
}

/// The records of one chain, in order.
struct ChainReader<'a> {
    chain: &'a OpenChain,
    /// Files that remain to be read.
    files: std::slice::Iter<'a, ArchivedFile>,
    reading: Option<(&'a ArchivedFile, Lines<BufReader<Between<'a>>>)>,
    /// The next line.
    next: Option<Vec<u8>>,
}

impl ChainReader<'_> {
    /// Reads the next line.
    fn advance(&mut self, filter: &Filter) -> Result<(), Failure> {
        loop {
            if let Some((file, lines)) = &mut self.reading {
                let line = lines.next_line().map(|line| line.map(<[u8]>::to_vec));
                let problem = |error| io::Error::other(format!("line {}: {error}", lines.number()));
                self.next = line.map_err(|error| unreadable(file.path(), &problem(error)))?;
                if self.next.is_some() {
                    return Ok(());
                }
            }
            let Some(file) = self.files.next() else {
                self.next = None;
                return Ok(());
            };
            // A file ends before the first record of the next one.
            let over = self.files.as_slice().first().and_then(begins);
            let reaches = over.is_none_or(|time| filter.reaches(&time));
            self.reading = reaches.then(|| (file, file.lines()));
        }
    }
}

/// Prints the records.
pub fn run(args: &AuditShowArgs) -> anyhow::Result<Exit> {
    let filter = filter::of(&args.filter)?;
    let file = named(&args.file)?;
    let mut chains = Vec::new();
    let mut exit = each_chain(&file, |chain, archive| {
        chains.push(OpenChain { number: chain.number, path: chain.path.clone(), archive });
        Ok(Exit::Done)
    })?;
    let mut printer = Printer::new(filter.clone(), args.filter.json);
    if let Err(error) = print(&chains, &filter, &mut printer) {
        printer.flush()?;
        return Err(error);
    }
    let left_out = printer.end()?;
    for chain in &chains {
        let lines = left_out.get(&chain.number).copied().unwrap_or_default();
        exit = exit.or(report_unreadable(&chain.path, lines));
    }
    Ok(exit)
}

/// Prints the oldest record, until nothing is left.
fn print(chains: &[OpenChain], filter: &Filter, printer: &mut Printer) -> anyhow::Result<()> {
    let reader = |chain| ChainReader { chain, files: chain.archive.files().iter(), reading: None, next: None };
    let mut readers: Vec<ChainReader<'_>> = chains.iter().map(reader).collect();
    for reader in &mut readers {
        reader.advance(filter)?;
    }
    loop {
        let left = readers.iter_mut().filter(|reader| reader.next.is_some());
        let oldest = left.min_by(|one, other| time_of(one.next.as_deref()).cmp(time_of(other.next.as_deref())));
        let Some(reader) = oldest else { return Ok(()) };
        printer.line(reader.chain.number, reader.next.as_deref().unwrap_or_default())?;
        reader.advance(filter)?;
    }
}

/// Time of the file's first record.
fn begins(file: &ArchivedFile) -> Option<String> {
    let mut lines = file.lines();
    let record: serde_json::Value = serde_json::from_slice(lines.next_line().ok()??).ok()?;
    Some(record.get("time")?.as_str()?.to_owned())
}
